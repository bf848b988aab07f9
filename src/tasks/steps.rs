//! Steps of a history and of a run, and states of jobs, in the words of a language.
//!
//! Invariant: in English these are the words of `document` and of the terminal. Must not know what shows them.

use crate::base::control::Left;
use crate::document::title::Title;
use crate::problem::result::Doing;
use crate::words::Words;
use crate::worker::protocol::detached::JobState;

/// A step of a history.
pub fn told(said: &'static Words, title: &Title) -> String {
    let id = match title {
        Title::Open(name) => return said.with("step-open", &[("name", name.into())]),
        Title::Add(name) => return said.with("step-add", &[("name", name.into())]),
        Title::Change(name) => return said.with("step-change", &[("name", name.into())]),
        Title::Said(title) => return title.clone(),
        Title::Rename => "step-rename",
        Title::About => "step-about",
        Title::Axes => "step-axes",
        Title::Settings => "step-settings",
        Title::Remove => "step-remove",
        Title::Move => "step-move",
        Title::RenameLayer => "step-name",
        Title::Enable => "step-enable",
        Title::Disable => "step-disable",
        Title::Combine => "step-combine",
        Title::Heads => "step-heads",
        Title::Layer => "step-layer",
        Title::Code => "step-code",
        Title::Paint => "step-paint",
        Title::Erase => "step-erase",
        Title::Take => "step-take",
        Title::Nothing => "step-nothing",
    };
    said.text(id).into()
}

/// The text on a job's state.
pub fn job(of: JobState) -> &'static str {
    match of {
        JobState::Running => "job-running",
        JobState::Ended => "job-ended",
        JobState::Cancelled => "job-cancelled",
        JobState::Lost => "job-lost",
        JobState::Elsewhere => "job-elsewhere",
    }
}

/// What a run does.
pub fn doing(said: &'static Words, of: &Doing) -> String {
    let rounds = |n: u32, all: u32| [("n", n.to_string().into()), ("all", all.to_string().into())];
    let id = match of {
        Doing::Nothing => return String::new(),
        Doing::Preparing(name) => return said.with("work-preparing", &[("name", name.as_str().into())]),
        Doing::Compiling(name) => return said.with("work-compiling", &[("name", name.as_str().into())]),
        Doing::Done(name) => return said.with("work-done", &[("name", name.as_str().into())]),
        Doing::Round(n, all) => return said.with("work-round", &rounds(*n, *all)),
        Doing::Timed(n, all) => return said.with("work-timed", &rounds(*n, *all)),
        Doing::Backends => "work-backends",
        Doing::Inputs => "work-inputs",
        Doing::Blocks => "work-blocks",
        Doing::Mods => "work-mods",
        Doing::Reference => "work-reference",
        Doing::Rounding => "work-rounding",
        Doing::Refused => "race-refused",
        Doing::Warming => "work-warming",
        Doing::Python => "work-python",
        Doing::Gradients => "work-gradients",
    };
    said.text(id).into()
}

/// How long something still takes: `about 12 s left`.
pub fn left(said: &'static Words, of: Left) -> String {
    let (id, n) = match of {
        Left::AlmostDone => return said.text("left-almost").into(),
        Left::Seconds(n) => ("left-seconds", n),
        Left::Minutes(n) => ("left-minutes", n),
        Left::Hours(n) => ("left-hours", n),
    };
    said.with(id, &[("n", n.into())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::BackendName;

    #[test]
    fn what_a_run_does_is_told_in_every_language() {
        let named = [Doing::Preparing, Doing::Compiling, Doing::Done].map(|of| of(BackendName::Flex));
        let others = [
            Doing::Backends,
            Doing::Inputs,
            Doing::Blocks,
            Doing::Mods,
            Doing::Reference,
            Doing::Rounding,
            Doing::Refused,
            Doing::Warming,
            Doing::Round(3, 10),
            Doing::Timed(3, 10),
            Doing::Python,
            Doing::Gradients,
        ];
        for of in named.into_iter().chain(others) {
            assert_eq!(doing(Words::of(Language::English), &of), of.to_string());
            for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
                assert_ne!(doing(Words::of(language), &of), of.to_string(), "{language:?}");
            }
        }
    }
    use crate::words::Language;

    #[test]
    fn english_is_what_the_history_says_and_the_others_have_words_of_their_own() {
        let named = [Title::Open, Title::Add, Title::Change].map(|of| of("window".into()));
        let others = [
            Title::Rename,
            Title::About,
            Title::Axes,
            Title::Settings,
            Title::Remove,
            Title::Move,
            Title::RenameLayer,
            Title::Enable,
            Title::Disable,
            Title::Combine,
            Title::Heads,
            Title::Layer,
            Title::Code,
            Title::Paint,
            Title::Erase,
            Title::Take,
            Title::Nothing,
        ];
        for title in named.into_iter().chain(others) {
            assert_eq!(told(Words::of(Language::English), &title), title.to_string());
            for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
                assert_ne!(told(Words::of(language), &title), title.to_string(), "{language:?}");
            }
        }
        // a parameter of this name is no axis
        let spanish = Words::of(Language::Spanish);
        assert_eq!(told(spanish, &Title::Change("the axes".into())), "Cambiar the axes");
        assert_eq!(told(spanish, &Title::Said("Something else".into())), "Something else");
    }
}
