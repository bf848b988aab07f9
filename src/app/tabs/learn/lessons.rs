//! The lessons' texts, and the action of each step.
//!
//! Invariant: every named preset and pattern exists (a test checks). Must not know how a lesson is drawn.

use crate::app::action::Action;
use crate::app::action::settings_edit;
use crate::app::canvas::Picture;
use crate::app::command::Command;
use crate::app::state::State;
use crate::app::sweeps::Sweep;
use crate::base::BlockSize;

/// A lesson.
#[derive(Debug)]
pub(super) struct Lesson {
    pub title: &'static str,
    pub about: &'static str,
    pub steps: &'static [Step],
}

/// A step.
#[derive(Debug)]
pub(super) struct Step {
    pub words: &'static str,
    pub does: Option<(&'static str, Does)>,
}

/// The effect of a step on the window.
#[derive(Clone, Copy, Debug)]
pub(super) enum Does {
    Preset(&'static str),
    /// Square blocks of this side.
    Blocks(usize),
    Draw(Picture),
    Command(Command),
    /// Another head.
    Head(usize),
}

impl Does {
    /// The actions that do it; the lesson stays in front.
    pub fn actions(self, state: &State) -> Vec<Action> {
        let settings = &state.document.settings;
        match self {
            Does::Preset(name) => vec![Action::OpenPreset(name.into()), Action::Command(Command::ShowLearn)],
            Does::Blocks(side) => {
                vec![Action::Edit(settings_edit(settings, |s| s.block_size = BlockSize::square(side)))]
            }
            Does::Draw(picture) => vec![Action::SetPicture(picture)],
            // a race runs beside its lesson
            Does::Command(command @ (Command::Run | Command::RaceLengths)) => {
                vec![Action::Command(command), Action::Command(Command::ShowLearn)]
            }
            Does::Command(command) => vec![Action::Command(command)],
            Does::Head(h) => vec![Action::SetHead { b: state.focus.b, h }],
        }
    }

    /// That it holds, in a word: what is so from the start was not done.
    pub fn said(self) -> &'static str {
        match self {
            Does::Preset(_) => "is open",
            _ => "done",
        }
    }

    /// Whether it holds already.
    pub fn holds(self, state: &State) -> bool {
        match self {
            Does::Preset(name) => crate::document::library::preset(name)
                .and_then(|p| p.document().ok())
                .is_some_and(|d| d.name == state.document.name),
            Does::Blocks(side) => state.document.settings.block_size == BlockSize::square(side),
            Does::Draw(picture) => state.focus.picture == picture,
            Does::Command(Command::Run) => {
                state.session.race.as_ref().is_some_and(|race| !race.stale && race.report.is_some())
            }
            Does::Command(Command::RaceLengths) => state.session.races.sweep.as_ref().is_some_and(Sweep::is_over),
            // a workspace that was looked at shows no lesson
            Does::Command(_) => false,
            Does::Head(h) => state.focus.h == h,
        }
    }
}

const fn does(words: &'static str, button: &'static str, does: Does) -> Step {
    Step { words, does: Some((button, does)) }
}

/// All lessons, in the order in which one learns.
pub(super) const LESSONS: &[Lesson] = &[
    Lesson {
        title: "Maskloom in two minutes",
        about: "From a mask to a race to an export.",
        steps: &[
            does(
                "A row is a query, a column is a key. A coloured pixel means that this query may attend to this key. Open a \
                 sliding window: each token attends to the last 1024 tokens.",
                "Open the sliding window",
                Does::Preset("sliding_window"),
            ),
            does(
                "The headline above shows the kept cells, the cost, the loss and the errors of the mask. Each card \
                 leads to its workspace. Move the slider `window` in the Design workspace and watch the first card.",
                "Go to the slider",
                Does::Command(Command::ShowDesign),
            ),
            does(
                "Blue blocks are fully kept, orange blocks partly, dark blocks not at all. Dark blocks are never computed. This \
                 saves the time.",
                "Draw the blocks",
                Does::Draw(Picture::Blocks),
            ),
            does(
                "Race the backends: each result is checked against a float64 reference before its time counts. Without a GPU \
                 a smaller copy of the same mask races on the CPU.",
                "Race",
                Does::Command(Command::Run),
            ),
            does(
                "Export first asks which program you use. Then it shows every file and every changed line before it writes.",
                "Go to Export",
                Does::Command(Command::ShowExport),
            ),
        ],
    },
    Lesson {
        title: "What a block is",
        about: "Kernels process masks in tiles. The tile size decides which cells are skipped.",
        steps: &[
            does(
                "A kernel does not start from single cells. It divides the mask into blocks of BLOCK_SIZE of three kinds: \
                 full, partial, empty.",
                "Open the sliding window",
                Does::Preset("sliding_window"),
            ),
            does(
                "With blocks of 1024 nearly every block in the window is partial: many cells are computed and dropped. Watch how \
                 the first card's bar turns orange.",
                "Blocks of 1024",
                Does::Blocks(1024),
            ),
            does(
                "With blocks of 128, PyTorch's default, the border is thin. A full block needs no mask at all. Only the partial \
                 blocks evaluate mask_mod for each cell.",
                "Blocks of 128",
                Does::Blocks(128),
            ),
            does(
                "Blocks of 16 follow the border closely. But a tensor core works on tiles. Below 64 the hardware idles, so \
                 the smallest block is not the fastest.",
                "Blocks of 16",
                Does::Blocks(16),
            ),
        ],
    },
    Lesson {
        title: "Why partial blocks cost",
        about: "A block is computed completely if one of its cells is kept.",
        steps: &[
            does(
                "A causal mask keeps half of all cells. Only the blocks on the diagonal are partial: each is computed completely, \
                 and half of its work is dropped.",
                "Open the causal mask",
                Does::Preset("causal"),
            ),
            does(
                "A dilated window keeps every other key, or every fourth. These few cells are spread over every block of the band: \
                 nearly all of its blocks are partial, so few are skipped.",
                "Open the dilated window",
                Does::Preset("dilated_window"),
            ),
            does(
                "Compare the two figures of the first card: the kept share of the cells, and the shares of full and partial \
                 blocks. The blocks determine the kernel's time. In a partial block, bright cells are kept, dim cells are computed and \
                 dropped.",
                "Draw the blocks",
                Does::Draw(Picture::Blocks),
            ),
            does(
                "A mask made of whole blocks has no partial blocks: it computes exactly the kept cells.",
                "Open painted blocks",
                Does::Preset("painted_blocks"),
            ),
        ],
    },
    Lesson {
        title: "From mask to speed-up",
        about: "Skipped blocks save time only if the kernel skips them.",
        steps: &[
            does(
                "This window keeps 12% of the cells. `sdpa` with a mask computes every cell and then drops 88% of them; `flex` \
                 never loads the empty blocks.",
                "Open the sliding window",
                Does::Preset("sliding_window"),
            ),
            does(
                "The race lists the fastest first, each with its error against float64 and how it compares with the dense mask. \
                 If this design was recorded on a GPU, its recorded times are shown before any run.",
                "Go to Race",
                Does::Command(Command::ShowRace),
            ),
            does(
                "A short sequence has few blocks to skip. Race the design at several lengths: the lines separate at the length where the mask \
                 starts to save time.",
                "Race over lengths",
                Does::Command(Command::RaceLengths),
            ),
            does(
                "The roofline compares the arithmetic of the kept cells with the card's limits. Far below \
                 the roof, the mask is not the reason for the time.",
                "Go to Race",
                Does::Command(Command::ShowRace),
            ),
        ],
    },
    Lesson {
        title: "Score mods, drawn",
        about: "A mask keeps or drops a score. A score mod changes its value.",
        steps: &[
            does(
                "ALiBi adds to each score a bias that falls with the distance, with another slope for every head.",
                "Open ALiBi",
                Does::Preset("alibi"),
            ),
            does(
                "The picture shows the result of the score mod for a score of zero. The mask drops the striped cells: there is \
                 no score to change.",
                "Draw the bias",
                Does::Draw(Picture::Bias),
            ),
            does(
                "The strip below the picture shows all heads with one colour scale: the bias of the first heads falls quickly, that of the last \
                 heads hardly.",
                "Go to head 7",
                Does::Head(7),
            ),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::library;

    #[test]
    fn what_lessons_open_exists_and_every_step_says_something() {
        for lesson in LESSONS {
            assert!(!lesson.steps.is_empty() && lesson.about.ends_with('.'), "{}", lesson.title);
            for step in lesson.steps {
                assert!(step.words.ends_with('.'), "{}: {}", lesson.title, step.words);
                let Some((_, does)) = step.does else { continue };
                if let Does::Preset(name) = does {
                    let document = library::preset(name).and_then(|p| p.document().ok());
                    assert!(document.is_some(), "{name}");
                }
            }
        }
    }

    #[test]
    fn the_lesson_on_heads_stays_within_the_heads() {
        let document = library::preset("alibi").expect("there").document().expect("loads");
        assert!(document.settings.heads > 7);
    }
}
