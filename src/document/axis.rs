//! Axis notation, `text 512 | image 64x64`, and the meaning of an index on an axis.
//!
//! Invariant: an axis that parses or validates has at least one token, at most [`MAX_LENGTH`], and prints to a text
//! that parses back to it. Must not know layers, patterns or masks.

use super::model::{Axes, Axis, Segment};
use crate::base::shape::MAX_LENGTH;
use crate::base::words::count;
use crate::base::{Diagnostic, Lengths};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most segments an axis may have: rulers and read-outs stay readable.
const MAX_SEGMENTS: usize = 256;
const EXAMPLE: &str =
    "write segments as `name extents`, such as `text 512 | image 64x64` or `video 21x30x52 | text 256`";

impl Axis {
    /// One unnamed run of tokens.
    pub fn tokens(n: usize) -> Axis {
        Axis { segments: vec![Segment::new("tokens", [n])] }
    }

    /// Reads the notation. Errors name the segment and the way to write it.
    pub fn parse(text: &str) -> Result<Axis, Diagnostic> {
        let segments = text.split('|').map(Segment::parse).collect::<Result<Vec<_>, _>>()?;
        let axis = Axis { segments };
        axis.validate()?;
        Ok(axis)
    }

    /// Checks the invariant of an axis that came from a file.
    pub fn validate(&self) -> Result<(), Diagnostic> {
        if self.segments.is_empty() || self.segments.len() > MAX_SEGMENTS {
            let message = format!("an axis has {} segments; it must have 1 to {MAX_SEGMENTS}", self.segments.len());
            return Err(Diagnostic::error("axis-segments", message).hint(EXAMPLE));
        }
        let mut total = 0usize;
        for segment in &self.segments {
            segment.validate()?;
            total = total.saturating_add(segment.len());
        }
        if total > MAX_LENGTH {
            let message =
                format!("the axis `{self}` has {total} tokens, above the largest supported, {MAX_LENGTH} (2^30)");
            return Err(Diagnostic::error("length-too-large", message).hint("shorten the largest segment"));
        }
        Ok(())
    }

    /// Tokens. Saturates for an axis that was never validated.
    pub fn len(&self) -> usize {
        self.segments.iter().fold(0, |n, s| n.saturating_add(s.len()))
    }

    /// Whether there are no tokens; never so for a validated axis.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// First token of each segment, and one past the last token at the end.
    pub fn starts(&self) -> Vec<usize> {
        let mut starts = vec![0usize];
        for segment in &self.segments {
            starts.push(starts[starts.len() - 1].saturating_add(segment.len()));
        }
        starts
    }

    /// The place of token `index`: its segment and its coordinates in the segment's grid. None past the end.
    pub fn place(&self, index: usize) -> Option<Place<'_>> {
        let mut rest = index;
        for (at, segment) in self.segments.iter().enumerate() {
            if rest < segment.len() {
                return Some(Place { at, segment, coordinates: segment.coordinates(rest) });
            }
            rest -= segment.len();
        }
        None
    }
}

impl std::str::FromStr for Axis {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        Axis::parse(text)
    }
}

impl std::fmt::Display for Axis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, segment) in self.segments.iter().enumerate() {
            let bar = if at > 0 { " | " } else { "" };
            write!(f, "{bar}{segment}")?;
        }
        Ok(())
    }
}

impl Serialize for Axis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Axis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Axis::parse(&text).map_err(|d| serde::de::Error::custom(d.message))
    }
}

impl Axes {
    /// Self-attention over one axis.
    pub fn same(q: Axis) -> Axes {
        Axes { q, kv: None }
    }

    /// Extents of the grid of which all queries and all keys are the tokens, slowest first; None if there is none.
    pub fn grid(&self) -> Option<&[usize]> {
        let one = |axis: &Axis| axis.segments.len() == 1;
        let same = self.kv().segments.first()?.grid == self.q.segments.first()?.grid;
        (one(&self.q) && one(self.kv()) && same).then(|| self.q.segments[0].grid.as_slice())
    }

    /// Validated lengths of the mask.
    pub fn lengths(&self) -> Result<Lengths, Diagnostic> {
        self.q.validate()?;
        self.kv().validate()?;
        Lengths::new(self.q.len(), self.kv().len())
    }
}

/// The place of a token.
#[derive(Clone, Debug, PartialEq)]
pub struct Place<'a> {
    /// Index of the segment.
    pub at: usize,
    /// The segment.
    pub segment: &'a Segment,
    /// One coordinate for each extent of the grid, slowest first.
    pub coordinates: Vec<usize>,
}

impl std::fmt::Display for Place<'_> {
    /// `image (y 3, x 17)`, `text 41`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: &[&str] = match self.coordinates.len() {
            2 => &["y ", "x "],
            3 => &["t ", "y ", "x "],
            _ => &[],
        };
        let name = |i: usize| names.get(i).copied().unwrap_or("");
        let parts: Vec<_> = self.coordinates.iter().enumerate().map(|(i, c)| format!("{}{c}", name(i))).collect();
        match parts.len() {
            1 => write!(f, "{} {}", self.segment.name, parts[0]),
            _ => write!(f, "{} ({})", self.segment.name, parts.join(", ")),
        }
    }
}

impl Segment {
    /// A segment.
    pub fn new(name: impl Into<String>, grid: impl Into<Vec<usize>>) -> Segment {
        Segment { name: name.into(), grid: grid.into() }
    }

    /// Tokens; saturates.
    pub fn len(&self) -> usize {
        self.grid.iter().fold(1, |n, d| n.saturating_mul(*d))
    }

    /// Whether there are no tokens; never so in a validated axis.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn coordinates(&self, mut index: usize) -> Vec<usize> {
        let mut out = vec![0; self.grid.len()];
        for (slot, extent) in out.iter_mut().zip(&self.grid).rev() {
            *slot = index % extent;
            index /= extent;
        }
        out
    }

    fn parse(text: &str) -> Result<Segment, Diagnostic> {
        let text = text.trim();
        let (name, extents) = match text.rsplit_once(char::is_whitespace) {
            Some((name, extents)) => (name.trim_end(), extents),
            None => ("tokens", text),
        };
        let malformed = |why: String| Diagnostic::error("axis-notation", why).hint(EXAMPLE);
        if text.is_empty() {
            return Err(malformed("an axis has an empty segment".into()));
        }
        let mut grid = Vec::new();
        for extent in extents.split(['x', 'X', '×']) {
            let value: usize = match count(extent) {
                Some(value) => value,
                None if !extent.is_empty() && extent.bytes().all(|b| b.is_ascii_digit()) => usize::MAX,
                None => {
                    return Err(malformed(format!("`{text}`: `{extents}` is not a number or a grid such as 64x64")));
                }
            };
            grid.push(value);
        }
        let segment = Segment::new(name, grid);
        segment.validate()?;
        Ok(segment)
    }

    fn validate(&self) -> Result<(), Diagnostic> {
        let name = &self.name;
        if name.is_empty() || name.trim() != name || name.contains(|c: char| c == '|' || c.is_control()) {
            let message = format!("`{}` cannot name a segment of an axis", name.escape_debug());
            return Err(Diagnostic::error("axis-name", message).hint("use a word or two, without `|`"));
        }
        if self.grid.is_empty() || self.grid.len() > 8 {
            let message = format!("segment `{name}` has {} extents; it must have 1 to 8", self.grid.len());
            return Err(Diagnostic::error("axis-grid", message).hint(EXAMPLE));
        }
        if self.grid.contains(&0) {
            let message = format!("segment `{name}` has an extent of 0; lengths must be greater than 0");
            return Err(Diagnostic::error("zero-length", message).hint("remove the segment, or give it a token"));
        }
        if self.len() > MAX_LENGTH {
            let message = format!("segment `{name}` is above the largest supported length, {MAX_LENGTH} (2^30) tokens");
            return Err(Diagnostic::error("length-too-large", message).hint("indices are 32-bit in kernels"));
        }
        Ok(())
    }
}

impl std::fmt::Display for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let grid: Vec<_> = self.grid.iter().map(usize::to_string).collect();
        write!(f, "{} {}", self.name, grid.join("x"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_typed_as_people_write_them() {
        for (text, shown) in [
            ("8k", "tokens 8192"),
            ("text 1_024 | image 64x64", "text 1024 | image 64x64"),
            ("video 2x1k", "video 2x1024"),
        ] {
            assert_eq!(Axis::parse(text).expect("an axis").to_string(), shown, "{text}");
        }
        assert!(Axis::parse("8kb").is_err() && Axis::parse("1__0").is_err());
    }

    #[test]
    fn a_grid_holds_all_tokens_of_both_axes() {
        let axes = |q: &str, kv: Option<&str>| {
            let parse = |text| Axis::parse(text).unwrap();
            Axes { q: parse(q), kv: kv.map(parse) }.grid().map(<[usize]>::to_vec)
        };
        assert_eq!(axes("image 4x6", None), Some(vec![4, 6]));
        assert_eq!(axes("image 4x6", Some("keys 4x6")), Some(vec![4, 6]));
        assert_eq!([axes("text 8 | image 4x6", None), axes("image 4x6", Some("tokens 24"))], [None, None]);
    }

    #[test]
    fn notation_reads_and_prints() {
        for text in
            ["text 512 | image 64x64", "video 21x30x52 | text 256", "tokens 8192", "my prompt 7 | a b c 2x2x2x2"]
        {
            let axis = Axis::parse(text).unwrap();
            assert_eq!(axis.to_string(), text);
        }
        assert_eq!(Axis::parse(" 8192 ").unwrap(), Axis::tokens(8192));
        assert_eq!(Axis::parse("text 512|image 64X64").unwrap().len(), 512 + 4096);
    }

    #[test]
    fn mistakes_are_told_with_a_way_out() {
        let code = |text: &str| {
            let error = Axis::parse(text).unwrap_err();
            assert!(error.hint.is_some(), "{text}: {error}");
            error.code.to_string()
        };
        assert_eq!(code(""), "axis-notation");
        assert_eq!(code("text"), "axis-notation");
        assert_eq!(code("text 5 | "), "axis-notation");
        assert_eq!(code("text 5x"), "axis-notation");
        assert_eq!(code("text -5"), "axis-notation");
        assert_eq!(code("text 0"), "zero-length");
        assert_eq!(code("image 64x0"), "zero-length");
        assert_eq!(code("text 1099511627776"), "length-too-large");
        assert_eq!(code("text 99999999999999999999999999"), "length-too-large");
        assert_eq!(code("a 4294967296x4294967296x2"), "length-too-large");
        assert_eq!(code("a 1000000000 | b 1000000000"), "length-too-large");
        assert_eq!(code("a 1|".repeat(300).trim_end_matches('|')), "axis-segments");
    }

    #[test]
    fn tokens_have_places() {
        let axis = Axis::parse("text 5 | video 2x3x4").unwrap();
        assert_eq!(axis.place(4).unwrap().to_string(), "text 4");
        assert_eq!(axis.place(5 + 12 + 4 + 3).unwrap().to_string(), "video (t 1, y 1, x 3)");
        assert!(axis.place(29).is_none());
        assert_eq!(axis.starts(), [0, 5, 29]);
    }

    proptest! {
        #![proptest_config(maskloom_testing::cases::kept_beside())]

        #[test]
        fn any_text_parses_or_explains(text in "[a-z0-9x| ×]{0,24}") {
            if let Ok(axis) = Axis::parse(&text) {
                prop_assert_eq!(&Axis::parse(&axis.to_string()).unwrap(), &axis);
                prop_assert!((1..=MAX_LENGTH).contains(&axis.len()));
            }
        }
    }
}
