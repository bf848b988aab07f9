//! Pictures as the payload of a message: one list of float32 numbers, of which the message names parts.
//!
//! Invariant: a part that the list does not have is an error, never a panic. Must not know what the numbers are.

use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic};
use crate::worker::protocol::PayloadInfo;
use crate::worker::transport::Payload;
use serde::{Deserialize, Serialize};

/// Where some numbers are: the first, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part(usize, usize);

/// Numbers to send.
#[derive(Default)]
pub(super) struct Outgoing(Vec<f32>);

impl Outgoing {
    pub(super) fn add(&mut self, values: &[f32]) -> Part {
        let part = Part(self.0.len(), values.len());
        self.0.extend_from_slice(values);
        part
    }

    pub(super) fn payloads(self) -> Vec<Payload> {
        let info = PayloadInfo { name: "numbers".into(), dtype: DType::F32, shape: vec![self.0.len()] };
        let bytes = self.0.iter().flat_map(|value| value.to_le_bytes()).collect();
        vec![(info, bytes)]
    }
}

/// Numbers that came.
pub(super) struct Incoming(Vec<f32>);

impl Incoming {
    pub(super) fn of(payloads: &[Payload]) -> Result<Incoming, Diagnostic> {
        let Some((info, bytes)) = payloads.first() else { return Ok(Incoming(Vec::new())) };
        match Data::from_le_bytes(info.dtype, bytes)? {
            Data::F32(values) => Ok(Incoming(values)),
            _ => Err(Diagnostic::error("protocol-answer", "the numbers of a picture have another type")),
        }
    }

    pub(super) fn part(&self, Part(from, count): Part) -> Result<&[f32], Diagnostic> {
        let found = from.checked_add(count).and_then(|end| self.0.get(from..end));
        found.ok_or_else(|| Diagnostic::error("protocol-answer", "numbers of a picture are missing in the answer"))
    }
}
