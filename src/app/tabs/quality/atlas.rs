//! All layers, steps and heads as thumbnails of their block masses; a click opens one on the canvas.
//!
//! Invariant: only visible heads are painted. Must not know how heads are analysed.

use super::measures::heat;
use crate::app::language::{say, say_with, words};
use crate::app::theme::palette;
use crate::app::widgets::percent;
use crate::tasks::lab::page::look::Seen;
use crate::tasks::lab::page::studies::Study;
use crate::tasks::lab::told::character;
use crate::tasks::lab::{self, AtlasHead, Sort};
use crate::words::Words;
use egui::{ComboBox, Rect, Sense, TextEdit, Ui, vec2};

/// Side of a thumbnail, in points.
const SIDE: f32 = 56.0;

/// The page's state.
#[derive(Default)]
pub(super) struct Atlas {
    pub found: Option<Vec<AtlasHead>>,
    asked: bool,
    sort: Sort,
    /// Only calls whose name holds this.
    filter: String,
    /// Only heads of this kind.
    kind: Option<&'static str>,
}

impl Atlas {
    /// Draws it; returns the requested study, and the clicked call and head.
    pub(super) fn show(&mut self, ui: &mut Ui, seen: &Seen, busy: bool) -> (Option<Study>, Option<(String, usize)>) {
        if !self.asked && !busy {
            self.asked = true;
            return (Some(Study::Atlas), None);
        }
        let Some(found) = &self.found else {
            let again = ui.add_enabled(!busy, egui::Button::new(say(ui, "atlas-look"))).clicked();
            return (again.then_some(Study::Atlas), None);
        };
        let said = words(ui.ctx());
        ui.horizontal_wrapped(|ui| {
            let chosen = say(ui, by(self.sort)[0]);
            let combo = ComboBox::from_id_salt("atlas sort").selected_text(chosen).show_ui(ui, |ui| {
                for (sort, _) in Sort::ALL {
                    ui.selectable_value(&mut self.sort, sort, say(ui, by(sort)[1]));
                }
            });
            combo.response.accessible_name(say(ui, "atlas-order"));
            let combo = ComboBox::from_id_salt("atlas kind")
                .selected_text(self.kind.map_or(said.text("atlas-all-kinds"), |kind| character(said, kind)));
            let combo = combo.show_ui(ui, |ui| {
                ui.selectable_value(&mut self.kind, None, say(ui, "atlas-all-kinds"));
                for one in ["sinks", "prefix", "local", "sparse", "spread"] {
                    ui.selectable_value(&mut self.kind, Some(one), character(said, one));
                }
            });
            combo.response.accessible_name(say(ui, "atlas-kind"));
            ui.add(TextEdit::singleline(&mut self.filter).hint_text(say(ui, "atlas-filter")).desired_width(120.0))
                .accessible_name(say(ui, "atlas-filter-name"));
        });
        let mut shown: Vec<AtlasHead> = found
            .iter()
            .filter(|h| h.call.contains(self.filter.trim()) && self.kind.is_none_or(|kind| h.kind() == kind))
            .cloned()
            .collect();
        lab::sort(&mut shown, self.sort);
        ui.weak(say_with(ui, "atlas-count", &[("n", shown.len().into()), ("all", found.len().into())]));
        let mut picked = None;
        match self.sort {
            Sort::Capture => {
                for call in shown.chunk_by(|a, b| a.call == b.call) {
                    ui.label(title(words(ui.ctx()), seen, &call[0].call));
                    ui.horizontal_wrapped(|ui| call.iter().for_each(|head| tile(ui, head, &mut picked)));
                }
            }
            Sort::Cluster => {
                for group in shown.chunk_by(|a, b| a.cluster == b.cluster) {
                    let such = character(said, group[0].kind());
                    let figures =
                        [("group", group[0].cluster.into()), ("n", group.len().into()), ("kind", such.into())];
                    ui.label(say_with(ui, "atlas-group", &figures));
                    ui.horizontal_wrapped(|ui| group.iter().for_each(|head| tile(ui, head, &mut picked)));
                }
            }
            _ => drop(ui.horizontal_wrapped(|ui| shown.iter().for_each(|head| tile(ui, head, &mut picked)))),
        }
        (None, picked)
    }
}

/// The texts on an order: of the field, and in its list.
fn by(sort: Sort) -> [&'static str; 2] {
    match sort {
        Sort::Capture => ["atlas-by-capture", "atlas-capture"],
        Sort::Keys => ["atlas-by-keys", "atlas-keys"],
        Sort::Sinks => ["atlas-by-sinks", "atlas-sinks"],
        Sort::Local => ["atlas-by-local", "atlas-local"],
        Sort::Needed => ["atlas-by-needed", "atlas-needed"],
        Sort::Cluster => ["atlas-by-cluster", "atlas-cluster"],
    }
}

fn title(said: &Words, seen: &Seen, key: &str) -> String {
    seen.file.calls.iter().find(|(k, _)| k == key).map_or(key.into(), |(_, title)| said.phrase(title))
}

fn tile(ui: &mut Ui, head: &AtlasHead, picked: &mut Option<(String, usize)>) {
    let (rect, response) = ui.allocate_exact_size(vec2(SIDE, SIDE + 8.0), Sense::click());
    let name = say_with(ui, "atlas-head", &[("call", (&*head.call).into()), ("head", head.head.into())]);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &name));
    if ui.is_rect_visible(rect) {
        let painter = ui.painter_at(rect.expand(1.0));
        heat(&painter, Rect::from_min_size(rect.min, vec2(SIDE, SIDE)), &head.tile.values, head.tile.columns);
        let bar =
            Rect::from_min_size(rect.left_bottom() - vec2(0.0, 6.0), vec2(SIDE * head.tile.mark.clamp(0.0, 1.0), 5.0));
        painter.rect_filled(bar, 0.0, palette(ui.visuals()).accent);
    }
    if response.on_hover_text(about(ui, head, name)).clicked() {
        *picked = Some((head.call.clone(), head.head));
    }
}

/// What is known of a head, in three lines.
fn about(ui: &Ui, head: &AtlasHead, name: String) -> String {
    let known = |x: Option<f64>| x.map_or(say(ui, "atlas-unknown").to_string(), percent);
    let is = [
        ("name", name.into()),
        ("kind", character(words(ui.ctx()), head.kind()).into()),
        ("group", head.cluster.into()),
    ];
    let figures = [
        ("keys", known(head.keys).into()),
        ("sinks", percent(head.sinks).into()),
        ("prefix", known(head.prefix).into()),
        ("local", percent(head.local).into()),
        ("needed", percent(head.needed).into()),
    ];
    let click = if head.full { "atlas-click" } else { "atlas-click-layer" };
    [say_with(ui, "atlas-is", &is), say_with(ui, "atlas-figures", &figures), say(ui, click).into()].join("\n")
}
