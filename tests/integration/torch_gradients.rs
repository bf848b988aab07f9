//! Gradients of exported modules in the user's own PyTorch: what the exported check says, and what training gets.

use crate::cli::Bench;
use crate::scripts::python_with;
use maskloom::worker::user_python::Python;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Exports a design of one text score mod and no mask; gives its folder. Its file stem is `lean`.
fn exported(bench: &Bench, text: &str) -> PathBuf {
    let content = serde_json::json!({ "kind": "text", "source": text, "entry": "", "args": {}, "tensors": {} });
    let document = serde_json::json!({
        "maskloom": 1, "name": "Lean", "axes": { "q": "tokens 40" }, "layers": [],
        "scores": [{ "id": 2, "name": "score", "enabled": true, "content": content }],
        "settings": { "batch": 1, "heads": 2, "kv_heads": 2, "head_dim": 16, "dtype": "f32", "layout": "bhsd",
                      "block_size": { "q": 16, "kv": 16 }, "seed": 0, "backends": ["eager"] },
    });
    bench.write("lean.json", &document.to_string());
    bench.run(&["export", "lean.json", "--to", "out", "--name", "lean"]).ok();
    bench.path("out")
}

fn said(python: &Python, args: &[&str], folder: &std::path::Path) -> Output {
    Command::new(&python.path).args(args).current_dir(folder).output().expect("Python runs")
}

/// One sentence on stderr, with these words, and the status of a check without a result.
#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{reported}");
    assert_eq!(reported.lines().count(), 1, "{reported}");
    for word in words {
        assert!(reported.contains(word), "no `{word}` in: {reported}");
    }
}

#[test]
fn gradients_that_cannot_be_computed_end_the_check_in_one_sentence() {
    let Some(python) = python_with(&["torch"]) else { return };
    let bench = Bench::new();
    let check = |folder: &std::path::Path| said(&python, &["lean_gradcheck.py", "--device", "cpu"], folder);
    let text = "def score_mod(score, b, h, q_idx, kv_idx):\n    return score + score // 2.0\n";
    let out = exported(&bench, text);
    refused(&check(&out), &["no gradient of query and key (", "floor_divide", "or exclude it from the gradient"]);
    // what is told as the export being incomplete
    std::fs::write(out.join("lean_kernel.py"), "open('kernels/launch.json')\n").expect("written");
    refused(&check(&out), &["lean_kernel.py cannot be imported", "the module alone is checked"]);
    std::fs::remove_file(out.join("lean.py")).expect("removed");
    refused(&check(&out), &["lean.py cannot be imported", "keep all files of the export in one folder"]);
}

#[test]
fn a_score_mod_that_ignores_the_score_trains_every_row() {
    let Some(python) = python_with(&["torch"]) else { return };
    let bench = Bench::new();
    let text = "import torch\nbias = torch.linspace(-1, 1, 40)\n\n\ndef score_mod(score, b, h, q_idx, kv_idx):\n    \
                return bias[kv_idx] * 2\n";
    let out = exported(&bench, text);
    let checked = said(&python, &["lean_gradcheck.py", "--device", "cpu"], &out);
    let reported = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && reported.contains("lean.attend, float32: bias"), "{reported}");
    let shape =
        "import lean, torch\nq = torch.zeros(1, 2, 40, 16, requires_grad=True)\nprint(lean.attend(q, q, q).shape)";
    let reported = said(&python, &["-c", shape], &out);
    assert_eq!(String::from_utf8_lossy(&reported.stdout), "torch.Size([1, 2, 40, 16])\n");
}

/// What runs in PyTorch 2.5, in any version: widened heads, and the CPU's own way.
#[test]
fn heads_of_any_width_run_in_the_first_flex_attention() {
    let Some(python) = python_with(&["torch"]) else { return };
    let bench = Bench::new();
    let text = "def score_mod(score, b, h, q_idx, kv_idx):\n    return score - (q_idx - kv_idx).abs()\n";
    let out = exported(&bench, text);
    let script = "import lean, torch\nlean._FIRST = True\nq = torch.randn(1, 2, 40, 24)\n\
                  one = lean._attention(q, q, q, lean.score_mod, None, 0.2, False, None)\n\
                  print(one.shape, torch.allclose(one, lean.attend(q, q, q, scale=0.2), atol=1e-5))";
    let reported = said(&python, &["-c", script], &out);
    let errors = String::from_utf8_lossy(&reported.stderr);
    assert_eq!(String::from_utf8_lossy(&reported.stdout), "torch.Size([1, 2, 40, 24]) True\n", "{errors}");
}
