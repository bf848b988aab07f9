//! `maskloom bench recorded --from F.json`: prints a committed run as the table of the documentation.
//!
//! Invariant: every figure is computed from the file's samples; none is typed. Must not know what was measured.

use super::super::out::Failure;
use crate::backends::stats;
use crate::base::{BackendName, Diagnostic};
use crate::problem::result::{RunReport, Timing};
use crate::problem::verdict::{Baseline, Versus, quantile};
use crate::tasks::recorded::Collection;
use crate::worker::files;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// A committed run: its machine, and every sample.
#[derive(Deserialize)]
struct Run {
    environment: Environment,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Environment {
    device: String,
    date: String,
    dtype: String,
    what: String,
}

#[derive(Deserialize)]
struct Row {
    workload: String,
    batch: usize,
    heads: usize,
    kv_heads: usize,
    seq: usize,
    head_dim: usize,
    kernel: String,
    tflops: f64,
    samples_ms: Vec<f64>,
}

impl Row {
    fn shape(&self) -> String {
        let grouped = if self.kv_heads == self.heads { String::new() } else { format!(" kv heads {}", self.kv_heads) };
        format!("{} B{} H{}{grouped} S{} D{}", self.workload, self.batch, self.heads, self.seq, self.head_dim)
    }
}

/// The file's table. Errors: the file cannot be read or is not a run.
pub(super) fn table(path: &Path) -> Result<String, Failure> {
    let text = files::read_text(path).map_err(|why| why.hint("name a run of docs/measurements"))?;
    Ok(of_text(&text).map_err(|why| {
        Diagnostic::error("no-run", format!("{} is not a recorded run: {why}", path.display()))
            .hint("a run has an environment and rows with samples_ms, as `maskloom bench kernels --json` and `maskloom presets record` write them")
    })?)
}

/// The table of the text's kind of run.
fn of_text(text: &str) -> Result<String, serde_json::Error> {
    if let Ok(collection) = serde_json::from_str::<Collection>(text) {
        return Ok(of_presets(&collection));
    }
    let object: serde_json::Value = serde_json::from_str(text)?;
    if let Some(table) = super::tables::of(&object) {
        return table;
    }
    if object.get("ratios").is_some() { Ok(of_kernels(&serde_json::from_value(object)?)) } else { markdown(text) }
}

/// The presets' runs on one card: flex and the other backends, and flex against what a user would run instead. Columns of
/// backends that ran nowhere are left out.
fn of_presets(collection: &Collection) -> String {
    use BackendName::{CudnnFlex, Eager, FlashAttention2, Flex, Sdpa, TorchFlex, TorchFlexFlash, TorchSdpa};
    let reports = || collection.runs.values().map(|run| &run.report);
    let said = |key: &'static str| range(reports().filter_map(move |report| report.environment.get(key)));
    let card = reports().next().and_then(|report| report.environment.get("gpu")).map_or("unknown", String::as_str);
    let rounds = range(collection.runs.values().map(|run| run.conditions.options.rounds));
    let dates = said("date");
    let mut out = format!(
        "The presets on {card}, {dates}, median of {rounds} rounds; forward pass unless a column says backward.\n"
    );
    let _ = writeln!(out, "Builds of Maskloom: {}.{}\n", each(reports(), "maskloom"), pytorch(reports()));
    let others = [TorchSdpa, TorchFlex, TorchFlexFlash, CudnnFlex, Sdpa, FlashAttention2, Eager];
    let ran = |b: &BackendName| reports().any(|report| report.timing(*b).is_some());
    let others: Vec<BackendName> = others.into_iter().filter(ran).collect();
    let back = |b: &BackendName| *b == Flex || b.is_torch() && reports().any(|report| backward(report, *b).is_some());
    let backs: Vec<BackendName> =
        [Flex, TorchSdpa, TorchFlex, TorchFlexFlash, CudnnFlex].into_iter().filter(back).collect();
    let mut heads: Vec<String> = ["preset", "cells kept", "flex ms", "spread", "TFLOP/s"].map(String::from).into();
    heads.extend(others.iter().map(|b| format!("{b} ms")));
    heads.push("flex is faster than".into());
    heads.extend(backs.iter().map(|b| format!("{b} backward ms")));
    if backs.len() > 1 {
        heads.push("backward, flex is faster than".into());
    }
    let _ = writeln!(out, "| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()));
    for (name, run) in &collection.runs {
        let report = &run.report;
        let Some(flex) = report.timing(Flex) else { continue };
        let ms = |timing: Option<&Timing>| timing.map_or(String::new(), |t| format!("{:.3}", t.median_ms));
        let (kept, spread) = (100.0 * report.work.density, 100.0 * flex.spread);
        let tflops = report.work.flop / flex.median_ms / 1e9;
        let mut cells = vec![name.clone(), format!("{kept:.1}%"), ms(Some(flex))];
        cells.extend([format!("{spread:.1}%"), format!("{tflops:.0}")]);
        cells.extend(others.iter().map(|b| ms(report.timing(*b))));
        cells.push(against(report.versus(Flex), report.baseline()));
        cells.extend(backs.iter().map(|b| ms(backward(report, *b))));
        if backs.len() > 1 {
            let base = report.backward_baseline().filter(|base| base.backend.is_torch());
            cells.push(against(report.backward_versus(Flex), base));
        }
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

/// `1.89x PyTorch 2.11 FlexAttention, Triton`; empty without either.
fn against(versus: Option<Versus>, base: Option<Baseline<'_>>) -> String {
    versus.zip(base).map_or(String::new(), |(versus, base)| versus.words_of(&base.words))
}

/// Every value that an environment's key has, with the number of runs: `0.1.0 (6c15414b8, debug) in 18 runs, …`.
fn each<'a>(reports: impl Iterator<Item = &'a RunReport>, key: &str) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for value in reports.filter_map(|report| report.environment.get(key)) {
        *counts.entry(value).or_default() += 1;
    }
    let each = counts.iter().map(|(value, count)| format!("{value} in {count} runs"));
    each.collect::<Vec<_>>().join(", ")
}

/// Where PyTorch ran, and how much faster flex is than the fastest of what a user would run instead, then than PyTorch alone; empty
/// where it ran nowhere.
fn pytorch<'a>(reports: impl Iterator<Item = &'a RunReport> + Clone) -> String {
    use BackendName::{CudnnFlex, Flex, TorchFlex, TorchFlexFlash, TorchSdpa};
    let versions = each(reports.clone(), "torch");
    if versions.is_empty() {
        return String::new();
    }
    let mut out = format!(" PyTorch: {versions}. Ratios are of kernels.");
    let torchs = |base: &Baseline<'_>| base.backend.is_torch();
    if reports.clone().any(|r| r.timing(TorchFlexFlash).or(r.timing(CudnnFlex)).is_some()) {
        let forward = reports.clone().filter(|r| r.baseline().as_ref().is_some_and(torchs));
        let back = reports.clone().filter(|r| r.backward_baseline().as_ref().is_some_and(torchs));
        let forward = summary(forward.filter_map(|r| Some(r.versus(Flex)?.ratio)).collect());
        let back = summary(back.filter_map(|r| Some(r.backward_versus(Flex)?.ratio)).collect());
        let _ = write!(
            out,
            " The fastest of PyTorch's SDPA, its FlexAttention in Triton and in FlashAttention-4, and \
             cudnn.flex_attention, over flex: forward {forward}; backward {back}."
        );
    }
    // a user of PyTorch alone has these two
    let alone = [TorchSdpa, TorchFlex];
    let both = || reports.clone().filter(|report| report.timing(TorchFlex).is_some());
    let forward = summary(both().filter_map(|r| nearest(r, &alone, |r, b| r.timing(b))).collect());
    let back = summary(both().filter_map(|r| nearest(r, &alone, backward)).collect());
    let _ = write!(
        out,
        " The faster of PyTorch's SDPA and its FlexAttention in Triton, where both were asked and the latter ran, over \
         flex: forward {forward}; backward {back}."
    );
    out
}

/// The time of the fastest of `others` over that of flex; None where flex or all of them have none.
pub(super) fn nearest(
    report: &RunReport,
    others: &[BackendName],
    timing: fn(&RunReport, BackendName) -> Option<&Timing>,
) -> Option<f64> {
    let ms = |backend| timing(report, backend).map(|timing| timing.median_ms);
    Some(others.iter().filter_map(|b| ms(*b)).min_by(f64::total_cmp)? / ms(BackendName::Flex)?)
}

/// `geometric mean 1.15x, median 1.15x (77 presets, slower in 6)`.
fn summary(mut ratios: Vec<f64>) -> String {
    let Some(mean) = mean_of(&ratios) else { return "nowhere".into() };
    ratios.sort_by(f64::total_cmp);
    let (median, slower) = (quantile(&ratios, 0.5), ratios.iter().filter(|ratio| **ratio < 1.0).count());
    format!("geometric mean {mean:.2}x, median {median:.2}x ({} presets, slower in {slower})", ratios.len())
}

/// The geometric mean; None of nothing.
pub(super) fn mean_of(ratios: &[f64]) -> Option<f64> {
    let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (!ratios.is_empty()).then(|| (logs / ratios.len() as f64).exp())
}

/// The least and the greatest, or the one that all are.
pub(super) fn range<T: Ord + std::fmt::Display>(values: impl Iterator<Item = T> + Clone) -> String {
    match (values.clone().min(), values.max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "unknown".into(),
    }
}

/// The backward pass of a backend, where it was recorded.
pub(super) fn backward(report: &RunReport, backend: BackendName) -> Option<&Timing> {
    report.gradients.iter().find(|row| row.backend == backend)?.outcome.right()
}

/// The output of `maskloom bench kernels --json`.
#[derive(Deserialize)]
struct Kernels {
    environment: BTreeMap<String, String>,
    rows: Vec<Racer>,
    ratios: Vec<Compared>,
    #[serde(default)]
    geometric_means: BTreeMap<String, Mean>,
    #[serde(default)]
    partial_over_full: BTreeMap<String, f64>,
}

/// One backend in one workload.
#[derive(Deserialize)]
struct Racer {
    name: String,
    backend: String,
    device: String,
    batch: usize,
    heads: usize,
    kv_heads: usize,
    q_len: usize,
    kv_len: usize,
    head_dim: usize,
    dtype: String,
    samples_ms: Option<Vec<f64>>,
    backward_samples_ms: Option<Vec<f64>>,
}

/// flex in one workload, and the times of the others over its own.
#[derive(Deserialize)]
struct Compared {
    name: String,
    rate: Rate,
    ratios: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Rate {
    tflops: Option<f64>,
    tb_per_s: Option<f64>,
}

#[derive(Deserialize)]
struct Mean {
    ratio: f64,
    workloads: usize,
}

impl Racer {
    fn backward(&self) -> bool {
        self.samples_ms.is_none() && self.backward_samples_ms.is_some()
    }

    fn samples(&self) -> Vec<f64> {
        self.samples_ms.as_ref().or(self.backward_samples_ms.as_ref()).cloned().unwrap_or_default()
    }

    /// `B4 H16 S8192 D128`; kv heads and the key length are named if they differ.
    fn shape(&self) -> String {
        let grouped = if self.kv_heads == self.heads { String::new() } else { format!(" kv heads {}", self.kv_heads) };
        let lengths = if self.q_len == self.kv_len {
            format!("S{}", self.q_len)
        } else {
            format!("Q{} K{}", self.q_len, self.kv_len)
        };
        format!("B{} H{}{grouped} {lengths} D{}", self.batch, self.heads, self.head_dim)
    }
}

/// A run of `bench kernels`: flex's time, and the others' times over it; an empty field is a backend that did not run.
fn of_kernels(run: &Kernels) -> String {
    let flex = |name: &str| run.rows.iter().find(|row| row.name == name && row.backend == BackendName::Flex.as_str());
    let beside: Vec<&str> = BackendName::ALL
        .iter()
        .map(|backend| backend.as_str())
        .filter(|name| run.ratios.iter().any(|row| row.ratios.contains_key(*name)))
        .collect();
    let first = run.ratios.iter().find_map(|row| flex(&row.name));
    let said = first.map_or(String::new(), |row| format!("{}, {}, ", row.device, row.dtype));
    let (rounds, backward) = first.map_or((0, false), |row| (row.samples().len(), row.backward()));
    let pass = if backward { "Backward" } else { "Forward" };
    let date = run.environment.get("date").map_or("unknown date", String::as_str);
    let mut out = format!(
        "{pass} pass of `flex` beside the other implementations; {said}{date}, median of {rounds} rounds by turns.\n\
         A column that names a backend is its time over that of `flex`; an empty field is a backend that did not run.\n\n"
    );
    let heads: String = beside.iter().map(|name| format!(" {name} |")).collect();
    let _ = writeln!(out, "| workload | shape | flex ms | spread | TFLOP/s |{heads}");
    let _ = writeln!(out, "|---|---|---|---|---|{}", "---|".repeat(beside.len()));
    let times = |ratio: Option<&f64>| ratio.map_or(" |".to_string(), |ratio| format!(" {ratio:.2} |"));
    for row in &run.ratios {
        let Some((racer, timing)) = flex(&row.name).and_then(|r| Some((r, stats::timing(r.samples())?))) else {
            continue;
        };
        let rate = match (row.rate.tb_per_s, row.rate.tflops) {
            (Some(bytes), _) => format!("{bytes:.2} TB/s"),
            (None, Some(flops)) => format!("{flops:.0}"),
            (None, None) => String::new(),
        };
        let (name, shape, ms, spread) = (&row.name, racer.shape(), timing.median_ms, 100.0 * timing.spread);
        let ratios: String = beside.iter().map(|name| times(row.ratios.get(*name))).collect();
        let _ = writeln!(out, "| {name} | {shape} | {ms:.3} | {spread:.1}% | {rate} |{ratios}");
    }
    let count = run.geometric_means.values().map(|mean| mean.workloads).max();
    if let Some(count) = count {
        let mean = |name: &&str| match run.geometric_means.get(*name) {
            Some(mean) if mean.workloads < count => format!(" {:.2} (of {}) |", mean.ratio, mean.workloads),
            mean => times(mean.map(|mean| &mean.ratio)),
        };
        let means: String = beside.iter().map(mean).collect();
        let _ = writeln!(out, "| geometric mean of the first {count} | | | | |{means}");
    }
    if !run.partial_over_full.is_empty() {
        out.push_str("\n| workload | its time over that of as many full tiles |\n|---|---|\n");
        run.partial_over_full.iter().for_each(|(name, times)| {
            let _ = writeln!(out, "| {name} | {times:.3} |");
        });
    }
    out
}

/// Rows in the file's order; a kernel's ratio is its time over that of the first kernel of the same shape in the same
/// block.
fn markdown(text: &str) -> Result<String, serde_json::Error> {
    let run: Run = serde_json::from_str(text)?;
    let at = &run.environment;
    let mut out = format!("{}; {}, {}, {}.\n\n", at.what, at.device, at.dtype, at.date);
    out.push_str(
        "| workload | kernel | ms | spread (interquartile) | TFLOP/s | times the first |\n|---|---|---|---|---|---|\n",
    );
    let mut first: Option<(String, f64)> = None;
    for row in &run.rows {
        let Some(timing) = stats::timing(row.samples_ms.clone()) else { continue };
        let shape = row.shape();
        let ratio = match &first {
            Some((of, ms)) if *of == shape => format!("{:.2}", timing.median_ms / ms),
            _ => {
                first = Some((shape.clone(), timing.median_ms));
                String::new()
            }
        };
        let spread = timing.spread * 100.0;
        let _ = writeln!(
            out,
            "| {shape} | {} | {:.2} | {spread:.0}% | {:.0} | {ratio} |",
            row.kernel, timing.median_ms, row.tflops
        );
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_shows_what_the_files_say() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/kernels/measurements.md"));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/measurements");
        let files = std::fs::read_dir(folder).expect("the folder of runs").map(|entry| entry.expect("a file").path());
        let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
        assert!(!files.is_empty());
        for file in files {
            let Ok(want) = table(&file) else { panic!("{} is no run", file.display()) };
            let name = file.file_name().expect("a name").to_string_lossy();
            let command = format!("maskloom bench recorded --from docs/measurements/{name}");
            assert!(page.contains(&want), "print it anew: {command}\n{want}");
        }
    }

    /// A racer of a workload in the form of `bench kernels --json`.
    fn racer(name: &str, backend: &str, samples: &[f64]) -> serde_json::Value {
        serde_json::json!({
            "name": name, "backend": backend, "device": "NVIDIA H200", "q_len": 8192, "kv_len": 8192, "batch": 4,
            "heads": 16, "kv_heads": 16, "head_dim": 128, "dtype": "bfloat16", "density": 1.0, "median_ms": samples[1],
            "spread": 0.1, "tflops": 820.0, "kernel": "flex_sm90", "samples_ms": samples,
        })
    }

    #[test]
    fn a_run_of_kernels_is_a_table_of_times_and_of_ratios() {
        let mut decode = racer("decode 8 x 32k", "flex", &[0.26, 0.27, 0.28]);
        (decode["q_len"], decode["kv_len"], decode["kv_heads"]) = (1.into(), 32_768.into(), 8.into());
        let run = serde_json::json!({
            "environment": { "date": "2026-11-24", "host": "here" },
            "rows": [
                racer("full", "flex", &[2.6, 2.7, 2.8]), racer("full", "torch:flex", &[4.0, 5.4, 6.0]),
                racer("full", "eager", &[40.0, 54.0, 60.0]), racer("causal", "flex", &[1.0, 2.0, 3.0]), decode,
            ],
            "ratios": [
                { "name": "full", "main": true, "flex_ms": 2.7, "rate": { "tflops": 820.4 },
                  "ratios": { "torch:flex": 2.0, "eager": 20.0 } },
                { "name": "causal", "main": true, "flex_ms": 2.0, "rate": { "tflops": 800.0 }, "ratios": { "torch:flex": 2.5 } },
                { "name": "decode 8 x 32k", "main": false, "flex_ms": 0.27, "rate": { "tb_per_s": 4.081 }, "ratios": {} },
            ],
            "geometric_means": { "torch:flex": { "ratio": 2.236, "workloads": 2 }, "eager": { "ratio": 20.0, "workloads": 1 } },
            "partial_over_full": { "all tiles partial": 1.0312 },
        });
        let want = "\
Forward pass of `flex` beside the other implementations; NVIDIA H200, bfloat16, 2026-11-24, median of 3 rounds by turns.
A column that names a backend is its time over that of `flex`; an empty field is a backend that did not run.

| workload | shape | flex ms | spread | TFLOP/s | eager | torch:flex |
|---|---|---|---|---|---|---|
| full | B4 H16 S8192 D128 | 2.700 | 3.7% | 820 | 20.00 | 2.00 |
| causal | B4 H16 S8192 D128 | 2.000 | 50.0% | 800 | | 2.50 |
| decode 8 x 32k | B4 H16 kv heads 8 Q1 K32768 D128 | 0.270 | 3.7% | 4.08 TB/s | | |
| geometric mean of the first 2 | | | | | 20.00 (of 1) | 2.24 |

| workload | its time over that of as many full tiles |
|---|---|
| all tiles partial | 1.031 |
";
        assert_eq!(of_text(&run.to_string()).expect("a run"), want);
    }

    #[test]
    fn a_run_of_backward_passes_says_so_and_shows_their_times() {
        let mut flex = racer("causal", "flex", &[1.0, 2.0, 3.0]);
        (flex["samples_ms"], flex["median_ms"]) = (serde_json::Value::Null, serde_json::Value::Null);
        flex["backward_samples_ms"] = serde_json::json!([5.0, 5.1, 5.2]);
        let run = serde_json::json!({
            "environment": { "date": "2026-11-24" }, "rows": [flex],
            "ratios": [{ "name": "causal", "main": true, "flex_ms": 5.1, "rate": { "tflops": 511.2 }, "ratios": { "torch:flex": 1.4 } }],
            "geometric_means": {},
        });
        let printed = of_text(&run.to_string()).expect("a run");
        assert!(printed.starts_with("Backward pass of `flex`"), "{printed}");
        assert!(printed.ends_with("| causal | B4 H16 S8192 D128 | 5.100 | 2.0% | 511 | 1.40 |\n"), "{printed}");
    }

    #[test]
    fn the_documentation_shows_the_presets_recorded_runs() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/kernels/recorded.md"));
        for file in ["nvidia_h200", "nvidia_h100"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("presets/recorded/{file}.json"));
            let Ok(want) = table(&path) else { panic!("{file} is a collection of runs") };
            assert!(page.contains(&want), "print it anew: maskloom bench recorded --from presets/recorded/{file}.json");
        }
    }

    #[test]
    fn the_readmes_figures_are_those_of_the_recorded_runs() {
        let readme = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).replace('\n', " ");
        let collection = &crate::tasks::recorded::embedded()[0];
        let said = pytorch(collection.runs.values().map(|run| &run.report));
        let number = |word: &str, after: &str| {
            let rest = said.split_once(after).and_then(|(_, rest)| rest.split_once(word)).expect("said").1;
            rest.split(|c: char| !c.is_ascii_digit() && c != '.').next().expect("a number").to_string()
        };
        let (all, alone) = ("The fastest of", "The faster of");
        let claims = [
            format!("recorded runs of {} presets on an H200", number("(", all)),
            format!(
                "Forward the kernels are {} times as fast, and slower in {} presets",
                number("mean ", all),
                number("slower in ", all)
            ),
            format!(
                "the median is {}: they are slower in {} of {}",
                number("median ", "; backward"),
                number("slower in ", "; backward"),
                number("(", "; backward")
            ),
            format!(
                "they are {} and {} times as fast",
                number("mean ", alone),
                said.rsplit("mean ").next().and_then(|r| r.split('x').next()).expect("said")
            ),
        ];
        claims.iter().for_each(|claim| assert!(readme.contains(claim.as_str()), "{claim}"));
    }

    #[test]
    fn backward_passes_that_stand_out_are_explained() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/kernels/recorded.md"));
        let outliers =
            page.split("## Outliers").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the section");
        let mut found = 0;
        for (name, run) in crate::tasks::recorded::embedded().iter().flat_map(|card| &card.runs) {
            let flex = BackendName::Flex;
            let Some((forward, back)) = run.report.timing(flex).zip(backward(&run.report, flex)) else { continue };
            if back.median_ms > 10.0 * forward.median_ms {
                found += 1;
                assert!(outliers.contains(&format!("backward pass of `{name}`")), "{name}: say why");
            }
        }
        assert!(found > 0 || !outliers.contains("backward pass of"), "what was explained is no outlier any more");
    }

    #[test]
    fn pytorchs_columns_stand_where_it_ran_and_its_version_beside_each_ratio() {
        let mut collection = crate::tasks::recorded::embedded()[1].clone();
        let kept = ["alibi", "axial_image"];
        collection.runs.retain(|name, _| kept.contains(&name.as_str()));
        let both = of_presets(&collection);
        let row = |table: &str, name: &str| {
            table.lines().find(|l| l.starts_with(&format!("| {name} |"))).unwrap().to_string()
        };
        assert!(
            both.contains("| torch:sdpa ms | torch:flex ms | sdpa ms | eager ms | flex is faster than |"),
            "{both}"
        );
        let alibi = row(&both, "alibi");
        assert_eq!(alibi.matches("x PyTorch 2.11 FlexAttention, Triton").count(), 2, "{alibi}");
        assert!(row(&both, "axial_image").contains("x our dense-mask kernel |"));
        assert!(both.contains("PyTorch: 2.11.0+cu130 in 1 runs. Ratios are of kernels. The faster of"), "{both}");
        assert_eq!(both.matches("x (1 presets, slower in 0)").count(), 2, "{both}");
        // nothing of PyTorch: none of its columns
        collection.runs.remove("alibi");
        let without = of_presets(&collection);
        assert!(!without.contains("torch") && !without.contains("PyTorch") && without.contains("flex backward ms |\n"));
    }

    #[test]
    fn a_file_that_is_no_run_is_refused_with_the_reason() {
        assert!(markdown("{\"rows\": []}").unwrap_err().to_string().contains("environment"));
    }
}
