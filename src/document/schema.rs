//! The JSON Schema of documents, made from their types, and the check of a file against it with the path of every mistake.
//!
//! Invariant: accepted JSON deserialises, except for values whose text has its own rules (axes, tensors). Must not know
//! the values' meaning.

use super::model::{Document, Stroke};
use crate::base::Diagnostic;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::sync::LazyLock;

/// The schema of a whole document.
pub(super) static DOCUMENT: LazyLock<Value> = LazyLock::new(schema_of::<Document>);
/// That of a stroke, which is read and checked before the rest of its layer.
static STROKE: LazyLock<Value> = LazyLock::new(schema_of::<Stroke>);

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// A diagnostic for every place of a document's JSON that does not match the schema.
pub(super) fn check(value: &Value) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    at(&DOCUMENT, value, "", &mut out);
    out
}

/// Adds a diagnostic for every place of a stroke's JSON that does not match its schema.
pub(super) fn check_stroke(value: &Value, path: &str, out: &mut Vec<Diagnostic>) {
    at(&STROKE, value, path, out);
}

/// Enough to see what is wrong.
const MOST: usize = 20;

fn at(schema: &'static Value, value: &Value, path: &str, out: &mut Vec<Diagnostic>) {
    let schema = resolved(schema);
    if out.len() > MOST {
        return;
    }
    if let Some(options) = options(schema) {
        let tags: Vec<&str> =
            options.iter().filter_map(|option| option["properties"]["kind"]["const"].as_str()).collect();
        match options.iter().find(|option| is_meant(option, value)) {
            Some(option) => at(option, value, path, out),
            None if !tags.is_empty() && value.is_object() => {
                let found = value.get("kind").map_or("missing".to_string(), shown);
                out.push(wrong(&join(path, "kind"), &found, &format!("one of {}", tags.join(", "))));
            }
            None => out.push(wrong(path, &shown(value), &wanted(schema))),
        }
    } else if !fits(schema, value) {
        out.push(wrong(path, &shown(value), &wanted(schema)));
    } else if let Value::Array(items) = value {
        check_items(schema, items, path, out);
    } else if let Value::Object(entries) = value {
        check_fields(schema, entries, path, out);
    }
}

/// The schema itself, or the one that it refers to.
fn resolved(schema: &'static Value) -> &'static Value {
    let named = schema["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
    named.and_then(|pointer| DOCUMENT.pointer(pointer)).unwrap_or(schema)
}

/// The schemas of which a value needs to match one.
fn options(schema: &'static Value) -> Option<&'static Vec<Value>> {
    schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()
}

/// Whether a value has the type of a schema, or is one of its constants.
fn fits(schema: &Value, value: &Value) -> bool {
    let is = |kind: &Value| match kind.as_str() {
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    };
    let in_range = |n: i128| {
        let limit = |name: &str| schema[name].as_number().and_then(|limit| limit.as_i128());
        limit("minimum").is_none_or(|low| low <= n) && limit("maximum").is_none_or(|high| n <= high)
    };
    match (&schema["const"], &schema["enum"], &schema["type"]) {
        (Value::Null, Value::Null, Value::Array(kinds)) => {
            value.is_null()
                || (kinds.iter().any(is) && value.as_number().and_then(|n| n.as_i128()).is_none_or(in_range))
        }
        (Value::Null, Value::Null, kind) => {
            is(kind) && value.as_number().and_then(|n| n.as_i128()).is_none_or(in_range)
        }
        (Value::Null, words, _) => words.as_array().is_some_and(|words| words.contains(value)),
        (word, ..) => word == value,
    }
}

/// Whether a schema out of several is the one that a value shall match.
fn is_meant(option: &'static Value, value: &Value) -> bool {
    let option = resolved(option);
    let named = |name: &Value| name.as_str().is_some_and(|name| value.get(name).is_some());
    let kind = &option["properties"]["kind"]["const"];
    match kind {
        Value::Null => fits(option, value) && option["required"].as_array().is_none_or(|all| all.iter().all(named)),
        kind => value.get("kind") == Some(kind),
    }
}

fn check_items(schema: &'static Value, items: &[Value], path: &str, out: &mut Vec<Diagnostic>) {
    if let Some(length) = schema["minItems"].as_u64().filter(|length| *length != items.len() as u64) {
        out.push(wrong(path, &format!("a list of {}", items.len()), &format!("{length} items")));
    }
    for (n, item) in items.iter().enumerate() {
        let schema = schema.get("prefixItems").map_or(&schema["items"], |each| &each[n]);
        if !schema.is_null() {
            at(schema, item, &format!("{path}[{n}]"), out);
        }
    }
}

fn check_fields(
    schema: &'static Value,
    entries: &serde_json::Map<String, Value>,
    path: &str,
    out: &mut Vec<Diagnostic>,
) {
    let fields = schema["properties"].as_object();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required.filter(|name| !entries.contains_key(*name)) {
        out.push(wrong(&join(path, name), "missing", &wanted(&schema["properties"][name])));
    }
    for (name, value) in entries {
        match (fields.and_then(|fields| fields.get(name)), &schema["additionalProperties"]) {
            (Some(field), _) => at(field, value, &join(path, name), out),
            (None, Value::Bool(false)) => {
                let known: Vec<&str> = fields.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                let message = format!("`{}` is not a field of a document", join(path, name));
                let hint = format!("fields here are: {}", known.join(", "));
                out.push(Diagnostic::error("document-field", message).hint(hint));
            }
            (None, any) => at(any, value, &join(path, name), out),
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}

fn wrong(path: &str, found: &str, wanted: &str) -> Diagnostic {
    let place = if path.is_empty() { "the document" } else { path };
    Diagnostic::error("document-field", format!("`{place}` is {found}; it must be {wanted}"))
        .hint("`maskloom schema` prints what a document may contain")
}

/// A value in a message.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() <= 40 => format!("`{text}`"),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        plain => plain.to_string(),
    }
}

/// What a schema allows, in words.
fn wanted(schema: &'static Value) -> String {
    let schema = resolved(schema);
    let words = |all: &Vec<Value>| all.iter().map(|v| v.as_str().unwrap_or_default()).collect::<Vec<_>>().join(", ");
    if let Some(all) = schema["enum"].as_array() {
        return format!("one of {}", words(all));
    }
    if let Some(options) = options(schema) {
        let consts: Vec<Value> =
            options.iter().map(|option| option["const"].clone()).filter(|c| !c.is_null()).collect();
        if consts.len() == options.len() {
            return format!("one of {}", words(&consts));
        }
        let mut each: Vec<String> = options.iter().map(option_wanted).collect();
        each.dedup();
        return each.join(" or ");
    }
    let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let range = match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(low), Some(high)) => format!(" from {low} to {high}"),
        (Some(low), None) => format!(" of at least {low}"),
        _ => String::new(),
    };
    let kind = |kind: &Value| match kind.as_str() {
        Some("integer") => format!("a whole number{range}"),
        Some("boolean") => "true or false".into(),
        Some("array") => "a list".into(),
        Some("object") => "an object".into(),
        Some("null") => "null".into(),
        _ => format!("a {}", kind.as_str().unwrap_or("value")),
    };
    kinds.iter().map(kind).collect::<Vec<_>>().join(" or ")
}

/// The same for one of several: a constant, or an object by its name.
fn option_wanted(option: &'static Value) -> String {
    match (&option["const"], option["required"].as_array().map(Vec::as_slice)) {
        (Value::String(word), _) => format!("\"{word}\""),
        (_, Some([Value::String(name)])) => format!("{{\"{name}\": ...}}"),
        _ => wanted(option),
    }
}
