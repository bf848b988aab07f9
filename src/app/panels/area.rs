//! The figures of a selected area, over the canvas.
//!
//! Invariant: figures that are of an earlier state of the design are not shown. Must not know how they are counted.

use crate::app::action::{Action, Actions};
use crate::app::area::{Area as Selected, Mass};
use crate::app::command::Command;
use crate::app::language::{say, say_with};
use crate::app::state::State;
use crate::app::widgets::{grouped, id, percent};
use crate::base::words::bytes;
use egui::{Align2, Area, Frame, Order, Rect, RichText, Ui, Vec2};

/// Draws them in the lower left corner of the canvas.
pub(in crate::app) fn show(ui: &Ui, canvas: Rect, state: &State, actions: &mut Actions) {
    let Some(selected) = &state.focus.area else { return };
    let corner = canvas.left_bottom() + Vec2::new(70.0, -30.0);
    let area = Area::new(id("area")).order(Order::Middle).pivot(Align2::LEFT_BOTTOM).fixed_pos(corner);
    // the next corner of an outline may lie below it
    let area = area.interactable(!state.session.canvas.drawing());
    area.show(ui.ctx(), |ui| {
        Frame::popup(ui.style()).show(ui, |ui| {
            ui.set_max_width(300.0);
            ui.horizontal(|ui| {
                let [q, kv] = selected.region.place;
                let place = format!("q {}..{}, kv {}..{}", q[0], q[1], kv[0], kv[1]);
                let place = match selected.region.is_rectangle() {
                    true => place,
                    false => say_with(ui, "area-within", &[("place", place.into())]),
                };
                ui.label(RichText::new(place).strong());
                let close = ui.small_button("×").on_hover_text(say(ui, "area-forget.tip"));
                if close.accessible_name(say(ui, "area-forget")).clicked() {
                    actions.push(Action::ForgetArea);
                }
            });
            match selected.figures.as_ref().filter(|figures| figures.of == state.area_of()) {
                Some(_) => figures(ui, selected, state),
                None => drop(ui.weak(say(ui, "card-kept-counting"))),
            }
            ui.horizontal(|ui| {
                for (name, command) in [("area-keep", Command::KeepArea), ("area-drop", Command::DropArea)] {
                    if ui.button(say(ui, name)).on_hover_text(command.tooltip(ui.ctx())).clicked() {
                        actions.command(command);
                    }
                }
            });
        });
    });
}

fn figures(ui: &mut Ui, selected: &Selected, state: &State) {
    let Some(found) = &selected.figures else { return };
    let about = if found.exact { "" } else { "\u{2248} " };
    let share = format!("{about}{}", percent(found.kept));
    ui.label(say_with(ui, "area-kept", &[("share", share.into())]));
    if let Some(mass) = &found.mass {
        let figures = [("share", percent(mass.all).into()), ("dropped", percent(dropped(mass)).into())];
        let source = mass.source.to_string();
        ui.label(say_with(ui, "area-mass", &figures)).on_hover_text(say_with(
            ui,
            "area-mass-tip",
            &[("source", source.into())],
        ));
    }
    let Some(blocks) = &found.blocks else {
        ui.weak(say(ui, "area-too-many"));
        return;
    };
    let size = state.document.settings.block_size;
    let kinds = [
        ("size", size.to_string().into()),
        ("full", grouped(blocks.full as u128).into()),
        ("partial", grouped(blocks.partial as u128).into()),
        ("empty", grouped(blocks.empty as u128).into()),
    ];
    ui.label(say_with(ui, "area-blocks", &kinds));
    ui.label(say_with(ui, "area-waste", &[("share", percent(blocks.waste).into())]));
    let read = say_with(ui, "area-bytes", &[("bytes", bytes(blocks.bytes as u64).into())]);
    ui.label(read).on_hover_text(say(ui, "area-bytes-tip"));
}

/// The share of an area's attention that the mask drops.
fn dropped(mass: &Mass) -> f64 {
    if mass.all > 0.0 { mass.lost / mass.all } else { 0.0 }
}
