//! Graphs written as text: `(and (ge q_idx kv_idx) (lt (sub q_idx kv_idx) 128))`.
//!
//! Invariant: [`parse`] reads the output of [`print()`] as a graph with the same values at every cell. Names are those
//! of the rows in `ir::ops`. Captured tensors are passed by name, because text cannot contain them. Must not know
//! Python.

use super::graph::{BinaryOp, CaptureId, Graph, Input, Mod, ModKind, NodeId, Op, Ty, UnaryOp, UniformId};
use crate::base::{Diagnostic, HostTensor, Source, SourceId, Span};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Nesting beyond which a text is refused.
const DEEPEST: usize = 200;

static UNARY: LazyLock<HashMap<String, UnaryOp>> =
    LazyLock::new(|| UnaryOp::all().into_iter().map(|op| (unary_name(op), op)).collect());
static BINARY: LazyLock<HashMap<&'static str, BinaryOp>> =
    LazyLock::new(|| BinaryOp::ALL.iter().map(|op| (op.row().name, *op)).collect());

/// `as` also has its dtype: `as.int8`.
fn unary_name(op: UnaryOp) -> String {
    match op.keeps() {
        Some(dtype) => format!("{}.{dtype}", op.row().name),
        None => op.row().name.to_string(),
    }
}

/// The mod of a text: a mask if it returns a truth value, otherwise a score mod.
pub fn parse(text: &str, captures: &[(&str, HostTensor)]) -> Result<Mod, Diagnostic> {
    let mut reader = Reader { text, at: 0, depth: 0, graph: Graph::new(), captures: HashMap::new() };
    for (name, tensor) in captures {
        let id = reader.graph.add_capture(name, tensor.clone());
        reader.captures.insert(name, id);
    }
    let read = reader.expression().and_then(|root| match reader.token() {
        None => Ok(root),
        Some((start, _)) => Err(reader.fault(start, "there is text after the expression", "write one expression")),
    });
    let sources = vec![Source::new("graph", text)];
    let root = read.map_err(|fault| fault.with_sources(&sources))?;
    let kind = if reader.graph.ty(root) == Ty::Bool { ModKind::Mask } else { ModKind::Score };
    Ok(Mod { kind, graph: reader.graph, root, sources })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    graph: Graph,
    captures: HashMap<&'a str, CaptureId>,
}

impl<'a> Reader<'a> {
    /// A parenthesis or a word, and its start.
    fn token(&mut self) -> Option<(usize, &'a str)> {
        let rest = &self.text[self.at..];
        let start = self.at + (rest.len() - rest.trim_start().len());
        let word = &self.text[start..];
        let first = word.chars().next()?;
        let len = match first {
            '(' | ')' => 1,
            _ => word.find(|c: char| c.is_whitespace() || c == '(' || c == ')').unwrap_or(word.len()),
        };
        self.at = start + len;
        Some((start, &word[..len]))
    }

    fn fault(&self, start: usize, what: impl Into<String>, hint: &str) -> Diagnostic {
        let span = Span::new(SourceId(0), start as u32, self.at.max(start) as u32);
        Diagnostic::error("graph-text", what).at(span, "here").hint(hint)
    }

    fn expression(&mut self) -> Result<NodeId, Diagnostic> {
        let Some((start, word)) = self.token() else {
            return Err(self.fault(self.text.len(), "an expression is missing", "write `(add q_idx 1)` or `q_idx`"));
        };
        match word {
            ")" => Err(self.fault(start, "a parenthesis closes nothing", "remove it")),
            "(" if self.depth == DEEPEST => {
                Err(self.fault(start, format!("the text nests deeper than {DEEPEST}"), "write less nesting"))
            }
            "(" => {
                self.depth += 1;
                let made = self.operation(start);
                self.depth -= 1;
                made
            }
            word => {
                let op = self.atom(start, word)?;
                Ok(self.graph.add(op, None))
            }
        }
    }

    fn atom(&self, start: usize, word: &str) -> Result<Op, Diagnostic> {
        let input =
            [Input::B, Input::H, Input::QIdx, Input::KvIdx, Input::Score].into_iter().find(|i| i.name() == word);
        if let Some(input) = input {
            return Ok(Op::Input(input));
        }
        let number = |prefix: &str| word.strip_prefix(prefix).and_then(|n| n.parse::<u32>().ok());
        if let Some(at) = number("ints.") {
            return Ok(Op::UniformInt(UniformId(at)));
        }
        if let Some(at) = number("floats.") {
            return Ok(Op::UniformFloat(UniformId(at)));
        }
        match (word.parse::<bool>(), word.parse::<i64>(), word.parse::<f64>()) {
            (Ok(x), ..) => Ok(Op::Bool(x)),
            (_, Ok(x), _) => Ok(Op::Int(x)),
            (.., Ok(x)) => Ok(Op::Float(x.to_bits())),
            _ => Err(self.fault(
                start,
                format!("`{word}` is no input and no number"),
                "inputs: b, h, q_idx, kv_idx, score",
            )),
        }
    }

    /// The content after an opening parenthesis at `start`.
    fn operation(&mut self, start: usize) -> Result<NodeId, Diagnostic> {
        let (at, name) = match self.token() {
            Some((at, name)) if !matches!(name, "(" | ")") => (at, name),
            _ => return Err(self.fault(start, "an operation's name is missing", "write `(add q_idx 1)`")),
        };
        let capture = if name == "load" { Some(self.capture()?) } else { None };
        let mut operands: SmallVec<[NodeId; 4]> = SmallVec::new();
        loop {
            let before = self.at;
            match self.token() {
                Some((_, ")")) => break,
                Some(_) => self.at = before,
                None => return Err(self.fault(start, "a parenthesis is not closed", "write `)` at its end")),
            }
            operands.push(self.expression()?);
        }
        let op = match (capture, &operands[..]) {
            (Some(capture), _) => Op::Load(capture, operands),
            (None, [c, a, b]) if name == "where" => Op::Where(*c, *a, *b),
            (None, [a]) if UNARY.contains_key(name) => Op::Unary(UNARY[name], *a),
            (None, [a, b]) if BINARY.contains_key(name) => Op::Binary(BINARY[name], *a, *b),
            _ => {
                let what = format!("there is no operation `{name}` of {} operands", operands.len());
                return Err(self.fault(at, what, "names are those of the rows in `ir::ops`, `where` and `load`"));
            }
        };
        if let Err(why) = self.graph.type_of(&op) {
            return Err(self.fault(start, format!("ill-typed: {why}"), "cast an operand, as in `(to_float q_idx)`"));
        }
        let span = Span::new(SourceId(0), start as u32, self.at as u32);
        Ok(self.graph.add(op, Some(span)))
    }

    fn capture(&mut self) -> Result<CaptureId, Diagnostic> {
        let (start, name) = self.token().unwrap_or((self.text.len(), ""));
        let found = self.captures.get(name).copied();
        found.ok_or_else(|| self.fault(start, format!("no tensor `{name}` was given"), "write `(load NAME index)`"))
    }
}

/// The text of a node. Shared nodes are repeated for each use.
pub fn print(graph: &Graph, id: NodeId) -> String {
    let mut text = String::new();
    write(graph, id, &mut text);
    text
}

fn write(graph: &Graph, id: NodeId, text: &mut String) {
    let op = &graph.node(id).op;
    let name = match op {
        Op::Input(input) => return text.push_str(input.name()),
        Op::Bool(x) => return text.push_str(&x.to_string()),
        Op::Int(x) => return text.push_str(&x.to_string()),
        Op::Float(bits) => return text.push_str(&format!("{:?}", f64::from_bits(*bits))),
        Op::UniformInt(at) => return text.push_str(&format!("ints.{}", at.0)),
        Op::UniformFloat(at) => return text.push_str(&format!("floats.{}", at.0)),
        Op::Unary(op, _) => unary_name(*op),
        Op::Binary(op, ..) => op.row().name.to_string(),
        Op::Where(..) => "where".to_string(),
        Op::Load(capture, _) => format!("load {}", graph.capture(*capture).name),
    };
    text.push('(');
    text.push_str(&name);
    for operand in op.operands() {
        text.push(' ');
        write(graph, operand, text);
    }
    text.push(')');
}

#[cfg(test)]
mod tests {
    use crate::ir::cell::{Cell, eval};
    use crate::ir::random::{self, Options, Rng};
    use crate::ir::text::*;

    #[test]
    fn random_mods_come_back_from_their_text() {
        let options = Options { batch: 2, heads: 3, depth: 3, portable: false, ..Options::new(40, 50) };
        for seed in 0..120 {
            for given in [random::mask(seed, &options), random::score(seed, &options)] {
                let text = print(&given.graph, given.root);
                let captures: Vec<_> = given.graph.captures().iter().map(|c| (&*c.name, c.tensor.clone())).collect();
                let back = parse(&text, &captures).unwrap_or_else(|d| panic!("{}\n{text}", d.render()));
                assert_eq!((back.kind, print(&back.graph, back.root)), (given.kind, text));
                assert_eq!(back.graph.verify(), Ok(()));
                let mut rng = Rng::new(seed);
                for _ in 0..5 {
                    let (q_idx, kv_idx) = (rng.below(40) as i64, rng.below(50) as i64);
                    let cell = Cell { b: 1, h: 2, q_idx, kv_idx, score: rng.unit() * 4.0 - 2.0 };
                    assert_eq!(eval(&back, &cell), eval(&given, &cell), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn faults_say_where() {
        let cases = [
            ("(add q_idx", "graph-text", "not closed", 1),
            ("(and (lt q_idx 3) 4)", "graph-text", "ill-typed", 1),
            ("(lt q_idx (frobnicate 3))", "graph-text", "no operation `frobnicate` of 1", 12),
            ("(lt q_idx (frobnicate 3 4))", "graph-text", "no operation `frobnicate` of 2", 12),
            ("(lt q_idx kv)", "graph-text", "`kv` is no input", 11),
            ("(load doc q_idx)", "graph-text", "no tensor `doc`", 7),
            ("q_idx kv_idx", "graph-text", "after the expression", 7),
            ("", "graph-text", "missing", 1),
        ];
        for (text, code, message, column) in cases {
            let fault = parse(text, &[]).expect_err(text);
            assert_eq!((&*fault.code, fault.line_column()), (code, Some((1, column))), "{text}");
            assert!(fault.message.contains(message), "{}", fault.message);
        }
        let deep = "(neg ".repeat(100_000);
        assert!(parse(&deep, &[]).expect_err("too deep").message.contains("nests deeper"));
    }
}
