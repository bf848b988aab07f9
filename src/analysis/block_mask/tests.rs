//! Block masks compared with the interpreter, cell by cell.

use super::*;
use crate::analysis::examples::{self, Rng};
use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::ir::cell::{self, Cell};
use crate::ir::graph::{BinaryOp, Graph, Input, ModKind, Op};
use crate::ir::random::{self, Options};

/// The kept cells by the living definition.
fn dense(of: Option<&Mod>, b: usize, h: usize, lengths: Lengths) -> Vec<bool> {
    let (rows, cols) = (lengths.q_len as i64, lengths.kv_len as i64);
    let cell = |q_idx, kv_idx| Cell { b: b as i64, h: h as i64, q_idx, kv_idx, score: 0.0 };
    let kept = |q, k| of.is_none_or(|m| cell::eval(m, &cell(q, k)).as_bool());
    (0..rows).flat_map(|q| (0..cols).map(move |k| (q, k))).map(|(q, k)| kept(q, k)).collect()
}

fn check(name: &str, of: Option<&Mod>, shape: MaskShape, size: BlockSize) {
    let mask = BlockMask::build(of, shape, size, &Control::new()).unwrap();
    let lengths = shape.lengths;
    let (rows, cols) = mask.grid();
    let mut want = Stats { load: Load { min: u64::MAX, ..Load::default() }, ..Stats::default() };
    for (b, h) in (0..shape.batch).flat_map(|b| (0..shape.heads).map(move |h| (b, h))) {
        let cells = dense(of, b, h, lengths);
        let at = |q: usize, k: usize| cells[q * lengths.kv_len + k];
        for row in 0..rows {
            let q = row * size.q..((row + 1) * size.q).min(lengths.q_len);
            let mut load = 0;
            for col in 0..cols {
                let k = col * size.kv..((col + 1) * size.kv).min(lengths.kv_len);
                let kept = q.clone().map(|q| k.clone().filter(|k| at(q, *k)).count()).sum::<usize>();
                let kind = match kept {
                    0 => None,
                    n if n == size.q * size.kv => Some(BlockKind::Full),
                    _ => Some(BlockKind::Partial),
                };
                let place = format!("{name}: b {b} h {h} block {row},{col} of {size}, {lengths:?}");
                assert_eq!(mask.kind(b, h, row, col), kind, "{place}");
                load += u64::from(kind.is_some());
                want.full += u64::from(kind == Some(BlockKind::Full));
                want.partial += u64::from(kind == Some(BlockKind::Partial));
                want.empty += u64::from(kind.is_none());
                want.kept_cells += kept as u128;
            }
            want.load.min = want.load.min.min(load);
            want.load.max = want.load.max.max(load);
        }
        want.empty_rows += cells.chunks(lengths.kv_len).filter(|r| !r.contains(&true)).count() as u64;
        let runs: Vec<BlockRun> = (0..rows).flat_map(|row| mask.runs(b, h, row).collect::<Vec<_>>()).collect();
        assert!(runs.iter().all(|r| r.start < r.end && r.end <= cols), "{name}: {runs:?}");
    }
    sides(name, &mask);
    let got = mask.stats();
    let counts = |s: &Stats| (s.full, s.partial, s.empty, s.kept_cells, s.empty_rows, s.load.min, s.load.max);
    assert_eq!(counts(&got), counts(&want), "{name} {size} {lengths:?}");
}

/// The blocks seen from the kv side.
fn sides(name: &str, mask: &BlockMask) {
    let ((rows, cols), (batch, heads)) = (mask.grid(), mask.distinct());
    let sides = mask.transposed();
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        let mut seen = vec![None; rows * cols];
        for col in 0..cols {
            for run in sides.runs(b, h, col) {
                (run.start..run.end).for_each(|row| seen[row * cols + col] = Some(run.kind));
            }
        }
        for row in 0..rows {
            for col in 0..cols {
                assert_eq!(seen[row * cols + col], mask.kind(b, h, row, col), "{name}: column {col} at {row}");
            }
        }
    }
}

#[test]
fn columns_are_as_few_as_rows() {
    let shape = MaskShape::broadcast(Lengths::new(1 << 16, 1 << 16).unwrap());
    let mask = BlockMask::build(Some(&examples::causal()), shape, BlockSize::DEFAULT, &Control::new()).unwrap();
    let columns = mask.transposed();
    assert_eq!(columns.memory(), mask.memory());
    let last: Vec<BlockRun> = columns.runs(0, 0, 511).collect();
    assert_eq!(last, [BlockRun { start: 511, end: 512, kind: BlockKind::Partial }]);
}

#[test]
fn every_block_of_every_example_is_right() {
    let mut rng = Rng::new(7);
    for round in 0..3 {
        let lengths = Lengths::new(1 + rng.below(90), 1 + rng.below(90)).unwrap();
        for (name, of) in examples::all(lengths, &mut rng) {
            let size = BlockSize { q: 1 + rng.below(20), kv: 1 + rng.below(20) };
            let shape = MaskShape { batch: 1 + rng.below(2), heads: 1 + rng.below(3), lengths };
            check(&format!("{name} round {round}"), of.as_ref(), shape, size);
        }
    }
}

#[test]
fn longer_lengths_use_the_tree() {
    let mut rng = Rng::new(3);
    let lengths = Lengths::new(333, 250).unwrap();
    for (name, of) in examples::all(lengths, &mut rng) {
        check(name, of.as_ref(), MaskShape::broadcast(lengths), BlockSize { q: 16, kv: 8 });
    }
}

#[test]
fn every_block_of_random_mods_is_right() {
    let mut rng = Rng::new(5);
    for seed in 0..120 {
        let lengths = Lengths::new(1 + rng.below(60), 1 + rng.below(60)).unwrap();
        let shape = MaskShape { batch: 1 + rng.below(2), heads: 1 + rng.below(2), lengths };
        let mut options = Options::new(lengths.q_len, lengths.kv_len);
        options.batch = shape.batch;
        options.heads = shape.heads;
        options.portable = seed % 2 == 0;
        options.depth = 2 + seed as u32 % 4;
        let of = random::mask(seed, &options);
        let size = BlockSize { q: 1 + rng.below(20), kv: 1 + rng.below(20) };
        check(&format!("random mask {seed}"), Some(&of), shape, size);
    }
}

#[test]
fn overhanging_blocks_are_never_full() {
    let shape = MaskShape::broadcast(Lengths::new(130, 250).unwrap());
    let mask = BlockMask::build(None, shape, BlockSize::DEFAULT, &Control::new()).unwrap();
    let row = |q| mask.runs(0, 0, q).map(|r| (r.start, r.end, r.kind)).collect::<Vec<_>>();
    assert_eq!(row(0), [(0, 1, BlockKind::Full), (1, 2, BlockKind::Partial)]);
    assert_eq!(row(1), [(0, 2, BlockKind::Partial)]);
    assert_eq!(mask.stats().kept_cells, 130 * 250);
}

#[test]
fn torch_arrays_list_kept_blocks_first_and_the_rest_in_order() {
    let lengths = Lengths::new(320, 320).unwrap();
    let causal = examples::causal();
    let shape = MaskShape { batch: 1, heads: 2, lengths };
    let mask = BlockMask::build(Some(&causal), shape, BlockSize::DEFAULT, &Control::new()).unwrap();
    let arrays = mask.torch_arrays().unwrap();
    // as printed by create_block_mask(causal, 1, 2, 320, 320) of PyTorch 2.11
    assert_eq!(arrays.kv_num_blocks.shape(), [1, 2, 3]);
    assert_eq!(arrays.kv_num_blocks.to_i64_vec(), [1, 1, 3, 1, 1, 3]);
    assert_eq!(arrays.kv_indices.to_i64_vec()[..9], [0, 1, 2, 1, 0, 2, 0, 1, 2]);
    assert_eq!(arrays.full_kv_num_blocks.to_i64_vec()[..3], [0, 1, 0]);
    assert_eq!(arrays.full_kv_indices.to_i64_vec()[..9], [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(arrays.q_num_blocks.to_i64_vec()[..3], [2, 2, 1]);
    assert_eq!(arrays.q_indices.to_i64_vec()[..9], [0, 2, 1, 1, 2, 0, 2, 0, 1]);
    assert_eq!(arrays.full_q_num_blocks.to_i64_vec()[..3], [1, 0, 0]);
    assert_eq!(arrays.full_q_indices.to_i64_vec()[..9], [1, 0, 2, 0, 1, 2, 0, 1, 2]);
    assert!((mask.stats().sparsity - 4.0).abs() < 1e-9);
}

#[test]
fn too_large_a_grid_and_a_zero_block_are_refused_in_words() {
    let shape = MaskShape::broadcast(Lengths::new(1 << 30, 1 << 30).unwrap());
    let refused = BlockMask::build(None, shape, BlockSize::square(16), &Control::new()).unwrap_err();
    assert_eq!(refused.code, "grid-too-large");
    assert!(refused.message.contains("GiB"), "{}", refused.message);
    let zero = BlockMask::build(None, shape, BlockSize { q: 0, kv: 1 }, &Control::new()).unwrap_err();
    assert_eq!(zero.code, "block-size-zero");
}

#[test]
fn a_cancelled_build_stops() {
    let control = Control::new();
    control.cancel();
    let lengths = Lengths::new(1 << 20, 1 << 20).unwrap();
    let dilated = examples::dilated(1 << 18, 7);
    let out = BlockMask::build(Some(&dilated), MaskShape::broadcast(lengths), BlockSize::DEFAULT, &control);
    assert_eq!(out.unwrap_err().code, "cancelled");
}

/// Five layers joined; one of them edited, added or taken away at each step.
#[test]
fn blocks_after_edits_are_those_from_scratch() {
    use crate::ir::passes::compose;
    let mut rng = Rng::new(91);
    for seed in 0..40 {
        let lengths = Lengths::new(1 + rng.below(90), 1 + rng.below(90)).unwrap();
        let shape = MaskShape { batch: 2, heads: 2, lengths };
        let size = BlockSize { q: 1 + rng.below(9), kv: 1 + rng.below(9) };
        let known = examples::all(lengths, &mut rng);
        let fresh = |rng: &mut Rng| match &known[rng.below(known.len())] {
            (_, Some(of)) if rng.below(2) == 0 => of.clone(),
            _ => random::mask(rng.below(1 << 20) as u64, &Options::new(lengths.q_len, lengths.kv_len)),
        };
        let mut layers: Vec<(usize, Mod)> = (0..5).map(|_| (rng.below(3), fresh(&mut rng))).collect();
        let joined = |layers: &[(usize, Mod)]| {
            layers.iter().fold(compose::constant_mask(true), |below, (how, layer)| match how {
                0 => compose::and_masks(&[&below, layer]),
                1 => compose::or_masks(&[&below, layer]),
                _ => compose::and_not(&below, layer),
            })
        };
        let control = Control::new();
        let mut kept = BlockMask::build(Some(&joined(&layers)), shape, size, &control).unwrap();
        kept.stats();
        for step in 0..5 {
            let at = rng.below(layers.len());
            match rng.below(5) {
                0 if layers.len() > 1 => drop(layers.remove(at)),
                1 => layers.insert(at, (rng.below(3), fresh(&mut rng))),
                2 => layers[at].0 = rng.below(3),
                _ => layers[at].1 = fresh(&mut rng),
            }
            let mask = joined(&layers);
            let (next, change) = kept.rebuild(Some(&mask), &control).unwrap();
            let scratch = BlockMask::build(Some(&mask), shape, size, &control).unwrap();
            assert_eq!(next, scratch, "seed {seed} step {step}");
            assert_eq!(next.stats_after(&kept, &change, &control).unwrap(), scratch.stats(), "seed {seed} step {step}");
            kept = next;
        }
        let (all, change) = kept.rebuild(None, &control).unwrap();
        assert_eq!(all, BlockMask::build(None, shape, size, &control).unwrap());
        assert_eq!(
            all.stats_after(&kept, &change, &control),
            Some(BlockMask::build(None, shape, size, &control).unwrap().stats())
        );
    }
}

/// Each head's task wants the table of the same captured tensor, which is large enough to be made by several threads.
#[test]
fn heads_that_share_a_table_do_not_wait_for_each_other_for_ever() {
    let (heads, tokens) = (12, 1500);
    let build = move |seed: u64| {
        let mut rng = Rng::new(seed);
        let ends: Vec<i64> = (0..heads * tokens * 2).map(|_| rng.below(tokens + 1) as i64).collect();
        let mut g = Graph::new();
        let ends = g.add_capture("ends", HostTensor::new([heads, tokens, 2], Data::I64(ends)).unwrap());
        let (h, q, kv) = (g.input(Input::H), g.input(Input::QIdx), g.input(Input::KvIdx));
        let (zero, one) = (g.int(0), g.int(1));
        let [first, past] = [zero, one].map(|which| g.add(Op::Load(ends, [h, q, which].into_iter().collect()), None));
        let (behind, before) = (g.binary(BinaryOp::Ge, kv, first), g.binary(BinaryOp::Lt, kv, past));
        let root = g.binary(BinaryOp::And, behind, before);
        let mask = Mod { kind: ModKind::Mask, graph: g, root, sources: Vec::new() };
        let shape = MaskShape { batch: 1, heads, lengths: Lengths::new(tokens, tokens).unwrap() };
        BlockMask::build(Some(&mask), shape, BlockSize { q: 128, kv: 128 }, &Control::new()).unwrap();
    };
    let (done, reported) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(16).build().expect("threads");
        pool.install(|| (0..20).for_each(build));
        done.send(())
    });
    // a second or two; the measured work itself has no end
    reported.recv_timeout(std::time::Duration::from_secs(100)).expect("the block masks are made");
}

#[test]
fn a_sparsity_says_whose_it_is() {
    let words = sparsity_words;
    assert_eq!(words(37.52, Some(37.5)), "37.5%");
    let both = words(-12.5, Some(37.5));
    assert!(both.starts_with("37.5% (PyTorch 2.15; 2.11 says -12.5%"), "{both}");
    assert_eq!(words(37.5, None), "37.5% (PyTorch 2.11)");
    assert_eq!(words(0.0, None), "0.0% (PyTorch 2.11)");
    assert!(words(-12.5, None).contains("reach beyond the lengths"));
}

#[test]
fn the_mean_load_is_the_computed_blocks_a_row() {
    let mut graph = Graph::new();
    let (q, kv) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let root = graph.binary(BinaryOp::Ge, q, kv);
    let causal = Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() };
    let shape = MaskShape { batch: 2, heads: 3, lengths: Lengths::new(64, 64).unwrap() };
    let mask = BlockMask::build(Some(&causal), shape, BlockSize::square(16), &Control::new()).unwrap();
    let stats = mask.stats();
    let load = stats.load;
    assert_eq!((load.min, load.max, load.mean), (1, 4, 2.5));
    // 6 full blocks, 4 partial ones and 6 empty ones of each of 6 groups; 64 x 65 / 2 cells of 10 x 256
    assert_eq!((stats.full, stats.partial, stats.empty, stats.kept_cells), (36, 24, 36, 6 * 2080));
    assert_eq!((stats.computed, stats.wasted, stats.density), (0.625, 0.1875, 2080.0 / 4096.0));
    assert_eq!((stats.sparsity, stats.padded_sparsity(), stats.sparsity_words().as_str()), (37.5, 37.5, "37.5%"));
    // of 64 tokens in blocks of 48 all four blocks are computed, and reach far beyond the lengths
    let wide = BlockMask::build(None, shape, BlockSize::square(48), &Control::new()).unwrap().stats();
    assert_eq!((wide.sparsity, wide.padded_sparsity()), (100.0 * (1.0 - 96.0 * 96.0 / 4096.0), 0.0));
    assert!(wide.sparsity_words().starts_with("0.0% (PyTorch 2.15; 2.11 says -125.0%"), "{}", wide.sparsity_words());
}

/// `q_idx - kv_idx < 4 * (h + 1)` and, of the other, `b` for `h`.
fn by_place(of: Input) -> Mod {
    let mut graph = Graph::new();
    let (place, q, kv) = (graph.input(of), graph.input(Input::QIdx), graph.input(Input::KvIdx));
    let (one, four) = (graph.int(1), graph.int(4));
    let place = graph.binary(BinaryOp::Add, place, one);
    let width = graph.binary(BinaryOp::Mul, place, four);
    let distance = graph.binary(BinaryOp::Sub, q, kv);
    let root = graph.binary(BinaryOp::Lt, distance, width);
    Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
}

#[test]
fn sums_of_heads_are_not_taken_for_those_of_batch_entries() {
    let shape = MaskShape { batch: 2, heads: 2, lengths: Lengths::new(40, 40).unwrap() };
    let (size, control) = (BlockSize::square(8), Control::new());
    let before = BlockMask::build(Some(&by_place(Input::H)), shape, size, &control).unwrap();
    before.stats();
    let (next, change) = before.rebuild(Some(&by_place(Input::B)), &control).unwrap();
    let scratch = BlockMask::build(Some(&by_place(Input::B)), shape, size, &control).unwrap();
    assert_eq!(next, scratch);
    assert_eq!(next.stats_after(&before, &change, &control), Some(scratch.stats()));
}

#[test]
fn arrays_have_the_lists_of_each_batch_entry_and_head() {
    let lengths = Lengths::new(50, 34).unwrap();
    let shape = MaskShape { batch: 2, heads: 3, lengths };
    let mask = {
        let mut g = Graph::new();
        let [b, h, q, kv] = [Input::B, Input::H, Input::QIdx, Input::KvIdx].map(|input| g.input(input));
        let (three, four) = (g.int(3), g.int(4));
        let entry = g.binary(BinaryOp::Mul, b, three);
        let place = g.binary(BinaryOp::Add, entry, h);
        let from = g.binary(BinaryOp::Mul, place, four);
        let end = g.binary(BinaryOp::Add, from, q);
        let (behind, before) = (g.binary(BinaryOp::Ge, kv, from), g.binary(BinaryOp::Le, kv, end));
        let root = g.binary(BinaryOp::And, behind, before);
        Mod { kind: ModKind::Mask, graph: g, root, sources: Vec::new() }
    };
    let mask = BlockMask::build(Some(&mask), shape, BlockSize { q: 8, kv: 4 }, &Control::new()).unwrap();
    let (lists, (rows, cols)) = (mask.torch_lists(), mask.grid());
    for (side, listed) in [Side::Kv, Side::Q]
        .into_iter()
        .flat_map(|side| [Listed::Partial, Listed::Full, Listed::Both].map(|listed| (side, listed)))
    {
        let (of_counts, of_indices) = lists.shapes(side);
        let (mut counts, mut indices) = (vec![-1; of_counts.iter().product()], vec![-1; of_indices.iter().product()]);
        lists.write(side, listed, &mut counts, &mut indices);
        let mut alone = vec![-1; counts.len()];
        lists.write_counts(side, listed, &mut alone);
        assert_eq!(alone, counts);
        let (lines, width) = if side == Side::Kv { (rows, cols) } else { (cols, rows) };
        assert_eq!((of_counts, of_indices), ([2, 3, lines], [2, 3, lines, width]));
        for (at, line) in indices.chunks(width).enumerate() {
            let (b, h, line_at) = (at / lines / 3, at / lines % 3, at % lines);
            let has = |other: usize| {
                let (row, col) = if side == Side::Kv { (line_at, other) } else { (other, line_at) };
                match (mask.kind(b, h, row, col), listed) {
                    (None, _) => false,
                    (Some(kind), Listed::Partial) => kind == BlockKind::Partial,
                    (Some(kind), Listed::Full) => kind == BlockKind::Full,
                    (Some(_), Listed::Both) => true,
                }
            };
            let (mut wanted, others): (Vec<i32>, Vec<i32>) = (0..width as i32).partition(|n| has(*n as usize));
            assert_eq!(counts[at], wanted.len() as i32, "{side:?} {listed:?} {b} {h} {line_at}");
            wanted.extend(others);
            assert_eq!(line, wanted, "{side:?} {listed:?} {b} {h} {line_at}");
        }
    }
}

#[test]
fn progress_is_the_share_of_the_decided_blocks() {
    let lengths = Lengths::new(1 << 12, 1 << 12).unwrap();
    let control = Control::new();
    let mask = examples::dilated(1 << 10, 7);
    BlockMask::build(Some(&mask), MaskShape::broadcast(lengths), BlockSize::square(32), &control).unwrap();
    // of 128 x 128 blocks each of 16 tasks keeps up to 1/512 to itself
    assert!(control.progress() > 1.0 - 17.0 / 512.0 && control.progress() <= 1.0, "{}", control.progress());
}

/// 2^29 entries of an index array are written, one row of blocks more is refused.
#[test]
fn index_arrays_of_more_than_eight_gibibytes_are_refused() {
    let of = |batch, heads, q_len| {
        let shape = MaskShape { batch, heads, lengths: Lengths::new(q_len, 1 << 9).unwrap() };
        BlockMask::build(None, shape, BlockSize::square(1), &Control::new()).unwrap().torch_lists().check()
    };
    assert_eq!(of(4, 256, 1 << 10), Ok(()));
    assert_eq!(of(1, 1, 1), Ok(()));
    for (batch, heads, q_len) in [(4, 257, 1 << 10), (5, 256, 1 << 10), (4, 256, (1 << 10) + 1)] {
        let refused = of(batch, heads, q_len).unwrap_err();
        let entries = (batch * heads * q_len) << 9;
        assert_eq!(&*refused.code, "grid-too-large");
        assert!(refused.message.contains(&format!("has {entries} blocks")), "{}", refused.message);
        // four arrays of four bytes
        let gib = entries as f64 * 16.0 / 1_073_741_824.0;
        assert!(refused.message.contains(&format!("{gib:.1} GiB of index arrays")), "{}", refused.message);
    }
}
