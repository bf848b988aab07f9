# El marco de la ventana: menús, la barra superior, los primeros pasos, las tarjetas, herramientas, la página lateral, Instalación.

## Menús
menu = Menú
    .tip = Todas las órdenes por grupo.
menu-file = Archivo
menu-edit = Editar
menu-view = Ver
menu-run = Ejecutar
menu-help = Ayuda
menu-recent = Recientes
menu-go-to = Ir a
menu-dock = Acoplar
    .tip = Pone esta página y las capas a la izquierda, a la derecha o debajo del lienzo.
menu-looks = Texto y tema
menu-language = Idioma
    .tip = El idioma de menús, explicaciones y mensajes; códigos, archivos y registros siguen en inglés.
menu-share = Compartir
    .tip = Copia una imagen o el código, o lo guarda todo como un archivo HTML.

## Grupos de órdenes en la lista de atajos
group-file = Archivo
group-edit = Editar
group-run = Ejecutar, abrir y buscar
group-workspaces = Espacios de trabajo
group-tools = Herramientas y capas
group-view = Ver

## La barra superior
top-workspace = Espacio de trabajo
top-name = Nombre del documento
top-no-file = todavía sin archivo
top-changed = modificado
    .tip = Hay cambios sin guardar. El próximo inicio los recupera.
top-run = Ejecutar
top-racing = Hay una carrera en marcha.
top-device = Dispositivo
top-device-where = { $device }, en { $target }
top-device-best = El mejor disponible
top-starting = iniciando…

## Los primeros pasos
start-words = Maskloom muestra qué tokens pueden atender a cuáles, permite cambiarlo y mide el tiempo que se ahorra.
start-hide = Ocultar los primeros pasos
    .tip = Oculta estos primeros pasos; el menú Ver los muestra de nuevo.
start-gallery = Galería
    .words = máscaras listas con imágenes
start-paste = Pegar o abrir código de FlexAttention
    .words = mask_mod, score_mod, archivos enteros
start-config = Abrir el config.json de un entrenador
    .words = ajustar una máscara a su modelo y exportarla
start-connect = Conectar una GPU
    .words = ssh, Slurm, un contenedor
start-tour = Ver un recorrido
    .words = 90 segundos, avanza solo
start-learn = Lecciones paso a paso
    .words = qué es un bloque, por qué es rápido

## Páginas laterales
page-design = Inspector
page-race = La carrera
page-quality = Calidad de la máscara
page-code = Texto
page-export = Qué usa usted
page-learn = Lección
page-parallel = Varias GPU
page-field = Página
page-hide = Ocultar la página lateral

## Las tarjetas bajo la barra
card-kept = Conserva
card-kept-of = { $share } de las celdas
card-kept-none = – de las celdas
card-kept-full = todos los bloques de { $size } están llenos
card-kept-nothing = nada en absoluto
card-kept-blocks = bloques: { $full } llenos, { $partial } parciales, { $empty } omitidos
card-kept-uncounted = sin contar
card-kept-stopped = el recuento se detuvo; la imagen se queda
card-kept-counting = contando…
card-kept-broken = sin imagen: error en { $layers }
card-kept-before = estado anterior al error en { $layers }
card-kept-errors = Sin contar: el documento tiene errores.
card-costs = Cuesta
card-costs-racing = en carrera…
card-costs-errors = el documento tiene errores
card-costs-untimed = sin medir
card-costs-smaller = solo corrió una copia más pequeña
card-costs-race = haga competir a los backends
card-loses = Pierde
card-loses-unknown = sin medir
card-loses-needs = necesita q y k de un modelo
card-loses-why = La parte del softmax que se conserva depende de consultas y claves reales.
card-problems = Problemas
card-problems-compiling = compilando…
card-problems-none = ninguno
card-problems-fine = compila y puede ejecutarse
card-problems-warnings = { $n ->
    [one] 1 advertencia
   *[other] { $n } advertencias
}
card-problems-errors = { $n ->
    [one] 1 error
   *[other] { $n } errores
}
card-problems-both = { $errors ->
    [one] 1 error
   *[other] { $errors } errores
}, { $warnings } advertencias

## Gravedad
severity-error = error
severity-warning = advertencia
severity-note = nota

## Herramientas e imágenes sobre el lienzo
title-folder = { $name } ({ $folder })
title-number = { $name } ({ $n } de { $all })
title-other = { $name } (otro documento)
tools-layers = Capas
picture-blocks = Bloques
    .tip = Bloques de BLOCK_SIZE llenos, parciales y vacíos.
picture-mask = Máscara
    .tip = La parte conservada de cada píxel.
picture-bias = Sesgo
    .tip = Lo que los score mods suman a una puntuación de cero.
picture-scores = Puntuaciones
    .tip = q·k tras la escala y los score mods, de las entradas de la última carrera.
picture-probabilities = Probabilidades
    .tip = Tras el softmax, de las entradas de la última carrera.
picture-loss = Pérdida
    .tip = Masa de atención fuera de la máscara, para la captura abierta en Calidad, con la masa que conserva cada fila.
picture-difference = Diferencia
picture-difference-tip = Celdas que se conservan ahora pero no en { $name }, y al revés.
picture-patches-tip = { $tip } Bloques, Máscara, Puntuaciones y los demás dicen qué se muestra.
picture-drawn = Qué se dibuja
picture-log = log
    .tip = Colorea según el logaritmo.
tools-choose = Herramientas: { $tool }
    .tip = Muestra todas las herramientas.
tools-more = Más controles
    .tip = Lo que no cabe en la ventana: cabezas, cifras, trabajo en curso.
tools-batch = lote
tools-head = cabeza
tools-all-heads = en todas
tools-one-head = para la cabeza { $heads }
tools-some-heads = para las cabezas { $heads }
tools-heads-title = Cabezas para pintar y para capas nuevas
    .tip = Las cabezas a las que se aplican las herramientas y las capas nuevas.
tools-stop-counting = Dejar de contar
    .tip = Deja de contar; la imagen se queda.
tools-count = Contar
    .tip = Cuenta bloques y celdas.
tools-empty-rows = { $n } filas no conservan ninguna clave
tools-empty-rows-tip = Su salida es 0 y su lse es -inf.

## Lo que hace el ratón, en la barra inferior
mouse-pan = Arrastrar mueve la imagen, la rueda la amplía, un clic fija una celda para la página Celda.
mouse-handles = Arrastre un tirador para cambiar el rectángulo, su centro para moverlo; Mayús mueve de token en token.
mouse-rectangle = Conserva un rectángulo de celdas, como capa nueva.
mouse-rectangle-first = El primer rectángulo parte de una máscara vacía: solo se conservan las celdas dibujadas.
mouse-band = Conserva una banda diagonal de celdas, como capa nueva.
mouse-band-first = La primera banda parte de una máscara vacía: solo se conservan las celdas dibujadas.
mouse-area = Arrastre sobre un área: se dicen sus celdas conservadas, bloques, desperdicio y bytes. { $borders }
mouse-polygon = Marque con clics las esquinas alrededor de un área; Intro o un doble clic la cierra. { $borders }
mouse-lasso = Dibuje alrededor de un área. { $borders }
mouse-borders = Los bordes se ajustan a fotogramas y segmentos (con Alt, no); Mayús selecciona tokens sueltos.
mouse-patches = Un clic en una clave la convierte en la consulta; las flechas la mueven, Re Pág y Av Pág un fotograma. G vuelve a la matriz.

## Las cifras de un área seleccionada
area-within = dentro de { $place }
area-forget = Olvidar el área
    .tip = Olvida el área.
area-keep = Conservar estas
area-drop = Quitar estas
area-kept = conserva { $share } de sus celdas
area-mass = tiene { $share } de la atención de sus consultas, de la que se pierde { $dropped }
area-mass-tip = La probabilidad sin la máscara, según { $source }; la media de las consultas del área.
area-too-many = Más bloques de los que se cuentan uno a uno: seleccione menos.
area-blocks = bloques de { $size }: { $full } llenos, { $partial } parciales, { $empty } omitidos
area-waste = desperdicio: { $share } de las celdas calculadas se descarta
area-bytes = claves y valores leídos: { $bytes } por cabeza
area-bytes-tip = Cada bloque calculado lee sus claves y valores una vez; un kernel puede encontrar algunos en su caché.

## La barra inferior
status-compiling = compilando…
status-cancel = Cancelar
status-cancel-name = Cancelar el trabajo
status-no-worker = no hay worker en { $target }
status-worker = El worker se ejecuta en { $target }.
status-waiting = El worker todavía no ha respondido.
status-internal = { $n ->
    [one] 1 error interno
   *[other] { $n } errores internos
}
status-internal-tip = Fallos de Maskloom; véase Mensajes.

## Capas
layers-mask = Capas de máscara
layers-mask-none = Ninguna: se conservan todas las celdas.
layers-score = Score mods
layers-score-none = Ninguno: las puntuaciones no cambian.
layers-add = Añadir
layers-add-mask = Añadir una capa de máscara
layers-add-score = Añadir un score mod
layers-select = Seleccione una capa para ver sus parámetros.
layers-down = Bajar
layers-up = Subir
layers-duplicate = Duplicar
layers-delete = Borrar
design-axes = Ejes
design-shape = Forma
design-about = Sobre este documento
design-more = Más
design-queries = Consultas
design-tokens = Tokens
design-keys = Claves

## Mensajes
toast-dismiss = Descartar el mensaje
    .tip = Descarta este mensaje; se queda entre los Mensajes.
problems-none = Sin problemas: el documento compila y puede ejecutarse.
problems-copy = Copiar
    .tip = Copia el mensaje entero.
problems-apply = Aplicar
    .tip = Escribe la sugerencia en el código.
problems-layer = Selecciona la capa.
close = Cerrar
done = Listo
copy = Copiar
    .tip = Lo copia.

## Instalación
setup-on = en { $target }
setup-empty = Controlador, NVRTC, cuDNN, PyTorch, pantalla: cada uno con la orden que lo arregla.
setup-ok = bien
setup-missing = falta
setup-broken = roto
setup-copy-fix = Copiar el arreglo de { $name }
setup-versions = Versiones
setup-guide = Guía de FlashAttention
    .tip = Su beneficio, instalación y desinstalación.
setup-explain = Explicar un mensaje de error
    .hint = Explicar un mensaje de error: péguelo aquí
setup-language-system = Como el sistema ({ $name })
setup-language-fonts = ningún tipo de letra de este sistema tiene las letras de { $name }, así que la ventana sigue en inglés
setup-language-fonts-hint = instale uno, como Noto: sudo apt-get install -y { $package }

## Una capa en la lista
layer-pattern = patrón
layer-rectangle = rectángulo
layer-band = banda
layer-painted = pintada
layer-code = código
layer-linked = archivo enlazado
layer-curve = curva
layer-picture = Imagen de { $name }
layer-picture-tip = Las celdas que conserva esta capa sola. Arrástrela a otro lugar de la lista.
layer-enable = Activar { $name }
layer-enable-tip = Activa o desactiva la capa.
layer-keep = conserva
layer-not = no
layer-and = y
layer-or = o
layer-and-not = y no
layer-joins = Cómo se une { $name }
layer-joins-tip = Cómo se combina con las capas de abajo.
layer-all-heads = todas las cabezas
layer-one-head = cabeza { $heads }
layer-some-heads = cabezas { $heads }
layer-heads-tip = Las cabezas a las que se aplica esta capa.
layer-select = La selecciona.
status-shape = { $queries } x { $keys } tokens, { $heads } cabezas de { $dim }, { $dtype }
status-shape-batch = { $queries } x { $keys } tokens, lote { $batch }, { $heads } cabezas de { $dim }, { $dtype }

## El ratón y las teclas sobre el lienzo, en la lista de atajos
keys-title = Teclado y ratón
keys-canvas = Sobre el lienzo
keys-zoom = rueda, o más y menos
    .does = amplía en torno al puntero; dos dedos mueven
keys-move = arrastrar, con cualquier herramienta con Espacio pulsado
    .does = mueve la imagen; también el botón central y las flechas
keys-click = clic
    .does = fija la celda para la página Celda; Escape la suelta
keys-menu = clic derecho
    .does = muestra las órdenes para la celda
keys-home = Inicio
    .does = la máscara entera
keys-arrow = Mayús y una flecha
    .does = mueve casi una pantalla
keys-enter = Intro
    .does = empieza y termina la herramienta en la cruz del centro
keys-width = Alt y la rueda
    .does = cambia el ancho del pincel, el borrador o la línea
keys-brackets = [ y ]
    .does = cambia el ancho del pincel; con otra herramienta, muestra la cabeza anterior o siguiente
keys-escape = Escape
    .does = cancela el trazo en curso
keys-small = arrastrar en la imagen pequeña
    .does = mueve la vista

## Un archivo sobre la ventana
drop-title = Suelte para abrir
drop-words = Un documento, código de FlexAttention, una ejecución, un config.json o un archivo safetensors de q, k y v.
