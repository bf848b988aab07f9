//! A distance curve, drawn with the mouse.
//!
//! Invariant: the points ascend in distance and are finite for any drawing; while the pointer is down, the axes do not
//! move, and grow only when it is held beyond their edge. Must not know score mods.

use crate::app::fields::drag_of;
use crate::app::language::{say, say_with};
use crate::app::theme::palette;
use crate::document::model::Axes;
use egui::{Id, Ui};
use egui_plot::{Line, Plot, PlotBounds, PlotPoints, Points};

/// Number of distances that a freehand stroke resolves over the whole width.
const STEPS: f64 = 96.0;
/// Share of its length by which an axis grows in a second while the pointer is held beyond its edge.
const GROWTH: f64 = 0.4;
/// How near a point the pointer takes it, in screen points.
const NEAR: f32 = 9.0;

type Curve = Vec<(f64, f64)>;

/// The pointer's action on the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drag {
    /// Moves the point with this index.
    Point(usize),
    /// Draws freehand, with its last position.
    Free(f64, f64),
}

/// The ranges of the axes: distances, and biases.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shown {
    x: [f64; 2],
    y: [f64; 2],
}

/// A drag in work, and the axes it began with.
#[derive(Clone, Copy, Debug)]
struct Held {
    drag: Drag,
    shown: Shown,
    /// Seconds of the window's clock when the axes last grew.
    grown: f64,
}

/// Draws it. Gives the new points when they changed.
pub(super) fn show(ui: &mut Ui, id: u64, points: &[(f64, f64)], axes: &Axes) -> Option<Curve> {
    let mut new: Option<Curve> = None;
    let reach = (axes.q.len().max(axes.kv().len()) as f64).max(2.0);
    let memory = Id::unique(("curve", id));
    let mut held = ui.data(|d| d.get_temp::<Held>(memory));
    let shown = held.map_or_else(|| Shown::of(points, reach), |h| h.shown);
    let colours = palette(ui.visuals());
    let plot = Plot::new(("curve plot", id)).height(170.0).allow_drag(false).allow_zoom(false).allow_scroll(false);
    let plot = plot.allow_boxed_zoom(false).allow_double_click_reset(false).allow_axis_zoom_drag(false);
    let plot = plot
        .sense(egui::Sense::click_and_drag())
        .x_axis_label(say(ui, "curve-distance"))
        .y_axis_label(say(ui, "curve-bias"));
    let owned = points.to_vec();
    let response = plot.show(ui, |plot| {
        plot.set_plot_bounds(PlotBounds::from_min_max([shown.x[0], shown.y[0]], [shown.x[1], shown.y[1]]));
        let line = extended(&owned, shown.x[0], shown.x[1]);
        let line = PlotPoints::from_iter(line.into_iter().map(|p| [p.0, p.1]));
        plot.line(Line::new("bias", line).color(colours.accent).width(2.0));
        let dots = PlotPoints::from_iter(owned.iter().map(|p| [p.0, p.1]));
        plot.points(Points::new("points", dots).color(colours.accent).radius(4.0));
    });
    let (response, transform) = (response.response.accessible_name(say(ui, "curve-name")), response.transform);
    // the plot's own transform may lag a frame behind the bounds: ours does not
    let area = *transform.frame();
    let value = |at: egui::Pos2| shown.value(at, area);
    let near = |at: egui::Pos2| points.iter().position(|p| shown.screen(*p, area).distance(at) <= NEAR);
    if let Some(at) = response.interact_pointer_pos() {
        let now = ui.input(|i| i.time);
        if response.drag_started() {
            let origin = ui.input(|i| i.pointer.press_origin()).unwrap_or(at);
            let from = value(origin);
            let drag = near(origin).map_or(Drag::Free(from.0, from.1), Drag::Point);
            held = Some(Held { drag, shown, grown: now });
        }
        let to = shown.clamp(value(at));
        if let Some(held) = held.as_mut().filter(|_| response.dragged()) {
            new = held.moved(points, to);
            if held.shown.grow(value(at), now - held.grown) {
                ui.ctx().request_repaint();
            }
            held.grown = now;
        }
        if response.double_clicked() {
            new = near(at).filter(|_| points.len() > 1).map(|n| without(points, n));
        } else if response.clicked() && near(at).is_none() {
            new = Some(draw(points, to, to, 0.0));
        }
    }
    match held.filter(|_| !response.drag_stopped() && response.dragged()) {
        Some(held) => drop(ui.data_mut(|d| d.insert_temp(memory, held))),
        None => ui.data_mut(|d| d.remove::<Held>(memory)),
    }
    let pointer = response.interact_pointer_pos().filter(|_| response.dragged()).or(response.hover_pos());
    let at = pointer.map(|at| shown.clamp(value(at)));
    let told = |(x, y): (f64, f64)| [("x", format!("{x:.0}").into()), ("y", tidy(y).to_string().into())];
    let words = at.map_or(String::new(), |at| say_with(ui, "curve-at", &told(at)));
    ui.weak(if words.is_empty() { say(ui, "curve-drag").into() } else { words });
    response.on_hover_text_at_pointer(say(ui, "curve-drag-tip"));
    if let Some(typed) = table(ui, points) {
        new = Some(typed);
    }
    new.filter(|n| n != points && !n.is_empty())
}

impl Held {
    /// The points after the pointer has come to a place.
    fn moved(&mut self, points: &[(f64, f64)], to: (f64, f64)) -> Option<Curve> {
        match self.drag {
            Drag::Point(n) => Some(move_point(points, n, to.0, to.1)),
            Drag::Free(x, y) if (x, y) != to => {
                self.drag = Drag::Free(to.0, to.1);
                Some(draw(points, (x, y), to, (self.shown.x[1] - self.shown.x[0]) / STEPS))
            }
            Drag::Free(..) => None,
        }
    }
}

impl Shown {
    /// From a little beyond the first point to a little beyond the last; biases with room above and below.
    fn of(points: &[(f64, f64)], reach: f64) -> Shown {
        let first = points.first().map_or(0.0, |p| p.0).min(0.0);
        let last = points.last().map_or(reach, |p| p.0).max(first + 1.0);
        let (low, high) = points.iter().fold((0.0_f64, 0.0_f64), |(lo, hi), p| (lo.min(p.1), hi.max(p.1)));
        let (wide, tall) = ((last - first) * 0.15, ((high - low) * 0.25).max(0.25));
        Shown { x: [first - wide, last + wide], y: [low - tall, high + tall] }
    }

    /// The distance and bias at a place of the screen, also beyond the axes.
    fn value(&self, at: egui::Pos2, area: egui::Rect) -> (f64, f64) {
        let along = |share: f32, [lo, hi]: [f64; 2]| lo + f64::from(share) * (hi - lo);
        let x = (at.x - area.left()) / area.width().max(1.0);
        let y = (area.bottom() - at.y) / area.height().max(1.0);
        (along(x, self.x), along(y, self.y))
    }

    fn screen(&self, p: (f64, f64), area: egui::Rect) -> egui::Pos2 {
        let share = |v: f64, [lo, hi]: [f64; 2]| ((v - lo) / (hi - lo)) as f32;
        let (x, y) = (share(p.0, self.x), share(p.1, self.y));
        egui::pos2(area.left() + x * area.width(), area.bottom() - y * area.height())
    }

    /// The nearest place within the axes.
    fn clamp(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (x.clamp(self.x[0], self.x[1]), y.clamp(self.y[0], self.y[1]))
    }

    /// Moves the edges that the pointer is held beyond outwards, by a share of the axis a second. Whether any moved.
    fn grow(&mut self, (x, y): (f64, f64), seconds: f64) -> bool {
        let before = *self;
        let seconds = seconds.clamp(0.0, 0.1);
        for (v, [lo, hi]) in [(x, &mut self.x), (y, &mut self.y)] {
            let step = (*hi - *lo) * GROWTH * seconds;
            if v > *hi {
                *hi += step;
            } else if v < *lo {
                *lo -= step;
            }
        }
        *self != before
    }
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
    ui.collapsing(say_with(ui, "curve-points", &[("n", points.len().into())]), |ui| {
        for (n, (x, y)) in points.iter().enumerate() {
            ui.horizontal(|ui| {
                let (mut distance, mut bias) = (*x, *y);
                let a = ui.add(drag_of(&mut distance).speed(1.0));
                let b = ui.add(drag_of(&mut bias).speed(0.02));
                let name = |id: &str| say_with(ui, id, &[("n", (n + 1).into())]);
                let (distance_of, bias_of, removes) =
                    (name("curve-distance-of"), name("curve-bias-of"), name("curve-remove-name"));
                let a = a.accessible_name(distance_of).changed();
                let b = b.accessible_name(bias_of).changed();
                if a || b {
                    new = Some(move_point(points, n, distance, bias));
                }
                let remove = ui.add_enabled(points.len() > 1, egui::Button::new(say(ui, "curve-remove")).small());
                if remove.accessible_name(removes).clicked() {
                    new = Some(without(points, n));
                }
            });
        }
        if ui.small_button(say(ui, "curve-add")).clicked() {
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
        #![proptest_config(maskloom_testing::cases::kept_beside())]

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
    fn the_axes_hold_still_and_grow_gently_beyond_their_edge() {
        let area = egui::Rect::from_min_size(egui::pos2(10.0, 20.0), egui::vec2(200.0, 100.0));
        let mut points = vec![(0.0, 0.0), (256.0, -2.0)];
        let shown = Shown::of(&points, 1024.0);
        for p in &points {
            let back = shown.value(shown.screen(*p, area), area);
            assert!((back.0 - p.0).abs() < 1e-3 && (back.1 - p.1).abs() < 1e-5, "{back:?}");
        }
        // the end point is pulled far below the plot, for two seconds
        let mut held = Held { drag: Drag::Point(1), shown, grown: 0.0 };
        let pointer = egui::pos2(180.0, 900.0);
        for _ in 0..120 {
            let at = held.shown.value(pointer, area);
            let to = held.shown.clamp(at);
            points = held.moved(&points, to).expect("a point moves");
            held.shown.grow(at, 1.0 / 60.0);
        }
        assert!(points[1].1 < -2.5 && points[1].1 > -8.0, "{points:?}");
        // within the plot nothing moves but the point
        let still = held.shown;
        assert!(!held.shown.grow(held.shown.value(area.center(), area), 1.0) && held.shown == still);
    }

    #[test]
    fn a_stroke_replaces_what_it_sweeps() {
        let points = [(0.0, 0.0), (10.0, 5.0), (20.0, 5.0), (90.0, 1.0)];
        assert_eq!(draw(&points, (5.0, 0.0), (40.0, -1.0), 1.0), [(0.0, 0.0), (40.0, -1.0), (90.0, 1.0)]);
        assert_eq!(move_point(&points, 1, 500.0, 0.12345), [(0.0, 0.0), (19.0, 0.123), (20.0, 5.0), (90.0, 1.0)]);
    }
}
