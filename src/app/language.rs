//! The language that the window speaks.
//!
//! Invariant: a frame is in one language, which its start sets; without one it is English. A language whose letters no font has is not
//! spoken. Must not know what is said.

use super::fonts;
use crate::words::{Language, Value, Words};
use crate::worker::target::Target;
use egui::{Context, Ui};

fn key() -> egui::Id {
    egui::Id::unique(("maskloom", "language"))
}

/// From now on texts are in this language.
pub(crate) fn speak(ctx: &Context, language: Language) {
    ctx.data_mut(|d| d.insert_temp(key(), language));
}

/// The texts of the language that is spoken. Locks the context: not to be called in a closure of `widget_info`, `data` or `input`.
pub(crate) fn words(ctx: &Context) -> &'static Words {
    Words::of(ctx.data(|d| d.get_temp(key())).unwrap_or_default())
}

/// A text.
pub(crate) fn say(ui: &Ui, id: &str) -> &'static str {
    words(ui.ctx()).text(id)
}

/// A text with figures or names in it.
pub(crate) fn say_with(ui: &Ui, id: &str, figures: &[(&str, Value<'_>)]) -> String {
    words(ui.ctx()).with(id, figures)
}

/// The name of a target, or that it is this machine.
pub(crate) fn place(ui: &Ui, target: &Target) -> String {
    if target.is_local() { say(ui, "connect-command.hint").into() } else { target.title().into() }
}

/// A language's name in itself; in English where no font has its letters.
pub(crate) fn named(of: Language) -> &'static str {
    named_with(of, readable(of).1.is_some())
}

fn named_with(of: Language, unreadable: bool) -> &'static str {
    if unreadable { of.in_english() } else { of.name() }
}

/// What is spoken if this is wanted: what can be read. With what its letters lack: the package of Debian that has them.
pub(crate) fn readable(wanted: Language) -> (Language, Option<&'static str>) {
    match fonts::missing(wanted.name()) {
        Some((_, package)) => (Language::English, Some(package)),
        None => (wanted, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_whose_letters_no_font_has_is_named_in_letters_that_every_font_has() {
        for language in Language::ALL {
            assert!(named_with(language, true).is_ascii(), "{language:?}");
        }
        assert_eq!([false, true].map(|lacks| named_with(Language::Chinese, lacks)), ["中文", "Chinese"]);
    }
}
