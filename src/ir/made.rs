//! Captured tensors that a factory computed from others, and the gradient through these computations.
//!
//! Invariant: the gradient of a computed tensor becomes gradients of its inputs, or an error names the operation
//! without a derivative; no gradient is dropped. Must not know the text of the computation.

use crate::base::{Diagnostic, HostTensor, Span};
use serde::{Deserialize, Serialize};

/// Where the elements of a captured tensor come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Made {
    /// From these tensors.
    Of(Vec<Part>),
    /// From a tensor, by something that no gradient is led through here.
    Lost(Lost),
}

/// A tensor's part of the gradient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The name that the text gives the tensor.
    pub name: String,
    /// The tensor.
    pub tensor: HostTensor,
    /// How elements follow from its own.
    pub way: Way,
}

/// How elements of one tensor follow from those of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Way {
    /// They are the same: a view.
    View {
        /// Of the visible elements.
        shape: Vec<usize>,
        /// From one to the next, in elements of the other tensor.
        strides: Vec<isize>,
        /// The first.
        offset: usize,
    },
    /// Element, element of the other tensor, derivative. A derivative may be infinite: that of `log` at 0.
    Each(#[serde(with = "slopes")] Vec<(u32, u32, f64)>),
}

/// Derivatives as JSON, which has no infinity.
mod slopes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Slope(u32, u32, #[serde(with = "crate::base::float")] f64);

    pub(super) fn serialize<S: Serializer>(each: &[(u32, u32, f64)], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(each.iter().map(|(at, from, by)| Slope(*at, *from, *by)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u32, u32, f64)>, D::Error> {
        let each = Vec::<Slope>::deserialize(from)?;
        Ok(each.into_iter().map(|Slope(at, from, by)| (at, from, by)).collect())
    }
}

/// A gradient that cannot be led back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// The tensor that would get it.
    pub parent: String,
    /// The operation without a derivative.
    pub by: String,
    /// Where that is written.
    pub span: Option<Span>,
}

impl Made {
    /// The names of the tensors that the elements come from, each once.
    pub fn parents(&self) -> Vec<&str> {
        let Made::Of(parts) = self else { return Vec::new() };
        let mut found: Vec<&str> = Vec::new();
        for part in parts {
            if !found.contains(&part.name.as_str()) {
                found.push(&part.name);
            }
        }
        found
    }
}

impl Lost {
    /// The refusal in words.
    pub fn refusal(&self, read: &str) -> Diagnostic {
        let Lost { parent, by, .. } = self;
        let message = format!(
            "the mod reads `{read}`, which the factory computed from `{parent}` by {by}: Maskloom computes no gradient through this operation"
        );
        let reported = Diagnostic::error("gradient-lost", message).hint(format!(
            "compute with `{parent}[...]` inside the mod, or write `{parent}.detach()` if it needs no gradient"
        ));
        match self.span {
            Some(span) => reported.at(span, "here"),
            None => reported,
        }
    }
}

impl Part {
    /// Adds the part of `own`, the gradient of the computed tensor, to `to`, the gradient of this tensor.
    pub fn give(&self, own: &[f64], to: &mut [f64]) {
        match &self.way {
            Way::View { shape, strides, offset } => {
                for (at, x) in own.iter().enumerate() {
                    to[place(shape, strides, *offset, at)] += x;
                }
            }
            Way::Each(each) => {
                for (at, from, by) in each {
                    let x = own[*at as usize];
                    // nothing came here, for any derivative
                    if x != 0.0 {
                        to[*from as usize] += x * by;
                    }
                }
            }
        }
    }
}

/// The position of element `at` of a view.
fn place(shape: &[usize], strides: &[isize], offset: usize, mut at: usize) -> usize {
    let mut place = offset as isize;
    for (n, stride) in shape.iter().zip(strides).rev() {
        place += (at % n) as isize * stride;
        at /= n;
    }
    place as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_named_once() {
        use crate::base::tensor::Data;
        let part = |name: &str| Part {
            name: name.into(),
            tensor: HostTensor::vector(Data::F32(vec![1.0])),
            way: Way::Each(Vec::new()),
        };
        assert_eq!(Made::Of(vec![part("a"), part("b"), part("a")]).parents(), ["a", "b"]);
    }

    #[test]
    fn infinite_derivatives_survive_as_json() {
        let way = Way::Each(vec![(0, 0, f64::INFINITY), (1, 2, f64::NEG_INFINITY), (2, 1, -0.5)]);
        let text = serde_json::to_string(&way).expect("written");
        assert_eq!(serde_json::from_str::<Way>(&text).expect("read"), way);
    }
}
