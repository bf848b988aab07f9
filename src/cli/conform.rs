//! `maskloom conform`: reference cases of PyTorch's, or random problems, as a table.
//!
//! Invariant: exit status 1 if any case failed. Must not know how cases are checked.

use super::arguments;
use super::out::{self, Failure, Progress};
use super::table::Table;
use super::work::Where;
use crate::base::BackendName;
use crate::service::conform::{self, CaseReport, Options, Report, Verdict, What};
use crate::service::target::Target;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check masks, block masks and outputs against cases computed by PyTorch, or against the float64 reference
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Cases; their arrays stand beside as CASES.safetensors
    #[arg(value_name = "CASES.json", required_unless_present = "random", conflicts_with = "random")]
    pub cases: Option<PathBuf>,
    /// So many random problems instead
    #[arg(long, value_name = "N")]
    pub random: Option<u64>,
    /// Of the first random problem
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Who computes the outputs
    #[arg(long, default_value = "flex", value_parser = arguments::backend)]
    pub backend: BackendName,
    #[command(flatten)]
    pub at: Where,
    /// Folder that holds the packages named by cases (attn_gym); without it the user's Python is asked
    #[arg(long, value_name = "DIR")]
    pub package: Option<PathBuf>,
    /// Write our own arrays here, under the cases' names
    #[arg(long, value_name = "F.safetensors", requires = "cases")]
    pub out: Option<PathBuf>,
    /// Python for torch:*
    #[arg(long)]
    pub python: Option<String>,
    /// One JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn conform(args: Args) -> Result<(), Failure> {
    let what = match (args.cases, args.random) {
        (_, Some(count)) => What::Random { count, seed: args.seed },
        (Some(file), None) => What::Cases { file, package: args.package, out: args.out },
        (None, None) => unreachable!("the parser asks for one of them"),
    };
    let options = Options {
        what,
        backend: args.backend,
        device: args.at.device,
        target: Target::new(args.at.target),
        python: args.python,
    };
    let progress = Progress::new();
    let mut done = 0;
    let report = conform::run(&options, &mut |case| {
        done += 1;
        progress.say(&format!("{done}: {} {}", case.name, word(case.verdict)));
    });
    drop(progress);
    let report = report?;
    if args.json {
        out::json(&report)?
    } else {
        out::text(&text(&report))?
    }
    if report.passed() { Ok(()) } else { Err(Failure::Exit(ExitCode::FAILURE)) }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "FAIL",
        Verdict::Refused => "refused",
    }
}

fn text(report: &Report) -> String {
    let mut table =
        Table::new(&["case", "verdict", "blocks", "out error", "allowed", "lse error", "gradients", "ms", "kernel"]);
    for case in &report.cases {
        table.row(row(case));
    }
    let mut text = table.render();
    for case in report.cases.iter().filter(|c| !c.why.is_empty()) {
        text.push_str(&format!("\n{}:\n", case.name));
        case.why.iter().for_each(|d| text.push_str(&format!("{}\n", d.render())));
    }
    text.push_str(&format!(
        "\n{} on {}: {} passed, {} failed, {} refused\n",
        report.backend,
        report.device,
        report.count(Verdict::Pass),
        report.count(Verdict::Fail),
        report.count(Verdict::Refused)
    ));
    text
}

fn row(case: &CaseReport) -> [String; 9] {
    let m = case.measured.as_ref();
    let number = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2e}"));
    let blocks = if case.blocks == 0 { "-".into() } else { case.blocks.to_string() };
    [
        case.name.clone(),
        word(case.verdict).into(),
        blocks,
        number(m.and_then(|m| m.out)),
        number(m.map(|m| m.allowed)),
        number(m.and_then(|m| m.lse)),
        worst_gradient(case),
        format!("{:.0}", case.ms),
        m.map_or(String::new(), |m| m.kernel.clone()),
    ]
}

/// The gradient that is furthest off, over its largest value.
fn worst_gradient(case: &CaseReport) -> String {
    let found = case.measured.iter().flat_map(|m| &m.gradients);
    found.max_by(|a, b| a.1.total_cmp(&b.1)).map_or("-".into(), |(name, error)| format!("{error:.1e} {name}"))
}
