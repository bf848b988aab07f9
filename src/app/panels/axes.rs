//! The axes by their parts: a name and the extents of each, moved, added and removed; and the same as text.
//!
//! Invariant: editing a part changes the document once, at its end. Must not know masks.

use crate::app::action::{Action, Actions};
use crate::app::fields::drag_of;
use crate::app::language::{say, say_with};
use crate::app::state::State;
use crate::app::widgets::{Commit, parsed_field, text_field, text_field_took, text_width, typed_id};
use crate::document::model::{Axes, Axis, Segment};
use egui::{RichText, Ui};

/// The longest extent that a field takes.
const LONGEST: usize = crate::base::shape::MAX_LENGTH;
/// Points of a part's name, at least and at most.
const NAME: [f32; 2] = [36.0, 74.0];

/// Draws both axes.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let axes = &state.document.axes;
    let crossed = axes.kv.is_some();
    ui.label(say(ui, if crossed { "design-queries" } else { "design-tokens" }));
    if let Some(q) = axis(ui, say(ui, "axes-query"), &axes.q) {
        actions.push(Action::SetAxes(Axes { q, kv: axes.kv.clone() }));
    }
    if let Some(kv) = &axes.kv {
        ui.label(say(ui, "design-keys"));
        if let Some(kv) = axis(ui, say(ui, "axes-key"), kv) {
            actions.push(Action::SetAxes(Axes { q: axes.q.clone(), kv: Some(kv) }));
        }
    }
    ui.horizontal_wrapped(|ui| {
        let mut on = crossed;
        let words = say(ui, "axes-cross-tip");
        if ui.checkbox(&mut on, say(ui, "axes-cross")).on_hover_text(words).changed() {
            let kv = on.then(|| axes.q.clone());
            actions.push(Action::SetAxes(Axes { q: axes.q.clone(), kv }));
        }
        ui.weak(format!("{} x {}", axes.q.len(), axes.kv().len()));
    });
}

/// One axis: its parts as rows, and its text.
fn axis(ui: &mut Ui, name: &str, axis: &Axis) -> Option<Axis> {
    let mut changed = None;
    for (at, segment) in axis.segments.iter().enumerate() {
        if let Some(segments) = row(ui, name, &axis.segments, at, segment) {
            changed = Some(Axis { segments });
        }
    }
    ui.horizontal(|ui| {
        for (wanted, text, words, grid) in [
            ("text", "axes-add-text", "axes-text", vec![256]),
            ("image", "axes-add-image", "axes-image", vec![32, 32]),
            ("video", "axes-add-video", "axes-video", vec![8, 30, 52]),
        ] {
            let text = say(ui, text);
            let button = egui::Button::new(RichText::new(text).small());
            let label = say_with(ui, "axes-add", &[("axis", name.into()), ("text", text.into())]);
            if ui.add(button).on_hover_text(say(ui, words)).accessible_name(label).clicked() {
                let mut segments = axis.segments.clone();
                segments.push(Segment { name: free_name(&segments, wanted), grid });
                changed = Some(Axis { segments });
            }
        }
    });
    let parse = |text: &str| Axis::parse(text).map(|axis| (axis.clone(), axis.to_string()));
    let width = ui.available_width();
    parsed_field(ui, name, &axis.to_string(), width, Commit::AtEnd, parse).or(changed)
}

/// A name that no part has yet.
fn free_name(segments: &[Segment], wanted: &str) -> String {
    let taken = |name: &str| segments.iter().any(|s| s.name == name);
    let numbered = (2..).map(|n| format!("{wanted}{n}"));
    std::iter::once(wanted.to_string()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
}

/// A part: its name, its extents, and its position.
fn row(ui: &mut Ui, axis: &str, all: &[Segment], at: usize, segment: &Segment) -> Option<Vec<Segment>> {
    let mut changed = None;
    ui.horizontal(|ui| {
        let width = name_width(ui, &segment.grid, all.len() > 1);
        let field = say_with(ui, "axes-part", &[("axis", axis.into()), ("n", (at + 1).into())]);
        let (response, typed) = text_field(ui, &field, &segment.name, width);
        if let Some(name) = typed.filter(|name| is_name(name)) {
            text_field_took(ui, &field, &name);
            changed = Some(with(all, at, Segment { name, grid: segment.grid.clone() }));
        }
        response.on_hover_text(say(ui, "axes-part-tip"));
        for dim in 0..segment.grid.len() {
            if dim > 0 {
                ui.weak("x");
            }
            let name = say_with(
                ui,
                "axes-extent",
                &[("axis", axis.into()), ("n", (dim + 1).into()), ("name", (&*segment.name).into())],
            );
            if let Some(value) = at_end(ui, &name, segment.grid[dim]) {
                let mut grid = segment.grid.clone();
                grid[dim] = value;
                changed = Some(with(all, at, Segment { name: segment.name.clone(), grid }));
            }
        }
        if all.len() < 2 {
            return;
        }
        let up = ui.add_enabled(at > 0, egui::Button::new(RichText::new(say(ui, "axes-up")).small()).frame(false));
        if up
            .on_hover_text(say(ui, "axes-up-tip"))
            .accessible_name(say_with(ui, "axes-up-name", &[("axis", axis.into()), ("name", (&*segment.name).into())]))
            .clicked()
        {
            let mut segments = all.to_vec();
            segments.swap(at, at - 1);
            changed = Some(segments);
        }
        let less = ui
            .add(egui::Button::new(RichText::new("×").small()).frame(false))
            .on_hover_text(say(ui, "axes-remove-tip"));
        if less
            .accessible_name(say_with(
                ui,
                "axes-remove-name",
                &[("axis", axis.into()), ("name", (&*segment.name).into())],
            ))
            .clicked()
        {
            let mut segments = all.to_vec();
            segments.remove(at);
            changed = Some(segments);
        }
    });
    changed
}

/// Points of a part's name: what its extents leave, and the buttons if there are any.
fn name_width(ui: &Ui, grid: &[usize], buttons: bool) -> f32 {
    let spacing = ui.spacing();
    let (padding, between) = (2.0 * spacing.button_padding.x, spacing.item_spacing.x);
    let one =
        |n: &usize| (text_width(ui, RichText::new(n.to_string())) + padding).max(spacing.interact_size.x) + between;
    let crosses = grid.len().saturating_sub(1) as f32 * (text_width(ui, RichText::new("x")) + between);
    let small = |text: &str| text_width(ui, RichText::new(text).small()) + between;
    let after = if buttons { small(say(ui, "axes-up")) + small("×") } else { 0.0 };
    (ui.available_width() - grid.iter().map(one).sum::<f32>() - crosses - after - between).clamp(NAME[0], NAME[1])
}

fn is_name(name: &str) -> bool {
    Axis::parse(&format!("{name} 1")).is_ok_and(|axis| axis.segments.len() == 1 && axis.segments[0].name == name)
}

fn with(all: &[Segment], at: usize, segment: Segment) -> Vec<Segment> {
    let mut segments = all.to_vec();
    segments[at] = segment;
    segments
}

/// A number that takes effect when the drag ends or the field loses the focus, because intermediate lengths are
/// unintended.
fn at_end(ui: &mut Ui, name: &str, value: usize) -> Option<usize> {
    let memory = typed_id(ui, ("extent", name));
    let mut draft = ui.data(|d| d.get_temp::<(usize, usize)>(memory)).filter(|d| d.0 == value).map_or(value, |d| d.1);
    let drag = drag_of(&mut draft).range(1..=LONGEST).speed((value as f64 / 200.0).max(0.1));
    let response = ui.add(drag).accessible_name(name);
    let over = response.drag_stopped() || response.lost_focus();
    let held = response.dragged() || response.has_focus();
    ui.data_mut(|d| match held {
        true => drop(d.insert_temp(memory, (value, draft))),
        false => d.remove::<(usize, usize)>(memory),
    });
    (over && draft != value).then_some(draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_parts_have_names_of_their_own_and_names_must_parse() {
        let axis = Axis::parse("text 8 | image 4x4").unwrap();
        assert_eq!(free_name(&axis.segments, "image"), "image2");
        assert_eq!(free_name(&axis.segments, "video"), "video");
        let named = ["latent", "", "x|y"].map(is_name);
        assert_eq!(named, [true, false, false]);
    }
}
