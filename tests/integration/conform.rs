//! Reference cases computed by PyTorch, checked on the CPU; and reports of conformance about wrong cases.

use crate::cli::Bench;
use crate::scripts::python_with;
use maskloom::base::tensor::Data;
use maskloom::base::{Device, HostTensor};
use maskloom::tasks::conform::{Options, Report, Verdict, What, run};
use maskloom::worker::target::Target;
use maskloom::worker::tensors;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn check(what: What) -> Report {
    let worker = Target::from_words(&[env!("CARGO_BIN_EXE_maskloom"), "worker"]);
    let options = Options { device: Some(Device::Cpu), target: worker, ..Options::new(what) };
    run(&options, &mut |_| {}).expect("it runs")
}

fn cases(file: PathBuf) -> What {
    What::Cases { file, package: None, out: None }
}

#[track_caller]
fn all_pass(report: &Report) {
    let failed: Vec<String> = report
        .cases
        .iter()
        .filter(|c| c.verdict != Verdict::Pass)
        .map(|c| format!("{}: {}", c.name, c.why.iter().map(|d| d.render()).collect::<Vec<_>>().join("\n")))
        .collect();
    assert!(failed.is_empty() && report.passed(), "{}", failed.join("\n"));
}

#[test]
fn flex_on_the_cpu_agrees_with_pytorchs_cases() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("ours.safetensors");
    let what = What::Cases { file: data("conform.json"), package: None, out: Some(out.clone()) };
    let report = check(what);
    all_pass(&report);
    assert_eq!(report.cases.len(), 11);
    assert!(report.cases.iter().all(|c| c.measured.as_ref().is_some_and(|m| m.out.is_some() && m.lse.is_some())));
    // our arrays, under the same names: the masks are PyTorch's to the bit
    let (ours, theirs) = (read(&out), read(&data("conform.safetensors")));
    let mut compared = 0;
    for (name, tensor) in ours.iter().filter(|(n, _)| n.ends_with(".mask") || n.ends_with("num_blocks")) {
        let want = theirs.iter().find(|(n, _)| n == name).expect("the same names");
        assert_eq!(tensor, &want.1, "{name}");
        compared += 1;
    }
    assert!(compared > 40 && ours.iter().any(|(n, _)| n == "composed.lse"), "{compared}");
}

fn read(path: &Path) -> Vec<(String, HostTensor)> {
    tensors::read(path).expect("tensors")
}

#[test]
fn cases_of_the_gym_are_traced_from_the_installed_package() {
    if python_with(&["attn-gym"]).is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let gym = json!({ "gym": "attn_gym.masks.causal:causal_mask", "factory": false });
    let chosen = altered(&folder, |name, case, _| {
        if case["mask"]["entry"] == "causal" {
            case["mask"] = gym.clone();
        }
        matches!(name, "gym_causal" | "gym_causal_ragged" | "custom_scale" | "relative_table")
    });
    let report = check(cases(chosen));
    assert_eq!(report.cases.len(), 4);
    all_pass(&report);
}

/// The cases and arrays after a change; those for which it returns no are omitted.
fn altered(
    folder: &tempfile::TempDir,
    mut change: impl FnMut(&str, &mut Value, &mut Vec<(String, HostTensor)>) -> bool,
) -> PathBuf {
    let text = std::fs::read_to_string(data("conform.json")).expect("cases");
    let mut cases: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let mut arrays = read(&data("conform.safetensors"));
    cases.retain_mut(|case| {
        let name = case["name"].as_str().expect("a name").to_string();
        change(&name, case, &mut arrays)
    });
    let path = folder.path().join("altered.json");
    std::fs::write(&path, json!(cases).to_string()).expect("written");
    let bytes = tensors::write(arrays.iter().map(|(n, t)| (n.clone(), t))).expect("tensors");
    std::fs::write(path.with_extension("safetensors"), bytes).expect("written");
    path
}

/// Changes the first element of an array.
fn nudge(arrays: &mut [(String, HostTensor)], name: &str) {
    let tensor = &mut arrays.iter_mut().find(|(n, _)| n == name).expect("an array").1;
    let data = match tensor.data().clone() {
        Data::U8(mut v) => {
            v[0] ^= 4;
            Data::U8(v)
        }
        Data::I32(mut v) => {
            v[0] += 1;
            Data::I32(v)
        }
        Data::F32(mut v) => {
            v[0] += 1e-4;
            Data::F32(v)
        }
        other => other,
    };
    *tensor = HostTensor::new(tensor.shape().to_vec(), data).expect("the same shape");
}

#[test]
fn each_kind_of_difference_fails_its_case_and_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = altered(&folder, |name, case, arrays| {
        match name {
            "gym_causal" => nudge(arrays, "gym_causal.mask"),
            "lambda_window" => nudge(arrays, "lambda_window.b128x128.kv_num_blocks"),
            "custom_scale" => nudge(arrays, "custom_scale.out"),
            "where_score" => {
                case["score"]["source"] = json!("def mod(score, b, h, q_idx, kv_idx):\n    return score +\n")
            }
            "empty_rows" => case["sparsity_128x128"] = json!(1.0),
            "composed" => {}
            _ => return false,
        }
        true
    });
    let report = check(cases(path.clone()));
    let found: Vec<(&str, Verdict, Vec<&str>)> = report
        .cases
        .iter()
        .map(|c| (c.name.as_str(), c.verdict, c.why.iter().map(|d| d.code.as_ref()).collect()))
        .collect();
    let code = |name: &str| found.iter().find(|c| c.0 == name).map(|c| (c.1, c.2.first().copied())).expect("a case");
    assert_eq!(code("gym_causal"), (Verdict::Fail, Some("mask-differs")));
    assert_eq!(code("lambda_window"), (Verdict::Fail, Some("blocks-differ")));
    assert_eq!(code("custom_scale"), (Verdict::Fail, Some("output-differs")));
    assert_eq!(code("empty_rows"), (Verdict::Fail, Some("blocks-differ")));
    assert_eq!(code("composed"), (Verdict::Pass, None));
    assert!(matches!(code("where_score"), (Verdict::Fail, Some(_))), "{found:?}");
    // the command reports it by its status and its table
    let file = path.display().to_string();
    let ran = Bench::new().run(&["conform", &file, "--device", "cpu"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("1 passed, 5 failed"), "{}", ran.out);
}

#[test]
fn random_problems_agree_with_the_reference_and_a_seed_is_one_problem() {
    let report = check(What::Random { count: 12, seed: 100 });
    all_pass(&report);
    let with_gradients =
        report.cases.iter().filter_map(|case| case.measured.as_ref()).filter(|m| !m.gradients.is_empty());
    assert!(with_gradients.count() > 6, "most problems have gradients: {report:?}");
    let again = check(What::Random { count: 1, seed: 105 });
    assert_eq!(again.cases[0].name, report.cases[5].name);
    assert_eq!(again.cases[0].measured, report.cases[5].measured);
}

#[test]
fn a_designs_gradients_are_judged_for_one_backend() {
    let bench = Bench::new();
    let right = bench.run(&[
        "conform",
        "--grad",
        "alibi",
        "--backend",
        "flex",
        "--device",
        "cpu",
        "--seq",
        "200",
        "--dtype",
        "f32",
    ]);
    assert_eq!(right.code, 0, "{}{}", right.out, right.err);
    assert!(["dq", "dk", "dv", "right", "200x200"].iter().all(|word| right.out.contains(word)), "{}", right.out);
    let sdpa = ["conform", "--grad", "alibi", "--backend", "sdpa", "--device", "cpu", "--seq", "200", "--json"];
    let refused = bench.run(&sdpa);
    assert!(refused.code == 1 && refused.out.contains("score-mod-unsupported"), "{}", refused.out);
    assert_eq!(bench.run(&["conform", "--grad"]).code, 2);
    let cases = data("conform.json");
    let ran = bench.run(&["conform", "--grad", &cases.to_string_lossy()]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("not a design") && ran.err.contains("checks them"), "{}", ran.err);
    let none = ["conform", "--grad", "alibi", "--device", "cpu", "--seq", "200", "--python", "/no/such/python"];
    let none = bench.run(&none);
    assert!(none.code == 1 && none.out.contains("no-python"), "{}{}", none.out, none.err);
}

#[test]
fn wrong_use_and_missing_files_are_told() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["conform"]).code, 2);
    let missing = bench.run(&["conform", "none.json", "--device", "cpu"]);
    assert!(missing.code == 1 && missing.err.contains("no-such-file"), "{}", missing.err);
    bench.write("bad.json", "{}");
    let bad = bench.run(&["conform", "bad.json", "--device", "cpu"]);
    assert!(bad.code == 1 && bad.err.contains("conform-cases"), "{}", bad.err);
}
