//! Words of the command line that become values: devices, backends, `k=v`, lists.
//!
//! Invariant: a word that cannot be read is wrong use, told with an example.

use crate::base::{BackendName, DType, Device, Diagnostic, Layout};
use crate::document::model::{ArgValue, CodeRef};

/// `cpu`, `cuda`, `cuda:1`.
pub fn device(text: &str) -> Result<Device, String> {
    text.parse().map_err(one_line)
}

/// `flex`, `torch:sdpa`.
pub fn backend(text: &str) -> Result<BackendName, String> {
    text.parse().map_err(one_line)
}

/// `bf16` or PyTorch's names.
pub fn dtype(text: &str) -> Result<DType, String> {
    match text.strip_prefix("torch.").unwrap_or(text) {
        "bf16" | "bfloat16" => Ok(DType::BF16),
        "f16" | "fp16" | "float16" | "half" => Ok(DType::F16),
        "f32" | "fp32" | "float32" => Ok(DType::F32),
        _ => Err("one of bf16, f16, f32 (f32 runs on the cpu only)".into()),
    }
}

/// `bhsd` or `bshd`.
pub fn layout(text: &str) -> Result<Layout, String> {
    match text {
        "bhsd" => Ok(Layout::Bhsd),
        "bshd" => Ok(Layout::Bshd),
        _ => Err("bhsd ([batch, heads, tokens, head_dim]) or bshd ([batch, tokens, heads, head_dim])".into()),
    }
}

/// `q,k,v`
pub fn names(text: &str) -> Result<[String; 3], String> {
    let names: Vec<String> = text.split(',').map(|n| n.trim().to_string()).collect();
    names.try_into().map_err(|_| "three names, of q, k and v: --names q,k,v".into())
}

/// `128` or `64x128`
pub fn block_size(text: &str) -> Result<crate::base::BlockSize, String> {
    let number = |t: &str| t.parse::<usize>().ok().filter(|n| *n > 0);
    let (q, kv) = text.split_once('x').unwrap_or((text, text));
    match (number(q), number(kv)) {
        (Some(q), Some(kv)) => Ok(crate::base::BlockSize { q, kv }),
        _ => Err("a number or two: 128 or 64x128".into()),
    }
}

/// `b,h,q,kv`
pub fn cell(text: &str) -> Result<[i64; 4], String> {
    let parts: Result<Vec<i64>, _> = text.split(',').map(|p| p.trim().parse()).collect();
    parts.ok().and_then(|p| p.try_into().ok()).ok_or_else(|| "four indices: --at b,h,q_idx,kv_idx".into())
}

/// `window=512`, `dilated=True`, `tile=[8,8]`, `inner=pattern:causal`, `name=text`.
pub fn assignment(text: &str) -> Result<(String, ArgValue), String> {
    let (name, value) = text.split_once('=').ok_or("name=value, such as --arg window=512")?;
    let identifier = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !identifier {
        return Err(format!("`{name}` is no parameter name"));
    }
    Ok((name.to_string(), value_of(value.trim())))
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
        _ => {}
    }
    if let Ok(value) = text.replace('_', "").parse::<i64>() {
        return ArgValue::Int(value);
    }
    if let Ok(value) = text.parse::<f64>() {
        return ArgValue::Float(value);
    }
    let quoted = |q: char| text.strip_prefix(q).and_then(|t| t.strip_suffix(q));
    ArgValue::Text(quoted('"').or_else(|| quoted('\'')).unwrap_or(text).to_string())
}

fn bracketed(text: &str) -> Option<&str> {
    [('[', ']'), ('(', ')')].into_iter().find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close))
}

/// Splits at the commas that stand in no bracket.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_python_writes_them() {
        let value = |text: &str| assignment(&format!("x={text}")).unwrap().1;
        assert_eq!(value("512"), ArgValue::Int(512));
        assert_eq!(value("-1_000"), ArgValue::Int(-1000));
        assert_eq!(value("0.5"), ArgValue::Float(0.5));
        assert_eq!(value("True"), ArgValue::Bool(true));
        assert_eq!(value("'a b'"), ArgValue::Text("a b".into()));
        let pair = |a, b| ArgValue::List(vec![ArgValue::Int(a), ArgValue::Int(b)]);
        assert_eq!(value("((1, 2), [3,4],)"), ArgValue::List(vec![pair(1, 2), pair(3, 4)]));
        assert_eq!(value("[]"), ArgValue::List(vec![]));
        assert!(matches!(value("pattern:causal"), ArgValue::Mask { mask } if mask.name == "causal"));
        assert!(assignment("window").is_err() && assignment("a b=1").is_err());
        assert_eq!(cell("0, 1,2,3").unwrap(), [0, 1, 2, 3]);
        assert!(cell("1,2,3").is_err() && names("q,k").is_err() && block_size("0x1").is_err());
    }
}
