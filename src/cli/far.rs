//! Commands of the lab where the capture is: on another machine, or here without waiting.
//!
//! Invariant: the command there is the one that was typed, without its place; a capture stays, tables and pictures come back. Must not
//! know what is measured.

use super::arguments;
use super::detach::{Show, follow, start};
use super::jobs;
use super::opened;
use super::out::Failure;
use super::work::Worker;
use crate::base::Diagnostic;
use crate::document::library;
use crate::document::model::Document;
use crate::worker::files;
use crate::worker::protocol::detached::{Batch, Step, Work};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where a command of the lab runs.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Far {
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
    pub(super) fn is_far(&self) -> bool {
        self.detach || !self.target.trim().is_empty()
    }
}

/// A command of this program as a job: its words, without where it runs, and with its files.
pub(super) struct Command {
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
pub(super) fn command(far: &Far, command: Command, as_json: bool) -> Result<(), Failure> {
    let words = std::env::args_os().skip(1).map(|word| arguments::as_text(Path::new(&word)));
    let mut words = own_words(words.collect::<Result<Vec<_>, _>>()?.into_iter());
    let (mut sent, mut back) = (BTreeMap::new(), BTreeMap::new());
    if let Some(name) = &command.document {
        let (path, entry) = match opened::python(name) {
            Some((path, entry)) => (path, entry.to_string()),
            None => (PathBuf::from(name), String::new()),
        };
        // a preset's name means the same there
        let is_file = match std::fs::metadata(&path) {
            Ok(about) => about.is_file(),
            Err(e) if files::is_nothing(&e) || library::preset(name).is_some() => false,
            Err(_) => files::is_there(&path)?,
        };
        if is_file {
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
        back.insert(plain, arguments::as_text(&whole)?);
    }
    let step = Step { label: String::new(), work: Work::Command { words, files: sent } };
    let notes = json!({ "files": back });
    let batch = Batch { what: command.what.into(), title: command.title, steps: vec![step], notes };
    let mut worker = Worker::connect(&far.target)?;
    let started = start(&far.target, &mut worker, batch)?;
    if far.detach {
        return started.tell(as_json);
    }
    // the line that is open: a login over a slow one takes longer than a small picture
    let followed = follow(&far.target, Some(worker), &started.id, false)?;
    jobs::show(followed, &Show { json: as_json, into: None, target: far.target.clone() })
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
    }
}
