//! English phrases of the engine in the language of the window: steps of the history, what the worker does, why a backend is faster.
//!
//! Invariant: a phrase that is unknown here stays English, and English phrases stay as they are. Must not know who shows them.

use crate::words::{Language, Words};

/// A text, with the names of its figures in their order in English.
type Phrase = (&'static str, &'static [&'static str]);

/// Titles of steps.
const STEPS: [Phrase; 19] = [
    ("step-rename", &[]),
    ("step-about", &[]),
    ("step-axes", &[]),
    ("step-settings", &[]),
    ("step-remove", &[]),
    ("step-move", &[]),
    ("step-name", &[]),
    ("step-enable", &[]),
    ("step-disable", &[]),
    ("step-combine", &[]),
    ("step-heads", &[]),
    ("step-layer", &[]),
    ("step-code", &[]),
    ("step-paint", &[]),
    ("step-erase", &[]),
    ("step-nothing", &[]),
    ("step-open", &["name"]),
    ("step-add", &["name"]),
    ("step-change", &["name"]),
];
/// What the worker says that it does.
const WORK: [Phrase; 14] = [
    ("work-backends", &[]),
    ("work-inputs", &[]),
    ("work-blocks", &[]),
    ("work-mods", &[]),
    ("work-reference", &[]),
    ("work-rounding", &[]),
    ("work-warming", &[]),
    ("work-gradients", &[]),
    ("work-python", &[]),
    ("work-round", &["n", "all"]),
    ("work-preparing", &["name"]),
    ("work-compiling", &["name"]),
    ("work-done", &["name"]),
    ("race-refused", &[]),
];
/// Why one backend is faster than another; the first is said of any other.
const REASONS: [Phrase; 18] = [
    ("why-short", &["why"]),
    ("why-skips-dense", &["share"]),
    ("why-skips-scores", &["share"]),
    ("why-skips-plain", &["share"]),
    ("why-computes", &["share"]),
    ("why-skips", &[]),
    ("why-both-skip", &[]),
    ("why-both-masked", &[]),
    ("why-both-dense", &[]),
    ("why-dense-skips", &[]),
    ("why-scores", &[]),
    ("why-dense-scores", &[]),
    ("why-other-scores", &[]),
    ("why-same", &[]),
    ("why-nothing-masked", &[]),
    ("why-other-dense", &[]),
    ("why-dense", &[]),
    ("why-launch", &["call", "own"]),
];

/// The title of a step.
pub(super) fn step(said: &'static Words, title: &str) -> String {
    among(&STEPS, said, title)
}

/// What the worker does.
pub(super) fn work(said: &'static Words, what: &str) -> String {
    among(&WORK, said, what)
}

/// Why a backend is faster.
pub(super) fn reason(said: &'static Words, why: &str) -> String {
    among(&REASONS, said, why)
}

/// A phrase in a language, its holes too.
fn among(phrases: &[Phrase], said: &'static Words, phrase: &str) -> String {
    let found = phrases.iter().find_map(|(id, names)| Some((id, names, holes(id, names, phrase)?)));
    let Some((id, names, holes)) = found else { return phrase.into() };
    let told: Vec<String> = holes.into_iter().map(|hole| among(phrases, said, hole)).collect();
    let figures: Vec<_> = names.iter().zip(&told).map(|(name, hole)| (*name, hole.as_str().into())).collect();
    said.with(id, &figures)
}

/// What stands in the holes of a text, if a phrase is that text.
fn holes<'a>(id: &str, names: &[&str], phrase: &'a str) -> Option<Vec<&'a str>> {
    const HOLE: &str = "\u{1}";
    let figures: Vec<_> = names.iter().map(|name| (*name, HOLE.into())).collect();
    let text = Words::of(Language::English).with(id, &figures);
    let (begins, rest) = text.split_once(HOLE).map_or((&*text, None), |(begins, rest)| (begins, Some(rest)));
    let mut left = phrase.strip_prefix(begins)?;
    let Some(rest) = rest else { return left.is_empty().then(Vec::new) };
    let between: Vec<&str> = rest.split(HOLE).collect();
    let (ends, between) = between.split_last()?;
    let mut found = Vec::new();
    for piece in between {
        let (hole, behind) = left.split_once(piece)?;
        found.push(hole);
        left = behind;
    }
    found.push(left.strip_suffix(ends)?);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::edit::Edit;

    fn spoken() -> [&'static Words; 2] {
        [Language::English, Language::Spanish].map(Words::of)
    }

    #[test]
    fn titles_of_edits_are_known_and_stay_as_they_are_in_english() {
        let [english, spanish] = spoken();
        let edits = [
            Edit::Rename("a".into()),
            Edit::SetAbout("a".into()),
            Edit::Remove(1),
            Edit::SetName(1, "a".into()),
            Edit::SetEnabled(1, true),
            Edit::SetEnabled(1, false),
            Edit::SetHeads(1, None),
            Edit::SetArg(1, "window".into(), None),
            Edit::SetSource(1, "a".into()),
            Edit::Group(Vec::new()),
        ];
        for title in edits.iter().map(Edit::title) {
            assert_eq!(step(english, &title), title);
            assert_ne!(step(spanish, &title), title);
        }
        assert_eq!(step(spanish, "Change window"), "Cambiar window");
        assert_eq!(step(spanish, "Change the axes"), "Cambiar los ejes");
        assert_eq!(step(spanish, "Something else"), "Something else");
    }

    #[test]
    fn holes_are_told_too_and_what_is_unknown_stays_english() {
        let [english, spanish] = spoken();
        let round = "timing round 3 of 10";
        assert_eq!((work(english, round).as_str(), work(spanish, "made up")), (round, "made up".into()));
        assert!(work(spanish, round).contains('3') && work(spanish, round).contains("10"));
        let share =
            "it computes 12.5% of the tiles; the other writes every score to memory; so short that launching counts";
        assert_eq!(reason(english, share), share);
        let told = reason(spanish, share);
        assert!(told.contains("12.5%") && !told.contains("tiles") && !told.contains("launching"), "{told}");
    }

    /// Reasons that recorded runs have are known.
    #[test]
    fn every_recorded_reason_is_known() {
        let [english, spanish] = spoken();
        let mut seen = 0;
        for run in crate::tasks::recorded::embedded().iter().flat_map(|of| of.runs.values()) {
            let Some(base) = run.report.baseline() else { continue };
            for why in run.report.backends.iter().filter_map(|of| crate::tasks::why::line(of, &base)) {
                assert_eq!(reason(english, &why), why);
                assert_ne!(reason(spanish, &why), why);
                seen += 1;
            }
        }
        assert!(seen > 50, "{seen}");
    }
}
