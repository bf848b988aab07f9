//! Strokes are visible with any layers.

use super::*;
use crate::document::testing::{empty, layer};
use crate::words::{Language, Words};

fn painted(id: u64, combine: Combine, cell: usize) -> Layer {
    let content =
        MaskContent::Painted(Painted { cell: BlockSize::square(cell), lengths: [64; 2], strokes: Vec::new() });
    Layer { combine, ..layer(id, content) }
}

fn band(id: u64) -> Layer {
    layer(id, MaskContent::Band { lo: Some(0), hi: None })
}

fn of(layers: Vec<Layer>, selected: Option<u64>, keep: bool) -> (Vec<(u64, bool)>, Rest, String) {
    let mut document = empty("tokens 64");
    document.layers = layers;
    let plan = Plan::new(&document, selected, keep, BlockSize::square(4), None);
    let words = plan.words(Words::of(Language::English), &document);
    (plan.targets, plan.rest, words)
}

#[test]
fn an_empty_document_begins_with_the_brush_and_loses_cells_to_the_eraser() {
    let (targets, rest, words) = of(vec![], None, true);
    assert_eq!((targets, rest), (vec![], Rest::Begins(Combine::And)));
    assert!(words.contains("starts from an empty mask"), "{words}");
    assert_eq!(of(vec![], None, false).1, Rest::New(Combine::AndNot));
    // disabled layers do not count
    let off = Layer { enabled: false, ..band(1) };
    assert_eq!(of(vec![off], Some(1), true).1, Rest::Begins(Combine::And));
}

#[test]
fn over_other_layers_each_tool_has_its_own() {
    assert_eq!(of(vec![band(1)], Some(1), true).1, Rest::Begins(Combine::Or));
    assert_eq!(of(vec![band(1)], Some(1), false).1, Rest::New(Combine::AndNot));
    // the top layer is used, also while the pattern is selected
    let both = || vec![band(1), painted(2, Combine::Or, 4), painted(3, Combine::AndNot, 4)];
    assert_eq!(
        of(both(), Some(1), true),
        (vec![(2, true), (3, false)], Rest::Nothing, "Keeps cells, in layer 2.".into())
    );
    assert_eq!(of(both(), Some(1), false).0, [(2, false)]);
    assert_eq!(of(both(), Some(1), false).1, Rest::Layer(3));
    // a layer that keeps is above the one that removes: its cells are removed too
    let turned = vec![band(1), painted(3, Combine::AndNot, 4), painted(2, Combine::Or, 4), painted(4, Combine::Or, 4)];
    assert_eq!(of(turned.clone(), Some(3), false).0, [(4, false), (2, false)]);
    assert_eq!(of(turned, Some(2), true).0, [(2, true)]);
}

#[test]
fn a_selected_layer_that_takes_away_gives_back_with_the_brush() {
    let layers = || vec![band(1), painted(3, Combine::AndNot, 4)];
    let (targets, rest, words) = of(layers(), Some(3), true);
    assert_eq!((targets, rest), (vec![(3, false)], Rest::New(Combine::Or)));
    assert!(words.starts_with("Restores cells that layer 3"), "{words}");
    assert_eq!(of(layers(), Some(3), false), (vec![], Rest::Layer(3), "Removes cells, in layer 3.".into()));
}

#[test]
fn what_is_covered_or_has_other_cells_is_not_drawn_on_unasked() {
    // a pattern above: only cells above it are visible
    let layers = || vec![painted(2, Combine::And, 4), band(1)];
    assert_eq!(of(layers(), None, true).1, Rest::Begins(Combine::Or));
    assert_eq!(of(layers(), Some(2), true).0, [(2, true)], "asked for");
    assert_eq!(of(layers(), Some(2), false), of(layers(), Some(2), false));
    assert_eq!(of(layers(), Some(2), false).1, Rest::New(Combine::AndNot));
    let fine = vec![band(1), painted(2, Combine::Or, 1)];
    assert_eq!(of(fine, None, true).1, Rest::Begins(Combine::Or));
}

#[test]
fn strokes_for_some_heads_stay_with_layers_of_just_these() {
    let some = Heads::of([1, 2]);
    let mine = |id, combine| Layer { heads: some.clone(), ..painted(id, combine, 4) };
    let plan = |layers: Vec<Layer>, keep| {
        let mut document = empty("tokens 64");
        document.layers = layers;
        let plan = Plan::new(&document, None, keep, BlockSize::square(4), some.clone());
        (plan.targets.clone(), plan.rest, plan.words(Words::of(Language::English), &document))
    };
    // a layer of all heads is not drawn on, and those of other heads do not count
    let (targets, rest, words) = plan(vec![band(1), painted(2, Combine::Or, 4)], true);
    assert_eq!((targets, rest), (vec![], Rest::Begins(Combine::Or)));
    assert!(words.starts_with("Heads 1, 2 only: "), "{words}");
    let others = Layer { heads: Heads::of([0, 3]), ..band(1) };
    assert_eq!(plan(vec![others.clone()], true).1, Rest::Begins(Combine::And));
    assert_eq!(plan(vec![others, mine(2, Combine::And)], true).0, [(2, true)]);
    assert_eq!(plan(vec![band(1), mine(2, Combine::Or)], false).0, [(2, false)]);
}
