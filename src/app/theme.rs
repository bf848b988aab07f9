//! Colours, fonts and spacing of the window, light and dark.
//!
//! Invariant: colour is never the only sign, and the colours of the blocks are distinct for colour-blind readers. Must
//! not know what is drawn with them.

use egui::{Color32, CornerRadius, FontFamily, FontId, Stroke, TextStyle, Theme, Vec2, Visuals};
use serde::{Deserialize, Serialize};

/// The user's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThemeChoice {
    #[default]
    System,
    Light,
    Dark,
}

impl ThemeChoice {
    /// The choice as egui knows it.
    pub(crate) fn preference(self) -> egui::ThemePreference {
        match self {
            ThemeChoice::System => egui::ThemePreference::System,
            ThemeChoice::Light => egui::ThemePreference::Light,
            ThemeChoice::Dark => egui::ThemePreference::Dark,
        }
    }
}

/// Colours with a meaning, for the theme in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    /// The one colour that calls: the main button, the selection, our own kernel's bar.
    pub accent: Color32,
    /// Text on the accent.
    pub on_accent: Color32,
    pub good: Color32,
    pub warning: Color32,
    pub error: Color32,
    /// Bars of the baseline and the others.
    pub bar: Color32,
    pub weak: Color32,
    // syntax
    pub keyword: Color32,
    pub string: Color32,
    pub number: Color32,
    pub comment: Color32,
    pub name: Color32,
}

/// The palette for these visuals.
pub(crate) fn palette(visuals: &Visuals) -> Palette {
    if visuals.dark_mode {
        Palette {
            accent: Color32::from_rgb(0x2f, 0xb1, 0xa4),
            on_accent: Color32::from_rgb(0x06, 0x1c, 0x1a),
            good: Color32::from_rgb(0x6c, 0xc6, 0x7c),
            warning: Color32::from_rgb(0xe8, 0xb0, 0x4b),
            error: Color32::from_rgb(0xf0, 0x71, 0x6a),
            bar: Color32::from_rgb(0x5b, 0x6b, 0x86),
            weak: Color32::from_rgb(0x93, 0x9b, 0xa8),
            keyword: Color32::from_rgb(0xc7, 0x92, 0xea),
            string: Color32::from_rgb(0xa5, 0xc9, 0x7e),
            number: Color32::from_rgb(0xf0, 0xa4, 0x6c),
            comment: Color32::from_rgb(0x87, 0x92, 0xa1),
            name: Color32::from_rgb(0x6f, 0xb8, 0xf0),
        }
    } else {
        Palette {
            accent: Color32::from_rgb(0x0b, 0x75, 0x6b),
            on_accent: Color32::WHITE,
            good: Color32::from_rgb(0x1f, 0x7a, 0x35),
            warning: Color32::from_rgb(0x8f, 0x5b, 0x00),
            error: Color32::from_rgb(0xb4, 0x25, 0x22),
            bar: Color32::from_rgb(0x7c, 0x8b, 0xa6),
            weak: Color32::from_rgb(0x5c, 0x64, 0x70),
            keyword: Color32::from_rgb(0x7b, 0x2f, 0xa8),
            string: Color32::from_rgb(0x3a, 0x6f, 0x12),
            number: Color32::from_rgb(0xa1, 0x4a, 0x00),
            comment: Color32::from_rgb(0x60, 0x69, 0x74),
            name: Color32::from_rgb(0x0b, 0x5c, 0xa8),
        }
    }
}

/// Sets fonts, spacing and both themes' colours. Once, at the start.
pub(crate) fn install(ctx: &egui::Context) {
    // the size of everything is a command of ours
    ctx.options_mut(|options| options.zoom_with_keyboard = false);
    for theme in [Theme::Dark, Theme::Light] {
        ctx.style_mut_of(theme, |style| {
            style.visuals = visuals(theme);
            style.spacing.item_spacing = Vec2::new(6.0, 5.0);
            style.spacing.button_padding = Vec2::new(8.0, 3.0);
            style.spacing.interact_size.y = 22.0;
            style.spacing.slider_width = 110.0;
            style.spacing.combo_width = 90.0;
            // a bar that floats would cover the ends of lines
            style.spacing.scroll.floating_allocated_width = 9.0;
            style.text_styles = [
                (TextStyle::Heading, FontId::new(17.0, FontFamily::Proportional)),
                (TextStyle::Body, FontId::new(13.5, FontFamily::Proportional)),
                (TextStyle::Button, FontId::new(13.5, FontFamily::Proportional)),
                (TextStyle::Small, FontId::new(11.5, FontFamily::Proportional)),
                (TextStyle::Monospace, FontId::new(12.5, FontFamily::Monospace)),
            ]
            .into();
        });
    }
}

fn visuals(theme: Theme) -> Visuals {
    let dark = theme == Theme::Dark;
    let mut visuals = if dark { Visuals::dark() } else { Visuals::light() };
    let colours = palette(&visuals);
    let (panel, window, deep, faint, line, text) = if dark {
        ([0x1b, 0x1e, 0x24], [0x22, 0x26, 0x2d], [0x13, 0x15, 0x19], [0x20, 0x24, 0x2b], [0x33, 0x39, 0x43], 0xd8)
    } else {
        ([0xf5, 0xf6, 0xf8], [0xff, 0xff, 0xff], [0xff, 0xff, 0xff], [0xec, 0xee, 0xf2], [0xcf, 0xd4, 0xdc], 0x22)
    };
    let rgb = |c: [u8; 3]| Color32::from_rgb(c[0], c[1], c[2]);
    // a blinking caret would draw the whole window twice a second without any input
    visuals.text_cursor.blink = false;
    visuals.panel_fill = rgb(panel);
    visuals.window_fill = rgb(window);
    visuals.extreme_bg_color = rgb(deep);
    visuals.faint_bg_color = rgb(faint);
    visuals.code_bg_color = rgb(faint);
    visuals.window_stroke = Stroke::new(1.0, rgb(line));
    visuals.window_corner_radius = CornerRadius::same(8);
    visuals.menu_corner_radius = CornerRadius::same(6);
    visuals.widgets.noninteractive.bg_stroke = Stroke::new(1.0, rgb(line));
    visuals.widgets.noninteractive.fg_stroke = Stroke::new(1.0, Color32::from_gray(text));
    // fields and buttons have an edge, on panels and in dialogs alike
    visuals.widgets.inactive.bg_stroke = Stroke::new(1.0, rgb(line));
    visuals.weak_text_color = Some(colours.weak);
    visuals.warn_fg_color = colours.warning;
    visuals.error_fg_color = colours.error;
    visuals.hyperlink_color = colours.accent;
    visuals.selection.bg_fill = if dark { rgb([0x16, 0x53, 0x4d]) } else { rgb([0xb5, 0xe3, 0xdc]) };
    visuals.selection.stroke = Stroke::new(1.0, if dark { rgb([0xe6, 0xff, 0xfb]) } else { rgb([0x05, 0x3b, 0x36]) });
    visuals.slider_trailing_fill = true;
    visuals.striped = false;
    for widget in [
        &mut visuals.widgets.noninteractive,
        &mut visuals.widgets.inactive,
        &mut visuals.widgets.hovered,
        &mut visuals.widgets.active,
        &mut visuals.widgets.open,
    ] {
        widget.corner_radius = CornerRadius::same(4);
    }
    visuals
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG's contrast of two colours.
    fn contrast(a: Color32, b: Color32) -> f32 {
        let luminance = |c: Color32| {
            let linear = egui::Rgba::from(c);
            0.2126 * linear.r() + 0.7152 * linear.g() + 0.0722 * linear.b()
        };
        let (x, y) = (luminance(a), luminance(b));
        (x.max(y) + 0.05) / (x.min(y) + 0.05)
    }

    #[test]
    fn text_can_be_read_in_both_themes() {
        for theme in [Theme::Dark, Theme::Light] {
            let visuals = visuals(theme);
            let colours = palette(&visuals);
            // WCAG 2.2, level AA, for text of any size
            for on in [
                visuals.panel_fill,
                visuals.extreme_bg_color,
                visuals.window_fill,
                visuals.faint_bg_color,
                visuals.code_bg_color,
            ] {
                for (name, text) in [
                    ("weak", colours.weak),
                    ("warning", colours.warning),
                    ("error", colours.error),
                    ("good", colours.good),
                    ("keyword", colours.keyword),
                    ("string", colours.string),
                    ("number", colours.number),
                    ("name", colours.name),
                    ("comment", colours.comment),
                    ("accent", colours.accent),
                    ("text", visuals.text_color()),
                ] {
                    assert!(contrast(text, on) >= 4.5, "{theme:?} {name}: {}", contrast(text, on));
                }
            }
            assert!(contrast(colours.on_accent, colours.accent) >= 4.5, "{theme:?}");
            let chosen = &visuals.selection;
            assert!(contrast(chosen.stroke.color, chosen.bg_fill) >= 4.5, "{theme:?} a selection");
            // 1.4.11: what is no text but must be seen, at least 3
            for (name, mark) in [("bar", colours.bar), ("accent", colours.accent)] {
                assert!(contrast(mark, visuals.panel_fill) >= 3.0, "{theme:?} {name}");
            }
        }
    }

    #[test]
    fn a_caret_does_not_blink_for_that_draws_the_window_while_nobody_types() {
        for theme in [Theme::Dark, Theme::Light] {
            assert!(!visuals(theme).text_cursor.blink);
        }
    }
}
