//! `maskloom licences`: what this program is built from, and under which terms.
//!
//! Invariant: the texts are those that came with the packages. Must not know how they were collected.

use super::out::{self, Failure};
use crate::tasks::licences;
use serde_json::{Value, json};

/// Print the licences of the packages and fonts in this program
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print one JSON object: packages, and the whole text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn licences(args: &Args) -> Result<(), Failure> {
    let text = licences::text()?;
    if !args.json {
        return out::text(&text);
    }
    let one = |(name, version): (&str, &str)| json!({ "name": name, "version": version });
    let packages: Vec<Value> = licences::packages(&text).into_iter().map(one).collect();
    out::json(&json!({ "licence": "MIT", "packages": packages, "text": text }))
}
