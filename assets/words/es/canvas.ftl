# El lienzo: controles, lectura, leyenda, parches, números.
canvas-name = Lienzo de la máscara
canvas-no-score = Sin score mod: no se suma nada a las puntuaciones.
canvas-not-compared = La máscara comparada tiene otras longitudes.
canvas-kept-now = { $words }, ahora conserva { $share }
canvas-incomplete = La imagen está incompleta: { $why }
canvas-overview = Vista general de la máscara
canvas-computing = calculando…
canvas-head = cabeza { $n }
canvas-batch = lote { $n }
canvas-heads-tip = Un clic muestra esta cabeza. Ctrl+clic la selecciona, Mayús+clic selecciona todas hasta ella. La pintura y las capas nuevas se aplican entonces a las cabezas seleccionadas.

## Controles
canvas-fit = Ajustar
    .tip = Muestra la máscara entera (Inicio).
canvas-zoom-in = Acercar
    .tip = Acerca (más, o la rueda).
canvas-zoom-out = Alejar
    .tip = Aleja (menos, o la rueda).
canvas-size = El tamaño con que se dibuja un token.
canvas-cell-size = celda { $n } px
canvas-pixel-size = 1 px = { $n } tokens
canvas-go = Ir a
    .tip = Va a una celda por su q_idx y su kv_idx (Ctrl+L).
canvas-go-name = Ir a la celda
canvas-fit-whole = Ajustar la máscara entera
canvas-go-cell = Ir a una celda…
canvas-steps = Mostrar sus pasos
    .tip = Los mods evaluados en esta celda, en la página Celda.
canvas-near = Acercarse a ella
canvas-block = Ampliar su bloque
canvas-select = Seleccionar { $name }, que decide esta celda
canvas-copy = Copiar q_idx, kv_idx

## La celda bajo el puntero
cell-block = bloque ({ $row }, { $col }) { $kind }
cell-block-unknown = desconocido: el análisis falló
cell-block-empty = vacío
cell-block-beyond = parcial (más allá del final), se conserva todo
cell-block-full = lleno
cell-block-partial = parcial, conserva { $share }
cell-kept = conservada
cell-masked = enmascarada
cell-kept-by = conservada por { $layer }
cell-masked-by = enmascarada por { $layer }
cell-as-in = { $words }, como en { $name }
cell-kept-in = { $words }; conservada en { $name }
cell-masked-in = { $words }; enmascarada en { $name }
cell-number = { $quantity } { $value } de { $source }, { $words }
cell-bias = sesgo { $bias }, { $words }
cell-bias-is = sesgo { $bias }
cell-dropped = descartada

## Qué significan los colores
legend-of = de { $before }
legend-numbers = { $title }: { $ends }
legend-masked = enmascarado
legend-full = lleno
legend-partial = parcial
legend-empty = vacío
legend-both = en ambas
legend-only = solo en { $name }
legend-now = solo ahora
legend-there = solo allí
legend-rows = la fila conserva de todo a nada
legend-share = parte conservada
legend-dropped = descartado
legend-kept = conservado
legend-kept-partial = conservado, en un bloque parcial
legend-kept-full = conservado, en un bloque lleno
legend-in-empty = en un bloque vacío
legend-bias = sesgo de { $lo } a { $hi }
legend-bias-heads = sesgo de { $lo } a { $hi }, todas las cabezas
legend-means = { $bias }, medias de unas celdas por píxel
legend-stretched = { $side } dibujado { $times }x más grande
legend-sampled = ≈ algunas proporciones son muestras

## Números
heat-of = { $quantity } de { $source }
heat-file = { $quantity }, { $file }
heat-empty = La matriz está vacía.
heat-name = Mapa de calor: { $title }
heat-ends = { $lo } a { $hi }
heat-ends-more = { $lo } a { $hi } y más
heat-log = Logarítmico
heat-hint = arrastrar mueve, la rueda amplía, un doble clic lo muestra todo
heat-masked = { $words } (enmascarada)

## Formas en curso
tool-corners = { $n } de al menos 3 esquinas; Escape termina, Retroceso quita la última esquina
tool-closes = { $n } esquinas; Intro, un doble clic o un clic en la primera la cierra, Retroceso quita la última
tool-around = alrededor de un área; Escape termina
tool-line = de { $from } a { $to }
tool-rectangle = { $place }: { $rows } × { $cols } tokens

## Parches
patches-query = Consulta { $q } = { $place }
patches-head = { $query }, cabeza { $h }
patches-keeps = { $query } conserva { $n } de { $all } claves
patches-no-grid = Estas claves no tienen cuadrícula: el documento no dice qué tokens son parches de una imagen.
patches-grid-tip = El eje pasa a ser { $axis }. Deshacer lo revierte.
patches-grid-hint = filas x columnas
patches-grid-name = Cuadrícula de las claves
patches-capture = Tomar la cuadrícula de la captura
patches-no-keys = no hay claves
patches-write = escriba filas x columnas, o fotogramas x filas x columnas
patches-differ = { $text } son { $n } parches, `{ $name }` tiene { $len } tokens
patches-frames-of = Fotogramas de { $name }
patches-frames-tip = Las claves conservadas de cada fotograma, junto al que más tiene; un clic lo muestra.
patches-frame-of = fotograma de { $name }
patches-query-frame = Fotograma de la consulta
    .tip = Muestra el fotograma de la consulta.
patches-queries = Consultas: { $segment }
patches-kept-frame = { $segment }: { $n } de { $all } conservadas en este fotograma, { $whole } en total
patches-kept = { $segment }: { $n } de { $all } conservadas
patches-queries-of = Consultas de { $name }
patches-keys-in = Claves en { $name }
