//! Fields for numbers: what is dragged can be typed as lengths are written everywhere.
//!
//! Invariant: what is no number changes nothing, and no number is a part of what was typed. Must not know what the numbers are.

use crate::base::words::{count, number};
use std::cell::Cell;

thread_local! {
    /// Whether Escape is pressed in this frame, and whether it was in the one before.
    static ESCAPE: Cell<[bool; 2]> = const { Cell::new([false; 2]) };
}

/// To be called before the fields of a frame. egui reads the text of a field that was left in the next frame once more: after
/// Escape it is not to count.
pub(super) fn begin(ctx: &egui::Context) {
    let pressed = ctx.input(|i| i.key_pressed(egui::Key::Escape));
    ESCAPE.set([pressed, ESCAPE.get()[0]]);
}

/// What is typed into a field that is left, unless it is left by Escape.
fn taken(text: &str, whole: bool) -> Option<f64> {
    if ESCAPE.get().contains(&true) { None } else { typed(text, whole) }
}

/// What is typed into a field for a number: `0.5`, `1_024`, `8k`. Whole numbers alone may be grouped by threes, as `2,048`:
/// elsewhere the comma may be a decimal one. None: it is no number of that kind, and the old one stays.
fn typed(text: &str, whole: bool) -> Option<f64> {
    let counted = if whole { count(text).map(|n| n as f64) } else { None };
    counted.or_else(|| number(text).filter(|n| !whole || n.fract() == 0.0))
}

/// A field for a number that is dragged or typed. What is typed counts once, when the field is left.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub(super) fn drag_of<N: egui::emath::Numeric>(number: &mut N) -> egui::DragValue<'_> {
    egui::DragValue::new(number).custom_parser(|text| taken(text, N::INTEGRAL)).update_while_editing(false)
}

/// A slider whose number can be typed. What is typed counts once, when the field is left.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub(super) fn slider_of<N: egui::emath::Numeric>(
    number: &mut N,
    range: std::ops::RangeInclusive<N>,
) -> egui::Slider<'_> {
    egui::Slider::new(number, range).custom_parser(|text| taken(text, N::INTEGRAL)).update_while_editing(false)
}

#[cfg(test)]
mod tests {
    use super::{begin, drag_of, slider_of, typed};
    use egui::accesskit::Role;
    use egui::{Key, Modifiers};
    use egui_kittest::Harness;
    use egui_kittest::kittest::Queryable;

    #[test]
    fn numbers_are_read_as_they_are_typed() {
        for (text, number) in [("8k", 8192.0), (" 1_024 ", 1024.0), ("-3", -3.0), ("1.5k", 1536.0), ("1e3", 1000.0)] {
            assert_eq!((typed(text, true), typed(text, false)), (Some(number), Some(number)), "{text}");
        }
        for (text, number) in [("2,048", 2048.0), ("1,048,576", 1_048_576.0), ("2\u{202f}048", 2048.0)] {
            assert_eq!((typed(text, true), typed(text, false)), (Some(number), None), "{text}");
        }
        for (text, number) in [("0.5", 0.5), ("1e-3", 0.001), ("3.7", 3.7)] {
            assert_eq!((typed(text, true), typed(text, false)), (None, Some(number)), "{text}");
        }
        for text in ["", "k", "8kb", "8 k", "0,125", "2,04", "12,,345", ",048", "window", "nan", "inf", "512 tokens"] {
            assert_eq!((typed(text, true), typed(text, false)), (None, None), "{text}");
        }
    }

    /// A whole number in a field, and the values that it had after each frame.
    struct Shown {
        number: i64,
        had: Vec<i64>,
    }

    /// A field, or a slider with its field.
    fn window(slider: bool) -> Harness<'static, Shown> {
        let show = move |ui: &mut egui::Ui, shown: &mut Shown| {
            begin(ui.ctx());
            let name = ui.label("tokens").id;
            let field = if slider {
                ui.add(slider_of(&mut shown.number, 1..=4096).clamping(egui::SliderClamping::Never))
            } else {
                ui.add(drag_of(&mut shown.number).range(1..=4096))
            };
            field.labelled_by(name);
            shown.had.push(shown.number);
        };
        Harness::builder().with_size([400.0, 100.0]).build_ui_state(show, Shown { number: 777, had: Vec::new() })
    }

    /// Types sign by sign, ends with a key, and tells the values that the number had.
    fn type_into(slider: bool, text: &str, end: Key) -> Vec<i64> {
        let mut window = window(slider);
        window.run_steps(2);
        window.get_by_role(Role::SpinButton).focus();
        window.run_steps(3);
        window.key_press_modifiers(Modifiers::COMMAND, Key::A);
        window.run_steps(2);
        for letter in text.chars() {
            window.event(egui::Event::Text(letter.to_string()));
            window.run_steps(1);
        }
        window.key_press(end);
        window.run_steps(4);
        let mut had = window.state().had.clone();
        had.dedup();
        had
    }

    #[test]
    fn what_is_typed_into_a_field_counts_once_and_whole_or_not_at_all() {
        for slider in [false, true] {
            for (text, number) in [("2,048", 2048), ("1.5k", 1536), ("2k", 2048), ("12", 12)] {
                assert_eq!(type_into(slider, text, Key::Enter), [777, number], "{text} {slider}");
                assert_eq!(type_into(slider, text, Key::Escape), [777], "{text} {slider}");
            }
            for text in ["512 tokens", "1024*2", "3.7", "2,04"] {
                assert_eq!(type_into(slider, text, Key::Enter), [777], "{text} {slider}");
            }
        }
    }

    #[test]
    fn a_drag_counts_while_it_goes_on() {
        let mut window = window(false);
        window.run_steps(2);
        let at = window.get_by_role(Role::SpinButton).rect().center();
        window.hover_at(at);
        window.drag_at(at);
        window.run_steps(1);
        for n in 1..4 {
            window.hover_at(at + egui::vec2(20.0 * n as f32, 0.0));
            window.run_steps(1);
        }
        assert!(window.state().number > 777, "before the button is released");
    }
}
