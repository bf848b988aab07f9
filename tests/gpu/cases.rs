//! The tests, by name. Each panics on an error.

use super::check::{Device, alibi, causal, empty_rows, make, plain_causal, problem, soft_cap, spec, window};
use maskloom::backends::attention_map::{self, Region, Values};
use maskloom::backends::inputs;
use maskloom::base::tensor::Data;
use maskloom::base::{BackendName, Control, DType, HostTensor, Layout};
use maskloom::ir::graph::{BinaryOp, Input, Mod, ModKind, Op, UnaryOp};
use maskloom::ir::random::{self, Options, Rng};
use maskloom::problem::ProblemSpec;
use maskloom::problem::facts::Library;
use std::sync::Arc;

/// A test and its name.
pub(crate) type Case = (&'static str, fn(&Device));

/// All of them.
pub(crate) const ALL: &[Case] = &[
    ("opens_and_names_itself", opens_and_names_itself),
    ("full_attention_of_ragged_lengths", full_attention_of_ragged_lengths),
    ("every_head_dim", every_head_dim),
    ("causal_and_windows", causal_and_windows),
    ("rows_that_keep_nothing", rows_that_keep_nothing),
    ("score_mods", score_mods),
    ("fast_math", fast_math),
    ("layouts_and_groups", layouts_and_groups),
    ("scales", scales),
    ("rows_that_rise", rows_that_rise),
    ("captured_tensors", captured_tensors),
    ("constants_by_pointer", constants_by_pointer),
    ("random_mods", random_mods),
    ("few_rows_over_many_keys", few_rows_over_many_keys),
    ("random_decoding", random_decoding),
    ("largest_scores", largest_scores),
    ("attention_maps", attention_maps),
    ("long_sequences", long_sequences),
    ("more_partial_tiles_than_bitmaps", more_partial_tiles_than_bitmaps),
    ("refusals", refusals),
    ("timing", timing),
];

fn opens_and_names_itself(device: &Device) {
    let info = device.gpu.info();
    assert!(info.memory > 1 << 30 && info.limits.multiprocessors > 0 && info.limits.l2_bytes > 1 << 20, "{info:?}");
    let (free, total) = device.gpu.memory().expect("memory");
    assert!(free <= total && total as u64 <= info.memory + (1 << 30));
}

fn full_attention_of_ragged_lengths(device: &Device) {
    for (q_len, kv_len) in [(1, 1), (1, 300), (65, 63), (128, 128), (130, 257), (300, 17), (511, 513)] {
        for dtype in [DType::BF16, DType::F16] {
            let p = problem(ProblemSpec { dtype, ..spec(2, 4, 2, q_len, kv_len, 64) });
            let ran = device.check(&format!("{q_len}x{kv_len} {dtype}"), &p);
            assert_eq!(ran.len(), 4, "{q_len}x{kv_len}");
        }
    }
}

fn every_head_dim(device: &Device) {
    for (dim, dim_v) in
        [(32, 32), (64, 64), (80, 80), (96, 96), (128, 128), (256, 256), (20, 20), (8, 8), (1, 3), (128, 64), (72, 200)]
    {
        let s = ProblemSpec { head_dim_v: dim_v, mask: Some(causal(0)), ..spec(1, 2, 1, 200, 200, dim) };
        device.check(&format!("d{dim}/{dim_v}"), &problem(s));
    }
}

fn causal_and_windows(device: &Device) {
    for (q_len, kv_len) in [(300, 300), (200, 333), (333, 200)] {
        for mask in [plain_causal(), causal(kv_len as i64 - q_len as i64), causal(-90), causal(40), window(50)] {
            let p = problem(ProblemSpec { mask: Some(mask), ..spec(2, 4, 2, q_len, kv_len, 64) });
            let ran = device.check(&format!("{q_len}x{kv_len}"), &p);
            assert!(ran.contains(&BackendName::Flex) && ran.contains(&BackendName::Sdpa));
        }
    }
    let p = problem(ProblemSpec { mask: Some(plain_causal()), ..spec(1, 2, 2, 300, 300, 64) });
    assert_eq!(device.check("causal", &p).len(), 4);
}

fn rows_that_keep_nothing(device: &Device) {
    for dtype in [DType::BF16, DType::F16] {
        for dim in [64, 128] {
            let s = ProblemSpec { dtype, mask: Some(empty_rows()), ..spec(2, 3, 3, 333, 290, dim) };
            device.check(&format!("empty rows {dtype} d{dim}"), &problem(s));
        }
    }
    // a mask that keeps nothing anywhere
    let nothing = make(ModKind::Mask, |g| g.bool(false));
    device.check("nothing", &problem(ProblemSpec { mask: Some(nothing), ..spec(1, 2, 2, 100, 100, 64) }));
}

fn score_mods(device: &Device) {
    for score in [alibi(), soft_cap()] {
        for mask in [None, Some(plain_causal()), Some(empty_rows())] {
            let s = ProblemSpec { mask, score: Some(score.clone()), ..spec(2, 4, 2, 270, 300, 128) };
            let ran = device.check("score mod", &problem(s));
            assert_eq!(ran, [BackendName::Eager, BackendName::Flex]);
        }
    }
}

/// The functions of fast math, which only approximate the mod: a cap that changes scores of 5 by up to 0.0025.
fn fast_math(device: &Device) {
    use maskloom::ir::passes::approximate::approximate;
    let cap = soft_cap();
    let score = approximate(&cap);
    assert_ne!(score.graph.nodes(), cap.graph.nodes());
    for (dim, dtype) in [(64, DType::F16), (128, DType::BF16), (256, DType::BF16)] {
        let s = ProblemSpec {
            dtype,
            score: Some(Arc::new(score.clone())),
            mask: Some(causal(0)),
            ..spec(1, 4, 2, 400, 400, dim)
        };
        let ran = device.check(&format!("fast math d{dim} {dtype}"), &problem(s));
        assert_eq!(ran, [BackendName::Eager, BackendName::Flex]);
    }
}

fn layouts_and_groups(device: &Device) {
    for layout in [Layout::Bhsd, Layout::Bshd] {
        for (heads, kv_heads) in [(6, 6), (6, 3), (6, 1)] {
            for (dim, dtype) in [(80, DType::F16), (20, DType::BF16)] {
                let s =
                    ProblemSpec { layout, dtype, mask: Some(window(70)), ..spec(3, heads, kv_heads, 150, 170, dim) };
                device.check(&format!("{layout:?} {heads}/{kv_heads} d{dim}"), &problem(s));
            }
        }
    }
}

fn scales(device: &Device) {
    for scale in [1.0, 0.02, -0.3, 0.0] {
        for mask in [None, Some(plain_causal())] {
            let s = ProblemSpec { scale: Some(scale), mask, ..spec(1, 2, 2, 150, 150, 64) };
            device.check(&format!("scale {scale}"), &problem(s));
        }
    }
}

/// Scores whose largest rises over the tiles of a row: by less than the margin of an exponential's base, by more, and
/// by more than float can represent, while some rows have kept one cell and others none before; with a mask and
/// without, in pieces and whole. Five key tiles are enough for a rise, and one row of tiles is enough to be cut into
/// pieces.
fn rows_that_rise(device: &Device) {
    let masks = [None, Some(plain_causal()), Some(window(70)), Some(empty_rows())];
    let check = |deviation: f64, shape: ProblemSpec, masks: &[Option<Arc<Mod>>]| {
        let scale = Some(deviation / (shape.head_dim as f64).sqrt());
        for (at, mask) in masks.iter().enumerate() {
            for dtype in [DType::F16, DType::BF16] {
                let s = ProblemSpec { dtype, scale, mask: mask.clone(), ..shape.clone() };
                let what = format!("deviation {deviation}, d{}/{} {dtype}, mask {at}", s.head_dim, s.head_dim_v);
                device.check(&what, &problem(s));
            }
        }
    };
    for deviation in [4.0, 12.0, 25.0, 40.0, 90.0] {
        for (dim, dim_v) in [(64, 64), (128, 128), (192, 128), (256, 256), (32, 32), (100, 72)] {
            check(deviation, ProblemSpec { head_dim_v: dim_v, ..spec(1, 2, 1, 140, 600, dim) }, &masks);
        }
        // whole: more tiles of queries than there are multiprocessors
        let whole = [64, 128].map(|dim| spec(20, 8, 2, 130, 260, dim));
        whole.into_iter().for_each(|s| check(deviation, s, &masks[1..2]));
    }
}

/// Documents by a captured vector, and a bias by a captured table read beyond its ends.
fn captured_tensors(device: &Device) {
    let documents = make(ModKind::Mask, |g| {
        let ids: Vec<i64> = (0..400).map(|i| i / 90).collect();
        let docs = g.add_capture("docs", HostTensor::vector(Data::I64(ids)));
        let (q, kv) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        let (a, b) = (
            g.add(Op::Load(docs, [q].into_iter().collect()), None),
            g.add(Op::Load(docs, [kv].into_iter().collect()), None),
        );
        g.binary(BinaryOp::Eq, a, b)
    });
    let table = make(ModKind::Score, |g| {
        let values = (0..4 * 101).map(|i| half::bf16::from_f32((i % 37) as f32 * 0.05 - 1.0)).collect();
        let table = g.add_capture("table", HostTensor::new([4, 101], Data::BF16(values)).expect("a tensor"));
        let (h, q, kv) = (g.input(Input::H), g.input(Input::QIdx), g.input(Input::KvIdx));
        let score = g.input(Input::Score);
        let (middle, distance) = (g.int(50), g.binary(BinaryOp::Sub, q, kv));
        let index = g.binary(BinaryOp::Add, distance, middle);
        let bias = g.add(Op::Load(table, [h, index].into_iter().collect()), None);
        g.binary(BinaryOp::Add, score, bias)
    });
    let s = spec(2, 4, 2, 400, 400, 64);
    device.check("documents", &problem(ProblemSpec { mask: Some(documents.clone()), ..s.clone() }));
    device.check("table", &problem(ProblemSpec { score: Some(table.clone()), ..s.clone() }));
    device.check("both", &problem(ProblemSpec { mask: Some(documents), score: Some(table), ..s }));
}

/// A score mod with so many constants that they do not fit into the kernel's parameters.
fn constants_by_pointer(device: &Device) {
    let chain: Arc<Mod> = make(ModKind::Score, |g| {
        let (mut sum, kv) = (g.input(Input::Score), g.input(Input::KvIdx));
        for i in 0..500 {
            let (at, by) = (g.int(i * 7 % 500), g.float(0.001 * (i % 90) as f64 + 1e-5 * i as f64));
            let equal = g.binary(BinaryOp::Eq, kv, at);
            let float = g.unary(UnaryOp::ToFloat, equal);
            let part = g.binary(BinaryOp::Mul, float, by);
            sum = g.binary(BinaryOp::Add, sum, part);
        }
        sum
    });
    device.check("many constants", &problem(ProblemSpec { score: Some(chain), ..spec(1, 2, 2, 150, 500, 64) }));
}

/// Random masks and score mods over random shapes.
fn random_mods(device: &Device) {
    for seed in 0..30 {
        let mut rng = Rng::new(seed ^ 0xabcd);
        let dim = *rng.pick(&[32, 64, 80, 128, 128, 256]);
        let kv_heads = *rng.pick(&[1, 2, 3]);
        let group = *rng.pick(&[1, 2]);
        let batch = 1 + rng.below(2);
        let (q_len, kv_len) = (1 + rng.below(420), 1 + rng.below(420));
        let heads = kv_heads * group;
        let options = Options { batch, heads, ..Options::new(q_len, kv_len) };
        let mask = rng.chance(80).then(|| Arc::new(random::mask(seed, &options)));
        let score = rng.chance(60).then(|| Arc::new(random::score(seed, &options)));
        let dtype = if rng.chance(50) { DType::BF16 } else { DType::F16 };
        let layout = if rng.chance(50) { Layout::Bhsd } else { Layout::Bshd };
        let s = ProblemSpec { dtype, layout, mask, score, ..spec(batch, heads, kv_heads, q_len, kv_len, dim) };
        device.check(&format!("seed {seed}: {batch}x{heads}/{kv_heads} {q_len}x{kv_len} d{dim} {dtype}"), &problem(s));
    }
}

/// Decoding: the keys are split, the heads of a kv head packed; all widths, both layouts, rows that keep nothing.
fn few_rows_over_many_keys(device: &Device) {
    for (batch, heads, kv_heads, q_len, kv_len, dim) in [
        (1, 8, 2, 1, 300, 64),
        (2, 8, 2, 1, 4097, 128),
        (1, 4, 4, 7, 1000, 80),
        (1, 6, 2, 16, 777, 128),
        (1, 3, 1, 64, 2048, 128),
        (2, 2, 1, 33, 500, 256),
        (1, 2, 2, 1, 256, 256),
        (3, 16, 1, 5, 1500, 96),
    ] {
        let offset = causal(kv_len as i64 - q_len as i64);
        let documents = make(ModKind::Mask, |g| {
            let (q, kv, h) = (g.input(Input::QIdx), g.input(Input::KvIdx), g.input(Input::H));
            let (hundred, sum) = (g.int(100), g.binary(BinaryOp::Add, kv, h));
            let (part, row) = (g.binary(BinaryOp::FloorDiv, sum, hundred), g.binary(BinaryOp::Add, q, h));
            let rest = g.binary(BinaryOp::Sub, part, row);
            let two = g.int(2);
            let (rest, one) = (g.binary(BinaryOp::Mod, rest, two), g.int(1));
            g.binary(BinaryOp::Eq, rest, one)
        });
        for (at, mask) in [None, Some(offset), Some(documents), Some(empty_rows())].into_iter().enumerate() {
            let (layout, dtype) = if at % 2 == 0 { (Layout::Bhsd, DType::BF16) } else { (Layout::Bshd, DType::F16) };
            let score = (at >= 2).then(alibi);
            let s = ProblemSpec { layout, dtype, mask, score, ..spec(batch, heads, kv_heads, q_len, kv_len, dim) };
            device.check(&format!("{batch}x{heads}/{kv_heads} {q_len}x{kv_len} d{dim} {at}"), &problem(s));
        }
    }
}

/// Random masks and score mods over few rows and many keys.
fn random_decoding(device: &Device) {
    for seed in 100..130 {
        let mut rng = Rng::new(seed);
        let (dim, dim_v) = (*rng.pick(&[16, 64, 72, 128, 256]), *rng.pick(&[40, 64, 128, 256]));
        let (batch, kv_heads, group) = (1 + rng.below(3), 1 + rng.below(3), *rng.pick(&[1, 2, 3, 8]));
        let (q_len, kv_len) = (*rng.pick(&[1, 1, 1, 2, 5, 16, 40, 64]), 256 + rng.below(3000));
        let options = Options { batch, heads: kv_heads * group, ..Options::new(q_len, kv_len) };
        let mask = rng.chance(70).then(|| Arc::new(random::mask(seed, &options)));
        let score = rng.chance(50).then(|| Arc::new(random::score(seed, &options)));
        let dtype = if rng.chance(50) { DType::BF16 } else { DType::F16 };
        let layout = if rng.chance(50) { Layout::Bhsd } else { Layout::Bshd };
        let base = spec(batch, kv_heads * group, kv_heads, q_len, kv_len, dim);
        let s = ProblemSpec { dtype, layout, mask, score, head_dim_v: dim_v, ..base };
        device.check(&format!("seed {seed}: {batch}x{kv_heads}x{group} {q_len}x{kv_len} d{dim}/{dim_v}"), &problem(s));
    }
}

/// Every kernel that gives them: by head dim Hopper's with and without a lag and the mma.sync one, packed heads in pieces, the
/// linked form that serves first, scales that are no factor of the exponent, and a soft cap, whose base is not the maximum.
fn largest_scores(device: &Device) {
    let asked = |s: ProblemSpec| problem(ProblemSpec { max_scores: true, ..s });
    for (dim, dim_v) in [(64, 64), (128, 128), (192, 128), (192, 192), (256, 256), (32, 32), (72, 200)] {
        for mask in [None, Some(plain_causal()), Some(empty_rows())] {
            let s = ProblemSpec { head_dim_v: dim_v, mask, ..spec(2, 4, 2, 700, 900, dim) };
            device.check_max_scores(&format!("d{dim}/{dim_v}"), &asked(s));
        }
    }
    for dim in [64, 128, 256] {
        for score in [alibi(), soft_cap()] {
            let s = ProblemSpec { mask: Some(empty_rows()), score: Some(score), ..spec(1, 3, 3, 600, 777, dim) };
            device.check_max_scores(&format!("score mod d{dim}"), &asked(s));
        }
        for scale in [-0.3, 0.0, 2.0] {
            let s = ProblemSpec { scale: Some(scale), mask: Some(window(90)), ..spec(1, 2, 2, 300, 400, dim) };
            device.check_max_scores(&format!("scale {scale} d{dim}"), &asked(s));
        }
    }
    for (q_len, heads, kv_heads) in [(1, 8, 2), (1, 4, 4), (5, 8, 1), (64, 2, 2)] {
        for (mask, score) in [(None, None), (Some(causal(3000)), Some(alibi())), (Some(window(40)), None)] {
            let s = ProblemSpec { mask, score, ..spec(2, heads, kv_heads, q_len, 5000, 128) };
            device.check_max_scores(&format!("{q_len} rows, {heads}/{kv_heads} heads"), &asked(s));
        }
    }
}

/// Pictures of whole heads, of parts, and of single cells, with and without mods: those of the host.
fn attention_maps(device: &Device) {
    let region = |h, q: (usize, usize), kv: (usize, usize), height, width| Region {
        b: 1,
        h,
        q: q.0..q.1,
        kv: kv.0..kv.1,
        height,
        width,
    };
    for (dim, dtype, score) in
        [(64, DType::BF16, None), (72, DType::F16, Some(alibi())), (128, DType::BF16, Some(soft_cap()))]
    {
        for mask in [None, Some(plain_causal()), Some(empty_rows())] {
            let p = problem(ProblemSpec { dtype, mask, score: score.clone(), ..spec(2, 4, 2, 700, 900, dim) });
            let given = inputs::random(&p, 5);
            for region in [
                region(3, (0, 700), (0, 900), 70, 90),
                region(1, (0, 700), (0, 900), 97, 64),
                region(0, (190, 217), (150, 250), 27, 100),
                region(2, (699, 700), (3, 4), 1, 1),
                region(2, (0, 700), (0, 900), 1, 1),
            ] {
                for values in [Values::Scores, Values::Probabilities] {
                    let host = attention_map::map(&p, &given, &region, values, &Control::new()).expect("a picture");
                    let found = device.map(&p, &given, &region, values);
                    // probabilities of a pixel are a sum over its rows
                    let rows = region.q.len() as f32 / region.height as f32;
                    let off = |(a, b): (&f32, &f32)| {
                        let same = a == b || (a.is_nan() && b.is_nan());
                        !(same || (a - b).abs() <= 1e-4 + 1e-4 * if values == Values::Scores { b.abs() } else { rows })
                    };
                    let wrong = found.iter().zip(&host).filter(|(a, b)| off((a, b))).count();
                    assert_eq!((found.len(), wrong), (host.len(), 0), "d{dim} {region:?} {values:?}");
                }
            }
        }
    }
}

fn long_sequences(device: &Device) {
    for (mask, q_len, kv_len) in [
        (Some(plain_causal()), 8192, 8192),
        (Some(window(1000)), 10_000, 9_999),
        (None, 4096, 4097),
        (Some(causal(32_000)), 16, 32_016),
    ] {
        let p = problem(ProblemSpec { mask, ..spec(2, 8, 2, q_len, kv_len, 128) });
        let mut kernels = Vec::new();
        device.check_all(&format!("{q_len}x{kv_len}"), &p, &mut kernels);
        println!("       {q_len}x{kv_len}: {}", kernels.join("; "));
    }
}

/// Rows that keep one range of keys each, ragged enough that nearly every tile is partial: too many for bitmaps.
fn more_partial_tiles_than_bitmaps(device: &Device) {
    for (heads, dim, dim_v, score) in [(5, 128, 128, None), (8, 64, 64, Some(alibi())), (3, 128, 256, None)] {
        let tokens = 8201;
        let mut rng = Rng::new(dim_v as u64);
        let ends: Vec<i64> = (0..heads * tokens * 2).map(|_| rng.below(tokens + 1) as i64).collect();
        let mask = make(ModKind::Mask, |g| {
            let ends = g.add_capture("ends", HostTensor::new([heads, tokens, 2], Data::I64(ends)).expect("a tensor"));
            let (h, q, kv) = (g.input(Input::H), g.input(Input::QIdx), g.input(Input::KvIdx));
            let (zero, one) = (g.int(0), g.int(1));
            let [first, past] =
                [zero, one].map(|which| g.add(Op::Load(ends, [h, q, which].into_iter().collect()), None));
            let (behind, before) = (g.binary(BinaryOp::Ge, kv, first), g.binary(BinaryOp::Lt, kv, past));
            g.binary(BinaryOp::And, behind, before)
        });
        let s =
            ProblemSpec { mask: Some(mask), score, head_dim_v: dim_v, ..spec(1, heads, heads, tokens, tokens, dim) };
        let mut kernels = Vec::new();
        device.check_all(&format!("d{dim}/{dim_v}"), &problem(s), &mut kernels);
        assert!(kernels.iter().any(|k| k.contains("mask:interval")), "{kernels:?}");
    }
}

fn refusals(device: &Device) {
    let code = |s: ProblemSpec, name: BackendName| {
        let backend = device.backends().into_iter().find(|b| b.name() == name).expect("a backend");
        backend.support(&problem(s)).err().map(|why| {
            assert!(why.hint.is_some(), "{why}");
            why.code.to_string()
        })
    };
    let s = spec(1, 2, 2, 100, 100, 64);
    assert_eq!(code(s.clone(), BackendName::Flex), None);
    let single = ProblemSpec { dtype: DType::F32, ..s.clone() };
    assert_eq!(code(single, BackendName::Flex).as_deref(), Some("gpu-float32"));
    let scored = ProblemSpec { score: Some(alibi()), ..s };
    assert_eq!(code(scored, BackendName::Sdpa).as_deref(), Some("score-mod-unsupported"));
    let huge = spec(1, 1, 1, 1 << 20, 1 << 20, 64);
    assert_eq!(code(huge, BackendName::Eager).as_deref(), Some("gpu-out-of-memory"));
}

fn timing(device: &Device) {
    let p = problem(ProblemSpec { mask: Some(plain_causal()), ..spec(1, 16, 16, 2048, 2048, 64) });
    let given = inputs::random(&p, 1);
    for mut backend in device.backends() {
        let mut prepared = backend.prepare(&p, &given).expect("supported");
        let first = prepared.output().expect("it runs");
        let timed = prepared.time(20).expect("it runs");
        let times = &timed.passes_ms;
        assert!(times.len() == 20 && times.iter().all(|t| *t > 0.0 && *t < 1000.0), "{times:?}");
        let again = prepared.output().expect("it runs");
        assert_eq!(first.out.data(), again.out.data(), "{} gives the same bits again", backend.name());
        match prepared.artefact() {
            Some(artefact) => {
                assert!(artefact.registers > 0 && artefact.blocks_per_sm.is_some_and(|n| n > 0), "{}", artefact.log);
            }
            None => assert!(prepared.kernel().facts.library == Library::Cudnn, "{}", prepared.kernel()),
        }
        let timing = maskloom::backends::stats::timing_of(timed).expect("samples");
        let call = timing.calls.expect("a GPU tells its part from the host's").median_ms;
        // nothing of a call runs beside itself; a pass of the GPU alone is no longer than a call but for the clock's own error
        assert!(call > 0.8 * timing.median_ms && call < 1000.0, "{timing:?}");
        println!("       {}: {:.3} ms, a call {call:.3} ms", prepared.kernel(), timing.median_ms);
    }
}
