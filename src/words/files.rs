//! The files of texts, by language.
//!
//! Invariant: a file of English has the same name in every other language. The others have sentences over English messages and the help of patterns and presets,
//! too. Must not know what they say.

use crate::Language;

macro_rules! files {
    ($code:literal $(: $($more:literal)*)?) => {
        files!($code;
            "commands.ftl" "window.ftl" "lessons.ftl" "doctor.ftl" "canvas.ftl" "dialogs.ftl" "export.ftl" "notices.ftl"
            "origins.ftl" "pages.ftl" "panels.ftl" "quality.ftl" "race.ftl" "ratios.ftl" "proposals.ftl" "verdicts.ftl"
            "advice.ftl" "share.ftl" "gpus.ftl" "tables.ftl" "terminal.ftl" "phrases.ftl" "reports.ftl" "hints.ftl" $($($more)*)?)
    };
    ($code:literal; $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../assets/words/", $code, "/", $name)))),*]
    };
}

/// Names and texts of a language's files.
pub(crate) fn of(language: Language) -> &'static [(&'static str, &'static str)] {
    match language {
        Language::English => files!("en"),
        Language::Chinese => files!("zh": "refusals.ftl" "patterns.ftl" "presets.ftl"),
        Language::Spanish => files!("es": "refusals.ftl" "patterns.ftl" "presets.ftl"),
        Language::Hindi => files!("hi": "refusals.ftl" "patterns.ftl" "presets.ftl"),
    }
}
