//! Sets one value of a JSON object; every other byte of the text is kept.
//!
//! Invariant: order, white space, line ends, numbers as they are written, byte order mark and the end of the file stay.
//! Text that a trainer could not read is refused with line and column. Must not know which keys matter.

use crate::base::{Diagnostic, Source, SourceId, Span};
use std::collections::HashMap;
use std::ops::Range;

/// Nesting beyond this is refused: readers of the file recurse.
const DEPTH: usize = 900;
/// Texts up to this long travel with their diagnostics.
const SHOWN: usize = 1 << 20;

/// A member of the outermost object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    /// The key, decoded.
    pub key: String,
    /// The key's bytes, quotes included.
    pub key_at: Range<usize>,
    /// The value's bytes.
    pub value_at: Range<usize>,
}

/// The outermost object of a text.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    name: &'a str,
    text: &'a str,
    /// The opening brace.
    open: usize,
    /// In text order.
    pub members: Vec<Member>,
    /// Whether a `.json` has comments, at which strict readers stop.
    pub commented: bool,
}

impl<'a> Object<'a> {
    /// Reads a file. Errors: not UTF-8, not JSON, not an object, a key twice; each with line and column.
    pub(crate) fn parse(name: &'a str, bytes: &'a [u8]) -> Result<Object<'a>, Diagnostic> {
        let text = std::str::from_utf8(bytes).map_err(|e| not_utf8(name, bytes, e.valid_up_to()))?;
        let end = name.rsplit('.').next().unwrap_or("").to_lowercase();
        let lenient = matches!(end.as_str(), "jsonc" | "json5");
        let mut scan = Scan { name, text, bytes: text.as_bytes(), at: 0, lenient, commented: false };
        if text.starts_with('\u{feff}') {
            scan.at = '\u{feff}'.len_utf8();
        }
        scan.space();
        if scan.at == scan.bytes.len() {
            return Err(scan.broken("the file is empty"));
        }
        if scan.bytes[scan.at] != b'{' {
            let at = scan.at;
            scan.value(0)?;
            return Err(place(name, text, at, "config-not-object", "the outermost value is not an object")
                .hint("a trainer's config.json is one object, `{ \"key\": value, ... }`: choose that file"));
        }
        let mut object = scan.outermost()?;
        scan.space();
        if scan.at < scan.bytes.len() {
            return Err(scan.broken("text after the end of the object"));
        }
        object.commented = scan.commented && !lenient;
        object.refuse_duplicates()?;
        Ok(object)
    }

    fn refuse_duplicates(&self) -> Result<(), Diagnostic> {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for member in &self.members {
            if let Some(first) = seen.insert(&member.key, member.key_at.start) {
                let line = line_column(self.text, first).0;
                let what = format!("`{}` occurs here again; it first occurs on line {line}", member.key);
                return Err(place(self.name, self.text, member.key_at.start, "config-duplicate-key", &what)
                    .hint("programs disagree which one counts: remove one of them"));
            }
        }
        Ok(())
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// A member's value as it is written.
    pub(crate) fn written(&self, member: &Member) -> &'a str {
        &self.text[member.value_at.clone()]
    }

    /// The text with another value for a member.
    pub(crate) fn replaced(&self, member: &Member, value: &str) -> String {
        let (before, after) = (&self.text[..member.value_at.start], &self.text[member.value_at.end..]);
        format!("{before}{value}{after}")
    }

    /// The text with a member more at the end of the object, written as its neighbours are.
    pub(crate) fn inserted(&self, key: &str, value: &str) -> String {
        let key = serde_json::Value::from(key).to_string();
        let Some(last) = self.members.last() else { return self.first(&key, value) };
        let from = match self.members.len() {
            1 => self.open + 1,
            n => {
                let end = self.members[n - 2].value_at.end;
                self.text[end..last.key_at.start].find(',').map_or(end, |comma| end + comma + 1)
            }
        };
        let mut space = &self.text[from..last.key_at.start];
        if !space.trim().is_empty() {
            // a comment before the last entry is that entry's
            space = space.rfind('\n').map_or(" ", |n| &space[n..]);
        }
        let colon = &self.text[last.key_at.end..last.value_at.start];
        if space.is_empty() && self.members.len() == 1 && colon.ends_with(' ') {
            space = " ";
        }
        let (before, after) = self.text.split_at(last.value_at.end);
        format!("{before},{space}{key}{colon}{value}{after}")
    }

    fn first(&self, key: &str, value: &str) -> String {
        let inside = self.text[self.open + 1..].split('}').next().unwrap_or("");
        let line = if inside.contains("\r\n") { "\r\n" } else { "\n" };
        let space = if inside.contains('\n') { format!("{line}  ") } else { String::new() };
        format!("{}{space}{key}: {value}{}", &self.text[..self.open + 1], &self.text[self.open + 1..])
    }
}

struct Scan<'a> {
    name: &'a str,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Comments and commas after the last entry are read over.
    lenient: bool,
    /// Whether a comment was met. It is kept in every file; a strict reader stops at it.
    commented: bool,
}

impl<'a> Scan<'a> {
    fn broken(&self, what: &str) -> Diagnostic {
        place(self.name, self.text, self.at, "config-not-json", what).hint(
            "it must be strict JSON: double quotes, no comments, no comma after the last entry. If the trainer reads \
                 comments, name it .jsonc",
        )
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        loop {
            while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
                self.at += 1;
            }
            let rest = &self.text[self.at..];
            let comment = match rest.get(..2) {
                Some("//") => rest.find('\n').or(Some(rest.len())),
                Some("/*") => rest.find("*/").map(|n| n + 2),
                _ => None,
            };
            match comment {
                Some(length) => {
                    self.at += length;
                    self.commented = true;
                }
                None => return,
            }
        }
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), Diagnostic> {
        if self.peek() != Some(byte) {
            return Err(self.broken(what));
        }
        self.at += 1;
        Ok(())
    }

    fn outermost(&mut self) -> Result<Object<'a>, Diagnostic> {
        let open = self.at;
        let mut members = Vec::new();
        self.members(1, |scan, key_at, value_at| {
            let key = serde_json::from_str(&scan.text[key_at.clone()]).map_err(|_| {
                place(scan.name, scan.text, key_at.start, "config-not-json", "this key does not decode")
            })?;
            members.push(Member { key, key_at, value_at });
            Ok(())
        })?;
        Ok(Object { name: self.name, text: self.text, open, members, commented: false })
    }

    /// An object from its opening brace on.
    fn members(
        &mut self,
        depth: usize,
        mut each: impl FnMut(&Self, Range<usize>, Range<usize>) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            if self.lenient && self.peek() == Some(b'}') {
                break;
            }
            let key = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.broken("a key in double quotes was expected"));
            }
            self.string()?;
            let key = key..self.at;
            self.space();
            self.expect(b':', "`:` was expected after the key")?;
            self.space();
            let value = self.at;
            self.value(depth)?;
            each(self, key, value..self.at)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.broken("`,` or `}` was expected")),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<(), Diagnostic> {
        if depth > DEPTH {
            return Err(self.broken("brackets are nested too deeply"));
        }
        match self.peek() {
            Some(b'{') => self.members(depth + 1, |_, _, _| Ok(())),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            // NaN and Infinity are no JSON, but the json module of Python reads and writes them
            _ => ["true", "false", "null", "NaN", "Infinity"]
                .iter()
                .find(|word| self.bytes[self.at..].starts_with(word.as_bytes()))
                .map(|word| self.at += word.len())
                .ok_or_else(|| self.broken("a value was expected")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<(), Diagnostic> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            if self.lenient && self.peek() == Some(b']') {
                break;
            }
            self.value(depth + 1)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.broken("`,` or `]` was expected")),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), Diagnostic> {
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.broken("a string has no closing quote")),
                Some(b'"') => break,
                Some(0..=31) => return Err(self.broken("a string has a line break or control character in it")),
                Some(b'\\') => self.escape()?,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Diagnostic> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') if self.hex(self.at + 2) => self.at += 6,
            _ => return Err(self.broken("an invalid escape: write `\\\\` for a backslash")),
        }
        Ok(())
    }

    fn hex(&self, at: usize) -> bool {
        self.bytes.get(at..at + 4).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    }

    fn digits(&mut self) -> Result<(), Diagnostic> {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == from { Err(self.broken("a digit was expected")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), Diagnostic> {
        if self.peek() == Some(b'-') {
            self.at += 1;
            if self.bytes[self.at..].starts_with(b"Infinity") {
                self.at += "Infinity".len();
                return Ok(());
            }
        }
        let zero = self.peek() == Some(b'0');
        let from = self.at;
        self.digits()?;
        if zero && self.at > from + 1 {
            return Err(self.broken("a number has a leading zero"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }
}

/// Line and column, from 1, the column in characters.
fn line_column(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    let column = before[start..].trim_start_matches('\u{feff}').chars().count() + 1;
    (before.bytes().filter(|b| *b == b'\n').count() + 1, column)
}

/// A diagnostic at a byte of a file.
pub(crate) fn place(name: &str, text: &str, at: usize, code: &'static str, what: &str) -> Diagnostic {
    let (line, column) = line_column(text, at);
    let diagnostic = Diagnostic::error(code, format!("{name}, line {line}, column {column}: {what}"));
    if text.len() > SHOWN {
        return diagnostic;
    }
    let span = Span::new(SourceId(0), at as u32, (at + 1).min(text.len()) as u32);
    diagnostic.at(span, "").with_sources(&[Source::new(name, text)])
}

fn not_utf8(name: &str, bytes: &[u8], at: usize) -> Diagnostic {
    let valid = std::str::from_utf8(&bytes[..at]).unwrap_or("");
    let (line, column) = line_column(valid, at);
    let message = format!("{name}, line {line}, column {column}: the file is not UTF-8 text");
    Diagnostic::error("config-not-json", message).hint("save it as UTF-8 in your editor; JSON is always UTF-8")
}
