//! `maskloom bench language`: the time from text to graph, and from graph to a dense mask, compared with PyTorch's.
//!
//! Invariant: only the text of files is kept between runs. Must not know masks' blocks or pictures.

use super::gym::{GYM, PLAIN, SCORES, Workload};
use super::peer::Peer;
use super::saves::{self, LONG};
use super::{Args, dense, gym, large, measure, row};
use crate::base::{Diagnostic, Source};
use crate::cli::out::{self, Failure};
use crate::document::compile::{BuiltIn, Compiler, Environment};
use crate::document::library;
use crate::ir::graph::{Mod, ModKind};
use crate::python::outline::outline;
use crate::python::{Limits, ModuleLoader, TraceRequest, trace};
use crate::tasks::environment::Files;
use crate::worker::machine;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The rows, and whether everything traced and agreed with PyTorch.
pub(super) fn rows(args: &Args) -> (Vec<Value>, bool) {
    let peer = Peer::start(machine::threads());
    let mut peer = match peer {
        Ok(peer) => Some(peer),
        Err(why) => {
            out::diagnostics(&[why]);
            None
        }
    };
    let modules = Modules(Files::new(
        Some(PathBuf::from("/nonexistent")),
        peer.as_ref().map(|p| p.folders.clone()).unwrap_or_default(),
    ));
    let wanted = |name: &str| name.contains(args.only.as_str());
    let with_gym = modules.0.module("attn_gym").is_some();
    if !with_gym {
        let why = Diagnostic::warning("no-attn-gym", "the masks of attention-gym are skipped: it is not installed");
        out::diagnostics(&[why.hint("pip install attn-gym beside torch")]);
    }
    let masks = || PLAIN.iter().chain(GYM.iter().filter(|_| with_gym)).filter(|w| wanted(w.name));
    let mut reported = Rows { rows: Vec::new(), right: true };
    reported.keystroke(args);
    let (rows, right) = large::rows(args);
    reported.rows.extend(rows);
    reported.right &= right;
    match saves::rows(args) {
        Ok(rows) => reported.rows.extend(rows),
        Err(why) => {
            if let Failure::Reported(why) = &why {
                out::diagnostics(why);
            }
            reported.right = false;
        }
    }
    let mut traced = Vec::new();
    for workload in masks() {
        traced.extend(reported.traced(workload, ModKind::Mask, &modules, args).map(|m| (workload, m)));
    }
    SCORES.iter().filter(|w| with_gym && wanted(w.name)).for_each(|workload| {
        reported.traced(workload, ModKind::Score, &modules, args);
    });
    reported.library(args);
    reported.dense(&traced, peer.as_mut(), args);
    (reported.rows, reported.right)
}

/// Imported modules from the user's Python; each file is read once.
struct Modules(Files);

impl ModuleLoader for Modules {
    fn load(&self, dotted: &str) -> Option<Source> {
        // the tracer knows the packages that it replaces
        dotted.starts_with("attn_gym").then(|| self.0.module(dotted)).flatten()
    }
}

/// Texts that differ by the typed character, so that nothing is cached.
#[derive(Default)]
struct Typed(usize);

impl Typed {
    /// The text with another comment at its end.
    fn one_more(&mut self, text: &str) -> String {
        self.0 += 1;
        format!("{text}\n# {}\n", self.0)
    }
}

struct Rows {
    rows: Vec<Value>,
    right: bool,
}

impl Rows {
    /// The cost of one more character: outline and trace of a long factory.
    fn keystroke(&mut self, args: &Args) {
        let mut typed = Typed::default();
        let mut work = || {
            let source = Source::new("long_factory.py", typed.one_more(LONG));
            (outline(&source), trace(&TraceRequest::new(source, "", ModKind::Mask)))
        };
        self.right &= work().1.result.is_some();
        let timing = measure(args.budget, work);
        let parameters = json!({ "step": "keystroke", "lines": LONG.lines().count(), "bar_ms": 10 });
        self.rows.push(row("long factory", &timing, parameters));
    }

    fn traced(&mut self, workload: &Workload, kind: ModKind, modules: &Modules, args: &Args) -> Option<Mod> {
        let entry = if kind == ModKind::Mask { "mask_mod" } else { "score_mod" };
        let mut typed = Typed::default();
        let mut work = || {
            let source = Source::new("workload.py", typed.one_more(workload.text));
            trace(&TraceRequest {
                loader: modules,
                limits: Limits::default(),
                ..TraceRequest::new(source, entry, kind)
            })
        };
        let first = work();
        let Some(mod_) = first.result else {
            out::diagnostics(&first.diagnostics);
            self.right = false;
            return None;
        };
        let timing = measure(args.budget / 5, work);
        let parameters = json!({ "step": "trace", "nodes": mod_.graph.nodes().len(), "bar_ms": 5 });
        self.rows.push(row(workload.name, &timing, parameters));
        Some(mod_)
    }

    fn library(&mut self, args: &Args) {
        for preset in library::presets().iter().filter(|p| p.name.contains(args.only.as_str())) {
            let Ok(document) = preset.document() else { continue };
            let compile = || Compiler::default().compile(&document, &BuiltIn);
            let compiled = compile();
            let nodes =
                [&compiled.mask, &compiled.score].into_iter().flatten().map(|m| m.graph.nodes().len()).sum::<usize>();
            self.right &= !compiled.has_errors();
            let timing = measure(args.budget / 10, compile);
            self.rows.push(row(preset.name, &timing, json!({ "step": "compile", "nodes": nodes })));
        }
    }

    fn dense(&mut self, masks: &[(&Workload, Mod)], mut peer: Option<&mut Peer>, args: &Args) {
        let mut ratios = Vec::new();
        for (workload, mask) in masks {
            let (row, ratio) = dense::compared(workload, mask, peer.as_deref_mut(), args);
            self.right &= peer.is_none() || ratio.is_some();
            if workload.name.starts_with("gym") {
                ratios.extend(ratio);
            }
            self.rows.push(row);
        }
        if !ratios.is_empty() {
            let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
            let name = format!("geometric mean of {}", ratios.len());
            self.rows.push(json!({ "name": name, "step": "dense", "tokens": gym::LENGTH, "ratio": mean,
                                   "torch": peer.map(|p| p.version.clone()) }));
        }
    }
}
