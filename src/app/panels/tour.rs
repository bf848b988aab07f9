//! The bar of the tour: what is shown, how far it is, pause and stop. Any other click ends the tour.
//!
//! Invariant: while it plays, the window below takes no pointer. Must not know what the steps do.

use crate::app::action::{Action, Actions};
use crate::app::language::{say, say_with};
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::tour::{LENGTH, STEPS};
use crate::app::widgets::id;
use egui::{Align2, Area, Context, Frame, Order, ProgressBar, RichText, Sense, Vec2, pos2};

/// The widest that its text is, in points.
const WIDE: f32 = 430.0;

/// Draws it, if the tour plays.
pub(in crate::app) fn show(ctx: &Context, state: &State, actions: &mut Actions) {
    let Some(tour) = &state.tour else { return };
    let screen = ctx.content_rect();
    let shield = Area::new(id("tour shield"))
        .order(Order::Foreground)
        .fixed_pos(screen.min)
        .show(ctx, |ui| ui.allocate_rect(screen, Sense::click_and_drag()));
    if shield.inner.clicked() || shield.inner.drag_started() || shield.inner.secondary_clicked() {
        actions.push(Action::EndTour);
    }
    // the figures of an area stand on the other side
    let at = pos2(screen.right() - 12.0, screen.bottom() - 40.0);
    let bar = Area::new(id("tour")).order(Order::Tooltip).pivot(Align2::RIGHT_BOTTOM).fixed_pos(at);
    bar.show(ctx, |ui| {
        Frame::popup(ui.style()).stroke((1.5, palette(ui.visuals()).accent)).show(ui, |ui| {
            let wide = (screen.width() - 60.0).min(WIDE);
            ui.set_width(wide);
            let step = tour.step();
            ui.add(egui::Label::new(RichText::new(say(ui, STEPS[step].id)).size(15.0)).wrap());
            ui.horizontal(|ui| {
                let share = (tour.played / LENGTH) as f32;
                ui.add(ProgressBar::new(share).desired_width((wide - 200.0).max(60.0)).desired_height(8.0));
                ui.weak(say_with(ui, "tour-step", &[("n", (step + 1).into()), ("all", STEPS.len().into())]));
                let pause = say(ui, if tour.paused { "tour-go-on" } else { "tour-pause" });
                if ui.add(egui::Button::new(pause).min_size(Vec2::new(58.0, 0.0))).clicked() {
                    actions.push(Action::PauseTour);
                }
                let stop = ui.button(say(ui, "tour-stop")).on_hover_text(say(ui, "tour-stop.tip"));
                if stop.accessible_name(say(ui, "tour-stop-name")).clicked() {
                    actions.push(Action::EndTour);
                }
            });
        });
    });
}
