//! The Python package of this tree, as it is installed in the Python of the tests: its results beside PyTorch's, its words, its pages.
//!
//! Invariant: without the package a test is skipped, and fails where the package was promised. Must not know how it is built.

use crate::cli::Bench;
use crate::scripts::{python_with, said_with, script};
use maskloom_testing::needs;
use std::process::Command;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// What a script of the package says; None where the package is missing.
#[track_caller]
fn reported(name: &str, args: &[&str]) -> Option<String> {
    let python = python_with(&["torch"])?;
    said_with("package", script(&python, name).args(args))
}

#[track_caller]
fn tells(name: &str, args: &[&str], words: &str) {
    if let Some(text) = reported(name, args) {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn block_masks_of_the_package_have_pytorchs_arrays() {
    let Some(_gym) = python_with(&["torch", "attn-gym"]) else { return };
    let data = [format!("{DATA}/torch_masks.json"), format!("{DATA}/make_gym_cases.py")];
    tells("package_masks.py", &[&data[0], &data[1]], "block masks have PyTorch's arrays");
}

#[test]
fn the_package_refuses_in_words() {
    tells("package_refusals.py", &[], "every refusal has its words");
}

#[test]
fn attention_of_the_package_has_the_gradients_of_the_formula() {
    tells("package_attention.py", &[], "have the gradients and results of the float64 formula");
}

/// Results need a card: `package_on_a_card.py`.
#[test]
fn calls_on_a_gpu_are_prepared_once_and_launched_as_they_say() {
    tells("package_gpu.py", &[], "rules of calls on a GPU hold");
}

#[test]
fn attention_of_the_package_compiles_to_one_graph() {
    tells("package_compile.py", &[], "compiled calls have one graph");
}

#[test]
fn the_package_works_with_this_pytorch() {
    tells("package_versions.py", &[], "the package works with PyTorch");
}

#[test]
fn packed_documents_and_designs_of_the_package_have_the_programs_blocks() {
    let work = tempfile::tempdir().expect("a folder");
    let args = [env!("CARGO_BIN_EXE_maskloom"), work.path().to_str().expect("UTF-8")];
    tells("package_documents.py", &args, "have PyTorch's block masks");
}

#[test]
fn attention_over_ranks_is_that_of_one_process() {
    tells("package_ranks.py", &[], "4 processes: 20 masks of the library and 50 random ones as in one process");
}

/// Wrong input of one rank, and a rank that fails on the way: every rank raises alike, and nobody waits.
#[test]
fn a_fault_of_one_rank_is_an_error_of_all() {
    tells("package_rank_faults.py", &[], "a rank that dies, forward and backward, is an error of the others");
}

/// MagiAttention's own Python is asked where `MASKLOOM_MAGI` names its folder.
#[test]
fn plans_for_magiattention_are_the_masks() {
    tells("package_magi.py", &[], "masks are their slices");
}

#[test]
fn masked_calls_in_sequences_that_others_divide_are_told() {
    let Some(_models) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    tells("package_divided.py", &[], "are refused or told, and no others");
}

#[test]
fn torchtitans_losses_over_ranks_are_those_of_one_process() {
    let Some(text) = reported("package_torchtitan.py", &[]) else { return };
    // .ci/run does not install it
    let left_out = text.starts_with("left out: torchtitan is not installed");
    assert!(left_out || text.contains("are those of one process"), "{text}");
}

/// Every example of the page runs in the order of the page.
#[test]
fn the_page_about_the_package_is_true() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/python.md");
    tells("package_pages.py", &[page], "examples ran");
}

/// Masks, caches and arguments of each registry beside a model's own attention, and the probe that finds a lost mask.
#[test]
fn integrations_of_the_package_have_the_mask() {
    let Some(_models) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    tells("package_integrations.py", &[], "every integration has the mask");
}

/// Layers that make masks of their own, and documents that come beside the mask.
#[test]
fn masks_that_models_change_are_kept_or_refused() {
    let Some(_models) = python_with(&["torch", "transformers"]) else { return };
    tells("package_transformers.py", &[], "is there or refused");
}

/// Ten models or more of each registry, ten steps each, with the losses of PyTorch's attention.
#[test]
fn models_train_through_the_registries() {
    let Some(_models) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    tells("package_training.py", &["10", "transformers", "diffusers"], "models train through each integration");
}

#[test]
#[ignore = "trains 80 tiny models: each week"]
fn models_train_through_every_integration() {
    let Some(_models) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    tells("package_training.py", &["10"], "models train through each integration");
}

#[test]
fn the_page_about_integrations_is_true() {
    let Some(_models) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/integrations.md");
    tells("package_pages.py", &[page], "examples ran");
}

/// Pictures, explained cells, the shared page and the program's answers beside their definitions.
#[test]
fn notebooks_show_what_masks_are() {
    let capture = format!("{DATA}/captures/lm.safetensors");
    tells("package_notebook.py", &[env!("CARGO_BIN_EXE_maskloom"), &capture], "notebooks show what masks are");
}

#[test]
fn the_page_about_notebooks_is_true() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/notebook.md");
    tells("package_pages.py", &[page], "examples ran");
}

#[test]
fn the_packages_bench_prints_its_rows() {
    let Some(text) = reported("package_bench.py", &["2048"]) else { return };
    let reported: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
    let rows = reported["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 5, "{text}");
    assert!(rows.iter().all(|row| row["ms"].as_f64().is_some_and(|ms| ms > 0.0)), "{text}");
}

/// `python -m maskloom` is the program.
#[test]
fn the_package_brings_the_program() {
    let Some(python) = python_with(&["torch"]) else { return };
    let bench = Bench::new();
    let ran = Command::new(&python.path).args(["-m", "maskloom", "presets"]).output().expect("Python runs");
    if String::from_utf8_lossy(&ran.stderr).contains("No module named maskloom") {
        return needs::missing("package", "the Python package is not installed: pip install .");
    }
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), bench.run(&["presets"]).ok().out);
}
