# The inspector, the layers' parameters, the axes, the curve, the comparison, the heads.

## Parameters
args-file = File for { $name }
args-about = About this pattern
args-file-hint = file.safetensors[:name] or .npy
args-capture = From the capture
    .tip = A tensor of the open capture with the shape of this argument or of the document.
args-fit = { $count } of its tensors fit, { $others } have other shapes
args-capture-name = { $name } from the capture
args-default = default
args-follow = follow { $name }
args-resets = Resets the value to its default.
args-range = {"["}{ $min } to { $max }]
args-reset = Reset { $name }
args-needed = needed
args-follows = follows { $name }
args-choose = choose a pattern
args-tensor = a tensor { $shape } of { $dtype }

## Axes
axes-query = Query axis
axes-key = Key axis
axes-cross-tip = Keys and values have a separate axis.
axes-cross = cross-attention
axes-text = Adds a run of tokens.
axes-image = Adds tokens of height x width.
axes-video = Adds tokens of frames x height x width.
axes-add-text = + text
axes-add-image = + image
axes-add-video = + video
axes-add = { $axis }: { $text }
axes-part = { $axis }: name of part { $n }
axes-part-tip = The part's name, as rulers show it.
axes-extent = { $axis }: extent { $n } of { $name }
axes-up = up
axes-up-tip = Moves it before the part above.
axes-up-name = { $axis }: { $name } up
axes-remove-tip = Removes this part.
axes-remove-name = { $axis }: remove { $name }

## Document ids
make-menu = Make it
make-words = { $n } numbers, the document of each token
make-mean = tokens of a document
make-mean-name = Tokens of a document
make-seed = seed
make-seed-name = Seed of the lengths
make-packed = Packed documents of this mean
    .tip = Random lengths, as in packed batches; the last document is cut.
make-equal = Equal documents
    .tip = Documents of this many tokens; the last one is cut.
make-count = A number for each token
    .tip = 0, 1, 2 and so on.
make-fills = Fills it with document ids.
make-name = Make { $name }

## The compared mask
differ-counting = counting, { $share }
differ-same = keeps the same cells as { $name }
differ-cells = { $n } cells differ ({ $share })
differ-planes = of { $batch } batch entries and { $heads } heads
differ-more = and { $n } more
differ-queries = queries
differ-keys = keys
differ-now = now only
differ-then = then only
differ-tip = now: this design; then: { $name }
differ-regions = { $n } more regions
differ-place = q { $q }, kv { $kv }
differ-batch = batch { $b }, { $place }
differ-head = head { $h }, { $place }
differ-shows = Shows the cell.

## The curve
curve-distance = distance
curve-bias = bias
curve-name = Distance curve
curve-at = distance { $x }, bias { $y }
curve-drag = Drag to draw or to move a point.
curve-drag-tip = Drag to draw or to move a point; double-click a point to remove it.
curve-points = { $n } points
curve-distance-of = Distance of point { $n }
curve-bias-of = Bias of point { $n }
curve-remove = Remove
curve-remove-name = Remove point { $n }
curve-add = Add a point

## A layer's contents
detail-line = line { $line }, column { $column }
detail-rectangle = Rectangle, in tokens
detail-band = Band: kept distances q_idx - kv_idx
detail-bias = Bias by distance q_idx - kv_idx
detail-learns-not = can learn nothing: { $why }
detail-learns-none = can learn nothing: it reads no float tensor
detail-learns = can learn: { $tensors }
detail-learns-tip = Captured float tensors get a gradient when the exported module is trained, and when a race computes gradients.
detail-rows = rows from
detail-columns = columns from
detail-rows-first = First of the rows
detail-rows-end = End of the rows
detail-columns-first = First of the columns
detail-columns-end = End of the columns
detail-up-to = up to
detail-from = from
detail-to = to
detail-distance-from = Distance from
detail-distance-to = Distance to
detail-painted = Painted cells
detail-cell = tokens a cell
detail-cell-rows = Rows of a cell
detail-cell-columns = Columns of a cell
detail-cell-tip = Choose the size of cells before the first stroke.
detail-strokes = { $strokes }, { $rectangles }
detail-n-strokes = { $n ->
    [one] 1 stroke
   *[other] { $n } strokes
}
detail-n-rectangles = { $n ->
    [one] 1 rectangle
   *[other] { $shown } rectangles
}
detail-brush = The brush (B) keeps cells, the eraser (E) removes them.
detail-found = functions found
detail-found-name = Functions found
detail-entry = entry
detail-entry-name = Entry
detail-entry-tip = The function to use; empty: the only or last one of the right kind.
detail-tensors = Captured tensors ({ $n })
detail-tensors-file = File of captured tensors
detail-linked = Linked file
detail-linked-path = Linked path
detail-linked-words = Read again after every change (F5: immediately).

## The document's shape
problem-name = Name
problem-about-hint = The modelled attention and its source.
problem-about = About
problem-batch = batch
problem-heads = heads
problem-scale = scale
problem-scale-is = scale { $scale }
problem-fast = fast math
problem-own-dim = head_dim_v of its own
problem-as-dim = as head_dim
problem-cpu-only = On the CPU only.
problem-sums = In and out; sums are float32.
problem-layout = layout
problem-square = BLOCK_SIZE, square
    .tip = Square blocks; PyTorch's default is 128x128.
problem-tanh = approximate tanh
    .tip = Score mods on the GPU use its approximate tanh: one instruction instead of two, with a relative error up to 2^-11. A soft cap of 50 moves a score of 5 by at most 0.0025.

## The cards' further lines
kept-against = against { $name }: kept { $kept }, computed { $computed }
kept-then-now = { $then } then, { $now } now
kept-cells = { $n } cells kept
kept-blocks = { $full } full blocks of { $size }: computed without mask_mod; { $partial } partial: mask_mod decides each cell; { $empty } empty: skipped
kept-computed = { $computed } of all cells are computed, { $vain } of those in vain
kept-sparsity = sparsity as PyTorch counts it: { $words }
kept-row = blocks a row: { $min } to { $max }, mean { $mean }
kept-empty = { $rows } rows keep no key: their output is 0 and their lse -inf
kept-finding = finding the blocks
kept-partial = counting the cells of partial blocks
kept-counted = { $n }% counted
kept-one-by-one = Interval analysis does not decide this mask, so its cells are evaluated one by one. The picture does not wait.

## Tools and heads
tools-width = { $words } [ and ], or Alt and the wheel, change the width.
tools-shown-batch = Shown batch entry
tools-shown-head = Shown head
tools-work-heads = Heads to work on
heads-all = all heads
heads-shown = head { $h }, which is shown
heads-first-half = the first half, 0-{ $last }
heads-second-half = the second half, { $first }-{ $last }
heads-selected = the selected ones, { $heads }
heads-or = or
heads-such = such as 0-3, 7; or Ctrl+click in the strip of heads
layer-heads-of = Heads of { $name }
layer-name-of = Name of layer { $id }
tabs-close = Close this document
tabs-new = New document in a tab
tabs-no-file = in no file yet

## What a stroke does
paint-one-head = Head { $heads } only: { $words }
paint-some-heads = Heads { $heads } only: { $words }
paint-first = The first stroke starts from an empty mask: only painted cells are kept.
paint-new = Keeps cells, in a new painted layer.
paint-in = Keeps cells, in { $name }.
paint-restores = Restores cells that { $name } removed, and keeps cells.
paint-removes-new = Removes cells from { $name }, and by a layer above from the other layers.
paint-removes = Removes cells, in { $name }.
paint-removes-above = Removes cells, in a new layer above the others.

## A question of ssh
question-title = Maskloom: a question of ssh
question-answer = Answer
question-send = Answer ssh
