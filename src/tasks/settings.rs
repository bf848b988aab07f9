//! What a trainer's setting does and what its model's own mask is, in the words of a language.
//!
//! Invariant: in English these are the sentences that hints have. Must not know how facts are found.

use crate::trainers::meaning::{Fact, Masks, Meaning, Unset, When};
use crate::trainers::own_masks::{Kind, Layers, OwnMask, READ};
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

/// What a model's own mask is.
pub fn own_mask(said: &'static Words, of: &OwnMask) -> String {
    let number = |n: u64| Value::from(n.to_string());
    match *of {
        OwnMask::BothWays => said.with("own-both-ways", &[("read", READ.into())]),
        OwnMask::Of(kind) => {
            let [what, draw] = of_kind(said, kind);
            said.with("own-not-causal", &[("what", what.into()), ("read", READ.into()), ("draw", draw.into())])
        }
        OwnMask::Window(layers, window, share) => {
            let layers = match layers {
                Layers::Of(local, all) => {
                    Some(said.with("own-layers-of", &[("local", number(local)), ("all", number(all))]))
                }
                Layers::Some => Some(said.text("own-layers-some").into()),
                Layers::All => None,
            };
            let share = Value::from(format!("{:.1}", 100.0 * share));
            let figures = [("window", number(window)), ("share", share)];
            match layers {
                Some(layers) => {
                    let [window, share] = figures;
                    said.with("own-window", &[("layers", layers.into()), window, share])
                }
                None => said.with("own-window-all", &figures),
            }
        }
        OwnMask::Ranks(n) => said.with("own-ranks", &[("n", number(n))]),
        OwnMask::Captions(n) => said.with("own-captions", &[("n", number(n as u64))]),
    }
}

/// What a kind of mask keeps, and how to draw it.
fn of_kind(said: &'static Words, kind: Kind) -> [&'static str; 2] {
    match kind {
        Kind::ImagesAndWindows => [said.text("own-images"), said.text("own-images.draw")],
        Kind::Prefix => [said.text("own-prefix"), said.text("own-prefix.draw")],
        Kind::PrefixAndActions => [said.text("own-actions"), said.text("own-actions.draw")],
        Kind::Blocks => [said.text("own-blocks"), said.text("own-blocks.draw")],
        Kind::Sinks => [said.text("own-sinks"), said.text("own-sinks.draw")],
        Kind::Chunks => [said.text("own-chunks"), said.text("own-chunks.draw")],
        Kind::EncoderDecoder => [said.text("own-decoder"), said.text("own-decoder.draw")],
        Kind::Encoder => [said.text("own-encoder"), said.text("own-encoder.draw")],
        Kind::LocalEncoder => [said.text("own-local"), said.text("own-local.draw")],
    }
}

fn of_family(family: &str) -> [(&'static str, Value<'_>); 1] {
    [("family", family.into())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_own_mask_is_told_in_every_language() {
        let kinds = [
            (Kind::ImagesAndWindows, "one image see each other"),
            (Kind::Prefix, "prefix_lm with the prefix's length"),
            (Kind::PrefixAndActions, "the action tokens"),
            (Kind::Blocks, "block[q_idx] == block[kv_idx]"),
            (Kind::Sinks, "gpt_oss_sinks"),
            (Kind::Chunks, "llama4_chunked"),
            (Kind::EncoderDecoder, "cross-attention"),
            (Kind::Encoder, "no causal mask"),
            (Kind::LocalEncoder, "preset modernbert_local"),
        ];
        let others = [
            (OwnMask::BothWays, "every token see every other (transformers 5.24)"),
            (
                OwnMask::Window(Layers::Of(5, 6), 1024, 0.0615),
                "5 of 6 layers see a window of 1024 tokens: 6.2% of the causal",
            ),
            (
                OwnMask::Window(Layers::Some, 9, 1.0),
                "some layers, as layer_types says, see a window of 9 tokens: 100.0%",
            ),
            (OwnMask::Window(Layers::All, 9, 1.0), "all layers see a window of 9 tokens: 100.0%"),
            (OwnMask::Ranks(2), "over 2 ranks"),
            (
                OwnMask::Captions(4),
                "captions of 4 samples have different lengths: each sample needs its own mask of the text (batch 4, ",
            ),
        ];
        let one = own_mask(Words::of(Language::English), &OwnMask::Window(Layers::All, 9, 1.0));
        assert!(!one.contains("One mask for all layers is wrong"), "it is right where all have the same window: {one}");
        for (of, part) in kinds.map(|(kind, part)| (OwnMask::Of(kind), part)).into_iter().chain(others) {
            let english = own_mask(Words::of(Language::English), &of);
            assert!(english.contains(part), "{english}");
            for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
                let told = own_mask(Words::of(language), &of);
                let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
                assert_ne!(told, english, "{language:?}");
                assert_eq!(digits(&told).len(), digits(&english).len(), "{told}");
            }
        }
    }

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
