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

/// The width of a text in points; a character that the font lacks is as wide as it is high, which no letter of Chinese or Hindi exceeds.
pub fn width(text: &str, size: f64) -> f64 {
    // pictures of people and things are wider
    let other = |c: char| if c >= '\u{1f000}' { 1.4 } else { 1.0 };
    text.chars().map(|c| glyph(c).map_or(other(c), |glyph| advance(glyph) / units())).sum::<f64>() * size
}

/// Whether the font has all of a text's characters, so that its width is known.
pub(super) fn is_known(text: &str) -> bool {
    text.chars().all(|c| glyph(c).is_some())
}

/// Lines of a text that are at most so wide. A longer word, or a text without spaces, goes on in the next line.
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
            while let Some(at) = end(&line, size, across) {
                let rest = line.split_off(at);
                lines.push(std::mem::replace(&mut line, rest));
            }
        }
        lines.push(line);
    }
    lines
}

/// Where a line that is too wide is cut. None: it fits, or nothing of it does.
fn end(line: &str, size: f64, across: f64) -> Option<usize> {
    if width(line, size) <= across {
        return None;
    }
    let fits = |at: &usize| *at > 0 && width(&line[..*at], size) <= across;
    line.char_indices()
        .filter(|(_, c)| !joins(*c))
        .map(|(at, _)| at)
        .take_while(|at| *at == 0 || fits(at))
        .last()
        .filter(fits)
}

/// Whether a character belongs to the one before it: accents, vowel signs of Devanagari and what joins its letters.
fn joins(c: char) -> bool {
    let marks = [
        '\u{300}'..='\u{36f}',
        '\u{900}'..='\u{903}',
        '\u{93a}'..='\u{94f}',
        '\u{200c}'..='\u{200d}',
        '\u{fe00}'..='\u{fe0f}',
    ];
    marks.iter().any(|range| range.contains(&c))
}
