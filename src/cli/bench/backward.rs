//! The backward pass on the CPU compared with PyTorch's scaled_dot_product_attention: the same shapes and cores.
//!
//! Invariant: our gradients are compared with the float64 reference before they are timed, and a ratio is printed only
//! if both ran. Must not know how gradients are computed.

use super::{Args, row};
use crate::backends::{Backend, cpu, gradient_race, gradients, inputs, stats};
use crate::base::{BackendName, Control, DType, Diagnostic};
use crate::ir::graph::Mod;
use crate::problem::result::{GradientError, GradientOutcome};
use crate::problem::{Problem, ProblemSpec};
use crate::worker::user_python;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// Tokens, head_dim and heads of every row.
const SHAPE: (usize, usize, usize) = (4096, 64, 8);
/// Timed passes of each side.
const ROUNDS: usize = 5;

/// Prints `[[forward ms, backward ms], ...]` for no mask, a causal one and a window of 512, the latter as a dense mask.
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
print(json.dumps(rows))
"#;

/// One row per mask.
pub(super) fn rows(args: &Args) -> Result<Vec<Value>, Vec<Diagnostic>> {
    let (n, ..) = SHAPE;
    // a window as wide as the sequence is causal
    let masks = [("full", None), ("causal", Some(window(n as i64))), ("window 512", Some(window(512)))];
    let theirs = torch(args.python.as_deref());
    let mut rows = Vec::new();
    for (at, (name, mask)) in masks.into_iter().enumerate().filter(|(_, (name, _))| name.contains(args.only.as_str())) {
        rows.push(one(name, mask, theirs.as_ref().map_err(Clone::clone).map(|rows| rows[at]))?);
    }
    Ok(rows)
}

fn one(name: &str, mask: Option<Mod>, theirs: Result<[f64; 2], Diagnostic>) -> Result<Value, Vec<Diagnostic>> {
    let (n, dim, heads) = SHAPE;
    let plain = ProblemSpec::plain(1, (heads, heads), (n, n), dim);
    let problem = Problem::new(ProblemSpec { dtype: DType::F32, mask: mask.map(Arc::new), ..plain })?;
    let (given, seeds) = (inputs::random(&problem, 1), gradients::random(&problem, 1));
    let flex: Option<Box<dyn Backend>> = cpu::backend(BackendName::Flex);
    let mut backends: Vec<Box<dyn Backend>> = flex.into_iter().collect();
    let how = (ROUNDS as u32, false);
    let fresh = (&mut backends[..], Vec::new());
    let race = gradient_race::race(&problem, &given, &seeds, fresh, how, &Control::new()).map_err(|d| vec![d])?;
    let forward =
        backends[0].prepare(&problem, &given).and_then(|mut ready| ready.time(ROUNDS)).map_err(|d| vec![d])?;
    let forward = stats::timing_of(forward).unwrap_or_default();
    let mut parameters = json!({ "tokens": n, "head_dim": dim, "heads": heads, "forward_ms": forward.median_ms });
    let Some(GradientOutcome::Done { errors, timing, .. }) = race.reports.first().map(|r| &r.outcome) else {
        parameters["right"] = json!(false);
        return Ok(row(name, &forward, parameters));
    };
    parameters["right"] = json!(errors.iter().all(GradientError::passed));
    let backward = timing.clone().unwrap_or_default();
    match theirs {
        Ok([their_forward, their_backward]) if backward.median_ms > 0.0 => {
            parameters["torch_backward_ms"] = json!(their_backward);
            parameters["backward_ratio"] = json!(their_backward / backward.median_ms);
            let ours = forward.median_ms + backward.median_ms;
            parameters["both_ratio"] = json!((their_forward + their_backward) / ours);
        }
        Ok(_) => {}
        Err(why) => parameters["torch"] = json!(why.message),
    }
    Ok(row(name, &backward, parameters))
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

/// PyTorch's times, in the Python that was named or is found. Errors: there is no PyTorch, or it fails.
fn torch(named: Option<&str>) -> Result<Vec<[f64; 2]>, Diagnostic> {
    let failed = |why: &str| {
        Diagnostic::warning("no-torch", format!("nothing to compare with: {why}"))
            .hint("activate an environment that has torch, or set MASKLOOM_PYTHON")
    };
    let found = || user_python::find().filter(|p| p.packages.contains_key("torch")).map(|p| p.path);
    let python = named.map(PathBuf::from).or_else(found);
    let python = python.ok_or_else(|| failed("no Python with PyTorch was found"))?;
    let (n, dim, heads) = SHAPE;
    let numbers = [rayon::current_num_threads(), n, dim, heads, ROUNDS].map(|x| x.to_string());
    let ran = Command::new(&python).args(["-I", "-c", SCRIPT]).args(numbers).output();
    let ran = ran.map_err(|why| failed(&why.to_string()))?;
    let rows: Vec<[f64; 2]> = serde_json::from_slice(&ran.stdout).map_err(|_| failed("PyTorch's run failed"))?;
    if rows.len() == 3 { Ok(rows) } else { Err(failed("PyTorch's run failed")) }
}
