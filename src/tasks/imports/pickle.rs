//! Python's pickles as values: the opcodes that PyTorch writes, without running any code.
//!
//! Invariant: a class or function is a name with its arguments, never called; an unknown opcode ends the reading. Must
//! not know tensors.

use std::collections::HashMap;
use std::rc::Rc;

/// A value of a pickle.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    Bytes,
    /// Tuples and lists.
    List(Rc<Vec<Value>>),
    Dict(Rc<Vec<(Value, Value)>>),
    /// `module.name`
    Name(Rc<str>),
    /// A callable's arguments; for an object its state comes last.
    Made(Rc<str>, Rc<Vec<Value>>),
    /// The data that the file stores elsewhere.
    Stored(Rc<Value>),
}

impl Value {
    pub(super) fn int(&self) -> Option<i64> {
        if let Value::Int(n) = self { Some(*n) } else { None }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn list(&self) -> Option<&[Value]> {
        if let Value::List(items) = self { Some(items) } else { None }
    }

    /// Whole numbers of a tuple or list.
    pub(super) fn ints(&self) -> Option<Vec<usize>> {
        self.list()?.iter().map(|v| usize::try_from(v.int()?).ok()).collect()
    }

    /// A dictionary's value, or one of an object's state.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        let entries = match self {
            Value::Dict(entries) => entries,
            Value::Made(_, parts) => return parts.last()?.get(key),
            _ => return None,
        };
        entries.iter().rev().find(|(k, _)| k.text() == Some(key)).map(|(_, v)| v)
    }
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: HashMap<usize, Value>,
}

/// The value of a pickle. Errors: what could not be read.
pub(super) fn read(bytes: &[u8]) -> Result<Value, String> {
    let mut machine = Machine { bytes, at: 0, stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() };
    loop {
        let op = machine.take(1)?[0];
        if op == b'.' {
            return machine.pop();
        }
        machine.step(op)?;
    }
}

impl Machine<'_> {
    fn take(&mut self, n: usize) -> Result<&[u8], String> {
        let part = self.at.checked_add(n).and_then(|end| self.bytes.get(self.at..end)).ok_or("it was cut off")?;
        self.at += n;
        Ok(part)
    }

    fn number(&mut self, n: usize) -> Result<usize, String> {
        Ok(self.take(n)?.iter().rev().fold(0usize, |all, b| all << 8 | usize::from(*b)))
    }

    fn line(&mut self) -> Result<String, String> {
        let length = self.bytes[self.at..].iter().position(|b| *b == b'\n').ok_or("it was cut off")?;
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.at += 1;
        Ok(text)
    }

    fn pop(&mut self) -> Result<Value, String> {
        self.stack.pop().ok_or_else(|| "its stack is empty".into())
    }

    fn marked(&mut self) -> Result<Vec<Value>, String> {
        let mark = self.marks.pop().filter(|m| *m <= self.stack.len()).ok_or("a mark is missing")?;
        Ok(self.stack.split_off(mark))
    }

    fn several(&mut self, n: usize) -> Result<(), String> {
        let from = self.stack.len().checked_sub(n).ok_or("its stack is empty")?;
        let items = self.stack.split_off(from);
        self.stack.push(Value::List(Rc::new(items)));
        Ok(())
    }

    fn text(&mut self, n: usize) -> Result<(), String> {
        let text = String::from_utf8_lossy(self.take(n)?).into_owned();
        self.stack.push(Value::Text(text.into()));
        Ok(())
    }

    fn step(&mut self, op: u8) -> Result<(), String> {
        let value = match op {
            0x80 => return self.take(1).map(drop),
            0x95 => return self.take(8).map(drop),
            b'(' => {
                self.marks.push(self.stack.len());
                return Ok(());
            }
            b'0' => return self.pop().map(drop),
            b'N' => Value::None,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'J' => Value::Int(i64::from(self.number(4)? as u32 as i32)),
            b'K' => Value::Int(self.number(1)? as i64),
            b'M' => Value::Int(self.number(2)? as i64),
            0x8a => {
                let length = self.number(1)?;
                if length > 8 {
                    return Err("a number has more than 64 bits".into());
                }
                let negative = length > 0 && self.bytes.get(self.at + length - 1).is_some_and(|b| *b >= 128);
                let low = self.number(length)? as u64;
                let high = if negative && length < 8 { u64::MAX << (8 * length) } else { 0 };
                Value::Int((low | high) as i64)
            }
            b'G' => Value::Float(f64::from_be_bytes(self.take(8)?.try_into().map_err(|_| "it was cut off")?)),
            b'X' => {
                let n = self.number(4)?;
                return self.text(n);
            }
            0x8c => {
                let n = self.number(1)?;
                return self.text(n);
            }
            b'B' | b'C' => {
                let n = self.number(if op == b'B' { 4 } else { 1 })?;
                self.take(n)?;
                Value::Bytes
            }
            b')' | b']' | 0x8f => Value::List(Rc::default()),
            b'}' => Value::Dict(Rc::default()),
            b't' | b'l' => Value::List(Rc::new(self.marked()?)),
            b'd' => Value::Dict(Rc::new(pairs(self.marked()?)?)),
            0x85..=0x87 => return self.several(usize::from(op - 0x84)),
            b'a' => {
                let item = self.pop()?;
                return self.extend(vec![item]);
            }
            b'e' | 0x90 => {
                let items = self.marked()?;
                return self.extend(items);
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                return self.insert(vec![(key, value)]);
            }
            b'u' => {
                let entries = pairs(self.marked()?)?;
                return self.insert(entries);
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                Value::Name(format!("{module}.{name}").into())
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let both = module.text().zip(name.text()).ok_or("a name is not a string")?;
                Value::Name(format!("{}.{}", both.0, both.1).into())
            }
            b'R' | 0x81 => {
                let (args, callable) = (self.pop()?, self.pop()?);
                let Value::Name(name) = callable else { return Err("a value that is not a name is called".into()) };
                made(name, args)
            }
            b'b' => {
                let state = self.pop()?;
                match self.pop()? {
                    Value::Made(name, parts) => {
                        Value::Made(name, Rc::new(parts.iter().cloned().chain([state]).collect()))
                    }
                    other => other,
                }
            }
            b'Q' => Value::Stored(Rc::new(self.pop()?)),
            b'q' | b'r' => {
                let key = self.number(if op == b'q' { 1 } else { 4 })?;
                return self.remember(key);
            }
            0x94 => return self.remember(self.memo.len()),
            b'h' | b'j' => {
                let key = self.number(if op == b'h' { 1 } else { 4 })?;
                self.memo.get(&key).cloned().ok_or("it refers to a missing object")?
            }
            _ => return Err(format!("opcode {op:#04x} is not one that PyTorch writes")),
        };
        self.stack.push(value);
        Ok(())
    }

    fn remember(&mut self, key: usize) -> Result<(), String> {
        let value = self.stack.last().cloned().ok_or("its stack is empty")?;
        self.memo.insert(key, value);
        Ok(())
    }

    fn extend(&mut self, items: Vec<Value>) -> Result<(), String> {
        if let Some(Value::List(list)) = self.stack.last_mut() {
            Rc::make_mut(list).extend(items);
            return Ok(());
        }
        Err("a value is appended to something that is not a list".into())
    }

    fn insert(&mut self, entries: Vec<(Value, Value)>) -> Result<(), String> {
        if let Some(Value::Dict(dict)) = self.stack.last_mut() {
            Rc::make_mut(dict).extend(entries);
            return Ok(());
        }
        Err("an entry is added to something that is not a dictionary".into())
    }
}

fn pairs(items: Vec<Value>) -> Result<Vec<(Value, Value)>, String> {
    if !items.len().is_multiple_of(2) {
        return Err("a dictionary has a key without a value".into());
    }
    let mut items = items.into_iter();
    Ok(std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect())
}

/// Containers of the standard library become their content.
fn made(name: Rc<str>, args: Value) -> Value {
    let args = args.list().unwrap_or_default().to_vec();
    match &*name {
        "collections.OrderedDict" | "builtins.dict" if args.is_empty() => Value::Dict(Rc::default()),
        "torch.Size" if args.len() == 1 => args[0].clone(),
        _ => Value::Made(name, Rc::new(args)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pickles_say_is_read_and_nothing_is_called() {
        // pickle.dumps({"mask": (1, -2, 300), "x": [None, True]}, protocol=2)
        let bytes = b"\x80\x02}q\x00(X\x04\x00\x00\x00maskq\x01K\x01J\xfe\xff\xff\xffM,\x01\x87q\x02X\x01\x00\x00\x00xq\x03]q\x04(N\x88eu.";
        let value = read(bytes).expect("read");
        assert_eq!(
            value.get("mask").and_then(|v| v.list()).map(|l| l.iter().map(Value::int).collect::<Vec<_>>()),
            Some(vec![Some(1), Some(-2), Some(300)])
        );
        assert_eq!(value.get("x").and_then(Value::list), Some(&[Value::None, Value::Bool(true)][..]));
        // os.system("echo")
        let bytes = b"cposix\nsystem\n(X\x04\x00\x00\x00echotR.";
        assert!(matches!(read(bytes), Ok(Value::Made(name, _)) if &*name == "posix.system"));
        for bad in [&b"\x80\x02}q\x00(X\x04\x00\x00\x00ma"[..], b"R.", b"e.", b"\xff.", b""] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
