//! The same design at other lengths, for a race over lengths.
//!
//! Invariant: an axis of plain tokens takes the length and every value of the design stays, as in `maskloom sweep
//! --lengths`; axes with segments or grids are scaled as a whole, with the values that count along them. Must not know
//! how they are raced.

use crate::base::Diagnostic;
use crate::document::compile::Environment;
use crate::document::edit;
use crate::document::model::Document;
use crate::document::resize::{self, Resize};
use crate::document::scaling::{self, Groups};

/// Lengths at most.
const MOST: usize = 6;
/// A shorter one would only measure the cost of a launch.
const LEAST: usize = 128;

/// Lengths worth racing up to `longest`, the shortest first: it and its halves.
pub fn lengths(longest: usize) -> Vec<usize> {
    let halves = (0..MOST).map(|times| longest >> times);
    let mut out: Vec<usize> = halves.filter(|n| *n >= LEAST.min(longest)).collect();
    out.reverse();
    out
}

/// Whether a length alone defines the change: one segment of plain tokens, and no separate keys.
pub fn is_plain(document: &Document) -> bool {
    document.axes.kv.is_none() && matches!(&document.axes.q.segments[..], [one] if one.grid.len() == 1)
}

/// The design with about `tokens` tokens along its longer side. Errors: its axes have no such shape.
pub fn at(document: &Document, env: &dyn Environment, tokens: usize, groups: Groups) -> Result<Document, Diagnostic> {
    if !is_plain(document) {
        return scaling::copies(document, env, tokens, groups).into_iter().next().ok_or_else(|| {
            let message = format!("`{}` has no shape of about {tokens} tokens", document.axes.q);
            Diagnostic::error("no-such-length", message).hint("race it with axes that you set yourself")
        });
    }
    let mut out = document.clone();
    let mut axes = document.axes.clone();
    axes.q.segments[0].grid = vec![tokens];
    if axes != document.axes {
        let change = resize::set_axes(document, axes, Resize::Scale)?;
        edit::apply(&mut out, change)?;
    }
    let settings = &mut out.settings;
    (settings.batch, settings.heads, settings.kv_heads) = (groups.batch, groups.heads, groups.kv_heads);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::{from_document, library};

    #[test]
    fn lengths_are_halves_and_none_is_too_short() {
        assert_eq!(lengths(8192), [256, 512, 1024, 2048, 4096, 8192]);
        assert_eq!(lengths(384), [192, 384]);
        assert_eq!(lengths(64), [64]);
    }

    #[test]
    fn a_plain_axis_keeps_its_window_and_a_grid_scales_with_its_values() {
        let window = library::preset("sliding_window").expect("there").document().expect("loads");
        let groups = Groups::fewer(&window.settings, 4);
        let short = at(&window, &BuiltIn, 2048, groups).expect("has one");
        assert_eq!((short.axes.q.len(), short.settings.heads, short.settings.batch), (2048, 4, 1));
        assert_eq!(short.layers, window.layers, "the window stays");
        let image = library::preset("natten_2d").expect("there").document().expect("loads");
        assert!(!is_plain(&image));
        let whole = image.axes.q.len();
        let short = at(&image, &BuiltIn, whole / 4, Groups::of(&image.settings)).expect("has one");
        assert!(short.axes.q.len() < whole && short.axes.q.len() >= whole / 16, "{}", short.axes.q);
        for document in [&short, &at(&window, &BuiltIn, 512, groups).expect("has one")] {
            from_document(document, &compile(document, &BuiltIn)).expect("is a problem");
        }
    }
}
