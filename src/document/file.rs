//! Documents as JSON: versioned, readable in a diff, with the path of every mistake.
//!
//! Invariant: a written document reads back equal; no input causes a panic, or takes more than eight times its size and 64 MiB in memory.
//! A task writes the file.

use super::model::*;
use super::schema;
use super::tree::{self, Tree};
use crate::base::{Diagnostic, identity};
use serde::Deserialize;
use serde_json::Value;

/// Largest text read as a document.
const MAX_BYTES: usize = 512 << 20;

/// The document as JSON text, indented, short lists on one line.
pub fn to_json(document: &Document) -> String {
    let mut document = document.clone();
    document.maskloom = DOCUMENT_VERSION;
    let mut out = indent(&serde_json::to_string(&document).expect("plain data serialises"));
    out.push('\n');
    out
}

/// The JSON Schema of documents.
pub fn json_schema() -> String {
    format!("{:#}\n", *schema::DOCUMENT)
}

/// Reads a document. Errors: all mistakes found, each with its path.
pub fn from_json(text: &str) -> Result<Document, Vec<Diagnostic>> {
    if text.len() > MAX_BYTES {
        let message = format!("the document has {} bytes; at most {MAX_BYTES} are read", text.len());
        return Err(vec![Diagnostic::error("document-too-large", message).hint("keep large tensors in linked files")]);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Tree { value, strokes, errors: in_strokes } = tree::parse(text).map_err(|why| vec![why])?;
    check_version(&value).map_err(|d| vec![d])?;
    let mut errors = schema::check(&value);
    errors.extend(in_strokes);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut document: Document = Document::deserialize(&value).map_err(|e| vec![blame(&value, &e.to_string())])?;
    drop(value);
    for (at, strokes) in strokes {
        if let Some(MaskContent::Painted(painted)) = document.layers.get_mut(at).map(|layer| &mut layer.content) {
            painted.strokes = strokes;
        }
    }
    let errors = document.validate();
    if errors.is_empty() { Ok(document) } else { Err(errors) }
}

fn check_version(value: &Value) -> Result<(), Diagnostic> {
    let Some(version) = value.get("maskloom") else {
        let message = "this JSON is not a Maskloom document: it has no `maskloom` version";
        return Err(
            Diagnostic::error("document-version", message).hint("a document begins with {\"maskloom\": 1, ...}")
        );
    };
    match version.as_u64() {
        Some(v) if (1..=u64::from(DOCUMENT_VERSION)).contains(&v) => Ok(()),
        _ => {
            let message = format!(
                "the document has format version {version}; this Maskloom ({}) reads versions 1 to {DOCUMENT_VERSION}",
                identity::build().version
            );
            let hint = match version.as_u64() {
                Some(0) | None => {
                    "versions are whole numbers from 1 on; new documents begin with {\"maskloom\": 1, ...}".into()
                }
                Some(_) => format!("update Maskloom: version {version} needs a newer one"),
            };
            Err(Diagnostic::error("document-version", message).hint(hint))
        }
    }
}

/// The shape was right, so a text with its own rules was wrong: an axis or a tensor. Names it if possible.
fn blame(value: &Value, error: &str) -> Diagnostic {
    for axis in ["q", "kv"] {
        if let Some(text) = value["axes"][axis].as_str()
            && let Err(mut why) = Axis::parse(text)
        {
            why.message = format!("`axes.{axis}`: {}", why.message);
            return why;
        }
    }
    let place = find_tensor(value, "").map_or(String::new(), |path| format!("`{path}`: "));
    Diagnostic::error("document-field", format!("{place}{error}"))
        .hint("`maskloom schema` prints what a document may contain")
}

/// Path of the first tensor that does not decode.
fn find_tensor(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Object(entries) if entries.contains_key("dtype") && entries.contains_key("data") => {
            serde_json::from_value::<crate::base::HostTensor>(value.clone()).err().map(|_| path.to_string())
        }
        Value::Object(entries) => entries.iter().find_map(|(k, v)| {
            let inner = if path.is_empty() { k.clone() } else { format!("{path}.{k}") };
            find_tensor(v, &inner)
        }),
        Value::Array(items) => items.iter().enumerate().find_map(|(i, v)| find_tensor(v, &format!("{path}[{i}]"))),
        _ => None,
    }
}

impl Document {
    /// Rules beyond types: axes within limits, ids unique, numbers finite, rectangles in order.
    pub fn validate(&self) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        errors.extend(self.axes.lengths().err());
        let mut ids: Vec<u64> = self.layers.iter().map(|l| l.id).chain(self.scores.iter().map(|s| s.id)).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|w| w[0] == w[1]) {
            let message = format!("two layers have the id {}", pair[0]);
            errors.push(Diagnostic::error("layer-id-taken", message).hint("give every layer a different id"));
        }
        for layer in &self.layers {
            errors.extend(check_content(&layer.content).map(|what| broken(&layer.name, what)));
        }
        for score in &self.scores {
            if let ScoreContent::Curve { points } = &score.content {
                errors.extend(check_curve(points).map(|what| broken(&score.name, what)));
            }
        }
        errors
    }
}

fn broken(layer: &str, what: String) -> Diagnostic {
    Diagnostic::error("layer-content", format!("layer `{layer}`: {what}")).hint("edit or remove the layer")
}

fn check_content(content: &MaskContent) -> Option<String> {
    let MaskContent::Painted(painted) = content else { return None };
    if painted.cell.q == 0 || painted.cell.kv == 0 || painted.lengths.contains(&0) {
        return Some("cells and lengths must be at least one token".into());
    }
    None
}

fn check_curve(points: &[(f64, f64)]) -> Option<String> {
    if points.is_empty() || points.iter().any(|p| !p.0.is_finite() || !p.1.is_finite()) {
        return Some("a curve needs at least one point, and finite numbers".into());
    }
    points.windows(2).any(|w| w[0].0 >= w[1].0).then(|| "the distances of a curve must increase".into())
}

/// Indents compact JSON. Lists without objects, and objects of a few plain values, stay on one line: strokes and points
/// would fill pages otherwise. Works on the text, so that names keep the order of the types.
fn indent(compact: &str) -> String {
    let inline = inline_spans(compact);
    let mut out = String::with_capacity(compact.len() * 2);
    let (mut depth, mut in_string, mut escaped, mut inline_until) = (0usize, false, false, 0usize);
    for (at, c) in compact.char_indices() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        let flat = at < inline_until;
        match c {
            '{' | '[' if !flat && inline.contains_key(&at) => {
                inline_until = inline[&at];
                out.push(c);
            }
            '{' | '[' if !flat => {
                depth += 1;
                out.push(c);
                new_line(&mut out, depth);
            }
            '}' | ']' if !flat => {
                depth -= 1;
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' if flat => out.push_str(", "),
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str("  "));
}

/// Start and end of every bracket pair that stays on one line.
fn inline_spans(compact: &str) -> std::collections::HashMap<usize, usize> {
    struct Open {
        at: usize,
        list: bool,
        holds_object: bool,
        holds_text_or_list: bool,
    }
    let mut spans = std::collections::HashMap::new();
    let mut open: Vec<Open> = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    for (at, c) in compact.bytes().enumerate() {
        if in_string {
            in_string = escaped || c != b'"';
            escaped = !escaped && c == b'\\';
            continue;
        }
        match c {
            b'{' | b'[' => {
                open.push(Open { at, list: c == b'[', holds_object: false, holds_text_or_list: false });
            }
            b'}' | b']' => {
                let Some(done) = open.pop() else { continue };
                let short = at - done.at < 60 && !done.holds_text_or_list && !done.holds_object;
                if at == done.at + 1 || if done.list { !done.holds_object } else { short } {
                    spans.insert(done.at, at + 1);
                }
                if let Some(parent) = open.last_mut() {
                    parent.holds_object |= !done.list || done.holds_object;
                    parent.holds_text_or_list = true;
                }
            }
            b'"' => {
                in_string = true;
                // a string after a colon is a value; names come after a brace or a comma
                if let Some(parent) = open.last_mut() {
                    parent.holds_text_or_list |= at > 0 && compact.as_bytes()[at - 1] == b':';
                }
            }
            _ => {}
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::base::tensor::Data;
    use crate::base::{Device, HostTensor};
    use crate::document::testing;
    use proptest::prelude::*;

    fn full() -> Document {
        let mut doc = testing::document();
        doc.about = "**about** \"quotes\" \u{1F9F5}\n".into();
        doc.axes = Axes { q: Axis::parse("text 5 | image 2x3").unwrap(), kv: Some(Axis::tokens(77)) };
        doc.settings.scale = Some(0.1);
        doc.settings.fast_math = true;
        doc.settings.device = Some(Device::Cuda(1));
        doc.settings.dtype = DType::F16;
        let tensor = HostTensor::new([2], Data::F32(vec![f32::NEG_INFINITY, -0.0])).unwrap();
        let inner = testing::pattern("causal", &[]);
        let code = TextCode {
            source: "def f(b, h, q, k):\n    return q >= k\n".into(),
            entry: "f".into(),
            args: [
                ("a".to_string(), ArgValue::List(vec![ArgValue::Int(1), ArgValue::Float(2.0), ArgValue::Bool(true)])),
                ("t".to_string(), ArgValue::Tensor { tensor: tensor.clone() }),
                ("m".to_string(), ArgValue::Mask { mask: inner }),
                ("s".to_string(), ArgValue::Text("x".into())),
                ("n".to_string(), ArgValue::None),
                ("p".to_string(), ArgValue::Python { python: "torch.arange(4)".into() }),
            ]
            .into(),
            tensors: [("table".to_string(), tensor)].into(),
        };
        let linked = LinkedCode { path: "mods/my mask.py".into(), ..LinkedCode::default() };
        doc.layers.push(testing::layer(10, MaskContent::Text(code)));
        doc.layers.push(testing::layer(11, MaskContent::Linked(linked)));
        doc.layers.push(testing::layer(12, MaskContent::Band { lo: None, hi: Some(-3) }));
        doc.layers.push(testing::layer(13, MaskContent::Rectangle { q: [0, 5], kv: [1, 2] }));
        doc.scores.push(testing::score(14, ScoreContent::Curve { points: vec![(-1.5, 0.1), (2.0, 1e-9)] }));
        doc
    }

    #[test]
    fn what_was_saved_loads_equal() {
        let doc = full();
        let text = to_json(&doc);
        let back = from_json(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        assert_eq!(back, doc);
        assert_eq!(to_json(&back), text);
        assert!(text.starts_with("{\n  \"maskloom\": 1,\n  \"name\": \"test\",\n"), "{text}");
        assert!(text.contains("\"rects\": [[0, 2, 0, 2], [3, 4, 1, 2]]\n"), "{text}");
        assert!(text.contains("\"block_size\": {\"q\": 4, \"kv\": 4},\n"), "{text}");
        assert_eq!(from_json(&format!("\u{feff}{}", text.replace('\n', "\r\n"))).unwrap(), doc);
    }

    fn broken_at(pointer: &str, value: Value) -> String {
        let mut json: Value = serde_json::from_str(&to_json(&full())).unwrap();
        *json.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
        let errors = from_json(&json.to_string()).expect_err(pointer);
        errors.iter().map(Diagnostic::summary).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn mistakes_name_their_place() {
        let check = |pointer: &str, value: Value, words: &[&str]| {
            let reported = broken_at(pointer, value);
            assert!(words.iter().all(|w| reported.contains(w)), "{pointer}: {reported}");
        };
        check("/maskloom", 7.into(), &["document-version", "version 7", "versions 1 to 1"]);
        check("/name", 3.into(), &["`name` is 3; it must be a string"]);
        check("/settings/heads", "many".into(), &["`settings.heads`", "whole number"]);
        check("/settings/head_dim", (-1).into(), &["`settings.head_dim` is -1"]);
        check("/settings/batch", (1u64 << 40).into(), &["`settings.batch`"]);
        check("/settings/dtype", "f64".into(), &["bf16, f16, f32"]);
        check("/settings/backends/0", "flexx".into(), &["settings.backends[0]", "`flexx`", "flash_attention_2"]);
        check("/axes/q", "text 1099511627776".into(), &["`axes.q`", "2^30"]);
        check("/axes/q", "text 0".into(), &["`axes.q`", "greater than 0"]);
        check("/layers/1/content/kind", "paint".into(), &["layers[1].content.kind", "painted"]);
        check("/layers/1/content/strokes/0/rects/1/2", "x".into(), &["layers[1].content.strokes[0].rects[1][2]"]);
        check("/layers/1/content/strokes/0/rects/1", Value::Array(vec![]), &["a list of 0", "4 items"]);
        check("/layers/2/content/args/a", serde_json::json!({"some": 1}), &["layers[2].content.args.a", "null"]);
        let both = serde_json::json!({"mask": {"name": "causal"}, "more": 1});
        check("/layers/2/content/args/m", both, &["`layers[2].content.args.m.more` is not a field"]);
        check("/layers/2/content/args/t/tensor/dtype", "f8".into(), &["args.t.tensor.dtype` is `f8`", "bool, u8"]);
        check("/layers/2/combine", "neither".into(), &["`layers[2].combine` is `neither`", "and, or, and_not"]);
        check("/settings/device", "gpu".into(), &["`settings.device` is `gpu`", "\"cpu\" or {\"cuda\": ...} or null"]);
        check("/layers/2/content/tensors/table/data", "AAAA".into(), &["layers[2].content.tensors.table"]);
        check("/layers/2/content/tensors/table/shape/0", (1 << 29).into(), &["layers[2].content.tensors.table"]);
        check("/layers/2/id", 1.into(), &["two layers have the id 1"]);
        check("/scores/1/content/points/0/0", 99.into(), &["score 14", "must increase"]);
    }

    #[test]
    fn what_is_no_document_is_told() {
        let code = |text: &str| from_json(text).unwrap_err()[0].code.to_string();
        assert_eq!(code(""), "document-json");
        assert_eq!(code("def f(): pass"), "document-json");
        assert_eq!(code("{\"maskloom\": 1, \"maskloom\": 1}"), "document-json");
        let twice = from_json(&to_json(&full()).replace("\"seed\": 0", "\"seed\": 0, \"seed\": 1")).unwrap_err();
        assert!(twice[0].message.contains("the key `seed` occurs twice"), "{twice:?}");
        assert_eq!(code("[]"), "document-version");
        assert_eq!(code("{\"model_family\": \"flux\"}"), "document-version");
        assert_eq!(code(&"[".repeat(100_000)), "document-json");
        assert_eq!(code("{\"maskloom\": 1}"), "document-field");
        assert_eq!(code("{\"maskloom\": 1, \"surprise\": 2}"), "document-field");
    }

    #[test]
    fn the_schema_is_json_and_knows_every_kind() {
        let schema: Value = serde_json::from_str(&json_schema()).unwrap();
        let text = schema.to_string();
        for word in ["painted", "rectangle", "curve", "linked", "flash_attention_2", "and_not"] {
            assert!(text.contains(word), "{word}");
        }
        let ways = maskloom_testing::names::variants::<Combine>();
        assert_eq!(serde_json::json!(ways), serde_json::json!(Combine::ALL), "left: the variants; right: Combine::ALL");
    }

    proptest! {
        #![proptest_config(maskloom_testing::cases::kept_beside())]

        #[test]
        fn damaged_files_never_panic(at in 0usize..4000, with in ".{0,3}", cut in 0usize..40) {
            let text: Vec<char> = to_json(&full()).chars().collect();
            let at = at % text.len();
            let damaged: String = text[..at].iter().copied().chain(with.chars())
                .chain(text[(at + cut).min(text.len())..].iter().copied()).collect();
            if let Ok(doc) = from_json(&damaged) {
                prop_assert_eq!(from_json(&to_json(&doc)).unwrap(), doc);
            }
        }
    }
}
