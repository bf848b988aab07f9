//! The page at the side: the workspace's own, or one that any workspace can show.
//!
//! Invariant: one page at a time; its row of names leads to every other. Must not know what pages show.

use crate::app::action::Actions;
use crate::app::command::Command;
use crate::app::language::{self, say};
use crate::app::state::State;
use crate::app::tabs::{self, Pages};
use crate::app::widgets::{id, row_width};
use crate::app::workspace::{Aside, Workspace};
use crate::words::Language;
use egui::{RichText, ScrollArea, Ui};

/// Room for the button that hides the page, and its distance from a name.
const HIDE: f32 = 30.0;
/// The same where names stand close.
const CLOSE_HIDE: f32 = 16.0;
/// Room for English letters on the button that places the page, which are small.
const DOCK: f32 = 24.0;
/// Room for the button that shares the page.
const SHARE: f32 = 52.0;
/// Room between the field of names and the buttons.
const FIELD: f32 = 30.0;
/// Room beside and between names that stand close.
const CLOSE: egui::Vec2 = egui::vec2(4.0, 2.0);

/// How far the keyboard is on its way into the page: at the button before it, then behind that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entering {
    Asked,
    Before,
}

/// Gives the keyboard to the first control of the page in the frames that follow.
pub(in crate::app) fn take_focus(ctx: &egui::Context) {
    ctx.data_mut(|d| d.insert_temp(id("into the page"), Entering::Asked));
    ctx.request_repaint();
}

/// Moves the focus from the last button of the header to the control after it.
fn enter(ui: &Ui, last: &egui::Response) {
    let key = id("into the page");
    match ui.data(|d| d.get_temp::<Entering>(key)) {
        None => {}
        Some(Entering::Asked) => {
            last.request_focus();
            ui.data_mut(|d| d.insert_temp(key, Entering::Before));
            ui.ctx().request_repaint();
        }
        Some(Entering::Before) => ui.data_mut(|d| d.remove::<Entering>(key)),
    }
}

/// Draws it. `merged`: the layers have no separate panel.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, merged: bool, pages: &mut Pages<'_>, actions: &mut Actions) {
    // the widget after the focused one takes the focus if this is called before that one is drawn
    if ui.data(|d| d.get_temp::<Entering>(id("into the page"))) == Some(Entering::Before) {
        ui.memory_mut(|m| m.move_focus(egui::FocusDirection::Next));
    }
    names(ui, state, actions);
    if tabs::lesson_is_on(ui) && !state.view.is_at(Workspace::Learn) {
        let back = ui.link(say(ui, "learn-return"));
        if back.on_hover_text(Command::ShowLearn.tooltip(ui.ctx())).clicked() {
            actions.command(Command::ShowLearn);
        }
    }
    ui.separator();
    match (state.view.aside, state.view.workspace) {
        (None, Workspace::Design) => scrolled(ui, "inspector", |ui| {
            if merged {
                super::layers::show(ui, state, actions);
            }
            super::detail::show(ui, state, actions);
            super::problem::show(ui, state, actions);
        }),
        (aside, workspace) => at_least(ui, |ui| tabs::show(ui, state, aside, workspace, pages, actions)),
    }
}

/// Points of a page's height that its own parts want: in a lower panel the whole page scrolls.
const LEAST: f32 = 240.0;

fn at_least(ui: &mut Ui, contents: impl FnOnce(&mut Ui)) {
    if ui.available_height() >= LEAST {
        return contents(ui);
    }
    scrolled(ui, "low page", |ui| {
        let size = egui::vec2(ui.available_width(), LEAST);
        ui.allocate_ui(size, contents);
    });
}

fn scrolled(ui: &mut Ui, name: &str, contents: impl FnOnce(&mut Ui)) {
    ScrollArea::vertical().id_salt(name).auto_shrink([false, false]).show(ui, contents);
}

/// A row of names with the buttons behind them, close together where there is little space; one field where there is less, because an
/// overflowing row widens everything below it.
fn names(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let mut names = vec![say(ui, state.view.workspace.page()).to_string()];
    names.extend(Aside::ALL.map(|aside| name(ui, state, aside)));
    let room = |ui: &Ui, hide: f32| row_width(ui, names.iter().map(String::as_str)) + hide + dock_width(ui);
    let close = ui.available_width() < room(ui, HIDE);
    if close {
        let mut tight = ui.new_child(egui::UiBuilder::new());
        stand_close(&mut tight);
        if ui.available_width() < room(&tight, CLOSE_HIDE) {
            return field(ui, state, actions);
        }
    }
    ui.horizontal(|ui| {
        if close {
            stand_close(ui);
        }
        let own = state.view.workspace;
        let response = ui.selectable_label(state.view.aside.is_none(), RichText::new(say(ui, own.page())).strong());
        if response.on_hover_text(own.command().tooltip(ui.ctx())).clicked() {
            actions.command(own.command());
        }
        for aside in Aside::ALL {
            let command = aside.command();
            let response = ui.selectable_label(state.view.aside == Some(aside), name(ui, state, aside));
            if response.on_hover_text(command.tooltip(ui.ctx())).clicked() {
                actions.command(command);
            }
        }
        hide(ui, state, actions);
    });
}

/// Names that follow stand close together.
fn stand_close(ui: &mut Ui) {
    (ui.spacing_mut().button_padding.x, ui.spacing_mut().item_spacing.x) = (CLOSE.x, CLOSE.y);
}

/// A page's name, with the number of problems.
fn name(ui: &Ui, state: &State, aside: Aside) -> String {
    match (aside, problems(state)) {
        (Aside::Problems, n) if n > 0 => format!("{} ({n})", aside.command().text(ui.ctx())),
        _ => aside.command().text(ui.ctx()).to_string(),
    }
}

/// Room for the button that places the page: a name of another language may be long.
fn dock_width(ui: &Ui) -> f32 {
    match language::words(ui.ctx()).language() {
        Language::English => DOCK + 2.0 * ui.spacing().button_padding.x,
        _ => row_width(ui, [say(ui, "menu-dock")]),
    }
}

/// The same as one field.
fn field(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.horizontal(|ui| {
        let own = state.view.workspace;
        let shown = state.view.aside.map_or(say(ui, own.page()), |aside| aside.command().text(ui.ctx()));
        let combo = egui::ComboBox::from_id_salt("page").selected_text(RichText::new(shown).strong());
        let buttons = HIDE + dock_width(ui) + FIELD;
        let response = combo.width((ui.available_width() - buttons).max(80.0)).show_ui(ui, |ui| {
            if ui.selectable_label(state.view.aside.is_none(), say(ui, own.page())).clicked() {
                actions.command(own.command());
            }
            for aside in Aside::ALL {
                if ui.selectable_label(state.view.aside == Some(aside), aside.command().text(ui.ctx())).clicked() {
                    actions.command(aside.command());
                }
            }
        });
        response.response.accessible_name(say(ui, "page-field"));
        hide(ui, state, actions);
    });
}

/// The position of the page, and the button that hides it.
fn hide(ui: &mut Ui, state: &State, actions: &mut Actions) {
    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
        let hide = ui.small_button("×").on_hover_text(Command::ToggleRight.tooltip(ui.ctx()));
        let hide = hide.accessible_name(say(ui, "page-hide"));
        if hide.clicked() {
            actions.command(Command::ToggleRight);
        }
        if ui.available_width() >= SHARE + dock_width(ui) {
            super::share::menu(ui, state, Command::SHARE_PAGE, actions);
        }
        if ui.available_width() >= dock_width(ui) {
            let dock =
                ui.menu_button(RichText::new(say(ui, "menu-dock")).small(), |ui| super::top::docks(ui, state, actions));
            enter(ui, &dock.response);
            dock.response.on_hover_text(say(ui, "menu-dock.tip"));
        } else {
            enter(ui, &hide);
        }
    });
}

fn problems(state: &State) -> usize {
    state.session.built.as_ref().map_or(0, |b| b.problems().1)
}
