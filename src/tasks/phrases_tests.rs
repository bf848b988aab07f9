//! Phrases as the engine says them, against the texts that they are found by.
//!
//! Invariant: what is translated comes from the engine here, never from the files of texts. Must not know who shows phrases.

use super::*;
use crate::document::edit::Edit;
use crate::tasks::{recorded, why};

fn spoken() -> [&'static Words; 2] {
    [Language::English, Language::Spanish].map(Words::of)
}

#[test]
fn titles_of_edits_are_known_and_stay_as_they_are_in_english() {
    let [english, spanish] = spoken();
    let edits = [
        Edit::Rename("a".into()),
        Edit::SetAbout("a".into()),
        Edit::Remove(1),
        Edit::SetName(1, "a".into()),
        Edit::SetEnabled(1, true),
        Edit::SetEnabled(1, false),
        Edit::SetHeads(1, None),
        Edit::SetArg(1, "window".into(), None),
        Edit::SetSource(1, "a".into()),
        Edit::Group(Vec::new()),
    ];
    for title in edits.iter().map(Edit::title) {
        assert_eq!(step(english, &title), title);
        assert_ne!(step(spanish, &title), title);
    }
    assert_eq!(step(spanish, "Change window"), "Cambiar window");
    assert_eq!(step(spanish, "Change the axes"), "Cambiar los ejes");
    assert_eq!(step(spanish, "Something else"), "Something else");
}

#[test]
fn holes_are_told_too_and_what_is_unknown_stays_english() {
    let [english, spanish] = spoken();
    let round = "timing round 3 of 10";
    assert_eq!((work(english, round).as_str(), work(spanish, "made up")), (round, "made up".into()));
    assert!(work(spanish, round).contains('3') && work(spanish, round).contains("10"));
    let share =
        "it computes 12.5% of the tiles; the other writes every score to memory; so short that launching counts";
    assert_eq!(reason(english, share), share);
    let told = reason(spanish, share);
    assert!(told.contains("12.5%") && !told.contains("tiles") && !told.contains("launching"), "{told}");
}

/// Reasons that recorded runs have are known.
#[test]
fn every_recorded_reason_is_known() {
    let [english, spanish] = spoken();
    let mut seen = 0;
    for run in recorded::embedded().iter().flat_map(|of| of.runs.values()) {
        let Some(base) = run.report.baseline() else { continue };
        for why in run.report.backends.iter().filter_map(|of| why::line(of, &base)) {
            assert_eq!(reason(english, &why), why);
            assert_ne!(reason(spanish, &why), why);
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

/// The other languages, as far as a phrase is told in them in other words, or is the same everywhere.
fn untold(tell: impl Fn(&'static Words, &str) -> String, phrases: impl IntoIterator<Item = String>) -> Vec<String> {
    let others = [Language::Chinese, Language::Spanish, Language::Hindi].map(Words::of);
    let same = |phrase: &String| others.iter().any(|said| tell(said, phrase) == *phrase);
    phrases.into_iter().filter(same).collect()
}

/// Ratios of recorded runs with all that makes them doubtful, and who ran.
#[test]
fn every_recorded_ratio_is_told_without_english_words() {
    let (english, chinese) = (Words::of(Language::English), Words::of(Language::Chinese));
    let (mut seen, mut hosts) = (0, 0);
    for run in recorded::embedded().iter().flat_map(|of| of.runs.values()) {
        let Some(base) = run.report.baseline() else { continue };
        for of in &run.report.backends {
            let Some(found) = run.report.versus(of.backend) else { continue };
            assert_eq!(versus(english, &found, Some(&base.words)), found.words_of(&base.words));
            assert_eq!(versus(english, &found, None), found.words());
            let told = versus(chinese, &found, Some(&base.words));
            let left = [" our ", "kernel", "spread", "overlap", "launch", "the other", "did not", "shown", "a call"];
            assert!(left.iter().all(|word| !told.contains(word)), "{told}");
            (seen, hosts) = (seen + 1, hosts + usize::from(found.host.is_some()));
        }
    }
    assert!(seen > 100 && hosts > 5, "{seen} ratios, {hosts} of them with a slow host");
    let doubts = vec!["intervals overlap".to_string(), "spread 41%".to_string()];
    let host = Some("the other is launch-bound: 1.22 ms a call, 0.550 ms on the GPU".to_string());
    let found = Versus { ratio: 1.284, shown: true, spread: 0.41, doubts, host };
    assert_eq!(
        versus(Words::of(Language::Spanish), &found, Some("our dense-mask kernel")),
        "1.28x nuestro kernel de máscara densa (los intervalos se solapan, dispersión 41%, el otro está limitado por el \
         lanzamiento: 1.22 ms por llamada, 0.550 ms en la GPU)"
    );
}

/// Words of verdicts that are other libraries' own messages.
const QUOTED: [&str; 5] = [
    "Flash Attention does not",
    "Expected query, key",
    "Flash attention requires",
    "NYI: Flex Flash Attention",
    "Input buffers require gradients",
];

#[test]
fn verdicts_on_presets_are_told() {
    use crate::document::{compile, from_document, library};
    use crate::tasks::verdicts::{Place, Verdict, verdicts_on_grid};
    let mut all = std::collections::BTreeSet::new();
    for name in ["sliding_window", "alibi", "t5_encoder"] {
        let document = library::preset(name).expect("there").document().expect("loads");
        let problem = from_document(&document, &compile::compile(&document, &compile::BuiltIn)).expect("compiles");
        for place in [Place::Cpu, Place::Gpu("sm_90a".into()), Place::Gpu("sm_120a".into())] {
            let found = verdicts_on_grid(&problem, document.axes.grid(), &place, &crate::base::Control::new());
            let words = |one: &Verdict| [one.forward.words().to_string(), one.backward.words().into()];
            all.extend(found.expect("a table").iter().flat_map(words));
        }
    }
    all.retain(|words| {
        !QUOTED.iter().any(|quoted| words.starts_with(quoted)) && !["causal", "causal, ALiBi"].contains(&&**words)
    });
    assert!(all.len() > 25, "{all:?}");
    assert_eq!(untold(verdict, all), [""; 0], "verdicts that are English everywhere");
}

#[test]
fn advice_from_recorded_runs_is_told() {
    use crate::trainers::advice::{Attended, Measured, Question, advise};
    let run = recorded::embedded().iter().flat_map(|of| of.runs.values());
    let mut lines = std::collections::BTreeSet::new();
    let attended = |heads, axis| Some(Attended { heads, q_len: 4096, kv_len: 4096, axis });
    for (n, run) in run.enumerate() {
        let measured = Some(Measured { report: &run.report, recorded: n % 2 == 0 });
        let question = Question {
            plain: measured.filter(|_| n % 3 != 1),
            designed: measured.filter(|_| n % 3 != 0),
            has_design: true,
            model: attended(8, "image 64x64"),
            design: attended(if n % 4 == 0 { 8 } else { 16 }, "image 64x64"),
            weights: Some("int8-quanto"),
            current: [None, Some("native-math"), Some("diffusers"), Some("flex")][n % 4],
            precision: Some("no"),
            command: "open the config.json again and race the choices that need no mask",
            ..Question::default()
        };
        let advice = advise(&question);
        lines.extend(advice.why.into_iter().chain(advice.next).chain([advice.headline]));
    }
    // what a release of the trainer does has a code of its own, and its sentence
    lines.retain(|line| !line.starts_with("the trainer ") && !line.starts_with("--axes"));
    let window = |said: &'static Words, line: &str| {
        advice(said, &line.replace("race torch:sdpa with --pass both", "race torch:sdpa with the backward pass too"))
    };
    assert!(lines.len() > 100, "{}", lines.len());
    assert_eq!(untold(window, lines), [""; 0], "advice that is English everywhere");
}

/// Every value of a setting in every kind of model that a release knows.
#[test]
fn what_a_setting_does_is_told_sentence_by_sentence() {
    use crate::trainers::effects::{Setup, meaning as of_setting};
    let values = [
        "diffusers",
        "cudnn",
        "native-math",
        "native-flash",
        "flash-attn",
        "flex",
        "kohaku",
        "sageattention",
        "xformers",
        "sla",
        "made-up",
    ];
    let (mut seen, said) = (0, Words::of(Language::Hindi));
    for value in values {
        for (family, usage) in
            [("flux", None), ("wan", Some("training")), ("sdxl", Some("inference+training")), ("no_such", None)]
        {
            let text = of_setting(value, Setup { family: Some(family), usage, ..Setup::default() });
            let told = meaning(said, &text);
            let english = text.split_inclusive(". ").filter(|sentence| told.contains(sentence.trim_end()));
            assert_eq!(english.collect::<Vec<_>>(), [""; 0], "{value} {family}");
            assert_eq!(meaning(Words::of(Language::English), &text), text);
            seen += text.matches(". ").count();
        }
    }
    assert!(seen > 40, "{seen}");
}

/// Names of proposals stand as literals where a mask is judged, reasons as texts with figures.
#[test]
fn proposals_are_told_by_name_reason_and_numbers() {
    use crate::quality::suggest::Form;
    let texts = [
        include_str!("../quality/suggest/assign.rs"),
        include_str!("../quality/suggest/blocks.rs"),
        include_str!("../quality/suggest/columns.rs"),
        include_str!("../quality/suggest/grid.rs"),
        include_str!("../quality/suggest/heads.rs"),
        include_str!("../quality/suggest/lines.rs"),
        include_str!("../quality/suggest/radial.rs"),
        include_str!("../quality/suggest/tiles.rs"),
        include_str!("../quality/suggest/window.rs"),
    ];
    let names = texts.iter().flat_map(|text| text.split("judge(\"").skip(1)).filter_map(|rest| rest.split('"').next());
    let names: Vec<String> =
        names.filter(|name| !["block list", "everything"].contains(name)).map(String::from).collect();
    assert!(names.len() > 11, "{names:?}");
    assert_eq!(untold(proposal, names), [""; 0]);
    let reasons = [
        "the last 512 keys keep 91.2% of the mass, the first 4 keys 3.1% more",
        "the last 512 keys keep 91.2% of the mass",
        "64 keys before and 32 after keep 80.0% of the mass, the first key 9.0% more",
        "2 groups of similar heads, each with the mask with the least loss for its blocks",
        "in each row of blocks, the 4 largest blocks and those with 90% of its mass: flat rows keep enough, skewed rows keep more than their peak",
        "3 frames, 9 rows and 9 columns around each query keep 88.0% of the mass",
    ];
    assert_eq!(untold(proposal, reasons.map(String::from)), [""; 0]);
    let window = Form::Window { back: 511, ahead: 0, sinks: 4, causal: true };
    let stripes = Form::Stripes { block: 64, columns: vec![[0, 1]], diagonals: vec![[0, 4]], causal: true };
    assert_eq!(untold(proposal, [window, stripes].map(|form| form.words())), [""; 0]);
    assert_eq!(
        proposal(Words::of(Language::Chinese), reasons[0]),
        "最后 512 个键保留 91.2% 的质量，前 4 个键再多 3.1%"
    );
}

/// Names and descriptions of all ways over several GPUs.
#[test]
fn ways_over_several_gpus_are_told() {
    let paths = include_str!("../parallel/paths.rs");
    let words = |rest: &'static str| rest.split_once(',')?.1.trim_start().strip_prefix('"')?.split('"').next();
    let fates = paths.split("Fate::").skip(1).filter_map(words);
    let fates: Vec<String> = fates.filter(|words| words.contains(' ')).map(String::from).collect();
    assert!(fates.len() > 6, "{fates:?}");
    assert_eq!(untold(over_gpus, fates), [""; 0]);
}

/// Every pattern and each of its parameters, and none that is gone.
#[test]
fn every_pattern_has_its_help_in_every_language() {
    use crate::document::library;
    let mut wanted = std::collections::BTreeSet::new();
    for pattern in library::patterns() {
        wanted.insert(format!("pattern-{}", pattern.name));
        let doc = pattern.text.split("\"\"\"").nth(1).unwrap_or_default();
        let lines = doc.split_once("Args:").map_or("", |(_, lines)| lines).lines();
        let names = lines.filter_map(|line| Some(line.trim().split_once(':')?.0));
        wanted.extend(names.map(|name| format!("pattern-{}.{name}", pattern.name)));
    }
    assert!(wanted.len() > 200, "{}", wanted.len());
    for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
        let ids = Words::ids(language).into_keys().filter(|id| id.starts_with("pattern-"));
        assert_eq!(ids.collect::<std::collections::BTreeSet<_>>(), wanted, "{language:?}");
    }
    let hindi = Words::of(Language::Hindi);
    assert_eq!(hindi.parameter("causal", "offset"), Some("key के बीच पहली query का स्थान"));
    assert!(Words::of(Language::English).pattern("causal").is_none());
}
