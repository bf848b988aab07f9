//! Unusual masks for tests: unaligned periods, tables read at shifted and clamped places, floats, bits, b and h.

use super::*;

/// Small versions of the known masks and of odd ones; None keeps everything.
pub fn all(lengths: Lengths, rng: &mut Rng) -> Vec<(&'static str, Option<Mod>)> {
    let tokens = lengths.q_len.max(lengths.kv_len);
    let n = |rng: &mut Rng| 1 + rng.below(tokens) as i64;
    let mut out = vec![
        ("everything", None),
        ("causal", Some(causal())),
        ("window", Some(sliding_window(n(rng)))),
        ("prefix", Some(prefix_lm(n(rng)))),
        ("dilated", Some(dilated(n(rng), 2 + rng.below(5) as i64))),
        ("documents", Some(documents(&document_lengths(tokens, 1 + rng.below(30), rng)))),
        ("natten", Some(natten(3 + rng.below(9) as i64, 3 + rng.below(9) as i64, 3, 5))),
        ("sliding tile", Some(sliding_tile([4, 6, 6], [2, 4, 6], [2, 2, 2]))),
        ("big bird", Some(big_bird(tokens, 1 + rng.below(8), 2, rng.next_u64()))),
        ("block diffusion", Some(block_diffusion((tokens as i64 + 1) / 2, 1 + rng.below(9) as i64))),
    ];
    for (name, build) in ODD {
        let mut g = Builder::new();
        let root = build(&mut g, rng, tokens);
        out.push((name, Some(g.mask(root))));
    }
    out
}

type Odd = fn(&mut Builder, &mut Rng, usize) -> NodeId;

const ODD: [(&str, Odd); 9] = [
    ("periods", periods),
    ("per head window", per_head),
    ("padding per batch", per_batch),
    ("unsorted table", unsorted),
    ("distance table", distance_table),
    ("flamingo", intervals),
    ("float distance", float_distance),
    ("bits", bits),
    ("nested where", nested),
];

/// `abs((q - p) % f - (k - p) % f) < w`, as SVG's temporal heads.
fn periods(g: &mut Builder, rng: &mut Rng, tokens: usize) -> NodeId {
    let (p, f) = (g.int(rng.below(9) as i64), 2 + rng.below(tokens) as i64);
    let (q, k) = (g.q, g.k);
    let (q, k) = (g.sub(q, p), g.sub(k, p));
    let (q, k) = (g.rem_by(q, f), g.rem_by(k, f));
    let d = g.sub(q, k);
    let d = g.abs(d);
    g.below(d, 1 + f / 3)
}

fn per_head(g: &mut Builder, rng: &mut Rng, _: usize) -> NodeId {
    let h = g.graph.input(Input::H);
    let (one, step) = (g.int(1), g.int(1 + rng.below(20) as i64));
    let h = g.add(h, one);
    let span = g.mul(h, step);
    let (causal, d) = (g.causal(), g.distance());
    let near = g.lt(d, span);
    g.and(causal, near)
}

fn per_batch(g: &mut Builder, rng: &mut Rng, tokens: usize) -> NodeId {
    let table = g.table("lengths", (0..2).map(|_| rng.below(tokens) as i32).collect());
    let b = g.graph.input(Input::B);
    let (n, k) = (g.load(table, &[b]), g.k);
    g.lt(k, n)
}

fn unsorted(g: &mut Builder, rng: &mut Rng, tokens: usize) -> NodeId {
    let size = 1 + rng.below(2 * tokens);
    let table = g.table("group", (0..size).map(|_| rng.below(3) as i32).collect());
    let (q, k) = (g.q, g.k);
    let (a, b) = (g.load(table, &[q]), g.load(table, &[k]));
    g.eq(a, b)
}

/// A bool table read at `q - k + offset`, which wraps and clamps at its ends.
fn distance_table(g: &mut Builder, rng: &mut Rng, tokens: usize) -> NodeId {
    let data = (0..tokens).map(|_| u8::from(rng.below(4) == 0)).collect();
    let table = g.graph.add_capture("keep", HostTensor::vector(Data::Bool(data)));
    let (d, offset) = (g.distance(), g.int(rng.below(tokens) as i64));
    let at = g.add(d, offset);
    g.load(table, &[at])
}

/// `I[k // t, 0] <= q < I[k // t, 1]`
fn intervals(g: &mut Builder, rng: &mut Rng, tokens: usize) -> NodeId {
    let t = 1 + rng.below(20);
    let n = tokens.div_ceil(t);
    let data = (0..2 * n).map(|_| rng.below(tokens) as i64).collect();
    let table = g.graph.add_capture("intervals", HostTensor::new([n, 2], Data::I64(data)).expect("n by 2"));
    let (q, k) = (g.q, g.k);
    let (row, zero, one) = (g.div_by(k, t as i64), g.int(0), g.int(1));
    let (start, end) = (g.load(table, &[row, zero]), g.load(table, &[row, one]));
    let (after, before) = (g.le(start, q), g.lt(q, end));
    g.and(after, before)
}

/// `exp(-abs(q - k) / 10) > 0.2`, and a NaN row where sqrt goes below zero.
fn float_distance(g: &mut Builder, rng: &mut Rng, _: usize) -> NodeId {
    let d = g.distance();
    let d = g.graph.unary(UnaryOp::ToFloat, d);
    let shift = g.graph.float(rng.below(20) as f64);
    let shifted = g.graph.binary(BinaryOp::Add, d, shift);
    let root = g.graph.unary(UnaryOp::Sqrt, shifted);
    let scale = g.graph.float(-0.1);
    let decay = g.graph.binary(BinaryOp::Mul, root, scale);
    let decay = g.graph.unary(UnaryOp::Exp, decay);
    let limit = g.graph.float(0.7);
    g.gt(decay, limit)
}

/// `((q ^ k) & m) | (q >> 2) << 1 > k % 16`
fn bits(g: &mut Builder, rng: &mut Rng, _: usize) -> NodeId {
    let (q, k) = (g.q, g.k);
    let mixed = g.graph.binary(BinaryOp::Xor, q, k);
    let m = g.int(rng.below(64) as i64 - 16);
    let mixed = g.graph.binary(BinaryOp::And, mixed, m);
    let (two, one) = (g.int(2), g.int(1));
    let half = g.graph.binary(BinaryOp::Shr, q, two);
    let half = g.graph.binary(BinaryOp::Shl, half, one);
    let all = g.graph.binary(BinaryOp::Or, mixed, half);
    let low = g.rem_by(k, 16);
    g.gt(all, low)
}

/// `where(q % 7 < 3, max(q, k) - min(q, k) < 9, -k // 5 == -q // 4)`
fn nested(g: &mut Builder, rng: &mut Rng, _: usize) -> NodeId {
    let (q, k) = (g.q, g.k);
    let phase = g.rem_by(q, 2 + rng.below(7) as i64);
    let condition = g.below(phase, 3);
    let (hi, lo) = (g.max(q, k), g.min(q, k));
    let spread = g.sub(hi, lo);
    let near = g.below(spread, 9);
    let (nk, nq) = (g.graph.unary(UnaryOp::Neg, k), g.graph.unary(UnaryOp::Neg, q));
    let (a, b) = (g.div_by(nk, 5), g.div_by(nq, 4));
    let far = g.eq(a, b);
    g.graph.add(Op::Where(condition, near, far), None)
}
