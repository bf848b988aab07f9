//! Values as text: `str`, `repr`, f-strings and format specifications.
//!
//! Invariant: the same text as Python, charged before it is made; a text of too many parts or levels is refused. Must not know
//! the graph.

use super::Context;
use crate::python::syntax::ast::FPart;
use crate::python::value::scope::Scope;
use crate::python::value::{Args, Fault, Value, meter};
use std::rc::Rc;

impl Context<'_> {
    pub(super) fn fstring(&mut self, parts: &[FPart], scope: &Rc<Scope>) -> Result<String, Fault> {
        let mut out = String::new();
        for part in parts {
            match part {
                FPart::Text(text) => {
                    self.charge_bytes(text.len() as u64)?;
                    out.push_str(text);
                }
                FPart::Value { value, conversion, spec, debug } => {
                    if let Some(debug) = debug {
                        out.push_str(debug);
                    }
                    let value = self.eval(value, scope)?;
                    let shown = match conversion {
                        Some('r' | 'a') => self.shown(&value, "repr")?,
                        Some(_) => self.shown(&value, "str")?,
                        None if debug.is_some() && spec.is_empty() => self.shown(&value, "repr")?,
                        None => value,
                    };
                    let spec = self.fstring(spec, scope)?;
                    self.charge_text(&shown)?;
                    out.push_str(&self.formatted_as(&shown, &spec)?);
                }
            }
        }
        Ok(out)
    }

    /// `str(value)` or `repr(value)`, by the methods of the text's own classes if they have them.
    pub(crate) fn shown(&mut self, value: &Value, function: &'static str) -> Result<Value, Fault> {
        if let Value::Instance(object) = value {
            let names = if function == "str" { &["__str__", "__repr__"][..] } else { &["__repr__"] };
            let method = names.iter().find_map(|name| self.instance_method(object, name));
            if let Some(method) = method {
                return self.call(&method, Args::default());
            }
        }
        self.charge_text(value)?;
        Ok(Value::str(if function == "str" { text(value) } else { repr(value) }))
    }

    /// Charges the text of a value before it is made.
    pub(crate) fn charge_text(&mut self, value: &Value) -> Result<(), Fault> {
        let mut looked = Looked { parts: MOST_PARTS, too_deep: false };
        let bytes = text_bytes(value, false, MOST_LEVELS, &mut looked);
        self.charge_steps(2 * (MOST_PARTS - looked.parts) as u64)?;
        if looked.parts == 0 {
            return Err(
                Fault::limit("too-large", "the text of this value has too many parts").hint("print fewer of them")
            );
        }
        if looked.too_deep {
            let message = format!("the text of a value of more than {MOST_LEVELS} levels is not supported here");
            return Err(Fault::unsupported(message).hint("print a part of it"));
        }
        self.charge_bytes(bytes)?;
        self.charge_steps(bytes / 64)
    }

    /// `format(value, spec)`, by the methods of the text's own classes if they have them.
    pub(crate) fn formatted_as(&mut self, value: &Value, spec: &str) -> Result<String, Fault> {
        let Value::Instance(object) = value else {
            let made = formatted(value, spec)?;
            // a width makes a long text of a short value; the widest is short
            self.charge_steps(made.len() as u64 / 64)?;
            self.charge_bytes(made.len() as u64)?;
            return Ok(made);
        };
        let made = match self.instance_method(object, "__format__") {
            Some(method) => self.call(&method, Args::of(vec![Value::str(spec)]))?,
            None => match super::enums::plain_enum_value(value) {
                Some(plain) => return formatted(&plain, spec),
                None if spec.is_empty() => self.shown(value, "str")?,
                None => {
                    let message = format!("unsupported format string passed to {}.__format__", object.class.name);
                    return Err(Fault::type_error(message).python());
                }
            },
        };
        Ok(text(&made))
    }
}

/// Parts of a value that its text may have.
const MOST_PARTS: usize = 1 << 20;

/// Levels of containers that its text may have.
const MOST_LEVELS: usize = 64;

/// What a look at a value has found.
struct Looked {
    /// Parts that may still be looked at.
    parts: usize,
    too_deep: bool,
}

/// The length of a value's text, at least; `within`: as a part of another, where texts stand between quotes.
fn text_bytes(value: &Value, within: bool, depth: usize, looked: &mut Looked) -> u64 {
    looked.parts = looked.parts.saturating_sub(1);
    looked.too_deep |= depth == 0;
    if depth == 0 || looked.parts == 0 {
        return 4;
    }
    match value {
        Value::Str(text) if within => quoted_bytes(text),
        Value::Str(text) => text.len() as u64,
        Value::Tuple(items) => all_bytes(items.0.iter(), depth, looked),
        Value::List(items) | Value::Set(items) => all_bytes(items.borrow().0.iter(), depth, looked),
        Value::Dict(pairs) => all_bytes(pairs.borrow().0.iter().flat_map(|(k, v)| [k, v]), depth, looked),
        Value::Opaque(opaque) => super::exception::message_bytes(opaque),
        Value::Instance(object) => {
            let class = &object.class;
            let shown = class.fields.is_some()
                || class.is_namespace()
                || super::exception::is_own_exception(object)
                || super::enums::is_enum(class);
            let attributes = object.attributes.borrow();
            let shown = attributes.0.iter().filter(|_| shown).flat_map(|(k, v)| [k, v]);
            16 + all_bytes(shown, depth, looked)
        }
        _ => 8,
    }
}

/// The same of the elements of a container, with what stands between them.
fn all_bytes<'v>(items: impl Iterator<Item = &'v Value>, depth: usize, looked: &mut Looked) -> u64 {
    let mut bytes = 2;
    for item in items {
        if looked.parts == 0 {
            break;
        }
        bytes += 2 + text_bytes(item, true, depth - 1, looked);
    }
    bytes
}

/// `str(value)`
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        Value::Opaque(_) => super::exception::exception_parts(value).1,
        Value::Instance(object) => super::enums::member_text(object)
            .or_else(|| super::exception::message_of(object))
            .unwrap_or_else(|| repr(value)),
        other => repr(other),
    }
}

/// `repr(value)`
pub(crate) fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_repr(value, MOST_LEVELS, MOST_BYTES, &mut out);
    out
}

/// The same for a message: the beginning of a long one.
pub(crate) fn repr_in_message(value: &Value) -> String {
    const MOST: usize = 200;
    let mut shown = match value {
        // without its end, which nobody sees
        Value::Str(text) => quoted(text.char_indices().nth(MOST + 1).map_or(&**text, |(at, _)| &text[..at])),
        _ => {
            let mut out = String::new();
            write_repr(value, 8, 4 * MOST, &mut out);
            out
        }
    };
    if let Some((at, _)) = shown.char_indices().nth(MOST) {
        shown.truncate(at);
        shown.push_str("...");
    }
    shown
}

/// Most bytes of a value's text. What a text may print is charged before; messages print what they are about.
const MOST_BYTES: usize = 1 << 28;

/// Writes at least `most` bytes of a longer text.
fn write_repr(value: &Value, depth: usize, most: usize, out: &mut String) {
    // a part of a text takes as long as two steps
    meter::work(16);
    let list = |items: &[Value], open: &str, close: &str, out: &mut String| {
        out.push_str(open);
        for (at, item) in items.iter().enumerate() {
            if out.len() > most || meter::exhausted() {
                break;
            }
            if at > 0 {
                out.push_str(", ");
            }
            write_repr(item, depth - 1, most, out);
        }
        out.push_str(close);
    };
    if depth == 0 || out.len() > most || meter::exhausted() {
        return out.push_str("...");
    }
    match value {
        Value::None => out.push_str("None"),
        Value::Ellipsis => out.push_str("Ellipsis"),
        Value::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
        Value::Int(i) => out.push_str(&i.to_string()),
        Value::Float(f) => out.push_str(&float(*f)),
        Value::Str(text) => out.push_str(&quoted(text)),
        Value::Tuple(items) => list(&items.0, "(", if items.0.len() == 1 { ",)" } else { ")" }, out),
        Value::List(items) => list(&items.borrow().0, "[", "]", out),
        Value::Set(items) if items.borrow().0.is_empty() => out.push_str("set()"),
        Value::Set(items) => list(&items.borrow().0, "{", "}", out),
        Value::Dict(pairs) => {
            out.push('{');
            for (at, (key, value)) in pairs.borrow().0.iter().enumerate() {
                if out.len() > most || meter::exhausted() {
                    break;
                }
                if at > 0 {
                    out.push_str(", ");
                }
                write_repr(key, depth - 1, most, out);
                out.push_str(": ");
                write_repr(value, depth - 1, most, out);
            }
            out.push('}');
        }
        Value::Range(start, stop, 1) => out.push_str(&format!("range({start}, {stop})")),
        Value::Range(start, stop, step) => out.push_str(&format!("range({start}, {stop}, {step})")),
        Value::Function(f) => out.push_str(&format!("<function {}>", f.def.name)),
        Value::Builtin(name) => out.push_str(&format!("<built-in function {name}>")),
        Value::Class(class) => out.push_str(&format!("<class '{}'>", class.name)),
        Value::Instance(object) if super::enums::is_enum(&object.class) => {
            let part = |name: &str| object.attributes.borrow().named(name).unwrap_or(Value::None);
            out.push_str(&format!("<{}.{}: ", object.class.name, part("name").as_str().unwrap_or_default()));
            write_repr(&part("value"), depth - 1, most, out);
            out.push('>');
        }
        Value::Instance(object) if object.class.fields.is_some() || object.class.is_namespace() => {
            let attributes = object.attributes.borrow();
            let named: Vec<(String, Value)> = match &object.class.fields {
                Some(fields) => {
                    fields.iter().filter_map(|(name, _)| Some((name.to_string(), attributes.named(name)?))).collect()
                }
                None => attributes.0.iter().map(|(k, v)| (k.as_str().unwrap_or_default().into(), v.clone())).collect(),
            };
            out.push_str(&format!("{}(", object.class.name));
            for (at, (name, value)) in named.iter().enumerate() {
                out.push_str(&format!("{}{name}=", if at > 0 { ", " } else { "" }));
                write_repr(value, depth - 1, most, out);
            }
            out.push(')');
        }
        Value::Instance(instance) => out.push_str(&format!("<{} object>", instance.class.name)),
        Value::Tensor(tensor) => {
            let tensor = tensor.borrow();
            let all: Vec<String> = (0..tensor.numel().min(8)).map(|i| element(&tensor, i)).collect();
            let more = if tensor.numel() > 8 { ", ..." } else { "" };
            match tensor.shape() {
                [] => out.push_str(&format!("tensor({})", all.join(", "))),
                [_] => out.push_str(&format!("tensor([{}{more}])", all.join(", "))),
                shape => out.push_str(&format!("tensor(shape={shape:?}, dtype=torch.{})", tensor.dtype())),
            }
        }
        Value::DType(dtype) => out.push_str(&format!("torch.{dtype}")),
        other => out.push_str(&format!("<{}>", other.type_name())),
    }
}

/// A text between quotes, as Python chooses them: single ones, unless the text holds those and no double ones.
fn quoted(text: &str) -> String {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => {
                out.push('\\');
                out.push(c);
            }
            c if u32::from(c) < 0x20 || (0x7f..0xa0).contains(&u32::from(c)) => {
                out.push_str(&format!("\\x{:02x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push(mark);
    out
}

/// The length of [`quoted`], at most.
fn quoted_bytes(text: &str) -> u64 {
    let escaped = |b: u8| match b {
        b'\\' | b'\n' | b'\r' | b'\t' | b'\'' | b'"' => 1,
        0..0x20 | 0x7f => 3,
        // of a character of two bytes
        0xc2 => 2,
        _ => 0,
    };
    2 + text.bytes().map(|b| 1 + escaped(b)).sum::<u64>()
}

fn element(tensor: &crate::base::HostTensor, at: usize) -> String {
    match tensor.dtype() {
        crate::base::DType::Bool => if tensor.int_at(at) != 0 { "True" } else { "False" }.to_string(),
        d if d.is_float() => float(tensor.float_at(at)),
        _ => tensor.int_at(at).to_string(),
    }
}

/// A float as Python prints it: the shortest text that reads back the same.
pub(crate) fn float(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.into();
    }
    let plain = format!("{x:?}");
    match plain.split_once('e') {
        // Python pads exponents to two digits and shows their sign
        Some((mantissa, exponent)) => {
            let mantissa = mantissa.strip_suffix(".0").unwrap_or(mantissa);
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |d| ('-', d));
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => plain,
    }
}

/// `format(value, spec)`: fill, align, sign, width, grouping, precision and the usual kinds.
pub(crate) fn formatted(value: &Value, spec: &str) -> Result<String, Fault> {
    if spec.is_empty() {
        return Ok(text(value));
    }
    let bad = || Fault::value_error(format!("`{spec}` is not a format for {}", value.type_name()));
    let chars: Vec<char> = spec.chars().collect();
    let mut at = 0;
    let is_align = |c: Option<&char>| matches!(c, Some('<' | '>' | '^' | '='));
    let (mut fill, mut align) = (' ', None);
    if is_align(chars.get(1)) {
        (fill, align) = (chars[0], Some(chars[1]));
        at = 2;
    } else if is_align(chars.first()) {
        align = Some(chars[0]);
        at = 1;
    }
    let sign = chars.get(at).filter(|c| matches!(c, '+' | '-' | ' ')).copied();
    at += usize::from(sign.is_some());
    let marked = chars.get(at) == Some(&'#');
    at += usize::from(marked);
    if chars.get(at) == Some(&'0') {
        (fill, align) = ('0', align.or(Some('=')));
        at += 1;
    }
    let digits = |at: &mut usize| {
        let start = *at;
        while chars.get(*at).is_some_and(char::is_ascii_digit) {
            *at += 1;
        }
        chars[start..*at].iter().collect::<String>().parse::<usize>().ok()
    };
    let width = digits(&mut at).unwrap_or(0).min(1000);
    let grouping = chars.get(at).filter(|c| matches!(c, ',' | '_')).copied();
    at += usize::from(grouping.is_some());
    let mut precision = None;
    if chars.get(at) == Some(&'.') {
        at += 1;
        precision = Some(digits(&mut at).ok_or_else(bad)?.min(100));
    }
    let kind = chars.get(at).copied();
    if at + usize::from(kind.is_some()) != chars.len() {
        return Err(bad());
    }
    let mut body = number_text(value, kind, precision, grouping).ok_or_else(bad)?;
    if marked {
        let prefix = match kind {
            Some('x') => "0x",
            Some('X') => "0X",
            Some('b') => "0b",
            Some('o') => "0o",
            // of floats it keeps the point and the zeros
            _ => return Err(Fault::unsupported(format!("the format `{spec}` is not supported here"))),
        };
        body.insert_str(usize::from(body.starts_with('-')), prefix);
    }
    let numeric = value.as_float().is_some();
    let body = match sign {
        Some(sign @ ('+' | ' ')) if numeric && !body.starts_with('-') => format!("{sign}{body}"),
        _ => body,
    };
    Ok(padded(&body, fill, align.unwrap_or(if numeric { '>' } else { '<' }), width))
}

fn number_text(value: &Value, kind: Option<char>, precision: Option<usize>, grouping: Option<char>) -> Option<String> {
    let not_finite =
        matches!(kind, Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) || kind.is_none() && precision.is_some();
    if let (true, Value::Float(x)) = (not_finite, value)
        && !x.is_finite()
    {
        let shown = float(*x) + if kind == Some('%') { "%" } else { "" };
        return Some(if matches!(kind, Some('E' | 'F' | 'G')) { shown.to_uppercase() } else { shown });
    }
    let plain = match (kind, precision) {
        (None | Some('s'), None) => text(value),
        (None | Some('s'), Some(n)) if value.as_str().is_some() => text(value).chars().take(n).collect(),
        (Some('d' | 'n'), _) => value.as_int()?.to_string(),
        (Some('x'), _) => signed(value.as_int()?, |n| format!("{n:x}")),
        (Some('X'), _) => signed(value.as_int()?, |n| format!("{n:X}")),
        (Some('b'), _) => signed(value.as_int()?, |n| format!("{n:b}")),
        (Some('o'), _) => signed(value.as_int()?, |n| format!("{n:o}")),
        (Some('f' | 'F'), n) => format!("{:.*}", n.unwrap_or(6), value.as_float()?),
        (Some('%'), n) => format!("{:.*}%", n.unwrap_or(6), 100.0 * value.as_float()?),
        (Some('e' | 'E'), n) => {
            let scientific = format!("{:.*e}", n.unwrap_or(6), value.as_float()?);
            let (mantissa, exponent) = scientific.split_once('e')?;
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |d| ('-', d));
            format!("{mantissa}{}{sign}{digits:0>2}", if kind == Some('E') { 'E' } else { 'e' })
        }
        (None | Some('g' | 'G'), n) => {
            let x = value.as_float()?;
            let n = n.unwrap_or(6).max(1);
            // the exponent of the number as it is rounded to so many digits
            let scientific = format!("{:.*e}", n - 1, x);
            let (mantissa, exponent) = scientific.split_once('e')?;
            let exponent: i32 = exponent.parse().ok()?;
            // without a kind a float goes over to exponents one digit earlier
            let most = n as i32 - i32::from(kind.is_none());
            if exponent < -4 || exponent >= most {
                let short = if mantissa.contains('.') {
                    mantissa.trim_end_matches('0').trim_end_matches('.')
                } else {
                    mantissa
                };
                let sign = if exponent < 0 { '-' } else { '+' };
                let mark = if kind == Some('G') { 'E' } else { 'e' };
                return Some(format!("{short}{mark}{sign}{:0>2}", exponent.abs()));
            }
            let fixed = format!("{:.*}", (n as i32 - 1 - exponent).max(0) as usize, x);
            let short =
                if fixed.contains('.') { fixed.trim_end_matches('0').trim_end_matches('.') } else { fixed.as_str() };
            // without a kind it stays a float to the eye
            if kind.is_none() && !short.contains('.') { format!("{short}.0") } else { short.to_string() }
        }
        _ => return None,
    };
    Some(match grouping {
        None => plain,
        Some(mark) => {
            let (sign, rest) = plain.strip_prefix('-').map_or(("", &*plain), |r| ("-", r));
            let (whole, fraction) = rest.split_once('.').map_or((rest, String::new()), |(w, f)| (w, format!(".{f}")));
            let digits: Vec<char> = whole.chars().collect();
            let mut grouped = String::new();
            for (at, digit) in digits.iter().enumerate() {
                if at > 0 && (digits.len() - at).is_multiple_of(3) {
                    grouped.push(mark);
                }
                grouped.push(*digit);
            }
            format!("{sign}{grouped}{fraction}")
        }
    })
}

/// A whole number in another base: its sign, then its digits.
fn signed(x: i64, digits: impl Fn(u64) -> String) -> String {
    format!("{}{}", if x < 0 { "-" } else { "" }, digits(x.unsigned_abs()))
}

fn padded(body: &str, fill: char, align: char, width: usize) -> String {
    let missing = width.saturating_sub(body.chars().count());
    let pad = |n: usize| std::iter::repeat_n(fill, n).collect::<String>();
    match align {
        '<' => format!("{body}{}", pad(missing)),
        '^' => format!("{}{body}{}", pad(missing / 2), pad(missing - missing / 2)),
        '=' => match body.strip_prefix(['-', '+']) {
            Some(rest) => format!("{}{}{rest}", &body[..1], pad(missing)),
            None => format!("{}{body}", pad(missing)),
        },
        _ => format!("{}{body}", pad(missing)),
    }
}
