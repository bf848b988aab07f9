//! Statistics that the capture computed itself: block masses of every head, and lse and entropy of its rows.
//!
//! Invariant: decoded masses equal the file's up to its own rounding (2.93 % at the usual step). Must not know their
//! use.

use super::{Call, Capture};
use crate::base::{DType, Diagnostic, Lengths};
use crate::quality::masses::Masses;

/// The data of a head without its q and k.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Block masses, with lse and maxima of the rows.
    pub masses: Masses,
    /// Entropy of each row in nats; empty if it was not captured.
    pub entropy: Vec<f32>,
    /// Mean over rows of the mass at each key; empty if it was not captured.
    pub columns: Vec<f32>,
}

/// A mass from its code: 0 is nothing, 255 is 1, each code below smaller by `2^-step`.
pub fn decode_mass(code: u8, step: f64) -> f32 {
    if code == 0 { 0.0 } else { ((f64::from(code) - 255.0) * step).exp2() as f32 }
}

impl Capture {
    /// The statistics of a head; None if the capture has none of this call. Errors: tensors that are missing or have
    /// another shape.
    pub fn statistics(&self, call: &Call, batch: usize, head: usize) -> Result<Option<Statistics>, Diagnostic> {
        let i = &call.info;
        let (Some(said), Some(block)) = (&i.statistics, self.block_size()) else { return Ok(None) };
        let Some(mass) = &said.mass else { return Ok(None) };
        let lengths = Lengths::new(i.q_len, i.kv_len)?;
        let (rows, columns) = block.grid(lengths);
        let (dtype, bytes) = self.head_bytes(mass, &[rows, columns], call, batch, head)?;
        let step = self.file.mass_log2_step.unwrap_or(1.0 / 12.0);
        // a code stands for every mass within half a step of its own
        let rounding = if dtype == DType::U8 { (0.5 * step).exp2() } else { 1.0 };
        let mut blocks: Vec<f32> = if dtype == DType::U8 {
            let table: Vec<f32> = (0..=255).map(|code| decode_mass(code, step)).collect();
            bytes.iter().map(|code| table[usize::from(*code)]).collect()
        } else {
            crate::base::HostTensor::vector(crate::base::tensor::Data::from_le_bytes(dtype, &bytes)?).to_f32_vec()
        };
        let row = |name: &Option<String>, count: usize| -> Result<Vec<f32>, Diagnostic> {
            let Some(name) = name else { return Ok(Vec::new()) };
            let (dtype, bytes) = self.head_bytes(name, &[count], call, batch, head)?;
            Ok(crate::base::HostTensor::vector(crate::base::tensor::Data::from_le_bytes(dtype, &bytes)?).to_f32_vec())
        };
        let mut lse: Vec<f64> = row(&said.lse, i.q_len)?.into_iter().map(f64::from).collect();
        if lse.is_empty() {
            // not captured: every row counts
            lse = vec![0.0; i.q_len];
        }
        let mut max = row(&said.max, i.q_len)?;
        max.resize(i.q_len, f32::NAN);
        // the file's means count rows that keep nothing; ours leave them out
        for (at, line) in blocks.chunks_exact_mut(columns).enumerate() {
            let real = at * block.q..((at + 1) * block.q).min(i.q_len);
            let judged = lse[real.clone()].iter().filter(|lse| lse.is_finite()).count();
            let weight = real.len() as f32 / judged.max(1) as f32;
            if judged != real.len() {
                line.iter_mut().for_each(|x| *x *= weight);
            }
        }
        let masses = Masses { lengths, block, blocks, lse, max, rows: None, rounding };
        Ok(Some(Statistics { masses, entropy: row(&said.entropy, i.q_len)?, columns: row(&said.columns, i.kv_len)? }))
    }

    /// One head of a tensor of [batch, heads, ...].
    fn head_bytes(
        &self,
        tensor: &str,
        inner: &[usize],
        call: &Call,
        batch: usize,
        head: usize,
    ) -> Result<(DType, Vec<u8>), Diagnostic> {
        let wanted: Vec<usize> = [call.info.batch, call.info.heads].iter().chain(inner).copied().collect();
        let about = self.tensors.about(tensor);
        let Some((dtype, _)) = about.clone().filter(|(_, shape)| *shape == wanted) else {
            let found = about.map_or("missing".to_string(), |(_, shape)| format!("{shape:?}"));
            let message = format!("{}: {tensor} is {found} instead of {wanted:?}", self.name());
            return Err(Diagnostic::error("capture-shape", message).hint("was the capture cut off? capture again"));
        };
        let count: usize = inner.iter().product();
        if batch >= call.info.batch || head >= call.info.heads {
            let message = format!("{} has {} heads and {} batch entries", call.key, call.info.heads, call.info.batch);
            return Err(Diagnostic::error("capture-head", message).hint("heads and batch entries count from 0"));
        }
        Ok((dtype, self.tensors.bytes(tensor, (batch * call.info.heads + head) * count, count)?))
    }
}
