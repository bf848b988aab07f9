//! Python's `json.loads` and `json.dumps`.
//!
//! Invariant: keys keep their order; invalid JSON is Python's ValueError. Must not know tensors.

use crate::python::machine::Context;
use crate::python::value::{Args, Fault, Pairs, VALUE_BYTES, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::cell::RefCell;
use std::rc::Rc;

/// Calls a function of `json` by its dotted name; None for unknown names.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    Some(match name {
        "json.loads" => loads(args, cx),
        "json.dumps" if args.keyword.is_empty() => args.need(name, 0, "obj").and_then(|value| {
            let mut out = String::new();
            dumped(value, 64, &mut out, cx)?;
            cx.charge_bytes(out.len() as u64)?;
            Ok(Value::str(out))
        }),
        _ => return None,
    })
}

fn loads(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let given = args.need("json.loads", 0, "s")?;
    let text = given.as_str().ok_or_else(|| {
        Fault::type_error(format!("the JSON object must be str, bytes or bytearray, not {}", given.type_name()))
    })?;
    cx.charge_bytes(text.len() as u64 * VALUE_BYTES)?;
    cx.charge_steps(text.len() as u64 / 4)?;
    match serde_json::from_str::<Read>(text) {
        Ok(read) => Ok(read.0),
        Err(why) => Err(Fault::value_error(format!("this is not JSON: {why}"))),
    }
}

fn dumped(value: &Value, depth: usize, out: &mut String, cx: &mut Context) -> Result<(), Fault> {
    let wrong = || Fault::type_error(format!("Object of type {} is not JSON serializable", value.type_name()));
    if depth == 0 {
        return Err(Fault::value_error("this nests too deeply for JSON"));
    }
    // lists that hold one another twice would be written exponentially often
    let length = value.as_str().map_or(0, str::len) as u64;
    cx.charge_steps(1 + length / 16)?;
    cx.charge_bytes(8 + length)?;
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match value {
        Value::None => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(_) | Value::Float(_) => out.push_str(&python::machine::repr(value)),
        // other characters than ASCII are escaped there
        Value::Str(text) if text.is_ascii() => out.push_str(&quoted(text)),
        Value::List(_) | Value::Tuple(_) => {
            out.push('[');
            for (at, item) in value.as_items().unwrap_or_default().iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                dumped(item, depth - 1, out, cx)?;
            }
            out.push(']');
        }
        Value::Dict(pairs) => {
            out.push('{');
            for (at, (key, item)) in pairs.borrow().0.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                let key = match key {
                    Value::Str(key) if key.is_ascii() => key.to_string(),
                    Value::Int(i) => i.to_string(),
                    _ => return Err(wrong()),
                };
                out.push_str(&quoted(&key));
                out.push_str(": ");
                dumped(item, depth - 1, out, cx)?;
            }
            out.push('}');
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

/// A value as it is read.
struct Read(Value);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Read, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Read;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Ok(Read(Value::None))
    }

    fn visit_bool<E>(self, b: bool) -> Result<Read, E> {
        Ok(Read(Value::Bool(b)))
    }

    fn visit_i64<E>(self, i: i64) -> Result<Read, E> {
        Ok(Read(Value::Int(i)))
    }

    fn visit_u64<E: serde::de::Error>(self, i: u64) -> Result<Read, E> {
        i64::try_from(i).map(|i| Read(Value::Int(i))).map_err(|_| E::custom("an int does not fit in 64 bits here"))
    }

    fn visit_f64<E>(self, x: f64) -> Result<Read, E> {
        Ok(Read(Value::Float(x)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Read, E> {
        Ok(Read(Value::str(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Read, A::Error> {
        let mut items = Vec::new();
        while let Some(Read(item)) = from.next_element()? {
            items.push(item);
        }
        Ok(Read(Value::list(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Read, A::Error> {
        let mut pairs = Pairs::default();
        while let Some((key, Read(value))) = from.next_entry::<String, Read>()? {
            pairs.set_named(&Rc::from(key), value);
        }
        Ok(Read(Value::Dict(Rc::new(RefCell::new(pairs)))))
    }
}
