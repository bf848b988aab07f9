//! The machine-readable part of a parameter's docstring line: its range, and the document value that it follows.
//!
//! Invariant: the grammar is that of `assets/patterns/README.md`; other text is plain help and never an error. Must not
//! know layers or how values are shown.

use super::model::{Axes, Axis, Settings};

/// A docstring line, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ParamDoc {
    /// The words.
    pub help: String,
    /// `[lo..hi step s]`
    pub range: Option<(Bound, Bound, Option<f64>)>,
    /// `follows X`
    pub follows: Option<String>,
}

/// An end of a range.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bound {
    Number(f64),
    /// A fact of the document, or another parameter.
    Name(String),
}

impl ParamDoc {
    /// Reads a line of `Args:`; the parameter's own name before the colon is optional.
    pub(crate) fn parse(line: &str, name: &str) -> ParamDoc {
        let line = line.trim();
        let line = line.strip_prefix(name).and_then(|rest| rest.trim_start().strip_prefix(':')).unwrap_or(line).trim();
        let (line, follows) = match line.rsplit_once("follows ") {
            Some((before, word)) if is_fact(word.trim()) => (before.trim_end(), Some(word.trim().to_string())),
            _ => (line, None),
        };
        let range = line.strip_suffix(']').and_then(|l| l.rsplit_once('[')).and_then(|(before, inner)| {
            let (ends, step) = match inner.split_once(" step ") {
                Some((ends, step)) => (ends, Some(step.trim().parse::<f64>().ok().filter(|s| *s > 0.0)?)),
                None => (inner, None),
            };
            let (lo, hi) = ends.split_once("..")?;
            Some((before.trim_end(), (Bound::parse(lo)?, Bound::parse(hi)?, step)))
        });
        match range {
            Some((help, range)) => ParamDoc { help: help.to_string(), range: Some(range), follows },
            None => ParamDoc { help: line.to_string(), range: None, follows },
        }
    }
}

impl Bound {
    fn parse(text: &str) -> Option<Bound> {
        let text = text.trim();
        if let Ok(number) = text.parse::<f64>() {
            return number.is_finite().then_some(Bound::Number(number));
        }
        let word = text.chars().all(|c| c.is_alphanumeric() || "_.:".contains(c)) && !text.is_empty();
        word.then(|| Bound::Name(text.to_string()))
    }
}

const FACTS: [&str; 6] = ["q_len", "kv_len", "heads", "kv_heads", "head_dim", "batch"];
const ATTRIBUTES: [&str; 6] = ["start", "end", "len", "t", "h", "w"];

fn is_fact(word: &str) -> bool {
    FACTS.contains(&word) || word.rsplit_once('.').is_some_and(|(s, a)| !s.is_empty() && ATTRIBUTES.contains(&a))
}

/// The parts of a document that parameters may follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub axes: &'a Axes,
    pub settings: &'a Settings,
}

impl Facts<'_> {
    /// The value of a name; None when it names nothing in this document.
    pub(crate) fn value(&self, name: &str) -> Option<i64> {
        let plain = match name {
            "q_len" => self.axes.q.len(),
            "kv_len" => self.axes.kv().len(),
            "heads" => self.settings.heads,
            "kv_heads" => self.settings.kv_heads,
            "head_dim" => self.settings.head_dim,
            "batch" => self.settings.batch,
            _ => {
                let (axis, rest) = match name.strip_prefix("kv:") {
                    Some(rest) => (self.axes.kv(), rest),
                    None => (&self.axes.q, name),
                };
                let (segment, attribute) = rest.rsplit_once('.')?;
                attribute_of(axis, find_segment(axis, segment)?, attribute)?
            }
        };
        i64::try_from(plain).ok()
    }
}

/// By name first, then by role.
pub fn find_segment(axis: &Axis, name: &str) -> Option<usize> {
    let named = axis.segments.iter().position(|s| s.name == name);
    let with = |wanted: fn(usize) -> bool| axis.segments.iter().position(|s| wanted(s.grid.len()));
    named.or_else(|| match name {
        // an axis of plain tokens has no text next to a grid
        "text" if axis.segments.len() > 1 => with(|n| n == 1),
        "image" => with(|n| n == 2),
        "video" => with(|n| n == 3),
        "grid" => with(|n| n == 2 || n == 3),
        _ => None,
    })
}

/// A number of a segment: `start`, `end`, `len`, `t`, `h`, `w`.
pub fn attribute_of(axis: &Axis, at: usize, attribute: &str) -> Option<usize> {
    let segment = &axis.segments[at];
    let n = segment.grid.len();
    match attribute {
        "start" => Some(axis.starts()[at]),
        "end" => Some(axis.starts()[at + 1]),
        "len" => Some(segment.len()),
        "w" if n >= 2 => Some(segment.grid[n - 1]),
        "h" if n >= 2 => Some(segment.grid[n - 2]),
        "t" if n >= 3 => Some(segment.grid[n - 3]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::testing::empty;

    #[test]
    fn lines_say_range_and_binding() {
        let doc = ParamDoc::parse("window: keys a query sees [1..kv_len]", "window");
        assert_eq!(doc.help, "keys a query sees");
        assert_eq!(doc.range, Some((Bound::Number(1.0), Bound::Name("kv_len".into()), None)));
        let doc = ParamDoc::parse("rows [of] the image [1..512] follows image.h", "canvas_h");
        assert_eq!((doc.help.as_str(), doc.follows.as_deref()), ("rows [of] the image", Some("image.h")));
        let doc = ParamDoc::parse("cap: largest [-1.5..100 step 0.5]", "cap");
        assert_eq!(doc.range, Some((Bound::Number(-1.5), Bound::Number(100.0), Some(0.5))));
        for plain in ["what follows next", "a list [1, 2]", "[..]", "x [1..2 step 0]", "follows", ""] {
            let doc = ParamDoc::parse(plain, "p");
            assert_eq!((doc.help.as_str(), doc.range, doc.follows), (plain, None, None));
        }
    }

    #[test]
    fn names_find_segments_and_roles() {
        let doc = empty("prompt 512 | latents 2x3x4 | image 64x32");
        let facts = Facts { axes: &doc.axes, settings: &doc.settings };
        let values = [
            ("q_len", Some(512 + 24 + 2048)),
            ("heads", Some(2)),
            ("prompt.len", Some(512)),
            ("text.len", Some(512)),
            ("video.t", Some(2)),
            ("video.start", Some(512)),
            ("image.h", Some(64)),
            ("image.w", Some(32)),
            ("grid.h", Some(3)),
            ("latents.end", Some(536)),
            ("kv:image.start", Some(536)),
            ("image.t", None),
            ("audio.len", None),
            ("nothing", None),
        ];
        for (name, value) in values {
            assert_eq!(facts.value(name), value, "{name}");
        }
        let plain = empty("tokens 100");
        assert_eq!(Facts { axes: &plain.axes, settings: &plain.settings }.value("text.len"), None);
    }
}
