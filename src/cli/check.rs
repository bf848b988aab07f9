//! `maskloom check`: traces code, counts the cells that it keeps, and evaluates one cell.
//!
//! Invariant: the report is computed from the graph alone; no device is used. Must not know workers.

use super::opened::{self, CodeArgs, Opened};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::remarks::Remark;
use super::table::{self, Table};
use super::watched::watched;
use super::{arguments, picture, verdict};
use crate::analysis::block_mask::{BlockMask, Stats};
use crate::analysis::raster::{Raster, Region};
use crate::analysis::{access, intent, lint};
use crate::base::{Diagnostic, Severity};
use crate::document::compile::Compiled;
use crate::document::from_document;
use crate::ir::cell::{Cell, eval};
use crate::ir::graph::{Depends, Input, Mod, ModKind};
use crate::ir::print;
use crate::ir::steps::steps;
use crate::problem::Problem;
use crate::python::Chosen;
use crate::words::{Language, Value as Figure, Words};
use serde_json::{Value, json};

/// Trace FlexAttention code and report the cells that it keeps: FILE.py, FILE.py:ENTRY, a document or a preset
#[derive(Debug, clap::Args)]
#[group(id = "check")]
pub(super) struct Args {
    /// FILE.py:ENTRY, a preset or a document; without ENTRY the file's last mod or factory, chosen by its parameters'
    /// names or its use, or both mods of a file that has one mask_mod and one score_mod; FILE.py:MASK,SCORE names both;
    /// OUTER.INNER and CLASS.METHOD.INNER name nested functions
    pub file: String,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Evaluate this cell step by step
    #[arg(long, value_name = "B,H,Q,KV", value_parser = arguments::cell, allow_hyphen_values = true)]
    pub at: Option<[i64; 4]>,
    /// The entry is a score mod, or a factory of one
    #[arg(long)]
    pub score: bool,
    /// Score before the mod, for --at
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    pub score_value: f64,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub(super) fn check(args: Args) -> Result<(), Failure> {
    let found = examine(&args)?;
    if args.json { out::json(&found.json()) } else { out::text(&found.render()) }
}

/// Results of a check.
pub(super) struct Found {
    name: String,
    said: Vec<Remark>,
    chosen: Option<Chosen>,
    problem: Problem,
    stats: Stats,
    picture: Vec<String>,
    cell: Option<(Cell, Steps)>,
}

/// Opens, traces, counts. Errors: those of the code.
pub(super) fn examine(args: &Args) -> Result<Found, Failure> {
    let (opened, compiled) = traced(args)?;
    found(args, &opened, &compiled)
}

/// Opens and traces. Errors: those of the code.
pub(super) fn traced(args: &Args) -> Result<(Opened, Compiled), Failure> {
    let opened = open(args)?;
    let compiled = opened.compile_telling(Severity::Note)?;
    Ok((opened, compiled))
}

/// Counts and draws what was traced.
pub(super) fn found(args: &Args, opened: &Opened, compiled: &Compiled) -> Result<Found, Failure> {
    let problem = from_document(&opened.document, compiled)?;
    let blocks = block_mask(&problem)?;
    let stats = counted(&blocks);
    if let Some(mask) = &problem.mask {
        let sizes = lint::Sizes { batch: problem.batch, heads: problem.heads, lengths: problem.lengths() };
        let reported = compiled.all_diagnostics().any(|d| d.code == "keeps-nothing");
        out::diagnostics(lint::empty_rows(&blocks, &stats, mask, sizes).filter(|_| !reported).as_slice());
        out::diagnostics(&intent::intent(mask, sizes, &stats));
    }
    let cell = args.at.map(|at| cell_at(&problem, at, args.score_value)).transpose()?;
    Ok(Found {
        name: opened.document.name.clone(),
        said: opened.said.clone(),
        chosen: opened.chosen.clone(),
        picture: small_picture(compiled, &problem, 64, 32),
        stats,
        problem,
        cell,
    })
}

/// Opens the named code; `--score` decides what kind of mod a factory makes.
pub(super) fn open(args: &Args) -> Result<Opened, Failure> {
    match opened::python(&args.file) {
        Some((path, entry)) if args.score => {
            let mut opened = opened::from_code(&path, entry, &args.code, &args.overrides, Some(ModKind::Score))?;
            args.overrides.apply_settings(&mut opened.document);
            Ok(opened)
        }
        _ => opened::open(&args.file, &args.code, &args.overrides),
    }
}

/// The problem's block mask at its BLOCK_SIZE.
pub(super) fn block_mask(problem: &Problem) -> Result<BlockMask, Diagnostic> {
    watched(out::words().text("watched-blocks"), |control| problem.block_mask(problem.block_size, control))
}

/// The sums of its blocks and cells.
pub(super) fn counted(mask: &BlockMask) -> Stats {
    watched(out::words().text("watched-cells"), |control| mask.stats_with(control)).unwrap_or_default()
}

/// Batch 0, head 0 as lines of text, at most `width` by `height` characters.
pub(super) fn small_picture(compiled: &Compiled, problem: &Problem, width: usize, height: usize) -> Vec<String> {
    let Some(mask) = &compiled.mask else { return Vec::new() };
    let (q, kv) = (problem.q_len, problem.kv_len);
    let width = width.min(kv);
    // a character is as tall as two characters are wide
    let rows = (2 * height).min((width * q).div_ceil(kv).max(1)).min(q);
    let shares = watched(out::words().text("watched-picture"), |control| {
        Raster::new(mask.clone()).tile(&Region::whole([0, 0], problem.lengths(), [rows, width]), control)
    });
    picture::lines(&shares, width)
}

type Steps = Vec<(ModKind, Vec<(String, String)>)>;

fn cell_at(problem: &Problem, [b, h, q_idx, kv_idx]: [i64; 4], score: f64) -> Result<(Cell, Steps), Failure> {
    let inside = |i: i64, n: usize| (0..n as i64).contains(&i);
    let (s, cell) = (problem.spec(), Cell { b, h, q_idx, kv_idx, score });
    if !(inside(b, s.batch) && inside(h, s.heads) && inside(q_idx, s.q_len) && inside(kv_idx, s.kv_len)) {
        let message = format!(
            "cell {b},{h},{q_idx},{kv_idx} is outside {} x {} heads x {} x {} tokens",
            s.batch, s.heads, s.q_len, s.kv_len
        );
        return Err(Failure::WrongUse(Diagnostic::error("cell-outside", message).hint("indices count from 0")));
    }
    let reported = |m: &Mod| steps(m, &cell).into_iter().map(|s| (s.text.clone(), s.shown())).collect();
    let mods = [&problem.score, &problem.mask].into_iter().flatten();
    Ok((cell, mods.map(|m| (m.kind, reported(m))).collect()))
}

/// What a mod reads, in a language.
fn reads(said: &'static Words, d: Depends) -> String {
    let names = depends_names(d);
    if names.is_empty() { said.text("check-nothing").into() } else { names.join(", ") }
}

fn depends_words(d: Depends) -> String {
    reads(Words::of(Language::English), d)
}

fn depends_names(d: Depends) -> Vec<&'static str> {
    let names =
        [(Input::B, "b"), (Input::H, "h"), (Input::QIdx, "q_idx"), (Input::KvIdx, "kv_idx"), (Input::Score, "score")];
    names.into_iter().filter(|(i, _)| d.on(*i)).map(|(_, n)| n).collect()
}

fn mod_json(m: &Mod) -> Value {
    let captures: Vec<Value> = access::access(m)
        .iter()
        .map(|a| {
            let c = m.graph.capture(a.capture);
            json!({ "name": c.name, "shape": c.tensor.shape(), "dtype": c.tensor.dtype(), "by_distance": a.by_distance,
                    "read_by": depends_words(a.depends) })
        })
        .collect();
    json!({ "kind": m.kind, "nodes": m.graph.nodes().len(), "depends": depends_words(m.depends()),
            "expression": print::expression(&m.graph, m.root), "captures": captures })
}

impl Found {
    fn mods(&self) -> impl Iterator<Item = &Mod> {
        [&self.problem.mask, &self.problem.score].into_iter().flatten().map(|m| &**m)
    }

    /// Tensors that receive gradients; None without a score mod.
    fn learns(&self) -> Option<Vec<Value>> {
        let reported = crate::backends::learning(self.problem.score.as_deref()?).unwrap_or_default();
        Some(reported.into_iter().map(|(name, t)| json!({ "name": name, "shape": t.shape() })).collect())
    }

    /// The report as one JSON object.
    pub(super) fn json(&self) -> Value {
        let s = &self.stats;
        let cell = self.cell.as_ref().map(|(cell, mods)| {
            let steps = |list: &[(String, String)]| -> Vec<Value> {
                list.iter().map(|(text, value)| json!({ "expression": text, "value": value })).collect()
            };
            json!({ "b": cell.b, "h": cell.h, "q_idx": cell.q_idx, "kv_idx": cell.kv_idx,
                    "kept": self.problem.mask.as_ref().is_none_or(|m| eval(m, cell).as_bool()),
                    "mods": mods.iter().map(|(kind, list)| json!({ "kind": kind, "steps": steps(list) })).collect::<Vec<_>>() })
        });
        json!({
            "name": self.name,
            "entry": self.chosen.as_ref().map(|c| json!({ "name": c.entry, "asked": c.asked, "others": c.others })),
            "said": self.said.iter().map(Remark::words).collect::<Vec<_>>(), "problem": super::race::problem(self.problem.spec()),
            "mods": self.mods().map(mod_json).collect::<Vec<_>>(), "learns": self.learns(),
            "density": s.density, "kept_cells": s.kept_cells as f64, "empty_rows": s.empty_rows, "sparsity": s.sparsity,
            "padded_sparsity": s.padded_sparsity(),
            "blocks": { "full": s.full, "partial": s.partial, "empty": s.empty }, "cell": cell,
        })
    }

    /// The report as text.
    pub(super) fn render(&self) -> String {
        let said = out::words();
        let mut out = format!("{}\n", said.with("check-ok", &[("name", self.name.as_str().into())]));
        self.said.iter().for_each(|remark| out.push_str(&format!("{}\n", remark.told(said))));
        self.mods().for_each(|m| out.push_str(&mod_lines(said, m)));
        out.push_str(&verdict::learns(said, &self.problem));
        if self.problem.mask.is_some() {
            out.push_str(&self.kept(said));
        }
        self.picture.iter().for_each(|line| out.push_str(&format!("  |{line}|\n")));
        if let Some((cell, mods)) = &self.cell {
            let figure = |n: i64| Figure::from(n.to_string());
            let at = [("b", cell.b), ("h", cell.h), ("q", cell.q_idx), ("kv", cell.kv_idx)];
            out.push_str(&said.with("check-at", &at.map(|(name, n)| (name, figure(n)))));
            out.push('\n');
            let mut table = Table::default();
            for (text, value) in mods.iter().flat_map(|(_, list)| list) {
                table.row([format!("  {}", clip(text, 80)), format!("= {value}")]);
            }
            out.push_str(&table.render());
            if let Some(mask) = &self.problem.mask {
                let kept = eval(mask, cell).as_bool();
                let word = if kept { said.text("check-cell-kept") } else { said.text("check-cell-masked") };
                out.push_str(&format!("  {word}\n"));
            }
        }
        out
    }

    /// How much the mask keeps.
    fn kept(&self, said: &'static Words) -> String {
        let (p, s) = (&self.problem, &self.stats);
        let counts = [
            ("q", p.q_len as u64),
            ("kv", p.kv_len as u64),
            ("full", s.full),
            ("partial", s.partial),
            ("empty", s.empty),
            ("rows", s.empty_rows),
        ];
        let mut figures: Vec<_> = counts.iter().map(|(name, n)| (*name, Figure::from(n.to_string()))).collect();
        figures.extend([("share", table::percent(s.density).into()), ("size", p.block_size.to_string().into())]);
        format!("{}\n", said.with("check-kept", &figures))
    }
}

/// A mod in words: what it reads, and its expression.
fn mod_lines(said: &'static Words, m: &Mod) -> String {
    let kind = if m.kind == ModKind::Mask { "mask_mod" } else { "score_mod" };
    let expression = clip(&print::expression(&m.graph, m.root), 400);
    let figures =
        [("kind", kind.into()), ("names", reads(said, m.depends()).into()), ("expression", Figure::from(expression))];
    let mut lines = format!("{}\n", said.with("check-mod", &figures));
    for a in access::access(m) {
        let c = m.graph.capture(a.capture);
        let by = if a.by_distance { "q_idx - kv_idx".into() } else { reads(said, a.depends) };
        let tensor = format!("{} {:?} {}", c.name, c.tensor.shape(), c.tensor.dtype());
        let line = said.with("check-reads", &[("tensor", tensor.into()), ("by", Figure::from(by))]);
        lines.push_str(&format!("  {line}\n"));
    }
    lines
}

fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most).chain("...".chars()).collect()
}
