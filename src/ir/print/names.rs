//! Names in printed Python: captured tensors, locals.
//!
//! Invariant: a name is a Python identifier and no keyword, and names in one text are unique. Must not know statements.

use crate::base::HostTensor;
use crate::ir::graph::{BinaryOp, Graph, Input, Mod, NodeId, Op, Ty, UnaryOp};
use std::collections::HashSet;

/// Words that no name may be: keywords, parameters and what printed text calls.
const RESERVED: &[&str] = &[
    "False",
    "None",
    "True",
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "try",
    "while",
    "with",
    "yield",
    "b",
    "h",
    "q_idx",
    "kv_idx",
    "score",
    "torch",
    "float",
    "abs",
    "mask_mod",
    "score_mod",
];

/// Whether a name is a Python keyword or means something else in printed text.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Names given out so far, and the captured tensors among them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    taken: HashSet<String>,
    /// Captured tensors by the names they have in the text, in the order of their first use.
    pub tensors: Vec<(String, HostTensor)>,
}

impl Names {
    /// Also keeps `words` from being given out.
    pub fn reserving(words: &[&str]) -> Names {
        Names { taken: words.iter().map(ToString::to_string).collect(), tensors: Vec::new() }
    }

    /// A name that nothing has yet, like the wanted one.
    pub fn fresh(&mut self, wanted: &str) -> String {
        let base = identifier(wanted);
        let free = |name: &str| !is_reserved(name) && !self.taken.contains(name);
        let numbered = || (2..).map(|n| format!("{base}_{n}")).find(|name| free(name));
        let name = if free(&base) { base.clone() } else { numbered().expect("numbers do not end") };
        self.taken.insert(name.clone());
        name
    }

    /// The name of a captured tensor; equal tensors have one.
    pub fn tensor(&mut self, wanted: &str, tensor: &HostTensor) -> String {
        let same = |t: &HostTensor| t.same_storage(tensor) || same_bits(t, tensor);
        if let Some((name, _)) = self.tensors.iter().find(|(_, t)| same(t)) {
            return name.clone();
        }
        let name = self.fresh(wanted);
        self.tensors.push((name.clone(), tensor.clone()));
        name
    }
}

/// Equal to the bit: -0.0 is not 0.0, and NaN is itself.
fn same_bits(a: &HostTensor, b: &HostTensor) -> bool {
    a.shape() == b.shape() && a.dtype() == b.dtype() && a.data().to_le_bytes() == b.data().to_le_bytes()
}

fn identifier(wanted: &str) -> String {
    let mut name: String = wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    name.truncate(40);
    if name.trim_matches('_').is_empty() {
        return "t".to_string();
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("t_{name}") } else { name }
}

/// The name for the value of a node: the user's if the text assigns it, otherwise by its operation.
pub(super) fn local(of: &Mod, id: NodeId) -> String {
    assigned(of, id).unwrap_or_else(|| described(&of.graph, id))
}

/// The name in `name = <the node's text>` on one line of the source.
fn assigned(of: &Mod, id: NodeId) -> Option<String> {
    let span = of.graph.node(id).span?;
    let text = &of.sources.get(span.source.0 as usize)?.text;
    let before = text.get(..span.start as usize)?.rsplit('\n').next()?;
    let after = text.get(span.end as usize..)?.lines().next().unwrap_or("").trim_start();
    let name = before.trim_end().strip_suffix('=')?.trim();
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (plain && (after.is_empty() || after.starts_with('#'))).then(|| name.to_string())
}

fn described(graph: &Graph, id: NodeId) -> String {
    let op = |id: NodeId| &graph.node(id).op;
    let index = |id: NodeId| match op(id) {
        Op::Input(Input::QIdx) => Some("q"),
        Op::Input(Input::KvIdx) => Some("kv"),
        Op::Input(Input::B) => Some("b"),
        Op::Input(Input::H) => Some("h"),
        _ => None,
    };
    let distance = |id: NodeId| match op(id) {
        Op::Binary(BinaryOp::Sub, a, b) => matches!((index(*a), index(*b)), (Some("q"), Some("kv"))),
        _ => false,
    };
    let found = match op(id) {
        Op::Binary(BinaryOp::Sub, ..) if distance(id) => Some("distance".to_string()),
        Op::Unary(UnaryOp::Abs, a) if distance(*a) => Some("separation".to_string()),
        Op::Binary(BinaryOp::FloorDiv | BinaryOp::Shr, a, _) => index(*a).map(|i| format!("{i}_block")),
        Op::Binary(BinaryOp::Mod, a, _) => index(*a).map(|i| format!("{i}_offset")),
        Op::Load(capture, at) if at.len() == 1 => index(at[0]).map(|i| format!("{}_{i}", graph.capture(*capture).name)),
        _ => None,
    };
    let plain = match graph.ty(id) {
        Ty::Bool => "keep",
        Ty::Int => "index",
        Ty::Float | Ty::Double => "value",
    };
    found.unwrap_or_else(|| plain.to_string())
}
