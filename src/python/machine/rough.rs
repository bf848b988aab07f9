//! Python numbers read from a tensor whose elements depend on the last bit of a function.
//!
//! Invariant: a number is identified by its value, so that it is found again as a constant of the mod; whole numbers
//! are excluded, because they occur everywhere. Must not know the functions.

use super::Context;
use crate::python::value::Value;
use std::collections::HashMap;
use std::rc::Rc;

/// The numbers, each with its function.
#[derive(Default)]
pub(crate) struct RoughNumbers(HashMap<u64, Rc<str>>);

impl RoughNumbers {
    /// The function that a constant follows: as it is, or rounded to float32.
    pub(crate) fn of(&self, x: f64) -> Option<Rc<str>> {
        self.0.get(&x.to_bits()).cloned()
    }

    fn add(&mut self, x: f64, function: &Rc<str>) {
        if x.fract() != 0.0 && x.is_finite() {
            self.0.insert(x.to_bits(), function.clone());
            self.0.insert(f64::from(x as f32).to_bits(), function.clone());
        }
    }
}

impl Context<'_> {
    /// Remembers the floats of a result: a number or a list of numbers.
    pub(crate) fn remember_rough(&mut self, result: &Value, function: &Rc<str>) {
        match result {
            Value::Float(x) => self.rough_numbers.add(*x, function),
            Value::List(items) => items.borrow().0.iter().for_each(|item| self.remember_rough(item, function)),
            _ => {}
        }
    }

    /// The function that a number follows.
    pub(crate) fn rough_number(&self, value: &Value) -> Option<Rc<str>> {
        match value {
            Value::Float(x) => self.rough_numbers.of(*x),
            _ => None,
        }
    }
}
