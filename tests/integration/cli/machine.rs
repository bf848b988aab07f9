//! Commands about the machine: presets, kernels, the doctor.

use super::{BAND, Bench, shape};
use std::path::Path;

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

/// The built-in preset keeps its name, and says so; the user's is reached by another.
#[test]
fn a_preset_of_ones_own_with_a_built_in_name_is_told_and_reached() {
    let bench = Bench::new();
    let own = bench.path("presets");
    std::fs::create_dir(&own).expect("a folder");
    std::fs::write(own.join("causal.json"), BAND).expect("written");
    let run = |args: &[&str]| Bench::ran(bench.command(args).env("MASKLOOM_PRESETS", &own));
    let built_in = run(&["presets", "show", "causal"]).ok();
    assert!(built_in.err.contains("preset-hidden") && built_in.err.contains("own:causal"), "{}", built_in.err);
    let title: serde_json::Value = serde_json::from_str(BAND).expect("JSON");
    let shown = run(&["presets", "show", "own:causal", "--json"]).ok();
    assert_eq!((&shown.json()["document"]["name"], shown.err.as_str()), (&title["name"], ""));
    let listed = run(&["presets", "causal", "--json"]).ok().json();
    let names: Vec<_> = listed["presets"].as_array().expect("a list").iter().map(|p| p["name"].clone()).collect();
    assert!(names.contains(&"causal".into()) && names.contains(&"own:causal".into()), "{names:?}");
    run(&["presets", "show", "own:other"]).fails(2, &["error[unknown-preset]", "of your own"]);
}

#[test]
fn the_cache_is_listed_and_cleared() {
    let bench = Bench::new();
    let folder = bench.run(&["kernels", "where"]).ok().out;
    assert_eq!(Path::new(folder.trim()), bench.path("cache").join("kernels"));
    assert!(bench.run(&["kernels", "list"]).ok().out.starts_with("0 kernels"));
    // with NVRTC it builds, without it the message contains the fix
    let built = bench.run(&["kernels", "build", "plain.json", "--arch", "sm_80"]);
    if built.code == 0 {
        assert_eq!(shape(&built.out)[0], "preset backend kernel arch registers shared spills compiled in");
        assert!(bench.run(&["kernels", "list"]).ok().out.contains("1 kernel, "));
        let again = bench.run(&["kernels", "build", "plain.json", "--arch", "sm_80", "--json"]).ok().json();
        assert_eq!(again["kernels"][0]["cached"], true);
        assert_eq!(bench.run(&["kernels", "clear", "--json"]).ok().json()["removed"], 1);
        bench.run(&["kernels", "build", "plain.json", "--arch", "sm_70"]).fails(1, &["error[arch]", "sm_90a"]);
    } else {
        built.fails(1, &["error[nvrtc-missing]", "maskloom doctor --fix"]);
    }
}

/// The terminal speaks the system's language above English messages; what scripts read stays English.
#[test]
fn a_refusal_and_an_explanation_are_told_in_the_language_of_the_system() {
    let bench = Bench::new();
    let speaking = |locale: &str, args: &[&str]| Bench::ran(bench.command(args).env("LC_ALL", locale));
    let reported = speaking("es_MX.UTF-8", &["run", "nothing.json"]).fails(1, &["No existe", "nothing.json"]);
    let mut lines = reported.err.splitn(3, '\n');
    let [sentence, way_out, message] = [(); 3].map(|()| lines.next().expect("three lines"));
    assert_eq!((sentence, way_out), ("No existe ese archivo.", "Compruebe la ruta."));
    assert!(message.starts_with("error[no-such-file]: there is no file"), "{message}");
    let json = speaking("es_MX.UTF-8", &["run", "nothing.json", "--json"]);
    assert!(json.err.starts_with("error[") && json.json()["error"]["code"] == "no-such-file", "{}", json.err);
    // titles of tables and what a preset is, too; files have English titles
    let presets = speaking("zh_CN.UTF-8", &["presets", "qwen3_30b"]).ok().out;
    assert!(
        presets.starts_with("预设") && presets.contains("的因果注意力") && presets.contains("Causal attention"),
        "{presets}"
    );
    assert!(speaking("zh_CN.UTF-8", &["presets", "--table", "csv"]).ok().out.starts_with("preset,axes,"));
    let explain =
        |locale: &str| speaking(locale, &["doctor", "--explain", "训练时报错No module named 'triton'"]).ok().out;
    assert!(explain("zh_CN.UTF-8").contains("编译的 FlexAttention 需要 Triton"));
    assert!(explain("hi_IN.UTF-8").contains("FlexAttention को Triton चाहिए"));
    assert!(explain("de_DE.UTF-8").contains("means: Compiled FlexAttention needs Triton"));
}

#[test]
fn the_doctor_examines_and_explains() {
    let bench = Bench::new();
    let report = bench.run(&["doctor", "--json"]).json();
    let names: Vec<_> = report["checks"].as_array().expect("checks").iter().map(|c| c["name"].as_str()).collect();
    for name in ["cpu", "nvrtc", "python", "display", "cache"] {
        assert!(names.contains(&Some(name)), "{names:?}");
    }
    let reported = bench.run(&["doctor", "--explain", "torch._dynamo hit config.recompile_limit (8)"]).ok().out;
    assert!(reported.starts_with("recompile-limit\n  means: "), "{reported}");
    bench.run(&["doctor", "--explain", "x", "--fix"]).fails(2, &["cannot be used with"]);
    // a script sees whether the message is known
    let known = bench.run(&["doctor", "--explain", "recompile_limit", "--json"]).ok().json();
    assert_eq!((known["known"].as_bool(), known["entries"][0]["code"].as_str()), (Some(true), Some("recompile-limit")));
    bench.run(&["doctor", "--explain", "zzz qqq"]).fails(1, &[]);
    bench.run(&["doctor", "--explain", " "]).fails(2, &["explain-nothing"]);
}

#[test]
fn presets_kernels_compile_for_ampere_ada_and_hopper() {
    if std::env::var_os("MASKLOOM_NVRTC").is_none() {
        return maskloom_testing::needs::missing("nvrtc", "MASKLOOM_NVRTC names no NVRTC");
    }
    let bench = Bench::new();
    // the library's tests compile Hopper's kernels of all presets with score mods, and those that the others share
    for (count, archs) in [(4, "sm_80,sm_89"), (2, "sm_90a")] {
        let all = maskloom::document::library::presets().iter().map(|preset| preset.name);
        let names = maskloom_testing::needs::one_of(count, all);
        let built = bench.run(&[&["kernels", "build"], &names[..], &["--arch", archs]].concat()).ok().out;
        for arch in archs.split(',') {
            assert_eq!(
                built.lines().filter(|line| line.contains(&format!(" {arch} "))).count(),
                names.len(),
                "{built}"
            );
        }
    }
}
