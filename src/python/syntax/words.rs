//! The words of a text, for colours.
//!
//! Invariant: ascending pieces of the text, none of them empty; any text has them. Must not know colours.

use super::{SHALLOW, kept, nesting};
use ruff_python_ast::token::TokenKind;
use ruff_text_size::Ranged;
use std::ops::Range;

/// What a piece of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// `def`, `and`, `None`: what no name can be here.
    Keyword,
    /// A name.
    Name,
    /// A string with its quotes, also one without its end; of an f-string what is no expression.
    Text,
    /// A number.
    Number,
    /// From `#` to the end of the line.
    Comment,
}

/// The words with their bytes; none of a text that nests too deeply for any thread's stack.
pub fn words(text: &str) -> Vec<(Range<usize>, Word)> {
    let depth = nesting::nesting(text);
    if depth > SHALLOW {
        return Vec::new();
    }
    let tree = kept::tree(text, depth);
    let mut words: Vec<(Range<usize>, Word)> = Vec::new();
    for token in tree.tokens().iter() {
        let at = token.range().start().to_usize()..token.range().end().to_usize();
        let follows = words.last().is_none_or(|(last, _)| last.end <= at.start) && !at.is_empty();
        if let Some(word) = kind(token.kind()).filter(|_| follows) {
            words.push((at, word));
        }
    }
    words
}

fn kind(token: TokenKind) -> Option<Word> {
    use TokenKind as T;
    Some(match token {
        T::Name => Word::Name,
        T::Int | T::Float | T::Complex => Word::Number,
        T::Comment => Word::Comment,
        T::String | T::FStringStart | T::FStringMiddle | T::FStringEnd => Word::Text,
        T::TStringStart | T::TStringMiddle | T::TStringEnd | T::Unknown => Word::Text,
        kind if kind.is_keyword() => Word::Keyword,
        _ => return None,
    })
}
