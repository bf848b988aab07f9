//! `maskloom bench kernels`: flex compared with the other implementations of attention, on the workloads that attention
//! kernels are usually compared by.
//!
//! Invariant: all backends of a workload race in one run, and a time without a check gives no row. Must not know a
//! backend.

use super::{Args, raced};
use crate::base::BackendName;
use crate::cli::arguments::Pass;
use crate::cli::out::{self, Failure};
use crate::cli::table::{self, Cell, Table};
use crate::cli::work::Worker;
use crate::cli::{race, workloads};
use crate::document::compile::{BuiltIn, compile};
use crate::document::from_document;
use crate::document::model::*;
use crate::problem::Problem;
use crate::problem::card::CardStates;
use crate::problem::result::{
    BackendReport, Calls, Clock, GradientError, GradientOutcome, GradientReport, Outcome, RunReport, Timing,
};
use crate::tasks::plan;
use crate::worker::files;
use crate::worker::protocol::RunRequest;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Text of the mods.
const MODS: &str = include_str!("peers.py");

use BackendName::{CudnnFlex, Eager, FlashAttention2, Flex, Sdpa, TorchFlex, TorchFlexFlash, TorchSdpa};
const RACERS: [BackendName; 8] = [Eager, Sdpa, FlashAttention2, Flex, TorchSdpa, TorchFlex, TorchFlexFlash, CudnnFlex];

/// One row: a shape and the entries of [`MODS`] that it uses.
#[derive(Clone, Copy, Debug)]
struct Workload {
    name: &'static str,
    /// Whether the row counts for the mean: the eleven at head_dim 128.
    main: bool,
    batch: usize,
    heads: usize,
    kv_heads: usize,
    q_len: usize,
    kv_len: usize,
    head_dim: usize,
    mask: &'static str,
    score: &'static str,
    fast_math: bool,
}

const BASE: Workload = Workload {
    name: "full",
    main: true,
    batch: 4,
    heads: 16,
    kv_heads: 16,
    q_len: 8192,
    kv_len: 8192,
    head_dim: 128,
    mask: "",
    score: "",
    fast_math: false,
};

const fn with(name: &'static str, mask: &'static str, score: &'static str) -> Workload {
    Workload { name, mask, score, ..BASE }
}

const fn narrow(name: &'static str, mask: &'static str) -> Workload {
    Workload { name, main: false, heads: 32, kv_heads: 32, head_dim: 64, mask, ..BASE }
}

const fn shaped(
    name: &'static str,
    (batch, heads, kv_heads): (usize, usize, usize),
    (q_len, kv_len, head_dim): (usize, usize, usize),
    mask: &'static str,
) -> Workload {
    Workload { name, main: false, batch, heads, kv_heads, q_len, kv_len, head_dim, mask, ..BASE }
}

/// The cost of partial tiles: workloads with only partial tiles, each paired with one that has the same number of full
/// tiles.
const PARTIAL: [(&str, &str); 4] = [
    ("all tiles partial", "full"),
    ("all tiles partial and distinct", "full"),
    ("d64 all tiles partial and distinct", "d64 full"),
    ("d256 all tiles partial and distinct", "d256 full"),
];

/// Masks alone, used in both passes.
const MASKS: &[Workload] = &[
    BASE,
    with("causal", "causal", ""),
    with("sliding window 1024", "window", ""),
    with("document causal", "documents", ""),
    with("prefix-LM 2048", "prefix", ""),
    with("NATTEN 2-D 13x13", "natten", ""),
    with("painted blocks 30%", "painted", ""),
];

/// Further workloads of the forward pass.
const FORWARD: &[Workload] = &[
    with("ALiBi causal", "causal", "alibi"),
    with("soft cap 50", "", "soft_cap"),
    with("soft cap + window", "window", "soft_cap"),
    with("relative-bias table", "", "relative_bias"),
    Workload { name: "soft cap 50, fast math", main: false, score: "soft_cap", fast_math: true, ..BASE },
    Workload {
        name: "soft cap + window, fast math",
        main: false,
        mask: "window",
        score: "soft_cap",
        fast_math: true,
        ..BASE
    },
    Workload { main: false, ..with(PARTIAL[0].0, "every_third", "") },
    Workload { main: false, ..with(PARTIAL[1].0, "holes", "") },
    narrow("d64 full", ""),
    narrow("d64 causal", "causal"),
    narrow(PARTIAL[2].0, "holes"),
    narrow("d64 sliding window 1024", "window"),
    Workload { score: "alibi", ..narrow("d64 ALiBi causal", "causal") },
    shaped("d256 full", (1, 16, 8), (8192, 8192, 256), ""),
    shaped(PARTIAL[3].0, (1, 16, 8), (8192, 8192, 256), "holes"),
    shaped("d256 causal", (1, 16, 8), (8192, 8192, 256), "causal"),
    shaped("Flux full", (1, 24, 24), (4608, 4608, 128), ""),
    shaped("Flux causal", (1, 24, 24), (4608, 4608, 128), "causal"),
    shaped("Llama-3 GQA full", (1, 32, 8), (8192, 8192, 128), ""),
    shaped("Llama-3 GQA causal", (1, 32, 8), (8192, 8192, 128), "causal"),
    shaped("Wan full", (1, 12, 12), (32_760, 32_760, 128), ""),
    shaped("short 16x16x1024 causal", (16, 16, 16), (1024, 1024, 128), "causal"),
    shaped("d64 short 8x16x2048 causal", (8, 16, 16), (2048, 2048, 64), "causal"),
    shaped("decode 8 x 32k", (8, 32, 8), (1, 32_768, 128), ""),
    shaped("decode 1 x 131k", (1, 32, 8), (1, 131_072, 128), ""),
];

/// Further workloads of the backward pass; captured tensors of the [`learned`] ones get gradients.
const BACKWARD: &[Workload] = &[
    with("ALiBi causal", "causal", "alibi_fixed"),
    with("soft cap 50", "", "soft_cap"),
    with("relative-bias table", "", "relative_fixed"),
    learned(with("ALiBi slopes learned, causal", "causal", "alibi")),
    learned(with("relative-bias table learned", "", "relative_bias")),
    learned(with("key bias learned", "", "key_bias")),
    learned(with("query gate learned", "", "query_gate")),
    learned(Workload { q_len: 2048, kv_len: 2048, ..with("dense bias learned, 2048", "", "dense_bias") }),
    narrow("d64 full", ""),
    narrow("d64 causal", "causal"),
    shaped("d256 causal", (1, 16, 8), (8192, 8192, 256), "causal"),
];

const fn learned(workload: Workload) -> Workload {
    Workload { main: false, ..workload }
}

impl Workload {
    /// The document that a user would write for it.
    fn document(&self, racers: &[BackendName]) -> Document {
        let heads = ("heads".to_string(), ArgValue::Int(self.heads as i64));
        let args = |entry: &str| -> BTreeMap<_, _> {
            if matches!(entry, "alibi" | "alibi_fixed" | "relative_bias" | "relative_fixed") {
                [heads.clone()].into()
            } else {
                BTreeMap::new()
            }
        };
        let code = |entry: &str| TextCode {
            source: MODS.into(),
            entry: entry.into(),
            args: args(entry),
            ..TextCode::default()
        };
        let layer = |entry: &str| Layer {
            id: 1,
            name: entry.into(),
            enabled: true,
            combine: Combine::And,
            heads: None,
            content: MaskContent::Text(code(entry)),
        };
        let score = |entry: &str| ScoreLayer {
            id: 2,
            name: entry.into(),
            enabled: true,
            content: ScoreContent::Text(code(entry)),
        };
        let given = |entry: &'static str| Some(entry).filter(|entry| !entry.is_empty());
        let axes =
            Axes { q: Axis::tokens(self.q_len), kv: (self.kv_len != self.q_len).then(|| Axis::tokens(self.kv_len)) };
        let settings = Settings {
            batch: self.batch,
            kv_heads: self.kv_heads,
            fast_math: self.fast_math,
            backends: racers.to_vec(),
            ..Settings::new(self.heads, self.head_dim)
        };
        Document {
            layers: given(self.mask).map(layer).into_iter().collect(),
            scores: given(self.score).map(score).into_iter().collect(),
            ..Document::new(self.name, axes, settings)
        }
    }

    fn request(&self, racers: &[BackendName]) -> Result<RunRequest, Failure> {
        let document = self.document(racers);
        let problem = from_document(&document, &compile(&document, &BuiltIn))?;
        Ok(plan::run_request(&problem, &document.settings, crate::base::Device::Cpu))
    }

    /// The bytes of keys and values, which limit a few query rows.
    fn kv_bytes(&self) -> Option<f64> {
        (self.q_len == 1).then(|| (2 * self.batch * self.kv_heads * self.kv_len * self.head_dim * 2) as f64)
    }
}

/// The workloads of the backward pass whose name contains `only`, as problems.
pub(super) fn backward_problems(only: &str) -> Result<Vec<(&'static str, Problem)>, Failure> {
    let one = |w: &Workload| {
        let document = w.document(&[]);
        Ok((w.name, from_document(&document, &compile(&document, &BuiltIn))?))
    };
    MASKS.iter().chain(BACKWARD).filter(|w| w.name.contains(only)).map(one).collect()
}

/// Races all workloads and prints them; returns whether all were right.
pub(super) fn run(args: &Args) -> Result<bool, Failure> {
    let racers = if args.backend.is_empty() { RACERS.to_vec() } else { args.backend.clone() };
    let mut worker = Worker::connect(&args.at.target)?;
    let (mut rows, mut compared, mut right) = (Vec::new(), Vec::new(), true);
    let mut ran: Option<Conditions> = None;
    let (workloads, field) = match args.pass {
        Pass::Backward => (BACKWARD, "backward_ms"),
        Pass::Forward | Pass::Both => (FORWARD, "median_ms"),
    };
    let wanted = |w: &&Workload| {
        w.name.contains(args.only.as_str()) && !args.without.iter().any(|word| w.name.contains(word.as_str()))
    };
    for workload in MASKS.iter().chain(workloads).filter(wanted) {
        let mut request = workload.request(&racers)?;
        request.device = match args.at.device {
            Some(device) => device,
            None => workloads::gpu(&worker)?,
        };
        request.options.rounds = args.rounds.max(1);
        request.options.reference_rows = 128;
        request.python = args.python.clone();
        args.pass.ask(&mut request, 0, false);
        let (report, _) = worker.run(request.clone())?;
        right &= race::succeeded(&report);
        Conditions::follow(&mut ran, &report);
        let raced = race::rows(workload.name, &request.problem, &report);
        // a long table: each result is printed when it is known
        absences(&report).iter().for_each(|why| out::note(&format!("{}: {why}", workload.name)));
        if let Some(row) = compare(workload, &raced, field) {
            out::note(&reported(&row, &raced));
            compared.push(row);
        }
        rows.extend(raced);
        if let Some(path) = &args.out {
            files::save(path, object(&rows, &compared, ran.as_ref()).to_string().as_bytes())?;
        }
    }
    if args.json {
        out::json(&object(&rows, &compared, ran.as_ref()))?;
    } else {
        let (means, partial) = (means(&compared), partial_over_full(&compared));
        let partial: String = partial
            .iter()
            .map(|(name, times)| format!("{name}: {times:.3}x the time of the same number of full tiles\n"))
            .collect();
        out::text(&(raced::render(&rows) + "\n" + &render(&compared, &means) + &partial))?;
    }
    Ok(right)
}

/// Where all races of a run took place.
struct Conditions {
    environment: BTreeMap<String, String>,
    /// Before the first race and after the last.
    card: Option<CardStates>,
}

impl Conditions {
    /// One more race: its versions are those of the machine that ran it, which may be another one than this.
    fn follow(so_far: &mut Option<Conditions>, report: &RunReport) {
        let start = so_far.as_ref().and_then(|ran| ran.card).map(|card| card.start);
        let card = report.card.map(|card| CardStates { start: start.unwrap_or(card.start), ..card });
        *so_far = Some(Conditions { environment: report.environment.clone(), card });
    }
}

/// The run so far, as `bench recorded` reads it.
fn object(rows: &[Value], compared: &[Value], ran: Option<&Conditions>) -> Value {
    let mut object = super::object(rows.to_vec());
    if let Some(ran) = ran {
        object["environment"] = json!(ran.environment);
        object["card"] = json!(ran.card);
    }
    (object["ratios"], object["geometric_means"]) = (json!(compared), means(compared));
    object["partial_over_full"] = json!(partial_over_full(compared));
    object
}

/// The backends that refused, failed or were wrong, with the reason: a missing figure needs one.
fn absences(report: &RunReport) -> Vec<String> {
    let reported = |r: &BackendReport| match &r.outcome {
        Outcome::Done { error, .. } if error.passed() => None,
        Outcome::Done { error, .. } => Some(format!("{} has a wrong result, error {:.1e}", r.backend, error.max_abs())),
        Outcome::Refused { why } => Some(format!("{} refused: {}", r.backend, why.message)),
        Outcome::Failed { why } => Some(format!("{} failed: {}", r.backend, why.message)),
    };
    let backward = |r: &GradientReport| match &r.outcome {
        GradientOutcome::Done { errors, .. } => {
            let words = errors.iter().find_map(GradientError::words)?;
            Some(format!("{}'s backward pass is wrong: {words}", r.backend))
        }
        GradientOutcome::Refused { why } => Some(format!("{} refused the backward pass: {}", r.backend, why.message)),
        GradientOutcome::Failed { why } => Some(format!("{}'s backward pass failed: {}", r.backend, why.message)),
    };
    let forward = report.backends.iter().filter_map(reported);
    forward.chain(report.gradients.iter().filter_map(backward)).collect()
}

/// The other backends' times over flex's time, by a row's `field`; empty for a backend that did not run.
fn compare(workload: &Workload, rows: &[Value], field: &str) -> Option<Value> {
    let median = |name: BackendName| {
        let row = rows.iter().find(|row| row["backend"] == json!(name))?;
        row[field].as_f64()
    };
    let own = median(Flex)?;
    let ratios: serde_json::Map<String, Value> = RACERS
        .into_iter()
        .filter(|name| *name != Flex)
        .filter_map(|name| Some((name.to_string(), json!(median(name)? / own))))
        .collect();
    let rate = match workload.kv_bytes() {
        Some(bytes) => json!({ "tb_per_s": bytes / own / 1e9 }),
        None => {
            let rate = if field == "backward_ms" { "backward_tflops" } else { "tflops" };
            json!({ "tflops": rows.iter().find(|row| row["backend"] == json!(Flex)).map(|row| &row[rate]) })
        }
    };
    Some(json!({ "name": workload.name, "main": workload.main, "flex_ms": own, "rate": rate, "ratios": ratios }))
}

/// A workload's result in a line: `causal: flex 1.39 ms, 791 TFLOP/s; torch:flex 1.90x (launch-bound: ...)`.
fn reported(row: &Value, raced: &[Value]) -> String {
    let name = row["name"].as_str().unwrap_or_default();
    let own = table::milliseconds(row["flex_ms"].as_f64().unwrap_or(f64::NAN));
    let mut words = format!("{name}: flex {own}, {}", rate(row));
    for (other, ratio) in row["ratios"].as_object().into_iter().flatten() {
        let waits = raced.iter().find(|r| r["backend"] == json!(other)).and_then(|r| {
            let calls = r["call_ms"].as_f64().map(|median_ms| Calls { median_ms, clock: Clock::Queue });
            Timing { calls, median_ms: r["median_ms"].as_f64()?, ..Timing::default() }.launch_bound()
        });
        let waits = waits.map(|words| format!(" ({words})")).unwrap_or_default();
        words.push_str(&format!("; {other} {:.2}x{waits}", ratio.as_f64().unwrap_or(f64::NAN)));
    }
    words
}

/// TFLOP/s, or of a few query rows TB/s.
fn rate(row: &Value) -> String {
    match (row["rate"]["tb_per_s"].as_f64(), row["rate"]["tflops"].as_f64()) {
        (Some(bytes), _) => format!("{bytes:.2} TB/s"),
        (_, Some(flops)) => format!("{flops:.0} TFLOP/s"),
        _ => String::new(),
    }
}

/// Geometric means over the main workloads in which both ran.
fn means(compared: &[Value]) -> Value {
    let mean = |name: BackendName| {
        let main = compared.iter().filter(|row| row["main"] == json!(true));
        let logs: Vec<f64> = main.filter_map(|row| row["ratios"][name.as_str()].as_f64()).map(f64::ln).collect();
        let ratio = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        (!logs.is_empty()).then(|| (name.to_string(), json!({ "ratio": ratio, "workloads": logs.len() })))
    };
    Value::Object(RACERS.into_iter().filter(|name| *name != Flex).filter_map(mean).collect())
}

/// flex's time with only partial tiles, over its time with the same number of full tiles.
fn partial_over_full(compared: &[Value]) -> BTreeMap<&'static str, f64> {
    let time = |name| compared.iter().find(|row| row["name"] == json!(name))?["flex_ms"].as_f64();
    PARTIAL.into_iter().filter_map(|(name, full)| Some((name, time(name)? / time(full)?))).collect()
}

fn render(compared: &[Value], means: &Value) -> String {
    let others: Vec<&str> = RACERS.iter().filter(|name| **name != Flex).map(|name| name.as_str()).collect();
    let headers: Vec<String> = others.iter().map(|name| format!("{name} / flex")).collect();
    let columns: Vec<&str> =
        ["column-workload", "flex", "column-rate"].into_iter().chain(headers.iter().map(String::as_str)).collect();
    let mut table = Table::told(&columns);
    let times = |value: &Value| value.as_f64().map_or(String::new(), |ratio| format!("{ratio:.2}x"));
    for row in compared {
        let rate = rate(row);
        let name = row["name"].as_str().unwrap_or_default().to_string();
        let median = table::milliseconds(row["flex_ms"].as_f64().unwrap_or(f64::NAN));
        table.row([name, median, rate].into_iter().chain(others.iter().map(|name| times(&row["ratios"][*name]))));
    }
    let cells = others.iter().map(|name| times(&means[*name]["ratio"]).into());
    let first = [Cell::text("row-mean"), Cell::default(), Cell::default()];
    table.row(first.into_iter().chain(cells));
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::block_mask::{BlockMask, MaskShape};
    use crate::base::{BlockSize, Control, Lengths};
    use crate::ir::passes::derive::derive;
    use crate::problem::Problem;

    #[test]
    fn every_workload_is_a_problem_of_the_stated_density() {
        assert_eq!(MASKS.iter().chain(FORWARD).filter(|w| w.main).count(), 11);
        let densities = [
            ("causal", 0.5),
            ("sliding window 1024", 0.117),
            ("document causal", 0.117),
            ("prefix-LM 2048", 0.53),
            ("NATTEN 2-D 13x13", 0.019),
            ("painted blocks 30%", 0.31),
            (PARTIAL[0].0, 0.667),
            (PARTIAL[1].0, 0.95),
        ];
        for workload in MASKS.iter().chain(FORWARD) {
            let problem = Problem::new(workload.request(&RACERS).map_err(|_| workload.name).unwrap().problem).unwrap();
            assert_eq!(
                (problem.mask.is_some(), problem.score.is_some()),
                (!workload.mask.is_empty(), !workload.score.is_empty())
            );
            let Some((_, wanted)) = densities.iter().find(|(name, _)| *name == workload.name) else { continue };
            let shape = MaskShape::broadcast(Lengths::new(problem.q_len, problem.kv_len).unwrap());
            let mask =
                BlockMask::build(problem.mask.as_deref(), shape, BlockSize::square(64), &Control::new()).unwrap();
            let stats = mask.stats();
            assert!((stats.density - wanted).abs() < 0.012, "{}: {}", workload.name, stats.density);
            if PARTIAL.iter().any(|(name, _)| *name == workload.name) {
                assert_eq!(stats.partial, 128 * 128, "{}", workload.name);
            }
        }
    }

    #[test]
    fn workloads_of_the_backward_pass_have_derivatives_and_say_what_learns() {
        for workload in MASKS.iter().chain(BACKWARD) {
            let problem = Problem::new(workload.request(&RACERS).map_err(|_| workload.name).unwrap().problem).unwrap();
            let learned = problem.score.as_deref().map(|score| derive(score, |_| true).unwrap().captures().len());
            assert_eq!(learned.unwrap_or(0), usize::from(workload.name.contains("learned")), "{}", workload.name);
        }
    }

    #[test]
    fn ratios_are_times_over_ours_and_their_mean_is_geometric() {
        const MS: &str = "median_ms";
        let rows = |ours: f64, theirs: f64| {
            vec![
                json!({ "backend": Flex, "median_ms": ours, "tflops": 5.0 }),
                json!({ "backend": TorchFlex, "median_ms": theirs }),
            ]
        };
        let compared: Vec<Value> =
            [rows(1.0, 2.0), rows(2.0, 16.0)].iter().filter_map(|rows| compare(&BASE, rows, MS)).collect();
        assert_eq!(compared[1]["ratios"][TorchFlex.as_str()], json!(8.0));
        let mean = means(&compared)[TorchFlex.as_str()]["ratio"].as_f64().unwrap();
        assert!((mean - 4.0).abs() < 1e-12);
        assert!(compare(&BASE, &rows(1.0, 2.0)[1..], MS).is_none());
        let partial = |ours| compare(&Workload { name: PARTIAL[0].0, ..BASE }, &rows(ours, 1.0), MS).unwrap();
        assert_eq!(partial_over_full(&[compared[0].clone(), partial(1.25)]), [(PARTIAL[0].0, 1.25)].into());
        let raced = [json!({ "backend": TorchFlex, "median_ms": 2.0, "call_ms": 4.5 })];
        let line = reported(&compared[0], &raced);
        assert_eq!(
            line,
            "full: flex 1.00 ms, 5 TFLOP/s; torch:flex 2.00x (launch-bound: 4.50 ms a call, 2.00 ms on the GPU)"
        );
        let table = render(&compared, &means(&compared));
        assert!(table.contains("8.00x") && table.contains("4.00x"), "{table}");
    }
}
