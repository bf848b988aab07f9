//! The kind of a file or a pasted text: a document, a run, FlexAttention code, a trainer's configuration, tensors.
//!
//! Invariant: decided by content if possible, otherwise by extension; reading changes nothing. Must not know the
//! further use.

use crate::analysis::raster::{self, Region};
use crate::base::{Control, Diagnostic};
use crate::document::compile::{BuiltIn, Environment, compile};
use crate::document::model::Document;
use crate::document::{file, library, pasted};
use crate::tasks::environment::Files;
use crate::tasks::imports::{self, Imported};
use crate::tasks::lab;
use crate::worker::seen::Seen;
use crate::worker::{files, leftovers};
use serde_json::Value;
use std::path::Path;

/// The content of a file.
#[derive(Debug)]
pub(crate) enum Opened {
    /// With what its text is, as a file holds it.
    Document(Box<Document>, Seen),
    /// A run file's text.
    Run(String),
    /// FlexAttention code.
    Code(String),
    /// A trainer's configuration.
    Config(String),
    /// A mask of another program's, as a document that has no file yet.
    Imported(Box<Imported>),
    /// A capture of a model's q, k and v.
    Capture,
    /// Names and shapes of the tensors of a safetensors file.
    Tensors(Vec<(String, Vec<usize>)>),
}

/// Largest file of tensors whose header is read here; the values are read by the worker.
const MAX_HEADER: u64 = 100 << 20;

/// Reads a file. Errors: its first problem.
pub(crate) fn open(path: &Path) -> Result<Opened, Vec<Diagnostic>> {
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    if extension == "safetensors" && lab::is_capture(path).map_err(|why| vec![why])? {
        return Ok(Opened::Capture);
    }
    if let Some(imported) = imports::import(path).map_err(|why| vec![why])? {
        return Ok(Opened::Imported(Box::new(imported)));
    }
    if extension == "safetensors" {
        let found = tensors(path).map_err(|why| vec![why])?;
        // fewer cannot be q, k and v
        return match found.len() {
            0..3 => Err(vec![imports::no_mask(path, found.iter().map(|(name, shape)| (name.as_str(), &shape[..])))]),
            _ => Ok(Opened::Tensors(found)),
        };
    }
    let text = files::read_text(path).map_err(|why| vec![why])?;
    match extension.as_str() {
        "json" if !starts_object(&text) => Err(vec![no_object(path, &text)]),
        "py" => code(path, text),
        _ => match recognise(&text)? {
            Opened::Code(text) => code(path, text),
            other => Ok(other),
        },
    }
}

/// Reads a file of another machine, whose text has come. Errors: its first problem.
pub(crate) fn open_bytes(path: &Path, bytes: &[u8]) -> Result<Opened, Vec<Diagnostic>> {
    let (folder, _held) = leftovers::folder_in(&std::env::temp_dir()).map_err(|e| {
        vec![Diagnostic::error("no-temporary-folder", format!("the file has no place here: {e}")).hint("set TMPDIR")]
    })?;
    // its name says its kind, and importers read files
    let here = folder.path().join(path.file_name().unwrap_or_default());
    files::save(&here, bytes).map_err(|why| vec![why])?;
    open(&here)
}

/// Code that a layer can be made of; another text would become a broken one.
fn code(path: &Path, text: String) -> Result<Opened, Vec<Diagnostic>> {
    // a module may bring its mods along by importing them
    let python = path.extension().is_some_and(|e| e == "py") && text.contains("import");
    if python || !pasted::read(&text).mods.is_empty() {
        return Ok(Opened::Code(text));
    }
    let message = format!("{} contains no mask_mod or score_mod", path.display());
    Err(vec![Diagnostic::error("no-mod", message).hint(
        "a mod is a function of (b, h, q_idx, kv_idx) or (score, b, h, q_idx, kv_idx), or a function that returns one",
    )])
}

fn starts_object(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('{')
}

fn no_object(path: &Path, text: &str) -> Diagnostic {
    let what = if text.trim().is_empty() { "is empty" } else { "does not begin with `{`" };
    Diagnostic::error("document-json", format!("{} {what}: it is not a document, run or configuration", path.display()))
        .hint("was another file meant? FlexAttention code is read from .py files or pasted")
}

/// Reads a file that is stated to be a trainer's configuration: any other kind counts as one, and its mistakes are
/// reported as those of a configuration.
pub(crate) fn open_config(path: &Path) -> Result<Opened, Vec<Diagnostic>> {
    open(path).or_else(|why| match files::read_text(path) {
        Ok(text) if path.extension().is_none_or(|e| e != "py") => Ok(Opened::Config(text)),
        _ => Err(why),
    })
}

/// The kind of a text.
pub(crate) fn recognise(text: &str) -> Result<Opened, Vec<Diagnostic>> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if !starts_object(text) {
        return Ok(Opened::Code(text.to_string()));
    }
    let value: Value = match serde_json::from_str(start) {
        Ok(value) => value,
        // the document reader reports the place
        Err(_) => return document_of(text),
    };
    let has = |name: &str| value.get(name).is_some();
    if has("maskloom_run") {
        return Ok(Opened::Run(text.to_string()));
    }
    let trainer = ["attention_mechanism", "--attention_mechanism", "model_family", "--model_family", "model_type"];
    if !has("maskloom") && trainer.iter().any(|name| has(name)) {
        return Ok(Opened::Config(text.to_string()));
    }
    document_of(text)
}

fn document_of(text: &str) -> Result<Opened, Vec<Diagnostic>> {
    file::from_json(text).map(|document| Opened::Document(Box::new(document), Seen::of(text.as_bytes())))
}

/// Reads a document's file again. Errors: it is none any more.
pub(crate) fn document(path: &Path) -> Result<(Box<Document>, Seen), Vec<Diagnostic>> {
    let text = files::read_text(path).map_err(|why| vec![why])?;
    Ok((Box::new(file::from_json(&text)?), Seen::of(text.as_bytes())))
}

/// Names and shapes in a safetensors file, read from its header alone.
pub(crate) fn tensors(path: &Path) -> Result<Vec<(String, Vec<usize>)>, Diagnostic> {
    use std::io::Read;
    let broken = |why: String| {
        Diagnostic::error("safetensors", format!("{} is not a safetensors file: {why}", path.display()))
            .hint("write it with safetensors.torch.save_file({\"q\": q, \"k\": k, \"v\": v}, path)")
    };
    let mut file = std::fs::File::open(path).map_err(|e| {
        Diagnostic::error("cannot-read", format!("cannot read {}: {e}", path.display())).hint("check the path")
    })?;
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(|_| broken("it is shorter than 8 bytes".into()))?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER {
        return Err(broken(format!("its header would have {length} bytes")));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header).map_err(|_| broken("its header is cut short".into()))?;
    let header: Value = serde_json::from_slice(&header).map_err(|e| broken(e.to_string()))?;
    let Some(entries) = header.as_object() else { return Err(broken("its header is not an object".into())) };
    let shape = |v: &Value| -> Option<Vec<usize>> {
        v.get("shape")?.as_array()?.iter().map(|n| n.as_u64().map(|n| n as usize)).collect()
    };
    let named = |(name, v): (&String, &Value)| Some((name.clone(), shape(v)?));
    Ok(entries.iter().filter(|(name, _)| *name != "__metadata__").filter_map(named).collect())
}

/// A preset's kept cells as a small picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Thumbnail {
    /// Rows and columns of pixels, in the proportions of the mask.
    pub size: [usize; 2],
    /// The kept share of each pixel, row by row.
    pub pixels: Vec<f32>,
}

/// A preset's mask, its longer side `side` pixels. Errors: it cannot be drawn, and why.
pub(crate) fn thumbnail(preset: &str, side: usize) -> Result<Thumbnail, Diagnostic> {
    let unknown = || Diagnostic::error("no-such-preset", format!("there is no preset named `{preset}`"));
    let document = library::preset(preset).ok_or_else(unknown)?.document().map_err(|why| why[0].clone())?;
    drawn(&document, &BuiltIn, side)
}

/// The same of a document's file.
pub(crate) fn thumbnail_of_file(path: &Path, side: usize) -> Result<Thumbnail, Diagnostic> {
    match open(path) {
        Ok(Opened::Document(document, _)) => {
            drawn(&document, &Files::new(path.parent().map(Into::into), Vec::new()), side)
        }
        Ok(_) => {
            Err(Diagnostic::error("document", "the file is no longer a document").hint("open it to see its content"))
        }
        Err(why) => Err(why[0].clone()),
    }
}

fn drawn(document: &Document, environment: &dyn Environment, side: usize) -> Result<Thumbnail, Diagnostic> {
    let lengths = document.axes.lengths()?;
    let compiled = compile(document, environment);
    if let Some(why) = compiled.all_diagnostics().find(|d| d.is_error()) {
        return Err(why.clone());
    }
    let size = lengths.in_pixels(side);
    let region = Region::whole([0, 0], lengths, size);
    let pixels = raster::picture(compiled.mask.as_ref(), &region, &Control::new()).pixels;
    Ok(Thumbnail { size, pixels })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(opened: Result<Opened, Vec<Diagnostic>>) -> String {
        match opened {
            Ok(Opened::Document(d, _)) => format!("document {}", d.name),
            Ok(Opened::Run(_)) => "run".into(),
            Ok(Opened::Code(_)) => "code".into(),
            Ok(Opened::Config(_)) => "config".into(),
            Ok(Opened::Imported(i)) => format!("mask {}", i.document.name),
            Ok(Opened::Capture) => "capture".into(),
            Ok(Opened::Tensors(t)) => format!("tensors {t:?}"),
            Err(why) => why[0].code.to_string(),
        }
    }

    #[test]
    fn texts_are_recognised_by_what_they_hold() {
        for preset in library::presets().iter().take(3) {
            assert!(word(recognise(preset.text)).starts_with("document "));
        }
        assert_eq!(word(recognise("def causal(b, h, q, k):\n    return q >= k\n")), "code");
        assert_eq!(word(recognise("lambda b, h, q, k: q >= k")), "code");
        assert_eq!(word(recognise("{\"model_family\": \"wan\", \"attention_mechanism\": \"diffusers\"}")), "config");
        assert_eq!(word(recognise("{\"maskloom_run\": 1}")), "run");
        assert_eq!(word(recognise("{\"maskloom\": 99}")), "document-version");
        assert_eq!(word(recognise("{\"some\": 1}")), "document-version");
        assert_eq!(word(recognise("{\"maskloom\": 1,,")), "document-json");
    }

    #[test]
    fn a_file_that_holds_nothing_of_ours_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text, wanted) in [
            ("empty.json", "", "document-json"),
            ("blank.json", " \n", "document-json"),
            ("list.json", "[1, 2]", "document-json"),
            ("code.json", "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n", "document-json"),
            ("notes.txt", "buy milk", "no-mod"),
            ("helper.py", "def double(x):\n    return 2 * x\n", "no-mod"),
            ("empty.py", "", "no-mod"),
            ("mod.txt", "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n", "code"),
            ("imported.py", "from attn_gym.masks import causal_mask\n", "code"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            assert_eq!(word(open(&path)), wanted, "{name}");
        }
    }

    #[test]
    fn a_file_opened_as_a_configuration_is_told_of_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        for (text, plainly, asked) in [
            ("{\"seed\": 1}", "document-version", "config"),
            ("{\"a\": 1,, }", "document-json", "config"),
            ("{\"model_family\": \"wan\"}", "config", "config"),
            ("{\"maskloom_run\": 1}", "run", "run"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(
                (word(open(&path)), word(open_config(&path))),
                (plainly.to_string(), asked.to_string()),
                "{text}"
            );
        }
        assert_eq!(word(open_config(&folder.path().join("no.json"))), "no-such-file");
    }

    #[test]
    fn headers_of_safetensors_are_read_and_garbage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        let one = |name: &str, at: usize| {
            format!(r#""{name}":{{"dtype":"F32","shape":[1,2,3,4],"data_offsets":[{at},{}]}}"#, at + 96)
        };
        let qkv = [one("q", 0), one("k", 96), one("v", 192)].join(",");
        let header = format!(r#"{{"__metadata__":{{"a":"b"}},{qkv}}}"#);
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend([0; 288]);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(word(open(&path)), "tensors [(\"k\", [1, 2, 3, 4]), (\"q\", [1, 2, 3, 4]), (\"v\", [1, 2, 3, 4])]");
        let bias = format!("{{{}}}", one("bias", 0));
        assert_eq!(word(open(&maskloom_testing::repository().join("tests/data/captures/lm.safetensors"))), "capture");
        let few = [&(bias.len() as u64).to_le_bytes()[..], bias.as_bytes(), &[0x40; 96]].concat();
        std::fs::write(&path, few).unwrap();
        assert_eq!(word(open(&path)), "import-no-mask");
        let cases = [
            (&b"abc"[..], "safetensors"),
            (&u64::MAX.to_le_bytes()[..], "safetensors"),
            (&bytes[..20], "capture-cut-off"),
            (&bytes[..bytes.len() - 9], "capture-cut-off"),
            (&[0; 64][..], "capture-unfinished"),
        ];
        for (bad, code) in cases {
            std::fs::write(&path, bad).unwrap();
            assert_eq!(word(open(&path)), code);
        }
        assert_eq!(word(open(&folder.path().join("no.json"))), "no-such-file");
    }
}
