//! Texts traced and compared cell by cell with closures; mistakes and their messages.

use crate::ir::cell::{self, Cell};
use crate::python::trace::*;

mod aliases;
mod around;
mod costs;
mod doorway;
mod entries;
mod errors;
mod gym;
mod hostile;
mod language;
mod library;
mod mods;
mod python;
mod random_rewrites;
mod rewrites;
mod skipped;
mod torch_factories;
mod torch_grads;
mod torch_masks;

/// The right result of a text.
enum Expect<'a> {
    /// The mask at (b, h, q, kv), on cells drawn all over the grid.
    Mask(&'a dyn Fn(i64, i64, i64, i64) -> bool),
    /// The score at (score, b, h, q, kv), to 1e-6.
    Score(&'a dyn Fn(f64, i64, i64, i64, i64) -> f64),
    /// The rendered diagnostics.
    Said(&'a str),
}

fn request(text: &str, kind: ModKind) -> TraceRequest<'static> {
    TraceRequest::new(Source::new("mod.py", text), "", kind)
}

/// Traces without arguments.
fn check(text: &str, expect: Expect<'_>) {
    let kind = if matches!(expect, Expect::Score(_)) { ModKind::Score } else { ModKind::Mask };
    check_request(&request(text, kind), expect);
}

fn said(traced: &Traced) -> String {
    traced.diagnostics.iter().map(Diagnostic::render).collect::<Vec<_>>().join("\n")
}

fn check_request(request: &TraceRequest, expect: Expect<'_>) {
    let text = &request.source.text;
    let traced = trace(request);
    let reported = said(&traced);
    if let Expect::Said(wanted) = expect {
        assert_eq!(reported.trim(), wanted.trim(), "{text}");
        return;
    }
    let result = traced.result.unwrap_or_else(|| panic!("{text}\n{reported}"));
    assert!(!traced.diagnostics.iter().any(Diagnostic::is_error), "{reported}");
    assert_eq!(result.graph.verify(), Ok(()));
    for n in 0..400i64 {
        // small and large indices, in no order
        let (q_idx, kv_idx) = ((n * 37) % 61 + n % 2 * 200, (n * 53) % 67 + n % 3 * 150);
        let cell = Cell { b: n % 3, h: n % 4, q_idx, kv_idx, score: n as f64 / 7.0 - 20.0 };
        let got = cell::eval(&result, &cell);
        match &expect {
            Expect::Mask(f) => {
                assert_eq!(got.as_bool(), f(cell.b, cell.h, q_idx, kv_idx), "{text}\n{cell:?}");
            }
            Expect::Score(f) => {
                let (got, want) = (got.as_float(), f(cell.score, cell.b, cell.h, q_idx, kv_idx));
                let near =
                    got == want || (got - want).abs() <= 1e-6 * want.abs().max(1.0) || (got.is_nan() && want.is_nan());
                assert!(near, "{text}\n{cell:?}: {got} instead of {want}");
            }
            Expect::Said(_) => {}
        }
    }
}
