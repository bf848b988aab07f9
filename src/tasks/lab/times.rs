//! Times of masks on the captured q, k and v, measured here: `flex` on the CPU, forward, all captured heads in one call.
//!
//! Invariant: a time is the median of interleaved rounds of one run; nothing is estimated. Must not know captures' files.

use crate::backends::{Inputs, cpu};
use crate::base::tensor::Data;
use crate::base::{BackendName, Control, DType, Diagnostic, HostTensor};
use crate::problem::{Problem, ProblemSpec};
use crate::quality::suggest::{Form, Material};
use std::sync::Arc;

/// Rounds of a measurement.
const ROUNDS: usize = 3;

/// Milliseconds of the material's heads under each form; the last is without a mask. Without v the keys replace it.
/// Errors: `cancelled`, a problem that `flex` refuses.
pub fn times(material: &Material, forms: &[&Form], control: &Control) -> Result<Vec<f64>, Diagnostic> {
    let inputs = inputs(material)?;
    let numbers = material.numbers();
    let mut prepared = Vec::new();
    for form in forms.iter().map(|f| Some(*f)).chain([None]) {
        let mask = form.map(|f| f.only(&numbers).mask(material.lengths())).transpose()?.map(Arc::new);
        let problem = problem(material, &inputs, mask)?;
        let Some(mut flex) = cpu::backend(BackendName::Flex) else {
            return Err(Diagnostic::error("no-backend", "flex is missing on the cpu"));
        };
        prepared.push(flex.prepare(&problem, &inputs)?);
    }
    let mut samples = vec![Vec::new(); prepared.len()];
    for _ in 0..=ROUNDS {
        for (forward, samples) in prepared.iter_mut().zip(&mut samples) {
            if control.is_cancelled() {
                return Err(Diagnostic::note("cancelled", "stopped"));
            }
            samples.extend(forward.time(1)?.passes_ms);
        }
    }
    // the first round warms up
    let median = |mut of: Vec<f64>| {
        of.remove(0);
        of.sort_unstable_by(f64::total_cmp);
        of[of.len() / 2]
    };
    Ok(samples.into_iter().map(median).collect())
}

fn inputs(material: &Material) -> Result<Inputs, Diagnostic> {
    let lengths = material.lengths();
    let heads: Vec<_> = material.heads.iter().map(|h| h.scorer.head()).collect();
    let tensor = |of: &dyn Fn(usize) -> Vec<f32>, tokens: usize| {
        let data: Vec<f32> = (0..heads.len()).flat_map(of).collect();
        let dim = data.len() / (tokens * heads.len()).max(1);
        HostTensor::new([1, heads.len(), tokens, dim], Data::F32(data))
    };
    Ok(Inputs {
        q: tensor(&|n| heads[n].q().to_vec(), lengths.q_len)?,
        k: tensor(&|n| heads[n].k().to_vec(), lengths.kv_len)?,
        v: tensor(&|n| heads[n].v().unwrap_or(heads[n].k()).to_vec(), lengths.kv_len)?,
    })
}

fn problem(
    material: &Material,
    inputs: &Inputs,
    mask: Option<Arc<crate::ir::graph::Mod>>,
) -> Result<Problem, Diagnostic> {
    let (lengths, heads) = (material.lengths(), material.heads.len());
    let of = material.heads[0].scorer.head();
    let spec = ProblemSpec {
        dtype: DType::F32,
        head_dim_v: inputs.v.shape()[3],
        scale: Some(of.scale),
        block_size: material.block(),
        mask,
        ..ProblemSpec::plain(1, (heads, heads), (lengths.q_len, lengths.kv_len), of.dim())
    };
    Problem::new(spec).map_err(|mut why| why.remove(0))
}
