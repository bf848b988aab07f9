# Lessons of the Learn workspace: a title, what it is about, and steps, some with a button.

lesson-two-minutes = Maskloom in two minutes
    .about = From a mask to a race to an export.
lesson-two-minutes-1 = A row is a query, a column is a key. A coloured pixel means that this query may attend to this key. Open a sliding window: each token attends to the last 1024 tokens.
    .button = Open the sliding window
lesson-two-minutes-2 = The headline above shows the kept cells, the cost, the loss and the errors of the mask. Each card leads to its workspace. Move the slider `window` in the Design workspace and watch the first card.
    .button = Go to the slider
lesson-two-minutes-3 = Blue blocks are fully kept, orange blocks partly, dark blocks not at all. Dark blocks are never computed. This saves the time.
    .button = Draw the blocks
lesson-two-minutes-4 = Race the backends: each result is checked against a float64 reference before its time counts. Without a GPU a smaller copy of the same mask races on the CPU.
    .button = Race
lesson-two-minutes-5 = Export first asks which program you use. Then it shows every file and every changed line before it writes.
    .button = Go to Export

lesson-block = What a block is
    .about = Kernels process masks in tiles. The tile size decides which cells are skipped.
lesson-block-1 = A kernel does not start from single cells. It divides the mask into blocks of BLOCK_SIZE of three kinds: full, partial, empty.
    .button = Open the sliding window
lesson-block-2 = With blocks of 1024 nearly every block in the window is partial: many cells are computed and dropped. Watch how the first card's bar turns orange.
    .button = Blocks of 1024
lesson-block-3 = With blocks of 128, PyTorch's default, the border is thin. A full block needs no mask at all. Only the partial blocks evaluate mask_mod for each cell.
    .button = Blocks of 128
lesson-block-4 = Blocks of 16 follow the border closely. But a tensor core works on tiles. Below 64 the hardware idles, so the smallest block is not the fastest.
    .button = Blocks of 16

lesson-partial = Why partial blocks cost
    .about = A block is computed completely if one of its cells is kept.
lesson-partial-1 = A causal mask keeps half of all cells. Only the blocks on the diagonal are partial: each is computed completely, and half of its work is dropped.
    .button = Open the causal mask
lesson-partial-2 = A dilated window keeps every other key, or every fourth. These few cells are spread over every block of the band: nearly all of its blocks are partial, so few are skipped.
    .button = Open the dilated window
lesson-partial-3 = Compare the two figures of the first card: the kept share of the cells, and the shares of full and partial blocks. The blocks determine the kernel's time. In a partial block, bright cells are kept, dim cells are computed and dropped.
    .button = Draw the blocks
lesson-partial-4 = A mask made of whole blocks has no partial blocks: it computes exactly the kept cells.
    .button = Open painted blocks

lesson-speed-up = From mask to speed-up
    .about = Skipped blocks save time only if the kernel skips them.
lesson-speed-up-1 = This window keeps 12% of the cells. `sdpa` with a mask computes every cell and then drops 88% of them; `flex` never loads the empty blocks.
    .button = Open the sliding window
lesson-speed-up-2 = The race lists the fastest first, each with its error against float64 and how it compares with the dense mask. If this design was recorded on a GPU, its recorded times are shown before any run.
    .button = Go to Race
lesson-speed-up-3 = A short sequence has few blocks to skip. Race the design at several lengths: the lines separate at the length where the mask starts to save time.
    .button = Race over lengths
lesson-speed-up-4 = The roofline compares the arithmetic of the kept cells with the card's limits. Far below the roof, the mask is not the reason for the time.
    .button = Go to Race

lesson-score-mods = Score mods, drawn
    .about = A mask keeps or drops a score. A score mod changes its value.
lesson-score-mods-1 = ALiBi adds to each score a bias that falls with the distance, with another slope for every head.
    .button = Open ALiBi
lesson-score-mods-2 = The picture shows the result of the score mod for a score of zero. The mask drops the striped cells: there is no score to change.
    .button = Draw the bias
lesson-score-mods-3 = The strip below the picture shows all heads with one colour scale: the bias of the first heads falls quickly, that of the last heads hardly.
    .button = Go to head 7

## The frame of lessons
learn-title = Learn by doing
learn-words = Each lesson drives this window. Undo restores your document.
learn-start = Start
learn-start-name = Start: { $title }
learn-all = All lessons
lesson-step = step { $n } of { $all }
learn-done = Done
learn-next = Next
learn-back = Back
learn-is-done = done
learn-is-open = is open
learn-return = Back to the lesson

## The tour
tour-preset = A row is a query, a column is a key. A coloured pixel lets this query attend to this key. This is a sliding window: each token sees the last 1024.
tour-stroke = The brush keeps more cells, here a far region. A stroke is a layer of the document; Undo takes it back.
tour-blocks = Kernels work in blocks. A selected area tells its full, partial and skipped blocks, the waste in them and the bytes that they read.
tour-slider = The window grows and shrinks. The cards above follow: kept cells, and the time as an estimate until a race measures it.
tour-race = Race compares kernels, each checked against float64 first. Before any run it says which libraries take the mask at all.
tour-export = Export writes the mask for a trainer, a model or a program, and shows each file and each changed line before it writes.
tour-end = That is all. Your documents are as they were. The Gallery has ready masks, Learn has lessons, F1 has all keys.
tour-step = { $n } of { $all }
tour-go-on = Go on
tour-pause = Pause
tour-stop = Stop
    .tip = Ends the tour; so does Escape, or a click elsewhere.
tour-stop-name = Stop the tour

## The tiles of the open mask
tiles-title = FlashAttention, tile by tile
    .about = The tiles of the open mask, with the running values of a kernel.
tiles-words = A block of queries stays on chip. The kernel visits the kv tiles that its row keeps, skips the empty ones, and updates three values: the largest score m, the sum l, and the output.
tiles-none = The blocks are not counted yet, or the document has errors.
tiles-query = query
tiles-query-name = Query of the trace
tiles-row = in row { $row } of query blocks; click the canvas to choose another
tiles-play = Play
tiles-pause = Pause
tiles-step = Step
tiles-stepped = Tiles stepped
tiles-not-yet = No tile has been visited yet.
tiles-full = kv tile { $tile }, full: no mask is evaluated
tiles-partial = kv tile { $tile }, partial: mask_mod decides each cell
tiles-visited = { $step } of { $kept } tiles visited; { $skipped } of { $all } are empty and skipped
tiles-bytes = { $name }: { $bytes } bytes
tiles-bytes-words = K and V of each tile, for one query block of one head. Eager also writes its float32 scores, reads them, and writes and reads the probabilities.
tiles-heads = { $heads } heads do the same.
tiles-too-many = This row has too many keys for its numbers; a shorter document shows them.
tiles-before = before
tiles-after = after this tile
tiles-m = The largest score so far.
tiles-l = The sum of exp(score - m); shrunk when m rises.
tiles-o = The current first component of the output.
tiles-increased = m has increased: l and o are first multiplied by exp({ $before } - { $now }).
tiles-kept = { $kept } keys of this tile are kept for query { $query }.
tiles-scores = Scores are those of { $source }, numbers of a normal distribution; mask_mod and score_mod are those of the document.
