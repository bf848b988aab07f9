//! Where numbers come from, in a language.
//!
//! Invariant: in English these are the words of `base::provenance`. Must not know what shows them.

use crate::base::Provenance;
use crate::base::provenance::{Basis, Looked, Part, Place};
use crate::words::Words;

/// All that is known, as it can stand behind a name.
pub fn whole(said: &'static Words, from: &Provenance) -> String {
    match from {
        Provenance::Design(part) => design(said, part),
        Provenance::Before => said.text("origin-before").into(),
        Provenance::Random => said.text("origin-random").into(),
        Provenance::Reference => said.text("origin-reference").into(),
        Provenance::Inputs { file } => said.with("origin-inputs", &[("file", file.into())]),
        Provenance::Measured(place) => placed(said, brief(said, from), place),
        Provenance::Recorded(place) => {
            let what = placed(said, brief(said, from), place);
            said.with("origin-not-here", &[("what", what.into())])
        }
        Provenance::Estimated { device, basis } => {
            let basis = ("basis", basis_of(said, basis).into());
            match device {
                Some(device) => said.with("origin-estimate-for", &[("device", device.into()), basis]),
                None => said.with("origin-estimate", &[basis]),
            }
        }
    }
}

/// The kind and the device alone.
pub fn brief(said: &'static Words, from: &Provenance) -> String {
    match from {
        Provenance::Measured(place) => said.with("origin-measured", &[("device", (&place.device).into())]),
        Provenance::Recorded(place) => said.with("origin-recorded", &[("device", (&place.device).into())]),
        other => whole(said, other),
    }
}

/// What [`brief`] leaves out.
pub fn rest(said: &'static Words, from: &Provenance) -> String {
    let whole = whole(said, from);
    let rest = whole.strip_prefix(&brief(said, from)).unwrap_or_default();
    rest.trim_start_matches([',', ';', '，', '；', ' ']).to_string()
}

/// With a capital, as a line begins.
pub fn title(said: &'static Words, from: &Provenance) -> String {
    capital(&whole(said, from))
}

/// A sentence of its own.
pub fn sentence(said: &'static Words, from: &Provenance) -> String {
    said.with("origin-sentence", &[("words", title(said, from).into())])
}

/// A run with its day, and whether it was of a smaller copy.
fn placed(said: &'static Words, brief: String, place: &Place) -> String {
    let copy = place.copy.then(|| said.text("origin-copy"));
    let and = |what: String, more: &str| said.with("origin-and", &[("what", what.into()), ("more", more.into())]);
    place.date.as_deref().into_iter().chain(copy).fold(brief, and)
}

fn design(said: &'static Words, part: &Part) -> String {
    let id = match (part.pixel, part.looked) {
        ([1, 1], _) => return said.with("origin-cell", &[("b", part.b.into()), ("h", part.h.into())]),
        (_, Looked::One) => "origin-one",
        (_, Looked::All) => "origin-exact",
        (_, Looked::Some) => "origin-sampled",
    };
    let [q, kv] = part.pixel;
    said.with(id, &[("b", part.b.into()), ("h", part.h.into()), ("q", q.into()), ("kv", kv.into())])
}

/// From what an estimate is made.
pub fn basis_of(said: &'static Words, of: &Basis) -> String {
    match of {
        Basis::Runs => said.text("basis-runs").into(),
        Basis::LastRace => said.text("basis-last").into(),
        Basis::Sheets => said.text("basis-sheets").into(),
        Basis::Count => said.text("basis-count").into(),
        Basis::Blocks(file) => said.with("basis-blocks", &[("file", file.into())]),
        Basis::BlocksScaled(file, times) => {
            let times = format!("{:.2}", f64::from(*times) / 100.0);
            said.with("basis-scaled", &[("file", file.into()), ("times", times.into())])
        }
    }
}

/// Words with a capital, where their letters have one.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    first + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    fn kinds() -> Vec<Provenance> {
        let place = |date: Option<&str>, copy| Place {
            device: "NVIDIA H200".into(),
            date: date.map(String::from),
            build: None,
            copy,
        };
        let looked = [Looked::All, Looked::Some, Looked::One];
        let designs = looked.map(|looked| Provenance::design([0, 3], [1000, 512], [256, 256], looked));
        let bases = [
            Basis::Runs,
            Basis::LastRace,
            Basis::Sheets,
            Basis::Count,
            Basis::Blocks("h100.json".into()),
            Basis::BlocksScaled("h100.json".into(), 152),
        ];
        let for_none = bases.clone().map(|basis| Provenance::Estimated { device: None, basis });
        let for_one = bases.map(|basis| Provenance::estimated("NVIDIA L40S", basis));
        let others = [
            Provenance::design([1, 2], [64, 64], [64, 64], Looked::All),
            Provenance::Before,
            Provenance::Random,
            Provenance::Reference,
            Provenance::inputs("lm.safetensors"),
            Provenance::Measured(place(None, false)),
            Provenance::Measured(place(Some("2026-11-21"), true)),
            Provenance::Recorded(place(Some("2026-11-21"), false)),
        ];
        designs.into_iter().chain(for_none).chain(for_one).chain(others).collect()
    }

    #[test]
    fn english_is_what_files_and_the_terminal_say() {
        let english = Words::of(Language::English);
        for from in kinds() {
            let said = [whole, brief, rest, sentence].map(|tell| tell(english, &from));
            assert_eq!(said, [from.to_string(), from.brief(), from.rest(), from.sentence()]);
        }
    }

    #[test]
    fn no_two_kinds_share_words_in_any_language() {
        for language in Language::ALL {
            let said: Vec<String> = kinds().iter().map(|from| whole(Words::of(language), from)).collect();
            let apart: std::collections::BTreeSet<&String> = said.iter().collect();
            assert_eq!(apart.len(), said.len(), "{language:?}: {said:?}");
        }
    }
}
