//! The heads of a layer: ranges of query heads.
//!
//! Invariant: ranges are half-open, ascend, and neither touch nor overlap; there is at least one. Must not know the
//! document's number of heads.

use crate::base::Diagnostic;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most ranges that are read.
const MOST: usize = 4096;

/// Some heads, as half-open ranges. In files a list of pairs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<[usize; 2]>", into = "Vec<[usize; 2]>")]
pub struct Heads {
    ranges: Vec<[usize; 2]>,
}

impl Heads {
    /// These heads, in any order and as often as they come; None for none at all.
    pub fn of(heads: impl IntoIterator<Item = usize>) -> Option<Heads> {
        Heads::from_ranges(heads.into_iter().map(|h| [h, h + 1]).collect())
    }

    /// Ranges in any order; None if they hold nothing.
    pub fn from_ranges(mut ranges: Vec<[usize; 2]>) -> Option<Heads> {
        ranges.retain(|[from, to]| from < to);
        ranges.sort_unstable();
        let mut out: Vec<[usize; 2]> = Vec::with_capacity(ranges.len());
        for [from, to] in ranges {
            match out.last_mut() {
                Some(last) if from <= last[1] => last[1] = last[1].max(to),
                _ => out.push([from, to]),
            }
        }
        (!out.is_empty()).then_some(Heads { ranges: out })
    }

    /// Reads `0-3, 7`: numbers and ranges with both ends.
    pub fn parse(text: &str) -> Result<Heads, Diagnostic> {
        let bad = |part: &str| {
            Diagnostic::error("heads", format!("`{part}` is not a head or a range of heads"))
                .hint("write numbers and ranges with both ends, such as 0-3, 7")
        };
        let mut ranges = Vec::new();
        for part in text.split([',', ' ', ';']).map(str::trim).filter(|part| !part.is_empty()) {
            let (from, to) = part.split_once(['-', '\u{2013}']).unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n < 1 << 20);
            let (Some(from), Some(to)) = (number(from), number(to)) else { return Err(bad(part)) };
            if from > to {
                return Err(bad(part));
            }
            ranges.push([from, to + 1]);
        }
        Heads::from_ranges(ranges).ok_or_else(|| bad(text))
    }

    /// The ranges, half-open, rising.
    pub fn ranges(&self) -> &[[usize; 2]] {
        &self.ranges
    }

    /// Whether a head is among them.
    pub fn contains(&self, head: usize) -> bool {
        self.ranges.iter().any(|[from, to]| (*from..*to).contains(&head))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ranges.iter().map(|[from, to]| to - from).sum()
    }

    /// Whether both have a head.
    pub fn meets(&self, other: &Heads) -> bool {
        self.ranges.iter().any(|a| other.ranges.iter().any(|b| a[0] < b[1] && b[0] < a[1]))
    }

    /// All of both.
    #[must_use]
    pub fn with(&self, other: &Heads) -> Heads {
        let all = self.ranges.iter().chain(&other.ranges).copied().collect();
        Heads::from_ranges(all).unwrap_or_else(|| self.clone())
    }

    /// These without those of the other.
    pub fn without(&self, other: &Heads) -> Option<Heads> {
        let mut left = self.ranges.clone();
        for [from, to] in &other.ranges {
            left = left.iter().flat_map(|[a, b]| [[*a, (*b).min(*from)], [(*a).max(*to), *b]]).collect();
        }
        Heads::from_ranges(left)
    }

    /// The same with one more head, or without it if it was included; None if that leaves none.
    pub fn toggled(&self, head: usize) -> Option<Heads> {
        let one = Heads { ranges: vec![[head, head + 1]] };
        if self.contains(head) { self.without(&one) } else { Some(self.with(&one)) }
    }
}

impl TryFrom<Vec<[usize; 2]>> for Heads {
    type Error = String;

    fn try_from(ranges: Vec<[usize; 2]>) -> Result<Heads, String> {
        if ranges.len() > MOST || ranges.iter().any(|[from, to]| from >= to) {
            return Err("heads are ranges such as [[0, 4]], the end not included".into());
        }
        Heads::from_ranges(ranges).ok_or_else(|| "the list of heads is empty".into())
    }
}

impl From<Heads> for Vec<[usize; 2]> {
    fn from(heads: Heads) -> Vec<[usize; 2]> {
        heads.ranges
    }
}

impl fmt::Display for Heads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, [from, to]) in self.ranges.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            match to - from {
                1 => write!(f, "{comma}{from}")?,
                2 => write!(f, "{comma}{from}, {}", to - 1)?,
                _ => write!(f, "{comma}{from}-{}", to - 1)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_people_write_them() {
        for (text, shown) in [("0-3, 7", "0-3, 7"), ("7 0 1 2 3", "0-3, 7"), ("5,4", "4, 5"), ("2-2", "2")] {
            let heads = Heads::parse(text).unwrap();
            assert_eq!(heads.to_string(), shown, "{text}");
            assert_eq!(Heads::parse(&heads.to_string()).unwrap(), heads);
        }
        for text in ["", "a", "3-1", "1-", "-1"] {
            assert_eq!(Heads::parse(text).unwrap_err().code, "heads", "{text}");
        }
    }

    #[test]
    fn sets_are_those_of_their_members() {
        let members = |heads: &Heads| (0..16).filter(|h| heads.contains(*h)).collect::<Vec<_>>();
        let (a, b) = (Heads::of([1, 2, 3, 9]).unwrap(), Heads::of([2, 9, 12]).unwrap());
        assert_eq!((members(&a.with(&b)), a.count()), (vec![1, 2, 3, 9, 12], 4));
        assert_eq!(members(&a.without(&b).unwrap()), [1, 3]);
        assert!(a.without(&a).is_none() && a.meets(&b) && !a.meets(&Heads::of([4]).unwrap()));
        assert_eq!(members(&a.toggled(2).unwrap()), [1, 3, 9]);
        assert_eq!(members(&a.toggled(0).unwrap()), [0, 1, 2, 3, 9]);
        assert_eq!(Heads::of([4]).unwrap().toggled(4), None);
    }

    #[test]
    fn files_hold_pairs_and_nothing_else_is_read() {
        let heads = Heads::of([0, 1, 5]).unwrap();
        assert_eq!(serde_json::to_string(&heads).unwrap(), "[[0,2],[5,6]]");
        assert_eq!(serde_json::from_str::<Heads>("[[5,6],[0,2]]").unwrap(), heads);
        for text in ["[]", "[[2,2]]", "[[3,1]]"] {
            assert!(serde_json::from_str::<Heads>(text).is_err(), "{text}");
        }
    }
}
