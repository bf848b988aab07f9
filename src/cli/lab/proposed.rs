//! The results of `maskloom suggest` as tables, as one JSON object and as a page.
//!
//! Invariant: the three forms show the same results. Must not know how they were found.

use super::page::Page;
use crate::base::provenance::Place;
use crate::base::{Diagnostic, Provenance};
use crate::cli::table::{Cell, Table, percent};
use crate::quality::capture::{Call, Capture};
use crate::quality::routers::Routed;
use crate::quality::suggest::order::Gain;
use crate::quality::suggest::{Candidate, Target, Wanted, pareto};
use crate::tasks::lab::{self, OfCall, RoutedCall, told};
use crate::tasks::origins;
use crate::words::{Language, Value as Figure, Words};
use serde_json::{Value, json};

/// All results.
pub(super) struct Found {
    /// The request.
    pub wanted: Wanted,
    pub candidates: Vec<Candidate>,
    /// The best plain window with sinks.
    pub plain: Candidate,
    /// The least share of the blocks with which any block mask keeps as much mass as the plain window.
    pub least: f64,
    /// Query heads of the model without q and k.
    pub unseen: Vec<usize>,
    /// Milliseconds of each candidate, then without a mask; empty if not requested.
    pub times: Vec<f64>,
    /// The candidates on every call; empty if not requested.
    pub others: Vec<OfCall>,
    pub routed: Vec<Routed>,
    /// The blocks picked by routers, as masks.
    pub layers: Vec<Candidate>,
    pub everywhere: Vec<RoutedCall>,
    pub ordered: Vec<Gain>,
    /// Files: one for each candidate, then others.
    pub written: Vec<String>,
}

impl Found {
    pub(super) fn new(wanted: Wanted, plain: Candidate) -> Found {
        Found {
            wanted,
            least: 0.0,
            unseen: Vec::new(),
            candidates: Vec::new(),
            plain,
            times: Vec::new(),
            others: Vec::new(),
            routed: Vec::new(),
            layers: Vec::new(),
            everywhere: Vec::new(),
            ordered: Vec::new(),
            written: Vec::new(),
        }
    }

    /// The mass that a schedule should keep.
    fn mass(&self) -> f64 {
        match self.wanted.target {
            Target::Mass(mass) => mass,
            Target::Blocks(_) => 0.9,
        }
    }
}

/// A proposal that executes more than this share of the plain window's blocks counts as not much better.
const MUCH: f64 = 0.8;

/// Masses that differ by less than this count as equal.
pub(super) const AS_MUCH: f64 = 1e-3;

/// Compares the proposals with the plain window in words: the one with the fewest blocks that keeps as much mass.
fn against(said: &'static Words, found: &Found) -> String {
    let (plain, protect) = (&found.plain, found.wanted.protect);
    let figures = [("form", told::form(said, &plain.form).into()), ("share", percent(plain.density).into())];
    let window = ("window", said.with("found-plain", &figures).into());
    let least = said.with("found-least", &[("share", percent(found.least).into())]);
    let least = match found.wanted.grid.is_some() && (protect.text || protect.first_frame) {
        true => said.with("found-besides", &[("least", least.into())]),
        false => least,
    };
    let least = ("least", least.into());
    let as_much =
        found.candidates.iter().filter(|c| c.mass >= plain.mass - AS_MUCH && c.density < plain.density - 1e-9);
    match as_much.min_by(|a, b| a.density.total_cmp(&b.density)) {
        Some(best) => {
            let id = if best.density <= MUCH * plain.density { "found-better" } else { "found-little" };
            let share = ("share", format!("{:.2}", best.density / plain.density).into());
            said.with(id, &[("kind", told::kind(said, &best.kind).into()), share, window, least])
        }
        None => said.with("found-none", &[window, least]),
    }
}

/// Tables.
pub(super) fn render(said: &'static Words, capture: &Capture, call: &Call, found: &Found) -> String {
    let line = |id: &str, figures: &[(&str, Figure<'_>)]| said.with(id, figures) + "\n";
    let mut out = super::title(said, capture, call);
    out.push_str(&candidates(said, found));
    if let Some(dense) = found.times.last() {
        let device = said.text("device-this-cpu").into();
        let from = origins::whole(said, &Provenance::Measured(Place { device, ..Place::default() }));
        out.push_str(&line("found-times", &[("from", from.into()), ("dense", format!("{dense:.2}").into())]));
    }
    for c in &found.candidates {
        let figures = [("name", told::kind(said, &c.kind).into()), ("why", told::reason(said, &c.why).into())];
        out.push_str(&line("found-why", &figures));
    }
    out.push_str(&against(said, found));
    out.push('\n');
    if !found.unseen.is_empty() {
        let heads = found.unseen.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        out.push_str(&line("found-unseen", &[("heads", heads.into())]));
    }
    out.push_str(&others(said, found));
    out.push_str(&routers(said, found));
    if !found.ordered.is_empty() {
        let mut table = Table::told(&["column-order", "column-most"]);
        for g in &found.ordered {
            table.row([Cell::told(|said| told::order(said, g.order)), percent(g.density).into()]);
        }
        out.push_str(&table.render_in(said));
    }
    found.written.iter().for_each(|path| out.push_str(&line("found-wrote", &[("path", path.as_str().into())])));
    out
}

fn candidates(said: &'static Words, found: &Found) -> String {
    let timed = !found.times.is_empty();
    let mut heads = vec!["column-proposal", "column-mass", "p5", "min", "column-blocks", "column-masks", "column-best"];
    heads.extend(timed.then_some("ms"));
    heads.push("column-numbers");
    let mut table = Table::told(&heads);
    for (n, (c, front)) in found.candidates.iter().zip(pareto(&found.candidates)).enumerate() {
        let mut row = vec![
            Cell::told(|said| told::kind(said, &c.kind)),
            format!("{:.4}", c.mass).into(),
            format!("{:.4}", c.p5).into(),
            format!("{:.4}", c.min).into(),
            percent(c.density).into(),
            c.masks.to_string().into(),
            if front { "*".into() } else { Cell::default() },
        ];
        row.extend(found.times.get(n).filter(|_| timed).map(|ms| Cell::from(format!("{ms:.2}"))));
        row.push(Cell::told(|said| shortened(&told::form(said, &c.form))));
        table.row(row);
    }
    table.render_in(said) + said.text("found-front") + "\n"
}

/// Words that fit into a table.
fn shortened(words: &str) -> String {
    let short: String = words.chars().take(72).collect();
    if short.len() < words.len() { format!("{short}...") } else { short }
}

/// How far proposals hold on the other calls.
fn others(said: &'static Words, found: &Found) -> String {
    if found.others.is_empty() {
        return String::new();
    }
    let mut table = Table::told(&["column-proposal", "column-calls", "column-from", "column-to", "column-dense"]);
    for (n, c) in found.candidates.iter().enumerate() {
        let spread = lab::spread(&found.others, n);
        let places = lab::dense_places(&found.others, n, found.mass());
        table.row([
            Cell::told(|said| told::kind(said, &c.kind)),
            format!("{:.4}", spread.mean).into(),
            format!("{:.4}", spread.min).into(),
            format!("{:.4}", spread.max).into(),
            Cell::told(|said| told::schedule(said, &places)),
        ]);
    }
    let n = ("n", found.others.len().to_string().into());
    format!("{}\n{}", said.with("found-calls", &[n]), table.render_in(said))
}

fn routers(said: &'static Words, found: &Found) -> String {
    if found.routed.is_empty() {
        return String::new();
    }
    let mut table = Table::told(&[
        "column-router",
        "column-blocks",
        "column-mass",
        "column-ceiling",
        "column-recall",
        "column-cost",
        "column-block-size",
    ]);
    for r in &found.routed {
        table.row([
            r.router.name.to_string(),
            percent(r.density),
            format!("{:.4}", r.mass),
            format!("{:.4}", r.ceiling),
            format!("{:.4}", r.recall),
            percent(r.cost),
            r.block.to_string(),
        ]);
    }
    let mut out = table.render_in(said);
    if !found.everywhere.is_empty() {
        let names: Vec<&str> = found.routed.iter().map(|r| r.router.name).collect();
        let mut table = Table::told(&[&["column-mass-call"], &names[..]].concat());
        for call in &found.everywhere {
            let of = |name: &str| call.routers.iter().find(|r| r.router.name == name);
            let cells = names.iter().map(|name| of(name).map_or("-".into(), |r| format!("{:.4}", r.mass)));
            table.row([call.key.clone()].into_iter().chain(cells));
        }
        out.push_str(&table.render_in(said));
    }
    for r in &found.routed {
        let dense = (!found.everywhere.is_empty())
            .then(|| lab::router_schedule(&found.everywhere, r.router.name, found.mass()));
        if let Some(dense) = &dense {
            let figures = [("name", r.router.name.into()), ("why", told::schedule(said, dense).into())];
            out.push_str(&format!("{}\n", said.with("found-why", &figures)));
        }
        for s in lab::settings_of(r, dense.as_ref()) {
            let (framework, read) = (("framework", s.framework.into()), ("read", s.read_from.into()));
            let title = said.with("found-settings", &[("name", r.router.name.into()), framework, read]);
            out.push_str(&format!("{title}\n{}\n", s.text));
        }
    }
    out
}

/// One object.
pub(super) fn object(capture: &Capture, call: &Call, found: &Found) -> Value {
    let of = |c: &Candidate| {
        json!({"name": c.kind.to_string(), "why": c.why.to_string(), "numbers": c.form.words(), "mass": c.mass, "p5": c.p5, "min": c.min,
            "density": c.density, "heads": c.heads, "masks": c.masks})
    };
    let front = pareto(&found.candidates);
    let proposals: Vec<Value> = found
        .candidates
        .iter()
        .enumerate()
        .map(|(n, c)| {
            let mut value = of(c);
            value["pareto"] = json!(front[n]);
            value["document"] = json!(found.written.get(n));
            value["ms"] = json!(found.times.get(n));
            if !found.others.is_empty() {
                value["stability"] = json!(lab::spread(&found.others, n));
                let places = lab::dense_places(&found.others, n, found.mass());
                value["dense"] = json!(told::schedule(Words::of(Language::English), &places));
            }
            value
        })
        .collect();
    let router = |r: &Routed| {
        json!({"name": r.router.name, "density": r.density, "mass": r.mass, "ceiling": r.ceiling, "recall": r.recall,
            "cost": r.cost, "block_size": [r.block.q, r.block.kv]})
    };
    let routers: Vec<Value> = found.routed.iter().map(router).collect();
    let everywhere: Vec<Value> = found
        .everywhere
        .iter()
        .map(|c| {
            json!({"call": c.key, "layer": c.layer.1, "step": c.step, "routers": c.routers.iter().map(router).collect::<Vec<_>>()})
        })
        .collect();
    let orders: Vec<Value> =
        found.ordered.iter().map(|g| json!({"order": g.order.name(), "density": g.density})).collect();
    json!({"capture": capture.name(), "provenance": capture.provenance(), "call": call.key, "proposals": proposals, "plain_window": of(&found.plain),
        "dense_ms": found.times.last(), "verdict": against(Words::of(Language::English), found), "least_density": found.least, "routers": routers,
        "routers_by_call": everywhere, "orders": orders})
}

/// The tables and the plot.
pub(super) fn page(capture: &Capture, call: &Call, found: &Found) -> Result<String, Diagnostic> {
    let mut page =
        Page::new(&format!("Masks for {} of {}", call.title(capture), capture.name()), &capture.provenance());
    let names: Vec<String> = found.candidates.iter().map(|c| c.kind.to_string()).collect();
    let named = || found.candidates.iter().zip(&names).map(|(c, name)| (c, name.as_str()));
    page.plot(&named().map(|(c, name)| (name, [c.density, 1.0 - c.mass])).collect::<Vec<_>>(), ["blocks", "mass lost"]);
    let timed = named().zip(&found.times).map(|((c, name), ms)| (name, [*ms, 1.0 - c.mass]));
    let timed: Vec<_> = timed.collect();
    if !timed.is_empty() {
        page.plot(&timed, ["ms of flex on this CPU", "mass lost"]);
    }
    // files are English
    page.lines(&render(Words::of(Language::English), capture, call, found));
    Ok(page.end())
}
