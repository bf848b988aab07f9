//! Messages to the user: the problem, its place, its cause and a fix.
//!
//! Invariant: every error that a user can cause reaches them as a diagnostic with a stable code and a suggested fix.
//! Must not print; `render` returns text.

use super::span::{Source, Span};
use super::words::visible;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Legal, but probably unintended.
    Warning,
    /// It cannot go on.
    Error,
}

/// A marked piece of source with what to say about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// The text at this place; may be empty.
    pub text: String,
}

/// Text that can replace a piece of source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewrite {
    /// The replaced piece.
    pub span: Span,
    /// The new text.
    pub text: String,
}

/// One message. `code` is stable and kebab-case (`branch-on-index`), for scripts and for `doctor --explain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// How bad.
    pub severity: Severity,
    /// Stable kebab-case identifier.
    pub code: Cow<'static, str>,
    /// One sentence: the problem and its cause.
    pub message: String,
    /// Marked places; the first is the primary one.
    pub labels: Vec<Label>,
    /// The way out: the rewrite, the command, the setting.
    pub hint: Option<String>,
    /// The same as text to paste, if it is known exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// Whether what was asked for is not offered, in contrast to a failure of what is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refusal: bool,
    /// The texts that the labels' spans point into, indexed by `SourceId`. Filled before it leaves the language module.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning without a place.
    pub fn warning(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// A note without a place.
    pub fn note(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, message)
    }

    fn new(severity: Severity, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            severity,
            code: code.into(),
            message: message.into(),
            labels: Vec::new(),
            hint: None,
            rewrite: None,
            refusal: false,
            sources: Vec::new(),
        }
    }

    /// As a refusal.
    #[must_use]
    pub fn refused(mut self) -> Self {
        self.refusal = true;
        self
    }

    /// Adds a marked place.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Sets the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets text that can replace `span`; the hint shows it unless there is another.
    #[must_use]
    pub fn rewrite(mut self, span: Span, text: impl Into<String>) -> Self {
        let text = text.into();
        self.hint.get_or_insert_with(|| format!("write `{text}`"));
        self.rewrite = Some(Rewrite { span, text });
        self
    }

    /// The source of a rewrite with the rewrite in its place.
    pub fn rewritten(&self) -> Option<String> {
        let rewrite = self.rewrite.as_ref()?;
        let source = self.sources.get(rewrite.span.source.0 as usize)?;
        let (before, after) =
            (source.text.get(..rewrite.span.start as usize)?, source.text.get(rewrite.span.end as usize..)?);
        Some(format!("{before}{}{after}", rewrite.text))
    }

    /// Attaches the texts that the spans point into.
    #[must_use]
    pub fn with_sources(mut self, sources: &[Source]) -> Self {
        self.sources = sources.to_vec();
        self
    }

    /// Whether this stops the work.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Line and column (from 1) of the primary place, if there is one.
    pub fn line_column(&self) -> Option<(usize, usize)> {
        let label = self.labels.first()?;
        let source = self.sources.get(label.span.source.0 as usize)?;
        Some(source.line_column(label.span.start))
    }

    /// One line, fit for a terminal: `file:line:column: error[code]: message`.
    pub fn summary(&self) -> String {
        let word = severity_word(self.severity);
        let place = self.labels.first().and_then(|l| {
            let source = self.sources.get(l.span.source.0 as usize)?;
            let (line, column) = source.line_column(l.span.start);
            Some(format!("{}:{line}:{column}: ", source.name))
        });
        visible(&format!("{}{word}[{}]: {}", place.unwrap_or_default(), self.code, self.message)).into_owned()
    }

    /// The whole message as plain text: the summary line, the marked source lines and the hint. No colours.
    pub fn render(&self) -> String {
        let mut out = self.summary();
        for label in &self.labels {
            if let Some(source) = self.sources.get(label.span.source.0 as usize) {
                out.push_str(&visible(&render_label(source, label)));
            }
        }
        if let Some(hint) = &self.hint {
            out.push_str("\n  help: ");
            out.push_str(&visible(hint).replace('\n', "\n        "));
        }
        out
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render())
    }
}

impl std::error::Error for Diagnostic {}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// `\n  12 | source line\n     |     ^^^^ text`, tabs shown as spaces and very long lines cut around the mark.
fn render_label(source: &Source, label: &Label) -> String {
    const WIDTH: usize = 120;
    let (line, column) = source.line_column(label.span.start);
    let text: Vec<char> = source.text.lines().nth(line - 1).unwrap_or("").replace('\t', " ").chars().collect();
    let from = if text.len() > WIDTH { column.saturating_sub(WIDTH / 2) } else { 0 };
    let shown: String = text.iter().skip(from).take(WIDTH).collect();
    let covered = source.slice(label.span).lines().next().map_or(1, |l| l.chars().count()).max(1);
    let carets = "^".repeat(covered.min(WIDTH.saturating_sub(column - 1 - from)).max(1));
    let gutter = line.to_string();
    let pad = " ".repeat(gutter.len());
    let indent = " ".repeat(column - 1 - from);
    format!("\n  {gutter} | {shown}\n  {pad} | {indent}{carets} {}", label.text).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::SourceId;

    #[test]
    fn a_label_points_under_its_text() {
        let source = Source::new("mod.py", "def f(b, h, q, k):\n    return q >> k\n");
        let start = source.text.find("q >> k").unwrap() as u32;
        let diagnostic = Diagnostic::error("bad-shift", "shifts by an index")
            .at(Span::new(SourceId(0), start, start + 6), "here")
            .hint("use >=")
            .with_sources(&[source]);
        assert_eq!(
            diagnostic.render(),
            "mod.py:2:12: error[bad-shift]: shifts by an index\n  2 |     return q >> k\n    |            ^^^^^^ here\n  help: use >="
        );
    }

    /// A pasted text could colour, clear or answer for the terminal that its message is printed on.
    #[test]
    fn a_text_does_not_steer_the_terminal_that_shows_it() {
        let source = Source::new("\u{1b}]0;x.py", "q >= \u{1b}[2Jk\n");
        let reported = Diagnostic::error("syntax", "got \u{1b}").at(Span::new(SourceId(0), 5, 6), "").hint("remove \0");
        let shown = reported.with_sources(&[source]).render();
        assert_eq!(shown, "␛]0;x.py:1:6: error[syntax]: got ␛\n  1 | q >= ␛[2Jk\n    |      ^\n  help: remove ␀");
    }
}
