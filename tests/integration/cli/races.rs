//! Races, sweeps and the tour: their output, saved files and inputs.

use super::{Bench, shape};

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
    assert!(
        lines[3].starts_with(
            "backend what ran median spread GFLOP/s vs our CPU eager kernel memory error allowed lse kernel"
        ),
        "{}",
        ran.out
    );
    assert!(lines[4].starts_with("eager our CPU eager kernel 0 ms 0 0 baseline 0 MiB 0 0 0 "), "{}", ran.out);
    assert!(lines[5].starts_with("flex our CPU flex kernel 0 ms 0 0 "), "{}", ran.out);
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
fn the_largest_score_of_each_head_is_told_and_the_rows_are_saved_where_they_are_asked_for() {
    let bench = Bench::new();
    let run = |more: &[&str]| {
        let base =
            ["run", "band.json", "--device", "cpu", "--rounds", "0", "--backend", "flex,eager,flash_attention_2"];
        bench.run(&[&base[..], more].concat()).ok()
    };
    let reported = run(&["--max-scores", "--out", "out.safetensors"]).out;
    let (_, table) =
        reported.split_once("largest score of each head, after scale, score mod and mask\n").expect("told");
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((&lines[0][..], lines.len()), (&["head", "flex", "eager"][..], 5), "{table}");
    let saved = std::fs::read(bench.path("out.safetensors")).expect("outputs");
    let tensors = safetensors::SafeTensors::deserialize(&saved).expect("safetensors");
    for (at, name) in [(1, "flex.max_scores"), (2, "eager.max_scores")] {
        let tensor = tensors.tensor(name).expect(name);
        assert_eq!(tensor.shape(), [1, 4, 300]);
        let rows: Vec<f32> = tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        for (head, rows) in rows.chunks_exact(300).enumerate() {
            let largest = rows.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(lines[1 + head][at], format!("{largest:.4}"), "{name} head {head}\n{table}");
        }
    }
    let json = run(&["--max-scores", "--json"]).json();
    let heads = json["backends"][0]["max_scores"].as_array().expect("numbers");
    assert!(heads.len() == 4 && heads.iter().all(|h| h.is_number()), "{json}");
    let outputs = &json["backends"][0]["error"]["outputs"];
    assert!(outputs[2]["name"] == "max_scores" && outputs[2]["max_abs"].is_number(), "{outputs}");
    assert!(!run(&[]).out.contains("largest score") && run(&["--json"]).json()["backends"][0]["max_scores"].is_null());
    let refused = ["run", "plain.json", "--device", "cpu", "--rounds", "0", "--backend", "sdpa", "--max-scores"];
    let reported = bench.run(&refused).ok().out;
    assert!(reported.contains("max_scores: none of these backends returns them; flex and eager do"), "{reported}");
}

#[test]
fn a_saved_run_is_a_document_for_every_command() {
    let bench = Bench::new();
    let quick = ["--device", "cpu", "--backend", "flex", "--rounds", "0"];
    bench.run(&[&["run", "band.json", "--save-run", "run.json"], &quick[..]].concat()).ok();
    let of = |name: &str| bench.run(&["blocks", name, "--json"]).ok().json();
    let (document, run) = (of("band.json"), of("run.json"));
    assert_eq!((&run["problem"], &run["kept_cells"]), (&document["problem"], &document["kept_cells"]));
    assert!(run["kept_cells"].as_f64() > Some(0.0), "{run}");
    bench.run(&["check", "run.json"]).ok();
    bench.run(&["render", "run.json", "--out", "run.png"]).ok();
    bench.run(&["export", "run.json", "--to", "out", "--run", "run.json"]).ok();
    assert!(bench.path("out/band.maskloom.json").exists());
    bench.run(&[&["run", "run.json", "--save-run", "again.json"], &quick[..]].concat()).ok();
    let same = bench.run(&["report", "run.json", "--compare", "again.json", "--json"]).ok().json();
    assert_eq!(same["differences"], serde_json::json!([]), "{same}");

    let text = std::fs::read_to_string(bench.path("run.json")).expect("saved");
    bench.write("newer.json", &text.replace("\"maskloom_run\": 2", "\"maskloom_run\": 7"));
    bench.write("cut.json", &text[..text.len() / 2]);
    bench.write("wrong.json", &text.replace("\"device_name\"", "\"name_of_device\""));
    for command in ["report", "blocks", "run"] {
        bench.run(&[command, "newer.json"]).fails(1, &["error[run-file-version]", "newer.json", "version 7", "update"]);
        bench.run(&[command, "cut.json"]).fails(1, &["cut.json", "EOF"]);
        bench.run(&[command, "wrong.json"]).fails(1, &["error[run-file]", "wrong.json", "device_name"]);
    }
    // a document that only speaks of run files stays a document
    let about = std::fs::read_to_string(bench.path("band.json")).expect("there");
    bench.write(
        "about.json",
        &about.replacen("\"name\": \"Band\",", r#""name": "Band", "about": "no \"maskloom_run\" this","#, 1),
    );
    bench.run(&["blocks", "about.json"]).ok();
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
        let out = &backend["error"]["outputs"][0];
        assert!(out["name"] == "out" && out["max_abs"].as_f64() <= out["allowed"].as_f64(), "{backend}");
        let phases = backend["timings"].as_array().expect("a list");
        let forward = phases.iter().find(|row| row["phase"] == "forward").expect("timed");
        assert!(forward["median_ms"].as_f64().expect("timed") > 0.0);
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

/// The band's flex on the CPU, compared and not timed.
const CHECKED: [&str; 8] = ["run", "band.json", "--device", "cpu", "--rounds", "0", "--backend", "flex"];

#[test]
fn q_k_and_v_come_from_a_file_by_names_and_layout() {
    let bench = Bench::new();
    inputs(&bench, "qkv.safetensors", safetensors::Dtype::F16, 300);
    inputs(&bench, "short.safetensors", safetensors::Dtype::F16, 200);
    inputs(&bench, "ints.safetensors", safetensors::Dtype::I32, 300);
    let run = |file: &str, names: &str, more: &[&str]| {
        bench.run(&[&CHECKED[..], &["--inputs", file, "--names", names, "--layout", "bshd"], more].concat())
    };
    let fine = run("qkv.safetensors", "query,key,value", &["--json"]).ok();
    assert!(fine.err.contains("note[inputs-fit]") && fine.err.contains("heads 6"), "{}", fine.err);
    assert_eq!(fine.json()["problem"]["dtype"], "f16");
    run("qkv.safetensors", "q,k,v", &[])
        .fails(1, &["error[input-name]", "no tensor named `q`", "it contains: key, query, value"]);
    run("short.safetensors", "query,key,value", &[])
        .fails(1, &["error[input-shape]", "query has shape [1, 6, 200, 16]"]);
    run("short.safetensors", "query,key,value", &["--seq", "200"]).ok();
    run("ints.safetensors", "query,key,value", &[]).fails(1, &["error[input-dtype]", "int32"]);
    run("band.json", "query,key,value", &[]).fails(1, &["error[safetensors]"]);
    run("none.safetensors", "query,key,value", &[]).fails(1, &["error[no-such-file]"]);
    run("qkv.safetensors", "query,key", &[]).fails(2, &["three names"]);
}

/// The output's gradient comes from the file that has one, in the file's layout, and the gradients are written.
#[test]
fn the_gradient_of_the_output_comes_from_the_file() {
    use safetensors::tensor::{SafeTensors, TensorView};
    let bench = Bench::new();
    let floats = |n: usize, seed: u32| -> Vec<u8> {
        (0..n as u32).flat_map(|at| (((at * 37 + seed * 11) % 19) as f32 / 19.0 - 0.5).to_le_bytes()).collect()
    };
    let save = |file: &str, d_out: Option<Vec<u8>>| {
        let all: Vec<(&str, Vec<u8>)> =
            [("q", 1), ("k", 2), ("v", 3)].map(|(name, seed)| (name, floats(300 * 2 * 16, seed))).into_iter().collect();
        let all: Vec<_> = all.into_iter().chain(d_out.map(|bytes| ("do", bytes))).collect();
        let view = |bytes| TensorView::new(safetensors::Dtype::F32, vec![1, 300, 2, 16], bytes).expect("a tensor");
        let views = all.iter().map(|(name, bytes)| (*name, view(bytes)));
        std::fs::write(bench.path(file), safetensors::serialize(views, None).expect("a file")).expect("written");
    };
    // a gradient for head 1 of token 299 alone
    let mut one = vec![0u8; 300 * 2 * 16 * 4];
    one[(299 * 2 + 1) * 64..].copy_from_slice(&1f32.to_le_bytes().repeat(16));
    save("given.safetensors", Some(one));
    save("without.safetensors", None);
    let run = |file: &str, more: &[&str]| {
        let files = ["--pass", "both", "--layout", "bshd", "--inputs", file, "--out", "out.safetensors"];
        bench.run(&[&CHECKED[..], &files, more].concat())
    };
    let reported = run("given.safetensors", &[]).ok();
    assert!(reported.err.contains("the output's gradient is `do` of"), "{}", reported.err);
    let bytes = std::fs::read(bench.path("out.safetensors")).expect("written");
    let out = SafeTensors::deserialize(&bytes).expect("tensors");
    let rows = |name: &str| -> Vec<usize> {
        let tensor = out.tensor(name).expect(name);
        assert_eq!(tensor.shape(), [1, 2, 300, 16]);
        let row = |at: &usize| tensor.data()[at * 64..at * 64 + 64].iter().any(|byte| *byte != 0);
        (0..600).filter(row).collect()
    };
    assert_eq!(rows("flex.dq"), [599], "the one query with a gradient, in its place among heads");
    assert!(rows("flex.dv").iter().all(|row| *row >= 300) && !rows("flex.dk").is_empty());
    assert!(!run("without.safetensors", &[]).ok().err.contains("inputs-do"), "random, as before");
    run("without.safetensors", &["--grad", "dout"]).fails(1, &["no-such-tensor", "it has: k, q, v"]);
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
fn both_passes_stand_in_sweeps_and_reports() {
    let bench = Bench::new();
    let at = ["--backend", "flex,sdpa,torch:flex-flash", "--rounds", "1", "--device", "cpu", "--pass", "both"];
    let json = bench.run(&[&["sweep", "band.json", "--lengths", "64,100", "--json"][..], &at].concat()).ok().json();
    let rows = json["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{json}");
    for row in rows {
        let [forward, backward, both] =
            ["median_ms", "backward_ms", "both_ms"].map(|k| row[k].as_f64().expect("a time"));
        assert!((forward + backward - both).abs() < 1e-9);
        assert!(row["worst_gradient"].as_f64().is_some_and(|e| e > 0.0 && e < 3e-2), "{row}");
    }
    let table = bench.run(&[&["sweep", "band.json", "--lengths", "64"][..], &at].concat()).ok().out;
    assert!(table.contains("worst gradient") && table.contains("backward"), "{table}");
    bench.run(&[&["run", "band.json", "--save-run", "run.json"][..], &at].concat()).ok();
    let report = bench.run(&["report", "run.json"]).ok().out;
    let lines: Vec<&str> = report.lines().filter(|l| l.starts_with("| flex |")).collect();
    assert_eq!(lines.len(), 2, "{report}");
    assert!(lines[1].contains(" ms | ") && report.contains("| sdpa | refused: "), "{report}");
}

#[test]
fn each_row_shows_the_memory_of_its_passes() {
    let bench = Bench::new();
    let at = ["--backend", "eager,flex", "--rounds", "0", "--device", "cpu", "--pass", "both", "--seq", "1024"];
    let json = bench.run(&[&["run", "band.json", "--json", "--save-run", "run.json"][..], &at].concat()).ok().json();
    let of = |list: &str, at: usize| {
        json[list][at]["memory_bytes"].as_u64().unwrap_or_else(|| panic!("no memory of {list} {at}: {json}"))
    };
    let (scores, out) = (4 * 1024 * 1024 * 4, 4 * 1024 * 32 * 2);
    let [eager, flex] = [of("backends", 0), of("backends", 1)];
    // eager holds a float32 of every score, and its gradients; flex holds packed keys and values, the output, lists
    assert!(eager > scores && eager < 3 * scores, "{eager}");
    assert!(flex >= out && flex < scores / 4, "{flex}");
    let [eager_both, flex_both] = [of("gradients", 0), of("gradients", 1)];
    assert!(eager_both > 2 * scores && flex_both > flex && flex_both < scores, "{eager_both} {flex_both}");
    let report = bench.run(&["report", "run.json"]).ok().out;
    assert!(
        report.contains("Memory: held at the peak of a pass beside q, k and v") && report.contains(" MiB | "),
        "{report}"
    );
}

#[test]
fn verdicts_need_no_gpu_and_no_run() {
    let bench = Bench::new();
    let json = bench.run(&["verdict", "sliding_window", "--arch", "sm_90a", "--dtype", "bf16", "--json"]).ok().json();
    let all = json["verdicts"].as_array().expect("verdicts");
    let of = |who: &str| all.iter().find(|v| v["who"] == who).unwrap_or_else(|| panic!("no {who}: {json}"));
    assert_eq!(of("flex")["backward"]["answer"], "takes");
    assert_eq!(of("torch:sdpa flash")["forward"]["answer"], "refuses");
    assert!(of("flash-attn")["call"].as_str().is_some_and(|call| call.contains("window_size=(")), "{json}");
    let text = bench.run(&["verdict", "band.json"]).ok().out;
    assert!(text.contains("FlexAttention does not support backward on CPU.") && text.contains("on the cpu"), "{text}");
    bench.run(&["verdict", "band.json", "--arch", "sm_70"]).fails(1, &["error[arch]"]);
    bench.write("floor.py", "def floor(score, b, h, q_idx, kv_idx):\n    return score + score // 2.0\n");
    let text = bench.run(&["verdict", "floor.py:floor", "--seq", "64"]).ok().out;
    assert!(text.contains("learns: nothing: ") && text.contains("`//`"), "{text}");
}

#[test]
fn without_a_display_the_tour_runs() {
    let bench = Bench::new();
    let reported = bench.run(&["tour", "painted_blocks", "--tokens", "256"]).ok();
    assert!(
        reported.out.contains("Painted blocks: 1 x 4 heads")
            && reported.out.contains("flex")
            && reported.out.contains("  |"),
        "{}",
        reported.out
    );
    bench.run(&["tour", "no_such_preset"]).fails(2, &["error[unknown-preset]"]);
}
