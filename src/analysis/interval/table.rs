//! Smallest and largest element of a captured tensor over ranges of its indices.
//!
//! Invariant: the answer contains every element that the index box can reach; it is exact if only the last dimension
//! varies. Must not know about graphs.

use super::{Floats, Ints, Truth, Value};
use crate::base::HostTensor;
use crate::base::tensor::Data;
use std::sync::{Arc, Mutex, Weak};

/// Elements that one step of a pyramid joins along a dimension.
const STEP: usize = 8;
/// Elements that are worth a thread.
const A_THREAD: usize = 1 << 18;
/// Cells of a level that a two-dimensional query looks at, along a dimension of a square.
const LOOK: usize = 10;
/// Rows, and elements of each, that a two-dimensional query reads themselves.
const LINES: usize = 2;
const LINE: usize = 512;
/// Rows that a query over an outer dimension looks at before it takes the whole tensor.
const OUTER: usize = 64;

/// Range answers over one captured tensor.
#[derive(Debug)]
pub(super) struct Table {
    tensor: HostTensor,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Bool(Pyramid<u8>),
    Byte(Pyramid<u8>),
    Int(Pyramid<i32>),
    Long(Pyramid<i64>),
    Float(Pyramid<f32>),
    Double(Pyramid<f64>),
}

/// Tables in use somewhere, so that the blocks, the statistics and the picture of one mask share theirs.
static IN_USE: Mutex<Vec<Weak<Table>>> = Mutex::new(Vec::new());

/// Inclusive index range of each dimension.
pub(super) type Index = smallvec::SmallVec<[(usize, usize); 4]>;

impl Table {
    /// The table of a tensor: one in use, or a new one.
    pub(super) fn shared(tensor: &HostTensor) -> Arc<Self> {
        let find = |list: &[Weak<Table>]| list.iter().filter_map(Weak::upgrade).find(|t| t.tensor.same_storage(tensor));
        if let Some(known) = find(&IN_USE.lock().unwrap_or_else(|e| e.into_inner())) {
            return known;
        }
        let new = Arc::new(Self::new(tensor));
        let mut list = IN_USE.lock().unwrap_or_else(|e| e.into_inner());
        list.retain(|t| t.strong_count() > 0);
        list.push(Arc::downgrade(&new));
        new
    }

    /// Builds the pyramid; linear in the tensor.
    fn new(tensor: &HostTensor) -> Self {
        let shape = tensor.shape();
        let cols = shape.last().copied().unwrap_or(1);
        let rows = if shape.len() > 1 { shape[shape.len() - 2] } else { 1 };
        let plane = (rows, cols);

        let ints = |v: Vec<i32>| Kind::Int(Pyramid::new(Base::Own(v), plane));
        let kind = match tensor.data() {
            Data::Bool(_) => Kind::Bool(Pyramid::new(Base::Tensor(tensor.clone()), plane)),
            Data::U8(_) => Kind::Byte(Pyramid::new(Base::Tensor(tensor.clone()), plane)),
            Data::I8(v) => ints(v.iter().map(|x| i32::from(*x)).collect()),
            Data::I16(v) => ints(v.iter().map(|x| i32::from(*x)).collect()),
            Data::I32(_) => Kind::Int(Pyramid::new(Base::Tensor(tensor.clone()), plane)),
            Data::I64(_) => Kind::Long(Pyramid::new(Base::Tensor(tensor.clone()), plane)),
            Data::F32(_) => Kind::Float(Pyramid::new(Base::Tensor(tensor.clone()), plane)),
            Data::F64(_) => Kind::Double(Pyramid::new(Base::Tensor(tensor.clone()), plane)),
            Data::F16(_) | Data::BF16(_) => Kind::Float(Pyramid::new(Base::Own(tensor.to_f32_vec()), plane)),
        };
        Self { tensor: tensor.clone(), kind }
    }

    /// The range of elements in the index box.
    pub(super) fn range(&self, index: &Index) -> Value {
        match &self.kind {
            Kind::Bool(p) => {
                let (lo, hi, _) = p.box_range(self.tensor.shape(), index);
                Value::Bool(Truth { can_false: lo == 0, can_true: hi != 0 })
            }
            Kind::Byte(p) => ints(p.box_range(self.tensor.shape(), index)),
            Kind::Int(p) => ints(p.box_range(self.tensor.shape(), index)),
            Kind::Long(p) => ints(p.box_range(self.tensor.shape(), index)),
            Kind::Float(p) => floats(p.box_range(self.tensor.shape(), index)),
            Kind::Double(p) => floats(p.box_range(self.tensor.shape(), index)),
        }
    }
}

fn ints<T: Into<i64>>((lo, hi, _): (T, T, bool)) -> Value {
    Value::Int(Ints::range(lo.into(), hi.into()))
}

fn floats<T: Into<f64>>((lo, hi, nan): (T, T, bool)) -> Value {
    Value::Float(Floats { lo: lo.into(), hi: hi.into(), nan })
}

/// Element types; the extremes start an empty minimum and maximum.
trait Element: Copy + PartialOrd + Send + Sync + 'static {
    const LEAST: Self;
    const MOST: Self;
    fn of(data: &Data) -> Option<&[Self]>;
}
macro_rules! element {
    ($($t:ty: $lo:expr, $hi:expr, $data:pat => $v:expr);*) => { $(
        impl Element for $t {
            const LEAST: $t = $lo;
            const MOST: $t = $hi;
            fn of(data: &Data) -> Option<&[Self]> {
                if let $data = data { Some($v) } else { None }
            }
        }
    )* };
}
element!(u8: 0, u8::MAX, Data::Bool(v) | Data::U8(v) => v; i32: i32::MIN, i32::MAX, Data::I32(v) => v;
    i64: i64::MIN, i64::MAX, Data::I64(v) => v; f32: f32::NEG_INFINITY, f32::INFINITY, Data::F32(v) => v;
    f64: f64::NEG_INFINITY, f64::INFINITY, Data::F64(v) => v);

/// The elements: the tensor's own if they have the type.
#[derive(Debug)]
enum Base<T> {
    Own(Vec<T>),
    Tensor(HostTensor),
}

impl<T: Element> Base<T> {
    fn slice(&self) -> &[T] {
        match self {
            Base::Own(v) => v,
            Base::Tensor(t) => T::of(t.data()).unwrap_or(&[]),
        }
    }
}

/// Minima and maxima of planes of `rows` x `cols` elements; each level joins `STEP` values of the level below along the
/// columns and, with several rows, along the rows.
#[derive(Debug)]
struct Pyramid<T> {
    base: Base<T>,
    rows: usize,
    cols: usize,
    levels: Vec<Level<T>>,
    /// Over everything.
    all: (T, T),
    has_nan: bool,
    /// A single row that never decreases answers from its ends.
    sorted: bool,
}

#[derive(Debug)]
struct Level<T> {
    rows: usize,
    cols: usize,
    cells: Vec<(T, T)>,
}

#[allow(clippy::eq_op)] // x != x finds NaN for every element type
fn is_nan<T: PartialOrd>(x: T) -> bool {
    x != x
}

fn join<T: Element>(acc: &mut (T, T), lo: T, hi: T) {
    if lo < acc.0 {
        acc.0 = lo;
    }
    if hi > acc.1 {
        acc.1 = hi;
    }
}

impl<T: Element> Pyramid<T> {
    fn new(base: Base<T>, (rows, cols): (usize, usize)) -> Self {
        let elements = base.slice();
        let sorted = rows <= 1 && elements.len() == cols && elements.is_sorted();
        let has_nan = elements.iter().any(|x| is_nan(*x));
        let (rows, cols) = (rows.max(1), cols.max(1));
        let mut out = Self { rows, cols, levels: Vec::new(), all: (T::MOST, T::LEAST), has_nan, sorted, base };
        if !sorted {
            out.build_levels();
        }
        out.all = out.extremes();
        out
    }

    fn extremes(&self) -> (T, T) {
        let mut all = (T::MOST, T::LEAST);
        let base = self.base.slice();
        match (self.levels.last(), base) {
            (Some(top), _) => top.cells.iter().for_each(|(lo, hi)| join(&mut all, *lo, *hi)),
            (None, [first, .., last]) if self.sorted => join(&mut all, *first, *last),
            (None, all_of_it) => all_of_it.iter().for_each(|x| join(&mut all, *x, *x)),
        }
        all
    }

    /// Uses its own threads: the caller may be a task that others wait for, and a pool's waiting thread runs other
    /// tasks, which may need the same table.
    fn build_levels(&mut self) {
        let planes = self.base.slice().len() / (self.rows * self.cols).max(1);
        loop {
            let (rows, cols) = self.levels.last().map_or((self.rows, self.cols), |l| (l.rows, l.cols));
            if rows * cols <= STEP {
                return;
            }
            let row_step = if rows > 1 { STEP } else { 1 };
            let (up_rows, up_cols) = (rows.div_ceil(row_step), cols.div_ceil(STEP));
            let mut cells = vec![(T::MOST, T::LEAST); planes * up_rows * up_cols];
            let make = |(first, lines): (usize, &mut [(T, T)])| {
                for (at, line) in (first..).zip(lines.chunks_mut(up_cols)) {
                    let (plane, row) = (at / up_rows, at % up_rows * row_step);
                    let below = (row..(row + row_step).min(rows)).map(|r| (plane * rows + r) * cols);
                    match self.levels.last() {
                        None => below.for_each(|from| join_elements(line, &self.base.slice()[from..from + cols])),
                        Some(level) => below.for_each(|from| join_cells(line, &level.cells[from..from + cols])),
                    }
                }
            };
            let threads =
                std::thread::available_parallelism().map_or(1, |n| n.get()).min(planes * rows * cols / A_THREAD);
            let lines = (planes * up_rows).div_ceil(threads.max(1)).max(1);
            let shares = cells.chunks_mut(lines * up_cols).enumerate().map(|(n, share)| (n * lines, share));
            if threads < 2 {
                shares.for_each(make);
            } else {
                std::thread::scope(|scope| shares.for_each(|share| drop(scope.spawn(|| make(share)))));
            }
            self.levels.push(Level { rows: up_rows, cols: up_cols, cells });
        }
    }

    /// Minimum and maximum of one cell of a level; level 0 is the tensor.
    fn cell(&self, level: usize, flat: usize) -> (T, T) {
        match level.checked_sub(1) {
            Some(up) => self.levels[up].cells[flat],
            None => (self.base.slice()[flat], self.base.slice()[flat]),
        }
    }

    fn box_range(&self, shape: &[usize], index: &Index) -> (T, T, bool) {
        let mut acc = (T::MOST, T::LEAST);
        let outer = index.len().saturating_sub(2);
        let mut combinations = 1usize;
        for (lo, hi) in &index[..outer] {
            combinations = combinations.saturating_mul(hi - lo + 1);
        }
        let row = if index.len() > 1 { index[index.len() - 2] } else { (0, 0) };
        let col = index.last().copied().unwrap_or((0, 0));
        if combinations > OUTER {
            return (self.all.0, self.all.1, self.has_nan);
        }
        for n in 0..combinations {
            let (mut rest, mut plane, mut stride) = (n, 0, 1);
            for d in (0..outer).rev() {
                let width = index[d].1 - index[d].0 + 1;
                plane += (index[d].0 + rest % width) * stride;
                rest /= width;
                stride *= shape[d];
            }
            self.plane_range(plane, row, col, &mut acc);
        }
        (acc.0, acc.1, self.has_nan)
    }

    fn plane_range(&self, plane: usize, row: (usize, usize), col: (usize, usize), acc: &mut (T, T)) {
        if self.sorted {
            let line = self.base.slice();
            join(acc, line[col.0], line[col.1]);
        } else if self.rows == 1 {
            self.line_range(plane, col, acc);
        } else {
            self.area_range(plane, row, col, acc);
        }
    }

    /// One row, exactly: the ragged ends at each level, then the level above.
    fn line_range(&self, plane: usize, (mut lo, mut hi): (usize, usize), acc: &mut (T, T)) {
        let mut level = 0;
        loop {
            let width = if level == 0 { self.cols } else { self.levels[level - 1].cols };
            let base = plane * width;
            if level == self.levels.len() || hi - lo < 2 * STEP {
                (lo..=hi).for_each(|i| self.visit(level, base + i, acc));
                return;
            }
            while lo % STEP != 0 {
                self.visit(level, base + lo, acc);
                lo += 1;
            }
            // the last cell of a line may cover fewer elements, so a range to the end of the line counts as whole
            while (hi + 1) % STEP != 0 && hi + 1 != width {
                self.visit(level, base + hi, acc);
                hi -= 1;
            }
            lo /= STEP;
            hi /= STEP;
            level += 1;
        }
    }

    fn visit(&self, level: usize, flat: usize, acc: &mut (T, T)) {
        let (lo, hi) = self.cell(level, flat);
        join(acc, lo, hi);
    }

    /// A box of a plane, at the finest level where it covers few cells.
    fn area_range(&self, plane: usize, row: (usize, usize), col: (usize, usize), acc: &mut (T, T)) {
        let (mut row, mut col, mut level) = (row, col, 0);
        if row.1 - row.0 < LINES && col.1 - col.0 < LINE {
            for r in row.0..=row.1 {
                let at = (plane * self.rows + r) * self.cols;
                let (lo, hi) = extremes(&self.base.slice()[at + col.0..=at + col.1]);
                join(acc, lo, hi);
            }
            return;
        }
        let mut many_rows = self.rows > 1;
        while level < self.levels.len() && (row.1 - row.0 + 1) * (col.1 - col.0 + 1) > LOOK * LOOK {
            if many_rows {
                row = (row.0 / STEP, row.1 / STEP);
            }
            col = (col.0 / STEP, col.1 / STEP);
            many_rows = self.levels[level].rows > 1;
            level += 1;
        }
        let (rows, cols) = if level == 0 {
            (self.rows, self.cols)
        } else {
            (self.levels[level - 1].rows, self.levels[level - 1].cols)
        };
        for r in row.0..=row.1 {
            for c in col.0..=col.1 {
                self.visit(level, (plane * rows + r) * cols + c, acc);
            }
        }
    }
}

/// Smallest and largest element, in a loop that compilers vectorise.
fn extremes<T: Element>(elements: &[T]) -> (T, T) {
    let lo = elements.iter().fold(T::MOST, |lo, x| if *x < lo { *x } else { lo });
    let hi = elements.iter().fold(T::LEAST, |hi, x| if *x > hi { *x } else { hi });
    (lo, hi)
}

/// Joins a row of elements into the level above, `STEP` to a cell.
fn join_elements<T: Element>(line: &mut [(T, T)], elements: &[T]) {
    for (cell, part) in line.iter_mut().zip(elements.chunks(STEP)) {
        part.iter().for_each(|x| join(cell, *x, *x));
    }
}

fn join_cells<T: Element>(line: &mut [(T, T)], cells: &[(T, T)]) {
    for (cell, part) in line.iter_mut().zip(cells.chunks(STEP)) {
        part.iter().for_each(|(lo, hi)| join(cell, *lo, *hi));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::random::Rng;

    #[test]
    fn ranges_hold_lines_of_later_planes_and_small_planes_without_levels() {
        let mut rng = Rng::new(5);
        for shape in [vec![5, 1, 700], vec![700], vec![90, 2, 3], vec![9, 90, 1, 5]] {
            let values: Vec<i32> = (0..shape.iter().product()).map(|_| rng.below(1 << 30) as i32).collect();
            let table = Table::shared(&HostTensor::new(&shape[..], Data::I32(values.clone())).expect("a tensor"));
            for n in 0..200 {
                let mut ends = |n: &usize| (rng.below(*n), rng.below(*n));
                let index: Index = match n {
                    0 => shape.iter().map(|n| (0, n - 1)).collect(),
                    _ => shape.iter().map(&mut ends).map(|(a, b)| (a.min(b), a.max(b))).collect(),
                };
                let Value::Int(found) = table.range(&index) else { panic!("ints") };
                let inside = |flat: usize| {
                    let places = shape.iter().rev().scan(flat, |rest, n| {
                        let place = *rest % n;
                        *rest /= n;
                        Some(place)
                    });
                    places.zip(index.iter().rev()).all(|(place, (lo, hi))| (*lo..=*hi).contains(&place))
                };
                for value in (0..values.len()).filter(|flat| inside(*flat)).map(|flat| i64::from(values[flat])) {
                    assert!(found.lo <= value && value <= found.hi, "{shape:?} {index:?}");
                }
            }
        }
    }

    /// Boxes of a tensor that is large enough for several threads, whose shares end inside its planes.
    #[test]
    fn ranges_of_a_large_tensor_hold_its_elements() {
        let shape = [3, 501, 701];
        let mut rng = Rng::new(3);
        let values: Vec<i32> = (0..shape.iter().product()).map(|_| rng.below(1 << 30) as i32).collect();
        let table = Table::shared(&HostTensor::new(shape, Data::I32(values.clone())).expect("a tensor"));
        for _ in 0..200 {
            let index: Index =
                shape.iter().map(|n| (rng.below(*n), rng.below(*n))).map(|(a, b)| (a.min(b), a.max(b))).collect();
            let Value::Int(found) = table.range(&index) else { panic!("ints") };
            let lines =
                (index[0].0..=index[0].1).flat_map(|p| (index[1].0..=index[1].1).map(move |r| (p * 501 + r) * 701));
            let inside = lines.flat_map(|line| &values[line + index[2].0..=line + index[2].1]);
            let (least, most) = inside.fold((i32::MAX, i32::MIN), |(lo, hi), x| (lo.min(*x), hi.max(*x)));
            assert!(found.lo <= i64::from(least) && i64::from(most) <= found.hi, "{index:?}");
        }
        let everything = shape.iter().map(|n| (0, n - 1)).collect();
        let (least, most) = (values.iter().min(), values.iter().max());
        let Value::Int(found) = table.range(&everything) else { panic!("ints") };
        assert_eq!((Some(found.lo), Some(found.hi)), (least.map(|x| i64::from(*x)), most.map(|x| i64::from(*x))));
    }
}
