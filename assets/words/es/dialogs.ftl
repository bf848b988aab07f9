# Diálogos sobre la ventana.
cancel = Cancelar
open = Abrir
save = Guardar
there-are-none = No hay ninguno.

## Dónde se ejecuta el worker
connect-this = Esta máquina
connect-ssh = Un servidor por ssh
connect-slurm = Un trabajo de Slurm
connect-container = Un contenedor
connect-title = Conectar una GPU
connect-words = Un worker hace todo el trabajo en los dispositivos. Escriba el nombre de un destino o la orden que inicia un worker; vacío significa esta máquina.
connect-command = Orden de inicio
    .hint = esta máquina
connect-such = Por ejemplo:
connect-no-command = sin orden
connect-python = Python con PyTorch, allí
    .hint = lo encuentra el worker
connect-give-up = Desistir tras
connect-seconds = Segundos de espera
    .tip = Use más segundos para un trabajo que espera en una cola.
connect-without = sin respuesta
connect-go = Conectar
connect-before = Se conectó antes. Rellena los campos.
connect-forget = Lo quita de esta lista.
connect-forget-name = Olvidar { $title }
connect-targets = Destinos:
connect-by-ssh = Por ssh:
connect-ssh-tip = { $name } de ~/.ssh/config, donde maskloom debe estar instalado.
connect-waiting = Esperando un worker en { $target }: { $waited } s de { $limit } s
connect-still = Sigue conectado: { $target }.
connect-starting = Iniciando un worker en { $target }
connect-connected = Conectado a { $host } (Maskloom { $version })

## Un archivo que otro programa cambió
difference-title = El archivo y este documento
difference-words = Las líneas con - están solo en el archivo; las líneas con +, solo en este documento.
difference-later = Decidir después
outside-reload = Volver a leer
    .tip = Lee el archivo; Deshacer recupera este documento.
outside-keep = Conservar el mío
    .tip = El próximo guardado escribe sobre el archivo.
outside-show = Mostrar la diferencia
    .tip = Muestra las líneas que difieren.
typed-not-taken = { $name }: `{ $text }` no se acepta. Corríjalo, o repita la orden para seguir sin ello.
outside-changed = Otro programa cambió { $name }.
outside-gone = { $name } ya no está: se borró o se movió, o se retiró su disco.
outside-again = Guardarlo de nuevo
    .tip = Escribe este documento en el mismo lugar.
outside-unsaved = Mantenerlo sin guardar
    .tip = El documento sigue abierto y cuenta como no guardado hasta que lo guarde.

## Cerrar cuando los documentos sin guardar no se pueden conservar
leave-title = Se perderían documentos sin guardar
leave-words = Estos documentos no están guardados, no se pueden conservar para el próximo inicio y se perderían: { $names }.
leave-save = Guarda el documento abierto en un archivo; después vuelva a cerrar la ventana.
leave-anyway = Salir de todos modos
    .tip = Cierra; lo que no está guardado se pierde.
leave-tab = Este documento no está guardado, no se puede conservar entre los documentos sin guardar y se perdería con su pestaña: { $names }.
    .save = Guarda el documento en un archivo; después vuelva a cerrar la pestaña.
    .anyway = Cerrar de todos modos

## Instalar NVRTC
fetch-title = ¿Obtener NVRTC?
fetch-words = NVRTC compila los kernels de GPU. Esta orden lo instalaría en la carpeta propia de Maskloom:
fetch-outside = No cambia nada fuera de { $folder }.
fetch-yes = Obtenerlo

## La galería
gallery-title = Galería
gallery-hint = Busque nombres, modelos y descripciones; Intro abre el primero
gallery-filter = Filtro
gallery-own = Aquí aparecen los documentos que guarda o abre.
gallery-folder = Sus propios presets: archivos .json en { $folder }
gallery-none = Ningún documento coincide con estas palabras.
gallery-all = Todo
gallery-recorded = { $from }: flex { $ms } ms
gallery-recorded-than = { $from }: flex { $ms } ms, { $words }
gallery-no-picture = Sin imagen: { $why }
gallery-language = Modelos de lenguaje
gallery-images = Imágenes
gallery-video = Vídeo
gallery-encoders = Codificadores
gallery-patterns = Patrones
gallery-yours = Suyos

## Trabajos
jobs-title = Trabajos
jobs-words = Continúan cuando esta ventana se cierra o se corta la línea.
jobs-connected = { $target } ({ $host }), conectado
jobs-remove = Quitar lo que terminó
    .tip = Quita los trabajos terminados, con sus resultados.
jobs-connect-tip = La convierte en la máquina del worker; la actual se queda hasta que responda.
jobs-connect-name = Conectar { $title }
jobs-silent = inaccesible: { $why }
jobs-asking = preguntando a los demás destinos
jobs-open-name = Abrir { $title }
jobs-end = Terminar
jobs-end-name = Terminar { $title }
jobs-of = { $state }, { $done } de { $steps }
jobs-left = { $state }, { $left }
jobs-seconds = { $state }, { $seconds } s
jobs-another = { $state }, de otro usuario
job-running = en marcha
job-ended = terminado
job-cancelled = cancelado
job-lost = terminado sin aviso (lo mataron, o la máquina se reinició)
job-elsewhere = en otra máquina

## Listas
lists-unchanged = El documento no ha cambiado.
lists-no-messages = Todavía no hay mensajes.
lists-seconds = hace { $n } s
lists-minutes = hace { $n } min
lists-message = { $word }, { $ago }: { $message }

## La paleta
palette-preset = Abrir el preset { $name }
palette-pattern = Añadir el patrón { $name }
palette-cell = Ir a la celda q { $q }, kv { $kv }
palette-layer = Seleccionar { $name }
palette-parameter = Parámetro { $name } de { $layer }
palette-setting = Ajuste { $name }
palette-open = Abrir { $name }
palette-token = «{ $said }», token { $token }
palette-query = «{ $said }», consulta { $token }
palette-key = «{ $said }», clave { $token }
palette-axes = ejes y longitudes
palette-batch = lote
palette-heads = cabezas
palette-scale = escala
palette-fast = fast math, tanh aproximada
palette-backends = backends que corren
palette-rounds = vueltas de medición
palette-inputs = entradas de una carrera, semilla
palette-capture = captura, pérdida de la máscara, máscaras sugeridas
palette-parallel = context parallel, varias GPU, ranks, all-gather
palette-trainer = ajuste de atención de un entrenador
palette-hint = Una orden, un preset, una capa, un parámetro, un archivo, un token o una celda como q, kv
palette-name = Orden
palette-none = Ninguna orden coincide.
palette-preset-tip = Abre el preset; deshacer recupera el documento.
palette-cell-tip = La centra y la fija.
palette-layer-tip = Lo muestra en el inspector.
palette-setting-tip = Muestra el lugar del ajuste.

## Pegar
paste-title = Pegar código de FlexAttention
paste-words = Un mask_mod, un score_mod, un lambda, o funciones que los devuelven, con las constantes y los tensores que usan.
paste-name = Código de FlexAttention
paste-new = Como documento nuevo
paste-layers = Como capas de { $name }
paste-use = Usar este código
paste-nothing = Todavía no se ha pegado nada.
paste-no-mod = Todavía no se encontró ningún mod; el código se añade como capa con sus errores.
paste-wrong = Aún no está bien, línea { $line }:
paste-a-mask = una máscara
paste-a-score = un score mod
paste-the-mask = la máscara { $name }
paste-the-score = el score mod { $name }
paste-with = { $what } con { $args }
paste-and = { $what } y { $more }
paste-adds = Añade { $what }.
paste-tokens-line = { $q } x { $kv } tokens, de la línea { $line }.
paste-no-numbers = Los tamaños de la línea { $line } no son números simples: ajuste los ejes después.
paste-tokens-of = { $n } tokens, la longitud de { $name }.

## Rutas
path-exists = Este archivo existe. Guarde otra vez para reemplazarlo.
path-on = En
path-on-name = En { $name }
path-stays = Una captura se queda allí: llegan imágenes y estadísticas. Los demás archivos se abren aquí.
path-path = Ruta
path-browse-tip = Abre el diálogo de archivos del sistema, si lo hay.
path-hidden = Archivos ocultos
path-above = La carpeta superior
path-none = Aquí no hay archivos así.
path-more = y { $n } más, cuyos nombres se pueden escribir
path-kinds = documentos, código, tensores
path-open = Abrir un documento, código, una ejecución o tensores
path-config = Abrir el config.json de un entrenador
path-save = Guardar el documento
path-save-run = Guardar la ejecución
path-save-script = Guardar el script de captura
path-save-html = Guardar el diseño como un archivo HTML
path-link = Enlazar un archivo Python con código de FlexAttention
path-link-yes = Enlazar

## Longitudes nuevas
resize-title = Las longitudes cambian
resize-question = De { $old } a { $new } tokens. ¿Qué debe pasar con las capas dibujadas?
resize-keep = Conservarlas
    .tip = Cada celda, rectángulo y banda se queda en sus tokens.
resize-scale = Escalarlas
    .tip = Las celdas pintadas, los rectángulos, las bandas y las curvas de distancia se escalan a las longitudes nuevas.
resize-repeat = Repetirlas
    .tip = Las celdas pintadas se repiten a lo largo de ambos ejes; lo demás se queda en sus tokens.

## La configuración de un entrenador
trainer-title = La configuración de un entrenador
trainer-unset = sin fijar
trainer-today = Hoy: { $words }
trainer-first = Primero, las opciones sin máscara
trainer-shape = { $axis } = { $tokens } tokens, { $heads } cabezas, { $kv } cabezas kv, head_dim { $dim }
trainer-race = Hacer competir a las opciones que no necesitan máscara
trainer-race-tip = { $names } con la forma real del modelo. El más rápido quizá ya baste.
trainer-unknown = No se conoce la forma de esta familia de modelos: empiece por un preset.
trainer-or-preset = O empezar por un preset para este modelo
trainer-preset = Empezar por un preset
trainer-export = Exportar muestra lo que cambiaría en este archivo antes de escribir, y guarda una copia.

## Documentos sin guardar
unsaved-title = Documentos que no se guardaron
unsaved-words = Estos documentos se reemplazaron antes de guardarse. Los más recientes van primero.
unsaved-nothing = Esta ventana no guarda nada entre inicios.
unsaved-most = Los { $n } más recientes se guardan hasta que los descarte.
unsaved-open-name = Abrir { $name }
unsaved-discard = Descartar
unsaved-discard-name = Descartar { $name }
unsaved-for-good = Descartar para siempre
unsaved-for-good-name = Descartar para siempre { $name }
unsaved-last = último: { $step }, { $ago }
unsaved-older = hay un estado anterior en { $path }
unsaved-moment = hace un momento
unsaved-minutes = hace { $n } minutos
unsaved-hours = hace { $n } horas
unsaved-days = hace { $n } días
