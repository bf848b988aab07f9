# La página Carrera: barras, retropropagación, longitudes, el roofline, quién acepta un diseño, ajustes, carreras anteriores.

## El coste en una cifra
card-costs-faster = { $time }  ·  { $ratio }x más rápido
card-costs-than = que { $base }; { $rest }
card-costs-forward = { $backend }: { $words }, pasada hacia delante
card-costs-less = { $ratio }x menos que todas las celdas; sin medir todavía
card-costs-same = la misma aritmética que sin máscara; sin medir todavía
card-costs-nothing = no se conserva ninguna celda: no se calcula nada
card-costs-arithmetic = Aritmética de los bloques calculados. Una carrera muestra el tiempo.
card-costs-arithmetic-is = Aritmética de los bloques calculados: { $flop }.
card-costs-about = { $card }: unos { $time }, { $basis }
card-costs-estimates = Flex, pasada hacia delante. De los diseños registrados, la mitad se estima con un error de hasta el 15% y cuatro de cada cinco hasta 1.6x; los score mods que leen mucho de la memoria pueden tardar varias veces más. Una carrera muestra el tiempo.

## La carrera
race-recorded-cards = Registrado en tarjetas conocidas
race-who = Quién corre: { $names }
race-inputs = Entradas
race-copy-picture = Imagen de la copia más pequeña
race-copy-shares = conserva { $kept } de sus celdas; el diseño entero conserva { $whole }
race-copy-shares-then = conservaba { $kept } de sus celdas; el diseño entero conservaba { $whole } cuando se hizo la carrera
race-whole-takes = El diseño entero tarda unos { $time } (estimación: { $n ->
    [one] 1 hilo
   *[other] { $n } hilos
} de 20 GFLOP/s).
race-starts = La carrera empieza…
race-other-document = Hay en marcha una carrera de otro documento.
race-backends = Hacer competir a los backends
race-names-on = { $names } en { $device }
race-smaller-races = En la CPU corre una copia más pequeña de la misma máscara, en segundos.
race-checked-first = Cada backend se comprueba primero con { $reference } y después se mide vuelta a vuelta.
race-cannot-run = no puede ejecutarse: { $why }
race-forward-only = { $from }, solo hacia delante
race-stale = obsoleto
    .tip = El documento ha cambiado desde entonces: estas cifras son de la máscara anterior.
race-again = Ejecutar de nuevo
race-raced-copy = Ha corrido: { $copy } de { $whole }, la misma máscara con ventanas y longitudes menores. En una GPU, o con Ejecutarlo entero, corre el diseño entero.
race-smaller-copy = copia más pequeña
race-copy-not = { $copy }, no { $whole }
race-recorded = registrado
race-of-cells = { $share } de las celdas, { $flop }
race-stopped = detenida antes de acabar
race-environment = entorno
race-before-timing = antes de medir: { $card }
race-after-timing = después de medir: { $card }

## Una barra
race-samples = Mediana y mitad del rango intercuartílico de { $n } muestras.
race-samples-calls = Mediana y mitad del rango intercuartílico de { $n } muestras. La parte de la GPU, según { $clock }. Una llamada entera tarda { $call }.
race-untimed = comprobado, sin medir
race-launch-bound = Un programa que hace estas llamadas espera a su host. Las barras y proporciones son de tiempos en la GPU.
race-holds = ocupa { $bytes }
race-memory = Memoria: { $how }.
race-why = Por qué: { $why }.
race-limits-tip = { $what }. Un clic muestra qué lo limita y qué sería en otra tarjeta.
race-limits = Qué limita a { $name }
race-wrong = resultado incorrecto
    .tip = No se mide.
race-rate = { $rate } de celdas conservadas
race-baseline = línea base  { $rate }
race-baseline-tip = La línea base de las demás filas: { $ran }.
race-no-difference = sin diferencia demostrada
race-no-difference-of = sin diferencia demostrada ({ $ratio }x { $base })
race-against = { $ran } frente a { $base }: { $words }.
race-refused = rechazado
race-failed = fallido
race-refused-by = rechazado: { $names }
race-failed-by = fallido: { $names }
race-nan-rows = NaN en { $n } de { $all } filas
race-error-ok = error { $error } bien
race-wrong-nan = { $n } NaN incorrectos
race-error-wrong = error { $error }: incorrecto
race-rows-of = { $n } de { $all } filas
race-check-fault = Incorrecto: { $fault }.
race-check-error = Error máximo frente a { $reference }: { $error }; rms relativo { $rms }{ $more }.
race-check-limit = Cada fila tiene su propio límite; el mayor es { $limit }: { $from }.
race-check-rows = Comparado: { $rows }.

## Retropropagación
backward-title = Retropropagación
backward-column = hacia atrás
backward-both = ambas
backward-memory = memoria
backward-worst = peor gradiente
backward-refused = { $backend }: retropropagación rechazada: { $why }
backward-failed = { $backend }: retropropagación fallida: { $why }
backward-order = Con un orden de suma fijo; en cualquier orden la retropropagación tarda { $time } ({ $more }%).
backward-held = Hacia delante y hacia atrás juntas, { $how }.
backward-ok = { $name } { $error } bien
backward-allowed = se permite { $limit }
backward-wrong = incorrecto: { $words }

## Por longitudes
lengths-title = Por longitudes
lengths-question = ¿A partir de qué longitud ahorra tiempo la máscara?
lengths-before = del diseño antes de su último cambio
lengths-refused = { $tokens } tokens: { $why }
lengths-progress = { $over } de { $all } longitudes
lengths-progress-left = { $over } de { $all } longitudes, esta { $left }
lengths-tokens = tokens
lengths-time = tiempo de una pasada
lengths-name = Tiempo según la longitud
lengths-kept = conserva
lengths-fastest = el más rápido
lengths-against = frente a
lengths-nothing = no se midió nada

## El roofline
roof-words = { $device } según su hoja de datos: { $flop } en 16 bits, { $bytes } desde la memoria. La aritmética y los bytes son lo mínimo que { $backend } hace según sus propias cuentas; el tiempo está medido.
roof-unknown = Aquí no se conoce la hoja de datos de { $device } (o los tensores no son de 16 bits), así que no se puede decir qué lo limita. Calcula { $flop } contando todas las celdas que toca; la cifra de la fila cuenta solo las conservadas.
roof-others = En otra tarjeta
roof-others-words = Estimaciones de flex, hacia delante, a partir de ejecuciones registradas y hojas de datos; sin medir.
roof-title = Roofline: { $from }
roof-dot = { $backend }: { $flop } de celdas calculadas
roof-dot-share = { $backend }: { $flop } de celdas calculadas, { $share } del techo
roof-about = Aritmética de las celdas calculadas entre los bytes que se mueven, ambas lo mínimo según el propio kernel. El techo es la hoja de datos de la tarjeta. Un clic en el nombre de una fila de arriba dice qué la limita.
roof-none = No se conoce la hoja de datos de este dispositivo, así que no hay techo.
roof-y = FLOP/s de celdas calculadas
roof-x = FLOP por byte
roof-name = Roofline
roof-name-of = Roofline de { $backend }
roof-memory = memoria
roof-arithmetic = aritmética

## Quién lo acepta
verdicts-title = Quién lo acepta, hacia delante y hacia atrás
verdicts-on = en
verdicts-others = los demás, a fecha de { $day }
verdicts-cpu = la CPU
verdicts-who = quién
verdicts-forward = hacia delante
verdicts-backward = hacia atrás
verdicts-how = cómo, o por qué no
verdicts-takes = lo acepta
verdicts-dense = denso
verdicts-refuses = lo rechaza
verdicts-back = hacia atrás: { $words }

## Quién corre, con qué entradas
racers-rounds = vueltas de medición
racers-only = solo corrección
racers-fixed = gradientes deterministas
    .tip = Los gradientes tienen los mismos bits en cada ejecución: las sumas siguen un orden fijo. La carrera lo comprueba con una segunda ejecución y muestra el coste del orden fijo.
racers-own = Comprobar los gradientes de mi PyTorch
    .tip = Ejecuta solo su propio PyTorch, hacia delante y hacia atrás, en este diseño con su dtype y sus strides, y compara cada gradiente con float64. Enumera los gradientes incorrectos, con el problema conocido de PyTorch que corresponda. En la CPU un diseño grande se comprueba como copia más pequeña; `maskloom conform --grad` lo comprueba entero.
racers-backward = también la retropropagación
    .tip = Gradientes de q, k, v y de los tensores capturados, comparados con float64 y medidos.
racer-eager = De Maskloom: escribe las puntuaciones en la memoria y las vuelve a leer.
racer-sdpa = El kernel fusionado de cuDNN en GPU si admite la máscara; si no, el de Maskloom con máscara densa; nunca disperso por bloques.
racer-flash = De Maskloom, con el algoritmo de FlashAttention-2: completa o causal; rechaza otras máscaras.
racer-flex = De Maskloom: disperso por bloques, con los mods compilados dentro.
racer-torch-eager = Atención sin fusionar en su propio PyTorch.
racer-torch-sdpa = scaled_dot_product_attention de su propio PyTorch.
racer-torch-flex = flex_attention de su propio PyTorch, compilado.
racer-torch-flex-flash = flex_attention de su propio PyTorch con el backend flash.
racer-cudnn-flex = cudnn.flex_attention de su propio Python: máscaras como rangos de claves.
inputs-random = aleatorias
    .tip = Valores normales estándar a partir de una semilla.
inputs-file = archivo safetensors
    .tip = q, k y v registrados.
inputs-where = en la máquina del worker
inputs-path = Archivo de entrada
inputs-tensor = Tensor de { $letter }
inputs-layout = en el archivo
inputs-seed = semilla

## Carreras anteriores
past-title = Carreras anteriores ({ $n })
past-of = de
past-fastest = la más rápida
past-when = cuándo, dónde
past-all = todas
past-as = Carrera { $id } como { $letter }
past-compares = La compara.
past-forward = { $when }, { $where }, hacia delante
past-both = { $when }, { $where }, hacia delante y hacia atrás
past-choose = Elija A y B para comparar dos carreras.
past-over = A frente a B
past-keeps = conserva
past-work = trabajo
past-places = A se ejecutó en { $a }, B en { $b }.
