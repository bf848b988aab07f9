//! Arguments as text: numbers, strings, tuples, tensors as lists of numbers.
//!
//! Invariant: a shown text, typed again, gives the same value with the same type; a value of another type is refused in
//! words. Must not know widgets.

use crate::base::tensor::Data;
use crate::base::{DType, Diagnostic, HostTensor};
use crate::document::controls::Range;
use crate::document::model::ArgValue;
use crate::python::outline::ParamKind;
use half::{bf16, f16};

/// A value as one types it: `384`, `0.5`, `[384, 77]`, `None`.
pub(in crate::app) fn shown(value: &ArgValue) -> String {
    match value {
        ArgValue::Text(text) | ArgValue::Python { python: text } => text.clone(),
        other => inner(other),
    }
}

fn inner(value: &ArgValue) -> String {
    match value {
        ArgValue::List(items) => format!("[{}]", items.iter().map(inner).collect::<Vec<_>>().join(", ")),
        ArgValue::Text(text) => format!("\"{text}\""),
        ArgValue::None => "None".into(),
        ArgValue::Bool(on) => if *on { "True" } else { "False" }.into(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

/// The value of a text for a parameter of this kind with the present or former value `like`.
pub(super) fn parse(text: &str, kind: ParamKind, like: Option<&ArgValue>) -> Result<ArgValue, Diagnostic> {
    let text = text.trim();
    let is_text = kind == ParamKind::Str || matches!(like, Some(ArgValue::Text(_)));
    if is_text && text != "None" {
        return Ok(ArgValue::Text(text.into()));
    }
    let listed = kind == ParamKind::Tuple || matches!(like, Some(ArgValue::List(_)));
    let mut rest = text;
    let mut value = sequence(&mut rest, listed).ok_or_else(|| bad(text, listed))?;
    if !rest.trim().is_empty() {
        return Err(bad(text, listed));
    }
    let floats = |items: &[ArgValue]| !items.is_empty() && items.iter().all(|i| matches!(i, ArgValue::Float(_)));
    if kind == ParamKind::Float
        || matches!(like, Some(ArgValue::Float(_)))
        || matches!(like, Some(ArgValue::List(items)) if floats(items))
    {
        to_float(&mut value);
    }
    if kind == ParamKind::Int && matches!(value, ArgValue::Float(_)) {
        return Err(Diagnostic::error("argument-text", format!("`{text}` is not a whole number"))
            .hint("this parameter is an int; write one such as 384"));
    }
    Ok(value)
}

fn bad(text: &str, listed: bool) -> Diagnostic {
    let shown: String = text.chars().take(40).collect();
    let hint = match listed {
        true => "write numbers with commas, such as 384 or 384, 77",
        false => "write a number, True, False, None, \"text\", or several with commas",
    };
    Diagnostic::error("argument-text", format!("`{shown}` is not a value")).hint(hint)
}

fn to_float(value: &mut ArgValue) {
    match value {
        ArgValue::Int(n) => *value = ArgValue::Float(*n as f64),
        ArgValue::List(items) => items.iter_mut().for_each(to_float),
        _ => {}
    }
}

/// Values with commas between them. One alone is itself, unless there is a comma behind it or a list is meant.
fn sequence(rest: &mut &str, listed: bool) -> Option<ArgValue> {
    let mut items = Vec::new();
    let mut commas = 0;
    loop {
        *rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with([')', ']']) {
            break;
        }
        items.push(one(rest)?);
        *rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => (*rest, commas) = (after, commas + 1),
            None => break,
        }
    }
    match items.len() {
        0 => None,
        1 if commas == 0 && (!listed || matches!(items[0], ArgValue::List(_) | ArgValue::None)) => items.pop(),
        _ => Some(ArgValue::List(items)),
    }
}

fn one(rest: &mut &str) -> Option<ArgValue> {
    for (open, close) in [('(', ')'), ('[', ']')] {
        let Some(after) = rest.strip_prefix(open) else { continue };
        let empty = after.trim_start().strip_prefix(close);
        if let Some(after) = empty {
            *rest = after;
            return Some(ArgValue::List(Vec::new()));
        }
        let mut inside = after;
        // `(3)` is 3, `[3]` and `(3,)` are lists, as in Python
        let value = sequence(&mut inside, open == '[')?;
        let value = match value {
            list @ ArgValue::List(_) if open == '[' && !is_sequence(after) => ArgValue::List(vec![list]),
            ArgValue::None if open == '[' => ArgValue::List(vec![ArgValue::None]),
            value => value,
        };
        *rest = inside.trim_start().strip_prefix(close)?;
        return Some(value);
    }
    for quote in ['"', '\''] {
        let Some(after) = rest.strip_prefix(quote) else { continue };
        let end = after.find(quote)?;
        let text = after[..end].to_string();
        *rest = &after[end + 1..];
        return Some(ArgValue::Text(text));
    }
    let end = rest.find([',', ')', ']', '(', '[']).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after;
    atom(word.trim())
}

/// Whether a list contains more than one list, or something that is not a list.
fn is_sequence(after: &str) -> bool {
    let mut depth = 0_i32;
    for c in after.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' if depth == 0 => return !after.trim_start().starts_with(['(', '[']),
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => return true,
            _ => {}
        }
    }
    true
}

fn atom(word: &str) -> Option<ArgValue> {
    match word {
        "True" | "true" => return Some(ArgValue::Bool(true)),
        "False" | "false" => return Some(ArgValue::Bool(false)),
        "None" => return Some(ArgValue::None),
        _ => {}
    }
    let plain = word.replace('_', "");
    if let Ok(n) = plain.parse::<i64>() {
        return Some(ArgValue::Int(n));
    }
    plain.parse::<f64>().ok().filter(|x| x.is_finite()).map(ArgValue::Float)
}

/// The numbers of a list outside the range in its help, in words.
pub(super) fn outside(value: &ArgValue, range: Option<Range>) -> Option<String> {
    let range = range?;
    let ArgValue::List(items) = value else { return None };
    let number = |item: &ArgValue| match item {
        ArgValue::Int(n) => Some(*n as f64),
        ArgValue::Float(x) => Some(*x),
        _ => None,
    };
    let out: Vec<String> = items
        .iter()
        .filter_map(number)
        .filter(|n| !(range.min..=range.max).contains(n))
        .map(|n| n.to_string())
        .collect();
    let be = if out.len() == 1 { "lies" } else { "lie" };
    (!out.is_empty()).then(|| format!("{} {be} outside {} to {}", out.join(", "), range.min, range.max))
}

/// A tensor of one dimension by its numbers.
pub(super) fn numbers(tensor: &HostTensor) -> String {
    let one = |at: usize| {
        if tensor.dtype().is_float() { format!("{}", tensor.float_at(at)) } else { tensor.int_at(at).to_string() }
    };
    (0..tensor.numel()).map(one).collect::<Vec<_>>().join(", ")
}

/// A tensor of one dimension from its numbers; of the dtype `like`, or int64 or float32 as they are.
pub(super) fn parse_tensor(text: &str, like: Option<DType>) -> Result<ArgValue, Diagnostic> {
    let inner = text.trim_matches(['[', ']', '(', ')', ' ']);
    let parts: Vec<&str> = inner.split(',').map(str::trim).filter(|p| !p.is_empty()).collect();
    let shown: String = text.chars().take(40).collect();
    let bad = || {
        Diagnostic::error("tensor-text", format!("`{shown}` is not a list of numbers"))
            .hint("write numbers with commas, such as 512, 384, 128")
    };
    if parts.is_empty() {
        return Err(bad());
    }
    let ints = || -> Option<Vec<i64>> {
        let one = |part: &&str| match *part {
            "True" | "true" => Some(1),
            "False" | "false" => Some(0),
            part => part.parse().ok(),
        };
        parts.iter().map(one).collect()
    };
    let floats = || -> Option<Vec<f64>> { parts.iter().map(|p| p.parse::<f64>().ok()).collect() };
    let data = match like {
        None => match ints() {
            Some(ints) => Data::I64(ints),
            None => Data::F32(floats().ok_or_else(bad)?.into_iter().map(|x| x as f32).collect()),
        },
        Some(dtype) if dtype.is_float() => {
            let floats = floats().ok_or_else(bad)?.into_iter();
            match dtype {
                DType::F64 => Data::F64(floats.collect()),
                DType::F16 => Data::F16(floats.map(f16::from_f64).collect()),
                DType::BF16 => Data::BF16(floats.map(bf16::from_f64).collect()),
                _ => Data::F32(floats.map(|x| x as f32).collect()),
            }
        }
        Some(dtype) => {
            let no_fit = || {
                Diagnostic::error("tensor-text", format!("`{shown}` does not fit {dtype}, the dtype of this tensor"))
                    .hint("reset it first to change the kind of numbers")
            };
            whole(ints().ok_or_else(no_fit)?, dtype).ok_or_else(no_fit)?
        }
    };
    Ok(ArgValue::Tensor { tensor: HostTensor::vector(data) })
}

fn whole(ints: Vec<i64>, dtype: DType) -> Option<Data> {
    fn each<T: TryFrom<i64>>(ints: Vec<i64>) -> Option<Vec<T>> {
        ints.into_iter().map(|n| T::try_from(n).ok()).collect()
    }
    Some(match dtype {
        DType::Bool => Data::Bool(each::<u8>(ints).filter(|v| v.iter().all(|n| *n <= 1))?),
        DType::U8 => Data::U8(each(ints)?),
        DType::I8 => Data::I8(each(ints)?),
        DType::I16 => Data::I16(each(ints)?),
        DType::I32 => Data::I32(each(ints)?),
        _ => Data::I64(ints),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ArgValue::*;

    fn ints(values: &[i64]) -> ArgValue {
        List(values.iter().copied().map(Int).collect())
    }

    #[test]
    fn a_list_stays_one_however_it_is_typed() {
        let like = ints(&[384]);
        for (text, wanted) in [
            ("384", vec![384]),
            ("77", vec![77]),
            ("77,", vec![77]),
            ("[77]", vec![77]),
            ("(77,)", vec![77]),
            ("(77)", vec![77]),
            ("[ 384, 77 ]", vec![384, 77]),
            ("384, 77", vec![384, 77]),
        ] {
            for kind in [ParamKind::Tuple, ParamKind::Any] {
                assert_eq!(parse(text, kind, Some(&like)).unwrap(), ints(&wanted), "{text}");
            }
        }
        // the shown text can be typed again
        for value in [like, ints(&[1, 2]), List(vec![ints(&[1, 2]), ints(&[3])]), List(vec![ints(&[1])]), List(vec![])]
        {
            assert_eq!(parse(&shown(&value), ParamKind::Tuple, Some(&value)).unwrap(), value, "{}", shown(&value));
        }
        assert!(
            parse("384; 77", ParamKind::Tuple, Option::None).is_err()
                && parse("", ParamKind::Tuple, Option::None).is_err()
        );
        assert!(
            parse("[384", ParamKind::Tuple, Option::None).is_err()
                && parse("384]", ParamKind::Tuple, Option::None).is_err()
        );
    }

    #[test]
    fn numbers_keep_their_kind() {
        assert_eq!(parse("2", ParamKind::Float, Option::None).unwrap(), Float(2.0));
        assert_eq!(parse("2", ParamKind::Any, Some(&Float(0.5))).unwrap(), Float(2.0));
        assert_eq!(
            parse("1, 2", ParamKind::Tuple, Some(&List(vec![Float(0.5)]))).unwrap(),
            List(vec![Float(1.0), Float(2.0)])
        );
        assert_eq!(parse("1_024", ParamKind::Int, Option::None).unwrap(), Int(1024));
        assert_eq!(parse("0.5", ParamKind::Int, Option::None).unwrap_err().code, "argument-text");
        assert_eq!(parse("(3, 5)", ParamKind::Any, Option::None).unwrap(), ints(&[3, 5]));
        assert_eq!(parse("True", ParamKind::Any, Option::None).unwrap(), Bool(true));
        assert_eq!(parse("None", ParamKind::Int, Some(&Int(4))).unwrap(), None);
        assert_eq!(parse("near", ParamKind::Str, Option::None).unwrap(), Text("near".into()));
        assert!(parse("nan", ParamKind::Float, Option::None).is_err());
    }

    #[test]
    fn tensors_keep_their_dtype() {
        let tensor = |text: &str, like| match parse_tensor(text, like) {
            Ok(Tensor { tensor }) => Ok((numbers(&tensor), tensor.dtype())),
            Ok(_) => unreachable!(),
            Err(why) => Err(why.code.to_string()),
        };
        assert_eq!(tensor("[512, 384]", Option::None), Ok(("512, 384".into(), DType::I64)));
        assert_eq!(tensor("1, 2.5", Option::None), Ok(("1, 2.5".into(), DType::F32)));
        assert_eq!(tensor("1, 2", Some(DType::F32)), Ok(("1, 2".into(), DType::F32)));
        assert_eq!(tensor("True, 0", Some(DType::Bool)), Ok(("1, 0".into(), DType::Bool)));
        for (text, like) in [("2", DType::Bool), ("2.5", DType::I64), ("300", DType::U8)] {
            assert_eq!(tensor(text, Some(like)), Err("tensor-text".into()), "{text}");
        }
        assert!(tensor("", Option::None).is_err() && tensor("1; 2", Option::None).is_err());
    }

    #[test]
    fn what_lies_outside_is_named() {
        let range = Some(Range { min: 0.0, max: 256.0, step: Option::None });
        assert_eq!(outside(&ints(&[77, 384]), range).as_deref(), Some("384 lies outside 0 to 256"));
        assert_eq!((outside(&ints(&[77]), range), outside(&ints(&[384]), Option::None)), (Option::None, Option::None));
    }
}
