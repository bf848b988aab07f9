//! Layers combine by their setting, errors stay with their layer, and unchanged layers are not traced again.

use super::*;
use crate::base::tensor::Data;
use crate::base::{BlockSize, HostTensor};
use crate::document::testing::{document, empty, keeps, layer, score, score_of};
use crate::ir::graph::Graph;

fn band(lo: i64, hi: i64) -> MaskContent {
    MaskContent::Band { lo: Some(lo), hi: Some(hi) }
}

fn rows(from: usize, to: usize) -> MaskContent {
    MaskContent::Rectangle { q: [from, to], kv: [0, 64] }
}

fn text(source: &str) -> MaskContent {
    MaskContent::Text(TextCode { source: source.into(), ..TextCode::default() })
}

#[test]
fn layers_join_bottom_up() {
    use Combine::{And, AndNot, Or};
    type Oracle = fn(bool, bool, bool) -> bool;
    let cases: [([Combine; 3], Oracle); 4] = [
        ([And, Or, AndNot], |a, b, c| (a || b) && !c),
        ([Or, And, Or], |a, b, c| (a && b) || c),
        ([AndNot, Or, And], |a, b, c| (!a || b) && c),
        ([AndNot, AndNot, AndNot], |a, b, c| !a && !b && !c),
    ];
    for (combines, oracle) in cases {
        let mut doc = empty("tokens 12");
        for (id, (combine, content)) in combines.into_iter().zip([band(-2, 1), rows(3, 7), band(0, 9)]).enumerate() {
            doc.layers.push(Layer { combine, ..layer(id as u64, content) });
        }
        let compiled = compile(&doc, &BuiltIn);
        let mask = compiled.mask.expect("three layers");
        for q in 0..12i64 {
            for k in 0..12i64 {
                let d = q - k;
                let wanted = oracle((-2..=1).contains(&d), (3..7).contains(&q), (0..=9).contains(&d));
                assert_eq!(keeps(&mask, q, k), wanted, "{combines:?} {q} {k}");
            }
        }
    }
}

#[test]
fn nothing_enabled_keeps_everything() {
    let mut doc = empty("tokens 8");
    doc.layers.push(Layer { enabled: false, ..layer(1, band(0, 0)) });
    let compiled = compile(&doc, &BuiltIn);
    assert_eq!((compiled.mask, compiled.score), (None, None));
    assert_eq!(compiled.layers, [LayerResult { id: 1, result: None, diagnostics: vec![], chosen: None, sizes: None }]);
}

#[test]
fn a_failing_layer_leaves_the_others_alive() {
    let mut doc = empty("tokens 8");
    doc.layers.push(layer(1, band(0, 3)));
    doc.layers.push(layer(2, text("def f(b, h, q, k):\n    return q >> \n")));
    doc.layers.push(layer(3, MaskContent::Pattern(CodeRef { name: "slidingwindow".into(), ..CodeRef::default() })));
    doc.layers.push(layer(4, MaskContent::Linked(LinkedCode { path: "m.py".into(), ..LinkedCode::default() })));
    doc.scores.push(score(5, ScoreContent::Curve { points: vec![] }));
    doc.scores.push(score(6, ScoreContent::Curve { points: vec![(0.0, 2.0)] }));
    let compiled = compile(&doc, &BuiltIn);
    assert!(compiled.has_errors());
    let reported: Vec<_> = compiled.layers.iter().map(|l| l.diagnostics.len()).collect();
    assert!(reported[0] == 0 && reported[1] > 0 && reported[2..] == [1, 1, 1, 0], "{reported:?}");
    assert!(compiled.layers[2].diagnostics[0].hint.as_deref().unwrap().contains("`sliding_window`"));
    assert!(keeps(compiled.mask.as_ref().unwrap(), 5, 3) && !keeps(compiled.mask.as_ref().unwrap(), 5, 1));
    assert_eq!(score_of(compiled.score.as_ref().unwrap(), 1.0, 0, 0), 3.0);
}

#[test]
fn scores_chain_in_order() {
    let mut doc = empty("tokens 8");
    doc.scores.push(score(1, ScoreContent::Curve { points: vec![(0.0, 0.0), (4.0, 4.0)] }));
    doc.scores.push(score(2, ScoreContent::Curve { points: vec![(0.0, 10.0)] }));
    assert_eq!(score_of(&compile(&doc, &BuiltIn).score.unwrap(), 0.5, 5, 3), 12.5);
}

#[test]
fn only_what_changed_is_made_again() {
    let mut doc = document();
    doc.layers[0].content = band(0, 3);
    doc.scores[0].content = ScoreContent::Curve { points: vec![(0.0, 1.0)] };
    let mut compiler = Compiler::default();
    let first = compiler.compile(&doc, &BuiltIn);
    assert_eq!(compiler.traced(), 3);
    let again = compiler.compile(&doc, &BuiltIn);
    assert_eq!(compiler.traced(), 3);
    assert!(Arc::ptr_eq(again.mask.as_ref().unwrap(), first.mask.as_ref().unwrap()));
    doc.layers[0].content = band(0, 4);
    let changed = compiler.compile(&doc, &BuiltIn);
    assert_eq!(compiler.traced(), 4);
    assert!(Arc::ptr_eq(changed.score.as_ref().unwrap(), first.score.as_ref().unwrap()));
    assert_eq!(changed, compile(&doc, &BuiltIn), "remembering changes nothing");
    doc.axes = Axes::same(Axis::tokens(40));
    compiler.compile(&doc, &BuiltIn);
    assert_eq!(compiler.traced(), 5, "painted cells know the lengths, a band does not");
}

#[test]
fn broken_axes_are_told_and_nothing_is_compiled() {
    let mut doc = document();
    doc.axes = Axes::same(Axis { segments: vec![Segment::new("a", [1 << 40])] });
    let compiled = compile(&doc, &BuiltIn);
    assert!(compiled.mask.is_none() && compiled.diagnostics[0].code == "length-too-large");
}

#[test]
fn painting_a_large_canvas_stays_quick() {
    let mut doc = empty("tokens 1048576");
    let rects = (0..64).map(|n| [n * 16000, n * 16000 + 500, n * 15000, n * 15000 + 700]).collect();
    let strokes = vec![Stroke { paint: true, rects }];
    let painted = Painted { cell: BlockSize::square(1), lengths: [1 << 20; 2], strokes };
    doc.layers.push(layer(1, MaskContent::Painted(painted)));
    let compiled = compile(&doc, &BuiltIn);
    assert!(!compiled.has_errors());
    assert!(keeps(compiled.mask.as_ref().unwrap(), 16_100, 15_100));
    assert!(!keeps(compiled.mask.as_ref().unwrap(), 16_600, 15_100));
}

#[test]
fn a_layer_in_error_stays_what_it_last_was() {
    let mut compiler = Compiler::default();
    let mut doc = empty("tokens 8");
    let with = |doc: &mut Document, source: &str| doc.layers[0].content = text(source);
    doc.layers.push(layer(1, text("def f(b, h, q, k):\n    return q - k < 3\n")));
    let good = compiler.compile(&doc, &BuiltIn);
    with(&mut doc, "def f(b, h, q, k):\n    return q - k < \n");
    let broken = compiler.compile(&doc, &BuiltIn);
    assert!(broken.has_errors() && broken.layers[0].result == good.layers[0].result);
    assert!(Arc::ptr_eq(&broken.mask.expect("the last one"), &good.mask.expect("a mask")));
    with(&mut doc, "def f(b, h, q, k):\n    return q - k < 1\n");
    let mended = compiler.compile(&doc, &BuiltIn);
    assert!(!mended.has_errors() && !keeps(&mended.mask.expect("a mask"), 4, 3));
    // another document's layer of that number is not shown in the place of this one's
    let mut other = empty("tokens 8");
    other.name = "Other".into();
    other.layers.push(layer(1, text("def f(b, h, q, k):\n    return q - k < \n")));
    assert_eq!(compiler.compile(&other, &BuiltIn).layers[0].result, None);
}

#[test]
fn a_dimension_of_one_entry_that_more_read_is_told() {
    let mut doc = empty("tokens 8");
    let code = "import torch\nt = torch.zeros(1, 8) > -1\ndef mod(b, h, q, k):\n    return t[b, k] & (q >= k)\n";
    doc.layers.push(layer(1, text(code)));
    let reported = |doc: &Document| {
        let compiled = compile(doc, &BuiltIn);
        assert!(compiled.mask.is_some());
        compiled.layers[0].diagnostics.iter().map(|d| d.code.to_string()).collect::<Vec<_>>()
    };
    doc.settings.batch = 1;
    assert_eq!(reported(&doc), [""; 0]);
    doc.settings.batch = 2;
    assert_eq!(reported(&doc), ["index-out-of-range"]);
}

/// The message about last bits for a mask of 64 tokens and two heads: none, a note or an error; with its text.
fn last_bits(setup: &str, test: &str) -> Option<(bool, String)> {
    let mut doc = empty("tokens 64");
    let source = format!("import torch\n{setup}\ndef mod(b, h, q, k):\n    return {test}\n");
    doc.layers.push(layer(1, text(&source)));
    let compiled = compile(&doc, &BuiltIn);
    let errors: Vec<_> = compiled.all_diagnostics().filter(|d| d.is_error() && d.code != "last-bit").collect();
    assert!(errors.is_empty(), "{source}\n{errors:?}");
    assert!(compiled.mask.is_some(), "{source}");
    let reported = compiled.all_diagnostics().find(|d| d.code == "last-bit");
    reported.map(|d| (d.is_error(), d.message.clone()))
}

#[test]
fn a_mask_that_follows_a_last_bit_is_refused_with_a_cell() {
    for (setup, test, function, cell) in [
        // equal but for rounding: the window is the same from both ends
        ("z = torch.hann_window(64, periodic=False)", "z[q] > z[k]", "cos", None),
        ("z = torch.hamming_window(64)", "z[q] == z[k]", "cos", None),
        ("z = torch.blackman_window(64)", "z[q] >= z[k]", "cos", None),
        ("", "torch.exp(q * 0.1) * torch.exp(k * 0.1) >= torch.exp((q + k) * 0.1)", "exp", None),
        ("", "torch.sin(q * 0.1) == -torch.sin(-q * 0.1) * (1 + 1e-8 * k)", "sin", None),
        ("", "(q.float() + 2).sqrt() ** 2 == q + 2", "sqrt", None),
        ("t = torch.tensor([0.1] * 10)\ns = t.sum()", "q * (1 / 63) < s + 0 * k", "sum", Some("q 63")),
        (
            "t = torch.rand(9, 64, generator=torch.Generator().manual_seed(1))\ns = t.sum(0)",
            "t[:, q].sum() == s[k]",
            "sum",
            None,
        ),
        ("t = torch.arange(0, 6.4, 0.1)", "t[q] - t[k] >= 0.3", "arange", None),
        ("w = torch.tensor(0.3).tanh().item()", "q * w < k * w + w", "tanh", None),
    ] {
        let (is_error, message) = last_bits(setup, test).unwrap_or_else(|| panic!("{setup} {test}: nothing is told"));
        assert!(is_error && message.contains(&format!("the last bit of `{function}`")), "{setup} {test}: {message}");
        assert!(message.contains(cell.unwrap_or("the cell b 0, h 0, q ")), "{setup} {test}: {message}");
    }
}

#[test]
fn a_mask_of_which_no_cell_follows_a_last_bit_is_told_nothing() {
    for (setup, test) in [
        ("z = torch.hann_window(64)", "z[q] > 0.3 + 0.001 * (k > 9)"),
        ("z = torch.hann_window(64)", "z[q] > z[q] + (k - 40)"),
        ("", "torch.exp(-(q - k).abs() * 0.1) > 0.21"),
        // exact on every processor: exp(0), sigmoid(0), square roots of squares
        ("", "torch.exp(-(q - k).abs() * 0.1) >= 1"),
        ("", "torch.sigmoid(q - k) > 0.5"),
        ("", "(q * q).float().sqrt() >= k"),
        ("", "torch.cos((q - k) * 0.0) == 1"),
        ("t = torch.rand(9, 64, generator=torch.Generator().manual_seed(1))", "t[:, q].sum() > 4.321"),
        ("import math\nw = math.exp(0.7)", "q - k < w"),
        // equal arguments have equal results, also at two places
        (
            "x = torch.rand(64, 9, generator=torch.Generator().manual_seed(1))",
            "x[q].softmax(0)[1] > x[k].softmax(-1)[1]",
        ),
        ("x = torch.rand(64, 9, generator=torch.Generator().manual_seed(1))", "x[q].logsumexp(0) > x[k].logsumexp(0)"),
    ] {
        assert_eq!(last_bits(setup, test), None, "{setup} {test}");
    }
}

#[test]
fn a_bias_keeps_its_last_bits_without_a_word() {
    let mut doc = empty("tokens 64");
    let source =
        "import torch\nz = torch.hann_window(64)\ndef mod(score, b, h, q, k):\n    return score + z[q] * z[k]\n";
    let code = TextCode { source: source.into(), ..TextCode::default() };
    doc.scores.push(score(1, ScoreContent::Text(code)));
    let compiled = compile(&doc, &BuiltIn);
    assert!(compiled.all_diagnostics().all(|d| d.code != "last-bit") && !compiled.has_errors());
}

#[test]
fn large_captured_tensors_are_told_before_a_run() {
    let captures = |bytes: usize| {
        let mut graph = Graph::default();
        // pages of zeros that nobody reads take no memory
        graph.add_capture("bias", HostTensor::new([bytes], Data::U8(vec![0; bytes])).unwrap());
        let root = graph.float(0.0);
        let score = Mod { kind: ModKind::Score, graph, root, sources: Vec::new() };
        large_captures(&Compiled { score: Some(Arc::new(score)), ..Compiled::default() })
    };
    assert_eq!(captures(200 << 20), None);
    let reported = captures(512 << 20).expect("it is much");
    assert!(reported.code == "captured-memory" && reported.message.contains("hold 0.50 GiB"), "{}", reported.message);
    assert!(
        reported.message.contains("3.0 GiB") && reported.message.contains("0.50 GiB of a GPU"),
        "{}",
        reported.message
    );
}
