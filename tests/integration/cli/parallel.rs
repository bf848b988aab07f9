//! `maskloom parallel`: plans in tables and as JSON, of designs and of block lists, and what it refuses.

use super::Bench;
use serde_json::{Value, json};

#[test]
fn a_plan_is_printed_beside_the_divisions_of_others() {
    let bench = Bench::new();
    let text = bench.run(&["parallel", "band.json", "--ranks", "3"]).ok().out;
    for words in ["this plan", "contiguous", "head-tail", "PTRR: ", "not measured", "MB    0", "1 layer"] {
        assert!(text.contains(words), "no `{words}` in:\n{text}");
    }
    assert!(text.contains("5 blocks of queries cannot be shared equally by 3 ranks"), "{text}");
    let two = ["parallel", "band.json", "plain.json", "--layers", "1,5", "--ranks", "2", "--json"];
    let plan = bench.run(&two).ok().json();
    assert_eq!((&plan["kinds"][1]["layers"], &plan["q_len"]), (&json!(5), &json!(300)));
    let two = bench.run(&two[..two.len() - 1]).ok().out;
    assert!(two.contains("imbalance by kind   Band   Band"), "{two}");
    let tokens: u64 = plan["ranks"].as_array().unwrap().iter().map(|rank| rank["q_len"].as_u64().unwrap()).sum();
    assert_eq!(tokens, 300);
    assert_eq!(plan["others"].as_array().unwrap().len(), 5);
    let one = bench.run(&["parallel", "band.json", "--ranks", "1", "--json"]).ok().json();
    assert_eq!(one["figures"]["received"], json!(0.0));
    let many = bench.run(&["parallel", "band.json", "--ranks", "9"]).ok();
    assert!(many.err.contains("4 of 9 ranks have no queries"), "{}", many.err);
}

#[test]
fn block_lists_of_another_program_are_planned_from_stdin() {
    let bench = Bench::new();
    let rows: Vec<Vec<Value>> = (0..4).map(|row| vec![json!([0, row + 1, false])]).collect();
    let request = json!({
        "version": 1, "ranks": 2, "q_len": 61, "kv_len": 61, "block_size": [16, 16],
        "shape": { "batch": 1, "heads": 2, "kv_heads": 1, "head_dim": 16, "dtype": "bf16" },
        "kinds": [{ "name": "causal", "rows": [rows] }],
    });
    bench.write("request.json", &request.to_string());
    let from_file = bench.run(&["parallel", "--request", "request.json", "--json"]).ok().json();
    let mut command = bench.command(&["parallel", "--request", "-", "--json"]);
    command.stdin(std::fs::File::open(bench.path("request.json")).expect("a file"));
    assert_eq!(Bench::ran(&mut command).ok().json(), from_file, "the same request gives the same plan");
    bench.write("request.json", "{}");
    bench.run(&["parallel", "--request", "request.json"]).fails(1, &["parallel-request", "missing field"]);
}

#[test]
fn what_cannot_be_planned_is_refused_in_words() {
    let bench = Bench::new();
    let refused = |args: &[&str], code: i32, words: &[&str]| {
        bench.run(&[&["parallel", "band.json"], args].concat()).fails(code, words);
    };
    refused(&["--ranks", "0"], 2, &["parallel-ranks", "give at least 1 rank"]);
    refused(&["--ranks", "5000"], 2, &["parallel-ranks", "at most 1024"]);
    refused(&["--layers", "1,2"], 2, &["--layers has 2 numbers for 1 mask"]);
    refused(&["--layers", "0"], 1, &["parallel-layers"]);
    refused(&["--bandwidth", "0"], 2, &["parallel-bandwidth", "moves nothing"]);
    refused(&["--bandwidth", "none.json"], 2, &["neither GB/s nor a file"]);
    refused(&["--card", "Abacus"], 2, &["parallel-card", "H100"]);
    refused(&["--per-host", "2"], 2, &["--network"]);
    bench.write("links.json", "[[0, 200], [200, 0]]");
    refused(&["--bandwidth", "links.json"], 2, &["a bandwidth matrix of 2 rows is not of 4 ranks"]);
    bench.run(&["parallel", "band.json", "--ranks", "2", "--bandwidth", "links.json"]).ok();
    bench.run(&["parallel", "band.json", "--ranks", "4", "--per-host", "2", "--network", "45"]).ok();
    bench.run(&["parallel"]).fails(2, &["required"]);
}
