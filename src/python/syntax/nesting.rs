//! The nesting depth of a text, found without recursion.
//!
//! Invariant: never less than the depth of the parsed tree, up to a small constant. Must not know the tree.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

/// Deepest text that is parsed.
pub const MAX_NESTING: usize = 1000;

/// Upper bound of the tree's depth.
pub(super) fn nesting(text: &str) -> usize {
    let mut lexer = lexer::lex(text, Mode::Module);
    // one counter for each open bracket; the first is the statement's own
    let mut levels: Vec<usize> = vec![0];
    let mut indent = 0usize;
    let mut deepest = 0;
    loop {
        let kind = lexer.next_token();
        match kind {
            TokenKind::EndOfFile => return deepest,
            TokenKind::Indent => indent += 1,
            TokenKind::Dedent => indent = indent.saturating_sub(1),
            TokenKind::Newline | TokenKind::Semi => {
                levels.clear();
                levels.push(0);
            }
            TokenKind::Comma => {
                let base = levels.len().checked_sub(2).map_or(0, |outer| levels[outer] + 1);
                *levels.last_mut().expect("never empty") = base;
            }
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace | TokenKind::FStringStart => {
                let inside = levels.last().expect("never empty") + 1;
                levels.push(inside);
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace | TokenKind::FStringEnd => {
                if levels.len() > 1 {
                    levels.pop();
                }
                *levels.last_mut().expect("never empty") += 1;
            }
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::FStringMiddle
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline => {}
            _ => *levels.last_mut().expect("never empty") += 1,
        }
        deepest = deepest.max(indent + levels.last().expect("never empty"));
        if deepest > 2 * MAX_NESTING {
            return deepest;
        }
    }
}
