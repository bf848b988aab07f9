//! Calls the mod once on symbolic indices, and checks its result.
//!
//! Invariant: a mask's root is Bool and a score's Float, or there is a fault with its actual type. Must not know how
//! the mod was found.

use super::entry::arity;
use crate::base::{DType, Diagnostic, Span};
use crate::ir::graph::{BinaryOp, Graph, Input, ModKind, NodeId, Op, Ty, UnaryOp};
use crate::ir::ops::rows::{LastBit, UnaryText};
use crate::python::diagnose;
use crate::python::machine::Context;
use crate::python::machine::arity::required;
use crate::python::syntax::ast::ParamMode;
use crate::python::value::{Args, Fault, Value};

/// Ints beyond this do not fit in a kernel.
const I32: std::ops::RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;

/// Calls `function` with the indices and gives the node of its result.
pub(crate) fn trace_mod(cx: &mut Context, function: &Value, kind: ModKind) -> Result<NodeId, Fault> {
    let wanted = arity(kind);
    let place = place_of(function).filter(|place| !cx.ships(place.source));
    if let Some(got) = required(function).filter(|n| *n != wanted) {
        return Err(diagnose::arity(got, wanted, place));
    }
    let inputs = [Input::Score, Input::B, Input::H, Input::QIdx, Input::KvIdx];
    let inputs = &inputs[5 - wanted..];
    let mut indices = Vec::with_capacity(wanted);
    for input in inputs {
        let node = cx.node(Op::Input(*input))?;
        indices.push(cx.sym(node));
    }
    cx.span = place.unwrap_or_default();
    let fault_place = |f: Fault| match place {
        Some(place) => f.at(place),
        None => f,
    };
    cx.recover = true;
    let called = cx.call(function, Args::of(indices)).map_err(fault_place);
    cx.recover = false;
    let result = called?;
    if let Some(first) = cx.faults.first() {
        return Err(first.clone());
    }
    cx.span = place.unwrap_or_default();
    let root = checked(cx, &result, kind).map_err(fault_place)?;
    default_is_single(cx, root).map_err(fault_place)?;
    warn_about(cx, root, kind, place);
    if kind == ModKind::Mask {
        note_of_last_bits(cx, root, place);
    }
    // create_block_mask never sees a score_mod, and flex_attention takes a bound method
    if kind == ModKind::Mask
        && let Value::Partial(partial) = function
        && matches!(&partial.function, Value::Builtin(name) if &**name == "method")
    {
        let note = Diagnostic::note("bound-method", "this mod is a bound method, and create_block_mask refuses it");
        let note = match place {
            Some(place) => note.at(place, ""),
            None => note,
        };
        cx.warn(note.hint("pass `lambda b, h, q, k: obj.method(b, h, q, k)`, or a function"));
    }
    if kind == ModKind::Mask
        && let Value::Function(f) = function
        && f.def.params.first().is_some_and(|p| p.mode == ParamMode::VarArgs)
    {
        let note = Diagnostic::note(
            "wrong-arity",
            "this mod takes `*args`: create_block_mask counts no parameters and refuses it",
        );
        let note = place.map_or(note.clone(), |place| note.at(place, ""));
        cx.warn(note.hint("its signature is `mask_mod(b, h, q_idx, kv_idx)`"));
    }
    Ok(root)
}

/// Where a function is written.
fn place_of(function: &Value) -> Option<Span> {
    match function {
        Value::Function(f) => Some(f.def.name_span),
        Value::Partial(p) => p.args.positional.iter().chain([&p.function]).find_map(place_of),
        _ => None,
    }
}

fn checked(cx: &mut Context, result: &Value, kind: ModKind) -> Result<NodeId, Fault> {
    let what = match kind {
        ModKind::Mask => "mask_mod",
        ModKind::Score => "score_mod",
    };
    let wrong = |got: String, hint: &str| {
        Err(Fault::new("TypeError", "wrong-result", format!("this {what} returns {got}")).hint(hint))
    };
    match result {
        Value::None => {
            return wrong("nothing".into(), "end it with `return` and the condition or score");
        }
        Value::Tuple(_) | Value::List(_) => {
            return wrong(format!("a {}", result.type_name()), "return one value: combine conditions with `&`");
        }
        Value::Function(_) | Value::Partial(_) | Value::Builtin(_) => {
            return wrong(
                "a function".into(),
                "this is a factory: call it with its arguments, or return what the inner function gives",
            );
        }
        _ => {}
    }
    let shape = cx.symbolic_shape(result);
    if shape.iter().product::<usize>() != 1 {
        let whole = wrong(
            format!("a tensor of shape {shape:?} for each cell"),
            "index captured tensors fully, or reduce with .any(), .all() or .sum()",
        );
        return whole.map_err(|fault| at_the_read(cx, result, fault));
    }
    let node = cx.scalar(result)?;
    match (kind, cx.graph.ty(node)) {
        (ModKind::Mask, Ty::Bool) | (ModKind::Score, Ty::Float) => Ok(node),
        (ModKind::Mask, Ty::Int) => {
            let span = cx.graph.node(node).span.unwrap_or(cx.span);
            cx.warn(
                Diagnostic::warning(
                    "mask-not-bool",
                    "this mask_mod returns ints; cells with a value other than 0 are kept",
                )
                .at(span, "")
                .hint("compare, as in `x != 0`: create_block_mask refuses other types"),
            );
            cx.cast(node, Ty::Bool)
        }
        (ModKind::Mask, Ty::Float | Ty::Double) => {
            let fault = Fault::new("TypeError", "float-mask", "this mask_mod returns floats instead of truth values");
            let fault = match cx.graph.node(node).span {
                Some(span) => fault.at(span),
                None => fault,
            };
            Err(fault.hint("return a condition, such as `score > 0`; to change scores write a score_mod(score, b, h, q_idx, kv_idx)"))
        }
        // flex_attention casts its arguments
        (ModKind::Score, Ty::Int | Ty::Double) => cx.cast(node, Ty::Float),
        (ModKind::Score, Ty::Bool) => {
            let fault = Fault::new("TypeError", "bool-score", "this score_mod returns truth values instead of scores");
            let fault = match cx.graph.node(node).span {
                Some(span) => fault.at(span),
                None => fault,
            };
            Err(fault.hint("a condition belongs in a mask_mod(b, h, q_idx, kv_idx); or write `torch.where(condition, score, -float(\"inf\"))`"))
        }
    }
}

/// A fault of a result with dimensions, at the read of a captured tensor that leaves one of its dimensions over.
fn at_the_read(cx: &mut Context, result: &Value, fault: Fault) -> Fault {
    let Value::Array(array) = result else { return fault };
    let Some(first) = array.nodes.first() else { return fault };
    let mut left = vec![*first];
    let mut seen = 0;
    while let Some(node) = left.pop().filter(|_| seen < 256) {
        seen += 1;
        if let Op::Load(capture, index) = &cx.graph.node(node).op {
            let read = cx.graph.capture(*capture);
            let known = index.iter().filter(|i| cx.literal_int(**i).is_some()).count();
            let rank = read.tensor.shape().len();
            if let (true, Some(span)) = (known > 0 && known < rank, cx.graph.node(node).span) {
                let message = format!(
                    "`{}` has {rank} dimensions, and this indexes {} of them: the result is a row for each cell",
                    read.name,
                    rank - known
                );
                let hint = format!("index all of them, as in `{}[b, q_idx]`, or reduce the row", read.name);
                return Fault::new("TypeError", "wrong-result", message).at(span).hint(hint);
            }
        }
        left.extend(cx.graph.node(node).op.operands());
    }
    fault
}

/// Notes that a mask depends on a function whose last bit differs between PyTorch's processors: once for each mod.
fn note_of_last_bits(cx: &mut Context, root: NodeId, place: Option<Span>) {
    let needed = crate::ir::schedule::needed(&cx.graph, &[root]);
    let computed = needed.iter().find_map(|id| {
        let node = cx.graph.node(*id);
        let constant = || match node.op {
            Op::Float(bits) => cx.rough_numbers.of(f64::from_bits(bits)),
            _ => None,
        };
        Some((rough_function(&cx.graph, &node.op).map(Into::into).or_else(constant)?, node.span))
    });
    let read = cx.rough.clone().map(|(function, span)| (function, Some(span)));
    let Some((function, at)): Option<(std::rc::Rc<str>, Option<Span>)> = computed.or(read) else { return };
    let message =
        format!("this mask depends on the last bit of `{function}`, which differs between processors in PyTorch");
    let note = Diagnostic::note("last-bit", message)
        .hint("cells with so close a comparison may differ: compare with a margin, or compute the table in PyTorch and capture it");
    cx.warn(match at.or(place) {
        Some(span) => note.at(span, ""),
        None => note,
    });
}

/// PyTorch's name of an operation that its vector libraries round otherwise on every processor.
pub(super) fn rough_function(graph: &Graph, op: &Op) -> Option<&'static str> {
    match op {
        Op::Unary(op, _) => match op.row().python {
            UnaryText::Function(name) if op.row().rough => Some(name),
            UnaryText::Function(_) | UnaryText::Sign(_) | UnaryText::Method(_) | UnaryText::Cast => None,
        },
        Op::Binary(op, a, _) if op.row().last_bit == LastBit::Library && graph.ty(*a).is_float() => Some(op.row().name),
        _ => None,
    }
}

/// Errors where floats that the mod makes would be float64 by `torch.set_default_dtype`.
fn default_is_single(cx: &Context, root: NodeId) -> Result<(), Fault> {
    let made = |op: &Op| matches!(op, Op::Float(_) | Op::Unary(UnaryOp::ToFloat, _));
    let needed = crate::ir::schedule::needed(&cx.graph, &[root]);
    let first = needed.iter().map(|id| cx.graph.node(*id)).find(|node| made(&node.op));
    match first {
        Some(node) if python::tensors::default_float() != DType::F32 => {
            let message = "the default dtype is still float64 when this mod runs, so its floats would be float64";
            let fault = Fault::unsupported(message).hint("end the setup with `torch.set_default_dtype(torch.float32)`");
            Err(match node.span {
                Some(span) => fault.at(span),
                None => fault,
            })
        }
        _ => Ok(()),
    }
}

fn warn_about(cx: &mut Context, root: NodeId, kind: ModKind, place: Option<Span>) {
    let depends = cx.graph.depends()[root.0 as usize];
    let at = |warning: Diagnostic| match place {
        Some(place) => warning.at(place, ""),
        None => warning,
    };
    if kind == ModKind::Mask && depends.on(Input::QIdx) && !depends.on(Input::KvIdx) {
        let warning =
            Diagnostic::warning("ignores-kv", "this mask does not read kv_idx: a query keeps all keys or none");
        cx.warn(at(warning.hint("it drops queries, and padded keys stay visible: read the table at kv_idx (`keep[b, kv_idx]`), or compare q_idx with kv_idx; queries without keys give zeros")));
    }
    if kind == ModKind::Mask && cx.graph.node(root).op == Op::Bool(false) {
        let warning = Diagnostic::warning("keeps-nothing", "this mask keeps no cell at all");
        cx.warn(at(warning.hint("check the condition: the output will be all zeros")));
    }
    let big = cx.graph.nodes().iter().find(|n| matches!(n.op, Op::Int(i) if !I32.contains(&i))).cloned();
    // the cells of a mask are found on the host, in 64 bits
    if let Some(node) = big.filter(|_| kind == ModKind::Score) {
        let warning =
            Diagnostic::warning("int-overflow", "this number does not fit in 32 bits, the precision of kernels");
        let warning = match node.span {
            Some(span) => warning.at(span, ""),
            None => at(warning),
        };
        cx.warn(warning.hint("use a smaller number, or a float"));
    }
    if kind == ModKind::Mask
        && let Some((node, width, inclusive)) = window(&cx.graph, root)
    {
        let keys = if inclusive { width + 1 } else { width };
        let (op, hint) = if inclusive {
            ("<=", "attention-gym uses `<=`, Hugging Face uses `<`: q_idx - kv_idx < W keeps one key less")
        } else {
            ("<", "attention-gym uses `<=`, Hugging Face uses `<`: q_idx - kv_idx <= W keeps one key more")
        };
        let message = format!("`q_idx - kv_idx {op} {width}` keeps {keys} keys, the query's own included");
        let note = Diagnostic::note("window-convention", message).hint(hint);
        let note = match cx.graph.node(node).span {
            Some(span) => note.at(span, ""),
            None => at(note),
        };
        cx.warn(note);
    }
}

/// `q_idx - kv_idx < W` next to a causal condition: the node, W, and whether the comparison includes it.
fn window(graph: &Graph, root: NodeId) -> Option<(NodeId, i64, bool)> {
    let mut conditions = vec![root];
    let mut at = 0;
    // the conjunction's members
    while let Some(node) = conditions.get(at).copied().filter(|_| at < 64) {
        if let Op::Binary(BinaryOp::And, a, b) = graph.node(node).op {
            conditions.extend([a, b]);
        }
        at += 1;
    }
    let is = |node: NodeId, input: Input| graph.node(node).op == Op::Input(input);
    let distance = |node: NodeId| matches!(graph.node(node).op, Op::Binary(BinaryOp::Sub, a, b) if is(a, Input::QIdx) && is(b, Input::KvIdx));
    let causal = conditions.iter().any(|n| match graph.node(*n).op {
        Op::Binary(BinaryOp::Ge, a, b) => {
            (is(a, Input::QIdx) && is(b, Input::KvIdx)) || (distance(a) && graph.node(b).op == Op::Int(0))
        }
        Op::Binary(BinaryOp::Le, a, b) => is(a, Input::KvIdx) && is(b, Input::QIdx),
        Op::Unary(UnaryOp::Not, _) => false,
        _ => false,
    });
    let limit = |n: NodeId| if let Op::Int(i) = graph.node(n).op { Some(i).filter(|i| *i > 0) } else { None };
    let found = conditions.iter().find_map(|n| match graph.node(*n).op {
        Op::Binary(BinaryOp::Lt, a, b) if distance(a) => Some((*n, limit(b)?, false)),
        Op::Binary(BinaryOp::Le, a, b) if distance(a) => Some((*n, limit(b)?, true)),
        _ => None,
    });
    found.filter(|_| causal)
}
