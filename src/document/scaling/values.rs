//! Values on shorter axes: numbers, lists, captured tensors.
//!
//! Invariant: values of at least one stay at least one, zero stays zero, odd values stay odd if required; lists of
//! pieces keep the ratio of their sum. Must not know documents.

use super::plans::Plan;
use super::units::{Parameter, Unit};
use crate::base::HostTensor;
use crate::base::tensor::Data;
use crate::document::binding::Facts;
use crate::document::model::ArgValue;
use std::collections::BTreeMap;

/// Which way numbers go that do not come out whole, for frames, rows and columns.
#[derive(Clone, Debug)]
pub(super) struct Rounding([Way; 3]);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Nearest,
    Down,
    Up,
}

impl Rounding {
    /// Every way that a plan's grid leaves open.
    pub(super) fn all(plan: &Plan) -> Vec<Rounding> {
        const WAYS: [Way; 3] = [Way::Nearest, Way::Down, Way::Up];
        let plain = [Way::Nearest; 3];
        let Some((old, new)) = plan.grid().filter(|(old, new)| old != new) else { return vec![Rounding(plain)] };
        let mut all = vec![plain];
        for (at, (a, b)) in old.iter().zip(new).enumerate() {
            if a != b {
                let side = at + 3 - old.len();
                let with = |way: Way, ways: &[Way; 3]| {
                    let mut ways = *ways;
                    ways[side] = way;
                    ways
                };
                all = all.iter().flat_map(|ways| WAYS.map(|way| with(way, ways))).collect();
            }
        }
        all.into_iter().map(Rounding).collect()
    }
}

/// A value on the shorter axes.
#[derive(Debug)]
pub(super) struct Scaled {
    pub value: ArgValue,
    /// Logarithm of the actual over the exact value.
    pub error: f64,
}

/// A parameter's value in a copy; None: it stays. `facts`: the document's and the copy's.
pub(super) fn scaled(parameter: &Parameter, plan: &Plan, rounding: &Rounding, facts: [Facts<'_>; 2]) -> Option<Scaled> {
    let numbers = |ratio: f64, way: Way| Some(number(&parameter.value, ratio, way, parameter.odd));
    match &parameter.unit {
        Unit::Queries => numbers(plan.q_ratio(), Way::Nearest),
        Unit::Keys => numbers(plan.kv_ratio(), Way::Nearest),
        Unit::Pieces => pieces(&parameter.value, plan.kv_ratio()).or_else(|| numbers(plan.kv_ratio(), Way::Nearest)),
        Unit::Side(side) => {
            let (old, new) = extent(plan, *side)?;
            numbers(new as f64 / old as f64, rounding.0[*side])
        }
        Unit::Frames => {
            let (old, new) = plan.grid().filter(|(old, _)| old.len() == 3)?;
            numbers((new[1] * new[2]) as f64 / (old[1] * old[2]) as f64, Way::Nearest)
        }
        Unit::Boxes => {
            let (rows, columns) = (extent(plan, 1)?, extent(plan, 2)?);
            let ratio = |(old, new): (usize, usize)| new as f64 / old as f64;
            Some(Scaled { value: boxes(&parameter.value, [ratio(rows), ratio(columns)], 0), error: 0.0 })
        }
        Unit::Fact(name) => {
            let (old, new) = (facts[0].value(name)?, facts[1].value(name)?);
            if old == new {
                return None;
            }
            numbers(new as f64 / old as f64, Way::Nearest)
        }
    }
}

/// A side of the grid, before and after: 0 frames, 1 rows, 2 columns.
fn extent(plan: &Plan, side: usize) -> Option<(usize, usize)> {
    let (old, new) = plan.grid()?;
    let at = (side + old.len()).checked_sub(3)?;
    Some((*old.get(at)?, *new.get(at)?))
}

fn number(value: &ArgValue, ratio: f64, way: Way, odd: bool) -> Scaled {
    let plain = |value: ArgValue| Scaled { value, error: 0.0 };
    match value {
        ArgValue::Int(n) => {
            let wanted = *n as f64 * ratio;
            let new = whole(wanted, way, odd).max(i64::from(*n > 0));
            let error = if *n > 0 { (new as f64 / wanted).ln() } else { 0.0 };
            Scaled { value: ArgValue::Int(new), error }
        }
        ArgValue::Float(x) => plain(ArgValue::Float(x * ratio)),
        ArgValue::List(items) => {
            plain(ArgValue::List(items.iter().map(|i| number(i, ratio, way, odd).value).collect()))
        }
        ArgValue::Tensor { tensor } => plain(ArgValue::Tensor { tensor: lengths(tensor, ratio) }),
        other => plain(other.clone()),
    }
}

fn whole(x: f64, way: Way, odd: bool) -> i64 {
    // the nearest odd number is twice the nearest half, and one
    let x = if odd { (x - 1.0) / 2.0 } else { x };
    let n = match way {
        Way::Nearest => x.round(),
        Way::Down => x.floor(),
        Way::Up => x.ceil(),
    };
    if odd { 2 * n.max(0.0) as i64 + 1 } else { n as i64 }
}

/// Pieces one behind the other: their ends move, so that nothing is lost between them.
fn pieces(value: &ArgValue, ratio: f64) -> Option<Scaled> {
    let ArgValue::List(items) = value else { return None };
    let (mut before, mut moved, mut out) = (0i64, 0i64, Vec::new());
    for item in items {
        let ArgValue::Int(n) = item else { return None };
        before += n;
        let end = ((before as f64 * ratio).round() as i64).max(moved + i64::from(*n > 0));
        out.push(ArgValue::Int(end - moved));
        moved = end;
    }
    Some(Scaled { value: ArgValue::List(out), error: 0.0 })
}

/// Boxes of (top, left, bottom, right), at any depth of lists.
fn boxes(value: &ArgValue, ratios: [f64; 2], at: usize) -> ArgValue {
    match value {
        ArgValue::List(items) => {
            ArgValue::List(items.iter().enumerate().map(|(at, item)| boxes(item, ratios, at)).collect())
        }
        other => number(other, ratios[at % 2], Way::Nearest, false).value,
    }
}

/// A distance: it keeps its sign, so that causality stays.
pub(super) fn distance(v: i64, ratio: f64) -> i64 {
    let moved = (v as f64 * ratio).round() as i64;
    if moved == 0 { v.signum() } else { moved }
}

/// Captured tensors: one with an element a token loses tokens, one of lengths or offsets gets smaller values.
pub(super) fn tensors(tensors: &mut BTreeMap<String, HostTensor>, plan: &Plan) {
    const OF_LENGTHS: [&str; 6] = ["len", "offset", "cu_", "start", "end", "bound"];
    for (name, tensor) in tensors {
        let sampled = sampled(tensor, plan);
        let is_whole = tensor.dtype().is_int();
        if let Some(sampled) = sampled {
            *tensor = sampled;
        } else if is_whole && OF_LENGTHS.iter().any(|word| name.to_lowercase().contains(word)) {
            *tensor = lengths(tensor, plan.kv_ratio());
        }
    }
}

/// A tensor with an element a query or key: every so many of them. None: no side of it is a length of the document.
fn sampled(tensor: &HostTensor, plan: &Plan) -> Option<HostTensor> {
    let (q, kv) = ((plan.old.q.len(), plan.axes.q.len()), (plan.old.kv().len(), plan.axes.kv().len()));
    let shorter = |n: usize| [q, kv].iter().find(|(old, _)| *old == n && n > 1).map_or(n, |(_, new)| *new);
    let old = tensor.shape();
    let new: Vec<usize> = old.iter().map(|n| shorter(*n)).collect();
    if new == old {
        return None;
    }
    let count: usize = new.iter().product();
    let places: Vec<usize> = (0..count)
        .map(|flat| {
            let (mut rest, mut place, mut stride) = (flat, 0, 1);
            for (n, o) in new.iter().zip(old).rev() {
                place += (rest % n) * o / n * stride;
                rest /= n;
                stride *= o;
            }
            place
        })
        .collect();
    macro_rules! pick {
        ($($kind:ident),*) => { match tensor.data() { $(Data::$kind(v) => Data::$kind(places.iter().map(|p| v[*p]).collect()),)* } };
    }
    let data = pick!(Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64);
    HostTensor::new(new, data).ok()
}

/// A tensor whose values are lengths or offsets.
fn lengths(tensor: &HostTensor, ratio: f64) -> HostTensor {
    let mut tensor = tensor.clone();
    let moved = |v: i64| (v as f64 * ratio).round() as i64;
    match tensor.data_mut() {
        Data::I32(v) => v.iter_mut().for_each(|x| *x = moved(i64::from(*x)) as i32),
        Data::I64(v) => v.iter_mut().for_each(|x| *x = moved(*x)),
        _ => {}
    }
    tensor
}
