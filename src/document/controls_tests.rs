//! Controls follow signature, docstring and document.

use super::*;
use crate::document::compile::BuiltIn;
use crate::document::testing::{empty, layer};

const CODE: &str = r#"
import torch
from typing import Optional

def make(window: int = 24, scale: float = 1.5, causal: bool = True, mode: str = "near", lengths: tuple = (3, 5),
         offsets: torch.Tensor = None, sinks: Optional[int] = 4, shift=-1, heads: int = 1, needed: int, step: int = 2):
    """A mask.

    Args:
        step: steps apart [1..window]
    """
    return lambda b, h, q_idx, kv_idx: q_idx - kv_idx <= window
"#;

fn found(args: &[(&str, ArgValue)]) -> Vec<Control> {
    let mut document = empty("tokens 512");
    let args = args.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    let code = TextCode { source: CODE.replace("needed: int, ", "*, needed: int, "), args, ..TextCode::default() };
    document.layers.push(layer(7, MaskContent::Text(code)));
    let (help, controls) = controls(&document, 7, &BuiltIn).expect("the text is there");
    assert!(help.starts_with("A mask."), "{help}");
    controls
}

#[test]
fn every_parameter_has_its_control_in_order() {
    let controls = found(&[("window", ArgValue::Int(30))]);
    let names: Vec<&str> = controls.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(
        names,
        ["window", "scale", "causal", "mode", "lengths", "offsets", "sinks", "shift", "heads", "needed", "step"]
    );
    let of = |name: &str| controls.iter().find(|c| c.name == name).expect("a parameter");
    assert_eq!((of("window").kind, &of("window").value), (ParamKind::Int, &Some(ArgValue::Int(30))));
    assert_eq!((&of("window").origin, &of("scale").origin), (&Origin::Given, &Origin::Default));
    assert_eq!(of("needed").origin, Origin::Missing);
    assert_eq!((of("offsets").kind, &of("offsets").value), (ParamKind::Tensor, &Some(ArgValue::None)));
    assert_eq!(of("mode").value, Some(ArgValue::Text("near".into())));
    assert_eq!(of("lengths").value, Some(ArgValue::List(vec![ArgValue::Int(3), ArgValue::Int(5)])));
}

#[test]
fn numbers_have_likely_ranges_and_docstrings_decide() {
    let controls = found(&[("window", ArgValue::Int(30))]);
    let range = |name: &str| {
        controls.iter().find(|c| c.name == name).and_then(|c| c.range).map(|r| (r.min, r.max, r.step.is_some()))
    };
    // what counts tokens reaches to the last one
    assert_eq!(range("window"), Some((1.0, 512.0, true)));
    assert_eq!((range("scale"), range("sinks")), (Some((0.0, 6.0, false)), Some((1.0, 64.0, true))));
    // -1 stays possible if it is the default
    assert_eq!((range("shift"), range("needed")), (Some((-1.0, 64.0, true)), Some((0.0, 64.0, true))));
    // the docstring's own, which may name another parameter
    assert_eq!(range("step").map(|(lo, hi, _)| (lo, hi)), Some((1.0, 30.0)));
    assert_eq!((range("causal"), range("mode"), range("offsets")), (None, None, None));
}

#[test]
fn a_keystroke_parses_a_text_once_for_arguments_trace_controls_and_a_look_at_it() {
    use crate::document::compile::Compiler;
    use crate::document::pasted;
    use crate::python::syntax::counted::times;

    let text = |typed: usize| {
        format!("def keystroke_{typed}(size: int = 8):\n    return lambda b, h, q_idx, kv_idx: q_idx - kv_idx < size\n")
    };
    let mut document = empty("tokens 64");
    document.layers.push(layer(7, MaskContent::Text(TextCode::default())));
    let mut compiler = Compiler::default();
    for typed in 0..3 {
        let source = text(typed);
        document.layers[0].content = MaskContent::Text(TextCode { source: source.clone(), ..TextCode::default() });
        let compiled = compiler.compile(&document, &BuiltIn);
        assert!(compiled.mask.is_some(), "{:?}", compiled.layers);
        assert_eq!(controls(&document, 7, &BuiltIn).expect("the text is there").1.len(), 1);
        assert_eq!(pasted::read(&source).mods.len(), 1);
        assert_eq!(times(&source), 1, "keystroke {typed}");
    }
}
