//! Functions about functions: combinators of masks, `functools`, and parts of PyTorch without effect on a mask.
//!
//! Invariant: functions that concern only training, compiling or devices do nothing here. Must not know tensors'
//! elements.

use super::{collections, containers, copying, itertools, json, operator, records, strings, vmap};
use crate::base::Diagnostic;
use crate::python::machine::Context;
use crate::python::machine::changes::{Role, is_inert};
use crate::python::machine::class::{PARTIAL_METHOD, callable, field};
use crate::python::machine::enums::auto;
use crate::python::syntax::Name;
use crate::python::syntax::ast::BinOp;
use crate::python::value::{Args, CACHED, Class, Fault, Instance, Items, Pairs, VALUE_BYTES, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Calls one of these by its dotted name; None when the name is not here.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if let Some(short) = name.strip_prefix("flex.") {
        return flex(short, args, cx);
    }
    let elsewhere = records::call(name, args, cx)
        .or_else(|| json::call(name, args, cx))
        .or_else(|| of_type(name, args, cx))
        .or_else(|| itertools::call(name, args, cx))
        .or_else(|| collections::call(name, args, cx))
        .or_else(|| operator::call(name, args, cx))
        .or_else(|| vmap::call(name, args, cx));
    if elsewhere.is_some() {
        return elsewhere;
    }
    let first = || args.positional.first().cloned();
    Some(match name {
        "torch.ops.aten.index" | "torch.ops.aten.index.Tensor" => aten_index(args, cx),
        "torch.Size" => match first() {
            Some(sizes) => cx.collect(&sizes).map(Value::tuple),
            None => Ok(Value::tuple(Vec::new())),
        },
        "functools.partial" => partial(args, cx),
        // bound to an object when it is read from one
        "functools.partialmethod" => {
            args.need(name, 0, "func").map(|_| cx.bound(Value::Builtin(PARTIAL_METHOD.into()), args.clone()))
        }
        "functools.reduce" => reduce(args, cx),
        "types.SimpleNamespace" | "argparse.Namespace" => {
            let named = args.keyword.iter().map(|(name, value)| (&**name, value.clone())).collect();
            Ok(object("namespace", named))
        }
        "functools.wraps" => args
            .need(name, 0, "wrapped")
            .map(|wrapped| cx.bound(Value::Builtin("functools.wraps.call".into()), Args::of(vec![wrapped.clone()]))),
        "functools.wraps.call" => Ok(wrapped(args, cx)),
        "functools.cache" | "functools.lru_cache" => Ok(match first().filter(callable) {
            Some(function) => cached(function, cx),
            // called with its settings, as in `lru_cache(maxsize=None)`
            None => Value::Builtin("functools.cache".into()),
        }),
        CACHED => from_cache(args, cx),
        "contextlib.contextmanager" => args
            .need(name, 0, "func")
            .map(|function| cx.bound(Value::Builtin("contextlib.made".into()), Args::of(vec![function.clone()]))),
        "contextlib.made" => args.need(name, 0, "func").map(|function| {
            let rest = Args { positional: args.rest(1).to_vec(), keyword: args.keyword.clone() };
            let bound = cx.bound(function.clone(), rest);
            cx.bound(Value::Builtin(python::machine::context_manager::GENERATOR.into()), Args::of(vec![bound]))
        }),
        "identity"
        | "torch.compile"
        | "torch.jit.script"
        | "torch.compiler.disable"
        | "typing.cast"
        | "torch.export.Dim" => {
            let at = usize::from(name == "typing.cast");
            Ok(args.positional.get(at).cloned().unwrap_or_else(|| Value::Builtin("identity".into())))
        }
        "torch.device" => Ok(first().map_or(Value::str("cpu"), |v| Value::str(python::machine::text(&v)))),
        "torch.is_tensor" => Ok(Value::Bool(first().is_some_and(|v| v.type_name() == "Tensor"))),
        "torch.cuda.is_available"
        | "torch.backends.mps.is_available"
        | "torch.is_grad_enabled"
        | "torch.compiler.is_compiling"
        | "torch.cuda.is_bf16_supported" => Ok(Value::Bool(false)),
        "torch.cuda.device_count" | "torch.cuda.current_device" | "time.time" | "time.perf_counter" => {
            Ok(Value::Int(0))
        }
        "torch._assert" | "torch._check" => asserted(args, cx),
        "torch.cuda.get_device_capability" => Ok(Value::ints([8, 0])),
        "copy.copy" | "copy.deepcopy" => copying::call(name == "copy.deepcopy", args, cx),
        "os.environ.get" | "os.getenv" => environment(args, cx),
        "os.environ.setdefault" | "os.putenv" => Ok(args.positional.get(1).cloned().unwrap_or(Value::None)),
        "dataclasses.field" => Ok(field(args)),
        "enum.auto" => Ok(auto()),
        "logging.getLogger" => Ok(Value::Builtin("ignored".into())),
        _ if is_inert(name, Role::Call) => Ok(Value::Builtin("ignored".into())),
        _ => return None,
    })
}

/// `str.strip(text)`, `dict.fromkeys(keys)`: methods of Python's types, called by the type.
fn of_type(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let (of, method) = name.split_once('.')?;
    match name {
        "str.maketrans" => return Some(strings::table(args)),
        "dict.fromkeys" | "collections.OrderedDict.fromkeys" => return Some(from_keys(args, cx)),
        _ => {}
    }
    let own = args.positional.first()?;
    let fits = matches!(
        (of, own),
        ("str", Value::Str(_))
            | ("list", Value::List(_))
            | ("dict", Value::Dict(_))
            | ("set", Value::Set(_))
            | ("tuple", Value::Tuple(_))
            | ("int", Value::Int(_))
            | ("float", Value::Float(_))
    );
    if !fits {
        return None;
    }
    let rest = Args { positional: args.rest(1).to_vec(), keyword: args.keyword.clone() };
    containers::method(&own.clone(), method, &rest, cx)
}

fn from_keys(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let value = args.get(1, "value").cloned().unwrap_or(Value::None);
    let made = Value::Dict(Rc::default());
    for key in cx.collect(args.need("fromkeys", 0, "iterable")?)? {
        cx.set_item(&made, &key, value.clone())?;
    }
    Ok(made)
}

/// `torch._assert(condition, message)`; it ignores a condition that is known only inside the mod.
fn asserted(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let holds = match args.get(0, "condition").or(args.named("cond")) {
        Some(given) if !given.is_symbolic() => cx.truth(given)?,
        _ => true,
    };
    if holds {
        return Ok(Value::None);
    }
    let said = args.get(1, "message").and_then(Value::as_str).unwrap_or("the condition does not hold");
    Err(Fault::new("AssertionError", "assertion", said).hint("the code itself raises this: change the arguments"))
}

/// The environment is not read: the result must not depend on the machine.
fn environment(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let name = args.need("os.environ.get", 0, "key")?;
    let default = args.get(1, "default").cloned().unwrap_or(Value::None);
    let (name, shown) = (python::machine::text(name), python::machine::repr_in_message(&default));
    let note = Diagnostic::note("environment", format!("environment variables are not read: `{name}` is {shown} here"));
    let place = cx.place();
    cx.warn(note.at(place, "").hint("write another value into the code"));
    Ok(default)
}

fn flex(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    Some(match name {
        "and_masks" | "or_masks" => combine(name, args, cx),
        "and_masks.call" => combined(BinOp::And, args, cx),
        "or_masks.call" => combined(BinOp::Or, args, cx),
        "noop_mask" => Ok(Value::Bool(true)),
        "_identity" => Ok(args.positional.first().cloned().unwrap_or(Value::None)),
        "create_block_mask" | "create_mask" => {
            // what is remembered of it, and the object with its attributes
            let charged = cx.charge_steps(16).and_then(|()| cx.charge_bytes(MADE));
            let mask = charged.and_then(|()| args.need(name, 0, "mask_mod").cloned());
            mask.map(|mask| {
                let met = python::met::Met::of(mask.clone(), args, cx.span, name == "create_block_mask");
                cx.met.push(met);
                if name == "create_mask" {
                    return object("BlockMask", vec![("mask_mod", mask)]);
                }
                let given = |at, name| args.get(at, name).cloned().unwrap_or(Value::None);
                let block = args.get(6, "BLOCK_SIZE").cloned().unwrap_or(Value::Int(128));
                let sizes = [(1, "B"), (2, "H"), (3, "Q_LEN"), (4, "KV_LEN")].map(|(at, name)| given(at, name));
                made(cx, mask, sizes, block)
            })
        }
        "BlockMask.to.call" => {
            let [mask, b, h, q, kv, block] = args.positional.first_chunk::<6>()?.clone();
            cx.charge_bytes(MADE).map(|()| made(cx, mask, [b, h, q, kv], block))
        }
        "flex_attention" => Err(Fault::unsupported("attention does not run while a mod is traced")
            .hint("no action is needed: Maskloom's own backends use the mod")),
        _ => return None,
    })
}

/// Bytes of a BlockMask: fifteen attributes, ten of them with the sentence that refuses them.
const MADE: u64 = 128 * VALUE_BYTES;

/// What create_block_mask returns: its sizes are known, its lists and their counts are not computed here.
fn made(cx: &mut Context, mask: Value, sizes: [Value; 4], block: Value) -> Value {
    let [b, h, q, kv] = sizes.clone();
    let pair =
        if block.as_items().is_some() { block.clone() } else { Value::tuple(vec![block.clone(), block.clone()]) };
    let one = |extent: Value| if matches!(extent, Value::None) { Value::Int(1) } else { extent };
    let lengths = Value::tuple(vec![q.clone(), kv.clone()]);
    let shape = Value::tuple(vec![one(b), one(h), q, kv]);
    let same: Vec<Value> = std::iter::once(mask.clone()).chain(sizes).chain([block]).collect();
    let to = cx.bound(Value::Builtin("flex.BlockMask.to.call".into()), Args::of(same));
    let mut attributes =
        vec![("mask_mod", mask), ("BLOCK_SIZE", pair), ("seq_lengths", lengths), ("shape", shape), ("to", to)];
    for name in [
        "sparsity",
        "to_string",
        "to_dense",
        "numel",
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
    ] {
        // its numbers are taken for cells, and the mask for wrong
        let what = if name == "to_dense" { ", one number for each block and not the mask's cells," } else { "" };
        let fault = Fault::unsupported(format!("`BlockMask.{name}`{what} is not computed while a mask is traced"))
            .hint("remove this use: `maskloom blocks` prints the counts and writes the lists; of a slice for decoding, write the mask with an offset");
        attributes.push((name, Value::Missing(Rc::new(fault))));
    }
    object("BlockMask", attributes)
}

/// PyTorch's and_masks and or_masks: a function of the four indices.
fn combine(name: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    if let Some(bad) = args.positional.iter().find(|m| !callable(m)) {
        let shown = python::machine::repr_in_message(bad);
        return Err(Fault::new(
            "RuntimeError",
            "not-a-mod",
            format!("All inputs should be callable mask_mods: {shown}"),
        )
        .hint("pass the mask functions themselves, without calling them"));
    }
    for given in &args.positional {
        if let Some(n) = python::machine::arity::required(given).filter(|n| *n != 4) {
            let of = match given {
                Value::Function(f) => format!("`{}`", f.def.name),
                _ => "this".to_string(),
            };
            let fault =
                Fault::new("RuntimeError", "not-a-mod", format!("{of} takes {n} arguments, but a mask_mod takes 4"));
            return Err(match given {
                Value::Function(f)
                    if python::outline::returned_mod(&f.def, &python::outline::Products::new()).is_some() =>
                {
                    fault.hint(format!("it returns a mask: call it, `{}(...)`", f.def.name))
                }
                _ => fault.hint("its signature is `mask_mod(b, h, q_idx, kv_idx)`"),
            });
        }
    }
    Ok(cx.bound(Value::Builtin(format!("flex.{name}.call").into()), Args::of(args.positional.clone())))
}

fn combined(op: BinOp, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let n = args.positional.len();
    if n < 4 {
        return Err(Fault::type_error("a combined mask takes b, h, q_idx and kv_idx"));
    }
    let (masks, indices) = args.positional.split_at(n - 4);
    let span = cx.span;
    let mut result: Option<Value> = None;
    for mask in masks {
        let kept = cx.call(mask, Args::of(indices.to_vec()))?;
        cx.span = span;
        result = Some(match result {
            Some(before) => cx.binary(op, &before, &kept)?,
            None => kept,
        });
    }
    Ok(result.unwrap_or(Value::Bool(op == BinOp::And)))
}

/// An object with these attributes.
fn object(class: &str, attributes: Vec<(&str, Value)>) -> Value {
    let class = Class { name: class.into(), bases: Items::default(), members: RefCell::default(), fields: None };
    let pairs = attributes.into_iter().map(|(name, value)| (Value::str(name), value)).collect();
    Value::Instance(Rc::new(Instance { class: Rc::new(class), attributes: RefCell::new(Pairs(pairs)) }))
}

/// `aten::index`: what `x[indices]` calls; None stands for a whole dimension.
fn aten_index(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let tensor = args.need("index", 0, "self")?;
    let indices = args.need("index", 1, "indices")?;
    let all = || Value::Slice(Rc::new(Items(vec![Value::None, Value::None, Value::None])));
    let parts = cx.collect(indices)?.into_iter().map(|i| if matches!(i, Value::None) { all() } else { i });
    let parts = Value::tuple(parts.collect());
    cx.item(tensor, &parts)
}

/// `functools.wraps(of)(function)`: the function takes the name and the parameters of the wrapped one.
fn wrapped(args: &Args, cx: &mut Context) -> Value {
    let [of, function, ..] = &args.positional[..] else { return Value::None };
    if let Value::Function(made) = function {
        let mut attributes = made.attributes.borrow_mut();
        attributes.set_named(&"__wrapped__".into(), of.clone());
        drop(attributes);
        if let Ok(name) = cx.attribute(of, &"__name__".into()) {
            made.attributes.borrow_mut().set_named(&"__name__".into(), name);
        }
    }
    function.clone()
}

fn cached(function: Value, cx: &mut Context) -> Value {
    let results = Value::Dict(Rc::default());
    cx.bound(Value::Builtin(CACHED.into()), Args::of(vec![function, results]))
}

/// Most arguments of a call that is remembered.
const MOST_CACHED: usize = 100;

/// Calls a function, unless it was called with these arguments before. Numbers and strings are compared by value.
fn from_cache(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let [function, Value::Dict(results), given @ ..] = &args.positional[..] else {
        return Err(Fault::type_error("this is no cached function"));
    };
    let rest = Args { positional: given.to_vec(), keyword: args.keyword.clone() };
    let named = args.keyword.iter().flat_map(|(name, value)| [Value::Str(name.clone()), value.clone()]);
    let all: Vec<Value> = given.iter().cloned().chain(named).collect();
    let plain = |v: &Value| matches!(v, Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_));
    // a text of many arguments is shortened: it would stand for others, too
    if !all.iter().all(plain) || all.len() > MOST_CACHED {
        return cx.call(function, rest);
    }
    let key = Value::str(format!("{}: {}", given.len(), python::machine::repr(&Value::tuple(all))));
    if let Some(at) = cx.place_in_dict(results, &key)? {
        return Ok(results.borrow().0[at].1.clone());
    }
    let made = cx.call(function, rest)?;
    cx.charge_bytes(2 * VALUE_BYTES)?;
    results.borrow_mut().0.push((key, made.clone()));
    Ok(made)
}

fn partial(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let function = args.need("functools.partial", 0, "func")?;
    if !callable(function) {
        return Err(Fault::type_error("functools.partial needs a function first"));
    }
    let mut bound = Args { positional: args.rest(1).to_vec(), keyword: args.keyword.clone() };
    // Python makes one partial of a partial of a partial: `func` is the function itself
    let Value::Partial(inner) = function else { return Ok(cx.bound(function.clone(), bound)) };
    if !matches!(inner.function, Value::Function(_) | Value::Class(_) | Value::Instance(_)) {
        return Ok(cx.bound(function.clone(), bound));
    }
    cx.charge_bytes(VALUE_BYTES * (inner.args.positional.len() + inner.args.keyword.len()) as u64)?;
    bound.positional.splice(0..0, inner.args.positional.iter().cloned());
    let kept = inner.args.keyword.iter().filter(|(name, _)| bound.named(name).is_none()).cloned();
    let kept: Vec<(Name, Value)> = kept.collect();
    bound.keyword.splice(0..0, kept);
    Ok(cx.bound(inner.function.clone(), bound))
}

fn reduce(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let function = args.need("functools.reduce", 0, "function")?.clone();
    let mut items = cx.collect(args.need("functools.reduce", 1, "iterable")?)?.into_iter();
    let start = args.positional.get(2).cloned().or_else(|| items.next());
    let mut total = start.ok_or_else(|| Fault::type_error("reduce() of an empty sequence without an initial value"))?;
    for item in items {
        total = cx.call(&function, Args::of(vec![total, item]))?;
    }
    Ok(total)
}
