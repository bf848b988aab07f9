//! Exports and imports: existing files are replaced only on request, and exported designs can be imported again.

use super::Bench;

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
    // and so does its module, whole or one of its mods, although its captured tensors are inside functions
    bench.write("table.py", "import torch\ndoc = torch.arange(80) // 11\ndef mask_mod(b, h, q_idx, kv_idx):\n    return doc[q_idx] == doc[kv_idx]\n");
    bench.run(&["export", "table.py", "--seq", "80", "--name", "table", "--to", "table"]).ok();
    for name in ["table/table.py", "table/table.py:mask_mod"] {
        let reported = bench.run(&["blocks", name, "--json"]).ok().json();
        assert_eq!(
            (&reported["problem"]["q_len"], &reported["kept_cells"]),
            (&80.into(), &(7.0 * 121.0 + 9.0).into()),
            "{reported}"
        );
    }
    bench.run(&["blocks", "table/table.py:score_mod"]).fails(1, &["error["]);
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
    let header = br#"{"bias":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#;
    let file = [&(header.len() as u64).to_le_bytes()[..], header, &[0x3f; 16]].concat();
    std::fs::write(alone.path("bias.safetensors"), file).expect("written");
    alone.run(&["blocks", "bias.safetensors"]).fails(1, &["error[import-no-mask]", "`bias` [2, 2]", "--inputs"]);
}
