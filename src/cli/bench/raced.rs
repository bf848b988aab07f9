//! Races of a benchmark as a table: one line for each backend of a workload.
//!
//! Invariant: each cell is a number with its unit, or a name; the rows' samples and nested values are for files alone. Must not know
//! how rows were measured.

use crate::base::BackendName;
use crate::cli::race;
use crate::cli::table::{self, Table};
use crate::words::{Language, Words};
use serde_json::{Value, json};

/// A column: its title by the id, and the cell of a row among all rows; a column without any cell is left out.
type Column = (&'static str, fn(&Value, &[Value]) -> Option<String>);

const COLUMNS: [Column; 17] = [
    ("column-workload", |row, _| text(row, "name")),
    ("column-backend", |row, _| text(row, "backend")),
    ("column-ran", |row, _| text(row, "ran")),
    ("column-median", |row, _| time(row, "median_ms")),
    ("column-spread", |row, _| row["median_ms"].as_f64().map(|_| race::spread(row))),
    ("column-call", |row, _| time(row, "call_ms")),
    ("column-rate", |row, _| rate(row, "tflops")),
    ("column-sgemm", |row, _| row["of_sgemm"].as_f64().map(table::percent)),
    ("column-sdpa", |row, rows| against_sdpa(row, rows, "median_ms")),
    ("column-backward", |row, _| time(row, "backward_ms")),
    ("column-backward-call", |row, _| time(row, "backward_call_ms")),
    ("column-backward-rate", |row, _| rate(row, "backward_tflops")),
    ("column-sgemm-backward", |row, _| row["backward_of_sgemm"].as_f64().map(table::percent)),
    ("column-sdpa-backward", |row, rows| against_sdpa(row, rows, "backward_ms")),
    ("column-sdpa-both", |row, rows| against_sdpa(row, rows, "both_ms")),
    ("column-error", |row, _| row["max_abs_error"].as_f64().map(table::error)),
    ("column-worst", |row, _| row["worst_gradient"].as_f64().map(table::error)),
];

/// The table of the rows that [`race::rows`] gives.
pub(super) fn render(rows: &[Value]) -> String {
    if rows.is_empty() { "no rows\n".into() } else { table(rows).render() }
}

/// The same in Markdown, for a page.
pub(super) fn markdown(rows: &[Value]) -> String {
    table(rows).markdown_in(Words::of(Language::English))
}

fn table(rows: &[Value]) -> Table {
    let used: Vec<&Column> =
        COLUMNS.iter().filter(|(_, cell)| rows.iter().any(|row| cell(row, rows).is_some())).collect();
    let titles: Vec<&str> = used.iter().map(|(title, _)| *title).collect();
    let mut table = Table::told(&titles);
    for row in rows {
        table.row(used.iter().map(|(_, cell)| cell(row, rows).unwrap_or("-".into())));
    }
    table
}

fn text(row: &Value, field: &str) -> Option<String> {
    row[field].as_str().map(str::to_string)
}

fn time(row: &Value, field: &str) -> Option<String> {
    row[field].as_f64().map(table::milliseconds)
}

/// Of rows that have TFLOP/s; few on a cpu.
fn rate(row: &Value, field: &str) -> Option<String> {
    let tflops = row[field].as_f64()?;
    Some(if tflops < 10.0 {
        format!("{} GFLOP/s", table::digits(1e3 * tflops))
    } else {
        format!("{tflops:.0} TFLOP/s")
    })
}

/// How often a row's time goes into that of PyTorch's SDPA on the same workload, if both ran.
fn against_sdpa(row: &Value, rows: &[Value], field: &str) -> Option<String> {
    let own = row[field].as_f64()?;
    let sdpa = json!(BackendName::TorchSdpa);
    let of = rows.iter().find(|other| other["backend"] == sdpa && other["name"] == row["name"])?[field].as_f64()?;
    Some(format!("{:.2}x", of / own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_words_and_pytorch_has_a_column() {
        let row = |backend: BackendName, ms: f64| {
            json!({ "name": "window", "backend": backend, "ran": "it", "median_ms": ms, "spread": 0.02, "tflops": 0.2 / ms,
                    "samples_ms": [ms, ms], "versus": { "ratio": 2.0, "shown": true }, "max_abs_error": 1e-3, "device": "cpu" })
        };
        let rows = vec![row(BackendName::Flex, 2.0), row(BackendName::TorchSdpa, 5.0)];
        let table = render(&rows);
        assert!(!table.contains(['{', '[', '"']), "{table}");
        assert!(table.contains("2.50x") && table.contains("1.00x") && table.contains("100 GFLOP/s"), "{table}");
        // no column without a cell
        assert!(!table.contains("call") && !table.contains("backward"), "{table}");
        let mut both = rows.clone();
        (both[1]["call_ms"], both[1]["backward_ms"]) = (json!(5.5), json!(12.0));
        let table = render(&both);
        assert!(table.contains("5.50 ms") && table.contains("12.0 ms") && table.contains("backward"), "{table}");
        assert_eq!(render(&[]), "no rows\n");
    }
}
