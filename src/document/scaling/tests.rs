//! Values that scale with the axes, and values that stay.

use super::*;
use crate::document::compile::BuiltIn;
use crate::document::library;
use crate::document::testing;

fn first(document: &Document, tokens: usize) -> Document {
    let copies = copies(document, &BuiltIn, tokens, Groups::of(&document.settings));
    copies.into_iter().next().expect("a copy")
}

fn args(document: &Document) -> String {
    let of = |content: &MaskContent| match content {
        MaskContent::Pattern(code) => serde_json::to_string(&code.args).unwrap(),
        other => format!("{other:?}"),
    };
    document.layers.iter().map(|l| of(&l.content)).collect::<Vec<_>>().join("; ")
}

#[test]
fn what_counts_tokens_moves_with_the_axis() {
    let check = |preset: &str, axes: &str, wanted: &str| {
        let copy = first(&library::preset(preset).unwrap().document().unwrap(), 1024);
        assert_eq!((copy.axes.q.to_string(), args(&copy)), (axes.to_string(), wanted.to_string()), "{preset}");
    };
    check("sliding_window", "tokens 1024", r#"{"window":128}"#);
    check("flux_text_padding", "text 128 | image 32x32", r#"{"lengths":[96]}"#);
    check("packed_documents", "tokens 1024", r#"{"lengths":[375,150,313,87,99]}"#);
    check("bigbird", "tokens 1024", r#"{"block":16}"#);
    check("dilated_window", "tokens 1024", r#"{"dilation":4,"window":128}"#);
    check(
        "flux_regional",
        "text 128 | image 32x32",
        r#"{"boxes":[[0,0,32,32],[0,0,32,16],[0,16,32,32]],"prompts":[32,48,48]}"#,
    );
    check(
        "packed_prefix_lm",
        "tokens 1024",
        r#"{"lengths":[256,160,352,256],"mask":{"mask":{"name":"prefix_lm","args":{"prefix":64}}}}"#,
    );
}

#[test]
fn rectangles_bands_and_painted_cells_move_with_their_segments() {
    let mut document = testing::empty("sink 1 | tokens 4096");
    document.axes.kv = Some(Axis::parse("sink 1 | tokens 4096").unwrap());
    document.layers.push(testing::layer(1, MaskContent::Band { lo: Some(-1), hi: Some(126) }));
    document.layers.push(testing::layer(2, MaskContent::Rectangle { q: [0, 4097], kv: [0, 1] }));
    let stroke = Stroke { paint: true, rects: vec![[0, 2, 0, 2]] };
    let painted = Painted { cell: BlockSize::square(128), lengths: [4097, 4097], strokes: vec![stroke] };
    document.layers.push(testing::layer(3, MaskContent::Painted(painted)));
    let copy = first(&document, 1025);
    assert_eq!(copy.axes.kv().to_string(), "sink 1 | tokens 1024");
    assert_eq!(copy.layers[0].content, MaskContent::Band { lo: Some(-1), hi: Some(32) });
    assert_eq!(copy.layers[1].content, MaskContent::Rectangle { q: [0, 1025], kv: [0, 1] });
}

#[test]
fn captured_tables_lose_tokens_and_lengths_shrink() {
    use crate::base::HostTensor;
    use crate::base::tensor::Data;
    let table = |n: i32| HostTensor::vector(Data::I32((0..n).map(|i| i / 1000).collect()));
    let code = TextCode {
        source: "def f(b, h, q, k):\n    return (doc[q] == doc[k]) & (k < lens[b])\n".into(),
        tensors: [("doc".into(), table(8192)), ("lens".into(), HostTensor::vector(Data::I64(vec![8000, 400])))].into(),
        ..TextCode::default()
    };
    let mut document = testing::empty("tokens 8192");
    document.layers.push(testing::layer(1, MaskContent::Text(code)));
    let copy = first(&document, 1024);
    let MaskContent::Text(code) = &copy.layers[0].content else { panic!() };
    assert_eq!(code.tensors["lens"].data(), &Data::I64(vec![1000, 50]));
    let Data::I32(doc) = code.tensors["doc"].data() else { panic!() };
    assert!((0..1024).all(|i| doc[i as usize] == i * 8 / 1000), "{doc:?}");
}
