//! The effects of pointer and keyboard on the canvas.
//!
//! Invariant: the keyboard can do everything that the pointer can: arrows move, plus and minus zoom, Home shows the
//! whole mask, Enter draws with the tool at the cross in the middle. Must not know how anything is painted.

use super::handles;
use super::step::Step;
use super::{Canvas, CanvasEvent, Scene, Tool};
use crate::base::BlockSize;
use egui::{Event, EventFilter, Key, Modifiers, MouseWheelSource, MouseWheelUnit, PointerButton, Pos2, Rect};
use egui::{Response, Ui, Vec2, vec2};

/// Zoom of one step of the keyboard.
const ZOOM_STEP: f64 = 1.25;
/// How fast the wheel zooms: the natural logarithm of the factor for each point scrolled.
const WHEEL: f64 = 0.0045;
/// Points that an arrow key moves.
const ARROW: f32 = 60.0;

impl Canvas {
    /// Carries out this frame's input.
    pub(super) fn input(
        &mut self,
        ui: &Ui,
        response: &Response,
        rect: Rect,
        scene: &Scene<'_>,
        events: &mut Vec<CanvasEvent>,
    ) {
        self.view.limit(rect.size(), scene.lengths);
        self.wheel(ui, response, rect, scene);
        let moved = ui.input(|i| i.pointer.delta() != Vec2::ZERO || i.pointer.any_pressed());
        self.by_keyboard &= !moved;
        if response.has_focus() {
            self.keys(ui, response, rect, scene, events);
        }
        let held = self.handle(ui, response, rect, scene, events);
        let pans = scene.tool == Tool::Pan || ui.input(|i| i.key_down(Key::Space));
        let dragged = response.dragged_by(PointerButton::Middle)
            || response.dragged_by(PointerButton::Primary) && pans && !self.tools.drawing() && !held;
        if dragged {
            self.view.pan(response.drag_delta(), rect, scene.lengths);
        }
        self.draw(ui, response, rect, scene, pans, events);
        if response.clicked()
            && !held
            && scene.tool == Tool::Pan
            && let Some(at) = response.interact_pointer_pos()
            && let Some(cell) = self.view.screen_from_world(rect, scene.lengths).cell(at, scene.lengths)
        {
            events.push(CanvasEvent::Clicked(cell));
        }
    }

    /// Drags the selected rectangle by a handle. Returns whether one is held.
    fn handle(
        &mut self,
        ui: &Ui,
        response: &Response,
        rect: Rect,
        scene: &Scene<'_>,
        events: &mut Vec<CanvasEvent>,
    ) -> bool {
        let map = self.view.screen_from_world(rect, scene.lengths);
        let Some(of) = scene.selected.filter(|_| scene.tool == Tool::Pan) else {
            self.grip = None;
            return false;
        };
        let (pressed, down) = ui.input(|i| (i.pointer.primary_pressed(), i.pointer.primary_down()));
        if pressed && response.is_pointer_button_down_on() {
            self.grip = press_position(ui).and_then(|at| handles::grip(&map, of, at));
        }
        let Some(grip) = self.grip else { return false };
        if let Some(at) = ui.input(|i| i.pointer.interact_pos()).filter(|_| down) {
            let cell = if ui.input(|i| i.modifiers.shift) { BlockSize::square(1) } else { scene.cell() };
            let axes = (!ui.input(|i| i.modifiers.alt)).then_some([scene.q_axis, scene.kv_axis]);
            let [q, kv] = grip.moved(&map, at, cell, scene.lengths, axes);
            if [q, kv] != of {
                events.push(CanvasEvent::Reshaped { q, kv });
            }
        }
        if !down {
            self.grip = None;
        }
        true
    }

    /// A wheel zooms about the pointer, fingers on a trackpad move; with the control key either zooms. With Alt the wheel is
    /// the width of a brush in hand.
    fn wheel(&mut self, ui: &Ui, response: &Response, rect: Rect, scene: &Scene<'_>) {
        let Some(at) = response.hover_pos().filter(|_| response.contains_pointer()) else { return };
        let (zoom, scroll) = ui.input(|i| (i.zoom_delta(), i.smooth_scroll_delta()));
        self.fingers = ui.input(|i| i.events.iter().filter_map(by_fingers).next_back()).unwrap_or(self.fingers);
        if zoom != 1.0 {
            self.view.zoom_about(f64::from(zoom), at, rect, scene.lengths);
        }
        if self.fingers {
            if scroll != Vec2::ZERO {
                self.view.pan(scroll, rect, scene.lengths);
            }
            return;
        }
        if scroll.x != 0.0 {
            self.view.pan(vec2(scroll.x, 0.0), rect, scene.lengths);
        }
        let brush = matches!(scene.tool, Tool::Brush | Tool::Eraser | Tool::Line);
        if brush && ui.input(|i| i.modifiers.alt) {
            // a wheel's turn comes smoothed over some frames: its lines count once each
            let lines = ui.input(|i| i.events.iter().filter_map(wheel_lines).sum::<f32>());
            if lines != 0.0 {
                self.tools.widen(lines.signum() as i32);
            }
            return;
        }
        if scroll.y != 0.0 {
            self.view.zoom_about((f64::from(scroll.y) * WHEEL).exp(), at, rect, scene.lengths);
        }
    }

    fn keys(&mut self, ui: &Ui, response: &Response, rect: Rect, scene: &Scene<'_>, events: &mut Vec<CanvasEvent>) {
        let drawing = self.tools.drawing();
        let filter = EventFilter { horizontal_arrows: true, vertical_arrows: true, escape: drawing, tab: false };
        ui.memory_mut(|m| m.set_focus_lock_filter(response.id, filter));
        let pressed = |key: Key| ui.input(|i| i.num_presses(key) as f32);
        let page = ui.input(|i| i.modifiers.shift);
        let scale = self.view.screen_from_world(rect, scene.lengths);
        // one cell when cells are larger than an arrow's way
        let arrow = |cell: f64, side: f32| if page { side * 0.8 } else { ARROW.max(cell as f32) };
        let (x, y) = (arrow(scale.kv.scale, rect.width()), arrow(scale.q.scale, rect.height()));
        let way = vec2(
            (pressed(Key::ArrowLeft) - pressed(Key::ArrowRight)) * x,
            (pressed(Key::ArrowUp) - pressed(Key::ArrowDown)) * y,
        );
        let plain = !ui.input(|i| i.modifiers.command || i.modifiers.alt);
        let zoom = if plain { pressed(Key::Plus) + pressed(Key::Equals) - pressed(Key::Minus) } else { 0.0 };
        let home = pressed(Key::Home) > 0.0;
        if way != Vec2::ZERO {
            self.view.pan(way, rect, scene.lengths);
        }
        if zoom != 0.0 {
            self.view.zoom_about(ZOOM_STEP.powf(f64::from(zoom)), rect.center(), rect, scene.lengths);
        }
        if home {
            self.view.fit();
        }
        if way != Vec2::ZERO || zoom != 0.0 || home {
            self.by_keyboard = true;
        }
        if self.has_corners() && ui.input_mut(|i| i.consume_key(Modifiers::NONE, Key::Backspace)) {
            self.uncorner(events);
        }
        if ui.input_mut(|i| i.consume_key(Modifiers::NONE, Key::Enter)) {
            self.enter(rect, scene, ui.input(|i| i.time), events);
        }
    }

    /// Enter: puts the tool down at the cross in the middle, or takes it up again.
    fn enter(&mut self, rect: Rect, scene: &Scene<'_>, now: f64, events: &mut Vec<CanvasEvent>) {
        let map = self.view.screen_from_world(rect, scene.lengths);
        let step = scene.step(&map, now, self.free);
        if self.has_corners() && !self.by_keyboard {
            // its corners were clicked
            return self.close(&step, events);
        }
        self.by_keyboard = true;
        if self.has_corners() {
            self.corner(rect.center(), &step, events);
        } else if self.key_drawing {
            self.key_drawing = false;
            self.tools.release(&step, events);
        } else if scene.tool == Tool::Pan {
            events.extend(map.cell(rect.center(), scene.lengths).map(CanvasEvent::Clicked));
        } else if !self.tools.drawing() {
            self.key_drawing = scene.tool != Tool::Polygon;
            self.tools.press(scene.tool, rect.center(), &step, events);
        }
    }

    /// The tool at the pointer.
    fn draw(
        &mut self,
        ui: &Ui,
        response: &Response,
        rect: Rect,
        scene: &Scene<'_>,
        pans: bool,
        events: &mut Vec<CanvasEvent>,
    ) {
        let map = self.view.screen_from_world(rect, scene.lengths);
        let now = ui.input(|i| i.time);
        self.free = ui.input(|i| [i.modifiers.shift, i.modifiers.alt]);
        self.leave_outline(scene, events);
        let step: Step<'_> = scene.step(&map, now, self.free);
        if self.tools.drawing() && ui.input(|i| i.key_pressed(Key::Escape)) {
            self.key_drawing = false;
            self.tools.cancel(events);
            return;
        }
        if self.key_drawing {
            self.tools.drag(&[rect.center()], &step, events);
            return;
        }
        let on_canvas = response.is_pointer_button_down_on() || response.clicked_by(PointerButton::Primary);
        let pressed = ui.input(|i| i.pointer.primary_pressed());
        if pressed && on_canvas {
            response.request_focus();
        }
        if self.has_corners() {
            return self.corners(ui, response, &step, pressed && on_canvas && !pans, events);
        }
        if pressed
            && on_canvas
            && !pans
            && !self.tools.drawing()
            && let Some(at) = press_position(ui)
            && !self.closed_again(at, now)
        {
            self.tools.press(scene.tool, at, &step, events);
        }
        if self.tools.drawing() && !self.has_corners() {
            let through = moves(ui);
            if !through.is_empty() {
                self.tools.drag(&through, &step, events);
            }
            if !ui.input(|i| i.pointer.primary_down()) {
                if self.tools.is_click() {
                    return self.tools.cancel(events);
                }
                self.tools.release(&step, events);
            }
        }
        if ui.input(|i| i.pointer.hover_pos()).is_some_and(|at| rect.contains(at)) {
            let typed = |open: Key, close: Key| ui.input(|i| i.num_presses(close) as i32 - i.num_presses(open) as i32);
            let by = typed(Key::OpenBracket, Key::CloseBracket);
            if by != 0 && matches!(scene.tool, Tool::Brush | Tool::Eraser | Tool::Line) {
                self.tools.widen(by);
            }
        }
    }
}

impl Canvas {
    /// A polygon under way: it follows the pointer, and each click is a corner.
    fn corners(&mut self, ui: &Ui, response: &Response, step: &Step<'_>, pressed: bool, events: &mut Vec<CanvasEvent>) {
        let at = if self.by_keyboard { Some(step.map.rect.center()) } else { ui.input(|i| i.pointer.hover_pos()) };
        self.tools.drag(at.as_slice(), step, events);
        if let Some(at) = press_position(ui).filter(|_| pressed) {
            self.corner(at, step, events);
        }
        if response.double_clicked() {
            self.close(step, events);
        }
    }
}

/// Which way a wheel was turned; None if it was not.
fn wheel_lines(event: &Event) -> Option<f32> {
    let Event::MouseWheel { delta, .. } = event else { return None };
    Some(delta.y)
}

/// Whether a scroll comes from fingers rather than a wheel; None if it is no scroll. Only some systems say, on the others
/// fingers scroll by points and wheels by lines.
fn by_fingers(event: &Event) -> Option<bool> {
    let Event::MouseWheel { unit, source, .. } = event else { return None };
    Some(match source {
        MouseWheelSource::Trackpad | MouseWheelSource::Momentum => true,
        MouseWheelSource::Wheel => false,
        MouseWheelSource::Unknown => *unit == MouseWheelUnit::Point,
    })
}

/// Where the primary button went down in this frame.
fn press_position(ui: &Ui) -> Option<Pos2> {
    ui.input(|i| {
        let down = i.events.iter().find_map(|e| match e {
            Event::PointerButton { pos, button: PointerButton::Primary, pressed: true, .. } => Some(*pos),
            _ => None,
        });
        down.or(i.pointer.interact_pos())
    })
}

/// Every place the pointer came through in this frame, after it went down if it did so now.
fn moves(ui: &Ui) -> Vec<Pos2> {
    ui.input(|i| {
        let mut out = Vec::new();
        for event in &i.events {
            match event {
                Event::PointerMoved(pos) => out.push(*pos),
                Event::PointerButton { button: PointerButton::Primary, pressed: true, .. } => out.clear(),
                Event::PointerButton { button: PointerButton::Primary, pressed: false, .. } => break,
                _ => {}
            }
        }
        out
    })
}
