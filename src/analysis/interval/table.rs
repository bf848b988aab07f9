//! Smallest and largest element of a captured tensor over ranges of its indices.
//!
//! Invariant: the answer contains every element that the index box can reach; over the last dimension alone it is exact.
//! Must not know about graphs.

use super::{Floats, Ints, Truth, Value};
use crate::base::HostTensor;
use crate::base::tensor::Data;

/// Elements that one step of a pyramid joins along a dimension.
const STEP: usize = 8;
/// Cells of a level that a two-dimensional query looks at, along a dimension of a square.
const LOOK: usize = 10;
/// Rows that a query over an outer dimension looks at before it takes the whole tensor.
const OUTER: usize = 64;

/// Range answers over one captured tensor.
#[derive(Debug)]
pub struct Table {
    shape: Vec<usize>,
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

/// Inclusive index range of each dimension.
pub type Index = smallvec::SmallVec<[(usize, usize); 4]>;

impl Table {
    /// Builds the pyramid; linear in the tensor.
    pub fn new(tensor: &HostTensor) -> Self {
        let shape = tensor.shape().to_vec();
        let cols = shape.last().copied().unwrap_or(1);
        let rows = if shape.len() > 1 { shape[shape.len() - 2] } else { 1 };
        let plane = (rows, cols);
        let ints = |v: Vec<i32>| Kind::Int(Pyramid::new(v, plane));
        let kind = match tensor.data() {
            Data::Bool(v) => Kind::Bool(Pyramid::new(v.clone(), plane)),
            Data::U8(v) => Kind::Byte(Pyramid::new(v.clone(), plane)),
            Data::I8(v) => ints(v.iter().map(|x| i32::from(*x)).collect()),
            Data::I16(v) => ints(v.iter().map(|x| i32::from(*x)).collect()),
            Data::I32(v) => ints(v.clone()),
            Data::I64(v) => match v.iter().map(|x| i32::try_from(*x)).collect::<Result<Vec<_>, _>>() {
                Ok(small) => ints(small),
                Err(_) => Kind::Long(Pyramid::new(v.clone(), plane)),
            },
            Data::F64(v) => Kind::Double(Pyramid::new(v.clone(), plane)),
            _ => Kind::Float(Pyramid::new(tensor.to_f32_vec(), plane)),
        };
        Self { shape, kind }
    }

    /// What elements in the index box can be.
    pub fn range(&self, index: &Index) -> Value {
        match &self.kind {
            Kind::Bool(p) => {
                let (lo, hi, _) = p.box_range(&self.shape, index);
                Value::Bool(Truth { can_false: lo == 0, can_true: hi != 0 })
            }
            Kind::Byte(p) => ints(p.box_range(&self.shape, index)),
            Kind::Int(p) => ints(p.box_range(&self.shape, index)),
            Kind::Long(p) => ints(p.box_range(&self.shape, index)),
            Kind::Float(p) => floats(p.box_range(&self.shape, index)),
            Kind::Double(p) => floats(p.box_range(&self.shape, index)),
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
trait Element: Copy + PartialOrd {
    const LEAST: Self;
    const MOST: Self;
}
macro_rules! element {
    ($($t:ty: $lo:expr, $hi:expr);*) => { $(impl Element for $t { const LEAST: $t = $lo; const MOST: $t = $hi; })* };
}
element!(u8: 0, u8::MAX; i32: i32::MIN, i32::MAX; i64: i64::MIN, i64::MAX;
    f32: f32::NEG_INFINITY, f32::INFINITY; f64: f64::NEG_INFINITY, f64::INFINITY);

/// Minima and maxima of planes of `rows` x `cols` elements, each level joining `STEP` of the one below along the columns
/// and, where there are several rows, along the rows.
#[derive(Debug)]
struct Pyramid<T> {
    base: Vec<T>,
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
    fn new(base: Vec<T>, (rows, cols): (usize, usize)) -> Self {
        let sorted = rows <= 1 && base.len() == cols && base.windows(2).all(|w| w[0] <= w[1]);
        let mut out = Self {
            rows: rows.max(1),
            cols: cols.max(1),
            levels: Vec::new(),
            all: (T::MOST, T::LEAST),
            has_nan: base.iter().any(|x| is_nan(*x)),
            sorted,
            base,
        };
        base_extremes(&out.base, &mut out.all);
        if !out.sorted {
            out.build_levels();
        }
        out
    }

    fn build_levels(&mut self) {
        let planes = self.base.len() / (self.rows * self.cols).max(1);
        loop {
            let (rows, cols) = self.levels.last().map_or((self.rows, self.cols), |l| (l.rows, l.cols));
            if rows * cols <= STEP {
                return;
            }
            let row_step = if rows > 1 { STEP } else { 1 };
            let (up_rows, up_cols) = (rows.div_ceil(row_step), cols.div_ceil(STEP));
            let mut cells = vec![(T::MOST, T::LEAST); planes * up_rows * up_cols];
            for plane_row in 0..planes * rows {
                let (plane, row) = (plane_row / rows, plane_row % rows);
                let to = (plane * up_rows + row / row_step) * up_cols;
                for col in 0..cols {
                    let (lo, hi) = self.cell(self.levels.len(), plane_row * cols + col);
                    join(&mut cells[to + col / STEP], lo, hi);
                }
            }
            self.levels.push(Level { rows: up_rows, cols: up_cols, cells });
        }
    }

    /// Minimum and maximum of one cell of a level; level 0 is the tensor.
    fn cell(&self, level: usize, flat: usize) -> (T, T) {
        match level.checked_sub(1) {
            Some(up) => self.levels[up].cells[flat],
            None => (self.base[flat], self.base[flat]),
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
            join(acc, self.base[col.0], self.base[col.1]);
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
            // the last cell of a line may stand for fewer elements, so a range to the line's end is whole
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

fn base_extremes<T: Element>(base: &[T], acc: &mut (T, T)) {
    base.iter().for_each(|x| join(acc, *x, *x));
}
