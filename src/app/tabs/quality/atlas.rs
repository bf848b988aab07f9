//! All layers, steps and heads as thumbnails of their block masses; a click opens one on the canvas.
//!
//! Invariant: only visible heads are painted. Must not know how heads are analysed.

use super::measures::heat;
use crate::app::theme::palette;
use crate::app::widgets::percent;
use crate::tasks::lab::page::look::Seen;
use crate::tasks::lab::page::studies::Study;
use crate::tasks::lab::{self, AtlasHead, Sort};
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
            let again = ui.add_enabled(!busy, egui::Button::new("Look at all heads")).clicked();
            return (again.then_some(Study::Atlas), None);
        };
        ui.horizontal_wrapped(|ui| {
            let name = Sort::ALL.iter().find(|(by, _)| *by == self.sort).map_or("", |(_, name)| name);
            let combo = ComboBox::from_id_salt("atlas sort").selected_text(format!("by {name}")).show_ui(ui, |ui| {
                for (by, name) in Sort::ALL {
                    ui.selectable_value(&mut self.sort, by, name);
                }
            });
            combo.response.accessible_name("Order of the heads");
            let combo = ComboBox::from_id_salt("atlas kind").selected_text(self.kind.unwrap_or("all kinds"));
            let combo = combo.show_ui(ui, |ui| {
                ui.selectable_value(&mut self.kind, None, "all kinds");
                for kind in ["sinks", "prefix", "local", "sparse", "spread"] {
                    ui.selectable_value(&mut self.kind, Some(kind), kind);
                }
            });
            combo.response.accessible_name("Kind of the heads");
            ui.add(TextEdit::singleline(&mut self.filter).hint_text("layer").desired_width(120.0))
                .accessible_name("Filter of layers");
        });
        let mut shown: Vec<AtlasHead> = found
            .iter()
            .filter(|h| h.call.contains(self.filter.trim()) && self.kind.is_none_or(|kind| h.kind() == kind))
            .cloned()
            .collect();
        lab::sort(&mut shown, self.sort);
        ui.weak(format!("{} of {} heads", shown.len(), found.len()));
        let mut picked = None;
        match self.sort {
            Sort::Capture => {
                for call in shown.chunk_by(|a, b| a.call == b.call) {
                    ui.label(title(seen, &call[0].call));
                    ui.horizontal_wrapped(|ui| call.iter().for_each(|head| tile(ui, head, &mut picked)));
                }
            }
            Sort::Cluster => {
                for group in shown.chunk_by(|a, b| a.cluster == b.cluster) {
                    ui.label(format!("group {}: {} heads, such as {}", group[0].cluster, group.len(), group[0].kind()));
                    ui.horizontal_wrapped(|ui| group.iter().for_each(|head| tile(ui, head, &mut picked)));
                }
            }
            _ => drop(ui.horizontal_wrapped(|ui| shown.iter().for_each(|head| tile(ui, head, &mut picked)))),
        }
        (None, picked)
    }
}

fn title(seen: &Seen, key: &str) -> String {
    seen.file.calls.iter().find(|(k, _)| k == key).map_or(key, |(_, title)| title).to_string()
}

fn tile(ui: &mut Ui, head: &AtlasHead, picked: &mut Option<(String, usize)>) {
    let (rect, response) = ui.allocate_exact_size(vec2(SIDE, SIDE + 8.0), Sense::click());
    let name = format!("{} head {}", head.call, head.head);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &name));
    if ui.is_rect_visible(rect) {
        let painter = ui.painter_at(rect.expand(1.0));
        heat(&painter, Rect::from_min_size(rect.min, vec2(SIDE, SIDE)), &head.tile.values, head.tile.columns);
        let bar =
            Rect::from_min_size(rect.left_bottom() - vec2(0.0, 6.0), vec2(SIDE * head.tile.mark.clamp(0.0, 1.0), 5.0));
        painter.rect_filled(bar, 0.0, palette(ui.visuals()).accent);
    }
    let known = |x: Option<f64>| x.map_or("not known".to_string(), percent);
    let words = format!(
        "{name}: {}, group {}\neffective keys {}, first block {}, prefix {}, diagonal {} (the bar), {} of the blocks hold 95%{}",
        head.kind(),
        head.cluster,
        known(head.keys),
        percent(head.sinks),
        known(head.prefix),
        percent(head.local),
        percent(head.needed),
        if head.full {
            "\nClick to open it on the canvas."
        } else {
            "\nThe file has no q and k of this head: a click opens its layer."
        }
    );
    if response.on_hover_text(words).clicked() {
        *picked = Some((head.call.clone(), head.head));
    }
}
