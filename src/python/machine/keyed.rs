//! Where a key stands in a dict or a set, found by its hash.
//!
//! Invariant: the answer is that of comparing the key with every element in turn: equal keys have equal hashes, and a
//! place that is remembered is compared again before it is used. Must not know statements.

use super::Context;
use super::enums::plain_enum_value;
use super::operators::{equal, plain_float};
use crate::python::value::{Fault, Items, Pairs, Value, meter};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::{Rc, Weak};

/// Containers with fewer elements are looked through.
const FEW: usize = 24;
/// Containers whose places are remembered at a time.
const MOST_CONTAINERS: usize = 64;
/// Lookups by comparing that follow a removal, before the places are found again.
const PATIENCE: u32 = 32;

/// A hash that equal keys share. What is compared by more than its content has the hash of its kind.
fn hash_of(key: &Value, depth: usize, into: &mut DefaultHasher) {
    meter::work(1);
    if meter::exhausted() {
        return;
    }
    if let Some(number) = plain_float(key) {
        // True, 1 and 1.0 are one key, and so are 0.0 and -0.0
        return (number + 0.0).to_bits().hash(into);
    }
    match key {
        Value::Str(text) => {
            meter::bytes(8 * text.len());
            text.hash(into);
        }
        Value::Tuple(items) if depth > 0 => items.0.iter().for_each(|item| hash_of(item, depth - 1, into)),
        // a member of an IntEnum or StrEnum equals its value
        Value::Instance(_) if let Some(plain) = plain_enum_value(key).filter(|_| depth > 0) => {
            hash_of(&plain, depth - 1, into)
        }
        _ => 7u8.hash(into),
    }
}

/// Work of a hash beside that of what is hashed: as long as three steps.
const A_HASH: usize = 24;
/// Work of remembering a place: as long as five steps.
const A_PLACE: usize = 40;

fn hashed(key: &Value) -> u64 {
    meter::work(A_HASH);
    let mut hasher = DefaultHasher::new();
    hash_of(key, 16, &mut hasher);
    hasher.finish()
}

/// The places of keys in a list of them.
#[derive(Default)]
pub(crate) struct Places {
    at: HashMap<u64, Vec<u32>>,
    /// Most keys of one hash: NaN, objects and functions share one.
    most: usize,
}

impl Places {
    /// The place of a key among `keys`.
    pub(crate) fn find<'k>(&self, key: &Value, keys: impl Fn(usize) -> Option<&'k Value>) -> Option<usize> {
        self.find_hashed(hashed(key), key, keys)
    }

    fn find_hashed<'k>(&self, hash: u64, key: &Value, keys: impl Fn(usize) -> Option<&'k Value>) -> Option<usize> {
        let places = self.at.get(&hash)?;
        places.iter().map(|at| *at as usize).find(|at| keys(*at).is_some_and(|k| equal(k, key)))
    }

    /// Remembers a key's place.
    pub(crate) fn add(&mut self, key: &Value, at: usize) {
        meter::work(A_PLACE);
        let same = self.at.entry(hashed(key)).or_default();
        same.push(at as u32);
        self.most = self.most.max(same.len());
    }

    /// Steps that looking for a key takes beside its hash, where many share one.
    pub(crate) fn crowd(&self) -> u64 {
        self.most as u64 / 4
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Of these keys.
    pub(crate) fn of<'k>(keys: impl Iterator<Item = &'k Value>) -> Places {
        let mut places = Places::default();
        keys.enumerate().for_each(|(at, key)| places.add(key, at));
        places
    }
}

/// Whether each of a set's elements is in another.
pub(crate) struct Members<'v>(&'v [Value], Places);

impl<'v> Members<'v> {
    pub(crate) fn of(items: &'v [Value]) -> Members<'v> {
        Members(items, Places::of(items.iter()))
    }

    /// Steps that asking for one takes beside its hash.
    pub(crate) fn crowd(&self) -> u64 {
        self.1.crowd()
    }

    pub(crate) fn has(&self, value: &Value) -> bool {
        self.1.find(value, |at| self.0.get(at)).is_some()
    }
}

/// The remembered places of one container; none of them at first.
struct Known {
    /// Keeps its address from being taken by another.
    _alive: Weak<dyn Any>,
    places: Places,
    /// Elements that are known, and the hash of the last one.
    len: usize,
    last: u64,
    /// Lookups until the places are found again.
    wait: u32,
}

impl Known {
    /// Elements have moved: their places are found again after some lookups by comparing.
    fn forget(&mut self) {
        (self.places, self.len, self.wait) = (Places::default(), 0, PATIENCE);
    }
}

/// The places of the containers that were asked last.
#[derive(Default)]
pub(super) struct Remembered(HashMap<usize, Known>);

impl Remembered {
    /// The place of a key in the container at `address` with these keys; None: the keys are to be looked through.
    fn find<'k>(
        &mut self,
        address: usize,
        alive: impl FnOnce() -> Weak<dyn Any>,
        len: usize,
        keys: impl Fn(usize) -> Option<&'k Value> + Copy,
        key: &Value,
    ) -> Option<Option<usize>> {
        if self.0.len() > MOST_CONTAINERS && !self.0.contains_key(&address) {
            self.0.clear();
        }
        let known = self.0.entry(address).or_insert_with(|| Known {
            _alive: alive(),
            places: Places::default(),
            len: 0,
            last: 0,
            wait: 0,
        });
        let moved =
            known.len > 0 && (len < known.len || keys(known.len - 1).is_none_or(|last| hashed(last) != known.last));
        if moved {
            known.forget();
        }
        if known.wait > 0 {
            known.wait -= 1;
            return None;
        }
        if known.len < len {
            (known.len..len).try_for_each(|at| keys(at).map(|key| known.places.add(key, at)))?;
            (known.len, known.last) = (len, hashed(keys(len - 1)?));
        }
        let hash = hashed(key);
        let found = known.places.find_hashed(hash, key, keys);
        // a place that holds another key's hash was left by a removal
        let stale = |at: &u32| keys(*at as usize).is_none_or(|k| hashed(k) != hash);
        if found.is_none() && known.places.at.get(&hash).is_some_and(|places| places.iter().any(stale)) {
            known.forget();
            return None;
        }
        Some(found)
    }
}

impl Context<'_> {
    /// The place of a key in a dict.
    pub(crate) fn place_in_dict(&mut self, pairs: &Rc<RefCell<Pairs>>, key: &Value) -> Result<Option<usize>, Fault> {
        let all = pairs.borrow();
        let keys = |at: usize| all.0.get(at).map(|(k, _)| k);
        let alive = || -> Weak<dyn Any> { Rc::downgrade(&(pairs.clone() as Rc<dyn Any>)) };
        self.place_of(Rc::as_ptr(pairs) as usize, alive, all.0.len(), keys, key)
    }

    /// The place of an element in a set.
    pub(crate) fn place_in_set(&mut self, items: &Rc<RefCell<Items>>, value: &Value) -> Result<Option<usize>, Fault> {
        let all = items.borrow();
        let keys = |at: usize| all.0.get(at);
        let alive = || -> Weak<dyn Any> { Rc::downgrade(&(items.clone() as Rc<dyn Any>)) };
        self.place_of(Rc::as_ptr(items) as usize, alive, all.0.len(), keys, value)
    }

    fn place_of<'k>(
        &mut self,
        address: usize,
        alive: impl FnOnce() -> Weak<dyn Any>,
        len: usize,
        keys: impl Fn(usize) -> Option<&'k Value> + Copy,
        key: &Value,
    ) -> Result<Option<usize>, Fault> {
        self.charge_steps(1)?;
        if len >= FEW
            && let Some(found) = self.places.find(address, alive, len, keys, key)
        {
            self.charge_steps(self.places.0.get(&address).map_or(0, |known| known.places.crowd()))?;
            return Ok(found);
        }
        let found = (0..len).find(|at| keys(*at).is_some_and(|k| equal(k, key)));
        self.charge_steps(0)?;
        Ok(found)
    }
}
