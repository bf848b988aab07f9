//! Trainers' configurations and advice, through the real binary, with good and bad files of users.

use super::cli::Bench;
use super::scripts::{python_with, said, script};

#[test]
fn a_config_is_read_and_without_a_measurement_it_says_what_to_run() {
    let bench = Bench::new();
    let text = "\u{feff}{\r\n  \"--model_family\": \"wan\",\r\n  \"--attention_mechanism\": \"flex\",\r\n  \"learning_rate\": 1e-4\r\n}";
    bench.write("config.json", text);
    let reported = bench.run(&["advise", "config.json"]).ok().out;
    for word in ["family: wan", "today: FlexAttention", "video 21x30x52 = 32760 tokens, 40 heads"] {
        assert!(reported.contains(word), "no `{word}` in:\n{reported}");
    }
    // one or the other: a shipped run of that shape is labelled as recorded
    assert!(reported.contains("no recommendation") || reported.contains("recorded on"), "{reported}");
    let json = bench.run(&["advise", "config.json", "--json"]).ok().json();
    assert_eq!(json["config"]["setting"], "flex");
    assert_eq!(json["document"]["settings"]["heads"], 40);
    assert_eq!(std::fs::read_to_string(bench.path("config.json")).expect("the file"), text, "only read");
    bench.write(
        "fp32.json",
        "{\"model_family\": \"wan\", \"attention_mechanism\": \"flex\", \"mixed_precision\": \"no\"}",
    );
    assert!(bench.run(&["advise", "fp32.json"]).ok().out.contains("set `attention_mechanism` to `diffusers`"));
}

#[test]
fn advice_comes_from_races_and_is_forward_only() {
    let bench = Bench::new();
    bench.write(
        "model.json",
        "{\"model_type\": \"llama\", \"num_attention_heads\": 4, \"hidden_size\": 64, \"max_position_embeddings\": 64}",
    );
    let reported = bench
        .run(&["advise", "model.json", "--design", "band.json", "--race", "--device", "cpu", "--python", "/bin/false"])
        .ok();
    assert!(reported.out.contains("forward only") && reported.out.contains("sidecar"), "{}", reported.out);
    assert!(reported.err.contains("sdpa"), "the race is shown: {}", reported.err);
    let run = ["run", "plain.json", "--device", "cpu", "--rounds", "2", "--save-run", "run.json"];
    bench.run(&run).ok();
    let reported = bench.run(&["advise", "--design", "plain.json", "--run", "run.json"]).ok().out;
    assert!(reported.contains("measured on"), "{reported}");
}

#[test]
fn bad_configs_are_told_where() {
    let bench = Bench::new();
    for (text, words) in [
        ("", &["config-not-json", "empty"][..]),
        ("{\"model_family\": \"wan\",}", &["config-not-json", "1:"]),
        ("[\"model_family\"]", &["config-not-object"]),
        ("{\"model_family\": \"wan\",\n \"model_family\": \"flux\"}", &["config-duplicate-key", "2:2", "line 1"]),
    ] {
        bench.write("bad.json", text);
        bench.run(&["advise", "bad.json"]).fails(1, words);
    }
    bench.run(&["advise", "none.json"]).fails(1, &["no-such-file"]);
    bench.run(&["advise"]).fails(2, &["advise-what"]);
    let large = format!(
        "{{\"model_family\": \"flux\", \"attention_mechanism\": \"flex\", \"note\": \"{}\"}}",
        "x".repeat(2 << 20)
    );
    bench.write("large.json", &large);
    assert!(bench.run(&["advise", "large.json"]).ok().out.contains("has no effect there"));
}

#[test]
fn bad_presets_are_told_where() {
    let bench = Bench::new();
    let good = std::fs::read_to_string(bench.path("band.json")).expect("the file");
    for (text, words) in [
        (good.replace("\"maskloom\": 1", "\"maskloom\": 9"), &["document-version", "version 9", "update"][..]),
        (
            good.replace("\"name\": \"Band\", \"axes\"", "\"name\": \"a\", \"name\": \"b\", \"axes\""),
            &["the key `name` occurs twice"],
        ),
        ("[1]".into(), &["document-version"]),
        ("{\"maskloom\": 1".into(), &["document-json"]),
    ] {
        bench.write("bad.json", &text);
        bench.run(&["blocks", "bad.json"]).fails(1, words);
    }
    bench.write("crlf.json", &format!("\u{feff}{}", good.replace('\n', "\r\n")));
    bench.run(&["blocks", "crlf.json"]).ok();
    let large = good.replace(
        "\"name\": \"Band\", \"axes\"",
        &format!("\"name\": \"Band\", \"about\": \"{}\", \"axes\"", "x".repeat(2 << 20)),
    );
    bench.write("large.json", &large);
    bench.run(&["blocks", "large.json"]).ok();
}

/// The script that reads trainers' releases, on wheels whose answers are known.
#[test]
fn what_trainers_do_is_read_from_their_text() {
    let Some(python) = python_with(&["torch"]) else { return };
    let Some(text) = said(&mut script(&python, "release_tables.py")) else { return };
    assert!(text.contains("the tables are right"), "{text}");
}
