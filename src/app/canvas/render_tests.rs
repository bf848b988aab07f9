//! Tiles compared with the interpreter.

use super::*;
use crate::analysis::examples::{self, Rng};
use crate::ir::cell::{self, Cell};
use crate::ir::graph::{BinaryOp, ModKind, UnaryOp};

fn kept(of: &Mod, q: usize, kv: usize) -> bool {
    cell::eval(of, &Cell { b: 0, h: 0, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 }).as_bool()
}

/// The share and kind of the boxes that a pixel should show, cell by cell.
fn share(of: &Mod, q: Range<usize>, kv: Range<usize>) -> f32 {
    let cells = q.len() * kv.len();
    let sum: usize = q.map(|q| kv.clone().filter(|kv| kept(of, q, *kv)).count()).sum();
    sum as f32 / cells as f32
}

fn key(picture: Picture, block: BlockSize, level: [u8; 2]) -> TileKey {
    let block = (picture == Picture::Blocks).then_some(block);
    TileKey { revision: 1, b: 0, h: 0, picture, against: 0, block, dark: true, level, at: [0; 2] }
}

/// The right colour of a pixel.
fn expected(of: &Mod, key: &TileKey, lengths: Lengths, row: usize, col: usize) -> Color32 {
    let palette = Palette::dark(true);
    let range = |at: usize, step: usize, len: usize| at * step..((at + 1) * step).min(len);
    let steps = key.steps();
    let (q, kv) = (range(row, steps[0], lengths.q_len), range(col, steps[1], lengths.kv_len));
    let mine = share(of, q.clone(), kv.clone());
    let Some(block) = key.block else { return palette.share(mine) };
    if steps[0] >= block.q && steps[1] >= block.kv {
        return palette.blocks(mine);
    }
    let over = |r: &Range<usize>, step: usize, block: usize, len: usize| match step < block {
        true => range((r.start + (step - 1) / 2).min(len - 1) / block, block, len),
        false => r.clone(),
    };
    let (bq, bkv) = (over(&q, steps[0], block.q, lengths.q_len), over(&kv, steps[1], block.kv, lengths.kv_len));
    let hangs = (steps[0] < block.q && bq.len() < block.q) || (steps[1] < block.kv && bkv.len() < block.kv);
    match share(of, bq, bkv) {
        0.0 => palette.empty,
        1.0 if !hangs => palette.full,
        _ => palette.partial(mine),
    }
}

fn check(name: &str, of: &Mod, lengths: Lengths, key: TileKey) {
    let source = Source::new(1, Some(Arc::new(of.clone())), None, lengths);
    let tile = render(&source, &key, &Control::new()).expect("not cancelled");
    assert!(tile.exact, "{name} {key:?}");
    let [width, height] = tile.image.size;
    let steps = key.steps();
    assert_eq!([height, width], [lengths.q_len.div_ceil(steps[0]), lengths.kv_len.div_ceil(steps[1])]);
    for row in 0..height {
        for col in 0..width {
            let (got, want) = (tile.image.pixels[row * width + col], expected(of, &key, lengths, row, col));
            let off = |a: u8, b: u8| a.abs_diff(b) > 1;
            let differs = off(got.r(), want.r()) || off(got.g(), want.g()) || off(got.b(), want.b());
            assert!(!differs, "{name} {key:?}: pixel {row},{col} is {got:?}, not {want:?}");
        }
    }
}

#[test]
fn tiles_show_the_truth() {
    let lengths = Lengths::new(90, 77).unwrap();
    for (name, of) in examples::all(lengths, &mut Rng::new(3)) {
        let Some(of) = of else { continue };
        for picture in [Picture::Mask, Picture::Blocks] {
            for level in [[0, 0], [2, 2], [1, 3], [4, 4]] {
                check(name, &of, lengths, key(picture, BlockSize { q: 16, kv: 8 }, level));
            }
            check(name, &of, lengths, key(picture, BlockSize { q: 10, kv: 7 }, [1, 1]));
        }
    }
}

#[test]
fn no_mask_keeps_everything_and_last_blocks_hang_over() {
    let lengths = Lengths::new(20, 20).unwrap();
    let source = Source::new(1, None, None, lengths);
    let key = key(Picture::Blocks, BlockSize::square(16), [0, 0]);
    let tile = render(&source, &key, &Control::new()).unwrap();
    let palette = Palette::dark(true);
    assert_eq!(tile.image.pixels[0], palette.full);
    assert_eq!(tile.image.pixels[19], palette.partial(1.0));
    assert_eq!(tile.image.size, [20, 20]);
}

#[test]
fn far_tiles_of_a_million_tokens_hold_what_the_interpreter_says() {
    let lengths = Lengths::new(1 << 20, (1 << 20) - 3).unwrap();
    let of = examples::sliding_window(1000);
    let source = Source::new(1, Some(Arc::new(of.clone())), None, lengths);
    let key = TileKey { at: [4095, 4095], ..key(Picture::Mask, BlockSize::DEFAULT, [0, 0]) };
    let tile = render(&source, &key, &Control::new()).unwrap();
    assert_eq!(tile.image.size, [253, 256]);
    let palette = Palette::dark(true);
    for (row, col) in [(0, 0), (0, 1), (100, 99), (255, 252), (1, 252)] {
        let share = f32::from(u8::from(kept(&of, 4095 * 256 + row, 4095 * 256 + col)));
        assert_eq!(tile.image.pixels[row * 253 + col], palette.share(share), "{row} {col}");
    }
}

/// `score - slope of the head * (q_idx - kv_idx)`, the slope halving from head to head.
fn alibi() -> Arc<Mod> {
    let mut g = examples::Builder::new();
    let d = g.distance();
    let d = g.graph.unary(UnaryOp::ToFloat, d);
    let h = g.graph.input(Input::H);
    let h = g.graph.unary(UnaryOp::ToFloat, h);
    let h = g.graph.unary(UnaryOp::Neg, h);
    let slope = g.graph.unary(UnaryOp::Exp2, h);
    let bias = g.graph.binary(BinaryOp::Mul, d, slope);
    let score = g.graph.input(Input::Score);
    let root = g.graph.binary(BinaryOp::Sub, score, bias);
    Arc::new(Mod { kind: ModKind::Score, ..g.mask(root) })
}

#[test]
fn a_bias_is_coloured_over_what_is_kept_and_the_rest_is_hatched() {
    let lengths = Lengths::new(5, 5).unwrap();
    let causal = Arc::new(examples::causal());
    let source = Source::new(1, Some(causal), Some(alibi()), lengths).over(1, 4);
    let of = |h: u32| TileKey { h, ..key(Picture::Bias, BlockSize::DEFAULT, [0, 0]) };
    let made = |h: u32| render(&source, &of(h), &Control::new()).unwrap().image.pixels;
    let (first, last) = (made(0), made(3));
    // dropped cells have +4, kept ones -4 to 0, and every head has the same scale
    let ramp = Ramp { lo: -4.0, hi: 0.0 };
    assert_eq!(source.known_span(), Some(Span { ramp, exact: true }));
    let palette = Palette::dark(true);
    for q in 0..5 {
        for kv in 0..5 {
            let at = q * 5 + kv;
            let wanted = |slope: f32| match kv <= q {
                true => ramp.color(slope * (kv as f32 - q as f32), &palette),
                false => bias::dropped(q, kv, &palette),
            };
            assert_eq!((first[at], last[at]), (wanted(1.0), wanted(0.125)), "{q} {kv}");
        }
    }
    assert_ne!(first, last, "heads differ");
}

#[test]
fn a_wide_bias_takes_its_range_from_kept_cells_of_all_heads() {
    let lengths = Lengths::new(8192, 8192).unwrap();
    let window = Arc::new(examples::sliding_window(100));
    let source = Source::new(1, Some(window), Some(alibi()), lengths).over(1, 8);
    let key = TileKey { h: 7, ..key(Picture::Bias, BlockSize::DEFAULT, [5, 5]) };
    let tile = render(&source, &key, &Control::new()).unwrap();
    let span = source.known_span().unwrap();
    assert!(!span.exact && span.ramp.hi == 0.0 && (-100.0..-90.0).contains(&span.ramp.lo), "{span:?}");
    let palette = Palette::dark(true);
    assert_eq!(tile.image.pixels[255], bias::dropped(0, 255, &palette), "far from the diagonal");
    let near = tile.image.pixels[100 * 256 + 100];
    assert!(near == span.ramp.color(-0.06, &palette) || near != bias::dropped(100, 100, &palette), "{near:?}");
}

/// A bar of 256 rows between two of the rows that are looked at whole.
#[test]
fn the_range_of_a_bias_holds_what_is_seen_anywhere_in_the_picture() {
    let lengths = Lengths::new(8192, 8192).unwrap();
    let mut g = examples::Builder::new();
    let distance = g.distance();
    let near = g.graph.unary(UnaryOp::Abs, distance);
    let reach = g.graph.int(700);
    let near = g.graph.binary(BinaryOp::Lt, near, reach);
    let (q, first, last) = (g.graph.input(Input::QIdx), g.graph.int(7680), g.graph.int(7936));
    let (from, to) = (g.graph.binary(BinaryOp::Ge, q, first), g.graph.binary(BinaryOp::Lt, q, last));
    let bar = g.graph.binary(BinaryOp::And, from, to);
    let root = g.graph.binary(BinaryOp::Or, near, bar);
    let mask = Arc::new(g.mask(root));
    let source = Source::new(1, Some(mask), Some(alibi()), lengths).over(1, 1);
    render(&source, &key(Picture::Bias, BlockSize::DEFAULT, [5, 5]), &Control::new()).unwrap();
    let span = source.known_span().unwrap();
    // the bar keeps keys 7935 tokens before its last query
    assert!(span.ramp.lo < -7800.0, "{span:?}");
}

#[test]
fn without_a_score_mod_there_is_no_bias_to_draw() {
    let source = Source::new(1, Some(Arc::new(examples::causal())), None, Lengths::new(9, 9).unwrap());
    assert!(source.is_blank(Picture::Bias) && !source.is_blank(Picture::Mask));
}

#[test]
fn cancelled_tiles_are_not_delivered() {
    let control = Control::new();
    control.cancel();
    let source = Source::new(1, Some(Arc::new(examples::causal())), None, Lengths::new(64, 64).unwrap());
    assert!(render(&source, &key(Picture::Mask, BlockSize::DEFAULT, [0, 0]), &control).is_none());
}

#[test]
fn a_whole_mask_fits_into_one_tile() {
    for n in [1, 255, 256, 257, 1 << 20, (1 << 20) + 1] {
        let lengths = Lengths::new(n, 3).unwrap();
        let level = whole(lengths, SIDE);
        assert!(n.div_ceil(1 << level[0]) <= SIDE && (level[0] == 0 || n.div_ceil(1 << (level[0] - 1)) > SIDE), "{n}");
    }
}

/// Tiles unchanged by an edit equal, pixel by pixel, newly drawn ones.
#[test]
fn tiles_that_are_carried_over_are_the_same() {
    use crate::ir::passes::compose;
    let mut rng = Rng::new(19);
    let lengths = Lengths::new(900, 700).unwrap();
    let known: Vec<Mod> = examples::all(lengths, &mut rng).into_iter().filter_map(|(_, of)| of).collect();
    let mut carried = 0;
    for round in 0..12 {
        let layer = |rng: &mut Rng| &known[rng.below(known.len())];
        let (below, here) = (layer(&mut rng).clone(), examples::sliding_window(rng.below(300) as i64));
        let edited = [here.clone(), examples::sliding_window(rng.below(300) as i64), layer(&mut rng).clone()];
        let old = Arc::new(compose::or_masks(&[&below, &here]));
        let new = Arc::new(compose::or_masks(&[&below, &edited[round % 3]]));
        let last = Source::new(1, Some(old), None, lengths);
        let source = Source::new(2, Some(new), None, lengths).after(&last, true);
        let block = BlockSize { q: 1 + rng.below(40), kv: 1 + rng.below(40) };
        let mut at =
            |picture, level| TileKey { at: [rng.below(4) as u32, rng.below(3) as u32], ..key(picture, block, level) };
        let tiles: Vec<TileKey> = [Picture::Blocks, Picture::Mask, Picture::Bias]
            .into_iter()
            .flat_map(|picture| [[0, 0], [1, 1], [3, 3]].map(|level| (picture, level)))
            .map(|(picture, level)| at(picture, level))
            .filter(|key| key.tokens(lengths).iter().all(|r| !r.is_empty()))
            .collect();
        for old in source.unchanged(tiles) {
            let new = TileKey { revision: 2, ..old };
            let made = |source: &Source, key: &TileKey| render(source, key, &Control::new()).map(|t| t.image.pixels);
            assert_eq!(made(&last, &old), made(&source, &new), "round {round} {old:?}");
            carried += 1;
        }
    }
    assert!(carried >= 20, "{carried}");
    assert_eq!(Source::new(3, None, None, lengths).after(&Source::new(2, None, None, lengths), false).before(), None);
}

#[test]
fn a_difference_shows_what_came_and_what_went() {
    let lengths = Lengths::new(64, 64).unwrap();
    let (now, there) = (Arc::new(examples::sliding_window(8)), Arc::new(examples::causal()));
    let source = Source::new(1, Some(now.clone()), None, lengths);
    assert!(source.is_blank(Picture::Difference), "there is nothing to compare with");
    let source = source.compared(3, Some(there.clone()));
    let key = TileKey { against: 3, ..key(Picture::Difference, BlockSize::DEFAULT, [0, 0]) };
    let tile = render(&source, &key, &Control::new()).expect("not cancelled");
    let palette = Palette::dark(true);
    for q in 0..64 {
        for kv in 0..64 {
            let keeps = |of: &Mod| kept(of, q, kv);
            let wanted = match (keeps(&now), keeps(&there)) {
                (true, true) => palette.both(),
                (true, false) => palette.full,
                (false, true) => palette.partial[1],
                (false, false) => palette.empty,
            };
            assert_eq!(tile.image.pixels[q * 64 + kv], wanted, "{q} {kv}");
        }
    }
    // nothing differs from itself
    let same = Source::new(1, Some(now.clone()), None, lengths).compared(4, Some(now));
    let tile = render(&same, &TileKey { against: 4, ..key }, &Control::new()).expect("not cancelled");
    assert!(tile.image.pixels.iter().all(|p| [palette.both(), palette.empty].contains(p)));
}
