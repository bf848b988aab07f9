//! Toasts beside the mask, in a corner, or in the status bar.
//!
//! Invariant: errors stay until they are dismissed; what passes by itself covers no cell of the mask. Must not know their subject.

use super::beside::{self, First};
use crate::app::action::{Action, Actions};
use crate::app::language::say;
use crate::app::notices::Notice;
use crate::app::state::State;
use crate::app::widgets::{english_way_out, id, refusal, severity_colour, severity_word};
use egui::{Align2, Area, Frame, Order, Rect, RichText, Ui, Vec2};

/// The effect of dropping a file that is over the window.
pub(in crate::app) fn drop_hint(ctx: &egui::Context) {
    let names: Vec<String> = ctx.input(|i| {
        let name = |f: &egui::HoveredFile| f.path.as_ref().map(|p| p.display().to_string()).unwrap_or_default();
        i.raw.hovered_files.iter().map(name).collect()
    });
    if names.is_empty() {
        return;
    }
    let area = Area::new(id("drop")).anchor(Align2::CENTER_CENTER, Vec2::ZERO).order(Order::Foreground);
    area.show(ctx, |ui| {
        Frame::popup(ui.style()).show(ui, |ui| {
            ui.heading(say(ui, "drop-title"));
            names.iter().for_each(|name| drop(ui.label(name)));
            ui.weak(say(ui, "drop-words"));
        });
    });
}

/// Draws them.
pub(in crate::app) fn show(ctx: &egui::Context, state: &State, actions: &mut Actions) {
    let (mut corner, beside) = place(ctx, state);
    let mut toasts = state.notices.toasts(4);
    if beside < NARROW {
        toasts.retain(|(_, notice)| !notice.passes());
        in_a_line(ctx, state);
    }
    if toasts.is_empty() {
        return;
    }
    let memory = id("size of toasts");
    let selected = super::area::parts(state);
    if beside < NARROW && !selected.is_empty() {
        // an error that waits covers no area that is looked at, where something else is free
        let size = ctx.data(|d| d.get_temp::<Vec2>(memory)).unwrap_or(Vec2::new(WIDE, 90.0));
        let room = Rect::from_min_max(ctx.content_rect().min + Vec2::new(10.0, ABOVE), corner);
        corner = beside::place(room, size, First::LowerRight, &selected) + size;
    }
    let area = Area::new(id("toasts")).order(Order::Foreground);
    let area = area.pivot(Align2::RIGHT_BOTTOM).fixed_pos(corner);
    // an error that waits to be dismissed may cover some of the mask
    let room = if beside < NARROW { WIDE } else { beside.min(WIDE) }.min(ctx.content_rect().width() - 40.0);
    let shown = area.show(ctx, |ui| {
        ui.set_max_width(room);
        // the first ones stay in reach: they scroll away before they leave the window
        let most = (corner.y - ctx.content_rect().top() - ABOVE).max(120.0);
        // all of that height, not only that of the frame before
        ui.set_max_height(most);
        let scroll = egui::ScrollArea::vertical().max_height(most).stick_to_bottom(true).id_salt("toasts");
        scroll.show(ui, |ui| all(ui, toasts, room, actions));
        ui.min_rect().top()
    });
    ctx.data_mut(|d| d.insert_temp(memory, shown.response.rect.size()));
    // they were placed by the height of the frame before, which may have been another
    if (shown.inner - shown.response.rect.top()).abs() > 1.0 {
        ctx.request_repaint();
    }
}

/// Points at the window's top that toasts leave free: the menus and Undo.
const ABOVE: f32 = 110.0;

fn all(ui: &mut Ui, toasts: Vec<(usize, &Notice)>, room: f32, actions: &mut Actions) {
    for (at, notice) in toasts {
        Frame::popup(ui.style()).show(ui, |ui| {
            ui.set_width(room - 20.0);
            if room < WIDE {
                // the words are below, as wide as the toast
                ui.horizontal(|ui| {
                    severity(ui, notice);
                    close(ui, at, actions);
                });
                words(ui, notice);
                return;
            }
            ui.horizontal_top(|ui| {
                severity(ui, notice);
                ui.vertical(|ui| {
                    ui.set_width(room - 110.0);
                    words(ui, notice);
                });
                close(ui, at, actions);
            });
        });
    }
}

/// Toasts for which the mask leaves no place, newest first: the status bar says them.
pub(super) fn in_the_bar<'a>(ctx: &egui::Context, state: &'a State) -> Vec<&'a Notice> {
    let toasts = if place(ctx, state).1 < NARROW { state.notices.toasts(4) } else { Vec::new() };
    toasts.into_iter().rev().map(|(_, notice)| notice).filter(|notice| notice.passes()).collect()
}

/// The same where the window has no such bar: over the line below the mask.
fn in_a_line(ctx: &egui::Context, state: &State) {
    let said = app::language::words(ctx);
    let words: Vec<&str> =
        in_the_bar(ctx, state).iter().map(|n| said.refusal(&n.what.code).unwrap_or(&n.what.message)).collect();
    if words.is_empty() || !state.given_up.status {
        return;
    }
    let screen = ctx.content_rect();
    let area = Area::new(id("line of toasts")).order(Order::Foreground).interactable(false);
    area.pivot(Align2::LEFT_BOTTOM).fixed_pos(screen.left_bottom()).show(ctx, |ui| {
        ui.painter().rect_filled(
            Rect::from_min_max(screen.left_bottom() - Vec2::new(0.0, LINE), screen.right_bottom()),
            0.0,
            ui.visuals().panel_fill,
        );
        ui.set_max_width(screen.width() - 12.0);
        ui.add(egui::Label::new(words.join("  \u{b7}  ")).truncate());
    });
}

/// Height of that line, in points.
const LINE: f32 = 20.0;

/// The lower right corner of the toasts, and the points that are free there beside the mask. Without a canvas, the window's corner.
fn place(ctx: &egui::Context, state: &State) -> (egui::Pos2, f32) {
    let screen = ctx.content_rect();
    let margin = state.session.canvas.margin().filter(|(at, _)| screen.contains(*at));
    margin.unwrap_or((screen.right_bottom() + Vec2::new(-10.0, -34.0), WIDE))
}

/// Points of a toast's width.
const WIDE: f32 = 330.0;
/// Points beside the mask from which on a toast stands there alone.
const NARROW: f32 = 90.0;

fn severity(ui: &mut Ui, notice: &Notice) {
    if notice.what.code != "done" {
        let colour = severity_colour(ui, notice.what.severity);
        ui.label(RichText::new(severity_word(ui, notice.what.severity)).strong().color(colour));
    }
}

fn words(ui: &mut Ui, notice: &Notice) {
    refusal(ui, &notice.what);
    ui.add(egui::Label::new(&notice.what.message).wrap());
    if let Some(hint) = english_way_out(ui, &notice.what) {
        ui.add(egui::Label::new(RichText::new(hint).weak()).wrap());
    }
}

fn close(ui: &mut Ui, at: usize, actions: &mut Actions) {
    let button = ui.small_button("×").on_hover_text(say(ui, "toast-dismiss.tip"));
    if button.accessible_name(say(ui, "toast-dismiss")).clicked() {
        actions.push(Action::Dismiss(at));
    }
}
