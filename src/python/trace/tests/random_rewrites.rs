//! Random mods with Python's control flow: the suggested rewrites are pasted until the text traces, and the result has
//! Python's meaning on ints in every cell.

use crate::ir::random::Rng;
use crate::python::trace::tests::*;
use std::collections::HashMap;

/// A number.
enum Num {
    Name(&'static str),
    Const(i64),
    Op(char, Box<Num>, Box<Num>),
    /// Divided or taken modulo a constant.
    By(&'static str, Box<Num>, i64),
    If(Box<Cond>, Box<Num>, Box<Num>),
    Extreme(bool, Vec<Num>),
    Table(Vec<i64>),
}

/// A truth value.
enum Cond {
    Cmp(Num, Vec<(&'static str, Num)>),
    All(bool, Vec<Cond>),
    Not(Box<Cond>),
    In(Num, Vec<i64>, bool),
    /// `(d := a) < b`
    Named(Num, &'static str, Num),
    /// `any(a - s < b for s in (...))`
    Any(bool, Vec<i64>, Num),
    If(Box<Cond>, Box<Cond>, Box<Cond>),
}

type Env = HashMap<&'static str, i64>;

impl Num {
    fn text(&self) -> String {
        match self {
            Num::Name(name) => name.to_string(),
            Num::Const(c) => c.to_string(),
            Num::Op(op, a, b) => format!("({} {op} {})", a.text(), b.text()),
            Num::By(op, a, c) => format!("({} {op} {c})", a.text()),
            Num::If(c, a, b) => format!("({} if {} else {})", a.text(), c.text(), b.text()),
            Num::Extreme(max, all) => {
                let all: Vec<String> = all.iter().map(Num::text).collect();
                format!("{}({})", if *max { "max" } else { "min" }, all.join(", "))
            }
            Num::Table(all) => format!("{all:?}[h]"),
        }
    }

    fn value(&self, env: &mut Env) -> i64 {
        match self {
            Num::Name(name) => env[name],
            Num::Const(c) => *c,
            Num::Op(op, a, b) => {
                let (a, b) = (a.value(env), b.value(env));
                match op {
                    '+' => a + b,
                    '-' => a - b,
                    _ => a * b,
                }
            }
            Num::By(op, a, c) => {
                let a = a.value(env);
                if *op == "//" { a.div_euclid(*c) } else { a.rem_euclid(*c) }
            }
            Num::If(c, a, b) => {
                if c.value(env) {
                    a.value(env)
                } else {
                    b.value(env)
                }
            }
            Num::Extreme(max, all) => {
                let all: Vec<i64> = all.iter().map(|n| n.value(env)).collect();
                if *max { *all.iter().max().unwrap() } else { *all.iter().min().unwrap() }
            }
            Num::Table(all) => all[env["h"] as usize],
        }
    }
}

fn compare(op: &str, a: i64, b: i64) -> bool {
    match op {
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        "==" => a == b,
        _ => a != b,
    }
}

impl Cond {
    fn text(&self) -> String {
        match self {
            Cond::Cmp(first, rest) => {
                rest.iter().fold(first.text(), |text, (op, n)| format!("{text} {op} {}", n.text()))
            }
            Cond::All(and, all) => {
                let all: Vec<String> = all.iter().map(|c| format!("({})", c.text())).collect();
                all.join(if *and { " and " } else { " or " })
            }
            Cond::Not(c) => format!("not ({})", c.text()),
            Cond::In(n, all, inside) => {
                let all: Vec<String> = all.iter().map(i64::to_string).collect();
                format!("{} {} ({},)", n.text(), if *inside { "in" } else { "not in" }, all.join(", "))
            }
            Cond::Named(a, op, b) => format!("(d := {}) {op} {}", a.text(), b.text()),
            Cond::Any(any, all, n) => {
                let all: Vec<String> = all.iter().map(i64::to_string).collect();
                let name = if *any { "any" } else { "all" };
                format!("{name}(q - s < {} and k >= s for s in [{}])", n.text(), all.join(", "))
            }
            Cond::If(c, a, b) => format!("(({}) if {} else ({}))", a.text(), c.text(), b.text()),
        }
    }

    fn value(&self, env: &mut Env) -> bool {
        match self {
            Cond::Cmp(first, rest) => {
                let mut left = first.value(env);
                for (op, n) in rest {
                    let right = n.value(env);
                    if !compare(op, left, right) {
                        return false;
                    }
                    left = right;
                }
                true
            }
            Cond::All(true, all) => all.iter().all(|c| c.value(env)),
            Cond::All(false, all) => all.iter().any(|c| c.value(env)),
            Cond::Not(c) => !c.value(env),
            Cond::In(n, all, inside) => all.contains(&n.value(env)) == *inside,
            Cond::Named(a, op, b) => {
                let a = a.value(env);
                compare(op, a, b.value(env))
            }
            Cond::Any(any, all, n) => {
                let mut one = |s: &i64| env["q"] - s < n.value(env) && env["k"] >= *s;
                if *any { all.iter().any(&mut one) } else { all.iter().all(&mut one) }
            }
            Cond::If(c, a, b) => {
                if c.value(env) {
                    a.value(env)
                } else {
                    b.value(env)
                }
            }
        }
    }
}

const COMPARE: [&str; 6] = ["<", "<=", ">", ">=", "==", "!="];

fn constants(rng: &mut Rng) -> Vec<i64> {
    (0..1 + rng.below(3)).map(|_| rng.below(9) as i64).collect()
}

fn num(rng: &mut Rng, names: &[&'static str], depth: usize) -> Num {
    let inner = |rng: &mut Rng| Box::new(num(rng, names, depth - 1));
    match if depth == 0 { rng.below(3) } else { rng.below(10) } {
        0 | 1 => Num::Name(names[rng.below(names.len())]),
        2 => Num::Const(rng.below(7) as i64),
        3..=5 => Num::Op(['+', '-', '*'][rng.below(3)], inner(rng), inner(rng)),
        6 => Num::By(["//", "%"][rng.below(2)], inner(rng), 2 + rng.below(5) as i64),
        7 => Num::If(Box::new(cond(rng, names, depth - 1)), inner(rng), inner(rng)),
        8 => Num::Extreme(rng.below(2) == 0, (0..2 + rng.below(2)).map(|_| *inner(rng)).collect()),
        _ => Num::Table((0..4).map(|_| rng.below(8) as i64).collect()),
    }
}

fn cond(rng: &mut Rng, names: &[&'static str], depth: usize) -> Cond {
    let compared = |rng: &mut Rng| COMPARE[rng.below(6)];
    match if depth == 0 { rng.below(3) } else { rng.below(10) } {
        0 | 1 => Cond::Cmp(num(rng, names, depth.min(1)), vec![(compared(rng), num(rng, names, depth.min(1)))]),
        2 => {
            let rest = (0..2).map(|_| (compared(rng), num(rng, names, 0))).collect();
            Cond::Cmp(num(rng, names, 0), rest)
        }
        3..=5 => {
            let all = (0..2 + rng.below(2)).map(|_| cond(rng, names, depth - 1)).collect();
            Cond::All(rng.below(2) == 0, all)
        }
        6 => Cond::Not(Box::new(cond(rng, names, depth - 1))),
        7 => Cond::In(num(rng, names, 1), constants(rng), rng.below(2) == 0),
        8 if rng.below(2) == 0 => Cond::Named(num(rng, names, 1), compared(rng), num(rng, names, 1)),
        8 => Cond::Any(rng.below(2) == 0, constants(rng), num(rng, names, 0)),
        _ => {
            let [a, b, c] = [0; 3].map(|_| Box::new(cond(rng, names, depth - 1)));
            Cond::If(a, b, c)
        }
    }
}

/// A body: names set one way or another, then branches that return.
struct Body {
    /// A test, and the values of `a` and `b` for true and for false; the latter may stay unchanged.
    set: Vec<(Cond, [Num; 2], Option<[Num; 2]>)>,
    returned: Vec<(Cond, Cond)>,
    last: Cond,
}

impl Body {
    fn new(rng: &mut Rng) -> Body {
        let names: &[&'static str] = &["q", "k", "h", "a", "b"];
        let pair = |rng: &mut Rng| [num(rng, &names[..3], 1), num(rng, &names[..3], 1)];
        let set = (0..rng.below(3)).map(|_| {
            let otherwise = if rng.below(2) == 0 { Some(pair(rng)) } else { None };
            (cond(rng, names, 1), pair(rng), otherwise)
        });
        let set = set.collect();
        let returned = (0..rng.below(3)).map(|_| (cond(rng, names, 1), cond(rng, names, 2))).collect();
        Body { set, returned, last: cond(rng, names, 3) }
    }

    fn text(&self) -> String {
        let mut out = "def mod(b_, h, q, k):\n    a = 3\n    b = q - 2\n".to_string();
        for (test, [a, b], otherwise) in &self.set {
            out += &format!("    if {}:\n        a = {}\n        b = {}\n", test.text(), a.text(), b.text());
            if let Some([a, b]) = otherwise {
                out += &format!("    else:\n        b = {}\n        a += {}\n", b.text(), a.text());
            }
        }
        for (at, (test, value)) in self.returned.iter().enumerate() {
            let word = if at == 0 { "if" } else { "elif" };
            out += &format!("    {word} {}:\n        return {}\n", test.text(), value.text());
        }
        out + &format!("    return {}\n", self.last.text())
    }

    fn value(&self, h: i64, q: i64, k: i64) -> bool {
        let mut env: Env = HashMap::from([("h", h), ("q", q), ("k", k), ("a", 3), ("b", q - 2)]);
        for (test, [a, b], otherwise) in &self.set {
            if test.value(&mut env) {
                let (a, b) = (a.value(&mut env), b.value(&mut env));
                env.extend([("a", a), ("b", b)]);
            } else if let Some([a, b]) = otherwise {
                let (b, a) = (b.value(&mut env), env["a"] + a.value(&mut env));
                env.extend([("a", a), ("b", b)]);
            }
        }
        for (test, value) in &self.returned {
            if test.value(&mut env) {
                return value.value(&mut env);
            }
        }
        self.last.value(&mut env)
    }
}

/// Pastes the suggested code until the text traces; None if a message has no rewrite.
fn pasted(text: &str) -> Option<String> {
    let mut text = text.to_string();
    for _ in 0..40 {
        let traced = trace(&request(&text, ModKind::Mask));
        if traced.result.is_some() {
            return Some(text);
        }
        text = traced.diagnostics.iter().find(|d| d.is_error() && d.rewrite.is_some())?.rewritten()?;
    }
    panic!("no end of rewrites:\n{text}");
}

#[test]
fn rewrites_followed_to_the_end_mean_what_the_python_means() {
    let (mut followed, all) = (0, 400);
    let mut wrong = Vec::new();
    for seed in 0..all {
        let mut rng = Rng::new(seed);
        let body = Body::new(&mut rng);
        let text = body.text();
        let Some(new) = pasted(&text) else { continue };
        followed += 1;
        let traced = trace(&request(&new, ModKind::Mask)).result.expect("it traced");
        for n in 0..360i64 {
            let (h, q_idx, kv_idx) = (n % 4, n / 4 % 10, n / 40);
            let cell = Cell { b: 0, h, q_idx, kv_idx, score: 0.0 };
            if cell::eval(&traced, &cell).as_bool() != body.value(h, q_idx, kv_idx) {
                wrong.push(format!("{text}became\n{new}which differs at {cell:?}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {followed} mean something else, the first:\n{}", wrong.len(), wrong[0]);
    assert!(followed * 2 >= all, "only {followed} of {all} could be followed");
}
