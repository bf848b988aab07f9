# Las páginas Celda, Código, Problemas y Varias GPU, y qué hacen los trabajos.

## Celda
cell-errors = El documento tiene errores.
cell-before = Estado anterior al error en { $layers }.
cell-no-lengths = Los ejes no tienen longitudes válidas.
cell-b = b de la celda
cell-h = h de la celda
cell-q = q_idx de la celda
cell-kv = kv_idx de la celda
cell-to = { $q } a { $kv }
cell-unpin = Soltar
    .tip = Sigue de nuevo el puntero (Escape).
cell-every = Se conservan todas las celdas.
cell-score-of = score_mod, de una puntuación de 1
cell-scores-stay = Las puntuaciones no cambian.
cell-is-kept = conservada
cell-is-dropped = descartada
cell-more = y { $n } más
cell-patches = Parches a los que atiende { $place }
cell-on-canvas = En el lienzo
cell-makes-query = Un clic en un parche lo convierte en la consulta.
cell-makes-key = Un clic en un parche lo convierte en la clave.
cell-patches-seen = { $name }: { $seen } de { $all } parches
cell-patches-of = Parches de { $name }

## Código
code-linked = El código de { $name } es { $path }: edite el archivo; se vuelve a leer tras cada guardado.
code-none = Ninguna capa de este documento es código editable.
code-mods = CUDA: mods
code-kernel = CUDA: kernel
code-compiler = Compilador
code-steps = Paso a paso
code-no-kernel = Todavía no hay kernel: ejecute en una GPU, o compile aquí (necesita NVRTC, pero no una GPU).
code-copy-tip = Copia el texto entero.
code-stale-tip = El documento ha cambiado desde que se compiló.
code-smaller-tip = Compilado para la copia más pequeña que corrió.
code-for = para…
code-registers = { $n } registros
code-shared = { $kb } KB de memoria compartida
code-spilled = { $n } bytes derramados
code-spilled-tip = Algunos registros se derraman a la memoria local.
code-stack = { $n } bytes de pila
code-blocks = { $n } bloques por multiprocesador
code-cached = de la caché
code-compiled = compilado en { $ms } ms
code-silent = El compilador no imprimió nada.
code-key = clave de caché { $key }
code-field = Código
code-apply = Aplicar la sugerencia

## Problemas
problems-the-code = el código
problems-made-for = { $name } está hecho para { $sizes }.
problems-table = `{ $name }` tiene { $n } elementos.
problems-call = Lo dice su create_block_mask.
problems-sizes = Usar los tamaños del código
    .tip = Pone las longitudes, cabezas y lote del documento en aquellos para los que está hecho el código.

## Varias GPU
gpus-predicted = Tiempo previsto de una capa, hacia delante y hacia atrás
gpus-imbalance = desequilibrio
gpus-received = claves recibidas
gpus-exposed = sin ocultar
gpus-plan = Este plan
    .tip = lo que planifica Maskloom
gpus-imbalance-tip = El trabajo de la GPU más lenta dividido entre la media de todas.
gpus-all-gather = Cada clave se envía a todas las GPU.
gpus-needed = A una GPU solo se envían los bloques de claves que sus consultas enumeran.
gpus-heads = Consultas, claves, valores y salidas se intercambian por cabezas, en unidades de un all-gather de las claves.
gpus-exposed-tip = Tiempo de los intercambios que ningún cálculo oculta.
gpus-others = Qué hacen otras formas con estas máscaras
gpus-read-in = leído en { $release }
gpus-each = Atención de cada GPU
gpus-tokens = { $n } tokens
gpus-receives = recibe { $bytes }
gpus-sent = Claves y valores enviados en una pasada hacia delante, { $unit } de fila a columna
gpus-bytes = Bytes entre GPU
gpus-errors = No hay plan para un documento con errores.
gpus-planning = planificando
gpus-below = abajo: { $before }
gpus-by-rank = La máscara por rank
gpus-in-order = En el orden de los ranks
gpus-figures = Cifras de
gpus-layers = Capas de esta máscara
gpus-leave-out = Quitar { $name }
gpus-add = Añadir una clase de capa
gpus-count = GPU
gpus-bandwidth = GB/s recibidos
    .tip = Lo que una GPU recibe de las demás: unos 214 con NVLink dentro de un host, 45 por una red de 400 Gbit/s.
gpus-this-mask = esta máscara

## Qué hace el worker
doing-hello = iniciando el worker
doing-run = en marcha
doing-map = calculando el mapa de atención
doing-compile = compilando el kernel
doing-doctor = examinando la instalación
doing-detached = preguntando por los trabajos
doing-files = leyendo archivos allí
doing-desk = midiendo donde está la captura

## El estado de la imagen
frame-no-picture = Todavía no hay imagen: hay errores en { $layers }.
frame-before = estado anterior al error en { $layers }

## Tiempo que falta
left-almost = casi listo
left-seconds = faltan unos { $n } s
left-minutes = faltan unos { $n } min
left-hours = faltan unas { $n } h
left-step = { $step }, { $left }

## Código sin kernel
code-errors = el documento tiene errores: véase Problemas
