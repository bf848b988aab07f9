//! Toasts: beside the mask where that is free, else in a bar of their own.
//!
//! Invariant: errors stay until they are dismissed; each toast can be copied; a toast covers no cell of the mask, except while a
//! dialog is open. Must not know their subject.

use crate::app::action::{Action, Actions};
use crate::app::language::say;
use crate::app::notices::Notice;
use crate::app::state::State;
use crate::app::widgets::{english_way_out, id, refusal, severity_colour, severity_word};
use egui::{Align, Align2, Area, Context, Frame, Layout, Margin, Order, Panel, Pos2, RichText, ScrollArea, Ui, Vec2};

/// The effect of dropping a file that is over the window.
pub(in crate::app) fn drop_hint(ctx: &Context) {
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

/// Width of a toast beside the mask.
const WIDE: f32 = 330.0;
/// Toasts that are shown at once.
const MOST: usize = 4;

/// The corner beside the mask where toasts have room, and points to spare.
fn beside(ctx: &Context, state: &State, spare: f32) -> Option<Pos2> {
    let free = state.session.canvas.margin()?.intersect(ctx.content_rect());
    (free.width() >= WIDE + 20.0 + spare && free.height() >= 60.0).then(|| free.right_bottom() - Vec2::splat(10.0))
}

/// The bar, above the status: where nothing is free beside the mask. The mask becomes smaller with it, so that once there it stays
/// until there would be room without it, too.
pub(in crate::app) fn bar(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let (key, toasts) = (id("toasts in a bar"), state.notices.toasts(MOST));
    let was: bool = ui.data(|d| d.get_temp(key)).unwrap_or_default();
    let most = ui.ctx().content_rect().height() * 0.3;
    // before the first frame of a canvas nobody knows
    let drawn = state.session.canvas.margin().is_some();
    let fits = beside(ui.ctx(), state, if was { most } else { 0.0 }).is_some();
    let is = !toasts.is_empty() && state.dialog.is_none() && drawn && !fits;
    ui.data_mut(|d| d.insert_temp(key, is));
    if !is {
        return;
    }
    let frame = Frame::side_top_panel(ui.style()).inner_margin(Margin::symmetric(8, 3));
    Panel::bottom("toasts").frame(frame).show(ui, |ui| {
        // as high as its messages from the first frame on: a panel alone offers the height that it had before
        let rows = ScrollArea::vertical().max_height(most).min_scrolled_height(most).auto_shrink([false, true]);
        rows.show(ui, |ui| {
            toasts.into_iter().for_each(|(at, notice)| toast(ui, at, notice, actions));
        });
    });
}

/// Draws them beside the mask, or over a dialog, in the window's corner.
pub(in crate::app) fn show(ctx: &Context, state: &State, actions: &mut Actions) {
    let toasts = state.notices.toasts(MOST);
    if toasts.is_empty() || ctx.data(|d| d.get_temp(id("toasts in a bar"))).unwrap_or(false) {
        return;
    }
    let screen = ctx.content_rect();
    let corner = beside(ctx, state, 0.0).unwrap_or(screen.right_bottom() + Vec2::new(-10.0, -34.0));
    let area = Area::new(id("toasts")).order(Order::Foreground).pivot(Align2::RIGHT_BOTTOM).fixed_pos(corner);
    let room = (screen.width() - 40.0).min(WIDE);
    area.show(ctx, |ui| {
        ui.set_max_width(room);
        for (at, notice) in toasts {
            Frame::popup(ui.style()).show(ui, |ui| {
                ui.set_width(room - 20.0);
                toast(ui, at, notice, actions);
            });
        }
    });
}

/// One of them, over the width that there is.
fn toast(ui: &mut Ui, at: usize, notice: &Notice, actions: &mut Actions) {
    let colour = severity_colour(ui, notice.what.severity);
    // from the right, so that the buttons of all stand below each other
    ui.with_layout(Layout::right_to_left(Align::TOP), |ui| {
        let close = ui.small_button("×").on_hover_text(say(ui, "toast-dismiss.tip"));
        if close.accessible_name(say(ui, "toast-dismiss")).clicked() {
            actions.push(Action::Dismiss(at));
        }
        ui.with_layout(Layout::left_to_right(Align::TOP), |ui| {
            if notice.what.code != "done" {
                ui.label(RichText::new(severity_word(ui, notice.what.severity)).strong().color(colour));
            }
            ui.vertical(|ui| {
                refusal(ui, &notice.what);
                ui.add(egui::Label::new(&notice.what.message).wrap());
                if let Some(hint) = english_way_out(ui, &notice.what) {
                    ui.add(egui::Label::new(RichText::new(hint).weak()).wrap());
                }
            });
        });
    });
}
