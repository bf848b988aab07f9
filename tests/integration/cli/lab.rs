//! The mask lab on the command line, on captures of small trained models: from a capture to an exported mask for each
//! head.
//!
//! Invariant: a figure that one command prints is compared with another command's, or with PyTorch's own.

use super::Bench;
use crate::scripts::{python_with, said, script};
use serde_json::Value;

fn capture(name: &str) -> String {
    format!("{}/tests/data/captures/{name}.safetensors", env!("CARGO_MANIFEST_DIR"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn a_capture_becomes_a_mask_of_each_head_in_an_export() {
    let bench = Bench::new();
    let file = capture("lm");
    let atlas = bench.run(&["atlas", &file, "--json", "--out", "atlas.png", "--page", "atlas.html"]).ok().json();
    assert_eq!(atlas["heads"].as_array().unwrap().len(), 8, "{atlas}");
    assert!(std::fs::read(bench.path("atlas.png")).unwrap().starts_with(b"\x89PNG"));
    let layer = ["--layer", "blocks.2.attn"];
    let args = ["suggest", &file, "--mass", "0.9", "--masks", "4", "--out", "masks", "--page", "masks.html", "--json"];
    let found = bench.run(&[&args[..], &layer[..]].concat()).ok().json();
    let proposals = found["proposals"].as_array().unwrap_or_else(|| panic!("{found}"));
    assert!(proposals.len() >= 5);
    // `quality` finds the proposed measures in the written document
    for (name, of) in [("heads_under_one_budget", "heads under one budget"), ("window_sinks", "window + sinks")] {
        let proposal = proposals.iter().find(|p| p["name"] == of).unwrap_or_else(|| panic!("no {of}: {found}"));
        let document = format!("masks/{name}.json");
        let judged = bench.run(&[&["quality", &document, &file, "--json"], &layer[..]].concat()).ok().json();
        let heads = judged["calls"][0]["heads"].as_array().unwrap();
        let mean = heads.iter().map(|h| number(&h["measures"]["mass"]["mean"])).sum::<f64>() / heads.len() as f64;
        assert!((mean - number(&proposal["mass"])).abs() < 1e-5, "{of}: {mean}, {proposal}");
    }
    let routers =
        bench.run(&[&["suggest", &file, "--routers", "--out", "routers", "--json"], &layer[..]].concat()).ok();
    assert!(routers.out.contains("sub-block LSE") && bench.path("routers/router_sub_block_LSE.json").exists());
    let document = "masks/heads_under_one_budget.json";
    let page = [&["quality", document, &file, "--page", "loss.html", "--picture", "loss.png"], &layer[..]].concat();
    bench.run(&page).ok();
    let text = std::fs::read_to_string(bench.path("loss.html")).unwrap();
    assert!(text.contains("<h2>Atlas</h2>") && text.contains("rel L1"));
    let missed = [&["quality", document, &file, "--min-mass", "0.9999"], &layer[..]].concat();
    bench.run(&missed).fails(1, &["mass-too-low", "below 0.9999"]);
    let missed = [&["quality", document, &file, "--max-error", "0.0001"], &layer[..]].concat();
    bench.run(&missed).fails(1, &["error-too-high", "above 0.0001"]);
    bench.run(&["export", document, "--to", "out", "--name", "lab"]).ok();
    assert!(bench.path("out/lab.py").exists() && bench.path("out/lab_blocks.safetensors").exists());
}

#[test]
fn a_device_measures_what_the_sweep_here_measures() {
    let bench = Bench::new();
    let file = capture("lm");
    bench.run(&["suggest", &file, "--mass", "0.9", "--masks", "4", "--out", "masks"]).ok();
    // one launch for all heads, one a head where masks differ, and blocks that the lengths cut
    for document in [
        &["sliding_window", "--seq", "512", "--arg", "window=100"][..],
        &["masks/heads_under_one_budget.json"],
        &["causal", "--seq", "512", "--block-size", "96"],
    ] {
        let run = |more: &[&str]| {
            let args = [&["quality"], &document[..1], &[file.as_str(), "--json"], &document[1..], more].concat();
            bench.run(&args).ok().json()
        };
        let (here, there) = (run(&[]), run(&["--device", "cpu"]));
        assert!(
            number(&there["calls"][0]["launches"]["masked_ms"]) > 0.0 && here["calls"][0].get("launches").is_none()
        );
        let heads = |of: &Value| of["calls"][0]["heads"].as_array().unwrap().clone();
        assert!(heads(&here).len() >= 2);
        for (a, b) in heads(&here).iter().zip(&heads(&there)) {
            assert_eq!(a["head"], b["head"]);
            for at in [
                "/mass/mean",
                "/mass/p5",
                "/mass/min",
                "/ceiling",
                "/regret",
                "/error/relative_l1",
                "/error/row_p99",
                "/error/cosine",
                "/error/dropped",
            ] {
                let of = |v: &Value| number(v["measures"].pointer(at).unwrap_or_else(|| panic!("no {at}: {v}")));
                assert!((of(a) - of(b)).abs() < 2e-4, "{document:?} {at}: {a} {b}");
            }
            assert_eq!(a["measures"]["cost"], b["measures"]["cost"], "{document:?}");
            assert!(number(&a["measures"]["mass"]["mean"]) > 0.2);
        }
    }
    bench.run(&["quality", "causal", &file, "--seq", "512", "--device", "cuda:77"]).fails(1, &["error[gpu-"]);
}

#[test]
fn pytorch_finds_the_same_losses_under_the_exported_mask() {
    let Some(python) = python_with(&["torch"]) else { return };
    let bench = Bench::new();
    let file = capture("lm");
    bench.run(&["suggest", &file, "--mass", "0.9", "--masks", "4", "--out", "masks"]).ok();
    let document = "masks/heads_under_one_budget.json";
    bench.run(&["export", document, "--to", "out", "--name", "lab"]).ok();
    let judged = bench.run(&["quality", document, &file, "--json"]).ok();
    bench.write("judged.json", &judged.out);
    let given = [bench.path("out/lab.py"), bench.path("judged.json"), file.into()];
    let Some(text) = said(script(&python, "lab.py").args(given)) else { return };
    assert!(text.contains("all measures agree"), "{text}");
}

#[test]
fn what_is_wrong_with_a_capture_ends_with_words() {
    let bench = Bench::new();
    let whole = std::fs::read(capture("lm")).unwrap();
    std::fs::write(bench.path("cut.safetensors"), &whole[..100_000]).unwrap();
    for command in
        [&["atlas", "cut.safetensors"][..], &["suggest", "cut.safetensors"], &["quality", "causal", "cut.safetensors"]]
    {
        bench.run(command).fails(1, &["capture-cut-off", "of 296728 bytes are missing"]);
    }
    bench.run(&["quality", "causal", &capture("lm"), "--seq", "256"]).fails(1, &["capture-length", "has 512 x 512"]);
    bench.run(&["suggest", &capture("lm"), "--layer", "9"]).fails(1, &["capture-call", "it has blocks.1.attn.step0"]);
    bench.run(&["atlas", "no.safetensors"]).fails(1, &["no.safetensors"]);
    let other =
        bench.run(&["quality", "causal", &capture("lm"), "--seq", "512", "--heads", "2", "--kv-heads", "2"]).ok();
    assert!(
        other.err.contains("capture-model") && other.err.contains("has 4 heads, 4 kv heads of 16"),
        "{}",
        other.err
    );
}
