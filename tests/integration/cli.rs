//! The real binary, command by command, on the cpu. Documents here are made of shapes, so that nothing but the command
//! line and the service is on trial.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder with documents, and the binary run in it.
pub struct Bench {
    folder: tempfile::TempDir,
}

/// What a run said.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    #[track_caller]
    pub fn ok(self) -> Ran {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn fails(self, code: i32, words: &[&str]) -> Ran {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in:\n{}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}", self.out))
    }
}

const BAND: &str = r#"{
  "maskloom": 1, "name": "Band", "axes": {"q": "tokens 300"},
  "layers": [{"id": 1, "name": "Band", "enabled": true, "combine": "and", "content": {"kind": "band", "lo": 0, "hi": 63}}],
  "scores": [{"id": 2, "name": "Fall", "enabled": true, "content": {"kind": "curve", "points": [[0, 0.0], [64, -1.0]]}}],
  "settings": {"batch": 1, "heads": 4, "kv_heads": 2, "head_dim": 32, "dtype": "bf16", "block_size": {"q": 64, "kv": 64},
               "backends": ["eager", "sdpa", "flash_attention_2", "flex"]}
}"#;

impl Bench {
    pub fn new() -> Bench {
        let bench = Bench { folder: tempfile::tempdir().expect("a folder") };
        bench.write("band.json", BAND);
        bench.write(
            "plain.json",
            &BAND.replace(
                "\"enabled\": true, \"content\": {\"kind\": \"curve\"",
                "\"enabled\": false, \"content\": {\"kind\": \"curve\"",
            ),
        );
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maskloom"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        for gone in ["DISPLAY", "WAYLAND_DISPLAY", "MASKLOOM_PRESETS", "MASKLOOM_PATTERNS"] {
            command.env_remove(gone);
        }
        command.env("MASKLOOM_CACHE", self.path("cache"));
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().expect("the binary starts");
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A table's shape: digits as `0`, so that only words and columns remain.
fn shape(table: &str) -> Vec<String> {
    let number = |word: &str| word.chars().any(|c| c.is_ascii_digit());
    let line = |l: &str| l.split_whitespace().map(|w| if number(w) { "0" } else { w }).collect::<Vec<_>>().join(" ");
    table.lines().map(line).collect()
}

#[test]
fn a_race_is_told_saved_reported_and_compared() {
    let bench = Bench::new();
    let ran = bench
        .run(&[
            "run",
            "band.json",
            "--device",
            "cpu",
            "--rounds",
            "2",
            "--save-run",
            "run.json",
            "--out",
            "out.safetensors",
        ])
        .ok();
    let lines = shape(&ran.out);
    assert!(lines[0].starts_with("Band: 0 x 0 0 kv) heads x 0 x 0 tokens, head_dim 0 0 on cpu"), "{}", ran.out);
    assert!(lines[3].starts_with("backend median spread GFLOP/s vs eager error allowed lse kernel"), "{}", ran.out);
    assert!(lines[4].starts_with("eager 0 ms 0 0 0 0 0 0 "), "{}", ran.out);
    assert!(lines[5].starts_with("flex 0 ms 0 0 0 0 0 0 "), "{}", ran.out);
    assert!(ran.out.contains("sdpa: refused [score-mod-unsupported]"), "{}", ran.out);
    assert!(ran.out.contains("flash_attention_2: refused") && ran.out.contains("  help: "), "{}", ran.out);

    let saved = std::fs::read(bench.path("out.safetensors")).expect("outputs");
    let tensors = safetensors::SafeTensors::deserialize(&saved).expect("safetensors");
    assert_eq!(tensors.tensor("flex.out").expect("flex.out").shape(), [1, 4, 300, 32]);
    assert_eq!(tensors.tensor("eager.lse").expect("eager.lse").shape(), [1, 4, 300]);

    let report = bench.run(&["report", "run.json"]).ok().out;
    assert!(report.starts_with("# Band\n") && report.contains("| flex | ") && report.contains("```text\n"), "{report}");
    let compared = bench.run(&["report", "run.json", "--compare", "run.json", "--json"]).ok().json();
    assert_eq!(compared["changes"][3]["speed_up"], 1.0);
    bench.run(&["report", "band.json"]).fails(1, &["error[run-file]", "--save-run"]);
    bench.run(&["report", "none.json"]).fails(1, &["error[no-such-file]"]);
}

#[test]
fn a_race_as_json_is_one_object_and_overrides_change_it() {
    let bench = Bench::new();
    let args = ["run", "plain.json", "--device", "cpu", "--backend", "flex,sdpa", "--rounds", "1", "--json"];
    let ran =
        bench.run(&[&args[..], &["--seq", "200", "--kv-seq", "129", "--heads", "2", "--dtype", "f32"]].concat()).ok();
    let json = ran.json();
    assert_eq!((json["problem"]["q_len"].as_u64(), json["problem"]["kv_len"].as_u64()), (Some(200), Some(129)));
    assert_eq!((json["problem"]["heads"].as_u64(), json["problem"]["kv_heads"].as_u64()), (Some(2), Some(2)));
    assert_eq!(json["backends"][0]["backend"], "flex");
    for backend in json["backends"].as_array().expect("a list") {
        assert_eq!(backend["outcome"], "done", "{backend}");
        assert!(backend["error"]["max_abs"].as_f64() <= backend["error"]["allowed"].as_f64(), "{backend}");
        assert!(backend["timing"]["median_ms"].as_f64().expect("timed") > 0.0);
    }
    // kept cells of the band: distances 0..=63 inside 200 x 129
    let kept: u64 = (0..200u64).map(|q| (0..129).filter(|kv| q >= *kv && q - kv <= 63).count() as u64).sum();
    let density = json["work"]["density"].as_f64().expect("a density");
    assert!((density - kept as f64 / (200.0 * 129.0)).abs() < 1e-12);
    assert_eq!(json["succeeded"], true);
}

fn inputs(bench: &Bench, name: &str, dtype: safetensors::Dtype, tokens: usize) {
    use safetensors::tensor::TensorView;
    let view = |heads: usize| {
        let shape = vec![1, tokens, heads, 16];
        let bytes = vec![0x3c; shape.iter().product::<usize>() * dtype.bitsize() / 8];
        (shape, bytes)
    };
    type Named = (String, (Vec<usize>, Vec<u8>));
    let all: Vec<Named> =
        [("query", 6), ("key", 2), ("value", 2)].into_iter().map(|(n, h)| (n.to_string(), view(h))).collect();
    let views = all.iter().map(|(n, (s, b))| (n.clone(), TensorView::new(dtype, s.clone(), b).expect("a tensor")));
    std::fs::write(bench.path(name), safetensors::serialize(views, None).expect("a file")).expect("written");
}

#[test]
fn q_k_and_v_come_from_a_file_by_names_and_layout() {
    let bench = Bench::new();
    inputs(&bench, "qkv.safetensors", safetensors::Dtype::F16, 300);
    inputs(&bench, "short.safetensors", safetensors::Dtype::F16, 200);
    inputs(&bench, "ints.safetensors", safetensors::Dtype::I32, 300);
    let run = |file: &str, names: &str, more: &[&str]| {
        let args = [
            "run",
            "band.json",
            "--device",
            "cpu",
            "--rounds",
            "0",
            "--backend",
            "flex",
            "--inputs",
            file,
            "--names",
            names,
            "--layout",
            "bshd",
        ];
        bench.run(&[&args[..], more].concat())
    };
    let fine = run("qkv.safetensors", "query,key,value", &["--json"]).ok();
    assert!(fine.err.contains("note[inputs-fit]") && fine.err.contains("heads 6"), "{}", fine.err);
    assert_eq!(fine.json()["problem"]["dtype"], "f16");
    run("qkv.safetensors", "q,k,v", &[])
        .fails(1, &["error[input-name]", "no tensor named `q`", "it holds: key, query, value"]);
    run("short.safetensors", "query,key,value", &[]).fails(1, &["error[input-shape]", "query is [1, 6, 200, 16]"]);
    run("short.safetensors", "query,key,value", &["--seq", "200"]).ok();
    run("ints.safetensors", "query,key,value", &[]).fails(1, &["error[input-dtype]", "int32"]);
    run("band.json", "query,key,value", &[]).fails(1, &["error[safetensors]"]);
    run("none.safetensors", "query,key,value", &[]).fails(1, &["error[no-such-file]"]);
    run("qkv.safetensors", "query,key", &[]).fails(2, &["three names"]);
}

#[test]
fn blocks_are_counted_and_written() {
    let bench = Bench::new();
    let args = ["blocks", "band.json", "--block-size", "100", "--json"];
    let json = bench.run(&[&args[..], &["--out", "blocks.safetensors"]].concat()).ok().json();
    // a band of 64 in three rows of 100-blocks: the diagonal and the one before it
    assert_eq!((json["full"].as_u64(), json["partial"].as_u64(), json["empty"].as_u64()), (Some(0), Some(5), Some(4)));
    let bytes = std::fs::read(bench.path("blocks.safetensors")).expect("a file");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let counts = file.tensor("kv_num_blocks").expect("counts");
    assert_eq!((counts.shape(), counts.data()), (&[1, 1, 3][..], &[1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0][..]));
    bench.run(&[&args[..], &["--out", "blocks.json"]].concat()).ok();
    let arrays: serde_json::Value =
        serde_json::from_slice(&std::fs::read(bench.path("blocks.json")).expect("a file")).expect("JSON");
    assert_eq!(arrays["kv_indices"], serde_json::json!([[[[0, 1, 2], [0, 1, 2], [1, 2, 0]]]]));
    let table = bench.run(&["blocks", "band.json", "--seq", "1000000"]).ok().out;
    assert!(table.starts_with("Band\ntokens") && table.contains("1000000 x 1000000"), "{table}");
    bench
        .run(&["blocks", "band.json", "--seq", "1000000", "--block-size", "1", "--out", "x.safetensors"])
        .fails(1, &["error["]);
}

#[test]
fn pictures_have_the_size_asked_for() {
    let bench = Bench::new();
    for (more, size) in [
        (&[][..], (300, 300)),
        (&["--size", "64", "--kv-seq", "600"], (64, 32)),
        (&["--bias", "--rows", "0..10", "--cols", "0..20"], (20, 10)),
    ] {
        bench.run(&[&["render", "band.json", "--out", "a.png"][..], more].concat()).ok();
        assert_eq!(image::image_dimensions(bench.path("a.png")).expect("a PNG"), size);
    }
    bench.run(&["render", "band.json", "--out", "a.png", "--rows", "0..999"]).fails(2, &["error[picture-outside]"]);
    bench.run(&["render", "band.json", "--out", "a.png", "--h", "9"]).fails(2, &["error[picture-head]"]);
    bench.run(&["render", "band.json", "--out", "no/folder/a.png"]).fails(1, &["error[cannot-write]"]);
    assert_eq!(image::image_dimensions(bench.path("a.png")).expect("the last one is whole"), (20, 10));
}

#[test]
fn a_cell_is_evaluated_step_by_step() {
    let bench = Bench::new();
    let json = bench.run(&["check", "band.json", "--at", "0,1,70,6", "--score-value", "0.5", "--json"]).ok().json();
    assert_eq!(json["cell"]["kept"], false);
    let mods = json["cell"]["mods"].as_array().expect("mods");
    assert_eq!(mods[0]["steps"].as_array().expect("steps").last().expect("one")["value"], "-0.5");
    let text = bench.run(&["check", "band.json", "--at", "0,0,63,0"]).ok().out;
    assert!(text.starts_with("Band: ok\n") && text.contains("  kept\n") && text.contains("  |"), "{text}");
    bench.run(&["check", "band.json", "--at", "0,0,300,0"]).fails(2, &["error[cell-outside]"]);
    bench.run(&["check", "none.py:f"]).fails(1, &["error[no-such-file]"]);
    let watched = bench.run(&["watch", "band.json", "--times", "1"]).ok().out;
    assert!(watched.contains("Band: ok") && watched.contains(" ms)"), "{watched}");
}

#[test]
fn a_sweep_has_a_row_a_point_and_a_benchmark_its_environment() {
    let bench = Bench::new();
    let args = [
        "sweep",
        "plain.json",
        "--lengths",
        "64,128",
        "--head-dims",
        "16,32",
        "--backend",
        "flex",
        "--rounds",
        "1",
        "--device",
        "cpu",
    ];
    let json = bench.run(&[&args[..], &["--json"]].concat()).ok().json();
    let rows = json["rows"].as_array().expect("rows");
    let points: Vec<_> = rows.iter().map(|r| (r["q_len"].as_u64(), r["head_dim"].as_u64())).collect();
    assert_eq!(points, [(Some(64), Some(16)), (Some(64), Some(32)), (Some(128), Some(16)), (Some(128), Some(32))]);
    assert!(
        json["environment"]["cpu"].is_string() && rows[0]["median_ms"].is_number() && rows[0]["spread"].is_number()
    );
    let failed = bench.run(&["sweep", "plain.json", "--lengths", "0,64", "--backend", "flex", "--device", "cpu"]);
    failed.fails(2, &["error[zero-length]"]);
    for what in ["blocks", "canvas"] {
        let json = bench.run(&["bench", what, "--lengths", "2048", "--budget", "1", "--json"]).ok().json();
        let rows = json["rows"].as_array().expect("rows");
        assert!(rows.len() > 3 && rows.iter().all(|r| r["median_ms"].as_f64().is_some_and(|ms| ms > 0.0)), "{what}");
    }
}

#[test]
fn lists_say_what_there_is() {
    let bench = Bench::new();
    let presets = bench.run(&["presets", "--json"]).ok().json();
    let presets = presets["presets"].as_array().expect("a list");
    assert!(presets.len() >= 10 && presets.iter().all(|p| p["title"].is_string()), "{presets:?}");
    assert_eq!(shape(&bench.run(&["presets"]).ok().out)[0], "preset axes heads head_dim dtype what it is");
    assert!(bench.run(&["presets", "sliding_w"]).ok().out.contains("the convention of"));
    assert!(bench.run(&["presets", "--patterns"]).ok().out.contains("natten_2d"));
    bench.run(&["presets", "no-such"]).fails(2, &["error[unknown-preset]"]);
    let shown = bench.run(&["presets", "show", "causal"]).ok().out;
    assert!(shown.contains("recorded on NVIDIA H200") && shown.contains("not measured here"), "{shown}");
    bench.run(&["presets", "show", "no_such"]).fails(2, &["error[unknown-preset]"]);
    bench.run(&["presets", "record", "causal"]).fails(2, &["--into"]);
    let schema: serde_json::Value = serde_json::from_str(&bench.run(&["schema"]).ok().out).expect("JSON");
    assert!(schema["properties"]["settings"].is_object(), "{schema}");
    let own = bench.path("presets");
    std::fs::create_dir(&own).expect("a folder");
    std::fs::write(own.join("mine.json"), BAND).expect("written");
    std::fs::write(own.join("broken.json"), "{").expect("written");
    let listed = bench.command(&["presets", "--json"]).env("MASKLOOM_PRESETS", &own).output().expect("runs");
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(text.contains("\"mine\"") && text.contains("document-json"), "{text}");
    let blocks = bench.command(&["blocks", "mine"]).env("MASKLOOM_PRESETS", &own).output().expect("runs");
    assert!(blocks.status.success());
}

#[test]
fn the_cache_is_listed_and_cleared() {
    let bench = Bench::new();
    let folder = bench.run(&["kernels", "where"]).ok().out;
    assert_eq!(Path::new(folder.trim()), bench.path("cache").join("kernels"));
    assert!(bench.run(&["kernels", "list"]).ok().out.starts_with("0 kernels"));
    // with NVRTC it builds, without it the way to get it is told
    let built = bench.run(&["kernels", "build", "plain.json", "--arch", "sm_80"]);
    if built.code == 0 {
        assert_eq!(shape(&built.out)[0], "preset backend kernel arch registers shared spills compiled in");
        assert!(bench.run(&["kernels", "list"]).ok().out.contains("1 kernels"));
        let again = bench.run(&["kernels", "build", "plain.json", "--arch", "sm_80", "--json"]).ok().json();
        assert_eq!(again["kernels"][0]["cached"], true);
        assert_eq!(bench.run(&["kernels", "clear", "--json"]).ok().json()["removed"], 1);
        bench.run(&["kernels", "build", "plain.json", "--arch", "sm_70"]).fails(1, &["error[arch]", "sm_90a"]);
    } else {
        built.fails(1, &["error[nvrtc-missing]", "maskloom doctor --fix"]);
    }
}

#[test]
fn the_doctor_examines_and_explains() {
    let bench = Bench::new();
    let report = bench.run(&["doctor", "--json"]).json();
    let names: Vec<_> = report["checks"].as_array().expect("checks").iter().map(|c| c["name"].as_str()).collect();
    for name in ["cpu", "nvrtc", "python", "display", "cache"] {
        assert!(names.contains(&Some(name)), "{names:?}");
    }
    let told = bench.run(&["doctor", "--explain", "torch._dynamo hit config.recompile_limit (8)"]).ok().out;
    assert!(told.starts_with("recompile-limit\n  means: "), "{told}");
    bench.run(&["doctor", "--explain", "x", "--fix"]).fails(2, &["cannot be used with"]);
}

#[test]
fn wrong_use_is_status_two() {
    let bench = Bench::new();
    for (args, words) in [
        (&["dance"][..], &["error[unknown-command]"][..]),
        (&["run"], &["<PRESET>"]),
        (&["run", "slidin_window"], &["error[unknown-preset]", "did you mean `sliding_window`?"]),
        (&["run", "band.json", "--backend", "flexx"], &["there is no backend named `flexx`", "flash_attention_2"]),
        (&["run", "band.json", "--device", "gpu"], &["`gpu` is no device"]),
        (&["run", "band.json", "--dtype", "fp8"], &["bf16, f16, f32"]),
        (&["run", "band.json", "--seq", "0"], &["error[zero-length]"]),
        (&["run", "band.json", "--seq", "1099511627776"], &["error[length-too-large]"]),
        (&["run", "band.json", "--axes", "text 5 | image 4y4"], &["error[axis-notation]"]),
        (&["run", "band.json", "--arg", "window=5"], &["error[argument-layer]"]),
    ] {
        bench.run(args).fails(2, words);
    }
}

#[test]
fn broken_documents_are_told_with_their_place() {
    let bench = Bench::new();
    for (from, to, words) in [
        ("\"maskloom\": 1", "\"maskloom\": 7", &["error[document-version]", "version 7"][..]),
        ("\"heads\": 4", "\"heads\": \"many\"", &["settings.heads"]),
        ("\"head_dim\": 32", "\"head_dim\": -1", &["settings.head_dim"]),
        ("tokens 300", "tokens 1099511627776", &["axes.q", "2^30"]),
        ("tokens 300", "tokens 0", &["greater than 0"]),
        ("\"kv_heads\": 2", "\"kv_heads\": 3", &["error[gqa-heads]"]),
        ("\"batch\": 1", "\"batch\": 60000", &["error[inputs-too-large]"]),
        (
            "\"kind\": \"band\", \"lo\": 0, \"hi\": 63",
            "\"kind\": \"text\", \"source\": \"def f(b, h, q, k:\\n\"",
            &["error["],
        ),
    ] {
        let text = BAND.replace(from, to);
        assert_ne!(text, BAND, "{from}");
        bench.write(
            "broken.json",
            &text.replace("tokens 300\"}", if from == "\"batch\": 1" { "tokens 200000\"}" } else { "tokens 300\"}" }),
        );
        bench.run(&["run", "broken.json", "--device", "cpu"]).fails(1, words);
    }
    bench.write("nothing.json", "not JSON");
    bench.run(&["run", "nothing.json"]).fails(1, &["error[document-json]", "nothing.json"]);
    std::fs::write(bench.path("bytes.json"), [0xff, 0xfe, 0x00]).expect("written");
    bench.run(&["run", "bytes.json"]).fails(1, &["error[not-text]"]);
    bench.run(&["run", "./"]).fails(1, &["error["]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_and_a_reader_that_goes_are_no_panics() {
    let bench = Bench::new();
    let args = ["run", "band.json", "--device", "cpu", "--rounds", "0", "--backend", "flex"];
    bench.run(&[&args[..], &["--save-run", "/dev/full"]].concat()).fails(1, &["error[disk-full]", "/dev/full"]);
    bench.run(&[&args[..], &["--out", "/dev/full"]].concat()).fails(1, &["error[disk-full]"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = bench.command(&["schema"]).stdout(full).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error[cannot-write]"));
    let mut child = bench.command(&["schema"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    let mut told = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut told).expect("text");
    assert!(child.wait().expect("ends").success() && told.is_empty(), "{told}");
}

#[test]
fn without_a_display_the_tour_runs() {
    let bench = Bench::new();
    let told = bench.run(&["tour", "painted_blocks", "--tokens", "256"]).ok();
    assert!(
        told.out.contains("Painted blocks: 1 x 4 heads") && told.out.contains("flex") && told.out.contains("  |"),
        "{}",
        told.out
    );
    bench.run(&["tour", "no_such_preset"]).fails(2, &["error[unknown-preset]"]);
}

const MODS: &str = r#"
import torch
from mine.helpers import near

def window(width: int = 16, offset: torch.Tensor = None):
    """Keys near the query."""
    def mask(b, h, q_idx, kv_idx):
        return near(q_idx, kv_idx, width)
    return mask

def from_table(b, h, q_idx, kv_idx):
    return table[q_idx] == table[kv_idx]

def slope(score, b, h, q_idx, kv_idx):
    return score - 0.5 * (q_idx - kv_idx)

def branches(b, h, q_idx, kv_idx):
    if q_idx > 3:
        return kv_idx > 0
    return q_idx >= kv_idx
"#;

#[test]
fn python_code_is_checked_raced_and_watched() {
    let bench = Bench::new();
    bench.write("mods.py", MODS);
    std::fs::create_dir_all(bench.path("lib/mine")).expect("folders");
    bench.write("lib/mine/__init__.py", "");
    bench.write("lib/mine/helpers.py", "def near(q, k, width):\n    return (q >= k) & (q - k < width)\n");
    let check =
        |args: &[&str]| bench.run(&[&["check"][..], args, &["--package", "lib", "--seq", "100", "--json"]].concat());
    let json = check(&["mods.py:window", "--arg", "width=8"]).ok().json();
    // 100 rows of 8 keys, the first seven shorter
    assert_eq!(json["kept_cells"], 100.0 * 8.0 - 28.0);
    let score = check(&["mods.py:slope", "--at", "0,0,5,1"]).ok().json();
    assert_eq!(score["mods"][0]["kind"], "score");
    assert_eq!(score["cell"]["mods"][0]["steps"].as_array().expect("steps").last().expect("one")["value"], "-2.0");
    check(&["mods.py:branches"]).fails(1, &["mods.py:", "help: "]);
    check(&["mods.py:none"]).fails(1, &["error["]);
    let table: Vec<u8> = (0..100i64).flat_map(|i| (i / 10).to_le_bytes()).collect();
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::I64, vec![100], &table).expect("a tensor");
    std::fs::write(bench.path("t.safetensors"), safetensors::serialize([("table", view)], None).expect("a file"))
        .expect("written");
    let json = check(&["mods.py:from_table", "--tensors", "t.safetensors"]).ok().json();
    assert_eq!(json["kept_cells"], 1000.0);
    let run = [
        "run",
        "mods.py:window",
        "--package",
        "lib",
        "--seq",
        "64",
        "--device",
        "cpu",
        "--rounds",
        "1",
        "--backend",
        "flex,sdpa",
        "--json",
    ];
    assert_eq!(bench.run(&run).ok().json()["succeeded"], true);
    bench
        .run(&[
            "run",
            "sliding_window",
            "--seq",
            "256",
            "--heads",
            "4",
            "--kv-heads",
            "2",
            "--arg",
            "window=32",
            "--device",
            "cpu",
            "--rounds",
            "1",
        ])
        .ok();
}

#[test]
fn an_export_keeps_the_config_and_replaces_nothing_unasked() {
    let bench = Bench::new();
    let config = "{\n    \"--model_family\": \"wan\",   // kept\n}\n";
    let plain = "{\n    \"model_family\" : \"wan\",\n\t\"seed\": 1e2\n}\n";
    bench.write("config.json", plain);
    bench.write("bad.json", config);
    let ran =
        bench.run(&["export", "band.json", "--to", "out/deep", "--merge", "config.json", "--backend", "flex"]).ok();
    assert!(ran.out.contains("band.maskloom.json") && ran.out.contains(".py"), "{}", ran.out);
    assert!(ran.err.contains("note[config-carries-no-mask]"), "{}", ran.err);
    let written = std::fs::read_to_string(bench.path("out/deep/config.json")).expect("a config");
    assert!(written.starts_with("{\n    \"model_family\" : \"wan\",\n\t\"seed\": 1e2"), "{written}");
    assert!(written.contains("\"attention_mechanism\": \"flex\""), "{written}");
    let preset = std::fs::read_to_string(bench.path("out/deep/band.maskloom.json")).expect("a preset");
    bench.write("again.json", &preset);
    bench.run(&["blocks", "again.json"]).ok();
    let refused =
        bench.run(&["export", "band.json", "--to", "out/deep"]).fails(1, &["error[export-exists]", "--force"]);
    assert!(refused.out.is_empty());
    assert_eq!(std::fs::read_to_string(bench.path("out/deep/config.json")).expect("still there"), written);
    bench.run(&["export", "band.json", "--to", "out/deep", "--force", "--json"]).ok().json();
    // in place: the config itself may be replaced, for it was named
    bench.run(&["export", "band.json", "--to", ".", "--merge", "config.json", "--trainer", "transformers"]).ok();
    assert!(std::fs::read_to_string(bench.path("config.json")).expect("merged").contains("attn_implementation"));
    bench.run(&["export", "band.json", "--to", "x", "--merge", "bad.json"]).fails(1, &["error[", "bad.json"]);
    bench.run(&["export", "band.json", "--to", "config.json"]).fails(1, &["error[cannot-write]"]);
}

#[test]
fn masks_of_other_programs_become_documents() {
    let bench = Bench::new();
    let header = "{'descr': '|b1', 'fortran_order': False, 'shape': (60, 60), }";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend((header.len() as u16).to_le_bytes());
    npy.extend(header.as_bytes());
    npy.extend((0..60 * 60).map(|i| u8::from(i / 60 >= i % 60)));
    std::fs::write(bench.path("lower.npy"), npy).expect("written");
    bench.run(&["import", "lower.npy", "--to", "lower.json"]).ok();
    let blocks = bench.run(&["blocks", "lower.json", "--json"]).ok().json();
    assert_eq!((&blocks["problem"]["q_len"], &blocks["kept_cells"]), (&60.into(), &1830.0.into()), "{blocks}");
    bench.run(&["import", "lower.npy", "--to", "lower.json"]).fails(1, &["error[import-exists]", "--force"]);
    bench.run(&["import", "lower.npy", "--to", "lower.json", "--force", "--json"]).ok().json();
    // used as it is
    bench.run(&["run", "lower.npy", "--device", "cpu", "--backend", "flex", "--rounds", "0"]).ok();
    // an exported folder comes back whole, its block lists block by block
    bench.run(&["export", "band.json", "--to", "out"]).ok();
    bench.run(&["import", "out/config.json", "--to", "back.json"]).ok();
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(bench.path(name)).expect("read")).expect("JSON")
    };
    assert_eq!(json("back.json"), json("out/band.maskloom.json"));
    let ran = bench.run(&["import", "out/band_blocks.safetensors"]).ok();
    assert!(ran.err.contains("note[import-partial-blocks]") && ran.err.contains("band.maskloom.json"), "{}", ran.err);
    // code travels inside the document
    bench.write("mine.py", "def near(b, h, q_idx, kv_idx):\n    return (q_idx - kv_idx).abs() < 9\n");
    bench.run(&["import", "mine.py:near", "--to", "near.json"]).ok();
    std::fs::remove_file(bench.path("mine.py")).expect("removed");
    bench.run(&["blocks", "near.json"]).ok();
    bench.write("config.json", "{\"seed\": 1}");
    std::fs::remove_file(bench.path("lower.json")).expect("removed");
    let alone = Bench::new();
    alone.write("config.json", "{\"seed\": 1}");
    alone.run(&["import", "config.json"]).fails(1, &["error[import-config]"]);
    alone.write("bad.npy", "nothing");
    alone.run(&["import", "bad.npy"]).fails(1, &["error[npy]", "bad.npy"]);
}

#[test]
fn every_presets_kernel_compiles_for_ampere_ada_and_hopper() {
    if std::env::var_os("MASKLOOM_NVRTC").is_none() {
        return eprintln!("skipped: MASKLOOM_NVRTC names no NVRTC");
    }
    let bench = Bench::new();
    let names: Vec<&str> = maskloom::document::library::presets().iter().map(|preset| preset.name).collect();
    let words = [&["kernels", "build"], &names[..], &["--arch", "sm_80,sm_89,sm_90a"]].concat();
    let built = bench.run(&words).ok().out;
    for arch in ["sm_80", "sm_89", "sm_90a"] {
        assert_eq!(built.lines().filter(|line| line.contains(&format!(" {arch} "))).count(), names.len(), "{built}");
    }
}
