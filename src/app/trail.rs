//! The names of the last actions, for the report of a mistake.
//!
//! Invariant: names alone, no text, path or number of the user. Must not know what an action does.

use std::collections::VecDeque;
use std::fmt::{Debug, Write};

/// Actions that are remembered.
const KEPT: usize = 40;

/// The last actions, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail {
    names: VecDeque<String>,
}

impl Trail {
    /// One more. The same again is counted.
    pub(crate) fn follow(&mut self, action: &impl Debug) {
        let name = name(action);
        if let Some(last) = self.names.back_mut()
            && let (of, times) = last.split_once(" x").unwrap_or((last, "1"))
            && of == name
        {
            let times = times.parse().unwrap_or(1_u64) + 1;
            *last = format!("{name} x{times}");
            return;
        }
        self.names.push_back(name);
        if self.names.len() > KEPT {
            self.names.pop_front();
        }
    }

    /// One on each line.
    pub(crate) fn lines(&self) -> String {
        self.names.iter().map(|name| format!("{name}\n")).collect()
    }
}

/// A variant's name, with that of the variant inside it: `Command(Undo)`. Formatting ends at the first other letter, so that
/// a large action costs nothing.
fn name(action: &impl Debug) -> String {
    struct Names(String);
    impl Write for Names {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            for letter in text.chars() {
                let inner = letter == '(' && !self.0.contains('(');
                // a number inside is the user's
                let allowed =
                    if self.0.ends_with('(') { letter.is_ascii_uppercase() } else { letter.is_ascii_alphanumeric() };
                if !inner && !allowed {
                    return Err(std::fmt::Error);
                }
                self.0.push(letter);
            }
            Ok(())
        }
    }
    let mut names = Names(String::new());
    // it fails where the names end
    let _ = write!(names, "{action:?}");
    let inside = names.0.contains('(') && !names.0.ends_with('(');
    format!("{}{}", names.0.trim_end_matches('('), if inside { ")" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    #[allow(dead_code)] // for their names
    enum Of {
        Plain,
        Inner(Option<u8>),
        Text(String),
        Number(u64),
        Fields { secret: String },
    }

    #[test]
    fn names_are_kept_and_nothing_else() {
        let mut trail = Trail::default();
        for action in [Of::Plain, Of::Inner(None), Of::Inner(Some(7)), Of::Text("Secret".into()), Of::Number(12)] {
            trail.follow(&action);
        }
        (0..3).for_each(|_| trail.follow(&Of::Fields { secret: "Secret".into() }));
        assert_eq!(trail.lines(), "Plain\nInner(None)\nInner(Some)\nText\nNumber\nFields x3\n");
        (0..KEPT).for_each(|n| trail.follow(&if n % 2 == 0 { Of::Plain } else { Of::Number(1) }));
        assert_eq!(trail.lines().lines().count(), KEPT);
        assert!(!trail.lines().contains("Fields"));
    }
}
