//! Work that goes on without this program: how commands start it, and how it is followed.
//!
//! Invariant: nothing about a job is kept here; a broken line is taken up again where the results stopped. Must not know what the
//! results mean.

use super::out::{self, Failure, Progress};
use super::work::Worker;
use crate::base::control::remaining;
use crate::base::{Diagnostic, words};
use crate::document::model::Document;
use crate::worker::files;
use crate::worker::launch::Launch;
use crate::worker::protocol::detached::{Ask, Batch, JobInfo, JobState, Piece, Step, Told, Work};
use crate::worker::target::Target;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two looks at a job.
const LOOK: Duration = Duration::from_millis(500);
/// Longest wait before a broken line is tried again.
const LONGEST: Duration = Duration::from_secs(30);

/// Where a command of the lab runs.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Far {
    /// Run where the capture is: name of a target (`maskloom target list`), or the launch command of a worker; the capture is a
    /// path there and stays there
    #[arg(long, value_name = "NAME|COMMAND", default_value = "")]
    pub target: String,
    /// Go on without this program: `maskloom attach` shows the results
    #[arg(long)]
    pub detach: bool,
}

impl Far {
    /// Whether it runs in another process.
    pub fn is_far(&self) -> bool {
        self.detach || !self.target.trim().is_empty()
    }
}

/// A job that was started.
pub struct Started {
    pub id: String,
    pub target: String,
}

/// Starts a job. Errors: the target ends what it started when the line ends.
pub fn start(target: &str, worker: &mut Worker, batch: Batch) -> Result<Started, Failure> {
    let launch = Launch::of(&Target::new(target))?;
    let program = Path::new(&launch.words[0]).file_name().unwrap_or_default();
    if ["srun", "salloc"].iter().any(|queue| program == *queue) {
        let message = "a job step of Slurm ends with its srun: nothing goes on there without it";
        return Err(Diagnostic::error("detach-slurm", message)
            .hint("`maskloom sweep --slurm DIR` submits an array job; or give the target the words of a login to the node")
            .into());
    }
    match worker.detached(Ask::Start { batch: Box::new(batch) })? {
        Told::Started { id } => Ok(Started { id, target: target.trim().to_string() }),
        other => Err(unexpected(&other)),
    }
}

impl Started {
    /// Says how to come back to it.
    pub fn tell(&self, as_json: bool) -> Result<(), Failure> {
        let at = at(&self.target);
        let attach = format!("maskloom attach {}{at}", self.id);
        if as_json {
            return out::json(&json!({ "job": self.id, "target": self.target, "attach": attach }));
        }
        let whom = Target::new(&self.target);
        out::text(&format!(
            "job {} on {whom}\n  results: {attach}\n  end it: maskloom cancel {}{at}\n",
            self.id, self.id
        ))
    }
}

/// ` --target NAME`, as it must be typed.
pub fn at(target: &str) -> String {
    let quoted = || crate::worker::target::quote(target.trim());
    if target.trim().is_empty() { String::new() } else { format!(" --target {}", quoted()) }
}

pub fn unexpected(told: &Told) -> Failure {
    Diagnostic::error("protocol-answer", format!("unexpected reply of the worker: {told:?}"))
        .hint("both sides must be the same version of Maskloom")
        .into()
}

/// Everything about a job that is over.
pub struct Followed {
    pub batch: Batch,
    pub pieces: Vec<Piece>,
    pub info: JobInfo,
}

/// Waits for the end of a job; a line that breaks is tried again and again. `now`: gives what is there instead.
pub fn follow(target: &str, id: &str, now: bool) -> Result<Followed, Failure> {
    let progress = Progress::new();
    let (mut batch, mut pieces) = (None, Vec::new());
    let mut worker = Some(Worker::connect(target)?);
    let mut pause = Duration::from_secs(1);
    loop {
        let part = match &mut worker {
            Some(worker) => worker.detached(Ask::Read { id: id.into(), after: pieces.len() }),
            None => Worker::connect(target).and_then(|new| {
                let asked = worker.insert(new).detached(Ask::Read { id: id.into(), after: pieces.len() });
                pause = Duration::from_secs(1);
                asked
            }),
        };
        let part = match part {
            Ok(Told::Part(part)) => *part,
            Ok(other) => return Err(unexpected(&other)),
            Err(Failure::Told(why)) if is_cut(&why) && !target.trim().is_empty() => {
                worker = None;
                out::note(&format!("the line to {target} is cut; it is tried again in {} s", pause.as_secs()));
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST);
                continue;
            }
            Err(other) => return Err(other),
        };
        batch = part.batch.map(|batch| *batch).or(batch);
        pieces.extend(part.pieces);
        let info = part.info;
        if part.more {
            continue;
        }
        if info.state != JobState::Running || now {
            drop(progress);
            let batch = batch.ok_or_else(|| Diagnostic::error("protocol-answer", "the job came without its work"))?;
            return Ok(Followed { batch, pieces, info });
        }
        progress.say(&line(&info));
        std::thread::sleep(LOOK);
    }
}

/// Whether a line broke, which says nothing about the job.
fn is_cut(why: &[Diagnostic]) -> bool {
    why.iter().any(|why| ["worker-died", "target-unreachable", "target-silent"].contains(&&*why.code))
}

/// `3 of 12, 25%, about 3 min left: timing flex`
pub fn line(info: &JobInfo) -> String {
    let left = remaining(Duration::from_secs_f64(info.seconds), info.fraction).map(|left| format!(", {left}"));
    let now = if info.now.is_empty() { String::new() } else { format!(": {}", info.now) };
    format!("{} of {}, {}{}{now}", info.done, info.steps, words::percent(info.fraction), left.unwrap_or_default())
}

/// A command of this program as a job: its words, without where it runs, and with its files.
pub struct Command {
    /// `quality`, `atlas`
    pub what: &'static str,
    /// For people.
    pub title: String,
    /// The document that it reads, as the user named it.
    pub document: Option<String>,
    /// Files that it writes, as the user named them.
    pub written: Vec<PathBuf>,
}

/// Starts it where the flags say, and shows its end unless it is detached.
pub fn command(far: &Far, command: Command, as_json: bool) -> Result<(), Failure> {
    let mut words: Vec<String> = own_words(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()));
    let (mut sent, mut back) = (BTreeMap::new(), BTreeMap::new());
    if let Some(name) = &command.document {
        let (path, entry) = match super::opened::python(name) {
            Some((path, entry)) => (path, entry.to_string()),
            None => (PathBuf::from(name), String::new()),
        };
        // a preset's name means the same there
        if path.is_file() {
            let plain = plain_name(&path)?;
            let text = files::read_text(&path)?;
            alone(&path, &text)?;
            sent.insert(plain.clone(), text);
            let there = if entry.is_empty() { plain } else { format!("{plain}:{entry}") };
            replace(&mut words, name, &there);
        }
    }
    for path in &command.written {
        let plain = plain_name(path)?;
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        replace(&mut words, &path.to_string_lossy(), &plain);
        back.insert(plain, whole.to_string_lossy().into_owned());
    }
    let step = Step { label: String::new(), work: Work::Command { words, files: sent } };
    let notes = json!({ "files": back });
    let batch = Batch { what: command.what.into(), title: command.title, steps: vec![step], notes };
    let mut worker = Worker::connect(&far.target)?;
    let started = start(&far.target, &mut worker, batch)?;
    drop(worker);
    if far.detach {
        return started.tell(as_json);
    }
    let followed = follow(&far.target, &started.id, false)?;
    super::jobs::show(followed, &super::jobs::Show { json: as_json, into: None, target: far.target.clone() })
}

/// What a command reads there must be whole: a document with links is not.
fn alone(path: &Path, text: &str) -> Result<(), Diagnostic> {
    let linked = || {
        let document: Document = crate::document::file::from_json(text).ok()?;
        let value = serde_json::to_value(&document).ok()?;
        value.to_string().contains("\"kind\":\"linked\"").then_some(())
    };
    if path.extension().is_some_and(|ending| ending == "json") && linked().is_some() {
        let message = format!("{} links to other files, which do not travel with it", path.display());
        return Err(Diagnostic::error("detach-linked", message)
            .hint("put the code into the document itself (the window: Code, Detach from file), or use a preset"));
    }
    Ok(())
}

fn plain_name(path: &Path) -> Result<String, Diagnostic> {
    let name = path.file_name().and_then(|name| name.to_str()).filter(|name| !name.starts_with('.'));
    name.map(String::from).ok_or_else(|| {
        Diagnostic::error("detach-name", format!("{} has no name that can travel", path.display()))
            .hint("give the file a plain name")
    })
}

/// The words of this command without where it runs.
fn own_words(words: impl Iterator<Item = String>) -> Vec<String> {
    let (mut kept, mut skip) = (Vec::new(), false);
    for word in words {
        if std::mem::take(&mut skip) || word == "--detach" || word.starts_with("--target=") {
            continue;
        }
        if word == "--target" {
            skip = true;
            continue;
        }
        kept.push(word);
    }
    kept
}

/// Replaces a value, alone or behind `--flag=`.
fn replace(words: &mut [String], from: &str, to: &str) {
    for word in words {
        match word.split_once('=') {
            _ if word == from => *word = to.to_string(),
            Some((flag, value)) if flag.starts_with("--") && value == from => *word = format!("{flag}={to}"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_travels_without_its_place_and_with_plain_files() {
        let words = [
            "quality",
            "a b/x.json",
            "/data/c.safetensors",
            "--target",
            "gpu 1",
            "--detach",
            "--page=out/p.html",
            "--json",
        ];
        let mut words = own_words(words.map(String::from).into_iter());
        replace(&mut words, "a b/x.json", "x.json");
        replace(&mut words, "out/p.html", "p.html");
        assert_eq!(words, ["quality", "x.json", "/data/c.safetensors", "--page=p.html", "--json"]);
        assert_eq!(own_words(["atlas", "--target=x", "c"].map(String::from).into_iter()), ["atlas", "c"]);
        assert_eq!(
            (at(""), at(" gpu1 "), at("ssh a b")),
            (String::new(), " --target gpu1".into(), " --target 'ssh a b'".into())
        );
    }
}
