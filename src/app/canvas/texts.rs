//! The texts of tokens on rulers and in cells.
//!
//! Invariant: one line for each token, never empty. Must not know how it is drawn.

/// The texts of some tokens of an axis.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// Index of the first.
    pub start: usize,
    /// One for each, as the tokenizer has it.
    pub text: &'a [String],
}

impl Texts<'_> {
    /// A token's readable text: without the tokenizer's marks of spaces; text of spaces only in quotes.
    pub fn at(&self, token: usize) -> Option<String> {
        let text = self.text.get(token.checked_sub(self.start)?)?;
        let plain = text.replace(['\u{120}', '\u{2581}'], " ").replace('\u{10a}', "\n");
        let read: String = plain.trim().chars().flat_map(shown).collect();
        Some(if read.is_empty() { format!("'{}'", plain.chars().flat_map(shown).collect::<String>()) } else { read })
    }
}

/// A character on one line.
fn shown(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}
