//! The JSON of a document as a tree, at a cost that its size bounds: an object has a key once, and strokes become strokes as they are read.
//!
//! Invariant: the tree holds at most [`TIMES`] times the text's bytes and [`FLOOR`]; a text whose tree would hold more is refused before
//! it is there. Must not know layers other than where their strokes stand.

use super::model::Stroke;
use super::schema;
use crate::base::Diagnostic;
use crate::base::words::bytes;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::{Cell, RefCell};
use std::fmt;

/// How many times the text's bytes the tree may hold.
const TIMES: usize = 4;
/// What any tree may hold beyond that: small documents are never refused.
const FLOOR: usize = 16 << 20;
/// A name in an object: the text's header, and its share of the object's nodes.
const NAME: usize = 64;
/// Mistakes in strokes after which no more are told.
const ENOUGH: usize = 20;

/// A document's JSON.
pub(super) struct Tree {
    /// Everything but strokes: their lists are empty in it.
    pub value: Value,
    /// The strokes of the layers that have some, by the layers' places.
    pub strokes: Vec<(usize, Vec<Stroke>)>,
    /// What is wrong with strokes.
    pub errors: Vec<Diagnostic>,
}

/// Where in a document a value stands.
#[derive(Clone, Copy)]
enum At {
    Root,
    Layers,
    Layer(usize),
    Content(usize),
    Strokes(usize),
    Elsewhere,
}

/// What is known while the text is read.
struct Reading {
    /// Bytes that the tree may still take.
    left: Cell<usize>,
    refused: Cell<bool>,
    strokes: RefCell<Vec<(usize, Vec<Stroke>)>>,
    errors: RefCell<Vec<Diagnostic>>,
}

struct Place<'a> {
    at: At,
    of: &'a Reading,
}

/// Reads a text. Errors: no JSON, a key that occurs twice, a tree that would be too large for its text.
pub(super) fn parse(text: &str) -> Result<Tree, Diagnostic> {
    let of = Reading {
        left: Cell::new(text.len().saturating_mul(TIMES).saturating_add(FLOOR)),
        refused: Cell::new(false),
        strokes: RefCell::default(),
        errors: RefCell::default(),
    };
    let mut from = serde_json::Deserializer::from_str(text);
    let place = Place { at: At::Root, of: &of };
    match place.deserialize(&mut from).and_then(|value| from.end().map(|()| value)) {
        Ok(value) => Ok(Tree { value, strokes: of.strokes.into_inner(), errors: of.errors.into_inner() }),
        Err(_) if of.refused.get() => {
            let size = bytes(text.len() as u64);
            let message = format!(
                "the document's {size} hold so many values that reading them takes more than {TIMES} times as much"
            );
            Err(Diagnostic::error("document-too-large", message)
                .hint("give long lists as tensors, or keep them in linked files"))
        }
        Err(error) => Err(Diagnostic::error("document-json", format!("the document is not JSON: {error}"))
            .hint("open a .json file that Maskloom saved, or paste FlexAttention code instead")),
    }
}

impl Place<'_> {
    fn inner(&self, at: At) -> Place<'_> {
        Place { at, of: self.of }
    }

    /// Pays for a part of the tree. Errors: it would hold too much.
    fn pay<E: Error>(&self, cost: usize) -> Result<(), E> {
        match self.of.left.get().checked_sub(cost) {
            Some(left) => {
                self.of.left.set(left);
                Ok(())
            }
            None => {
                self.of.refused.set(true);
                Err(E::custom("too many values"))
            }
        }
    }

    /// Reads strokes one by one: only one of them is a tree at a time.
    fn strokes<'de, A: SeqAccess<'de>>(&self, layer: usize, from: &mut A) -> Result<Vec<Stroke>, A::Error> {
        let mut out = Vec::new();
        let mut errors = self.of.errors.borrow_mut();
        loop {
            if errors.len() > ENOUGH {
                // enough to see what is wrong
                while from.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(out);
            }
            let left = self.of.left.get();
            let Some(value) = from.next_element_seed(self.inner(At::Elsewhere))? else { return Ok(out) };
            self.of.left.set(left);
            let path = format!("layers[{layer}].content.strokes[{}]", out.len());
            let before = errors.len();
            schema::check_stroke(&value, &path, &mut errors);
            match Stroke::deserialize(&value) {
                Ok(stroke) => out.push(stroke),
                Err(_) if errors.len() > before => out.push(Stroke { paint: false, rects: Vec::new() }),
                Err(error) => return Err(A::Error::custom(error)),
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<Value, E> {
        self.pay(v.len())?;
        Ok(v.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        if let At::Strokes(layer) = self.at {
            let strokes = self.strokes(layer, &mut from)?;
            self.of.strokes.borrow_mut().push((layer, strokes));
            return Ok(Value::Array(Vec::new()));
        }
        let mut list = Vec::new();
        loop {
            let at = if matches!(self.at, At::Layers) { At::Layer(list.len()) } else { At::Elsewhere };
            let Some(item) = from.next_element_seed(self.inner(at))? else { return Ok(Value::Array(list)) };
            // a list that grows is twice as large as it is full, and lives beside what it was
            self.pay(3 * size_of::<Value>())?;
            list.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` occurs twice in one object")));
            }
            self.pay(size_of::<Value>() + NAME + key.len())?;
            let at = match (self.at, key.as_str()) {
                (At::Root, "layers") => At::Layers,
                (At::Layer(n), "content") => At::Content(n),
                (At::Content(n), "strokes") => At::Strokes(n),
                _ => At::Elsewhere,
            };
            let value = from.next_value_seed(self.inner(at))?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(strokes: &str) -> String {
        format!("{{\"layers\": [{{}}, {{\"content\": {{\"kind\": \"painted\", \"strokes\": {strokes}}}}}]}}")
    }

    #[test]
    fn strokes_are_read_beside_the_tree_and_their_mistakes_are_told_with_their_places() {
        let tree =
            parse(&painted("[{\"paint\": true, \"rects\": [[0, 1, 2, 3]]}]")).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(tree.strokes, [(1, vec![Stroke { paint: true, rects: vec![[0, 1, 2, 3]] }])]);
        assert_eq!(tree.value["layers"][1]["content"]["strokes"], Value::Array(Vec::new()));
        let tree = parse(&painted("[{\"paint\": 1, \"rects\": [[0, 1, 2]]}]")).unwrap_or_else(|e| panic!("{e:?}"));
        let reported: Vec<&str> = tree.errors.iter().map(|e| e.message.as_str()).collect();
        assert_eq!(
            reported,
            [
                "`layers[1].content.strokes[0].paint` is 1; it must be true or false",
                "`layers[1].content.strokes[0].rects[0]` is a list of 3; it must be 4 items"
            ]
        );
        // strokes elsewhere are values like all others
        let tree = parse("{\"strokes\": [1], \"layers\": 7}").unwrap_or_else(|e| panic!("{e:?}"));
        assert!(tree.strokes.is_empty() && tree.value["strokes"][0] == 1);
    }

    #[test]
    fn a_list_that_would_take_many_times_its_text_is_refused_and_millions_of_strokes_are_not() {
        let many = |one: &str, n: usize| vec![one; n].join(",");
        let why = parse(&format!("{{\"a\": [{}]}}", many("1", 1 << 20))).err().expect("refused");
        assert!(why.code == "document-too-large" && why.message.contains("2.00 MiB"), "{why:?}");
        assert!(parse(&format!("{{\"a\": [{}]}}", many("1", 1 << 16))).is_ok(), "a list of usual length is read");
        let strokes = many("{\"paint\":true,\"rects\":[[0,1,2,3]]}", 1 << 18);
        let tree = parse(&painted(&format!("[{strokes}]"))).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(tree.strokes[0].1.len(), 1 << 18);
    }
}
