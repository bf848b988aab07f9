//! `torch.*` and tensor methods on symbolic values, by name.
//!
//! Invariant: a function and the method of its name are one entry, the receiver its first argument; a name that is not
//! here is unknown to the user, with the nearest one suggested. Must not know how nodes are typed.

use super::rows::Reduce;
use crate::base::DType;
use crate::language::diagnose;
use crate::language::eval::Context;
use crate::language::graph::{BinaryOp, NodeId, Op, Ty, UnaryOp, load_ty};
use crate::language::syntax::ast::BinOp;
use crate::language::value::{Args, Fault, Value};

/// What a name does with its arguments.
#[derive(Clone, Copy)]
enum Entry {
    /// A float function of one operand.
    Float(UnaryOp),
    /// Of one operand, by hand.
    One(fn(&mut Context<'_>, NodeId) -> Result<NodeId, Fault>),
    /// Of two operands, by hand.
    Two(fn(&mut Context<'_>, NodeId, NodeId) -> Result<NodeId, Fault>),
    /// Anything else.
    Any(fn(&mut Context<'_>, &str, &Args) -> Result<Value, Fault>),
    Reduce(Reduce),
    /// Gives its receiver.
    Same,
    /// A cast.
    Cast(Ty),
}

const TABLE: &[(&str, Entry)] = &[
    ("abs", Entry::One(abs)),
    ("absolute", Entry::One(abs)),
    ("neg", Entry::One(|cx, a| cx.negate(a))),
    ("negative", Entry::One(|cx, a| cx.negate(a))),
    ("positive", Entry::Same),
    ("exp", Entry::Float(UnaryOp::Exp)),
    ("exp2", Entry::Float(UnaryOp::Exp2)),
    ("log", Entry::Float(UnaryOp::Log)),
    ("log2", Entry::Float(UnaryOp::Log2)),
    ("log10", Entry::One(log10)),
    ("log1p", Entry::Float(UnaryOp::Log1p)),
    ("expm1", Entry::Float(UnaryOp::Expm1)),
    ("sqrt", Entry::Float(UnaryOp::Sqrt)),
    ("rsqrt", Entry::Float(UnaryOp::Rsqrt)),
    ("reciprocal", Entry::One(reciprocal)),
    ("sin", Entry::Float(UnaryOp::Sin)),
    ("cos", Entry::Float(UnaryOp::Cos)),
    ("tan", Entry::One(tan)),
    ("tanh", Entry::Float(UnaryOp::Tanh)),
    ("sigmoid", Entry::Float(UnaryOp::Sigmoid)),
    ("expit", Entry::Float(UnaryOp::Sigmoid)),
    ("erf", Entry::Float(UnaryOp::Erf)),
    ("floor", Entry::One(|cx, a| rounded(cx, UnaryOp::Floor, a))),
    ("ceil", Entry::One(|cx, a| rounded(cx, UnaryOp::Ceil, a))),
    ("round", Entry::One(|cx, a| rounded(cx, UnaryOp::Round, a))),
    ("trunc", Entry::One(|cx, a| rounded(cx, UnaryOp::Trunc, a))),
    ("fix", Entry::One(|cx, a| rounded(cx, UnaryOp::Trunc, a))),
    ("frac", Entry::One(frac)),
    ("sign", Entry::One(sign)),
    ("square", Entry::One(|cx, a| cx.emit_binary(BinOp::Mul, a, a))),
    ("relu", Entry::One(relu)),
    ("silu", Entry::One(silu)),
    ("gelu", Entry::Any(gelu)),
    ("softplus", Entry::One(softplus)),
    ("logsigmoid", Entry::One(logsigmoid)),
    ("isnan", Entry::One(|cx, a| cx.emit_compare(BinaryOp::Ne, a, a))),
    ("isinf", Entry::One(isinf)),
    ("isfinite", Entry::One(isfinite)),
    ("logical_not", Entry::One(logical_not)),
    (
        "bitwise_not",
        Entry::Any(|cx, _, args| {
            let x = args.need("bitwise_not", 0, "input")?.clone();
            cx.symbolic_unary(crate::language::syntax::ast::UnaryOp::Invert, &x)
        }),
    ),
    ("add", Entry::Any(add_sub)),
    ("sub", Entry::Any(add_sub)),
    ("subtract", Entry::Any(add_sub)),
    ("rsub", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Sub, b, a))),
    ("mul", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Mul, a, b))),
    ("multiply", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Mul, a, b))),
    ("div", Entry::Any(div)),
    ("divide", Entry::Any(div)),
    ("true_divide", Entry::Any(div)),
    ("floor_divide", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::FloorDiv, a, b))),
    ("remainder", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Mod, a, b))),
    ("fmod", Entry::Two(fmod)),
    ("pow", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Pow, a, b))),
    ("float_power", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Pow, a, b))),
    ("minimum", Entry::Two(|cx, a, b| cx.two(BinaryOp::Min, a, b, Ty::Int))),
    ("maximum", Entry::Two(|cx, a, b| cx.two(BinaryOp::Max, a, b, Ty::Int))),
    ("fmin", Entry::Two(|cx, a, b| cx.two(BinaryOp::Min, a, b, Ty::Int))),
    ("fmax", Entry::Two(|cx, a, b| cx.two(BinaryOp::Max, a, b, Ty::Int))),
    ("atan2", Entry::Two(|cx, a, b| cx.two(BinaryOp::Atan2, a, b, Ty::Float))),
    ("arctan2", Entry::Two(|cx, a, b| cx.two(BinaryOp::Atan2, a, b, Ty::Float))),
    ("logaddexp", Entry::Two(logaddexp)),
    ("eq", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Eq, a, b))),
    ("ne", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Ne, a, b))),
    ("not_equal", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Ne, a, b))),
    ("lt", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Lt, a, b))),
    ("less", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Lt, a, b))),
    ("le", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Le, a, b))),
    ("less_equal", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Le, a, b))),
    ("gt", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Gt, a, b))),
    ("greater", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Gt, a, b))),
    ("ge", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Ge, a, b))),
    ("greater_equal", Entry::Two(|cx, a, b| cx.emit_compare(BinaryOp::Ge, a, b))),
    ("logical_and", Entry::Two(|cx, a, b| logical(cx, BinaryOp::And, a, b))),
    ("logical_or", Entry::Two(|cx, a, b| logical(cx, BinaryOp::Or, a, b))),
    ("logical_xor", Entry::Two(|cx, a, b| logical(cx, BinaryOp::Xor, a, b))),
    ("bitwise_and", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::And, a, b))),
    ("bitwise_or", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Or, a, b))),
    ("bitwise_xor", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Xor, a, b))),
    ("bitwise_left_shift", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Shl, a, b))),
    ("bitwise_right_shift", Entry::Two(|cx, a, b| cx.emit_binary(BinOp::Shr, a, b))),
    ("where", Entry::Any(where_)),
    ("clamp", Entry::Any(clamp)),
    ("clip", Entry::Any(clamp)),
    ("clamp_min", Entry::Two(|cx, a, b| cx.two(BinaryOp::Max, a, b, Ty::Int))),
    ("clamp_max", Entry::Two(|cx, a, b| cx.two(BinaryOp::Min, a, b, Ty::Int))),
    ("hardtanh", Entry::Any(clamp)),
    ("relu6", Entry::One(relu6)),
    ("leaky_relu", Entry::Any(leaky_relu)),
    ("elu", Entry::Any(elu)),
    ("masked_fill", Entry::Any(masked_fill)),
    ("lerp", Entry::Any(lerp)),
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
    ("float", Entry::Cast(Ty::Float)),
    ("double", Entry::Cast(Ty::Float)),
    ("half", Entry::Cast(Ty::Float)),
    ("bfloat16", Entry::Cast(Ty::Float)),
    ("int", Entry::Cast(Ty::Int)),
    ("long", Entry::Cast(Ty::Int)),
    ("short", Entry::Cast(Ty::Int)),
    ("bool", Entry::Cast(Ty::Bool)),
    ("clone", Entry::Same),
    ("detach", Entry::Same),
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
    ("norm", Entry::Any(norm)),
    ("bucketize", Entry::Any(bucketize)),
    ("searchsorted", Entry::Any(bucketize)),
    ("isin", Entry::Any(isin)),
    ("unsqueeze", Entry::Any(shaped)),
    ("squeeze", Entry::Any(shaped)),
    ("view", Entry::Any(shaped)),
    ("reshape", Entry::Any(shaped)),
    ("flatten", Entry::Any(shaped)),
    ("expand", Entry::Any(shaped)),
    ("broadcast_to", Entry::Any(shaped)),
    ("expand_as", Entry::Any(shaped)),
    ("stack", Entry::Any(join)),
    ("cat", Entry::Any(join)),
    ("concat", Entry::Any(join)),
    ("take", Entry::Any(select)),
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

/// Names that can be called as `torch.name` or as a method.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

/// Whether a symbolic tensor has this method.
pub(crate) fn is_method(name: &str) -> bool {
    find(name).is_some()
}

fn find(name: &str) -> Option<Entry> {
    TABLE.iter().find(|(n, _)| *n == name).map(|(_, entry)| *entry)
}

impl Context<'_> {
    /// Calls a dotted function with symbolic arguments; None when it is unknown.
    pub(crate) fn symbolic_call(&mut self, dotted: &str, args: &Args) -> Option<Result<Value, Fault>> {
        if let Some(op) = dotted.strip_prefix("torch.ops.") {
            // custom operations that stand for the hardware's approximate tanh
            let tanh = op.to_lowercase().contains("tanh");
            let last = op.rsplit('.').find(|p| *p != "default").unwrap_or(op);
            return if tanh {
                Some(self.apply(Entry::Float(UnaryOp::TanhApprox), "tanh", args))
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
            // in place, on a value that only the mod sees: the result is the same
            (None, Some(_)) => {
                Err(diagnose::write_in_mod().hint(format!("write `x = x.{}(...)`", plain.trim_end_matches('_'))))
            }
            (None, None) => Err(diagnose::unknown_method(name, &names().collect::<Vec<_>>())),
        }
    }

    fn apply(&mut self, entry: Entry, name: &str, args: &Args) -> Result<Value, Fault> {
        let function = |n: &str| format!("torch.{n}");
        match entry {
            Entry::Float(op) => {
                let x = args.need(&function(name), 0, "input")?.clone();
                self.elementwise(&[&x], |cx, n| cx.float_unary(op, n[0]))
            }
            Entry::One(f) => {
                let x = args.need(&function(name), 0, "input")?.clone();
                self.elementwise(&[&x], |cx, n| f(cx, n[0]))
            }
            Entry::Two(f) => {
                let a = args.need(&function(name), 0, "input")?.clone();
                let second = ["other", "exponent", "min", "max"].iter().find_map(|n| args.named(n));
                let b = match args.positional.get(1).or(second) {
                    Some(b) => b.clone(),
                    None => args.need(&function(name), 1, "other")?.clone(),
                };
                self.elementwise(&[&a, &b], |cx, n| f(cx, n[0], n[1]))
            }
            Entry::Any(f) => f(self, name, args),
            Entry::Reduce(how) => {
                let x = args.need(&function(name), 0, "input")?.clone();
                let keep = args.get(2, "keepdim").and_then(Value::as_bool).unwrap_or(false);
                let dims = args.get(1, "dim").or_else(|| args.named("axis"));
                self.reduce(how, &x, dims.and_then(dims_of), keep)
            }
            Entry::Same => args.need(&function(name), 0, "input").cloned(),
            Entry::Cast(ty) => {
                let x = args.need(&function(name), 0, "input")?.clone();
                self.elementwise(&[&x], |cx, n| cx.cast(n[0], ty))
            }
        }
    }
}

fn dims_of(value: &Value) -> Option<Vec<i64>> {
    match value.as_int() {
        Some(dim) => Some(vec![dim]),
        None => value.as_items().map(|items| items.iter().filter_map(Value::as_int).collect()),
    }
}

fn abs(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    if cx.graph.ty(a) == Ty::Bool {
        return Err(Fault::type_error("abs() of a truth value"));
    }
    cx.node(Op::Unary(UnaryOp::Abs, a))
}

fn rounded(cx: &mut Context<'_>, op: UnaryOp, a: NodeId) -> Result<NodeId, Fault> {
    if cx.graph.ty(a) == Ty::Float { cx.node(Op::Unary(op, a)) } else { Ok(a) }
}

fn frac(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let whole = cx.node(Op::Unary(UnaryOp::Trunc, a))?;
    cx.node(Op::Binary(BinaryOp::Sub, a, whole))
}

fn log10(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let log = cx.float_unary(UnaryOp::Log, a)?;
    let ten = cx.float_literal(std::f64::consts::LN_10)?;
    cx.node(Op::Binary(BinaryOp::Div, log, ten))
}

fn reciprocal(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let one = cx.float_literal(1.0)?;
    cx.two(BinaryOp::Div, one, a, Ty::Float)
}

fn tan(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let (sin, cos) = (cx.float_unary(UnaryOp::Sin, a)?, cx.float_unary(UnaryOp::Cos, a)?);
    cx.node(Op::Binary(BinaryOp::Div, sin, cos))
}

fn sign(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let zero = cx.node(Op::Int(0))?;
    let above = cx.emit_compare(BinaryOp::Gt, a, zero)?;
    let below = cx.emit_compare(BinaryOp::Lt, a, zero)?;
    let (above, below) = (cx.cast(above, Ty::Int)?, cx.cast(below, Ty::Int)?);
    let sign = cx.node(Op::Binary(BinaryOp::Sub, above, below))?;
    let ty = cx.graph.ty(a);
    if ty == Ty::Float { cx.cast(sign, ty) } else { Ok(sign) }
}

fn relu(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let zero = cx.node(Op::Int(0))?;
    cx.two(BinaryOp::Max, a, zero, Ty::Int)
}

fn relu6(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let above = relu(cx, a)?;
    let six = cx.node(Op::Int(6))?;
    cx.two(BinaryOp::Min, above, six, Ty::Int)
}

fn silu(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let gate = cx.node(Op::Unary(UnaryOp::Sigmoid, a))?;
    cx.node(Op::Binary(BinaryOp::Mul, a, gate))
}

/// `log(1 + exp(a))`, without overflow: `max(a, 0) + log1p(exp(-|a|))`.
fn softplus(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let size = cx.node(Op::Unary(UnaryOp::Abs, a))?;
    let minus = cx.negate(size)?;
    let small = cx.node(Op::Unary(UnaryOp::Exp, minus))?;
    let tail = cx.node(Op::Unary(UnaryOp::Log1p, small))?;
    let above = relu(cx, a)?;
    cx.node(Op::Binary(BinaryOp::Add, above, tail))
}

fn logsigmoid(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let minus = cx.negate(a)?;
    let plus = softplus(cx, minus)?;
    cx.negate(plus)
}

fn isinf(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let size = cx.node(Op::Unary(UnaryOp::Abs, a))?;
    let infinity = cx.float_literal(f64::INFINITY)?;
    cx.node(Op::Binary(BinaryOp::Eq, size, infinity))
}

fn isfinite(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Float)?;
    let size = cx.node(Op::Unary(UnaryOp::Abs, a))?;
    let infinity = cx.float_literal(f64::INFINITY)?;
    cx.node(Op::Binary(BinaryOp::Lt, size, infinity))
}

fn logical_not(cx: &mut Context<'_>, a: NodeId) -> Result<NodeId, Fault> {
    let a = cx.cast(a, Ty::Bool)?;
    cx.node(Op::Unary(UnaryOp::Not, a))
}

fn logical(cx: &mut Context<'_>, op: BinaryOp, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
    let (a, b) = (cx.cast(a, Ty::Bool)?, cx.cast(b, Ty::Bool)?);
    cx.node(Op::Binary(op, a, b))
}

/// Remainder with the sign of the dividend.
fn fmod(cx: &mut Context<'_>, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
    let (a, b, _) = cx.promote(a, b, Ty::Int)?;
    let quotient = cx.divide(a, b, Some("trunc"))?;
    let whole = cx.node(Op::Binary(BinaryOp::Mul, quotient, b))?;
    cx.node(Op::Binary(BinaryOp::Sub, a, whole))
}

fn logaddexp(cx: &mut Context<'_>, a: NodeId, b: NodeId) -> Result<NodeId, Fault> {
    let (a, b, _) = cx.promote(a, b, Ty::Float)?;
    let most = cx.node(Op::Binary(BinaryOp::Max, a, b))?;
    let apart = cx.node(Op::Binary(BinaryOp::Sub, a, b))?;
    let size = cx.node(Op::Unary(UnaryOp::Abs, apart))?;
    let minus = cx.negate(size)?;
    let small = cx.node(Op::Unary(UnaryOp::Exp, minus))?;
    let tail = cx.node(Op::Unary(UnaryOp::Log1p, small))?;
    cx.node(Op::Binary(BinaryOp::Add, most, tail))
}

fn gelu(cx: &mut Context<'_>, _: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need("gelu", 0, "input")?.clone();
    let by_tanh = args.get(1, "approximate").and_then(Value::as_str) == Some("tanh");
    cx.elementwise(&[&x], |cx, n| {
        let x = cx.cast(n[0], Ty::Float)?;
        let half = cx.float_literal(0.5)?;
        let one = cx.float_literal(1.0)?;
        let gate = if by_tanh {
            // tanh(sqrt(2 / pi) * (x + 0.044715 x^3))
            let three = cx.float_literal(3.0)?;
            let cube = cx.power(x, three)?;
            let small = cx.float_literal(0.044715)?;
            let small = cx.node(Op::Binary(BinaryOp::Mul, small, cube))?;
            let sum = cx.node(Op::Binary(BinaryOp::Add, x, small))?;
            let scale = cx.float_literal((2.0 / std::f64::consts::PI).sqrt())?;
            let inner = cx.node(Op::Binary(BinaryOp::Mul, scale, sum))?;
            cx.node(Op::Unary(UnaryOp::Tanh, inner))?
        } else {
            let scale = cx.float_literal(std::f64::consts::FRAC_1_SQRT_2)?;
            let inner = cx.node(Op::Binary(BinaryOp::Mul, x, scale))?;
            cx.node(Op::Unary(UnaryOp::Erf, inner))?
        };
        let gate = cx.node(Op::Binary(BinaryOp::Add, one, gate))?;
        let scaled = cx.node(Op::Binary(BinaryOp::Mul, x, half))?;
        cx.node(Op::Binary(BinaryOp::Mul, scaled, gate))
    })
}

fn add_sub(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let a = args.need(name, 0, "input")?.clone();
    let mut b = args.need(name, 1, "other")?.clone();
    if let Some(alpha) = args.named("alpha") {
        b = cx.symbolic_binary(BinOp::Mul, &b, alpha)?;
    }
    cx.symbolic_binary(if name == "add" { BinOp::Add } else { BinOp::Sub }, &a, &b)
}

fn div(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let (a, b) = (args.need(name, 0, "input")?.clone(), args.need(name, 1, "other")?.clone());
    let mode = args.named("rounding_mode").and_then(Value::as_str);
    cx.elementwise(&[&a, &b], |cx, n| cx.divide(n[0], n[1], mode))
}

fn where_(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    // as a method the receiver is what is kept: x.where(condition, other)
    let first = args.need(name, 0, "condition")?.clone();
    let (second, third) = match (args.get(1, "input").or_else(|| args.named("self")), args.get(2, "other")) {
        (Some(second), Some(third)) => (second.clone(), third.clone()),
        _ => {
            return Err(Fault::type_error("torch.where(condition) alone finds places, which a mod cannot")
                .hint("give both results: `torch.where(condition, a, b)`"));
        }
    };
    let is_condition = |cx: &Context<'_>, v: &Value| cx.symbolic_ty(v) == Ty::Bool;
    let (c, a) = if !is_condition(cx, &first) && is_condition(cx, &second) { (second, first) } else { (first, second) };
    cx.elementwise(&[&c, &a, &third], |cx, n| cx.choose(n[0], n[1], n[2]))
}

fn clamp(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let mut x = args.need(name, 0, "input")?.clone();
    let given = |at: usize, names: [&str; 2]| {
        let value = args.get(at, names[0]).or_else(|| args.named(names[1]));
        value.filter(|v| !matches!(v, Value::None)).cloned()
    };
    let (mut lo, mut hi) = (given(1, ["min", "min_val"]), given(2, ["max", "max_val"]));
    if name == "hardtanh" {
        (lo, hi) = (lo.or(Some(Value::Float(-1.0))), hi.or(Some(Value::Float(1.0))));
    }
    if lo.is_none() && hi.is_none() {
        return Err(Fault::runtime_error("clamp() needs min, max or both"));
    }
    if let Some(lo) = &lo {
        x = cx.elementwise(&[&x, lo], |cx, n| cx.two(BinaryOp::Max, n[0], n[1], Ty::Int))?;
    }
    if let Some(hi) = &hi {
        x = cx.elementwise(&[&x, hi], |cx, n| cx.two(BinaryOp::Min, n[0], n[1], Ty::Int))?;
    }
    Ok(x)
}

fn leaky_relu(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let slope = args.get(1, "negative_slope").cloned().unwrap_or(Value::Float(0.01));
    cx.elementwise(&[&x, &slope], |cx, n| {
        let zero = cx.node(Op::Int(0))?;
        let above = cx.emit_compare(BinaryOp::Gt, n[0], zero)?;
        let below = cx.emit_binary(BinOp::Mul, n[0], n[1])?;
        cx.choose(above, n[0], below)
    })
}

fn elu(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let alpha = args.get(1, "alpha").cloned().unwrap_or(Value::Float(1.0));
    cx.elementwise(&[&x, &alpha], |cx, n| {
        let zero = cx.node(Op::Int(0))?;
        let above = cx.emit_compare(BinaryOp::Gt, n[0], zero)?;
        let small = cx.float_unary(UnaryOp::Expm1, n[0])?;
        let below = cx.emit_binary(BinOp::Mul, n[1], small)?;
        cx.choose(above, n[0], below)
    })
}

fn masked_fill(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let (mask, value) = (args.need(name, 1, "mask")?.clone(), args.need(name, 2, "value")?.clone());
    let ty = cx.symbolic_ty(&x);
    cx.elementwise(&[&mask, &value, &x], |cx, n| {
        let value = cx.cast(n[1], ty)?;
        cx.choose(n[0], value, n[2])
    })
}

fn lerp(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let (a, b) = (args.need(name, 0, "input")?.clone(), args.need(name, 1, "end")?.clone());
    let weight = args.need(name, 2, "weight")?.clone();
    let apart = cx.symbolic_binary(BinOp::Sub, &b, &a)?;
    let part = cx.symbolic_binary(BinOp::Mul, &apart, &weight)?;
    cx.symbolic_binary(BinOp::Add, &a, &part)
}

/// `zeros_like`, `full_like`, `new_full` and their kin: constants of the receiver's type and shape.
fn filled(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let is_new = name.starts_with("new_");
    let value = if name.ends_with("ones_like") || name == "new_ones" {
        Value::Int(1)
    } else if name.contains("full") {
        args.get(1 + usize::from(is_new), "fill_value")
            .cloned()
            .ok_or_else(|| Fault::type_error(format!("{name}() misses its value")))?
    } else {
        Value::Int(0)
    };
    let shape: Vec<usize> = if is_new {
        let size = args.get(1, "size").map(|s| s.as_items().unwrap_or_else(|| vec![s.clone()])).unwrap_or_default();
        size.iter().filter_map(Value::as_int).filter_map(|n| usize::try_from(n).ok()).collect()
    } else {
        cx.symbolic_shape(&x)
    };
    let ty = match args.named("dtype").and_then(Value::as_dtype) {
        Some(dtype) => load_ty(dtype),
        None => cx.symbolic_ty(&x),
    };
    let node = cx.scalar(&value)?;
    let node = cx.cast(node, ty)?;
    let count: usize = shape.iter().product();
    if count > super::MAX_ELEMENTS {
        return Err(super::too_many(&shape));
    }
    cx.array(shape, vec![node; count])
}

fn new_tensor(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let rest =
        Args { positional: args.positional.get(1..).unwrap_or_default().to_vec(), keyword: args.keyword.clone() };
    as_tensor(cx, name, &rest)
}

fn as_tensor(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let data = args.need(name, 0, "data")?.clone();
    let value = match data.as_items() {
        Some(items) => {
            let mut rows = Vec::with_capacity(items.len());
            for item in items {
                let row = if item.as_items().is_some() { as_tensor(cx, name, &Args::of(vec![item]))? } else { item };
                rows.push(row);
            }
            cx.stack(&rows, 0)?
        }
        None => data,
    };
    match args.named("dtype").and_then(Value::as_dtype) {
        Some(dtype) => cx.elementwise(&[&value], |cx, n| cx.cast(n[0], load_ty(dtype))),
        None => cx.elementwise(&[&value], |_, n| Ok(n[0])),
    }
}

/// `.to(...)`: only the dtype matters.
fn to(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "self")?.clone();
    let given = args.positional[1..].iter().chain(args.named("dtype")).chain(args.named("other"));
    let mut target: Option<Ty> = None;
    for value in given {
        let named = value.as_str().and_then(|t| t.strip_prefix("torch.")).and_then(dtype_named);
        match (value.as_dtype().or(named), value) {
            (Some(dtype), _) => target = Some(load_ty(dtype)),
            (None, Value::Tensor(_)) => target = Some(cx.symbolic_ty(value)),
            (None, v) if v.is_symbolic() => target = Some(cx.symbolic_ty(value)),
            _ => {}
        }
    }
    match target {
        Some(ty) => cx.elementwise(&[&x], |cx, n| cx.cast(n[0], ty)),
        None => Ok(x),
    }
}

fn dtype_named(name: &str) -> Option<DType> {
    match crate::language::builtins::value(&format!("torch.{name}")) {
        Some(Value::DType(dtype)) => Some(dtype),
        _ => None,
    }
}

/// `torch.max(a, b)` is elementwise; `x.max()` and `x.max(dim)` reduce.
fn extreme(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let (op, how) = if name == "min" { (BinaryOp::Min, Reduce::Min) } else { (BinaryOp::Max, Reduce::Max) };
    let second = args.positional.get(1).or_else(|| args.named("other"));
    match second {
        Some(other) if other.type_name() == "Tensor" => {
            let other = other.clone();
            cx.elementwise(&[&x, &other], |cx, n| cx.two(op, n[0], n[1], Ty::Int))
        }
        _ => {
            let dim = second.or_else(|| args.named("dim")).and_then(dims_of);
            if dim.is_some() {
                return Err(Fault::unsupported(format!(".{name}(dim) gives values and places"))
                    .hint(format!("write .a{name}(dim) for the values")));
            }
            cx.reduce(how, &x, None, false)
        }
    }
}

fn dot(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let (a, b) = (args.need(name, 0, "input")?.clone(), args.need(name, 1, "other")?.clone());
    cx.dot(&a, &b)
}

fn norm(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    if args.positional.len() > 1 || args.named("p").or_else(|| args.named("ord")).is_some() {
        return Err(
            Fault::unsupported("only the Euclidean norm is known inside a mod").hint("write it with .abs() and .sum()")
        );
    }
    let squares = cx.symbolic_binary(BinOp::Mul, &x, &x)?;
    let dims = args.named("dim").and_then(dims_of);
    let sum = cx.reduce(Reduce::Sum, &squares, dims, false)?;
    cx.elementwise(&[&sum], |cx, n| cx.float_unary(UnaryOp::Sqrt, n[0]))
}

/// `bucketize(x, boundaries)` and `searchsorted(sorted, x)`.
fn bucketize(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let (table, x) = if name == "bucketize" {
        (args.get(1, "boundaries"), args.get(0, "input"))
    } else {
        (args.get(0, "sorted_sequence"), args.get(1, "input"))
    };
    let (Some(table), Some(x)) = (table, x.cloned()) else {
        return Err(Fault::type_error(format!("torch.{name} needs a sorted tensor and a value")));
    };
    let side = args.named("side").and_then(Value::as_str) == Some("right");
    let right = side || args.named("right").and_then(Value::as_bool).unwrap_or(false);
    let Value::Tensor(table) = table else {
        return Err(Fault::type_error(format!("torch.{name} looks up in a tensor made outside the mod"))
            .hint("make the sorted tensor in the factory"));
    };
    let label = table.name().unwrap_or_else(|| "boundaries".into());
    let table = table.get();
    cx.elementwise(&[&x], |cx, n| cx.search(&table, &label, n[0], right))
}

fn isin(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let (x, set) = (args.need(name, 0, "elements")?.clone(), args.need(name, 1, "test_elements")?.clone());
    let set = cx.as_array(&set)?;
    cx.elementwise(&[&x], |cx, n| {
        let mut any = cx.node(Op::Bool(false))?;
        for (at, member) in set.nodes.iter().enumerate() {
            let same = cx.emit_compare(BinaryOp::Eq, n[0], *member)?;
            any = if at == 0 { same } else { cx.node(Op::Binary(BinaryOp::Or, any, same))? };
        }
        Ok(any)
    })
}

fn shaped(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let rest = &args.positional[1..];
    let sizes = || -> Vec<i64> {
        let listed = rest.first().or_else(|| args.named("shape")).or_else(|| args.named("size"));
        let items = listed.and_then(Value::as_items).unwrap_or_else(|| rest.to_vec());
        items.iter().filter_map(Value::as_int).collect()
    };
    match name {
        "unsqueeze" => {
            let dim =
                args.need(name, 1, "dim")?.as_int().ok_or_else(|| Fault::type_error("unsqueeze() needs an int"))?;
            cx.unsqueeze(&x, dim)
        }
        "squeeze" => cx.squeeze(&x, args.get(1, "dim").and_then(Value::as_int)),
        "flatten" => cx.reshape(&x, &[-1]),
        "view" if rest.first().is_some_and(|v| v.as_dtype().is_some()) => {
            Err(Fault::unsupported("reinterpreting bits with .view(dtype) is not run here")
                .hint("convert with .to(dtype)"))
        }
        "view" | "reshape" => cx.reshape(&x, &sizes()),
        "expand_as" => {
            let other = args.need(name, 1, "other")?.clone();
            let shape: Vec<i64> = cx.symbolic_shape(&other).iter().map(|n| *n as i64).collect();
            cx.expand(&x, &shape)
        }
        _ => cx.expand(&x, &sizes()),
    }
}

fn join(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let items = args.need(name, 0, "tensors")?.as_items();
    let items = items.ok_or_else(|| Fault::type_error(format!("torch.{name} needs a list of tensors")))?;
    match name {
        "stack" => cx.stack(&items, args.get(1, "dim").and_then(Value::as_int).unwrap_or(0)),
        _ => cx.concatenate(&items),
    }
}

/// `table.take(i)` and `table.index_select(dim, i)`.
fn select(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let table = args.need(name, 0, "input")?.clone();
    if name == "take" {
        let index = args.need(name, 1, "index")?.clone();
        if cx.symbolic_shape(&table).len() != 1 {
            return Err(Fault::unsupported("take() of a tensor with several dimensions").hint("index it: `t[i, j]`"));
        }
        return cx.item(&table, &index);
    }
    let dim = args.need(name, 1, "dim")?.as_int().unwrap_or(0);
    let n = cx.symbolic_shape(&table).len() as i64;
    let at = if dim < 0 { dim + n } else { dim }.clamp(0, n);
    let index = args.need(name, 2, "index")?.clone();
    let mut places: Vec<Value> =
        (0..at).map(|_| Value::Slice(std::rc::Rc::new(crate::language::value::Items::default()))).collect();
    places.push(index);
    cx.item(&table, &Value::tuple(places))
}

fn size(cx: &mut Context<'_>, name: &str, args: &Args) -> Result<Value, Fault> {
    let x = args.need(name, 0, "input")?.clone();
    let shape = cx.symbolic_shape(&x);
    Ok(match name {
        "dim" | "ndimension" => Value::Int(shape.len() as i64),
        "numel" | "nelement" => Value::Int(shape.iter().product::<usize>() as i64),
        "get_device" => Value::Int(-1),
        "is_floating_point" => Value::Bool(cx.common_type(&[&x]) == Ty::Float),
        _ => match args.get(1, "dim").and_then(Value::as_int) {
            None => Value::ints(shape),
            Some(dim) => {
                let n = shape.len() as i64;
                let at = usize::try_from(if dim < 0 { dim + n } else { dim }).ok().and_then(|at| shape.get(at));
                let at =
                    at.ok_or_else(|| Fault::index_error(format!("dimension {dim} of a tensor with {n} dimensions")))?;
                Value::Int(*at as i64)
            }
        },
    })
}
