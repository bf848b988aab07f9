//! Maskloom's own messages: the codes of its diagnostics in a text, alone or as they are printed, `error[no-such-file]: ...`.
//!
//! Invariant: a code is one that has a sentence in the languages beside English, which each diagnostic's code has. Must not know
//! what other programs print.

use super::matching::plain;
use super::messages::Entry;
use crate::words::{Language, Words};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Where the codes were found.
const HERE: &str = concat!("Maskloom ", env!("CARGO_PKG_VERSION"), "; its own code");

/// An entry for each code. They live as long as the program, as the tables of other messages do.
static CODES: LazyLock<BTreeMap<&'static str, Entry>> = LazyLock::new(|| {
    let english = Words::of(Language::English);
    let (cause, fix) = (english.text("explain-own"), english.text("explain-own-do"));
    let ids = Words::ids(Language::Chinese).into_keys();
    let codes = ids.filter_map(|id| Some(id.strip_prefix("refusal-")?.to_string())).filter(|code| !code.contains('.'));
    codes
        .map(|code| &*code.leak())
        .map(|code| (code, Entry { code, patterns: &[], cause, fix, source: HERE }))
        .collect()
});

/// The codes of a text, each once, in its order.
pub(super) fn messages(text: &str) -> Vec<&'static Entry> {
    let text = plain(text);
    let mut found: Vec<&Entry> = CODES.get(text.as_str()).into_iter().collect();
    let pieces: Vec<&str> = text.split('[').collect();
    for pair in pieces.windows(2) {
        let Some((code, _)) = pair[1].split_once(']') else { continue };
        // one word in brackets is often an index: then the severity must stand before it
        let printed = ["error", "warning", "note"].iter().any(|word| pair[0].trim_end().ends_with(word));
        let entry = CODES.get(code).filter(|_| printed || code.contains('-'));
        found.extend(entry.filter(|entry| !found.iter().any(|known| known.code == entry.code)));
    }
    found
}

/// Whether an entry is one of these.
pub(super) fn is_own(entry: &Entry) -> bool {
    entry.source == HERE
}
