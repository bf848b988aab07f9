//! Run files after damage, and after saving and opening.

use super::*;
use crate::base::Device;
use crate::document::compile::{BuiltIn, compile};
use crate::document::model::{MaskContent, ScoreContent};
use crate::document::testing;
use crate::problem::result::*;
use crate::tasks::plan;
use std::collections::BTreeMap;

fn run(median_ms: f64) -> RunFile {
    let mut document = testing::empty("tokens 96");
    document.layers.push(testing::layer(1, MaskContent::Band { lo: Some(0), hi: None }));
    document.scores.push(testing::score(2, ScoreContent::Curve { points: vec![(0.0, 0.0), (96.0, -1.0)] }));
    let compiled = compile(&document, &BuiltIn);
    let problem = crate::document::from_document(&document, &compiled).unwrap();
    let request = plan::run_request(&problem, &document.settings, Device::Cpu);
    let rows = [(OutputName::Out, f64::NAN), (OutputName::Lse, f64::INFINITY)];
    let outputs = rows.map(|(name, max_abs)| OutputError::plain(name, max_abs, 1e-3)).to_vec();
    let error = ErrorStats { outputs, ..ErrorStats::default() };
    let timing = Some(Timing { samples_ms: vec![median_ms], median_ms, spread: 0.02, calls: None });
    let outcome = Outcome::Done {
        kernel: "cpu flex".into(),
        error,
        timings: Timings::forward_only(timing),
        artefact: None,
        ready_ms: Some(12.5),
        settled_ms: Some(900.0),
        max_scores: [0.5, f64::NEG_INFINITY].map(HeadMaximum).to_vec(),
        memory_bytes: Some(9 << 20),
    };
    let refused = Outcome::Refused { why: Diagnostic::error("no", "no").hint("none") };
    let report = RunReport {
        device_name: "cpu".into(),
        device: Device::Cpu,
        environment: BTreeMap::from([("os".into(), "linux".into())]),
        card: None,
        load: None,
        work: WorkStats::default(),
        backends: vec![
            BackendReport { backend: BackendName::Flex, outcome },
            BackendReport { backend: BackendName::Sdpa, outcome: refused },
        ],
        gradients: Vec::new(),
        notes: vec![],
    };
    RunFile::new(&document, &compiled, &request, report)
}

#[test]
fn a_saved_run_opens_equal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let saved = run(1.5);
    saved.save(&path).unwrap();
    let back = RunFile::open(&path).unwrap();
    // NaN is not equal to itself; the text is
    assert_eq!(back.to_json().unwrap(), saved.to_json().unwrap());
    let mask = &back.pictures[0];
    assert_eq!((mask.title.as_str(), mask.width, mask.rows.len()), ("mask", 64, 64));
    let pixels = mask.pixels();
    assert_eq!((pixels[0] > 0.4, pixels[63], pixels[63 * 64]), (true, 0.0, 1.0));
    assert_eq!(back.pictures[1].title, "bias");
}

/// Saved by version 1: one timing a backend, errors as fields.
const VERSION_1: &str = include_str!("../../tests/data/run_version_1.json");

#[test]
fn a_run_of_version_1_opens_as_tables() {
    let run = RunFile::from_json(VERSION_1).unwrap();
    assert_eq!(run.maskloom_run, 1);
    let old: serde_json::Value = serde_json::from_str(VERSION_1).unwrap();
    let mut compared = 0;
    for (report, old) in run.report.backends.iter().zip(old["report"]["backends"].as_array().unwrap()) {
        let Outcome::Done { error, .. } = &report.outcome else { continue };
        compared += 1;
        assert!(error.passed(), "{error:?}");
        assert_eq!(Some(error.max_abs()), old["error"]["max_abs"].as_f64());
        assert_eq!(Some(error.allowed()), old["error"]["allowed"].as_f64());
        assert_eq!(error.max_abs_of(&OutputName::Lse), old["error"]["lse_max_abs"].as_f64());
        assert_eq!(report.outcome.forward().map(|t| t.median_ms), old["timing"]["median_ms"].as_f64());
    }
    assert!(compared >= 2, "{compared}");
    // saved again it has this version and the same data
    let saved = run.to_json().unwrap();
    let again = RunFile::from_json(&saved).unwrap();
    assert_eq!((again.maskloom_run, &again.report), (RUN_VERSION, &run.report));
    assert!(!saved.contains("lse_max_abs"));
}

#[test]
fn damage_is_told() {
    let text = run(1.0).to_json().unwrap();
    let code = |text: &str| RunFile::from_json(text).unwrap_err().code.to_string();
    assert_eq!(code(""), "run-file");
    assert_eq!(code("{}"), "run-file");
    assert_eq!(code("{\"maskloom\": 1}"), "run-file");
    assert_eq!(code(&text.replace("\"maskloom_run\": 2", "\"maskloom_run\": 9")), "run-file-version");
    assert_eq!(code(&text.replace("\"median_ms\": 1.0", "\"median_ms\": true")), "run-file");
    assert_eq!(code(&text.replace("tokens 96", "tokens 1099511627776")), "run-file");
    #[cfg(target_os = "linux")]
    assert_eq!(run(1.0).save(Path::new("/dev/full")).unwrap_err().code, "disk-full");
}

#[test]
fn runs_are_compared_backend_by_backend() {
    let (changes, differences) = compare(&run(2.0), &run(1.0));
    assert_eq!((changes[0].forward.speed_up, changes[0].forward.significant), (Some(2.0), true));
    assert_eq!((changes[1].forward.before_ms, changes[1].forward.speed_up), (None, None));
    assert!(differences.is_empty());
    assert!(!compare(&run(2.0), &run(2.01)).0[0].forward.significant);
    let mut other = run(1.0);
    other.document.settings.heads = 4;
    assert_eq!(compare(&run(1.0), &other).1, ["heads: 2/1 before, 4/1 after"]);
}

#[test]
fn a_run_knows_the_problem_that_it_is_of() {
    let saved = run(1.0);
    let problem = |document: &Document| {
        crate::document::from_document(document, &compile(document, &BuiltIn)).unwrap().spec().clone()
    };
    assert_eq!(saved.is_of(&problem(&saved.document)), Some(true));
    let mut wider = saved.document.clone();
    wider.layers[0].content = MaskContent::Band { lo: Some(-1), hi: None };
    assert_eq!(saved.is_of(&problem(&wider)), Some(false));
    // of files of older versions it is not known
    let mut value: serde_json::Value = serde_json::from_str(&saved.to_json().unwrap()).unwrap();
    value.as_object_mut().unwrap().remove("fingerprint");
    let old = RunFile::from_json(&value.to_string()).unwrap();
    assert_eq!(old.is_of(&problem(&saved.document)), None);
    // two runs with the same name and shape but different masks are reported as different
    let other = RunFile { fingerprint: Some(problem(&wider).fingerprint()), ..run(1.0) };
    let (_, differences) = compare(&saved, &other);
    assert!(differences.len() == 1 && differences[0].starts_with("mask, score mods or settings"), "{differences:?}");
}

#[test]
fn backward_passes_are_compared_too() {
    let with = |median_ms: f64| {
        let mut run = run(1.0);
        let timing = Some(Timing { samples_ms: vec![median_ms; 3], median_ms, spread: 0.0, calls: None });
        let outcome = GradientOutcome::Done {
            kernel: "cpu flex".into(),
            errors: vec![],
            timing,
            unordered: None,
            memory_bytes: None,
        };
        run.report.gradients.push(GradientReport { backend: BackendName::Flex, outcome });
        run
    };
    let (changes, _) = compare(&with(6.0), &with(2.0));
    let back = changes[0].backward.as_ref().expect("a backward pass");
    assert_eq!((back.before_ms, back.after_ms, back.speed_up), (Some(6.0), Some(2.0), Some(3.0)));
    assert!(back.significant && changes[1].backward.is_none());
    let value = serde_json::to_value(&changes[0]).unwrap();
    assert!(value["before_ms"].is_number() && value["backward"]["speed_up"] == 3.0, "{value}");
    let one_sided = compare(&with(6.0), &run(1.0)).0;
    assert_eq!(one_sided[0].backward.as_ref().map(|b| (b.before_ms, b.after_ms)), Some((Some(6.0), None)));
}

#[test]
fn lengths_are_compared_in_words() {
    let mut longer = run(1.0);
    longer.document.axes.q = "tokens 128".parse().unwrap();
    assert_eq!(compare(&run(1.0), &longer).1, ["lengths: 96 x 96 before, 128 x 128 after"]);
}
