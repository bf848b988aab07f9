//! `maskloom target`: other machines by name. A worker is put there, tried, brought up to date and taken away.
//!
//! Invariant: a target is in the list only when its worker has run there. Must not know how programs travel.

use super::doctor;
use super::out::{self, Failure, Progress};
use super::table::{Cell, Table};
use super::work::{self, Worker};
use crate::base::{Diagnostic, identity, words};
use crate::worker::far::install::{self, Copied, Taken, Whose};
use crate::worker::far::probe::{self, Probed};
use crate::worker::far::program::Program;
use crate::worker::far::shell::Shell;
use crate::worker::named::{self, Named};
use crate::worker::protocol::Health;
use crate::worker::target::{self, Target};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Name other machines, put a worker there, and try it: --target NAME then runs on them
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Add(Add),
    List(List),
    Test(Test),
    Update(Update),
    Remove(Remove),
}

/// Find out what a machine has, copy a worker there and remember it under a name
#[derive(Debug, clap::Args)]
struct Add {
    /// Its name: letters, digits, `-`, `_` and `.`
    name: String,
    /// The command that gives a pipe to it: "ssh gpu1", "kubectl exec -i pod --", "docker exec -i trainer", "srun --gres=gpu:1"
    command: String,
    #[command(flatten)]
    with: With,
}

#[derive(Debug, Default, clap::Args)]
struct With {
    /// The program that becomes the worker there, if this one does not fit; also MASKLOOM_REMOTE_WORKER
    #[arg(long, value_name = "PATH")]
    worker: Option<PathBuf>,
    /// Folder there for the worker and its files; the default is ~/.cache/maskloom/remote there
    #[arg(long, value_name = "DIR")]
    folder: Option<String>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// List the targets
#[derive(Debug, clap::Args)]
struct List {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Start a target's worker and examine its machine
#[derive(Debug, clap::Args)]
struct Test {
    /// Name of the target
    name: String,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Put this program's version on a target
#[derive(Debug, clap::Args)]
struct Update {
    /// Name of the target
    name: String,
    #[command(flatten)]
    with: With,
}

/// Take the worker and its files away from a target, and forget it
#[derive(Debug, clap::Args)]
struct Remove {
    /// Name of the target
    name: String,
    /// Also if jobs run there
    #[arg(long)]
    force: bool,
    /// Forget it without reaching the machine: what is there stays
    #[arg(long, conflicts_with = "force")]
    only_here: bool,
}

/// Runs the command.
pub(super) fn target(args: Args) -> Result<(), Failure> {
    match args.what {
        What::Add(args) => add(args),
        What::List(args) => list(&args),
        What::Test(args) => test(&args.name, args.json),
        What::Update(args) => update(args),
        What::Remove(args) => remove(&args),
    }
}

fn add(args: Add) -> Result<(), Failure> {
    named::check_name(&args.name).map_err(Failure::WrongUse)?;
    let words = target::split(&args.command).map_err(Failure::WrongUse)?;
    if let [_, .., last] = &words[..]
        && last == "worker"
    {
        let why = "the command must give a shell there, not a worker: the worker is put there now";
        let shorter = Target::from_words(&words[..words.len() - 2]).command;
        let why = Diagnostic::error("target-command", why);
        return Err(Failure::WrongUse(why.hint(format!("maskloom target add {} \"{shorter}\"", args.name))));
    }
    if let Some(there) = named::list()?.get(&args.name)
        && there.words != words
    {
        let has = Target::from_words(&there.words);
        let message = format!("there is a target `{}` already: {has}", args.name);
        let hint = format!("choose another name, or `maskloom target remove {}` first", args.name);
        return Err(Diagnostic::error("target-exists", message).hint(hint).into());
    }
    put(&args.name, words, &args.with)
}

fn update(args: Update) -> Result<(), Failure> {
    let list = named::list()?;
    let known = list.find(&args.name)?;
    // a folder that was chosen stays the folder
    let folder = args.with.folder.clone().or_else(|| Some(known.found.folder.clone()));
    put(&args.name, known.words.clone(), &With { folder, ..args.with })
}

/// Probes, copies, tries and remembers.
fn put(name: &str, words: Vec<String>, with: &With) -> Result<(), Failure> {
    let client = named::change(|list| list.client.clone())?;
    let whose = Whose { client: &client, name };
    let program = Program::chosen(with.worker.as_deref())?;
    let progress = Progress::new();
    let said = out::words();
    progress.say(&said.with("target-asking", &[("name", name.into())]));
    let began = Instant::now();
    let waiting = work::telling_silence(&Target::from_words(&words));
    let mut shell = Shell::open(&words)?;
    let probed = probe::probe(&mut shell, with.folder.as_deref())?;
    drop(waiting);
    let asked = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let size = words::bytes(program.bytes.len() as u64);
    progress.say(&said.with("target-packing", &[("size", size.into())]));
    let mut reported = began;
    let copied = install::install(&mut shell, &probed, &program, &whose, &mut |n, all| {
        if reported.elapsed() < Duration::from_millis(100) {
            return;
        }
        reported = Instant::now();
        let figures = [("n", words::bytes(n as u64).into()), ("all", words::bytes(all as u64).into())];
        progress.say(&said.with("target-copying", &figures));
    })?;
    let took = began.elapsed().as_secs_f64();
    drop(progress);
    let before = named::list()?.get(name).map(|known| known.found.folder.clone());
    let found = probed.found.clone();
    named::change(|list| list.put(Named { name: name.into(), words, found, worker: copied.worker.clone() }))?;
    install::clear(&mut shell, &probed.found.folder)?;
    if let Some(before) = before.filter(|before| *before != probed.found.folder) {
        leave(&mut shell, &before, &whose);
    }
    drop(shell);
    tell(name, &program, &probed, &copied, [asked, took], with.json)?;
    test(name, with.json)
}

/// Takes away what this target had in another folder there; where jobs run it stays.
fn leave(shell: &mut Shell, folder: &str, whose: &Whose) {
    if let Err(why) = install::remove(shell, folder, whose, false) {
        let message = format!("what was in {folder} there stays: {}", why.message);
        out::diagnostics(&[Diagnostic::note("target-folder", message)]);
    }
}

/// What was found and what was copied: for people on stdout, else on stderr, where it spoils no object.
fn tell(
    name: &str,
    program: &Program,
    probed: &Probed,
    copied: &Copied,
    [asked, took]: [f64; 2],
    json: bool,
) -> Result<(), Failure> {
    let (found, said) = (&probed.found, out::words());
    let size = ("size", words::bytes(program.bytes.len() as u64).into());
    let sent = match copied.sent {
        0 => said.with("target-there", &[size]),
        sent => {
            let figures = [("packed", words::bytes(sent)), ("seconds", format!("{took:.1}"))];
            let [packed, seconds] = figures.map(|(name, text)| (name, text.into()));
            said.with("target-copied", &[size, packed, seconds])
        }
    };
    let missing = |what: &Option<String>| what.clone().unwrap_or_else(|| said.text("target-nothing").into());
    let login = [
        ("name", name.to_string()),
        ("user", found.user.clone()),
        ("host", found.host.clone()),
        ("system", found.system_words()),
        ("seconds", format!("{asked:.1}")),
    ];
    let text = format!(
        "{}  {}; NVRTC {}; Python {}\n  {sent}\n  {}\n",
        out::line("target-login", &login.map(|(name, text)| (name, text.into()))),
        found.gpu_words(),
        missing(&found.nvrtc),
        missing(&found.python),
        copied.worker.path,
    );
    if json {
        out::note(text.trim_end());
        return Ok(());
    }
    out::text(&text)
}

fn list(args: &List) -> Result<(), Failure> {
    let list = named::list()?;
    if args.json {
        let rows: Vec<Value> = list.targets.iter().map(object).collect();
        return out::json(&json!({ "targets": rows }));
    }
    if list.targets.is_empty() {
        return out::text(&out::line("target-none", &[]));
    }
    let mut table = Table::told(&["column-target", "column-command", "column-system", "GPUs", "column-worker"]);
    for of in &list.targets {
        let build = Cell::told(|said| match is_old(of) {
            true => said.with("target-old", &[("build", of.worker.build.as_str().into())]),
            false => of.worker.build.clone(),
        });
        let command = Target::from_words(&of.words).command;
        let plain = [of.name.clone(), command, of.found.system_words(), of.found.gpu_words()];
        table.row(plain.into_iter().map(Cell::from).chain([build]));
    }
    out::text(&table.render())
}

/// Whether the worker there is another build than this program.
pub(super) fn is_old(of: &Named) -> bool {
    of.worker.build != identity::build().to_string()
}

fn object(of: &Named) -> Value {
    json!({ "name": of.name, "words": of.words, "found": of.found, "worker": of.worker, "other_version": is_old(of) })
}

fn test(name: &str, json: bool) -> Result<(), Failure> {
    let list = named::list()?;
    let known = list.find(name)?;
    let began = Instant::now();
    let mut worker = Worker::connect(name)?;
    let connected = began.elapsed().as_secs_f64();
    let report = worker.doctor()?;
    if json {
        out::json(&json!({ "target": object(known), "seconds": connected, "info": worker.info, "doctor": report }))?;
    } else {
        let (version, seconds) = (worker.info.version.as_str().into(), format!("{connected:.1}").into());
        let figures = [("name", name.into()), ("version", version), ("seconds", seconds)];
        out::text(&(out::line("target-answered", &figures) + "\n" + &doctor::render(&report)))?;
    }
    if report.worst() == Health::Red { Err(Failure::Exit(ExitCode::FAILURE)) } else { Ok(()) }
}

fn remove(args: &Remove) -> Result<(), Failure> {
    let list = named::list()?;
    let known = list.find(&args.name)?.clone();
    let forget = || named::change(|list| list.targets.retain(|of| of.name != args.name));
    if args.only_here {
        forget()?;
        let figures = [("name", args.name.as_str().into()), ("folder", known.found.folder.as_str().into())];
        return out::text(&out::line("target-forgotten", &figures));
    }
    let whose = Whose { client: &list.client, name: &args.name };
    let only_here = |why: Diagnostic| {
        let also = format!("or `maskloom target remove {} --only-here`", args.name);
        let hint = why.hint.as_ref().map_or(also.clone(), |hint| format!("{hint}; {also}"));
        why.hint(hint)
    };
    let mut shell = Shell::open(&known.words).map_err(only_here)?;
    let taken = install::remove(&mut shell, &known.found.folder, &whose, args.force)
        .map_err(|why| if why.code == "target-busy" { why } else { only_here(why) })?;
    forget()?;
    let figures = [("name", args.name.as_str().into()), ("folder", known.found.folder.as_str().into())];
    out::text(&match taken {
        Taken::All => out::line("target-gone", &figures),
        Taken::Shared(1) => out::line("target-shared-one", &figures),
        Taken::Shared(n) => {
            let [name, folder] = figures;
            out::line("target-shared", &[name, folder, ("n", n.to_string().into())])
        }
    })
}
