//! `maskloom bench parallel`: the time of plans for several ranks, and how even and how local they are, by simulation.
//!
//! Invariant: every block counts the same, so that the figures are those of the blocks alone; a plan is made anew in each
//! run. Must not know how plans are found.

use super::{Args, measure, row};
use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::base::{BlockSize, Control, DType, Diagnostic, Lengths};
use crate::cli::out::Failure;
use crate::ir::graph::Mod;
use crate::parallel::cost::Cost;
use crate::parallel::links::{Links, NVLINK};
use crate::parallel::plan::Plan;
use crate::parallel::request::{Kind, Request, Shape};
use crate::parallel::rivals::rivals;
use crate::parallel::rows::MaskRows;
use crate::parallel::samples;
use serde_json::{Value, json};

/// Tokens of the bars.
const TOKENS: usize = 131_072;
/// The most that a plan may be out of balance.
const BALANCE: f64 = 1.01;
/// Milliseconds for a plan of three kinds of layers, and for one whose documents changed.
const PLAN_MS: [f64; 2] = [20.0, 5.0];

/// The rows, and whether balance and received keys hold their bars. Time is printed beside its bar and not judged.
pub(super) fn rows(args: &Args) -> Result<(Vec<Value>, bool), Failure> {
    let lengths = if args.lengths.is_empty() { vec![TOKENS] } else { args.lengths.clone() };
    let (mut out, mut right) = (Vec::new(), true);
    for tokens in lengths {
        for bar in samples::bars(tokens).into_iter().filter(|bar| bar.name.contains(args.only.as_str())) {
            for ranks in [4, 8] {
                let requests: Result<Vec<Request>, Diagnostic> =
                    bar.masks.iter().map(|mask| request(&[("mask", 1, mask.clone())], tokens, ranks)).collect();
                let (line, holds) = judged(args, bar.name, &requests?, bar.received, (tokens, ranks));
                right &= holds || tokens != TOKENS;
                out.push(line);
            }
        }
        if "three kinds".contains(args.only.as_str()) {
            for ranks in [4, 8] {
                out.extend(three(args, tokens, ranks)?);
            }
        }
    }
    Ok((out, right))
}

/// One sequence: the mean over its draws.
fn judged(
    args: &Args,
    name: &str,
    requests: &[Request],
    most: Option<f64>,
    (tokens, ranks): (usize, usize),
) -> (Value, bool) {
    let plans: Vec<Plan> = requests.iter().map(Plan::new).collect();
    let mean = |f: &dyn Fn(&Plan) -> f64| plans.iter().map(f).sum::<f64>() / plans.len() as f64;
    let worst = plans.iter().map(|plan| plan.figures.imbalance).fold(0.0, f64::max);
    let received = mean(&|plan| plan.figures.received);
    let holds = worst <= BALANCE && most.is_none_or(|most| received <= most);
    let timing = measure(args.budget, || requests.iter().map(Plan::new).collect::<Vec<_>>());
    let mut line = row(
        name,
        &timing,
        json!({
            "tokens": tokens, "ranks": ranks, "draws": plans.len(), "imbalance": worst, "received": received,
            "received_bar": most, "holds": holds,
        }),
    );
    for other in rivals(&requests[0]) {
        let found = other.figures.ok().map(|f| format!("{:.2} & {:.2}", f.imbalance, f.needed));
        line[other.name] = json!(found);
    }
    // of one plan
    line["median_ms"] = json!(timing.median_ms / plans.len() as f64);
    (line, holds)
}

/// Three kinds of layers: a plan from nothing, and one after the documents changed.
fn three(args: &Args, tokens: usize, ranks: usize) -> Result<Vec<Value>, Failure> {
    let of = |seed| request(&samples::three(tokens, seed), tokens, ranks);
    let (first, next) = (of(1)?, of(2)?);
    let before = Plan::new(&first);
    let whole = measure(args.budget, || Plan::new(&next));
    let quick = measure(args.budget, || Plan::after(&next, &before));
    let line = |name: &str, plan: &Plan, timing, bar_ms: f64| {
        let holds = plan.figures.imbalance <= BALANCE;
        row(
            name,
            timing,
            json!({
                "tokens": tokens, "ranks": ranks, "draws": 1, "imbalance": plan.figures.imbalance,
                "received": plan.figures.received, "received_bar": Value::Null, "holds": holds, "bar_ms": bar_ms,
            }),
        )
    };
    Ok(vec![
        line("three kinds of layers", &Plan::new(&next), &whole, PLAN_MS[0]),
        line("the same, documents changed", &Plan::after(&next, &before), &quick, PLAN_MS[1]),
    ])
}

fn request(kinds: &[(&str, usize, Mod)], tokens: usize, ranks: usize) -> Result<Request, Diagnostic> {
    let lengths = Lengths::new(tokens, tokens)?;
    let kind = |(name, layers, mask): &(&str, usize, Mod)| -> Result<Kind, Diagnostic> {
        let shape = MaskShape::broadcast(lengths);
        let built = BlockMask::build(Some(mask), shape, BlockSize::DEFAULT, &Control::new())?;
        Ok(Kind { name: name.to_string(), layers: *layers, rows: MaskRows::from(&built) })
    };
    let shape = Shape { batch: 1, heads: 16, kv_heads: 8, head_dim: 128, head_dim_v: 128, dtype: DType::BF16 };
    let kinds = kinds.iter().map(kind).collect::<Result<_, _>>()?;
    Request::new(kinds, Links::uniform(ranks, NVLINK)?, shape, &Cost::blocks(), true)
}
