//! Block masks of the pattern library and of the presets compared with the interpreter, cell by cell.
//!
//! Every pattern is tested at small random lengths, block sizes and arguments, and every preset on shortened axes:
//! every block of them is compared. At its own lengths a preset is compared in randomly drawn blocks.

use maskloom::analysis::block_mask::{BlockKind, BlockMask, MaskShape};
use maskloom::analysis::examples::Rng;
use maskloom::base::{BlockSize, Control, Lengths};
use maskloom::document::compile::{BuiltIn, Compiler};
use maskloom::document::library;
use maskloom::document::model::{ArgValue, Axes, Axis, CodeRef, Combine, Document, Layer, MaskContent};
use maskloom::ir::cell::{Cell, eval};
use maskloom::ir::graph::{Mod, ModKind};

/// The interpreter's result for a block.
pub(crate) fn kind_of(
    of: Option<&Mod>,
    lengths: Lengths,
    size: BlockSize,
    [b, h, row, col]: [usize; 4],
) -> Option<BlockKind> {
    let q = row * size.q..((row + 1) * size.q).min(lengths.q_len);
    let kv = col * size.kv..((col + 1) * size.kv).min(lengths.kv_len);
    let whole = q.len() == size.q && kv.len() == size.kv;
    let (mut kept, mut dropped) = (false, false);
    for q in q {
        for k in kv.clone() {
            let cell = Cell { b: b as i64, h: h as i64, q_idx: q as i64, kv_idx: k as i64, score: 0.0 };
            let keeps = of.is_none_or(|m| eval(m, &cell).as_bool());
            kept |= keeps;
            dropped |= !keeps;
            if kept && dropped {
                return Some(BlockKind::Partial);
            }
        }
    }
    match (kept, dropped || !whole) {
        (false, _) => None,
        (true, false) => Some(BlockKind::Full),
        (true, true) => Some(BlockKind::Partial),
    }
}

/// Every block of a mask at one block size.
pub(crate) fn check_all(name: &str, of: &Mod, shape: MaskShape, size: BlockSize) {
    let mask = BlockMask::build(Some(of), shape, size, &Control::new()).expect("a small grid");
    let (rows, cols) = mask.grid();
    // what does not depend on b or h is stored once
    let (batch, heads) = mask.distinct();
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
            let want = kind_of(Some(of), shape.lengths, size, [b, h, row, col]);
            assert_eq!(
                mask.kind(b, h, row, col),
                want,
                "{name}: b {b} h {h} block {row},{col} of {size}, {:?}",
                shape.lengths
            );
        }
    }
}

fn document(layers: Vec<Layer>, axes: &str) -> Document {
    let mut document = library::presets()[0].document().expect("a preset");
    document.axes = Axes::same(Axis::parse(axes).expect("axes"));
    document.scores.clear();
    document.layers = layers;
    (document.settings.batch, document.settings.heads, document.settings.kv_heads) = (2, 3, 3);
    document
}

/// A pattern's mask with some of its int parameters drawn randomly; None if it needs other parameters.
fn drawn(name: &str, axes: &str, rng: &mut Rng) -> Option<Mod> {
    let text = library::patterns().find(|p| p.name == name)?.text;
    let mut args = std::collections::BTreeMap::new();
    // `name: int = 5` of the signature
    let signature = text.split("):").next().unwrap_or("");
    for part in signature.split(['(', ',']).filter(|part| part.contains(": int")) {
        if let Some((name, _)) = part.trim().split_once(':')
            && rng.below(3) > 0
        {
            args.insert(name.to_string(), ArgValue::Int(1 + rng.below(24) as i64));
        }
    }
    let content = MaskContent::Pattern(CodeRef { name: name.into(), args });
    let layer = Layer { id: 1, name: name.into(), enabled: true, combine: Combine::And, heads: None, content };
    let compiled = Compiler::default().compile(&document(vec![layer], axes), &BuiltIn);
    compiled.mask.filter(|_| compiled.layers.iter().all(|l| l.result.is_some())).map(|mask| (*mask).clone())
}

#[test]
fn every_block_of_the_pattern_library_is_right() {
    let mut rng = Rng::new(41);
    let axes = ["tokens 97", "text 20 | image 9x11", "video 3x5x7 | text 13", "text 7 | video 4x4x6"];
    let mut seen = std::collections::BTreeSet::new();
    let masks = || library::patterns().filter(|p| p.kind == ModKind::Mask);
    for pattern in masks() {
        for axes in axes {
            for _ in 0..3 {
                let Some(of) = drawn(pattern.name, axes, &mut rng) else { continue };
                let n = Axis::parse(axes).expect("axes").len();
                let (q, kv) = if rng.below(2) == 0 { (n, n) } else { (1 + rng.below(n), n) };
                let shape = MaskShape { batch: 2, heads: 3, lengths: Lengths::new(q, kv).expect("lengths") };
                let size = BlockSize { q: 1 + rng.below(24), kv: 1 + rng.below(24) };
                check_all(&format!("{} on {axes}", pattern.name), &of, shape, size);
                seen.insert(pattern.name);
            }
        }
    }
    assert!(seen.len() * 2 >= masks().count(), "only {} of {} patterns: {seen:?}", seen.len(), masks().count());
}

/// The same segments with few tokens.
fn small(axis: &Axis, rng: &mut Rng) -> Axis {
    let mut axis = axis.clone();
    for segment in &mut axis.segments {
        let most = [90, 11, 6][segment.grid.len() - 1];
        segment.grid.iter_mut().for_each(|n| *n = (*n).min(most / 2 + rng.below(most / 2 + 1)));
    }
    axis
}

#[test]
fn every_block_of_the_presets_on_small_axes_is_right() {
    let mut rng = Rng::new(42);
    let mut checked = 0;
    for preset in library::presets() {
        let mut document = preset.document().expect("a preset");
        document.axes.q = small(&document.axes.q, &mut rng);
        document.axes.kv = document.axes.kv.as_ref().map(|kv| small(kv, &mut rng));
        let compiled = Compiler::default().compile(&document, &BuiltIn);
        // some are drawn or written for one length alone
        let (Some(of), false, Ok(lengths)) = (compiled.mask.clone(), compiled.has_errors(), document.axes.lengths())
        else {
            continue;
        };
        let heads = document.settings.heads.min(4);
        let shape = MaskShape { batch: document.settings.batch.min(2), heads, lengths };
        let size = BlockSize { q: 1 + rng.below(20), kv: 1 + rng.below(20) };
        check_all(preset.name, &of, shape, size);
        checked += 1;
    }
    assert!(checked >= 30, "only {checked} presets");
}

#[test]
fn blocks_of_the_presets_are_right_at_their_own_lengths() {
    let mut rng = Rng::new(43);
    for preset in library::presets() {
        let document = preset.document().expect("a preset");
        let compiled = Compiler::default().compile(&document, &BuiltIn);
        let (Some(of), Ok(lengths)) = (compiled.mask, document.axes.lengths()) else { continue };
        let shape = MaskShape { batch: document.settings.batch, heads: document.settings.heads, lengths };
        let size = document.settings.block_size;
        let mask = BlockMask::build(Some(&of), shape, size, &Control::new()).expect("a preset's grid");
        let (rows, cols) = mask.grid();
        for n in 0..9 {
            let (b, h, row) = (rng.below(shape.batch), rng.below(shape.heads), rng.below(rows));
            let runs: Vec<_> = mask.runs(b, h, row).collect();
            // near the ends of runs, where errors are likely, and anywhere
            let col = match runs.len() {
                0 => rng.below(cols),
                _ if n % 3 == 0 => rng.below(cols),
                some => (runs[rng.below(some)].end - rng.below(2)).min(cols - 1),
            };
            let want = kind_of(Some(&of), lengths, size, [b, h, row, col]);
            assert_eq!(mask.kind(b, h, row, col), want, "{}: b {b} h {h} block {row},{col}", preset.name);
        }
    }
}
