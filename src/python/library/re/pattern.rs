//! Translates patterns of Python's `re` for the crate that matches them.
//!
//! Invariant: a pattern has Python's meaning or is refused in words, and a search ends. Must not know values.

use fancy_regex::{Regex, RegexBuilder};
use std::cell::OnceCell;

/// More places are not gone back to in one search.
const MOST_TRIES: usize = 1_000_000;
/// Largest count of a repeat.
const MOST_REPEATS: u32 = 20_000;

/// Flags of a pattern, as in Python's `re`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    ignore_case: bool,
    multi_line: bool,
    dot_all: bool,
    verbose: bool,
    ascii: bool,
}

impl Flags {
    /// The flags of Python's number.
    pub(super) fn of(bits: i64) -> Result<Flags, Refusal> {
        if bits & !(2 | 8 | 16 | 32 | 64 | 256) != 0 {
            return Err(Refusal::open("a flag of this pattern is not supported here"));
        }
        let has = |bit: i64| bits & bit != 0;
        Ok(Flags { ignore_case: has(2), multi_line: has(8), dot_all: has(16), verbose: has(64), ascii: has(256) })
    }

    fn set(&mut self, letter: char, on: bool) -> Result<(), Refusal> {
        match letter {
            'i' => self.ignore_case = on,
            'm' => self.multi_line = on,
            's' => self.dot_all = on,
            'x' => self.verbose = on,
            'a' => self.ascii = on,
            'u' => self.ascii = !on,
            _ => return Err(Refusal::wrong("unknown extension of a group")),
        }
        Ok(())
    }

    /// One character's pattern or a set's, which may be of either case.
    fn cased(self, one: String) -> Result<String, Refusal> {
        match (self.ignore_case, self.ascii) {
            (false, _) => Ok(one),
            (true, false) => Ok(format!("(?i:{one})")),
            (true, true) => Err(Refusal::open("the flags A and I together are not supported here")),
        }
    }

    /// The members of `\d`, `\w` or `\s`, for a set.
    fn members(self, kind: char) -> &'static str {
        match (kind, self.ascii) {
            ('d', true) => "0-9",
            ('d', false) => r"\p{Nd}",
            ('w', true) => "0-9A-Za-z_",
            ('w', false) => r"\p{L}\p{N}_",
            (_, true) => r"\x{20}\x{9}-\x{D}",
            (_, false) => r"\s\x{1C}-\x{1F}",
        }
    }
}

/// Why a pattern is not matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub message: String,
    /// Whether Python refuses it, too.
    pub python: bool,
}

impl Refusal {
    fn wrong(message: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), python: true }
    }

    fn open(message: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), python: false }
    }
}

/// Start and end of the whole and of each group, in bytes.
pub(super) type Spans = Vec<Option<(usize, usize)>>;

/// Where a match may begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Anywhere.
    Anywhere,
    /// Anywhere, but not empty where the search begins.
    Further,
    /// At the start of the text.
    Here,
    /// The whole text.
    Whole,
}

/// The search took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// A pattern.
#[derive(Debug)]
pub(super) struct Program {
    translated: String,
    /// For each [`Mode`], compiled when it is needed.
    compiled: [OnceCell<Regex>; 4],
    pub groups: usize,
    pub names: Vec<(String, usize)>,
}

impl Program {
    /// Reads a pattern.
    pub(super) fn new(pattern: &str, flags: Flags) -> Result<Program, Refusal> {
        let mut reader = Reader {
            text: pattern.chars().collect(),
            at: 0,
            out: String::new(),
            open: vec![Group::new(flags, None, Bracket::Plain, 0)],
            closed: vec![false],
            names: Vec::new(),
        };
        reader.read()?;
        let Reader { out, closed, names, .. } = reader;
        let made = Program { translated: out, compiled: Default::default(), groups: closed.len() - 1, names };
        made.regex(Mode::Anywhere)
            .map_err(|why| Refusal::open(format!("this pattern is not supported here ({why})")))?;
        Ok(made)
    }

    fn regex(&self, mode: Mode) -> Result<&Regex, Box<fancy_regex::Error>> {
        let cell = &self.compiled[mode as usize];
        if let Some(made) = cell.get() {
            return Ok(made);
        }
        let inner = &self.translated;
        let pattern = match mode {
            Mode::Anywhere => inner.clone(),
            Mode::Further => format!(r"(?:{inner})(?!\G)"),
            Mode::Here => format!(r"\A(?:{inner})"),
            Mode::Whole => format!(r"\A(?:{inner})\z"),
        };
        let made = RegexBuilder::new(&pattern).backtrack_limit(MOST_TRIES).build()?;
        Ok(cell.get_or_init(|| made))
    }

    /// The first match from a byte on.
    pub(super) fn find(&self, text: &str, from: usize, mode: Mode) -> Result<Option<Spans>, TooLong> {
        let regex = self.regex(mode).map_err(|_| TooLong)?;
        let found = regex.captures_from_pos(text, from).map_err(|_| TooLong)?;
        let span = |m: fancy_regex::Match| (m.start(), m.end());
        Ok(found.map(|found| (0..=self.groups).map(|n| found.get(n).map(span)).collect()))
    }
}

/// What a group is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bracket {
    Plain,
    Ahead,
    Behind,
}

/// What a repeat would repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Nothing,
    /// A place, which takes no character.
    Place,
    One,
    Repeat,
}

/// How many characters a part takes at least, and whether it takes exactly these.
type Width = (usize, bool);

/// A group that is not closed.
struct Group {
    flags: Flags,
    number: Option<usize>,
    bracket: Bracket,
    /// Where it begins in what was written.
    begin: usize,
    last: Last,
    last_width: Width,
    /// Where the last part begins in what was written.
    last_at: usize,
    /// Of this alternative before the last part, and of the alternatives before it.
    width: Width,
    others: Option<Width>,
}

impl Group {
    fn new(flags: Flags, number: Option<usize>, bracket: Bracket, begin: usize) -> Group {
        Group {
            flags,
            number,
            bracket,
            begin,
            last: Last::Nothing,
            last_width: (0, true),
            last_at: 0,
            width: (0, true),
            others: None,
        }
    }

    fn follow(&mut self, last: Last, width: Width) {
        self.width = (self.width.0 + self.last_width.0, self.width.1 && self.last_width.1);
        (self.last, self.last_width) = (last, width);
    }

    /// Ends an alternative; the width of all so far.
    fn alternative(&mut self) -> Width {
        self.follow(Last::Nothing, (0, true));
        let of_all = |others: Width| (others.0.min(self.width.0), others.1 && others == self.width);
        let all = self.others.map_or(self.width, of_all);
        (self.others, self.width) = (Some(all), (0, true));
        all
    }
}

struct Reader {
    text: Vec<char>,
    at: usize,
    out: String,
    open: Vec<Group>,
    /// Whether a group is closed, so that it may be referred to; the first is the whole.
    closed: Vec<bool>,
    names: Vec<(String, usize)>,
}

const UNCLOSED: &str = "missing ), unterminated subpattern";

/// A character that means itself.
fn literal(c: char) -> String {
    if c.is_ascii_alphanumeric() || !c.is_ascii() { c.into() } else { format!(r"\x{{{:X}}}", u32::from(c)) }
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn takes(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        self.at += usize::from(there);
        there
    }

    fn next(&mut self, missing: &str) -> Result<char, Refusal> {
        let c = self.peek().ok_or_else(|| Refusal::wrong(missing))?;
        self.at += 1;
        Ok(c)
    }

    /// The text before a character, which is skipped.
    fn until(&mut self, end: char, missing: &str) -> Result<String, Refusal> {
        let mut out = String::new();
        loop {
            match self.next(missing)? {
                c if c == end => return Ok(out),
                c => out.push(c),
            }
        }
    }

    fn group(&mut self) -> &mut Group {
        self.open.last_mut().expect("the whole is open")
    }

    fn flags(&self) -> Flags {
        self.open.last().expect("the whole is open").flags
    }

    fn write(&mut self, last: Last, width: Width, text: &str) {
        let at = self.out.len();
        self.out.push_str(text);
        self.group().follow(last, width);
        self.group().last_at = at;
    }

    fn one(&mut self, text: String) -> Result<(), Refusal> {
        let text = self.flags().cased(text)?;
        self.write(Last::One, (1, true), &text);
        Ok(())
    }

    fn read(&mut self) -> Result<(), Refusal> {
        while let Some(c) = self.peek() {
            self.at += 1;
            let flags = self.flags();
            match c {
                '#' if flags.verbose => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1
                    }
                }
                ' ' | '\t'..='\r' if flags.verbose => {}
                '.' => self.write(Last::One, (1, true), if flags.dot_all { "(?s:.)" } else { r"[^\n]" }),
                '^' => self.write(Last::Place, (0, true), if flags.multi_line { "(?m:^)" } else { r"\A" }),
                '$' => self.write(Last::Place, (0, true), if flags.multi_line { "(?m:$)" } else { r"(?=\n?\z)" }),
                '|' => {
                    self.group().alternative();
                    self.out.push('|');
                }
                '(' => self.begin()?,
                ')' => self.end()?,
                '[' => self.set()?,
                '\\' => self.escape()?,
                '*' => self.repeat(0, None)?,
                '+' => self.repeat(1, None)?,
                '?' => self.repeat(0, Some(1))?,
                '{' => match self.count()? {
                    Some((least, most)) => self.repeat(least, most)?,
                    // a brace that counts nothing is itself
                    None => self.one(literal('{'))?,
                },
                c => self.one(literal(c))?,
            }
        }
        if self.open.len() > 1 { Err(Refusal::wrong(UNCLOSED)) } else { Ok(()) }
    }

    fn repeat(&mut self, least: u32, most: Option<u32>) -> Result<(), Refusal> {
        match self.group().last {
            Last::Nothing => return Err(Refusal::wrong("nothing to repeat")),
            Last::Place => {
                return Err(Refusal::open("repeating an assertion such as `^` or `\\b` is not supported here"));
            }
            Last::Repeat => return Err(Refusal::wrong("multiple repeat")),
            Last::One => {}
        }
        let most_text = most.map_or(String::new(), |n| n.to_string());
        let lazy = if self.takes('?') { "?" } else { "" };
        if self.peek() == Some('+') {
            return Err(Refusal::open("possessive repeats are not supported here"));
        }
        let group = self.group();
        if group.last_width.0 == 0 {
            // a round that takes nothing is the last one and counts: the engine that goes back has it so, and the lookahead asks for it
            let at = group.last_at;
            self.out.insert_str(at, "(?:");
            self.out.push_str("(?=))");
        }
        self.out.push_str(&format!("{{{least},{most_text}}}{lazy}"));
        let group = self.group();
        group.last = Last::Repeat;
        group.last_width = (group.last_width.0 * least as usize, group.last_width.1 && most == Some(least));
        Ok(())
    }

    /// The rest of `{2,3}`; None if the brace counts nothing.
    fn count(&mut self) -> Result<Option<(u32, Option<u32>)>, Refusal> {
        let start = self.at;
        let low = self.digits();
        let comma = self.takes(',');
        let high = if comma { self.digits() } else { low.clone() };
        if !self.takes('}') || (low.is_empty() && !comma) {
            self.at = start;
            return Ok(None);
        }
        let number = |text: &str| match text.parse::<u32>() {
            Ok(n) if n <= MOST_REPEATS => Ok(n),
            _ => Err(Refusal::open("a count in this pattern is too large")),
        };
        let least = if low.is_empty() { 0 } else { number(&low)? };
        let most = if high.is_empty() { None } else { Some(number(&high)?) };
        if most.is_some_and(|most| most < least) {
            return Err(Refusal::wrong("min repeat greater than max repeat"));
        }
        Ok(Some((least, most)))
    }

    fn digits(&mut self) -> String {
        let mut out = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_digit) {
            out.push(c);
            self.at += 1;
        }
        out
    }

    fn escape(&mut self) -> Result<(), Refusal> {
        let c = self.next("bad escape (end of pattern)")?;
        let word = self.flags().members('w');
        match c {
            'A' => self.write(Last::Place, (0, true), r"\A"),
            'Z' => self.write(Last::Place, (0, true), r"\z"),
            'b' => {
                self.write(Last::Place, (0, true), &format!("(?:(?<=[{word}])(?![{word}])|(?<![{word}])(?=[{word}]))"));
            }
            'B' => {
                self.write(Last::Place, (0, true), &format!("(?:(?<=[{word}])(?=[{word}])|(?<![{word}])(?![{word}]))"));
            }
            '1'..='9' => {
                self.at -= 1;
                let digits = self.digits();
                match digits.parse() {
                    Ok(n) if digits.len() < 3 => self.back(n)?,
                    _ => return Err(Refusal::open("octal escapes are not supported here")),
                }
            }
            c => match self.class(c) {
                Some(class) => self.write(Last::One, (1, true), &class),
                None => self.one(literal(escaped(c)?))?,
            },
        }
        Ok(())
    }

    fn back(&mut self, n: usize) -> Result<(), Refusal> {
        match self.closed.get(n) {
            Some(true) => {
                let text = self.flags().cased(format!(r"\{n}"))?;
                self.write(Last::One, (0, false), &format!("(?:{text})"));
                Ok(())
            }
            Some(false) => Err(Refusal::wrong("cannot refer to an open group")),
            None => Err(Refusal::wrong(format!("invalid group reference {n}"))),
        }
    }

    /// The set of `\d` and similar.
    fn class(&self, c: char) -> Option<String> {
        let members = self.flags().members(c.to_ascii_lowercase());
        match c {
            'd' | 'w' | 's' => Some(format!("[{members}]")),
            'D' | 'W' | 'S' => Some(format!("[^{members}]")),
            _ => None,
        }
    }

    /// The rest of `[...]`.
    fn set(&mut self) -> Result<(), Refusal> {
        const MISSING: &str = "unterminated character set";
        let mut set = String::from(if self.takes('^') { "[^" } else { "[" });
        let start = self.at;
        loop {
            let c = self.next(MISSING)?;
            if c == ']' && self.at > start + 1 {
                break;
            }
            let is_range = |reader: &Reader| {
                reader.peek() == Some('-') && reader.text.get(reader.at + 1).is_some_and(|c| *c != ']')
            };
            match self.member(c)? {
                Err(_) if is_range(self) => return Err(Refusal::wrong("bad character range")),
                Err(class) => set.push_str(&class),
                Ok(low) if is_range(self) => {
                    self.at += 1;
                    let c = self.next(MISSING)?;
                    let high = self.member(c)?.map_err(|_| Refusal::wrong("bad character range"))?;
                    if high < low {
                        return Err(Refusal::wrong(format!("bad character range {low}-{high}")));
                    }
                    set.push_str(&format!("{}-{}", literal(low), literal(high)));
                }
                Ok(one) => set.push_str(&literal(one)),
            }
        }
        set.push(']');
        self.one(set)
    }

    /// A member of a set: a character, or the set of a class.
    fn member(&mut self, c: char) -> Result<Result<char, String>, Refusal> {
        if c != '\\' {
            return Ok(Ok(c));
        }
        Ok(match self.next("unterminated character set")? {
            'b' => Ok('\u{8}'),
            c => match self.class(c) {
                Some(class) => Err(class),
                None => Ok(escaped(c)?),
            },
        })
    }

    /// What follows `(`.
    fn begin(&mut self) -> Result<(), Refusal> {
        let mut flags = self.flags();
        if !self.takes('?') {
            return self.capture(None);
        }
        let (bracket, text) = match self.next("unexpected end of pattern")? {
            ':' => (Bracket::Plain, "(?:"),
            '#' => return self.until(')', "missing ), unterminated comment").map(drop),
            'P' if self.takes('<') => {
                let name = self.until('>', "missing >, unterminated name")?;
                return self.capture(Some(name));
            }
            'P' if self.takes('=') => {
                let name = self.until(')', "missing ), unterminated name")?;
                let n = self.names.iter().find(|(n, _)| *n == name).map(|(_, n)| *n);
                return self.back(n.ok_or_else(|| Refusal::wrong(format!("unknown group name '{name}'")))?);
            }
            '=' => (Bracket::Ahead, "(?="),
            '!' => (Bracket::Ahead, "(?!"),
            '<' if self.takes('=') => (Bracket::Behind, "(?<="),
            '<' if self.takes('!') => (Bracket::Behind, "(?<!"),
            '>' | '(' => return Err(Refusal::open("atomic and conditional groups are not supported here")),
            first => {
                if self.inline_flags(first, &mut flags)? {
                    self.group().flags = flags;
                    return Ok(());
                }
                (Bracket::Plain, "(?:")
            }
        };
        self.open.push(Group::new(flags, None, bracket, self.out.len()));
        self.out.push_str(text);
        Ok(())
    }

    fn capture(&mut self, name: Option<String>) -> Result<(), Refusal> {
        let number = self.closed.len();
        if let Some(name) = name {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            if !name.chars().all(word) || name.chars().next().is_none_or(|c| c.is_ascii_digit()) {
                return Err(Refusal::wrong(format!("bad character in group name '{name}'")));
            }
            if self.names.iter().any(|(n, _)| *n == name) {
                return Err(Refusal::wrong(format!("redefinition of group name '{name}'")));
            }
            self.names.push((name, number));
        }
        self.closed.push(false);
        self.open.push(Group::new(self.flags(), Some(number), Bracket::Plain, self.out.len()));
        self.out.push('(');
        Ok(())
    }

    /// Flags in a group: for the whole pattern (true), or for the group.
    fn inline_flags(&mut self, first: char, flags: &mut Flags) -> Result<bool, Refusal> {
        let start = self.at == 3;
        let (mut c, mut on) = (first, true);
        loop {
            match c {
                ')' if !start => return Err(Refusal::wrong("global flags not at the start of the expression")),
                ')' => return Ok(true),
                ':' => return Ok(false),
                '-' if on => on = false,
                c => flags.set(c, on)?,
            }
            c = self.next("missing -, : or )")?;
        }
    }

    /// What `)` closes.
    fn end(&mut self) -> Result<(), Refusal> {
        if self.open.len() == 1 {
            return Err(Refusal::wrong("unbalanced parenthesis"));
        }
        let mut group = self.open.pop().expect("an inner group");
        let width = group.alternative();
        if group.bracket == Bracket::Behind && !width.1 {
            return Err(Refusal::wrong("look-behind requires fixed-width pattern"));
        }
        if let Some(n) = group.number {
            self.closed[n] = true;
        }
        self.out.push(')');
        let (last, width) = if group.bracket == Bracket::Plain { (Last::One, width) } else { (Last::Place, (0, true)) };
        self.group().follow(last, width);
        self.group().last_at = group.begin;
        Ok(())
    }
}

/// The character of an escape, in a set or outside.
fn escaped(c: char) -> Result<char, Refusal> {
    Ok(match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'a' => '\u{7}',
        '0' | 'x' | 'u' | 'U' | 'N' => {
            return Err(Refusal::open(format!("`\\{c}` is not supported here: write the character itself")));
        }
        c if c.is_ascii_alphanumeric() => return Err(Refusal::wrong(format!("bad escape \\{c}"))),
        c => c,
    })
}
