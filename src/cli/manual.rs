//! `maskloom completions` and `maskloom man`: what shells and manuals want to know of the command line.
//!
//! Invariant: both are made from the commands and flags of this program; nothing is written by hand. Must not know what commands do.

use super::out::{self, Failure};
use crate::base::Diagnostic;
use crate::base::nearest::nearest;
use crate::worker::files;
use clap::Command;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// Print a script that completes commands and flags in a shell
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// Shell that reads the script
    #[arg(value_enum)]
    shell: Shell,
    /// Print one JSON object with the script
    #[arg(long)]
    json: bool,
}

/// Print a manual page, for `man -l -`
#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// Command of the page; the default is the program
    command: Option<String>,
    /// Write the pages of the program and of all commands into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
    /// Print one JSON object with the page
    #[arg(long)]
    json: bool,
}

/// Runs `completions`.
pub(super) fn completions(args: &Completions, mut line: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut line, "maskloom", &mut script);
    reported("script", &script, args.json)
}

/// Runs `man`.
pub(super) fn man(args: &Man, mut line: Command) -> Result<(), Failure> {
    // gives commands their whole names and flags
    line.build();
    if let Some(folder) = &args.out {
        return pages(line, folder, args.json);
    }
    let page = match &args.command {
        None => line,
        Some(name) => match line.find_subcommand(name) {
            Some(found) => found.clone(),
            None => return Err(Failure::WrongUse(unknown(name, &line))),
        },
    };
    reported("page", &roff(page)?, args.json)
}

fn roff(page: Command) -> Result<Vec<u8>, Diagnostic> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut roff)
        .map_err(|why| Diagnostic::error("man", format!("the page cannot be written: {why}")))?;
    Ok(roff)
}

/// A page for each command that help lists, as `man` looks for them: `maskloom-run.1`.
fn pages(line: Command, folder: &Path, as_json: bool) -> Result<(), Failure> {
    let commands: Vec<Command> = line.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let mut written = Vec::new();
    for page in std::iter::once(line).chain(commands) {
        let name = format!("{}.1", page.get_display_name().unwrap_or(page.get_name()));
        files::save_with_folders(&folder.join(&name), &roff(page)?)?;
        written.push(name);
    }
    if as_json {
        return out::json(&serde_json::json!({ "folder": out::path(folder), "pages": written }));
    }
    let n = ("n", written.len().to_string().into());
    out::text(&out::line("pages-manual", &[n, ("folder", out::path(folder).into())]))
}

fn unknown(name: &str, line: &Command) -> Diagnostic {
    let known: Vec<&str> = line.get_subcommands().map(Command::get_name).collect();
    let hint = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    Diagnostic::error("unknown-command", format!("`{name}` is not a command"))
        .hint(hint.unwrap_or_else(|| "`maskloom --help` lists the commands".into()))
}

fn reported(what: &str, bytes: &[u8], as_json: bool) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(bytes);
    if as_json { out::json(&serde_json::json!({ what: text })) } else { out::text(&text) }
}
