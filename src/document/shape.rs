//! The schema of a document file: one table that checks JSON with the path of every mistake, and prints the JSON
//! Schema.
//!
//! Invariant: accepted JSON deserialises, except for values whose text has its own rules (axes, tensors). Must not know
//! the values' meaning.

use crate::base::{BackendName, Diagnostic};
use serde_json::{Value, json};

/// The allowed value at a place.
pub(crate) enum Shape {
    /// Any string.
    Text,
    /// `true` or `false`.
    Bool,
    /// A whole number in a range.
    Int(i64, i64),
    /// A number.
    Number,
    /// One of these strings.
    Choice(Vec<&'static str>),
    /// An array of one shape, with a length if it is fixed.
    List(Box<Shape>, Option<usize>),
    /// An object with free names.
    Map(Box<Shape>),
    /// An object with these names.
    Object(Vec<Field>),
    /// An object whose `kind` decides the other names.
    Tagged(Vec<(&'static str, Vec<Field>)>),
    /// null, or the shape.
    Nullable(Box<Shape>),
    /// An argument of a factory; recursive.
    Arg,
    /// `"cpu"` or `{"cuda": 0}`.
    Device,
}

/// A name of an object.
pub(crate) struct Field {
    name: &'static str,
    required: bool,
    shape: Shape,
}

use Shape::*;

fn must(name: &'static str, shape: Shape) -> Field {
    Field { name, required: true, shape }
}

fn may(name: &'static str, shape: Shape) -> Field {
    Field { name, required: false, shape }
}

fn list(shape: Shape, len: Option<usize>) -> Shape {
    List(Box::new(shape), len)
}

fn map(shape: Shape) -> Shape {
    Map(Box::new(shape))
}

fn nullable(shape: Shape) -> Shape {
    Nullable(Box::new(shape))
}

fn count(max: i64) -> Shape {
    Int(1, max)
}

fn block() -> Shape {
    Object(vec![must("q", count(1 << 20)), must("kv", count(1 << 20))])
}

fn tensor() -> Shape {
    let dtypes = vec!["bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"];
    Object(vec![
        must("dtype", Choice(dtypes)),
        must("shape", list(Int(0, 1 << 30), None)),
        must("data", Text), // base64
    ])
}

fn code_ref() -> Vec<Field> {
    vec![must("name", Text), may("args", map(Arg))]
}

fn text_code(first: &'static str) -> Vec<Field> {
    vec![must(first, Text), may("entry", Text), may("args", map(Arg)), may("tensors", map(tensor()))]
}

/// One stroke of a painted mask.
pub(crate) fn stroke() -> Shape {
    Object(vec![must("paint", Bool), must("rects", list(list(Int(0, 1 << 30), Some(4)), None))])
}

fn mask_content() -> Shape {
    let range = || list(Int(0, 1 << 30), Some(2));
    let distance = || nullable(Int(-(1 << 30), 1 << 30));
    Tagged(vec![
        ("pattern", code_ref()),
        ("rectangle", vec![must("q", range()), must("kv", range())]),
        ("band", vec![may("lo", distance()), may("hi", distance())]),
        (
            "painted",
            vec![
                must("cell", block()),
                must("lengths", list(count(1 << 30), Some(2))),
                must("strokes", list(stroke(), None)),
            ],
        ),
        ("text", text_code("source")),
        ("linked", text_code("path")),
    ])
}

fn score_content() -> Shape {
    Tagged(vec![
        ("pattern", code_ref()),
        ("curve", vec![must("points", list(list(Number, Some(2)), None))]),
        ("text", text_code("source")),
        ("linked", text_code("path")),
    ])
}

fn settings() -> Shape {
    let backends = BackendName::ALL.map(BackendName::as_str).to_vec();
    Object(vec![
        must("batch", count(1 << 16)),
        must("heads", count(1 << 12)),
        must("kv_heads", count(1 << 12)),
        must("head_dim", count(1 << 12)),
        may("head_dim_v", nullable(count(1 << 12))),
        must("dtype", Choice(vec!["bf16", "f16", "f32"])),
        may("layout", Choice(vec!["bhsd", "bshd"])),
        may("scale", nullable(Number)),
        may("fast_math", Bool),
        must("block_size", block()),
        may("seed", Int(0, i64::MAX)),
        must("backends", list(Choice(backends), None)),
        may("device", nullable(Device)),
    ])
}

/// The whole document.
pub(crate) fn document() -> Shape {
    let layer = vec![
        must("id", Int(0, i64::MAX)),
        must("name", Text),
        must("enabled", Bool),
        must("combine", Choice(vec!["and", "or", "and_not"])),
        may("heads", nullable(list(list(Int(0, 1 << 20), Some(2)), None))),
        must("content", mask_content()),
    ];
    let score =
        vec![must("id", Int(0, i64::MAX)), must("name", Text), must("enabled", Bool), must("content", score_content())];
    Object(vec![
        must("maskloom", Int(1, i64::from(super::model::DOCUMENT_VERSION))),
        must("name", Text),
        may("about", Text),
        must("axes", Object(vec![must("q", Text), may("kv", nullable(Text))])),
        may("layers", list(Object(layer), None)),
        may("scores", list(Object(score), None)),
        must("settings", settings()),
    ])
}

/// Adds a diagnostic for every place of `value` that does not match `shape`. `path` is its place.
pub(crate) fn check(shape: &Shape, value: &Value, path: &str, out: &mut Vec<Diagnostic>) {
    match (shape, value) {
        (Text, Value::String(_)) | (Bool, Value::Bool(_)) | (Number, Value::Number(_)) => {}
        (Int(lo, hi), Value::Number(n)) => match n.as_i64() {
            Some(n) if (*lo..=*hi).contains(&n) => {}
            _ => out.push(wrong(path, &format!("{n}"), &format!("a whole number from {lo} to {hi}"))),
        },
        (Choice(words), Value::String(word)) if words.contains(&word.as_str()) => {}
        (Choice(words), _) => out.push(wrong(path, &kind_of(value), &format!("one of {}", words.join(", ")))),
        (List(item, len), Value::Array(items)) => {
            if len.is_some_and(|n| n != items.len()) {
                let wanted = format!("{} items", len.unwrap_or(0));
                out.push(wrong(path, &format!("a list of {}", items.len()), &wanted));
            }
            for (at, value) in items.iter().enumerate() {
                check(item, value, &format!("{path}[{at}]"), out);
                if out.len() > 20 {
                    return; // enough to see what is wrong
                }
            }
        }
        (Map(item), Value::Object(entries)) => {
            entries.iter().for_each(|(name, value)| check(item, value, &join(path, name), out));
        }
        (Object(fields), Value::Object(_)) => check_fields(fields, None, value, path, out),
        (Tagged(variants), Value::Object(entries)) => match entries.get("kind").and_then(Value::as_str) {
            Some(kind) => match variants.iter().find(|v| v.0 == kind) {
                Some((_, fields)) => check_fields(fields, Some("kind"), value, path, out),
                None => out.push(wrong(&join(path, "kind"), &format!("`{kind}`"), &kinds(variants))),
            },
            None => out.push(wrong(&join(path, "kind"), "missing", &kinds(variants))),
        },
        (Nullable(_), Value::Null) => {}
        (Nullable(inner), _) => check(inner, value, path, out),
        (Arg, _) => check_arg(value, path, out),
        (Device, Value::String(word)) if word == "cpu" => {}
        (Device, Value::Object(entries)) if entries.len() == 1 && entries.contains_key("cuda") => {
            check(&Int(0, i64::from(u32::MAX)), &entries["cuda"], &join(path, "cuda"), out);
        }
        _ => out.push(wrong(path, &kind_of(value), &wanted(shape))),
    }
}

fn check_fields(fields: &[Field], tag: Option<&str>, value: &Value, path: &str, out: &mut Vec<Diagnostic>) {
    let Some(entries) = value.as_object() else { return };
    for field in fields {
        match entries.get(field.name) {
            Some(value) => check(&field.shape, value, &join(path, field.name), out),
            None if field.required => out.push(wrong(&join(path, field.name), "missing", &wanted(&field.shape))),
            None => {}
        }
    }
    for name in entries.keys().filter(|n| Some(n.as_str()) != tag && !fields.iter().any(|f| f.name == n.as_str())) {
        let known: Vec<_> = fields.iter().map(|f| f.name).collect();
        out.push(
            Diagnostic::error("document-field", format!("`{}` is not a field of a document", join(path, name)))
                .hint(format!("fields here are: {}", known.join(", "))),
        );
    }
}

/// A plain value, a list of arguments, `{"tensor": ...}` or `{"mask": ...}`.
fn check_arg(value: &Value, path: &str, out: &mut Vec<Diagnostic>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| check_arg(item, &format!("{path}[{at}]"), out));
        }
        Value::Object(entries) if entries.len() == 1 && entries.contains_key("tensor") => {
            check(&tensor(), &entries["tensor"], &join(path, "tensor"), out);
        }
        Value::Object(entries) if entries.len() == 1 && entries.contains_key("mask") => {
            check(&Object(code_ref()), &entries["mask"], &join(path, "mask"), out);
        }
        _ => out.push(wrong(path, &kind_of(value), &wanted(&Arg))),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}

fn kinds(variants: &[(&'static str, Vec<Field>)]) -> String {
    let names: Vec<_> = variants.iter().map(|v| v.0).collect();
    format!("one of {}", names.join(", "))
}

fn wrong(path: &str, found: &str, wanted: &str) -> Diagnostic {
    let place = if path.is_empty() { "the document" } else { path };
    Diagnostic::error("document-field", format!("`{place}` is {found}; it must be {wanted}"))
        .hint("`maskloom schema` prints what a document may contain")
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(s) if s.chars().count() <= 40 => format!("`{s}`"),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

fn wanted(shape: &Shape) -> String {
    match shape {
        Text => "a string".into(),
        Bool => "true or false".into(),
        Int(lo, hi) => format!("a whole number from {lo} to {hi}"),
        Number => "a number".into(),
        Choice(words) => format!("one of {}", words.join(", ")),
        List(..) => "a list".into(),
        Map(_) | Object(_) | Tagged(_) => "an object".into(),
        Nullable(inner) => format!("{} or null", wanted(inner)),
        Arg => "a number, a string, null, a list, {\"tensor\": ...} or {\"mask\": ...}".into(),
        Device => "\"cpu\" or {\"cuda\": 0}".into(),
    }
}

/// The JSON Schema of a document.
pub(crate) fn schema() -> Value {
    let mut root = schema_of(&document());
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Maskloom document");
    let plain = json!({"type": ["null", "boolean", "number", "string"]});
    let items = json!({"type": "array", "items": {"$ref": "#/$defs/arg"}});
    let tensor = object_schema(&[must("tensor", tensor())], None);
    let mask = object_schema(&[must("mask", Object(code_ref()))], None);
    root["$defs"] = json!({"arg": {"anyOf": [plain, items, tensor, mask]}});
    root
}

fn schema_of(shape: &Shape) -> Value {
    match shape {
        Text => json!({"type": "string"}),
        Bool => json!({"type": "boolean"}),
        Int(lo, hi) => json!({"type": "integer", "minimum": lo, "maximum": hi}),
        Number => json!({"type": "number"}),
        Choice(words) => json!({"enum": words}),
        List(item, None) => json!({"type": "array", "items": schema_of(item)}),
        List(item, Some(n)) => json!({"type": "array", "items": schema_of(item), "minItems": n, "maxItems": n}),
        Map(item) => json!({"type": "object", "additionalProperties": schema_of(item)}),
        Object(fields) => object_schema(fields, None),
        Tagged(variants) => {
            let each: Vec<_> = variants.iter().map(|(kind, fields)| object_schema(fields, Some(kind))).collect();
            json!({"oneOf": each})
        }
        Nullable(inner) => json!({"anyOf": [{"type": "null"}, schema_of(inner)]}),
        Arg => json!({"$ref": "#/$defs/arg"}),
        Device => {
            json!({"anyOf": [{"const": "cpu"}, object_schema(&[must("cuda", Int(0, i64::from(u32::MAX)))], None)]})
        }
    }
}

fn object_schema(fields: &[Field], kind: Option<&str>) -> Value {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    if let Some(kind) = kind {
        properties.insert("kind".into(), json!({"const": kind}));
        required.push("kind");
    }
    for field in fields {
        properties.insert(field.name.into(), schema_of(&field.shape));
        if field.required {
            required.push(field.name);
        }
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
