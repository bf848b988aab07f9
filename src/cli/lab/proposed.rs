//! The results of `maskloom suggest` as tables, as one JSON object and as a page.
//!
//! Invariant: the three forms show the same results. Must not know how they were found.

use super::page::Page;
use crate::base::provenance::Place;
use crate::base::{Diagnostic, Provenance};
use crate::cli::table::{Table, percent};
use crate::quality::capture::{Call, Capture};
use crate::quality::routers::Routed;
use crate::quality::suggest::order::Gain;
use crate::quality::suggest::{Candidate, Target, Wanted, pareto};
use crate::tasks::lab::{self, OfCall, RoutedCall};
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
fn against(found: &Found) -> String {
    let plain = &found.plain;
    let window =
        format!("the best plain window with sinks ({}; {} of the blocks)", plain.form.words(), percent(plain.density));
    let protect = found.wanted.protect;
    let besides = if found.wanted.grid.is_some() && (protect.text || protect.first_frame) {
        "; proposals also keep text and first frame, which this window may drop (--unprotect text,frame)"
    } else {
        ""
    };
    let least = format!("no mask of these blocks keeps as much mass in less than {}{besides}", percent(found.least));
    let as_much =
        found.candidates.iter().filter(|c| c.mass >= plain.mass - AS_MUCH && c.density < plain.density - 1e-9);
    match as_much.min_by(|a, b| a.density.total_cmp(&b.density)) {
        Some(best) if best.density <= MUCH * plain.density => {
            let share = best.density / plain.density;
            format!("`{}` executes {share:.2} of the blocks of {window}; {least}", best.kind)
        }
        Some(best) => {
            let share = best.density / plain.density;
            format!(
                "no proposal is much better than {window}: `{}` executes {share:.2} of its blocks; {least}",
                best.kind
            )
        }
        None => format!("no proposal is better than {window}; {least}"),
    }
}

/// Tables.
pub(super) fn render(capture: &Capture, call: &Call, found: &Found) -> String {
    let mut out = format!("{}, {} x {} tokens\n", call.title(capture), call.info.q_len, call.info.kv_len);
    out.push_str(&candidates(found));
    if let Some(dense) = found.times.last() {
        let from = Provenance::Measured(Place { device: "this CPU".into(), ..Place::default() });
        out.push_str(&format!("ms: flex, forward, all heads of the capture, {from}; without a mask {dense:.2} ms\n"));
    }
    for c in &found.candidates {
        out.push_str(&format!("{}: {}\n", c.kind, c.why));
    }
    out.push_str(&against(found));
    out.push('\n');
    if !found.unseen.is_empty() {
        let heads = found.unseen.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        out.push_str(&format!(
            "heads {heads} have no q and k here: masks that differ between heads keep all cells of these heads\n"
        ));
    }
    out.push_str(&others(found));
    out.push_str(&routers(found));
    if !found.ordered.is_empty() {
        let mut table = Table::told(&["column-order", "column-most"]);
        found.ordered.iter().for_each(|g| table.row([g.order.name(), percent(g.density)]));
        out.push_str(&table.render());
    }
    found.written.iter().for_each(|path| out.push_str(&format!("wrote {path}\n")));
    out
}

fn candidates(found: &Found) -> String {
    let timed = !found.times.is_empty();
    let mut heads = vec!["column-proposal", "column-mass", "p5", "min", "column-blocks", "column-masks", "column-best"];
    heads.extend(timed.then_some("ms"));
    heads.push("column-numbers");
    let mut table = Table::told(&heads);
    for (n, (c, front)) in found.candidates.iter().zip(pareto(&found.candidates)).enumerate() {
        let words = c.form.words();
        let short: String = words.chars().take(72).collect();
        let words = if short.len() < words.len() { format!("{short}...") } else { words };
        let mut row = vec![
            c.kind.to_string(),
            format!("{:.4}", c.mass),
            format!("{:.4}", c.p5),
            format!("{:.4}", c.min),
            percent(c.density),
            c.masks.to_string(),
            if front { "*".into() } else { String::new() },
        ];
        row.extend(found.times.get(n).filter(|_| timed).map(|ms| format!("{ms:.2}")));
        row.push(words);
        table.row(row);
    }
    table.render() + "* no other proposal keeps more mass with fewer blocks\n"
}

/// How far proposals hold on the other calls.
fn others(found: &Found) -> String {
    if found.others.is_empty() {
        return String::new();
    }
    let mut table = Table::told(&["column-proposal", "column-calls", "column-from", "column-to", "column-dense"]);
    for (n, c) in found.candidates.iter().enumerate() {
        let spread = lab::spread(&found.others, n);
        table.row([
            c.kind.to_string(),
            format!("{:.4}", spread.mean),
            format!("{:.4}", spread.min),
            format!("{:.4}", spread.max),
            lab::words(&lab::dense_places(&found.others, n, found.mass())),
        ]);
    }
    format!("on all {} calls of these lengths:\n{}", found.others.len(), table.render())
}

fn routers(found: &Found) -> String {
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
    let mut out = table.render();
    if !found.everywhere.is_empty() {
        let names: Vec<&str> = found.routed.iter().map(|r| r.router.name).collect();
        let mut table = Table::told(&[&["column-mass-call"], &names[..]].concat());
        for call in &found.everywhere {
            let of = |name: &str| call.routers.iter().find(|r| r.router.name == name);
            let cells = names.iter().map(|name| of(name).map_or("-".into(), |r| format!("{:.4}", r.mass)));
            table.row([call.key.clone()].into_iter().chain(cells));
        }
        out.push_str(&table.render());
    }
    for r in &found.routed {
        let dense = (!found.everywhere.is_empty())
            .then(|| lab::router_schedule(&found.everywhere, r.router.name, found.mass()));
        if let Some(dense) = &dense {
            out.push_str(&format!("{}: {}\n", r.router.name, lab::words(dense)));
        }
        for s in lab::settings_of(r, dense.as_ref()) {
            let (name, read) = (r.router.name, s.read_from);
            out.push_str(&format!("{name} as settings of {}, read from {read}:\n{}\n", s.framework, s.text));
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
                value["dense"] = json!(lab::words(&lab::dense_places(&found.others, n, found.mass())));
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
        "dense_ms": found.times.last(), "verdict": against(found), "least_density": found.least, "routers": routers,
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
    page.lines(&render(capture, call, found));
    Ok(page.end())
}
