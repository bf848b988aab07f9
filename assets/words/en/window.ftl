# The frame of the window: menus, the bar at the top, the first steps, the cards, tools, the page at the side, Setup.

## Menus
menu = Menu
    .tip = Every command by its group.
menu-file = File
menu-edit = Edit
menu-view = View
menu-run = Run
menu-help = Help
menu-recent = Recent
menu-go-to = Go to
menu-dock = Dock
    .tip = Puts this page and the layers on the left, on the right or below the canvas.
menu-looks = Text and theme
menu-language = Language
    .tip = The language of menus, explanations and messages; codes, files and logs stay English.
menu-share = Share
    .tip = Copies a picture or the code, or saves everything as one HTML file.

## Groups of commands in the list of shortcuts
group-file = File
group-edit = Edit
group-run = Run, open and find
group-workspaces = Workspaces
group-tools = Tools and layers
group-view = View

## The bar at the top
top-workspace = Workspace
top-name = Document name
top-no-file = no file yet
top-changed = changed
    .tip = There are unsaved changes. The next start restores them.
top-run = Run
top-racing = A race is running.
top-device = Device
top-device-where = { $device }, on { $target }
top-device-best = The best available
top-starting = starting…

## The first steps
start-words = Maskloom shows which tokens may attend to which, lets you change it, and measures the saved time.
start-hide = Hide the first steps
    .tip = Hides these first steps; the View menu shows them again.
start-gallery = Gallery
    .words = ready masks with pictures
start-paste = Paste or open FlexAttention code
    .words = mask_mod, score_mod, whole files
start-config = Open a trainer's config.json
    .words = fit a mask to its model, export back
start-connect = Connect a GPU
    .words = ssh, Slurm, a container
start-tour = Watch a tour
    .words = 90 seconds, plays by itself
start-learn = Lessons, step by step
    .words = what a block is, why it is fast

## Pages at the side
page-design = Inspector
page-race = The race
page-quality = Mask quality
page-code = Text
page-export = What you use
page-learn = Lesson
page-parallel = Several GPUs
page-field = Page
page-hide = Hide the side page

## The cards below the bar
card-kept = Kept
card-kept-of = { $share } of cells
card-kept-none = – of cells
card-kept-full = every block of { $size } is full
card-kept-nothing = nothing at all
card-kept-blocks = blocks: { $full } full, { $partial } partial, { $empty } skipped
card-kept-uncounted = not counted
card-kept-stopped = the count was stopped; the picture stays
card-kept-counting = counting…
card-kept-broken = no picture: error in { $layers }
card-kept-before = state before the error in { $layers }
card-kept-errors = Not counted: the document has errors.
card-costs = Costs
card-costs-racing = racing…
card-costs-errors = the document has errors
card-costs-untimed = not timed
card-costs-smaller = only a smaller copy was raced
card-costs-race = race the backends
card-loses = Loses
card-loses-unknown = not measured
card-loses-needs = needs q and k of a model
card-loses-why = The kept share of the softmax depends on real queries and keys.
card-problems = Problems
card-problems-compiling = compiling…
card-problems-none = none
card-problems-fine = it compiles and can run
card-problems-warnings = { $n ->
    [one] 1 warning
   *[other] { $n } warnings
}
card-problems-errors = { $n ->
    [one] 1 error
   *[other] { $n } errors
}
card-problems-both = { $errors ->
    [one] 1 error
   *[other] { $errors } errors
}, { $warnings } warnings

## Severities
severity-error = error
severity-warning = warning
severity-note = note

## Tools and pictures above the canvas
title-folder = { $name } ({ $folder })
title-number = { $name } ({ $n } of { $all })
title-other = { $name } (another document)
tools-layers = Layers
picture-blocks = Blocks
    .tip = Full, partial and empty blocks of BLOCK_SIZE.
picture-mask = Mask
    .tip = The kept share of each pixel.
picture-bias = Bias
    .tip = What the score mods add to a score of zero.
picture-scores = Scores
    .tip = q·k after scale and score mods, of the last race's inputs.
picture-probabilities = Probabilities
    .tip = After the softmax, of the last race's inputs.
picture-loss = Loss
    .tip = Attention mass outside the mask, for the capture open in Quality, with the mass that each row keeps.
picture-difference = Difference
picture-difference-tip = Cells kept now but not in { $name }, and the reverse.
picture-patches-tip = { $tip } Blocks, Mask, Scores and the others say what is shown.
picture-drawn = What is drawn
picture-log = log
    .tip = Colours by the logarithm.
tools-choose = Tools: { $tool }
    .tip = Shows all tools.
tools-more = More controls
    .tip = What the window has no room for: heads, figures, running work.
tools-batch = batch
tools-head = head
tools-all-heads = for all heads
tools-one-head = for head { $heads }
tools-some-heads = for heads { $heads }
tools-heads-title = Heads for painting and new layers
    .tip = The heads that the tools and new layers apply to.
tools-stop-counting = Stop counting
    .tip = Stops counting; the picture stays.
tools-count = Count
    .tip = Counts blocks and cells.
tools-empty-rows = { $n } rows keep no key
tools-empty-rows-tip = Their output is 0 and their lse -inf.

## What the mouse does, in the bar at the bottom
mouse-pan = Drag moves the picture, the wheel zooms, a click pins a cell for the Cell page.
mouse-handles = Drag a handle to reshape the rectangle, its middle to move it; Shift moves by single tokens.
mouse-rectangle = Keeps a rectangle of cells, as a new layer.
mouse-rectangle-first = The first rectangle starts from an empty mask: only drawn cells are kept.
mouse-band = Keeps a diagonal band of cells, as a new layer.
mouse-band-first = The first band starts from an empty mask: only drawn cells are kept.
mouse-area = Drag over an area: its kept cells, blocks, waste and bytes are told. { $borders }
mouse-polygon = Click corners around an area; Enter or a double click closes it. { $borders }
mouse-lasso = Draw around an area. { $borders }
mouse-borders = Edges go to frames and segments (not with Alt); Shift selects single tokens.
mouse-patches = A click on a key makes it the query; arrows move it, page keys by a frame. G goes back to the matrix.

## The figures of a selected area
area-within = within { $place }
area-forget = Forget the area
    .tip = Forgets the area.
area-keep = Keep these
area-drop = Remove these
area-kept = keeps { $share } of its cells
area-mass = holds { $share } of its queries' attention, of which { $dropped } is dropped
area-mass-tip = The probability without the mask, by { $source }; the mean over the queries of the area.
area-too-many = More blocks than are counted one by one: select less.
area-blocks = blocks of { $size }: { $full } full, { $partial } partial, { $empty } skipped
area-waste = waste: { $share } of the computed cells are dropped
area-bytes = keys and values read: { $bytes } a head
area-bytes-tip = Each computed block reads its keys and values once; a kernel may find some of them in its cache.

## The bar at the bottom
status-compiling = compiling…
status-cancel = Cancel
status-cancel-name = Cancel the work
status-no-worker = no worker on { $target }
status-worker = The worker runs on { $target }.
status-waiting = The worker has not answered yet.
status-internal = { $n ->
    [one] 1 internal error
   *[other] { $n } internal errors
}
status-internal-tip = Bugs of Maskloom; see Messages.

## Layers
layers-mask = Mask layers
layers-mask-none = None: every cell is kept.
layers-score = Score mods
layers-score-none = None: scores stay.
layers-add = Add
layers-add-mask = Add a mask layer
layers-add-score = Add a score mod
layers-select = Select a layer to see its parameters.
layers-down = Down
layers-up = Up
layers-duplicate = Duplicate
layers-delete = Delete
design-axes = Axes
design-shape = Shape
design-about = About this document
design-more = More
design-queries = Queries
design-tokens = Tokens
design-keys = Keys

## Messages
toast-dismiss = Dismiss the message
    .tip = Dismisses this message; it stays among Messages.
problems-none = No problems: the document compiles and can run.
problems-copy = Copy
    .tip = Copies the whole message.
problems-apply = Apply
    .tip = Writes the suggestion into the code.
problems-layer = Selects the layer.
close = Close
done = Done
copy = Copy
    .tip = Copies it.

## Setup
setup-on = on { $target }
setup-empty = Driver, NVRTC, cuDNN, PyTorch, display: each with the command that fixes it.
setup-ok = ok
setup-missing = missing
setup-broken = broken
setup-copy-fix = Copy the fix for { $name }
setup-versions = Versions
setup-guide = FlashAttention guide
    .tip = Its benefit, installation and removal.
setup-explain = Explain an error message
    .hint = Explain an error message: paste it here
setup-language-system = As the system ({ $name })
setup-language-fonts = no font of this system has the letters of { $name }, so the window stays English
setup-language-fonts-hint = install one, such as Noto: sudo apt-get install -y { $package }

## A layer in the list
layer-pattern = pattern
layer-rectangle = rectangle
layer-band = band
layer-painted = painted
layer-code = code
layer-linked = linked file
layer-curve = curve
layer-picture = Picture of { $name }
layer-picture-tip = The cells that this layer alone keeps. Drag it to another place in the list.
layer-enable = Enable { $name }
layer-enable-tip = Enables or disables the layer.
layer-keep = keep
layer-not = not
layer-and = and
layer-or = or
layer-and-not = and not
layer-joins = How { $name } joins
layer-joins-tip = How it combines with the layers below it.
layer-all-heads = all heads
layer-one-head = head { $heads }
layer-some-heads = heads { $heads }
layer-heads-tip = The heads that this layer applies to.
layer-select = Selects it.
status-shape = { $queries } x { $keys } tokens, { $heads } heads of { $dim }, { $dtype }
status-shape-batch = { $queries } x { $keys } tokens, batch { $batch }, { $heads } heads of { $dim }, { $dtype }

## The mouse and the keys on the canvas, in the list of shortcuts
keys-title = Keyboard and mouse
keys-canvas = On the canvas
keys-zoom = wheel, or plus and minus
    .does = zooms about the pointer; two fingers move
keys-move = drag, with any tool while Space is held
    .does = moves the picture; so do the middle button and the arrows
keys-click = click
    .does = pins the cell for the Cell page; Escape releases it
keys-menu = right click
    .does = shows the commands for the cell
keys-home = Home
    .does = the whole mask
keys-arrow = Shift and an arrow
    .does = moves by most of a screen
keys-enter = Enter
    .does = starts and ends the tool at the cross in the middle
keys-width = Alt and the wheel
    .does = changes the width of the brush, eraser or line
keys-brackets = [ and ]
    .does = changes the brush's width; with another tool, shows the previous or next head
keys-escape = Escape
    .does = cancels the stroke in progress
keys-small = drag in the small picture
    .does = moves the view

## A file over the window
drop-title = Drop to open
drop-words = A document, FlexAttention code, a run, a config.json or a safetensors file of q, k and v.
