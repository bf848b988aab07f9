//! The backward pass on the CPU compared with PyTorch's scaled_dot_product_attention: the same shapes and cores.
//!
//! Invariant: our gradients are compared with the float64 reference before they are timed, and PyTorch has a row only if it ran. Must
//! not know how gradients are computed.

use super::{Args, sgemm};
use crate::backends::{Backend, cpu, gradient_race, gradients, inputs, race, stats};
use crate::base::{BackendName, Control, DType, Diagnostic};
use crate::ir::graph::Mod;
use crate::problem::result::{GradientError, GradientOutcome};
use crate::problem::verdict::what_ran;
use crate::problem::{Problem, ProblemSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Tokens, head_dim and heads of every row.
const SHAPE: (usize, usize, usize) = (4096, 64, 8);
/// Timed passes of each side.
const ROUNDS: usize = 5;

/// Prints its version and `[[forward ms, backward ms], ...]` for no mask, a causal one and a window of 512, the latter as a dense mask.
const SCRIPT: &str = r#"
import json, sys, time, torch
threads, n, dim, heads, rounds = map(int, sys.argv[1:])
torch.set_num_threads(threads)
q, k, v = (torch.randn(1, heads, n, dim, requires_grad=True) for _ in range(3))
do = torch.randn(1, heads, n, dim)
i = torch.arange(n)
away = i[:, None] - i[None, :]
window = (away >= 0) & (away < 512)
def median(f):
    f()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        f()
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[rounds // 2]
rows = []
for how in ({}, {"is_causal": True}, {"attn_mask": window}):
    run = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, **how)
    out = run()
    rows.append([median(run), median(lambda: torch.autograd.grad(out, (q, k, v), do, retain_graph=True))])
print(json.dumps({"version": torch.__version__, "rows": rows}))
"#;

/// A row per mask, and one of PyTorch's; whether all of ours were right. Errors: those of the race; PyTorch was named and fails.
pub(super) fn rows(args: &Args) -> Result<(Vec<Value>, bool), Vec<Diagnostic>> {
    let (n, ..) = SHAPE;
    // a window as wide as the sequence is causal
    let masks = [("full", None), ("causal", Some(window(n as i64))), ("window 512", Some(window(512)))];
    let python = match (sgemm::python(args.python.as_deref()), &args.python) {
        (Ok(python), _) => Some(python),
        (Err(why), Some(_)) => return Err(vec![why]),
        (Err(_), None) => None,
    };
    let measured = |of: fn(&Path) -> Result<f64, Diagnostic>| python.as_deref().map(of).transpose();
    let before = measured(sgemm::rate).map_err(|why| vec![why])?;
    let theirs = python.as_deref().map(torch).transpose().map_err(|why| vec![why])?;
    let (mut rows, mut right) = (Vec::new(), true);
    for (at, (name, mask)) in masks.into_iter().enumerate().filter(|(_, (name, _))| name.contains(args.only.as_str())) {
        let ours = one(name, mask)?;
        right &= ours["right"] == json!(true);
        let theirs = theirs.as_ref().map(|of| their_row(&ours, of, at));
        rows.push(ours);
        rows.extend(theirs);
    }
    if let Some((before, after)) = before.zip(measured(sgemm::rate).map_err(|why| vec![why])?) {
        sgemm::add_shares(&mut rows, (before + after) / 2.0);
    }
    Ok((rows, right))
}

/// PyTorch's row beside ours of the same mask, the `at`-th of the script.
fn their_row(ours: &Value, theirs: &Torch, at: usize) -> Value {
    let [forward, backward] = theirs.rows[at];
    let flop = |ms: &str, tflops: &str| ours[ms].as_f64().zip(ours[tflops].as_f64()).map(|(ms, tflops)| ms * tflops);
    json!({
        "name": ours["name"], "backend": BackendName::TorchSdpa, "ran": format!("PyTorch {}", theirs.version),
        "tokens": ours["tokens"], "head_dim": ours["head_dim"], "heads": ours["heads"], "dtype": ours["dtype"],
        "median_ms": forward, "backward_ms": backward, "both_ms": forward + backward,
        "tflops": flop("median_ms", "tflops").map(|flop| flop / forward),
        "backward_tflops": flop("backward_ms", "backward_tflops").map(|flop| flop / backward),
    })
}

fn one(name: &str, mask: Option<Mod>) -> Result<Value, Vec<Diagnostic>> {
    let (n, dim, heads) = SHAPE;
    let plain = ProblemSpec::plain(1, (heads, heads), (n, n), dim);
    let problem = Problem::new(ProblemSpec { dtype: DType::F32, mask: mask.map(Arc::new), ..plain })?;
    let (given, seeds) = (inputs::random(&problem, 1), gradients::random(&problem, 1));
    let flex: Option<Box<dyn Backend>> = cpu::backend(BackendName::Flex);
    let mut backends: Vec<Box<dyn Backend>> = flex.into_iter().collect();
    let how = (ROUNDS as u32, false);
    let fresh = (&mut backends[..], Vec::new());
    let found = gradient_race::race(&problem, &given, &seeds, fresh, how, &Control::new()).map_err(|d| vec![d])?;
    let mut ready = backends[0].prepare(&problem, &given).map_err(|d| vec![d])?;
    let ran = what_ran(BackendName::Flex, &ready.kernel());
    let forward = ready.time(ROUNDS).map_err(|d| vec![d])?;
    let forward = stats::timing_of(forward).unwrap_or_default();
    let flop = race::work_stats(&problem, &Control::new()).map_err(|d| vec![d])?.flop;
    let mut row = json!({
        "name": name, "backend": BackendName::Flex, "ran": ran, "tokens": n, "head_dim": dim, "heads": heads,
        "dtype": problem.dtype, "median_ms": forward.median_ms, "spread": forward.spread, "right": false,
        "tflops": flop / forward.median_ms / 1e9,
    });
    if let Some(GradientOutcome::Done { errors, timing, .. }) = found.reports.first().map(|r| &r.outcome) {
        let backward = timing.clone().unwrap_or_default().median_ms;
        row["right"] = json!(errors.iter().all(GradientError::passed));
        (row["backward_ms"], row["both_ms"]) = (json!(backward), json!(forward.median_ms + backward));
        // five products; the forward pass has two
        row["backward_tflops"] = json!(2.5 * flop / backward / 1e9);
        row["worst_gradient"] = json!(errors.iter().map(|e| e.max_abs / e.largest).fold(0.0, f64::max));
    }
    Ok(row)
}

/// `0 <= q_idx - kv_idx < width`
fn window(width: i64) -> Mod {
    use crate::ir::graph::{BinaryOp, Graph, Input, ModKind};
    let mut graph = Graph::new();
    let (q, kv, width, zero) = (graph.input(Input::QIdx), graph.input(Input::KvIdx), graph.int(width), graph.int(0));
    let away = graph.binary(BinaryOp::Sub, q, kv);
    let (below, near) = (graph.binary(BinaryOp::Ge, away, zero), graph.binary(BinaryOp::Lt, away, width));
    let root = graph.binary(BinaryOp::And, below, near);
    Mod { kind: ModKind::Mask, graph, root, sources: Vec::new() }
}

/// PyTorch's times, forward and backward of each mask.
#[derive(Deserialize)]
struct Torch {
    version: String,
    rows: [[f64; 2]; 3],
}

/// Errors: it fails.
fn torch(python: &Path) -> Result<Torch, Diagnostic> {
    let (n, dim, heads) = SHAPE;
    let numbers = [rayon::current_num_threads(), n, dim, heads, ROUNDS].map(|x| x.to_string());
    let ran = Command::new(python).args(["-I", "-c", SCRIPT]).args(numbers).output();
    let ran = ran.map_err(|why| sgemm::failed(&why.to_string()))?;
    serde_json::from_slice(&ran.stdout).map_err(|_| sgemm::failed("PyTorch's run failed"))
}
