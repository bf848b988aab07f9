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
use crate::base::{Control, Diagnostic, HostTensor};
use crate::problem::Problem;
use crate::tasks::verdicts::{Answer, Place, READ, Verdict, verdicts_on_grid};
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
    let at = args.arch.as_deref().unwrap_or("the cpu");
    out::text(&format!("{} on {at}; others as of {READ}\n{}{}", opened.document.name, learns(&problem), render(&all)))
}

/// Tells what a mask computes where its author probably meant something else.
pub(super) fn notes(problem: &Problem) -> Result<(), Diagnostic> {
    let Some(mask) = &problem.mask else { return Ok(()) };
    let sizes = Sizes { batch: problem.batch, heads: problem.heads, lengths: problem.lengths() };
    let blocks = watched("finding the blocks", |control| problem.block_mask(problem.block_size, control))?;
    let stats = watched("counting the cells of partial blocks", |control| blocks.stats_with(control));
    out::diagnostics(&intent::intent(mask, sizes, &stats.unwrap_or_default()));
    Ok(())
}

/// The tensors of a design that receive gradients: `learns: table [32, 12]`; empty without a score mod.
pub(super) fn learns(problem: &Problem) -> String {
    let Some(score) = problem.score.as_deref() else { return String::new() };
    let one = |(name, tensor): (String, HostTensor)| format!("{name} {:?}", tensor.shape());
    match learning(score) {
        Err(why) => format!("learns: nothing: {}\n", why.message),
        Ok(tensors) if tensors.is_empty() => "learns: nothing, the score_mod reads no float tensor\n".into(),
        Ok(tensors) => format!("learns: {}\n", tensors.into_iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

fn render(all: &[Verdict]) -> String {
    let said = out::words();
    let mut table = Table::told(&["column-who", "column-forward", "column-backward"]);
    let word = |answer: &Answer| match answer {
        Answer::Takes(_) => said.text("verdicts-takes"),
        Answer::Dense(_) => said.text("verdicts-dense"),
        Answer::Refuses(_) => said.text("verdicts-refuses"),
    };
    let mut below = String::new();
    for v in all {
        table.row([v.who.as_str(), word(&v.forward), word(&v.backward)]);
        let (forward, backward) = (v.forward.told(said), v.backward.told(said));
        below.push_str(&format!("{}: {forward}\n", v.who));
        if backward != forward {
            below.push_str(&format!("  {}\n", said.with("verdicts-back", &[("words", backward.into())])));
        }
        v.call.iter().for_each(|call| below.push_str(&format!("  call: {call}\n")));
    }
    format!("{}\n{below}", table.render())
}
