# Dialogs over the window.
cancel = Cancel
open = Open
save = Save
there-are-none = There are none.

## Where the worker runs
connect-this = This machine
connect-ssh = A server by ssh
connect-slurm = A Slurm job
connect-container = A container
connect-title = Connect a GPU
connect-words = A worker does all work on devices. Enter the name of a target, or the command that starts a worker; empty means this machine.
connect-command = Launch command
    .hint = this machine
connect-such = Such as:
connect-no-command = no command
connect-python = Python with PyTorch, there
    .hint = found by the worker
connect-give-up = Give up after
connect-seconds = Seconds to wait
    .tip = Use more seconds for a job that waits in a queue.
connect-without = without an answer
connect-go = Connect
connect-before = Connected before. Fills the fields.
connect-forget = Removes it from this list.
connect-forget-name = Forget { $title }
connect-targets = Targets:
connect-by-ssh = By ssh:
connect-ssh-tip = { $name } of ~/.ssh/config, where maskloom must be installed.
connect-waiting = Waiting for a worker on { $target }: { $waited } s of { $limit } s
connect-still = Still connected: { $target }.
connect-starting = Starting a worker on { $target }
connect-connected = Connected to { $host } (Maskloom { $version })

## A file that another program changed
difference-title = The file and this document
difference-words = Lines with - are only in the file, lines with + only in this document.
difference-later = Decide later
outside-reload = Reload
    .tip = Reads the file; Undo restores this document.
outside-keep = Keep mine
    .tip = The next save writes over the file.
outside-show = Show the difference
    .tip = Shows the lines that differ.
typed-not-taken = { $name }: `{ $text }` is not taken. Correct it, or give the command again to go on without it.
outside-changed = { $name } was changed by another program.
outside-gone = { $name } is gone: it was deleted or moved, or its disk was removed.
outside-again = Save it again
    .tip = Writes this document to the same place.
outside-unsaved = Keep it unsaved
    .tip = The document stays open, and counts as unsaved until you save it.

## Closing while unsaved documents cannot be kept
leave-title = Unsaved documents would be lost
leave-words = These documents are not saved, cannot be kept for the next start, and would be lost: { $names }.
leave-save = Saves the open document in a file; then close the window again.
leave-anyway = Quit anyway
    .tip = Closes it; what is not saved is lost.
leave-tab = This document is not saved, cannot be kept among the unsaved documents, and would be lost with its tab: { $names }.
    .save = Saves the document in a file; then close the tab again.
    .anyway = Close anyway

## Installing NVRTC
fetch-title = Fetch NVRTC?
fetch-words = NVRTC compiles the GPU kernels. This command would install it into Maskloom's own folder:
fetch-outside = It changes nothing outside { $folder }.
fetch-yes = Fetch it

## The gallery
gallery-title = Gallery
gallery-hint = Search names, models and descriptions; Enter opens the first
gallery-filter = Filter
gallery-own = Documents that you save or open are listed here.
gallery-folder = Presets of yours: .json files in { $folder }
gallery-none = No document matches these words.
gallery-all = All
gallery-recorded = { $from }: flex { $ms } ms
gallery-recorded-than = { $from }: flex { $ms } ms, { $words }
gallery-no-picture = No picture: { $why }
gallery-language = Language models
gallery-images = Images
gallery-video = Video
gallery-encoders = Encoders
gallery-patterns = Patterns
gallery-yours = Yours

## Jobs
jobs-title = Jobs
jobs-words = They go on when this window closes or the line is cut.
jobs-connected = { $target } ({ $host }), connected
jobs-remove = Remove what is over
    .tip = Removes the jobs that are over, with their results.
jobs-connect-tip = Makes it the worker's machine; the present one stays until it answers.
jobs-connect-name = Connect { $title }
jobs-silent = not reachable: { $why }
jobs-asking = asking the other targets
jobs-open-name = Open { $title }
jobs-end = End
jobs-end-name = End { $title }
jobs-of = { $state }, { $done } of { $steps }
jobs-left = { $state }, { $left }
jobs-seconds = { $state }, { $seconds } s
jobs-another = { $state }, another user's
job-running = running
job-ended = ended
job-cancelled = cancelled
job-lost = ended without a word (killed, or the machine was started again)
job-elsewhere = on another machine

## Lists
lists-unchanged = The document is unchanged.
lists-no-messages = There are no messages yet.
lists-seconds = { $n } s ago
lists-minutes = { $n } min ago
lists-message = { $word }, { $ago }: { $message }

## The palette
palette-preset = Open the preset { $name }
palette-pattern = Add the pattern { $name }
palette-cell = Go to the cell q { $q }, kv { $kv }
palette-layer = Select { $name }
palette-parameter = Parameter { $name } of { $layer }
palette-setting = Setting { $name }
palette-open = Open { $name }
palette-token = “{ $said }”, token { $token }
palette-query = “{ $said }”, query { $token }
palette-key = “{ $said }”, key { $token }
palette-axes = axes and lengths
palette-batch = batch
palette-heads = heads
palette-scale = scale
palette-fast = fast math, approximate tanh
palette-backends = backends that race
palette-rounds = timing rounds
palette-inputs = inputs of a race, seed
palette-capture = capture, mask loss, suggested masks
palette-parallel = context parallel, several GPUs, ranks, all-gather
palette-trainer = attention setting of a trainer
palette-hint = A command, preset, layer, parameter, file, token, or a cell as q, kv
palette-name = Command
palette-none = No command matches.
palette-preset-tip = Opens the preset; undo restores the document.
palette-cell-tip = Centres and pins it.
palette-layer-tip = Shows it in the inspector.
palette-setting-tip = Shows the place of the setting.

## Pasting
paste-title = Paste FlexAttention code
paste-words = A mask_mod, a score_mod, a lambda, or functions that return them, with the constants and tensors they use.
paste-name = FlexAttention code
paste-new = As a new document
paste-layers = As layers of { $name }
paste-use = Use this code
paste-nothing = Nothing pasted yet.
paste-no-mod = No mod found yet; the code is added as a layer with its errors.
paste-wrong = Not right yet, line { $line }:
paste-a-mask = a mask
paste-a-score = a score mod
paste-the-mask = the mask { $name }
paste-the-score = the score mod { $name }
paste-with = { $what } with { $args }
paste-and = { $what } and { $more }
paste-adds = Adds { $what }.
paste-tokens-line = { $q } x { $kv } tokens, from line { $line }.
paste-no-numbers = The sizes in line { $line } are not plain numbers: set the axes afterwards.
paste-tokens-of = { $n } tokens, the length of { $name }.

## Paths
path-exists = This file exists. Save again to replace it.
path-on = On
path-on-name = On { $name }
path-stays = A capture stays there: pictures and statistics come. Other files are opened here.
path-path = Path
path-browse-tip = Opens the system's file dialog, if there is one.
path-hidden = Hidden files
path-above = The folder above
path-none = No such files here.
path-more = and { $n } more, whose names can be typed
path-kinds = documents, code, tensors
path-open = Open a document, code, a run or tensors
path-config = Open a trainer's config.json
path-save = Save the document
path-save-run = Save the run
path-save-script = Save the capture script
path-save-html = Save the design as one HTML file
path-link = Link a Python file with FlexAttention code
path-link-yes = Link

## New lengths
resize-title = The lengths change
resize-question = From { $old } to { $new } tokens. What should happen to the drawn layers?
resize-keep = Keep them
    .tip = Every cell, rectangle and band stays at its tokens.
resize-scale = Scale them
    .tip = Painted cells, rectangles, bands and distance curves are scaled to the new lengths.
resize-repeat = Repeat them
    .tip = Painted cells are repeated along both axes; everything else stays at its tokens.

## A trainer's configuration
trainer-title = A trainer's configuration
trainer-unset = not set
trainer-today = Today: { $words }
trainer-first = First, the choices without a mask
trainer-shape = { $axis } = { $tokens } tokens, { $heads } heads, { $kv } kv heads, head_dim { $dim }
trainer-race = Race the choices that need no mask
trainer-race-tip = { $names } at the model's real shape. The fastest may already be sufficient.
trainer-unknown = The shape of this model family is unknown: start from a preset.
trainer-or-preset = Or start from a preset for this model
trainer-preset = Start from a preset
trainer-export = Export shows what it would change in this file before it writes, and keeps a copy.

## Documents that were not saved
unsaved-title = Documents that were not saved
unsaved-words = These documents were replaced before they were saved. The newest are first.
unsaved-nothing = This window keeps nothing between starts.
unsaved-most = The newest { $n } are kept until you discard them.
unsaved-open-name = Open { $name }
unsaved-discard = Discard
unsaved-discard-name = Discard { $name }
unsaved-for-good = Discard for good
unsaved-for-good-name = Discard for good { $name }
unsaved-last = last: { $step }, { $ago }
unsaved-older = an older state is in { $path }
unsaved-moment = a moment ago
unsaved-minutes = { $n } minutes ago
unsaved-hours = { $n } hours ago
unsaved-days = { $n } days ago
