//! The command line: the tasks without a window. It prints tables for people, or one JSON object for scripts.
//!
//! Invariant: errors go to stderr as diagnostics with their code, and with `--json` also to stdout as one object; the
//! exit status is 0 for success, 1 for failure, 2 for wrong usage; a closed pipe is no error. Must not know the window:
//! `main` decides who opens it.

mod advise;
mod arguments;
mod bench;
mod blocks;
mod check;
mod compare;
mod conform;
mod detach;
mod doctor;
mod ending;
mod export;
mod far;
mod figures;
mod gallery;
#[cfg(test)]
mod golden_tests;
mod import;
mod inputs;
mod jobs;
mod kernels;
mod lab;
mod licences;
mod manual;
mod opened;
mod out;
mod overrides;
mod pair;
mod parallel;
mod picture;
mod point;
mod presets;
mod race;
mod ray;
mod record;
mod remarks;
mod render;
mod report;
mod run;
mod share;
mod slurm;
mod spread;
mod sweep;
mod table;
mod target;
mod tour;
mod verdict;
mod watch;
mod watched;
mod work;
mod workloads;

pub use bench::Frames;

use crate::base::nearest::nearest;
use crate::base::{Diagnostic, identity};
use crate::words::Language;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use out::Failure;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::OnceLock;

/// A workbench for attention masks. Without a command the window opens; without a display, a tour of the presets is
/// printed.
#[derive(Debug, Parser)]
#[command(name = "maskloom", version = version(), propagate_version = true, max_term_width = 110)]
struct Line {
    #[command(subcommand)]
    command: Option<Command>,
    /// How commands print their tables; all other lines become comments of CSV or TeX
    #[arg(long, global = true, value_name = "FORM", value_enum)]
    table: Option<table::Form>,
    /// Document, preset or run file to open in the window
    #[arg(value_name = "FILE")]
    file: Option<String>,
}

/// `0.1.0 (825843d5c, dirty, release)`
fn version() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| identity::build().to_string())
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Check(check::Args),
    Compare(compare::Args),
    Watch(watch::Args),
    Blocks(blocks::Args),
    Render(render::Args),
    Share(share::Args),
    Bench(bench::Args),
    Sweep(sweep::Args),
    Report(report::Args),
    Export(export::Args),
    Import(import::Args),
    Kernels(kernels::Args),
    Doctor(doctor::Args),
    Target(target::Args),
    Jobs(jobs::Args),
    Attach(jobs::Attach),
    Cancel(jobs::Cancel),
    Conform(conform::Args),
    Presets(presets::Args),
    Advise(advise::Args),
    Verdict(verdict::Args),
    Parallel(parallel::Args),
    Recorder(lab::recorder::Args),
    Quality(lab::quality::Args),
    Suggest(lab::suggest::Args),
    Atlas(lab::atlas::Args),
    Tour(tour::Args),
    Schema(Schema),
    Licences(licences::Args),
    Completions(manual::Completions),
    Man(manual::Man),
    /// Serve a window or a command line over stdin and stdout
    #[command(hide = true)]
    Worker,
    #[command(hide = true)]
    Point(point::Args),
    /// Do the work of a detached job
    #[command(hide = true)]
    Job {
        /// Its folder
        folder: std::path::PathBuf,
    },
}

/// Print the JSON Schema of documents
#[derive(Debug, clap::Args)]
struct Schema {
    /// The output is one JSON object with and without this flag
    #[arg(long)]
    json: bool,
}

/// The action that the arguments request.
#[derive(Debug)]
pub enum Asked {
    /// The window, with this file.
    Window {
        /// As typed; None: the first screen.
        file: Option<String>,
    },
    /// Measured frames of the window, to be printed with [`Frames::tell`].
    Frames(Box<Frames>),
    /// Already done.
    Done(ExitCode),
}

/// Reads the process's arguments and carries them out, except opening the window.
pub fn run() -> Asked {
    Language::of_environment().choose();
    #[cfg(unix)]
    crate::worker::signals::end_workers_too();
    let line = match understood(std::env::args_os()) {
        Ok(line) => line,
        Err(why) => return Asked::Done(not_understood(&why)),
    };
    table::print_as(line.table.unwrap_or_default());
    match line {
        Line { command: None, file: Some(name), .. } if !opened::exists(&name) => {
            Asked::Done(exit(Err(Failure::WrongUse(unknown(&name)))))
        }
        Line { command: None, file, .. } => Asked::Window { file },
        Line { command: Some(Command::Bench(args)), .. } => match bench::frames(args) {
            Ok(frames) => Asked::Frames(Box::new(frames)),
            Err(args) => Asked::Done(exit(bench::bench(args))),
        },
        Line { command: Some(command), .. } => Asked::Done(exit(carry_out(command))),
    }
}

/// The words of a line.
fn understood(words: impl IntoIterator<Item = OsString>) -> Result<Line, clap::Error> {
    let mut known = with_negative_numbers(Line::command());
    let words: Vec<OsString> = words.into_iter().collect();
    let found = known.try_get_matches_from_mut(&words).map_err(|why| with_near_suggestions(why, &mut known, &words))?;
    if let Some(why) = blank(&known, &found) {
        return Err(why);
    }
    Line::from_arg_matches(&found).map_err(|why| why.format(&mut known))
}

/// Values, by command and name, whose command refuses blank ones in its own words.
const ITS_OWN: [(&str, &str); 2] = [("doctor", "explain"), ("add", "name")];

/// A value of nothing but spaces: it names nothing, and a default would take its place without a word.
fn blank(command: &clap::Command, found: &clap::ArgMatches) -> Option<clap::Error> {
    let of = |arg: &clap::Arg| {
        let id = arg.get_id().as_str();
        let typed = arg.get_action().takes_values() && found.value_source(id) == Some(ValueSource::CommandLine);
        let ours = typed && !ITS_OWN.contains(&(command.get_name(), id));
        ours.then(|| found.get_raw(id)).flatten()
    };
    let is_blank = |value: &OsStr| value.to_str().is_some_and(|text| text.trim().is_empty());
    if let Some(arg) = command.get_arguments().find(|arg| of(arg).into_iter().flatten().any(is_blank)) {
        return Some(command.clone().error(ErrorKind::ValueValidation, format!("the value of '{arg}' is blank")));
    }
    let (name, inner) = found.subcommand()?;
    blank(command.find_subcommand(name)?, inner)
}

/// Without a suggestion that is no likely typing error: clap takes `--version` for `--design`.
fn with_near_suggestions(mut why: clap::Error, known: &mut clap::Command, words: &[OsString]) -> clap::Error {
    let text = |kind| match why.get(kind) {
        Some(ContextValue::String(text)) => Some(text.trim_start_matches('-').split('=').next()?.to_string()),
        _ => None,
    };
    if let (Some(typed), Some(meant)) = (text(ContextKind::InvalidArg), text(ContextKind::SuggestedArg))
        && nearest(&typed, [&*meant].into_iter()).is_none()
    {
        why.remove(ContextKind::SuggestedArg);
        // its usage has the option, too
        known.build();
        let command = words.iter().fold(known, |command, word| match command.find_subcommand(word).is_some() {
            true => command.find_subcommand_mut(word).expect("it is there"),
            false => command,
        });
        why.insert(ContextKind::Usage, ContextValue::StyledStr(command.render_usage()));
    }
    why
}

/// A number behind an option is its value, negative or not: the option says what it takes, where clap would name a word that helps
/// nobody.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let takes =
        |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_positional() && !arg.is_allow_hyphen_values_set();
    command
        .mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(with_negative_numbers)
}

/// What is no command, preset or file, with the command or preset that was probably meant.
fn unknown(name: &str) -> Diagnostic {
    let why = Diagnostic::error("unknown-command", format!("`{name}` is not a command, a preset or a file"));
    let line = Line::command();
    let presets = crate::document::library::presets().iter().map(|preset| preset.name);
    let meant = nearest(name, line.get_subcommands().map(clap::Command::get_name).chain(presets));
    let meant = meant.map_or(String::new(), |meant| format!("did you mean `maskloom {meant}`? "));
    why.hint(format!("{meant}`maskloom --help` lists the commands, `maskloom presets` the presets"))
}

/// The first word of a line that clap refuses for what follows it, if that word is nothing either.
fn mistyped(why: &clap::Error, words: impl IntoIterator<Item = String>) -> Option<Diagnostic> {
    let first = words.into_iter().nth(1).filter(|word| !word.starts_with('-'))?;
    let known = Line::command().find_subcommand(&first).is_some() || opened::exists(&first);
    (why.kind() == ErrorKind::UnknownArgument && !known).then(|| unknown(&first))
}

/// A command line that clap refuses, or a help page.
fn not_understood(why: &clap::Error) -> ExitCode {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    if let Some(why) = mistyped(why, words) {
        return exit(Err(Failure::WrongUse(why)));
    }
    if why.use_stderr() && out::wants_json() {
        let message = why.to_string();
        let first = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let reported = Diagnostic::error("wrong-use", first).hint("`maskloom --help` lists commands and flags");
        return exit(Err(Failure::WrongUse(reported)));
    }
    let _ = why.print();
    if why.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// ssh's helper: asks its question on the terminal, or by `window` in one, and prints the answer.
pub fn answer(window: impl FnOnce(&str, bool) -> Option<String>) -> ExitCode {
    match crate::worker::asking::answer(window) {
        Some(answer) => exit(out::text(&format!("{answer}\n"))),
        None => ExitCode::FAILURE,
    }
}

/// Says what this program cannot do.
pub fn refuse(why: Diagnostic) -> ExitCode {
    exit(Err(Failure::Reported(vec![why])))
}

/// The replacement of the window without a display: gives the reason once and shows the presets on the best device. What was to be
/// opened in the window is not opened, and the commands that look at it are named.
pub fn without_window(mut why: Diagnostic, file: Option<&str>) -> ExitCode {
    let Some(file) = file else { return exit(tour::tour(&why)) };
    let quoted = out::word(file);
    let commands = format!("without a window: `maskloom check {quoted}`, `maskloom run {quoted}`");
    why.hint = Some(why.hint.map_or(commands.clone(), |own| format!("{commands}; or {own}")));
    refuse(why)
}

fn carry_out(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::check(args),
        Command::Compare(args) => compare::compare(args),
        Command::Watch(args) => watch::watch(args),
        Command::Blocks(args) => blocks::blocks(args),
        Command::Render(args) => render::render(args),
        Command::Share(args) => share::share(args),
        Command::Bench(args) => bench::bench(args),
        Command::Sweep(args) => sweep::sweep(args),
        Command::Report(args) => report::report(args),
        Command::Export(args) => export::export(args),
        Command::Import(args) => import::import(args),
        Command::Kernels(args) => kernels::kernels(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Target(args) => target::target(args),
        Command::Jobs(args) => jobs::jobs(args),
        Command::Attach(args) => jobs::attach(args),
        Command::Cancel(args) => jobs::cancel(args),
        Command::Conform(args) => conform::conform(args),
        Command::Presets(args) => presets::presets(args),
        Command::Advise(args) => advise::run(args),
        Command::Verdict(args) => verdict::verdict(args),
        Command::Parallel(args) => parallel::parallel(args),
        Command::Recorder(args) => lab::recorder::write(&args),
        Command::Quality(args) => lab::quality::quality(args),
        Command::Suggest(args) => lab::suggest::suggest(args),
        Command::Atlas(args) => lab::atlas::atlas(args),
        Command::Tour(args) => tour::command(args),
        Command::Point(args) => point::point(&args),
        Command::Job { folder } => Err(Failure::Exit(crate::worker::detached::run::main(&folder))),
        Command::Schema(_) => out::text(&crate::document::file::json_schema()),
        Command::Licences(args) => licences::licences(&args),
        Command::Completions(args) => manual::completions(&args, Line::command()),
        Command::Man(args) => manual::man(&args, Line::command()),
        Command::Worker => {
            Err(Failure::Exit(crate::worker::serve::main(Box::new(crate::tasks::lab::page::far::Desk::default()))))
        }
    }
}

/// Prints a failure on stderr and returns its status. `main` calls it too if the window cannot open.
pub fn exit(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(Failure::Exit(code)) => code,
        Err(Failure::Reported(why)) => {
            out::failed(&why);
            ExitCode::from(1)
        }
        Err(Failure::WrongUse(why)) => {
            out::failed(&[why]);
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent_and_every_command_says_what_it_does() {
        let line = Line::command();
        line.clone().debug_assert();
        let silent: Vec<_> = line.get_subcommands().filter(|c| c.get_about().is_none()).map(|c| c.get_name()).collect();
        assert!(silent.is_empty(), "{silent:?}");
    }

    #[test]
    fn a_blank_value_of_any_option_or_argument_is_refused() {
        // numbers and choices are refused by their own parsers before
        fn all(path: &[&str], command: &clap::Command, refused: &mut Vec<String>) {
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values() && !arg.is_hide_set()) {
                if ITS_OWN.contains(&(command.get_name(), arg.get_id().as_str())) {
                    continue;
                }
                let needed = command.get_arguments().filter(|o| o.is_required_set() && o.get_id() != arg.get_id());
                let mut words: Vec<String> = path.iter().map(|word| (*word).to_string()).collect();
                words.extend(needed.map(|o| o.get_long().map_or("causal".into(), |long| format!("--{long}=x"))));
                match arg.get_long() {
                    Some(long) => words.push(format!("--{long}=  ")),
                    None => words.push("\t".into()),
                }
                let why = understood(words.iter().map(OsString::from)).expect_err(&words.join(" "));
                if why.to_string().contains("' is blank") {
                    refused.push(words.join(" "));
                }
            }
            for inner in command.get_subcommands() {
                all(&[path, &[inner.get_name()]].concat(), inner, refused);
            }
        }
        let mut refused = Vec::new();
        let mut line = Line::command();
        line.build();
        all(&["maskloom"], &line, &mut refused);
        for named in [
            "doctor --target=  ",
            "run causal --target=  ",
            "run causal --python=  ",
            "export causal --to=x --name=  ",
            "presets \t",
        ] {
            assert!(
                refused.iter().any(|words| words.strip_prefix("maskloom ") == Some(named)),
                "{named}: {refused:#?}"
            );
        }
        for given in [&["doctor", "--target", "gpu1"][..], &["run", "causal"], &["run", "causal", "--heads", "4"]] {
            assert!(understood([&["maskloom"], given].concat().iter().map(OsString::from)).is_ok(), "{given:?}");
        }
        let why = understood(["maskloom", "kernels", "build", "causal", "--arch", "sm_80,"].map(OsString::from));
        assert!(why.expect_err("an empty name").to_string().contains("the value of '--arch <sm_N,...>' is blank"));
    }

    #[test]
    fn an_option_is_suggested_where_it_was_probably_meant() {
        let said = |words: &str| understood(words.split(' ').map(OsString::from)).expect_err(words).to_string();
        assert!(said("maskloom quality --pgae x.html").contains("'--page'"));
        let other = said("maskloom quality --design causal");
        assert!(other.contains("'--design'") && !other.contains("--version"), "{other}");
        assert!(other.contains("Usage: maskloom quality [OPTIONS] <PRESET> <CAPTURE>"), "{other}");
    }

    #[test]
    fn a_file_of_another_format_than_its_ending_says_is_never_written() {
        // by their names: what the others take is read, or is a folder
        const WRITTEN: [&str; 7] = ["out", "page", "picture", "save_run", "into", "to", "chart"];
        fn refused(path: &[&str], command: &clap::Command, found: &mut Vec<String>) {
            for arg in command.get_arguments().filter(|arg| WRITTEN.contains(&arg.get_id().as_str())) {
                if arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == "DIR")) {
                    continue;
                }
                let flag = format!("--{}", arg.get_long().expect("a flag"));
                let parsed = |value: &str| Line::try_parse_from([path, &[flag.as_str(), value]].concat());
                let refused = |value: &str| parsed(value).err().filter(|why| why.kind() == ErrorKind::ValueValidation);
                let why = refused("a.b.xyz").unwrap_or_else(|| panic!("{path:?} {flag} takes any ending")).to_string();
                assert!(why.contains("no .xyz file is written here; the ending is ."), "{why}");
                assert!(refused("/dev/stdout").is_none(), "{path:?} {flag}");
                found.push([path, &[flag.as_str()]].concat().join(" "));
            }
            for inner in command.get_subcommands() {
                refused(&[path, &[inner.get_name()]].concat(), inner, found);
            }
        }
        let mut found = Vec::new();
        let mut line = Line::command();
        line.build();
        refused(&["maskloom"], &line, &mut found);
        assert_eq!(found.len(), 17, "{found:#?}");
        for taken in [["render", "x", "--out", "A.PNG"], ["blocks", "x", "--out", "a.json"]] {
            assert!(Line::try_parse_from([&["maskloom"], &taken[..]].concat()).is_ok());
        }
    }
}
