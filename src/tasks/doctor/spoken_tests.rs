//! The explanations in other languages: there for every entry, with its commands untouched, and given for messages inside any text.
//!
//! Invariant: what a user types or compares stays as it is. Must not know patterns.

use super::{Explanation, all, explain, render};
use crate::words::{Language, Words};
use std::collections::BTreeSet;

const OTHERS: [Language; 3] = [Language::Chinese, Language::Spanish, Language::Hindi];

/// Entries that are explained in English alone yet: the list shrinks.
const UNEXPLAINED: [&str; 0] = [];

/// What a translation may not change: code in backquotes, quoted values, options, variables, addresses, versions.
fn literal(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for mark in ['`', '"'] {
        found.extend(
            text.split(mark).skip(1).step_by(2).filter(|part| text.matches(*part).count() > 0 && !part.is_empty()),
        );
    }
    let word = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    for part in text.split(|c: char| !word(c)).map(|part| part.trim_end_matches(['.', ':'])) {
        let option = part.starts_with("--") && part.len() > 3;
        let variable =
            part.contains('_') && part.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let version = part.contains('.') && part.chars().all(|c| c.is_ascii_digit() || c == '.');
        if option || variable || version || part.starts_with("https://") {
            found.push(part);
        }
    }
    found
}

#[test]
fn every_entry_is_explained_in_every_language_with_its_commands_as_they_are() {
    let mut codes = BTreeSet::new();
    for entry in all().filter(|entry| !UNEXPLAINED.contains(&entry.code)) {
        codes.insert(entry.code);
        for language in OTHERS {
            let reported = Words::of(language).explanation(entry.code);
            let (cause, fix) = reported.unwrap_or_else(|| panic!("{language:?} does not explain {}", entry.code));
            for (english, own) in [(entry.cause, cause), (entry.fix, fix)] {
                let lost: Vec<_> = literal(english).into_iter().filter(|part| !own.contains(part)).collect();
                assert!(lost.is_empty(), "{language:?}, {}: {lost:?} is not in {own}", entry.code);
            }
        }
    }
    for language in OTHERS {
        let ids = Words::ids(language);
        let spoken = ids.keys().filter_map(|id| id.strip_prefix("doctor-")).filter(|id| !id.contains('.'));
        assert_eq!(spoken.collect::<BTreeSet<_>>(), codes, "{language:?}");
    }
    assert_eq!(
        literal("set `a b` to \"x\", --go NAME_OF=2, 2.15, https://x.y/z."),
        ["a b", "x", "--go", "NAME_OF", "2.15", "https://x.y/z"]
    );
}

/// A message stands in text of any language, against letters without spaces too.
#[test]
fn a_message_inside_text_of_any_language_is_found_and_answered_in_the_users() {
    let message = "ModuleNotFoundError: No module named 'triton'";
    let around = [
        format!("Training stops after the first step with {message}, what now?"),
        format!("训练时报错{message}，请问怎么解决"),
        format!("El entrenamiento se detiene con {message} y no sé qué hacer"),
        format!("प्रशिक्षण {message} के साथ रुक जाता है, क्या करूँ?"),
    ];
    let answers = [
        (Language::English, "  means: Compiled FlexAttention needs Triton"),
        (Language::Chinese, "  含义： 编译的 FlexAttention 需要 Triton"),
        (Language::Spanish, "  significa: FlexAttention compilado necesita Triton"),
        (Language::Hindi, "कंपाइल किए FlexAttention को Triton चाहिए"),
    ];
    for text in &around {
        for (language, want) in answers {
            let reported = render(text, Words::of(language));
            assert!(reported.starts_with("triton-missing\n") && reported.contains(want), "{text}: {reported}");
        }
    }
    let unknown = render("qwertyuiop", Words::of(Language::Spanish));
    assert!(unknown.starts_with("Este mensaje es desconocido") && unknown.contains("maskloom doctor"), "{unknown}");
}

/// A message of Maskloom itself says what is wrong; the answer says where, and begins with the sentence of its code.
#[test]
fn codes_of_maskloom_are_told_as_its_own_messages() {
    let printed = "error[cannot-read]: cannot read /home/me/.cache/torch/kernels/q.npy: denied\n  help: check the path";
    for text in [
        "cannot-read",
        "error[cannot-read]: ...",
        printed,
        "\u{1b}[31merror\u{1b}[0m[cannot-read]: x",
        "见[cannot-read]",
    ] {
        let Explanation::Known(found) = explain(text) else { panic!("{text}") };
        assert_eq!(found.iter().map(|e| e.code).collect::<Vec<_>>(), ["cannot-read"], "{text}");
        for (language, want) in [
            (Language::English, "cannot-read\n  means: A message of Maskloom itself: the text behind the code"),
            (Language::Chinese, "  含义： 文件无法读取。 这是 Maskloom 自己的消息"),
            (Language::Spanish, "significa: El archivo no se puede leer. Es un mensaje del propio Maskloom"),
            (Language::Hindi, "फ़ाइल पढ़ी नहीं जा सकती। यह Maskloom का अपना संदेश है"),
        ] {
            let reported = render(text, Words::of(language));
            assert!(reported.contains(want) && reported.contains("`help:`"), "{reported}");
        }
    }
    let codes = |text: &str| match explain(text) {
        Explanation::Known(found) => found.iter().map(|e| e.code).collect(),
        Explanation::Nearest(_) => Vec::new(),
    };
    assert_eq!(codes("no-such-file"), ["no-such-file"]);
    assert_eq!(codes("mod.py:2:9: error[syntax]: x\nwarning[config-untrained]: y"), ["syntax", "config-untrained"]);
    // entries of other messages stand before it, and one word in brackets is an index
    assert_eq!(codes("error[nvrtc-missing]: NVRTC was not found"), ["nvrtc-missing"]);
    assert!(codes("x[heads] = t[design] and no [end").is_empty());
    assert!(codes("[[[[ no-such-filer ]").is_empty());
}

/// Labels stand under each other, whatever their letters are wide.
#[test]
fn the_numbers_of_a_refused_shape_are_told_in_the_language() {
    let text = "RuntimeError: shape '[2, 24731, 128]' is invalid for input of size 151947264";
    let reported = render(text, Words::of(Language::Chinese));
    assert!(reported.contains("  这里： 151947264 / (2 x 24731 x 128) = 24：丢掉了"), "{reported}");
    let english = render(text, Words::of(Language::English));
    assert!(english.contains("  here:  151947264 / (2 x 24731 x 128) = 24: an axis of that length"), "{english}");
}
