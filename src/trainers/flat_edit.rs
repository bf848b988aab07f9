//! Sets one top-level value of a YAML or TOML file; every other byte of the text is kept.
//!
//! Invariant: only lines of the outermost mapping are read; ambiguous text is refused with its line. Must not know
//! which keys matter.

use super::json_edit::{Member, place};
use crate::base::Diagnostic;
use serde_json::Value;

/// How the file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Yaml,
    Toml,
}

/// The outermost mapping of a text.
#[derive(Clone, Debug)]
pub(crate) struct Flat<'a> {
    name: &'a str,
    text: &'a str,
    form: Form,
    /// In text order.
    pub members: Vec<Member>,
    /// Keys whose values go on over further lines.
    long: Vec<bool>,
    /// Where a line is added.
    end: usize,
}

impl<'a> Flat<'a> {
    /// Reads a file. Errors: not UTF-8, several documents, no mapping at the top, a key twice.
    pub(crate) fn parse(name: &'a str, bytes: &'a [u8], form: Form) -> Result<Flat<'a>, Diagnostic> {
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let message = format!("{name}: the file is not UTF-8 text at byte {}", e.valid_up_to());
            Diagnostic::error("config-not-text", message).hint("save it as UTF-8 in your editor")
        })?;
        let mut flat = Flat { name, text, form, members: Vec::new(), long: Vec::new(), end: text.len() };
        match form {
            Form::Yaml => flat.yaml()?,
            Form::Toml => flat.toml()?,
        }
        for (at, member) in flat.members.iter().enumerate() {
            if flat.members[..at].iter().any(|other| other.key == member.key) {
                let what = format!("`{}` occurs here again", member.key);
                return Err(flat.wrong(member.key_at.start, "config-duplicate-key", &what).hint("remove one of them"));
            }
        }
        Ok(flat)
    }

    fn wrong(&self, at: usize, code: &'static str, what: &str) -> Diagnostic {
        place(self.name, self.text, at, code, what)
    }

    fn yaml(&mut self) -> Result<(), Diagnostic> {
        let mut at = if self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        while at < self.text.len() {
            let next = self.text[at..].find('\n').map_or(self.text.len(), |n| at + n + 1);
            let line = self.text[at..next].trim_end_matches(['\n', '\r']);
            match line.as_bytes().first() {
                None | Some(b'#' | b'%') => {}
                Some(b' ' | b'\t') => self.goes_on(line.trim()),
                Some(b'-') if line.trim_end() == "---" && self.members.is_empty() => {}
                Some(b'-') if line.starts_with("---") => {
                    return Err(self
                        .wrong(at, "config-many-documents", "the file holds more than one YAML document")
                        .hint("a trainer reads only one: remove the others"));
                }
                // `--key: value` is a key: an item of a list has a space behind its dash
                Some(b'-') if line.len() > 1 && !line[1..].starts_with([' ', '\t']) => self.yaml_key(at, line)?,
                Some(b'-') if !self.members.is_empty() => self.goes_on(line),
                Some(b'.') if line.trim_end() == "..." => {
                    self.end = at;
                    return Ok(());
                }
                Some(b'-' | b'{' | b'[') => {
                    return Err(self
                        .wrong(at, "config-not-object", "the outermost value is not a block of `key: value` lines")
                        .hint("write one setting a line, `key: value`"));
                }
                Some(_) => self.yaml_key(at, line)?,
            }
            at = next;
        }
        Ok(())
    }

    /// A line that belongs to the value above it.
    fn goes_on(&mut self, line: &str) {
        if let Some(long) = self.long.last_mut()
            && !line.is_empty()
            && !line.starts_with('#')
        {
            *long = true;
        }
    }

    fn yaml_key(&mut self, at: usize, line: &str) -> Result<(), Diagnostic> {
        let quote = line.chars().next().filter(|c| matches!(c, '"' | '\''));
        let key_end = match quote {
            Some(quote) => line[1..].find(quote).map(|n| n + 2),
            None => line
                .match_indices(':')
                .map(|(n, _)| n)
                .find(|n| line[n + 1..].is_empty() || line[n + 1..].starts_with([' ', '\t'])),
        };
        let colon = key_end.filter(|n| line[*n..].trim_start().starts_with(':'));
        let Some(key_end) = colon else {
            return Err(self
                .wrong(at, "config-not-yaml", "`key: value` was expected")
                .hint("indent the lines that belong to the line above"));
        };
        let after = key_end + line[key_end..].find(':').unwrap_or(0) + 1;
        let start = after + line[after..].len() - line[after..].trim_start().len();
        let end = start + scalar_end(&line[start..]);
        let key = line[..key_end].trim().trim_matches(['"', '\'']).to_string();
        self.members.push(Member {
            key,
            key_at: at..at + key_end,
            value_at: at + start.min(end.max(after))..at + end.max(after),
        });
        self.long.push(false);
        Ok(())
    }

    fn toml(&mut self) -> Result<(), Diagnostic> {
        let read = toml_edit::Document::parse(self.text).map_err(|error| {
            let what = format!("this is not TOML: {}", error.message());
            self.wrong(error.span().map_or(0, |span| span.start), "config-not-toml", &what)
                .hint("write one setting a line, `key = value`, with strings in quotes; tables begin with `[name]`")
        })?;
        self.end = if self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        for (keys, value) in read.as_table().get_values() {
            let key = keys.iter().map(|key| key.get()).collect::<Vec<_>>().join(".");
            let ends = keys[0].span().zip(keys[keys.len() - 1].span()).zip(value.span());
            let ((first, last), value_at) = ends.expect("what was read has its place");
            let line_end = self.text[value_at.end..].find('\n').map_or(self.text.len(), |n| value_at.end + n + 1);
            self.end = self.end.max(line_end);
            self.long.push(self.text[value_at.clone()].contains('\n'));
            self.members.push(Member { key, key_at: first.start..last.end, value_at });
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

    /// A member's value: a scalar, else its text.
    pub(crate) fn value(&self, member: &Member) -> Value {
        match self.written(member).trim() {
            "" if self.form == Form::Yaml => self.below(member),
            text => scalar(text),
        }
    }

    /// The scalars of a YAML mapping in the lines below its key; null without any.
    fn below(&self, member: &Member) -> Value {
        let rest = self.text[member.value_at.end..].split_once('\n').map_or("", |(_, rest)| rest);
        let lines = rest.lines().take_while(|line| line.trim().is_empty() || line.starts_with([' ', '\t', '#']));
        let (mut found, mut indent) = (serde_json::Map::new(), None);
        for line in lines {
            let text = line.trim_start();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let deep = line.len() - text.len();
            let is_key = *indent.get_or_insert(deep) == deep && !text.starts_with('-');
            if let Some((key, value)) = text.split_once(':').filter(|_| is_key) {
                let value = value.trim_start();
                found.insert(key.trim_matches(['"', '\'']).into(), scalar(&value[..scalar_end(value)]));
            }
        }
        if found.is_empty() { Value::Null } else { Value::Object(found) }
    }

    /// A value as this form writes it.
    pub(crate) fn quoted(&self, value: &str) -> String {
        match self.form {
            Form::Yaml => value.to_string(),
            Form::Toml => format!("\"{value}\""),
        }
    }

    /// The text with another value for a member. Errors: its value spans several lines.
    pub(crate) fn replaced(&self, member: &Member, value: &str) -> Result<String, Diagnostic> {
        let at = self.members.iter().position(|m| m == member);
        if at.is_some_and(|at| self.long[at]) {
            let what = format!("the value of `{}` continues on further lines", member.key);
            return Err(self.wrong(member.key_at.start, "config-long-value", &what).hint("write it on one line"));
        }
        let (before, after) = (&self.text[..member.value_at.start], &self.text[member.value_at.end..]);
        let space = if before.ends_with([':', '=']) { " " } else { "" };
        Ok(format!("{before}{space}{value}{after}"))
    }

    /// The text with a line more, after the last of the outermost mapping.
    pub(crate) fn inserted(&self, key: &str, value: &str) -> String {
        let line_end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let (before, after) = self.text.split_at(self.end);
        // a mark of the encoding stands at the beginning alone: elsewhere it is a character of its line
        let gap = if ["", "\u{feff}"].contains(&before) || before.ends_with('\n') { "" } else { line_end };
        let line = match self.form {
            Form::Yaml => format!("{key}: {value}"),
            Form::Toml => format!("{key} = {value}"),
        };
        let end = if gap.is_empty() || !after.is_empty() { line_end } else { "" };
        format!("{before}{gap}{line}{end}{after}")
    }
}

/// A value as it is written, without its comment.
fn scalar(text: &str) -> Value {
    let inner = |quote| text.strip_prefix(quote)?.strip_suffix(quote).filter(|_| text.len() > 1);
    if let Some(text) = inner('"').or_else(|| inner('\'')) {
        return Value::from(text);
    }
    match text {
        "" | "~" | "null" => Value::Null,
        "true" | "True" => Value::Bool(true),
        "false" | "False" => Value::Bool(false),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(n), _) => Value::from(n),
            (_, Ok(n)) => serde_json::Number::from_f64(n).map_or_else(|| Value::from(text), Value::Number),
            _ => Value::from(text),
        },
    }
}

/// Bytes of a YAML scalar on one line, without the comment behind it.
fn scalar_end(text: &str) -> usize {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        return text[1..].rfind(quote).map_or(text.trim_end().len(), |n| n + 2);
    }
    let comment = if text.starts_with('#') { Some(0) } else { text.find(" #").or_else(|| text.find("\t#")) };
    text[..comment.unwrap_or(text.len())].trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_and_the_mapping_below_a_key_are_read() {
        let text = "cp_size: 2\nrate: 1e-4 # slow\nparallelism_config:\n  # of accelerate\n  parallelism_config_cp_size: 4\n  \
                    name: 'a'\n\n  inner:\n    cp_size: 9\nlist:\n  - a: 1\n    b: 2\nlast:\nend: x\n";
        let flat = Flat::parse("a.yaml", text.as_bytes(), Form::Yaml).unwrap();
        let of = |key: &str| flat.value(flat.members.iter().find(|member| member.key == key).unwrap());
        assert_eq!((of("cp_size"), of("rate")), (Value::from(2), Value::from(1e-4)));
        assert_eq!((of("list"), of("last")), (Value::Null, Value::Null), "no mapping");
        let below = serde_json::json!({"parallelism_config_cp_size": 4, "name": "a", "inner": null});
        assert_eq!(of("parallelism_config"), below);
    }

    fn set(name: &str, text: &str, key: &str, value: &str) -> Result<String, Diagnostic> {
        let form = if name.ends_with("toml") { Form::Toml } else { Form::Yaml };
        let flat = Flat::parse(name, text.as_bytes(), form)?;
        match flat.members.iter().find(|m| m.key == key) {
            Some(member) => flat.replaced(member, &flat.quoted(value)),
            None => Ok(flat.inserted(key, &flat.quoted(value))),
        }
    }

    #[test]
    fn yaml_keeps_every_other_byte() {
        for (text, want) in [
            ("a: 1\nattn: eager  # why\nb:\n- x\n", "a: 1\nattn: sdpa  # why\nb:\n- x\n"),
            (
                "---\r\na: 1\r\nnested:\r\n  attn: eager\r\n",
                "---\r\na: 1\r\nnested:\r\n  attn: eager\r\nattn: sdpa\r\n",
            ),
            ("a: 1", "a: 1\nattn: sdpa"),
            ("attn: \"fa # 2\" # c\n", "attn: sdpa # c\n"),
            ("attn:\nb: 2\n", "attn: sdpa\nb: 2\n"),
            ("a: http://x:1/y\n...\n", "a: http://x:1/y\nattn: sdpa\n...\n"),
            ("\"attn\": null\n", "\"attn\": sdpa\n"),
            ("", "attn: sdpa\n"),
        ] {
            assert_eq!(set("a.yaml", text, "attn", "sdpa").expect(text), want);
        }
        for (text, code) in [
            ("- a\n", "config-not-object"),
            ("a: 1\n---\nb: 2\n", "config-many-documents"),
            ("attn: 1\nattn: 2\n", "config-duplicate-key"),
            ("attn:\n  a: 1\n", "config-long-value"),
            ("just words\n", "config-not-yaml"),
        ] {
            assert_eq!(set("a.yaml", text, "attn", "sdpa").expect_err(text).code, code);
        }
    }

    #[test]
    fn toml_sets_what_stands_before_the_tables() {
        for (text, want) in [
            ("a = 1\nattn = 'eager' # why\n[t]\nattn = 1\n", "a = 1\nattn = \"sdpa\" # why\n[t]\nattn = 1\n"),
            (
                "a = [\n  1, # ]\n  2\n]\n\n[t]\nattn = 1\n",
                "a = [\n  1, # ]\n  2\n]\nattn = \"sdpa\"\n\n[t]\nattn = 1\n",
            ),
            ("[t]\nb = 2\n", "attn = \"sdpa\"\n[t]\nb = 2\n"),
            ("\u{feff}[t]\nb = 2\n", "\u{feff}attn = \"sdpa\"\n[t]\nb = 2\n"),
            ("x.attn = 1\nb = 2 # c\nx.y = 3\n\n[t]\n", "x.attn = 1\nb = 2 # c\nx.y = 3\nattn = \"sdpa\"\n\n[t]\n"),
            ("a = \"\"\"x\n[y]\n\"\"\"\r\n", "a = \"\"\"x\n[y]\n\"\"\"\r\nattn = \"sdpa\"\r\n"),
        ] {
            assert_eq!(set("a.toml", text, "attn", "sdpa").unwrap_or_else(|e| panic!("{text}: {}", e.render())), want);
        }
        for (text, place) in [
            ("a = [1\n", "line 1"),
            ("words\n", "line 1"),
            ("a = 1\n[t]\nb = 'x\n", "line 3"),
            ("a = 1\nb = 2\na = 3\n", "line 3, column 1"),
        ] {
            let why = set("a.toml", text, "attn", "sdpa").expect_err(text);
            assert!(why.code == "config-not-toml" && why.message.contains(place), "{text}: {why}");
        }
    }
}
