//! The row above the canvas: tools, the kind of picture, the head.
//!
//! Invariant: one row, so that the picture stays in its place for any choice; what it has no room for is in the menu at its end. Must not
//! know how the canvas draws.

use super::icons::{self, Icon};
use crate::app::action::{Action, Actions};
use crate::app::canvas::{Picture, Tool};
use crate::app::command::Command;
use crate::app::counting::CountProgress;
use crate::app::language::{say, say_with, words};
use crate::app::state::State;
use crate::app::widgets::{Commit, grouped, parsed_field, row_width, tall, text_width, whole};
use crate::document::heads::Heads;
use crate::words::Words;
use crate::worker::protocol::MapKind;
use egui::{RichText, Ui};
use std::time::Duration;

/// A count that is done by then is not worth a word about its progress.
const PATIENCE: Duration = Duration::from_millis(300);

const TOOLS: [(Tool, Command, Icon); 9] = [
    (Tool::Pan, Command::ToolPan, Icon::Move),
    (Tool::Brush, Command::ToolBrush, Icon::Brush),
    (Tool::Eraser, Command::ToolEraser, Icon::Eraser),
    (Tool::Line, Command::ToolLine, Icon::Line),
    (Tool::Rectangle, Command::ToolRectangle, Icon::Rectangle),
    (Tool::Band, Command::ToolBand, Icon::Band),
    (Tool::Area, Command::ToolArea, Icon::Area),
    (Tool::Polygon, Command::ToolPolygon, Icon::Polygon),
    (Tool::Lasso, Command::ToolLasso, Icon::Lasso),
];

/// Pictures, with the ids of their names.
const PICTURES: [(Picture, &str, &str); 3] = [
    (Picture::Blocks, "picture-blocks", "picture-blocks.tip"),
    (Picture::Mask, "picture-mask", "picture-mask.tip"),
    (Picture::Bias, "picture-bias", "picture-bias.tip"),
];

const MAPS: [(MapKind, &str, &str); 2] = [
    (MapKind::Scores, "picture-scores", "picture-scores.tip"),
    (MapKind::Probabilities, "picture-probabilities", "picture-probabilities.tip"),
];

/// Room that the names of all pictures and the heads want, in points.
const WIDE: f32 = 640.0;

/// Room that the menu of what is handed on wants, in points.
const SHARE: f32 = 56.0;

/// Room that the field of pictures, the switch to patches and the heads want.
const ROOMY: f32 = 330.0;
/// Room that the field of pictures wants, and each tool.
const PICTURE: f32 = 122.0;
const TOOL: f32 = 28.0;
/// Room that a number wants beside its name, and a button that opens what is left out.
const NUMBER: f32 = 48.0;
const MORE: f32 = 34.0;
/// Room that the words on empty rows want.
const EMPTY: f32 = 170.0;

/// What stands in the row; the rest is in the menu at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    /// Whether the tools are a row of pictures, not one button.
    tools: bool,
    /// Whether the heads are there.
    heads: bool,
    /// Whether there is a menu of what is left out.
    more: bool,
}

impl Row {
    /// By the room that there is, that of all tools, and that of the heads.
    fn of(room: f32, tools: f32, heads: f32, given_up: bool) -> Row {
        let more = if given_up { MORE } else { 0.0 };
        let all = PICTURE + heads + more;
        match room {
            room if room >= tools + all => Row { tools: true, heads: true, more: given_up },
            room if room >= MORE + all => Row { tools: false, heads: true, more: given_up },
            room => Row { tools: room >= tools + PICTURE + MORE, heads: false, more: true },
        }
    }
}

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.horizontal(|ui| {
        if hides_layers(state) {
            shows(ui, say(ui, "tools-layers"), Command::ToggleLeft, actions);
        }
        let page = if hides_page(state) { row_width(ui, [say(ui, state.view.workspace.page())]) } else { 0.0 };
        let given_up = state.given_up.headline || state.given_up.status || state.given_up.documents;
        let tools = TOOLS.len() as f32 * TOOL + 16.0;
        let log = if has_log(state) { NUMBER } else { 0.0 };
        let row = Row::of(ui.available_width() - page, tools, log + heads_width(ui, state), given_up);
        match row.tools {
            true => all_tools(ui, state, actions),
            false => one_tool(ui, state, actions),
        }
        ui.separator();
        pictures(ui, state, actions);
        if row.heads {
            head(ui, state, actions);
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if hides_page(state) {
                shows(ui, say(ui, state.view.workspace.page()), Command::ToggleRight, actions);
            }
            if row.more {
                super::more::menu(ui, state, actions, |ui, actions| {
                    if !row.heads {
                        ui.horizontal(|ui| head(ui, state, actions));
                    }
                    if state.session.current_stats().is_none() {
                        ui.horizontal(|ui| count(ui, state, actions));
                    }
                });
            }
            // where it would cover the heads, the File menu and the palette have it
            if ui.available_width() >= SHARE {
                super::share::menu(ui, state, Command::SHARE_CANVAS, actions);
            }
            count(ui, state, actions);
            empty_rows(ui, state);
        });
    });
}

/// Whether a button is to bring the layers back: where both panels lie over the mask, that of the page does.
fn hides_layers(state: &State) -> bool {
    !state.view.left && state.view.workspace.has_layers() && !state.given_up.panels
}

/// Whether one is to bring the page back.
fn hides_page(state: &State) -> bool {
    !state.view.right || state.given_up.panels
}

/// Room that batch entry and head want, with the menu of heads.
fn heads_width(ui: &Ui, state: &State) -> f32 {
    let settings = &state.document.settings;
    let number = |id: &str| text_width(ui, RichText::new(say(ui, id))) + NUMBER;
    let batch = if settings.batch > 1 { number("tools-batch") } else { 0.0 };
    if settings.heads < 2 {
        return batch;
    }
    batch + number("tools-head") + row_width(ui, [&*picked_words(ui, state)])
}

fn all_tools(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let usual = std::mem::replace(&mut ui.spacing_mut().item_spacing.x, 2.0);
    for (tool, command, icon) in TOOLS {
        if icon_button(ui, state.focus.tool == tool, icon, command).clicked() {
            actions.command(command);
        }
    }
    ui.spacing_mut().item_spacing.x = usual;
}

/// The tool in hand, which opens all.
fn one_tool(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let now = TOOLS.iter().find(|(tool, ..)| *tool == state.focus.tool).unwrap_or(&TOOLS[0]);
    let name = say_with(ui, "tools-choose", &[("tool", now.1.text(ui.ctx()).into())]);
    let response = icon_ui(ui, true, now.2, name, say(ui, "tools-choose.tip").into());
    egui::Popup::menu(&response).show(|ui| {
        tall(ui, |ui| {
            for (tool, command, _) in TOOLS {
                let button = ui.selectable_label(tool == state.focus.tool, command.text(ui.ctx()));
                if button.on_hover_text(command.tooltip(ui.ctx())).clicked() {
                    actions.command(command);
                    ui.close();
                }
            }
        });
    });
}

/// The canvas's picture: a row of names, or one field if there is not enough space.
fn pictures(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let looks = looks(words(ui.ctx()), state);
    let now = looks.iter().find(|look| look.is_shown(state));
    if ui.available_width() < WIDE {
        let room = ui.available_width() >= ROOMY;
        let combo = egui::ComboBox::from_id_salt("picture").selected_text(now.map_or("", |l| l.name)).width(96.0);
        let response = combo.show_ui(ui, |ui| {
            looks.iter().for_each(|look| look.show(ui, state, actions));
            if !room {
                ui.separator();
                patches(ui, state, actions);
            }
        });
        response.response.accessible_name(say(ui, "picture-drawn"));
        if room {
            patches(ui, state, actions);
        }
    } else {
        looks.iter().for_each(|look| look.show(ui, state, actions));
        patches(ui, state, actions);
    }
    if has_log(state) {
        let mut on = state.focus.map_log;
        if ui.checkbox(&mut on, say(ui, "picture-log")).on_hover_text(say(ui, "picture-log.tip")).changed() {
            actions.push(Action::SetMapLog(on));
        }
    }
}

/// Whether the colours may follow the logarithm.
fn has_log(state: &State) -> bool {
    let masses = state.focus.picture == Picture::Map && state.focus.map == MapKind::Probabilities;
    masses || state.focus.picture == Picture::Loss
}

/// The switch between the matrix and the keys of one query.
fn patches(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let words = say_with(ui, "picture-patches-tip", &[("tip", Command::Patches.tooltip(ui.ctx()).into())]);
    if ui.selectable_label(state.focus.patches, Command::Patches.text(ui.ctx())).on_hover_text(words).clicked() {
        actions.command(Command::Patches);
    }
}

/// One thing that the canvas can draw.
struct Look {
    picture: Picture,
    map: Option<MapKind>,
    name: &'static str,
    words: String,
}

impl Look {
    fn is_shown(&self, state: &State) -> bool {
        state.focus.picture == self.picture && self.map.is_none_or(|kind| kind == state.focus.map)
    }

    fn show(&self, ui: &mut Ui, state: &State, actions: &mut Actions) {
        if ui.selectable_label(self.is_shown(state), self.name).on_hover_text(&self.words).clicked() {
            actions.push(match self.map {
                Some(kind) => Action::SetMapKind(kind),
                None => Action::SetPicture(self.picture),
            });
        }
    }
}

fn looks(said: &'static Words, state: &State) -> Vec<Look> {
    let plain = |(picture, name, words): (Picture, &str, &str)| Look {
        picture,
        map: None,
        name: said.text(name),
        words: said.text(words).to_string(),
    };
    let map = |(kind, name, words): (MapKind, &str, &str)| Look {
        picture: Picture::Map,
        map: Some(kind),
        name: said.text(name),
        words: said.text(words).to_string(),
    };
    let mut looks: Vec<Look> = PICTURES.into_iter().map(plain).chain(MAPS.into_iter().map(map)).collect();
    if state.session.loss.is_some() {
        let words = said.text("picture-loss.tip").into();
        looks.push(Look { picture: Picture::Loss, map: None, name: said.text("picture-loss"), words });
    }
    if let Some(other) = &state.session.compared {
        let words = said.with("picture-difference-tip", &[("name", state.name_of(other).into())]);
        let name = said.text("picture-difference");
        looks.push(Look { picture: Picture::Difference, map: None, name, words });
    }
    looks
}

/// A button that brings a hidden panel back.
fn shows(ui: &mut Ui, name: &str, command: Command, actions: &mut Actions) {
    if ui.button(name).on_hover_text(command.tooltip(ui.ctx())).clicked() {
        actions.command(command);
    }
}

/// Stops a long count, or counts after all.
fn count(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let counts = state.session.shown.as_ref().is_some_and(|shown| shown.before.is_empty());
    if !counts || state.session.current_stats().is_some() {
        return;
    }
    let (text, words, on) = match state.session.count_progress() {
        CountProgress::Working { waited, .. } if waited < PATIENCE => return,
        CountProgress::Working { .. } => ("tools-stop-counting", "tools-stop-counting.tip", false),
        CountProgress::Stopped => ("tools-count", "tools-count.tip", true),
    };
    // where its words would cover the heads, a sign stands for them
    let (name, room) = (say(ui, text), ui.available_width());
    let sign = if on { "\u{2026}" } else { "\u{d7}" };
    let Some(shown) = [name, sign].into_iter().find(|shown| row_width(ui, [*shown]) <= room) else { return };
    let button = ui.small_button(shown).on_hover_text(if shown == name { say(ui, words) } else { name });
    if button.accessible_name(name).clicked() {
        actions.push(Action::Count(on));
    }
}

fn empty_rows(ui: &mut Ui, state: &State) {
    let Some(Ok(stats)) = state.session.current_stats().map(|counted| &counted.result) else { return };
    if stats.empty_rows > 0 {
        // where it would cover the heads, the headline's warnings have it
        if ui.available_width() < EMPTY {
            return;
        }
        let words = say_with(ui, "tools-empty-rows", &[("n", grouped(stats.empty_rows.into()).into())]);
        ui.colored_label(ui.visuals().warn_fg_color, words).on_hover_text(say(ui, "tools-empty-rows-tip"));
    }
}

/// A tool by its picture; its name for those who cannot see it.
fn icon_button(ui: &mut Ui, chosen: bool, icon: Icon, command: Command) -> egui::Response {
    // the context is locked where the description is asked for
    let name = command.text(ui.ctx());
    let tooltip = format!("{name}. {}", command.tooltip(ui.ctx()));
    icon_ui(ui, chosen, icon, name.into(), tooltip)
}

fn icon_ui(ui: &mut Ui, chosen: bool, icon: Icon, name: String, tooltip: String) -> egui::Response {
    let (rect, response) = ui.allocate_exact_size(egui::vec2(26.0, 24.0), egui::Sense::click());
    response.widget_info(|| egui::WidgetInfo::selected(egui::Role::Button, true, chosen, &name));
    let visuals = ui.style().interact_selectable(&response, chosen);
    if chosen || response.hovered() || response.has_focus() {
        ui.painter().rect(rect, 4.0, visuals.weak_bg_fill, visuals.bg_stroke, egui::StrokeKind::Inside);
    }
    icons::paint(ui.painter(), rect.shrink2(egui::vec2(5.0, 4.0)), icon, visuals.fg_stroke.color);
    response.on_hover_text(tooltip)
}

fn head(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let settings = &state.document.settings;
    let (b, h) = (state.focus.b, state.focus.h);
    if settings.batch > 1 {
        ui.weak(say(ui, "tools-batch"));
        if let Some(b) = whole(ui, say(ui, "tools-shown-batch"), b, 0..=settings.batch - 1) {
            actions.push(Action::SetHead { b, h });
        }
    }
    if settings.heads > 1 {
        ui.weak(say(ui, "tools-head"));
        if let Some(h) = whole(ui, say(ui, "tools-shown-head"), h, 0..=settings.heads - 1) {
            actions.push(Action::SetHead { b, h });
        }
        picked(ui, state, actions);
    }
}

fn picked_words(ui: &Ui, state: &State) -> String {
    let words = match &state.focus.picked {
        None => say(ui, "tools-all-heads").to_string(),
        Some(heads) => {
            let id = if heads.count() == 1 { "tools-one-head" } else { "tools-some-heads" };
            say_with(ui, id, &[("heads", heads.to_string().into())])
        }
    };
    words.chars().take(24).collect()
}

/// For which heads one paints and adds layers.
fn picked(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let words = picked_words(ui, state);
    let text = match state.focus.picked {
        Some(_) => RichText::new(words).color(app::theme::palette(ui.visuals()).accent).strong(),
        None => RichText::new(words).weak(),
    };
    let button = ui.menu_button(text, |ui| {
        ui.set_min_width(220.0);
        ui.label(say(ui, "tools-heads-title"));
        heads_menu(ui, say(ui, "tools-work-heads"), state, state.focus.picked.as_ref(), &mut |heads| {
            actions.push(Action::PickHeads(heads));
        });
    });
    button.response.on_hover_text(say(ui, "tools-heads-title.tip"));
}

/// All heads, the shown one, halves, or any as text.
pub(super) fn heads_menu(
    ui: &mut Ui,
    name: &str,
    state: &State,
    now: Option<&Heads>,
    set: &mut dyn FnMut(Option<Heads>),
) {
    let (all, h) = (state.document.settings.heads, state.focus.h);
    let mut choices = vec![
        (say(ui, "heads-all").to_string(), None),
        (say_with(ui, "heads-shown", &[("h", h.into())]), Heads::of([h])),
    ];
    if all > 3 {
        let half = all / 2;
        choices.push((say_with(ui, "heads-first-half", &[("last", (half - 1).into())]), Heads::of(0..half)));
        choices.push((
            say_with(ui, "heads-second-half", &[("first", half.into()), ("last", (all - 1).into())]),
            Heads::of(half..all),
        ));
    }
    if let Some(picked) = state.focus.picked.clone().filter(|picked| now != Some(picked)) {
        choices.push((say_with(ui, "heads-selected", &[("heads", picked.to_string().into())]), Some(picked)));
    }
    for (words, heads) in choices {
        if ui.selectable_label(now == heads.as_ref(), words).clicked() {
            set(heads);
            ui.close();
        }
    }
    ui.horizontal(|ui| {
        ui.label(say(ui, "heads-or"));
        let text = now.map(Heads::to_string).unwrap_or_default();
        let parse = |text: &str| match text.trim() {
            "" => Ok((None, String::new())),
            text => Heads::parse(text).map(|heads| (Some(heads.clone()), heads.to_string())),
        };
        if let Some(heads) = parsed_field(ui, name, &text, 130.0, Commit::AtEnd, parse) {
            set(heads);
        }
    });
    ui.weak(say(ui, "heads-such"));
}

#[cfg(test)]
mod tests {
    use super::Row;

    #[test]
    fn the_narrower_the_row_the_less_stands_in_it_and_the_menu_has_the_rest() {
        let of = |room: f32, given_up: bool| {
            let Row { tools, heads, more } = Row::of(room, 268.0, 200.0, given_up);
            [tools, heads, more]
        };
        assert_eq!(of(600.0, false), [true, true, false]);
        assert_eq!([of(600.0, true), of(580.0, false)], [[false, true, true], [false, true, false]]);
        assert_eq!([of(340.0, false), of(200.0, true)], [[false, false, true]; 2]);
        // a long name of the heads goes before the tools
        assert_eq!(Row::of(430.0, 268.0, 320.0, false), Row { tools: true, heads: false, more: true });
    }
}
