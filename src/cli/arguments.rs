//! Parses command-line words into values: devices, backends, `k=v`, lists.
//!
//! Invariant: a word that does not parse is wrong usage, reported with an example.

use crate::base::tensor::Data;
use crate::base::words::count;
use crate::base::{BackendName, DType, Device, Diagnostic, HostTensor, Layout};
use crate::document::model::{ArgValue, CodeRef};
use crate::worker::protocol::{GradientRequest, RunRequest, SeedSource};
use std::path::Path;

/// A path as documents, jobs and other machines take it. Errors: its name is no text, and another file would be meant.
pub(super) fn as_text(path: &Path) -> Result<String, Diagnostic> {
    path.to_str().map(String::from).ok_or_else(|| {
        let message = format!("{} is not UTF-8, as names must be that are passed on", path.display());
        Diagnostic::error("path-not-text", message).hint("rename the file or its folder")
    })
}

/// `cpu`, `cuda`, `cuda:1`.
pub(super) fn device(text: &str) -> Result<Device, String> {
    text.parse().map_err(one_line)
}

/// `flex`, `torch:sdpa`.
pub(super) fn backend(text: &str) -> Result<BackendName, String> {
    text.parse().map_err(one_line)
}

/// `bf16` or PyTorch's names.
pub(super) fn dtype(text: &str) -> Result<DType, String> {
    match text.strip_prefix("torch.").unwrap_or(text) {
        "bf16" | "bfloat16" => Ok(DType::BF16),
        "f16" | "fp16" | "float16" | "half" => Ok(DType::F16),
        "f32" | "fp32" | "float32" => Ok(DType::F32),
        _ => Err("one of bf16, f16, f32 (f32 runs on the CPU only)".into()),
    }
}

/// `bhsd` or `bshd`.
pub(super) fn layout(text: &str) -> Result<Layout, String> {
    match text {
        "bhsd" => Ok(Layout::Bhsd),
        "bshd" => Ok(Layout::Bshd),
        _ => Err("bhsd ([batch, heads, tokens, head_dim]) or bshd ([batch, tokens, heads, head_dim])".into()),
    }
}

/// `q,k,v`
pub(super) fn names(text: &str) -> Result<[String; 3], String> {
    let names: Vec<String> = text.split(',').map(|n| n.trim().to_string()).collect();
    names.try_into().map_err(|_| "three names, of q, k and v: --names q,k,v".into())
}

/// A number of tokens: `8192`, `8_192` or `8k` for 8 x 1024.
pub(super) fn tokens(text: &str) -> Result<usize, String> {
    count(text).ok_or_else(|| "a number of tokens: 8192, 8_192, or 8k for 8 x 1024".into())
}

/// The same, from 1 on.
pub(super) fn some_tokens(text: &str) -> Result<usize, String> {
    tokens(text).and_then(|n| if n > 0 { Ok(n) } else { Err("a number of tokens from 1 on".into()) })
}

/// A number of things from 1 on, written as tokens are.
pub(super) fn some(text: &str) -> Result<usize, String> {
    count(text).filter(|n| *n > 0).ok_or_else(|| "a whole number from 1 on".into())
}

/// A number of rows, written as tokens are.
pub(super) fn rows(text: &str) -> Result<u32, String> {
    tokens(text)?.try_into().map_err(|_| "a number of rows below 2^32".into())
}

/// A part of the whole: 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(|| "a part of the whole: 0 to 1".into())
}

/// A limit of an error: 0 or more, and finite.
pub(super) fn limit(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x: &f64| *x >= 0.0 && x.is_finite()).ok_or_else(|| "a number from 0 on".into())
}

/// `FROM..TO`
pub(super) fn range(text: &str) -> Result<std::ops::Range<usize>, String> {
    let (from, to) = text.split_once("..").ok_or("such as 0..512")?;
    match (count(from), count(to)) {
        (Some(from), Some(to)) if from < to => Ok(from..to),
        _ => Err("such as 0..512 or 4k..8k".into()),
    }
}

/// `128` or `64x128`
pub(super) fn block_size(text: &str) -> Result<crate::base::BlockSize, String> {
    let number = |t: &str| count(t).filter(|n| *n > 0);
    let (q, kv) = text.split_once('x').unwrap_or((text, text));
    match (number(q), number(kv)) {
        (Some(q), Some(kv)) => Ok(crate::base::BlockSize { q, kv }),
        _ => Err("one or two numbers: 128 or 64x128".into()),
    }
}

/// `b,h,q,kv`
pub(super) fn cell(text: &str) -> Result<[i64; 4], String> {
    let parts: Result<Vec<i64>, _> = text.split(',').map(|p| p.trim().parse()).collect();
    parts.ok().and_then(|p| p.try_into().ok()).ok_or_else(|| "four indices: --at b,h,q_idx,kv_idx".into())
}

/// `window=512`, `dilated=True`, `tile=[8,8]`, `ids=torch.tensor([0,0,1])`, `mask=None`, `config.window=9`,
/// `inner=pattern:causal`, `name=text`.
pub(super) fn assignment(text: &str) -> Result<(String, ArgValue), String> {
    let (name, value) = text.split_once('=').ok_or("name=value, such as --arg window=512")?;
    let is_word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !name.split('.').all(is_word) {
        return Err(format!("`{name}` is not a parameter name"));
    }
    let value = value.trim();
    let value = match value.strip_prefix("torch.tensor(").and_then(|v| v.strip_suffix(')')) {
        Some(inner) => tensor_of(inner)?,
        None => given(value)?,
    };
    Ok((name.to_string(), value))
}

/// Words that mean truth values in other languages.
const TRUTHS: [&str; 9] = ["on", "off", "yes", "no", "null", "nil", "none", "TRUE", "FALSE"];

/// A value: a literal, a bare word, or an expression of Python.
fn given(text: &str) -> Result<ArgValue, String> {
    if TRUTHS.contains(&text) {
        return Err(format!("`{text}` is no value of Python: write True, False or None, or \"'{text}'\" for the text"));
    }
    let word = |c: char| c.is_alphanumeric() || "_-./:@ ".contains(c);
    let literal = value_of(text);
    Ok(match literal {
        // a list is a list, and what is neither number nor word is computed
        ArgValue::List(_) if text.starts_with('[') => ArgValue::Python { python: text.into() },
        ArgValue::List(items) if items.iter().any(computed) => ArgValue::Python { python: text.into() },
        ArgValue::Text(ref bare) if bare == text && !text.chars().all(word) => ArgValue::Python { python: text.into() },
        other => other,
    })
}

/// Whether a literal holds a word that was not quoted, which is an expression inside of a tuple.
fn computed(value: &ArgValue) -> bool {
    match value {
        ArgValue::Text(text) => text.contains(['(', '[', '{', '*', '+']),
        ArgValue::List(items) => items.iter().any(computed),
        _ => false,
    }
}

/// A list of numbers as documents keep it; other values stay.
pub(super) fn kept(value: ArgValue) -> ArgValue {
    match &value {
        ArgValue::Python { python } => match value_of(python) {
            list @ ArgValue::List(_) if python.starts_with('[') => list,
            _ => value,
        },
        _ => value,
    }
}

/// `[[0, 1], [2, 3]]` or `[0.5, 1], dtype=torch.float32`, as torch.tensor takes them.
fn tensor_of(inner: &str) -> Result<ArgValue, String> {
    let parts = items(inner);
    let asked = parts.iter().find_map(|p| p.replace(' ', "").strip_prefix("dtype=").map(str::to_string));
    let values = parts.first().filter(|p| !p.contains("dtype")).ok_or("torch.tensor([...]) needs its values")?;
    let (mut shape, mut numbers) = (Vec::new(), Vec::new());
    flatten(&value_of(values), 0, &mut shape, &mut numbers)?;
    let all = |f: fn(&ArgValue) -> bool| numbers.iter().all(f);
    let found = if numbers.is_empty() {
        DType::F32
    } else if all(|v| matches!(v, ArgValue::Bool(_))) {
        DType::Bool
    } else if all(|v| matches!(v, ArgValue::Bool(_) | ArgValue::Int(_))) {
        DType::I64
    } else {
        DType::F32
    };
    let wanted = match asked.as_deref().map(|d| d.strip_prefix("torch.").unwrap_or(d)) {
        None => found,
        Some("bool") => DType::Bool,
        Some("int64" | "long") => DType::I64,
        Some("int32" | "int") => DType::I32,
        Some("float32" | "float") => DType::F32,
        Some(other) => {
            return Err(format!("dtype={other}: one of bool, int32, int64, float32; pass other tensors in a file"));
        }
    };
    let float = |v: &ArgValue| match v {
        ArgValue::Bool(b) => f64::from(u8::from(*b)),
        ArgValue::Int(n) => *n as f64,
        ArgValue::Float(x) => *x,
        _ => 0.0,
    };
    let int = |v: &ArgValue| match v {
        ArgValue::Bool(b) => i64::from(*b),
        ArgValue::Int(n) => *n,
        other => float(other) as i64,
    };
    let data = match wanted {
        DType::Bool => Data::Bool(numbers.iter().map(|v| u8::from(float(v) != 0.0)).collect()),
        DType::I64 => Data::I64(numbers.iter().map(int).collect()),
        DType::I32 => {
            let narrow = |v: &ArgValue| i32::try_from(int(v)).map_err(|_| "a value does not fit in int32".to_string());
            Data::I32(numbers.iter().map(narrow).collect::<Result<_, _>>()?)
        }
        _ => Data::F32(numbers.iter().map(|v| float(v) as f32).collect()),
    };
    HostTensor::new(shape, data).map(|tensor| ArgValue::Tensor { tensor }).map_err(|why| why.message)
}

/// Numbers of nested lists, and the extents, which must agree.
fn flatten(value: &ArgValue, depth: usize, shape: &mut Vec<usize>, out: &mut Vec<ArgValue>) -> Result<(), String> {
    match value {
        ArgValue::List(items) => {
            if shape.len() == depth {
                shape.push(items.len());
            }
            if shape.get(depth) != Some(&items.len()) || depth > 8 {
                return Err("torch.tensor([...]): the lists have different lengths".into());
            }
            items.iter().try_for_each(|item| flatten(item, depth + 1, shape, out))
        }
        ArgValue::Bool(_) | ArgValue::Int(_) | ArgValue::Float(_) if shape.len() == depth => {
            out.push(value.clone());
            Ok(())
        }
        _ => Err("torch.tensor([...]) takes numbers and truth values, in lists of equal lengths".into()),
    }
}

fn value_of(text: &str) -> ArgValue {
    if let Some(inner) = bracketed(text) {
        return ArgValue::List(items(inner).into_iter().map(value_of).collect());
    }
    if let Some(name) = text.strip_prefix("pattern:") {
        return ArgValue::Mask { mask: CodeRef { name: name.to_string(), args: Default::default() } };
    }
    match text {
        "True" | "true" => return ArgValue::Bool(true),
        "False" | "false" => return ArgValue::Bool(false),
        "None" => return ArgValue::None,
        _ => {}
    }
    if let Ok(value) = text.replace('_', "").parse::<i64>() {
        return ArgValue::Int(value);
    }
    if let Ok(value) = text.parse::<f64>() {
        return ArgValue::Float(value);
    }
    // a length as every option takes it; '8k' in quotes is text
    if let Some(count) = count(text).and_then(|n| i64::try_from(n).ok()) {
        return ArgValue::Int(count);
    }
    let quoted = |q: char| text.strip_prefix(q).and_then(|t| t.strip_suffix(q));
    ArgValue::Text(quoted('"').or_else(|| quoted('\'')).unwrap_or(text).to_string())
}

fn bracketed(text: &str) -> Option<&str> {
    [('[', ']'), ('(', ')')].into_iter().find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close))
}

/// Splits at commas outside brackets.
fn items(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out.retain(|item| !item.is_empty());
    out
}

fn one_line(why: Diagnostic) -> String {
    let hint = why.hint.map(|h| format!(" ({h})")).unwrap_or_default();
    format!("{}{hint}", why.message)
}

/// The passes of attention to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Pass {
    /// The output.
    Forward,
    /// Its gradients.
    Backward,
    /// One after the other.
    Both,
}

impl Pass {
    /// Sets the passes of a run request, with as many rounds as it times; `keep` also requests the gradients
    /// themselves.
    pub(super) fn ask(self, request: &mut RunRequest, seed: u64, keep: bool) {
        if self != Pass::Forward {
            let rounds = request.options.rounds;
            request.gradients =
                Some(GradientRequest { seeds: SeedSource::Random { seed }, rounds, keep, deterministic: false });
        }
        if self == Pass::Backward {
            request.options.rounds = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_python_writes_them() {
        let value = |text: &str| assignment(&format!("x={text}")).unwrap().1;
        assert_eq!(value("512"), ArgValue::Int(512));
        assert_eq!(value("-1_000"), ArgValue::Int(-1000));
        assert_eq!((value("8k"), value("'8k'")), (ArgValue::Int(8192), ArgValue::Text("8k".into())));
        assert_eq!(value("0.5"), ArgValue::Float(0.5));
        assert_eq!(value("True"), ArgValue::Bool(true));
        assert_eq!(value("'a b'"), ArgValue::Text("a b".into()));
        let pair = |a, b| ArgValue::List(vec![ArgValue::Int(a), ArgValue::Int(b)]);
        assert_eq!(value("((1, 2), [3,4],)"), ArgValue::List(vec![pair(1, 2), pair(3, 4)]));
        let python = |text: &str| ArgValue::Python { python: text.into() };
        for text in
            ["[]", "[1, 2]", "torch.arange(40)", "2*2", "float(\"inf\")", "{\"window\": 5}", "Cfg()", "(1, 2*3)"]
        {
            assert_eq!(value(text), python(text), "{text}");
        }
        assert_eq!(kept(python("[1, 2]")), pair(1, 2));
        assert_eq!(value("a-word.txt"), ArgValue::Text("a-word.txt".into()));
        for text in ["off", "no", "null", "none", "yes"] {
            assert!(assignment(&format!("x={text}")).is_err_and(|why| why.contains("True, False or None")), "{text}");
        }
        assert!(matches!(value("pattern:causal"), ArgValue::Mask { mask } if mask.name == "causal"));
        assert_eq!(value("None"), ArgValue::None);
        assert_eq!(value("'None'"), ArgValue::Text("None".into()));
        let tensor = |text: &str| match value(text) {
            ArgValue::Tensor { tensor } => {
                (tensor.shape().to_vec(), tensor.dtype(), tensor.float_at(tensor.numel() - 1))
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(tensor("torch.tensor([0, 0, 1])"), (vec![3], DType::I64, 1.0));
        assert_eq!(tensor("torch.tensor([[1, 2.5]], dtype=torch.float32)"), (vec![1, 2], DType::F32, 2.5));
        assert_eq!(tensor("torch.tensor([True, False])"), (vec![2], DType::Bool, 0.0));
        assert!(assignment("x=torch.tensor([[1], [2, 3]])").is_err());
        assert_eq!(assignment("config.sliding_window=5").unwrap(), ("config.sliding_window".into(), ArgValue::Int(5)));
        assert!(assignment("config.=5").is_err());
        assert!(assignment("window").is_err() && assignment("a b=1").is_err());
        assert_eq!((some("16"), some("1_024"), some("2k")), (Ok(16), Ok(1024), Ok(2048)));
        assert!(["0", "-1", "1.5", ""].iter().all(|text| some(text).is_err()));
        assert_eq!(cell("0, 1,2,3").unwrap(), [0, 1, 2, 3]);
        assert!(cell("1,2,3").is_err() && names("q,k").is_err() && block_size("0x1").is_err());
    }
}
