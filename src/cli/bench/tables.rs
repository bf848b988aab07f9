//! Tables of the committed runs in the folders of docs/measurements: calls, costs in Python, masks, the price of a fixed order, several
//! GPUs.
//!
//! Invariant: every figure is one of the file's or a quotient of two; none is typed. Must not know who measured, or which page shows it.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The table of one of these files; None: it is of another kind. Errors: it lacks a field of its kind.
pub(super) fn of(run: &Value) -> Option<Result<String, serde_json::Error>> {
    let has = |key: &str| run.get(key).is_some();
    let first = run.as_array().and_then(|rows| rows.first());
    if has("calls") {
        return Some(read(run).map(calls));
    }
    if has("costs") {
        return Some(read(run).map(costs));
    }
    if run["rows"][0].get("fixed_order").is_some() {
        return Some(read(run).map(orders));
    }
    if run["rows"][0].get("blocks_ms").is_some() {
        return Some(read(run).map(masks));
    }
    if let Some(rows) = run["rows"].as_array().filter(|rows| rows.iter().any(|row| row.get("of_sgemm").is_some())) {
        return Some(Ok(super::raced::markdown(rows)));
    }
    first?.get("ranks").map(|_| read(run).map(|rows: Vec<Value>| ranks(&rows)))
}

fn read<T: DeserializeOwned>(run: &Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(run.clone())
}

/// Three digits: `0.436`, `8.30`, `107`.
fn digits(x: f64) -> String {
    match x.abs() {
        a if a < 10.0 => format!("{x:.2}"),
        a if a < 100.0 => format!("{x:.1}"),
        _ => format!("{x:.0}"),
    }
}

fn optional(x: Option<f64>, decimals: usize) -> String {
    x.map_or(String::new(), |x| format!("{x:.decimals$}"))
}

/// Where a run was made.
#[derive(Deserialize)]
struct Environment(BTreeMap<String, Value>);

impl Environment {
    /// A fact in words.
    fn said(&self, key: &str) -> String {
        self.0.get(key).map_or("unknown".into(), words)
    }
}

/// A text without quotes, a number as it is.
fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

#[derive(Deserialize)]
struct Calls {
    environment: Environment,
    problem: Problem,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Problem {
    mask: String,
    batch: usize,
    heads: usize,
    tokens: usize,
    head_dim: usize,
    dtype: String,
}

#[derive(Deserialize)]
struct Call {
    who: String,
    what: String,
    host_us: f64,
    call_ms: f64,
    graph_ms: Option<f64>,
}

fn calls(run: Calls) -> String {
    let Problem { mask, batch, heads, tokens, head_dim, dtype } = &run.problem;
    let mut out = format!(
        "Calls of {mask}, B{batch} H{heads} S{tokens} D{head_dim}, {dtype}; {}, PyTorch {}, {}.\n\n\
         | whose | pass | host (µs) | call (ms) | graph (ms) |\n|---|---|---|---|---|\n",
        run.environment.said("gpu"),
        run.environment.said("torch"),
        run.environment.said("date")
    );
    for Call { who, what, host_us, call_ms, graph_ms } in &run.calls {
        let _ = writeln!(out, "| {who} | {what} | {host_us:.0} | {call_ms:.3} | {} |", optional(*graph_ms, 3));
    }
    out
}

#[derive(Deserialize)]
struct Costs {
    card: String,
    torch: String,
    costs: Vec<Cost>,
    new_masks: Option<NewMasks>,
}

#[derive(Deserialize)]
struct Cost {
    name: String,
    forward_ms: Option<f64>,
    both_ms: Option<f64>,
    forward_host_us: Option<f64>,
    training_forward_host_us: Option<f64>,
    backward_host_us: Option<f64>,
}

#[derive(Deserialize)]
struct NewMasks {
    block_mask_ms_and_first_call_ms: Vec<[f64; 2]>,
}

fn costs(run: Costs) -> String {
    let mut out = format!(
        "Calls in Python; {}, PyTorch {}.\n\n\
         | whose | forward (ms) | forward and backward (ms) | host, forward without gradient (µs) | host, forward to train (µs) | host, backward (µs) |\n\
         |---|---|---|---|---|---|\n",
        run.card, run.torch
    );
    for cost in &run.costs {
        let host = [cost.forward_host_us, cost.training_forward_host_us, cost.backward_host_us].map(|x| optional(x, 0));
        let (forward, both) = (optional(cost.forward_ms, 3), optional(cost.both_ms, 3));
        let _ = writeln!(out, "| {} | {forward} | {both} | {} |", cost.name, host.join(" | "));
    }
    if let Some(NewMasks { block_mask_ms_and_first_call_ms: new }) = &run.new_masks {
        let range = |at: usize| {
            let values = new.iter().map(|pair| pair[at]);
            (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max))
        };
        let ((least, most), (first, last)) = (range(0), range(1));
        let _ = writeln!(
            out,
            "\nA new mask took {least:.2} to {most:.2} ms, the first call with it {first:.2} to {last:.2} ms."
        );
    }
    out
}

#[derive(Deserialize)]
struct Orders {
    environment: Environment,
    rows: Vec<Order>,
}

#[derive(Deserialize)]
struct Order {
    preset: String,
    any_order: Median,
    fixed_order: Median,
}

#[derive(Deserialize)]
struct Median {
    median_ms: f64,
}

fn orders(run: Orders) -> String {
    let mut out = format!(
        "Backward passes of presets in any and in a fixed order of addition; {}, {}, Maskloom {}.\n\n\
         | preset | any order (ms) | fixed order (ms) | price |\n|---|---|---|---|\n",
        run.environment.said("gpu"),
        run.environment.said("date"),
        run.environment.said("maskloom")
    );
    for Order { preset, any_order: Median { median_ms: any }, fixed_order: Median { median_ms: fixed } } in &run.rows {
        let _ = writeln!(out, "| {preset} | {any:.3} | {fixed:.3} | {:+.0}% |", 100.0 * (fixed / any - 1.0));
    }
    out
}

#[derive(Deserialize)]
struct Masks {
    environment: Environment,
    rows: Vec<Mask>,
}

#[derive(Deserialize)]
struct Mask {
    name: String,
    tokens: usize,
    ms: f64,
    blocks_ms: Option<f64>,
    torch_ms: Option<f64>,
}

fn masks(run: Masks) -> String {
    let mut out = format!(
        "create_block_mask on the processor, {} threads, PyTorch {}.\n\n\
         | mask | tokens | maskloom (ms) | its lists alone (ms) | PyTorch (ms) |\n|---|---|---|---|---|\n",
        run.environment.said("threads"),
        run.environment.said("torch")
    );
    for Mask { name, tokens, ms, blocks_ms, torch_ms } in &run.rows {
        let (lists, torch) = (optional(*blocks_ms, 3), optional(*torch_ms, 0));
        let _ = writeln!(out, "| {name} | {tokens} | {ms:.2} | {lists} | {torch} |");
    }
    out
}

/// Times of several ranks; a later entry of a mask replaces an earlier one, because it has more.
fn ranks(run: &[Value]) -> String {
    let said = |key: &str| words(&run[0][key]);
    let (ranks, gpu, torch) = (said("ranks"), said("gpu"), said("torch"));
    let mut out = format!(
        "{ranks} x {gpu}, PyTorch {torch}; {} tokens, {} heads and {} of keys. Milliseconds of the slowest rank.\n\n\
         | mask | forward, this plan | PTRR | forward and backward, this plan | PTRR | ratio | of one card's time / {ranks} |\n\
         |---|---|---|---|---|---|---|\n",
        said("tokens"),
        said("heads"),
        said("kv_heads")
    );
    let named = |row: &Value| row["mask"].as_str().or(row["layers"].as_str()).map(String::from);
    let mut names: Vec<String> = Vec::new();
    run.iter().filter_map(named).for_each(|name| {
        if !names.contains(&name) {
            names.push(name)
        }
    });
    let count = run[0]["ranks"].as_f64().unwrap_or(f64::NAN);
    for name in names {
        let Some(row) = run.iter().rev().find(|row| named(row).as_ref() == Some(&name) && row["plan"].is_object())
        else {
            continue;
        };
        let ms = |who: &str, what: &str| row[who][what].as_f64();
        let ptrr = "PTRR and all-gather";
        let (plan, other) = (ms("plan", "both_ms"), ms(ptrr, "both_ms"));
        let times =
            [ms("plan", "forward_ms"), ms(ptrr, "forward_ms"), plan, other].map(|x| x.map_or(String::new(), digits));
        let ratio = optional(other.zip(plan).map(|(other, plan)| other / plan), 2);
        let share = ms("plan", "one_card_both_ms").zip(plan).map(|(one, plan)| 100.0 * one / count / plan);
        let share = share.map_or(String::new(), |share| format!("{share:.0}%"));
        let _ = writeln!(out, "| {name} | {} | {ratio} | {share} |", times.join(" | "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
        let mut found: Vec<PathBuf> =
            files.into_iter().filter(|f| f.extension().is_some_and(|e| e == ending)).collect();
        folders.iter().for_each(|folder| found.extend(self::files(folder, ending)));
        found
    }

    #[test]
    fn every_run_of_a_folder_is_printed_on_a_page_or_named_as_not_printed() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        let pages: Vec<String> =
            files(&docs, "md").iter().map(|page| std::fs::read_to_string(page).expect("UTF-8")).collect();
        let index = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/measurements/README.md"));
        let (printed, rest) = index.split_once("## Not printed").expect("the section");
        let runs = docs.join("measurements");
        let mut kinds = 0;
        for file in files(&runs, "json").iter().filter(|file| file.parent() != Some(&runs)) {
            let text = std::fs::read_to_string(file).expect("UTF-8");
            let name = file.strip_prefix(&runs).expect("inside").to_string_lossy().replace('\\', "/");
            let table = of(&serde_json::from_str(&text).expect("JSON")).expect("a known kind").expect("whole");
            if rest.contains(&name) {
                continue;
            }
            kinds += 1;
            assert!(printed.contains(&name), "{name} is not in docs/measurements/README.md");
            let command = format!("maskloom bench recorded --from docs/measurements/{name}");
            assert!(pages.iter().any(|page| page.contains(&table)), "print it anew: {command}\n{table}");
        }
        assert!(kinds >= 6, "{kinds}");
    }

    #[test]
    fn quotients_are_computed_and_a_run_of_another_kind_is_none() {
        let run = serde_json::json!([
            { "torch": "2.11", "gpu": "H200", "ranks": 4, "tokens": 8, "heads": 2, "kv_heads": 1 },
            { "mask": "causal", "plan": { "forward_ms": 8.3, "both_ms": 30.0, "one_card_both_ms": 108.0 } },
            { "mask": "causal", "plan": { "forward_ms": 8.3, "both_ms": 30.0, "one_card_both_ms": 108.0 },
              "PTRR and all-gather": { "forward_ms": 12.04, "both_ms": 42.0 } },
            { "mask": "late", "skipped": "no time left" },
        ]);
        let table = of(&run).expect("known").expect("whole");
        assert!(table.ends_with("|---|\n| causal | 8.30 | 12.0 | 30.0 | 42.0 | 1.40 | 90% |\n"), "{table}");
        assert!(of(&serde_json::json!({ "rows": [] })).is_none() && of(&serde_json::json!([])).is_none());
        assert!(of(&serde_json::json!({ "costs": [], "card": "H100" })).expect("known").is_err());
    }
}
