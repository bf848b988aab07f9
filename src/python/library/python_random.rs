//! Python's `random` module, seeded.
//!
//! Invariant: the same numbers as CPython for the same integer seed; without a seed it is refused, because its numbers
//! are not reproducible. Must not know how numbers are generated.

use super::bind::{Bound, bind};
use crate::python::machine::Context;
use crate::python::tensors::PythonRandom;
use crate::python::value::{Args, Fault, VALUE_BYTES, Value, range_len};

/// Names that [`call`] knows.
pub(super) const NAMES: &[&str] = &[
    "random.seed",
    "random.random",
    "random.uniform",
    "random.randint",
    "random.randrange",
    "random.getrandbits",
    "random.choice",
    "random.choices",
    "random.shuffle",
    "random.sample",
];

/// Calls one of [`NAMES`]; None for other names.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    if !NAMES.contains(&name) {
        return None;
    }
    if name == "random.seed" {
        return Some(seed(args, cx));
    }
    let Some(mut random) = cx.host.random.take() else {
        let message = format!("{name}() draws from an unseeded generator: Python draws other numbers in every run");
        return Some(Err(Fault::new("RuntimeError", "unseeded-random", message).hint("call `random.seed(0)` first")));
    };
    let out = draw(name, args, &mut random, cx);
    cx.host.random = Some(random);
    Some(out)
}

fn seed(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let bound = bind("random.seed", args, &["a", "version"])?;
    let seed = match bound.get("a") {
        Some(Value::Int(n)) => *n,
        Some(other) => {
            let message = format!("random.seed() is supported for ints, not for {}", other.type_name());
            return Err(Fault::unsupported(message).hint("`random.seed(0)`"));
        }
        None => {
            return Err(Fault::unsupported("random.seed() seeds from the clock: its results are not reproducible")
                .hint("`random.seed(0)`"));
        }
    };
    cx.host.random = Some(PythonRandom::new(seed));
    Ok(Value::None)
}

fn draw(name: &str, args: &Args, random: &mut PythonRandom, cx: &mut Context) -> Result<Value, Fault> {
    match name {
        "random.random" => bind(name, args, &[]).map(|_| Value::Float(random.random())),
        "random.uniform" => {
            let bound = bind(name, args, &["a", "b"])?;
            let (a, b) = (bound.need_scalar("a")?.as_f64(), bound.need_scalar("b")?.as_f64());
            Ok(Value::Float(a + (b - a) * random.random()))
        }
        "random.randint" => {
            let bound = bind(name, args, &["a", "b"])?;
            let (a, b) = (bound.need_int("a")?, bound.need_int("b")?);
            between(name, a, b.saturating_add(1), 1, random)
        }
        "random.randrange" => {
            let bound = bind(name, args, &["start", "stop", "step"])?;
            let (start, step) = (bound.need_int("start")?, bound.int("step")?.unwrap_or(1));
            match bound.int("stop")? {
                Some(stop) => between(name, start, stop, step, random),
                None => between(name, 0, start, step, random),
            }
        }
        "random.getrandbits" => {
            let k = bind(name, args, &["k"])?.need_int("k")?;
            if !(0..=63).contains(&k) {
                return Err(Fault::unsupported(format!("random.getrandbits({k}): 0 to 63 bits are supported")));
            }
            Ok(Value::Int(random.bits(k as u32) as i64))
        }
        "random.choice" => {
            let items = items(&bind(name, args, &["seq"])?, "seq", cx)?;
            if items.is_empty() {
                return Err(Fault::index_error("Cannot choose from an empty sequence"));
            }
            Ok(items[random.below(items.len() as u64) as usize].clone())
        }
        "random.choices" => choices(args, random, cx),
        "random.shuffle" => {
            let bound = bind(name, args, &["x"])?;
            let Value::List(list) = bound.need("x")? else {
                return Err(Fault::type_error("random.shuffle() needs a list"));
            };
            let mut list = list.borrow_mut();
            cx.charge_steps(list.0.len() as u64)?;
            let order = random.shuffle(list.0.len());
            list.0 = order.iter().map(|i| list.0[*i].clone()).collect();
            Ok(Value::None)
        }
        _ => {
            let bound = bind(name, args, &["population", "k"])?;
            let (items, k) = (items(&bound, "population", cx)?, bound.need_int("k")?);
            let Some(k) = usize::try_from(k).ok().filter(|k| *k <= items.len()) else {
                return Err(Fault::value_error("Sample larger than population or is negative"));
            };
            cx.charge_bytes(VALUE_BYTES * k as u64)?;
            Ok(Value::list(random.sample(items.len(), k).iter().map(|i| items[*i].clone()).collect()))
        }
    }
}

/// `random.choices(population, k=n)`; weights are refused.
fn choices(args: &Args, random: &mut PythonRandom, cx: &mut Context) -> Result<Value, Fault> {
    let bound = bind("random.choices", args, &["population", "weights", "cum_weights", "k"])?;
    if bound.get("weights").or(bound.get("cum_weights")).is_some() {
        return Err(Fault::unsupported("random.choices with weights is not evaluated here"));
    }
    let (items, k) = (items(&bound, "population", cx)?, bound.int("k")?.unwrap_or(1).max(0));
    if items.is_empty() {
        return Err(Fault::index_error("list index out of range"));
    }
    cx.charge_steps(k as u64)?;
    cx.charge_bytes(VALUE_BYTES * k as u64)?;
    let n = items.len() as f64;
    Ok(Value::list((0..k).map(|_| items[(random.random() * n) as usize].clone()).collect()))
}

fn items(bound: &Bound, name: &str, cx: &mut Context) -> Result<Vec<Value>, Fault> {
    let value = bound.need(name)?;
    let wrong = || Fault::type_error(format!("`{name}` must be a sequence, not {}", value.type_name()));
    let items = value.as_items().ok_or_else(wrong)?;
    cx.charge_steps(1 + items.len() as u64 / 8)?;
    Ok(items)
}

fn between(name: &str, start: i64, stop: i64, step: i64, random: &mut PythonRandom) -> Result<Value, Fault> {
    if step == 0 {
        return Err(Fault::value_error(format!("zero step for {name}()")));
    }
    let n = range_len(start, stop, step);
    if n == 0 {
        return Err(Fault::value_error(format!("empty range in {name}({start}, {stop}, {step})")));
    }
    Ok(Value::Int(start.wrapping_add(step.wrapping_mul(random.below(n) as i64))))
}
