//! `maskloom jobs`, `attach` and `cancel`: work that goes on without a client.
//!
//! Invariant: what a job shows is what its command would have shown. Must not know how jobs run.

use super::detach::{self, Followed, Show, failures, unexpected};
use super::out::{self, Failure};
use super::table::{Cell, Table};
use super::work::Worker;
use super::{record, run, sweep};
use crate::base::Diagnostic;
use crate::tasks::machines::{self, Listed};
use crate::tasks::steps;
use crate::words::{Language, Words};
use crate::worker::protocol::detached::{Ask, JobAnswer, JobInfo, JobState, Piece, PieceEnd};
use crate::worker::target::{Target, option};
use crate::worker::{files, named};
use base64::Engine;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// List detached jobs: of this machine and of every target, or of one
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only of this target: its name, or the launch command of a worker
    #[arg(long, value_name = "NAME|COMMAND", conflicts_with = "here")]
    target: Option<String>,
    /// Only of this machine
    #[arg(long)]
    here: bool,
    /// Seconds for which the targets are waited for, all at once
    #[arg(long, value_name = "SECONDS", default_value_t = machines::DEADLINE.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
    /// Remove the jobs that are over, with their results: of this machine, or of --target
    #[arg(long)]
    clear: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Show a detached job: wait for its end and print its results
#[derive(Debug, clap::Args)]
pub(super) struct Attach {
    /// Its number, or the beginning of it
    id: String,
    /// Name of a target, or the launch command of a worker
    #[arg(long, value_name = "NAME|COMMAND", default_value = "")]
    target: String,
    /// Print the results so far and do not wait
    #[arg(long)]
    now: bool,
    /// For a job of `presets record`: the file to add its runs to, if not the one that was named then
    #[arg(long, value_name = "F.json", value_parser = super::ending::one_of(&["json"]))]
    into: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// End a detached job
#[derive(Debug, clap::Args)]
pub(super) struct Cancel {
    /// Its number, or the beginning of it
    id: String,
    /// Name of a target, or the launch command of a worker
    #[arg(long, value_name = "NAME|COMMAND", default_value = "")]
    target: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Lists.
pub(super) fn jobs(args: Args) -> Result<(), Failure> {
    if args.clear {
        return match Worker::connect(args.target.as_deref().unwrap_or_default())?.detached(Ask::Clear { id: None })? {
            JobAnswer::Cleared { jobs } if args.json => out::json(&json!({ "removed": jobs })),
            JobAnswer::Cleared { jobs } => out::text(&out::line("job-removed", &[("n", jobs.to_string().into())])),
            other => Err(unexpected(&other)),
        };
    }
    let (rows, silent) = match &args.target {
        Some(target) => (listed(target)?.into_iter().map(|job| (target.clone(), job)).collect(), Vec::new()),
        None => everywhere(args.here, Duration::from_secs(args.wait))?,
    };
    if args.json {
        let object = |(place, job): &(String, JobInfo)| {
            let mut value = serde_json::to_value(job).unwrap_or(Value::Null);
            value["target"] = json!(place);
            value
        };
        let unreachable: Vec<Value> =
            silent.iter().map(|(place, why)| json!({ "target": place, "why": why })).collect();
        return out::json(&json!({ "jobs": rows.iter().map(object).collect::<Vec<_>>(), "unreachable": unreachable }));
    }
    let of_silent = |(place, why): &(String, Diagnostic)| {
        let words = why.message.lines().map(str::trim).collect::<Vec<_>>().join("; ");
        out::line("job-silent", &[("place", place.as_str().into()), ("why", words.into())])
    };
    out::text(&(render(&rows) + &silent.iter().map(of_silent).collect::<String>()))
}

/// Jobs with their machines, and the machines that cannot be asked.
type Everywhere = (Vec<(String, JobInfo)>, Vec<(String, Diagnostic)>);

/// Of this machine, and of every target of the list unless only this one is meant. Errors: this machine's cannot be listed.
fn everywhere(here: bool, wait: Duration) -> Result<Everywhere, Failure> {
    let mut places = vec![String::new()];
    if !here {
        places.extend(named::list()?.targets.into_iter().map(|target| target.name));
    }
    let targets: Vec<Target> = places.iter().map(Target::new).collect();
    let mut answers: Vec<Option<Listed>> = vec![None; places.len()];
    machines::jobs_of_all(&targets, wait, &mut |at, listed| answers[at] = Some(listed));
    let (mut rows, mut silent) = (Vec::new(), Vec::new());
    for (place, answer) in places.into_iter().zip(answers) {
        match answer {
            Some(Ok(jobs)) => rows.extend(jobs.into_iter().map(|job| (place.clone(), job))),
            Some(Err(why)) if place.is_empty() => return Err(why.into()),
            Some(Err(why)) => silent.push((place, why)),
            None => {}
        }
    }
    Ok((rows, silent))
}

fn listed(target: &str) -> Result<Vec<JobInfo>, Failure> {
    match Worker::connect(target)?.detached(Ask::List)? {
        JobAnswer::Listed { jobs } => Ok(jobs),
        other => Err(unexpected(&other)),
    }
}

fn render(rows: &[(String, JobInfo)]) -> String {
    if rows.is_empty() {
        return out::line("job-none", &[]);
    }
    let mut table =
        Table::told(&["column-job", "column-machine", "column-what", "column-state", "column-time", "column-done"]);
    for (place, job) in rows {
        let place = if place.is_empty() { Cell::text("job-here") } else { place.as_str().into() };
        let done = Cell::told(|said| match job.state {
            JobState::Running => detach::line(said, job),
            _ => detach::count(said, job),
        });
        let state = Cell::told(|said| match job.own {
            true => said.text(steps::job(job.state)).into(),
            false => said.with("job-other", &[("state", said.text(steps::job(job.state)).into())]),
        });
        table.row([job.id.as_str().into(), place, job.title.as_str().into(), state, time(job.seconds).into(), done]);
    }
    table.render()
}

fn time(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        120.0..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Waits and shows.
pub(super) fn attach(args: Attach) -> Result<(), Failure> {
    let followed = detach::follow(&args.target, None, &args.id, args.now)?;
    show(followed, &Show { json: args.json, into: args.into, target: args.target })
}

/// Ends.
pub(super) fn cancel(args: Cancel) -> Result<(), Failure> {
    match Worker::connect(&args.target)?.detached(Ask::Cancel { id: args.id })? {
        JobAnswer::Cancelled(info) if args.json => out::json(&info),
        JobAnswer::Cancelled(info) => {
            let figures = [
                ("id", info.id.clone()),
                ("state", out::words().text(steps::job(info.state)).into()),
                ("done", info.done.to_string()),
                ("steps", info.steps.to_string()),
                ("command", format!("maskloom attach {}{}", info.id, option(&args.target))),
            ];
            out::text(&out::line("job-kept", &figures.map(|(name, text)| (name, text.into()))))
        }
        other => Err(unexpected(&other)),
    }
}

/// Prints the results as the job's command would have, and fails as it would have.
pub(super) fn show(followed: Followed, show: &Show) -> Result<(), Failure> {
    let Followed { batch, pieces, info } = followed;
    let printed = match batch.what.as_str() {
        "run" => run::show_job(&batch, &pieces, show),
        "sweep" => sweep::show_job(&batch, &pieces, show),
        "record" => record::show_job(&batch, &pieces, show),
        _ => said(&batch.notes, &pieces, show.json),
    };
    let state = match info.state {
        JobState::Ended => None,
        JobState::Running => Some(Diagnostic::note(
            "job-running",
            format!("the job still runs: {}", detach::line(Words::of(Language::English), &info)),
        )),
        over => {
            let message =
                format!("the job {}: {}; {} of {} results are there", info.id, over.words(), info.done, info.steps);
            let why = Diagnostic::error("job-unfinished", message);
            Some(why.hint("start it again; a sweep with --journal takes up what is missing"))
        }
    };
    match (printed, state) {
        (printed, None) => printed,
        (Err(Failure::Reported(mut all)), Some(why)) => {
            all.push(why);
            Err(all.into())
        }
        (Ok(()), Some(why)) if !why.is_error() => {
            out::diagnostics(&[why]);
            Ok(())
        }
        (Ok(()), Some(why)) => Err(why.into()),
        (printed, Some(_)) => printed,
    }
}

/// What a command printed and wrote, put where it would have put it here.
fn said(notes: &Value, pieces: &[Piece], as_json: bool) -> Result<(), Failure> {
    let mut worst = 0;
    for piece in pieces {
        let PieceEnd::Said { code, out, err, files: written } = &piece.end else { continue };
        if !err.trim().is_empty() {
            out::note(err.trim_end());
        }
        for (name, packed) in written {
            let Some(path) = notes["files"][name].as_str() else { continue };
            let bytes = base64::engine::general_purpose::STANDARD.decode(packed);
            let bytes = bytes.map_err(|e| Diagnostic::error("job-file", format!("{name} came broken: {e}")))?;
            files::save(&PathBuf::from(path), &bytes)?;
        }
        // a command that was started for people has no object of its own
        if as_json && serde_json::from_str::<Value>(out).is_err() {
            out::json(&json!({ "status": code, "out": out, "err": err, "files": written.keys().collect::<Vec<_>>() }))?;
        } else {
            out::text(out)?;
        }
        worst = worst.max(*code);
    }
    let failed = failures(pieces);
    match (failed.is_empty(), worst) {
        (false, _) => Err(failed.into()),
        (true, 0) => Ok(()),
        (true, code) => Err(Failure::Exit(ExitCode::from(code.clamp(1, 255) as u8))),
    }
}
