//! Random tensors: `torch.rand` and similar functions, with the trace's own generator or one created in the text.
//!
//! Invariant: the same numbers as PyTorch on the CPU for the same seed; functions without proven equality are refused,
//! and so is an unseeded generator, whose numbers are not reproducible. Must not know how numbers are generated.

use super::bind::{Bound, bind, fault, pack_sizes, spend};
use crate::base::{DType, Diagnostic, HostTensor};
use crate::python::machine::Context;
use crate::python::tensors::{Budget, Generator, HostResult, Operand, default_float};
use crate::python::value::{Args, Fault, Opaque, Tensor, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Functions of `torch` that draw, and methods of generators.
pub(super) const NAMES: &[&str] = &[
    "torch.manual_seed",
    "torch.seed",
    "torch.initial_seed",
    "torch.Generator",
    "torch.rand",
    "torch.randn",
    "torch.randint",
    "torch.randperm",
    "torch.rand_like",
    "torch.randn_like",
    "torch.randint_like",
    "torch.normal",
    "torch.bernoulli",
    "torch.multinomial",
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
    "Generator.manual_seed",
    "Generator.initial_seed",
    "Generator.seed",
];

/// Calls one of [`NAMES`]; None for other names.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    Some(match name {
        "torch.manual_seed" => seed_argument(name, args).map(|seed| {
            let mut generator = Generator::default();
            generator.manual_seed(seed);
            let shared = of(generator);
            cx.host.generator = Some(shared.clone());
            cx.host.unsure = None;
            Value::Opaque(shared)
        }),
        "torch.cuda.manual_seed" | "torch.cuda.manual_seed_all" => Ok(Value::None),
        "torch.initial_seed" => match &cx.host.generator {
            Some(g) => with_state(name, g, |g| Ok(Value::Int(g.initial_seed() as i64))),
            None => Err(unseeded(name)),
        },
        "torch.seed" | "Generator.seed" => {
            Err(Fault::unsupported(format!("{name}() seeds from the clock: its results are not reproducible"))
                .hint("manual_seed(0)"))
        }
        "torch.Generator" => Ok(Value::Opaque(of(Generator::default()))),
        "Generator.manual_seed" | "Generator.initial_seed" => of_generator(name, args),
        _ if NAMES.contains(&name) => draw(name, args, cx).map(Value::tensor),
        _ => return None,
    })
}

fn seed_argument(name: &str, args: &Args) -> Result<i64, Fault> {
    bind(name, args, &["seed"])?.need_int("seed")
}

/// A generator that values share.
fn of(generator: Generator) -> Rc<Opaque> {
    Rc::new(Opaque { kind: "Generator", state: RefCell::new(Box::new(generator)) })
}

/// Runs `f` with the generator inside.
fn with_state<T>(name: &str, opaque: &Opaque, f: impl FnOnce(&mut Generator) -> Result<T, Fault>) -> Result<T, Fault> {
    let mut state = opaque.state.borrow_mut();
    match state.downcast_mut::<Generator>() {
        Some(generator) => f(generator),
        None => Err(Fault::type_error(format!("{name}() needs a torch.Generator, not {}", opaque.kind))),
    }
}

fn of_generator(name: &str, args: &Args) -> Result<Value, Fault> {
    let mut rest = args.clone();
    let first = if rest.positional.is_empty() { Value::None } else { rest.positional.remove(0) };
    let Value::Opaque(opaque) = &first else {
        return Err(Fault::type_error(format!("{name}() needs a torch.Generator")));
    };
    if name == "Generator.initial_seed" {
        return with_state(name, opaque, |g| Ok(Value::Int(g.initial_seed() as i64)));
    }
    let seed = seed_argument(name, &rest)?;
    with_state(name, opaque, |g| {
        g.manual_seed(seed);
        Ok(())
    })?;
    Ok(first)
}

fn unseeded(name: &str) -> Fault {
    let message = format!("{name}() draws from an unseeded generator: PyTorch draws other numbers in every run");
    Fault::new("RuntimeError", "unseeded-random", message)
        .hint("call `torch.manual_seed(0)` first, or pass `generator=torch.Generator().manual_seed(0)`")
}

fn refused(name: &str) -> Fault {
    let message = format!("{name} draws numbers that are not proven equal to PyTorch's, so it is not evaluated");
    Fault::unsupported(message)
        .hint("draw with torch.rand, torch.randn or torch.randperm, or pass the tensor as an argument")
}

/// Runs `f` with the generator of the call: its argument, or the seeded global one.
fn with_generator(
    name: &str,
    bound: &Bound,
    cx: &mut Context,
    f: impl FnOnce(&mut Generator, &Budget) -> HostResult,
) -> Result<HostTensor, Fault> {
    let opaque = match bound.get("generator") {
        Some(Value::Opaque(opaque)) => opaque.clone(),
        Some(other) => {
            let message = format!("{name}(): generator must be a torch.Generator, not {}", other.type_name());
            return Err(Fault::type_error(message));
        }
        None => {
            if let (Some(_), Some(before)) = (&cx.host.generator, &cx.host.unsure) {
                return Err(Fault::clone(before));
            }
            cx.host.generator.clone().ok_or_else(|| unseeded(name))?
        }
    };
    with_state(name, &opaque, |generator| spend(cx, |budget| f(generator, budget)))
}

fn draw(name: &str, args: &Args, cx: &mut Context) -> Result<HostTensor, Fault> {
    match name {
        "torch.rand" | "torch.randn" => {
            let bound = bind(name, &pack_sizes(args, 0), &["size", "generator", "dtype"])?;
            let (shape, dtype) = (bound.shape("size")?, bound.dtype()?.unwrap_or_else(default_float));
            with_generator(name, &bound, cx, |g, budget| spread(name, g, &shape, dtype, budget))
        }
        "torch.rand_like" | "torch.randn_like" => {
            let bound = bind(name, args, &["input", "generator", "dtype"])?;
            let like = bound.need_handle("input")?;
            let dtype = bound.dtype()?.unwrap_or(like.handle().dtype());
            let shape = like.handle().shape().to_vec();
            with_generator(name, &bound, cx, |g, budget| spread(name, g, &shape, dtype, budget))
        }
        "torch.randint" => randint(name, args, cx),
        "torch.randint_like" => {
            let two = args.positional.len() >= 3 || args.named("high").is_some() && args.positional.len() >= 2;
            let params: &[&'static str] = if two || args.named("low").is_some() {
                &["input", "low", "high", "generator", "dtype"]
            } else {
                &["input", "high", "generator", "dtype"]
            };
            let bound = bind(name, args, params)?;
            let like = bound.need_handle("input")?;
            let (low, high) = (bound.int("low")?.unwrap_or(0), bound.need_int("high")?);
            let dtype = bound.dtype()?.unwrap_or(like.handle().dtype());
            let shape = like.handle().shape().to_vec();
            with_generator(name, &bound, cx, |g, budget| g.integers(low, high, &shape, dtype, budget))
        }
        "torch.randperm" => {
            let bound = bind(name, args, &["n", "generator", "dtype"])?;
            let (n, dtype) = (bound.need_int("n")?, bound.dtype()?.unwrap_or(DType::I64));
            with_generator(name, &bound, cx, |g, budget| g.permutation(n, dtype, budget))
        }
        "torch.normal" => {
            let bound = bind(name, args, &["mean", "std", "size", "generator", "dtype"])?;
            if bound.get("size").is_none() {
                return Err(refused("torch.normal with tensors"));
            }
            let (mean, deviation) = (bound.float("mean")?.unwrap_or(0.0), bound.float("std")?.unwrap_or(1.0));
            let (shape, dtype) = (bound.shape("size")?, bound.dtype()?.unwrap_or_else(default_float));
            with_generator(name, &bound, cx, |g, budget| g.normal(&shape, dtype, mean, deviation, budget))
        }
        "torch.multinomial" => {
            let bound = bind(name, args, &["input", "num_samples", "replacement", "generator"])?;
            let (weights, again) = (bound.need_tensor("input")?, bound.flag("replacement")?);
            let count = usize::try_from(bound.need_int("num_samples")?).unwrap_or(0);
            if !again {
                warn_of_intel(name, cx);
            }
            with_generator(name, &bound, cx, |g, budget| match again && count != 1 {
                true => g.sample_again(&weights, count, budget),
                false => g.sample(&weights, count, budget),
            })
        }
        _ => {
            let bound = bind(name, args, &["input", "p", "generator"])?;
            if bound.get("p").is_some() {
                return Err(refused("torch.bernoulli with one probability"));
            }
            let p = bound.need_tensor("input")?;
            with_generator(name, &bound, cx, |g, budget| g.bernoulli(&p, budget))
        }
    }
}

fn spread(name: &str, g: &mut Generator, shape: &[usize], dtype: DType, budget: &Budget) -> HostResult {
    if name.contains("randn") {
        g.normal(shape, dtype, 0.0, 1.0, budget)
    } else {
        g.uniform(shape, dtype, 0.0, 1.0, budget)
    }
}

/// Draws that are others where PyTorch has Intel's library and an Intel processor.
fn warn_of_intel(name: &str, cx: &mut Context) {
    let message = format!("{name}() draws the numbers that PyTorch draws on processors not made by Intel");
    let warning = Diagnostic::warning("draws-differ", message).at(cx.place(), "");
    cx.warn(warning.hint(
        "on an Intel processor PyTorch draws other numbers: use torch.rand or torch.randperm, or pass the tensor as an argument",
    ));
}

/// `randint(high, size)` or `randint(low, high, size)`.
fn randint(name: &str, args: &Args, cx: &mut Context) -> Result<HostTensor, Fault> {
    let ints = args.positional.iter().take_while(|v| matches!(v, Value::Int(_) | Value::Bool(_))).count();
    let two = ints >= 2 || args.named("low").is_some() || (ints == 1 && args.named("high").is_some());
    let params: &[&'static str] =
        if two { &["low", "high", "size", "generator", "dtype"] } else { &["high", "size", "generator", "dtype"] };
    let bound = bind(name, args, params)?;
    let (low, high) = (if two { bound.need_int("low")? } else { 0 }, bound.need_int("high")?);
    let (shape, dtype) = (bound.shape("size")?, bound.dtype()?.unwrap_or(DType::I64));
    with_generator(name, &bound, cx, |g, budget| g.integers(low, high, &shape, dtype, budget))
}

/// `t.bernoulli()`, `t.multinomial(...)`; None when it is neither.
pub(super) fn method(name: &str, t: &Tensor, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let function = match name {
        "bernoulli" => "torch.bernoulli",
        "multinomial" => "torch.multinomial",
        _ => return None,
    };
    let mut shifted = args.clone();
    shifted.positional.insert(0, Value::Tensor(t.clone()));
    Some(draw(function, &shifted, cx).map(Value::tensor))
}

/// `uniform_`, `normal_` and the like.
pub(super) fn in_place(name: &str, t: &Tensor, args: &Args, cx: &mut Context) -> Result<(), Fault> {
    let (shape, dtype) = (t.handle().shape().to_vec(), t.handle().dtype());
    if !t.handle().layout().is_contiguous() {
        return Err(Fault::unsupported(format!("{name}_ of a view that is not contiguous is not evaluated"))
            .hint("draw into a new tensor"));
    }
    let drawn = match name {
        "uniform" => {
            let bound = bind(name, args, &["from", "to", "generator"])?;
            let (low, high) = (bound.float("from")?.unwrap_or(0.0), bound.float("to")?.unwrap_or(1.0));
            with_generator(name, &bound, cx, |g, budget| g.uniform(&shape, dtype, low, high, budget))?
        }
        "normal" => {
            let bound = bind(name, args, &["mean", "std", "generator"])?;
            let (mean, deviation) = (bound.float("mean")?.unwrap_or(0.0), bound.float("std")?.unwrap_or(1.0));
            with_generator(name, &bound, cx, |g, budget| g.normal(&shape, dtype, mean, deviation, budget))?
        }
        "random" if !args.positional.is_empty() => {
            let two = args.positional.len() >= 2;
            let bound = bind(name, args, if two { &["from", "to", "generator"] } else { &["to", "generator"] })?;
            let (low, high) = (if two { bound.need_int("from")? } else { 0 }, bound.need_int("to")?);
            with_generator(name, &bound, cx, |g, budget| g.integers(low, high, &shape, dtype, budget))?
        }
        "exponential" => {
            let rate = bind(name, args, &["lambd", "generator"])?;
            let lambda = rate.float("lambd")?.unwrap_or(1.0);
            warn_of_intel("exponential_", cx);
            with_generator(name, &rate, cx, |g, budget| g.exponential(&shape, dtype, lambda, budget))?
        }
        _ => return Err(refused(&format!("{name}_"))),
    };
    let budget = Budget::new(u64::MAX);
    t.handle().overwrite(&Operand::Tensor(&drawn), &budget).map_err(fault)
}
