//! A case's mods, traced: functions of the attn-gym package and texts of the case.
//!
//! Invariant: another package's text is read in its place and never stored. Must not know what the mods are checked
//! for.

use super::cases::{Arrays, Case, ModSpec};
use crate::analysis::lint::Sizes;
use crate::analysis::settled;
use crate::base::{Diagnostic, HostTensor, Source};
use crate::document::compile::Environment;
use crate::ir::graph::{Mod, ModKind};
use crate::python::{Arg, Call, Limits, ModuleLoader, TraceRequest, trace};
use crate::tasks::environment::Files;
use crate::worker::user_python;
use serde_json::Value;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Finds the modules that cases name: in `--package DIR`, else in the user's Python.
pub(super) struct Packages {
    given: Option<PathBuf>,
    files: OnceCell<Files>,
    /// Top-level packages that cases name; nothing else is looked up.
    tops: Vec<String>,
}

impl Packages {
    /// For these cases.
    pub(super) fn new(given: Option<&Path>, cases: &[Case]) -> Packages {
        let specs = cases.iter().flat_map(|c| [&c.mask, &c.score]).flatten();
        let mut tops = Vec::new();
        specs.for_each(|s| gym_tops(&serde_json::json!({ "gym": s.gym, "kwargs": s.kwargs }), &mut tops));
        Packages { given: given.map(Path::to_path_buf), files: OnceCell::new(), tops }
    }

    fn files(&self) -> &Files {
        self.files.get_or_init(|| {
            let folders = match &self.given {
                Some(folder) => vec![folder.clone()],
                None => user_python::find().map(|p| p.folders).unwrap_or_default(),
            };
            // no module of the current folder may replace a package's
            Files::new(Some(PathBuf::from("/nonexistent")), folders)
        })
    }
}

/// Top-level names of every `"gym"` in a value.
fn gym_tops(value: &Value, tops: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(top) = fields.get("gym").and_then(Value::as_str).and_then(|g| g.split(['.', ':']).next())
                && !tops.iter().any(|t| t == top)
            {
                tops.push(top.to_string());
            }
            fields.values().for_each(|v| gym_tops(v, tops));
        }
        Value::Array(items) => items.iter().for_each(|v| gym_tops(v, tops)),
        _ => {}
    }
}

impl ModuleLoader for Packages {
    fn load(&self, dotted: &str) -> Option<Source> {
        let top = dotted.split('.').next()?;
        self.tops.iter().any(|t| t == top).then(|| self.files().module(dotted)).flatten()
    }
}

/// Mask and score mod of a case. Errors: all messages of the tracer.
pub(super) fn mods(
    case: &Case,
    arrays: &Arrays,
    packages: &Packages,
) -> Result<(Option<Mod>, Option<Mod>), Vec<Diagnostic>> {
    let mut captured = Vec::new();
    for name in &case.captured {
        captured.push((name.clone(), arrays.get(&format!("{}.cap.{name}", case.name)).map_err(|d| vec![d])?));
    }
    let one =
        |spec: &Option<ModSpec>, kind| spec.as_ref().map(|s| traced(s, kind, case, &captured, packages)).transpose();
    Ok((one(&case.mask, ModKind::Mask)?, one(&case.score, ModKind::Score)?))
}

fn traced(
    spec: &ModSpec,
    kind: ModKind,
    case: &Case,
    captured: &[(String, HostTensor)],
    packages: &Packages,
) -> Result<Mod, Vec<Diagnostic>> {
    let found = Found::of(spec, &case.name, captured, packages).map_err(|d| vec![d])?;
    let globals = if spec.gym.is_some() { Vec::new() } else { captured.to_vec() };
    let request = TraceRequest {
        source: found.source,
        entry: found.entry,
        kind,
        args: found.args,
        globals,
        call: if found.call { Call::Factory } else { Call::Mod },
        loader: packages,
        limits: Limits::default(),
    };
    let traced = trace(&request);
    let Some(made) = traced.result else { return Err(traced.diagnostics) };
    let others: Vec<Arc<Mod>> = traced.doubts.into_iter().map(Arc::new).collect();
    let sizes = Sizes { batch: case.B, heads: case.H, lengths: case.lengths().map_err(|d| vec![d])? };
    let notes = traced.diagnostics.iter().filter(|d| d.code == "last-bit");
    let open: Vec<Diagnostic> =
        notes.filter_map(|note| settled::reported(note, &made, &others, sizes)).filter(Diagnostic::is_error).collect();
    if open.is_empty() { Ok(made) } else { Err(open) }
}

/// Where a mod's text is and how it is called.
struct Found {
    source: Source,
    entry: String,
    call: bool,
    args: Vec<(String, Arg)>,
}

impl Found {
    fn of(
        spec: &ModSpec,
        case: &str,
        captured: &[(String, HostTensor)],
        packages: &Packages,
    ) -> Result<Found, Diagnostic> {
        let mut args = Vec::new();
        for (name, value) in &spec.kwargs {
            args.push((name.clone(), argument(value, case, captured, packages)?));
        }
        if let Some(gym) = &spec.gym {
            let (module, function) =
                gym.split_once(':').ok_or_else(|| bad_spec(case, &format!("`{gym}` is not MODULE:FUNCTION")))?;
            let source = packages.load(module).ok_or_else(|| no_module(module))?;
            return Ok(Found { source, entry: function.into(), call: spec.factory.unwrap_or(true), args });
        }
        let (Some(text), Some(entry)) = (&spec.source, &spec.entry) else {
            return Err(bad_spec(case, "a mod has `gym`, or `source` and `entry`"));
        };
        let source = Source::new(format!("{case}.py"), text.as_str());
        let call = spec.factory.unwrap_or(false) || !args.is_empty();
        Ok(Found { source, entry: entry.clone(), call, args })
    }
}

fn argument(
    value: &Value,
    case: &str,
    captured: &[(String, HostTensor)],
    packages: &Packages,
) -> Result<Arg, Diagnostic> {
    let inner = |v: &Value| argument(v, case, captured, packages);
    Ok(match value {
        Value::Null => Arg::None,
        Value::Bool(b) => Arg::Bool(*b),
        Value::Number(n) => match n.as_i64() {
            Some(int) => Arg::Int(int),
            None => Arg::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(s) => Arg::Str(s.clone()),
        Value::Array(items) => Arg::Tuple(items.iter().map(inner).collect::<Result<_, _>>()?),
        Value::Object(fields) => match (fields.get("tensor"), fields.get("mod")) {
            (Some(name), None) => {
                let found = captured.iter().find(|(n, _)| Some(n.as_str()) == name.as_str());
                Arg::Tensor(found.ok_or_else(|| bad_spec(case, &format!("it captures no tensor {name}")))?.1.clone())
            }
            (None, Some(spec)) => {
                let spec: ModSpec = serde_json::from_value(spec.clone()).map_err(|e| bad_spec(case, &e.to_string()))?;
                let Found { source, entry, call, args } = Found::of(&spec, case, captured, packages)?;
                Arg::Mod { source, entry, call, args }
            }
            (None, None) => Arg::Python(literal(value)),
            _ => return Err(bad_spec(case, "an argument is a value, {\"tensor\": n} or {\"mod\": spec}")),
        },
    })
}

/// A value as Python writes it: JSON but for three words.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(on) => if *on { "True" } else { "False" }.into(),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let pairs = fields.iter().map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), literal(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn bad_spec(case: &str, why: &str) -> Diagnostic {
    Diagnostic::error("conform-cases", format!("case {case}: {why}")).hint("fix the file of cases")
}

fn no_module(module: &str) -> Diagnostic {
    let top = module.split('.').next().unwrap_or(module);
    Diagnostic::error("conform-package", format!("the package `{top}` (module {module}) is not found"))
        .hint("name the folder that contains it: --package DIR, or pip install attn-gym in the Python that MASKLOOM_PYTHON names")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_that_cases_name_are_looked_up() {
        let folder = tempfile::tempdir().unwrap();
        for package in ["gym", "torch"] {
            std::fs::create_dir(folder.path().join(package)).unwrap();
            std::fs::write(folder.path().join(package).join("__init__.py"), package).unwrap();
        }
        let case = r#"[{"name": "x", "score": null, "B": 1, "H": 1, "Hkv": 1, "q_len": 3, "kv_len": 5, "head_dim": 0,
            "mask": {"source": "s", "entry": "m", "kwargs": {"inner": {"mod": {"gym": "gym.masks:causal"}}}}}]"#;
        let cases: Vec<Case> = serde_json::from_str(case).unwrap();
        let packages = Packages::new(Some(folder.path()), &cases);
        assert_eq!(packages.load("gym").map(|s| s.text.to_string()).as_deref(), Some("gym"));
        assert!(packages.load("torch").is_none() && packages.load("gym.none").is_none());
    }
}
