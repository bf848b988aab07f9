//! One comparison of a mask: a part that depends on q_idx against a part that depends on kv_idx.
//!
//! Invariant: bounds of the kv_idx part hold in every block, and joined in every aligned run of blocks; within a piece
//! neither bound decreases. Must not know the logic around it.

use super::super::{Cells, Form, Ints, Program, Scratch, Truth, Value};
use super::levels::Levels;
use super::{Segments, Tree, push};
use crate::ir::graph::{BinaryOp, CaptureId, Op, UnaryOp};
use smallvec::{SmallVec, smallvec};

/// Rising pieces along kv that are cut one by one.
const MOST_PIECES: usize = 16;
/// Segments of a condition on kv_idx alone that are walked in every row.
const MOST_SEGMENTS: usize = 32;

/// A leaf of the logic.
#[derive(Debug)]
pub(super) struct Leaf {
    kind: Kind,
    blocks: u32,
}

#[derive(Debug)]
enum Kind {
    /// Nothing is known.
    Open,
    /// Depends on the row alone: the slot of its value.
    Row(usize),
    /// Depends on the kv block alone; its segments, if there are few.
    Kv(Levels<Truth>, Option<Segments>),
    /// `row part op kv part`
    Cut(Cut),
    /// An element of a captured bool tensor.
    Load(CaptureId, SmallVec<[Index; 4]>),
}

/// One index of a load.
#[derive(Debug)]
enum Index {
    /// Depends on the row alone: the slot of its value.
    Row(usize),
    /// Depends on the kv block alone.
    Kv(usize, Levels<(i64, i64)>),
}

#[derive(Debug)]
struct Cut {
    op: BinaryOp,
    sum: Sum,
    /// Bounds of the kv part.
    kv: Levels<(i64, i64)>,
    /// Ends of the rising pieces; empty if there are too many.
    pieces: Vec<u32>,
}

/// Most nodes of a difference that is taken apart.
const MOST_TERMS: usize = 256;

/// A difference taken apart: an affine form, values that depend on q_idx and values that depend on kv_idx; with signs.
#[derive(Clone, Debug)]
struct Sum {
    form: Form,
    rows: Vec<(i64, usize)>,
    kv: Vec<(i64, usize)>,
    /// Nodes looked at.
    terms: usize,
}

/// A leaf's cached values for the present row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Range of the row part.
    value: (i64, i64),
    /// The value of a leaf that depends on the row alone.
    truth: Truth,
    /// The affine part's constant at the row's first token.
    local: i64,
    /// Where each piece was cut last: four places each.
    hints: Vec<[u32; 4]>,
    /// Ranges of a load's indices that depend on the row.
    index: SmallVec<[(i64, i64); 4]>,
}

/// Leaves in the making.
pub(super) struct Makers<'p> {
    program: &'p Program,
    scratch: Scratch,
    whole: Cells,
    made: Vec<Maker>,
}

enum Maker {
    Open,
    Row(usize),
    Kv(usize),
    Cut(BinaryOp, Sum),
    Load(CaptureId, SmallVec<[usize; 4]>),
}

impl<'p> Makers<'p> {
    /// `scratch` holds the values over `whole`.
    pub(super) fn new(program: &'p Program, scratch: Scratch, whole: Cells) -> Self {
        Self { program, scratch, whole, made: Vec::new() }
    }

    /// Leaves so far.
    pub(super) fn len(&self) -> usize {
        self.made.len()
    }

    fn push(&mut self, maker: Maker) -> Tree {
        self.made.push(maker);
        Tree::Leaf(self.made.len() - 1)
    }

    /// The leaf, or the two leaves, of a bool node that is no logic.
    pub(super) fn leaf(&mut self, at: usize) -> Tree {
        match self.program.group_of(at) {
            0..=2 => return self.push(Maker::Row(at)),
            3 => return self.push(Maker::Kv(at)),
            _ => {}
        }
        let (op, a, b) = match &self.program.ops[at] {
            Op::Binary(op, a, b) => (*op, a.0 as usize, b.0 as usize),
            Op::Load(capture, index) => return self.load(*capture, index.iter().map(|i| i.0 as usize).collect()),
            _ => return self.push(Maker::Open),
        };
        self.absolute(op, a, b).or_else(|| self.comparison(op, a, b)).unwrap_or_else(|| self.push(Maker::Open))
    }

    fn load(&mut self, capture: CaptureId, index: SmallVec<[usize; 4]>) -> Tree {
        let separate = index.iter().all(|at| self.program.group_of(*at) < 4);
        self.push(if separate { Maker::Load(capture, index) } else { Maker::Open })
    }

    fn comparison(&mut self, op: BinaryOp, a: usize, b: usize) -> Option<Tree> {
        let mut sum = Sum::default();
        self.collect(&mut sum, a, 1)?;
        self.collect(&mut sum, b, -1)?;
        Some(self.push(Maker::Cut(op, sum)))
    }

    /// `abs(x) <= n` is `x <= n and -x <= n`.
    fn absolute(&mut self, op: BinaryOp, a: usize, b: usize) -> Option<Tree> {
        let Op::Unary(UnaryOp::Abs, x) = &self.program.ops[a] else { return None };
        let (below, negated) = match op {
            BinaryOp::Le | BinaryOp::Lt => (op, false),
            BinaryOp::Gt => (BinaryOp::Le, true),
            BinaryOp::Ge => (BinaryOp::Lt, true),
            _ => return None,
        };
        if self.program.group_of(b) == 4 {
            return None;
        }
        let mut sides = Vec::new();
        for sign in [1, -1] {
            let mut sum = Sum::default();
            self.collect(&mut sum, x.0 as usize, sign)?;
            self.collect(&mut sum, b, -1)?;
            sides.push(sum);
        }
        let [right, left] = <[Sum; 2]>::try_from(sides).ok()?;
        let (right, left) = (self.push(Maker::Cut(below, right)), self.push(Maker::Cut(below, left)));
        let inside = Tree::And(Box::new(right), Box::new(left));
        Some(if negated { Tree::Not(Box::new(inside)) } else { inside })
    }

    /// Adds `sign` times a node to the sum.
    fn collect(&self, sum: &mut Sum, at: usize, sign: i64) -> Option<()> {
        // a term that is shared is met again and again: the bound is on all of them
        sum.terms += 1;
        if sum.terms > MOST_TERMS {
            return None;
        }
        let Value::Int(value) = self.scratch.values[at] else { return None };
        // bounded values keep every sum below far from overflow
        const LARGE: i64 = 1 << 56;
        if value.lo < -LARGE || value.hi > LARGE {
            return None;
        }
        if let Some(f) = value.form {
            let add = |a: i64, b: i64| b.checked_mul(sign).and_then(|b| a.checked_add(b));
            sum.form = Form { q: add(sum.form.q, f.q)?, kv: add(sum.form.kv, f.kv)?, c: add(sum.form.c, f.c)? };
            return Some(());
        }
        match (self.program.group_of(at), &self.program.ops[at]) {
            (0..=2, _) => sum.rows.push((sign, at)),
            (3, _) => sum.kv.push((sign, at)),
            (_, Op::Binary(BinaryOp::Add, a, b)) => {
                self.collect(sum, a.0 as usize, sign)?;
                self.collect(sum, b.0 as usize, sign)?;
            }
            (_, Op::Binary(BinaryOp::Sub, a, b)) => {
                self.collect(sum, a.0 as usize, sign)?;
                self.collect(sum, b.0 as usize, -sign)?;
            }
            (_, Op::Unary(UnaryOp::Neg, a)) => self.collect(sum, a.0 as usize, -sign)?,
            _ => return None,
        }
        Some(())
    }

    /// Evaluates what depends on kv_idx in every block.
    pub(super) fn finish(mut self, kv: &[(i64, i64)]) -> Vec<Leaf> {
        let mut kinds: Vec<Kind> = self.made.iter().map(|m| m.start(self.program, kv.len())).collect();
        let reads_kv = self.made.iter().any(Maker::reads_kv);
        for range in kv {
            if reads_kv {
                self.program.run_columns(&Cells { kv: *range, ..self.whole }, &mut self.scratch);
            }
            kinds.iter_mut().zip(&self.made).for_each(|(kind, maker)| kind.add(maker, *range, &self.scratch));
        }
        kinds.into_iter().map(|kind| Leaf::new(kind, kv.len() as u32)).collect()
    }
}

impl Maker {
    fn reads_kv(&self) -> bool {
        match self {
            Maker::Open | Maker::Row(_) => false,
            Maker::Kv(_) | Maker::Load(..) => true,
            Maker::Cut(_, sum) => !sum.kv.is_empty(),
        }
    }

    fn start(&self, program: &Program, blocks: usize) -> Kind {
        match self {
            Maker::Open => Kind::Open,
            Maker::Row(at) => Kind::Row(*at),
            Maker::Kv(_) => Kind::Kv(Levels::new(blocks), None),
            Maker::Cut(op, sum) => {
                let mut cut = Cut { op: *op, sum: sum.clone(), kv: Levels::new(blocks), pieces: Vec::new() };
                cut.turn_up();
                Kind::Cut(cut)
            }
            Maker::Load(capture, index) => {
                let of = |at: &usize| match program.group_of(*at) {
                    3 => Index::Kv(*at, Levels::new(blocks)),
                    _ => Index::Row(*at),
                };
                Kind::Load(*capture, index.iter().map(of).collect())
            }
        }
    }
}

impl Kind {
    /// Takes in the next block of kv_idx.
    fn add(&mut self, maker: &Maker, kv: (i64, i64), scratch: &Scratch) {
        match (self, maker) {
            (Kind::Kv(truths, _), Maker::Kv(at)) => truths.push(scratch.values[*at].truth()),
            (Kind::Cut(cut), _) => cut.kv.push(cut.sum.kv_part(kv, scratch)),
            (Kind::Load(_, index), _) => {
                for index in index {
                    if let Index::Kv(at, levels) = index {
                        levels.push(range(&scratch.values[*at]));
                    }
                }
            }
            _ => {}
        }
    }
}

impl Default for Sum {
    fn default() -> Self {
        Sum { form: Form { q: 0, kv: 0, c: 0 }, rows: Vec::new(), kv: Vec::new(), terms: 0 }
    }
}

fn scaled(k: i64, (lo, hi): (i64, i64)) -> (i64, i64) {
    let (lo, hi) = (k.saturating_mul(lo), k.saturating_mul(hi));
    (lo.min(hi), lo.max(hi))
}

fn range(value: &Value) -> (i64, i64) {
    let Ints { lo, hi, .. } = value.int();
    (lo, hi)
}

fn total(start: (i64, i64), terms: &[(i64, usize)], scratch: &Scratch) -> (i64, i64) {
    terms.iter().fold(start, |sum, (sign, at)| {
        let (lo, hi) = scaled(*sign, range(&scratch.values[*at]));
        (sum.0.saturating_add(lo), sum.1.saturating_add(hi))
    })
}

impl Sum {
    fn row_part(&self, q: (i64, i64), scratch: &Scratch) -> (i64, i64) {
        let (lo, hi) = scaled(self.form.q, q);
        total((lo + self.form.c, hi + self.form.c), &self.rows, scratch)
    }

    /// With the sign turned: the row part is compared with it.
    fn kv_part(&self, kv: (i64, i64), scratch: &Scratch) -> (i64, i64) {
        let (lo, hi) = total(scaled(self.form.kv, kv), &self.kv, scratch);
        (-hi, -lo)
    }
}

impl Cut {
    /// A falling affine kv part is negated together with the row part, so that it rises.
    fn turn_up(&mut self) {
        if self.sum.form.kv <= 0 {
            return;
        }
        let Form { q, kv, c } = self.sum.form;
        self.sum.form = Form { q: -q, kv: -kv, c: -c };
        self.sum.rows.iter_mut().chain(&mut self.sum.kv).for_each(|(sign, _)| *sign = -*sign);
        self.op = match self.op {
            BinaryOp::Le => BinaryOp::Ge,
            BinaryOp::Ge => BinaryOp::Le,
            BinaryOp::Lt => BinaryOp::Gt,
            BinaryOp::Gt => BinaryOp::Lt,
            other => other,
        };
    }

    fn find_pieces(&mut self) {
        let kv = self.kv.blocks();
        for at in 1..=kv.len() {
            let falls = at == kv.len() || kv[at].0 < kv[at - 1].0 || kv[at].1 < kv[at - 1].1;
            if falls {
                self.pieces.push(at as u32);
            }
            if self.pieces.len() > MOST_PIECES {
                self.pieces.clear();
                return;
            }
        }
    }

    /// The row part, `f`, against the kv part.
    fn compare(&self, f: (i64, i64), (lo, hi): (i64, i64)) -> Truth {
        let truth = |yes: bool, no: bool| Truth { can_true: !no, can_false: !yes };
        match self.op {
            BinaryOp::Le => truth(f.1 <= lo, f.0 > hi),
            BinaryOp::Lt => truth(f.1 < lo, f.0 >= hi),
            BinaryOp::Ge => truth(f.0 >= hi, f.1 < lo),
            BinaryOp::Gt => truth(f.0 > hi, f.1 <= lo),
            BinaryOp::Eq => truth(f.0 == f.1 && lo == hi && f.0 == lo, f.1 < lo || f.0 > hi),
            BinaryOp::Ne => truth(f.1 < lo || f.0 > hi, f.0 == f.1 && lo == hi && f.0 == lo),
            _ => Truth::BOTH,
        }
    }

    fn segments(&self, row: &mut Row) -> Segments {
        let (mut out, mut start, f) = (Segments::new(), 0, row.value);
        for (end, hints) in self.pieces.iter().zip(&mut row.hints) {
            let mut first = |which: usize, passed: &dyn Fn((i64, i64)) -> bool| {
                hints[which] = turn(self.kv.blocks(), start, *end, hints[which], passed);
                hints[which]
            };
            match self.op {
                BinaryOp::Le | BinaryOp::Gt => {
                    let (from, to) = (first(0, &|v| v.1 < f.0), first(2, &|v| v.0 < f.1));
                    three(&mut out, [from, to, *end], self.op == BinaryOp::Gt);
                }
                BinaryOp::Lt | BinaryOp::Ge => {
                    let (from, to) = (first(1, &|v| v.1 <= f.0), first(3, &|v| v.0 <= f.1));
                    three(&mut out, [from, to, *end], self.op == BinaryOp::Ge);
                }
                _ => {
                    let (from, to) = (first(0, &|v| v.1 < f.0), first(3, &|v| v.0 <= f.1));
                    let (mut inner, mut last) = (from, from);
                    if f.0 == f.1 {
                        inner = first(2, &|v| v.0 < f.0).clamp(from, to);
                        last = first(1, &|v| v.1 <= f.0).clamp(inner, to);
                    }
                    let (yes, no) = (Truth::of(self.op == BinaryOp::Eq), Truth::of(self.op != BinaryOp::Eq));
                    let parts = [(from, no), (inner, Truth::BOTH), (last, yes), (to, Truth::BOTH), (*end, no)];
                    parts.into_iter().for_each(|(end, truth)| push(&mut out, end, truth));
                }
            }
            start = *end;
        }
        out
    }
}

/// One truth up to the first place, unknown up to the second, the other truth up to the third.
fn three(out: &mut Segments, [from, to, end]: [u32; 3], first: bool) {
    push(out, from, Truth::of(first));
    push(out, to.max(from), Truth::BOTH);
    push(out, end, Truth::of(!first));
}

/// The first place in `start..end` that has not `passed`, looked for from `hint` on in growing steps.
fn turn(of: &[(i64, i64)], start: u32, end: u32, hint: u32, passed: &dyn Fn((i64, i64)) -> bool) -> u32 {
    let (start, end) = (start as usize, end as usize);
    let (mut lo, mut hi);
    let hint = (hint as usize).clamp(start, end);
    let mut step = 1;
    if hint < end && passed(of[hint]) {
        lo = hint + 1;
        while lo + step < end && passed(of[lo + step - 1]) {
            lo += step;
            step *= 2;
        }
        hi = (lo + step).min(end);
    } else {
        hi = hint;
        while hi > start + step && !passed(of[hi - step]) {
            hi -= step;
            step *= 2;
        }
        lo = hi.saturating_sub(step).max(start);
    }
    (lo + of[lo..hi].partition_point(|v| passed(*v))) as u32
}

impl Leaf {
    fn new(mut kind: Kind, blocks: u32) -> Leaf {
        match &mut kind {
            Kind::Cut(cut) => {
                cut.find_pieces();
                cut.kv.finish(hull);
            }
            Kind::Kv(truths, segments) => {
                *segments = few(truths.blocks());
                truths.finish(Truth::join);
            }
            Kind::Load(_, index) => index.iter_mut().for_each(|index| {
                if let Index::Kv(_, levels) = index {
                    levels.finish(hull);
                }
            }),
            Kind::Open | Kind::Row(_) => {}
        }
        Leaf { kind, blocks }
    }

    /// Whether it distinguishes a row's blocks.
    pub(super) fn cuts(&self) -> bool {
        !matches!(self.kind, Kind::Open)
    }

    /// Its cached values before any row.
    pub(super) fn row(&self) -> Row {
        let pieces = if let Kind::Cut(cut) = &self.kind { cut.pieces.len() } else { 0 };
        Row { value: (0, 0), truth: Truth::BOTH, local: 0, hints: vec![[0; 4]; pieces], index: SmallVec::new() }
    }

    /// Goes to a row whose values are in the scratch.
    pub(super) fn enter(&self, q: (i64, i64), scratch: &Scratch, row: &mut Row) {
        match &self.kind {
            Kind::Row(at) => row.truth = scratch.values[*at].truth(),
            Kind::Cut(cut) => {
                row.value = cut.sum.row_part(q, scratch);
                row.local = cut.sum.form.q * q.0 + cut.sum.form.c;
            }
            Kind::Load(_, index) => {
                let of = |index: &Index| match index {
                    Index::Row(at) => range(&scratch.values[*at]),
                    Index::Kv(..) => (0, 0),
                };
                row.index = index.iter().map(of).collect();
            }
            Kind::Open | Kind::Kv(..) => {}
        }
    }

    /// Segments of the row; one undecided segment if it cannot cut.
    pub(super) fn segments(&self, row: &mut Row) -> Segments {
        match &self.kind {
            Kind::Row(_) => smallvec![(self.blocks, row.truth)],
            Kind::Kv(_, Some(segments)) => segments.clone(),
            Kind::Cut(cut) if !cut.pieces.is_empty() => cut.segments(row),
            _ => smallvec![(self.blocks, Truth::BOTH)],
        }
    }

    /// The bounds of the `n`th run of `2^level` blocks of the row.
    pub(super) fn truth(&self, program: &Program, row: &Row, level: usize, n: usize) -> Truth {
        match &self.kind {
            Kind::Open => Truth::BOTH,
            Kind::Row(_) => row.truth,
            Kind::Kv(truths, _) => truths.at(level, n),
            Kind::Cut(cut) => cut.compare(row.value, cut.kv.at(level, n)),
            Kind::Load(capture, index) => {
                let reach = index.iter().zip(&row.index).map(|(index, known)| match index {
                    Index::Row(_) => Ints::range(known.0, known.1),
                    Index::Kv(_, levels) => {
                        let (lo, hi) = levels.at(level, n);
                        Ints::range(lo, hi)
                    }
                });
                program.load(*capture, reach).truth()
            }
        }
    }

    /// All that its cells in a block depend on besides kv_idx, where that is one value for all queries of the row.
    pub(super) fn fixed(&self, row: &Row) -> Option<SmallVec<[i64; 4]>> {
        match &self.kind {
            Kind::Open | Kind::Row(_) => None,
            Kind::Kv(..) => Some(SmallVec::new()),
            Kind::Cut(_) => Some(smallvec![one(row.value)?]),
            Kind::Load(..) => row.index.iter().copied().map(one).collect(),
        }
    }

    /// All that its cells in a block depend on besides q_idx, where that is one value for all keys of the block.
    pub(super) fn fixed_column(&self, block: usize) -> Option<SmallVec<[i64; 4]>> {
        let of = |index: &Index| match index {
            Index::Row(_) => Some(0),
            Index::Kv(_, levels) => one(levels.at(0, block)),
        };
        match &self.kind {
            Kind::Open | Kind::Kv(..) => None,
            Kind::Row(_) => Some(SmallVec::new()),
            Kind::Cut(cut) => Some(smallvec![one(cut.kv.at(0, block))?]),
            Kind::Load(_, index) => index.iter().map(of).collect(),
        }
    }

    /// The difference at the block's first cell, if it is purely affine.
    pub(super) fn local(&self, row: &Row, kv: i64) -> Option<i64> {
        match &self.kind {
            Kind::Cut(Cut { sum, .. }) if sum.rows.is_empty() && sum.kv.is_empty() => {
                Some(row.local + sum.form.kv * kv)
            }
            _ => None,
        }
    }
}

/// The only value of a range. Sums that left the range of i64 stand at its ends: they are none.
fn one((low, high): (i64, i64)) -> Option<i64> {
    (low == high && low.unsigned_abs() < 1 << 62).then_some(low)
}

fn hull(a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// The segments of a condition on kv_idx alone, if they are few.
fn few(truths: &[Truth]) -> Option<Segments> {
    let mut all = Segments::new();
    for (at, truth) in truths.iter().enumerate() {
        push(&mut all, at as u32 + 1, *truth);
        if all.len() > MOST_SEGMENTS {
            return None;
        }
    }
    Some(all)
}
