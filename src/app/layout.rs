//! Where the parts of the window lie.
//!
//! Invariant: the canvas has its share of the window before any panel has more than its least; a panel's wanted width is
//! kept while a small window gives it less, and comes back with the room. Must not know what the parts show.

use super::workspace::Workspace;
use egui::{Rect, Vec2, pos2};
use serde::{Deserialize, Serialize};

/// Share of the window that the canvas keeps.
pub(crate) const CANVAS: f32 = 0.455;
/// Height of the row of tools above the canvas, with its margins.
pub(crate) const TOOLS: f32 = 34.0;
/// A panel is never narrower.
pub(crate) const LEAST: f32 = 190.0;
/// Where the window is too small for both, the canvas takes at most this much of its width.
const MOST: f32 = 0.6;

/// A side of the canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Widths that the user has given; None: as wide as the workspace likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Widths {
    pub left: Option<f32>,
    /// The inspector beside the layers.
    pub inspector: Option<f32>,
    /// The page of another workspace.
    pub page: Option<f32>,
}

impl Widths {
    /// Sets one.
    pub fn set(&mut self, workspace: Workspace, side: Side, width: f32) {
        let which = match side {
            Side::Left => &mut self.left,
            Side::Right if workspace.has_layers() => &mut self.inspector,
            Side::Right => &mut self.page,
        };
        *which = Some(width);
    }

    fn of(&self, workspace: Workspace, window: f32) -> [f32; 2] {
        let right = if workspace.has_layers() { self.inspector } else { self.page };
        [self.left.unwrap_or(250.0), right.unwrap_or_else(|| workspace.side(window))]
    }
}

/// The parts below the headline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Places {
    /// The layers.
    pub left: Option<Rect>,
    /// The page.
    pub right: Option<Rect>,
    /// Tools and canvas.
    pub middle: Rect,
    /// Whether the layers have no panel of their own and stand in the right one.
    pub merged: bool,
}

/// What decides where the parts lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// What is left below the headline and above the status line.
    pub room: Rect,
    /// The whole window.
    pub window: Vec2,
    pub workspace: Workspace,
    /// Whether the user wants the left and the right panel.
    pub shown: [bool; 2],
    pub widths: Widths,
    /// The layers stand on the right and the page on the left.
    pub swapped: bool,
}

impl Plan {
    /// Points that both panels may take together.
    fn budget(&self) -> f32 {
        let height = (self.room.height() - TOOLS).max(1.0);
        let canvas = (CANVAS * self.window.x * self.window.y / height).min(MOST * self.room.width());
        (self.room.width() - canvas).max(0.0)
    }

    /// The widest that a panel may be drawn.
    pub fn most(&self, side: Side) -> f32 {
        let places = self.places();
        let other = match side {
            Side::Left => places.right,
            Side::Right => places.left,
        };
        self.budget() - other.map_or(0.0, |r| r.width())
    }

    /// Where everything lies.
    pub fn places(&self) -> Places {
        let budget = self.budget();
        let wants_left = self.shown[0] && self.workspace.has_layers();
        let merged = wants_left && (!self.shown[1] && budget < LEAST || self.shown[1] && budget < 2.0 * LEAST);
        let [left, right] = self.widths.of(self.workspace, self.window.x);
        let (has_left, has_right) = (wants_left && !merged, self.shown[1] && budget >= LEAST);
        let (left, right) = match (has_left, has_right) {
            (true, true) => {
                // both shrink alike, neither below its least
                let (spare, over) = ((left - LEAST).max(0.0), (right - LEAST).max(0.0));
                let room = (budget - 2.0 * LEAST).max(0.0);
                let share = (room / (spare + over).max(1e-3)).min(1.0);
                (LEAST + spare * share, LEAST + over * share)
            }
            (true, false) => (left.clamp(LEAST, budget.max(LEAST)), 0.0),
            (false, true) => (0.0, right.clamp(LEAST, budget)),
            (false, false) => (0.0, 0.0),
        };
        let (first, last) = if self.swapped { (right, left) } else { (left, right) };
        let (x0, x1) = (self.room.left() + first.round(), self.room.right() - last.round());
        let between =
            |from: f32, to: f32| Rect::from_min_max(pos2(from, self.room.top()), pos2(to, self.room.bottom()));
        let (before, behind) = (between(self.room.left(), x0), between(x1, self.room.right()));
        let (layers, page) = if self.swapped { (behind, before) } else { (before, behind) };
        Places { left: has_left.then_some(layers), right: has_right.then_some(page), middle: between(x0, x1), merged }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::vec2;

    /// Heights of the bars around the room.
    const BARS: f32 = 122.0;

    fn plan(window: Vec2, workspace: Workspace, widths: Widths) -> Plan {
        let room = Rect::from_min_max(pos2(0.0, 98.0), pos2(window.x, window.y - (BARS - 98.0)));
        Plan { room, window, workspace, shown: [true, true], widths, swapped: false }
    }

    #[test]
    fn the_canvas_keeps_its_share_in_every_workspace_whatever_the_panels_want() {
        let greedy = Widths { left: Some(900.0), inspector: Some(900.0), page: Some(1900.0) };
        for window in [vec2(1280.0, 720.0), vec2(1600.0, 1000.0), vec2(1920.0, 1080.0)] {
            for workspace in Workspace::ALL {
                for widths in [Widths::default(), greedy] {
                    let places = plan(window, workspace, widths).places();
                    let canvas = places.middle.width() * (places.middle.height() - TOOLS);
                    let share = canvas / (window.x * window.y);
                    assert!(share >= 0.45, "{workspace:?} at {window}: {share}");
                    assert!(places.right.is_some() && places.left.is_some() == workspace.has_layers());
                }
            }
        }
    }

    #[test]
    fn a_small_window_has_one_panel_and_the_wanted_width_comes_back() {
        let widths = Widths { left: Some(320.0), inspector: Some(300.0), page: None };
        let large = plan(vec2(1600.0, 1000.0), Workspace::Design, widths).places();
        let width = |rect: Option<Rect>| rect.map_or(0.0, |r| r.width());
        assert_eq!((width(large.left), width(large.right)), (320.0, 300.0));
        for small in [vec2(900.0, 600.0), vec2(760.0, 480.0), vec2(500.0, 400.0)] {
            let places = plan(small, Workspace::Design, widths).places();
            assert!(places.merged == places.left.is_none());
            assert!(places.right.is_some_and(|r| r.width() >= LEAST), "{small}");
            assert!(places.middle.width() >= small.x * 0.4, "{small}: {places:?}");
            assert!(places.middle.intersect(places.right.unwrap()).width() <= 0.5);
        }
        assert_eq!(plan(vec2(1600.0, 1000.0), Workspace::Design, widths).places(), large);
    }

    #[test]
    fn swapped_sides_are_a_mirror_of_the_same_widths() {
        let widths = Widths { left: Some(220.0), inspector: Some(300.0), page: None };
        let mut plan = plan(vec2(1600.0, 1000.0), Workspace::Design, widths);
        let usual = plan.places();
        plan.swapped = true;
        let swapped = plan.places();
        let width = |rect: Option<Rect>| rect.map_or(0.0, |r| r.width());
        assert_eq!((width(swapped.left), width(swapped.right)), (width(usual.left), width(usual.right)));
        assert_eq!(swapped.middle.size(), usual.middle.size());
        assert_eq!(swapped.right.map(|r| r.left()), Some(plan.room.left()));
        assert_eq!(swapped.left.map(|r| r.right()), Some(plan.room.right()));
    }

    #[test]
    fn what_is_hidden_gives_its_room_to_the_canvas() {
        let mut plan = plan(vec2(1280.0, 720.0), Workspace::Design, Widths::default());
        plan.shown = [false, false];
        assert_eq!(plan.places().middle, plan.room);
        plan.shown = [true, false];
        assert!(plan.places().left.is_some() && plan.places().right.is_none());
        assert!(plan.most(Side::Left) > 400.0);
    }
}
