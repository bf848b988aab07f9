//! Languages agree in ids and figures; variables choose among them.

use super::{Language, Words};

/// Texts that are English in every language yet, sorted: the list shrinks.
const UNTRANSLATED: [&str; 0] = [];

/// English is what all have; a language has no text of its own that English lacks, but the sentences over English messages and the help of patterns and presets.
#[test]
fn every_language_has_every_text_with_the_same_figures() {
    let english = Words::ids(Language::English);
    assert!(english.len() > 200, "{}", english.len());
    for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
        let own = Words::ids(language);
        let missing: Vec<&str> = english.keys().map(String::as_str).filter(|id| !own.contains_key(*id)).collect();
        assert_eq!(missing, UNTRANSLATED, "left: what {language:?} lacks");
        let over =
            |id: &&String| ["refusal-", "doctor-", "pattern-", "preset-"].iter().any(|begins| id.starts_with(begins));
        let more: Vec<_> = own.keys().filter(|id| !english.contains_key(*id) && !over(id)).collect();
        assert!(more.is_empty(), "{language:?} alone has {more:?}");
        let differ: Vec<_> =
            english.iter().filter(|(id, figures)| own.get(*id).is_some_and(|own| own != *figures)).collect();
        assert!(differ.is_empty(), "{language:?} has other figures than {differ:?}");
    }
}

/// Sentences over English messages, ways out and help are the same in all languages but English.
#[test]
fn what_english_says_elsewhere_is_said_in_all_the_others() {
    let own = |language| {
        let english = Words::ids(Language::English);
        let ids = Words::ids(language).into_keys().filter(move |id| !english.contains_key(id));
        ids.collect::<Vec<String>>()
    };
    let chinese = own(Language::Chinese);
    assert!(chinese.iter().filter(|id| id.ends_with(".hint")).count() > 280, "{}", chinese.len());
    assert_eq!((own(Language::Spanish), own(Language::Hindi)), (chinese.clone(), chinese));
    let words = Words::of(Language::Spanish);
    let hint = Some("free space, or save elsewhere");
    assert_eq!(words.way_out("disk-full", hint).map(|hint| hint.starts_with("Libere espacio")), Some(true));
    assert_eq!((words.way_out("disk-full", None), words.way_out("no-such-code", hint)), (None, None));
    assert_eq!((words.preset("no-such"), Words::of(Language::English).way_out("disk-full", hint)), (None, None));
}

#[test]
fn a_text_and_its_figures_are_those_of_the_language() {
    let (english, spanish) = (Words::of(Language::English), Words::of(Language::Spanish));
    assert_eq!((english.text("menu-file"), spanish.text("menu-file")), ("File", "Archivo"));
    let step = |words: &Words| words.with("lesson-step", &[("n", 2.into()), ("all", 5.into())]);
    assert_eq!((step(english), step(spanish)), ("step 2 of 5".into(), "paso 2 de 5".into()));
    assert_eq!(english.refusal("no-window"), None);
}

#[test]
fn variables_choose_as_gettext_does() {
    let of = |set: &[(&str, &str)]| {
        Language::of_variables(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_string()))
    };
    assert_eq!(of(&[]), Language::English);
    assert_eq!(of(&[("LANG", "zh_CN.UTF-8")]), Language::Chinese);
    assert_eq!(of(&[("LANG", "zh_CN.UTF-8"), ("LC_MESSAGES", "es_MX")]), Language::Spanish);
    assert_eq!(of(&[("LANG", "es"), ("LC_ALL", "C.UTF-8"), ("LANGUAGE", "hi")]), Language::English);
    assert_eq!(of(&[("LANG", "de_DE.UTF-8"), ("LANGUAGE", "fr:hi:es")]), Language::Hindi);
    assert_eq!(of(&[("LANG", "de_DE.UTF-8")]), Language::English);
    assert_eq!(of(&[("LANGUAGE", "hi")]), Language::English);
    assert_eq!(of(&[("LANG", ""), ("LC_MESSAGES", "hi_IN")]), Language::Hindi);
}
