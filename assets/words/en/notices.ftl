# What the window says has been done, and the titles of what failed.

## Documents and layers
done-order = The order of layers that combine in different ways changes what the mask keeps; Undo brings it back.
done-length = { $n } tokens, the length of { $name }.
done-lengths = { $q } x { $kv } tokens, from line { $line } of the code.
done-added = { $path } was added to { $name } as a layer; Undo removes it.
done-stays = { $path } stays as it is until you save.
failed-read = { $path } could not be read
done-read-again = Read { $path } again. Undo restores what was here.
done-connected = Connected to { $host }.
done-cancelled = The run was cancelled.
done-begins-painted = The mask now keeps only what is painted; Undo restores all cells.
done-begins-drawn = The mask now keeps only what is drawn; Undo restores all cells.
failed-save = The document could not be saved
done-saved = Saved { $path }
done-saved-run = Saved the run { $path }
failed-save-run = The run could not be saved
done-saved-script = Saved { $path }, and maskloom_capturing beside it.
failed-save-script = The capture script could not be saved
done-saved-html = Saved { $path }. Maskloom opens it again.
failed-save-html = The page could not be saved
failed-document = The document could not be read
done-restored = { $name } is restored; it is still not saved.
failed-open = { $path } could not be opened
done-opened = Opened { $path }. { $before }
done-imported = Imported { $path }. { $before }
done-inputs = Runs use q, k and v from { $path }: { $names }.
done-run = Opened the run { $path } with its document { $name } ({ $what }). Undo restores the previous document.
done-run-copy = of a smaller copy, { $sizes }
failed-export = The export stopped
done-exported = Exported { $files } to { $folder }
done-changed = Changed { $path }; the old file is kept next to it as { $name }. Wrote { $files } to { $folder }
done-had-setting = { $path } already had the setting and was not changed. Wrote { $files } to { $folder }
done-read = Read { $path }
done-installing = Installing NVRTC; this takes about a minute.
done-new = A new document. Undo restores the previous one.
done-compared = Compared with { $name } as it is now. Change it, undo, or open another document.
done-linked = Linked files are read again.
done-presentation = Presentation: F11 restores the window.
done-nvrtc = NVRTC is installed in { $folder }.
done-undo-restores = Undo restores the previous document.
done-keeps-tab = The document before it keeps its tab.
done-unsaved = { $name } was not saved; File > { $command } lists it.
done-undone = Undone: { $step }
done-again = Done again: { $step }
done-detached = The race goes on as job { $id }, also without this window. Jobs lists it.
done-job = Job { $id } is { $state }; { $done } of { $steps } results are kept.
done-jobs-removed = { $jobs } jobs are removed.
failed-open-there = { $path } on { $target } could not be opened
done-opened-there = Opened { $path }; it has no file here yet. { $before }
mending-again = The window's session has started again
done-code = The code is copied.
done-picture = The picture is copied.
done-page = The page's picture is copied.
sweep-plain = values such as a window stay
sweep-grids = grids shrink together with the values that count along them

## Steps
step-open = Open { $name }
step-rename = Rename the document
step-about = Edit the description
step-axes = Change the axes
step-settings = Change the settings
step-add = Add { $name }
step-remove = Remove a layer
step-move = Reorder layers
step-name = Rename a layer
step-enable = Enable a layer
step-disable = Disable a layer
step-combine = Change how a layer combines
step-heads = Change the heads of a layer
step-layer = Change a layer
step-change = Change { $name }
step-code = Edit code
step-paint = Paint
step-erase = Erase
step-nothing = Nothing

## A race over lengths
sweep-heads = { $n } heads; { $moves }
sweep-some-heads = { $n } of { $all } heads; { $moves }

## What the worker says that it does
work-backends = looking for backends
work-inputs = creating the inputs
work-blocks = counting the mask's blocks
work-mods = checking the mods with the interpreter
work-reference = computing the float64 reference
work-rounding = measuring the effect of rounding
work-warming = warming up
work-gradients = computing gradients
work-python = waiting for Python, which has said nothing yet
work-round = timing round { $n } of { $all }
work-timed = timed { $n } of { $all } rounds
work-preparing = preparing { $name }
work-compiling = compiling { $name }
work-done = { $name } is done

## Why a backend is faster
why-short = { $why }; so short that launching counts
why-skips-dense = it { $share }; the other reads the mask as a dense tensor and skips nothing
why-skips-scores = it { $share }; the other writes every score to memory
why-skips-plain = it { $share }; the other computes all of them
why-computes = computes { $share }% of the tiles
why-skips = skips empty blocks
why-both-skip = both skip empty blocks: the difference is the kernel's own
why-both-masked = both skip what is masked: the difference is the kernel's own
why-both-dense = both read the mask as a dense tensor: the difference is the kernel's own
why-dense-skips = it reads the mask as a dense tensor and skips nothing; the other skips empty blocks
why-scores = it writes every score to memory and reads it again
why-dense-scores = it reads a dense mask, but writes no scores; the other writes every score to memory
why-other-scores = the other writes every score to memory and reads it again
why-same = the same arithmetic: the difference is the kernel's own
why-nothing-masked = nothing is masked: the difference is the kernel's own
why-other-dense = the other reads the mask as a dense tensor and skips nothing
why-dense = it reads the mask as a dense tensor and skips nothing
why-launch = launch-bound: { $call } a call, { $own } on the GPU
