//! The user's own PyTorch, end to end: as a baseline in a race, and as the source of real q, k and v.

use crate::cli::Bench;
use maskloom::service::user_python::{self, Python};
use std::process::Command;

/// The Python to use if it has these packages, else a word on stderr.
pub fn python_with(packages: &[&str]) -> Option<Python> {
    let found = user_python::find().filter(|p| packages.iter().all(|name| p.packages.contains_key(*name)));
    if found.is_none() {
        // diffusers and transformers are not among what CI installs
        let what = if packages.iter().all(|p| ["torch", "attn-gym"].contains(p)) { "torch" } else { "models" };
        maskloom_testing::needs::missing(what, &format!("no Python with {}; set MASKLOOM_PYTHON", packages.join(", ")));
    }
    found
}

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

/// Compiled models, grouped heads, other packages' functions, masks, checkpointing, limits.
#[test]
fn capture_sees_what_runs_and_fills_no_memory() {
    let Some(python) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let work = tempfile::tempdir().expect("a folder");
    let said = Command::new(&python.path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/capture.py"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/python/maskloom_capture.py"))
        .arg(work.path())
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && text.contains("all captured"), "{text}{}", String::from_utf8_lossy(&said.stderr));
}

/// Block masses, row statistics, histograms against float64; files of killed runs, of groups, larger than memory.
#[test]
fn statistics_of_a_capture_are_exact_and_its_file_whole() {
    let Some(python) = python_with(&["torch", "diffusers", "transformers", "safetensors"]) else { return };
    let work = tempfile::tempdir().expect("a folder");
    let said = Command::new(&python.path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/capture_statistics.py"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/python/maskloom_capture.py"))
        .arg(work.path())
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&said.stdout);
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && text.contains("all statistics agree"), "{text}{errors}");
}

/// A folder with a preset exported over 80 tokens.
fn exported(bench: &Bench, preset: &str, args: &[&str]) -> std::path::PathBuf {
    let size: &[&str] = if args.contains(&"--axes") { &[] } else { &["--seq", "80"] };
    let args = [&["export", preset, "--heads", "2", "--kv-heads", "2", "--to", "out"], size, args].concat();
    bench.run(&args).ok();
    bench.path("out")
}

#[test]
fn the_sidecar_masks_training_that_knows_nothing_of_it() {
    let Some(python) = python_with(&["torch", "diffusers"]) else { return };
    let bench = Bench::new();
    let out = exported(&bench, "sliding_window", &["--arg", "window=20"]);
    std::fs::create_dir(bench.path("work")).expect("a folder");
    let said = Command::new(&python.path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/sidecar.py"))
        .args([&out, &bench.path("work")])
        .args(["flux", "wan", "plain"])
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    // once more by `accelerate launch`, if it is installed
    assert!([3, 4].contains(&text.lines().filter(|l| l.contains("mask active in")).count()), "{text}");
}

#[test]
fn adapters_put_the_design_into_models_and_take_it_out_again() {
    let Some(python) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let bench = Bench::new();
    let out = exported(&bench, "sliding_window", &["--arg", "window=20"]);
    let said = Command::new(&python.path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/adapters.py"))
        .arg(&out)
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(text.lines().filter(|l| l.contains("from dense")).count(), 6, "{text}");
}

/// Two families of each kind: with their own mask, and with transformers' other arguments. The whole table: `python
/// tests/python/matrix.py EXPORT`.
#[test]
fn what_a_model_brings_counts_beside_the_design() {
    let Some(python) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let bench = Bench::new();
    let out = exported(&bench, "sliding_window", &["--arg", "window=20"]);
    let said = Command::new(&python.path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/matrix.py"))
        .arg(&out)
        .args(["--only", "qwen_padded,chroma,sd3_dual,gpt_oss,gemma2,t5_encoder"])
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(text.lines().filter(|l| l.starts_with("equal")).count(), 12, "{text}");
}

/// Every way in which a mask could be missing from a model, or another one in it, without a word.
#[test]
fn no_mask_is_missing_from_a_model_without_a_word() {
    let Some(python) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let work = tempfile::tempdir().expect("a folder");
    let said = Command::new(&python.path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/behaviour.py"))
        .args([env!("CARGO_BIN_EXE_maskloom").as_ref(), work.path().as_os_str()])
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && text.contains("all behave"), "{text}{}", String::from_utf8_lossy(&said.stderr));
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
    let Some(python) = python_with(&["torch", "transformers"]) else { return };
    let bench = Bench::new();
    bench.write("save.py", SAVED);
    let folder = bench.path("save.py").parent().expect("a folder").to_path_buf();
    let said = Command::new(&python.path).arg("save.py").current_dir(&folder).output().expect("Python runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let kept = |file: &str| {
        bench.run(&["import", file, "--to", "made.json", "--force"]).ok();
        let told = bench.run(&["blocks", "made.json", "--json"]).ok().json();
        (told["q_len"].as_u64(), told["density"].as_f64().map(|d| (d * 96.0 * 96.0).round()))
    };
    let triangle = Some(f64::from(96 * 97 / 2));
    for file in ["dense.pt", "hf.pt", "packed.npz"] {
        assert_eq!(kept(file), (Some(96), triangle), "{file}");
    }
    // blocks of 32: the diagonal and two below it, each whole
    assert_eq!(kept("blocks.pt"), (Some(96), Some(f64::from(6 * 32 * 32))));
    bench.run(&["import", "padding.pt", "--to", "made.json", "--force"]).ok();
    let told = bench.run(&["blocks", "made.json", "--json"]).ok().json();
    assert_eq!(told["density"].as_f64().map(|d| (d * 192.0).round()), Some(f64::from(192 - 30)), "{told}");
    bench.run(&["import", "two.pt"]).fails(1, &["import-torch", "several tensors"]);
}

/// Skipped in words where Python lacks a tool.
#[test]
fn exported_python_is_clean() {
    let Some(python) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let bench = Bench::new();
    let out = exported(&bench, "natten_2d", &["--axes", "text 16 | image 8x8"]);
    let said = Command::new(&python.path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/clean.py"))
        .arg(&out)
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    for tool in ["ruff", "mypy"] {
        let ran = text.contains(&format!("{tool}: clean"));
        assert!(ran || text.contains(&format!("skipped: no {tool}")), "{text}");
    }
}

/// The clock of races over a GPU that is imitated: a slow host is no slow kernel.
#[test]
fn pytorchs_kernels_are_timed_apart_from_their_host() {
    let Some(python) = python_with(&[]) else { return };
    let said = Command::new(&python.path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/clock.py"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/python"))
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(
        said.status.success() && text.contains("tells the GPU from its host"),
        "{text}{}",
        String::from_utf8_lossy(&said.stderr)
    );
}

/// The operators of a kernel bundle: gradients, compilation, checkpointing, fakes, and every launch's parameters.
#[test]
fn a_kernel_bundle_trains_in_pytorch() {
    let Some(python) = python_with(&["torch"]) else { return };
    if std::env::var_os("MASKLOOM_NVRTC").is_none() {
        return maskloom_testing::needs::missing("nvrtc", "MASKLOOM_NVRTC names no NVRTC");
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
    for (folder, script, end) in runs {
        let said = Command::new(&python.path)
            .arg(format!("{}/tests/python/{script}", env!("CARGO_MANIFEST_DIR")))
            .arg(bench.path(folder))
            .arg("lean")
            .output()
            .expect("Python runs");
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success() && text.contains(end), "{text}{}", String::from_utf8_lossy(&said.stderr));
    }
}

/// LoRA, DDP, FSDP with checkpointing, transformers' Trainer; those whose packages are missing say so.
#[test]
fn ways_of_training_keep_the_mask() {
    let Some(python) = python_with(&["torch", "diffusers", "transformers"]) else { return };
    let bench = Bench::new();
    let out = exported(&bench, "sliding_window", &["--arg", "window=20"]);
    let said = Command::new(&python.path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/training.py"))
        .arg(&out)
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(
        said.status.success() && text.contains("all ways equal"),
        "{text}{}",
        String::from_utf8_lossy(&said.stderr)
    );
}
