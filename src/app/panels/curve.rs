//! A distance curve, drawn with the mouse.
//!
//! Invariant: the points rise in distance and are finite, whatever is drawn. Must not know score mods.

use crate::app::theme::palette;
use crate::document::model::Axes;
use egui::{Id, Ui};
use egui_plot::{Line, Plot, PlotPoint, PlotPoints, Points};

/// Distances that a freehand stroke tells apart, over the whole width.
const STEPS: f64 = 96.0;
/// How near a point the pointer takes it, in screen points.
const NEAR: f32 = 9.0;

type Curve = Vec<(f64, f64)>;

/// What the pointer does with the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drag {
    /// Moves the point with this index.
    Point(usize),
    /// Draws freehand; where it was last.
    Free(f64, f64),
}

/// Draws it. Gives the new points when they changed.
pub(super) fn show(ui: &mut Ui, id: u64, points: &[(f64, f64)], axes: &Axes) -> Option<Curve> {
    let mut new: Option<Curve> = None;
    let reach = (axes.q.len().max(axes.kv().len()) as f64).max(2.0);
    let (lo, hi) = bounds(points, reach);
    let colours = palette(ui.visuals());
    let memory = Id::unique(("curve", id));
    let plot = Plot::new(("curve plot", id)).height(170.0).allow_drag(false).allow_zoom(false).allow_scroll(false);
    let plot = plot.allow_boxed_zoom(false).allow_double_click_reset(false).allow_axis_zoom_drag(false);
    let plot = plot
        .sense(egui::Sense::click_and_drag())
        .default_x_bounds(lo, hi)
        .x_axis_label("distance")
        .y_axis_label("bias");
    let owned = points.to_vec();
    let response = plot.show(ui, |plot| {
        let line = PlotPoints::from_iter(extended(&owned, lo, hi).into_iter().map(|p| [p.0, p.1]));
        plot.line(Line::new("bias", line).color(colours.accent).width(2.0));
        let dots = PlotPoints::from_iter(owned.iter().map(|p| [p.0, p.1]));
        plot.points(Points::new("points", dots).color(colours.accent).radius(4.0));
    });
    let (response, transform) = (response.response.accessible_name("Distance curve"), response.transform);
    let value = |at: egui::Pos2| transform.value_from_position(at);
    let near = |at: egui::Pos2| {
        let screen = |p: &(f64, f64)| transform.position_from_point(&PlotPoint::new(p.0, p.1));
        points.iter().position(|p| screen(p).distance(at) <= NEAR)
    };
    if let Some(at) = response.interact_pointer_pos() {
        if response.drag_started() {
            let origin = ui.input(|i| i.pointer.press_origin()).unwrap_or(at);
            let from = value(origin);
            let drag = near(origin).map_or(Drag::Free(from.x, from.y), Drag::Point);
            ui.data_mut(|d| d.insert_temp(memory, drag));
        }
        let to = value(at);
        match ui.data(|d| d.get_temp::<Drag>(memory)) {
            Some(Drag::Point(n)) if response.dragged() => new = Some(move_point(points, n, to.x, to.y)),
            Some(Drag::Free(x, y)) if response.dragged() && (x, y) != (to.x, to.y) => {
                new = Some(draw(points, (x, y), (to.x, to.y), (hi - lo) / STEPS));
                ui.data_mut(|d| d.insert_temp(memory, Drag::Free(to.x, to.y)));
            }
            _ => {}
        }
        if response.double_clicked() {
            new = near(at).filter(|_| points.len() > 1).map(|n| without(points, n));
        } else if response.clicked() && near(at).is_none() {
            new = Some(draw(points, (to.x, to.y), (to.x, to.y), 0.0));
        }
    }
    if response.drag_stopped() {
        ui.data_mut(|d| d.remove::<Drag>(memory));
    }
    response.on_hover_text_at_pointer("Drag draws, points can be moved, a double click on one removes it.");
    if let Some(typed) = table(ui, points) {
        new = Some(typed);
    }
    new.filter(|n| n != points && !n.is_empty())
}

/// From a little beyond the first point to a little beyond the last.
fn bounds(points: &[(f64, f64)], reach: f64) -> (f64, f64) {
    let first = points.first().map_or(0.0, |p| p.0).min(0.0);
    let last = points.last().map_or(reach, |p| p.0).max(first + 1.0);
    let margin = (last - first) * 0.15;
    (first - margin, last + margin)
}

/// With the constant ends that the curve has beyond its points.
fn extended(points: &[(f64, f64)], lo: f64, hi: f64) -> Curve {
    let mut out = Vec::with_capacity(points.len() + 2);
    out.extend(points.first().map(|p| (lo.min(p.0), p.1)));
    out.extend_from_slice(points);
    out.extend(points.last().map(|p| (hi.max(p.0), p.1)));
    out
}

/// A point moved, kept between its neighbours.
fn move_point(points: &[(f64, f64)], n: usize, x: f64, y: f64) -> Curve {
    let mut out = points.to_vec();
    let Some(point) = out.get_mut(n) else { return out };
    let below = n.checked_sub(1).and_then(|m| points.get(m)).map_or(f64::NEG_INFINITY, |p| p.0 + 1.0);
    let above = points.get(n + 1).map_or(f64::INFINITY, |p| p.0 - 1.0);
    let x = x.round();
    *point = (if below <= above { x.clamp(below, above) } else { point.0 }, tidy(y));
    out
}

/// A stroke from one place to another: the points between are replaced by its end, no closer than `spacing`.
fn draw(points: &[(f64, f64)], from: (f64, f64), to: (f64, f64), spacing: f64) -> Curve {
    let at = (to.0.round(), tidy(to.1));
    let (lo, hi) = (from.0.min(at.0), from.0.max(at.0));
    let swept = |x: f64| (x > lo && x < hi) || (x - at.0).abs() < spacing.max(1.0);
    let mut out: Curve = points.iter().copied().filter(|p| !swept(p.0)).collect();
    let place = out.partition_point(|p| p.0 < at.0);
    out.insert(place, at);
    out
}

fn without(points: &[(f64, f64)], n: usize) -> Curve {
    let mut out = points.to_vec();
    out.remove(n);
    out
}

/// A bias of a few digits.
fn tidy(y: f64) -> f64 {
    (y * 1000.0).round() / 1000.0
}

/// The points as numbers, for those who do not draw.
fn table(ui: &mut Ui, points: &[(f64, f64)]) -> Option<Curve> {
    let mut new = None;
    ui.collapsing(format!("{} points", points.len()), |ui| {
        for (n, (x, y)) in points.iter().enumerate() {
            ui.horizontal(|ui| {
                let (mut distance, mut bias) = (*x, *y);
                let a = ui.add(egui::DragValue::new(&mut distance).speed(1.0));
                let b = ui.add(egui::DragValue::new(&mut bias).speed(0.02));
                let a = a.accessible_name(format!("Distance of point {}", n + 1)).changed();
                let b = b.accessible_name(format!("Bias of point {}", n + 1)).changed();
                if a || b {
                    new = Some(move_point(points, n, distance, bias));
                }
                let remove = ui.add_enabled(points.len() > 1, egui::Button::new("Remove").small());
                if remove.accessible_name(format!("Remove point {}", n + 1)).clicked() {
                    new = Some(without(points, n));
                }
            });
        }
        if ui.small_button("Add a point").clicked() {
            let (x, y) = points.last().copied().unwrap_or((0.0, 0.0));
            let mut more = points.to_vec();
            more.push((x + (x.abs() * 0.5).max(16.0).round(), y));
            new = Some(more);
        }
    });
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rises(points: &[(f64, f64)]) -> bool {
        points.iter().all(|p| p.0.is_finite() && p.1.is_finite()) && points.windows(2).all(|w| w[0].0 < w[1].0)
    }

    proptest! {
        #[test]
        fn whatever_is_drawn_rises(moves in prop::collection::vec((0usize..3, -300.0..900.0f64, -9.0..9.0f64), 1..60)) {
            let mut points = vec![(0.0, 0.0), (256.0, -2.0)];
            let mut last = (0.0, 0.0);
            for (kind, x, y) in moves {
                points = match kind {
                    0 => draw(&points, last, (x, y), 5.0),
                    1 => draw(&points, (x, y), (x, y), 0.0),
                    _ => move_point(&points, x.abs() as usize % points.len(), x, y),
                };
                last = (x, y);
                prop_assert!(rises(&points) && !points.is_empty(), "{points:?}");
            }
        }
    }

    #[test]
    fn a_stroke_replaces_what_it_sweeps() {
        let points = [(0.0, 0.0), (10.0, 5.0), (20.0, 5.0), (90.0, 1.0)];
        assert_eq!(draw(&points, (5.0, 0.0), (40.0, -1.0), 1.0), [(0.0, 0.0), (40.0, -1.0), (90.0, 1.0)]);
        assert_eq!(move_point(&points, 1, 500.0, 0.12345), [(0.0, 0.0), (19.0, 0.123), (20.0, 5.0), (90.0, 1.0)]);
    }
}
