//! A mask_mod and a score_mod of one file: `FILE.py:MASK,SCORE`, or both of a file that has one of each.
//!
//! Invariant: never two masks or two score mods, and never one of two that were asked for. Must not know files.

use super::opened::{CodeArgs, Opened};
use super::out::Failure;
use crate::base::Diagnostic;
use crate::document::model::Document;
use crate::python::Chosen;
use crate::python::outline::{EntryKind, Outline};
use std::path::Path;

/// Whether an entry names the two mods of an exported module.
pub(super) fn is_whole_module(entry: &str) -> bool {
    matches!(split(entry)[..], ["mask_mod", "score_mod"] | ["score_mod", "mask_mod"])
}

fn split(entry: &str) -> Vec<&str> {
    entry.split(',').map(str::trim).collect()
}

/// The two functions that an entry names, or, without an entry, the only two of a text where one is a mask_mod and one a
/// score_mod. None: one function is meant. Errors: the names are not two.
pub(super) fn names<'a>(entry: &'a str, outline: &'a Outline) -> Result<Option<[&'a str; 2]>, Failure> {
    if entry.is_empty() {
        let [first, second] = &outline.entries[..] else { return Ok(None) };
        let one_of_each = matches!(
            (first.kind, second.kind),
            (EntryKind::MaskMod, EntryKind::ScoreMod) | (EntryKind::ScoreMod, EntryKind::MaskMod)
        );
        return Ok(one_of_each.then_some([first.name.as_str(), second.name.as_str()]));
    }
    match split(entry)[..] {
        [_] => Ok(None),
        [first, second] if !first.is_empty() && !second.is_empty() && first != second => Ok(Some([first, second])),
        _ => {
            let message = format!("`{entry}` does not name two functions");
            let hint = "name one mask_mod and one score_mod: FILE.py:MASK,SCORE; and_masks and or_masks join masks";
            Err(Failure::WrongUse(Diagnostic::error("entry-pair", message).hint(hint)))
        }
    }
}

/// The arguments for one of two functions: those that are parameters of the other alone are left out.
pub(super) fn arguments(code: &CodeArgs, outline: &Outline, own: &str, other: &str) -> CodeArgs {
    let has = |function: &str, name: &str| {
        let root = name.split('.').next().unwrap_or(name);
        let entry = outline.entries.iter().rev().find(|e| e.name == function);
        entry.is_some_and(|e| e.params.iter().any(|p| p.name == root))
    };
    let mut code = code.clone();
    code.args.retain(|(name, _)| has(own, name) || !has(other, name));
    code
}

/// One document of the two. Errors: those of the code; both are of one kind.
pub(super) fn joined(path: &Path, [first, second]: [Opened; 2], asked: bool) -> Result<Opened, Failure> {
    let is_mask = |opened: &Opened| opened.document.scores.is_empty();
    let (mut mask, score) = match (is_mask(&first), is_mask(&second)) {
        (true, false) => (first, second),
        (false, true) => (second, first),
        (masks, _) => {
            // a function that has errors may be of the other kind
            first.compile()?;
            second.compile()?;
            let kind = if masks { "mask_mods" } else { "score_mods" };
            let (a, b) = (entry_of(&first), entry_of(&second));
            let message = format!("`{a}` and `{b}` are both {kind}; an attention takes one mask_mod and one score_mod");
            let hint = match masks {
                true => "join them in the code: mask_mod = and_masks(first, second), or or_masks",
                false => "join them in the code: a score_mod that calls one on the result of the other",
            };
            return Err(Diagnostic::error("entry-pair", message).hint(hint).into());
        }
    };
    let (mask_name, score_name) = (entry_of(&mask), entry_of(&score));
    mask.document.name = format!("{mask_name} and {score_name} of {}", path.display());
    add_scores(&mut mask.document, score.document);
    mask.said.extend(score.said);
    mask.said.dedup();
    if !asked {
        let line = format!("chosen: `{mask_name}` and `{score_name}`; FILE.py:NAME chooses one of them");
        mask.said.insert(0, line);
    }
    let entry = format!("{mask_name},{score_name}");
    mask.chosen = Some(Chosen { entry, asked, others: Vec::new() });
    Ok(mask)
}

fn entry_of(opened: &Opened) -> String {
    let document = &opened.document;
    let layer = document.layers.first().map(|l| &l.name);
    layer.or(document.scores.first().map(|s| &s.name)).cloned().unwrap_or_default()
}

fn add_scores(document: &mut Document, of: Document) {
    let next = document.layers.iter().map(|l| l.id).max().unwrap_or(0) + 1;
    document.scores.extend(of.scores.into_iter().zip(next..).map(|(mut score, id)| {
        score.id = id;
        score
    }));
}
