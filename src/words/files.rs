//! The files of texts, by language.
//!
//! Invariant: a file of English has the same name in every other language. The others have sentences over English messages, too. Must not know what they say.

use crate::Language;

macro_rules! files {
    ($code:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../assets/words/", $code, "/", $name)))),*]
    };
}

/// Names and texts of a language's files.
pub(crate) fn of(language: Language) -> &'static [(&'static str, &'static str)] {
    match language {
        Language::English => files!("en": "commands.ftl" "window.ftl" "lessons.ftl" "doctor.ftl"),
        Language::Chinese => files!("zh": "commands.ftl" "window.ftl" "lessons.ftl" "refusals.ftl" "doctor.ftl"),
        Language::Spanish => files!("es": "commands.ftl" "window.ftl" "lessons.ftl" "refusals.ftl" "doctor.ftl"),
        Language::Hindi => files!("hi": "commands.ftl" "window.ftl" "lessons.ftl" "refusals.ftl" "doctor.ftl"),
    }
}
