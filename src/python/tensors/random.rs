//! PyTorch's CPU generator: the same numbers for the same seed, or a refusal.
//!
//! Invariant: every function here was compared with PyTorch over many seeds and sizes; functions that depend on the
//! machine's vector library are refused. Must not know Python values.

use super::elem::{from_floats, from_ints, from_singles};
use super::error::{Budget, HostError, HostResult};
use super::mt19937::Mt19937;
use super::normal::normals;
use super::strided::finish;
use super::{Binary, binary};
use crate::base::tensor::Data;
use crate::base::{DType, HostTensor};

/// The seed of an unseeded generator (`torch.Generator()`); the global one's is random.
pub(super) const DEFAULT_SEED: u64 = 67_280_421_310_721;

/// From here on PyTorch shuffles in another way.
const LONG_PERMUTATION: i64 = u32::MAX as i64 / 20;

/// A generator of random tensors.
#[derive(Clone, Debug)]
pub struct Generator {
    bits: Mt19937,
    seed: u64,
    /// The second normal of the last pair, for the next scalar draw.
    spare: Option<f64>,
}

impl Default for Generator {
    fn default() -> Self {
        Self::new(DEFAULT_SEED)
    }
}

/// What drawing a number costs beside that of a result, in nanoseconds.
const DRAWN: u64 = 60;

impl Generator {
    /// A generator with a seed.
    pub fn new(seed: u64) -> Self {
        Self { bits: Mt19937::new(seed), seed, spare: None }
    }

    /// Starts again from a seed. Negative Python seeds wrap, as `manual_seed` remaps them.
    pub fn manual_seed(&mut self, seed: i64) {
        *self = Self::new(seed as u64);
    }

    /// The seed it was last given.
    pub fn initial_seed(&self) -> u64 {
        self.seed
    }

    /// Uniform in [0, 1): 53 bits of 64.
    fn double(&mut self) -> f64 {
        (self.bits.next_u64() & ((1 << 53) - 1)) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [0, 1): so many low bits of 32.
    fn single(&mut self, digits: u32) -> f32 {
        (self.bits.next_u32() & ((1 << digits) - 1)) as f32 / (1u32 << digits) as f32
    }

    /// `torch.rand` scaled to `low..high` (`uniform_`).
    pub fn uniform(&mut self, shape: &[usize], dtype: DType, low: f64, high: f64, budget: &Budget) -> HostResult {
        need_float("rand", dtype)?;
        if matches!(dtype, DType::F16 | DType::BF16) {
            return Err(HostError::unsupported(format!("uniform draws of {dtype} differ between versions of PyTorch"))
                .hint("draw float32 and convert: `torch.rand(...).to(dtype)`, or pass the tensor as an argument"));
        }
        let n = budget.charge(shape, dtype)?;
        budget.work_each(n, DRAWN)?;
        let data = match dtype {
            DType::F64 => from_floats(dtype, n, |_| self.double().mul_add(high - low, low)),
            _ => {
                let (low, high) = (low as f32, high as f32);
                from_singles(dtype, n, |_| self.single(24).mul_add(high - low, low))
            }
        };
        finish(shape, data)
    }

    /// `torch.randn` with a mean and deviation (`normal_`).
    pub fn normal(&mut self, shape: &[usize], dtype: DType, mean: f64, deviation: f64, budget: &Budget) -> HostResult {
        need_float("randn", dtype)?;
        let n = budget.charge(shape, dtype)?;
        budget.work_each(n, DRAWN)?;
        if n < 16 {
            return finish(shape, from_floats(dtype, n, |_| self.one_normal().mul_add(deviation, mean)));
        }
        match dtype {
            DType::F32 => finish(shape, Data::F32(self.many_singles(n, mean as f32, deviation as f32))),
            DType::F64 => finish(shape, Data::F64(self.many_doubles(n, mean, deviation))),
            _ => Err(HostError::unsupported(format!("randn of 16 or more {dtype} elements is not evaluated"))
                .hint("draw float32 and convert: `torch.randn(...).to(dtype)`, or pass the tensor as an argument")),
        }
    }

    /// One normal in double precision; they come in pairs.
    fn one_normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let (u1, u2) = (self.double(), self.double());
        let radius = (-2.0 * (-u2).ln_1p()).sqrt();
        let angle = 2.0 * std::f64::consts::PI * u1;
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// Uniforms turned into normals sixteen at a time; a rest is drawn again together with those before it.
    fn many_singles(&mut self, n: usize, mean: f32, deviation: f32) -> Vec<f32> {
        let mut out: Vec<f32> = (0..n).map(|_| self.single(24)).collect();
        let mut fill = |part: &mut [f32]| {
            let mut sixteen = [0f32; 16];
            sixteen.copy_from_slice(part);
            normals(&mut sixteen);
            part.iter_mut().zip(sixteen).for_each(|(to, x)| *to = x.mul_add(deviation, mean));
        };
        out.chunks_exact_mut(16).for_each(&mut fill);
        if !n.is_multiple_of(16) {
            out[n - 16..].iter_mut().for_each(|x| *x = self.single(24));
            fill(&mut out[n - 16..]);
        }
        out
    }

    fn many_doubles(&mut self, n: usize, mean: f64, deviation: f64) -> Vec<f64> {
        let mut out: Vec<f64> = (0..n).map(|_| self.double()).collect();
        let fill = |part: &mut [f64]| {
            for j in 0..8 {
                let radius = (-2.0 * (1.0 - part[j]).ln()).sqrt();
                let angle = 2.0 * std::f64::consts::PI * part[j + 8];
                part[j] = radius * angle.cos() * deviation + mean;
                part[j + 8] = radius * angle.sin() * deviation + mean;
            }
        };
        out.chunks_exact_mut(16).for_each(fill);
        if !n.is_multiple_of(16) {
            out[n - 16..].iter_mut().for_each(|x| *x = self.double());
            fill(&mut out[n - 16..]);
        }
        out
    }

    /// `torch.randint(low, high, shape)`.
    pub fn integers(&mut self, low: i64, high: i64, shape: &[usize], dtype: DType, budget: &Budget) -> HostResult {
        if low >= high {
            let message = format!("random_ expects 'from' to be less than 'to', but got from={low} >= to={high}");
            return Err(HostError::new(message));
        }
        let n = budget.charge(shape, dtype)?;
        budget.work_each(n, DRAWN)?;
        let range = high.wrapping_sub(low) as u64;
        let mut draw = |_: usize| {
            let bits = if range >= 1 << 28 { self.bits.next_u64() } else { u64::from(self.bits.next_u32()) };
            ((bits % range) as i64).wrapping_add(low)
        };
        finish(shape, from_ints(dtype, n, &mut draw))
    }

    /// `torch.randperm(n)`: Fisher and Yates from the front.
    pub fn permutation(&mut self, n: i64, dtype: DType, budget: &Budget) -> HostResult {
        if n < 0 {
            return Err(HostError::new(format!("n must be non-negative, got{n}")));
        }
        if n >= LONG_PERMUTATION {
            return Err(HostError::unsupported(format!("randperm of {n} elements is not evaluated")));
        }
        let count = budget.charge(&[n as usize], dtype)?;
        budget.work_each(count, DRAWN)?;
        budget.charge(&[count], DType::I64)?;
        let mut order: Vec<usize> = (0..count).collect();
        for i in 0..count.saturating_sub(1) {
            let left = (count - i) as u64;
            order.swap(i, i + (u64::from(self.bits.next_u32()) % left) as usize);
        }
        finish(&[count], from_ints(dtype, count, |i| order[i] as i64))
    }

    /// `torch.bernoulli(p)`: an element is 1 if a uniform draw is below its probability.
    pub fn bernoulli(&mut self, p: &HostTensor, budget: &Budget) -> HostResult {
        need_float("bernoulli", p.dtype())?;
        if (0..p.numel()).any(|i| !(0.0..=1.0).contains(&p.float_at(i))) {
            return Err(HostError::new("Expected p_in >= 0 && p_in <= 1 to be true, but got false."));
        }
        let n = budget.charge(p.shape(), p.dtype())?;
        budget.work_each(n, DRAWN)?;
        let data = match p.dtype() {
            DType::F64 => from_ints(DType::F64, n, |i| i64::from(self.double() < p.float_at(i))),
            dtype => from_ints(dtype, n, |i| i64::from(f64::from(self.single(24)) < p.float_at(i))),
        };
        finish(p.shape(), data)
    }

    /// `exponential_(rate)`, as on processors without Intel's library of distributions.
    pub fn exponential(&mut self, shape: &[usize], dtype: DType, rate: f64, budget: &Budget) -> HostResult {
        need_float("exponential_", dtype)?;
        if rate <= 0.0 || rate.is_nan() {
            return Err(HostError::new(format!("exponential_ expects lambda > 0.0, but found lambda={rate}")));
        }
        if dtype == DType::F64 {
            return Err(HostError::unsupported("exponential_ of float64 is not evaluated to its last bit")
                .hint("draw float32, or pass the tensor as an argument"));
        }
        let n = budget.charge(shape, dtype)?;
        budget.work_each(n, DRAWN)?;
        finish(shape, from_singles(dtype, n, |_| (-1.0 / rate * (-self.double()).ln_1p()) as f32))
    }

    /// `torch.multinomial(weights, count)` without replacement: the largest weights over exponential draws.
    pub fn sample(&mut self, weights: &HostTensor, count: usize, budget: &Budget) -> HostResult {
        let (rows, columns) = multinomial_shape(weights, count)?;
        if count > columns {
            let message = "cannot sample n_sample > prob_dist.size(-1) samples without replacement";
            return Err(HostError::new(message));
        }
        // one weight of 0 comes last; the order of several is open
        if (0..rows).any(|r| count > 1 + positive(weights, r, columns)) {
            let message = "multinomial draws several weights of 0, whose order PyTorch does not define";
            return Err(
                HostError::unsupported(message).hint("draw at most as many samples as there are weights above 0")
            );
        }
        let draws = self.exponential(weights.shape(), DType::F32, 1.0, budget)?;
        let ratio = binary(Binary::Div, weights.into(), (&draws).into(), budget)?;
        Ok(super::topk(&ratio, count as i64, -1, true, budget)?.places)
    }

    /// `torch.multinomial(weights, count, replacement=True)`: uniform draws looked up in the cumulative sum.
    pub fn sample_again(&mut self, weights: &HostTensor, count: usize, budget: &Budget) -> HostResult {
        let (rows, columns) = multinomial_shape(weights, count)?;
        let mut shape = weights.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = count;
        }
        let n = budget.charge(&shape, DType::I64)?;
        budget.work_each(rows * columns, 16)?;
        budget.work_each(n, 16 * u64::from(usize::BITS - columns.leading_zeros()))?;
        let mut out = Vec::with_capacity(n);
        for row in 0..rows {
            let mut sums: Vec<f32> = Vec::with_capacity(columns);
            for i in 0..columns {
                let before = sums.last().copied().unwrap_or(0.0);
                sums.push(before + weights.float_at(row * columns + i) as f32);
            }
            let total = sums.last().copied().unwrap_or(0.0);
            sums.iter_mut().for_each(|s| *s /= total);
            if let Some(last) = sums.last_mut() {
                *last = 1.0;
            }
            for _ in 0..count {
                let at = self.double();
                out.push(sums.partition_point(|s| f64::from(*s) < at) as i64);
            }
        }
        finish(&shape, Data::I64(out))
    }
}

/// Rows and columns of weights that can be drawn by.
fn multinomial_shape(weights: &HostTensor, count: usize) -> HostResult<(usize, usize)> {
    let (rows, columns) = match weights.shape() {
        [columns] => (1, *columns),
        [rows, columns] => (*rows, *columns),
        _ => return Err(HostError::shape("prob_dist must be 1 or 2 dim")),
    };
    if weights.dtype() != DType::F32 {
        return Err(HostError::unsupported(format!("multinomial of {} is not evaluated", weights.dtype()))
            .hint("draw by float32: `weights.float()`"));
    }
    if count == 0 {
        return Err(HostError::new("cannot sample n_sample <= 0 samples"));
    }
    let weight = |i: usize| weights.float_at(i);
    if (0..weights.numel()).any(|i| !weight(i).is_finite() || weight(i) < 0.0) {
        return Err(HostError::new("probability tensor contains either `inf`, `nan` or element < 0"));
    }
    if (0..rows).any(|r| positive(weights, r, columns) == 0) {
        return Err(HostError::new("invalid multinomial distribution (sum of probabilities <= 0)"));
    }
    Ok((rows, columns))
}

/// How many weights of a row are above 0.
fn positive(weights: &HostTensor, row: usize, columns: usize) -> usize {
    (row * columns..(row + 1) * columns).filter(|i| weights.float_at(*i) > 0.0).count()
}

fn need_float(name: &str, dtype: DType) -> HostResult<()> {
    if dtype.is_float() {
        Ok(())
    } else {
        Err(HostError::dtype(format!("\"{name}\" not implemented for dtype {dtype}")))
    }
}
