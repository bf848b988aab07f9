//! What is found in pasted texts: mods, arguments, sizes.

use super::model::ArgValue;
use super::pasted::*;
use crate::base::{BlockSize, Source};
use crate::ir::graph::ModKind;
use crate::python::trace::{TraceRequest, trace};

const FACTORY: &str = "def make(window, sinks=2, scale=1.0):\n    def mask_mod(b, h, q_idx, kv_idx):\n        return (q_idx - kv_idx < window) | (kv_idx < sinks)\n    return mask_mod\n";

/// Entry, whether it is a score mod, arguments.
type Found = (String, bool, Vec<(String, ArgValue)>);

fn mods(text: &str) -> Vec<Found> {
    read(text).mods.into_iter().map(|m| (m.entry, m.score, m.args.into_iter().collect())).collect()
}

#[test]
fn the_call_in_the_text_gives_the_factory_and_its_arguments() {
    let wanted = vec![(
        "make".to_string(),
        false,
        vec![("sinks".into(), ArgValue::Int(4)), ("window".into(), ArgValue::Int(512))],
    )];
    for call in [
        "block_mask = create_block_mask(make(512, sinks=4), 1, 1, 8192, 8192)",
        "mod = make(window=512, sinks=4)\nblock_mask = create_block_mask(mod, None, None, 64, 64)",
        "W = 512\nmask = make(W, 2 + 2)",
    ] {
        assert_eq!(mods(&format!("{FACTORY}{call}\n")), wanted, "{call}");
    }
}

#[test]
fn what_is_no_plain_value_is_left_to_the_text() {
    let tensor = "def of(document_id):\n    return lambda b, h, q, k: document_id[q] == document_id[k]\n";
    let text = format!("{tensor}ids = torch.arange(64) // 8\nmask = of(ids)\n");
    assert_eq!(mods(&text), [("mask".to_string(), false, vec![])], "the text's own tensor serves");
    let twice = format!("{FACTORY}w = 4\nw = 8\nmask = make(w)\n");
    assert_eq!(mods(&twice), [("mask".to_string(), false, vec![])]);
    assert_eq!(mods("x = 1\n"), []);
    let deep = format!("mask = {}1{}\n", "(".repeat(100), ")".repeat(100));
    assert_eq!(read(&deep), Pasted::default());
}

#[test]
fn the_mod_and_the_sizes_are_those_that_a_check_takes() {
    let text = format!(
        "from torch.nn.attention.flex_attention import create_block_mask\n{FACTORY}masks = {{'near': make(4)}}\nchosen = masks['near']\nS = int('512')\nblocks = create_block_mask(chosen, None, None, S, 2 * S)\n"
    );
    let traced = trace(&TraceRequest::new(Source::new("a.py", text.as_str()), "", ModKind::Mask));
    let checked = traced.chosen.expect("a mod").entry;
    assert_eq!(mods(&text), [(checked.clone(), false, vec![])]);
    assert_eq!(checked, "chosen");
    let sizes = read(&text).sizes.expect("sizes");
    assert_eq!((sizes.line, sizes.q_len, sizes.kv_len, sizes.batch), (9, Some(512), Some(1024), None));
    // a text that does not run is read without running
    let endless = format!("{FACTORY}while True:\n    pass\n");
    assert_eq!(mods(&endless).len(), 1);
}

#[test]
fn a_mask_and_a_score_mod_are_both_found() {
    let text = "def near(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < 8\ndef bias(score, b, h, q, k):\n    return score - 1\n";
    let found: Vec<_> = mods(text).into_iter().map(|m| (m.0, m.1)).collect();
    assert_eq!(found, [("near".to_string(), false), ("bias".to_string(), true)]);
}

#[test]
fn sizes_are_those_of_create_block_mask() {
    let sizes = |call: &str| read(&format!("{FACTORY}S = 4096\n{call}\n")).sizes;
    let found = sizes("m = create_block_mask(make(8), 2, 16, 2 * S, S, device='cuda', BLOCK_SIZE=(64, 128))").unwrap();
    assert_eq!((found.line, found.batch, found.heads), (6, Some(2), Some(16)));
    assert_eq!((found.q_len, found.kv_len), (Some(8192), Some(4096)));
    assert_eq!(found.block_size, Some(BlockSize { q: 64, kv: 128 }));
    let inside =
        sizes("def main():\n    return flex(q, create_block_mask(make(8), B=None, H=None, Q_LEN=512, KV_LEN=n))")
            .unwrap();
    assert_eq!((inside.line, inside.batch, inside.q_len, inside.kv_len), (7, None, Some(512), None));
    assert_eq!(sizes("mask = make(8)"), None);
}

#[test]
fn code_is_made_for_what_its_call_states_and_then_for_its_tables() {
    let text = "import torch\nids = torch.arange(96) // 8\nslopes = torch.ones(6)\ndef m(b, h, q_idx, kv_idx):\n    return (ids[q_idx] == ids[kv_idx]) & (slopes[h] > 0)\n";
    let made_for = |call: &str| {
        let found = read(&format!("{text}{call}\n"));
        let own = found.tables.made_for(&found.sizes.unwrap_or_default());
        (own.lengths(), own.heads, own.batch, own.tables.join(" "))
    };
    assert_eq!(made_for(""), (Some((96, 96)), Some(6), None, "ids slopes".to_string()));
    // one head in the call is a mask for all, as many as the table has
    let called = made_for("create_block_mask(m, 2, 1, 64, 32)");
    assert_eq!(called, (Some((64, 32)), Some(6), Some(2), "slopes".to_string()));
}

#[test]
fn the_first_error_of_a_text_is_told_and_what_a_layer_gives_is_none() {
    let wrong = |text: &str| read(text).wrong.map(|why| (why.code.to_string(), why.line_column().map(|at| at.0)));
    assert_eq!((wrong(FACTORY), wrong(&format!("{FACTORY}mine = make(8)\n"))), (None, None));
    let broken = FACTORY.replace("(kv_idx < sinks)", "(kv_idx < sinks");
    assert!(is_broken(&broken) && !is_broken(FACTORY));
    assert_eq!(wrong(&broken).map(|(code, _)| code).as_deref(), Some("syntax"));
    let and = "def near(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx and q_idx - kv_idx < 8\n";
    assert_eq!(wrong(and), Some(("bool-op-on-index".into(), Some(2))));
}
