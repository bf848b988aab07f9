# The canvas: its controls, the read-out, the legend, patches, numbers.
canvas-name = Mask canvas
canvas-no-score = No score mod: nothing is added to the scores.
canvas-not-compared = The compared mask has other lengths.
canvas-kept-now = { $words }, { $share } kept now
canvas-incomplete = The picture is incomplete: { $why }
canvas-overview = Overview of the mask
canvas-computing = computing…
canvas-head = head { $n }
canvas-batch = batch { $n }
canvas-heads-tip = Click shows this head. Ctrl+click selects it, Shift+click selects all heads up to it. Painting and new layers then apply to the selected heads.

## Controls
canvas-fit = Fit
    .tip = Shows the whole mask (Home).
canvas-zoom-in = Zoom in
    .tip = Zooms in (plus, or the wheel).
canvas-zoom-out = Zoom out
    .tip = Zooms out (minus, or the wheel).
canvas-size = The drawn size of a token.
canvas-cell-size = cell { $n } px
canvas-pixel-size = 1 px = { $n } tokens
canvas-go = Go to
    .tip = Goes to a cell by its q_idx and kv_idx (Ctrl+L).
canvas-go-name = Go to the cell
canvas-fit-whole = Fit the whole mask
canvas-go-cell = Go to a cell…
canvas-steps = Show its steps
    .tip = The mods evaluated at this cell, on the Cell page.
canvas-near = Go near it
canvas-block = Zoom to its block
canvas-select = Select { $name }, which decides this cell
canvas-copy = Copy q_idx, kv_idx

## The cell under the pointer
cell-block = block ({ $row }, { $col }) { $kind }
cell-block-unknown = unknown: the analysis failed
cell-block-empty = empty
cell-block-beyond = partial (beyond the end), all kept
cell-block-full = full
cell-block-partial = partial, { $share } kept
cell-kept = kept
cell-masked = masked
cell-kept-by = kept by { $layer }
cell-masked-by = masked by { $layer }
cell-as-in = { $words }, as in { $name }
cell-kept-in = { $words }; kept in { $name }
cell-masked-in = { $words }; masked in { $name }
cell-number = { $quantity } { $value } of { $source }, { $words }
cell-bias = bias { $bias }, { $words }
cell-bias-is = bias { $bias }
cell-dropped = dropped

## What colours mean
legend-of = of { $before }
legend-numbers = { $title }: { $ends }
legend-masked = masked
legend-full = full
legend-partial = partial
legend-empty = empty
legend-both = in both
legend-only = kept in { $name } only
legend-now = kept now only
legend-there = kept there only
legend-rows = row keeps all to none
legend-share = share kept
legend-dropped = dropped
legend-kept = kept
legend-kept-partial = kept, in a partial block
legend-kept-full = kept, in a full block
legend-in-empty = in an empty block
legend-bias = bias { $lo } to { $hi }
legend-bias-heads = bias { $lo } to { $hi } over all heads
legend-means = { $bias }, means of a few cells a pixel
legend-stretched = { $side } drawn { $times }x as large
legend-sampled = ≈ some shares are sampled

## Numbers
heat-of = { $quantity } of { $source }
heat-file = { $quantity }, { $file }
heat-empty = The matrix is empty.
heat-name = Heat map: { $title }
heat-ends = { $lo } to { $hi }
heat-ends-more = { $lo } to { $hi } and more
heat-log = Logarithmic
heat-hint = drag moves, the wheel zooms, a double click shows everything
heat-masked = { $words } (masked)

## Shapes under way
tool-corners = { $n } of at least 3 corners; Escape ends it, Backspace takes the last corner back
tool-closes = { $n } corners; Enter, a double click or a click on the first one closes it, Backspace takes the last one back
tool-around = around an area; Escape ends it
tool-line = from { $from } to { $to }
tool-rectangle = { $place }: { $rows } × { $cols } tokens

## Patches
patches-query = Query { $q } = { $place }
patches-head = { $query }, head { $h }
patches-keeps = { $query } keeps { $n } of { $all } keys
patches-no-grid = These keys have no grid: the document does not say which tokens are patches of a picture.
patches-grid-tip = The axis becomes { $axis }. Undo takes it back.
patches-grid-hint = rows x columns
patches-grid-name = Grid of the keys
patches-capture = Take the capture's grid
patches-no-keys = there are no keys
patches-write = write rows x columns, or frames x rows x columns
patches-differ = { $text } is { $n } patches, `{ $name }` has { $len } tokens
patches-frames-of = Frames of { $name }
patches-frames-tip = The kept keys of each frame, beside the frame with most; a click shows it.
patches-frame-of = frame of { $name }
patches-query-frame = Query's frame
    .tip = Shows the frame of the query.
patches-queries = Queries: { $segment }
patches-kept-frame = { $segment }: { $n } of { $all } kept in this frame, { $whole } in all
patches-kept = { $segment }: { $n } of { $all } kept
patches-queries-of = Queries of { $name }
patches-keys-in = Keys in { $name }
