//! The positions of the window's parts.
//!
//! Invariant: the canvas gets its share of the window before any panel gets more than its minimum, and never less than its own: panels
//! give way in one order (below the canvas, beside it, both in one, a drawer over it that is closed at first); a panel's wanted width is
//! remembered while a small window gives it less, and returns with the space. Must not know what the parts show.

use super::workspace::Workspace;
use egui::{Rect, Vec2, pos2};
use serde::{Deserialize, Serialize};

/// Share of the window that the canvas keeps.
pub(crate) const CANVAS: f32 = 0.455;
/// Height of the row of tools above the canvas, with its margins.
pub(crate) const TOOLS: f32 = 34.0;
/// Points of the mask that no bar or panel takes, in each direction, and the share of the window's height.
pub(crate) const LEAST_MASK: f32 = 200.0;
pub(crate) const LEAST_SHARE: f32 = 1.0 / 3.0;
/// The part of the window's width that a drawer takes.
const DRAWER: f32 = 0.7;
/// A panel is never narrower.
pub(crate) const LEAST: f32 = 190.0;
/// Where the window is too small for both, the canvas takes at most this much of its width.
const MOST: f32 = 0.6;

/// The smallest height of a panel below the canvas.
pub(crate) const LEAST_HEIGHT: f32 = 150.0;
/// Where the window is too small for both, a panel below the canvas takes at most this much of the height.
const MOST_BELOW: f32 = 0.42;

/// A panel next to the canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Layers,
    Page,
}

/// The position of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Dock {
    Left,
    Right,
    Below,
}

/// The positions of both panels. If both are on the same side, the layers are inside the page's panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Docks {
    pub layers: Dock,
    pub page: Dock,
}

impl Default for Docks {
    fn default() -> Self {
        Self { layers: Dock::Left, page: Dock::Right }
    }
}

impl Docks {
    /// The position of one.
    pub(crate) fn of(&self, part: Part) -> Dock {
        match part {
            Part::Layers => self.layers,
            Part::Page => self.page,
        }
    }

    /// Puts one somewhere.
    pub(crate) fn put(&mut self, part: Part, dock: Dock) {
        match part {
            Part::Layers => self.layers = dock,
            Part::Page => self.page = dock,
        }
    }

    /// Left and right change places.
    pub(crate) fn swap(&mut self) {
        for dock in [&mut self.layers, &mut self.page] {
            *dock = match *dock {
                Dock::Left => Dock::Right,
                Dock::Right => Dock::Left,
                Dock::Below => Dock::Below,
            };
        }
    }
}

/// Sizes that the user has given; None: as large as the workspace likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Widths {
    /// The layers.
    pub left: Option<f32>,
    /// The inspector next to the layers.
    pub inspector: Option<f32>,
    /// The page of another workspace.
    pub page: Option<f32>,
    /// Height of the panels below the canvas.
    pub below: Option<f32>,
}

impl Widths {
    /// Sets one: the width of a panel at a side, the height of one below.
    pub(crate) fn set(&mut self, workspace: Workspace, part: Part, dock: Dock, size: f32) {
        let which = match (part, dock) {
            (_, Dock::Below) => &mut self.below,
            (Part::Layers, _) => &mut self.left,
            (Part::Page, _) if workspace.has_layers() => &mut self.inspector,
            (Part::Page, _) => &mut self.page,
        };
        *which = Some(size);
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
    pub layers: Option<Rect>,
    /// The page.
    pub page: Option<Rect>,
    /// Tools and canvas.
    pub middle: Rect,
    /// Whether the layers have no separate panel and are inside the page's.
    pub merged: bool,
    /// Whether there is no room for a panel beside the mask.
    pub squeezed: bool,
    /// Whether the page lies over the mask.
    pub over: bool,
}

/// The inputs of the layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The space below the headline and above the status line.
    pub room: Rect,
    /// The whole window.
    pub window: Vec2,
    /// The smallest canvas, without the tools.
    pub least: Vec2,
    pub workspace: Workspace,
    /// Whether the user wants the layers and the page.
    pub shown: [bool; 2],
    pub widths: Widths,
    pub docks: Docks,
    /// Whether panels without room are to lie over the mask.
    pub drawer: bool,
}

impl Plan {
    /// The area that the canvas keeps.
    fn area(&self) -> f32 {
        CANVAS * self.window.x * self.window.y
    }

    /// The smallest height of the panels below the canvas, if there are any.
    fn least_below(&self) -> f32 {
        LEAST_HEIGHT.min(MOST_BELOW * self.room.height())
    }

    /// Whether a panel is wanted, below the canvas.
    fn is_below(&self, part: Part) -> bool {
        let wanted = match part {
            Part::Layers => self.shown[0] && self.workspace.has_layers(),
            Part::Page => self.shown[1],
        };
        wanted && self.dock(part) == Dock::Below
    }

    /// Where a panel is: below the canvas only if that keeps its least height.
    pub(crate) fn dock(&self, part: Part) -> Dock {
        let high = self.room.height() - TOOLS - self.least_below() >= self.least.y;
        match (self.docks.of(part), part) {
            (Dock::Below, Part::Layers) if !high => Dock::Left,
            (Dock::Below, Part::Page) if !high => Dock::Right,
            (dock, _) => dock,
        }
    }

    /// Points of width that the panels at the sides may take together.
    fn budget(&self) -> f32 {
        let below = self.is_below(Part::Layers) || self.is_below(Part::Page);
        let height = self.room.height() - TOOLS - if below { self.least_below() } else { 0.0 };
        let wide = self.room.width();
        // next to a canvas with reduced height, a panel has its minimum
        let most = if below { (wide - LEAST).max(MOST * wide) } else { MOST * wide };
        let canvas = (self.area() / height.max(1.0)).min(most).max(self.least.x);
        (self.room.width() - canvas).max(0.0)
    }

    /// The largest height of the panels below a canvas of this width.
    fn height(&self, width: f32) -> f32 {
        let free = self.room.height() - TOOLS - (self.area() / width.max(1.0)).max(self.least.y);
        free.max(self.least_below())
    }

    /// The largest that a panel may be drawn: its width at a side, its height below.
    pub(crate) fn most(&self, part: Part) -> f32 {
        let places = self.places();
        if self.dock(part) == Dock::Below {
            return self.height(places.middle.width());
        }
        let (other, dock) = match part {
            Part::Layers => (places.page, self.dock(Part::Page)),
            Part::Page => (places.layers, self.dock(Part::Layers)),
        };
        self.budget() - other.filter(|_| dock != Dock::Below).map_or(0.0, |r| r.width())
    }

    /// The positions of all parts.
    pub(crate) fn places(&self) -> Places {
        let budget = self.budget();
        let wants_layers = self.shown[0] && self.workspace.has_layers();
        let wants_page = self.shown[1];
        let [below_layers, below_page] = [self.is_below(Part::Layers), self.is_below(Part::Page)];
        let [side_layers, side_page] = [wants_layers && !below_layers, wants_page && !below_page];
        let [dock_layers, dock_page] = [self.dock(Part::Layers), self.dock(Part::Page)];
        let together = side_layers && side_page && dock_layers == dock_page;
        let crowded = side_layers && (side_page && budget < 2.0 * LEAST || budget < LEAST);
        let merged = together || crowded;
        let [layers, page] = self.widths.of(self.workspace, self.window.x);
        let (has_layers, has_page) = (side_layers && !merged, side_page && budget >= LEAST);
        let (layers, page) = match (has_layers, has_page) {
            (true, true) => {
                // both shrink alike, neither below its least
                let (spare, over) = ((layers - LEAST).max(0.0), (page - LEAST).max(0.0));
                let room = (budget - 2.0 * LEAST).max(0.0);
                let share = (room / (spare + over).max(1e-3)).min(1.0);
                (LEAST + spare * share, LEAST + over * share)
            }
            (true, false) => (layers.clamp(LEAST, budget.max(LEAST)), 0.0),
            (false, true) => (0.0, page.clamp(LEAST, budget)),
            (false, false) => (0.0, 0.0),
        };
        let at = |dock: Dock| {
            let of_layers = if dock_layers == dock { layers } else { 0.0 };
            let of_page = if dock_page == dock { page } else { 0.0 };
            (of_layers + of_page).round()
        };
        let (x0, x1) = (self.room.left() + at(Dock::Left), self.room.right() - at(Dock::Right));
        let mut middle = Rect::from_min_max(pos2(x0, self.room.top()), pos2(x1, self.room.bottom()));
        let side = |dock: Dock| {
            let x = if dock == Dock::Left { self.room.left()..=x0 } else { x1..=self.room.right() };
            Rect::from_x_y_ranges(x, self.room.y_range())
        };
        let mut layers = has_layers.then(|| side(dock_layers));
        let mut page = has_page.then(|| side(dock_page));
        if below_layers || below_page {
            let most = self.height(middle.width());
            let height = self.widths.below.unwrap_or(most.min(240.0)).clamp(self.least_below(), most);
            let strip = Rect::from_min_max(pos2(x0, (self.room.bottom() - height).round()), middle.max);
            middle.max.y = strip.top();
            let split = if below_layers && below_page {
                x0 + self.widths.left.unwrap_or(250.0).clamp(LEAST, (strip.width() / 2.0).max(LEAST))
            } else if below_layers {
                x1
            } else {
                x0
            };
            let between = |from: f32, to: f32| Rect::from_x_y_ranges(from..=to, strip.y_range());
            layers = layers.or(below_layers.then(|| between(x0, split)));
            page = page.or(below_page.then(|| between(split, x1)));
        }
        let squeezed = (side_layers || side_page) && !below_page && budget < LEAST;
        let over = squeezed && self.drawer;
        if over {
            page = Some(self.over(dock_page));
        }
        // the layers are inside the page's panel, at its position, and have a separate panel without a page
        let merged = (merged || over && side_layers) && page.is_some();
        Places { layers, page, middle, merged, squeezed, over }
    }

    /// The place of panels that lie over the canvas, below the tools.
    fn over(&self, dock: Dock) -> Rect {
        let width = (DRAWER * self.room.width()).max(LEAST).min(self.room.width());
        let x = match dock {
            Dock::Left => self.room.left()..=self.room.left() + width,
            _ => self.room.right() - width..=self.room.right(),
        };
        Rect::from_x_y_ranges(x, self.room.top() + TOOLS..=self.room.bottom())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::vec2;

    /// Heights of the bars around the room.
    const BARS: f32 = 122.0;
    /// Rulers and the line below.
    const AROUND: Vec2 = vec2(74.0, 54.0);

    fn plan(window: Vec2, workspace: Workspace, widths: Widths) -> Plan {
        let room = Rect::from_min_max(pos2(0.0, 98.0), pos2(window.x, window.y - (BARS - 98.0)));
        let least = vec2(LEAST_MASK, LEAST_MASK.max(window.y * LEAST_SHARE)) + AROUND;
        let docks = Docks::default();
        Plan { room, window, least, workspace, shown: [true, true], widths, docks, drawer: false }
    }

    #[test]
    fn no_panel_takes_the_least_of_the_mask_and_each_is_in_reach() {
        let greedy = Widths { left: Some(900.0), inspector: Some(900.0), page: Some(1900.0), below: Some(900.0) };
        let docks = [Dock::Left, Dock::Right, Dock::Below];
        let sizes = [
            (240.0, 300.0),
            (320.0, 420.0),
            (427.0, 400.0),
            (467.0, 420.0),
            (500.0, 900.0),
            (640.0, 500.0),
            (800.0, 480.0),
        ];
        for (width, height) in sizes {
            for (layers, page) in docks.into_iter().flat_map(|a| docks.map(|b| (a, b))) {
                for (workspace, widths) in
                    Workspace::ALL.into_iter().flat_map(|w| [(w, Widths::default()), (w, greedy)])
                {
                    let mut plan = plan(vec2(width, height), workspace, widths);
                    plan.docks = Docks { layers, page };
                    let closed = plan.places();
                    plan.drawer = true;
                    let open = plan.places();
                    let reported =
                        format!("{workspace:?} at {width}x{height}, {layers:?} {page:?}: {closed:?} {open:?}");
                    let left = closed.middle.size() - vec2(0.0, TOOLS);
                    let free = plan.room.size() - vec2(0.0, TOOLS);
                    assert!(
                        left.x > plan.least.x.min(free.x) - 1.0 && left.y > plan.least.y.min(free.y) - 1.0,
                        "{reported}"
                    );
                    // a page and the layers are there, or one button away
                    assert!(open.page.is_some_and(|page| plan.room.contains_rect(page)), "{reported}");
                    assert!(open.layers.is_some() || open.merged || !workspace.has_layers(), "{reported}");
                    assert!(closed.page.is_some() || closed.squeezed, "{reported}");
                    assert!(open.over == closed.squeezed && open.middle == closed.middle, "{reported}");
                }
            }
        }
    }

    #[test]
    fn the_canvas_keeps_its_share_in_every_workspace_whatever_the_panels_want() {
        let greedy = Widths { left: Some(900.0), inspector: Some(900.0), page: Some(1900.0), below: Some(900.0) };
        for window in [vec2(1280.0, 720.0), vec2(1600.0, 1000.0), vec2(1920.0, 1080.0)] {
            for workspace in Workspace::ALL {
                for widths in [Widths::default(), greedy] {
                    let places = plan(window, workspace, widths).places();
                    let canvas = places.middle.width() * (places.middle.height() - TOOLS);
                    let share = canvas / (window.x * window.y);
                    assert!(share >= 0.45, "{workspace:?} at {window}: {share}");
                    assert!(places.page.is_some() && places.layers.is_some() == workspace.has_layers());
                }
            }
        }
    }

    #[test]
    fn a_small_window_has_one_panel_and_the_wanted_width_comes_back() {
        let widths = Widths { left: Some(320.0), inspector: Some(300.0), ..Widths::default() };
        let large = plan(vec2(1600.0, 1000.0), Workspace::Design, widths).places();
        let width = |rect: Option<Rect>| rect.map_or(0.0, |r| r.width());
        assert_eq!((width(large.layers), width(large.page)), (320.0, 300.0));
        for small in [vec2(900.0, 600.0), vec2(760.0, 480.0), vec2(500.0, 400.0)] {
            let places = plan(small, Workspace::Design, widths).places();
            assert!(places.merged == places.layers.is_none());
            assert!(places.page.is_some_and(|r| r.width() >= LEAST), "{small}");
            assert!(places.middle.width() >= small.x * 0.4, "{small}: {places:?}");
            assert!(places.middle.intersect(places.page.unwrap()).width() <= 0.5);
        }
        assert_eq!(plan(vec2(1600.0, 1000.0), Workspace::Design, widths).places(), large);
    }

    #[test]
    fn swapped_sides_are_a_mirror_of_the_same_widths() {
        let widths = Widths { left: Some(220.0), inspector: Some(300.0), ..Widths::default() };
        let mut plan = plan(vec2(1600.0, 1000.0), Workspace::Design, widths);
        let usual = plan.places();
        plan.docks.swap();
        let swapped = plan.places();
        let width = |rect: Option<Rect>| rect.map_or(0.0, |r| r.width());
        assert_eq!((width(swapped.layers), width(swapped.page)), (width(usual.layers), width(usual.page)));
        assert_eq!(swapped.middle.size(), usual.middle.size());
        assert_eq!(swapped.page.map(|r| r.left()), Some(plan.room.left()));
        assert_eq!(swapped.layers.map(|r| r.right()), Some(plan.room.right()));
    }

    #[test]
    fn wherever_panels_are_docked_they_do_not_overlap_and_the_canvas_keeps_its_share() {
        let greedy = Widths { left: Some(900.0), inspector: Some(900.0), page: Some(1900.0), below: Some(900.0) };
        let docks = [Dock::Left, Dock::Right, Dock::Below];
        for window in [vec2(1280.0, 720.0), vec2(1600.0, 1000.0), vec2(900.0, 600.0), vec2(640.0, 420.0)] {
            for (layers, page) in docks.into_iter().flat_map(|a| docks.map(|b| (a, b))) {
                for (workspace, widths) in
                    Workspace::ALL.into_iter().flat_map(|w| [(w, Widths::default()), (w, greedy)])
                {
                    let mut plan = plan(window, workspace, widths);
                    plan.docks = Docks { layers, page };
                    let places = plan.places();
                    let reported = format!("{workspace:?} at {window}, {layers:?} {page:?}: {places:?}");
                    assert!(places.page.is_some(), "{reported}");
                    assert!(places.merged || places.layers.is_some() == workspace.has_layers(), "{reported}");
                    let parts: Vec<Rect> =
                        [places.layers, places.page, Some(places.middle)].into_iter().flatten().collect();
                    for (at, one) in parts.iter().enumerate() {
                        assert!(
                            one.width() > 150.0 && one.height() > 90.0 && plan.room.contains_rect(*one),
                            "{reported}"
                        );
                        let other = |r: &&Rect| one.intersect(**r).size().min_elem() > 0.5;
                        assert!(!parts[at + 1..].iter().any(|r| other(&r)), "{reported}");
                    }
                    let covered: f32 = parts.iter().map(|r| r.area()).sum();
                    assert!((covered - plan.room.area()).abs() < 2000.0, "{reported}");
                    if window.x >= 1280.0 {
                        let canvas = places.middle.width() * (places.middle.height() - TOOLS);
                        assert!(canvas / (window.x * window.y) >= 0.45, "{reported}");
                    }
                }
            }
        }
    }

    #[test]
    fn at_the_same_side_the_layers_stand_in_the_panel_of_the_page() {
        let mut plan = plan(vec2(1600.0, 1000.0), Workspace::Design, Widths::default());
        plan.docks = Docks { layers: Dock::Right, page: Dock::Right };
        let places = plan.places();
        assert!(places.merged && places.layers.is_none() && places.page.is_some());
        // without the page they have a separate panel
        plan.shown = [true, false];
        let places = plan.places();
        assert!(!places.merged && places.layers.is_some_and(|r| r.right() == plan.room.right()));
    }

    #[test]
    fn what_is_hidden_gives_its_room_to_the_canvas() {
        let mut plan = plan(vec2(1280.0, 720.0), Workspace::Design, Widths::default());
        plan.shown = [false, false];
        assert_eq!(plan.places().middle, plan.room);
        plan.shown = [true, false];
        assert!(plan.places().layers.is_some() && plan.places().page.is_none());
        assert!(plan.most(Part::Layers) > 400.0);
    }
}
