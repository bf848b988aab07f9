//! Trees of small texts, and nesting depths.

use super::ast::{ExprKind, StmtKind};
use crate::python::syntax::*;

fn depth(text: &str) -> usize {
    nesting(&Source::new("t.py", text))
}

#[test]
fn nesting_follows_brackets_operators_and_indents() {
    assert!(depth("x = 1\n") <= 2);
    assert!(depth(&format!("x = [{}]\n", "1, -2, (3, 4), ".repeat(5000))) < 10);
    assert!(depth(&"x = f(a, b)[0] + 1\n".repeat(5000)) < 12);
    assert!(depth(&format!("x = {}1{}\n", "(".repeat(500), ")".repeat(500))) >= 500);
    assert!(depth(&format!("x = {}1\n", "not ".repeat(500))) >= 500);
    assert!(depth(&format!("x = 1{}\n", " + 1".repeat(500))) >= 500);
    assert!(depth(&format!("x = f{}\n", "()".repeat(500))) >= 500);
    let indents: String = (0..300).map(|n| format!("{}if x:\n", " ".repeat(n))).collect();
    assert!(depth(&format!("{indents}{}pass\n", " ".repeat(300))) >= 300);
}

#[test]
fn spans_cover_what_was_written() {
    let source = Source::new("t.py", "def f(b, *, w: int = 3):\n    return b[0] + w\n");
    let parsed = parse(&source, SourceId(0));
    assert!(parsed.errors.is_empty());
    let StmtKind::Function(def) = &parsed.module.body[0].kind else { panic!("a def") };
    assert_eq!(source.slice(def.name_span), "f");
    assert_eq!(def.params.iter().map(|p| source.slice(p.span)).collect::<Vec<_>>(), ["b", "w: int"]);
    let ast::Body::Block(body) = &def.body else { panic!("a block") };
    let StmtKind::Return(Some(value)) = &body[0].kind else { panic!("a return") };
    assert_eq!(source.slice(value.span), "b[0] + w");
    assert!(matches!(&value.kind, ExprKind::Binary(..)));
}

#[test]
fn errors_have_a_place_and_a_way_out() {
    let parsed = parse(&Source::new("t.py", "def f(b, h, q, k)\n    return (q >= k\n"), SourceId(0));
    assert!(!parsed.errors.is_empty());
    for error in &parsed.errors {
        assert!(error.hint.is_some() && !error.labels.is_empty(), "{error:?}");
    }
}
