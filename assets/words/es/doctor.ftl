# Las explicaciones del doctor: una por código, la causa y (.fix) qué hacer. Programas, opciones, códigos y versiones quedan como son.

explain-means = significa:
explain-do = haga:
explain-as-of = según:
explain-here = aquí:
explain-lost = { $sum } = { $factor }: se perdió un eje de esa longitud, como el de las cabezas
explain-uneven = { $sum } = { $factor }, que no es entero: las longitudes difieren
explain-unknown = Este mensaje es desconocido, y ningún mensaje conocido se le parece.
explain-unknown-do = ejecute `maskloom doctor`, que revisa el controlador, NVRTC, Python y la pantalla
explain-own = Es un mensaje del propio Maskloom: el texto tras el código dice qué está mal.
explain-own-do = lo que dice la línea `help:` debajo del mensaje
explain-similar = Este mensaje es desconocido. Los mensajes conocidos más parecidos:

doctor-diffusers-flex-missing = diffusers necesita torch 2.5 o posterior con CUDA para su backend flex.
    .fix = instale un wheel de CUDA más nuevo: pip install -U torch --index-url https://download.pytorch.org/whl/cu128
doctor-flex-compile = La guía de un entrenador culpa al toolkit, pero Triton compila FlexAttention con su propio compilador y no necesita nvcc. Ni PyTorch ni diffusers contienen este mensaje.
    .fix = lea las líneas de arriba: nombran el paso que falló en Triton (falta Python.h o gcc, memoria compartida, un controlador antiguo); `maskloom doctor --explain` las conoce
doctor-flex-helper-missing = Este torch no tiene esa función auxiliar, aunque las guías de entrenadores la nombran: Triton compila FlexAttention en la primera llamada.
    .fix = quite esa función; envuelva la llamada: torch.compile(flex_attention). Actualice torch si la guía lo exige
doctor-cuda-tensors = El backend de atención elegido solo funciona en CUDA; esta ejecución es en Apple silicon, ROCm o la CPU.
    .fix = quite el ajuste del backend de atención (`attention_mechanism`) en esta ejecución
doctor-dtype = Los kernels fusionados necesitan entradas de 16 bits; estas son float32 o float8.
    .fix = ponga mixed_precision en bf16 o fp16 (en Maskloom: dtype bfloat16; float32 se ejecuta en la CPU)
doctor-backend-never-switches = La familia del modelo llama ella misma al SDPA de PyTorch y no al despachador de diffusers, así que no le llegan los valores que solo ajustan el despachador (flex, flash-attn): sd1x, sd2x, sdxl, sd3, flux, lumina2, omnigen y otras. Sí le llegan los valores que sustituyen SDPA (sageattention, sla, kohaku-fa) o lo restringen (cudnn y native-* desde SimpleTuner 4.10).
    .fix = `maskloom advise config.json` lo dice para su familia y valor; use una familia que despacha (wan, ltxvideo, qwen_image, flux2, hunyuanvideo, z_image, chroma), o el sidecar exportado, que enmascara todas
doctor-cuda-home = Un paquete compila código CUDA con el toolkit, y no hay ninguno instalado. Los kernels de Maskloom no necesitan nvcc ni CUDA_HOME.
    .fix = instale el toolkit de CUDA que corresponda a torch.version.cuda, o export CUDA_HOME=/usr/local/cuda
doctor-cuda-mismatch = torch se compiló para otra versión de CUDA que la del toolkit o el controlador instalados.
    .fix = compare torch.version.cuda con `nvcc --version` y `nvidia-smi`; instale torch para ese CUDA; compile las extensiones con pip install --no-build-isolation
doctor-nvcc-too-old = El compilador (nvcc, ptxas o NVRTC) es más antiguo que la tarjeta.
    .fix = instale un toolkit más nuevo y apunte CUDA_HOME a él, o compile para una arquitectura anterior (TORCH_CUDA_ARCH_LIST="8.0")
doctor-driver-too-old = El controlador es más antiguo que el toolkit que compiló el kernel.
    .fix = actualice el controlador, o use un compilador anterior: NVRTC 12.x con controladores 525 a 579 (pip install nvidia-cuda-nvrtc-cu12)
doctor-flash-attn-abi = El wheel de flash-attn se hizo para otro torch.
    .fix = pip uninstall flash-attn y después instale un wheel cuyas etiquetas de torch, CUDA, Python y ABI de C++ sean las suyas
doctor-flash-attn-ampere = La capacidad de cómputo de la tarjeta es menor que 8.0.
    .fix = use sdpa en esta tarjeta
doctor-flash-attn-3-hopper = FlashAttention-3 solo funciona en Hopper.
    .fix = use flash_attention_2 o sdpa en esta tarjeta
doctor-flash-attn-head-dim = FlashAttention-2 toma head dims múltiplos de 8, hasta 256.
    .fix = rellene head_dim hasta el siguiente múltiplo de 8, o use flex o sdpa (los kernels de Maskloom rellenan solos)
doctor-flash-attn-mask = FlashAttention-2 solo calcula atención completa o causal y rechaza otras máscaras.
    .fix = use flex para máscaras dispersas por bloques, o sdpa con una máscara densa
doctor-flash-attn-build-slow = La compilación tarda de 10 a 30 minutos y puede usar más de 8 GB de memoria; no está colgada.
    .fix = espere, o use un wheel ya compilado cuyas etiquetas de torch, CUDA, Python y ABI coincidan
doctor-flash-attn-build-memory = La compilación en paralelo de flash-attn necesita más de 8 GB de memoria.
    .fix = MAX_JOBS=2 pip install flash-attn --no-build-isolation, o use un wheel ya compilado
doctor-flash-attn-broke-environment = Falta flash-attn, o su instalación sustituyó torch.
    .fix = cree un entorno virtual nuevo sin flash-attn y siga con sdpa; compruebe uno con python -c "import flash_attn; print(flash_attn.__version__)"
doctor-flex-uncompiled = FlexAttention sin compilar materializa todas las puntuaciones: es lento y no avisa.
    .fix = flex_attention = torch.compile(flex_attention) una vez a nivel de módulo; con diffusers compile el modelo
doctor-recompile-limit = torch.compile vio demasiados mods o formas distintos y volvió al camino lento.
    .fix = cree el mask_mod una vez y reutilícelo, mantenga las formas fijas, o suba torch._dynamo.config.recompile_limit
doctor-block-mask-length = El BlockMask se creó para otras longitudes que las de q y k.
    .fix = créelo para las longitudes exactas: create_block_mask(mask_mod, B, H, q_len, kv_len)
doctor-triton-shared-memory = Las teselas del kernel de Triton no caben en la memoria compartida de la tarjeta.
    .fix = pase teselas menores: kernel_options={"{"}"BLOCK_M": 64, "BLOCK_N": 32, "num_stages": 1{"}"}
doctor-sdpa-no-kernel = El backend de SDPA que se forzó rechaza estas entradas (máscara, dtype, head_dim o disposición).
    .fix = permita otro (torch.nn.attention.sdpa_kernel con varios backends); las advertencias sobre el error dicen la razón
doctor-block-mask-memory = create_block_mask evalúa B x H x Q x KV booleanos a la vez si no se compila.
    .fix = create_block_mask(..., _compile=True), pase None en B y H si la máscara no los lee, o exporte las listas de bloques de Maskloom, que nunca crea la máscara densa
doctor-cuda-out-of-memory = La memoria de la tarjeta está llena. Las puntuaciones materializadas (eager, flex sin compilar) necesitan q_len x kv_len valores por cabeza.
    .fix = use flex o sdpa en vez de eager, acorte la secuencia o baje el lote; compruebe que flex_attention esté compilado
doctor-host-out-of-memory = La memoria del ordenador (no de la tarjeta) está llena: un tensor necesita más de lo que hay libre.
    .fix = el número de bytes del mensaje identifica el tensor: q_len x kv_len valores son una máscara densa o todas las puntuaciones; use un BlockMask y flex compilado, o secuencias más cortas
doctor-illegal-address = Un kernel leyó fuera de sus tensores. Con FlexAttention la causa habitual es un tensor capturado indexado más allá de su final, porque score_mod también se ejecuta en posiciones enmascaradas.
    .fix = haga los tensores capturados tan largos como la longitud rellenada o limite el índice; `maskloom check FILE.py` enumera las lecturas que pueden salirse
doctor-device-assert = Un índice se sale de rango en un kernel compilado. La causa habitual es un tensor capturado más corto que la secuencia.
    .fix = haga los tensores capturados tan largos como la longitud rellenada, o limite el índice
doctor-not-4d = FlexAttention toma q, k y v como [batch, heads, tokens, head_dim].
    .fix = añada la dimensión que falta con unsqueeze, o transpose(1, 2) si los tensores son [batch, tokens, heads, head_dim]
doctor-head-dim-differs = Las últimas dimensiones de query y key son distintas.
    .fix = proyecte ambas al mismo head_dim (solo v puede tener otro)
doctor-heads-differ = Hay menos cabezas de clave que de consulta.
    .fix = pase enable_gqa=True para consultas agrupadas
doctor-gqa-heads = Las consultas agrupadas necesitan un número entero de cabezas de consulta por cabeza kv.
    .fix = elija un número de cabezas kv que divida al de consulta
doctor-mods-callable = and_masks y or_masks toman funciones, no tensores ni BlockMasks.
    .fix = pase los propios mask_mods y cree el BlockMask con el resultado
doctor-zero-length = Una secuencia está vacía. (FlexAttention compilado para la CPU termina entonces el proceso con una excepción de coma flotante.)
    .fix = omita las secuencias vacías, o use ejes de al menos un token
doctor-diffusers-flash-missing = diffusers no encontró flash-attn, o uno anterior a 2.6.3.
    .fix = maskloom doctor --guide flash-attn; o vuelva a attention_mechanism "diffusers", que es SDPA
doctor-diffusers-flash-3-missing = diffusers no encontró FlashAttention-3. Se compila desde el código fuente y solo funciona en Hopper.
    .fix = use flash-attn-3-hub, que descarga uno compilado, o attention_mechanism "diffusers"
doctor-diffusers-backend-missing = diffusers no encontró el paquete del backend de atención pedido, o es demasiado antiguo.
    .fix = instale el paquete que nombra el mensaje (sageattention no tiene retropropagación: no entrene con él), o vuelva a attention_mechanism "diffusers"
doctor-transformers-flash-missing = attn_implementation pide flash-attn. Este entorno no lo tiene o no puede usarlo (el final del mensaje dice cuál).
    .fix = vuelva a attn_implementation="sdpa", que a menudo es igual de rápido; o maskloom doctor --guide flash-attn
doctor-transformers-unknown-setting = transformers no conoce este attn_implementation; no está registrado, o es un nombre de un entrenador o de diffusers.
    .fix = use eager, sdpa, flash_attention_2, flash_attention_3 o flex_attention; un adaptador exportado registra el suyo en use(model)
doctor-diffusers-unknown-backend = set_attention_backend de diffusers no conoce este nombre; los de entrenadores y transformers son distintos.
    .fix = flash-attn es "flash", cudnn es "_native_cudnn", sdpa es "native", flex es "flex"
doctor-diffusers-kernels-missing = Los backends -hub descargan sus kernels con el paquete `kernels`. Falta o es demasiado antiguo.
    .fix = pip install -U kernels
doctor-diffusers-capability = El backend elegido necesita una tarjeta más nueva que esta.
    .fix = use attention_mechanism "diffusers" o "flex" en esta tarjeta
doctor-diffusers-mask-refused = El backend denso elegido no admite máscaras, pero el modelo pasa una.
    .fix = use attention_mechanism "diffusers" (SDPA con máscara densa) o "flex"
doctor-diffusers-mask-shape = El backend no puede extender la forma de la máscara sobre lote, cabezas, consultas y claves.
    .fix = pásela como [batch, 1, 1 o q_len, kv_len]; un BlockMask no necesita cambios
doctor-block-mask-sliced = Cortar un BlockMask le quita su mask_mod.
    .fix = vuelva a ponerlo desde la máscara original: part.mask_mod = block_mask.mask_mod, desplazado por la primera consulta del corte
doctor-block-mask-batch = q tiene otro tamaño de lote que k, v o la máscara de bloques.
    .fix = extienda k y v al lote de q, o cree la máscara de bloques con B=None
doctor-block-mask-device = La máscara de bloques está en otro dispositivo que q, k y v.
    .fix = create_block_mask(..., device=query.device), o block_mask.to(query.device)
doctor-block-mask-no-mod = El argumento de create_block_mask no es una función de (b, h, q_idx, kv_idx).
    .fix = pase el propio mask_mod; llame antes a la función factoría: create_block_mask(sliding_window(1024), ...)
doctor-flex-cpu-backward = El kernel de CPU de FlexAttention es solo hacia delante.
    .fix = entrene en una GPU, o use sdpa en la CPU
doctor-flex-device = FlexAttention no tiene kernel para este dispositivo. mps de Apple tiene uno para inferencia en PyTorch 2.15, las versiones anteriores no.
    .fix = use sdpa allí: attention_mechanism "diffusers", attn_implementation "sdpa"
doctor-flex-backend-option = kernel_options nombra un backend que este torch no tiene, o dos a la vez.
    .fix = quite BACKEND de kernel_options, o póngalo solo en AUTO, TRITON, FLASH o TRITON_DECODE
doctor-branch-on-index = Un mod se bifurca (`if`, `and`, `or`, `not`) según un índice o un tensor.
    .fix = use & | ~ entre comparaciones, y torch.where(condition, a, b) en vez de if
doctor-padding-mask-2d = El backend flex de diffusers aplica una máscara 2-D (batch, tokens) a las consultas, y su backend native a las claves.
    .fix = pase una máscara 4-D [batch, 1, 1, tokens], o un BlockMask
doctor-nvrtc-missing = No se encontró NVRTC, la biblioteca del compilador.
    .fix = maskloom doctor --fix lo instala con pip en la carpeta propia de Maskloom; o pip install nvidia-cuda-nvrtc-cu12; o ponga su ruta en MASKLOOM_NVRTC
doctor-driver-missing = No hay controlador de NVIDIA, o este contenedor no tiene acceso a la tarjeta.
    .fix = instale el controlador; inicie el contenedor con --gpus all. Sin él, Maskloom funciona en la CPU
doctor-winit-library = A la ventana le falta una biblioteca o un servidor.
    .fix = sudo apt-get install -y libx11-6 libx11-xcb1 libxcursor1 libxi6 libxkbcommon0 libxkbcommon-x11-0 libgl1; `maskloom doctor` muestra cuál
doctor-devices-differ = Dos tensores de una operación están en dispositivos distintos, a menudo una máscara o tabla creada en la CPU.
    .fix = cree la máscara en el dispositivo de las consultas: make_block_mask(query.device); mueva el modelo antes de aplicar el diseño
doctor-index-out-of-bounds = Un mod lee un tensor capturado más allá de su final: la secuencia es más larga que la tabla.
    .fix = exporte el diseño para la longitud que usa el modelo; los módulos exportados rechazan otras longitudes con un mensaje
doctor-mask-dtype = La máscara contiene números enteros; PyTorch acepta bool (conservar) o float (se suma).
    .fix = pase mask.bool(), o una máscara aditiva en el dtype de las consultas
doctor-vmap-item = El mod se bifurca según un índice o lee un número de un tensor; los mods actúan sobre todas las celdas a la vez.
    .fix = escriba torch.where(condition, a, b) y `&` en vez de `if` y `and`; `maskloom check FILE.py` muestra la reescritura
doctor-mod-arity = Un mask_mod toma (b, h, q_idx, kv_idx) y un score_mod (score, b, h, q_idx, kv_idx), cada uno como parámetro con nombre; *args no cuenta.
    .fix = nombre todos los parámetros; si la traza está en maskloom_sidecar, exporte de nuevo: los sidecars antiguos hacían esto en modelos con máscaras
doctor-diffusers-mask-unsupported = El backend de diffusers elegido no admite máscaras, pero el modelo pasa una. (`_native_flash` imprime por error el nombre de aiter: diffusers recurre a él con context parallel, porque native-efficient y flex no pueden.)
    .fix = elija `native` o `cudnn` (funcionan también con context parallel, `flex` no); con un adaptador o sidecar exportado sirve cualquier backend
doctor-backend-not-registered = Este diffusers no conoce el backend, o su paquete no está instalado.
    .fix = enumérelos: python -c "from diffusers.models.attention_dispatch import AttentionBackendName as A; print(*A)"
doctor-kernels-version = El backend necesita el paquete `kernels` de Hugging Face. Falta o es demasiado antiguo.
    .fix = pip install -U kernels; o elija `native`, que no necesita ninguno
doctor-no-kernel-image = Esta compilación de PyTorch, o de la extensión de la traza, no contiene código para la arquitectura de la tarjeta.
    .fix = instale una para la tarjeta: las tarjetas nuevas necesitan wheels de CUDA nuevos; el paquete de Maskloom: exporte con --kernels sm_N
doctor-build-hangs = La compilación de flash-attn tarda de 10 a 30 minutos y usa más de 8 GB de memoria, sin ninguna salida.
    .fix = espere, o ponga MAX_JOBS=4; o use un wheel ya compilado cuyas etiquetas de torch, CUDA, Python y ABI coincidan
doctor-environment-broken = Al instalar flash-attn se sustituyó torch u otros paquetes.
    .fix = cree un entorno virtual nuevo sin flash-attn y siga con sdpa; después compruebe: python -c "import torch; print(torch.__version__)"
doctor-sidecar-left = Una llamada de una capa vigilada tiene otros tokens, u otra cuadrícula de tokens, que el diseño, así que se ejecuta sin la máscara.
    .fix = exporte el diseño también para esa resolución y nombre ambas carpetas en MASKLOOM_SIDECAR; MASKLOOM_SIDECAR_STRICT=1 lo convierte en un error
doctor-sidecar-unwatched = El sidecar está cargado, pero ningún modelo de este proceso tiene capas vigiladas, o ninguna se ejecutó.
    .fix = nombre la clase del modelo en MASKLOOM_SIDECAR_MODELS y sus capas en MASKLOOM_SIDECAR_LAYERS; en un proceso que importa diffusers hay que nombrar los modelos de transformers
doctor-sidecar-unknown-argument = El modelo pasa a su atención un argumento que el runtime no puede combinar con el diseño, así que la llamada va sin la máscara.
    .fix = elija capas que no lo necesiten (layers=, MASKLOOM_SIDECAR_LAYERS), y comunique su nombre a los desarrolladores de Maskloom
doctor-sidecar-beside-pattern = El modelo trae más que un patrón, como imágenes cuyos tokens atienden en ambos sentidos (PaliGemma, Gemma-3), así que sus llamadas van sin el diseño, y también los tokens que genera después.
    .fix = ponga MASKLOOM_SIDECAR_REPLACE=1 donde solo deba contar el diseño, con las imágenes dibujadas en él; MASKLOOM_SIDECAR_STRICT=1 convierte esa llamada en un error
doctor-sidecar-grid-unknown = El diseño necesita una cuadrícula de tokens, y los argumentos del modelo no contienen ninguna.
    .fix = si la cuadrícula es la del diseño: MASKLOOM_SIDECAR_GRID=assume, o use(model, grid="assume")
doctor-mod-arguments = Un mod toma otros argumentos que los que pasa FlexAttention: (b, h, q_idx, kv_idx) a un mask_mod, (score, b, h, q_idx, kv_idx) a un score_mod.
    .fix = use estos nombres de parámetros; llame antes a la función factoría y pase el mod que devuelve
doctor-hub-kernels-version = Los backends cuyo nombre acaba en -hub descargan sus kernels con el paquete `kernels`. Falta o es demasiado antiguo.
    .fix = pip install -U kernels; o elija un backend que no descargue nada (`diffusers`, que es SDPA)
doctor-no-valid-choices = Ninguna configuración de kernel de FlexAttention cabe en la memoria de la tarjeta con este head_dim y BLOCK_SIZE, normalmente en la retropropagación con BLOCK_SIZE 64 o bajo autocast.
    .fix = haga el BlockMask con BLOCK_SIZE 128; convierta q, k y v a un mismo dtype de 16 bits antes de la llamada; pase kernel_options={"{"}"BLOCK_M": 64, "BLOCK_N": 64{"}"}
doctor-cudnn-refused = La atención fusionada de cuDNN no admite esta máscara, head_dim, dtype o disposición.
    .fix = vuelva a `diffusers` o `native`, que dejan elegir el kernel a PyTorch
doctor-mask-shape = Se creó una máscara densa para otro número de tokens que el de esta llamada: otra resolución, otra longitud del texto, o una caché.
    .fix = créela para los q_len y kv_len de la llamada, como [batch o 1, heads o 1, q_len, kv_len]; un módulo exportado tiene make_mask(device, q_len, kv_len)
doctor-checkpoint-metadata = El gradient checkpointing volvió a ejecutar una capa en la retropropagación con otro resultado: otra máscara, otro backend, o una función compilada usada por primera vez.
    .fix = elija la atención por las longitudes de la llamada, no por un contador ni una variable global; ejecute un paso sin compilar para ver el nombre de la capa
doctor-graph-twice = Un tensor que necesita gradiente se calculó una vez y se usó en dos pasos, como un sesgo aprendido que captura un mod.
    .fix = calcúlelo de nuevo en cada paso, dentro de la función que crea el score_mod
doctor-flash-attn-dtype = flash-attn admite float16 y bfloat16, pero el modelo está en float32.
    .fix = cargue el modelo con dtype=torch.bfloat16 o entrene con mixed_precision bf16
doctor-triton-missing = FlexAttention compilado necesita Triton, que instalan los wheels de CUDA de PyTorch para Linux; otras compilaciones no lo tienen.
    .fix = instale el wheel de CUDA de PyTorch; en Windows pip install triton-windows
doctor-python-headers = Triton compila su lanzador con el compilador de C y no encuentra las cabeceras de este Python.
    .fix = instálelas: apt install python3-dev, o las cabeceras de su versión de Python
doctor-c-compiler-missing = Triton e Inductor compilan pequeños programas con un compilador de C, y no hay ninguno instalado.
    .fix = apt install build-essential, o indique uno: CC=clang
doctor-setting-unknown = El entrenador no conoce este attention_mechanism: solo acepta sus propios nombres.
    .fix = use diffusers, native, flash-attn, flash-attn-3-hub, flex, cudnn o sageattention; `maskloom export --backend` escribe el nombre
doctor-flag-unknown = Este programa no tiene ese ajuste: attention_mechanism es de SimpleTuner, attn_implementation de transformers.
    .fix = mire su propio --help; el sidecar exportado aplica una máscara sin ningún ajuste
doctor-loss-nan = Una fila sin ninguna clave da NaN en una atención sin regla para tales filas: SDPA con una máscara densa que descarta una fila entera, o una máscara aditiva de -inf.
    .fix = `maskloom check` y las estadísticas de bloques cuentan las filas vacías; conserve al menos el propio token (una banda de 0 a 0). FlexAttention devuelve 0 en esas filas
doctor-fullgraph-break = El modelo se compila con fullgraph=True y llama a código que no se puede trazar. El sidecar lo hace si lee una cuadrícula de los valores de tensores (img_ids).
    .fix = compile sin fullgraph; si la cuadrícula es la del diseño, MASKLOOM_SIDECAR_GRID=assume o use(model, grid="assume") no leen ningún tensor
doctor-flex-cpu-training = FlexAttention no calcula gradientes en la CPU.
    .fix = entrene en una GPU; para pruebas en la CPU use el adaptador o sidecar exportado, que allí materializa todas las puntuaciones
doctor-safetensors-header = El archivo no es safetensors o está cortado. A menudo es un puntero de Git LFS de unos cientos de bytes.
    .fix = compruebe su tamaño; descárguelo de nuevo (git lfs pull, huggingface-cli download)
doctor-dropout-refused = El modelo entrena con dropout en la atención, que FlexAttention no admite.
    .fix = póngalo a 0: attention_dropout en la configuración del modelo, dropout en la capa
doctor-two-designs = Dos diseños exportados son para los mismos tokens, cuadrícula y capas, así que no se usa ninguno.
    .fix = nombre solo uno en MASKLOOM_SIDECAR, o escriba "layers" en el sidecar.json de cada uno
doctor-not-proved = verify ejecutó el modelo con el diseño y con su máscara pasada a mano. Los resultados difieren, o algunas llamadas fueron sin el diseño.
    .fix = la línea nombra las llamadas sin máscara y su razón; si todas la tenían, envíe la línea y la configuración del modelo a los desarrolladores de Maskloom
doctor-capture-read-twice = La retropropagación de FlexAttention admite una sola lectura de un tensor capturado que necesita gradiente, pero el score_mod lo lee dos veces.
    .fix = lea un clon la segunda vez: `other = bias.clone()` antes del mod; autograd suma ambos gradientes
doctor-flash-backend-refused = kernel_options elige el backend FLASH de FlexAttention. No tiene gradientes de tensores capturados, y en algunas tarjetas tampoco a través del logsumexp. El final del mensaje dice la razón.
    .fix = quite BACKEND, o ponga kernel_options={"{"}"BACKEND": "TRITON"{"}"}; `maskloom verdict` enumera antes de ejecutar los backends que admiten el diseño hacia delante y hacia atrás
doctor-kernel-folder = Las guías de entrenadores nombran esta carpeta para kernels flex ya compilados. PyTorch no tiene tal carpeta: torch.compile y Triton escriben en TORCHINDUCTOR_CACHE_DIR y ~/.triton/cache.
    .fix = quite el ajuste; para compilar de nuevo borre esas dos carpetas
doctor-flex-prototype = La interfaz de FlexAttention puede cambiar entre versiones de PyTorch. Sus kernels se compilan en la primera llamada y se guardan para las versiones de PyTorch, Triton y el controlador que los hicieron.
    .fix = no hay que recompilar a mano: tras una actualización el primer paso compila de nuevo, lo que tarda uno o dos minutos
doctor-ragged-masks = Un BlockMask tiene un solo q_len y kv_len para todo el lote. Las muestras de distinta longitud necesitan ser documentos de una secuencia, o relleno.
    .fix = empaquételas y enmascare por documento: preset `packed_documents`, o un mask_mod con `doc[q_idx] == doc[kv_idx]`; el relleno que pasa el propio modelo se combina con el diseño
doctor-card-too-old = bfloat16 en tensor cores y los kernels fusionados de flash-attn necesitan capacidad 8.0 (A100, RTX 30 y posteriores).
    .fix = `maskloom doctor` dice la tarjeta y su capacidad; en tarjetas anteriores use sdpa con fp16
doctor-sidecar-not-loaded = El entorno carga el sidecar de Maskloom, pero un ajuste está mal: el script se ejecuta sin la máscara.
    .fix = el final de la línea nombra el ajuste; corríjalo y empiece de nuevo. MASKLOOM_SIDECAR nombra una carpeta exportada
doctor-fa4-block-size = FlashAttention-4 quiere un BlockMask cuyos bloques de consultas sean tan grandes como sus teselas: 256 en Blackwell (sm_100), 128 en Hopper. Con context parallel, PyTorch anterior a 2.15 rehacía la máscara de cada rank con 128 x 128 y olvidaba el BLOCK_SIZE elegido.
    .fix = actualice a PyTorch 2.15, o rehaga la máscara tras repartir con BLOCK_SIZE=(256, 128); kernel_options={"{"}"BACKEND": "TRITON"{"}"} toma cualquiera. El equilibrador PTRR necesita bloques iguales de consultas y claves, así que (256, 128) no se puede equilibrar; en Hopper 128 es lo correcto
doctor-hub-kernel-no-variant = El kernel del hub no tiene compilación para este par de torch y CUDA. La versión 1 de kernels-community/flash-attn2 acaba en torch 2.12.
    .fix = pida la compilación con ABI estable: attn_implementation="kernels-community/flash-attn2@v3" (torch 2.9 o posterior), o un transformers más nuevo, o sdpa
doctor-hub-kernel-stale = La copia en caché del kernel del hub es anterior a la compilación que lista su página.
    .fix = borre esa copia de ~/.cache/huggingface/hub, o pip install -U kernels, y ejecute de nuevo con red
doctor-hub-kernel-not-loaded = Se puso un backend del hub (`sage_hub`, `flash_hub`) en un solo módulo de atención. El ajuste de un módulo no descarga el kernel, solo el del modelo. Fuera del despachador de diffusers el mensaje solo dice que se llamó a algo que es None.
    .fix = llame primero a set_attention_backend en el modelo (pipe.transformer.set_attention_backend("sage_hub")), después en bloques sueltos, o póngalo en todos
doctor-flash-mask-refused-since-037 = Desde diffusers 0.37 los backends flash rechazan una máscara. Antes la ignoraban y los prompts rellenados daban imágenes erróneas: volver a una versión anterior las trae de vuelta.
    .fix = use native, cudnn o flash_varlen (flash_varlen_hub), que aceptan el relleno; o lote 1 sin relleno
doctor-aiter-mask = En NVIDIA este texto engaña: `_native_flash` rechaza la máscara e imprime el nombre de aiter. diffusers lo elige con context parallel porque `native-efficient` y `flex` no funcionan ahí.
    .fix = elija `cudnn` o `native`, que funcionan con context parallel y aceptan una máscara; `flex` no funciona con context parallel
doctor-block-mask-arithmetic = El modelo calcula con su máscara como con un tensor, y FlexAttention le da un BlockMask. Esa familia no admite flex_attention.
    .fix = attn_implementation="sdpa" o "eager" para esta familia; un adaptador o sidecar exportado la enmascara sin BlockMask en el modelo
doctor-block-mask-device-default = Hasta PyTorch 2.10 create_block_mask hacía su máscara en cuda si no se daba device=, así que tensores de CPU encontraban una máscara de la GPU.
    .fix = create_block_mask(..., device=query.device), o block_mask.to("cpu"). FlexAttention de todos modos no tiene retropropagación en la CPU
doctor-vmap-index = Un mod indexa una lista de Python, llama a int() o .item(), o usa `if` con un índice. Los mods actúan sobre todas las celdas a la vez, donde un índice es un tensor sin un solo valor.
    .fix = haga de la lista un tensor capturado (doc = torch.tensor(list)) e indéxelo; use & | ~ y torch.where; `maskloom check FILE.py` nombra la línea y muestra la reescritura
doctor-reshape-lost-heads = Se dio a un tensor una forma con menos elementos de los que tiene. En la atención de longitud variable se pierde a menudo el eje de las cabezas, cuando un lote tiene descripciones de distinta longitud.
    .fix = use lote 1, o la atención dividida del entrenador (--split_attn); si el cociente es el número de cabezas, la salida perdió el eje de las cabezas
doctor-cuda-runtime-library = El wheel de la extensión se hizo para otro CUDA que el de torch. El número tras `.so.` es el del wheel (libcudart.so.12: CUDA 12, libcudart.so.13: CUDA 13), el que sigue a `+cu` en la versión de torch es el de torch (+cu126: CUDA 12, +cu130: CUDA 13).
    .fix = instale un wheel hecho para el CUDA de torch (python -c "import torch; print(torch.version.cuda)"), un kernel del hub (flash-attn-hub), o un torch del otro CUDA
doctor-wheel-not-found = Esta versión de flash-attn no tiene wheel para su par de torch y Python; 2.8.3 no lo tiene para torch 2.9.1+cu130 y Python 3.13.
    .fix = FLASH_ATTENTION_FORCE_BUILD=TRUE TORCH_CUDA_ARCH_LIST="9.0" pip install flash-attn --no-build-isolation, o un kernel del hub, o sdpa
doctor-xformers-flash-version = La queja es de xformers, que diffusers importa: acepta un intervalo de versiones de flash-attn, y hay instalada una más nueva.
    .fix = actualice xformers, o pip uninstall xformers, o ponga XFORMERS_IGNORE_FLASH_VERSION_CHECK=1
doctor-sage-head-dim = SageAttention toma head dims 64, 96 y 128. Se puso en lugar de todas las llamadas a SDPA, también las del VAE (512) o del ControlNet de una UNet (40, 80, 160).
    .fix = úselo solo en las capas del transformer y SDPA en lo demás; tampoco toma attn_mask ni tiene retropropagación
doctor-nested-tensor = FlexAttention falla con nested tensors jagged donde head_dim difiere del lote, y PyTorch 2.15 rechaza los nested tensors.
    .fix = empaquete las muestras en una secuencia con máscara por documento: preset `packed_documents`, doc[q_idx] == doc[kv_idx]
doctor-flash-3-unpack = FlashAttention-3 ya no devuelve su logsumexp salvo que se pida, y este diffusers aún desempaqueta dos valores.
    .fix = actualice diffusers, o use `_flash_3_hub` (flash-attn-3-hub), cuyo kernel tiene una versión fija
doctor-flash-backward-tiles = La retropropagación de FlashAttention-4 en Hopper elige su propia tesela (96 de ancho con head_dim 192), y un BlockMask de 128 no encaja.
    .fix = cree la máscara con BLOCK_SIZE=(128, 96), o kernel_options={"{"}"BACKEND": "TRITON"{"}"}, o los kernels exportados de Maskloom
doctor-deterministic-flash = En FlashAttention-4 una retropropagación determinista con máscara de bloques solo existe en Blackwell. En Hopper una propuesta cuesta 5.33x con 16k tokens.
    .fix = en Hopper use kernel_options={"{"}"BACKEND": "TRITON"{"}"}, como dice el mensaje de PyTorch, o --deterministic con los kernels de Maskloom (`maskloom run --pass both --deterministic` muestra el precio), o prescinda de ello
doctor-negative-sparsity = PyTorch anterior a 2.15 divide las celdas de bloques enteros por las de la secuencia, así que una secuencia más corta que sus bloques imprime una dispersión negativa. 2.15 cuenta bloques.
    .fix = la máscara no tiene nada malo; `maskloom blocks` imprime la proporción de celdas y los números de ambas versiones
doctor-causal-flag-and-mask = Una llamada pasa una máscara e is_causal=True. El SDPA de PyTorch rechaza ambos. El backend flex de diffusers calcula atención completa con is_causal=True sin máscara, y descarta sin avisar una máscara densa que venga con él.
    .fix = incluya la causalidad en la máscara: un BlockMask de `(q_idx >= kv_idx) & mask`; con una familia que pasa is_causal=True (cosmos3) elija diffusers, native o cudnn
doctor-gpu-out-of-memory = La memoria de la tarjeta está llena. Las puntuaciones materializadas (eager, flex sin compilar) necesitan q_len x kv_len valores por cabeza.
    .fix = use flex compilado o sdpa en vez de eager, acorte la secuencia o baje el lote; `maskloom verdict` dice los bytes de las puntuaciones
doctor-allocator-setting = La memoria libre está dividida en trozos demasiado pequeños. El ajuste cambió de nombre: PYTORCH_ALLOC_CONF es el PYTORCH_CUDA_ALLOC_CONF de PyTorch anterior a 2.9.
    .fix = export PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF antes de 2.9); no ayuda si un solo tensor ya es demasiado grande
doctor-tensor-memory = Un kernel de Triton necesita más memoria de tensores de Blackwell de la que hay: sus teselas son demasiado grandes para este head_dim.
    .fix = pase teselas menores: kernel_options={"{"}"BLOCK_M": 64, "BLOCK_N": 64{"}"}, o BLOCK_SIZE 64
doctor-mod-argument-missing = Un mod recibió menos argumentos de los que tiene: se pasó un score_mod como mask_mod, una función factoría en vez del mod que devuelve, o create_mask llamó a un mod con cuatro índices.
    .fix = mask_mod(b, h, q_idx, kv_idx), score_mod(score, b, h, q_idx, kv_idx); llame antes a la función factoría
doctor-mod-is-method = Para PyTorch un método ligado no es un mask_mod: cuenta `self` entre los parámetros.
    .fix = envuélvalo: lambda b, h, q_idx, kv_idx: self.mask(b, h, q_idx, kv_idx); o defina el mod dentro de un método y devuélvalo
doctor-driver-old-for-torch = El controlador es más antiguo que el CUDA de este torch.
    .fix = actualice el controlador, o instale un torch hecho para un CUDA anterior: pip install torch --index-url https://download.pytorch.org/whl/cu126
doctor-link-libcuda = Triton enlaza su lanzador con libcuda, y el enlazador solo encuentra libcuda.so.1: el contenedor tiene el controlador pero no su enlace de desarrollo.
    .fix = ln -s libcuda.so.1 libcuda.so junto a él, o export LIBRARY_PATH=/usr/local/cuda/lib64/stubs, o ldconfig
doctor-dtypes-differ = q, k y v tienen formatos distintos, a menudo porque una norma o un embedding rotatorio devolvió float32 bajo autocast.
    .fix = convierta antes de la llamada: k = k.to(q.dtype), v = v.to(q.dtype)
doctor-mask-format = La máscara no es bool ni del formato de las consultas.
    .fix = pase mask.bool() (True conserva) o una máscara aditiva en el dtype de las consultas: mask.to(query.dtype)
doctor-cudnn-status = La atención fusionada de cuDNN no admite esta máscara, head_dim, formato o disposición, o es demasiado antigua para la tarjeta.
    .fix = deje elegir a PyTorch: torch.backends.cuda.enable_cudnn_sdp(False), o attention_mechanism `diffusers` o `native`
doctor-kernel-image-invalid = El controlador no puede cargar este código máquina: es de otra arquitectura, está dañado, o es más nuevo que el controlador.
    .fix = actualice el controlador; borre la caché de kernels (~/.triton/cache, `maskloom kernels clear`); instale una compilación para esta tarjeta
doctor-flex-not-supported-by-model = Esta familia de transformers no acepta BlockMasks.
    .fix = attn_implementation="sdpa"; un adaptador o sidecar exportado le aplica el diseño de todos modos
doctor-flex-multiple-of-128 = FlexAttention de PyTorch 2.5 solo toma longitudes múltiplos de 128.
    .fix = actualice a PyTorch 2.6 o posterior, o rellene la secuencia y enmascare el relleno
doctor-kohaku = Los kernels `kohaku-fa` de SimpleTuner toman fp16 o bf16 y máscaras booleanas sin is_causal, sin dropout y sin context parallel, en sm_89, sm_90, sm_100, sm_103 y sm_120. `kohaku-fa-auto`, lo predeterminado desde 4.10, vuelve por sí mismo al SDPA de PyTorch.
    .fix = con `kohaku-fa-auto` no hay que hacer nada; con `kohaku-fa` vuelva a él o a `diffusers`. El sidecar exportado mantiene su máscara con ambos
doctor-sage-in-training = SageAttention es solo hacia delante: al entrenar, las capas de atención no reciben gradiente. Además ignora las máscaras. Por defecto (sageattention_usage inference) actúa solo en la validación, así que el entrenamiento no es más rápido.
    .fix = entrene con attention_mechanism `diffusers`, `cudnn` o `flash-attn`; deje sageattention para la validación
doctor-prototype-in-words = La interfaz de FlexAttention puede cambiar entre versiones de PyTorch. Sus kernels se compilan en la primera llamada y se guardan para las versiones de PyTorch, Triton y el controlador que los hicieron.
    .fix = no hay que recompilar a mano: tras una actualización el primer paso compila de nuevo, lo que tarda uno o dos minutos
doctor-ragged-in-words = Un BlockMask tiene un solo q_len y kv_len para todo el lote. Las muestras de distinta longitud necesitan ser documentos de una secuencia, o relleno.
    .fix = empaquételas y enmascare por documento: preset `packed_documents`, o un mask_mod con `doc[q_idx] == doc[kv_idx]`
doctor-wheel-not-supported = Las etiquetas del wheel (Python, ABI, sistema) no son las de este intérprete.
    .fix = elija el archivo cuya etiqueta cpXY sea python -c "import sys; print(sys.version_info[:2])" y cuyos torch y CUDA sean los suyos; maskloom doctor --guide flash-attn los rellena
doctor-context-parallel-mask = Con context parallel la mayoría de los caminos no toman máscaras: ring attention es solo causal o completa, TransformerEngine toma relleno en THD con causal o ventana, y accelerate, antes de rechazarlas, tiraba la máscara de cada capa y entrenaba atención causal completa.
    .fix = use el context parallel de PyTorch con all-gather y un BlockMask, o las piezas de MagiAttention; `maskloom verdict` dice qué formas tiene una máscara
doctor-killed = El sistema terminó el proceso porque la memoria del ordenador (no la de la tarjeta) estaba llena.
    .fix = baje MAX_JOBS al compilar; cargue los pesos con low_cpu_mem_usage; menos workers del dataloader; más swap
doctor-flex-eager-memory = FlexAttention sin compilar materializa todas las puntuaciones en float32: batch x heads x q_len x kv_len x 4 bytes por capa, y otro tanto para su softmax.
    .fix = flex_attention = torch.compile(flex_attention) una vez a nivel de módulo; `maskloom verdict` imprime los bytes de un diseño antes de ejecutar
doctor-block-mask-slow = create_block_mask evalúa cada celda de B x H máscaras. Un mod que no lee `b` o `h` da las mismas listas B x H veces.
    .fix = pase B=None y H=None donde el mod no los lea (`maskloom check FILE.py` dice cuáles lee), haga la máscara una vez para todas las capas y pasos de una longitud, o use maskloom.create_block_mask
doctor-sdpa-keyword = Este PyTorch es anterior al argumento: scale llegó con 2.1, enable_gqa con 2.5.
    .fix = pip install -U torch; sin enable_gqa repita las claves: k.repeat_interleave(groups, 1)
doctor-flex-head-dim-small = FlexAttention toma head dims de 16 o más; PyTorch 2.5 quería además potencias de 2.
    .fix = rellene q, k y v hasta 16 columnas con ceros y pase scale=1/sqrt(head_dim); para una dimensión como 96 actualice a PyTorch 2.6
doctor-flex-block-divides-tile = La tesela de un kernel no divide los bloques de la máscara: BLOCK_M y BLOCK_N de kernel_options, o la que eligió el autotuning, frente al BLOCK_SIZE de la máscara.
    .fix = cree la máscara con BLOCK_SIZE=128, o ponga BLOCK_M y BLOCK_N en divisores de su BLOCK_SIZE
doctor-flex-decode-groups = El kernel de decodificación de FlexAttention, que corre con pocas consultas, quiere 1, 2, 4, 8 ... cabezas de consulta por cabeza de clave.
    .fix = kernel_options={"{"}"FORCE_USE_FLEX_ATTENTION": True{"}"} (2.15: {"{"}"BACKEND": "TRITON"{"}"}), o rellene las cabezas de consulta
doctor-flex-decode-unavailable = El kernel de decodificación es para pocas consultas (menos de 128) y tamaños conocidos al compilar.
    .fix = deje BACKEND en AUTO
doctor-block-mask-smaller = El BlockMask es de otras longitudes que q y k. Hay que crear, o ajustar, una máscara para cada longitud.
    .fix = create_block_mask(mask_mod, B, H, q.size(-2), k.size(-2)) para esta llamada; si solo cambia la longitud, rellene hasta una común
doctor-block-mask-broadcast = q tiene otro tamaño de lote que k y v. FlexAttention solo extiende un lote de 1.
    .fix = extienda k y v: k.expand(q.size(0), -1, -1, -1)
doctor-block-mask-built-by-hand = A un BlockMask hecho a mano le faltan listas: los bloques llenos necesitan recuentos e índices juntos, y la retropropagación las listas por bloque de claves (q_num_blocks, q_indices).
    .fix = BlockMask.from_kv_blocks(kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, BLOCK_SIZE=..., mask_mod=..., seq_lengths=(q_len, kv_len)) las hace todas; las listas de bloques exportadas también las tienen
doctor-block-mask-is-no-tensor = Llegó un BlockMask donde hace falta una máscara densa: SDPA y los modelos que suman su máscara a algo toman un tensor.
    .fix = dé a SDPA una máscara densa: create_mask(mask_mod, B, H, q_len, kv_len, device), o make_mask del módulo exportado; o llame a flex_attention
doctor-deterministic-metadata = El backend FLASH de FlexAttention suma gradientes en orden fijo solo con más listas de la máscara.
    .fix = create_block_mask(..., compute_dq_write_order=True), o el backend TRITON, o los kernels de Maskloom con --deterministic
doctor-flex-mixed-dtypes = q, k y v tienen formatos distintos, a menudo porque una norma o un embedding rotatorio devolvió float32 bajo autocast.
    .fix = convierta antes de la llamada: k = k.to(q.dtype), v = v.to(q.dtype)
doctor-flex-lse-options = Cómo devuelve FlexAttention su logsumexp depende de la versión de PyTorch: return_lse=True hasta 2.8, return_aux=AuxRequest(lse=True) desde 2.9. Compilado en una CPU no lo devuelve; FLASH no devuelve puntuaciones máximas.
    .fix = use la forma de su versión, y solo una de las dos
doctor-score-mod-without-score = Un score_mod debe devolver un tensor calculado a partir de `score`, sin cambiar nada en el lugar; un mask_mod no debe capturar un tensor que aprende.
    .fix = devuelva torch.where(keep, score, -inf) en vez de una constante; lleve una tabla aprendida al score_mod, o use tensor.detach() en el mask_mod
doctor-higher-order-op-rule = Un modo o una subclase de tensor (FlopCounterMode, DTensor, checkpointing selectivo) se encuentra con flex_attention, para el que no tiene regla.
    .fix = deje la atención fuera de ese modo: cuente FLOP con `maskloom verdict`, haga checkpoint de capas enteras, pase tensores locales (to_local())
doctor-ddp-optimizer = DistributedDataParallel divide un grafo compilado, y el de FlexAttention no se puede dividir.
    .fix = torch._dynamo.config.optimize_ddp = False antes de compilar; o compile solo flex_attention en vez del modelo
doctor-fx-on-compiled = Una función compilada (torch.compile(flex_attention)) se llama dentro de código que otro trazador registra: checkpointing, make_fx, torch.func o export.
    .fix = llame allí a flex_attention sin compilar y compile la función exterior; torch._dynamo.config.error_on_nested_fx_trace = False donde se comparen resultados
doctor-vmap-in-place = Un mod cambia un tensor en el lugar (`m |= ...`, `m[q_idx] = ...`). Los mods actúan sobre todas las celdas a la vez.
    .fix = escriba m = m | other, y torch.where en vez de asignar a un elemento
doctor-vmap-random = Un mod sortea números aleatorios. Los mods actúan sobre todas las celdas a la vez y varias veces: hay que sortear antes.
    .fix = sortee una tabla fuera y captúrela: keep = torch.rand(B, kv_len) > 0.15, después keep[b, kv_idx]
doctor-vmap-dynamic-shape = Un mod llama a algo cuyo resultado tiene otro tamaño en cada celda (nonzero, indexado booleano, unique), imprime un valor, o llama a un operador que vmap no conoce.
    .fix = calcule esas tablas fuera del mod y captúrelas; `maskloom check FILE.py` nombra la línea
doctor-flash-not-compiled-in = Esta compilación de PyTorch (los wheels de Windows entre ellas) no tiene FlashAttention dentro; SDPA usa otro kernel. Es una advertencia: los resultados son correctos.
    .fix = no hay que hacer nada; para ir más rápido en Windows use un wheel más nuevo o el kernel de cuDNN, o FlexAttention con triton-windows
doctor-sdpa-why-not = Se pidió a SDPA un solo kernel (sdpa_kernel, set_attention_backend), y dice por qué cada uno rechaza estas entradas; `runtime disabled` es su propia elección. FlashAttention no toma ninguna máscara.
    .fix = lea la línea del kernel que quiere; con máscara permita SDPBackend.EFFICIENT_ATTENTION o CUDNN_ATTENTION, o use un BlockMask con flex
doctor-attn-bias-aligned = El kernel memory-efficient quiere una máscara densa cuyas filas empiecen en un múltiplo de 8 elementos, y el número de claves no lo es.
    .fix = reserve la máscara con kv_len redondeado a un múltiplo de 8 y córtela: mask[..., :kv_len]; o use un BlockMask
doctor-cutlass-no-kernel = El kernel memory-efficient no tiene variante para esta tarjeta, formato o head_dim; a menudo bfloat16 en una tarjeta anterior a Ampere, o float32 donde solo hay de 16 bits.
    .fix = use fp16 en esa tarjeta; o torch.backends.cuda.enable_mem_efficient_sdp(False), que deja el kernel math de PyTorch
doctor-xformers-no-operator = xformers no tiene kernel para estas entradas; bajo el mensaje cada kernel dice por qué: dtype, head_dim, tipo de máscara, o una compilación sin CUDA para este torch.
    .fix = instale el xformers de su torch (python -m xformers.info); convierta a bf16; o use el SDPA de PyTorch, hoy igual de rápido
doctor-grid-limit = Se lanzó un kernel con un grid mayor que los límites de la tarjeta: batch x heads por encima de 65,535, o ningún token.
    .fix = llame a la atención en varios lotes; omita las secuencias vacías
doctor-stride-changed = Un kernel compilado se hizo para una disposición en memoria y recibió otra, a menudo q, k o v traspuestos en una llamada y no en la siguiente, o una disposición que torch.compile leyó mal.
    .fix = llame a .contiguous() en q, k y v antes de la atención; borre la caché de compilación (~/.cache/torch, /tmp/torchinductor_*) tras una actualización
doctor-varlen-offsets = La atención de longitud variable toma desplazamientos de las muestras en int32, uno más que muestras, en el dispositivo de las consultas, que empiezan en 0 y acaban en el número de tokens.
    .fix = cu_seqlens = F.pad(lengths.cumsum(0), (1, 0)).to(torch.int32); max_seqlen = int(lengths.max())
doctor-query-has-wrong-axes = q, k y v tienen otro número de ejes que el que quiere la atención: diffusers [batch, tokens, heads, head_dim], PyTorch [batch, heads, tokens, head_dim].
    .fix = cambie la forma antes de la llamada: x.unflatten(-1, (heads, -1)), y transpose(1, 2) para PyTorch
doctor-diffusers-gqa = Este backend de diffusers solo toma tantas cabezas de clave como de consulta.
    .fix = k.repeat_interleave(groups, 2) y lo mismo con v antes de la llamada, o el backend `native`
doctor-diffusers-no-backward = Este backend de diffusers es solo para inferencia: al entrenar con él no hay gradiente.
    .fix = entrene con `native`, `_native_cudnn`, `flash` o `flex`
doctor-diffusers-import-failed = diffusers encontró el paquete, su importación falló, y corre SDPA en su lugar. El texto del medio dice por qué: normalmente un wheel de otro torch o CUDA.
    .fix = python -c "import flash_attn" imprime solo la causa; `maskloom doctor --explain` toma ese mensaje
doctor-diffusers-arguments-removed = El modelo pasa un argumento que el backend elegido no tiene, y diffusers lo quita: si es attn_mask, la máscara se ignora.
    .fix = mire si attn_mask está en la lista; si está, elija un backend que lo tome: native, _native_cudnn, flex
doctor-diffusers-lse = El backend no devuelve el logsumexp, que context parallel necesita para combinar.
    .fix = con context parallel elija `_native_cudnn`, `_native_flash`, `flash` o `sage`
doctor-cp-degrees = Los grados de context parallel no encajan con los procesos: su producto debe ser el número de ranks, y algunas combinaciones no existen.
    .fix = ring_degree x ulysses_degree = número de GPU, cada uno al menos 1 y uno mayor que 1; Ulysses necesita además cabezas divisibles por el grado
doctor-cp-length = Context parallel divide los tokens en partes iguales, y la longitud no se divide. Donde se equilibran bloques, una parte debe ser bloques enteros.
    .fix = rellene la secuencia hasta ranks x BLOCK_SIZE tokens (2 x ranks para el equilibrio de cabeza y cola) y enmascare el relleno; `maskloom parallel` planifica cualquier longitud
doctor-cp-what-it-takes = El context parallel de PyTorch toma SDPA sin máscara o causal, con FlashAttention o el kernel memory-efficient; un BlockMask necesita su camino flex con all-gather, y su equilibrador bloques iguales de consultas y claves.
    .fix = use flex_attention con el método all-gather y BLOCK_SIZE=128, o los planes distribuidos de Maskloom (documentación: varias GPU)
doctor-output-attentions = La atención fusionada nunca tiene las probabilidades, así que no puede devolverlas.
    .fix = attn_implementation="eager" en esa ejecución; `maskloom run PRESET --out` y las probabilidades de la ventana las muestran para un diseño
doctor-window-not-applied = La configuración del modelo tiene una ventana (o trozos) que esta atención no aplica, o le falta su tamaño: el modelo ve más claves que al entrenarse.
    .fix = flex_attention, o flash_attention_2 donde tenga window_size; compare ambas máscaras con `maskloom compare`
doctor-flash-lacks-feature = Al flash-attn cargado le falta lo que el modelo necesita: softcap, trozos, sinks, o la entrada simple junto a la de longitud variable.
    .fix = attn_implementation="flex_attention" o "eager", que los tienen; actualice flash-attn para softcap (2.6)
doctor-padding-side = Al generar, el token más nuevo debe estar al final de cada fila; con relleno a la derecha el modelo continúa desde el relleno.
    .fix = tokenizer.padding_side = "left", y pase attention_mask
doctor-packed-without-varlen = Las muestras empaquetadas se separan por bordes de documento: sin ellos cada muestra ve las anteriores.
    .fix = pase position_ids que vuelvan a empezar y ningún attention_mask 2-D (transformers encuentra así los bordes), flash_attention_2 con longitudes variables, o el preset `packed_documents` como BlockMask
doctor-card-newer-than-torch = Esta compilación de PyTorch no tiene código para la tarjeta: Blackwell (sm_100, sm_120) necesita CUDA 12.8 y PyTorch 2.7 o posterior.
    .fix = pip install -U torch --index-url https://download.pytorch.org/whl/cu128 (o posterior)
doctor-torch-without-cuda = El PyTorch instalado es una compilación para la CPU; pip lo tomó de PyPI en Windows, o un resolutor sustituyó la de CUDA.
    .fix = pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu128
doctor-no-gpu-visible = El proceso no ve ninguna tarjeta, o menos de las que pide: CUDA_VISIBLE_DEVICES la oculta, el contenedor se inició sin ella, o se lanzaron más procesos que tarjetas.
    .fix = mire nvidia-smi y echo $CUDA_VISIBLE_DEVICES; docker run --gpus all; --nproc_per_node = número de tarjetas
doctor-build-without-isolation = pip compila la extensión en un entorno propio, donde torch no está instalado.
    .fix = primero pip install torch packaging ninja psutil wheel, después pip install flash-attn --no-build-isolation
doctor-flash-build-failed = La compilación de la extensión falló en el compilador; la causa está arriba, en el primer `error:`. Lo más frecuente: ningún toolkit de CUDA u otro, poca memoria (Killed), o un compilador que nvcc no acepta.
    .fix = un wheel ya compilado o un kernel del hub la ahorra; si no, MAX_JOBS=2, un CUDA_HOME del CUDA de torch, y un gcc que nvcc admita
doctor-glibc-too-old = El wheel se hizo en un Linux más nuevo que este: su biblioteca de C es más antigua de lo que el wheel necesita.
    .fix = compílelo aquí (FLASH_ATTENTION_FORCE_BUILD=TRUE), tome un contenedor con un sistema más nuevo, o libstdcxx-ng de conda para GLIBCXX
doctor-dll-load-failed = En Windows la extensión se hizo para otro torch, Python o CUDA, o falta una biblioteca de CUDA.
    .fix = un wheel exactamente para este torch, CUDA y Python; o SDPA, que no necesita ninguno; triton-windows para FlexAttention
doctor-extension-of-another-torch = Una extensión compilada se hizo para otro PyTorch: allí sus funciones tienen otros nombres.
    .fix = reinstale la extensión para este torch (pip uninstall, después un wheel adecuado o --no-build-isolation), o use SDPA
doctor-flash-import-name = flash-attn falta, está roto, o es de otra generación: flash_attn (2), flash_attn_interface (3), flash_attn.cute (4) son paquetes distintos. `unknown location` significa que se encuentra primero una carpeta flash_attn vacía.
    .fix = pip show -f flash-attn; quite una carpeta sobrante; attn_implementation="sdpa" no lo necesita; maskloom doctor --guide flash-attn
doctor-flex-import-name = Este PyTorch no tiene FlexAttention (anterior a 2.5), o le falta un nombre que llegó después (AuxRequest con 2.9).
    .fix = pip install -U torch; python -c "import torch; print(torch.__version__)" en el mismo entorno
doctor-flex-keyword = El FlexAttention de este PyTorch no tiene ese argumento: las firmas cambiaron entre 2.5 y 2.15 (return_aux llegó con 2.9), y el nombre puede ser de otra función (attn_mask es de SDPA).
    .fix = python -c "import inspect, torch.nn.attention.flex_attention as f; print(inspect.signature(f.flex_attention))"
doctor-sage-build = SageAttention no se compiló para esta tarjeta, o recibe entradas que no son de 16 bits en una GPU.
    .fix = compile SageAttention 2 con TORCH_CUDA_ARCH_LIST de la tarjeta; convierta a bf16; o elija `diffusers`. No tiene retropropagación
doctor-triton-failed = Triton no pudo compilar o lanzar el kernel; las líneas de arriba nombran la operación. A menudo un par de Triton y torch que no van juntos, o una fórmula de un mod que su compilador no sabe traducir.
    .fix = pip install del triton que nombra torch (pip show torch); borre ~/.triton/cache; kernel_options={"{"}"num_stages": 1{"}"}; sustituya la última fórmula añadida al mod por una tabla capturada
doctor-inductor-lowering = torch.compile falló dentro de Inductor; la excepción tras los dos puntos dice por qué, y `maskloom doctor --explain` puede conocer esa parte.
    .fix = pegue todo el texto; ejecute el mod una vez sin compilar: allí se ve un fallo del mod con su línea. TORCHDYNAMO_VERBOSE=1 muestra más
doctor-higher-order-capture = Un mod, o lo que lo rodea, hace algo que torch.compile no puede registrar: cambia una variable exterior, llama a una función desconocida, o está él mismo dentro de vmap.
    .fix = un mod solo calcula con sus argumentos y tensores capturados; saque lo demás fuera, y cree la máscara fuera de la función compilada
doctor-launch-failure = Un kernel falló en la tarjeta. La línea nombrada es a menudo una posterior, porque los kernels se ejecutan con retraso respecto al programa.
    .fix = CUDA_LAUNCH_BLOCKING=1 muestra el kernel; compute-sanitizer muestra el acceso; revise los tamaños de los tensores capturados con `maskloom check`; actualice el controlador
doctor-device-lost = El controlador perdió la tarjeta, u otro proceso la tiene en exclusiva. Los programas no pueden arreglarlo.
    .fix = nvidia-smi; dmesg | grep -i xid nombra el fallo; reinicie la tarjeta o la máquina; pida otra al proveedor si es alquilada
doctor-nccl = Falló una operación colectiva o un rank no llegó: se interrumpió, tomó otra rama, o tiene otros tensores. Con context parallel también donde los ranks tienen distinto número de tokens.
    .fix = mire el primer rank que terminó; NCCL_DEBUG=INFO; TORCH_NCCL_TRACE_BUFFER_SIZE para ver qué esperaba cada rank; las mismas longitudes en todos los ranks
doctor-shared-memory-worker = El /dev/shm del contenedor es demasiado pequeño para los workers del data loader.
    .fix = docker run --shm-size=16g (o --ipc=host), o num_workers=0
doctor-compiled-cpu = Inductor compila C++ para la CPU, y falta el compilador u OpenMP.
    .fix = apt install build-essential (macOS: brew install libomp; Windows: las herramientas de C++ de Visual Studio)
doctor-read-only-cache = Los kernels compilados se escriben en ~/.triton y /tmp/torchinductor_USER, y ese disco está lleno o es de solo lectura.
    .fix = TRITON_CACHE_DIR y TORCHINDUCTOR_CACHE_DIR en una carpeta con espacio; df -h; la caché propia de Maskloom: MASKLOOM_CACHE
doctor-flex-same-buffer = FlexAttention compilado para una CPU rechazaba q, k y v que son vistas de un mismo búfer, como los trozos de una proyección. PyTorch 2.15 los copia.
    .fix = actualice a PyTorch 2.15, o key = key.clone() y value = value.clone() antes de la llamada
doctor-flex-symbolic-length = Compilado para longitudes que cambian, FlexAttention de las primeras versiones de PyTorch 2.5 escribía el nombre de una longitud simbólica (s0, s1) en las opciones de su kernel.
    .fix = torch.compile(flex_attention, dynamic=False), o un PyTorch más nuevo
doctor-captured-gradients-refused = PyTorch 2.5 no calcula gradientes de los tensores que captura un mod, como un sesgo aprendido. Las versiones posteriores sí en un score_mod; un mask_mod no los tiene en ninguna.
    .fix = actualice PyTorch para la tabla de un score_mod; tensor.detach() en un mask_mod
doctor-flex-on-mps = En la GPU de Apple, FlexAttention de PyTorch 2.15 es solo para inferencia: allí no tiene retropropagación, y acepta float32, float16 y bfloat16.
    .fix = entrene allí con sdpa; para inferencia torch.no_grad()
doctor-flex-cpu-dtype = Compilado para una CPU, FlexAttention solo acepta float32, float16 y bfloat16.
    .fix = query.float(), key.float(), value.float(); float64 funciona sin compilar
doctor-dtensor-mixed = Con paralelismo de tensores o FSDP2, un tensor de la operación es un DTensor y otro uno corriente, a menudo una tabla que captura un mod, una de posiciones o una máscara.
    .fix = atienda sobre tensores locales: q.to_local(), solo con las cabezas de este rank; cree tablas y BlockMasks como tensores corrientes dentro de esa llamada
doctor-mod-not-pickled = Un BlockMask se envía a otro proceso (workers de DataLoader, multiprocessing, torch.save) con su mask_mod, y una función dentro de otra no se puede enviar.
    .fix = envíe la tabla, como los números de documento, y cree el BlockMask en el proceso que lo usa; o defina el mod al nivel del módulo
doctor-compile-flag-notice = Es un aviso: create_block_mask(..., _compile=True) aún funciona en PyTorch 2.15 y se quitará más adelante.
    .fix = torch.compile(create_block_mask)(mask_mod, B, H, q_len, kv_len)
doctor-flash-4-too-old = El backend FLASH de FlexAttention construye un kernel de flash-attn 4: ese paquete es demasiado antiguo para un número que captura el mod, o su plantilla no admite este mod.
    .fix = pip install --pre -U flash-attn-4 (con CUDA 13 "flash-attn-4[cu13]"), o kernel_options={"{"}"BACKEND": "TRITON"{"}"}
doctor-flash-impl-activated = activate_flash_attention_impl puso FlashAttention-3 o -4 en lugar del kernel flash de SDPA. El final del mensaje dice qué no acepta (dropout, una tarjeta, una disposición), o que el nombre es desconocido.
    .fix = torch.nn.attention.restore_flash_attention_impl() devuelve el propio de PyTorch; list_flash_attention_impls() nombra los que hay
doctor-varlen-cudnn = sdpa_kernel permite solo cuDNN, y cuDNN no acepta esta llamada a varlen_attn. Las líneas bajo el mensaje enumeran las condiciones incumplidas.
    .fix = permita también SDPBackend.FLASH_ATTENTION, o quite sdpa_kernel
doctor-gradient-nan = detect_anomaly encontró NaN en un gradiente: en la atención suele ser una fila cuyas claves oculta todas -inf, o float16 que se desbordó.
    .fix = `maskloom check` cuenta las filas vacías: que cada fila se conserve a sí misma; use bfloat16; limite las puntuaciones (soft cap)
doctor-mask-is-float = `&`, `|` y `~` combinan booleanos o enteros, y un lado es un float: una máscara aditiva, o 0.0 y 1.0 en vez de False y True.
    .fix = mask.bool() donde 1 conserva; máscaras aditivas: (mask == 0); en un mod compare antes: (t[q_idx] > 0) & (q_idx >= kv_idx)
doctor-linear-dtype = Una capa lineal tiene pesos de un formato y una entrada de otro: a menudo la atención anterior devolvió float32, o esta parte corre fuera de autocast.
    .fix = convierta la salida de la atención: out.to(weight.dtype); o ponga la llamada bajo torch.autocast
doctor-model-without-flash = Esta clase de transformers no está escrita para flash-attn: cada clase tiene su propia marca.
    .fix = attn_implementation="sdpa" o "eager"; un transformers más nuevo puede tenerlo
doctor-model-without-sdpa = Esta clase de transformers no tiene camino SDPA, porque SDPA no puede lo que necesita: gpt-oss tiene sinks.
    .fix = attn_implementation="eager" o "flex_attention"; el adaptador exportado y `maskloom.integrations` también tienen sinks
doctor-model-names-flash-kernels = Es una advertencia: este modelo solo funciona con los kernels flash que enumera el mensaje (gpt-oss: los que tienen sinks), y transformers tomó uno de ellos en lugar del suyo.
    .fix = no hay que hacer nada; nombre uno de la lista en attn_implementation, y la advertencia desaparece
doctor-flash-model-on-cpu = El modelo se cargó primero en la memoria del ordenador, donde flash-attn no funciona. Con una tarjeta es una advertencia, sin ella un error.
    .fix = device_map="cuda" o model.to("cuda"); sin tarjeta attn_implementation="sdpa"
doctor-flash-casts-notice = Es un aviso: normas que se mantienen en float32 (peft lo hace) volvieron q, k y v float32, y transformers los convierte para flash-attn en cada capa. Los resultados son correctos; cuesta algo de tiempo.
    .fix = cargue también las normas en bfloat16, o déjelo así
doctor-attention-not-exchangeable = La clase se escribió antes de la tabla de atenciones de transformers (a menudo código remoto), así que set_attn_implementation y una atención registrada no le llegan.
    .fix = pase attn_implementation a from_pretrained, o use la clase de transformers misma (trust_remote_code=False); el adaptador exportado vigila las llamadas a SDPA en tales modelos, y su informe dice qué capas se enmascararon
doctor-patch-of-another-transformers = Un entrenador o complemento cambia clases y funciones de transformers por su nombre, y esta versión las llama de otro modo: 4.43 sacó _flash_attention_forward de las clases, 4.48 quitó las clases ...FlashAttention2.
    .fix = instale el transformers que nombran los requisitos del entrenador, o un entrenador más nuevo
doctor-attention-class-of-another-diffusers = Código escrito para la clase común Attention de diffusers encuentra una versión cuyos modelos tienen clases propias (FluxAttention, WanAttention): les faltan atributos como `scale`. El código para 0.33 falla así con 0.35.
    .fix = pip install diffusers==0.33.1 para ese código, o lea attn.head_dim ** -0.5 en vez de `scale`; un adaptador exportado funciona con ambas
doctor-processors-count = set_attn_processor recibió un diccionario con otro número de entradas que capas de atención tiene el modelo; las de atención cruzada también cuentan.
    .fix = constrúyalo de model.attn_processors.keys(), o pase un procesador para todas las capas
doctor-torch-libraries-not-loaded = La extensión se importó antes que torch, cuyas bibliotecas necesita. Con torch importado primero suele aparecer otro error, que es el verdadero.
    .fix = python -c "import torch, flash_attn" lo muestra; `maskloom doctor --explain` acepta ese mensaje
doctor-flash-heads-divide = Las cabezas de consulta no son múltiplo de las de clave, o el eje de cabezas está en otro sitio que el que quiere el kernel: entonces el mensaje compara tokens. Hasta diffusers 0.39 `_native_flash` transponía k y v dos veces en su retropropagación bajo context parallel.
    .fix = flash-attn quiere [batch, tokens, heads, head_dim], SDPA [batch, heads, tokens, head_dim]; actualice diffusers, o use `flash` o `native` con Ulysses
doctor-flash-backward-head-dim = La retropropagación de este flash-attn no cabe en la memoria compartida de las tarjetas de consumo con head_dim mayor que 192. Desde flash-attn 2.5.5 cabe sin dropout.
    .fix = actualice flash-attn y ponga dropout en 0; o sdpa o flex
doctor-packed-model-without-flex = torchtune empaqueta con BlockMasks donde haya FlexAttention, y la atención de este modelo (Gemma 2) solo acepta máscaras densas.
    .fix = packed=False en la configuración del dataset, u otro modelo
doctor-selective-checkpointing = torchtitan de 2025 rechaza FlexAttention junto con el checkpointing selectivo de activaciones, para el que PyTorch no tenía regla (pytorch#147879).
    .fix = activation_checkpoint.mode = "full", o un torchtitan más nuevo con su PyTorch
doctor-transformer-engine-no-backend = TransformerEngine descartó todos sus kernels para estas entradas: sinks (learnable softmax) en disposición empaquetada `thd` o bajo context parallel, una máscara o sesgo, atención fp8, o un flash-attn fuera de su rango de versiones.
    .fix = NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 imprime la razón de cada kernel; con sinks use `bshd` sin empaquetar
doctor-video-without-attention-package = La atención de FramePack y musubi-tuner necesita flash-attn, SageAttention o xformers para un lote de descripciones de distinta longitud, y no hay ninguno.
    .fix = batch 1; o --sdpa --split_attn en musubi-tuner; o instale flash-attn
doctor-image-black = La imagen contiene NaN. A menudo las puntuaciones de 8 bits de SageAttention no sirven para este modelo o sus pesos fp8, o un VAE se desborda en float16.
    .fix = ejecute una vez sin SageAttention (es un ajuste del programa o un nodo); el VAE en bfloat16 o float32
doctor-xfuser-processor = xDiT sustituye procesadores de atención por el nombre de su clase y no conoce este: su versión es para otro diffusers.
    .fix = instale el diffusers que nombran los requisitos de xDiT, o un xDiT más nuevo
doctor-diffusers-cp-takes = El context parallel de diffusers rechaza is_causal y cabezas agrupadas; ring_anything y los backends de longitud variable con ring_degree mayor que 1 no aceptan máscara; un kernel del hub debe tener las entradas que llama.
    .fix = ulysses_degree en vez de ring_degree para máscaras, con `native` o `_native_cudnn`; para un kernel del hub pip install -U kernels y borre su copia
doctor-accelerate-parallel = El context parallel de accelerate (cp_size) corre dentro de FSDP2 con dp_shard_size mayor que 1 o como única dimensión; su sequence parallel (sp_size, DeepSpeed) acepta sdpa y flash-attn, ni eager ni flex, así que ningún BlockMask pasa.
    .fix = accelerate config con FSDP versión 2; dp_replicate_size=1; para una máscara propia el context parallel de PyTorch o los planes de Maskloom
doctor-rocm-experimental = En esta tarjeta AMD la atención fusionada de PyTorch está apagada si no se pide, y SDPA materializa las puntuaciones.
    .fix = export TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1 antes de iniciar Python; compare un paso con y sin ella
doctor-model-takes-no-block-mask = El forward del modelo no tiene ese parámetro: los modelos de transformers y diffusers aceptan attention_mask, y solo pasan un BlockMask si llaman a flex_attention.
    .fix = attention_mask=block_mask con attn_implementation="flex_attention" (transformers); o use(model) del adaptador exportado
doctor-torch-missing = El Python que se ejecuta no tiene PyTorch: se instaló en otro entorno, o en ninguno. Si a `torch` le siguen un punto y otro nombre, PyTorch está y le falta esa parte: es otra versión que la del código.
    .fix = python -m pip install torch, con el Python que ejecuta el código; para los backends `torch:*` de Maskloom `maskloom doctor` nombra ese Python, y MASKLOOM_PYTHON o --python otro
doctor-maskloom-missing = El Python que se ejecuta no encuentra un módulo de Maskloom. El programa solo no trae el módulo `maskloom`. `maskloom._native` falta donde Python se ejecuta en la carpeta `python` del repositorio, cuyas fuentes importa; `maskloom_sidecar` está en la carpeta `sidecar` de una exportación.
    .fix = python -m pip install . en una copia del repositorio de Maskloom, con el Python que ejecuta el código, y ejecútelo en otra carpeta; para el sidecar PYTHONPATH=EXPORT/sidecar
doctor-packed-beside-mask = transformers busca muestras empaquetadas en position_ids que vuelven a empezar solo donde attention_mask es None y no hay caché. Con una máscara 2-D al lado, también de unos, la máscara es causal sin más, y cada muestra ve las anteriores.
    .fix = no pase attention_mask, o pase una máscara 4-D o un BlockMask de los documentos, que se toma tal cual: preset `packed_documents`; `maskloom compare` cuenta las celdas que difieren
doctor-flex-cuda-graphs = Lo que devuelve una función compilada con CUDA graphs (mode="reduce-overhead") lo sobrescribe su próxima ejecución: un BlockMask de un create_block_mask compilado no dura hasta el paso siguiente. Un grafo que usted captura sigue leyendo la máscara de su captura: una máscara de bloques creada de nuevo para una llamada no está en el grafo.
    .fix = cree la máscara fuera de la función compilada, sin mode="reduce-overhead", y deje sus tensores en el mismo sitio en todos los pasos; torch.compiler.cudagraph_mark_step_begin() antes de cada paso; o mode="default" (SimpleTuner: "dynamo_mode": "default")
