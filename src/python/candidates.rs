//! The functions of a text that may be mods: found by their parameters' names and by their use, at any nesting.
//!
//! Invariant: reads only the tree. The number of parameters alone does not make a function a mod. Must not know values.

use super::syntax::ast::*;
use super::syntax::{binds, walk};
use std::collections::{HashMap, HashSet};

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A function of (b, h, q_idx, kv_idx).
    MaskMod,
    /// A function of (score, b, h, q_idx, kv_idx).
    ScoreMod,
    /// A function that returns a mod.
    Factory,
}

/// A function that may be a mod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its name with those of the functions and classes around it: `Attn.forward.mask_mod`.
    pub path: String,
    /// By the number of its parameters.
    pub kind: EntryKind,
    /// Whether it is passed to create_block_mask, flex_attention, and_masks or or_masks.
    pub used: bool,
}

impl Candidate {
    /// Whether it is inside a function or class.
    pub(crate) fn is_nested(&self) -> bool {
        self.path.contains('.')
    }
}

/// Every function of a text that may be a mod, in text order, by its parameters' names or by its use.
pub(crate) fn candidates(module: &Module) -> Vec<Candidate> {
    let mut used = Vec::new();
    used_in(&module.body, &mut used, &mut Vec::new());
    let mut out = Vec::new();
    gather(&module.body, "", false, &used.into_iter().collect(), &mut out);
    out
}

fn gather(body: &[Stmt], around: &str, in_class: bool, used: &HashSet<Name>, out: &mut Vec<Candidate>) {
    for statement in body {
        walk::statements(statement, &mut |s| match &s.kind {
            StmtKind::Function(def) => {
                let path = format!("{around}{}", def.name);
                push(def, &path, in_class, used, out);
                if let Body::Block(body) = &def.body {
                    gather(body, &format!("{path}."), false, used, out);
                }
            }
            StmtKind::Class(class) => gather(&class.body, &format!("{around}{}.", class.name), true, used, out),
            StmtKind::Assign { targets, value: Expr { kind: ExprKind::Lambda(def), .. } } => {
                if let [Expr { kind: ExprKind::Name(name), .. }] = &targets[..] {
                    push_named(def, name, &format!("{around}{name}"), false, used, out);
                }
            }
            _ => {}
        });
    }
}

fn push(def: &Function, path: &str, in_class: bool, used: &HashSet<Name>, out: &mut Vec<Candidate>) {
    push_named(def, &def.name, path, in_class && !is_static(def), used, out);
}

fn push_named(def: &Function, name: &Name, path: &str, method: bool, used: &HashSet<Name>, out: &mut Vec<Candidate>) {
    let own = method || def.required().next().is_some_and(|p| &*p.name == "self");
    let params: Vec<&str> = def.required().map(|p| &*p.name).skip(usize::from(own)).collect();
    let used = used.contains(name);
    let kind = match params.len() {
        4 => EntryKind::MaskMod,
        5 => EntryKind::ScoreMod,
        _ => return,
    };
    if used || names_indices(&params) {
        out.push(Candidate { path: path.to_string(), kind, used });
    }
}

/// Whether a method is called without an object.
pub(crate) fn is_static(def: &Function) -> bool {
    def.decorators.iter().any(|d| matches!(&d.kind, ExprKind::Name(n) if &**n == "staticmethod"))
}

/// Whether the required parameters of a function are named as those of a mod are: the last two like a query's and a key's
/// index, or the ones before them like batch and head.
pub(crate) fn names_indices(params: &[&str]) -> bool {
    let params: Vec<&str> = params.iter().map(|p| p.trim_matches('_')).collect();
    let [.., b, h, q, kv] = &params[..] else { return false };
    // sizes are written in capitals
    if [q, kv].iter().any(|p| p.starts_with(|c: char| c.is_uppercase())) {
        return false;
    }
    // `physical_kv_idx`, `abs_q`
    let has = |p: &str, names: &[&str]| p.split('_').any(|part| names.contains(&part));
    let is_q = |p: &str| {
        p.starts_with('q')
            || has(p, &["q"])
            || p.contains("query")
            || matches!(p, "row" | "rows" | "tgt" | "dst" | "i" | "m")
    };
    let is_kv = |p: &str| {
        p.starts_with('k')
            || has(p, &["k", "kv"])
            || p.contains("key")
            || matches!(p, "col" | "cols" | "column" | "src" | "j" | "n" | "v_idx")
    };
    let pair = |a: &str, b: &str| is_q(a) && is_kv(b);
    if pair(q, kv) || pair(kv, q) {
        return true;
    }
    let is_b = |p: &str| {
        p.is_empty() || matches!(p, "b" | "bs" | "z" | "bz" | "off_z") || p.contains("batch") || p.starts_with("b_")
    };
    let is_h = |p: &str| p.is_empty() || matches!(p, "h" | "hd") || p.contains("head") || p.starts_with("h_");
    // (b, h, s, d) are the sizes of a tensor
    let is_index = |p: &str| p.len() == 1 && !matches!(p, "d" | "l" | "c");
    is_b(b) && is_h(h) && is_index(q) && is_index(kv)
}

/// Names of functions whose result is passed on as a mod: `create_block_mask(f(x), ...)`, or `m = f(x)` and m is passed on.
pub(crate) fn makers(module: &Module) -> Vec<Name> {
    let (mut used, mut makers, mut made) = (Vec::new(), Vec::new(), Vec::new());
    used_in(&module.body, &mut used, &mut makers);
    assigned_in(&module.body, &mut made);
    let used: HashSet<Name> = used.into_iter().collect();
    makers.extend(made.into_iter().filter(|(name, _)| used.contains(name)).map(|(_, maker)| maker));
    makers
}

/// Every `name = f(...)` of a text, at any nesting.
fn assigned_in(body: &[Stmt], out: &mut Vec<(Name, Name)>) {
    for statement in body {
        walk::statements(statement, &mut |s| match &s.kind {
            StmtKind::Assign { targets, value: Expr { kind: ExprKind::Call(callee, _), .. } } => {
                if let ([Expr { kind: ExprKind::Name(name), .. }], ExprKind::Name(maker)) = (&targets[..], &callee.kind)
                {
                    out.push((name.clone(), maker.clone()));
                }
            }
            StmtKind::Function(def) => {
                if let Body::Block(body) = &def.body {
                    assigned_in(body, out);
                }
            }
            StmtKind::Class(class) => assigned_in(&class.body, out),
            _ => {}
        });
    }
}

/// Names of functions that are passed on as mods, and of those whose result is.
fn used_in(body: &[Stmt], out: &mut Vec<Name>, makers: &mut Vec<Name>) {
    for statement in body {
        walk::statements(statement, &mut |s| {
            walk::own_expressions(s, &mut |e| walk::within(e, &mut |e| used_by(e, out, makers)));
            match &s.kind {
                StmtKind::Function(def) => {
                    if let Body::Block(body) = &def.body {
                        used_in(body, out, makers);
                    }
                }
                StmtKind::Class(class) => used_in(&class.body, out, makers),
                _ => {}
            }
        });
    }
}

fn used_by(e: &Expr, out: &mut Vec<Name>, makers: &mut Vec<Name>) {
    let ExprKind::Call(callee, arguments) = &e.kind else { return };
    let (ExprKind::Name(function) | ExprKind::Attribute(_, function)) = &callee.kind else { return };
    let mut takes = |e: &Expr| match &e.kind {
        ExprKind::Name(name) | ExprKind::Attribute(_, name) => out.push(name.clone()),
        ExprKind::Call(made, _) => {
            if let ExprKind::Name(maker) = &made.kind {
                makers.push(maker.clone());
            }
        }
        _ => {}
    };
    let of_masks = matches!(&**function, "and_masks" | "or_masks");
    let makes = function.contains("create_block_mask") || &**function == "create_mask";
    for (at, argument) in arguments.iter().enumerate() {
        match argument {
            Argument::Positional(e) if of_masks || (makes && at == 0) => takes(e),
            Argument::Keyword(name, e) if matches!(&**name, "mask_mod" | "score_mod") => takes(e),
            _ => {}
        }
    }
}

/// Where the top level of a text last binds each of its names.
pub(crate) fn last_bound(module: &Module) -> HashMap<Name, usize> {
    let mut bound = Vec::new();
    for statement in &module.body {
        walk::statements(statement, &mut |s| binds::bound_by(s, &mut bound));
    }
    bound.into_iter().enumerate().map(|(at, name)| (name, at + 1)).collect()
}

/// Names that a text reads and does not bind at its top level, or binds there by a plain assignment: values that may be
/// passed from outside. The second tells which.
pub(crate) fn open_names(module: &Module) -> Vec<(Name, bool)> {
    // whether each binding of a name is plain
    let mut bound: HashMap<Name, bool> = HashMap::new();
    for statement in &module.body {
        walk::statements(statement, &mut |s| {
            let plain = matches!(&s.kind, StmtKind::Assign { .. } | StmtKind::AnnAssign { .. });
            let mut names = Vec::new();
            binds::bound_by(s, &mut names);
            names.into_iter().for_each(|n| *bound.entry(n).or_insert(true) &= plain);
        });
    }
    let (mut out, mut seen) = (Vec::new(), HashSet::new());
    read_in(&module.body, &mut |name| {
        let plain = bound.get(name);
        if plain != Some(&false) && seen.insert(name.clone()) {
            out.push((name.clone(), plain.is_some()));
        }
    });
    out
}

/// Parameters of the functions and methods at the top of a text.
pub(crate) fn params(module: &Module) -> Vec<Name> {
    let mut out = Vec::new();
    let mut of = |s: &Stmt| {
        if let StmtKind::Function(def) = &s.kind {
            out.extend(def.params.iter().map(|p| p.name.clone()));
        }
    };
    for statement in &module.body {
        of(statement);
        if let StmtKind::Class(class) = &statement.kind {
            class.body.iter().for_each(&mut of);
        }
    }
    out
}

/// Every name that is read, including in functions and classes, except those that the functions bind themselves.
fn read_in(body: &[Stmt], read: &mut dyn FnMut(&Name)) {
    for statement in body {
        walk::statements(statement, &mut |s| {
            walk::own_expressions(s, &mut |e| read_by(e, read));
            match &s.kind {
                StmtKind::Function(def) => {
                    if let Body::Block(body) = &def.body {
                        let mut own: Vec<Name> = def.params.iter().map(|p| p.name.clone()).collect();
                        for s in body {
                            walk::statements(s, &mut |s| binds::bound_by(s, &mut own));
                        }
                        let own: HashSet<Name> = own.into_iter().collect();
                        read_in(body, &mut |name| {
                            if !own.contains(name) {
                                read(name);
                            }
                        });
                    }
                }
                StmtKind::Class(class) => read_in(&class.body, read),
                _ => {}
            }
        });
    }
}

fn read_by(e: &Expr, read: &mut dyn FnMut(&Name)) {
    match &e.kind {
        ExprKind::Name(name) => read(name),
        ExprKind::Lambda(def) => {
            walk::defaults(def).for_each(|e| read_by(e, read));
            if let Body::Expr(body) = &def.body {
                read_by(body, &mut |name| {
                    if !def.params.iter().any(|p| p.name == *name) {
                        read(name);
                    }
                });
            }
        }
        _ => walk::parts(e, &mut |part| read_by(part, read)),
    }
}

#[cfg(test)]
mod tests {
    use crate::python::candidates::*;

    #[test]
    fn mods_are_told_from_helpers_by_their_parameters() {
        for mask in [
            "b, h, q_idx, kv_idx",
            "batch, head, q, k",
            "_b, _h, q, kv",
            "b, h, i, j",
            "b, h, m, n",
            "batch_idx, head_idx, query_idx, key_idx",
            "b, h, kv_idx, q_idx",
            "_, __, row, col",
            "b, h, x, y",
            "b, h, q_idx, physical_kv_idx",
            "batch, head, abs_q, abs_k",
            "score, b, h, q_idx, kv_idx",
        ] {
            assert!(names_indices(&mask.split(", ").collect::<Vec<_>>()), "{mask}");
        }
        for helper in [
            "model, opt, data, steps",
            "sparsity, context_length, num_frame, frame_size",
            "B, N, edge_prob, device",
            "B, H, S, D",
            "b, h, s, d",
            "b, h, n, d",
            "q, k, v, mask",
            "fn, q, k, v, mask",
            "self, x, y, z",
            "a, b, seq_len, max_len",
            "B, H, M, N",
        ] {
            assert!(!names_indices(&helper.split(", ").collect::<Vec<_>>()), "{helper}");
        }
    }
}
