//! The warnings at given sizes, on mods traced from text, because `analysis` itself knows no Python.

use crate::analysis::block_mask::{BlockMask, MaskShape};
use crate::analysis::intent::intent;
use crate::analysis::lint::*;
use crate::base::{BlockSize, Control, Diagnostic, HostTensor, Lengths, Source, tensor::Data};
use crate::ir::graph::{Mod, ModKind};
use crate::python::{TraceRequest, trace};

fn traced(body: &str) -> Mod {
    let text = format!("def mod(b, h, q_idx, kv_idx):\n    return {body}\n");
    let tensor = HostTensor::vector(Data::I32((0..100).map(|i| i % 7).collect()));
    let request = TraceRequest {
        globals: vec![("t".into(), tensor)],
        ..TraceRequest::new(Source::new("mod.py", text), "", ModKind::Mask)
    };
    trace(&request).result.expect("traces")
}

fn reported(body: &str, tokens: usize) -> Vec<String> {
    let sizes = Sizes { batch: 2, heads: 4, lengths: Lengths::new(tokens, tokens).unwrap() };
    let line = |d: Diagnostic| format!("{:?} {}: {}", d.line_column().unwrap_or_default(), d.code, d.message);
    lint(&traced(body), sizes).into_iter().map(line).collect()
}

#[test]
fn reads_outside_are_told_with_a_cell_and_the_range() {
    assert_eq!(reported("t[q_idx] == t[kv_idx]", 100), Vec::<String>::new());
    let found = reported("t[q_idx] >= kv_idx", 128);
    assert_eq!(
        found,
        [
            "(2, 12) index-out-of-range: this index is outside `t` [100]: it is 127 at b 0, h 0, q_idx 127, kv_idx 0, and in 0..=127 over all cells"
        ]
    );
    assert!(reported("t[(q_idx - kv_idx).clamp(0, 99)] > 1", 5000).is_empty());
    assert!(reported("t[q_idx - kv_idx - 10] > 1", 100)[0].contains("index-out-of-range"));
    // intervals alone would warn: the index is the same token's
    assert!(reported("t[q_idx - q_idx // 2 * 2] >= kv_idx", 5000).is_empty());
}

#[test]
fn ints_beyond_32_bits_are_told_where_they_arise() {
    let text = "def mod(score, b, h, q, k):\n    return score + (q * 100000 + k) % 7\n";
    let of = trace(&TraceRequest::new(Source::new("mod.py", text), "", ModKind::Score)).result.expect("traces");
    let found = |tokens: usize| {
        let sizes = Sizes { batch: 2, heads: 4, lengths: Lengths::new(tokens, tokens).unwrap() };
        lint(&of, sizes).into_iter().map(|d| format!("{}: {}", d.code, d.message)).collect::<Vec<_>>()
    };
    let told_of = ["int-overflow: this can exceed 32 bits, the precision of kernels: its values are in 0..=3999900000"];
    assert_eq!(found(40_000), told_of);
    assert!(found(20_000).is_empty());
    // a mask's cells are found on the host
    assert!(reported("(q_idx * 100000 + kv_idx) % 7 == 0", 40_000).is_empty());
}

#[test]
fn a_divisor_that_is_zero_somewhere_is_told() {
    let found = reported("q_idx // (kv_idx % 3) > 1", 64);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("zero-division: this divides by zero at b 0, h 0, q_idx 0, kv_idx 0"), "{found:?}");
    assert!(reported("q_idx // (kv_idx % 3 + 1) > 1", 64).is_empty());
    assert!(reported("q_idx // 3 > 1", 64).is_empty());
}

#[test]
fn rows_that_keep_nothing_are_counted_and_the_first_is_named() {
    let rows = |body: &str| {
        let of = traced(body);
        let sizes = Sizes { batch: 1, heads: 1, lengths: Lengths::new(64, 64).unwrap() };
        let shape = MaskShape { batch: 1, heads: 1, lengths: sizes.lengths };
        let mask = BlockMask::build(Some(&of), shape, BlockSize::DEFAULT, &Control::new()).unwrap();
        empty_rows(&mask, &mask.stats(), &of, sizes).map(|d| format!("{}: {}", d.code, d.message))
    };
    assert_eq!(rows("q_idx >= kv_idx"), None);
    assert_eq!(
        rows("(q_idx > kv_idx) & (q_idx != 9)").as_deref(),
        Some("empty-rows: 2 of 64 rows keep no key, the first at q_idx 0")
    );
    assert_eq!(
        rows("q_idx - kv_idx > 64").as_deref(),
        Some("keeps-nothing: at these lengths this mask keeps no cell at all")
    );
}

/// The codes of what is said about the intent of a mask.
fn meant(body: &str, q_len: usize, kv_len: usize) -> Vec<String> {
    let (of, lengths) = (traced(body), Lengths::new(q_len, kv_len).unwrap());
    let sizes = Sizes { batch: 1, heads: 1, lengths };
    let shape = MaskShape { batch: 1, heads: 1, lengths };
    let mask = BlockMask::build(Some(&of), shape, BlockSize::DEFAULT, &Control::new()).unwrap();
    intent(&of, sizes, &mask.stats()).into_iter().map(|d| d.code.to_string()).collect()
}

#[test]
fn a_mask_that_was_probably_not_meant_is_asked_about() {
    for (body, q_len, kv_len, want) in [
        // the window that forgot its other side, in three spellings
        ("q_idx - kv_idx <= 5", 1000, 1000, &["future-visible"][..]),
        ("kv_idx > q_idx - 64", 256, 256, &["future-visible"]),
        ("q_idx < kv_idx + 9", 256, 256, &["future-visible"]),
        ("(q_idx - kv_idx).abs() <= 5", 1000, 1000, &[]),
        ("(q_idx >= kv_idx) & (q_idx - kv_idx < 9)", 1000, 1000, &[]),
        ("q_idx >= kv_idx", 1000, 1000, &[]),
        // the other way round
        ("q_idx <= kv_idx", 256, 256, &["future-only"]),
        ("q_idx + t[b] <= kv_idx", 256, 256, &["future-only"]),
        // queries of a cache, a chunk of a prompt
        ("q_idx >= kv_idx", 1, 2048, &["longer-keys"]),
        ("kv_idx <= q_idx", 512, 2560, &["longer-keys"]),
        ("kv_idx <= q_idx + 2048", 512, 2560, &[]),
        ("q_idx == q_idx", 512, 512, &["keeps-all"]),
        // every third key, wherever it is
        ("kv_idx % 3 > 0", 1024, 1024, &["no-whole-block"]),
        ("(q_idx // 128) != (kv_idx // 128)", 1024, 1024, &[]),
    ] {
        assert_eq!(meant(body, q_len, kv_len), want, "{body} at {q_len} x {kv_len}");
    }
}

#[test]
fn a_table_needs_as_many_entries_as_its_offset() {
    let sizes = Sizes { batch: 1, heads: 1, lengths: Lengths::new(256, 256).unwrap() };
    let found = lint(&traced("t[q_idx - kv_idx] > 0"), sizes);
    let hint = found[0].hint.clone().unwrap_or_default();
    assert!(hint.contains("add 255 to the index and make it 511 long"), "{hint}");
}

/// What the text's own call asks for, against what its mask reads.
#[test]
fn a_call_is_held_against_its_mask() {
    use crate::document::compile::compile;
    use crate::document::environment::BuiltIn;
    use crate::document::model::*;
    let codes = |call: &str, body: &str| {
        let text = format!(
            "import torch\nfrom torch.nn.attention.flex_attention import create_block_mask\nt = torch.ones(8)\n\
             class Holder:\n    def mask(self, b, h, q_idx, kv_idx):\n        return q_idx >= kv_idx\n\
             def m(b, h, q_idx, kv_idx):\n    return {body}\nbm = create_block_mask({call})\n"
        );
        let content = MaskContent::Text(TextCode { source: text, entry: "m".into(), ..TextCode::default() });
        let layer = Layer { id: 1, name: "code".into(), enabled: true, combine: Combine::And, heads: None, content };
        let axes = Axes::same(Axis::tokens(64));
        let document = Document { layers: vec![layer], ..Document::new("d", axes, Settings::new(8, 64)) };
        let found = compile(&document, &BuiltIn);
        found.all_diagnostics().map(|d| d.code.to_string()).collect::<Vec<_>>()
    };
    let has = |call: &str, body: &str, code: &str| codes(call, body).iter().any(|c| c == code);
    let per_head = "(q_idx >= kv_idx) & (t[h] > 0)";
    assert!(has("m, 1, None, 64, 64", per_head, "broadcast-reads"));
    assert!(has("m, B=1, H=1, Q_LEN=64, KV_LEN=64", per_head, "broadcast-reads"));
    assert!(!has("m, 1, 8, 64, 64", per_head, "broadcast-reads"));
    assert!(has("m, None, 32, 64, 64", "q_idx >= kv_idx", "broadcast-possible"));
    assert!(!has("m, None, None, 64, 64", "q_idx >= kv_idx", "broadcast-possible"));
}
