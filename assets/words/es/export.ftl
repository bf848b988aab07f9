# La página Exportar: el programa que se usa, los archivos que se escriben, los pasos siguientes.
export-creating = creando los archivos
export-changes = Cómo cambia el archivo
export-files = { $n ->
    [one] 1 archivo
   *[other] { $n } archivos
}
export-files-per-head = { $files }, con una máscara para cada una de las { $heads } cabezas
export-question = ¿Qué usa usted?
export-where = Adónde
export-folder = Carpeta
export-config = El config.json del entrenador
export-config-none = ninguno: uno nuevo
export-browse = Examinar…
export-browse-name = Examinar: { $name }
export-in-place-tip = { $file } recibe el valor; el archivo antiguo se guarda al lado como { $name }.bak.
export-in-place = Cambiar este archivo
export-copy = Escribir una copia cambiada: { $path }
export-copy-tip = El archivo mismo no cambia.
export-no-mask = las opciones sin máscara
export-setting = Ajuste de atención
    .tip = El valor que recibe la configuración del entrenador. flex se pone solo si usted lo elige.
export-to-write = Archivos que se escriben
export-write = Escribir { $name }
export-shows = Muestra su contenido.
export-replaced = { $n } existen y se reemplazarían: { $names }.
export-replaced-more = { $n } existen y se reemplazarían: { $names } y { $more } más.
export-written = Escrito
export-open-folder = Abrir la carpeta
    .tip = En el gestor de archivos del sistema.
export-count-in = { $files } en
export-has-value = tiene el valor nuevo:
export-old-file = archivo antiguo:
export-had-value = ya tenía el valor:
export-next = Después
export-copy-lines = Copiar las líneas de { $kind }
export-file-tip = { $what } ({ $bytes } bytes)
export-has-setting = El archivo ya tiene el ajuste y no cambia.
export-binary = código máquina u otros datos binarios

## Respuestas
use-simpletuner = SimpleTuner
    .words = el config.json del entrenador y un sidecar; el entrenador mismo no cambia
use-diffusers = diffusers
    .words = una llamada aplica la máscara al transformer de un pipeline
use-transformers = transformers
    .words = una llamada aplica la máscara a un modelo cargado
use-pytorch = Mi propio PyTorch
    .words = un módulo con mask_mod, score_mod y block mask
use-kernels = El kernel CUDA
    .words = compilado para sm_80 y sm_90a, como operador de PyTorch; necesita NVRTC aquí, no una GPU
use-mask = Solo la máscara
    .words = el diseño, sus listas de bloques, una imagen y un informe
use-everything = Todo
    .words = todos los archivos salvo el kernel

## El botón
export-replace-them = Reemplazarlos
export-write-files = Escribir los archivos
