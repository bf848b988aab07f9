//! What a trainer's setting does, in the words of a language.
//!
//! Invariant: in English these are the sentences that hints have. Must not know how facts are found.

use crate::trainers::meaning::{Fact, Masks, Meaning, Unset, When};
use crate::words::{Language, Value, Words};

/// What a setting does today.
pub fn told(said: &'static Words, of: &Meaning) -> String {
    let between = if said.language() == Language::Chinese { "" } else { " " };
    let facts = of.facts.iter().map(|of| fact(said, of)).collect::<Vec<_>>().join(between);
    let Some(Unset { value, edition }) = &of.unset else { return facts };
    let (value, rest) = (("value", value.into()), ("rest", facts.into()));
    match edition {
        Some(edition) => said.with("means-unset-of", &[value, ("edition", edition.into()), rest]),
        None => said.with("means-unset", &[value, rest]),
    }
}

fn fact(said: &'static Words, of: &Fact) -> String {
    match of {
        Fact::Sdpa => said.text("means-sdpa").into(),
        Fact::Cudnn => said.text("means-cudnn").into(),
        Fact::Math => said.text("means-math").into(),
        Fact::OneKernel => said.text("means-one-kernel").into(),
        Fact::Flash(masks) => {
            let masks = match masks {
                Masks::Refused => said.text("means-masks-refused"),
                Masks::Padding => said.text("means-masks-padding"),
                Masks::Kept => said.text("means-masks-kept"),
                Masks::Unknown => said.text("means-masks-unknown"),
            };
            said.with("means-flash", &[("masks", masks.into())])
        }
        Fact::FlashPackage => said.text("means-flash-package").into(),
        Fact::Flex => said.text("means-flex").into(),
        Fact::Kohaku => said.text("means-kohaku").into(),
        Fact::Quantised => said.text("means-quantised").into(),
        Fact::Metal => said.text("means-metal").into(),
        Fact::Xformers => said.text("means-xformers").into(),
        Fact::Unknown(value, versions) => {
            said.with("means-unknown", &[("value", value.into()), ("versions", versions.join(", ").into())])
        }
        Fact::NotOwn(value) => said.with("means-not-own", &[("value", value.into())]),
        Fact::NoEffect(family) => said.with("means-no-effect", &of_family(family)),
        Fact::Reads(family) => said.with("means-reads", &of_family(family)),
        Fact::Steers(family) => said.with("means-steers", &of_family(family)),
        Fact::Unets => said.text("means-unets").into(),
        Fact::UnknownFamily(family) => said.with("means-unknown-family", &of_family(family)),
        Fact::Replaces(when, perhaps) => {
            let when = match when {
                When::Both => said.text("means-both"),
                When::Training => said.text("means-training"),
                When::Validation => said.text("means-validation"),
            };
            let when = match perhaps {
                true => said.with("means-perhaps", &[("when", when.into())]),
                false => when.into(),
            };
            said.with("means-replaces", &[("when", when.into())])
        }
        Fact::Ignores => said.text("means-ignores").into(),
        Fact::Warns => said.text("means-warns").into(),
        Fact::Release(version, day) => said.with("means-release", &[("version", version.into()), ("day", day.into())]),
    }
}

fn of_family(family: &str) -> [(&'static str, Value<'_>); 1] {
    [("family", family.into())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_is_what_hints_say_and_the_others_have_words_of_their_own() {
        let family = || "flux".to_string();
        let flash = [Masks::Refused, Masks::Padding, Masks::Kept, Masks::Unknown].map(Fact::Flash);
        let replaces = [When::Both, When::Training, When::Validation].map(|when| Fact::Replaces(when, false));
        let others = [
            Fact::Sdpa,
            Fact::Cudnn,
            Fact::Math,
            Fact::OneKernel,
            Fact::FlashPackage,
            Fact::Flex,
            Fact::Kohaku,
            Fact::Quantised,
            Fact::Metal,
            Fact::Xformers,
            Fact::Unknown("sla2".into(), vec!["4.9".into(), "4.10".into()]),
            Fact::NotOwn("mine".into()),
            Fact::NoEffect(family()),
            Fact::Reads(family()),
            Fact::Steers(family()),
            Fact::Unets,
            Fact::UnknownFamily(family()),
            Fact::Replaces(When::Both, true),
            Fact::Ignores,
            Fact::Warns,
            Fact::Release("4.10.1".into(), "2026-10-18".into()),
        ];
        for of in flash.into_iter().chain(replaces).chain(others) {
            assert_eq!(fact(Words::of(Language::English), &of), of.to_string());
            for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
                assert_ne!(fact(Words::of(language), &of), of.to_string(), "{language:?}");
            }
        }
        let unset = |edition: Option<&str>| Meaning {
            unset: Some(Unset { value: "sdpa".into(), edition: edition.map(String::from) }),
            facts: vec![Fact::Sdpa, Fact::Ignores],
        };
        for of in [
            unset(None),
            unset(Some("SimpleTuner 4.10.1")),
            Meaning { unset: None, facts: vec![Fact::Flex, Fact::Unets] },
        ] {
            assert_eq!(told(Words::of(Language::English), &of), of.to_string());
        }
    }
}
