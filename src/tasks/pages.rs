//! Texts of a shared design's page in the words of a language.
//!
//! Invariant: in English these are the page's own words. Must not know how a page is made.

use crate::base::Provenance;
use crate::document::page::{Label, Text};
use crate::tasks::{origins, ratios};
use crate::words::{Value, Words};

/// A text of a page.
pub fn told(said: &'static Words, text: &Text<'_>) -> String {
    let number = |name, n: &usize| (name, Value::from(n.to_string()));
    match text {
        Text::Label(of) => said.text(label(*of)).into(),
        Text::Plain(text) => text.clone(),
        Text::Heads(heads, dim) => said.with("shared-heads-of", &[number("heads", heads), number("dim", dim)]),
        Text::HeadsOver(heads, kv, dim) => {
            said.with("shared-heads-kv", &[number("heads", heads), number("kv", kv), number("dim", dim)])
        }
        Text::SparsityAt(words, size) => {
            said.with("shared-sparsity-at", &[("words", words.into()), ("size", size.into())])
        }
        Text::From(from) => origins::whole(said, from),
        Text::Title(from) => origins::title(said, from),
        Text::Ran(ran) => ratios::ran(said, ran),
        Text::Versus(versus, ran) => ratios::versus(said, versus, Some(ran)),
        Text::Measures => {
            let reference = origins::whole(said, &Provenance::Reference);
            said.with("shared-errors", &[("reference", reference.into()), ("how", ratios::memory(said).into())])
        }
    }
}

fn label(of: Label) -> &'static str {
    match of {
        Label::Mask => "shared-mask",
        Label::Keys => "shared-aria",
        Label::Hint => "shared-hint",
        Label::Code => "shared-code",
        Label::Provenance => "shared-provenance",
        Label::Nothing => "shared-nothing",
        Label::Kept => "shared-kept",
        Label::Share => "shared-share",
        Label::To => "shared-to",
        Label::Picture => "shared-picture",
        Label::MadeBy => "shared-made-by",
        Label::At => "shared-at",
        Label::Method => "shared-method",
        Label::Graph => "shared-method-words",
        Label::Design => "shared-design-name",
        Label::Held => "shared-design-words",
        Label::Tokens => "shared-tokens",
        Label::QueryAxis => "shared-query-axis",
        Label::KeyAxis => "shared-key-axis",
        Label::Batch => "shared-batch",
        Label::Heads => "shared-heads",
        Label::Format => "shared-format",
        Label::CellsKept => "shared-cells",
        Label::Sparsity => "shared-sparsity",
        Label::FullBlocks => "shared-full",
        Label::PartialBlocks => "shared-partial",
        Label::EmptyBlocks => "shared-empty",
        Label::Backend => "shared-backend",
        Label::Ran => "shared-ran",
        Label::Median => "shared-median",
        Label::Spread => "shared-spread",
        Label::Versus => "shared-versus",
        Label::Memory => "shared-memory",
        Label::LargestError => "shared-error",
        Label::Allowed => "shared-allowed",
        Label::Kernel => "shared-kernel",
        Label::ForwardOnly => "shared-forward-only",
        Label::Backward => "shared-backward",
        Label::BackwardTime => "shared-backward-ms",
        Label::BothTimes => "shared-both-ms",
        Label::Worst => "shared-worst",
        Label::ItsError => "shared-its-error",
        Label::Refused => "shared-refused",
        Label::Failed => "shared-failed",
        Label::Wrong => "shared-wrong",
        Label::Baseline => "shared-baseline",
        Label::CardBefore => "shared-before",
        Label::CardAfter => "shared-after",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn english_is_the_page_s_own_and_the_others_have_words_of_their_own() {
        let from = Provenance::Reference;
        let texts = || {
            let labels = Label::ALL.map(Text::Label);
            let others = [
                Text::Heads(8, 64),
                Text::HeadsOver(32, 8, 128),
                Text::SparsityAt("75.0%".into(), "128".into()),
                Text::From(&from),
                Text::Title(&from),
                Text::Measures,
            ];
            labels.into_iter().chain(others)
        };
        for text in texts() {
            assert_eq!(told(Words::of(Language::English), &text), text.to_string());
        }
        // the field's own words are the same in some languages
        let same =
            [Label::Kernel, Label::Tokens, Label::Backend, Label::Backward, Label::BackwardTime, Label::BothTimes];
        let same = same.map(Text::Label);
        for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
            for text in texts().filter(|text| !same.contains(text)) {
                assert_ne!(told(Words::of(language), &text), text.to_string(), "{language:?}");
            }
        }
    }
}
