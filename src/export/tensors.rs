//! Captured tensors as Python: as a literal if readable, as base64 if small, otherwise in a `.safetensors` file.
//!
//! Invariant: PyTorch's tensor equals the captured one, bit for bit. Must not know its readers.

use super::lines;
use crate::base::HostTensor;
use crate::base::tensor::Data;
use base64::Engine;

/// Most elements written as a list of numbers.
const WRITTEN: usize = 64;
/// Most bytes written as base64.
const INLINE: usize = 4096;
/// Characters of base64 on a line.
const LINE: usize = 100;
/// Columns that the name of a written tensor may take.
const NAMED: usize = 30;

/// How a tensor gets into a module.
pub(super) enum Literal {
    /// An expression that makes it, on `device`; further lines have the indent of a function's body.
    Text(String),
    /// It is an entry of the module's file.
    Stored,
}

/// Whether a module with these tensors needs a file; if so, all tensors that are not readable are stored there.
pub(super) fn need_file(tensors: &[(String, HostTensor)]) -> bool {
    tensors.iter().any(|(_, t)| matches!(literal(t, false), Literal::Stored))
}

/// The form of this tensor, in a module with or without a file of tensors.
pub(super) fn literal(tensor: &HostTensor, with_file: bool) -> Literal {
    let dtype = tensor.dtype().torch_name();
    let shape = tensor.shape();
    if tensor.numel() == 0 {
        return Literal::Text(format!("torch.zeros({}, dtype=torch.{dtype}, device=device)", tuple(shape)));
    }
    if tensor.numel() <= WRITTEN
        && let Some(values) = written(tensor)
    {
        let list = lines::list(8, &values, shape);
        let given = [list, format!("dtype=torch.{dtype}"), "device=device".to_string()];
        return Literal::Text(lines::call(4, NAMED, "torch.tensor", &given, ""));
    }
    let small = tensor.numel() * tensor.dtype().size() < INLINE;
    if with_file || !small {
        return Literal::Stored;
    }
    let text = base64::engine::general_purpose::STANDARD.encode(tensor.data().to_le_bytes());
    let lines: Vec<&str> = text.as_bytes().chunks(LINE).map(|l| std::str::from_utf8(l).expect("ascii")).collect();
    let lines = lines.join("\"\n        \"");
    let of = format!("torch.{dtype}, {}", tuple(shape));
    Literal::Text(format!("_decoded(\n        \"{lines}\",\n        {of}\n    ).to(device)"))
}

/// Every element as a Python number; None if one is not finite.
fn written(tensor: &HostTensor) -> Option<Vec<String>> {
    let float = |x: f32| x.is_finite().then(|| format!("{x:?}"));
    match tensor.data() {
        Data::Bool(v) => Some(v.iter().map(|x| if *x != 0 { "True" } else { "False" }.to_string()).collect()),
        Data::F16(v) => v.iter().map(|x| float(x.to_f32())).collect(),
        Data::BF16(v) => v.iter().map(|x| float(x.to_f32())).collect(),
        Data::F32(v) => v.iter().map(|x| float(*x)).collect(),
        Data::F64(v) => v.iter().map(|x| x.is_finite().then(|| format!("{x:?}"))).collect(),
        _ => Some((0..tensor.numel()).map(|i| tensor.int_at(i).to_string()).collect()),
    }
}

/// A Python tuple of ints.
pub(super) fn tuple(shape: &[usize]) -> String {
    let parts: Vec<String> = shape.iter().map(usize::to_string).collect();
    if parts.len() == 1 { format!("({},)", parts[0]) } else { format!("({})", parts.join(", ")) }
}
