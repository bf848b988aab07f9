//! A cache of ruff's trees of the last texts: a text is parsed once for all its users.
//!
//! Invariant: a tree belongs to its whole text; the cache is bounded, and trees that are too deep to be dropped on a
//! normal stack are not cached. Must not know our own tree.

use ruff_python_ast::Mod;
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Texts with deeper nesting are read on a larger stack.
pub const SHALLOW: usize = 60;
/// Number of cached trees, and the longest text of one in bytes: a document's layers and their imports.
const MOST: usize = 32;
const LONGEST: usize = 64 << 10;

type Tree = Arc<Parsed<Mod>>;

static KEPT: Mutex<VecDeque<(Box<str>, Tree)>> = Mutex::new(VecDeque::new());

/// The tree of a text that nests `depth` deep.
pub(super) fn tree(text: &str, depth: usize) -> Tree {
    let lasting = depth <= SHALLOW && text.len() <= LONGEST;
    if let Some(known) = lasting.then(|| known(text)).flatten() {
        return known;
    }
    #[cfg(any(test, feature = "testing"))]
    counted::count(text);
    let made = Arc::new(parse_unchecked(text, ParseOptions::from(Mode::Module)));
    if lasting {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((text.into(), made.clone()));
        kept.truncate(MOST);
    }
    made
}

/// A cached tree; it moves to the front, so that unused ones are dropped first.
fn known(text: &str) -> Option<Tree> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let at = kept.iter().position(|(of, _)| **of == *text)?;
    let found = kept.remove(at)?;
    let tree = found.1.clone();
    kept.push_front(found);
    Some(tree)
}

#[cfg(any(test, feature = "testing"))]
pub mod counted {
    //! How often each text was parsed, over all threads.

    use std::collections::HashMap;
    use std::sync::{LazyLock, Mutex, PoisonError};

    static TIMES: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);

    pub(super) fn count(text: &str) {
        *TIMES.lock().unwrap_or_else(PoisonError::into_inner).entry(text.into()).or_default() += 1;
    }

    /// How often this text was parsed.
    pub fn times(text: &str) -> usize {
        TIMES.lock().unwrap_or_else(PoisonError::into_inner).get(text).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parsed_once_and_a_deep_or_long_one_is_not_kept() {
        let text = "kept_once = 1\n";
        let first = tree(text, 1);
        assert!(Arc::ptr_eq(&first, &tree(text, 1)));
        assert_eq!(counted::times(text), 1);
        let deep = "kept_deep = 1\n";
        assert!(!Arc::ptr_eq(&tree(deep, SHALLOW + 1), &tree(deep, SHALLOW + 1)));
        let long = format!("kept_long = '{}'\n", "x".repeat(LONGEST));
        tree(&long, 1);
        tree(&long, 1);
        assert_eq!((counted::times(deep), counted::times(&long)), (2, 2));
    }
}
