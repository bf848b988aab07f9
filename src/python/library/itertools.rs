//! `itertools`, on values that are known when the text runs.
//!
//! Invariant: growth is charged before it happens; only `count` and `cycle` are infinite. Must not know tensors.

use crate::python::machine::iterator::{self, Tail};
use crate::python::machine::{Context, equal};
use crate::python::syntax::ast::BinOp;
use crate::python::value::{Args, Fault, Items, VALUE_BYTES, Value};

/// Calls a function of `itertools` by its name; None for unknown names.
pub(super) fn call(name: &str, args: &Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let name = name.strip_prefix("itertools.")?;
    Some(match name {
        "product" => product(args, cx),
        "chain" => chain(&args.positional, cx),
        "chain.from_iterable" => args.need(name, 0, "iterable").and_then(|all| {
            let all = cx.collect(all)?;
            chain(&all, cx)
        }),
        "accumulate" => accumulate(args, cx),
        "repeat" => repeat(args, cx),
        "pairwise" => {
            items(name, args, cx).map(|v| Value::list(v.windows(2).map(|w| Value::tuple(w.to_vec())).collect()))
        }
        "combinations" => choices(name, args, cx, |picked, next| picked.last().is_none_or(|last| *last < next)),
        "combinations_with_replacement" => {
            choices(name, args, cx, |picked, next| picked.last().is_none_or(|last| *last <= next))
        }
        "permutations" => choices(name, args, cx, |picked, next| !picked.contains(&next)),
        "count" => count(args),
        "cycle" => items(name, args, cx).map(|all| iterator::ending(Vec::new(), Tail::Cycle(Items(all), 0))),
        "islice" => islice(args, cx),
        "takewhile" | "dropwhile" | "filterfalse" => by_test(name, args, cx),
        "starmap" => starmap(args, cx),
        "zip_longest" => zip_longest(args, cx),
        "groupby" => groupby(args, cx),
        "compress" => compress(args, cx),
        "batched" => items(name, args, cx).and_then(|all| {
            let n = args.get(1, "n").and_then(Value::as_int).filter(|n| *n > 0);
            let n = n.ok_or_else(|| Fault::value_error("batched() needs a length of at least 1"))?;
            Ok(Value::list(all.chunks(n as usize).map(|group| Value::tuple(group.to_vec())).collect()))
        }),
        "tee" => items(name, args, cx).and_then(|all| {
            let n = args.get(1, "n").and_then(Value::as_int).unwrap_or(2).max(0);
            let bytes = VALUE_BYTES.saturating_mul(all.len() as u64 + 8);
            cx.charge_bytes(bytes.saturating_mul(n as u64))?;
            Ok(Value::tuple((0..n).map(|_| iterator::of(all.clone())).collect()))
        }),
        _ => return None,
    })
}

fn items(name: &str, args: &Args, cx: &mut Context) -> Result<Vec<Value>, Fault> {
    let all = cx.collect(args.need(name, 0, "iterable")?)?;
    cx.charge_bytes(2 * VALUE_BYTES * all.len() as u64)?;
    Ok(all)
}

fn product(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    let repeat = args.named("repeat").and_then(Value::as_int).unwrap_or(1).max(0);
    // of no columns there is one row, however often they are repeated
    for _ in 0..if args.positional.is_empty() { 0 } else { repeat } {
        for column in &args.positional {
            let column = cx.collect(column)?;
            let count = (rows.len() as u64).saturating_mul(column.len() as u64);
            let longest = rows.first().map_or(0, Vec::len) as u64;
            cx.charge_steps(1 + count.saturating_mul(1 + longest / 16))?;
            cx.charge_bytes(count.saturating_mul(3 * VALUE_BYTES))?;
            let longer = |row: &Vec<Value>, item: &Value| row.iter().chain([item]).cloned().collect();
            rows = rows.iter().flat_map(|row| column.iter().map(move |item| longer(row, item))).collect();
        }
    }
    Ok(Value::list(rows.into_iter().map(Value::tuple).collect()))
}

fn chain(parts: &[Value], cx: &mut Context) -> Result<Value, Fault> {
    let mut all = Vec::new();
    for value in parts {
        let more = cx.collect(value)?;
        cx.charge_bytes(VALUE_BYTES * more.len() as u64)?;
        all.extend(more);
    }
    Ok(iterator::of(all))
}

fn accumulate(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let items = cx.collect(args.need("itertools.accumulate", 0, "iterable")?)?;
    let given = |v: &Value| !matches!(v, Value::None);
    let function = args.get(1, "func").filter(|f| given(f));
    let mut out: Vec<Value> = args.named("initial").filter(|v| given(v)).cloned().into_iter().collect();
    for item in items {
        cx.charge_steps(1)?;
        let next = match out.last() {
            None => item,
            Some(last) => match function {
                Some(function) => cx.call(function, Args::of(vec![last.clone(), item]))?,
                None => cx.binary(BinOp::Add, last, &item)?,
            },
        };
        cx.charge_bytes(VALUE_BYTES)?;
        out.push(next);
    }
    Ok(Value::list(out))
}

fn repeat(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let value = args.need("itertools.repeat", 0, "object")?;
    let Some(times) = args.get(1, "times").and_then(Value::as_int) else {
        return Ok(iterator::ending(Vec::new(), Tail::Cycle(Items(vec![value.clone()]), 0)));
    };
    let n = times.max(0);
    cx.charge_bytes((VALUE_BYTES).saturating_mul(n as u64))?;
    Ok(Value::list(vec![value.clone(); n as usize]))
}

/// All ways to pick `r` positions, each next one where `fits` allows it, in lexicographic order.
fn choices(name: &str, args: &Args, cx: &mut Context, fits: impl Fn(&[usize], usize) -> bool) -> Result<Value, Fault> {
    let all = items(name, args, cx)?;
    let r = args.get(1, "r").and_then(Value::as_int).unwrap_or(all.len() as i64);
    let r = usize::try_from(r).map_err(|_| Fault::value_error("r must be non-negative"))?;
    let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..r {
        let mut longer = Vec::new();
        for row in &rows {
            cx.charge_steps(1 + all.len() as u64)?;
            for next in (0..all.len()).filter(|next| fits(row, *next)) {
                cx.charge_bytes((2 + r as u64).saturating_mul(VALUE_BYTES))?;
                longer.push(row.iter().copied().chain([next]).collect());
            }
        }
        rows = longer;
        if rows.is_empty() {
            break;
        }
    }
    let tuple = |row: Vec<usize>| Value::tuple(row.into_iter().map(|at| all[at].clone()).collect());
    Ok(Value::list(rows.into_iter().map(tuple).collect()))
}

fn count(args: &Args) -> Result<Value, Fault> {
    let number = |at: usize, name: &str, default: i64| match args.get(at, name) {
        None => Ok(default),
        Some(value) => value.as_int().ok_or_else(|| Fault::unsupported("itertools.count() is supported for ints only")),
    };
    Ok(iterator::ending(Vec::new(), Tail::Count(number(0, "start", 0)?, number(1, "step", 1)?)))
}

fn islice(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let whole = |value: &Value, what: &str| match value {
        Value::None => Ok(None),
        other => other
            .as_int()
            .filter(|n| *n >= 0)
            .map(|n| Some(n as usize))
            .ok_or_else(|| Fault::value_error(format!("islice(): {what} must be None or a non-negative int"))),
    };
    let (start, stop, step) = match &args.positional[..] {
        [_, stop] => (0, whole(stop, "stop")?, 1),
        [_, start, stop] => (whole(start, "start")?.unwrap_or(0), whole(stop, "stop")?, 1),
        [_, start, stop, step] => {
            (whole(start, "start")?.unwrap_or(0), whole(stop, "stop")?, whole(step, "step")?.unwrap_or(1).max(1))
        }
        _ => return Err(Fault::type_error("islice() takes an iterable, and stop or start, stop and step")),
    };
    let all = match (&args.positional[0], stop) {
        (Value::Opaque(open), Some(stop)) if open.kind == iterator::KIND => {
            if stop > iterator::MOST && iterator::open_ended(&args.positional[0]).is_some() {
                return Err(iterator::endless());
            }
            iterator::take(open, stop)?
        }
        (other, _) => cx.collect(other)?,
    };
    cx.charge_bytes(VALUE_BYTES * all.len() as u64)?;
    let taken = all.into_iter().take(stop.unwrap_or(usize::MAX)).skip(start).step_by(step);
    Ok(iterator::of(taken.collect()))
}

fn by_test(name: &str, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let test = args.need(name, 0, "predicate")?.clone();
    let (mut out, mut dropping) = (Vec::new(), true);
    cx.walk(args.need(name, 1, "iterable")?, |cx, item| {
        let holds = match (&test, name) {
            (Value::None, _) => item.clone(),
            (_, "dropwhile") if !dropping => Value::Bool(false),
            _ => cx.call(&test, Args::of(vec![item.clone()]))?,
        };
        let holds = cx.truth(&holds)?;
        dropping &= holds;
        if holds == (name == "takewhile") {
            cx.charge_bytes(VALUE_BYTES)?;
            out.push(item);
        }
        Ok(name != "takewhile" || holds)
    })?;
    Ok(iterator::of(out))
}

fn starmap(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let function = args.need("starmap", 0, "function")?.clone();
    let mut out = Vec::new();
    for row in cx.collect(args.need("starmap", 1, "iterable")?)? {
        let row = cx.collect(&row)?;
        cx.charge_bytes(VALUE_BYTES)?;
        out.push(cx.call(&function, Args::of(row))?);
    }
    Ok(Value::list(out))
}

fn zip_longest(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let fill = args.named("fillvalue").cloned().unwrap_or(Value::None);
    let mut columns = Vec::new();
    for value in &args.positional {
        columns.push(cx.collect(value)?);
        cx.charge_bytes(VALUE_BYTES * columns.last().map_or(0, Vec::len) as u64)?;
    }
    let n = columns.iter().map(Vec::len).max().unwrap_or(0);
    cx.charge_bytes(3 * VALUE_BYTES * (n * columns.len()) as u64)?;
    let row = |at: usize| Value::tuple(columns.iter().map(|c| c.get(at).unwrap_or(&fill).clone()).collect());
    Ok(Value::list((0..n).map(row).collect()))
}

fn groupby(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let key = args.get(1, "key").filter(|k| !matches!(k, Value::None)).cloned();
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for item in cx.collect(args.need("groupby", 0, "iterable")?)? {
        cx.charge_bytes(2 * VALUE_BYTES)?;
        let of = match &key {
            Some(key) => cx.call(key, Args::of(vec![item.clone()]))?,
            None => item.clone(),
        };
        match groups.last_mut() {
            Some((last, group)) if equal(last, &of) => group.push(item),
            _ => groups.push((of, vec![item])),
        }
        cx.charge_steps(1)?;
    }
    let pair = |(key, group)| Value::tuple(vec![key, iterator::of(group)]);
    Ok(Value::list(groups.into_iter().map(pair).collect()))
}

fn compress(args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let (data, tests) = (args.need("compress", 0, "data")?, args.need("compress", 1, "selectors")?);
    let (data, tests) = (cx.collect(data)?, cx.collect(tests)?);
    let mut out = Vec::new();
    for (item, test) in data.into_iter().zip(tests) {
        cx.charge_steps(1)?;
        if cx.truth(&test)? {
            cx.charge_bytes(VALUE_BYTES)?;
            out.push(item);
        }
    }
    Ok(Value::list(out))
}
