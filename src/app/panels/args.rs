//! Parameters of a factory as sliders and fields.
//!
//! Invariant: one control for each parameter, with its help; a given value can be given back to what it follows. Must not
//! know how factories run.

use crate::app::action::{Action, Actions};
use crate::app::state::State;
use crate::app::widgets::{Commit, diagnostic_below, parsed_field};
use crate::base::tensor::Data;
use crate::base::{Diagnostic, HostTensor};
use crate::document::controls::{Control, Origin, Range};
use crate::document::edit::Edit;
use crate::document::library;
use crate::document::model::{ArgValue, CodeRef};
use crate::language::graph::ModKind;
use crate::language::outline::ParamKind;
use egui::{RichText, Slider, Ui};

/// Longest list shown as text.
const SHOWN: usize = 64;

/// Draws the parameters of a layer, with the help of its factory.
pub(super) fn show(ui: &mut Ui, state: &State, id: u64, actions: &mut Actions) {
    let Some(built) = &state.session.built else { return };
    let (help, controls) = match built.controls.get(&id) {
        Some(Ok(found)) => found,
        Some(Err(why)) => return diagnostic_below(ui, why),
        None => return,
    };
    for control in controls {
        // the document is newer than what was compiled: a slider must not jump back
        let given = given(state, id, &control.name);
        let value = given.clone().or_else(|| control.value.clone().filter(|_| control.origin != Origin::Given));
        ui.push_id(&control.name, |ui| {
            if let Some(new) = control_ui(ui, control, value.as_ref(), given.is_some()) {
                actions.edit(Edit::SetArg(id, control.name.clone(), new));
            }
            if control.kind == ParamKind::Tensor {
                let argument = |tensor: &str| Some((control.name.clone(), tensor.to_string()));
                from_file(ui, &format!("File for {}", control.name), id, &argument, actions);
            }
        });
    }
    if !help.trim().is_empty() {
        ui.add_space(4.0);
        ui.collapsing("About this pattern", |ui| {
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
    let memory = ui.make_persistent_id(("tensor file", name));
    let mut text = ui.data(|d| d.get_temp::<String>(memory)).unwrap_or_default();
    let field = egui::TextEdit::singleline(&mut text).desired_width(f32::INFINITY);
    let response =
        ui.add(field.hint_text("from F.safetensors, F.safetensors:NAME or F.npy, Enter")).accessible_name(name);
    if response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter)) && !text.trim().is_empty() {
        let (path, tensor) = match text.trim().rsplit_once(".safetensors:") {
            Some((stem, tensor)) => (format!("{stem}.safetensors"), tensor),
            None => (text.trim().to_string(), ""),
        };
        actions.push(Action::LoadTensors { layer, argument: argument(tensor), path: path.into() });
        text.clear();
    }
    ui.data_mut(|d| d.insert_temp(memory, text));
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

/// One parameter. Some(None) gives it back to its default or what it follows.
fn control_ui(ui: &mut Ui, control: &Control, value: Option<&ArgValue>, given: bool) -> Option<Option<ArgValue>> {
    let mut out = None;
    ui.horizontal(|ui| {
        ui.label(RichText::new(&control.name).monospace()).on_hover_text(&control.help);
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

/// Where the value comes from, and the way back.
fn origin(ui: &mut Ui, control: &Control, given: bool, out: &mut Option<Option<ArgValue>>) {
    let follows = control.follows.as_deref();
    if given {
        let text = follows.map_or("default".to_string(), |f| format!("follow {f}"));
        let words = "Gives the value back to what it is without being set here.";
        let name = format!("Reset {}", control.name);
        if ui.small_button(text).accessible_name(name).on_hover_text(words).clicked() {
            *out = Some(None);
        }
        return;
    }
    match (&control.origin, follows) {
        (Origin::Missing, _) => {
            ui.colored_label(ui.visuals().error_fg_color, "needed");
        }
        (Origin::Follows(name), _) => {
            ui.label(RichText::new(format!("follows {name}")).small().weak());
        }
        _ => {
            ui.label(RichText::new("default").small().weak());
        }
    }
}

fn field(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    match (control.kind, value) {
        (ParamKind::Bool, _) | (ParamKind::Any, Some(ArgValue::Bool(_))) => {
            let mut on = matches!(value, Some(ArgValue::Bool(true)));
            ui.checkbox(&mut on, "").accessible_name(&control.name).changed().then_some(ArgValue::Bool(on))
        }
        (ParamKind::Int, Some(ArgValue::Int(_)) | None) => int(ui, control, value),
        (ParamKind::Float, Some(ArgValue::Int(_) | ArgValue::Float(_)) | None) => float(ui, control, value),
        (ParamKind::Str, _) => {
            let text = if let Some(ArgValue::Text(text)) = value { text.as_str() } else { "" };
            parsed_field(ui, &control.name, text, ui.available_width(), Commit::Live, |t| {
                Ok((ArgValue::Text(t.into()), t.into()))
            })
        }
        (ParamKind::Mod, _) => mask_choice(ui, control, value),
        (ParamKind::Tensor, _) => tensor(ui, control, value),
        _ => literal(ui, control, value),
    }
}

fn int(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    let mut number = if let Some(ArgValue::Int(n)) = value { *n } else { 0 };
    let before = number;
    match control.range.filter(|r| r.max > r.min) {
        Some(range) => {
            let (min, max) = (range.min as i64, range.max as i64);
            let slider = Slider::new(&mut number, min..=max.max(min + 1));
            let slider = slider.clamping(egui::SliderClamping::Never).logarithmic(far(&range));
            ui.spacing_mut().slider_width = (ui.available_width() - 74.0).max(60.0);
            ui.add(slider.step_by(range.step.unwrap_or(1.0))).accessible_name(&control.name);
        }
        None => {
            ui.add(egui::DragValue::new(&mut number).speed(0.2)).accessible_name(&control.name);
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
            let slider = Slider::new(&mut number, range.min..=range.max).logarithmic(far(&range));
            let slider = slider.clamping(egui::SliderClamping::Never).max_decimals(4);
            ui.spacing_mut().slider_width = (ui.available_width() - 74.0).max(60.0);
            ui.add(slider).accessible_name(&control.name);
        }
        None => {
            let drag = egui::DragValue::new(&mut number).speed((before.abs() * 0.01).max(0.01));
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
    let shown = if now.is_empty() { "choose a pattern" } else { now };
    let combo = egui::ComboBox::from_id_salt(("mask", &control.name)).selected_text(shown).width(180.0);
    let response = combo.show_ui(ui, |ui| {
        for pattern in library::patterns().filter(|p| p.kind == ModKind::Mask) {
            if ui.selectable_label(pattern.name == now, pattern.title()).on_hover_text(pattern.summary()).clicked() {
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
            ui.weak(format!("a tensor {:?} of {}", tensor.shape(), tensor.dtype()));
            return None;
        }
        Some(ArgValue::Tensor { tensor }) => numbers(tensor),
        Some(other) => shown(other),
        None => String::new(),
    };
    let width = ui.available_width();
    // an empty field is the default
    let parse = |text: &str| match text.trim() {
        "" if value.is_none() => Ok((None, String::new())),
        _ => Ok((Some(parse_tensor(text)?), text.to_string())),
    };
    parsed_field(ui, &control.name, &text, width, Commit::AtEnd, parse).flatten()
}

fn numbers(tensor: &HostTensor) -> String {
    let one = |at: usize| {
        if tensor.dtype().is_float() { format!("{}", tensor.float_at(at)) } else { tensor.int_at(at).to_string() }
    };
    (0..tensor.numel()).map(one).collect::<Vec<_>>().join(", ")
}

fn parse_tensor(text: &str) -> Result<ArgValue, Diagnostic> {
    let parts = || text.trim_matches(['[', ']', '(', ')', ' ']).split(',').map(str::trim).filter(|p| !p.is_empty());
    let bad = || {
        Diagnostic::error(
            "tensor-text",
            format!("`{}` is no list of numbers", text.chars().take(40).collect::<String>()),
        )
        .hint("write numbers with commas, such as 512, 384, 128")
    };
    let data = if let Ok(ints) = parts().map(str::parse::<i64>).collect::<Result<Vec<_>, _>>() {
        Data::I64(ints)
    } else {
        Data::F32(parts().map(str::parse::<f32>).collect::<Result<Vec<_>, _>>().map_err(|_| bad())?)
    };
    if data.is_empty() {
        return Err(bad());
    }
    Ok(ArgValue::Tensor { tensor: HostTensor::vector(data) })
}

/// Anything else as JSON: numbers, strings, lists.
fn literal(ui: &mut Ui, control: &Control, value: Option<&ArgValue>) -> Option<ArgValue> {
    let text = value.map(shown).unwrap_or_default();
    let width = ui.available_width();
    parsed_field(ui, &control.name, &text, width, Commit::AtEnd, |text| {
        let value = parse_literal(text)?;
        Ok((value.clone(), shown(&value)))
    })
}

fn shown(value: &ArgValue) -> String {
    match value {
        ArgValue::List(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        ArgValue::Text(text) => text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

fn parse_literal(text: &str) -> Result<ArgValue, Diagnostic> {
    let inner = text.trim().trim_start_matches(['(', '[']).trim_end_matches([')', ']']).trim();
    let one = |part: &str| -> Option<ArgValue> {
        let part = part.trim();
        match part {
            "True" | "true" => return Some(ArgValue::Bool(true)),
            "False" | "false" => return Some(ArgValue::Bool(false)),
            _ => {}
        }
        part.parse().map(ArgValue::Int).ok().or_else(|| part.parse().map(ArgValue::Float).ok())
    };
    let bad = || {
        Diagnostic::error("argument-text", format!("`{}` is no value", text.chars().take(40).collect::<String>()))
            .hint("write a number, True or False, or several with commas")
    };
    if inner.contains(',') {
        let parts = inner.split(',').map(str::trim).filter(|p| !p.is_empty());
        return parts.map(one).collect::<Option<Vec<_>>>().map(ArgValue::List).ok_or_else(bad);
    }
    one(inner).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_values_or_are_refused() {
        assert_eq!(parse_literal("(3, 5)").unwrap(), ArgValue::List(vec![ArgValue::Int(3), ArgValue::Int(5)]));
        assert_eq!(parse_literal("0.5").unwrap(), ArgValue::Float(0.5));
        assert_eq!(parse_literal("True").unwrap(), ArgValue::Bool(true));
        assert!(parse_literal("3, x").is_err() && parse_literal("").is_err());
        let ArgValue::Tensor { tensor } = parse_tensor("[512, 384]").unwrap() else { panic!() };
        assert_eq!((numbers(&tensor).as_str(), tensor.dtype()), ("512, 384", crate::base::DType::I64));
        let ArgValue::Tensor { tensor } = parse_tensor("1, 2.5").unwrap() else { panic!() };
        assert_eq!(numbers(&tensor), "1, 2.5");
        assert!(parse_tensor("").is_err() && parse_tensor("1; 2").is_err());
    }
}
