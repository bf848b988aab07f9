//! Sorting lists: by keys, by methods of the text's own, or by Python's order.
//!
//! Invariant: stable, and what it looks at is charged. Must not know what is sorted.

use crate::python::machine::Context;
use crate::python::machine::operators::sort_order;
use crate::python::syntax::ast::CmpOp;
use crate::python::value::{Args, Fault, Value};
use std::cmp::Ordering;

/// Sorts by `key`, stably; the fault is that two elements do not compare.
pub(super) fn sort(items: Vec<Value>, args: &Args, cx: &mut Context) -> Result<Vec<Value>, Fault> {
    let n = items.len() as u64;
    cx.charge_steps(n * (64 - n.leading_zeros()) as u64 / 4)?;
    let mut keyed = Vec::with_capacity(items.len());
    for item in items {
        let key = match args.named("key") {
            Some(key) if !matches!(key, Value::None) => cx.call(key, Args::of(vec![item.clone()]))?,
            _ => item.clone(),
        };
        keyed.push((key, item));
    }
    let reverse = match args.named("reverse") {
        Some(given) => cx.truth(given)?,
        None => false,
    };
    if keyed.iter().any(|(key, _)| matches!(key, Value::Instance(_))) {
        return sorted_by_methods(keyed, reverse, cx);
    }
    let strange = keyed.windows(2).any(|pair| sort_order(&pair[0].0, &pair[1].0).is_none());
    cx.charge_steps(0)?;
    if strange {
        return Err(Fault::type_error("these elements cannot be sorted"));
    }
    let order = |a: &(Value, Value), b: &(Value, Value)| {
        let order = sort_order(&a.0, &b.0).unwrap_or(Ordering::Equal);
        if reverse { order.reverse() } else { order }
    };
    // NaNs have no place in an order: a merge sort does not mind, the standard sort may panic
    merge_sort(&mut keyed, &order);
    cx.charge_steps(0)?;
    Ok(keyed.into_iter().map(|(_, item)| item).collect())
}

/// Sorts objects that compare by methods of the text's own, stably.
fn sorted_by_methods(keyed: Vec<(Value, Value)>, reverse: bool, cx: &mut Context) -> Result<Vec<Value>, Fault> {
    let mut sorted: Vec<(Value, Value)> = Vec::with_capacity(keyed.len());
    for (key, item) in keyed {
        let (mut low, mut high) = (0, sorted.len());
        while low < high {
            let middle = (low + high) / 2;
            let other = &sorted[middle].0;
            let before =
                if reverse { cx.compare(CmpOp::Lt, other, &key)? } else { cx.compare(CmpOp::Lt, &key, other)? };
            if cx.truth(&before)? { high = middle } else { low = middle + 1 }
        }
        cx.charge_steps(1 + sorted.len() as u64 / 64)?;
        sorted.insert(low, (key, item));
    }
    Ok(sorted.into_iter().map(|(_, item)| item).collect())
}

fn merge_sort<T: Clone>(items: &mut Vec<T>, order: &impl Fn(&T, &T) -> Ordering) {
    if items.len() < 2 {
        return;
    }
    let mut right = items.split_off(items.len() / 2);
    merge_sort(items, order);
    merge_sort(&mut right, order);
    let left = std::mem::take(items);
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if order(b, a) == Ordering::Less { right.next() } else { left.next() };
        items.extend(next);
    }
    items.extend(left);
    items.extend(right);
}
