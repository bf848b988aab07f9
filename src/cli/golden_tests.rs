//! What users and compilers read, held as whole texts: diagnostics, tables and pictures of the terminal.
//!
//! Invariant: nothing here depends on the machine, the time or a device. Must not judge what a text says: a reader of the
//! change does.

use super::{check, race, report};
use crate::base::Source;
use crate::document::compile::{BuiltIn, Compiled, compile};
use crate::document::from_document;
use crate::document::library;
use crate::ir::graph::ModKind;
use crate::problem::Problem;
use crate::python::{TraceRequest, trace};
use crate::tasks::run_file::RunFile;
use crate::words::{Language, Words};
use maskloom_testing::golden;

fn preset(name: &str) -> (Compiled, Problem) {
    let document = library::preset(name).expect("a preset").document().expect("it opens");
    let compiled = compile(&document, &BuiltIn);
    let problem = from_document(&document, &compiled).expect("a problem");
    (compiled, problem)
}

/// Usual mistakes, by a name for the file.
const WRONG: [(&str, ModKind, &str); 10] = [
    (
        "branch",
        ModKind::Mask,
        "def mask_mod(b, h, q_idx, kv_idx):\n    if q_idx > kv_idx:\n        return True\n    return False\n",
    ),
    ("and", ModKind::Mask, "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx and q_idx - kv_idx < 8\n"),
    ("chained", ModKind::Mask, "def mask_mod(b, h, q_idx, kv_idx):\n    return 0 <= q_idx - kv_idx < 8\n"),
    ("syntax", ModKind::Mask, "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx\n"),
    ("name", ModKind::Mask, "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_ixd\n"),
    (
        "function",
        ModKind::Score,
        "import torch\ndef score_mod(score, b, h, q_idx, kv_idx):\n    return torch.tahn(score)\n",
    ),
    ("not", ModKind::Mask, "def mask_mod(b, h, q_idx, kv_idx):\n    return not (q_idx == kv_idx)\n"),
    ("kind", ModKind::Mask, "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx\n"),
    (
        "shape",
        ModKind::Mask,
        "import torch\nT = torch.zeros(3, 4)\ndef mask_mod(b, h, q_idx, kv_idx):\n    return T[q_idx] > 0\n",
    ),
    (
        "argument",
        ModKind::Mask,
        "def make(window):\n    def mask_mod(b, h, q_idx, kv_idx):\n        return q_idx - kv_idx < window\n    return mask_mod\n",
    ),
];

#[test]
fn golden_diagnostics() {
    for (name, kind, text) in WRONG {
        let traced = trace(&TraceRequest::new(Source::new("mods.py", text), "", kind));
        let reported: Vec<String> =
            traced.diagnostics.iter().map(|d| d.render().trim_end().to_string() + "\n").collect();
        assert!(!reported.is_empty(), "{name}");
        golden::check(&format!("diagnostics/{name}.txt"), &reported.join("\n"));
    }
    golden::only("diagnostics", &WRONG.map(|(name, ..)| format!("{name}.txt")));
}

#[test]
fn golden_terminal() {
    let run = RunFile::from_json(include_str!("../../tests/data/run_version_1.json")).expect("an old run opens");
    let problem = from_document(&run.document, &compile(&run.document, &BuiltIn)).expect("a problem");
    let title = race::title(&run.document.name, problem.spec(), &run.report);
    golden::check("terminal/race.txt", &format!("{title}\n{}", race::render(&run.report)));
    golden::check("terminal/report.md", &report::markdown(&run, Words::of(Language::English)));
    let pictures = ["sliding_window", "prefix_lm", "bigbird", "sta_image"].map(|name| {
        let (compiled, problem) = preset(name);
        format!("{name}\n{}\n", check::small_picture(&compiled, &problem, 32, 16).join("\n"))
    });
    golden::check("terminal/pictures.txt", &pictures.join("\n"));
    golden::only("terminal", &["race.txt", "report.md", "pictures.txt"].map(String::from));
}
