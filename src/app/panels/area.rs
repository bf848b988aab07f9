//! The figures of a selected area, over the canvas.
//!
//! Invariant: figures that are of an earlier state of the design are not shown. Must not know how they are counted.

use crate::app::action::{Action, Actions};
use crate::app::area::{Area as Selected, Mass};
use crate::app::command::Command;
use crate::app::state::State;
use crate::app::widgets::{grouped, id, percent};
use crate::base::words::bytes;
use egui::{Align2, Area, Frame, Order, Rect, RichText, Ui, Vec2};

/// Draws them in the lower left corner of the canvas.
pub(in crate::app) fn show(ui: &Ui, canvas: Rect, state: &State, actions: &mut Actions) {
    let Some(selected) = &state.focus.area else { return };
    let corner = canvas.left_bottom() + Vec2::new(70.0, -30.0);
    let area = Area::new(id("area")).order(Order::Middle).pivot(Align2::LEFT_BOTTOM).fixed_pos(corner);
    area.show(ui.ctx(), |ui| {
        Frame::popup(ui.style()).show(ui, |ui| {
            ui.set_max_width(300.0);
            ui.horizontal(|ui| {
                let [q, kv] = selected.region.place;
                let within = if selected.region.is_rectangle() { "" } else { "within " };
                ui.label(RichText::new(format!("{within}q {}..{}, kv {}..{}", q[0], q[1], kv[0], kv[1])).strong());
                let close = ui.small_button("×").on_hover_text("Forgets the area.").accessible_name("Forget the area");
                if close.clicked() {
                    actions.push(Action::ForgetArea);
                }
            });
            match selected.figures.as_ref().filter(|figures| figures.of == state.area_of()) {
                Some(_) => figures(ui, selected, state),
                None => drop(ui.weak("counting…")),
            }
            ui.horizontal(|ui| {
                for (name, command) in [("Keep these", Command::KeepArea), ("Remove these", Command::DropArea)] {
                    if ui.button(name).on_hover_text(command.tooltip(ui.ctx())).clicked() {
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
    ui.label(format!("keeps {about}{} of its cells", percent(found.kept)));
    if let Some(mass) = &found.mass {
        let words = format!(
            "holds {} of its queries' attention, of which {} is dropped",
            percent(mass.all),
            percent(dropped(mass))
        );
        ui.label(words).on_hover_text(format!(
            "The probability without the mask, by {}; the mean over the queries of the area.",
            mass.source
        ));
    }
    let Some(blocks) = &found.blocks else {
        ui.weak("More blocks than are counted one by one: select less.");
        return;
    };
    let size = state.document.settings.block_size;
    ui.label(format!(
        "blocks of {size}: {} full, {} partial, {} skipped",
        grouped(blocks.full as u128),
        grouped(blocks.partial as u128),
        grouped(blocks.empty as u128)
    ));
    ui.label(format!("waste: {} of the computed cells are dropped", percent(blocks.waste)));
    ui.label(format!("keys and values read: {} a head", bytes(blocks.bytes as u64))).on_hover_text(
        "Each computed block reads its keys and values once; a kernel may find some of them in its cache.",
    );
}

/// The share of an area's attention that the mask drops.
fn dropped(mass: &Mass) -> f64 {
    if mass.all > 0.0 { mass.lost / mass.all } else { 0.0 }
}
