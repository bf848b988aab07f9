//! The parts around the mask: bars above and below, panels beside, the row of tools.
//!
//! Invariant: the mask keeps its least size whatever the parts want; views only read. Must not know what the parts show.

use super::action::{Action, Actions};
use super::bars::Bar;
use super::canvas;
use super::frame::Workbench;
use super::layout::{self, Dock, Plan};
use super::state::State;
use super::tabs::Pages;
use super::{panels, picture, sharing, widgets};
use egui::{Area, CentralPanel, CursorIcon, Frame, Margin, Order, Panel, Rect, ScrollArea, Sense, Ui, UiBuilder, Vec2};
use egui::{pos2, vec2};

impl Workbench {
    pub(super) fn panels(&mut self, ui: &mut Ui) {
        let state = &mut self.state;
        if std::mem::take(&mut state.into_page) {
            panels::side::take_focus(ui.ctx());
        }
        match state.before_present.is_some() {
            true => (state.given_up.headline, state.given_up.status) = (true, true),
            false => self.bars(ui),
        }
        let (state, actions) = (&mut self.state, &mut self.actions);
        let (quality, parallel) = (&mut self.quality, &mut self.parallel);
        let fill = Frame::new().fill(ui.visuals().panel_fill);
        CentralPanel::default().frame(fill).show(ui, |ui| {
            let mut export = std::mem::take(&mut state.export);
            parts(ui, state, Pages { quality, export: &mut export, parallel }, actions);
            state.export = export;
        });
    }

    /// The bars that the window has room for.
    fn bars(&mut self, ui: &mut Ui) {
        let (state, actions, bars) = (&mut self.state, &mut self.actions, &mut self.bars);
        let bar = |ui: &Ui, y: i8| Frame::side_top_panel(ui.style()).inner_margin(Margin::symmetric(8, y));
        let frame = bar(ui, 5);
        Panel::top("top").frame(frame).show(ui, |ui| panels::top::show(ui, state, actions));
        let room = ui.available_height() - layout::TOOLS - least(ui.ctx().content_rect().size()).y;
        bars.fit(room, [state.outside.is_some(), !state.parked.is_empty(), true, true, state.first_steps]);
        (state.given_up.headline, state.given_up.status) = (!bars.has(Bar::Headline), !bars.has(Bar::Status));
        state.given_up.documents = !state.parked.is_empty() && !bars.has(Bar::Documents);
        if bars.has(Bar::Documents) {
            let frame = bar(ui, 3);
            let shown = Panel::top("documents").frame(frame).show(ui, |ui| panels::documents::show(ui, state, actions));
            bars.drawn(Bar::Documents, shown.response.rect.height());
        }
        if bars.has(Bar::Status) {
            let frame = bar(ui, 3);
            let shown = Panel::bottom("status").frame(frame).show(ui, |ui| panels::status::show(ui, state, actions));
            bars.drawn(Bar::Status, shown.response.rect.height());
        }
        if bars.has(Bar::Outside) {
            let frame = bar(ui, 5);
            let shown = Panel::top("outside").frame(frame).show(ui, |ui| panels::outside::show(ui, state, actions));
            bars.drawn(Bar::Outside, shown.response.rect.height());
        }
        if bars.has(Bar::Start) {
            let frame = Frame::side_top_panel(ui.style()).inner_margin(Margin { left: 8, right: 8, top: 6, bottom: 0 });
            let shown = Panel::top("start").frame(frame).show_separator_line(false).show(ui, |ui| {
                panels::start::show(ui, actions);
            });
            bars.drawn(Bar::Start, shown.response.rect.height());
        }
        if bars.has(Bar::Headline) {
            let (frame, high) = (bar(ui, 5), panels::headline::HEIGHT + 10.0);
            let shown = Panel::top("headline").frame(frame).exact_size(high).show(ui, |ui| {
                panels::headline::show(ui, state, actions);
            });
            bars.drawn(Bar::Headline, shown.response.rect.height());
        }
    }
}

/// Points that the mask keeps, with its rulers and the line below it.
fn least(window: Vec2) -> Vec2 {
    vec2(layout::LEAST_MASK, layout::LEAST_MASK.max(window.y * layout::LEAST_SHARE)) + canvas::AROUND
}

/// Layers, canvas and page, at the layout's positions.
fn parts(ui: &mut Ui, state: &mut State, mut pages: Pages<'_>, actions: &mut Actions) {
    let plan = plan(ui, state);
    let places = plan.places();
    state.given_up.panels = places.squeezed;
    // a drawer is open until there is room for a panel
    state.view.drawer &= places.squeezed;
    if let Some(rect) = places.layers {
        inside(ui, "left", rect, |ui| {
            ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| panels::layers::show(ui, state, actions));
        });
    }
    if let Some(rect) = places.page.filter(|_| !places.over) {
        inside(ui, "right", rect, |ui| panels::side::show(ui, state, places.merged, &mut pages, actions));
    }
    let middle = places.middle;
    let high = if state.before_present.is_some() { 0.0 } else { layout::TOOLS };
    let tools = Rect::from_min_max(middle.min, pos2(middle.right(), middle.top() + high));
    if high > 0.0 {
        inside(ui, "tools", tools, |ui| panels::tools::show(ui, state, actions));
    }
    let below = Rect::from_min_max(pos2(middle.left(), tools.bottom()), middle.max);
    let mut child = ui.new_child(UiBuilder::new().id_salt("canvas").max_rect(below));
    child.set_clip_rect(below);
    sharing::drawn(ui, below, places.page);
    state.session.canvas.set_bare(state.before_present.is_some());
    picture::show(&mut child, state, pages.quality, actions);
    if let Some(rect) = places.page.filter(|_| places.over) {
        drawer(ui, rect, |ui| panels::side::show(ui, state, places.merged, &mut pages, actions));
        return;
    }
    // over the rulers, which reach to the edge
    for (part, rect) in [(layout::Part::Layers, places.layers), (layout::Part::Page, places.page)] {
        if let Some(rect) = rect {
            handle(ui, &plan, part, rect, middle, actions);
        }
    }
}

/// What the layout is made for.
fn plan(ui: &Ui, state: &State) -> Plan {
    let (view, window) = (&state.view, ui.ctx().content_rect().size());
    Plan {
        room: ui.max_rect(),
        window,
        least: least(window),
        workspace: view.workspace,
        shown: [view.left, view.right],
        widths: view.widths,
        docks: view.docks,
        drawer: view.drawer,
    }
}

/// Panels over the mask, in a window without room beside it.
fn drawer(ui: &Ui, rect: Rect, contents: impl FnOnce(&mut Ui)) {
    let area = Area::new(widgets::id("drawer")).order(Order::Middle).fixed_pos(rect.min).constrain(false);
    area.show(ui.ctx(), |ui| {
        let fill = ui.visuals().panel_fill;
        ui.allocate_rect(rect, Sense::hover());
        ui.painter().rect(rect, 0.0, fill, ui.visuals().window_stroke, egui::StrokeKind::Inside);
        inside(ui, "right", rect, contents);
    });
}

/// A part of the window with its margins.
fn inside(ui: &mut Ui, name: &str, rect: Rect, contents: impl FnOnce(&mut Ui)) {
    let room = rect.shrink2(vec2(8.0, 4.0));
    let mut child = ui.new_child(UiBuilder::new().id_salt(name).max_rect(room));
    child.set_clip_rect(rect.intersect(ui.clip_rect()));
    // a field that has the keyboard in one document has it in no other
    child.skip_ahead_auto_ids(egui::Id::unique(widgets::document(ui.ctx())).value() as usize);
    contents(&mut child);
}

/// The edge of a panel towards the canvas: a line to drag.
fn handle(ui: &mut Ui, plan: &Plan, part: layout::Part, panel: Rect, middle: Rect, actions: &mut Actions) {
    let dock = plan.dock(part);
    let grip = match dock {
        Dock::Left => Rect::from_x_y_ranges(panel.right() - 3.0..=panel.right() + 3.0, panel.y_range()),
        Dock::Right => Rect::from_x_y_ranges(panel.left() - 3.0..=panel.left() + 3.0, panel.y_range()),
        Dock::Below => Rect::from_x_y_ranges(panel.x_range(), panel.top() - 3.0..=panel.top() + 3.0),
    };
    let cursor = if dock == Dock::Below { CursorIcon::ResizeVertical } else { CursorIcon::ResizeHorizontal };
    let response = ui.interact(grip, ui.scope_id().with(("edge", part)), Sense::drag());
    let response = response.on_hover_and_drag_cursor(cursor);
    let visuals = ui.visuals();
    let line = match response.dragged() || response.hovered() {
        true => egui::Stroke::new(2.0, visuals.widgets.hovered.fg_stroke.color),
        false => visuals.widgets.noninteractive.bg_stroke,
    };
    match dock {
        Dock::Below => drop(ui.painter().hline(panel.x_range(), panel.top(), line)),
        _ => drop(ui.painter().vline(grip.center().x, panel.y_range(), line)),
    }
    if dock == Dock::Below && panel.left() > middle.left() + 1.0 {
        // next to the layers
        let line = visuals.widgets.noninteractive.bg_stroke;
        ui.painter().vline(panel.left(), panel.y_range(), line);
    }
    if let Some(at) = response.interact_pointer_pos().filter(|_| response.dragged()) {
        let (size, least) = match dock {
            Dock::Left => (at.x - panel.left(), layout::LEAST),
            Dock::Right => (panel.right() - at.x, layout::LEAST),
            Dock::Below => (panel.bottom() - at.y, layout::LEAST_HEIGHT),
        };
        actions.push(Action::SetWidth(part, size.clamp(least, plan.most(part).max(least))));
    }
}
