//! `maskloom conform`: results for PyTorch's reference cases, or for random problems, as a table.
//!
//! Invariant: the exit status is 1 if any case failed. Must not know how cases are checked.

use super::arguments;
use super::opened::{self, CodeArgs};
use super::out::{self, Failure, Progress};
use super::overrides::Overrides;
use super::table::{self, Cell, Table};
use super::work::{self, Where};
use crate::base::{BackendName, Diagnostic, Layout};
use crate::tasks::conform::stack::{self, Stack};
use crate::tasks::conform::{self, CaseReport, Options, Report, Verdict, What};
use crate::worker::files;
use crate::worker::target::Target;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

/// Compare masks, block masks, outputs and gradients with cases computed by PyTorch, or with the float64 reference
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Cases; their arrays are in CASES.safetensors next to the file. With --grad: a preset, FILE.json or FILE.py:ENTRY
    #[arg(value_name = "CASES.json", required_unless_present = "random", conflicts_with = "random")]
    pub cases: Option<PathBuf>,
    /// Check this many random problems instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub random: Option<u64>,
    /// Check a backend's gradients of a design at its lengths, dtype and strides; report wrong gradients and the known
    /// issues of
    /// PyTorch that match
    #[arg(long, conflicts_with_all = ["random", "out"])]
    pub grad: bool,
    /// Backend to check; the default is flex, and torch:flex with --grad
    #[arg(long, value_parser = arguments::backend)]
    pub backend: Option<BackendName>,
    #[command(flatten)]
    pub at: Where,
    /// Write Maskloom's arrays here, under the names of the cases
    #[arg(long, value_name = "F.safetensors", value_parser = super::ending::one_of(&["safetensors"]), requires = "cases")]
    pub out: Option<PathBuf>,
    /// Python for torch:*
    #[arg(long)]
    pub python: Option<String>,
    /// --package directory of packages that cases import (attn_gym); without it they come from the user's Python
    #[command(flatten)]
    pub code: CodeArgs,
    /// Overrides of the design; --seed is also the seed of the first random problem
    #[command(flatten)]
    pub overrides: Overrides,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub(super) fn conform(args: Args) -> Result<(), Failure> {
    if args.grad {
        return gradients(args);
    }
    args.out.iter().try_for_each(|path| files::can_save(path))?;
    let what = match (args.cases, args.random) {
        (_, Some(count)) => What::Random { count, seed: args.overrides.seed.unwrap_or(0) },
        (Some(file), None) => What::Cases { file, package: args.code.packages.into_iter().next(), out: args.out },
        (None, None) => unreachable!("the parser asks for one of them"),
    };
    let target = Target::new(args.at.target);
    let options = Options {
        what,
        backend: args.backend.unwrap_or(BackendName::Flex),
        device: args.at.device,
        python: args.python,
        greeted: Arc::new(Mutex::new(Some(work::telling_silence(&target)))),
        target,
    };
    let progress = Progress::new();
    let mut done = 0;
    let report = conform::run(&options, &mut |case| {
        done += 1;
        progress.say(&format!("{done}: {} {}", case.name, out::words().text(word(case.verdict))));
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

/// A design's gradients.
fn gradients(args: Args) -> Result<(), Failure> {
    let Some(design) = args.cases.as_deref().map(arguments::as_text).transpose()? else {
        let why = Diagnostic::error("conform-design", "--grad needs a design");
        return Err(Failure::WrongUse(why.hint("maskloom conform --grad PRESET --backend torch:flex")));
    };
    if are_cases(&design) {
        let why =
            Diagnostic::error("conform-design", format!("{design} holds cases computed by PyTorch, not a design"));
        return Err(Failure::WrongUse(why.hint(format!("maskloom conform {design} checks them, their gradients too"))));
    }
    let opened = opened::open(&design, &args.code, &args.overrides)?;
    let compiled = opened.compile()?;
    let problem = opened.problem(&compiled)?;
    let seed = opened.document.settings.seed;
    let target = Target::new(args.at.target);
    let options = Options {
        what: What::Random { count: 1, seed },
        backend: args.backend.unwrap_or(BackendName::TorchFlex),
        device: args.at.device,
        python: args.python,
        greeted: Arc::new(Mutex::new(Some(work::telling_silence(&target)))),
        target,
    };
    let progress = Progress::new();
    progress.say(out::words().text("conform-doing"));
    let found = stack::check(&problem, seed, &options);
    drop(progress);
    let found = found?;
    if args.json {
        out::json(&found)?
    } else {
        let s = problem.spec();
        let layout = if s.layout == Layout::Bhsd { "bhsd" } else { "bshd" };
        let title = format!(
            "{}: {}x{}/{}x{}x{}x{} {} {}",
            opened.document.name, s.batch, s.heads, s.kv_heads, s.q_len, s.kv_len, s.head_dim, s.dtype, layout
        );
        out::text(&stack_text(&title, &found))?
    }
    if found.passed() { Ok(()) } else { Err(Failure::Exit(ExitCode::FAILURE)) }
}

/// Whether a file has the form of PyTorch's cases: a list, which no design is.
fn are_cases(path: &str) -> bool {
    let is_json = path.ends_with(".json");
    is_json && files::read_text(path.as_ref()).is_ok_and(|text| text.trim_start().starts_with('['))
}

fn stack_text(title: &str, found: &Stack) -> String {
    let version = found.torch.as_ref().map_or(String::new(), |v| format!(", PyTorch {v}"));
    let kernel = if found.kernel.is_empty() { String::new() } else { format!("{}\n", found.kernel) };
    let figures = [("backend", found.backend.to_string().into()), ("device", found.device.to_string().into())];
    let on = out::words().with("conform-on", &figures);
    let mut text = format!("{title}\n{on}{version}\n{kernel}");
    if !found.gradients.is_empty() {
        let mut rows =
            Table::told(&["column-gradient", "column-off", "column-allowed", "column-largest", "column-verdict"]);
        for e in &found.gradients {
            let [off, allowed, largest] = [e.max_abs, e.allowed, e.largest].map(table::error);
            let verdict = Cell::text(if e.passed() { "row-right" } else { "row-wrong" });
            rows.row([e.name.as_str().into(), off.into(), allowed.into(), largest.into(), verdict]);
        }
        text.push_str(&rows.render());
    }
    found.wrong.iter().for_each(|d| text.push_str(&format!("{}\n", out::rendered(d))));
    for known in &found.known {
        let figures = [("issue", known.issue.into()), ("versions", known.versions.into()), ("what", known.what.into())];
        text.push_str(&out::line("conform-matches", &figures));
        text.push_str(&format!("  {}", out::line("conform-way", &[("way", known.way.into())])));
    }
    // without a PyTorch none of its issues was looked for
    if !found.wrong.is_empty() && found.known.is_empty() && found.torch.is_some() && found.backend.is_torch() {
        text.push_str(&out::line("conform-none", &[]));
    }
    text
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "row-pass",
        Verdict::Fail => "row-fail",
        Verdict::Refused => "row-refused",
    }
}

fn text(report: &Report) -> String {
    let mut table = Table::told(&[
        "column-case",
        "column-verdict",
        "column-blocks",
        "column-out-error",
        "column-allowed",
        "column-lse-error",
        "column-gradients",
        "ms",
        "column-kernel",
    ]);
    for case in &report.cases {
        table.row(row(case));
    }
    let mut text = table.render();
    for case in report.cases.iter().filter(|c| !c.why.is_empty()) {
        text.push_str(&format!("\n{}:\n", case.name));
        case.why.iter().for_each(|d| text.push_str(&format!("{}\n", out::rendered(d))));
    }
    let count = |of: Verdict| report.count(of).to_string();
    let figures = [
        ("backend", report.backend.to_string()),
        ("device", report.device.to_string()),
        ("passed", count(Verdict::Pass)),
        ("failed", count(Verdict::Fail)),
        ("refused", count(Verdict::Refused)),
    ];
    format!("{text}\n{}", out::line("conform-sum", &figures.map(|(name, text)| (name, text.into()))))
}

fn row(case: &CaseReport) -> [Cell; 9] {
    let m = case.measured.as_ref();
    let number = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2e}"));
    let blocks = if case.blocks == 0 { "-".into() } else { case.blocks.to_string() };
    [
        case.name.as_str().into(),
        Cell::text(word(case.verdict)),
        blocks.into(),
        number(m.and_then(|m| m.out)).into(),
        number(m.map(|m| m.allowed)).into(),
        number(m.and_then(|m| m.lse)).into(),
        worst_gradient(case).into(),
        format!("{:.0}", case.ms).into(),
        m.map_or(Cell::default(), |m| m.kernel.as_str().into()),
    ]
}

/// The gradient with the largest error, over its largest value.
fn worst_gradient(case: &CaseReport) -> String {
    let found = case.measured.iter().flat_map(|m| &m.gradients);
    found.max_by(|a, b| a.1.total_cmp(&b.1)).map_or("-".into(), |(name, error)| format!("{error:.1e} {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_of_pytorch_are_named_only_if_there_is_one() {
        let found = |torch: Option<&str>| Stack {
            backend: BackendName::TorchFlex,
            device: "cpu".into(),
            torch: torch.map(String::from),
            kernel: String::new(),
            gradients: Vec::new(),
            wrong: vec![Diagnostic::error("no-torch", "there is no PyTorch")],
            known: Vec::new(),
        };
        let text = |torch| stack_text("a design", &found(torch));
        assert!(!text(None).contains("no known issue"), "{}", text(None));
        assert!(text(Some("2.11.0")).ends_with("no known issue of PyTorch matches\n"));
    }
}
