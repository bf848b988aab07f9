//! The tensors that receive the gradients of a score mod: those that it reads, and those from which a factory computed
//! them.
//!
//! Invariant: every gradient of a tensor that a mod reads goes to exactly one tensor here; each tensor is listed once,
//! in a fixed order. Must not know how gradients are summed.

use super::gradients::CaptureGradient;
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor};
use crate::ir::graph::{CaptureId, Mod};
use crate::ir::made::{Made, Part, Way};
use crate::ir::passes::derive::derive;
use std::sync::Arc;

/// The tensors of a mod that get gradients.
#[derive(Debug, Default)]
pub(crate) struct Given {
    tensors: Vec<(String, HostTensor)>,
    /// The gradient of each tensor that the mod reads, passed on to these tensors, in the order of the reads' tensors.
    from: Vec<From>,
}

#[derive(Debug)]
enum From {
    Itself(usize),
    Made(Arc<Made>, Vec<usize>),
}

impl Given {
    /// From the tensors that a mod reads and that receive a gradient.
    pub(crate) fn new(score: &Mod, read: &[CaptureId]) -> Given {
        let mut given = Given::default();
        let held: Vec<_> = read.iter().map(|id| score.graph.capture(*id)).collect();
        for held in held.iter().filter(|h| h.made.is_none()) {
            given.tensors.push((held.name.clone(), held.tensor.clone()));
        }
        let mut own = 0;
        for held in held {
            let from = match &held.made {
                None => {
                    own += 1;
                    From::Itself(own - 1)
                }
                Some(made) => From::Made(made.clone(), parts(made).iter().map(|part| given.place(part)).collect()),
            };
            given.from.push(from);
        }
        given
    }

    /// Where the tensor is that a part belongs to.
    fn place(&mut self, part: &Part) -> usize {
        let alike = |t: &HostTensor| t.shape() == part.tensor.shape() && t == &part.tensor;
        type Test<'a> = &'a dyn Fn(&(String, HostTensor)) -> bool;
        let tests: [Test; 3] = [
            &|(_, t)| t.same_storage(&part.tensor),
            &|(name, t)| *name == part.name && t.shape() == part.tensor.shape(),
            // what travelled has no storage in common, and the mod may call it by another name
            &|(_, t)| alike(t),
        ];
        if let Some(at) = tests.iter().find_map(|test| self.tensors.iter().position(test)) {
            return at;
        }
        self.tensors.push((part.name.clone(), part.tensor.clone()));
        self.tensors.len() - 1
    }

    /// The gradients of all of them one after the other, of those of the tensors that are read.
    pub(crate) fn led_back(&self, read: &[&[f64]]) -> Vec<f64> {
        self.by(read, Part::give)
    }

    /// The same for sizes of the summed terms.
    pub(crate) fn sizes(&self, read: &[&[f64]]) -> Vec<f64> {
        self.by(read, give_sizes)
    }

    fn by(&self, read: &[&[f64]], give: fn(&Part, &[f64], &mut [f64])) -> Vec<f64> {
        let mut first = 0;
        let starts: Vec<usize> = self
            .tensors
            .iter()
            .map(|(_, t)| {
                first += t.numel();
                first - t.numel()
            })
            .collect();
        let mut all = vec![0.0; first];
        for (own, from) in read.iter().zip(&self.from) {
            match from {
                From::Itself(at) => all[starts[*at]..].iter_mut().zip(*own).for_each(|(to, x)| *to += x),
                From::Made(made, places) => {
                    for (part, at) in parts(made).iter().zip(places) {
                        give(part, own, &mut all[starts[*at]..][..part.tensor.numel()]);
                    }
                }
            }
        }
        all
    }

    /// The same as tensors.
    pub(crate) fn tensors(&self, read: &[&[f64]]) -> Result<Vec<CaptureGradient>, Diagnostic> {
        let all = self.led_back(read);
        let mut rest = &all[..];
        let mut one = |(name, tensor): &(String, HostTensor)| {
            let (own, after) = rest.split_at(tensor.numel());
            rest = after;
            let data = Data::F32(own.iter().map(|x| *x as f32).collect());
            Ok(CaptureGradient { name: name.clone(), gradient: HostTensor::new(tensor.shape(), data)? })
        };
        self.tensors.iter().map(&mut one).collect()
    }
}

/// As [`Part::give`], of sizes, which only add up.
fn give_sizes(part: &Part, own: &[f64], to: &mut [f64]) {
    match &part.way {
        Way::View { .. } => part.give(own, to),
        Way::Each(each) => each.iter().for_each(|(at, from, by)| to[*from as usize] += own[*at as usize] * by.abs()),
    }
}

/// The tensors that receive a gradient from a score mod, by their reported names. Errors: a score mod without a derivative.
pub fn learning(score: &Mod) -> Result<Vec<(String, HostTensor)>, Diagnostic> {
    let read = derive(score, |_| true)?.captures();
    Ok(Given::new(score, &read).tensors)
}

fn parts(made: &Made) -> &[Part] {
    match made {
        Made::Of(parts) => parts,
        // refused before
        Made::Lost(_) => &[],
    }
}
