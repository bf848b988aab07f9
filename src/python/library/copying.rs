//! Python's `copy`: copies of containers, objects and tensors.
//!
//! Invariant: sharing inside a value is kept in its copy; changing a copy leaves the original unchanged. Must not know
//! the values' meaning.

use crate::python::machine::Context;
use crate::python::value::{Args, Fault, Instance, Items, Pairs, TensorCell, VALUE_BYTES, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Containers within one another that are copied.
const MAX_DEPTH: usize = 64;

/// `copy.copy(x)` and, with `deep`, `copy.deepcopy(x)`.
pub(super) fn call(deep: bool, args: &Args, cx: &mut Context) -> Result<Value, Fault> {
    let value = args.need("copy", 0, "x")?;
    let mut known = Vec::new();
    if !deep {
        return shallow(value, cx);
    }
    deeply(value, MAX_DEPTH, &mut known, cx)
}

fn own_method(value: &Value, name: &str, args: Args, cx: &mut Context) -> Option<Result<Value, Fault>> {
    let Value::Instance(object) = value else { return None };
    let method = cx.instance_method(object, name)?;
    Some(cx.call(&method, args))
}

fn shallow(value: &Value, cx: &mut Context) -> Result<Value, Fault> {
    if let Some(result) = own_method(value, "__copy__", Args::default(), cx) {
        return result;
    }
    Ok(match value {
        Value::List(items) => Value::list(spend(items.borrow().0.clone(), cx)?),
        Value::Set(items) => Value::Set(Rc::new(RefCell::new(Items(spend(items.borrow().0.clone(), cx)?)))),
        Value::Dict(pairs) => {
            let n = pairs.borrow().0.len() as u64;
            cx.charge_steps(n / 4)?;
            cx.charge_bytes(2 * VALUE_BYTES * n)?;
            let copied = Pairs(pairs.borrow().0.clone());
            Value::Dict(Rc::new(RefCell::new(copied)))
        }
        Value::Instance(object) => {
            let attributes = Pairs(object.attributes.borrow().0.clone());
            cx.instance_of(&object.class, attributes)?
        }
        // a new tensor handle on the same storage
        Value::Tensor(t) => Value::Tensor(TensorCell::of(t.handle().clone())),
        other => other.clone(),
    })
}

fn spend(items: Vec<Value>, cx: &mut Context) -> Result<Vec<Value>, Fault> {
    cx.charge_steps(items.len() as u64 / 8)?;
    cx.charge_bytes(VALUE_BYTES * items.len() as u64)?;
    Ok(items)
}

/// The copied values, by the address of the original, and their copies.
type Known = Vec<(*const u8, Value)>;

fn deeply(value: &Value, depth: usize, known: &mut Known, cx: &mut Context) -> Result<Value, Fault> {
    let place: *const u8 = match value {
        Value::List(items) | Value::Set(items) => Rc::as_ptr(items).cast(),
        Value::Dict(pairs) => Rc::as_ptr(pairs).cast(),
        Value::Instance(object) => Rc::as_ptr(object).cast(),
        Value::Tensor(tensor) => Rc::as_ptr(tensor).cast(),
        Value::Tuple(items) if depth <= 1 => Rc::as_ptr(items).cast(),
        Value::Tuple(items) => {
            let all = items.0.iter().map(|v| deeply(v, depth - 1, known, cx)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Value::tuple(spend(all, cx)?));
        }
        other => return Ok(other.clone()),
    };
    if depth <= 1 {
        return Err(Fault::unsupported(format!(
            "copy.deepcopy() of more than {MAX_DEPTH} levels is not supported here"
        )));
    }
    cx.charge_steps(1 + known.len() as u64 / 16)?;
    if let Some((_, copy)) = known.iter().find(|(at, _)| *at == place) {
        return Ok(copy.clone());
    }
    if let Some(result) = own_method(value, "__deepcopy__", Args::of(vec![Value::Dict(Rc::default())]), cx) {
        return result;
    }
    // the copy is recorded before its content is copied: it may contain itself
    let copy = match value {
        Value::Tensor(tensor) => {
            let data = tensor.get();
            cx.charge_bytes(data.data().to_le_bytes().len() as u64)?;
            let cell = TensorCell::new(data);
            if tensor.is_numpy() {
                cell.mark_numpy();
            }
            Value::Tensor(cell)
        }
        Value::List(_) => Value::list(Vec::new()),
        Value::Set(_) => Value::Set(Rc::default()),
        Value::Dict(_) => Value::Dict(Rc::default()),
        Value::Instance(object) => cx.instance_of(&object.class, Pairs::default())?,
        other => other.clone(),
    };
    known.push((place, copy.clone()));
    let pairs = |given: &[(Value, Value)], known: &mut Known, cx: &mut Context| -> Result<Pairs, Fault> {
        cx.charge_bytes(2 * VALUE_BYTES * given.len() as u64)?;
        let one = |(k, v): &(Value, Value)| Ok((k.clone(), deeply(v, depth - 1, known, cx)?));
        Ok(Pairs(given.iter().map(one).collect::<Result<_, Fault>>()?))
    };
    match (value, &copy) {
        (Value::List(from), Value::List(to)) | (Value::Set(from), Value::Set(to)) => {
            let all = from.borrow().0.clone();
            let all = all.iter().map(|v| deeply(v, depth - 1, known, cx)).collect::<Result<Vec<_>, _>>()?;
            to.borrow_mut().0 = spend(all, cx)?;
        }
        (Value::Dict(from), Value::Dict(to)) => {
            let given = from.borrow().0.clone();
            let made = pairs(&given, known, cx)?;
            *to.borrow_mut() = made;
            // a defaultdict stays one
            let factory = cx.factory_of(from).cloned();
            cx.factories.extend(factory.map(|f| (to.clone(), f)));
        }
        (Value::Instance(from), Value::Instance(to)) => {
            let given = from.attributes.borrow().0.clone();
            let made = pairs(&given, known, cx)?;
            *to.attributes.borrow_mut() = made;
        }
        _ => {}
    }
    Ok(copy)
}

impl Context<'_> {
    /// An object of a class with these attributes.
    fn instance_of(&mut self, class: &Rc<python::value::Class>, attributes: Pairs) -> Result<Value, Fault> {
        self.charge_bytes(64 + 2 * VALUE_BYTES * attributes.0.len() as u64)?;
        let made = Rc::new(Instance { class: class.clone(), attributes: RefCell::new(attributes) });
        self.remember_instance(&made);
        Ok(Value::Instance(made))
    }
}
