//! The description of a design in exports: axes, layers with their arguments, and other lengths with the same meaning.
//!
//! Invariant: it contains the document's facts and nothing else. Must not know files or Python.

use super::module::OtherLengths;
use crate::document::library;
use crate::document::model::*;
use crate::ir::graph::{BinaryOp, Mod, Op, Ty};
use crate::problem::Problem;
use std::collections::BTreeMap;

/// Longest argument that is written out.
const WRITTEN: usize = 60;
/// Patterns that count blocks of tokens from the first one on, at any length.
const PLAIN_PATTERNS: &[&str] =
    &["chunked_causal", "strided", "dilated_window", "block_causal", "block_diffusion", "bigbird"];

/// The axes, then each layer and score mod that takes part, a line each.
pub(super) fn lines(document: &Document) -> Vec<String> {
    let axes = &document.axes;
    let mut out = vec![match &axes.kv {
        None => format!("Tokens: {}.", axes.q),
        Some(kv) => format!("Queries: {}. Keys: {kv}.", axes.q),
    }];
    out.extend(description(document));
    for (at, layer) in document.layers.iter().filter(|l| l.enabled).enumerate() {
        let joins = match (at, layer.combine) {
            (0, Combine::AndNot) => "everything but ",
            (0, _) => "",
            (_, Combine::And) => "and ",
            (_, Combine::Or) => "or ",
            (_, Combine::AndNot) => "but not ",
        };
        let heads = layer.heads.as_ref().map(|heads| format!(", for heads {heads}")).unwrap_or_default();
        out.push(format!("Mask: {joins}{} ({}{heads}).", content(&layer.content), layer.name));
    }
    for score in document.scores.iter().filter(|s| s.enabled) {
        out.push(format!("Score: {} ({}).", score_content(&score.content), score.name));
    }
    out
}

/// What the document says of itself; a preset's words are marked as such where its values have changed since.
pub(super) fn description(document: &Document) -> Option<String> {
    let about = &document.about;
    if about.is_empty() {
        return None;
    }
    let presets = library::presets().iter().filter_map(|preset| Some((preset.name, preset.document().ok()?)));
    let mut from = presets.filter(|(_, preset)| preset.about == *about).peekable();
    let design = |of: &Document| (of.axes.clone(), of.layers.clone(), of.scores.clone());
    let first = from.peek().map(|(name, _)| *name);
    match first {
        Some(name) if from.all(|(_, preset)| design(&preset) != design(document)) => {
            Some(format!("Of the preset {name}, from which this design was changed: {about}"))
        }
        _ => Some(about.clone()),
    }
}

/// The kept cells of a mask layer, on one line.
pub(super) fn content(content: &MaskContent) -> String {
    let open = |n: &Option<i64>| n.map_or("open".to_string(), |n| n.to_string());
    match content {
        MaskContent::Pattern(code) => call(&code.name, &code.args),
        MaskContent::Text(code) => call(entry(&code.entry), &code.args),
        MaskContent::Linked(code) => format!("{} of {}", call(entry(&code.entry), &code.args), code.path),
        MaskContent::Rectangle { q, kv } => {
            format!("queries {}..{} with keys {}..{}", q[0], q[1], kv[0], kv[1])
        }
        MaskContent::Band { lo, hi } => format!("distances from {} to {}", open(lo), open(hi)),
        MaskContent::Painted(painted) => format!("painted in {} strokes", painted.strokes.len()),
    }
}

/// The effect of a score mod, on one line.
pub(super) fn score_content(content: &ScoreContent) -> String {
    match content {
        ScoreContent::Pattern(code) => call(&code.name, &code.args),
        ScoreContent::Text(code) => call(entry(&code.entry), &code.args),
        ScoreContent::Linked(code) => format!("{} of {}", call(entry(&code.entry), &code.args), code.path),
        ScoreContent::Curve { points } => format!("a curve by distance through {} points", points.len()),
    }
}

fn entry(name: &str) -> &str {
    if name.is_empty() { "code" } else { name }
}

fn call(name: &str, args: &BTreeMap<String, ArgValue>) -> String {
    if args.is_empty() {
        return name.to_string();
    }
    let args: Vec<String> = args.iter().map(|(name, value)| format!("{name}={}", argument(value))).collect();
    format!("{name}({})", args.join(", "))
}

fn argument(value: &ArgValue) -> String {
    let text = match value {
        ArgValue::None => "None".to_string(),
        ArgValue::Bool(x) => if *x { "True" } else { "False" }.to_string(),
        ArgValue::Int(x) => x.to_string(),
        ArgValue::Float(x) => format!("{x:?}"),
        ArgValue::Text(x) => format!("'{x}'"),
        ArgValue::List(list) => format!("({})", list.iter().map(argument).collect::<Vec<_>>().join(", ")),
        ArgValue::Tensor { tensor } => format!("<{} tensor {:?}>", tensor.dtype().torch_name(), tensor.shape()),
        ArgValue::Python { python } => python.clone(),
        ArgValue::Mask { mask } => call(&mask.name, &mask.args),
    };
    if text.chars().count() <= WRITTEN {
        text
    } else {
        format!("{}...", text.chars().take(WRITTEN).collect::<String>())
    }
}

/// At which other lengths a document's design means the same.
pub(super) fn other_lengths(document: &Document, problem: &Problem) -> OtherLengths {
    let axes = [Some(&document.axes.q), document.axes.kv.as_ref()];
    if axes.iter().flatten().any(|axis| axis.segments.iter().any(|s| s.grid.len() > 1)) {
        return OtherLengths::None;
    }
    if is_scale_free(document, problem) { OtherLengths::Any } else { OtherLengths::Shorter }
}

/// Whether the mods read tensors, which end with the design's lengths.
pub(super) fn captures(problem: &Problem) -> bool {
    mods(problem).any(|of| !of.graph.captures().is_empty())
}

fn mods(problem: &Problem) -> impl Iterator<Item = &Mod> {
    [&problem.mask, &problem.score].into_iter().flatten().map(|of| of.as_ref())
}

/// Whether the mods mean the same at other lengths: no tables, no grids, no boundary between segments, and no code that
/// divides indices, for that may be a grid's width.
fn is_scale_free(document: &Document, problem: &Problem) -> bool {
    let plain = |axis: &Axis| axis.segments.len() == 1 && axis.segments[0].grid.len() == 1;
    let axes = &document.axes;
    let drawn = document
        .layers
        .iter()
        .any(|layer| matches!(layer.content, MaskContent::Rectangle { .. } | MaskContent::Painted(_)));
    let known = |code: &CodeRef| PLAIN_PATTERNS.contains(&code.name.as_str());
    let dividing = document.layers.iter().filter(|l| l.enabled).any(|layer| match &layer.content {
        MaskContent::Pattern(code) => !known(code),
        content => matches!(content, MaskContent::Text(_) | MaskContent::Linked(_)),
    }) || document.scores.iter().any(|s| s.enabled && !matches!(s.content, ScoreContent::Curve { .. }));
    !captures(problem)
        && !drawn
        && plain(&axes.q)
        && axes.kv.as_ref().is_none_or(plain)
        && !(dividing && mods(problem).any(divides))
}

/// Whether a mod divides whole numbers, takes remainders or bits of them.
fn divides(of: &Mod) -> bool {
    use BinaryOp::*;
    of.graph.nodes().iter().any(|node| match &node.op {
        Op::Binary(FloorDiv | Mod | TruncDiv | Shr, ..) => true,
        Op::Binary(And | Or | Xor, a, _) => of.graph.ty(*a) == Ty::Int,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::from_document;
    use crate::document::{library, testing};

    fn lengths(document: &Document) -> OtherLengths {
        other_lengths(document, &from_document(document, &compile(document, &BuiltIn)).expect("compiles"))
    }

    fn with(source: &str) -> Document {
        let mut document = testing::empty("tokens 160");
        let code = TextCode { source: source.into(), ..TextCode::default() };
        document.layers.push(testing::layer(1, MaskContent::Text(code)));
        document
    }

    #[test]
    fn code_that_divides_indices_may_be_a_grid_and_holds_at_no_greater_length() {
        let grid = "W = 10\ndef mask_mod(b, h, q_idx, kv_idx):\n    return abs(q_idx // W - kv_idx // W) <= 2\n";
        assert_eq!(lengths(&with(grid)), OtherLengths::Shorter);
        let window = "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx < 20)\n";
        assert_eq!(lengths(&with(window)), OtherLengths::Any);
    }

    #[test]
    fn a_presets_words_are_marked_where_its_values_changed() {
        let mut document = library::preset("flux_text_padding").expect("a preset").document().expect("opens");
        let about = document.about.clone();
        assert_eq!(description(&document), Some(about.clone()));
        document.name = "Mine".into();
        document.settings.seed += 1;
        assert_eq!(description(&document), Some(about.clone()), "neither changes the design");
        let MaskContent::Pattern(code) = &mut document.layers[0].content else { panic!("a pattern") };
        code.args.insert("lengths".into(), ArgValue::List(vec![ArgValue::Int(77)]));
        let words = "Of the preset flux_text_padding, from which this design was changed: ";
        assert_eq!(description(&document), Some(format!("{words}{about}")));
        document.about = "My own words.".into();
        assert_eq!(description(&document), Some("My own words.".into()));
        document.about.clear();
        assert_eq!(description(&document), None);
    }

    #[test]
    fn presets_hold_where_their_tokens_do() {
        use OtherLengths::*;
        for (preset, want) in
            [("causal", Any), ("sliding_window", Any), ("natten_2d", None), ("painted_blocks", Shorter)]
        {
            let document = library::preset(preset).expect("there").document().expect("loads");
            assert_eq!(lengths(&document), want, "{preset}");
        }
    }

    #[test]
    fn layers_are_told_with_their_arguments() {
        let mut document = testing::empty("text 4 | image 2x3");
        let window = testing::pattern("sliding_window", &[("window", ArgValue::Int(2))]);
        document.layers.push(testing::layer(1, MaskContent::Pattern(window)));
        document.layers.push(testing::layer(2, MaskContent::Rectangle { q: [0, 2], kv: [1, 3] }));
        let said = lines(&document).join("\n");
        assert!(said.starts_with("Tokens: text 4 | image 2x3."), "{said}");
        assert!(said.contains("sliding_window(window=2)") && said.contains("queries 0..2 with keys 1..3"), "{said}");
    }
}
