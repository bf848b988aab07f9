//! `maskloom compare A B`: the cells in which two masks differ.
//!
//! Invariant: both masks are evaluated at the same lengths; the status is 0 whether they differ or not. Must not know how
//! cells are found.

use super::opened::{self, CodeArgs, Opened};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::table::{self, Table};
use super::watched::watched;
use crate::base::Diagnostic;
use crate::document::from_document;
use crate::problem::Problem;
use crate::tasks::comparing::{Difference, difference, parts};
use crate::words::Value as Figure;
use serde_json::json;

/// Cells that are named.
const NAMED: usize = 5;

/// List the cells in which two masks differ, with counts by region
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The first mask: a preset, FILE.json or FILE.py:ENTRY
    first: String,
    /// The second mask
    second: String,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn compare(args: Args) -> Result<(), Failure> {
    let open = |name: &str| -> Result<(Opened, Problem), Failure> {
        let opened = opened::open(name, &args.code, &args.overrides)?;
        let compiled = opened.compile()?;
        let problem = from_document(&opened.document, &compiled)?;
        Ok((opened, problem))
    };
    let (a, b) = (open(&args.first)?, open(&args.second)?);
    let lengths = |p: &Problem| (p.q_len, p.kv_len);
    if lengths(&a.1) != lengths(&b.1) {
        let size = |p: &Problem| format!("{} x {} tokens", p.q_len, p.kv_len);
        let message = format!("`{}` has {}, `{}` has {}", args.first, size(&a.1), args.second, size(&b.1));
        return Err(Failure::WrongUse(
            Diagnostic::error("compare-lengths", message)
                .hint("give both the same: --seq N, with --kv-seq M for the keys"),
        ));
    }
    let axes = &a.0.document.axes;
    let (queries, keys) = (parts(&axes.q), parts(axes.kv()));
    let extents = [a.1.batch.max(b.1.batch), a.1.heads.max(b.1.heads)];
    let masks = [a.1.mask.as_deref(), b.1.mask.as_deref()];
    let found = watched(out::words().text("watched-compare"), |control| {
        difference(masks, extents, [&queries, &keys], NAMED, control)
    })?;
    let names = [&a.0.document.name, &b.0.document.name];
    if args.json {
        return out::json(&json!({ "first": names[0], "second": names[1], "difference": found }));
    }
    let scores = [&a.1, &b.1].iter().any(|p| p.score.is_some());
    out::text(&render(names.map(String::as_str), &found, scores))
}

fn render(names: [&str; 2], found: &Difference, scores: bool) -> String {
    let said = out::words();
    let share = |n: u64| Figure::from(table::percent(n as f64 / found.cells.max(1) as f64));
    let number = |n: u64| Figure::from(n.to_string());
    let mut text = String::new();
    let mut line = |id: &'static str, figures: &[(&str, Figure<'_>)]| {
        text.push_str(&said.with(id, figures));
        text.push('\n');
    };
    for (letter, (name, kept)) in ["A", "B"].into_iter().zip(names.into_iter().zip(found.kept)) {
        let figures = [("letter", letter.into()), ("name", name.into()), ("kept", number(kept))];
        let [letter, name, kept_cells] = figures;
        line("compare-keeps", &[letter, name, kept_cells, ("cells", number(found.cells)), ("share", share(kept))]);
    }
    if found.planes != [1, 1] {
        let [batch, heads] = found.planes.map(|n| Figure::from(n.to_string()));
        line("compare-planes", &[("batch", batch), ("heads", heads)]);
    }
    if scores {
        line("compare-no-scores", &[]);
    }
    let all = found.alone[0] + found.alone[1];
    if all == 0 {
        line("compare-same", &[]);
        return text;
    }
    let [a, b] = found.alone.map(number);
    line("compare-differ", &[("all", number(all)), ("share", share(all)), ("a", a), ("b", b)]);
    text.push('\n');
    let mut regions = Table::told(&["column-queries", "column-keys", "column-only-a", "column-only-b"]);
    for region in &found.regions {
        let [a, b] = region.alone.map(|n| n.to_string());
        regions.row([region.queries.clone(), region.keys.clone(), a, b]);
    }
    text.push_str(&regions.render());
    for ([b, h, q, kv], first) in &found.first {
        let place = [("b", b), ("h", h), ("q", q), ("kv", kv)].map(|(name, n)| (name, Figure::from(n.to_string())));
        let who = [("who", if *first { "A" } else { "B" }.into())];
        text.push_str(&format!("{}\n", said.with("compare-cell", &[&place[..], &who[..]].concat())));
    }
    text
}
