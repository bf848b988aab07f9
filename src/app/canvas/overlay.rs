//! Controls over the canvas: the zoom, the way back to the whole mask, the field that goes to a cell, the context menu.
//!
//! Invariant: everything here also has a command or a key; nothing covers the middle of the picture. Must not know
//! documents.

use super::hover::{decided_by, keeps};
use super::rulers::digits;
use super::view::ScreenFromWorld;
use super::{Canvas, CanvasEvent, Scene};
use crate::app::command::Command;
use crate::app::language::{say, say_with};
use crate::base::words::count;
use crate::ir::cell::Cell;
use crate::words::Words;
use egui::{Key, Rect, RichText, TextEdit, Ui, UiBuilder, pos2};

/// Points of a canvas's width from which on the bar has words.
const ROOMY: f32 = 420.0;
/// Room of the overlay, in points.
const SIZE: (f32, f32) = (330.0, 26.0);
/// Zoom of one step.
const STEP: f64 = 1.25;
/// Side of a cell that one has gone to, in points.
const CELL: f64 = 72.0;

/// `1 px = 12.0 tokens`, `cell 8 px`.
pub(super) fn zoom_words(said: &'static Words, scale: f64) -> String {
    if scale >= 1.0 {
        return said.with("canvas-cell-size", &[("n", format!("{scale:.0}").into())]);
    }
    let tokens = 1.0 / scale;
    let tokens = if tokens >= 100.0 { digits(tokens.round() as usize) } else { format!("{tokens:.1}") };
    said.with("canvas-pixel-size", &[("n", tokens.into())])
}

/// `q, kv` as typed; a single number is a place on the diagonal.
pub fn cell_of(text: &str) -> Option<[usize; 2]> {
    let numbers: Option<Vec<usize>> = text.split([',', ' ', ';']).filter(|part| !part.is_empty()).map(count).collect();
    match numbers?.as_slice() {
        [one] => Some([*one, *one]),
        [q, kv] => Some([*q, *kv]),
        _ => None,
    }
}

impl Canvas {
    /// Draws zoom, fit and the field for a cell in the upper right corner.
    pub(super) fn overlay(
        &mut self,
        ui: &mut Ui,
        map: &ScreenFromWorld,
        scene: &Scene<'_>,
        events: &mut Vec<CanvasEvent>,
    ) {
        let rect = map.rect;
        let steps = std::mem::take(&mut self.zoom_steps);
        if steps != 0 {
            self.view.zoom_about(STEP.powi(steps), rect.center(), rect, scene.lengths);
            ui.ctx().request_repaint();
        }
        if let Some(wanted) = self.looks_at.take() {
            self.go(wanted, map, scene, events);
            ui.ctx().request_repaint();
        }
        if self.alone {
            return;
        }
        // where the bar would cover much of the mask there is only the field that was asked for
        let small = self.bare || rect.width() < SIZE.0 - 20.0 || rect.height() < 120.0;
        if small && self.going.is_none() {
            return;
        }
        let corner = pos2(rect.right() - 8.0, rect.top() + 6.0);
        let width = SIZE.0.min(rect.width() - 12.0).max(0.0);
        let place = Rect::from_min_max(pos2(corner.x - width, corner.y), pos2(corner.x, corner.y + SIZE.1));
        let layout = egui::Layout::right_to_left(egui::Align::Center);
        let mut child = ui.new_child(UiBuilder::new().id_salt("overlay").max_rect(place).layout(layout));
        // the picture does not shine through: words over stripes cannot be read
        let frame = egui::Frame::new()
            .fill(child.visuals().panel_fill)
            .stroke(child.visuals().widgets.noninteractive.bg_stroke)
            .corner_radius(6.0)
            .inner_margin(egui::Margin::symmetric(4, 2));
        frame.show(&mut child, |ui| match small {
            true => self.field(ui, map, scene, events),
            false => self.buttons(ui, map, scene, events),
        });
    }

    fn buttons(&mut self, ui: &mut Ui, map: &ScreenFromWorld, scene: &Scene<'_>, events: &mut Vec<CanvasEvent>) {
        let rect = map.rect;
        let fit = ui.add_enabled(!self.view.is_fit(), egui::Button::new(say(ui, "canvas-fit")));
        if fit.on_hover_text(say(ui, "canvas-fit.tip")).clicked() {
            self.view.fit();
        }
        let hover = [say(ui, "canvas-zoom-in.tip"), say(ui, "canvas-zoom-out.tip")];
        for (text, name, factor, hover) in [
            ("+", say(ui, "canvas-zoom-in"), STEP, hover[0]),
            ("\u{2212}", say(ui, "canvas-zoom-out"), 1.0 / STEP, hover[1]),
        ] {
            let button = ui.add(egui::Button::new(text).min_size(egui::vec2(22.0, 0.0))).on_hover_text(hover);
            if button.accessible_name(name).clicked() {
                self.view.zoom_about(factor, rect.center(), rect, scene.lengths);
            }
        }
        // on a small canvas the bar would cover the first rows from edge to edge; Ctrl+L goes to a cell there, too
        let roomy = rect.width() >= ROOMY;
        if roomy {
            let words = zoom_words(scene.said, map.q.scale.min(map.kv.scale));
            ui.label(RichText::new(words).small()).on_hover_text(say(ui, "canvas-size"));
        }
        if self.going.is_some() {
            self.field(ui, map, scene, events);
        } else if roomy && ui.button(say(ui, "canvas-go")).on_hover_text(say(ui, "canvas-go.tip")).clicked() {
            self.go_to();
        }
    }

    fn field(&mut self, ui: &mut Ui, map: &ScreenFromWorld, scene: &Scene<'_>, events: &mut Vec<CanvasEvent>) {
        let Some(mut text) = self.going.take() else { return };
        let wrong = !text.is_empty() && cell_of(&text).is_none();
        let color = wrong.then(|| ui.visuals().error_fg_color);
        let field = TextEdit::singleline(&mut text).desired_width(86.0).hint_text("q, kv").text_color_opt(color);
        let response = ui.add(field);
        let response = response.accessible_name(say(ui, "canvas-go-name"));
        if text.is_empty() && !response.has_focus() && !response.lost_focus() {
            response.request_focus();
        }
        let (entered, left) = ui.input(|i| (i.key_pressed(Key::Enter), i.key_pressed(Key::Escape)));
        if response.lost_focus() && entered {
            if let Some(wanted) = cell_of(&text) {
                self.go(wanted, map, scene, events);
                self.takes_focus = true;
                return;
            }
        } else if response.lost_focus() || left {
            return;
        }
        self.going = Some(text);
    }

    /// Goes to a typed cell and pins it; beyond the mask it is the nearest one, which is told.
    fn go(&mut self, wanted: [usize; 2], map: &ScreenFromWorld, scene: &Scene<'_>, events: &mut Vec<CanvasEvent>) {
        let shown = [wanted[0].min(scene.lengths.q_len - 1), wanted[1].min(scene.lengths.kv_len - 1)];
        self.look_at(shown, map, scene);
        events.push(CanvasEvent::Clicked(shown));
        if shown != wanted {
            events.push(CanvasEvent::Beyond { wanted, shown });
        }
    }

    /// Brings a cell to the middle, large enough to be read.
    fn look_at(&mut self, [q, kv]: [usize; 2], map: &ScreenFromWorld, scene: &Scene<'_>) {
        let reach = |side: f32| f64::from(side) / CELL / 2.0;
        let (rows, columns) = (reach(map.rect.height()), reach(map.rect.width()));
        let around = |at: usize, reach: f64| [at as f64 + 0.5 - reach, at as f64 + 0.5 + reach];
        self.view.show_range(around(q, rows), around(kv, columns), map.rect, scene.lengths);
    }

    /// The commands for the cell under the right button.
    pub(super) fn menu(
        &mut self,
        response: &egui::Response,
        map: &ScreenFromWorld,
        scene: &Scene<'_>,
        events: &mut Vec<CanvasEvent>,
    ) {
        if response.secondary_clicked() {
            self.menu_at = response.interact_pointer_pos().and_then(|at| map.cell(at, scene.lengths));
        }
        let at = self.menu_at;
        response.context_menu(|ui| {
            if let Some(cell) = at {
                self.cell_menu(ui, cell, map, scene, events);
                ui.separator();
            }
            if ui.button(say(ui, "canvas-fit-whole")).clicked() {
                self.view.fit();
                ui.close();
            }
            if ui.button(say(ui, "canvas-go-cell")).clicked() {
                self.go_to();
                ui.close();
            }
            ui.separator();
            for command in [Command::CopyPicture, Command::CopyCode, Command::SaveHtml] {
                if ui.button(command.text(ui.ctx())).on_hover_text(command.tooltip(ui.ctx())).clicked() {
                    events.push(CanvasEvent::Wished(command));
                    ui.close();
                }
            }
        });
    }

    fn cell_menu(
        &mut self,
        ui: &mut Ui,
        [q, kv]: [usize; 2],
        map: &ScreenFromWorld,
        scene: &Scene<'_>,
        events: &mut Vec<CanvasEvent>,
    ) {
        ui.weak(format!("q {}, k {}", digits(q), digits(kv)));
        if ui.button(say(ui, "canvas-steps")).on_hover_text(say(ui, "canvas-steps.tip")).clicked() {
            events.push(CanvasEvent::Inspected([q, kv]));
            ui.close();
        }
        if ui.button(say(ui, "canvas-near")).clicked() {
            self.look_at([q, kv], map, scene);
            ui.close();
        }
        if ui.button(say(ui, "canvas-block")).clicked() {
            let range = |at: usize, size: usize| [(at / size * size) as f64, ((at / size + 1) * size) as f64];
            let (rows, columns) = (range(q, scene.block_size.q), range(kv, scene.block_size.kv));
            self.view.show_range(rows, columns, map.rect, scene.lengths);
            ui.close();
        }
        let cell = Cell { b: scene.b as i64, h: scene.h as i64, q_idx: q as i64, kv_idx: kv as i64, score: 0.0 };
        if let Some(layer) = decided_by(&scene.layers, |m| keeps(m, &cell))
            && ui.button(say_with(ui, "canvas-select", &[("name", layer.name.into())])).clicked()
        {
            events.push(CanvasEvent::Selected(layer.id));
            ui.close();
        }
        if ui.button(say(ui, "canvas-copy")).clicked() {
            ui.ctx().copy_text(format!("{q}, {kv}"));
            ui.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn cells_are_typed_as_people_write_them() {
        for (text, cell) in
            [("3, 5", [3, 5]), ("3 5", [3, 5]), ("1_000;2", [1000, 2]), ("8k 4_096", [8192, 4096]), ("7", [7, 7])]
        {
            assert_eq!(cell_of(text), Some(cell), "{text}");
        }
        for text in ["", "a", "1,2,3", "-1, 2"] {
            assert_eq!(cell_of(text), None, "{text}");
        }
    }

    #[test]
    fn the_zoom_is_told_in_tokens_or_in_points() {
        assert_eq!(
            [1e-3, 0.4, 64.0].map(|scale| zoom_words(Words::of(Language::English), scale)),
            ["1 px = 1000 tokens", "1 px = 2.5 tokens", "cell 64 px"]
        );
    }
}
