//! Parameters of a factory as sliders and fields.
//!
//! Invariant: one control for each parameter, with its help; a set value can be reset to its followed value. Must not
//! know how factories run.

use super::generate;
use crate::app::action::TensorsFor;
use crate::app::action::{Action, Actions};
use crate::app::fields::{drag_of, slider_of};
use crate::app::language::{say, say_with, words};
use crate::app::literal;
use crate::app::state::State;
use crate::app::widgets::{Commit, diagnostic_below, parsed_field, typed_id};
use crate::document::controls::{Control, Origin, Range};
use crate::document::edit::Edit;
use crate::document::library;
use crate::document::model::{ArgValue, CodeRef};
use crate::ir::graph::ModKind;
use crate::python::outline::ParamKind;
use egui::{RichText, Ui};

/// Longest list shown as text.
const SHOWN: usize = 64;

/// Draws the parameters of a layer, with the help of its factory.
pub(super) fn show(ui: &mut Ui, state: &State, id: u64, actions: &mut Actions) {
    let Some(built) = &state.session.built else { return };
    let (help, controls) = match built.controls.get(&id) {
        Some(Ok(found)) => found,
        // what the layer reports is told below its parameters
        Some(Err(why)) if built.layer(id).iter().any(|d| d.message == why.message) => return,
        Some(Err(why)) => return diagnostic_below(ui, why),
        None => return,
    };
    let pattern = pattern_of(state, id);
    for control in controls {
        // the document is newer than the compiled one: a slider must not jump back
        let given = given(state, id, &control.name);
        let value = given.clone().or_else(|| control.value.clone().filter(|_| control.origin != Origin::Given));
        ui.push_id(&control.name, |ui| {
            let about = told(ui, pattern, control);
            if let Some(new) = control_ui(ui, control, &about, value.as_ref(), given.is_some()) {
                actions.edit(Edit::SetArg(id, control.name.clone(), new));
            }
            if control.kind == ParamKind::Tensor {
                let argument = |tensor: &str| Some((control.name.clone(), tensor.to_string()));
                from_file(ui, &say_with(ui, "args-file", &[("name", (&*control.name).into())]), id, &argument, actions);
                let axes = &state.document.axes;
                let tokens = axes.q.len().max(axes.kv().len());
                ui.horizontal_wrapped(|ui| {
                    if let Some(value) = generate::menu(ui, &control.name, tokens) {
                        actions.edit(Edit::SetArg(id, control.name.clone(), Some(value)));
                    }
                    if let Some(tensor) = from_capture(ui, state, &control.name, value.as_ref()) {
                        let path = state.session.captured.as_ref().map(|c| c.path.clone()).unwrap_or_default();
                        let argument = Some((control.name.clone(), tensor));
                        actions.push(Action::LoadTensors(TensorsFor { layer: id, argument, path }));
                    }
                });
            }
        });
    }
    if !help.trim().is_empty() {
        ui.add_space(4.0);
        ui.collapsing(say(ui, "args-about"), |ui| {
            if let Some(summary) = pattern.and_then(|name| words(ui.ctx()).pattern(name)) {
                ui.add(egui::Label::new(summary).wrap());
            }
            ui.add(egui::Label::new(RichText::new(help.trim()).weak()).wrap());
        });
    }
}

/// A field for a safetensors file, `F.safetensors` or `F.safetensors:NAME`; read when Enter is pressed.
pub(super) fn from_file(
    ui: &mut Ui,
    name: &str,
    layer: u64,
    argument: &dyn Fn(&str) -> Option<(String, String)>,
    actions: &mut Actions,
) {
    let memory = typed_id(ui, ("tensor file", name));
    let mut text = ui.data(|d| d.get_temp::<String>(memory)).unwrap_or_default();
    let field = egui::TextEdit::singleline(&mut text).desired_width(f32::INFINITY);
    let response = ui.add(field.hint_text(say(ui, "args-file-hint"))).accessible_name(name);
    if response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter)) && !text.trim().is_empty() {
        let (path, tensor) = match text.trim().rsplit_once(".safetensors:") {
            Some((stem, tensor)) => (format!("{stem}.safetensors"), tensor),
            None => (text.trim().to_string(), ""),
        };
        let asked = TensorsFor { layer, argument: argument(tensor), path: path.into() };
        actions.push(Action::LoadTensors(asked));
        text.clear();
    }
    ui.data_mut(|d| d.insert_temp(memory, text));
}

/// The matching tensors of the open capture, for selection; empty without an open capture.
fn from_capture(ui: &mut Ui, state: &State, name: &str, value: Option<&ArgValue>) -> Option<String> {
    let captured = state.session.captured.as_ref()?;
    let lengths = state.document.axes.lengths().ok()?;
    let now = if let Some(ArgValue::Tensor { tensor }) = value { Some(tensor.shape()) } else { None };
    let mut chosen = None;
    let button = ui.menu_button(say(ui, "args-capture"), |ui| {
        egui::ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
            let fitting = captured.fitting(now, &state.document.settings, lengths);
            let count = fitting.len();
            for (tensor, dtype, shape) in fitting {
                let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
                let words = RichText::new(format!("{} {dtype}", shape.join(" x "))).weak();
                if ui.add(egui::Button::new(tensor).right_text(words)).clicked() {
                    chosen = Some(tensor.clone());
                    ui.close();
                }
            }
            let others = captured.tensors.len() - count;
            ui.weak(say_with(ui, "args-fit", &[("count", count.into()), ("others", others.into())]));
        });
    });
    let words = say(ui, "args-capture.tip");
    button.response.on_hover_text(words).accessible_name(say_with(ui, "args-capture-name", &[("name", name.into())]));
    chosen
}

/// The value in the document as it is now.
fn given(state: &State, id: u64, name: &str) -> Option<ArgValue> {
    use crate::document::model::{MaskContent, ScoreContent};
    let args = match (state.document.layer(id), state.document.score(id)) {
        (Some(layer), _) => match &layer.content {
            MaskContent::Pattern(code) => &code.args,
            MaskContent::Text(code) => &code.args,
            MaskContent::Linked(code) => &code.args,
            _ => return None,
        },
        (None, Some(score)) => match &score.content {
            ScoreContent::Pattern(code) => &code.args,
            ScoreContent::Text(code) => &code.args,
            ScoreContent::Linked(code) => &code.args,
            ScoreContent::Curve { .. } => return None,
        },
        (None, None) => return None,
    };
    args.get(name).cloned()
}

/// One parameter. Some(None) resets it to its default or followed value.
fn control_ui(
    ui: &mut Ui,
    control: &Control,
    about: &str,
    value: Option<&ArgValue>,
    given: bool,
) -> Option<Option<ArgValue>> {
    let mut out = None;
    ui.horizontal(|ui| {
        ui.label(RichText::new(&control.name).monospace()).on_hover_text(about);
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            origin(ui, control, given, &mut out);
        });
    });
    let changed = field(ui, control, value);
    if let Some(value) = changed {
        out = Some(Some(value));
    }
    out
}

/// The pattern whose parameters a layer has, if it is one of the library's.
fn pattern_of(state: &State, id: u64) -> Option<&str> {
    use crate::document::model::{MaskContent, ScoreContent};
    match (state.document.layer(id).map(|l| &l.content), state.document.score(id).map(|s| &s.content)) {
        (Some(MaskContent::Pattern(code)), _) | (_, Some(ScoreContent::Pattern(code))) => Some(&code.name),
        _ => None,
    }
}

/// The words of its help, and the range.
fn told(ui: &Ui, pattern: Option<&str>, control: &Control) -> String {
    let own = pattern.and_then(|pattern| words(ui.ctx()).parameter(pattern, &control.name));
    let words = own.unwrap_or(&control.help);
    match control.range {
        Some(range) => {
            let (min, max) = (range.min.to_string(), range.max.to_string());
            let range = say_with(ui, "args-range", &[("min", min.into()), ("max", max.into())]);
            format!("{words} {range}").trim_start().to_string()
        }
        None => words.to_string(),
    }
}

/// Where the value comes from, and the way back.
fn origin(ui: &mut Ui, control: &Control, given: bool, out: &mut Option<Option<ArgValue>>) {
    let follows = control.follows.as_deref();
    if given {
        let text =
            follows.map_or(say(ui, "args-default").to_string(), |f| say_with(ui, "args-follow", &[("name", f.into())]));
        let words = say(ui, "args-resets");
        let name = say_with(ui, "args-reset", &[("name", (&*control.name).into())]);
        if ui.small_button(text).accessible_name(name).on_hover_text(words).clicked() {
            *out = Some(None);
        }
        return;
    }
    match (&control.origin, follows) {
        (Origin::Missing, _) => {
            ui.colored_label(ui.visuals().error_fg_color, say(ui, "args-needed"));
        }
        (Origin::Follows(name), _) => {
            ui.label(RichText::new(say_with(ui, "args-follows", &[("name", (&**name).into())])).small().weak());
        }
        _ => {
            ui.label(RichText::new(say(ui, "args-default")).small().weak());
        }
    }
}

fn field(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    // without a value a number would show as 0, which it is not
    let missing = control.origin == Origin::Missing;
    match (control.kind, value) {
        (ParamKind::Mod, _) => mask_choice(ui, control, value),
        (_, Some(ArgValue::Bool(_))) => checkbox(ui, control, value),
        (ParamKind::Bool, None) if missing => checkbox(ui, control, value),
        (ParamKind::Int, Some(ArgValue::Int(_))) => int(ui, control, value),
        (ParamKind::Int, None) if missing => int(ui, control, value),
        (ParamKind::Float, Some(ArgValue::Int(_) | ArgValue::Float(_))) => float(ui, control, value),
        (ParamKind::Float, None) if missing => float(ui, control, value),
        (ParamKind::Str, Some(ArgValue::Text(_))) => text(ui, control, value),
        (ParamKind::Str, None) if missing => text(ui, control, value),
        (ParamKind::Tensor, Some(ArgValue::Tensor { .. } | ArgValue::None) | None)
        | (_, Some(ArgValue::Tensor { .. })) => tensor(ui, control, value),
        _ => typed(ui, control, value),
    }
}

fn checkbox(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    let mut on = matches!(value, Some(ArgValue::Bool(true)));
    ui.checkbox(&mut on, "").accessible_name(&control.name).changed().then_some(ArgValue::Bool(on))
}

fn text(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    let text = if let Some(ArgValue::Text(text)) = value { text.as_str() } else { "" };
    parsed_field(ui, &control.name, text, ui.available_width(), Commit::Live, |t| {
        Ok((ArgValue::Text(t.into()), t.into()))
    })
}

fn int(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    let mut number = if let Some(ArgValue::Int(n)) = value { *n } else { 0 };
    let before = number;
    match control.range.filter(|r| r.max > r.min) {
        Some(range) => {
            let (min, max) = (range.min as i64, range.max as i64);
            let slider = slider_of(&mut number, min..=max.max(min + 1));
            let slider = slider.clamping(egui::SliderClamping::Never).logarithmic(far(&range));
            ui.spacing_mut().slider_width = (ui.available_width() - 74.0).max(60.0);
            ui.add(slider.step_by(range.step.unwrap_or(1.0))).accessible_name(&control.name);
        }
        None => {
            ui.add(drag_of(&mut number).speed(0.2)).accessible_name(&control.name);
        }
    }
    (number != before).then_some(ArgValue::Int(number))
}

fn float(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    let mut number = match value {
        Some(ArgValue::Int(n)) => *n as f64,
        Some(ArgValue::Float(x)) => *x,
        _ => 0.0,
    };
    let before = number;
    match control.range.filter(|r| r.max > r.min) {
        Some(range) => {
            let slider = slider_of(&mut number, range.min..=range.max).logarithmic(far(&range));
            let slider = slider.clamping(egui::SliderClamping::Never).max_decimals(4);
            ui.spacing_mut().slider_width = (ui.available_width() - 74.0).max(60.0);
            ui.add(slider).accessible_name(&control.name);
        }
        None => {
            let drag = drag_of(&mut number).speed((before.abs() * 0.01).max(0.01));
            ui.add(drag).accessible_name(&control.name);
        }
    }
    (number != before && number.is_finite()).then_some(ArgValue::Float(number))
}

/// Ranges over orders of magnitude are dragged by their logarithm.
fn far(range: &Range) -> bool {
    range.min >= 0.0 && range.max / range.min.max(1.0) >= 1000.0
}

/// Another pattern as an argument.
fn mask_choice(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    let now = if let Some(ArgValue::Mask { mask }) = value { mask.name.as_str() } else { "" };
    let mut chosen = None;
    let shown = if now.is_empty() { say(ui, "args-choose") } else { now };
    let combo = egui::ComboBox::from_id_salt(("mask", &control.name)).selected_text(shown).width(180.0);
    let response = combo.show_ui(ui, |ui| {
        for pattern in library::patterns().filter(|p| p.kind == ModKind::Mask) {
            let summary = words(ui.ctx()).pattern(pattern.name).unwrap_or_else(|| pattern.summary());
            if ui.selectable_label(pattern.name == now, pattern.title()).on_hover_text(summary).clicked() {
                let mask = CodeRef { name: pattern.name.into(), ..CodeRef::default() };
                chosen = Some(ArgValue::Mask { mask });
            }
        }
    });
    response.response.accessible_name(&control.name);
    chosen
}

/// A tensor by its numbers, as `0, 3, 7`, or `[2, 4] x f32` when it is too long.
fn tensor(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    let text = match value {
        Some(ArgValue::Tensor { tensor }) if tensor.numel() > SHOWN || tensor.shape().len() != 1 => {
            let figures =
                [("shape", format!("{:?}", tensor.shape()).into()), ("dtype", tensor.dtype().to_string().into())];
            ui.weak(say_with(ui, "args-tensor", &figures));
            return None;
        }
        Some(ArgValue::Tensor { tensor }) => literal::numbers(tensor),
        Some(other) => literal::shown(other),
        None => String::new(),
    };
    let width = ui.available_width();
    let like = if let Some(ArgValue::Tensor { tensor }) = value { Some(tensor.dtype()) } else { None };
    // an empty field is the default
    let parse = |text: &str| match text.trim() {
        "" if value.is_none() => Ok((None, String::new())),
        "None" => Ok((Some(ArgValue::None), text.to_string())),
        _ => Ok((Some(literal::parse_tensor(text, like)?), text.to_string())),
    };
    parsed_field(ui, &control.name, &text, width, Commit::AtEnd, parse).flatten()
}

/// Anything else as it is written in Python.
fn typed(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    let text = value.map(literal::shown).unwrap_or_default();
    let width = ui.available_width();
    let parse = |text: &str| match text.trim() {
        "" if value.is_none() => Ok((None, String::new())),
        _ => {
            let parsed = literal::parse(text, control.kind, value)?;
            let text = literal::shown(&parsed);
            Ok((Some(parsed), text))
        }
    };
    let new = parsed_field(ui, &control.name, &text, width, Commit::AtEnd, parse).flatten();
    if let Some(words) = value.and_then(|v| literal::outside(v, control.range)) {
        ui.label(RichText::new(words).small().color(ui.visuals().warn_fg_color));
    }
    new
}
