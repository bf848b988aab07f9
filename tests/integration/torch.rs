//! The user's own PyTorch, end to end: as a baseline in a race, and as the source of real q, k and v.

use crate::cli::Bench;
use crate::scripts::{exported, python_with, said, script};
use maskloom_testing::needs;
use std::process::Command;

#[test]
fn pytorchs_sdpa_races_on_presets() {
    let Some(python) = python_with(&["torch"]) else { return };
    let python = python.path.display().to_string();
    // causal; a mask that only a dense one can say; a bias that falls with the distance
    for preset in ["causal", "sliding_window", "alibi"] {
        let ran = Bench::new().run(&[
            "run",
            preset,
            "--seq",
            "256",
            "--heads",
            "2",
            "--kv-heads",
            "2",
            "--backend",
            "torch:eager,torch:sdpa,flex",
            "--device",
            "cpu",
            "--rounds",
            "2",
            "--python",
            &python,
            "--json",
        ]);
        let ran = ran.ok();
        let backends = ran.json()["backends"].as_array().expect("backends").clone();
        assert_eq!(backends.len(), 3, "{}", ran.out);
        for backend in &backends {
            assert_eq!(backend["outcome"], "done", "{preset}: {backend}");
        }
        let kernel = backends[1]["kernel"].as_str().expect("words");
        assert!(kernel.starts_with("torch ") && kernel.contains("SDPA"), "{kernel}");
        assert!(backends[2]["error"]["worst"]["ratio"].as_f64().is_some_and(|ratio| ratio <= 1.0));
        assert!(backends[1]["ran"].as_str().is_some_and(|ran| ran.starts_with("PyTorch ") && ran.contains(" SDPA")));
    }
}

/// Neither a mask nor a score mod: nothing else of PyTorch is imported before its gradients are asked for.
#[test]
fn full_attention_has_a_backward_pass_in_pytorch() {
    let Some(python) = python_with(&["torch"]) else { return };
    let python = python.path.display().to_string();
    let given = ["run", "wan_full", "--axes", "video 2x8x8", "--heads", "2", "--dtype", "f32", "--pass", "both"];
    let how =
        ["--backend", "torch:eager,torch:sdpa", "--device", "cpu", "--rounds", "1", "--python", &python, "--json"];
    let ran = Bench::new().run(&[&given[..], &how].concat()).ok();
    let gradients = ran.json()["gradients"].as_array().expect("gradients").clone();
    assert_eq!(gradients.len(), 2, "{}", ran.out);
    for found in &gradients {
        assert_eq!(found["outcome"], "done", "{found}");
    }
}

#[test]
fn pytorch_gets_its_own_numbers_back_from_exported_modules() {
    let Some(python) = python_with(&["torch"]) else { return };
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/conform.json");
    let python = python.path.display().to_string();
    let said = |backend: &str| {
        let args = ["conform", file, "--device", "cpu", "--backend", backend, "--python", &python, "--json"];
        let ran = Bench::new().run(&args).ok();
        let cases = ran.json()["cases"].as_array().expect("cases").clone();
        let refused = cases.iter().filter(|c| c["verdict"] == "refused").map(|c| c["name"].to_string()).collect();
        (cases.len(), refused)
    };
    assert_eq!(said("torch:eager"), (11, Vec::<String>::new()));
    // its score mod scales, which no bias can
    assert_eq!(said("torch:sdpa"), (11, vec!["\"where_score\"".to_string()]));
}

const TINY_LLAMA: &str = r#"
import sys
import torch
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(int(sys.argv[1]))
config = LlamaConfig(hidden_size=128, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
                     num_key_value_heads=2, vocab_size=64)
LlamaForCausalLM(config).eval().generate(torch.randint(0, 64, (1, 96)), max_new_tokens=2, do_sample=False)
"#;

#[test]
fn what_a_model_attends_with_is_captured_and_run() {
    let Some(python) = python_with(&["torch", "transformers"]) else { return };
    let bench = Bench::new();
    bench.write("model.py", TINY_LLAMA);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/python/maskloom_capture.py");
    let file = bench.path("qkv.safetensors");
    let said = Command::new(&python.path)
        .arg(script)
        .args(["--layers", "layers.1", "--steps", "0", "--dtype", "bfloat16", "--out"])
        .arg(&file)
        .args(["model.py", "7"])
        .current_dir(file.parent().expect("a folder"))
        .output()
        .expect("Python runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let prefix = "model.layers.1.self_attn.step0";
    let names = ["q", "k", "v"].map(|n| format!("{prefix}.{n}")).join(",");
    let ran = bench.run(&[
        "run",
        "causal",
        "--seq",
        "96",
        "--inputs",
        "qkv.safetensors",
        "--names",
        &names,
        "--backend",
        "flex",
        "--device",
        "cpu",
        "--rounds",
        "0",
        "--json",
    ]);
    let ran = ran.ok();
    let backend = &ran.json()["backends"][0];
    assert_eq!(backend["outcome"], "done", "{}", ran.out);
    // heads and head_dim came from the file: 4 query heads of 32, in 2 groups
    assert!(ran.err.contains("heads 4") && ran.err.contains("kv_heads 2"), "{}", ran.err);
}

/// A script of the exported Python's own tests, on a window of 20 of 80 tokens; what it printed.
fn on_a_window(name: &str, arguments: &[&str]) -> Option<String> {
    let python = python_with(&["torch", "diffusers", "transformers"])?;
    let bench = Bench::new();
    let out = exported(&bench, "sliding_window", &["--arg", "window=20"]);
    said(script(&python, name).arg(&out).args(arguments))
}

/// Compiled models, grouped heads, other packages' functions, masks, checkpointing, limits.
#[test]
fn capture_sees_what_runs_and_fills_no_memory() {
    let Some(text) = of_captures("capture.py") else { return };
    assert!(text.contains("all captured"), "{text}");
}

/// Block masses, row statistics, histograms against float64; files of killed runs, of groups, larger than memory.
#[test]
fn statistics_of_a_capture_are_exact_and_its_file_whole() {
    let Some(text) = of_captures("capture_statistics.py") else { return };
    assert!(text.contains("all statistics agree"), "{text}");
}

/// A script that tests captures; what it printed.
fn of_captures(name: &str) -> Option<String> {
    let python = python_with(&["torch", "diffusers", "transformers"])?;
    let work = tempfile::tempdir().expect("a folder");
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/python/maskloom_capture.py");
    said(script(&python, name).arg(tool).arg(work.path()))
}

#[test]
fn the_sidecar_masks_training_that_knows_nothing_of_it() {
    let work = tempfile::tempdir().expect("a folder");
    let work = work.path().to_str().expect("UTF-8");
    // each kind of model is half a minute of processes of its own
    let kinds: &[&str] = if needs::all_cases() { &["flux", "wan", "plain"] } else { &["flux", "plain"] };
    let Some(text) = on_a_window("sidecar.py", &[&[work], kinds].concat()) else { return };
    // the first once more by `accelerate launch`
    assert_eq!(text.lines().filter(|l| l.contains("mask active in")).count(), kinds.len() + 1, "{text}");
}

#[test]
fn adapters_put_the_design_into_models_and_take_it_out_again() {
    let Some(text) = on_a_window("adapters.py", &[]) else { return };
    assert_eq!(text.lines().filter(|l| l.contains("from dense")).count(), 6, "{text}");
}

/// Every family, with its own mask and with transformers' other arguments, by adapter and by sidecar.
#[test]
fn what_a_model_brings_counts_beside_the_design() {
    let Some(text) = on_a_window("matrix.py", &[]) else { return };
    let count = |word: &str| text.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!((count("absent "), count("reported "), count("FAILED ")), (0, 0, 0), "{text}");
    assert!(count("equal ") >= 52 && count("equal adapter") == count("equal sidecar"), "{text}");
}

/// Every family and every way of training.
#[test]
#[ignore = "minutes: every family of models; each week's run has it"]
fn the_page_of_models_is_printed_and_no_row_fails() {
    let Some(python) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let work = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_maskloom");
    let mut printed = script(&python, "models.py");
    let Some(page) = said(printed.arg(program).arg(work.path()).arg(&python.path)) else { return };
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ") && line.contains("off by")).collect();
    assert!(rows.len() > 30, "{page}");
    let other = rows[1..]
        .iter()
        .filter(|row| !row.contains("| equal |") && !row.contains("off by, ") && !row.ends_with("| off by |"));
    assert_eq!(other.count(), 0, "{page}");
}

/// Checks of `behaviour.py` that take many seconds each, most of them other processes: they are left to `MASKLOOM_ALL_CASES`.
const EACH_WEEK: [&str; 16] = [
    "-a_compiled_model_is_compared_in_chosen_layers",
    "-buckets_and_trimmed_prompts_have_their_own_mask",
    "-compiled_before_and_after",
    "-compiled_blocks_of_one_design_follow_the_grid",
    "-many_shapes_stay_fused",
    "-a_saved_model_has_its_design_in_another_process",
    "-a_script_runs_without_the_design_and_with_it",
    "-models_and_masks_can_be_pickled",
    "-models_with_adapters_go_through_torch_export",
    "-modules_go_through_torch_export",
    "-modules_learn_spread_over_processes_as_in_one",
    "-spawned_processes_and_data_loaders_get_designs",
    "-the_sidecar_compiles_whole",
    "-what_cannot_be_compared_is_an_error",
    "-what_the_sidecar_saved_has_its_design_where_the_sidecar_is_on_the_path",
    "-wrong_settings_are_told_at_the_start",
];

/// Every way in which a mask could be missing from a model, or another one in it, without a word: where an adapter is applied by hand.
#[test]
fn no_mask_is_missing_from_a_model_with_an_adapter_without_a_word() {
    behave(&["in_adapters"], 24);
}

/// The same in calls of libraries and in other processes. Several tests run beside each other where one would run alone at the end.
#[test]
fn no_mask_is_missing_from_a_model_without_a_word() {
    behave(&["-in_adapters", "-in_sidecar", "-in_trainers"], 53);
}

/// The same where only the environment names the design: processes of their own, which take most of the time.
#[test]
fn no_mask_is_missing_under_the_sidecar_without_a_word() {
    behave(&["in_sidecar"], 10);
}

/// The same where a trainer replaces attention later.
#[test]
fn no_mask_is_missing_under_a_trainer_without_a_word() {
    behave(&["in_trainers"], 4);
}

/// The checks of these modules of `behaviour.py`, or of all but `-MODULE`, of which there are so many.
#[track_caller]
fn behave(modules: &[&str], checks: usize) {
    let Some(python) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let work = tempfile::tempdir().expect("a folder");
    let mut run = script(&python, "behaviour.py");
    run.arg(env!("CARGO_BIN_EXE_maskloom")).arg(work.path()).args(modules);
    if !needs::all_cases() {
        println!("of all checks {} are left out; all with MASKLOOM_ALL_CASES=1", EACH_WEEK.len());
        run.args(EACH_WEEK);
    }
    let Some(text) = said(&mut run) else { return };
    let ok = text.lines().filter(|line| line.starts_with("ok ")).count();
    let left = text.lines().filter(|line| line.starts_with("left out ")).count();
    assert!(text.contains("all behave") && ok + left == checks, "{ok} and {left} of {checks}: {text}");
}

const SAVED: &str = r#"
import numpy, torch
from torch.nn.attention.flex_attention import create_block_mask

def near(b, h, q_idx, kv_idx):
    return (q_idx - kv_idx < 40) & (q_idx >= kv_idx)

torch.save(create_block_mask(near, None, None, 96, 96, device="cpu", BLOCK_SIZE=32), "blocks.pt")
cells = torch.ones(96, 96, dtype=torch.bool).tril()
torch.save({"other": torch.zeros(3), "attn_mask": cells.t().contiguous().t()}, "dense.pt")
torch.save(torch.where(cells, 0.0, float("-inf")).half()[None, None], "hf.pt")
numpy.savez_compressed("packed.npz", mask=cells.numpy(), other=numpy.zeros(2))
real = torch.ones(2, 96, dtype=torch.long)
real[1, :30] = 0
torch.save({"attention_mask": real}, "padding.pt")
torch.save({"a": torch.zeros(3, 3), "b": torch.zeros(3, 3)}, "two.pt")
"#;

/// Masks as PyTorch and NumPy save them become documents cell by cell, and block lists keep their BLOCK_SIZE.
#[test]
fn saved_masks_are_imported() {
    let Some(python) = python_with(&["torch"]) else { return };
    let bench = Bench::new();
    bench.write("save.py", SAVED);
    let folder = bench.path("save.py").parent().expect("a folder").to_path_buf();
    let said = Command::new(&python.path).arg("save.py").current_dir(&folder).output().expect("Python runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let kept = |file: &str| {
        bench.run(&["import", file, "--to", "made.json", "--force"]).ok();
        let reported = bench.run(&["blocks", "made.json", "--json"]).ok().json();
        (reported["problem"]["q_len"].as_u64(), reported["density"].as_f64().map(|d| (d * 96.0 * 96.0).round()))
    };
    let triangle = Some(f64::from(96 * 97 / 2));
    for file in ["dense.pt", "hf.pt", "packed.npz"] {
        assert_eq!(kept(file), (Some(96), triangle), "{file}");
    }
    // blocks of 32: the diagonal and two below it, each whole
    assert_eq!(kept("blocks.pt"), (Some(96), Some(f64::from(6 * 32 * 32))));
    bench.run(&["import", "padding.pt", "--to", "made.json", "--force"]).ok();
    let reported = bench.run(&["blocks", "made.json", "--json"]).ok().json();
    assert_eq!(reported["density"].as_f64().map(|d| (d * 192.0).round()), Some(f64::from(192 - 30)), "{reported}");
    bench.run(&["import", "two.pt"]).fails(1, &["import-torch", "several tensors"]);
}

#[test]
fn exported_python_is_clean() {
    let Some(python) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let bench = Bench::new();
    let out = exported(&bench, "natten_2d", &["--axes", "text 16 | image 8x8", "--to-cudnn", "--to-magi"]);
    let Some(text) = said(script(&python, "clean.py").arg(&out)) else { return };
    // the modules, and the sidecar
    assert_eq!(text.lines().collect::<Vec<_>>(), ["ruff: clean", "mypy: clean", "mypy: clean"]);
}

/// The clock of races over a GPU that is imitated: a slow host is no slow kernel.
#[test]
fn pytorchs_kernels_are_timed_apart_from_their_host() {
    let Some(python) = python_with(&["torch"]) else { return };
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/python");
    let Some(text) = said(script(&python, "clock.py").arg(assets)) else { return };
    assert!(text.contains("tells the GPU from its host"), "{text}");
}

/// Masks as the numbers of other libraries, in the calls that these define; and NVIDIA's racer.
#[test]
fn masks_leave_in_the_forms_of_other_libraries() {
    let Some(python) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let work = tempfile::tempdir().expect("a folder");
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/python");
    let mut command = script(&python, "lowered.py");
    let Some(text) = said(command.arg(env!("CARGO_BIN_EXE_maskloom")).arg(work.path()).arg(assets)) else { return };
    assert!(text.contains("8 masks keep their cells in every form"), "{text}");
}

/// The operators of a kernel bundle: gradients, compilation, checkpointing, fakes, and every launch's parameters.
#[test]
fn a_kernel_bundle_trains_in_pytorch() {
    let Some(python) = python_with(&["torch"]) else { return };
    if std::env::var_os("MASKLOOM_NVRTC").is_none() {
        return needs::missing("nvrtc", "MASKLOOM_NVRTC names no NVRTC");
    }
    let bench = Bench::new();
    let text = "import torch\nslopes = torch.tensor([0.5, 0.25])\n\n\ndef score_mod(score, b, h, q_idx, kv_idx):\n    \
                return score - slopes[h] * (q_idx - kv_idx)\n";
    let content = serde_json::json!({ "kind": "text", "source": text, "entry": "", "args": {}, "tensors": {} });
    let causal = serde_json::json!({ "kind": "pattern", "name": "causal", "args": {} });
    let document = serde_json::json!({
        "maskloom": 1, "name": "Lean", "axes": { "q": "tokens 80" },
        "layers": [{ "id": 1, "name": "Causal", "enabled": true, "combine": "and", "content": causal }],
        "scores": [{ "id": 2, "name": "slopes", "enabled": true, "content": content }],
        "settings": { "batch": 1, "heads": 2, "kv_heads": 2, "head_dim": 64, "dtype": "bf16", "layout": "bhsd",
                      "block_size": { "q": 128, "kv": 128 }, "seed": 0, "backends": ["flex"] },
    });
    bench.write("lean.json", &document.to_string());
    bench.run(&["export", "lean.json", "--to", "out", "--name", "lean", "--kernels=sm_80,sm_90a"]).ok();
    let ordered = ["export", "lean.json", "--to", "ordered", "--name", "lean", "--kernels=sm_80,sm_90a"];
    bench.run(&[&ordered[..], &["--deterministic"]].concat()).ok();
    let launches = ("launches.py", "the launches have their parameters");
    let runs = [
        ("out", "bundle.py", "the bundle trains"),
        ("out", launches.0, launches.1),
        ("ordered", launches.0, launches.1),
    ];
    for (folder, name, end) in runs {
        let Some(text) = said(script(&python, name).arg(bench.path(folder)).arg("lean")) else { return };
        assert!(text.contains(end), "{text}");
    }
}

/// Compiled and checkpointed, LoRA, DDP, FSDP with checkpointing, transformers' Trainer.
#[test]
fn ways_of_training_keep_the_mask() {
    let Some(text) = on_a_window("training.py", &[]) else { return };
    assert!(text.contains("all ways equal") && text.lines().filter(|l| l.starts_with("equal")).count() == 6, "{text}");
}
