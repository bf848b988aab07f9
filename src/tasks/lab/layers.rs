//! Proposals as layers of a document, with their numbers as sliders.
//!
//! Invariant: the layers keep exactly the cells of the form's own mask. Must not know how proposals are found.

use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor, Lengths};
use crate::document::edit::Edit;
use crate::document::heads::Heads;
use crate::document::model::*;
use crate::quality::capture::{Call, Capture};
use crate::quality::suggest::{BlockSet, Candidate, Form};
use std::collections::BTreeMap;

/// The layers of a form, bottom first, numbered from `id`.
pub fn layers(name: &str, form: &Form, lengths: Lengths, id: u64) -> Result<Vec<Layer>, Diagnostic> {
    let mut made = Made { layers: Vec::new(), id, heads: None };
    match form {
        Form::PerHead(groups) => {
            for (heads, form) in groups {
                made.heads = Heads::of(heads.iter().copied());
                made.form(&format!("{name}, {}", form.words()), form, lengths)?;
            }
        }
        form => made.form(name, form, lengths)?,
    }
    Ok(made.layers)
}

/// Layers under construction.
struct Made {
    layers: Vec<Layer>,
    id: u64,
    /// For which heads the next ones are.
    heads: Option<Heads>,
}

impl Made {
    fn add(&mut self, name: String, combine: Combine, content: MaskContent) {
        let id = self.id + self.layers.len() as u64;
        self.layers.push(Layer { id, name, enabled: true, combine, content, heads: self.heads.clone() });
    }

    fn form(&mut self, name: &str, form: &Form, lengths: Lengths) -> Result<(), Diagnostic> {
        match form {
            Form::Window { back, ahead: 0, sinks, causal: true } => {
                let args = [("sinks", int(*sinks)), ("window", int(back + 1))];
                self.add(name.into(), Combine::And, pattern("attention_sinks", args));
            }
            Form::Window { back, ahead, sinks, causal } => {
                let args = [("back", int(*back)), ("ahead", int(*ahead)), ("sinks", int(*sinks))];
                self.add(name.into(), Combine::And, pattern("window_sinks", args));
                self.causal(*causal);
            }
            Form::Stripes { block, columns, diagonals, causal } => {
                let list = |of: &[[i64; 2]]| ArgValue::List(of.iter().flatten().map(|n| ArgValue::Int(*n)).collect());
                let args = [
                    ("columns", list(columns)),
                    ("diagonals", list(diagonals)),
                    ("block", int(*block)),
                    ("causal", ArgValue::Bool(*causal)),
                ];
                self.add(name.into(), Combine::And, pattern("block_stripes", args));
            }
            Form::Box { grid, kernel, first_frame } => {
                let [t, h, w] = grid.extents;
                let args = [
                    ("canvas_t", int(t)),
                    ("canvas_h", int(h)),
                    ("canvas_w", int(w)),
                    ("kernel_t", int(kernel[0])),
                    ("kernel_h", int(kernel[1])),
                    ("kernel_w", int(kernel[2])),
                    ("start", int(grid.start)),
                ];
                self.add(name.into(), Combine::And, pattern("natten_3d", args));
                if *first_frame {
                    let kv = [grid.start, grid.start + h * w];
                    self.add("first frame".into(), Combine::Or, MaskContent::Rectangle { q: [0, lengths.q_len], kv });
                }
            }
            Form::Tiles { grid, tile, kernel, first_frame } => {
                let args = [
                    ("canvas_t", int(grid.extents[0])),
                    ("canvas_h", int(grid.extents[1])),
                    ("canvas_w", int(grid.extents[2])),
                    ("tile_t", int(tile[0])),
                    ("tile_h", int(tile[1])),
                    ("tile_w", int(tile[2])),
                    ("kernel_t", int(kernel[0])),
                    ("kernel_h", int(kernel[1])),
                    ("kernel_w", int(kernel[2])),
                    ("start", int(grid.start)),
                    ("first_frame", ArgValue::Bool(*first_frame)),
                ];
                self.add(name.into(), Combine::And, text(TILES, "tile_window", args));
            }
            Form::Radial { grid, width, halving, first_frame } => {
                let [frames, h, w] = grid.extents;
                let args = [
                    ("frames", int(frames)),
                    ("frame", int(h * w)),
                    ("start", int(grid.start)),
                    ("width", int(*width)),
                    ("halving", int(*halving)),
                    ("first_frame", ArgValue::Bool(*first_frame)),
                ];
                self.add(name.into(), Combine::And, text(RADIAL, "radial_stripes", args));
            }
            Form::Blocks { size, heads, causal } => {
                let content = match &heads[..] {
                    [one] if strokes(one, size.grid(lengths)).len() <= 1 << 14 => MaskContent::Painted(Painted {
                        cell: *size,
                        lengths: [lengths.q_len, lengths.kv_len],
                        strokes: vec![Stroke { paint: true, rects: strokes(one, size.grid(lengths)) }],
                    }),
                    _ => listed(heads, [size.q, size.kv], size.grid(lengths))?,
                };
                self.add(name.into(), Combine::And, content);
                self.causal(*causal);
            }
            Form::Beside { places, form } => {
                self.form(name, form, lengths)?;
                let (q_len, kv_len) = (lengths.q_len, lengths.kv_len);
                let rows = places.rows(q_len).into_iter().map(|r| ([r.start, r.end], [0, kv_len]));
                let keys = places.keys(kv_len).into_iter().map(|r| ([0, q_len], [r.start, r.end]));
                for (q, kv) in rows.chain(keys) {
                    self.add("protected".into(), Combine::Or, MaskContent::Rectangle { q, kv });
                }
                self.causal(form.causal());
            }
            Form::PerHead(_) => {
                let message = "groups of heads inside a group of heads cannot become layers";
                return Err(Diagnostic::error("suggest-heads", message).hint("add the groups one by one"));
            }
        }
        Ok(())
    }

    fn causal(&mut self, causal: bool) {
        if causal {
            self.add("causal".into(), Combine::And, pattern("causal", []));
        }
    }
}

/// [`Form::Radial`] as a layer's text, with its numbers as sliders.
const RADIAL: &str = r#"import torch


def radial_stripes(
    frames: int = 21, frame: int = 1560, start: int = 0, width: int = 780, halving: int = 1, first_frame: bool = True
):
    """Stripes around the same place of every frame, whose half-width halves with every `halving` frames between.

    Args:
        frames: frames of the video [1..1024]
        frame: tokens of a frame [1..65536]
        start: first video token [0..q_len]
        width: half-width in the own frame [0..frame]
        halving: frames after which it halves [1..1024]
        first_frame: whether all see the first frame
    """

    def mask_mod(b, h, q_idx, kv_idx):
        q = q_idx - start
        k = kv_idx - start
        ring = torch.abs(q // frame - k // frame) // halving
        shift = torch.abs(q % frame - k % frame)
        keep = (ring == 0) & (shift <= width)
        for step in range(1, 12):
            keep = keep | ((ring == step) & (shift <= width // 2**step))
        count = frames * frame
        keep = keep | (q < 0) | (q >= count) | (k < 0) | (k >= count)
        return keep | (k < frame) if first_frame else keep

    return mask_mod
"#;

/// [`Form::Tiles`] as a layer's text: sliding tiles over tokens in raster order.
const TILES: &str = r#"def tile_window(
    canvas_t: int = 24, canvas_h: int = 32, canvas_w: int = 48, tile_t: int = 4, tile_h: int = 8, tile_w: int = 8,
    kernel_t: int = 3, kernel_h: int = 3, kernel_w: int = 3, start: int = 0, first_frame: bool = True
):
    """Whole tiles see a box of whole tiles, as in sliding tile attention, over tokens in raster order.

    Args:
        canvas_t: frames [1..1024]
        canvas_h: rows [1..1024]
        canvas_w: columns [1..1024]
        tile_t: frames of a tile; divides canvas_t [1..64]
        tile_h: rows of a tile; divides canvas_h [1..64]
        tile_w: columns of a tile; divides canvas_w [1..64]
        kernel_t: tiles of the box in time [1..canvas_t]
        kernel_h: tiles of the box down [1..canvas_h]
        kernel_w: tiles of the box across [1..canvas_w]
        start: first token of the grid [0..q_len]
        first_frame: whether all see the first frame
    """
    frame = canvas_h * canvas_w
    count = canvas_t * frame

    def near(q, k, tiles, kernel):
        left = kernel // 2
        right = (kernel - 1) // 2
        centre = q.clamp(left, tiles - 1 - right)
        return (k >= centre - left) & (k <= centre + right)

    def mask_mod(b, h, q_idx, kv_idx):
        q = q_idx - start
        k = kv_idx - start
        frames = near(q // frame // tile_t, k // frame // tile_t, canvas_t // tile_t, kernel_t)
        rows = near(q % frame // canvas_w // tile_h, k % frame // canvas_w // tile_h, canvas_h // tile_h, kernel_h)
        columns = near(q % canvas_w // tile_w, k % canvas_w // tile_w, canvas_w // tile_w, kernel_w)
        keep = (frames & rows & columns) | (q < 0) | (q >= count) | (k < 0) | (k >= count)
        return keep | (k < frame) if first_frame else keep

    return mask_mod
"#;

fn int(n: usize) -> ArgValue {
    ArgValue::Int(n as i64)
}

fn pattern<const N: usize>(name: &str, args: [(&str, ArgValue); N]) -> MaskContent {
    let args: BTreeMap<String, ArgValue> = args.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    MaskContent::Pattern(CodeRef { name: name.into(), args })
}

fn text<const N: usize>(source: &str, entry: &str, args: [(&str, ArgValue); N]) -> MaskContent {
    let args = args.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    MaskContent::Text(TextCode { source: source.into(), entry: entry.into(), args, ..TextCode::default() })
}

/// Rectangles of a list of blocks: runs of a row, joined with equal runs of the rows below.
fn strokes(set: &BlockSet, (rows, columns): (usize, usize)) -> Vec<[u32; 4]> {
    let mut done: Vec<[u32; 4]> = Vec::new();
    let mut open: Vec<[u32; 4]> = Vec::new();
    for i in 0..rows {
        let row = &set[i * columns..(i + 1) * columns];
        let mut runs = Vec::new();
        let mut j = 0;
        while j < columns {
            if row[j] == 0 {
                j += 1;
                continue;
            }
            let end = (j..columns).find(|n| row[*n] == 0).unwrap_or(columns);
            runs.push([j as u32, end as u32]);
            j = end;
        }
        let (going, ended): (Vec<_>, Vec<_>) = open.into_iter().partition(|r| runs.contains(&[r[2], r[3]]));
        done.extend(ended);
        open = going.into_iter().map(|r| [r[0], i as u32 + 1, r[2], r[3]]).collect();
        let fresh: Vec<_> = runs.iter().filter(|run| !open.iter().any(|r| [r[2], r[3]] == **run)).collect();
        open.extend(fresh.into_iter().map(|run| [i as u32, i as u32 + 1, run[0], run[1]]));
    }
    done.extend(open);
    done
}

/// A list for each head as a table that the layer's text reads.
fn listed(heads: &[BlockSet], size: [usize; 2], (rows, columns): (usize, usize)) -> Result<MaskContent, Diagnostic> {
    let table = HostTensor::new([heads.len(), rows, columns], Data::Bool(heads.iter().flatten().copied().collect()))?;
    let source = format!(
        "def selected(block_q: int = {}, block_kv: int = {}):\n    \"\"\"Blocks selected on captured q and k, a list for each head.\"\"\"\n    \
         last = selected_blocks.shape[0] - 1\n\n    def mask_mod(b, h, q_idx, kv_idx):\n        \
         return selected_blocks[h.clamp(max=last), q_idx // block_q, kv_idx // block_kv]\n\n    return mask_mod\n",
        size[0], size[1]
    );
    let tensors = [("selected_blocks".to_string(), table)].into();
    Ok(MaskContent::Text(TextCode { source, entry: "selected".into(), tensors, ..TextCode::default() }))
}

/// One undoable step that puts a proposal in the place of the layers that take part now.
pub fn take(document: &Document, candidate: &Candidate) -> Result<Edit, Diagnostic> {
    let lengths = document.axes.lengths()?;
    let mut steps: Vec<Edit> =
        document.layers.iter().filter(|l| l.enabled).map(|l| Edit::SetEnabled(l.id, false)).collect();
    // if heads differ, each layer describes its own heads
    let name = match &candidate.form {
        Form::PerHead(_) => candidate.kind.to_string(),
        form => format!("{} ({})", candidate.kind, form.words()),
    };
    let made = layers(&name, &candidate.form, lengths, document.free_id())?;
    let first = document.layers.len();
    steps.extend(made.into_iter().enumerate().map(|(n, layer)| Edit::AddLayer(first + n, Box::new(layer))));
    Ok(Edit::Group(steps))
}

/// A document of a call's shape whose mask is the model's own, as far as that is a pattern.
pub fn blank(capture: &Capture, call: &Call) -> Result<Document, Diagnostic> {
    let lengths = Lengths::new(call.info.q_len, call.info.kv_len)?;
    let mut made = shaped(capture, call, format!("Mask for {}", call.info.name));
    made.about = format!("With the shape of {}, {}.", capture.name(), call.title(capture));
    if call.info.is_causal && lengths.q_len == lengths.kv_len {
        let content = pattern("causal", []);
        made.layers.push(Layer {
            id: 1,
            name: "causal".into(),
            enabled: true,
            combine: Combine::And,
            content,
            heads: None,
        });
    }
    Ok(made)
}

fn shaped(capture: &Capture, call: &Call, name: String) -> Document {
    let i = &call.info;
    let mut settings = Settings::new(i.heads, i.head_dim);
    (settings.kv_heads, settings.scale) = (i.kv_heads, i.scale);
    settings.block_size = capture.block_size().unwrap_or(settings.block_size);
    Document::new(name, axes(capture, call), settings)
}

/// A document of a call's shape with a proposal's layers.
pub fn document(capture: &Capture, call: &Call, candidate: &Candidate) -> Result<Document, Diagnostic> {
    let mut made = shaped(capture, call, format!("{} for {}", candidate.kind, call.key));
    if let Form::Blocks { size, .. } = &candidate.form {
        made.settings.block_size = *size;
    }
    made.about = format!(
        "Proposed from {}, {}: {}. It keeps {:.2}% of the attention mass in {:.1}% of the blocks.",
        capture.name(),
        call.title(capture),
        candidate.why,
        100.0 * candidate.mass,
        100.0 * candidate.density
    );
    let lengths = made.axes.lengths()?;
    made.layers = layers(&candidate.kind.to_string(), &candidate.form, lengths, 1)?;
    Ok(made)
}

/// Axes of a call: its grid if it has one.
fn axes(capture: &Capture, call: &Call) -> Axes {
    let (q, kv) = (call.info.q_len, call.info.kv_len);
    let plain = |n: usize| Axis::tokens(n);
    let Some(grid) = capture.grid().filter(|g| q == kv && g.tokens().end <= q) else {
        let axes = Axes::same(plain(q));
        return if q == kv { axes } else { Axes { kv: Some(plain(kv)), ..axes } };
    };
    let [t, h, w] = grid.extents;
    let mut segments = Vec::new();
    if grid.start > 0 {
        segments.push(Segment { name: "text".into(), grid: vec![grid.start] });
    }
    let (name, extents) = if t > 1 { ("video", vec![t, h, w]) } else { ("image", vec![h, w]) };
    segments.push(Segment { name: name.into(), grid: extents });
    if grid.tokens().end < q {
        segments.push(Segment { name: "rest".into(), grid: vec![q - grid.tokens().end] });
    }
    Axes::same(Axis { segments })
}
