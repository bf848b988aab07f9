//! Rows of a mask by breakpoints: the places along kv where its comparisons change, found without visiting every block.
//!
//! Invariant: sound, like intervals. A segment marked true or false is so at every cell; the caller evaluates undecided
//! segments. Must not know the use of the blocks.

mod leaf;
mod levels;
#[cfg(test)]
mod tests;

use super::{Cells, Program, Scratch, Truth};
use crate::ir::graph::{BinaryOp, NodeId, Op, UnaryOp};
use leaf::{Leaf, Makers};
use smallvec::{SmallVec, smallvec};

/// Neighbouring kv blocks with the same truth value: their ends, and their value. The ends ascend and the last is the
/// number of blocks.
pub(super) type Segments = SmallVec<[(u32, Truth); 8]>;

/// Leaves of a mask that are worth looking at one by one.
const MOST_LEAVES: usize = 48;

/// Deepest logic that is taken apart: a chain of `k` operations has more than `k` leaves or is no chain of leaves.
const MOST_NESTING: usize = 4 * MOST_LEAVES;

/// A mask as a combination of comparisons that turn at few places along kv; for one batch entry and head.
#[derive(Debug)]
pub struct Cuts {
    tree: Tree,
    leaves: Vec<Leaf>,
}

#[derive(Debug)]
enum Tree {
    Leaf(usize),
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
    Xor(Box<Tree>, Box<Tree>),
}

/// The rows of a task, one after another: values of the row and the breakpoints of the previous row.
#[derive(Debug)]
pub struct RowCuts<'a> {
    cuts: &'a Cuts,
    program: &'a Program,
    scratch: Scratch,
    rows: Vec<leaf::Row>,
    /// The row's queries (inclusive).
    q: (i64, i64),
}

impl Cuts {
    /// Splits a mask into comparisons. `whole` is the whole queried region, `kv` the blocks along it (inclusive,
    /// ascending). None if no comparison can be cut.
    pub fn new(program: &Program, whole: &Cells, kv: &[(i64, i64)]) -> Option<Cuts> {
        let mut scratch = program.scratch();
        program.evaluate(whole, &mut scratch);
        program.complete(whole, &mut scratch);
        let mut makers = Makers::new(program, scratch, *whole);
        let tree = tree(program, program.root, &mut makers, MOST_NESTING)?;
        let leaves = makers.finish(kv);
        leaves.iter().any(Leaf::cuts).then_some(Cuts { tree, leaves })
    }

    /// Ready to be asked about rows.
    pub fn rows<'a>(&'a self, program: &'a Program) -> RowCuts<'a> {
        let rows = self.leaves.iter().map(Leaf::row).collect();
        RowCuts { cuts: self, program, scratch: program.scratch(), rows, q: (0, 0) }
    }
}

/// The logic of a bool node; other nodes are leaves.
fn tree(program: &Program, at: usize, makers: &mut Makers<'_>, nesting: usize) -> Option<Tree> {
    let nesting = nesting.checked_sub(1)?;
    let mut one = |at: NodeId| tree(program, at.0 as usize, makers, nesting).map(Box::new);
    let mut both = |a: &NodeId, b: &NodeId| Some((one(*a)?, one(*b)?));
    match &program.ops[at] {
        Op::Binary(op, a, b) if program.is_bool(a.0 as usize) => {
            let (a, b) = both(a, b)?;
            Some(match op {
                BinaryOp::And => Tree::And(a, b),
                BinaryOp::Or => Tree::Or(a, b),
                BinaryOp::Xor | BinaryOp::Ne => Tree::Xor(a, b),
                BinaryOp::Eq => Tree::Not(Box::new(Tree::Xor(a, b))),
                _ => return None,
            })
        }
        Op::Unary(UnaryOp::Not, a) => Some(Tree::Not(one(*a)?)),
        Op::Where(c, a, b) => {
            let (then, otherwise) = both(a, b)?;
            let (yes, no) = both(c, c)?;
            let no = Box::new(Tree::Not(no));
            Some(Tree::Or(Box::new(Tree::And(yes, then)), Box::new(Tree::And(no, otherwise))))
        }
        _ => {
            let leaves = makers.leaf(at);
            (makers.len() <= MOST_LEAVES).then_some(leaves)
        }
    }
}

impl RowCuts<'_> {
    /// Goes to a row: a range of q_idx (inclusive) within the whole.
    pub fn enter(&mut self, whole: &Cells, q: (i64, i64)) {
        self.q = q;
        self.program.run_rows(&Cells { q, ..*whole }, &mut self.scratch);
        for (leaf, row) in self.cuts.leaves.iter().zip(&mut self.rows) {
            leaf.enter(q, &self.scratch, row);
        }
    }

    /// Segments of the row along kv.
    pub fn segments(&mut self) -> Segments {
        segments(&self.cuts.tree, &self.cuts.leaves, &mut self.rows)
    }

    /// The bounds of blocks `n << level` to `(n + 1) << level` of the row, of which at least one must exist.
    pub fn truth(&self, level: usize, n: usize) -> Truth {
        self.node(&self.cuts.tree, level, n)
    }

    fn node(&self, tree: &Tree, level: usize, n: usize) -> Truth {
        let of = |tree| self.node(tree, level, n);
        match tree {
            Tree::Leaf(at) => self.cuts.leaves[*at].truth(self.program, &self.rows[*at], level, n),
            Tree::Not(a) => of(a).not(),
            Tree::And(a, b) => match of(a) {
                Truth::FALSE => Truth::FALSE,
                a => a.and(of(b)),
            },
            Tree::Or(a, b) => match of(a) {
                Truth::TRUE => Truth::TRUE,
                a => a.or(of(b)),
            },
            Tree::Xor(a, b) => of(a).xor(of(b)),
        }
    }

    /// Words that decide a block of the row, whose keys (inclusive) are given: blocks with equal words hold equal cells. None where a
    /// comparison is open and matters that is neither affine nor has one value for all queries of the row or for all keys of the block.
    pub fn key(&self, block: usize, kv: (i64, i64)) -> Option<SmallVec<[i64; 8]>> {
        let mut key: SmallVec<[i64; 8]> = smallvec![self.q.1 - self.q.0, kv.1 - kv.0];
        let (_, complete) = self.describe(&self.cuts.tree, block, kv.0, &mut key);
        complete.then_some(key)
    }

    /// Appends the words of a part of the logic; its bounds, and whether the words are all that its cells depend on.
    fn describe(&self, tree: &Tree, block: usize, kv: i64, key: &mut SmallVec<[i64; 8]>) -> (Truth, bool) {
        let first = key.len();
        // an undecided part: what follows are the words of what it is made of
        key.push(4);
        let (truth, complete) = match tree {
            Tree::Leaf(at) => self.describe_leaf(*at, block, kv, key),
            Tree::Not(a) => {
                let (a, complete) = self.describe(a, block, kv, key);
                (a.not(), complete)
            }
            Tree::And(a, b) | Tree::Or(a, b) | Tree::Xor(a, b) => {
                let (a, left) = self.describe(a, block, kv, key);
                let (b, right) = self.describe(b, block, kv, key);
                let truth = match tree {
                    Tree::And(..) => a.and(b),
                    Tree::Or(..) => a.or(b),
                    _ => a.xor(b),
                };
                (truth, left && right)
            }
        };
        let Some(known) = truth.value() else { return (truth, complete) };
        key.truncate(first);
        key.push(i64::from(known));
        (truth, true)
    }

    fn describe_leaf(&self, at: usize, block: usize, kv: i64, key: &mut SmallVec<[i64; 8]>) -> (Truth, bool) {
        let (leaf, row) = (&self.cuts.leaves[at], &self.rows[at]);
        let words = leaf.local(row, kv).map(|local| smallvec![2, local]);
        let one_row = || leaf.fixed(row).map(|fixed| [3, block as i64].into_iter().chain(fixed).collect());
        let one_column = || leaf.fixed_column(block).map(|fixed| [5, self.q.0].into_iter().chain(fixed).collect());
        let words: Option<SmallVec<[i64; 8]>> = words.or_else(one_row).or_else(one_column);
        let complete = words.is_some();
        key.extend(words.unwrap_or_default());
        (leaf.truth(self.program, row, 0, block), complete)
    }
}

fn segments(tree: &Tree, leaves: &[Leaf], rows: &mut [leaf::Row]) -> Segments {
    let mut two = |a, b| (segments(a, leaves, rows), segments(b, leaves, rows));
    match tree {
        Tree::Leaf(n) => leaves[*n].segments(&mut rows[*n]),
        Tree::Not(a) => {
            let mut a = segments(a, leaves, rows);
            a.iter_mut().for_each(|(_, truth)| *truth = truth.not());
            a
        }
        Tree::And(a, b) => merge(two(a, b), Truth::and),
        Tree::Or(a, b) => merge(two(a, b), Truth::or),
        Tree::Xor(a, b) => merge(two(a, b), Truth::xor),
    }
}

/// Both lists at once.
fn merge((a, b): (Segments, Segments), join: impl Fn(Truth, Truth) -> Truth) -> Segments {
    if let ([(end, x)], [(_, y)]) = (&a[..], &b[..]) {
        return smallvec![(*end, join(*x, *y))];
    }
    let (mut out, mut i, mut j) = (Segments::new(), 0, 0);
    while i < a.len() && j < b.len() {
        let end = a[i].0.min(b[j].0);
        push(&mut out, end, join(a[i].1, b[j].1));
        i += usize::from(a[i].0 == end);
        j += usize::from(b[j].0 == end);
    }
    out
}

/// Adds blocks up to `end`, if that is any.
fn push(out: &mut Segments, end: u32, truth: Truth) {
    match out.last_mut() {
        Some((last, _)) if *last >= end => {}
        Some((last, same)) if *same == truth => *last = end,
        None if end == 0 => {}
        _ => out.push((end, truth)),
    }
}
