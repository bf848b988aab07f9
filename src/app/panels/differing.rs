//! The cells in which the design differs from the compared mask, over the canvas: counts by region, and the first cells, each of which
//! leads to its place.
//!
//! Invariant: counts of an earlier state of the design are not shown. Must not know how they are counted.

use super::beside::{self, First};
use crate::app::action::{Action, Actions};
use crate::app::canvas::Picture;
use crate::app::language::{say, say_with, words as words_of};
use crate::app::state::State;
use crate::app::widgets::{grouped, id, percent};
use crate::tasks::comparing::Difference;
use egui::{Area, CollapsingHeader, Frame, Grid, Order, Rect, RichText, ScrollArea, Ui, Vec2};

/// Regions that are shown.
const REGIONS: usize = 6;

/// A size before it was drawn once.
const FIRST: Vec2 = Vec2::new(330.0, 240.0);

/// Draws them in a corner of the canvas, the upper right one below its own buttons if no selected area is there. Gives their place.
pub(in crate::app) fn show(ui: &Ui, canvas: Rect, state: &State, actions: &mut Actions) -> Option<Rect> {
    let other = state.session.compared.as_ref().filter(|_| state.focus.picture == Picture::Difference)?;
    let of = state.session.differing_of()?;
    let name = state.name_of(other);
    let room = Rect::from_min_max(canvas.min + Vec2::new(70.0, 76.0), canvas.max - Vec2::new(14.0, 30.0));
    let memory = id("differing-size");
    let size = ui.data(|d| d.get_temp::<Vec2>(memory)).unwrap_or(FIRST);
    let at = beside::place(room, size, First::UpperRight, &super::area::parts(state));
    let area = Area::new(id("differing")).order(Order::Middle).fixed_pos(at);
    let shown = area.show(ui.ctx(), |ui| {
        Frame::popup(ui.style()).show(ui, |ui| {
            ui.set_max_width(330.0);
            match state.session.differing.of(of) {
                Some(Ok(found)) => list(ui, found, &name, actions),
                Some(Err(why)) => drop(ui.add(
                    egui::Label::new(RichText::new(words_of(ui.ctx()).reported(&why.code, &why.message)).weak()).wrap(),
                )),
                None => drop(ui.weak(say_with(
                    ui,
                    "differ-counting",
                    &[("share", percent(state.session.differing.progress()).into())],
                ))),
            }
        });
    });
    // it was placed by the size of the frame before
    let now = shown.response.rect.size();
    if now != size {
        ui.data_mut(|d| d.insert_temp(memory, now));
        ui.ctx().request_repaint();
    }
    Some(shown.response.rect)
}

fn list(ui: &mut Ui, found: &Difference, name: &str, actions: &mut Actions) {
    let all = found.alone[0] + found.alone[1];
    if all == 0 {
        ui.label(say_with(ui, "differ-same", &[("name", name.into())]));
        return;
    }
    let share = percent(all as f64 / found.cells.max(1) as f64);
    let title = say_with(ui, "differ-cells", &[("n", grouped(u128::from(all)).into()), ("share", share.into())]);
    CollapsingHeader::new(RichText::new(title).strong()).id_salt("differing").default_open(true).show(ui, |ui| {
        if found.planes != [1, 1] {
            ui.weak(say_with(
                ui,
                "differ-planes",
                &[("batch", found.planes[0].into()), ("heads", found.planes[1].into())],
            ));
        }
        regions(ui, found, name);
        ui.separator();
        cells(ui, found, name, actions);
        let more = all.saturating_sub(found.first.len() as u64);
        if more > 0 {
            ui.weak(say_with(ui, "differ-more", &[("n", grouped(u128::from(more)).into())]));
        }
    });
}

fn regions(ui: &mut Ui, found: &Difference, name: &str) {
    Grid::new("differing regions").num_columns(4).striped(true).show(ui, |ui| {
        for title in ["differ-queries", "differ-keys", "differ-now", "differ-then"] {
            let title = ui.weak(say(ui, title));
            drop(title.on_hover_text(say_with(ui, "differ-tip", &[("name", name.into())])));
        }
        ui.end_row();
        for region in found.regions.iter().take(REGIONS) {
            ui.label(&region.queries);
            ui.label(&region.keys);
            region.alone.iter().for_each(|n| drop(ui.label(grouped(u128::from(*n)))));
            ui.end_row();
        }
    });
    if found.regions.len() > REGIONS {
        ui.weak(say_with(ui, "differ-regions", &[("n", (found.regions.len() - REGIONS).into())]));
    }
}

/// The first cells; a click shows one on the canvas.
fn cells(ui: &mut Ui, found: &Difference, name: &str, actions: &mut Actions) {
    ScrollArea::vertical().id_salt("differing cells").max_height(110.0).show(ui, |ui| {
        for ([b, h, q, kv], now) in &found.first {
            let mut place = say_with(ui, "differ-place", &[("q", (*q).into()), ("kv", (*kv).into())]);
            if found.planes[1] > 1 {
                place = say_with(ui, "differ-head", &[("h", (*h).into()), ("place", place.into())]);
            }
            if found.planes[0] > 1 {
                place = say_with(ui, "differ-batch", &[("b", (*b).into()), ("place", place.into())]);
            }
            ui.horizontal(|ui| {
                let link = ui.link(place).on_hover_text(say(ui, "differ-shows"));
                if link.clicked() {
                    if found.planes != [1, 1] {
                        actions.push(Action::SetHead { b: *b, h: *h });
                    }
                    actions.push(Action::Pin([*q, *kv]));
                    actions.push(Action::GoTo([*q, *kv]));
                }
                ui.weak(match now {
                    true => say(ui, "legend-now").into(),
                    false => say_with(ui, "legend-only", &[("name", name.into())]),
                });
            });
        }
    });
}
