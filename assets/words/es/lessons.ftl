# Lecciones del espacio Aprender: un título, de qué trata y pasos, algunos con un botón.

lesson-two-minutes = Maskloom en dos minutos
    .about = De una máscara a una carrera y a una exportación.
lesson-two-minutes-1 = Una fila es una consulta, una columna es una clave. Un píxel de color significa que esa consulta puede atender a esa clave. Abra una ventana deslizante: cada token atiende a los últimos 1024 tokens.
    .button = Abrir la ventana deslizante
lesson-two-minutes-2 = Las tarjetas de arriba muestran las celdas conservadas, el coste, la pérdida y los errores de la máscara. Cada tarjeta lleva a su espacio de trabajo. Mueva el control `window` en el espacio Diseño y observe la primera tarjeta.
    .button = Ir al control
lesson-two-minutes-3 = Los bloques azules se conservan enteros, los naranjas en parte, los oscuros nada. Los oscuros nunca se calculan: de ahí sale el tiempo ahorrado.
    .button = Dibujar los bloques
lesson-two-minutes-4 = Haga competir a los backends: cada resultado se comprueba con una referencia en float64 antes de que cuente su tiempo. Sin GPU, una copia más pequeña de la misma máscara corre en la CPU.
    .button = Carrera
lesson-two-minutes-5 = Exportar pregunta primero qué programa usa. Después muestra cada archivo y cada línea cambiada antes de escribir.
    .button = Ir a Exportar

lesson-block = Qué es un bloque
    .about = Los kernels procesan las máscaras por teselas (tiles). Su tamaño decide qué celdas se omiten.
lesson-block-1 = Un kernel no parte de celdas sueltas. Divide la máscara en bloques de BLOCK_SIZE de tres clases: llenos, parciales, vacíos.
    .button = Abrir la ventana deslizante
lesson-block-2 = Con bloques de 1024 casi todos los bloques de la ventana son parciales: muchas celdas se calculan y se descartan. Observe cómo la barra de la primera tarjeta se vuelve naranja.
    .button = Bloques de 1024
lesson-block-3 = Con bloques de 128, lo predeterminado en PyTorch, el borde es fino. Un bloque lleno no necesita máscara alguna. Solo los parciales evalúan mask_mod en cada celda.
    .button = Bloques de 128
lesson-block-4 = Los bloques de 16 siguen el borde de cerca. Pero un tensor core trabaja por teselas: por debajo de 64 el hardware queda ocioso, así que el bloque más pequeño no es el más rápido.
    .button = Bloques de 16

lesson-partial = Por qué cuestan los bloques parciales
    .about = Un bloque se calcula entero si se conserva una sola de sus celdas.
lesson-partial-1 = Una máscara causal conserva la mitad de las celdas. Solo los bloques de la diagonal son parciales: cada uno se calcula entero y la mitad de su trabajo se descarta.
    .button = Abrir la máscara causal
lesson-partial-2 = Una ventana dilatada conserva una de cada dos claves, o una de cada cuatro. Esas pocas celdas están repartidas por todos los bloques de la banda: casi todos son parciales, así que se omiten pocos.
    .button = Abrir la ventana dilatada
lesson-partial-3 = Compare las dos cifras de la primera tarjeta: la parte conservada de las celdas y las partes de bloques llenos y parciales. Los bloques determinan el tiempo del kernel. En un bloque parcial, las celdas claras se conservan y las tenues se calculan y se descartan.
    .button = Dibujar los bloques
lesson-partial-4 = Una máscara hecha de bloques enteros no tiene bloques parciales: calcula exactamente las celdas conservadas.
    .button = Abrir los bloques pintados

lesson-speed-up = De la máscara a la aceleración
    .about = Los bloques omitidos ahorran tiempo solo si el kernel los omite.
lesson-speed-up-1 = Esta ventana conserva el 12% de las celdas. `sdpa` con una máscara calcula todas las celdas y luego descarta el 88%; `flex` nunca carga los bloques vacíos.
    .button = Abrir la ventana deslizante
lesson-speed-up-2 = La carrera pone primero al más rápido, cada uno con su error frente a float64 y comparado con la máscara densa. Si este diseño se registró en una GPU, sus tiempos registrados se ven antes de ejecutar nada.
    .button = Ir a Carrera
lesson-speed-up-3 = Una secuencia corta tiene pocos bloques que omitir. Haga la carrera del diseño con varias longitudes: las líneas se separan en la longitud en que la máscara empieza a ahorrar tiempo.
    .button = Carrera por longitudes
lesson-speed-up-4 = El roofline compara la aritmética de las celdas conservadas con los límites de la tarjeta. Muy por debajo del techo, la máscara no es la causa del tiempo.
    .button = Ir a Carrera

lesson-score-mods = Score mods, dibujados
    .about = Una máscara conserva o descarta una puntuación. Un score mod cambia su valor.
lesson-score-mods-1 = ALiBi suma a cada puntuación un sesgo que disminuye con la distancia, con otra pendiente en cada cabeza.
    .button = Abrir ALiBi
lesson-score-mods-2 = La imagen muestra el resultado del score mod para una puntuación de cero. La máscara descarta las celdas rayadas: no hay puntuación que cambiar.
    .button = Dibujar el sesgo
lesson-score-mods-3 = La tira bajo la imagen muestra todas las cabezas con una misma escala de color: el sesgo de las primeras cae deprisa, el de las últimas apenas.
    .button = Ir a la cabeza 7

## El marco de las lecciones
learn-title = Aprender haciendo
learn-words = Cada lección maneja esta ventana. Deshacer recupera su documento.
learn-start = Empezar
learn-start-name = Empezar: { $title }
learn-all = Todas las lecciones
lesson-step = paso { $n } de { $all }
learn-done = Listo
learn-next = Siguiente
learn-back = Atrás
learn-is-done = hecho
learn-is-open = está abierto
learn-return = Volver a la lección

## El recorrido
tour-preset = Una fila es una consulta, una columna es una clave. Un píxel de color permite que esa consulta atienda a esa clave. Esto es una ventana deslizante: cada token ve los últimos 1024.
tour-stroke = El pincel conserva más celdas, aquí una región lejana. Un trazo es una capa del documento; Deshacer lo retira.
tour-blocks = Los kernels trabajan por bloques. Un área seleccionada dice sus bloques llenos, parciales y omitidos, su desperdicio y los bytes que leen.
tour-slider = La ventana crece y se reduce. Las tarjetas de arriba la siguen: las celdas conservadas y el tiempo, que es una estimación hasta que una carrera lo mide.
tour-race = Carrera compara los kernels, cada uno comprobado antes con float64. Antes de ejecutar nada dice qué bibliotecas aceptan la máscara.
tour-export = Exportar escribe la máscara para un entrenador, un modelo o un programa, y muestra cada archivo y cada línea cambiada antes de escribir.
tour-end = Eso es todo. Sus documentos están como estaban. La Galería tiene máscaras listas, Aprender tiene lecciones, F1 muestra todas las teclas.
tour-step = { $n } de { $all }
tour-go-on = Continuar
tour-pause = Pausa
tour-stop = Detener
    .tip = Termina el recorrido, igual que Escape o un clic en otro lugar.
tour-stop-name = Detener el recorrido

## Las teselas de la máscara abierta
tiles-title = FlashAttention, tesela a tesela
    .about = Las teselas de la máscara abierta, con los valores que un kernel va actualizando.
tiles-words = Un bloque de consultas permanece en el chip. El kernel visita las teselas kv que conserva su fila, omite las vacías y actualiza tres valores: la mayor puntuación m, la suma l y la salida.
tiles-none = Los bloques todavía no se han contado, o el documento tiene errores.
tiles-query = consulta
tiles-query-name = Consulta de la traza
tiles-row = en la fila { $row } de bloques de consultas; haga clic en el lienzo para elegir otra
tiles-play = Reproducir
tiles-pause = Pausa
tiles-step = Paso
tiles-stepped = Teselas recorridas
tiles-not-yet = Todavía no se ha visitado ninguna tesela.
tiles-full = tesela kv { $tile }, llena: no se evalúa ninguna máscara
tiles-partial = tesela kv { $tile }, parcial: mask_mod decide cada celda
tiles-visited = { $step } de { $kept } teselas visitadas; { $skipped } de { $all } están vacías y se omiten
tiles-bytes = { $name }: { $bytes } bytes
tiles-bytes-words = K y V de cada tesela, para un bloque de consultas de una cabeza. Eager además escribe sus puntuaciones en float32, las lee, y escribe y lee las probabilidades.
tiles-heads = { $heads } cabezas hacen lo mismo.
tiles-too-many = Esta fila tiene demasiadas claves para mostrar sus números; un documento más corto los muestra.
tiles-before = antes
tiles-after = tras esta tesela
tiles-m = La mayor puntuación hasta ahora.
tiles-l = La suma de exp(score - m); se reduce cuando m sube.
tiles-o = El primer componente actual de la salida.
tiles-increased = m ha subido: l y o se multiplican primero por exp({ $before } - { $now }).
tiles-kept = { $kept } claves de esta tesela se conservan para la consulta { $query }.
tiles-scores = Las puntuaciones son de { $source }, números de una distribución normal; mask_mod y score_mod son los del documento.
