//! The lists of mask layers and score mods.
//!
//! Invariant: mask layers are listed top first, score mods in the order of their application. Must not know a layer's
//! content.

use super::{add, thumbs};
use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::language::{self, say, say_with};
use crate::app::state::State;
use crate::app::theme;
use crate::app::widgets::{text_field, text_field_took};
use crate::base::Diagnostic;
use crate::base::diagnostic::Severity;
use crate::document::edit::Edit;
use crate::document::model::{Combine, MaskContent, ScoreContent};
use egui::{RichText, Ui};

/// Side of a layer's picture, in points.
const PICTURE: f32 = 38.0;

/// Draws both.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.add_space(4.0);
    ui.horizontal(|ui| {
        ui.strong(say(ui, "layers-mask"));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| add::mask_menu(ui, actions));
    });
    let layers = &state.document.layers;
    if layers.is_empty() {
        ui.weak(say(ui, "layers-mask-none"));
    }
    for (at, layer) in layers.iter().enumerate().rev() {
        let row = Row { id: layer.id, name: &layer.name, enabled: layer.enabled, at, len: layers.len() };
        let combine = Some((layer.combine, at == 0));
        row.show(ui, state, combine, mask_words(&layer.content), actions);
    }
    ui.add_space(8.0);
    ui.horizontal(|ui| {
        ui.strong(say(ui, "layers-score"));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| add::score_menu(ui, actions));
    });
    let scores = &state.document.scores;
    if scores.is_empty() {
        ui.weak(say(ui, "layers-score-none"));
    }
    for (at, score) in scores.iter().enumerate() {
        let row = Row { id: score.id, name: &score.name, enabled: score.enabled, at, len: scores.len() };
        row.show(ui, state, None, score_words(&score.content), actions);
    }
    ui.add_space(8.0);
    buttons(ui, state, actions);
}

fn mask_words(content: &MaskContent) -> &'static str {
    match content {
        MaskContent::Pattern(_) => "layer-pattern",
        MaskContent::Rectangle { .. } => "layer-rectangle",
        MaskContent::Band { .. } => "layer-band",
        MaskContent::Painted(_) => "layer-painted",
        MaskContent::Text(_) => "layer-code",
        MaskContent::Linked(_) => "layer-linked",
    }
}

fn score_words(content: &ScoreContent) -> &'static str {
    match content {
        ScoreContent::Pattern(_) => "layer-pattern",
        ScoreContent::Curve { .. } => "layer-curve",
        ScoreContent::Text(_) => "layer-code",
        ScoreContent::Linked(_) => "layer-linked",
    }
}

/// A layer or score mod in its list.
struct Row<'a> {
    id: u64,
    name: &'a str,
    enabled: bool,
    at: usize,
    len: usize,
}

impl Row<'_> {
    fn show(&self, ui: &mut Ui, state: &State, combine: Option<(Combine, bool)>, words: &str, actions: &mut Actions) {
        let selected = state.focus.layer == Some(self.id);
        let fill =
            if selected { ui.visuals().selection.bg_fill.gamma_multiply(0.55) } else { egui::Color32::TRANSPARENT };
        let frame = egui::Frame::new().fill(fill).corner_radius(5.0).inner_margin(egui::Margin::symmetric(4, 3));
        let shown = frame.show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.horizontal(|ui| {
                self.picture(ui, state, combine.is_some(), actions);
                ui.vertical(|ui| {
                    ui.spacing_mut().item_spacing.y = 2.0;
                    ui.horizontal(|ui| {
                        self.enable(ui, actions);
                        self.title(ui, state, selected, actions);
                    });
                    ui.horizontal(|ui| {
                        match combine {
                            Some((_, true)) if self.len == 1 => {}
                            Some((combine, bottom)) => self.combine(ui, combine, bottom, actions),
                            None => {}
                        }
                        if combine.is_some() && state.document.settings.heads > 1 {
                            self.heads(ui, state, selected, actions);
                        }
                        self.mark(ui, state, words);
                    });
                });
            });
        });
        self.dropped(ui, state, &shown.response, combine.is_some(), actions);
    }

    /// The cells that it alone keeps. A click selects it, a drag moves it, the right button opens its menu.
    fn picture(&self, ui: &mut Ui, state: &State, is_mask: bool, actions: &mut Actions) {
        let (rect, response) = ui.allocate_exact_size(egui::vec2(PICTURE, PICTURE), egui::Sense::click_and_drag());
        let name = self.named(ui, "layer-picture");
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &name));
        match thumbs::of(ui, state, self.id, is_mask) {
            Some(texture) => {
                let size = texture.size_vec2();
                let place = egui::Rect::from_center_size(rect.center(), size * (PICTURE / size.max_elem()));
                let whole = egui::Rect::from_min_max(egui::pos2(0.0, 0.0), egui::pos2(1.0, 1.0));
                let tint = if self.enabled { egui::Color32::WHITE } else { egui::Color32::from_white_alpha(70) };
                ui.painter().image(texture.id(), place, whole, tint);
            }
            None => drop(ui.painter().rect_filled(rect, 2.0, ui.visuals().extreme_bg_color)),
        }
        if response.clicked() {
            actions.push(Action::Select(Some(self.id)));
        }
        response.dnd_set_drag_payload(self.id);
        response.context_menu(|ui| self.menu(ui, actions));
        response.on_hover_text(say(ui, "layer-picture-tip"));
    }

    /// A text with its name.
    fn named(&self, ui: &Ui, id: &str) -> String {
        say_with(ui, id, &[("name", self.name.into())])
    }

    /// Another row was dropped on this one: it takes this place.
    fn dropped(&self, ui: &Ui, state: &State, response: &egui::Response, is_mask: bool, actions: &mut Actions) {
        let of_this_list = |id: u64| match is_mask {
            true => state.document.layer(id).is_some(),
            false => state.document.score(id).is_some(),
        };
        if response.dnd_hover_payload::<u64>().is_some_and(|id| *id != self.id && of_this_list(*id)) {
            let colour = theme::palette(ui.visuals()).accent;
            ui.painter().rect_stroke(response.rect, 5.0, (1.5, colour), egui::StrokeKind::Inside);
        }
        if let Some(id) = response.dnd_release_payload::<u64>().filter(|id| **id != self.id && of_this_list(**id)) {
            actions.push(Action::MoveLayer(*id, self.at));
            actions.push(Action::Select(Some(*id)));
        }
    }

    fn menu(&self, ui: &mut Ui, actions: &mut Actions) {
        use Command::*;
        for command in [ToggleLayer, DuplicateLayer, MirrorLayer, LayerUp, LayerDown, DeleteLayer] {
            let button = egui::Button::new(command.text(ui.ctx())).shortcut_text(command.keys(ui.ctx()));
            if ui.add(button).on_hover_text(command.tip(ui.ctx())).clicked() {
                actions.push(Action::Select(Some(self.id)));
                actions.command(command);
                ui.close();
            }
        }
    }

    fn enable(&self, ui: &mut Ui, actions: &mut Actions) {
        let mut on = self.enabled;
        let name = self.named(ui, "layer-enable");
        if ui.checkbox(&mut on, "").accessible_name(name).on_hover_text(say(ui, "layer-enable-tip")).changed() {
            actions.edit(Edit::SetEnabled(self.id, on));
        }
    }

    fn combine(&self, ui: &mut Ui, combine: Combine, bottom: bool, actions: &mut Actions) {
        let words = language::words(ui.ctx());
        let word = |combine| {
            let id = match (combine, bottom) {
                (Combine::AndNot, true) => "layer-not",
                (_, true) => "layer-keep",
                (Combine::And, _) => "layer-and",
                (Combine::Or, _) => "layer-or",
                (Combine::AndNot, _) => "layer-and-not",
            };
            words.text(id)
        };
        let choices = if bottom { &[Combine::And, Combine::AndNot][..] } else { &Combine::ALL };
        let combo = egui::ComboBox::from_id_salt(("combine", self.id)).selected_text(word(combine)).width(62.0);
        let response = combo.show_ui(ui, |ui| {
            for choice in choices {
                if ui.selectable_label(word(combine) == word(*choice), word(*choice)).clicked() {
                    actions.edit(Edit::SetCombine(self.id, *choice));
                }
            }
        });
        let name = self.named(ui, "layer-joins");
        response.response.accessible_name(name).on_hover_text(say(ui, "layer-joins-tip"));
    }

    /// Its heads: shown if they are not all, and if the layer is selected.
    fn heads(&self, ui: &mut Ui, state: &State, selected: bool, actions: &mut Actions) {
        let now = state.document.layer(self.id).and_then(|l| l.heads.as_ref());
        if now.is_none() && !selected {
            return;
        }
        let words: String = match now {
            None => say(ui, "layer-all-heads").into(),
            Some(heads) => {
                let id = if heads.count() == 1 { "layer-one-head" } else { "layer-some-heads" };
                say_with(ui, id, &[("heads", heads.to_string().into())]).chars().take(16).collect()
            }
        };
        let button = ui.menu_button(RichText::new(words).small(), |ui| {
            let field = say_with(ui, "layer-heads-of", &[("name", self.name.into())]);
            super::tools::heads_menu(ui, &field, state, now, &mut |heads| {
                actions.edit(Edit::SetHeads(self.id, heads));
            });
        });
        button.response.on_hover_text(say(ui, "layer-heads-tip"));
    }

    /// The name: a click selects, the selected one can be edited.
    fn title(&self, ui: &mut Ui, state: &State, selected: bool, actions: &mut Actions) {
        let width = (ui.available_width() - 4.0).max(60.0);
        if selected {
            let field = say_with(ui, "layer-name-of", &[("id", self.id.into())]);
            let (response, changed) = text_field(ui, &field, self.name, width);
            response.on_hover_text(self.name);
            if let Some(name) = changed {
                text_field_took(ui, &field, &name);
                actions.edit(Edit::SetName(self.id, name));
            }
            return;
        }
        let errors = state.session.built.as_ref().is_some_and(|b| b.layer(self.id).iter().any(Diagnostic::is_error));
        let mut text = RichText::new(self.name);
        if errors {
            text = text.color(theme::palette(ui.visuals()).error);
        } else if !self.enabled {
            text = text.weak();
        }
        let button =
            egui::Button::selectable(false, (text, egui::Atom::grow())).truncate().min_size(egui::vec2(width, 0.0));
        let response = ui.add_sized([width, 20.0], button).on_hover_text(say(ui, "layer-select"));
        response.context_menu(|ui| self.menu(ui, actions));
        if response.clicked() {
            actions.push(Action::Select(Some(self.id)));
        }
    }

    fn mark(&self, ui: &mut Ui, state: &State, words: &str) {
        let reported = state.session.built.as_ref().map_or(&[][..], |b| b.layer(self.id));
        let colours = theme::palette(ui.visuals());
        match reported.iter().max_by_key(|d| d.severity) {
            Some(d) if d.is_error() => {
                ui.colored_label(colours.error, say(ui, "severity-error")).on_hover_text(d.summary());
            }
            Some(d) if d.severity == Severity::Warning => {
                ui.colored_label(colours.warning, say(ui, "severity-warning")).on_hover_text(d.summary());
            }
            _ => {
                // a row that overflows would widen all rows below it
                ui.add(egui::Label::new(RichText::new(say(ui, words)).small().weak()).truncate());
            }
        }
    }
}

/// The actions on the selected layer; below the lists, which then stay in their place.
fn buttons(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let Some(id) = state.focus.layer else { return };
    let place = |ids: Vec<u64>| ids.iter().position(|other| *other == id).map(|at| (at, ids.len()));
    let mask = place(state.document.layers.iter().map(|l| l.id).collect());
    let score = place(state.document.scores.iter().map(|s| s.id).collect());
    let (up, down) = match (mask, score) {
        (Some((at, len)), _) => (at + 1 < len, at > 0),
        (_, Some((at, len))) => (at > 0, at + 1 < len),
        _ => (false, false),
    };
    ui.horizontal_wrapped(|ui| {
        for (command, text, enabled) in [
            (Command::LayerUp, "layers-up", up),
            (Command::LayerDown, "layers-down", down),
            (Command::DuplicateLayer, "layers-duplicate", true),
            (Command::DeleteLayer, "layers-delete", true),
        ] {
            let response = ui.add_enabled(enabled, egui::Button::new(RichText::new(say(ui, text)).small()));
            if response.on_hover_text(command.tooltip(ui.ctx())).clicked() {
                actions.command(command);
            }
        }
    });
}
