//! PyTorch modules that Maskloom exported, possibly edited since: their mods with captured tensors, lengths and shape.
//!
//! Invariant: a module is recognised by its parts, not by its name; a mod is its present text. Must not know how
//! modules are written, beyond the parts named here.

use super::Imported;
use crate::base::tensor::Data;
use crate::base::{BlockSize, DType, Diagnostic, HostTensor};
use crate::document::model::*;
use crate::worker::{files, tensors};
use base64::Engine;
use std::collections::BTreeMap;
use std::path::Path;

/// Reads an exported module. None: it is other code. Errors: what of it cannot be read.
pub(super) fn module(path: &Path) -> Result<Option<Imported>, Diagnostic> {
    let text = files::read_text(path)?;
    let number = |name: &str| constant(&text, name)?.parse::<usize>().ok();
    let (Some(q_len), Some(kv_len), true) = (number("Q_LEN"), number("KV_LEN"), text.contains("def make_mods(device"))
    else {
        return Ok(None);
    };
    let parts = Parts::of(path, &text)?;
    let layer = |name: &str| Some(parts.code(name, parts.mods.get(name)?));
    let mask = layer("mask_mod").map(|code| Layer {
        id: 1,
        name: "mask_mod".into(),
        enabled: true,
        combine: Combine::And,
        heads: None,
        content: MaskContent::Text(code),
    });
    let score = layer("score_mod").map(|code| ScoreLayer {
        id: 2,
        name: "score_mod".into(),
        enabled: true,
        content: ScoreContent::Text(code),
    });
    let name = text.trim_start().trim_start_matches('"').split([':', '\n']).next().unwrap_or("imported");
    let axes = Axes { q: Axis::tokens(q_len), kv: (kv_len != q_len).then(|| Axis::tokens(kv_len)) };
    let document = Document {
        about: format!("Read from {}.", path.display()),
        layers: mask.into_iter().collect(),
        scores: score.into_iter().collect(),
        ..Document::new(name.trim(), axes, settings(&text))
    };
    Ok(Some(Imported { document, notes: Vec::new() }))
}

/// The text after `NAME = ` at the start of a line.
fn constant<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    // with a type or without
    let value = |rest: &'a str| if rest.starts_with([' ', ':']) { Some(rest.split_once(" = ")?.1) } else { None };
    text.lines().find_map(|line| value(line.strip_prefix(name)?)).map(str::trim)
}

/// Heads and widths, which only the docstring contains, and the constants.
fn settings(text: &str) -> Settings {
    let designed = text.lines().find_map(|line| line.strip_prefix("Designed for ")).unwrap_or("");
    let words: Vec<&str> = designed.split_whitespace().collect();
    let before = |word: &str| words.iter().position(|w| *w == word).and_then(|at| words.get(at.checked_sub(1)?));
    let number = |word: Option<&&str>| word.and_then(|w| w.parse::<usize>().ok()).filter(|n| *n > 0);
    // "24 heads of 128 over", or "32 query heads over 8 kv heads of 128 over"
    let kv_heads = number(before("kv"));
    let heads = number(if kv_heads.is_some() { before("query") } else { before("heads") }).unwrap_or(8);
    let at_of = words.iter().rposition(|w| *w == "of");
    let head_dim = number(at_of.and_then(|at| words.get(at + 1))).unwrap_or(64);
    let mut settings = Settings::new(heads, head_dim);
    settings.kv_heads = kv_heads.unwrap_or(heads);
    settings.batch = constant(text, "BATCH").and_then(|n| n.parse().ok()).unwrap_or(1);
    let scale = constant(text, "SCALE").and_then(|x| x.parse::<f64>().ok());
    settings.scale = scale.filter(|x| (x * (head_dim as f64).sqrt() - 1.0).abs() > 1e-12);
    let block = constant(text, "BLOCK_SIZE").and_then(tuple).filter(|b| b.len() == 2 && b.iter().all(|n| *n > 0));
    if let Some(&[q, kv]) = block.as_deref() {
        settings.block_size = BlockSize { q, kv };
    }
    settings
}

/// `(2, 3)` or `(2,)`.
fn tuple(text: &str) -> Option<Vec<usize>> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    inner.split(',').map(str::trim).filter(|n| !n.is_empty()).map(|n| n.parse().ok()).collect()
}

/// The function that makes the mods, taken apart.
#[derive(Default)]
struct Parts {
    /// Text of each mod.
    mods: BTreeMap<String, String>,
    /// Statements that make small tensors.
    statements: Vec<(String, String)>,
    tensors: BTreeMap<String, HostTensor>,
}

impl Parts {
    fn of(path: &Path, text: &str) -> Result<Parts, Diagnostic> {
        let mut parts = Parts::default();
        let mut stored = None;
        // at the top where nothing is captured, else in `_mods`
        let at_the_top = text.contains("\ndef mask_mod(") || text.contains("\ndef score_mod(");
        let indented = !at_the_top && text.contains("\ndef _mods(device");
        // before 0.2 the last constant was another one
        let last = if text.contains("\nENABLE_GQA = ") { "\nENABLE_GQA = " } else { "\nSCALE = " };
        let start = if indented { "\ndef _mods(device" } else { last };
        let end = if indented { "\n    return mask_mod, score_mod\n" } else { "\ndef make_mods(device" };
        let broken = |what: &str| {
            Diagnostic::error("import-module", format!("{} cannot be read: {what}", path.display()))
                .hint("open the design next to it (NAME.maskloom.json), or paste its mods as code")
        };
        let body = text.split_once(start).and_then(|(_, rest)| rest.split_once(end));
        let body = body.ok_or_else(|| broken("its mods are not at the place of an export"))?.0;
        let body: Vec<&str> =
            body.lines().map(|line| if indented { line.strip_prefix("    ").unwrap_or(line) } else { line }).collect();
        let mut at = 0;
        while at < body.len() {
            let to = at + 1 + body[at + 1..].iter().take_while(|l| l.starts_with([' ', ')']) || l.is_empty()).count();
            let block = body[at..to].join("\n");
            at = to;
            if let Some(name) = ["mask_mod", "score_mod"].iter().find(|n| block.starts_with(&format!("def {n}("))) {
                parts.mods.insert(name.to_string(), block.trim_end().to_string() + "\n");
            } else if block.starts_with("stored = ") {
                stored = Some(tensors::read(&beside(path, &block).ok_or_else(|| broken("its tensors have no file"))?)?);
            } else if let Some((name, value)) = block.split_once(" = ") {
                parts.take(name, value.trim(), stored.as_deref()).map_err(|what| broken(&what))?;
            }
        }
        Ok(parts)
    }

    /// One assignment: a tensor of the file, a packed one, or an expression that the tracer reads itself.
    fn take(&mut self, name: &str, value: &str, stored: Option<&[(String, HostTensor)]>) -> Result<(), String> {
        // a learned tensor: the caller's value, otherwise the designed one; in parentheses over several lines
        let inner = value.strip_prefix('(').and_then(|v| v.strip_suffix(')')).map(str::trim);
        let value = inner.filter(|v| v.starts_with("learned[")).unwrap_or(value);
        let value = match value.strip_prefix("learned[") {
            Some(rest) => rest.split_once(" else ").map_or(value, |(_, designed)| designed),
            None => value,
        };
        if let Some(key) = value.strip_prefix("stored[\"").and_then(|v| v.strip_suffix("\"]")) {
            let found = stored.and_then(|all| all.iter().find(|(name, _)| name == key));
            let (_, tensor) = found.ok_or_else(|| format!("its safetensors file contains no `{key}`"))?;
            self.tensors.insert(name.to_string(), tensor.clone());
        } else if let Some(packed) = value.strip_prefix("_decoded(") {
            let tensor = decoded(packed).ok_or_else(|| format!("the packed tensor `{name}` is damaged"))?;
            self.tensors.insert(name.to_string(), tensor);
        } else if value.starts_with("torch.") {
            let plain = value.replace(", device=device", "");
            // an argument on a line of its own
            let lines: Vec<&str> = plain.lines().filter(|line| line.trim() != "device=device,").collect();
            self.statements.push((name.to_string(), lines.join("\n")));
        }
        Ok(())
    }

    /// A mod with the names that it reads.
    fn code(&self, entry: &str, text: &str) -> TextCode {
        let named = |name: &str| {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            text.split(|c| !word(c)).any(|w| w == name)
        };
        let mut source = "import torch\n\n".to_string();
        for (name, value) in self.statements.iter().filter(|(name, _)| named(name)) {
            source.push_str(&format!("{name} = {value}\n"));
        }
        source.push_str(&format!("\n{text}"));
        let tensors =
            self.tensors.iter().filter(|(name, _)| named(name)).map(|(n, t)| (n.clone(), t.clone())).collect();
        TextCode { source, entry: entry.to_string(), args: BTreeMap::new(), tensors }
    }
}

/// The module's file of tensors, by the name in the module.
fn beside(path: &Path, block: &str) -> Option<std::path::PathBuf> {
    let name = block.split_once("with_name(\"")?.1.split_once('"')?.0;
    // a name alone: the module reads no other folder either
    let plain = !name.contains(['/', '\\']) && name.ends_with(".safetensors");
    plain.then(|| path.with_file_name(name))
}

/// `"base64" "..." torch.DTYPE, SHAPE).to(device)`
fn decoded(packed: &str) -> Option<HostTensor> {
    let bytes: String = packed.split('"').skip(1).step_by(2).collect();
    let bytes = base64::engine::general_purpose::STANDARD.decode(bytes).ok()?;
    let (dtype, shape) = packed.rsplit('"').next()?.split_once("torch.")?.1.split_once(',')?;
    let close = shape.find(')')?;
    let shape = tuple(&shape[..=close])?;
    let dtype = DType::ALL.into_iter().find(|d| d.torch_name() == dtype.trim())?;
    HostTensor::new(shape, Data::from_le_bytes(dtype, &bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::from_document;
    use crate::document::library;
    use crate::export::{ModuleOptions, torch_module_with};
    use crate::ir::cell::{Cell, eval};

    /// Every preset's module comes back with the same cells, scores and shape.
    #[test]
    fn exported_modules_come_back() {
        for preset in library::presets() {
            let document = preset.document().expect("it loads");
            let problem = from_document(&document, &compile(&document, &BuiltIn)).expect("compiles");
            let folder = tempfile::tempdir().expect("a folder");
            let options =
                ModuleOptions { name: "mine".into(), title: "Mine: a mask.".into(), ..ModuleOptions::default() };
            for file in torch_module_with(&problem, &options) {
                std::fs::write(folder.path().join(&file.name), &file.bytes).expect("written");
            }
            let back = module(&folder.path().join("mine.py")).expect(preset.name).expect(preset.name).document;
            let compiled = compile(&back, &BuiltIn);
            assert!(!compiled.has_errors(), "{}: {:?}", preset.name, compiled.all_diagnostics().collect::<Vec<_>>());
            let again = from_document(&back, &compiled).expect("compiles");
            let shape = |p: &crate::problem::Problem| {
                (p.lengths(), p.heads, p.kv_heads, p.head_dim, p.block_size, (p.scale() * 1e9).round())
            };
            assert_eq!(shape(&again), shape(&problem), "{}", preset.name);
            assert_eq!(
                (again.mask.is_some(), again.score.is_some()),
                (problem.mask.is_some(), problem.score.is_some())
            );
            for i in 0..200usize {
                let at = |extent: usize, factor: usize| (i * factor % extent) as i64;
                let (q_idx, kv_idx) = (at(problem.q_len, 7919), at(problem.kv_len, 104_729));
                let cell = Cell { b: 0, h: at(problem.heads, 1), q_idx, kv_idx, score: 0.5 };
                for (ours, theirs) in [(&problem.mask, &again.mask), (&problem.score, &again.score)] {
                    let value = |m: &std::sync::Arc<crate::ir::graph::Mod>| format!("{:?}", eval(m, &cell));
                    assert_eq!(ours.as_ref().map(value), theirs.as_ref().map(value), "{} {cell:?}", preset.name);
                }
            }
        }
    }

    #[test]
    fn other_code_is_left_alone_and_damage_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.py");
        std::fs::write(&path, "def causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n").expect("written");
        assert_eq!(module(&path).expect("read"), None);
        let stored = "Q_LEN = 4\nKV_LEN = 4\n\ndef _mods(device):\n    stored = load_file(Path(__file__).with_name(\"b.safetensors\"))\n    t = stored[\"t\"]\n\n    return mask_mod, score_mod\n\ndef make_mods(device):\n    pass\n";
        std::fs::write(&path, stored).expect("written");
        assert_eq!(module(&path).unwrap_err().code, "no-such-file");
        std::fs::write(
            &path,
            stored
                .replace("stored[\"t\"]", "_decoded(\"??\", torch.int8, (1,)).to(device)")
                .replace("    stored = load_file(Path(__file__).with_name(\"b.safetensors\"))\n", ""),
        )
        .expect("written");
        assert_eq!(module(&path).unwrap_err().code, "import-module");
    }
}
