//! Fields for numbers: what is dragged can be typed as lengths are written everywhere.
//!
//! Invariant: what is no number changes nothing, and no number is a part of what was typed. Must not know what the numbers are.

use crate::base::words::count;

/// What is typed into a field for a number: `0.5`, `1_024`, `8k` for 8 x 1024. None: it is no number, and the old one stays.
fn typed(text: &str) -> Option<f64> {
    let digits = || text.trim().replace('_', "").parse().ok().filter(|x: &f64| x.is_finite());
    count(text).map(|n| n as f64).or_else(digits)
}

/// A field for a number that is dragged or typed.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub(super) fn drag_of<N: egui::emath::Numeric>(number: &mut N) -> egui::DragValue<'_> {
    egui::DragValue::new(number).custom_parser(typed)
}

/// A slider whose number can be typed.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub(super) fn slider_of<N: egui::emath::Numeric>(
    number: &mut N,
    range: std::ops::RangeInclusive<N>,
) -> egui::Slider<'_> {
    egui::Slider::new(number, range).custom_parser(typed)
}

#[cfg(test)]
mod tests {
    use super::typed;

    #[test]
    fn numbers_are_read_as_they_are_typed() {
        for (text, number) in [("8k", 8192.0), (" 1_024 ", 1024.0), ("0.5", 0.5), ("-3", -3.0), ("1e-3", 0.001)] {
            assert_eq!(typed(text), Some(number), "{text}");
        }
        for text in ["", "8kb", "1.5k", "1,024", "window", "nan", "inf"] {
            assert_eq!(typed(text), None, "{text}");
        }
    }
}
