//! Blocks, pictures, single cells and Python code, without a race.

use super::Bench;

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
    // with axes, legend and caption
    bench.run(&["render", "band.json", "--out", "a.svg", "--rows", "0..128", "--cols", "64..256"]).ok();
    let figure = std::fs::read_to_string(bench.path("a.svg")).expect("a figure");
    for words in [">keys (kv_idx, tokens)</text>", ">128</text>", "Batch entry 0, head 0;", ">dropped</text>"] {
        assert!(figure.contains(words), "{words}: {figure}");
    }
    let json = bench.run(&["render", "band.json", "--out", "a.pdf", "--bias", "--seq", "1k", "--json"]).ok().json();
    let pdf = std::fs::read(bench.path("a.pdf")).expect("a figure");
    assert!(pdf.starts_with(b"%PDF-") && json["bytes"].as_u64() == Some(pdf.len() as u64), "{json}");
}

#[test]
fn a_shared_page_is_opened_as_its_design() {
    let bench = Bench::new();
    let json = bench.run(&["share", "band.json", "--out", "x.html", "--h", "1", "--json"]).ok().json();
    let page = std::fs::read_to_string(bench.path("x.html")).expect("a page");
    assert_eq!(json["bytes"].as_u64(), Some(page.len() as u64));
    let shown = |name: &str| bench.run(&["blocks", name, "--json"]).ok().json();
    let (mut before, mut after) = (shown("band.json"), shown("x.html"));
    for json in [&mut before, &mut after] {
        json.as_object_mut().expect("an object").remove("build_ms");
    }
    assert_eq!(before, after);
    // without a name it is the design's, and the answer says where it is
    let told = bench.run(&["share", "band.json"]).ok().out;
    assert!(told.starts_with("band.html  ") && bench.path("band.html").is_file(), "{told}");
    // the words of others for the same options
    bench.run(&["export", "band.json", "--out", "exported"]).ok();
    bench.run(&["render", "band.json", "--to", "b.png"]).ok();
    assert!(bench.path("exported").is_dir() && bench.path("b.png").is_file());
    // a page shared again, and a run with its page
    bench.run(&["share", "x.html", "--out", "y.html"]).ok();
    assert_eq!(shown("y.html")["density"], after["density"]);
    bench.run(&["run", "band.json", "--backend", "flex", "--rounds", "1", "--save-run", "run.json"]).ok();
    bench.run(&["share", "run.json", "--out", "z.html"]).ok();
    bench.run(&["share", "run.json", "--out", "z.svg"]).ok();
    bench.run(&["report", "run.json", "--out", "r.pdf"]).ok();
    for name in ["z.csv", "r.csv"] {
        let data = std::fs::read_to_string(bench.path(name)).expect("the numbers beside the chart");
        assert!(data.starts_with("pass,backend,median_ms,") && data.contains("Forward pass,flex,"), "{data}");
    }
    bench.run(&["report", "run.json", "--out", "r.tex"]).ok();
    let table = std::fs::read_to_string(bench.path("r.tex")).expect("a table");
    assert!(table.starts_with("\\begin{tabular}") && table.contains("flex & "), "{table}");
    let csv = bench.run(&["blocks", "band.json", "--table", "csv"]).ok().out;
    assert!(csv.starts_with("# Band\n"), "{csv}");
    let page = std::fs::read_to_string(bench.path("z.html")).expect("a page");
    assert!(page.contains("<h2>Measured on ") && page.contains("<td>flex</td>"), "its run is in it");
    bench
        .run(&["share", "band.json", "--seq", "64", "--run", "run.json", "--out", "w.html"])
        .fails(1, &["error[run-of-another]"]);
    bench.run(&["share", "band.json", "--out", "x.pptx"]).fails(2, &["no .pptx file is written here"]);
    std::fs::write(bench.path("mine.html"), "<html><p>mine</p></html>").expect("written");
    bench.run(&["blocks", "mine.html"]).fails(1, &["error[page-design]", "mine.html"]);
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
fn a_watch_prints_a_line_of_json_for_each_check_and_ends_as_the_last_one_did() {
    let bench = Bench::new();
    let line = |args: &[&str], code: i32| {
        let ran = bench.run(&[args, &["--times", "1", "--json"]].concat());
        assert_eq!((ran.code, ran.out.lines().count()), (code, 1), "{}\n{}", ran.out, ran.err);
        ran.json()
    };
    let right = line(&["watch", "band.json"], 0);
    assert_eq!(right["name"], "Band");
    assert!(right["took_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{right}");
    assert_eq!(line(&["watch", "nofile.py"], 1)["error"]["code"], "no-such-file");
    let reported = bench.run(&["watch", "nofile.py", "--times", "1"]).fails(1, &["error[no-such-file]"]);
    assert!(reported.out.is_empty(), "{}", reported.out);
}

#[test]
fn pictures_schema_tour_and_manual_are_one_json_object_each() {
    let bench = Bench::new();
    let json = |args: &[&str]| bench.run(&[args, &["--json"]].concat()).ok().json();
    let picture = json(&["render", "band.json", "--out", "a.png", "--rows", "0..10", "--cols", "0..20"]);
    assert_eq!((picture["width"].as_u64(), picture["height"].as_u64()), (Some(20), Some(10)));
    let size = std::fs::metadata(bench.path("a.png")).expect("a file").len();
    assert_eq!(picture["bytes"].as_u64(), Some(size));
    assert_eq!(json(&["schema"])["properties"]["maskloom"]["type"], "integer");
    let tour = json(&["tour", "causal", "--tokens", "64"]);
    assert_eq!((&tour["presets"][0]["preset"], &tour["presets"][0]["succeeded"]), (&"causal".into(), &true.into()));
    assert!(json(&["completions", "bash"])["script"].as_str().is_some_and(|s| s.contains("complete -F _maskloom")));
    let pages = json(&["man", "--out", "pages"])["pages"].as_array().expect("a list").len();
    let files = std::fs::read_dir(bench.path("pages")).expect("a folder").count();
    assert!(pages == files && bench.path("pages/maskloom-run.1").is_file() && bench.path("pages/maskloom.1").is_file());
    assert!(json(&["man", "run"])["page"].as_str().is_some_and(|s| s.contains("maskloom\\-run")));
    // and so are their failures
    for (args, code, why) in [
        (&["render", "band.json", "--out", "a.png", "--h", "9"][..], 2, "picture-head"),
        (&["render", "band.json", "--out", "no/folder/a.png"], 1, "cannot-write"),
        (&["tour", "no_such_preset"], 2, "unknown-preset"),
        (&["schema", "--flag"], 2, "wrong-use"),
        (&["man", "rum"], 2, "unknown-command"),
        (&["sweep", "missing.json", "--device", "cpu"], 1, "no-such-file"),
        (&["tour", "causal", "--tokens", "0"], 2, "wrong-use"),
        (&["check", "causal", "--tensors", "missing.npy"], 2, "tensors-unused"),
        (&["quality", "causal", "a.safetensors", "--min-mass", "nan"], 2, "wrong-use"),
        (&["quality", "causal", "a.safetensors", "--max-error", "inf"], 2, "wrong-use"),
    ] {
        let ran = bench.run(&[args, &["--json"]].concat());
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (code, &why.into()), "{args:?}\n{}", ran.err);
    }
    bench.run(&["man", "rum"]).fails(2, &["did you mean `run`?"]);
    bench.run(&["watch", "band.json", "--times", "0"]).fails(2, &["error"]);
    // what was to be opened in a window is not raced with all presets instead
    #[cfg(target_os = "linux")]
    bench.run(&["band.json"]).fails(1, &["error[no-display]", "`maskloom check band.json`"]);
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

const BOTH: &str = r#"
def near(b, h, q_idx, kv_idx, width=9):
    return (q_idx - kv_idx).abs() < width

def slope(score, b, h, q_idx, kv_idx):
    return score - SLOPE * (q_idx - kv_idx)
"#;

#[test]
fn a_mask_and_a_score_mod_of_one_file_are_one_problem() {
    let bench = Bench::new();
    bench.write("both.py", BOTH);
    let check = |name: &str, more: &[&str]| {
        let base = ["check", name, "--seq", "64", "--arg", "SLOPE=0.5", "--json"];
        bench.run(&[&base[..], more].concat())
    };
    let kinds = |json: &serde_json::Value| -> Vec<String> {
        json["mods"].as_array().expect("mods").iter().map(|m| m["kind"].as_str().expect("a kind").into()).collect()
    };
    // 64 rows of 17 keys, those at the ends shorter: 9 less twice
    for name in ["both.py", "both.py:near,slope", "both.py:slope, near"] {
        let json = check(name, &["--at", "0,0,5,1"]).ok().json();
        assert_eq!(kinds(&json), ["mask", "score"], "{name}: {json}");
        assert_eq!(json["kept_cells"], 64.0 * 17.0 - 2.0 * 36.0, "{name}");
        assert_eq!(json["cell"]["mods"][0]["steps"].as_array().expect("steps").last().expect("one")["value"], "-2.0");
    }
    let reported = check("both.py", &[]).ok().json();
    assert!(reported["said"][0].as_str().is_some_and(|s| s.contains("`near` and `slope`")), "{reported}");
    // an argument goes to the function that has the parameter
    let wide = check("both.py", &["--arg", "width=2"]).ok().json();
    assert_eq!(wide["kept_cells"], 64.0 * 3.0 - 2.0);
    assert_eq!(kinds(&check("both.py:near", &[]).ok().json()), ["mask"]);
    // an export holds both, and opens as both or as one of them
    let export = ["export", "both.py", "--seq", "64", "--arg", "SLOPE=0.5", "--name", "both", "--to", "out"];
    bench.run(&export).ok();
    for (name, want) in
        [("", &["mask", "score"][..]), (":mask_mod,score_mod", &["mask", "score"]), (":score_mod", &["score"])]
    {
        let json = bench.run(&["check", &format!("out/both.py{name}"), "--json"]).ok().json();
        assert_eq!(kinds(&json), want, "{name}");
    }
    // with more than one of a kind the file's last function is taken, as before; two of a kind are refused
    bench.write("three.py", &format!("{BOTH}\ndef far(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx > 9\n"));
    let json = check("three.py", &[]).ok().json();
    assert_eq!((kinds(&json), &json["entry"]["name"]), (vec!["mask".to_string()], &"far".into()), "{json}");
    check("three.py:near,far", &[]).fails(1, &["error[entry-pair]", "`near` and `far`", "and_masks"]);
    check("three.py:near,none", &[]).fails(1, &["error[entry-not-found]", "`none`"]);
    check("three.py:near,slope,far", &[]).fails(2, &["error[entry-pair]", "MASK,SCORE"]);
    // helpers of as many parameters are no pair
    bench.write("helpers.py", "def project(x, w, b, act):\n    return act(x @ w + b)\ndef loss(pred, target, mask, weight, eps):\n    return pred\n");
    check("helpers.py", &[]).fails(1, &["error[entry-not-found]", "`loss` takes 5 parameters"]);
}

const TABLES: &str = "import torch\ndoc = torch.tensor([0] * 6 + [1] * 4)\nslopes = torch.tensor([1.0, 0.5, 0.25])\n\n\
def documents(b, h, q_idx, kv_idx):\n    return doc[q_idx] == doc[kv_idx]\n\n\
def alibi(score, b, h, q_idx, kv_idx):\n    return score - slopes[h] * (q_idx - kv_idx)\n\n\
def padded(b, h, q_idx, kv_idx):\n    return (torch.arange(99)[kv_idx] >= 0) & (doc[kv_idx] == 0)\n";

/// As in the window, where a pasted text becomes a document.
#[test]
fn tables_that_code_reads_say_its_sizes_where_nothing_else_does() {
    let bench = Bench::new();
    bench.write("tables.py", TABLES);
    let check = |entry: &str, more: &[&str]| {
        let json = bench.run(&[&["check", entry, "--json"][..], more].concat()).ok().json();
        (json["kept_cells"].as_f64(), json["said"].to_string())
    };
    let (kept, said) = check("tables.py:documents", &[]);
    assert_eq!(kept, Some(36.0 + 16.0));
    assert!(said.contains("(`doc`): 10 x 10 tokens"), "{said}");
    // the shorter of two tables
    let (kept, said) = check("tables.py:padded", &[]);
    assert_eq!(kept, Some(60.0), "{said}");
    let (_, said) = check("tables.py:alibi", &[]);
    assert!(said.contains("(`slopes`): 3 heads"), "{said}");
    // a flag and the text's own call go before
    let (kept, said) = check("tables.py:documents", &["--seq", "12"]);
    assert_eq!(kept, Some(36.0 + 36.0), "{said}");
    bench.write(
        "stated.py",
        &format!(
            "{TABLES}\nfrom torch.nn.attention.flex_attention import create_block_mask\n\
        made = create_block_mask(documents, 1, 1, 8, 8)\n"
        ),
    );
    let (kept, said) = check("stated.py:documents", &[]);
    assert_eq!(kept, Some(36.0 + 4.0), "{said}");
    // a length for the keys alone leaves the queries to the code
    for (entry, wanted) in [("tables.py:documents", 6.0 * 4.0), ("stated.py:documents", 6.0 * 4.0)] {
        let (kept, said) = check(entry, &["--kv-seq", "4"]);
        assert_eq!(kept, Some(wanted), "{entry} {said}");
    }
    // a mask for one head serves as many as a table has
    let (_, said) = check("stated.py:alibi", &[]);
    assert!(said.contains("8 x 8 tokens") && said.contains("(`slopes`): 3 heads"), "{said}");
}
