//! The languages, and which of them a system asks for.
//!
//! Invariant: variables of the environment count as gettext counts them; a language that is unknown here is English. Must not know texts.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU8, Ordering};
use unic_langid::LanguageIdentifier;

/// A language of window and terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// The one that every text has.
    #[default]
    English,
    /// In simplified characters.
    Chinese,
    /// As it is understood everywhere.
    Spanish,
    /// In Devanagari.
    Hindi,
}

/// What the terminal speaks: `main` sets it once.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

impl Language {
    /// All of them.
    pub const ALL: [Language; 4] = [Language::English, Language::Chinese, Language::Spanish, Language::Hindi];

    /// Its name, in itself.
    pub fn name(self) -> &'static str {
        match self {
            Language::English => "English",
            Language::Chinese => "中文",
            Language::Spanish => "Español",
            Language::Hindi => "हिन्दी",
        }
    }

    /// Its name in English, for who lacks its letters.
    pub fn in_english(self) -> &'static str {
        match self {
            Language::English => "English",
            Language::Chinese => "Chinese",
            Language::Spanish => "Spanish",
            Language::Hindi => "Hindi",
        }
    }

    /// Its code, as folders of texts are called.
    pub fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh",
            Language::Spanish => "es",
            Language::Hindi => "hi",
        }
    }

    pub(crate) fn identifier(self) -> LanguageIdentifier {
        self.code().parse().unwrap_or_default()
    }

    /// The language of a locale such as `zh_CN.UTF-8`. `C` and `POSIX` are English.
    pub fn of_locale(locale: &str) -> Option<Language> {
        let code = locale.split(['_', '-', '.', '@']).next()?.to_ascii_lowercase();
        match code.as_str() {
            "c" | "posix" => Some(Language::English),
            code => Language::ALL.into_iter().find(|language| language.code() == code),
        }
    }

    /// What variables ask for: LC_ALL, LC_MESSAGES or LANG, the first that is set; where it is not `C`, the list of LANGUAGE
    /// comes before it.
    pub fn of_variables(variable: impl Fn(&str) -> Option<String>) -> Language {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let Some(locale) = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(set) else {
            return Language::English;
        };
        if matches!(locale.split('.').next(), Some("C" | "POSIX")) {
            return Language::English;
        }
        let list = set("LANGUAGE").unwrap_or_default();
        let wanted = list.split(':').chain([locale.as_str()]);
        wanted.filter(|name| !name.is_empty()).find_map(Language::of_locale).unwrap_or_default()
    }

    /// What the environment of this process asks for.
    pub fn of_environment() -> Language {
        Language::of_variables(|name| std::env::var(name).ok())
    }

    /// From now on the terminal speaks this one.
    pub fn choose(self) {
        CHOSEN.store(self as u8, Ordering::Relaxed);
    }

    /// What the terminal speaks: English until another is chosen.
    pub fn chosen() -> Language {
        Language::ALL[usize::from(CHOSEN.load(Ordering::Relaxed))]
    }
}
