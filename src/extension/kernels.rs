//! Attention on an NVIDIA GPU: passes that are compiled in this process and launched where PyTorch says.
//!
//! Invariant: a pass belongs to one problem, one set of strides and one device. Addresses are those of tensors that the caller holds until
//! its stream has come past the launches. Must not know PyTorch's objects nor how gradients are asked for.

use super::attention::{self, Extents};
use super::guard::computed;
use super::mask::Mask;
use super::memory;
use crate::backends::cuda::Cache;
use crate::backends::cuda::embedded::{self, Card, Layouts, Loaded};
use crate::base::{BlockSize, Diagnostic, HostTensor, Lengths, tensor::Data};
use crate::problem::Problem;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Where a pass runs: N of `cuda:N`; or an architecture, such as `sm_90a`, for one that is only made. And folders of Python's packages.
type Place = (u32, Option<String>, Vec<PathBuf>);

/// A pass that is compiled.
#[pyclass(frozen, module = "maskloom._native")]
pub(super) struct Pass {
    of: embedded::Pass,
    card: Card,
}

/// A pass that is loaded.
#[pyclass(frozen, module = "maskloom._native")]
pub(super) struct Launches {
    of: Loaded,
}

fn card(place: &Place) -> Result<Card, Diagnostic> {
    match &place.1 {
        Some(arch) => Card::usual(arch),
        None => Card::of(place.0),
    }
}

fn made(
    place: &Place,
    problem: impl FnOnce() -> Result<Problem, Diagnostic>,
    make: impl FnOnce(&Problem, &Card) -> Result<embedded::Pass, Diagnostic>,
) -> Result<Pass, Diagnostic> {
    let card = card(place)?;
    Ok(Pass { of: make(&problem()?, &card)?, card })
}

/// The forward pass of a problem; strides of q, k and v. `differentiable`: refuses what has no backward pass.
#[pyfunction]
#[pyo3(signature = (mask, score, extents, dtype, scale, max_scores, differentiable, strides, place))]
pub(super) fn forward_pass(
    py: Python<'_>,
    mask: Option<&Mask>,
    score: Option<&Mask>,
    extents: Extents,
    dtype: &str,
    scale: Option<f64>,
    max_scores: bool,
    differentiable: bool,
    strides: Vec<[i64; 3]>,
    place: Place,
) -> PyResult<Pass> {
    computed(py, || {
        let problem = || attention::problem((mask, score), extents, dtype, scale, max_scores);
        made(&place, problem, |problem, card| {
            let (layouts, compiler) = (Layouts::new(&strides)?, card.compiler(&place.2)?);
            embedded::Pass::forward(problem, &layouts, differentiable, card, compiler, Cache::user().as_ref())
        })
    })
}

/// The backward pass of a problem; strides of q, k, v, the output and its gradient. `ways`: deterministic, and whether the lse has a gradient.
#[pyfunction]
#[pyo3(signature = (mask, score, extents, dtype, scale, ways, strides, place))]
pub(super) fn backward_pass(
    py: Python<'_>,
    mask: Option<&Mask>,
    score: Option<&Mask>,
    extents: Extents,
    dtype: &str,
    scale: Option<f64>,
    ways: (bool, bool),
    strides: Vec<[i64; 3]>,
    place: Place,
) -> PyResult<Pass> {
    computed(py, || {
        let problem = || attention::problem((mask, score), extents, dtype, scale, false);
        made(&place, problem, |problem, card| {
            let (layouts, compiler) = (Layouts::new(&strides)?, card.compiler(&place.2)?);
            embedded::Pass::backward(problem, &layouts, ways, card, compiler, Cache::user().as_ref())
        })
    })
}

/// Merges attention over some keys into that over others, in place. Sizes: pairs of batch entry and head, rows of the whole and of the part,
/// elements of a row.
#[pyfunction]
#[pyo3(signature = (dtype, sizes, place))]
pub(super) fn merge_pass(py: Python<'_>, dtype: &str, sizes: [usize; 4], place: Place) -> PyResult<Pass> {
    computed(py, || {
        let card = card(&place)?;
        let compiler = card.compiler(&place.2)?;
        let of = embedded::Pass::merge(attention::named(dtype), sizes, &card, compiler, Cache::user().as_ref())?;
        Ok(Pass { of, card })
    })
}

/// Finds the blocks of a mask on the device, whatever its tensors hold: over (B, H), (Q_LEN, KV_LEN) in blocks of (Q, KV) tokens. `places`: where
/// in int32 elements counts and indices begin, of partial and of full blocks, from q blocks and from kv blocks; None: they are not wanted.
#[pyfunction]
#[pyo3(signature = (mask, groups, lengths, block, places, place))]
pub(super) fn block_mask_pass(
    py: Python<'_>,
    mask: &Mask,
    groups: (usize, usize),
    lengths: (usize, usize),
    block: (usize, usize),
    places: [Option<usize>; 8],
    place: Place,
) -> PyResult<Pass> {
    computed(py, || {
        let card = card(&place)?;
        let compiler = card.compiler(&place.2)?;
        let lengths = Lengths::new(lengths.0, lengths.1)?;
        let wanted = embedded::Wanted { groups, lengths, block: BlockSize { q: block.0, kv: block.1 }, places };
        let of = embedded::Pass::block_mask(&mask.of, &wanted, &card, compiler, Cache::user().as_ref())?;
        Ok(Pass { of, card })
    })
}

#[pymethods]
impl Pass {
    /// Captured tensors of the score mod that a call gives, by their numbers.
    fn live(&self) -> Vec<usize> {
        self.of.live().to_vec()
    }

    /// Those that get a gradient: their numbers, and the float32 elements of it.
    fn learned(&self) -> Vec<(usize, usize)> {
        self.of.learned().iter().map(|own| (own.number, own.elements)).collect()
    }

    /// Which kernel it is, in words.
    fn kernel(&self) -> &str {
        self.of.kernel()
    }

    /// Bytes of the lists, of a call's own memory and of its counters.
    fn bytes(&self) -> [usize; 3] {
        self.of.bytes()
    }

    /// Writes the lists, as they are at an address of the device, to memory at `to`.
    fn write(&self, py: Python<'_>, address: u64, to: usize) -> PyResult<()> {
        computed(py, || {
            let image = self.of.image(address);
            memory::write(&HostTensor::vector(Data::U8(image)), to);
            Ok(())
        })
    }

    /// Loads the kernels; the lists lie at this address.
    fn load(&self, py: Python<'_>, address: u64) -> PyResult<Launches> {
        computed(py, || Ok(Launches { of: self.of.load(&self.card, address)? }))
    }
}

#[pymethods]
impl Launches {
    /// Enqueues the pass on a stream. Addresses of the call's own memory, of its counters and of its tensors.
    fn run(&self, py: Python<'_>, stream: u64, scratch: u64, counter: u64, call: Vec<u64>) -> PyResult<()> {
        computed(py, || self.of.run(stream, scratch, counter, &call))
    }
}
