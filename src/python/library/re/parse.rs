//! Parses patterns of Python's `re` into the machine's steps.
//!
//! Invariant: a pattern has Python's meaning or is refused in words; the program stays small for any counts. Must not
//! know the searched texts.

use super::machine::{Class, Program, Set, Step};

/// Steps that a program may have: counted repeats are written out.
const MOST_STEPS: usize = 20_000;
/// Groups within one another.
const MAX_DEPTH: usize = 60;

/// Flags of a pattern, as in Python's `re`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub ignore_case: bool,
    pub multi_line: bool,
    pub dot_all: bool,
    pub verbose: bool,
    pub ascii: bool,
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
}

/// Why there is no program.
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

/// A part of a pattern.
#[derive(Clone, Debug)]
enum Node {
    One(Set),
    Seq(Vec<Node>),
    Either(Vec<Node>),
    Group(usize, Box<Node>),
    Repeat { inner: Box<Node>, least: u32, most: Option<u32>, lazy: bool },
    Back(usize, bool),
    At(Class),
    Look { inner: Box<Node>, behind: bool, negated: bool },
}

/// Reads a pattern.
pub(super) fn compile(pattern: &str, flags: Flags) -> Result<Program, Refusal> {
    let mut reader = Reader {
        text: pattern.chars().collect(),
        at: 0,
        flags,
        groups: 0,
        closed: vec![true],
        names: Vec::new(),
        depth: 0,
    };
    let node = reader.alternatives()?;
    if reader.at < reader.text.len() {
        return Err(Refusal::wrong("unbalanced parenthesis"));
    }
    let mut writer = Writer { steps: Vec::new(), slots: 2 * (reader.groups + 1) };
    writer.node(&node)?;
    writer.push(Step::Done)?;
    Ok(Program { steps: writer.steps, groups: reader.groups, slots: writer.slots, names: reader.names })
}

struct Reader {
    text: Vec<char>,
    at: usize,
    flags: Flags,
    groups: usize,
    /// Whether a group is closed, so that it may be referred to.
    closed: Vec<bool>,
    names: Vec<(String, usize)>,
    depth: usize,
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

    fn alternatives(&mut self) -> Result<Node, Refusal> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Refusal::open("the groups of this pattern nest too deeply"));
        }
        let mut all = vec![self.sequence()?];
        while self.takes('|') {
            all.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(if all.len() == 1 { all.remove(0) } else { Node::Either(all) })
    }

    fn sequence(&mut self) -> Result<Node, Refusal> {
        let mut all = Vec::new();
        while let Some(c) = self.peek() {
            if matches!(c, '|' | ')') {
                break;
            }
            if self.skips(c) {
                continue;
            }
            let Some(one) = self.one()? else { continue };
            all.push(self.repeated(one)?);
        }
        Ok(Node::Seq(all))
    }

    /// Passes a space or comment of a verbose pattern.
    fn skips(&mut self, c: char) -> bool {
        if !self.flags.verbose || !(c.is_whitespace() || c == '#') {
            return false;
        }
        self.at += 1;
        while c == '#' && self.peek().is_some_and(|c| c != '\n') {
            self.at += 1;
        }
        true
    }

    /// One part without what repeats it; None for a comment or flags.
    fn one(&mut self) -> Result<Option<Node>, Refusal> {
        let multi_line = self.flags.multi_line;
        Ok(Some(match self.next("")? {
            '.' if self.flags.dot_all => Node::One(Set::any()),
            '.' => Node::One(Set { negated: true, ..Set::of('\n') }),
            '^' => Node::At(if multi_line { Class::LineStart } else { Class::Start }),
            '$' => Node::At(if multi_line { Class::LineEnd } else { Class::End }),
            '(' => return self.group(),
            '[' => Node::One(self.set()?),
            '\\' => self.escape()?,
            c @ ('*' | '+' | '?') => return Err(Refusal::wrong(format!("nothing to repeat: `{c}`"))),
            c => Node::One(self.cased(Set::of(c))),
        }))
    }

    fn cased(&self, set: Set) -> Set {
        Set { ignore_case: self.flags.ignore_case, ..set }
    }

    fn escape(&mut self) -> Result<Node, Refusal> {
        let c = self.next("bad escape (end of pattern)")?;
        let ascii = self.flags.ascii;
        Ok(match c {
            'A' => Node::At(Class::Start),
            'Z' => Node::At(Class::VeryEnd),
            'b' => Node::At(Class::Edge { ascii, negated: false }),
            'B' => Node::At(Class::Edge { ascii, negated: true }),
            '1'..='9' => {
                let mut n = c.to_digit(10).unwrap_or(0) as usize;
                if let Some(d) = self.peek().and_then(|c| c.to_digit(10)) {
                    n = 10 * n + d as usize;
                    self.at += 1;
                }
                if self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    return Err(Refusal::open("octal escapes are not supported here"));
                }
                self.back(n)?
            }
            c => Node::One(self.cased(self.class_or_char(c)?)),
        })
    }

    fn back(&self, n: usize) -> Result<Node, Refusal> {
        match self.closed.get(n) {
            Some(true) if n > 0 => Ok(Node::Back(n, self.flags.ignore_case)),
            Some(_) => Err(Refusal::wrong("cannot refer to an open group")),
            None => Err(Refusal::wrong(format!("invalid group reference {n}"))),
        }
    }

    /// The meaning of an escape inside and outside of sets.
    fn class_or_char(&self, c: char) -> Result<Set, Refusal> {
        let mut set = Set { ascii: self.flags.ascii, ..Set::default() };
        let lower = c.to_ascii_lowercase();
        match c {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => set.kinds.push((lower, c != lower)),
            c => return Ok(Set { ascii: self.flags.ascii, ..Set::of(self.escaped(c)?) }),
        }
        Ok(set)
    }

    fn escaped(&self, c: char) -> Result<char, Refusal> {
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

    /// The rest of `[...]`.
    fn set(&mut self) -> Result<Set, Refusal> {
        const MISSING: &str = "unterminated character set";
        let mut set = Set { ignore_case: self.flags.ignore_case, ascii: self.flags.ascii, ..Set::default() };
        set.negated = self.takes('^');
        let mut first = true;
        loop {
            let c = self.next(MISSING)?;
            if c == ']' && !first {
                return Ok(set);
            }
            first = false;
            let low = match self.member(c, &mut set)? {
                Some(low) => low,
                None => continue,
            };
            let is_range = self.peek() == Some('-') && self.text.get(self.at + 1).is_some_and(|c| *c != ']');
            let high = if is_range {
                self.at += 1;
                let c = self.next(MISSING)?;
                self.member(c, &mut set)?.ok_or_else(|| Refusal::wrong("bad character range"))?
            } else {
                low
            };
            if high < low {
                return Err(Refusal::wrong(format!("bad character range {low}-{high}")));
            }
            set.ranges.push((low, high));
        }
    }

    /// A member of a set: a character, or None for a class, which is recorded.
    fn member(&mut self, c: char, set: &mut Set) -> Result<Option<char>, Refusal> {
        if c != '\\' {
            return Ok(Some(c));
        }
        let c = self.next("unterminated character set")?;
        if c == 'b' {
            return Ok(Some('\u{8}'));
        }
        let of = self.class_or_char(c)?;
        set.kinds.extend(&of.kinds);
        Ok(of.ranges.first().map(|r| r.0))
    }

    /// The rest of `(...)`.
    fn group(&mut self) -> Result<Option<Node>, Refusal> {
        const MISSING: &str = "missing ), unterminated subpattern";
        let before = self.flags;
        let mut own = None;
        if self.takes('?') {
            match self.next("unexpected end of pattern")? {
                ':' => {}
                '#' => {
                    self.until(')', "missing ), unterminated comment")?;
                    return Ok(None);
                }
                'P' if self.takes('<') => own = Some(Some(self.until('>', "missing >, unterminated name")?)),
                'P' if self.takes('=') => {
                    let name = self.until(')', "missing ), unterminated name")?;
                    let n = self.names.iter().find(|(n, _)| *n == name).map(|(_, n)| *n);
                    let n = n.ok_or_else(|| Refusal::wrong(format!("unknown group name '{name}'")))?;
                    return self.back(n).map(Some);
                }
                c @ ('=' | '!') => return self.look(false, c == '!').map(Some),
                '<' if matches!(self.peek(), Some('=' | '!')) => {
                    let negated = self.next(MISSING)? == '!';
                    return self.look(true, negated).map(Some);
                }
                '>' | '(' => return Err(Refusal::open("atomic and conditional groups are not supported here")),
                c => {
                    let global = self.inline_flags(c)?;
                    if global {
                        return Ok(None);
                    }
                }
            }
        } else {
            own = Some(None);
        }
        let number = own.map(|name| self.open(name)).transpose()?;
        let inner = self.alternatives()?;
        if !self.takes(')') {
            return Err(Refusal::wrong(MISSING));
        }
        self.flags = before;
        Ok(Some(match number {
            Some(n) => {
                self.closed[n] = true;
                Node::Group(n, Box::new(inner))
            }
            None => inner,
        }))
    }

    fn open(&mut self, name: Option<String>) -> Result<usize, Refusal> {
        self.groups += 1;
        self.closed.push(false);
        if let Some(name) = name {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            if !name.chars().all(word) || name.chars().next().is_none_or(|c| c.is_ascii_digit()) {
                return Err(Refusal::wrong(format!("bad character in group name '{name}'")));
            }
            if self.names.iter().any(|(n, _)| *n == name) {
                return Err(Refusal::wrong(format!("redefinition of group name '{name}'")));
            }
            self.names.push((name, self.groups));
        }
        Ok(self.groups)
    }

    fn look(&mut self, behind: bool, negated: bool) -> Result<Node, Refusal> {
        let before = self.flags;
        let inner = self.alternatives()?;
        self.flags = before;
        if !self.takes(')') {
            return Err(Refusal::wrong("missing ), unterminated subpattern"));
        }
        if behind && width(&inner).is_none() {
            return Err(Refusal::wrong("look-behind requires fixed-width pattern"));
        }
        Ok(Node::Look { inner: Box::new(inner), behind, negated })
    }

    /// Flags in a group: for the whole pattern (true), or for what follows in the group.
    fn inline_flags(&mut self, first: char) -> Result<bool, Refusal> {
        let start = self.at == 3;
        let (mut c, mut on) = (first, true);
        loop {
            match c {
                ')' if !start => {
                    return Err(Refusal::wrong("global flags not at the start of the expression"));
                }
                ')' => return Ok(true),
                ':' => return Ok(false),
                '-' if on => on = false,
                c => self.flags.set(c, on)?,
            }
            c = self.next("missing -, : or )")?;
        }
    }

    /// A part with what repeats it.
    fn repeated(&mut self, one: Node) -> Result<Node, Refusal> {
        while self.peek().is_some_and(|c| self.skips(c)) {}
        let Some((least, most)) = self.count()? else { return Ok(one) };
        if matches!(one, Node::At(_)) {
            return Err(Refusal::open("repeating an assertion such as `^` or `\\b` is not supported here"));
        }
        let lazy = self.takes('?');
        if self.peek() == Some('+') {
            return Err(Refusal::open("possessive repeats are not supported here"));
        }
        if self.count()?.is_some() {
            return Err(Refusal::wrong("multiple repeat"));
        }
        Ok(Node::Repeat { inner: Box::new(one), least, most, lazy })
    }

    /// The repetition count, if the pattern has one here.
    fn count(&mut self) -> Result<Option<(u32, Option<u32>)>, Refusal> {
        let start = self.at;
        match self.peek() {
            Some('*') => self.at += 1,
            Some('+') => {
                self.at += 1;
                return Ok(Some((1, None)));
            }
            Some('?') => {
                self.at += 1;
                return Ok(Some((0, Some(1))));
            }
            Some('{') => {
                self.at += 1;
                let low = self.digits();
                let high = if self.takes(',') { self.digits() } else { low.clone() };
                let both_empty = low.is_empty() && high.is_empty();
                if !self.takes('}') || (both_empty && self.text[start + 1] != ',') {
                    // a brace that counts nothing is itself
                    self.at = start;
                    return Ok(None);
                }
                let number = |text: &str| match text.parse::<u32>() {
                    Ok(n) if n <= MOST_STEPS as u32 => Ok(n),
                    _ => Err(Refusal::open("a count in this pattern is too large")),
                };
                let least = if low.is_empty() { 0 } else { number(&low)? };
                let most = if high.is_empty() { None } else { Some(number(&high)?) };
                if most.is_some_and(|most| most < least) {
                    return Err(Refusal::wrong("min repeat greater than max repeat"));
                }
                return Ok(Some((least, most)));
            }
            _ => return Ok(None),
        }
        Ok(Some((0, None)))
    }

    fn digits(&mut self) -> String {
        let mut out = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_digit) {
            out.push(c);
            self.at += 1;
        }
        out
    }
}

/// How many characters a part takes, if that is one number.
fn width(node: &Node) -> Option<usize> {
    match node {
        Node::At(_) | Node::Look { .. } => Some(0),
        Node::One(_) => Some(1),
        Node::Seq(all) => all.iter().map(width).sum(),
        Node::Either(all) => {
            let first = width(all.first()?)?;
            all.iter().all(|n| width(n) == Some(first)).then_some(first)
        }
        Node::Group(_, inner) => width(inner),
        Node::Repeat { inner, least, most, .. } => {
            (Some(*least) == *most).then(|| width(inner).map(|w| w * *least as usize))?
        }
        Node::Back(..) => None,
    }
}

struct Writer {
    steps: Vec<Step>,
    /// Places that are remembered: ends of groups, then starts of repeats.
    slots: usize,
}

impl Writer {
    fn push(&mut self, step: Step) -> Result<usize, Refusal> {
        if self.steps.len() >= MOST_STEPS {
            return Err(Refusal::open("this pattern is too large"));
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    /// A choice between what follows and a step that is not known yet; `first`: what follows is tried first.
    fn fork(&mut self, first: bool) -> Result<usize, Refusal> {
        let next = self.steps.len() + 1;
        self.push(if first { Step::Split(next, 0) } else { Step::Split(0, next) })
    }

    /// Sets the open end of a choice or jump to the next step.
    fn join(&mut self, at: usize) {
        let here = self.steps.len();
        match &mut self.steps[at] {
            Step::Split(a, b) => *(if *b == 0 { b } else { a }) = here,
            Step::Jump(to) | Step::Look { end: to, .. } => *to = here,
            _ => {}
        }
    }

    fn node(&mut self, node: &Node) -> Result<(), Refusal> {
        match node {
            Node::One(set) => drop(self.push(Step::One(set.clone()))?),
            Node::Seq(all) => all.iter().try_for_each(|n| self.node(n))?,
            Node::Either(all) => {
                let (last, others) = all.split_last().expect("an alternative");
                let mut ends = Vec::new();
                for one in others {
                    let fork = self.fork(true)?;
                    self.node(one)?;
                    ends.push(self.push(Step::Jump(0))?);
                    self.join(fork);
                }
                self.node(last)?;
                ends.into_iter().for_each(|end| self.join(end));
            }
            Node::Group(n, inner) => {
                self.push(Step::Save(2 * n))?;
                self.node(inner)?;
                self.push(Step::Save(2 * n + 1))?;
            }
            Node::Back(n, ignore_case) => drop(self.push(Step::Back(*n, *ignore_case))?),
            Node::At(class) => drop(self.push(Step::At(*class))?),
            Node::Look { inner, behind, negated } => {
                let back = if *behind { width(inner).unwrap_or(0) } else { 0 };
                let look = self.push(Step::Look { back, negated: *negated, end: 0 })?;
                self.node(inner)?;
                self.push(Step::Done)?;
                self.join(look);
            }
            Node::Repeat { inner, least, most, lazy } => self.repeat(inner, *least, *most, *lazy)?,
        }
        Ok(())
    }

    fn repeat(&mut self, inner: &Node, least: u32, most: Option<u32>, lazy: bool) -> Result<(), Refusal> {
        for _ in 0..least {
            self.node(inner)?;
        }
        match most {
            Some(most) => {
                let mut forks = Vec::new();
                for _ in least..most {
                    forks.push(self.fork(!lazy)?);
                    self.node(inner)?;
                }
                forks.into_iter().for_each(|fork| self.join(fork));
            }
            None => {
                // a round that takes nothing is the last one
                let slot = self.slots;
                self.slots += 1;
                let start = self.fork(!lazy)?;
                self.push(Step::Save(slot))?;
                self.node(inner)?;
                self.push(Step::Went(slot))?;
                self.push(Step::Jump(start))?;
                self.join(start);
            }
        }
        Ok(())
    }
}
