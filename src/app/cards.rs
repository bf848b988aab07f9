//! A card of the headline: a figure, its meaning, and the workspace that it opens.
//!
//! Invariant: plain data; a card knows no state. Must not know how it is drawn.

use super::command::Command;

/// How a card's figure reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum Tone {
    Plain,
    Good,
    Weak,
    Warning,
    Error,
}

/// One card.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::app) struct Card {
    pub title: &'static str,
    /// The figure.
    pub value: String,
    /// Its meaning, or details.
    pub detail: String,
    pub tone: Tone,
    pub opens: Command,
    /// Lines of the tooltip.
    pub more: Vec<String>,
    /// Shares of full, partial and empty blocks.
    pub blocks: Option<[f32; 3]>,
    /// The fastest time as a share of the time that it is compared with.
    pub winner: Option<f32>,
    /// How far the work on it is.
    pub progress: Option<f32>,
}

impl Card {
    pub(in crate::app) fn new(title: &'static str, value: impl Into<String>, opens: Command) -> Card {
        let (detail, more) = (String::new(), Vec::new());
        let (value, tone) = (value.into(), Tone::Plain);
        Card { title, value, detail, tone, opens, more, blocks: None, winner: None, progress: None }
    }

    pub(in crate::app) fn detail(self, detail: impl Into<String>) -> Card {
        Card { detail: detail.into(), ..self }
    }

    pub(in crate::app) fn tone(self, tone: Tone) -> Card {
        Card { tone, ..self }
    }

    /// One more line of the tooltip, if there is one.
    pub(in crate::app) fn more_lines(mut self, more: Option<String>) -> Card {
        self.more.extend(more);
        self
    }

    pub(in crate::app) fn more(self, more: impl Into<String>) -> Card {
        Card { more: vec![more.into()], ..self }
    }
}
