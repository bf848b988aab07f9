//! Where numbers come from: what a picture, a figure, a page, a table or a report carries, and its words.
//!
//! Invariant: the words of each kind stand here and nowhere else, and no two kinds share them. Must not know what shows them.

use crate::identity;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where numbers come from. Nothing is drawn, exported or reported without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Provenance {
    /// The cells of the design's own expression graph.
    Design(Part),
    /// The design as it was before the last change: a picture that stands in for one that is not there yet.
    Before,
    /// q and k that were drawn at random.
    Random,
    /// q and k of a file: inputs of a run, or a capture of a model.
    Inputs {
        /// The file's name.
        file: String,
    },
    /// The attention that the formula gives in float64.
    Reference,
    /// A run that this machine, or the worker it is connected to, has made.
    Measured(Place),
    /// A run that was made before, elsewhere, and came in a file.
    Recorded(Place),
    /// Nothing ran: a time that other times predict.
    Estimated {
        /// Of which device; None: of none in particular.
        device: Option<String>,
        /// From what.
        basis: Basis,
    },
}

/// What of a design a picture shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Batch entry; with `h`, of which head.
    pub b: usize,
    /// Query head.
    pub h: usize,
    /// Queries and keys under a pixel, at most.
    pub pixel: [usize; 2],
    /// How many of a pixel's cells were looked at.
    pub looked: Looked,
}

/// How many of a pixel's cells were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Looked {
    /// All: a share is exact.
    All,
    /// All of most pixels, a sample of the others.
    Some,
    /// One of each pixel.
    One,
}

/// Where and when something ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The device's name.
    pub device: String,
    /// The day, `2026-11-21`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Which Maskloom, with its commit: `0.1.0 (825843d5c, release)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Whether a smaller copy of the design ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copy: bool,
}

/// What an estimate is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Recorded runs of designs like it on that device.
    Runs,
    /// The last race on this machine.
    LastRace,
    /// Recorded runs on another device, scaled by the data sheets of both.
    Sheets,
    /// What a block took in the runs of a file.
    Blocks(String),
    /// What a block took on another device, so many times as long by the data sheets: hundredths.
    BlocksScaled(String, u32),
    /// No time: blocks alone are counted.
    Count,
}

impl Provenance {
    /// The whole design in pixels of a picture: rows and columns of cells, pixels down and across.
    pub fn design([b, h]: [usize; 2], cells: [usize; 2], pixels: [usize; 2], looked: Looked) -> Provenance {
        let pixel = [0, 1].map(|side| cells[side].div_ceil(pixels[side].max(1)).max(1));
        Provenance::Design(Part { b, h, pixel, looked })
    }

    /// q and k of a file.
    pub fn inputs(file: impl Into<String>) -> Provenance {
        Provenance::Inputs { file: file.into() }
    }

    /// An estimate for a device.
    pub fn estimated(device: impl Into<String>, basis: Basis) -> Provenance {
        Provenance::Estimated { device: Some(device.into()), basis }
    }

    /// Whether q and k are random: such numbers say nothing of a model.
    pub fn is_random(&self) -> bool {
        *self == Provenance::Random
    }

    /// The kind and the device alone, where a headline has no room for more: `recorded on NVIDIA H200`.
    pub fn brief(&self) -> String {
        match self {
            Provenance::Measured(place) => format!("measured on {}", place.device),
            Provenance::Recorded(place) => format!("recorded on {}", place.device),
            other => other.to_string(),
        }
    }

    /// What [`Provenance::brief`] leaves out: `2026-11-21; not measured here`.
    pub fn rest(&self) -> String {
        let words = self.to_string();
        words.strip_prefix(&self.brief()).unwrap_or_default().trim_start_matches([',', ';', ' ']).to_string()
    }

    /// The words as a title.
    pub fn title(&self) -> String {
        capital(&self.to_string())
    }

    /// The words as a sentence of its own.
    pub fn sentence(&self) -> String {
        format!("{}.", self.title())
    }

    /// A sentence with everything that is known, and which build made the file that holds it: what stands below a figure or a page's
    /// title.
    pub fn caption(&self) -> String {
        let words = match self {
            Provenance::Measured(place) => format!("measured on {}", place.with_build()),
            Provenance::Recorded(place) => format!("recorded on {}; not measured here", place.with_build()),
            other => other.to_string(),
        };
        format!("{}. {}", capital(&words), made_by())
    }
}

/// Words with a capital.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    first + letters.as_str()
}

/// `Made by Maskloom 0.1.0 (825843d5c, release).`
pub fn made_by() -> String {
    made_on(None)
}

/// `Made by Maskloom 0.1.0 (825843d5c, release) on 2026-11-27.`
pub fn made_on(day: Option<&str>) -> String {
    format!("Made by {}{}.", maskloom(), day.map(|day| format!(" on {day}")).unwrap_or_default())
}

/// `Maskloom 0.1.0 (825843d5c, release)`
pub fn maskloom() -> String {
    format!("Maskloom {}", identity::build())
}

/// `random q and k`, `recorded on NVIDIA H200, 2026-11-21; not measured here`: what can follow `of` or stand behind a name.
impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Provenance::Design(part) => part.fmt(f),
            Provenance::Before => f.write_str("the design before the last change"),
            Provenance::Random => f.write_str("random q and k"),
            Provenance::Inputs { file } => write!(f, "q and k of {file}"),
            Provenance::Reference => f.write_str("the float64 reference"),
            Provenance::Measured(place) => write!(f, "measured on {place}"),
            Provenance::Recorded(place) => write!(f, "recorded on {place}; not measured here"),
            Provenance::Estimated { device: Some(device), basis } => {
                write!(f, "estimate for {device} {basis}; not measured")
            }
            Provenance::Estimated { device: None, basis } => write!(f, "estimate {basis}; not measured"),
        }
    }
}

/// `batch entry 0, head 0; one pixel is at most 4 x 4 cells; shares are exact`
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch entry {}, head {}; ", self.b, self.h)?;
        match (self.pixel, self.looked) {
            ([1, 1], _) => f.write_str("one pixel is one cell"),
            ([q, kv], Looked::One) => write!(f, "one pixel is one cell of at most {q} x {kv}"),
            ([q, kv], looked) => write!(f, "one pixel is at most {q} x {kv} cells; {looked}"),
        }
    }
}

/// `some shares are sampled`
impl fmt::Display for Looked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Looked::All => "shares are exact",
            Looked::Some => "some shares are sampled",
            Looked::One => "one cell of each pixel",
        })
    }
}

impl Looked {
    /// That of a picture all of whose shares are exact, or some are not.
    pub fn of(exact: bool) -> Looked {
        if exact { Looked::All } else { Looked::Some }
    }
}

/// `NVIDIA H200, 2026-11-21`
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.device)?;
        self.date.iter().try_for_each(|date| write!(f, ", {date}"))?;
        f.write_str(if self.copy { ", a smaller copy" } else { "" })
    }
}

impl Place {
    /// The same with the build: `NVIDIA H200, 2026-11-21, by Maskloom 0.1.0 (825843d5c, release)`.
    pub fn with_build(&self) -> String {
        let build = self.build.as_ref().map(|build| format!(", by Maskloom {build}"));
        format!("{self}{}", build.unwrap_or_default())
    }
}

/// What follows `estimate` or `estimate for DEVICE`.
impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::Runs => f.write_str("from recorded runs"),
            Basis::LastRace => f.write_str("from the last race here"),
            Basis::Sheets => f.write_str("from recorded runs on another card, scaled by data sheets"),
            Basis::Blocks(file) => write!(f, "from block times of {file}"),
            Basis::BlocksScaled(of, times) => {
                write!(f, "from block times of {of}, times {:.2} by the data sheets", f64::from(*times) / 100.0)
            }
            Basis::Count => f.write_str("in blocks"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> Vec<(Provenance, &'static str)> {
        let place = |copy| Place {
            device: "NVIDIA H200".into(),
            date: Some("2026-11-21".into()),
            build: Some("0.1.0 (825843d5c, release)".into()),
            copy,
        };
        let design = |cells, looked| Provenance::design([0, 3], cells, [256, 256], looked);
        let estimated = |basis| Provenance::estimated("NVIDIA L40S", basis);
        vec![
            (design([256, 256], Looked::All), "batch entry 0, head 3; one pixel is one cell"),
            (
                design([1000, 512], Looked::All),
                "batch entry 0, head 3; one pixel is at most 4 x 2 cells; shares are exact",
            ),
            (
                design([1000, 512], Looked::Some),
                "batch entry 0, head 3; one pixel is at most 4 x 2 cells; some shares are sampled",
            ),
            (design([1000, 512], Looked::One), "batch entry 0, head 3; one pixel is one cell of at most 4 x 2"),
            (Provenance::Before, "the design before the last change"),
            (Provenance::Random, "random q and k"),
            (Provenance::inputs("lm.safetensors"), "q and k of lm.safetensors"),
            (Provenance::Reference, "the float64 reference"),
            (Provenance::Measured(place(false)), "measured on NVIDIA H200, 2026-11-21"),
            (Provenance::Measured(place(true)), "measured on NVIDIA H200, 2026-11-21, a smaller copy"),
            (Provenance::Recorded(place(false)), "recorded on NVIDIA H200, 2026-11-21; not measured here"),
            (estimated(Basis::Runs), "estimate for NVIDIA L40S from recorded runs; not measured"),
            (estimated(Basis::LastRace), "estimate for NVIDIA L40S from the last race here; not measured"),
            (
                estimated(Basis::Sheets),
                "estimate for NVIDIA L40S from recorded runs on another card, scaled by data sheets; not measured",
            ),
            (
                estimated(Basis::Blocks("docs/h100.json".into())),
                "estimate for NVIDIA L40S from block times of docs/h100.json; not measured",
            ),
            (
                estimated(Basis::BlocksScaled("an H100".into(), 215)),
                "estimate for NVIDIA L40S from block times of an H100, times 2.15 by the data sheets; not measured",
            ),
            (Provenance::Estimated { device: None, basis: Basis::Count }, "estimate in blocks; not measured"),
        ]
    }

    #[test]
    fn each_kind_has_words_of_its_own_and_comes_back_from_a_file() {
        let kinds = kinds();
        for (of, words) in &kinds {
            assert_eq!(of.to_string(), *words);
            let text = serde_json::to_string(of).expect("written");
            assert_eq!(serde_json::from_str::<Provenance>(&text).expect("read"), *of, "{text}");
            assert_eq!(of.is_random(), *words == "random q and k");
        }
        let all: std::collections::BTreeSet<&str> = kinds.iter().map(|(_, words)| *words).collect();
        assert_eq!(all.len(), kinds.len());
    }

    #[test]
    fn what_is_brief_and_the_rest_are_the_words() {
        let run = Provenance::Recorded(Place {
            device: "card".into(),
            date: Some("2026-11-21".into()),
            build: Some("0.1.0 (abc)".into()),
            copy: false,
        });
        assert_eq!((run.brief(), run.rest()), ("recorded on card".into(), "2026-11-21; not measured here".into()));
        let undated = Provenance::Recorded(Place { device: "card".into(), ..Place::default() });
        assert_eq!(undated.rest(), "not measured here");
        let caption = "Recorded on card, 2026-11-21, by Maskloom 0.1.0 (abc); not measured here. Made by ";
        assert!(run.caption().starts_with(caption), "{}", run.caption());
    }

    #[test]
    fn a_caption_is_a_sentence_and_says_which_build() {
        let caption = Provenance::Random.caption();
        assert!(caption.starts_with("Random q and k. Made by Maskloom 0.1.0 ("), "{caption}");
    }
}
