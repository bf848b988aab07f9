//! Pictures compared with the interpreter.

use super::*;
use crate::analysis::examples::{self, Rng};
use crate::base::Lengths;
use crate::ir::cell::{self, Cell};
use crate::ir::random;

fn share(of: &Mod, q: Range<usize>, kv: Range<usize>) -> f32 {
    let cell = |q: usize, k: usize| Cell { b: 0, h: 0, q_idx: q as i64, kv_idx: k as i64, score: 0.0 };
    let kept = q.clone().map(|q| kv.clone().filter(|k| cell::eval(of, &cell(q, *k)).as_bool()).count());
    kept.sum::<usize>() as f32 / (q.len() * kv.len()) as f32
}

fn check(name: &str, of: &Mod, q: Range<usize>, kv: Range<usize>, height: usize, width: usize, tolerance: f32) {
    let region = Region { b: 0, h: 0, q: q.clone(), kv: kv.clone(), height, width };
    let picture = Raster::new(Arc::new(of.clone())).picture(&region, Effort::FULL, &Control::new());
    for row in 0..height {
        for col in 0..width {
            let want = share(of, tokens(&q, row, row + 1, height), tokens(&kv, col, col + 1, width));
            let got = picture.pixels[row * width + col];
            let allowed = if picture.exact { 1e-6 } else { tolerance };
            assert!(
                (got - want).abs() <= allowed,
                "{name}: pixel {row},{col} is {got}, not {want} ({})",
                picture.exact
            );
        }
    }
}

#[test]
fn small_pictures_are_exact_at_any_zoom() {
    let mut rng = Rng::new(11);
    let lengths = Lengths::new(150, 130).unwrap();
    for (name, of) in examples::all(lengths, &mut rng) {
        let Some(of) = of else { continue };
        check(name, &of, 0..150, 0..130, 19, 23, 0.0);
        check(name, &of, 31..47, 60..75, 16, 15, 0.0);
        check(name, &of, 100..110, 0..7, 25, 30, 0.0);
    }
}

/// Every combination of lengths and pixels, zoomed in, out and between, of masks whose boxes are decided in every way.
#[test]
fn pictures_are_exact_at_every_size_and_zoom() {
    let pick = |rng: &mut Rng, n: usize| 1 + rng.below(n);
    let mut rng = Rng::new(23);
    let masks = [examples::causal(), examples::sliding_window(5), examples::prefix_lm(9)];
    for round in 0..600 {
        let (q_len, kv_len) = (pick(&mut rng, 90), pick(&mut rng, 90));
        let part = |rng: &mut Rng, len: usize| {
            let from = rng.below(len);
            from..from + 1 + rng.below(len - from)
        };
        let whole = round % 3 == 0;
        let q = if whole { 0..q_len } else { part(&mut rng, q_len) };
        let kv = if whole { 0..kv_len } else { part(&mut rng, kv_len) };
        let (height, width) = (pick(&mut rng, 130), pick(&mut rng, 130));
        check(&format!("round {round}"), &masks[round % masks.len()], q, kv, height, width, 0.0);
    }
    // the gallery's pictures: far more pixels than keys
    check("keys of a prompt", &examples::prefix_lm(40), 0..200, 0..77, 96, 96, 0.0);
    check("a draft", &examples::sliding_window(3), 0..15, 0..410, 96, 96, 0.0);
}

#[test]
fn pictures_of_random_mods_are_exact_where_they_say_so() {
    let mut rng = Rng::new(6);
    for seed in 0..40 {
        let (q, kv) = (1 + rng.below(70), 1 + rng.below(70));
        let mut options = random::Options::new(q, kv);
        options.portable = seed % 2 == 0;
        let of = random::mask(seed + 1000, &options);
        check(&format!("random {seed}"), &of, 0..q, 0..kv, 1 + rng.below(20), 1 + rng.below(20), 0.5);
    }
}

#[test]
fn sampled_pixels_are_close() {
    let mut rng = Rng::new(2);
    let lengths = Lengths::new(300, 300).unwrap();
    for (name, of) in examples::all(lengths, &mut rng) {
        let Some(of) = of else { continue };
        check(name, &of, 0..300, 0..300, 4, 4, 0.12);
    }
}

/// Two pixels that are alike share one sample, and whose it is must not follow the order in which threads come to them.
#[test]
fn a_picture_is_the_same_on_any_number_of_threads() {
    let lengths = Lengths::new(6000, 6000).unwrap();
    let (region, few) = (Region::whole([0, 0], lengths, [160, 160]), Effort { picture: 0, pixel: 6 });
    let drawn = |of: &Mod, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Raster::new(Arc::new(of.clone())).picture(&region, few, &Control::new()))
    };
    let mut sampled = 0;
    for (name, of) in examples::all(lengths, &mut Rng::new(3)) {
        let Some(of) = of else { continue };
        let alone = drawn(&of, 1);
        sampled += usize::from(!alone.exact);
        for threads in [2, 3, 8] {
            assert!(drawn(&of, threads) == alone, "{name} on {threads} threads");
        }
    }
    assert!(sampled > 2, "{sampled}");
}

#[test]
fn a_million_tokens_come_from_few_evaluations() {
    let lengths = Lengths::new(1 << 20, 1 << 20).unwrap();
    let raster = Raster::new(Arc::new(examples::causal()));
    let picture = raster.picture(&Region::whole([0, 0], lengths, [64, 64]), Effort::FULL, &Control::new());
    assert_eq!(picture.pixels[64 * 3], 1.0);
    assert_eq!(picture.pixels[1], 0.0);
    assert!((picture.pixels[65] - 0.5).abs() < 0.01, "{}", picture.pixels[65]);
}

#[test]
fn a_cancelled_picture_stops() {
    let control = Control::new();
    control.cancel();
    let raster = Raster::new(Arc::new(examples::causal()));
    assert!(
        raster
            .tile(&Region { b: 0, h: 0, q: 0..1 << 20, kv: 0..1 << 20, height: 64, width: 64 }, &control)
            .iter()
            .all(|p| *p == 0.0)
    );
}

#[test]
fn a_bias_is_the_mean_of_its_cells() {
    use crate::ir::graph::{BinaryOp, ModKind, UnaryOp};
    let mut g = examples::Builder::new();
    let d = g.distance();
    let d = g.graph.unary(UnaryOp::ToFloat, d);
    let score = g.graph.input(crate::ir::graph::Input::Score);
    let root = g.graph.binary(BinaryOp::Add, score, d);
    let raster = BiasRaster::new(Arc::new(Mod { kind: ModKind::Score, ..g.mask(root) }));
    let tile = |q, kv, height, width| raster.tile(&Region { b: 0, h: 0, q, kv, height, width }, &Control::new());
    assert_eq!(tile(3..5, 0..3, 2, 3), [3.0, 2.0, 1.0, 4.0, 3.0, 2.0]);
    let coarse = tile(0..64, 0..64, 2, 2);
    assert_eq!((coarse[0], coarse[1], coarse[2]), (0.0, -32.0, 32.0));
}

#[test]
fn a_tile_is_the_pictures_pixels_and_a_region_of_nothing_is_empty() {
    let mut rng = Rng::new(11);
    let (_, of) =
        examples::all(Lengths::new(60, 60).unwrap(), &mut rng).into_iter().find(|(_, of)| of.is_some()).unwrap();
    let raster = Raster::new(Arc::new(of.unwrap()));
    let region = Region { b: 0, h: 0, q: 0..60, kv: 0..60, height: 6, width: 5 };
    let pixels = raster.picture(&region, Effort::FULL, &Control::new()).pixels;
    assert!(pixels.len() == 30 && pixels.iter().any(|share| *share > 0.0));
    assert_eq!(raster.tile(&region, &Control::new()), pixels);
    for nothing in [Region { q: 7..7, ..region.clone() }, Region { kv: 7..7, ..region.clone() }] {
        assert_eq!(raster.tile(&nothing, &Control::new()), vec![0.0; 30]);
    }
    assert_eq!(raster.tile(&Region { height: 0, ..region }, &Control::new()), Vec::<f32>::new());
}
