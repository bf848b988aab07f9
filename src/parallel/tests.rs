//! Plans compared with their masks: cell for cell on small ones, block for block on large ones.

use crate::analysis::block_mask::{BlockKind, BlockMask, MaskShape};
use crate::analysis::examples;
use crate::base::rng::Rng;
use crate::base::{BlockSize, Control, DType, Lengths};
use crate::cost::{CARD, Cost};
use crate::figures::Exchange;
use crate::ir::cell::{self, Cell};
use crate::ir::graph::Mod;
use crate::ir::random::{self, Options};
use crate::links::Links;
use crate::plan::Plan;
use crate::request::{Kind, Request, Shape};
use crate::rivals::rivals;
use crate::rows::MaskRows;
use crate::samples;
use crate::split::Split;

const SHAPE: Shape = Shape { batch: 1, heads: 16, kv_heads: 8, head_dim: 128, head_dim_v: 128, dtype: DType::BF16 };

fn block_mask(mask: Option<&Mod>, shape: MaskShape, size: BlockSize) -> BlockMask {
    BlockMask::build(mask, shape, size, &Control::new()).unwrap()
}

fn kind(name: &str, layers: usize, mask: Option<&Mod>, lengths: (usize, usize), size: BlockSize) -> Kind {
    let lengths = Lengths::new(lengths.0, lengths.1).unwrap();
    let shape = MaskShape::of(mask, (SHAPE.batch, SHAPE.heads), lengths);
    Kind { name: name.into(), layers, rows: MaskRows::from(&block_mask(mask, shape, size)) }
}

fn request(kinds: Vec<Kind>, ranks: usize) -> Request {
    let links = Links::uniform(ranks, 200.0).unwrap();
    Request::new(kinds, links, SHAPE, &Cost::blocks(), true).unwrap()
}

fn plan(mask: &Mod, tokens: usize, ranks: usize) -> (Request, Plan) {
    let request = request(vec![kind("mask", 1, Some(mask), (tokens, tokens), BlockSize::DEFAULT)], ranks);
    let plan = Plan::new(&request);
    (request, plan)
}

/// Every cell that a rank computes is counted; each kept cell of the mask must be counted once and no other.
fn check_cells(request: &Request, plan: &Plan, place: &str) {
    let Lengths { q_len, kv_len } = request.lengths();
    let size = request.block_size();
    for (n, kind) in request.kinds().iter().enumerate() {
        let whole = kind.rows.mask.as_deref();
        for (g, group) in kind.rows.groups.iter().enumerate() {
            let (b, h) = (group.at.0 as i64, group.at.1 as i64);
            let at = |q: usize, k: usize| Cell { b, h, q_idx: q as i64, kv_idx: k as i64, score: 0.0 };
            let keeps = |of: Option<&Mod>, q, k| of.is_none_or(|m| cell::eval(m, &at(q, k)).as_bool());
            let mut counted = vec![0u8; q_len * kv_len];
            for rank in 0..request.ranks() {
                for stage in plan.stages(request, n, rank) {
                    let local = &stage.mask;
                    let (rows, cols) = (local.q_positions(), local.kv_positions());
                    assert_eq!((rows.len(), cols.len()), (local.q_len(), local.kv_len()), "{place}");
                    let of = whole.and_then(|mask| local.mask_mod(mask));
                    for (row, q) in rows.iter().enumerate() {
                        for run in local.rows[g].row(row / size.q) {
                            for col in run.start * size.kv..(run.end * size.kv).min(cols.len()) {
                                let kept = keeps(of.as_ref(), row, col);
                                assert!(kept || run.kind == BlockKind::Partial, "{place}: a full block drops a cell");
                                counted[*q as usize * kv_len + cols[col] as usize] += u8::from(kept);
                            }
                        }
                    }
                    check_columns(local, g, place);
                }
            }
            for q in 0..q_len {
                for k in 0..kv_len {
                    let want = u8::from(keeps(whole, q, k));
                    assert_eq!(counted[q * kv_len + k], want, "{place}: kind {n}, group {g}, cell {q},{k}");
                }
            }
        }
    }
}

/// Rows and columns list the same blocks.
fn check_columns(local: &crate::local::LocalMask, g: usize, place: &str) {
    let listed = |group: &crate::rows::Group, lines: usize, turned: bool| {
        let mut out = Vec::new();
        for line in 0..lines {
            for run in group.row(line) {
                for other in run.start..run.end {
                    out.push(if turned {
                        (other, line, run.kind == BlockKind::Full)
                    } else {
                        (line, other, run.kind == BlockKind::Full)
                    });
                }
            }
        }
        out.sort_unstable();
        out
    };
    let by_row = listed(&local.rows[g], local.q_blocks.len(), false);
    assert_eq!(by_row, listed(&local.columns[g], local.kv_blocks.len(), true), "{place}");
}

/// Every token has one place, and the received blocks are those of the lists.
fn check_lists(request: &Request, plan: &Plan, place: &str) {
    let split = &plan.split;
    for (order, back, length) in [
        (split.indices(), split.restore(), split.lengths.q_len),
        (split.kv_indices(), split.kv_restore(), split.lengths.kv_len),
    ] {
        assert_eq!((order.len(), back.len()), (length, length), "{place}");
        assert!((0..length).all(|at| order[back[at] as usize] as usize == at), "{place}");
    }
    if request.coupled() {
        assert_eq!(split.indices(), split.kv_indices(), "{place}");
    }
    for (n, _) in request.kinds().iter().enumerate() {
        for rank in 0..request.ranks() {
            let stages = plan.stages(request, n, rank);
            assert_eq!(stages[0].sources, [(rank, split.kv_blocks(rank))], "{place}");
            let mut received: Vec<(usize, Vec<u32>)> = stages[1..].iter().flat_map(|s| s.sources.clone()).collect();
            received.sort();
            let lists = plan.transfers[n][rank].iter().cloned().enumerate().filter(|(_, list)| !list.is_empty());
            assert_eq!(received, lists.collect::<Vec<_>>(), "{place}");
            for (from, blocks) in received {
                assert!(blocks.iter().all(|block| split.kv_rank[*block as usize] as usize == from), "{place}");
            }
        }
    }
}

#[test]
fn random_masks_are_computed_once_cell_for_cell() {
    for seed in 0..60u64 {
        let mut rng = Rng::new(seed);
        let q_len = 1 + rng.below(90);
        let kv_len = if seed % 3 == 0 { 1 + rng.below(90) } else { q_len };
        let size = BlockSize { q: 1 + rng.below(16), kv: 1 + rng.below(16) };
        let (batch, heads) = ([1, 2][rng.below(2)], [1, 4][rng.below(2)]);
        let options = Options { batch, heads, ..Options::new(q_len, kv_len) };
        let lengths = Lengths::new(q_len, kv_len).unwrap();
        let made = |seed| {
            let mask = random::mask(seed, &options);
            let shape = MaskShape::of(Some(&mask), (batch, heads), lengths);
            let rows = MaskRows::from(&block_mask(Some(&mask), shape, size));
            Kind { name: format!("mask {seed}"), layers: 1 + seed as usize % 3, rows }
        };
        let kinds = (0..1 + seed % 2).map(|n| made(seed * 7 + n)).collect();
        let ranks = 1 + rng.below(6);
        let links = Links::hosts(ranks, 1 + rng.below(3), 200.0, 40.0).unwrap();
        let shape = Shape { batch, heads, kv_heads: 1, ..SHAPE };
        let request = Request::new(kinds, links, shape, &Cost::of_card(CARD).unwrap(), seed % 2 == 0).unwrap();
        let plan = Plan::new(&request);
        let place = format!("seed {seed}: {lengths:?}, blocks of {size}, {ranks} ranks");
        check_lists(&request, &plan, &place);
        check_cells(&request, &plan, &place);
        let again = Plan::after(&request, &plan);
        check_lists(&request, &again, &place);
        check_cells(&request, &again, &place);
    }
}

#[test]
fn gallery_masks_are_computed_once_cell_for_cell() {
    let lengths = Lengths::new(203, 203).unwrap();
    for (at, (name, mask)) in examples::rows(lengths).into_iter().enumerate() {
        let size = BlockSize::square(16);
        let of = kind(name, 1, Some(&mask), (203, 203), size);
        let request = request(vec![of], 2 + at % 4);
        let plan = Plan::new(&request);
        check_lists(&request, &plan, name);
        check_cells(&request, &plan, name);
    }
}

#[test]
fn one_gpu_takes_what_all_ranks_take_together() {
    let of = |tokens, ranks| {
        let causal = kind("causal", 3, Some(&examples::causal()), (tokens, tokens), BlockSize::square(128));
        Plan::new(&request(vec![causal], ranks)).figures
    };
    let (one, four) = (of(1024, 1), of(1024, 4));
    assert!((one.alone_ms() - one.ms()).abs() < 1e-9, "{one:?}");
    assert!((one.alone_ms() - four.alone_ms()).abs() < 1e-9, "{four:?}");
    assert!(four.ms() > four.alone_ms() / 4.0);
    // an exchange takes longer than a short sequence alone
    assert!(!one.pays() && !four.pays() && of(65_536, 4).pays(), "{four:?}");
}

/// The blocks of all ranks at their places in the whole mask.
fn check_blocks(request: &Request, plan: &Plan, place: &str) {
    for (n, kind) in request.kinds().iter().enumerate() {
        let (rows, cols) = kind.rows.grid();
        let mut seen = vec![0u8; rows * cols];
        for rank in 0..request.ranks() {
            for stage in plan.stages(request, n, rank) {
                for (row, q) in stage.mask.q_blocks.iter().enumerate() {
                    for run in stage.mask.rows[0].row(row) {
                        for col in run.start..run.end {
                            let at = *q as usize * cols + stage.mask.kv_blocks[col] as usize;
                            assert_eq!(seen[at], 0, "{place}: a block twice");
                            seen[at] = 1 + u8::from(run.kind == BlockKind::Full);
                        }
                    }
                }
            }
        }
        for row in 0..rows {
            let mut want = vec![0u8; cols];
            for run in kind.rows.groups[0].row(row) {
                want[run.start..run.end].fill(1 + u8::from(run.kind == BlockKind::Full));
            }
            assert_eq!(seen[row * cols..(row + 1) * cols], want, "{place}: row {row}");
        }
    }
}

#[test]
fn large_masks_are_computed_once_block_for_block() {
    let tokens = 128 * 1024 - 37;
    for (at, bar) in samples::bars(tokens).into_iter().enumerate() {
        let (request, plan) = plan(&bar.masks[0], tokens, 3 + at);
        check_lists(&request, &plan, bar.name);
        check_blocks(&request, &plan, bar.name);
    }
}

#[test]
fn a_local_mask_is_the_block_mask_of_its_mod() {
    let (tokens, size) = (1000, BlockSize { q: 16, kv: 32 });
    for (name, mask) in examples::rows(Lengths::new(tokens, tokens).unwrap()) {
        let request = request(vec![kind(name, 1, Some(&mask), (tokens, tokens), size)], 3);
        let plan = Plan::new(&request);
        for stage in (0..3).flat_map(|rank| plan.stages(&request, 0, rank)) {
            let local = &stage.mask;
            let Some(of) = local.mask_mod(&mask) else { continue };
            let shape = MaskShape::broadcast(Lengths::new(local.q_len(), local.kv_len()).unwrap());
            let built = MaskRows::from(&block_mask(Some(&of), shape, size));
            for row in 0..local.q_blocks.len() {
                assert_eq!(built.groups[0].row(row), local.rows[0].row(row), "{name} row {row}");
            }
        }
    }
}

#[test]
fn the_bars_hold_on_four_and_on_eight_ranks() {
    let tokens = 131_072;
    for bar in samples::bars(tokens) {
        for ranks in [4, 8] {
            let found: Vec<_> = bar.masks.iter().map(|mask| plan(mask, tokens, ranks).1.figures).collect();
            for one in &found {
                assert!(one.imbalance <= 1.01, "{}, {ranks} ranks: {:.4}", bar.name, one.imbalance);
            }
            let received = found.iter().map(|one| one.received).sum::<f64>() / found.len() as f64;
            let most = bar.received.unwrap_or(1.0);
            assert!(received <= most, "{}, {ranks} ranks: {received:.3} of {most}", bar.name);
        }
    }
}

#[test]
fn a_painted_mask_takes_the_all_gather_and_says_so() {
    let tokens = 131_072;
    let (request, plan) = plan(&samples::painted(tokens, 128, 10, 3), tokens, 4);
    assert_eq!(plan.exchange, Exchange::AllGather);
    assert_eq!(plan.figures.received, 1.0);
    let note = plan.notes.iter().find(|note| note.code == "parallel-all-gather").expect("a note");
    assert!(note.message.contains("every key is sent to every rank"), "{note}");
    check_lists(&request, &plan, "painted");
    check_blocks(&request, &plan, "painted");
}

#[test]
fn the_figures_of_others_are_those_of_their_rules() {
    let tokens = 131_072;
    let of = |mask: &Mod, ranks| {
        rivals(&request(vec![kind("m", 1, Some(mask), (tokens, tokens), BlockSize::DEFAULT)], ranks))
    };
    let found = |all: &[crate::rivals::Rival], name: &str| {
        let figures = all.iter().find(|r| r.name == name).expect("a rival").figures.clone().expect("figures");
        ((figures.imbalance * 1e3).round() / 1e3, (figures.needed * 100.0).round() / 100.0)
    };
    // as a simulation in another language gave them
    let causal = of(&examples::causal(), 4);
    assert_eq!(found(&causal, "contiguous"), (1.749, 0.5));
    assert_eq!(found(&causal, "head-tail"), (1.0, 0.75));
    assert_eq!(found(&causal, "PTRR"), (1.0, 1.0));
    assert_eq!(found(&causal, "heap"), (1.0, 0.97));
    let window = of(&examples::sliding_window(1023), 4);
    assert_eq!(found(&window, "contiguous"), (1.004, 0.01));
    assert_eq!(found(&window, "head-tail"), (1.004, 0.02));
    assert_eq!(found(&window, "PTRR"), (1.0, 1.0));
    // a balancer of one mask: the second kind of layer has what the first one's order gives it
    let size = BlockSize::DEFAULT;
    let two = [(examples::causal(), "causal"), (examples::sliding_window(1023), "window")];
    let kinds = two.iter().map(|(mask, name)| kind(name, 1, Some(mask), (tokens, tokens), size)).collect();
    let both = rivals(&request(kinds, 4));
    let imbalances = |name: &str| {
        let figures = both.iter().find(|r| r.name == name).expect("a rival").figures.clone().expect("figures");
        figures.kinds.iter().map(|kind| (kind.imbalance * 1e3).round() / 1e3).collect::<Vec<_>>()
    };
    assert_eq!(imbalances("contiguous"), [1.749, 1.004]);
    assert_eq!(imbalances("PTRR")[0], 1.0);
    let ulysses = |all: &[crate::rivals::Rival]| all.last().expect("Ulysses").figures.clone();
    assert_eq!(ulysses(&causal).expect("8 key heads over 4 ranks").imbalance, 1.0);
    assert_eq!(ulysses(&of(&examples::causal(), 3)).unwrap_err().code, "parallel-rival");
}

#[test]
fn odd_numbers_of_ranks_are_planned() {
    let mask = examples::causal();
    let size = BlockSize::square(32);
    let of = |ranks| {
        let request = request(vec![kind("m", 1, Some(&mask), (100, 100), size)], ranks);
        let plan = Plan::new(&request);
        check_lists(&request, &plan, "odd");
        check_cells(&request, &plan, "odd");
        plan
    };
    let one = of(1);
    assert_eq!((one.split.q_len(0), one.figures.received, one.figures.exposed_ms), (100, 0.0, 0.0));
    let many = of(9);
    assert_eq!((0..9).filter(|rank| many.split.q_len(*rank) == 0).count(), 5);
    assert!(many.notes.iter().any(|note| note.code == "parallel-idle"), "{:?}", many.notes);
}

#[test]
fn masks_that_differ_by_head_are_planned_for_their_union_and_say_so() {
    let mut g = examples::Builder::new();
    let h = g.graph.input(crate::ir::graph::Input::H);
    let (distance, causal) = (g.distance(), g.causal());
    let reach = g.div_by(h, 8);
    let (reach, far) = (g.mul(reach, distance), g.at_most(distance, 40));
    let near = g.at_most(reach, 10);
    let kept = g.and(near, far);
    let root = g.and(causal, kept);
    let mask = g.mask(root);
    let request = request(vec![kind("m", 1, Some(&mask), (96, 96), BlockSize::square(16))], 3);
    let plan = Plan::new(&request);
    check_cells(&request, &plan, "by head");
    assert!(plan.notes.iter().any(|note| note.code == "parallel-union"), "{:?}", plan.notes);
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let mask = examples::causal();
    let of = |tokens, layers| kind("m", layers, Some(&mask), (tokens, tokens), BlockSize::square(16));
    let refused = |kinds, ranks: usize, shape| {
        let links = Links::uniform(ranks, 1.0).unwrap();
        Request::new(kinds, links, shape, &Cost::blocks(), true).unwrap_err().code.into_owned()
    };
    assert_eq!(refused(vec![of(64, 1)], 0, SHAPE), "parallel-ranks");
    assert_eq!(refused(vec![of(64, 1)], 2000, SHAPE), "parallel-ranks");
    assert_eq!(refused(vec![], 2, SHAPE), "parallel-no-mask");
    assert_eq!(refused(vec![of(64, 0)], 2, SHAPE), "parallel-layers");
    assert_eq!(refused(vec![of(64, 1), of(80, 1)], 2, SHAPE), "parallel-extents");
    assert_eq!(refused(vec![of(64, 1)], 2, Shape { kv_heads: 3, ..SHAPE }), "parallel-heads");
}

#[test]
fn a_sequence_whose_documents_changed_keeps_the_bars() {
    let tokens = 131_072;
    let docs = |seed| examples::documents(&samples::documents(tokens, 4096, 1.2, seed));
    let (_, before) = plan(&docs(1), tokens, 8);
    let mut received = Vec::new();
    for seed in 2..=4 {
        let mask = docs(seed);
        let of = request(vec![kind("m", 1, Some(&mask), (tokens, tokens), BlockSize::DEFAULT)], 8);
        let found = Plan::after(&of, &before).figures;
        assert!(found.imbalance <= 1.01, "seed {seed}: {:.4}", found.imbalance);
        received.push(found.received);
    }
    assert!(received.iter().sum::<f64>() / 3.0 <= 0.15, "{received:?}");
}

#[test]
fn hosts_are_stages_of_their_own() {
    let mask = examples::causal();
    let links = Links::hosts(4, 2, 200.0, 40.0).unwrap();
    let of = kind("m", 1, Some(&mask), (512, 512), BlockSize::square(32));
    let request = Request::new(vec![of], links, SHAPE, &Cost::blocks(), false).unwrap();
    let plan = Plan::new(&request);
    for rank in 0..4 {
        let stages = plan.stages(&request, 0, rank);
        assert_eq!(stages.len(), 3);
        let host = |rank: usize| rank / 2;
        assert!(stages[1].sources.iter().all(|(from, _)| host(*from) == host(rank)));
        assert!(stages[2].sources.iter().all(|(from, _)| host(*from) != host(rank)));
    }
    check_cells(&request, &plan, "hosts");
}

#[test]
fn a_split_lists_its_blocks() {
    let split = Split {
        ranks: 2,
        lengths: Lengths::new(5, 5).unwrap(),
        block_size: BlockSize::square(2),
        q_rank: vec![1, 0, 1],
        kv_rank: vec![1, 0, 1],
    };
    assert_eq!((split.indices(), split.restore()), (vec![2, 3, 0, 1, 4], vec![2, 3, 0, 1, 4]));
    assert_eq!((split.q_len(0), split.q_len(1), split.kv_len(1)), (2, 3, 3));
}
