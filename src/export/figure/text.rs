//! The fonts of figures: which glyphs a text has, and how wide they are.
//!
//! Invariant: widths are the font's own. Must not know files.

use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, GlyphId, MetadataProvider};
use std::sync::OnceLock;

/// Ubuntu Light, which the window shows too.
pub(super) const FONT: &[u8] = epaint_default_fonts::UBUNTU_LIGHT;

/// Units of the font in its size.
pub(super) fn units() -> f64 {
    f64::from(font().metrics(Size::unscaled(), LocationRef::default()).units_per_em)
}

/// The font, read once.
pub(super) fn font() -> &'static FontRef<'static> {
    static FOUND: OnceLock<FontRef<'static>> = OnceLock::new();
    FOUND.get_or_init(|| FontRef::new(FONT).expect("the font that comes along is one"))
}

/// The glyph of a character. None: the font has none.
pub(super) fn glyph(c: char) -> Option<GlyphId> {
    font().charmap().map(plain(c))
}

/// Spaces of other widths are spaces.
fn plain(c: char) -> char {
    if matches!(c, '\u{a0}' | '\u{202f}' | '\u{2009}') { ' ' } else { c }
}

/// The width of a glyph in the font's units.
pub(super) fn advance(glyph: GlyphId) -> f64 {
    let metrics = font().glyph_metrics(Size::unscaled(), LocationRef::default());
    f64::from(metrics.advance_width(glyph).unwrap_or(0.0))
}

/// The width of a text in points; a character that the font lacks is as wide as it is high.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| glyph(c).map_or(1.0, |glyph| advance(glyph) / units())).sum::<f64>() * size
}

/// Lines of a text that are at most so wide, unless a word is longer.
pub(super) fn broken(words: &str, size: f64, across: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in words.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let more = if line.is_empty() { word.to_string() } else { format!("{line} {word}") };
            if width(&more, size) <= across || line.is_empty() {
                line = more;
            } else {
                lines.push(std::mem::replace(&mut line, word.to_string()));
            }
        }
        lines.push(line);
    }
    lines
}
