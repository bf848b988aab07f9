# The page Race: bars, backward passes, lengths, the roofline, who takes a design, settings, races so far.

## Costs in one figure
card-costs-faster = { $time }  ·  { $ratio }x faster
card-costs-than = than { $base }; { $rest }
card-costs-forward = { $backend }: { $words }, forward pass
card-costs-less = { $ratio }x less than every cell; not timed yet
card-costs-same = the same arithmetic as without a mask; not timed yet
card-costs-nothing = no cell is kept: nothing is computed
card-costs-arithmetic = Arithmetic of the computed blocks. A race shows the time.
card-costs-arithmetic-is = Arithmetic of the computed blocks: { $flop }.
card-costs-about = { $card }: about { $time }, { $basis }
card-costs-estimates = Flex, forward pass. Of the recorded designs half are estimated within 15%, four of five within 1.6x; score mods that read much from memory can take many times as long. A race shows the time.

## The race
race-recorded-cards = Recorded on known cards
race-who = Who races: { $names }
race-inputs = Inputs
race-copy-picture = Picture of the smaller copy
race-copy-shares = keeps { $kept } of its cells; the whole design keeps { $whole }
race-copy-shares-then = kept { $kept } of its cells; the whole design kept { $whole } when it was raced
race-whole-takes = The whole design takes about { $time } (estimate: { $n ->
    [one] 1 thread
   *[other] { $n } threads
} of 20 GFLOP/s).
race-starts = The race starts…
race-other-document = A race of another document is running.
race-backends = Race the backends
race-names-on = { $names } on { $device }
race-smaller-races = On the CPU a smaller copy of the same mask races, in seconds.
race-checked-first = Each backend is first checked against { $reference }, then timed round by round.
race-cannot-run = cannot run: { $why }
race-forward-only = { $from }, forward only
race-stale = stale
    .tip = The document has changed since: these numbers belong to the previous mask.
race-again = Run again
race-raced-copy = Raced: { $copy } of { $whole }, the same mask with shorter windows and lengths. On a GPU, or with Run all of it, the whole design is raced.
race-smaller-copy = smaller copy
race-copy-not = { $copy }, not { $whole }
race-recorded = recorded
race-of-cells = { $share } of cells, { $flop }
race-stopped = stopped before its end
race-environment = environment
race-before-timing = before timing: { $card }
race-after-timing = after timing: { $card }

## A bar
race-samples = Median and half the interquartile range of { $n } samples.
race-samples-calls = Median and half the interquartile range of { $n } samples. The GPU's part, by { $clock }. A whole call takes { $call }.
race-untimed = checked, not timed
race-launch-bound = A program that makes these calls waits for its host. Bars and ratios are of times on the GPU.
race-holds = holds { $bytes }
race-memory = Memory { $how }.
race-why = Why: { $why }.
race-limits-tip = { $what }. A click shows what limits it, and what it would be on another card.
race-limits = What limits { $name }
race-wrong = wrong result
    .tip = It is not timed.
race-rate = { $rate } of kept cells
race-baseline = baseline  { $rate }
race-baseline-tip = The baseline of the other rows: { $ran }.
race-no-difference = no difference shown
race-no-difference-of = no difference shown ({ $ratio }x { $base })
race-against = { $ran } against { $base }: { $words }.
race-refused = refused
race-failed = failed
race-refused-by = refused: { $names }
race-failed-by = failed: { $names }
race-nan-rows = NaN in { $n } of { $all } rows
race-error-ok = error { $error } ok
race-wrong-nan = { $n } wrong NaN
race-error-wrong = error { $error }: wrong
race-rows-of = { $n } of { $all } rows
race-check-fault = Wrong: { $fault }.
race-check-error = Largest error against { $reference }: { $error }; relative rms { $rms }{ $more }.
race-check-limit = Each row has its own limit, the largest is { $limit }: { $from }.
race-check-rows = Compared: { $rows }.

## Backward passes
backward-title = Backward pass
backward-column = backward
backward-both = both
backward-memory = memory
backward-worst = worst gradient
backward-refused = { $backend }: backward refused: { $why }
backward-failed = { $backend }: backward failed: { $why }
backward-order = In a fixed order of addition; in any order the backward pass takes { $time } ({ $more }%).
backward-held = Forward and backward together, { $how }.
backward-ok = { $name } { $error } ok
backward-allowed = { $limit } is allowed
backward-wrong = wrong: { $words }

## Over lengths
lengths-title = Over lengths
lengths-question = From which length does the mask save time?
lengths-before = of the design before its last change
lengths-refused = { $tokens } tokens: { $why }
lengths-progress = { $over } of { $all } lengths
lengths-progress-left = { $over } of { $all } lengths, this one { $left }
lengths-tokens = tokens
lengths-time = time of a pass
lengths-name = Time over length
lengths-kept = kept
lengths-fastest = fastest
lengths-against = against
lengths-nothing = nothing was timed

## The roofline
roof-words = { $device } by its data sheet: { $flop } in 16 bit, { $bytes } from memory. Arithmetic and bytes are the least that { $backend } does by its own account; the time is measured.
roof-unknown = The data sheet of { $device } is unknown here (or the tensors are not of 16 bits), so nothing can be said to limit it. It computes { $flop } of all cells that it touches; the rate in the row counts the kept cells alone.
roof-others = On another card
roof-others-words = Estimates of flex, forward, from recorded runs and data sheets; not measured.
roof-title = Roofline: { $from }
roof-dot = { $backend }: { $flop } of computed cells
roof-dot-share = { $backend }: { $flop } of computed cells, { $share } of the roof
roof-about = Arithmetic of the computed cells over the bytes that are moved, both the least by the kernel's own account. The roof is the card's data sheet. A click on a row's name above says what limits it.
roof-none = The data sheet of this device is unknown, so there is no roof.
roof-y = FLOP/s of computed cells
roof-x = FLOP for each byte
roof-name = Roofline
roof-name-of = Roofline of { $backend }
roof-memory = memory
roof-arithmetic = arithmetic

## Who takes it
verdicts-title = Who takes it, forward and backward
verdicts-on = on
verdicts-others = others as of { $day }
verdicts-cpu = the CPU
verdicts-who = who
verdicts-forward = forward
verdicts-backward = backward
verdicts-how = how, or why not
verdicts-takes = takes it
verdicts-dense = dense
verdicts-refuses = refuses
verdicts-back = backward: { $words }

## Who races, over which inputs
racers-rounds = timing rounds
racers-only = correctness only
racers-fixed = deterministic gradients
    .tip = Gradients have the same bits in every run: sums are added in a fixed order. The race checks this with a second run and shows the cost of the fixed order.
racers-own = Check my PyTorch's gradients
    .tip = Runs your own PyTorch alone, forward and backward, on this design with its dtype and strides, and compares every gradient with float64. Wrong gradients are listed, with the matching known issue of PyTorch. On the CPU a large design is checked as a smaller copy; `maskloom conform --grad` checks all of it.
racers-backward = backward pass too
    .tip = Gradients of q, k, v and of captured tensors, compared with float64 and timed.
racer-eager = Maskloom's: writes the scores to memory and reads them back.
racer-sdpa = cuDNN's fused kernel on GPUs if it supports the mask, otherwise Maskloom's own with a dense mask; never block-sparse.
racer-flash = Maskloom's, by FlashAttention-2's algorithm: full or causal; refuses other masks.
racer-flex = Maskloom's: block-sparse, with the mods compiled in.
racer-torch-eager = Unfused attention in your own PyTorch.
racer-torch-sdpa = scaled_dot_product_attention of your own PyTorch.
racer-torch-flex = flex_attention of your own PyTorch, compiled.
racer-torch-flex-flash = flex_attention of your own PyTorch with the flash backend.
racer-cudnn-flex = cudnn.flex_attention of your own Python: masks as ranges of keys.
inputs-random = random
    .tip = Standard normal values from a seed.
inputs-file = safetensors file
    .tip = Recorded q, k and v.
inputs-where = on the worker's machine
inputs-path = Input file
inputs-tensor = Tensor for { $letter }
inputs-layout = in the file
inputs-seed = seed

## Races so far
past-title = Races so far ({ $n })
past-of = of
past-fastest = fastest
past-when = when, where
past-all = all
past-as = Race { $id } as { $letter }
past-compares = Compares it.
past-forward = { $when }, { $where }, forward
past-both = { $when }, { $where }, forward and backward
past-choose = Choose A and B to compare two races.
past-over = A over B
past-keeps = keeps
past-work = work
past-places = A ran on { $a }, B on { $b }.
