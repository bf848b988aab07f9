//! The struct `Mods`: captured tensors' pointers and dimensions, then the uniforms, with the same bytes on host and
//! device.
//!
//! Invariant: pointers first (8 bytes each), then 4-byte dims, ints and floats, so that neither side adds padding. Dims
//! and uniforms are data, never text: another length or literal runs the same kernel. Must not know where memory is.

use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor};
use crate::ir::graph::{Graph, Ty, load_ty};
use std::fmt::Write;

/// Structs up to this many bytes are a kernel parameter (constant memory); larger ones are in global memory.
const PARAMETER_LIMIT: usize = 3072;

/// Bits of ints in emitted text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ints {
    /// 32: the host knows that they fit.
    Narrow,
    /// 64, as PyTorch has them (`wide.cuh`): the host knows no captured value.
    Wide,
}

impl Ints {
    /// Their type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Ints::Narrow => "int",
            Ints::Wide => "i64",
        }
    }
}

/// How `Mods` is laid out for one template.
#[derive(Clone, Debug, PartialEq)]
pub struct ModsLayout {
    /// Element type and rank of each capture.
    captures: Vec<(Ty, usize)>,
    /// Captured tensors that get a gradient.
    gradients: usize,
    /// Whether a gradient is a `BinSums` of bins.cuh; else it is an address.
    in_bins: bool,
    ints: usize,
    floats: usize,
}

impl ModsLayout {
    /// The layout for the captures of `graph` and that many uniforms.
    pub fn new(graph: &Graph, ints: usize, floats: usize) -> Self {
        let captures = graph.captures().iter().map(|c| (load_ty(c.tensor.dtype()), c.tensor.shape().len())).collect();
        Self { captures, gradients: 0, in_bins: false, ints, floats }
    }

    /// The same with so many gradients of captured tensors, in bins or not.
    pub fn with_gradients(self, gradients: usize, in_bins: bool) -> Self {
        Self { gradients, in_bins, ..self }
    }

    /// Words of 8 bytes before the dims: addresses of captured tensors, then those of gradients; in bins a gradient has the
    /// addresses of its floats and of its bins, and the number of its elements.
    pub fn words(&self) -> usize {
        self.captures.len() + self.gradients * if self.in_bins { 3 } else { 1 }
    }

    /// Bytes of the struct.
    pub fn bytes(&self) -> usize {
        let dims: usize = self.captures.iter().map(|(_, rank)| *rank).sum();
        // an empty struct still takes a word, and the whole is a multiple of 8
        (self.words() * 8 + (dims + self.ints + self.floats).max(1) * 4).next_multiple_of(8)
    }

    /// Whether it is too large for a kernel parameter and goes through a pointer.
    pub fn by_pointer(&self) -> bool {
        self.bytes() > PARAMETER_LIMIT
    }

    /// The struct in CUDA C++, and the macros by which kernels take it.
    pub(crate) fn declaration(&self, ints: Ints) -> String {
        let mut text = String::from("#line 1 \"mods\"\nstruct alignas(8) Mods {\n");
        for (at, (ty, _)) in self.captures.iter().enumerate() {
            let _ = writeln!(text, "    const {} *c{at};", element_name(*ty, ints));
        }
        for at in 0..self.gradients {
            let _ = writeln!(text, "    {}g{at};", if self.in_bins { "BinSums " } else { "float *" });
        }
        for (at, (_, rank)) in self.captures.iter().enumerate() {
            (0..*rank).for_each(|axis| {
                let _ = writeln!(text, "    int d{at}_{axis};");
            });
        }
        if self.ints > 0 {
            let _ = writeln!(text, "    int ui[{}];", self.ints);
        }
        if self.floats > 0 {
            let _ = writeln!(text, "    float uf[{}];", self.floats);
        }
        if self.bytes() == 8 && self.captures.is_empty() && self.gradients + self.ints + self.floats == 0 {
            text.push_str("    int nothing;\n");
        }
        let (parameter, value) = if self.by_pointer() {
            ("const Mods *mods_pointer", "*mods_pointer")
        } else {
            ("const __grid_constant__ Mods mods_value", "mods_value")
        };
        let _ = writeln!(text, "}};\n#define ML_MODS_PARAMETER {parameter}\n#define ML_MODS {value}");
        text
    }

    /// The struct's bytes for these words (`words`), captured tensors and uniforms.
    pub fn fill(&self, words: &[u64], tensors: &[&HostTensor], ints: &[i32], floats: &[f32]) -> Vec<u8> {
        debug_assert!(words.len() == self.words() && tensors.len() == self.captures.len());
        debug_assert!(ints.len() == self.ints && floats.len() == self.floats);
        let mut bytes = Vec::with_capacity(self.bytes());
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        let dims = tensors.iter().flat_map(|t| t.shape());
        // an empty axis is read as if it had an element, and mods.cuh's `inside` relies on it
        dims.for_each(|d| bytes.extend((*d).max(1).try_into().unwrap_or(i32::MAX).to_le_bytes()));
        ints.iter().for_each(|i| bytes.extend(i.to_le_bytes()));
        floats.iter().for_each(|f| bytes.extend(f.to_le_bytes()));
        bytes.resize(self.bytes(), 0);
        bytes
    }
}

fn element_name(ty: Ty, ints: Ints) -> &'static str {
    match ty {
        Ty::Bool => "u8",
        Ty::Int => ints.name(),
        Ty::Float => "float",
        Ty::Double => "double",
    }
}

/// A captured tensor as the kernel reads it: bools as bytes, ints as i32, float64 as it is, other floats as f32. At least one element, and one
/// for every in-bounds offset when a dimension is 0. Errors: an int that does not fit in i32, too many elements.
pub(crate) fn capture_bytes(name: &str, tensor: &HostTensor) -> Result<Vec<u8>, Diagnostic> {
    let extent: usize = tensor.shape().iter().map(|d| (*d).max(1)).product();
    if extent > i32::MAX as usize {
        let message = format!("captured tensor `{name}` has {extent} elements; kernels index up to 2^31 - 1");
        return Err(Diagnostic::error("capture-too-large", message)
            .hint("capture a smaller tensor, or compute it from the indices"));
    }
    let mut bytes = match tensor.data() {
        Data::Bool(values) => values.clone(),
        Data::F64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        _ if tensor.dtype().is_float() => tensor.to_f32_vec().iter().flat_map(|x| x.to_le_bytes()).collect(),
        _ => int_bytes(name, tensor)?,
    };
    let size = match tensor.dtype() {
        DType::Bool => 1,
        DType::F64 => 8,
        _ => 4,
    };
    bytes.resize(extent * size, 0);
    Ok(bytes)
}

fn int_bytes(name: &str, tensor: &HostTensor) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::with_capacity(tensor.numel() * 4);
    for at in 0..tensor.numel() {
        let value = tensor.int_at(at);
        let Ok(small) = i32::try_from(value) else {
            let message = format!("captured tensor `{name}` holds {value}, which does not fit in a kernel's int32");
            return Err(Diagnostic::error("capture-int-range", message)
                .hint("keep captured integers within -2^31..2^31, or capture them as float32"));
        };
        bytes.extend(small.to_le_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::emit::layout::*;

    fn graph(tensors: Vec<HostTensor>) -> Graph {
        let mut graph = Graph::new();
        tensors.into_iter().enumerate().for_each(|(i, t)| {
            graph.add_capture(&format!("t{i}"), t);
        });
        graph
    }

    #[test]
    fn bytes_follow_the_declaration() {
        let tensors = vec![
            HostTensor::vector(Data::I64(vec![1, 2, 3])),
            HostTensor::new([2, 2], Data::BF16(vec![half::bf16::ONE; 4])).unwrap(),
        ];
        let layout = ModsLayout::new(&graph(tensors.clone()), 1, 2);
        let bytes = layout.fill(&[16, 32], &tensors.iter().collect::<Vec<_>>(), &[7], &[0.5, 1.5]);
        assert_eq!(bytes.len(), layout.bytes());
        assert_eq!(bytes.len() % 8, 0);
        assert_eq!(bytes[16..20], 3i32.to_le_bytes());
        assert_eq!(bytes[28..32], 7i32.to_le_bytes());
        assert_eq!(bytes[36..40], 1.5f32.to_le_bytes());
        assert!(
            layout
                .declaration(Ints::Narrow)
                .contains("const int *c0;\n    const float *c1;\n    int d0_0;\n    int d1_0;")
        );
        assert!(!layout.by_pointer());
        assert!(ModsLayout::new(&graph(vec![]), 2000, 0).by_pointer());
    }

    #[test]
    fn a_gradient_in_bins_has_three_words() {
        let tensors = vec![HostTensor::vector(Data::F32(vec![0.5]))];
        let of = |in_bins| ModsLayout::new(&graph(tensors.clone()), 0, 0).with_gradients(1, in_bins);
        assert_eq!((of(false).words(), of(true).words(), of(true).bytes()), (2, 4, 40));
        assert!(of(false).declaration(Ints::Narrow).contains("const float *c0;\n    float *g0;\n    int d0_0;"));
        assert!(of(true).declaration(Ints::Narrow).contains("const float *c0;\n    BinSums g0;\n    int d0_0;"));
    }

    #[test]
    fn a_large_int_is_refused_and_an_empty_tensor_readable() {
        let big = HostTensor::vector(Data::I64(vec![1, 1 << 40]));
        assert_eq!(capture_bytes("offsets", &big).unwrap_err().code, "capture-int-range");
        let empty = HostTensor::new([0, 5], Data::F32(vec![])).unwrap();
        assert_eq!(capture_bytes("empty", &empty).unwrap().len(), 5 * 4);
        let u8s = HostTensor::vector(Data::U8(vec![3, 255]));
        assert_eq!(capture_bytes("u", &u8s).unwrap(), [3, 0, 0, 0, 255, 0, 0, 0]);
    }
}
