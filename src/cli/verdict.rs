//! `maskloom verdict`: which backends support a design, forward and backward, before anything is compiled.
//!
//! Invariant: nothing runs; the status is 0 for every answer. Must not know how answers are found.

use super::opened::{self, CodeArgs};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::table::Table;
use super::watched::watched;
use crate::analysis::intent;
use crate::analysis::lint::Sizes;
use crate::backends::learning;
use crate::base::words::bytes;
use crate::base::{Control, Diagnostic, HostTensor};
use crate::problem::Problem;
use crate::tasks::verdicts::{Answer, Place, READ, Verdict, verdicts_on_grid};
use crate::words::Words;
use serde_json::json;

/// List the backends that support a design forward and backward, the refusals with reasons, and the exact calls
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a preset, FILE.json or FILE.py:ENTRY
    preset: String,
    /// The GPU's architecture, such as sm_90a; the default is the CPU
    #[arg(long, value_name = "SM")]
    arch: Option<String>,
    #[command(flatten)]
    code: CodeArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn verdict(args: Args) -> Result<(), Failure> {
    let opened = opened::open(&args.preset, &args.code, &args.overrides)?;
    let compiled = opened.compile()?;
    let place = args.arch.clone().map_or(Place::Cpu, Place::Gpu);
    let problem = opened.problem(&compiled)?;
    notes(&problem)?;
    let all = verdicts_on_grid(&problem, opened.document.axes.grid(), &place, &Control::new())?;
    if args.json {
        let learns: Vec<String> = problem
            .score
            .as_deref()
            .and_then(|score| learning(score).ok())
            .unwrap_or_default()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let name = &opened.document.name;
        return out::json(&json!({ "name": name, "place": place, "read": READ, "learns": learns, "verdicts": all }));
    }
    let said = out::words();
    let at = args.arch.as_deref().unwrap_or(said.text("verdict-cpu"));
    let figures = [("name", opened.document.name.as_str().into()), ("place", at.into()), ("read", READ.into())];
    let title = said.with("verdict-title", &figures);
    out::text(&format!("{title}\n{}{}", learns(said, &problem), render(said, &all)))
}

/// Tells what a mask computes where its author probably meant something else.
pub(super) fn notes(problem: &Problem) -> Result<(), Diagnostic> {
    let Some(mask) = &problem.mask else { return Ok(()) };
    let said = out::words();
    let sizes = Sizes { batch: problem.batch, heads: problem.heads, lengths: problem.lengths() };
    let blocks = watched(said.text("watched-blocks"), |control| problem.block_mask(problem.block_size, control))?;
    let stats = watched(said.text("watched-cells"), |control| blocks.stats_with(control));
    out::diagnostics(&intent::intent(mask, sizes, &stats.unwrap_or_default()));
    Ok(())
}

/// The tensors of a design that receive gradients: `learns: table [32, 12]`; empty without a score mod.
pub(super) fn learns(said: &'static Words, problem: &Problem) -> String {
    let Some(score) = problem.score.as_deref() else { return String::new() };
    let one = |(name, tensor): (String, HostTensor)| format!("{name} {:?}", tensor.shape());
    let line = match learning(score) {
        Err(why) => {
            let why = said.reported(&why.code, &why.message);
            said.with("learns-nothing-why", &[("why", why.into())])
        }
        Ok(tensors) if tensors.is_empty() => said.text("learns-nothing").into(),
        Ok(tensors) => {
            let names = tensors.into_iter().map(one).collect::<Vec<_>>().join(", ");
            said.with("learns", &[("names", names.into())])
        }
    };
    format!("{line}\n")
}

fn render(said: &'static Words, all: &[Verdict]) -> String {
    let mut table = Table::told(&["column-who", "column-forward", "column-backward", "column-mask"]);
    let word = |answer: &Answer| match answer {
        Answer::Takes(_) => said.text("verdicts-takes"),
        Answer::Dense(_) => said.text("verdicts-dense"),
        Answer::Refuses(_) => said.text("verdicts-refuses"),
    };
    let mut below = String::new();
    for v in all {
        let mask = v.mask_bytes.map_or(String::new(), bytes);
        table.row([v.who.as_str(), word(&v.forward), word(&v.backward), mask.as_str()]);
        let (forward, backward) = (v.forward.told(said), v.backward.told(said));
        below.push_str(&format!("{}: {forward}\n", v.who));
        if backward != forward {
            below.push_str(&format!("  {}\n", said.with("verdicts-back", &[("words", backward.into())])));
        }
        let call = |call: &String| format!("  {}\n", said.with("verdict-call", &[("call", said.phrase(call).into())]));
        v.call.iter().for_each(|text| below.push_str(&call(text)));
    }
    format!("{}\n{below}", table.render())
}
