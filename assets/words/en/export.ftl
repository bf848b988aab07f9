# The page Export: the program in use, the files to write, what is done next.
export-creating = creating the files
export-changes = How the file changes
export-files = { $n ->
    [one] 1 file
   *[other] { $n } files
}
export-files-per-head = { $files }, with a mask for each of { $heads } heads
export-question = What do you use?
export-where = Where to
export-folder = Folder
export-config = The trainer's config.json
export-config-none = none: a new one
export-browse = Browse…
export-browse-name = Browse: { $name }
export-in-place-tip = { $file } gets the value; the old file is kept next to it as { $name }.bak.
export-in-place = Change this file
export-copy = Write a changed copy: { $path }
export-copy-tip = The file itself is not changed.
export-no-mask = the choices without a mask
export-setting = Attention setting
    .tip = The value that the trainer's configuration gets. flex is set only if you choose it.
export-to-write = Files to write
export-write = Write { $name }
export-shows = Shows its content.
export-replaced = { $n } exist and would be replaced: { $names }.
export-replaced-more = { $n } exist and would be replaced: { $names } and { $more } more.
export-written = Written
export-open-folder = Open folder
    .tip = In the system's file manager.
export-count-in = { $files } in
export-has-value = has the new value:
export-old-file = old file:
export-had-value = already had the value:
export-next = Next
export-copy-lines = Copy the { $kind } lines
export-file-tip = { $what } ({ $bytes } bytes)
export-has-setting = The file already has the setting and is not changed.
export-binary = machine code or other binary data

## Answers
use-simpletuner = SimpleTuner
    .words = the trainer's config.json and a sidecar; the trainer itself is unchanged
use-diffusers = diffusers
    .words = one call applies the mask to a pipeline's transformer
use-transformers = transformers
    .words = one call applies the mask to a loaded model
use-pytorch = PyTorch of my own
    .words = a module with the mask_mod, score_mod and block mask
use-kernels = The CUDA kernel
    .words = compiled for sm_80 and sm_90a, as a PyTorch operator; needs NVRTC here, no GPU
use-mask = Only the mask
    .words = the design, its block lists, a picture and a report
use-everything = Everything
    .words = all files except the kernel

## The button
export-replace-them = Replace them
export-write-files = Write the files
