//! What is recommended, from races whose times are known.

use super::*;
use crate::base::{BackendName, Device, Diagnostic};
use crate::problem::result::{
    BackendReport, ErrorStats, GradientOutcome, Outcome, OutputError, OutputName, RunReport, Timing, Timings, WorkStats,
};
use crate::tasks::recorded;
use crate::trainers::advice::{Attended, Measured, Question, advise};
use crate::trainers::config::Trainer;
use crate::trainers::effects::Setup;
use BackendName::*;

/// As a terminal in English has it.
fn render(advice: &Advice) -> String {
    super::render(Words::of(Language::English), advice)
}

fn report(times: &[(BackendName, f64, &str)]) -> RunReport {
    let one = |(backend, ms, kernel): &(BackendName, f64, &str)| {
        let off = if *kernel == "wrong" { 9.0 } else { 0.0 };
        let outputs = vec![OutputError::plain(OutputName::Out, off, 1.0)];
        let error = ErrorStats { outputs, rows_checked: 1, rows_total: 1, nan_rows: 0, worst: None };
        let timing = Some(Timing { samples_ms: vec![*ms], median_ms: *ms, spread: 0.01, calls: None });
        let outcome = match *kernel {
            "failed" => Outcome::Failed { why: Diagnostic::error("x", "y") },
            kernel => Outcome::Done {
                kernel: kernel.into(),
                error,
                timings: Timings::forward_only(timing),
                artefact: None,
                ready_ms: None,
                settled_ms: None,
                max_scores: Vec::new(),
                memory_bytes: None,
            },
        };
        BackendReport { backend: *backend, outcome }
    };
    RunReport {
        device_name: "NVIDIA H200".into(),
        device: Device::Cuda(0),
        environment: Default::default(),
        card: None,
        load: None,
        work: WorkStats::default(),
        backends: times.iter().map(one).collect(),
        gradients: Vec::new(),
        notes: vec![],
    }
}

/// In English, for a terminal.
fn english(advice: &Advice) -> Told {
    told(Words::of(Language::English), Reader::Terminal, advice)
}

fn ask<'a>(plain: Option<&'a RunReport>, designed: Option<&'a RunReport>) -> Question<'a> {
    let measured = |report| Measured { report, recorded: false };
    Question {
        plain: plain.map(measured),
        designed: designed.map(measured),
        has_design: designed.is_some(),
        measuring: Measuring::Command("maskloom run x".into()),
        ..Question::default()
    }
}

#[test]
fn without_a_measurement_it_says_what_to_run() {
    let advice = advise(&ask(None, None));
    assert_eq!((advice.forward, advice.must), (None, None));
    assert!(english(&advice).headline.contains("no recommendation"));
    assert!(english(&advice).next[0].contains("maskloom run x"), "{advice:?}");
    // the setting does not select our own kernels
    let own = report(&[(Flex, 0.1, "flex_sm90"), (FlashAttention2, 0.2, "flash_sm90")]);
    assert!(english(&advise(&ask(Some(&own), None))).headline.contains("no recommendation"));
}

#[test]
fn the_fastest_that_was_right_is_named_for_forward_and_never_for_training() {
    let run =
        report(&[(TorchSdpa, 2.0, "sdpa"), (Sdpa, 1.0, "cuDNN 9.19"), (TorchFlex, 0.5, "wrong"), (Flex, 0.2, "own")]);
    let advice = advise(&ask(Some(&run), None));
    assert_eq!(advice.forward, Some("cudnn"));
    assert!(english(&advice).headline.starts_with("forward"), "{advice:?}");
    assert!(
        english(&advice).next.iter().any(|n| n.starts_with("forward only") && n.contains("20 steps")),
        "{advice:?}"
    );
    let transformers = Question { trainer: Trainer::Transformers, ..ask(Some(&run), None) };
    let alone = advise(&transformers);
    assert_eq!(alone.forward, Some("sdpa"));
    assert!(
        english(&alone).headline.contains("only measured choice") && english(&alone).next[0].contains("maskloom run x"),
        "{alone:?}"
    );
    let both = report(&[(Sdpa, 1.0, "cuDNN 9.19"), (TorchSdpa, 1.01, "sdpa"), (TorchFlex, 3.0, "flex")]);
    let advice = advise(&Question { trainer: Trainer::Transformers, ..ask(Some(&both), None) });
    assert!(english(&advice).why[0].ends_with("sdpa 1.01 ms, flex_attention 3.00 ms"), "{advice:?}");
    let close = report(&[(TorchSdpa, 1.0, "sdpa"), (Sdpa, 1.02, "cuDNN 9.19")]);
    let advice = advise(&ask(Some(&close), None));
    assert!(advice.forward.is_none() && english(&advice).headline.contains("within 5%"), "{advice:?}");
}

#[test]
fn the_fastest_forward_and_backward_is_named_for_training() {
    use crate::problem::result::{GradientError, GradientReport};
    let mut run = report(&[(TorchSdpa, 2.0, "sdpa"), (TorchFlex, 1.0, "flex"), (TorchEager, 9.0, "eager")]);
    let done = |ms: f64, off: f64| GradientOutcome::Done {
        kernel: "k".into(),
        errors: vec![GradientError {
            name: "dq".into(),
            max_abs: off,
            largest: 1.0,
            allowed: 0.1,
            widest: 0.1,
            fault: None,
        }],
        timing: (off < 0.1).then(|| Timing { samples_ms: vec![ms], median_ms: ms, spread: 0.01, calls: None }),
        unordered: None,
        memory_bytes: None,
    };
    run.gradients = vec![
        GradientReport { backend: TorchSdpa, outcome: done(4.0, 0.0) },
        GradientReport { backend: TorchFlex, outcome: done(3.0, 0.5) },
        GradientReport { backend: TorchEager, outcome: done(30.0, 0.0) },
    ];
    let asked = Question { trainer: Trainer::Transformers, ..ask(Some(&run), None) };
    let advice = advise(&asked);
    let text = render(&advice);
    assert_eq!((advice.forward, advice.training), (Some("flex_attention"), Some("sdpa")));
    for word in
        ["sdpa 2.00 + 4.00 = 6.00 ms", "flex_attention computes wrong gradients (dq: error", "for training, `sdpa`"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("forward only"), "{text}");
}

#[test]
fn eager_is_answered_without_a_race() {
    let model = Attended { heads: 32, q_len: 8192, kv_len: 8192, axis: "tokens 8192" };
    let llama =
        Question { trainer: Trainer::Transformers, current: Some("eager"), model: Some(model), ..ask(None, None) };
    let advice = advise(&llama);
    assert!(english(&advice).headline.starts_with("set `attn_implementation` to `sdpa`"), "{advice:?}");
    assert!(english(&advice).why.iter().any(|w| w.contains("8.00 GiB")), "{advice:?}");
    let run = report(&[(TorchSdpa, 1.0, "sdpa"), (TorchFlex, 0.5, "flex"), (TorchEager, 9.0, "eager")]);
    let measured = Question { current: Some("eager"), model: Some(model), ..ask(Some(&run), None) };
    assert_eq!(advise(&Question { trainer: Trainer::Transformers, ..measured }).forward, Some("flex_attention"));
    let sdpa = Question { current: Some("sdpa"), ..llama };
    assert!(english(&advise(&sdpa)).headline.contains("no recommendation"));
}

#[test]
fn a_design_of_another_shape_is_told() {
    let plain = report(&[(TorchSdpa, 4.0, "sdpa")]);
    let designed = report(&[(TorchFlex, 2.0, "triton")]);
    let model = Attended { heads: 12, q_len: 32_760, kv_len: 32_760, axis: "video 21x30x52" };
    let design = Attended { heads: 24, q_len: 27_280, kv_len: 27_280, axis: "video 31x22x40" };
    let asked = Question { model: Some(model), design: Some(design), ..ask(Some(&plain), Some(&designed)) };
    let text = render(&advise(&asked));
    for word in
        ["24 heads over 27280", "12 heads over 32760", "--axes \"video 21x30x52\" --heads 12", "in its own shape"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("2.00x"), "{text}");
    let fitting = render(&advise(&Question { design: Some(model), ..asked }));
    assert!(fitting.contains("2.00x") && !fitting.contains("made for"), "{fitting}");
}

#[test]
fn how_weights_are_kept_is_no_format_of_attention() {
    let fp8 = Question { weights: Some("fp8-torchao"), ..ask(None, None) };
    assert!(english(&advise(&fp8)).why[0].contains("mixed_precision"));
    assert!(english(&advise(&Question { weights: Some("no_change"), ..ask(None, None) })).why.is_empty());
}

#[test]
fn families_and_formats_that_decide_by_themselves_do() {
    let run = report(&[(TorchSdpa, 2.0, "sdpa"), (TorchFlex, 1.0, "flex")]);
    let flux = Question { family: Some("flux"), ..ask(Some(&run), None) };
    let advice = advise(&flux);
    assert_eq!(advice.forward, Some("diffusers"));
    assert!(english(&advice).why[0].contains("`flex` has no effect there (SimpleTuner 4.10.1"), "{advice:?}");
    // cuDNN's kernel is reached by the trainer's restriction of SDPA
    let cudnn = report(&[(TorchSdpa, 2.0, "sdpa"), (Sdpa, 1.0, "cuDNN 9.19")]);
    assert_eq!(advise(&Question { family: Some("flux"), ..ask(Some(&cudnn), None) }).forward, Some("cudnn"));
    let fp32 = Question { current: Some("flex"), precision: Some("no"), ..ask(None, None) };
    let advice = advise(&fp32);
    assert_eq!(advice.must, Some("diffusers"));
    assert!(
        english(&advice).headline.contains("cannot work") && english(&advice).why[0].contains("bfloat16"),
        "{advice:?}"
    );
}

#[test]
fn a_value_that_leaves_layers_untrained_is_no_keeper() {
    let run = report(&[(TorchSdpa, 2.0, "sdpa")]);
    let setup = Setup { usage: Some("training+inference"), ..Setup::default() };
    let flux = Question { family: Some("flux"), current: Some("sageattention"), setup, ..ask(Some(&run), None) };
    let text = render(&advise(&flux));
    assert_eq!(advise(&flux).must, Some("diffusers"));
    for word in ["attention layers will not be trained", "ignores every mask", "SimpleTuner 4.10.1"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let validation = advise(&Question { setup: Setup::default(), ..flux });
    assert_eq!(validation.must, None);
    assert!(render(&validation).contains("acts in validation alone"), "{validation:?}");
}

#[test]
fn the_missing_backward_pass_is_maskloom_s_own() {
    use crate::problem::result::GradientReport;
    let mut run = report(&[(Sdpa, 1.0, "cuDNN 9.19"), (TorchSdpa, 2.0, "sdpa")]);
    let why = Diagnostic::error("no-backward", "sdpa has no backward pass on this device");
    run.gradients = vec![GradientReport { backend: Sdpa, outcome: GradientOutcome::Refused { why } }];
    let text = render(&advise(&ask(Some(&run), None)));
    assert!(text.contains("Maskloom's own `sdpa` measures forward passes only"), "{text}");
    assert!(!text.contains("cudnn has no backward"), "{text}");
    // of PyTorch's it is said once, not with the same reason behind it
    let why = Diagnostic::error("no-backward", "torch:sdpa has no backward pass on this device");
    run.gradients = vec![GradientReport { backend: TorchSdpa, outcome: GradientOutcome::Refused { why } }];
    let text = render(&advise(&ask(Some(&run), None)));
    assert_eq!(text.matches("no backward pass on this device").count(), 1, "{text}");
}

#[test]
fn a_design_is_held_against_the_dense_race_and_reaches_the_model_by_the_sidecar() {
    let plain = report(&[(TorchSdpa, 4.0, "sdpa")]);
    let designed = report(&[(Flex, 1.0, "flex_sm90"), (TorchFlex, 2.0, "triton")]);
    let text = render(&advise(&ask(Some(&plain), Some(&designed))));
    for word in ["1.00 ms by Maskloom's kernel", "4.00x the fastest without", "2.00x", "sidecar", "forward only"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

fn lines(of: &Told) -> impl Iterator<Item = &String> {
    [&of.headline].into_iter().chain(&of.why).chain(&of.next)
}

#[test]
fn advice_from_recorded_runs_is_told() {
    let run = recorded::embedded().iter().flat_map(|of| of.runs.values());
    let mut seen = std::collections::BTreeSet::new();
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
            measuring: Measuring::OpenAgain,
            ..Question::default()
        };
        let advice = advise(&question);
        let english = told(Words::of(Language::English), Reader::Window, &advice);
        for language in [Language::Chinese, Language::Spanish, Language::Hindi] {
            let other = told(Words::of(language), Reader::Window, &advice);
            for (own, english) in lines(&other).zip(lines(&english)) {
                assert_ne!(own, english, "{language:?}");
            }
        }
        seen.extend(lines(&english).cloned());
    }
    assert!(seen.len() > 100, "{}", seen.len());
}
