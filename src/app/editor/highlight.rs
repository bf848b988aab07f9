//! Colours for Python text, and underlines under errors.
//!
//! Invariant: never fails on any text, and the coloured text equals the text. Must not know Python's grammar.

use crate::app::theme::{Palette, palette};
use crate::python::syntax::{self, Word};
use egui::text::{LayoutJob, TextFormat};
use egui::{Color32, FontId, Galley, Stroke, TextBuffer, TextStyle, Ui};
use std::ops::Range;
use std::sync::Arc;

/// A marked place: bytes of the text, and whether it is an error.
pub(in crate::app) type Mark = (Range<usize>, bool);
/// Room below a line: the byte of a space in it, and points.
pub(in crate::app) type Gap = (usize, f32);

/// FlexAttention's arguments of a mod, and the most usual names.
const NAMES: &[&str] = &["b", "h", "q_idx", "kv_idx", "score", "torch"];

/// Pieces of a text: their ends and words, covering all of it.
fn pieces(text: &str) -> Vec<(usize, Option<Word>)> {
    let mut out: Vec<(usize, Option<Word>)> = Vec::new();
    for (at, word) in syntax::words(text) {
        if word != Word::Name || NAMES.contains(&&text[at.clone()]) {
            out.push((at.start, None));
            out.push((at.end, Some(word)));
        }
    }
    out.push((text.len(), None));
    out
}

fn colour(word: Option<Word>, colours: &Palette, text: Color32) -> Color32 {
    match word {
        None => text,
        Some(Word::Keyword) => colours.keyword,
        Some(Word::Text) => colours.string,
        Some(Word::Number) => colours.number,
        Some(Word::Comment) => colours.comment,
        Some(Word::Name) => colours.name,
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
    for (end, word) in pieces(text) {
        // a token may be marked in part
        let mut cuts: Vec<usize> = marks.iter().flat_map(|(r, _)| [r.start, r.end]).collect();
        cuts.extend(gaps.iter().flat_map(|(space, _)| [*space, space + 1]));
        cuts.retain(|c| *c > at && *c < end && text.is_char_boundary(*c));
        cuts.extend([end]);
        cuts.sort_unstable();
        for cut in cuts {
            let mark = marks.iter().find(|(r, _)| r.start <= at && at < r.end);
            let mut format = TextFormat::simple(font.clone(), colour(word, colours, plain));
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

    fn coloured(text: &str) -> Vec<(&str, Option<Word>)> {
        let mut at = 0;
        let cut = |(end, word): (usize, Option<Word>)| {
            let piece = &text[at..end];
            at = end;
            (piece, word)
        };
        pieces(text).into_iter().map(cut).filter(|(piece, _)| !piece.trim().is_empty()).collect()
    }

    #[test]
    fn words_have_their_colours() {
        let (keyword, name, string) = (Some(Word::Keyword), Some(Word::Name), Some(Word::Text));
        let found = coloured("return q_idx >= 1.5 # why\nx = 'a#b'");
        let wanted = [
            ("return", keyword),
            ("q_idx", name),
            (" >= ", None),
            ("1.5", Some(Word::Number)),
            ("# why", Some(Word::Comment)),
            ("\nx = ", None),
            ("'a#b'", string),
        ];
        assert_eq!(found, wanted);
        // what is typed at the moment: a string without its end, then more code
        let found = coloured("x = 'ab\nreturn h");
        assert_eq!(found, [("x = ", None), ("'ab", string), ("return", keyword), ("h", name)]);
        // code inside of a string is code
        let found = coloured("f'{h} b'");
        assert_eq!(found, [("f'", string), ("{", None), ("h", name), ("}", None), (" b", string), ("'", string)]);
        assert_eq!(coloured("match = h"), [("match = ", None), ("h", name)]);
        let deep = "(".repeat(5000);
        assert_eq!(coloured(&deep), [(deep.as_str(), None)]);
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
