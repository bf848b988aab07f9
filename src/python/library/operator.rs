//! Python's `operator`: operators as functions.
//!
//! Invariant: each function is the operator of its name, on concrete and symbolic values. Must not know tensors.

use crate::python::machine::Context;
use crate::python::syntax::ast::{BinOp, CmpOp, UnaryOp};
use crate::python::value::{Args, Fault, Value};

/// Calls a function of `operator` by its dotted name; None for unknown names.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let name = name.strip_prefix("operator.")?;
    let plain = name.trim_matches('_');
    let two = || Ok::<_, Fault>((args.need(name, 0, "a")?, args.need(name, 1, "b")?));
    if let Some(op) = binary(plain) {
        return Some(two().and_then(|(a, b)| cx.binary(op, a, b)));
    }
    if let Some(op) = comparison(plain) {
        return Some(two().and_then(|(a, b)| cx.compare(op, a, b)));
    }
    Some(match plain {
        "neg" | "pos" | "inv" | "invert" => args.need(name, 0, "a").and_then(|a| {
            let op = match plain {
                "neg" => UnaryOp::Neg,
                "pos" => UnaryOp::Plus,
                _ => UnaryOp::Invert,
            };
            cx.unary(op, a)
        }),
        "not" => args.need(name, 0, "a").and_then(|a| Ok(Value::Bool(!cx.truth(a)?))),
        "truth" => args.need(name, 0, "a").and_then(|a| cx.truth(a).map(Value::Bool)),
        "abs" => return super::python::call("abs", args, cx),
        "getitem" => two().and_then(|(a, b)| cx.item(a, b)),
        "contains" => two().and_then(|(a, b)| cx.compare(CmpOp::In, b, a)),
        "itemgetter" | "attrgetter" => {
            Ok(cx.bound(Value::Builtin(format!("operator.{plain}.call").into()), Args::of(vec![key(args)])))
        }
        "itemgetter.call" => get(args, cx, |cx, object, key| cx.item(object, key)),
        "attrgetter.call" => get(args, cx, |cx, object, key| {
            let path = key.as_str().ok_or_else(|| Fault::type_error("an attribute's name is a string"))?;
            path.split('.').try_fold(object.clone(), |object, name| cx.attribute(&object, &name.into()))
        }),
        _ => return None,
    })
}

/// One key, or several.
fn key(args: &Args) -> Value {
    if let [one] = &args.positional[..] { one.clone() } else { Value::list(args.positional.clone()) }
}

fn get(
    args: &Args,
    cx: &mut Context,
    one: impl Fn(&mut Context, &Value, &Value) -> Result<Value, Fault>,
) -> Result<Value, Fault> {
    let (key, object) = (args.need("itemgetter", 0, "key")?, args.need("itemgetter", 1, "object")?);
    match key {
        // keys themselves are no lists
        Value::List(keys) => {
            let keys = keys.borrow().0.clone();
            keys.iter().map(|key| one(cx, object, key)).collect::<Result<_, _>>().map(Value::tuple)
        }
        key => one(cx, object, key),
    }
}

fn binary(name: &str) -> Option<BinOp> {
    Some(match name {
        "add" | "concat" | "iadd" => BinOp::Add,
        "sub" => BinOp::Sub,
        "mul" | "imul" => BinOp::Mul,
        "truediv" => BinOp::Div,
        "floordiv" => BinOp::FloorDiv,
        "mod" => BinOp::Mod,
        "pow" => BinOp::Pow,
        "matmul" => BinOp::MatMul,
        "and" | "iand" => BinOp::And,
        "or" | "ior" => BinOp::Or,
        "xor" | "ixor" => BinOp::Xor,
        "lshift" => BinOp::Shl,
        "rshift" => BinOp::Shr,
        _ => return None,
    })
}

fn comparison(name: &str) -> Option<CmpOp> {
    Some(match name {
        "eq" => CmpOp::Eq,
        "ne" => CmpOp::Ne,
        "lt" => CmpOp::Lt,
        "le" => CmpOp::Le,
        "gt" => CmpOp::Gt,
        "ge" => CmpOp::Ge,
        "is" => CmpOp::Is,
        "is_not" => CmpOp::IsNot,
        _ => return None,
    })
}
