//! Whether ints fit into 32 bits: the range of every int node for given ranges of the indices.
//!
//! Invariant: a range contains every value of the interpreter for the given indices. Must not know lanes.

use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};
use crate::ir::graph::{BinaryOp, Graph, Input, NodeId, Op, Ty, UnaryOp};
use crate::ir::ops::rows::{BinaryRange, UnaryRange};
use crate::ir::schedule;

/// Batch entries and heads are taken to be fewer than this.
pub(crate) const MOST_HEADS: usize = 1 << 16;

/// Lengths that are tried, longest first.
const LENGTHS: [usize; 5] = [1 << 30, 1 << 26, 1 << 22, 1 << 19, 1 << 16];

/// The longest sequence for which every int stays inside i32; None when not even short ones do.
pub(crate) fn longest_narrow(graph: &Graph, root: NodeId) -> Option<usize> {
    let loads: Vec<Range> = graph.captures().iter().map(|c| tensor_range(&c.tensor)).collect();
    LENGTHS.into_iter().find(|longest| is_narrow(graph, root, *longest, &loads))
}

/// Smallest and largest value.
pub type Range = (i128, i128);

/// Every i64.
pub const ANY: Range = (i64::MIN as i128, i64::MAX as i128);

fn is_narrow(graph: &Graph, root: NodeId, longest: usize, loads: &[Range]) -> bool {
    let mut ranges: Vec<Range> = vec![(0, 0); graph.nodes().len()];
    for id in schedule::needed(graph, &[root]) {
        let node = graph.node(id);
        if node.ty != Ty::Int {
            continue;
        }
        let range = range_of(graph, &node.op, &ranges, longest, loads);
        if range.0 < i128::from(i32::MIN) || range.1 > i128::from(i32::MAX) {
            return false;
        }
        ranges[id.0 as usize] = range;
    }
    true
}

/// Range of an int operation from its operands', for tokens up to `longest` and captured tensors of ranges `loads`.
pub fn range_of(graph: &Graph, op: &Op, ranges: &[Range], longest: usize, loads: &[Range]) -> Range {
    let at = |id: &NodeId| ranges[id.0 as usize];
    match op {
        Op::Input(Input::B | Input::H) => (0, MOST_HEADS as i128 - 1),
        Op::Input(_) => (0, longest as i128 - 1),
        Op::Int(x) => (i128::from(*x), i128::from(*x)),
        Op::UniformInt(_) => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Op::Unary(UnaryOp::ToInt, a) if graph.ty(*a) == Ty::Bool => (0, 1),
        Op::Unary(UnaryOp::ToInt32, _) => stored(DType::I32),
        Op::Unary(op, a) => unary(*op, at(a)),
        Op::Binary(op, a, b) => binary(*op, at(a), at(b)),
        Op::Where(_, a, b) => union(at(a), at(b)),
        Op::Load(capture, _) => loads[capture.0 as usize],
        // no ints
        Op::Bool(_) | Op::Float(_) | Op::UniformFloat(_) => ANY,
    }
}

/// Smallest and largest element of an int tensor.
pub fn tensor_range(tensor: &HostTensor) -> Range {
    match tensor.data() {
        Data::Bool(v) | Data::U8(v) => extremes(v),
        Data::I8(v) => extremes(v),
        Data::I16(v) => extremes(v),
        Data::I32(v) => extremes(v),
        Data::I64(v) => extremes(v),
        Data::F16(_) | Data::BF16(_) | Data::F32(_) | Data::F64(_) => ANY,
    }
}

/// In the tensor's own type, whose loop compilers vectorise.
fn extremes<T: Ord + Copy + Into<i128>>(elements: &[T]) -> Range {
    let Some(first) = elements.first() else { return (0, 0) };
    let (lo, hi) = elements.iter().fold((*first, *first), |(lo, hi), x| (lo.min(*x), hi.max(*x)));
    (lo.into(), hi.into())
}

/// Whether no value wraps in the interpreter.
pub(crate) fn fits_i64(range: Range) -> bool {
    range.0 >= ANY.0 && range.1 <= ANY.1
}

fn union(a: Range, b: Range) -> Range {
    (a.0.min(b.0), a.1.max(b.1))
}

fn corners(a: Range, b: Range, f: impl Fn(i128, i128) -> i128) -> Range {
    let all = [f(a.0, b.0), f(a.0, b.1), f(a.1, b.0), f(a.1, b.1)];
    (all.into_iter().min().expect("four"), all.into_iter().max().expect("four"))
}

/// Range of an int operation on one int.
pub(crate) fn unary(op: UnaryOp, a: Range) -> Range {
    use UnaryRange::*;
    match op.row().range {
        Negated => (-a.1, -a.0),
        Inverted => (-a.1 - 1, -a.0 - 1),
        Size if a.0 >= 0 => a,
        Size => (0, a.1.max(-a.0)),
        Stored => {
            let all = op.keeps().map_or(ANY, stored);
            if a.0 >= all.0 && a.1 <= all.1 { a } else { all }
        }
        // of floats, or to them
        Rising(..) | RisingInDouble(..) | Step(_) | Within(..) | WithinOrNan(..) => ANY,
        ToFloat | ToDouble | ToInt | ToInt32 | ToBool => ANY,
    }
}

/// The range of an int dtype.
pub fn stored(dtype: DType) -> Range {
    match dtype {
        DType::U8 => (0, 255),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        _ => ANY,
    }
}

fn magnitude(a: Range) -> i128 {
    a.1.abs().max(a.0.abs())
}

fn binary(op: BinaryOp, a: Range, b: Range) -> Range {
    use BinaryRange::*;
    match op.row().range {
        Sum => (a.0 + b.0, a.1 + b.1),
        Difference => (a.0 - b.1, a.1 - b.0),
        Product => corners(a, b, |x, y| x * y),
        FloorQuotient if b.0 == b.1 && b.0 > 0 => (a.0.div_euclid(b.0), a.1.div_euclid(b.0)),
        FloorQuotient | TruncQuotient if a.0 >= 0 && b.0 >= 0 => (0, a.1),
        FloorQuotient | TruncQuotient => (-magnitude(a), magnitude(a)),
        Modulo if b.0 >= 0 => (0, (b.1 - 1).max(0)),
        Modulo => (-magnitude(b), magnitude(b)),
        Remainder if a.0 >= 0 => (0, a.1.min(magnitude(b))),
        Remainder => {
            let most = magnitude(a).min(magnitude(b));
            (-most, most)
        }
        Least => (a.0.min(b.0), a.1.min(b.1)),
        Greatest => (a.0.max(b.0), a.1.max(b.1)),
        rule @ (And | Or | Xor) => bits(rule, a, b),
        ShiftLeft => {
            let shifted = corners(a, (b.0.clamp(0, 63), b.1.clamp(0, 63)), |x, n| x << n);
            if b.0 < 0 || b.1 > 63 { union(shifted, (0, 0)) } else { shifted }
        }
        ShiftRight => {
            let least = if b.0 < 0 { 0 } else { b.0.min(63) };
            corners(a, (least, if b.0 < 0 { 63 } else { b.1.clamp(0, 63) }), |x, n| x >> n)
        }
        Quotient | Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual | Unknown => ANY,
    }
}

fn bits(rule: BinaryRange, a: Range, b: Range) -> Range {
    if rule == BinaryRange::And && (a.0 >= 0 || b.0 >= 0) {
        let non_negative = [a, b].into_iter().filter(|r| r.0 >= 0).map(|r| r.1);
        return (0, non_negative.min().expect("one of them"));
    }
    let mut all_ones = 1i128;
    while all_ones <= magnitude(a).max(magnitude(b)) {
        all_ones *= 2;
    }
    if a.0 >= 0 && b.0 >= 0 { (0, all_ones - 1) } else { (-all_ones, all_ones - 1) }
}

#[cfg(test)]
mod tests {
    use crate::ir::bounds::*;
    use crate::ir::cell::{Cell, Value};
    use crate::ir::random::{self, Options, Rng};
    use crate::ir::steps::steps;

    #[test]
    fn a_shift_beyond_the_width_gives_zero() {
        let mut graph = Graph::new();
        let (one, by) = (graph.int(1), graph.int(0));
        let op = Op::Binary(BinaryOp::Shl, one, by);
        // a count from 64 on shifts everything out, whichever it is
        for counts in [(0, 64), (0, 70), (63, 100)] {
            let (low, high) = range_of(&graph, &op, &[(1, 1), counts], 80, &[]);
            assert!(low <= 0 && high >= 1 << counts.0.min(62), "{counts:?}: {low} to {high}");
        }
        assert_eq!(range_of(&graph, &op, &[(1, 1), (1, 3)], 80, &[]), (2, 8));
    }

    #[test]
    fn a_tensors_range_is_that_of_its_elements() {
        let of = |data| tensor_range(&HostTensor::vector(data));
        assert_eq!(of(Data::I64(vec![3, i64::MIN, i64::MAX, 0])), ANY);
        assert_eq!(
            (of(Data::I32(vec![-4, 9, 2])), of(Data::I16(vec![5])), of(Data::I8(vec![-1, -128]))),
            ((-4, 9), (5, 5), (-128, -1))
        );
        assert_eq!(
            (of(Data::U8(vec![200, 7])), of(Data::Bool(vec![1, 1])), of(Data::I64(Vec::new()))),
            ((7, 200), (1, 1), (0, 0))
        );
        assert_eq!((of(Data::F32(vec![1.0])), of(Data::F64(vec![1.0]))), (ANY, ANY));
    }

    #[test]
    fn ranges_contain_what_the_interpreter_gives() {
        let options = Options { batch: 2, heads: 3, depth: 5, portable: false, ..Options::new(80, 70) };
        for seed in 0..150 {
            let mod_ = random::mask(seed, &options);
            let loads: Vec<Range> = mod_.graph.captures().iter().map(|c| tensor_range(&c.tensor)).collect();
            let mut ranges = Vec::new();
            for node in mod_.graph.nodes() {
                let range =
                    if node.ty == Ty::Int { range_of(&mod_.graph, &node.op, &ranges, 80, &loads) } else { (0, 0) };
                // beyond i64 the interpreter wraps
                ranges.push(if range.0 < ANY.0 || range.1 > ANY.1 { ANY } else { range });
            }
            let mut rng = Rng::new(seed);
            for _ in 0..20 {
                let cell = Cell {
                    b: rng.below(2) as i64,
                    h: rng.below(3) as i64,
                    q_idx: rng.below(80) as i64,
                    kv_idx: rng.below(70) as i64,
                    score: 0.0,
                };
                for step in steps(&mod_, &cell) {
                    if let Value::Int(x) = step.value {
                        let range = ranges[step.node.0 as usize];
                        assert!((range.0..=range.1).contains(&i128::from(x)), "seed {seed}: {} = {x}", step.text);
                    }
                }
            }
        }
    }

    #[test]
    fn products_of_long_indices_need_64_bits() {
        let mut g = Graph::new();
        let (q, k) = (g.input(Input::QIdx), g.input(Input::KvIdx));
        let distance = g.binary(BinaryOp::Sub, q, k);
        let product = g.binary(BinaryOp::Mul, q, k);
        assert_eq!(longest_narrow(&g, distance), Some(1 << 30));
        assert_eq!(longest_narrow(&g, product), None);
        let width = g.int(100);
        let flat = g.binary(BinaryOp::Mul, q, width);
        assert_eq!(longest_narrow(&g, flat), Some(1 << 22));
    }
}
