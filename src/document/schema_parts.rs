//! Schemas of the values in a document whose types are other crates'.
//!
//! Invariant: each allows what the type's own reader takes, up to rules on texts. Must not know where they stand.

use crate::base::BackendName;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

pub(super) fn block_size(_: &mut SchemaGenerator) -> Schema {
    let tokens = json_schema!({"type": "integer", "minimum": 1, "maximum": 1 << 20});
    object(&[("q", tokens.clone()), ("kv", tokens)])
}

pub(super) fn tensor(_: &mut SchemaGenerator) -> Schema {
    let dtypes = ["bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"];
    let extent = json_schema!({"type": "integer", "minimum": 0, "maximum": 1 << 30});
    object(&[
        ("dtype", json_schema!({"enum": dtypes})),
        ("shape", json_schema!({"type": "array", "items": extent})),
        ("data", json_schema!({"type": "string", "description": "The elements' bytes in base64."})),
    ])
}

pub(super) fn tensors(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": tensor(generator)})
}

pub(super) fn dtype(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["bf16", "f16", "f32"]})
}

pub(super) fn layout(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["bhsd", "bshd"]})
}

pub(super) fn backends(_: &mut SchemaGenerator) -> Schema {
    let names = BackendName::ALL.map(BackendName::as_str);
    json_schema!({"type": "array", "items": {"enum": names}})
}

pub(super) fn device(_: &mut SchemaGenerator) -> Schema {
    let cuda = object(&[("cuda", json_schema!({"type": "integer", "minimum": 0, "maximum": u32::MAX}))]);
    json_schema!({"anyOf": [{"const": "cpu"}, cuda, {"type": "null"}]})
}

/// An object with all of these names and no others.
fn object(fields: &[(&str, Schema)]) -> Schema {
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|(name, schema)| (name.to_string(), schema.clone().to_value())).collect();
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    json_schema!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
