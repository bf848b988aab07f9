//! Routers on heads with distinct blocks, and their rankings compared with plain computations.
//!
//! Invariant: the planted structure is so clear that a right ranking must find it. Only compiled for tests.

use super::*;
use crate::ir::random::Rng;
use crate::quality::testing::{head, normal};

/// Tokens of a block share a direction; block i of queries looks at block `(i * 3 + 1) % blocks`.
fn clustered(blocks: usize, size: usize) -> Head {
    let (mut rng, dim) = (Rng::new(9), 16);
    let centres: Vec<f32> = (0..blocks * dim).map(|_| normal(&mut rng)).collect();
    let mut of = |which: &dyn Fn(usize) -> usize| -> Vec<f32> {
        (0..blocks * size * dim)
            .map(|at| 3.0 * centres[which(at / dim / size) * dim + at % dim] + 0.1 * normal(&mut rng))
            .collect()
    };
    let (q, k) = (of(&|i| (i * 3 + 1) % blocks), of(&|j| j));
    Head::new((blocks * size, blocks * size), dim, q, k, None).unwrap()
}

#[test]
fn every_router_finds_blocks_that_stand_out() {
    let head = clustered(8, 16);
    let known = masses(&head, BlockSize::square(16), false, &Control::new()).unwrap();
    for mut router in routers(0.125, 0.9, None) {
        router.block = None;
        router.budget = Budget::Count(1);
        let found = route(&head, &known, &router, None, &Control::new()).unwrap();
        let most = (0..8).filter(|i| found.blocks[i * 8 + (i * 3 + 1) % 8] == 1).count();
        assert_eq!(most, 8, "{}", router.name);
        assert!(found.mass > 0.95 && found.ceiling >= found.mass - 1e-6, "{found:?}");
        // forced blocks are not a choice of the ranking
        assert!(router.forced || found.recall == 1.0, "{found:?}");
    }
}

#[test]
fn a_router_never_beats_the_ceiling_and_sees_no_later_blocks() {
    let head = Head { own: Own::Causal, ..head(4, 200, 200, 16, 2.0) };
    let known = masses(&head, BlockSize::square(16), false, &Control::new()).unwrap();
    for router in routers(0.25, 0.8, None) {
        let found = route(&head, &known, &router, None, &Control::new()).unwrap();
        assert!(found.mass <= found.ceiling + 1e-6 && found.density > 0.0 && found.cost < 1.0, "{found:?}");
        let columns = 200usize.div_ceil(found.block.kv);
        let later = |at: &usize| at % columns * found.block.kv >= (at / columns + 1) * found.block.q;
        assert!((0..found.blocks.len()).filter(later).all(|at| found.blocks[at] == 0), "{}", router.name);
    }
}

/// XAttention keeps the diagonal and the first block of a causal model and counts them towards the threshold; without
/// causality it keeps nothing in any case.
#[test]
fn forced_blocks_count_towards_the_threshold() {
    let block = BlockSize::square(16);
    let whole = head(4, 128, 128, 16, 2.0);
    let router = |mass: f64, own: Own| {
        let head = Head { own, ..whole.clone() };
        let known = masses(&head, block, false, &Control::new()).unwrap();
        let router = routers(0.25, mass, None).into_iter().find(|r| r.name == "antidiagonal").unwrap();
        route(&head, &known, &router, None, &Control::new()).unwrap().blocks
    };
    let forced: Vec<u8> = (0..64).map(|at| u8::from(at % 8 == 0 || at % 8 == at / 8)).collect();
    assert_eq!(router(1e-9, Own::Causal), forced);
    let one_each = router(1e-9, Own::None);
    assert!(one_each.chunks(8).all(|row| row.iter().filter(|k| **k == 1).count() == 1), "{one_each:?}");
}

#[test]
fn rankings_are_their_formulas() {
    let made = head(2, 48, 64, 8, 1.0);
    let (q, k, scale) = (made.q(), made.k(), made.scale as f32);
    let block = BlockSize { q: 16, kv: 32 };
    let mean = |of: &[f32], from: usize, count: usize, e: usize| {
        (from..from + count).map(|t| of[t * 8 + e]).sum::<f32>() / count as f32
    };
    let (found, _) = pooled::rank(&made, block, Ranking::MeanPool);
    let wanted: f32 = (0..8).map(|e| mean(q, 16, 16, e) * mean(k, 32, 32, e)).sum::<f32>() * scale;
    assert!((found[3] - wanted).abs() < 1e-5);
    let (found, _) = pooled::rank(&made, block, Ranking::SubBlock { parts: 2 });
    let part = |a: usize, b: usize| {
        (0..8).map(|e| mean(q, 16 + 8 * a, 8, e) * mean(k, 32 + 16 * b, 16, e)).sum::<f32>() * scale
    };
    let wanted = (0..4).map(|n| part(n / 2, n % 2).exp()).sum::<f32>().ln();
    assert!((found[3] - wanted).abs() < 1e-5);
    // 10 queries are cut into 3, 3, 3 and 1: the second block starts again
    let odd = BlockSize { q: 10, kv: 32 };
    let (found, _) = pooled::rank(&made, odd, Ranking::SubBlock { parts: 4 });
    let part = |a: usize, b: usize| {
        let rows = [3, 3, 3, 1][a];
        (0..8).map(|e| mean(q, 10 + 3 * a, rows, e) * mean(k, 8 * b, 8, e)).sum::<f32>() * scale
    };
    let wanted = (0..16).map(|n| part(n / 4, n % 4).exp()).sum::<f32>().ln();
    assert!((found[2] - wanted).abs() < 1e-5, "{} {wanted}", found[2]);
    let (found, _) = pooled::rank(&made, block, Ranking::Quest);
    let bound = |t: usize| {
        (0..8).map(|e| (32..64).map(|s| q[t * 8 + e] * k[s * 8 + e]).fold(f32::NEG_INFINITY, f32::max)).sum::<f32>()
    };
    let wanted = (16..32).map(bound).sum::<f32>() / 16.0 * scale;
    assert!((found[3] - wanted).abs() < 1e-4);
}

#[test]
fn video_routers_cut_tiles_of_the_grid() {
    let grid = Grid { extents: [4, 8, 16], start: 0 };
    let made = head(3, 512, 512, 8, 1.0);
    let known = masses(&made, BlockSize::square(64), false, &Control::new()).unwrap();
    let all = routers(0.25, 0.9, Some(grid));
    let moba = all.iter().find(|r| r.name == "moba3d").unwrap();
    let found = route(&made, &known, moba, Some(grid), &Control::new()).unwrap();
    assert_eq!((found.block, found.blocks.len(), found.density), (BlockSize::square(128), 16, 0.25));
}
