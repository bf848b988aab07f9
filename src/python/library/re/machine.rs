//! The machine that matches a pattern: it tries the choices in order and backtracks to the last one when the rest
//! fails.
//!
//! Invariant: its own stack is on the heap and its work is counted, so no pattern overflows or hangs. Must not know how
//! patterns are written.

/// A place in a text that takes no character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Start,
    LineStart,
    /// Also before a last line break.
    End,
    LineEnd,
    VeryEnd,
    /// Between a word character and another one.
    Edge {
        ascii: bool,
        negated: bool,
    },
}

/// Characters.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    pub ranges: Vec<(char, char)>,
    /// `d`, `w` and `s`, and whether all but these are meant.
    pub kinds: Vec<(char, bool)>,
    pub negated: bool,
    pub ignore_case: bool,
    pub ascii: bool,
}

impl Set {
    pub(super) fn of(c: char) -> Set {
        Set { ranges: vec![(c, c)], ..Set::default() }
    }

    pub(super) fn any() -> Set {
        Set { negated: true, ..Set::default() }
    }

    fn has(&self, c: char) -> bool {
        let listed = |c: char| self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
        let cased = || {
            let (lower, upper) = (single(c.to_lowercase(), c), single(c.to_uppercase(), c));
            listed(lower) || listed(upper)
        };
        let kind = |(kind, negated): &(char, bool)| is_kind(*kind, c, self.ascii) != *negated;
        let inside = listed(c) || self.kinds.iter().any(kind) || (self.ignore_case && cased());
        inside != self.negated
    }
}

/// The one character of a case mapping; mappings to several are left aside.
fn single(mut mapped: impl Iterator<Item = char>, c: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn is_kind(kind: char, c: char, ascii: bool) -> bool {
    if ascii && !c.is_ascii() {
        return false;
    }
    match kind {
        'd' => c.is_ascii_digit(),
        'w' => c.is_alphanumeric() || c == '_',
        _ => c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c),
    }
}

/// The machine's next step.
#[derive(Clone, Debug)]
pub(super) enum Step {
    One(Set),
    /// Tries the first, then the second.
    Split(usize, usize),
    Jump(usize),
    /// Remembers the place.
    Save(usize),
    /// Continues only if the position has changed since it was stored.
    Went(usize),
    /// A group's match, once more.
    Back(usize, bool),
    At(Class),
    /// The following steps up to their `Done` match this many characters before here, or do not; then `end`.
    Look {
        back: usize,
        negated: bool,
        end: usize,
    },
    Done,
}

/// A pattern.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub steps: Vec<Step>,
    pub groups: usize,
    pub slots: usize,
    pub names: Vec<(String, usize)>,
}

/// Start and end of the whole and of each group.
pub(super) type Spans = Vec<Option<(usize, usize)>>;

/// A choice to backtrack to.
enum Undo {
    Try(usize, usize),
    Slot(usize, Option<usize>),
}

/// More than this is not tried for one search.
const MOST_TRIES: u64 = 4_000_000;

/// The search took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// A search through one text.
pub(super) struct Search<'a> {
    pub program: &'a Program,
    pub text: &'a [char],
    /// Steps so far.
    pub work: u64,
}

/// Where a match may begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Anywhere.
    Anywhere,
    /// At its start.
    Here,
    /// At its start, up to the end of the text.
    Whole,
}

impl Search<'_> {
    /// The first match from a place on. `moves`: it may not be empty at that place.
    pub(super) fn find(&mut self, from: usize, mode: Mode, moves: bool) -> Result<Option<Spans>, TooLong> {
        let last = if mode == Mode::Anywhere { self.text.len() } else { from };
        for start in from..=last {
            let mut slots = vec![None; self.program.slots];
            let accept = |end: usize| {
                (mode != Mode::Whole || end == self.text.len()) && !(moves && start == from && end == from)
            };
            if let Some(end) = run(self.program, self.text, &mut self.work, (0, start), &mut slots, &accept)? {
                let group = |n: usize| Some((slots[2 * n]?, slots[2 * n + 1]?));
                let mut spans: Spans = vec![Some((start, end))];
                spans.extend((1..=self.program.groups).map(group));
                return Ok(Some(spans));
            }
        }
        Ok(None)
    }
}

/// Runs from a step and a place to a `Done` whose place is accepted.
fn run(
    program: &Program,
    text: &[char],
    work: &mut u64,
    (mut step, mut at): (usize, usize),
    slots: &mut [Option<usize>],
    accept: &dyn Fn(usize) -> bool,
) -> Result<Option<usize>, TooLong> {
    let mut undo: Vec<Undo> = Vec::new();
    loop {
        *work += 1;
        if *work > MOST_TRIES {
            return Err(TooLong);
        }
        let mut holds = true;
        match &program.steps[step] {
            Step::One(set) => {
                holds = text.get(at).is_some_and(|c| set.has(*c));
                (step, at) = (step + 1, at + 1);
            }
            Step::Split(first, second) => {
                undo.push(Undo::Try(*second, at));
                step = *first;
            }
            Step::Jump(to) => step = *to,
            Step::Save(slot) => {
                undo.push(Undo::Slot(*slot, slots[*slot]));
                slots[*slot] = Some(at);
                step += 1;
            }
            Step::Went(slot) => {
                // a round that took nothing ends the repeat
                if slots[*slot] == Some(at) {
                    step += 2;
                } else {
                    step += 1;
                }
            }
            Step::Back(group, ignore_case) => match (slots[2 * group], slots[2 * group + 1]) {
                (Some(start), Some(end)) => {
                    let fold = |c: char| if *ignore_case { single(c.to_lowercase(), c) } else { c };
                    let length = end - start;
                    let same = |i: usize| text.get(at + i).is_some_and(|c| fold(*c) == fold(text[start + i]));
                    holds = (0..length).all(same);
                    *work += length as u64;
                    (step, at) = (step + 1, at + length);
                }
                _ => holds = false,
            },
            Step::At(class) => {
                holds = is_at(*class, text, at);
                step += 1;
            }
            Step::Look { back, negated, end } => {
                let before = slots.to_vec();
                let found = match at.checked_sub(*back) {
                    Some(from) => {
                        let place = at;
                        run(program, text, work, (step + 1, from), slots, &|end| *back == 0 || end == place)?
                    }
                    None => None,
                };
                holds = found.is_some() != *negated;
                if holds && !*negated {
                    let changed = (0..slots.len()).filter(|i| slots[*i] != before[*i]);
                    undo.extend(changed.map(|i| Undo::Slot(i, before[i])));
                } else {
                    slots.copy_from_slice(&before);
                }
                step = *end;
            }
            Step::Done if accept(at) => return Ok(Some(at)),
            Step::Done => holds = false,
        }
        while !holds {
            match undo.pop() {
                Some(Undo::Try(to, place)) => ((step, at), holds) = ((to, place), true),
                Some(Undo::Slot(slot, old)) => slots[slot] = old,
                None => return Ok(None),
            }
        }
    }
}

fn is_at(class: Class, text: &[char], at: usize) -> bool {
    let last = text.len();
    match class {
        Class::Start => at == 0,
        Class::LineStart => at == 0 || text[at - 1] == '\n',
        Class::VeryEnd => at == last,
        Class::End => at == last || (at + 1 == last && text[at] == '\n'),
        Class::LineEnd => at == last || text[at] == '\n',
        Class::Edge { ascii, negated } => {
            let word = |i: Option<usize>| i.and_then(|i| text.get(i)).is_some_and(|c| is_kind('w', *c, ascii));
            (word(at.checked_sub(1)) != word(Some(at))) != negated
        }
    }
}
