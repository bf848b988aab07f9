//! Colours for Python text, and underlines under errors.
//!
//! Invariant: never fails on any text, and the coloured text equals the text. Must not know Python's grammar beyond its
//! tokens.

use crate::app::theme::{Palette, palette};
use egui::text::{LayoutJob, TextFormat};
use egui::{Color32, FontId, Galley, Stroke, TextBuffer, TextStyle, Ui};
use std::ops::Range;
use std::sync::Arc;

/// A marked place: bytes of the text, and whether it is an error.
pub(in crate::app) type Mark = (Range<usize>, bool);
/// Room below a line: the byte of a space in it, and points.
pub(in crate::app) type Gap = (usize, f32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Plain,
    Keyword,
    Text,
    Number,
    Comment,
    Name,
}

const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "break", "class", "continue", "def", "del", "elif", "else", "except", "for", "from",
    "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "True", "False", "None",
];
/// FlexAttention's arguments of a mod, and the most usual names.
const NAMES: &[&str] = &["b", "h", "q_idx", "kv_idx", "score", "torch"];

/// Tokens of a text: their ends and kinds, covering all of it.
fn tokens(text: &str) -> Vec<(usize, Kind)> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (end, kind) = token(text, bytes, at);
        out.push((end, kind));
        at = end;
    }
    out
}

fn token(text: &str, bytes: &[u8], at: usize) -> (usize, Kind) {
    let run = |test: &dyn Fn(u8) -> bool| (at..bytes.len()).find(|i| !test(bytes[*i])).unwrap_or(bytes.len());
    match bytes[at] {
        b'#' => (run(&|c| c != b'\n'), Kind::Comment),
        quote @ (b'"' | b'\'') => (string_end(bytes, at, quote), Kind::Text),
        c if c.is_ascii_digit() => (run(&|c| c.is_ascii_alphanumeric() || c == b'.' || c == b'_'), Kind::Number),
        c if c.is_ascii_alphabetic() || c == b'_' || c >= 0x80 => {
            let end = run(&|c| c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80);
            let word = &text[at..end];
            let kind = match word {
                w if KEYWORDS.contains(&w) => Kind::Keyword,
                w if NAMES.contains(&w) => Kind::Name,
                _ => Kind::Plain,
            };
            (end, kind)
        }
        _ => {
            let plain = |c: u8| !(c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80 || b"#\"'".contains(&c));
            (run(&plain).max(at + 1), Kind::Plain)
        }
    }
}

/// End of a string that starts at `at`; an unclosed one ends with its line, a triple one with the text.
fn string_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let triple = bytes[at..].starts_with(&[quote; 3]);
    let mut i = at + if triple { 3 } else { 1 };
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 1,
            b'\n' if !triple => return i,
            c if c == quote && !triple => return i + 1,
            c if c == quote && bytes[i..].starts_with(&[quote; 3]) => return i + 3,
            _ => {}
        }
        i += 1;
    }
    bytes.len()
}

fn colour(kind: Kind, colours: &Palette, text: Color32) -> Color32 {
    match kind {
        Kind::Plain => text,
        Kind::Keyword => colours.keyword,
        Kind::Text => colours.string,
        Kind::Number => colours.number,
        Kind::Comment => colours.comment,
        Kind::Name => colours.name,
    }
}

/// The text in colours, with its marks underlined.
pub(in crate::app) fn job(text: &str, marks: &[Mark], font: FontId, colours: &Palette, plain: Color32) -> LayoutJob {
    job_with(text, marks, &[], font, colours, plain)
}

/// The same with room below some lines, where something is written about them.
fn job_with(text: &str, marks: &[Mark], gaps: &[Gap], font: FontId, colours: &Palette, plain: Color32) -> LayoutJob {
    let mut job = LayoutJob::default();
    let mut at = 0;
    for (end, kind) in tokens(text) {
        // a token may be marked in part
        let mut cuts: Vec<usize> = marks.iter().flat_map(|(r, _)| [r.start, r.end]).collect();
        cuts.extend(gaps.iter().flat_map(|(space, _)| [*space, space + 1]));
        cuts.retain(|c| *c > at && *c < end && text.is_char_boundary(*c));
        cuts.extend([end]);
        cuts.sort_unstable();
        for cut in cuts {
            let mark = marks.iter().find(|(r, _)| r.start <= at && at < r.end);
            let mut format = TextFormat::simple(font.clone(), colour(kind, colours, plain));
            if let Some((_, error)) = mark {
                format.underline = Stroke::new(1.5, if *error { colours.error } else { colours.warning });
            }
            // a line with room below it keeps its letters at its top
            format.valign = egui::Align::TOP;
            if let Some((_, room)) = gaps.iter().find(|(space, _)| *space == at) {
                format.underline = Stroke::NONE;
                format.line_height = Some(font.size * 1.35 + room);
            }
            if at < cut {
                job.append(&text[at..cut], 0.0, format);
            }
            at = cut;
        }
    }
    job
}

/// A layouter for a text field.
pub(in crate::app) fn layouter(
    marks: Vec<Mark>,
    gaps: Vec<Gap>,
) -> impl FnMut(&Ui, &dyn TextBuffer, f32) -> Arc<Galley> {
    move |ui, buffer, width| {
        let font = TextStyle::Monospace.resolve(ui.style());
        let (colours, plain) = (palette(ui.visuals()), ui.visuals().text_color());
        let mut job = job_with(buffer.as_str(), &marks, &gaps, font, &colours, plain);
        // lines of code stay lines with messages below them
        job.wrap.max_width = if gaps.is_empty() { width } else { f32::INFINITY };
        ui.fonts_mut(|fonts| fonts.layout_job(job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(text: &str) -> Vec<(&str, Kind)> {
        let mut at = 0;
        let cut = |(end, kind): (usize, Kind)| {
            let piece = &text[at..end];
            at = end;
            (piece, kind)
        };
        tokens(text).into_iter().map(cut).filter(|(p, _)| !p.trim().is_empty()).collect()
    }

    #[test]
    fn tokens_have_their_kinds() {
        let found = kinds("return q_idx >= 1.5 # why\nx = 'a#b'");
        let wanted = [
            ("return", Kind::Keyword),
            ("q_idx", Kind::Name),
            (" >= ", Kind::Plain),
            ("1.5", Kind::Number),
            ("# why", Kind::Comment),
            ("x", Kind::Plain),
            (" = ", Kind::Plain),
            ("'a#b'", Kind::Text),
        ];
        assert_eq!(found, wanted);
    }

    proptest! {
        #![proptest_config(maskloom_testing::cases::kept_beside())]

        #[test]
        fn any_text_stays_itself(text in "[a-z0-9 '\"\\\\#\\né_(]{0,60}", from in 0usize..60, len in 0usize..20) {
            let visuals = egui::Visuals::dark();
            let job = job(&text, &[(from..from + len, true)], FontId::monospace(12.0), &palette(&visuals), Color32::WHITE);
            prop_assert_eq!(job.text, text);
        }
    }
}
