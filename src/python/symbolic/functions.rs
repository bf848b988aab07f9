//! `torch.*` and tensor methods on symbolic values, by name.
//!
//! Invariant: a function and the method of its name are one entry, with the receiver as its first argument; a missing
//! name is reported with the nearest known one. Must not know how nodes are typed.

use super::elementwise::*;
use super::rows::Reduce;
use super::shapes::{flattened, moved};
use super::tensors::*;
use crate::base::DType;
use crate::ir::graph::{BinaryOp, NodeId, Ty, UnaryOp};
use crate::ir::ops::rows::{BinaryTraced, UnaryTraced};
use crate::python::diagnose;
use crate::python::machine::Context;
use crate::python::syntax::ast::BinOp;
use crate::python::value::{Args, Fault, Value};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

/// The handling of a name's arguments.
#[derive(Clone, Copy)]
enum Entry {
    /// An operation of the graph on one operand.
    Unary(UnaryOp, UnaryTraced),
    /// An operation of the graph on two operands.
    Binary(BinaryOp, BinaryTraced),
    /// Of one operand, by its own function.
    One(fn(&mut Context<'_>, NodeId) -> Result<NodeId, Fault>),
    /// Of two operands, by its own function.
    Two(fn(&mut Context<'_>, NodeId, NodeId) -> Result<NodeId, Fault>),
    /// Anything else.
    Any(fn(&mut Context<'_>, &str, &Args) -> Result<Value, Fault>),
    Reduce(Reduce),
    /// Gives its receiver.
    Same,
    /// A cast.
    Cast(DType),
}

const TABLE: &[(&str, Entry)] = &[
    ("abs", Entry::One(abs)),
    ("absolute", Entry::One(abs)),
    ("neg", Entry::One(|cx, a| cx.negate(a))),
    ("negative", Entry::One(|cx, a| cx.negate(a))),
    ("positive", Entry::Same),
    ("log10", Entry::One(log10)),
    ("reciprocal", Entry::One(reciprocal)),
    ("tan", Entry::One(tan)),
    ("round", Entry::Any(round)),
    ("frac", Entry::One(frac)),
    ("sign", Entry::One(sign)),
    ("square", Entry::One(|cx, a| cx.emit_binary(BinOp::Mul, a, a))),
    ("relu", Entry::One(relu)),
    ("silu", Entry::One(silu)),
    ("gelu", Entry::Any(gelu)),
    ("softplus", Entry::Any(softplus)),
    ("logsigmoid", Entry::One(logsigmoid)),
    ("isnan", Entry::One(|cx, a| cx.emit_compare(BinaryOp::Ne, a, a))),
    ("isinf", Entry::One(isinf)),
    ("isfinite", Entry::One(isfinite)),
    ("logical_not", Entry::One(logical_not)),
    (
        "bitwise_not",
        Entry::Any(|cx, _, args| {
            let x = args.need("bitwise_not", 0, "input")?.clone();
            cx.symbolic_unary(python::syntax::ast::UnaryOp::Invert, &x)
        }),
    ),
    ("add", Entry::Any(add_sub)),
    ("sub", Entry::Any(add_sub)),
    ("subtract", Entry::Any(add_sub)),
    ("rsub", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Sub, b, a))),
    ("div", Entry::Any(div)),
    ("divide", Entry::Any(div)),
    ("true_divide", Entry::Any(div)),
    ("fmod", Entry::Two(fmod)),
    ("fill", Entry::Any(super::in_place::filled_with)),
    ("copy", Entry::Any(super::in_place::filled_with)),
    ("zero", Entry::Any(super::in_place::filled_with)),
    ("float_power", Entry::Two(float_power)),
    ("fmin", Entry::Two(|cx, a, b| extreme_number(cx, BinaryOp::Min, a, b))),
    ("fmax", Entry::Two(|cx, a, b| extreme_number(cx, BinaryOp::Max, a, b))),
    ("logaddexp", Entry::Two(logaddexp)),
    ("where", Entry::Any(where_)),
    ("clamp", Entry::Any(clamp)),
    ("clip", Entry::Any(clamp)),
    ("clamp_min", Entry::Two(|cx, a, b| bounded(cx, BinaryOp::Max, a, b))),
    ("clamp_max", Entry::Two(|cx, a, b| bounded(cx, BinaryOp::Min, a, b))),
    ("hardtanh", Entry::Any(clamp)),
    ("relu6", Entry::One(relu6)),
    ("leaky_relu", Entry::Any(leaky_relu)),
    ("elu", Entry::Any(elu)),
    ("masked_fill", Entry::Any(masked_fill)),
    ("zeros_like", Entry::Any(filled)),
    ("ones_like", Entry::Any(filled)),
    ("full_like", Entry::Any(filled)),
    ("empty_like", Entry::Any(filled)),
    ("new_zeros", Entry::Any(filled)),
    ("new_ones", Entry::Any(filled)),
    ("new_full", Entry::Any(filled)),
    ("new_empty", Entry::Any(filled)),
    ("new_tensor", Entry::Any(new_tensor)),
    ("tensor", Entry::Any(as_tensor)),
    ("as_tensor", Entry::Any(as_tensor)),
    ("scalar_tensor", Entry::Any(as_tensor)),
    ("to", Entry::Any(to)),
    ("type", Entry::Any(to)),
    ("type_as", Entry::Any(to)),
    ("float", Entry::Cast(DType::F32)),
    ("double", Entry::Cast(DType::F64)),
    ("half", Entry::Cast(DType::F16)),
    ("bfloat16", Entry::Cast(DType::BF16)),
    ("int", Entry::Cast(DType::I32)),
    ("long", Entry::Cast(DType::I64)),
    ("short", Entry::Cast(DType::I16)),
    ("char", Entry::Cast(DType::I8)),
    ("byte", Entry::Cast(DType::U8)),
    ("bool", Entry::Cast(DType::Bool)),
    (
        "clone",
        Entry::Any(|cx, _, args| {
            // the same value as a new object
            let x = args.need("clone", 0, "input")?.clone();
            cx.elementwise(&[&x], |_, n| Ok(n[0]))
        }),
    ),
    ("detach", Entry::Any(|cx, _, args| args.need("detach", 0, "input").cloned().and_then(|x| cx.detached(&x)))),
    ("contiguous", Entry::Same),
    ("cpu", Entry::Same),
    ("cuda", Entry::Same),
    ("requires_grad_", Entry::Same),
    ("any", Entry::Reduce(Reduce::Any)),
    ("all", Entry::Reduce(Reduce::All)),
    ("sum", Entry::Reduce(Reduce::Sum)),
    ("prod", Entry::Reduce(Reduce::Prod)),
    ("mean", Entry::Reduce(Reduce::Mean)),
    ("amin", Entry::Reduce(Reduce::Min)),
    ("amax", Entry::Reduce(Reduce::Max)),
    ("min", Entry::Any(extreme)),
    ("max", Entry::Any(extreme)),
    ("dot", Entry::Any(dot)),
    ("inner", Entry::Any(dot)),
    ("vdot", Entry::Any(dot)),
    ("matmul", Entry::Any(dot)),
    ("mv", Entry::Any(dot)),
    ("bucketize", Entry::Any(bucketize)),
    ("searchsorted", Entry::Any(bucketize)),
    ("isin", Entry::Any(isin)),
    ("unsqueeze", Entry::Any(shaped)),
    ("squeeze", Entry::Any(shaped)),
    ("view", Entry::Any(shaped)),
    ("reshape", Entry::Any(shaped)),
    ("flatten", Entry::Any(flattened)),
    ("permute", Entry::Any(moved)),
    ("transpose", Entry::Any(moved)),
    ("swapaxes", Entry::Any(moved)),
    ("swapdims", Entry::Any(moved)),
    ("movedim", Entry::Any(moved)),
    ("moveaxis", Entry::Any(moved)),
    ("t", Entry::Any(moved)),
    ("expand", Entry::Any(shaped)),
    ("broadcast_to", Entry::Any(shaped)),
    ("expand_as", Entry::Any(shaped)),
    ("stack", Entry::Any(join)),
    ("cat", Entry::Any(join)),
    ("concat", Entry::Any(join)),
    ("index_select", Entry::Any(select)),
    ("size", Entry::Any(size)),
    ("dim", Entry::Any(size)),
    ("ndimension", Entry::Any(size)),
    ("numel", Entry::Any(size)),
    ("nelement", Entry::Any(size)),
    ("get_device", Entry::Any(size)),
    ("is_floating_point", Entry::Any(size)),
    ("item", Entry::Any(|_, name, _| Err(diagnose::item(name)))),
    ("tolist", Entry::Any(|_, name, _| Err(diagnose::item(name)))),
    ("numpy", Entry::Any(|_, name, _| Err(diagnose::item(name)))),
];

/// Functions that are operations of the graph.
static OF_GRAPH: LazyLock<HashMap<&'static str, Entry>> = LazyLock::new(|| {
    let unary =
        UnaryOp::all().into_iter().filter_map(|op| op.row().torch.map(|(how, names)| (names, Entry::Unary(op, how))));
    let binary = BinaryOp::ALL
        .iter()
        .flat_map(|op| op.row().torch.iter().map(|(how, names)| (*names, Entry::Binary(*op, *how))));
    unary.chain(binary).flat_map(|(names, entry)| names.iter().map(move |name| (*name, entry))).collect()
});

/// Names that can be called as `torch.name` or as a method.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let mut of_graph: Vec<&str> = OF_GRAPH.keys().copied().collect();
    of_graph.sort_unstable();
    TABLE.iter().map(|(name, _)| *name).chain(of_graph)
}

/// Whether a symbolic tensor has this method.
pub(crate) fn is_method(name: &str) -> bool {
    find(name).is_some()
}

fn find(name: &str) -> Option<Entry> {
    let here = TABLE.iter().find(|(n, _)| *n == name).map(|(_, entry)| *entry);
    here.or_else(|| OF_GRAPH.get(name).copied())
}

impl Context<'_> {
    /// Calls a dotted function with symbolic arguments; None when it is unknown.
    pub(crate) fn symbolic_call(&mut self, dotted: &str, args: &Args) -> Option<Result<Value, Fault>> {
        if let Some(op) = dotted.strip_prefix("torch.ops.") {
            // custom operations for the hardware's approximate tanh
            let tanh = op.to_lowercase().contains("tanh");
            let last = op.rsplit('.').find(|p| *p != "default").unwrap_or(op);
            return if tanh {
                Some(self.apply(Entry::Unary(UnaryOp::TanhApprox, UnaryTraced::Float), "tanh", args))
            } else {
                Some(self.apply(find(last)?, last, args))
            };
        }
        if let Some(name) = dotted.strip_prefix("operator.") {
            let name = name.trim_matches('_');
            return Some(self.apply(find(name)?, name, args));
        }
        let name = dotted.strip_prefix("torch.")?;
        let short = ["nn.functional.", "special.", "Tensor.", "linalg."]
            .iter()
            .find_map(|p| name.strip_prefix(p))
            .unwrap_or(name);
        let short = if short == "softcap" { return None } else { short };
        Some(self.apply(find(short)?, short, args))
    }

    /// `receiver.name(args)` where something is symbolic.
    pub(crate) fn symbolic_method(&mut self, receiver: &Value, name: &str, args: &Args) -> Result<Value, Fault> {
        let mut positional = vec![receiver.clone()];
        positional.extend(args.positional.iter().cloned());
        let all = Args { positional, keyword: args.keyword.clone() };
        let plain = name.strip_prefix("__").and_then(|n| n.strip_suffix("__")).unwrap_or(name);
        match (find(plain), plain.strip_suffix('_').and_then(find)) {
            (Some(entry), _) => self.apply(entry, plain, &all),
            (None, Some(entry)) => {
                let changed = self.apply(entry, plain.trim_end_matches('_'), &all)?;
                self.written_into(receiver, changed, plain)
            }
            (None, None) => match self.call_shipped_method(receiver, plain, args) {
                Some(result) => result,
                None => match plain.strip_suffix('_').and_then(|p| self.call_shipped_method(receiver, p, args)) {
                    Some(changed) => self.written_into(receiver, changed?, plain),
                    None => {
                        let of_the_host = (self.library.tensor_methods)().iter().copied();
                        Err(diagnose::unknown_method(name, names().chain(of_the_host)))
                    }
                },
            },
        }
    }

    fn apply(&mut self, entry: Entry, name: &str, args: &Args) -> Result<Value, Fault> {
        // what a call takes beside its operations
        self.charge_steps(32)?;
        let args = &torch_names(args);
        known_keywords(entry, name, args)?;
        let flag = |name: &str| args.named(name).and_then(Value::as_bool) == Some(true);
        if args.named("out").is_some_and(|out| !matches!(out, Value::None)) {
            return Err(Fault::unsupported(format!("{name}() with `out=` is not supported inside a mod"))
                .hint("use the result: `y = f(x)` instead of `f(x, out=y)`"));
        }
        if flag("inplace") {
            let plain = Args {
                keyword: args.keyword.iter().filter(|(n, _)| &**n != "inplace").cloned().collect(),
                ..args.clone()
            };
            let changed = self.apply(entry, name, &plain)?;
            let receiver = args.need(name, 0, "input")?.clone();
            return self.written_into(&receiver, changed, name);
        }
        let function = |n: &str| format!("torch.{n}");
        match entry {
            Entry::Unary(op, how) => {
                let x = args.need(&function(name), 0, "input")?.clone();
                self.elementwise(&[&x], |cx, n| match how {
                    UnaryTraced::Float => cx.float_unary(op, n[0]),
                    UnaryTraced::Rounding => rounded(cx, op, n[0]),
                })
            }
            Entry::Binary(op, how) => {
                let (a, b) = two_of(&function(name), args)?;
                self.elementwise(&[&a, &b], |cx, n| match how {
                    BinaryTraced::Operator => cx.emit_binary(operator_of(op), n[0], n[1]),
                    BinaryTraced::Numbers => cx.two(op, n[0], n[1], Ty::Int),
                    BinaryTraced::Floats => cx.two(op, n[0], n[1], Ty::Float),
                    BinaryTraced::Compared => cx.emit_compare(op, n[0], n[1]),
                    BinaryTraced::Logical => logical(cx, op, n[0], n[1]),
                })
            }
            Entry::One(f) => {
                let x = args.need(&function(name), 0, "input")?.clone();
                self.elementwise(&[&x], |cx, n| f(cx, n[0]))
            }
            Entry::Two(f) => {
                let (a, b) = two_of(&function(name), args)?;
                self.elementwise(&[&a, &b], |cx, n| f(cx, n[0], n[1]))
            }
            Entry::Any(f) => f(self, name, args),
            Entry::Reduce(how) => {
                let mut x = args.need(&function(name), 0, "input")?.clone();
                let keep = args.get(2, "keepdim").and_then(Value::as_bool).unwrap_or(false);
                let dims = args.get(1, "dim").and_then(dims_of);
                let dtype = args.named("dtype").and_then(Value::as_dtype);
                if let Some(dtype) = dtype {
                    // the elements are converted before they are put together
                    x = self.elementwise(&[&x], |cx, n| cx.to_dtype(n[0], dtype))?;
                }
                let made = self.reduce(how, &x, dims, keep)?;
                match dtype {
                    Some(dtype) => self.elementwise(&[&made], |cx, n| cx.to_dtype(n[0], dtype)),
                    None => Ok(made),
                }
            }
            Entry::Same => args.need(&function(name), 0, "input").cloned(),
            Entry::Cast(dtype) => {
                let x = args.need(&function(name), 0, "input")?.clone();
                self.elementwise(&[&x], |cx, n| cx.to_dtype(n[0], dtype))
            }
        }
    }
}

/// The two operands of a function.
fn two_of(function: &str, args: &Args) -> Result<(Value, Value), Fault> {
    let a = args.need(function, 0, "input")?.clone();
    let second = ["other", "exponent", "min", "max"].iter().find_map(|n| args.named(n));
    let b = match args.positional.get(1).or(second) {
        Some(b) => b.clone(),
        None => args.need(function, 1, "other")?.clone(),
    };
    Ok((a, b))
}

/// Python's operator with the meaning of an operation.
fn operator_of(op: BinaryOp) -> BinOp {
    match op {
        BinaryOp::Add => BinOp::Add,
        BinaryOp::Sub => BinOp::Sub,
        BinaryOp::Mul => BinOp::Mul,
        BinaryOp::Div => BinOp::Div,
        BinaryOp::FloorDiv => BinOp::FloorDiv,
        BinaryOp::Mod => BinOp::Mod,
        BinaryOp::Pow => BinOp::Pow,
        BinaryOp::And => BinOp::And,
        BinaryOp::Or => BinOp::Or,
        BinaryOp::Xor => BinOp::Xor,
        BinaryOp::Shl => BinOp::Shl,
        BinaryOp::Shr => BinOp::Shr,
        op => unreachable!("Python has no operator for {op:?}"),
    }
}

/// PyTorch takes NumPy's names of some parameters for its own.
fn torch_names(args: &Args) -> Args {
    let own = |name: &Rc<str>| match &**name {
        "axis" => "dim".into(),
        "keepdims" => "keepdim".into(),
        "x" | "a" | "x1" => "input".into(),
        "x2" => "other".into(),
        _ => name.clone(),
    };
    Args {
        positional: args.positional.clone(),
        keyword: args.keyword.iter().map(|(name, value)| (own(name), value.clone())).collect(),
    }
}

/// Refuses a keyword argument that would be passed over.
fn known_keywords(entry: Entry, name: &str, args: &Args) -> Result<(), Fault> {
    const MADE: [&str; 8] =
        ["input", "self", "dtype", "device", "layout", "requires_grad", "memory_format", "pin_memory"];
    let made = |more: &[&'static str]| MADE.iter().copied().chain(more.iter().copied()).collect::<Vec<_>>();
    let listed;
    let known: &[&str] = match (entry, name) {
        (_, "clamp" | "clip") => &["input", "self", "min", "max", "out"],
        (_, "hardtanh") => &["input", "min_val", "max_val", "inplace"],
        (_, "add" | "sub" | "subtract") => &["input", "self", "other", "alpha", "out"],
        (_, "div" | "divide" | "true_divide") => &["input", "self", "other", "rounding_mode", "out"],
        (_, "where") => &["condition", "input", "self", "other", "out"],
        (_, "masked_fill") => &["input", "self", "mask", "value"],
        (_, "fill" | "copy" | "zero") => &["input", "self", "value", "src", "non_blocking"],
        (_, "softplus") => &["input", "beta", "threshold"],
        (_, "gelu") => &["input", "approximate"],
        (_, "leaky_relu") => &["input", "negative_slope", "inplace"],
        (_, "elu") => &["input", "alpha", "inplace"],
        (_, "zeros_like" | "ones_like" | "empty_like") => &MADE,
        (_, "full_like" | "new_zeros" | "new_ones" | "new_full" | "new_empty") => {
            listed = made(&["size", "fill_value"]);
            &listed
        }
        (_, "new_tensor" | "tensor" | "as_tensor" | "scalar_tensor") => {
            listed = made(&["data", "obj", "s"]);
            &listed
        }
        (_, "to" | "type" | "type_as") => {
            &["self", "dtype", "other", "device", "copy", "non_blocking", "memory_format", "tensor"]
        }
        (_, "clone" | "detach") => &["input", "self", "memory_format"],
        (_, "min" | "max") => &["input", "self", "other", "dim", "keepdim", "out"],
        (_, "dot" | "inner" | "vdot" | "matmul" | "mv") => &["input", "self", "other", "tensor", "vec", "out"],
        (_, "bucketize") => &["input", "boundaries", "out_int32", "right", "out"],
        (_, "searchsorted") => &["sorted_sequence", "input", "self", "out_int32", "right", "side", "sorter", "out"],
        (_, "isin") => {
            &["elements", "test_elements", "element", "test_element", "assume_unique", "invert", "input", "out"]
        }
        (_, "stack" | "cat" | "concat") => &["tensors", "dim", "out"],
        (_, "index_select") => &["input", "self", "dim", "index", "out"],
        (_, "bitwise_not") => &["input", "self", "out"],
        (_, "size" | "dim" | "ndimension" | "numel" | "nelement" | "get_device" | "is_floating_point") => {
            &["input", "self", "dim"]
        }
        (_, "unsqueeze" | "squeeze" | "view" | "reshape" | "expand" | "broadcast_to" | "expand_as") => {
            &["input", "self", "dim", "size", "shape", "dtype", "other", "implicit"]
        }
        (_, "flatten") => &["input", "self", "start_dim", "end_dim"],
        (_, "permute" | "transpose" | "swapaxes" | "swapdims" | "movedim" | "moveaxis" | "t") => {
            &["input", "self", "dims", "dim0", "dim1", "axis0", "axis1", "source", "destination"]
        }
        (_, "round") => &["input", "self", "out", "decimals"],
        (Entry::Any(_), _) => &["input", "self"],
        (Entry::Two(_) | Entry::Binary(..), _) => &["input", "self", "other", "exponent", "min", "max", "out"],
        (Entry::Reduce(_), "sum" | "prod" | "mean") => &["input", "self", "dim", "keepdim", "dtype", "out"],
        (Entry::Reduce(_), _) => &["input", "self", "dim", "keepdim", "out"],
        _ => &["input", "self", "out", "copy", "non_blocking", "memory_format", "device", "dtype", "inplace"],
    };
    match args.keyword.iter().find(|(n, _)| !known.contains(&&**n)) {
        Some((unknown, _)) => {
            let fault = Fault::type_error(format!("{name}() got an unexpected keyword argument `{unknown}`"));
            Err(match diagnose::nearest(unknown, known.iter().copied()) {
                Some(near) => fault.hint(format!("did you mean `{near}`?")),
                None => fault.hint(format!("its parameters: {}", known.join(", "))),
            })
        }
        None => Ok(()),
    }
}

pub(super) fn dims_of(value: &Value) -> Option<Vec<i64>> {
    match value.as_int() {
        Some(dim) => Some(vec![dim]),
        None => value.as_items().map(|items| items.iter().filter_map(Value::as_int).collect()),
    }
}
