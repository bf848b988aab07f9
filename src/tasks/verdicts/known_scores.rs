//! The score mods that libraries without mods know: ALiBi and a soft cap.
//!
//! Invariant: found in the graph as sums of products for each head; a form that is not followed exactly is not
//! recognised. Must not know any library.

use crate::base::{DType, HostTensor};
use crate::ir::cell::{self, Cell, Uniforms, Value};
use crate::ir::graph::{BinaryOp, Depends, Input, Mod, NodeId, Op, UnaryOp};

/// Relative error of a literal, such as `score * 0.02` for `score / 50`.
const CLOSE: f64 = 1e-6;

/// A score mod with a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Known {
    /// `score - slopes[h] * abs(q_idx + shift - kv_idx)`, or without `abs` if it is signed.
    Alibi {
        /// One for each query head.
        slopes: Vec<f64>,
        /// Whether keys after `q_idx + shift` are raised instead of lowered.
        signed: bool,
        /// By how much row 0 is moved along the keys.
        shift: f64,
        /// The captured vector of just these slopes.
        tensor: Option<String>,
    },
    /// `cap * tanh(score / cap)`
    SoftCap(f64),
}

/// Recognises a score mod over this many query heads.
pub(super) fn recognise(score: &Mod, heads: usize) -> Option<Known> {
    if score.depends().on(Input::B) {
        return None;
    }
    let all: Vec<Sum> = (0..heads).map(|h| sum(score, h as i64)).collect::<Option<_>>()?;
    soft_cap(&all).or_else(|| alibi(score, &all))
}

/// `one + q * q_idx + kv * kv_idx + score * score + away * abs(q_idx + shift - kv_idx) + tanh * tanh(inside * score)`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    one: f64,
    q: f64,
    kv: f64,
    score: f64,
    away: f64,
    shift: f64,
    tanh: f64,
    inside: f64,
}

impl Sum {
    fn constant(one: f64) -> Sum {
        Sum { one, ..Sum::default() }
    }

    fn as_constant(self) -> Option<f64> {
        (self == Sum::constant(self.one)).then_some(self.one)
    }

    /// None: two distances or two functions of the score.
    fn plus(self, other: Sum) -> Option<Sum> {
        let one_of = |(a, x): (f64, f64), (b, y): (f64, f64)| match (a == 0.0, b == 0.0) {
            (_, true) => Some(x),
            (true, _) => Some(y),
            _ => (x == y).then_some(x),
        };
        Some(Sum {
            one: self.one + other.one,
            q: self.q + other.q,
            kv: self.kv + other.kv,
            score: self.score + other.score,
            away: self.away + other.away,
            shift: one_of((self.away, self.shift), (other.away, other.shift))?,
            tanh: self.tanh + other.tanh,
            inside: one_of((self.tanh, self.inside), (other.tanh, other.inside))?,
        })
    }

    fn times(self, by: f64) -> Sum {
        let Sum { one, q, kv, score, away, shift, tanh, inside } = self;
        Sum {
            one: one * by,
            q: q * by,
            kv: kv * by,
            score: score * by,
            away: away * by,
            shift,
            tanh: tanh * by,
            inside,
        }
    }

    /// Of a multiple of `q_idx + shift - kv_idx` alone.
    fn abs(self) -> Option<Sum> {
        let Sum { one, q, kv, .. } = self;
        let plain = self == Sum { one, q, kv, ..Sum::default() } && q == -kv && q != 0.0;
        plain.then(|| Sum { away: q.abs(), shift: one / q, ..Sum::default() })
    }

    /// Of a multiple of the score alone.
    fn tanh(self) -> Option<Sum> {
        let plain = self == Sum { score: self.score, ..Sum::default() } && self.score != 0.0;
        plain.then(|| Sum { tanh: 1.0, inside: self.score, ..Sum::default() })
    }
}

/// A score mod of one head as a sum; None if it is another function.
fn sum(score: &Mod, h: i64) -> Option<Sum> {
    let (graph, root) = (&score.graph, score.root);
    let depends = graph.depends();
    let values = cell::values(graph, root, &Cell { h, ..Cell::default() }, Uniforms::default());
    let mut sums: Vec<Option<Sum>> = Vec::with_capacity(values.len());
    for (at, node) in graph.nodes()[..=root.0 as usize].iter().enumerate() {
        let found = match (&node.op, values[at]) {
            (Op::UniformInt(_) | Op::UniformFloat(_), _) => None,
            (_, Value::Int(x)) if depends[at].within(Depends::of(Input::H)) => Some(Sum::constant(x as f64)),
            (_, Value::Float(x)) if depends[at].within(Depends::of(Input::H)) => Some(Sum::constant(x)),
            (op, _) => of_op(op, |id| sums[id.0 as usize]),
        };
        sums.push(found);
    }
    sums[root.0 as usize]
}

fn of_op(op: &Op, at: impl Fn(NodeId) -> Option<Sum>) -> Option<Sum> {
    match op {
        Op::Input(Input::QIdx) => Some(Sum { q: 1.0, ..Sum::default() }),
        Op::Input(Input::KvIdx) => Some(Sum { kv: 1.0, ..Sum::default() }),
        Op::Input(Input::Score) => Some(Sum { score: 1.0, ..Sum::default() }),
        Op::Unary(UnaryOp::ToFloat | UnaryOp::ToDouble, a) => at(*a),
        Op::Unary(UnaryOp::Neg, a) => Some(at(*a)?.times(-1.0)),
        Op::Unary(UnaryOp::Abs, a) => at(*a)?.abs(),
        Op::Unary(UnaryOp::Tanh, a) => at(*a)?.tanh(),
        Op::Binary(BinaryOp::Add, a, b) => at(*a)?.plus(at(*b)?),
        Op::Binary(BinaryOp::Sub, a, b) => at(*a)?.plus(at(*b)?.times(-1.0)),
        Op::Binary(BinaryOp::Mul, a, b) => {
            let (a, b) = (at(*a)?, at(*b)?);
            a.as_constant().map(|by| b.times(by)).or_else(|| b.as_constant().map(|by| a.times(by)))
        }
        Op::Binary(BinaryOp::Div, a, b) => Some(at(*a)?.times(1.0 / at(*b)?.as_constant()?)),
        _ => None,
    }
}

fn soft_cap(all: &[Sum]) -> Option<Known> {
    let first = *all.first()?;
    let Sum { tanh: cap, inside, .. } = first;
    let plain = first == Sum { tanh: cap, inside, ..Sum::default() } && all.iter().all(|sum| *sum == first);
    let caps = cap > 0.0 && cap.is_finite() && (cap * inside - 1.0).abs() <= CLOSE;
    (plain && caps).then_some(Known::SoftCap(cap))
}

fn alibi(score: &Mod, all: &[Sum]) -> Option<Known> {
    let signed = all.iter().all(|sum| sum.away == 0.0);
    let slope = |sum: &Sum| if signed { sum.kv } else { -sum.away };
    let steep = all.iter().find(|sum| slope(sum) != 0.0)?;
    let shift = if signed { 0.0 - steep.one / steep.kv } else { steep.shift };
    let fits = |sum: &Sum| {
        let slope = slope(sum);
        let rest = match signed {
            true => Sum { score: 1.0, q: -slope, kv: slope, one: sum.one, ..Sum::default() },
            false => Sum { score: 1.0, away: -slope, shift: sum.shift, ..Sum::default() },
        };
        let moved = match signed {
            true => (sum.one + slope * shift).abs() <= CLOSE * (slope * shift).abs(),
            false => slope == 0.0 || sum.shift == shift,
        };
        *sum == rest && moved && slope.is_finite()
    };
    let slopes: Vec<f64> = all.iter().map(slope).collect();
    let tensor = vector_of(score, &slopes);
    all.iter().all(fits).then_some(Known::Alibi { slopes, signed, shift, tensor })
}

/// The captured vector that holds these values.
fn vector_of(score: &Mod, values: &[f64]) -> Option<String> {
    let holds = |tensor: &HostTensor| {
        tensor.dtype() == DType::F32
            && tensor.shape() == [values.len()]
            && values.iter().enumerate().all(|(at, value)| tensor.float_at(at) == *value)
    };
    score.graph.captures().iter().find(|c| holds(&c.tensor)).map(|c| c.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tensor::Data;
    use crate::ir::text::parse;

    fn found(text: &str) -> Option<Known> {
        let slopes = HostTensor::vector(Data::F32(vec![0.5, 0.25]));
        let rest = HostTensor::vector(Data::F32(vec![-1.0, 2.0]));
        let captures = [("slopes", slopes), ("rest", rest)];
        recognise(&parse(text, &captures).unwrap_or_else(|why| panic!("{text}: {}", why.message)), 2)
    }

    fn alibi(signed: bool, shift: f64) -> Option<Known> {
        Some(Known::Alibi { slopes: vec![0.5, 0.25], signed, shift, tensor: Some("slopes".into()) })
    }

    #[test]
    fn alibi_is_recognised_in_every_spelling() {
        let slope = "(load slopes h)";
        for (distance, shift) in [("(sub kv_idx q_idx)", 0.0), ("(sub (sub kv_idx q_idx) 7)", 7.0)] {
            let text = format!("(add score (mul (to_float {distance}) {slope}))");
            assert_eq!(found(&text), alibi(true, shift), "{text}");
            let text = format!("(sub score (mul {slope} (to_float (abs {distance}))))");
            assert_eq!(found(&text), alibi(false, shift), "{text}");
            let text = format!("(add (mul (neg {slope}) (abs (to_float (neg {distance})))) score)");
            assert_eq!(found(&text), alibi(false, shift), "{text}");
        }
        let computed = "(add score (mul (to_float (sub kv_idx q_idx)) (exp2 (neg (to_float (add h 1))))))";
        let slopes = Some(Known::Alibi { slopes: vec![0.5, 0.25], signed: true, shift: 0.0, tensor: None });
        assert_eq!(found(computed).map(|k| untied(&k)), slopes.map(|k| untied(&k)));
    }

    /// Without the tensor, which holds the same slopes.
    fn untied(known: &Known) -> String {
        match known {
            Known::Alibi { slopes, signed, shift, .. } => format!("{slopes:?} {signed} {shift}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_soft_cap_is_recognised_with_its_cap() {
        assert_eq!(found("(mul 50.0 (tanh (div score 50.0)))"), Some(Known::SoftCap(50.0)));
        assert_eq!(found("(mul (tanh (mul score 0.02)) 50.0)"), Some(Known::SoftCap(50.0)));
        for other in [
            "(mul 50.0 (tanh (div score 30.0)))",
            "(mul -50.0 (tanh (div score -50.0)))",
            "(mul 50.0 (tanh (div (add score 1.0) 50.0)))",
            "(add score (mul 50.0 (tanh (div score 50.0))))",
            "(mul (load slopes h) (tanh (div score (load slopes h))))",
            "(add (mul 50.0 (tanh (div score 50.0))) (load slopes h))",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn what_only_resembles_alibi_is_not_recognised() {
        for other in [
            "score",
            "(mul score (load slopes h))",
            "(add score (load slopes h))",
            "(add score (mul (to_float kv_idx) (load slopes h)))",
            "(add score (mul (to_float (add kv_idx q_idx)) (load slopes h)))",
            "(add score (mul (to_float (sub kv_idx (mul 2 q_idx))) (load slopes h)))",
            "(add (mul 2.0 score) (mul (to_float (sub kv_idx q_idx)) (load slopes h)))",
            "(sub score (mul (to_float (abs (sub kv_idx (mul 2 q_idx)))) (load slopes h)))",
            "(add (add score 1.0) (mul (to_float (neg (abs (sub kv_idx q_idx)))) (load slopes h)))",
            "(add score (mul (to_float (sub kv_idx q_idx)) (load slopes b)))",
            "(add score (mul (to_float (sub kv_idx q_idx)) (load slopes q_idx)))",
            "(add score (mul (to_float (min 5 (sub kv_idx q_idx))) (load slopes h)))",
            "(add score (mul (to_float (floor_div (sub kv_idx q_idx) 2)) (load slopes h)))",
            "(add (load rest h) (add score (mul (to_float (sub kv_idx q_idx)) (load slopes h))))",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
