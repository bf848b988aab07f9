//! Enums in the text: their members, by name and by value.
//!
//! Invariant: a member is an object of its class with `name` and `value`, created once. Must not know other classes.

use super::Context;
use super::mro;
use super::operators::equal;
use crate::python::value::{Args, Class as ClassValue, Fault, Instance, Opaque, Pairs, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Kind of the [`Opaque`] that `enum.auto()` gives.
const AUTO: &str = "auto";

impl Context<'_> {
    /// An Enum's plain members become objects with `name` and `value`.
    pub(super) fn make_enum(&mut self, class: &Rc<ClassValue>) {
        let members = class.members.borrow().0.clone();
        let flags = class.bases.0.iter().any(|b| matches!(b, Value::Builtin(name) if &**name == "enum.IntFlag"));
        let mut last = 0i64;
        for (name, value) in members {
            let Some(text) = name.as_str().filter(|n| !n.starts_with('_')) else { continue };
            let value = match &value {
                Value::Function(_) | Value::Class(_) | Value::Missing(_) => continue,
                // the first bit above those of the members before
                Value::Opaque(auto) if auto.kind == AUTO && flags => {
                    Value::Int(1 << (64 - last.max(0).leading_zeros()).min(62))
                }
                Value::Opaque(auto) if auto.kind == AUTO => Value::Int(last + 1),
                _ => value,
            };
            last = value.as_int().map_or(last, |n| if flags { n.max(last) } else { n });
            let made = Pairs(vec![(Value::str("name"), Value::str(text)), (Value::str("value"), value)]);
            let instance = Rc::new(Instance { class: class.clone(), attributes: RefCell::new(made) });
            self.instances.push(Rc::downgrade(&instance));
            class.members.borrow_mut().set_named(&text.into(), Value::Instance(instance));
        }
        self.enums.push(class.clone());
    }

    /// `Kind("causal")`
    pub(super) fn enum_member(&mut self, class: &Rc<ClassValue>, args: &Args) -> Result<Value, Fault> {
        let wanted = args.need(&class.name, 0, "value")?;
        let members = self.enum_searched(class)?;
        let found = members.iter().find(|m| equal(m, wanted) || enum_value(m).is_some_and(|v| equal(&v, wanted)));
        found.cloned().ok_or_else(|| {
            let values: Vec<String> =
                members.iter().filter_map(enum_value).map(|v| super::repr_in_message(&v)).collect();
            Fault::value_error(format!("{} is not a valid {}", super::repr_in_message(wanted), class.name))
                .hint(format!("its values are: {}", values.join(", ")))
        })
    }

    /// The members, to be looked through.
    fn enum_searched(&mut self, class: &ClassValue) -> Result<Vec<Value>, Fault> {
        let members = enum_members(class);
        self.charge_steps(members.len() as u64 / 4)?;
        Ok(members)
    }

    /// `Kind["CAUSAL"]`
    pub(super) fn enum_named(&mut self, class: &ClassValue, name: &Value) -> Result<Value, Fault> {
        let members = self.enum_searched(class)?;
        let named = |m: &&Value| {
            let Value::Instance(i) = m else { return false };
            i.attributes.borrow().named("name").is_some_and(|own| equal(&own, name))
        };
        let found = members.iter().find(named).cloned();
        found.ok_or_else(|| {
            Fault::new(
                "KeyError",
                "key-error",
                format!("{} has no member {}", class.name, super::repr_in_message(name)),
            )
        })
    }
}

/// `enum.auto()`
pub(crate) fn auto() -> Value {
    Value::Opaque(Rc::new(Opaque { kind: AUTO, state: RefCell::new(Box::new(())) }))
}

/// Whether a class is an Enum of the text.
pub(super) fn is_enum(class: &ClassValue) -> bool {
    let names = ["enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.IntFlag"];
    mro::find_base(class, |b| matches!(b, Value::Builtin(name) if names.contains(&&**name)).then_some(())).is_some()
}

/// The members of an Enum, in order.
pub(super) fn enum_members(class: &ClassValue) -> Vec<Value> {
    let members = class.members.borrow();
    let own = |v: &&Value| matches!(v, Value::Instance(i) if std::ptr::eq(&*i.class, class));
    members.0.iter().map(|(_, v)| v).filter(own).cloned().collect()
}

/// The value of an Enum's member.
pub(super) fn enum_value(member: &Value) -> Option<Value> {
    match member {
        Value::Instance(i) if is_enum(&i.class) => i.attributes.borrow().named("value"),
        _ => None,
    }
}

/// The plain value that a member of an IntEnum or StrEnum is.
pub(crate) fn plain_enum_value(member: &Value) -> Option<Value> {
    match member {
        Value::Instance(i) if is_plain_enum(&i.class) => enum_value(member),
        _ => None,
    }
}

/// Whether an Enum's members equal their plain values: `class Kind(str, Enum)`.
pub(super) fn is_plain_enum(class: &ClassValue) -> bool {
    let plain = |b: &Value| matches!(b, Value::Builtin(n) if matches!(&**n, "str" | "int" | "enum.IntEnum" | "enum.StrEnum" | "enum.IntFlag"));
    class.bases.0.iter().any(plain)
}

/// `str` of a member: its value's text for an IntEnum or StrEnum, `Kind.NAME` for others, including `class Kind(str,
/// Enum)`. None for other objects.
pub(super) fn member_text(object: &Instance) -> Option<String> {
    if !is_enum(&object.class) {
        return None;
    }
    let part = |name: &str| object.attributes.borrow().named(name).unwrap_or(Value::None);
    let plain =
        |b: &Value| matches!(b, Value::Builtin(n) if matches!(&**n, "enum.IntEnum" | "enum.StrEnum" | "enum.IntFlag"));
    Some(match object.class.bases.0.iter().any(plain) {
        true => super::text(&part("value")),
        false => format!("{}.{}", object.class.name, super::text(&part("name"))),
    })
}
