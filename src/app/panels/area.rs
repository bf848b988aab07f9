//! The figures of a selected area, over the canvas.
//!
//! Invariant: figures that are of an earlier state of the design are not shown; the area itself is not covered where there is free
//! space beside it. Must not know how they are counted.

use super::beside::{self, First};
use crate::app::action::{Action, Actions};
use crate::app::area::{Area as Selected, Mass};
use crate::app::command::Command;
use crate::app::language::{say, say_with};
use crate::app::state::State;
use crate::app::widgets::{grouped, id, percent};
use crate::base::words::bytes;
use egui::{Area, Frame, Order, Rect, RichText, Ui, Vec2};

/// A size before it was drawn once.
const FIRST: Vec2 = Vec2::new(280.0, 150.0);

/// The places on the screen that the selected area takes.
pub(super) fn parts(state: &State) -> Vec<Rect> {
    let parts = state.focus.area.iter().flat_map(|selected| selected.region.parts.iter());
    parts.filter_map(|part| state.session.canvas.on_screen(*part)).collect()
}

/// Draws them in a corner of the canvas, the lower left one if it is free. `listed`: what else floats there.
pub(in crate::app) fn show(ui: &Ui, canvas: Rect, listed: Option<Rect>, state: &State, actions: &mut Actions) {
    let Some(selected) = &state.focus.area else { return };
    let room = Rect::from_min_max(canvas.min + Vec2::new(70.0, 76.0), canvas.max - Vec2::new(14.0, 30.0));
    let memory = id("area-size");
    let size = ui.data(|d| d.get_temp::<Vec2>(memory)).unwrap_or(FIRST);
    let mut taken = parts(state);
    taken.extend(listed);
    let at = beside::place(room, size, First::LowerLeft, &taken);
    let area = Area::new(id("area")).order(Order::Middle).fixed_pos(at);
    // the next corner of an outline may lie below it
    let area = area.interactable(!state.session.canvas.drawing());
    let shown = area.show(ui.ctx(), |ui| {
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
    // it was placed by the size of the frame before
    let now = shown.response.rect.size();
    if now != size {
        ui.data_mut(|d| d.insert_temp(memory, now));
        ui.ctx().request_repaint();
    }
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
