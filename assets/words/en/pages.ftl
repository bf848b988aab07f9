# The pages Cell, Code, Problems and Several GPUs, and what jobs do.

## Cell
cell-errors = The document has errors.
cell-before = State before the error in { $layers }.
cell-no-lengths = The axes have no valid lengths.
cell-b = b of the cell
cell-h = h of the cell
cell-q = q_idx of the cell
cell-kv = kv_idx of the cell
cell-to = { $q } to { $kv }
cell-unpin = Unpin
    .tip = Follows the pointer again (Escape).
cell-every = Every cell is kept.
cell-score-of = score_mod, of a score of 1
cell-scores-stay = Scores stay.
cell-is-kept = kept
cell-is-dropped = dropped
cell-more = and { $n } more
cell-patches = Patches that { $place } attends to
cell-on-canvas = On the canvas
cell-makes-query = A click on a patch makes it the query.
cell-makes-key = A click on a patch makes it the key.
cell-patches-seen = { $name }: { $seen } of { $all } patches
cell-patches-of = Patches of { $name }

## Code
code-linked = The code of { $name } is { $path }: edit the file; it is read again after every save.
code-none = No layer of this document is editable code.
code-mods = CUDA: mods
code-kernel = CUDA: kernel
code-compiler = Compiler
code-steps = Step by step
code-no-kernel = No kernel yet: run on a GPU, or compile here (needs NVRTC, but no GPU).
code-copy-tip = Copies the whole text.
code-stale-tip = The document has changed since this was compiled.
code-smaller-tip = Compiled for the smaller copy that was raced.
code-for = for…
code-registers = { $n } registers
code-shared = { $kb } KB shared memory
code-spilled = { $n } bytes spilled
code-spilled-tip = Some registers spill to local memory.
code-stack = { $n } bytes of stack
code-blocks = { $n } blocks a multiprocessor
code-cached = from the cache
code-compiled = compiled in { $ms } ms
code-silent = The compiler printed nothing.
code-key = key { $key }
code-field = Code
code-apply = Apply the suggestion

## Problems
problems-the-code = the code
problems-made-for = { $name } is made for { $sizes }.
problems-table = `{ $name }` has { $n } entries.
problems-call = Its create_block_mask says so.
problems-sizes = Use the code's sizes
    .tip = Sets the document's lengths, heads and batch to those that the code is made for.

## Several GPUs
gpus-predicted = Predicted time of a layer, forward and backward
gpus-imbalance = imbalance
gpus-received = keys received
gpus-exposed = not hidden
gpus-plan = This plan
    .tip = what Maskloom plans
gpus-imbalance-tip = The slowest GPU's work over the mean of all.
gpus-all-gather = Every key is sent to every GPU.
gpus-needed = Only the key blocks that a GPU's queries list are sent to it.
gpus-heads = Queries, keys, values and outputs are exchanged for heads, in units of an all-gather of the keys.
gpus-exposed-tip = Time of the exchanges that no computation hides.
gpus-others = What other ways do with these masks
gpus-read-in = read in { $release }
gpus-each = Attention of each GPU
gpus-tokens = { $n } tokens
gpus-receives = receives { $bytes }
gpus-sent = Keys and values sent in a forward pass, { $unit } from row to column
gpus-bytes = Bytes between GPUs
gpus-errors = There is no plan for a document with errors.
gpus-planning = planning
gpus-below = below: { $before }
gpus-by-rank = The mask by rank
gpus-in-order = In the order of ranks
gpus-figures = Figures of
gpus-layers = Layers of this mask
gpus-leave-out = Leave out { $name }
gpus-add = Add a kind of layer
gpus-count = GPUs
gpus-bandwidth = GB/s received
    .tip = What a GPU receives of the others: about 214 with NVLink inside of one host, 45 over a 400 Gbit/s network.
gpus-this-mask = this mask

## What the worker does
doing-hello = starting the worker
doing-run = running
doing-map = computing the attention map
doing-compile = compiling the kernel
doing-doctor = examining the setup
doing-detached = asking for jobs
doing-files = reading files there
doing-desk = measuring where the capture is

## The picture's state
frame-no-picture = No picture yet: there are errors in { $layers }.
frame-before = state before the error in { $layers }

## Time that is left
left-almost = almost done
left-seconds = about { $n } s left
left-minutes = about { $n } min left
left-hours = about { $n } h left
left-step = { $step }, { $left }

## Code without a kernel
code-errors = the document has errors: see Problems
