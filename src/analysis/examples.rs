//! Well-known attention masks, built as graphs: rows of `bench blocks` and material for tests.
//!
//! Invariant: each follows the field's own definition of its name (`k` is kv_idx). Must not know block lists.

use crate::base::HostTensor;
use crate::base::Lengths;
pub use crate::base::rng::Rng;
use crate::base::tensor::Data;
use crate::ir::graph::{BinaryOp, CaptureId, Graph, Input, Mod, ModKind, NodeId, Op, UnaryOp};

/// A graph under construction, in short words.
pub struct Builder {
    /// The nodes built so far.
    pub graph: Graph,
    /// q_idx.
    pub q: NodeId,
    /// kv_idx.
    pub k: NodeId,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! binary {
    ($($name:ident => $op:ident),*) => { $(
        #[allow(missing_docs)]
        pub fn $name(&mut self, a: NodeId, b: NodeId) -> NodeId {
            self.graph.binary(BinaryOp::$op, a, b)
        }
    )* };
}

impl Builder {
    /// An empty graph with its two token indices.
    pub fn new() -> Self {
        let mut graph = Graph::new();
        let (q, k) = (graph.input(Input::QIdx), graph.input(Input::KvIdx));
        Self { graph, q, k }
    }

    binary!(add => Add, sub => Sub, mul => Mul, div => FloorDiv, rem => Mod, min => Min, max => Max, and => And,
        or => Or, eq => Eq, lt => Lt, le => Le, gt => Gt, ge => Ge);

    /// A literal.
    pub fn int(&mut self, v: i64) -> NodeId {
        self.graph.int(v)
    }

    /// `abs(x)`
    pub fn abs(&mut self, x: NodeId) -> NodeId {
        self.graph.unary(UnaryOp::Abs, x)
    }

    /// Logical not.
    pub fn not(&mut self, x: NodeId) -> NodeId {
        self.graph.unary(UnaryOp::Not, x)
    }

    /// `x // n`
    pub fn div_by(&mut self, x: NodeId, n: i64) -> NodeId {
        let n = self.int(n);
        self.div(x, n)
    }

    /// `x % n`
    pub fn rem_by(&mut self, x: NodeId, n: i64) -> NodeId {
        let n = self.int(n);
        self.rem(x, n)
    }

    /// `x < n`
    pub fn below(&mut self, x: NodeId, n: i64) -> NodeId {
        let n = self.int(n);
        self.lt(x, n)
    }

    /// `x <= n`
    pub fn at_most(&mut self, x: NodeId, n: i64) -> NodeId {
        let n = self.int(n);
        self.le(x, n)
    }

    /// `clamp(x, lo, hi)`
    pub fn clamp(&mut self, x: NodeId, lo: i64, hi: i64) -> NodeId {
        let (lo, hi) = (self.int(lo), self.int(hi));
        let x = self.max(x, lo);
        self.min(x, hi)
    }

    /// `q - k`
    pub fn distance(&mut self) -> NodeId {
        let (q, k) = (self.q, self.k);
        self.sub(q, k)
    }

    /// `q >= k`
    pub fn causal(&mut self) -> NodeId {
        let (q, k) = (self.q, self.k);
        self.ge(q, k)
    }

    /// A captured 1-D int32 tensor.
    pub fn table(&mut self, name: &str, values: Vec<i32>) -> CaptureId {
        self.graph.add_capture(name, HostTensor::vector(Data::I32(values)))
    }

    /// One element of a captured tensor.
    pub fn load(&mut self, from: CaptureId, index: &[NodeId]) -> NodeId {
        self.graph.add(Op::Load(from, index.into()), None)
    }

    /// The finished mask.
    pub fn mask(self, root: NodeId) -> Mod {
        Mod { kind: ModKind::Mask, graph: self.graph, root, sources: Vec::new() }
    }
}

/// `q >= k`
pub fn causal() -> Mod {
    let mut g = Builder::new();
    let root = g.causal();
    g.mask(root)
}

/// `0 <= q - k <= window`
pub fn sliding_window(window: i64) -> Mod {
    let mut g = Builder::new();
    let (causal, d) = (g.causal(), g.distance());
    let near = g.at_most(d, window);
    let root = g.and(causal, near);
    g.mask(root)
}

/// `k < prefix or q >= k`
pub fn prefix_lm(prefix: i64) -> Mod {
    let mut g = Builder::new();
    let k = g.k;
    let (early, causal) = (g.below(k, prefix), g.causal());
    let root = g.or(early, causal);
    g.mask(root)
}

/// `abs(q - k) <= window and abs(q - k) % dilation == 0`
pub fn dilated(window: i64, dilation: i64) -> Mod {
    let mut g = Builder::new();
    let d = g.distance();
    let d = g.abs(d);
    let (near, phase, zero) = (g.at_most(d, window), g.rem_by(d, dilation), g.int(0));
    let on = g.eq(phase, zero);
    let root = g.and(near, on);
    g.mask(root)
}

/// Packed documents of these lengths, causal: `doc[q] == doc[k] and q >= k`.
pub fn documents(lengths: &[usize]) -> Mod {
    let ids = lengths.iter().enumerate().flat_map(|(doc, n)| std::iter::repeat_n(doc as i32, *n)).collect();
    let mut g = Builder::new();
    let doc = g.table("doc", ids);
    let (q, k) = (g.q, g.k);
    let (a, b) = (g.load(doc, &[q]), g.load(doc, &[k]));
    let (same, causal) = (g.eq(a, b), g.causal());
    let root = g.and(same, causal);
    g.mask(root)
}

/// attention-gym's NATTEN over a row-major canvas.
pub fn natten(canvas_w: i64, canvas_h: i64, kernel_w: i64, kernel_h: i64) -> Mod {
    let mut g = Builder::new();
    let near = |g: &mut Builder, qx: NodeId, kx: NodeId, canvas: i64, kernel: i64| {
        let centre = g.clamp(qx, kernel / 2, canvas - 1 - kernel / 2);
        let d = g.sub(centre, kx);
        let d = g.abs(d);
        g.at_most(d, kernel / 2)
    };
    let (q, k) = (g.q, g.k);
    let (qy, ky) = (g.div_by(q, canvas_w), g.div_by(k, canvas_w));
    let (qx, kx) = (g.rem_by(q, canvas_w), g.rem_by(k, canvas_w));
    let rows = near(&mut g, qy, ky, canvas_h, kernel_h);
    let cols = near(&mut g, qx, kx, canvas_w, kernel_w);
    let root = g.and(rows, cols);
    g.mask(root)
}

/// attention-gym's sliding tile attention over a video canvas, tile-major tokens, all in (t, y, x).
pub fn sliding_tile(canvas: [i64; 3], kernel: [i64; 3], tile: [i64; 3]) -> Mod {
    let tiles = [canvas[0] / tile[0], canvas[1] / tile[1], canvas[2] / tile[2]];
    let window = [kernel[0] / tile[0], kernel[1] / tile[1], kernel[2] / tile[2]];
    let size = tile[0] * tile[1] * tile[2];
    let mut g = Builder::new();
    let coordinates = |g: &mut Builder, token: NodeId| {
        let id = g.div_by(token, size);
        let t = g.div_by(id, tiles[1] * tiles[2]);
        let in_frame = g.rem_by(id, tiles[1] * tiles[2]);
        [t, g.div_by(in_frame, tiles[2]), g.rem_by(in_frame, tiles[2])]
    };
    let (q, k) = (g.q, g.k);
    let (from, to) = (coordinates(&mut g, q), coordinates(&mut g, k));
    let mut root = None;
    for axis in 0..3 {
        let half = window[axis] / 2;
        let centre = g.clamp(from[axis], half, (tiles[axis] - 1 - half).max(half));
        let d = g.sub(centre, to[axis]);
        let d = g.abs(d);
        let near = g.at_most(d, half);
        root = Some(root.map_or(near, |r| g.and(r, near)));
    }
    let root = root.expect("three axes");
    g.mask(root)
}

/// BigBird: a window of blocks, global first and last blocks, and fixed random blocks in a table of blocks.
pub fn big_bird(tokens: usize, block: usize, random: usize, seed: u64) -> Mod {
    let n = tokens.div_ceil(block);
    let mut rng = Rng::new(seed);
    let mut table = vec![0u8; n * n];
    for row in 0..n {
        (0..random).for_each(|_| table[row * n + rng.below(n)] = 1);
    }
    let mut g = Builder::new();
    let table = g.graph.add_capture("random", HostTensor::new([n, n], Data::Bool(table)).expect("n by n"));
    let (q, k) = (g.q, g.k);
    let (qb, kb) = (g.div_by(q, block as i64), g.div_by(k, block as i64));
    let d = g.sub(qb, kb);
    let d = g.abs(d);
    let mut root = g.at_most(d, 1);
    for x in [qb, kb] {
        let (zero, last) = (g.int(0), g.int(n as i64 - 1));
        let (first, last) = (g.eq(x, zero), g.eq(x, last));
        let global = g.or(first, last);
        root = g.or(root, global);
    }
    let drawn = g.load(table, &[qb, kb]);
    let root = g.or(root, drawn);
    g.mask(root)
}

/// attention-gym's block diffusion over 2 * `half` tokens: noised first, clean second.
pub fn block_diffusion(half: i64, block: i64) -> Mod {
    let mut g = Builder::new();
    let (q, k) = (g.q, g.k);
    let (nq, nk) = (g.below(q, half), g.below(k, half));
    let (cq, ck) = (g.not(nq), g.not(nk));
    let (rq, rk) = (g.rem_by(q, half), g.rem_by(k, half));
    let (bq, bk) = (g.div_by(rq, block), g.div_by(rk, block));
    let (same, both) = (g.eq(bq, bk), g.graph.binary(BinaryOp::Eq, nq, nk));
    let diagonal = g.and(same, both);
    let later = g.gt(bq, bk);
    let cross = g.and(nq, ck);
    let offset = g.and(later, cross);
    let not_earlier = g.ge(bq, bk);
    let clean = g.and(cq, ck);
    let causal = g.and(not_earlier, clean);
    let root = g.or(diagonal, offset);
    let root = g.or(root, causal);
    g.mask(root)
}

/// Random document lengths of about `mean` tokens that fill `tokens`.
pub fn document_lengths(tokens: usize, mean: usize, rng: &mut Rng) -> Vec<usize> {
    let mut out = Vec::new();
    let mut left = tokens;
    while left > 0 {
        let n = (mean / 2 + rng.below(mean.max(1)) + 1).min(left);
        out.push(n);
        left -= n;
    }
    out
}

/// The masks of `bench blocks`, fitted to these lengths.
pub fn rows(lengths: Lengths) -> Vec<(&'static str, Mod)> {
    let tokens = lengths.q_len.max(lengths.kv_len);
    let side = (tokens as f64).sqrt() as i64;
    let width = (side as usize).next_power_of_two() as i64;
    let height = (tokens as i64 / width).max(1);
    let tile = [6, 8, 8];
    let tiles = (tokens as i64 / 384).max(1);
    let across = ((tiles as f64 / 4.0).sqrt() as i64).max(1);
    let canvas = [(tiles / (across * across)).max(1) * tile[0], across * tile[1], across * tile[2]];
    vec![
        ("causal", causal()),
        ("sliding_window", sliding_window(1024)),
        ("prefix_lm", prefix_lm(tokens as i64 / 8)),
        ("documents", documents(&document_lengths(tokens, 1000, &mut Rng::new(1)))),
        ("sliding_tile_3d", sliding_tile(canvas, [18, 24, 24], tile)),
        ("natten_2d", natten(width, height, 13, 13)),
        ("dilated", dilated(1024, 4)),
        ("big_bird", big_bird(tokens, 128, 3, 1)),
        ("block_diffusion", block_diffusion(tokens as i64 / 2, 32)),
    ]
}

#[cfg(any(test, feature = "testing"))]
mod more;
#[cfg(any(test, feature = "testing"))]
pub use more::all;
