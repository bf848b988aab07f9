//! `maskloom bench predict`: predicted times of the backward workloads on a card by its data sheet, next to measured
//! times.
//!
//! Invariant: nothing runs on a GPU; a measured figure is printed only if `--from` has one of that workload. Must not
//! know kernels.

use super::{Args, kernels};
use crate::backends::cuda::predict::{Prediction, predict};
use crate::base::Diagnostic;
use crate::cli::out::{self, Failure};
use crate::cli::table::{Cell, Table};
use crate::worker::files;
use serde_json::{Value, json};

/// The card if none is named.
const CARD: &str = "NVIDIA H200";

/// Prints the table, in Markdown.
pub(super) fn run(args: &Args) -> Result<bool, Failure> {
    let card = args.card.as_deref().unwrap_or(CARD);
    let measured = args.from.as_deref().map(read).transpose()?;
    let mut rows = Vec::new();
    for (name, problem) in kernels::backward_problems(&args.only)? {
        out::note(name);
        let found = predict(&problem, card)?;
        let took = measured.as_ref().and_then(|run| took(run, name));
        rows.push((name, found, took));
    }
    match args.json {
        true => out::json(&json!({ "card": card, "rows": rows.iter().map(object).collect::<Vec<_>>() }))?,
        false => out::text(&render(card, &rows))?,
    }
    Ok(true)
}

type Row<'a> = (&'a str, Prediction, Option<f64>);

fn read(path: &std::path::Path) -> Result<Value, Failure> {
    let bytes = files::read(path)?;
    serde_json::from_slice(&bytes).map_err(|why| {
        let message = format!("{} is not a run: {why}", path.display());
        Failure::WrongUse(
            Diagnostic::error("bench-from", message).hint("maskloom bench kernels --pass backward --json writes one"),
        )
    })
}

/// The time of flex for a workload in a run.
fn took(run: &Value, name: &str) -> Option<f64> {
    let rows = run["ratios"].as_array()?;
    rows.iter().find(|row| row["name"] == name)?["flex_ms"].as_f64()
}

fn object((name, p, took): &Row) -> Value {
    json!({
        "name": name, "kernel": p.kernel, "tile": p.tile, "tiles": p.tiles, "products_clocks": p.products,
        "shared_clocks": p.shared, "issue_clocks": p.issue, "l2_clocks": p.l2, "rows_ms": p.rows_ms,
        "predicted_ms": p.ms, "bound": p.bound, "measured_ms": took,
    })
}

/// The slowest part.
fn bound(of: &'static str) -> Cell {
    match of {
        "products" => Cell::text("column-products"),
        "shared memory" => Cell::text("row-shared-memory"),
        "instructions" => Cell::text("column-instructions"),
        "memory" => Cell::text("column-memory"),
        // a name
        other => other.into(),
    }
}

fn render(card: &str, rows: &[Row]) -> String {
    let mut table = Table::told(&[
        "column-workload",
        "column-tile",
        "column-tiles",
        "column-products",
        "column-shared",
        "column-instructions",
        "L2",
        "column-slowest",
        "column-rows-ms",
        "column-predicted-ms",
        "column-measured-ms",
        "column-of-it",
    ]);
    let clocks = |x: f64| format!("{x:.0}");
    for (name, p, took) in rows {
        table.row([
            (*name).into(),
            format!("{} x {}", p.tile[0], p.tile[1]).into(),
            p.tiles.to_string().into(),
            clocks(p.products).into(),
            p.shared.map_or("-".into(), clocks).into(),
            clocks(p.issue).into(),
            clocks(p.l2).into(),
            bound(p.bound),
            format!("{:.2}", p.rows_ms).into(),
            format!("{:.2}", p.ms).into(),
            took.map_or("-".into(), |ms| format!("{ms:.2}")).into(),
            took.map_or("-".into(), |ms| format!("{:.0}%", 100.0 * p.ms / ms)).into(),
        ]);
    }
    format!("Backward pass on {card}; clocks per tile on one multiprocessor\n{}", table.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_figures_stand_beside_their_workload() {
        let run = json!({ "ratios": [{ "name": "causal", "flex_ms": 4.8 }] });
        assert_eq!((took(&run, "causal"), took(&run, "full")), (Some(4.8), None));
        let prediction = Prediction {
            kernel: "backward_hopper".into(),
            tile: [64, 128],
            tiles: 7,
            products: 2560.0,
            shared: None,
            issue: 900.0,
            l2: 1536.0,
            rows_ms: 0.25,
            ms: 2.4,
            bound: "products",
        };
        let text = render("a card", &[("causal", prediction, Some(4.8))]);
        for of in ["products", "shared memory", "instructions", "memory", "L2"] {
            assert_eq!(bound(of), Cell::from(of), "{of}");
        }
        assert!(text.contains("64 x 128") && text.contains("50%") && text.contains("2560"), "{text}");
    }
}
