# El inspector, los parámetros de las capas, los ejes, la curva, la comparación, las cabezas.

## Parámetros
args-file = Archivo para { $name }
args-about = Sobre este patrón
args-file-hint = file.safetensors[:name] o .npy
args-capture = De la captura
    .tip = Un tensor de la captura abierta con la forma de este argumento o del documento.
args-fit = { $count } de sus tensores encajan, { $others } tienen otra forma
args-capture-name = { $name } de la captura
args-default = por defecto
args-follow = seguir { $name }
args-resets = Devuelve el valor por defecto.
args-range = {"["}{ $min } a { $max }]
args-reset = Restablecer { $name }
args-needed = necesario
args-follows = sigue a { $name }
args-choose = elija un patrón
args-tensor = un tensor { $shape } de { $dtype }

## Ejes
axes-query = Eje de consultas
axes-key = Eje de claves
axes-cross-tip = Claves y valores tienen un eje aparte.
axes-cross = cross-attention
axes-text = Añade una serie de tokens.
axes-image = Añade tokens de alto x ancho.
axes-video = Añade tokens de fotogramas x alto x ancho.
axes-add-text = + texto
axes-add-image = + imagen
axes-add-video = + vídeo
axes-add = { $axis }: { $text }
axes-part = { $axis }: nombre de la parte { $n }
axes-part-tip = El nombre de la parte, como lo muestran las reglas.
axes-extent = { $axis }: extensión { $n } de { $name }
axes-up = subir
axes-up-tip = La mueve antes de la parte de arriba.
axes-up-name = { $axis }: subir { $name }
axes-remove-tip = Quita esta parte.
axes-remove-name = { $axis }: quitar { $name }

## Identificadores de documento
make-menu = Crearlo
make-words = { $n } números, el documento de cada token
make-mean = tokens por documento
make-mean-name = Tokens por documento
make-seed = semilla
make-seed-name = Semilla de las longitudes
make-packed = Documentos empaquetados de esta media
    .tip = Longitudes aleatorias, como en lotes empaquetados; el último documento se corta.
make-equal = Documentos iguales
    .tip = Documentos de tantos tokens; el último se corta.
make-count = Un número por token
    .tip = 0, 1, 2, etcétera.
make-fills = Lo llena con identificadores de documento.
make-name = Crear { $name }

## La máscara comparada
differ-counting = contando, { $share }
differ-same = conserva las mismas celdas que { $name }
differ-cells = { $n } celdas difieren ({ $share })
differ-planes = de { $batch } entradas de lote y { $heads } cabezas
differ-more = y { $n } más
differ-queries = consultas
differ-keys = claves
differ-now = solo ahora
differ-then = solo entonces
differ-tip = ahora: este diseño; entonces: { $name }
differ-regions = { $n } regiones más
differ-place = q { $q }, kv { $kv }
differ-batch = lote { $b }, { $place }
differ-head = cabeza { $h }, { $place }
differ-shows = Muestra la celda.

## La curva
curve-distance = distancia
curve-bias = sesgo
curve-name = Curva de distancia
curve-at = distancia { $x }, sesgo { $y }
curve-drag = Arrastre para dibujar o para mover un punto.
curve-drag-tip = Arrastre para dibujar o para mover un punto; un doble clic en un punto lo quita.
curve-points = { $n } puntos
curve-distance-of = Distancia del punto { $n }
curve-bias-of = Sesgo del punto { $n }
curve-remove = Quitar
curve-remove-name = Quitar el punto { $n }
curve-add = Añadir un punto

## El contenido de una capa
detail-line = línea { $line }, columna { $column }
detail-rectangle = Rectángulo, en tokens
detail-band = Banda: distancias q_idx - kv_idx conservadas
detail-bias = Sesgo según la distancia q_idx - kv_idx
detail-learns-not = no puede aprender nada: { $why }
detail-learns-none = no puede aprender nada: no lee ningún tensor float
detail-learns = puede aprender: { $tensors }
detail-learns-tip = Los tensores float capturados reciben gradiente al entrenar el módulo exportado, y cuando una carrera calcula gradientes.
detail-rows = filas desde
detail-columns = columnas desde
detail-rows-first = Primera de las filas
detail-rows-end = Final de las filas
detail-columns-first = Primera de las columnas
detail-columns-end = Final de las columnas
detail-up-to = hasta
detail-from = desde
detail-to = hasta
detail-distance-from = Distancia desde
detail-distance-to = Distancia hasta
detail-painted = Celdas pintadas
detail-cell = tokens por celda
detail-cell-rows = Filas de una celda
detail-cell-columns = Columnas de una celda
detail-cell-tip = Elija el tamaño de las celdas antes del primer trazo.
detail-strokes = { $strokes }, { $rectangles }
detail-n-strokes = { $n ->
    [one] 1 trazo
   *[other] { $n } trazos
}
detail-n-rectangles = { $n ->
    [one] 1 rectángulo
   *[other] { $shown } rectángulos
}
detail-brush = El pincel (B) conserva celdas, el borrador (E) las quita.
detail-found = funciones halladas
detail-found-name = Funciones halladas
detail-entry = entrada
detail-entry-name = Entrada
detail-entry-tip = La función que se usa; vacío: la única o la última de la clase adecuada.
detail-tensors = Tensores capturados ({ $n })
detail-tensors-file = Archivo de tensores capturados
detail-linked = Archivo enlazado
detail-linked-path = Ruta enlazada
detail-linked-words = Se vuelve a leer tras cada cambio (F5: de inmediato).

## La forma del documento
problem-name = Nombre
problem-about-hint = La atención que se modela y su fuente.
problem-about = Acerca de
problem-batch = lote
problem-heads = cabezas
problem-scale = escala
problem-scale-is = escala { $scale }
problem-fast = fast math
problem-own-dim = head_dim_v propio
problem-as-dim = como head_dim
problem-cpu-only = Solo en la CPU.
problem-sums = Entrada y salida; las sumas son float32.
problem-layout = disposición
problem-square = BLOCK_SIZE, cuadrado
    .tip = Bloques cuadrados; el valor por defecto de PyTorch es 128x128.
problem-tanh = tanh aproximada
    .tip = Los score mods en la GPU usan su tanh aproximada: una instrucción en vez de dos, con un error relativo de hasta 2^-11. Un soft cap de 50 mueve una puntuación de 5 en 0.0025 como máximo.

## Más líneas de las tarjetas
kept-against = frente a { $name }: conserva { $kept }, calcula { $computed }
kept-then-now = { $then } entonces, { $now } ahora
kept-cells = { $n } celdas conservadas
kept-blocks = { $full } bloques llenos de { $size }: se calculan sin mask_mod; { $partial } parciales: mask_mod decide cada celda; { $empty } vacíos: se omiten
kept-computed = se calcula { $computed } de todas las celdas, { $vain } de ellas en vano
kept-sparsity = dispersión según la cuenta de PyTorch: { $words }
kept-row = bloques por fila: de { $min } a { $max }, media { $mean }
kept-empty = { $rows } filas no conservan ninguna clave: su salida es 0 y su lse -inf
kept-finding = buscando los bloques
kept-partial = contando las celdas de los bloques parciales
kept-counted = { $n }% contado
kept-one-by-one = El análisis por intervalos no decide esta máscara, así que sus celdas se evalúan una a una. La imagen no espera.

## Herramientas y cabezas
tools-width = { $words } [ y ], o Alt y la rueda, cambian el ancho.
tools-shown-batch = Entrada de lote mostrada
tools-shown-head = Cabeza mostrada
tools-work-heads = Cabezas en las que trabajar
heads-all = todas las cabezas
heads-shown = cabeza { $h }, la que se muestra
heads-first-half = la primera mitad, 0-{ $last }
heads-second-half = la segunda mitad, { $first }-{ $last }
heads-selected = las seleccionadas, { $heads }
heads-or = o
heads-such = por ejemplo 0-3, 7; o Ctrl+clic en la tira de cabezas
layer-heads-of = Cabezas de { $name }
layer-name-of = Nombre de la capa { $id }
tabs-close = Cerrar este documento
tabs-new = Documento nuevo en una pestaña
tabs-no-file = todavía sin archivo

## Qué hace un trazo
paint-one-head = Solo la cabeza { $heads }: { $words }
paint-some-heads = Solo las cabezas { $heads }: { $words }
paint-first = El primer trazo parte de una máscara vacía: solo se conservan las celdas pintadas.
paint-new = Conserva celdas, en una capa pintada nueva.
paint-in = Conserva celdas, en { $name }.
paint-restores = Recupera celdas que { $name } quitó, y conserva celdas.
paint-removes-new = Quita celdas de { $name }, y con una capa encima, de las demás capas.
paint-removes = Quita celdas, en { $name }.
paint-removes-above = Quita celdas, en una capa nueva encima de las demás.

## Una pregunta de ssh
question-title = Maskloom: una pregunta de ssh
question-answer = Respuesta
question-send = Responder a ssh
