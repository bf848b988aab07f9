//! A target: the launch of a worker, here or on another machine.
//!
//! Invariant: a target is only its launch command, or the name of one, as the user typed it. Must not know the protocol.

use crate::base::Diagnostic;
use serde::{Deserialize, Serialize};

/// A launch command: empty for this machine, a name of the list of targets, else such as `ssh gpu1 maskloom worker`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Target {
    /// The command, words split as a shell would (quotes and backslashes, no expansion).
    pub command: String,
}

impl Target {
    /// This machine: the running program's own `worker`.
    pub fn local() -> Self {
        Self::default()
    }

    /// A target from what the user typed.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into().trim().to_string() }
    }

    /// A target that launches exactly these words.
    pub fn from_words<S: AsRef<str>>(words: &[S]) -> Self {
        Self { command: words.iter().map(|w| quote(w.as_ref())).collect::<Vec<_>>().join(" ") }
    }

    /// Whether it is this machine.
    pub fn is_local(&self) -> bool {
        self.command.is_empty()
    }

    /// How it is shown: `this machine`, or the command.
    pub fn title(&self) -> &str {
        if self.is_local() { "this machine" } else { &self.command }
    }

    /// Program and arguments. Errors: an unfinished quote, or no program of our own to start.
    pub fn words(&self) -> Result<Vec<String>, Diagnostic> {
        if !self.is_local() {
            return split(&self.command);
        }
        let own = std::env::current_exe().map_err(|e| {
            Diagnostic::error("target-launch", format!("cannot find the running program to start a worker: {e}"))
                .hint("pass the launch command: --target \"/path/to/maskloom worker\"")
        })?;
        Ok(vec![own.to_string_lossy().into_owned(), "worker".into()])
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.title())
    }
}

/// Splits as a POSIX shell does, without any expansion. Errors: an unfinished quote, or nothing at all.
pub fn split(text: &str) -> Result<Vec<String>, Diagnostic> {
    let bad = |why: &str| {
        Diagnostic::error("target-command", format!("the launch command {why}: `{text}`"))
            .hint("such as: ssh gpu1 maskloom worker; quote words that contain spaces")
    };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\\' => word.get_or_insert_default().push(chars.next().ok_or_else(|| bad("ends in a backslash"))?),
            '\'' => single_quoted(&mut chars, word.get_or_insert_default()).ok_or_else(|| bad("has an open quote"))?,
            '"' => double_quoted(&mut chars, word.get_or_insert_default()).ok_or_else(|| bad("has an open quote"))?,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.first().is_none_or(String::is_empty) {
        return Err(bad("names no program"));
    }
    Ok(words)
}

fn single_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '\'' => return Some(()),
            c => word.push(c),
        }
    }
}

fn double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => match chars.next()? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

/// The word as it must be typed so that [`split`] gives it back.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// ` --target NAME`, as it must be typed; nothing for this machine.
pub fn option(target: &str) -> String {
    let target = target.trim();
    if target.is_empty() { String::new() } else { format!(" --target {}", quote(target)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(maskloom_testing::cases::kept_beside())]

        #[test]
        fn quoting_and_splitting_are_inverse(first in "[a-z '\"\\\\$é]{1,8}", rest in prop::collection::vec(".{0,8}", 0..4)) {
            let mut words = vec![first];
            words.extend(rest);
            let target = Target::from_words(&words);
            prop_assert_eq!(split(&target.command).unwrap(), words);
        }

        #[test]
        fn any_text_splits_or_is_refused(text in ".{0,40}") {
            let _ = split(&text);
        }
    }

    #[test]
    fn words_split_as_a_shell_does() {
        let words = split(r#"ssh -o "Proxy Command=x \"y\"" gpu1 'a b'\ c maskloom worker"#).unwrap();
        assert_eq!(words, ["ssh", "-o", "Proxy Command=x \"y\"", "gpu1", "a b c", "maskloom", "worker"]);
        for bad in ["ssh 'gpu1", "ssh \"gpu1", "ssh \\", "", "  ", "'' worker"] {
            assert_eq!(split(bad).unwrap_err().code, "target-command", "{bad}");
        }
    }

    #[test]
    fn an_empty_target_is_this_program() {
        let words = Target::new("  ").words().unwrap();
        assert_eq!(words[1], "worker");
        assert_eq!(Target::local().title(), "this machine");
    }

    #[test]
    fn a_target_is_named_as_it_must_be_typed() {
        assert_eq!([option(""), option(" gpu1 "), option("ssh a b")], ["", " --target gpu1", " --target 'ssh a b'"]);
    }
}
