//! The right panel: axes, shapes, formats, backends, inputs.
//!
//! Invariant: every field shows the document's value; an invalid text stays in its field with its error. Must not know
//! devices.

use super::axes;
use crate::app::action::Actions;
use crate::app::action::settings_edit;
use crate::app::fields::slider_of;
use crate::app::language::{say, say_with};
use crate::app::state::State;
use crate::app::widgets::{Commit, diagnostic_below, parsed_field, section, text_field, text_field_took, whole};
use crate::base::{BlockSize, DType, Diagnostic, Layout};
use crate::document::edit::Edit;
use crate::document::model::Settings;
use egui::{Grid, Ui};

/// Draws it.
pub(in crate::app) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    section(ui, say(ui, "design-axes"));
    axes::show(ui, state, actions);
    section(ui, say(ui, "design-shape"));
    shape(ui, &state.document.settings, actions);
    if let Some(built) = &state.session.built
        && let Err(why) = &built.problem
    {
        let settings = |d: &&Diagnostic| d.labels.is_empty() && !built.compiled.all_diagnostics().any(|o| o == *d);
        why.iter().filter(settings).for_each(|d| diagnostic_below(ui, d));
    }
    ui.add_space(6.0);
    ui.collapsing(say(ui, "design-about"), |ui| about(ui, state, actions));
}

fn about(ui: &mut Ui, state: &State, actions: &mut Actions) {
    // a bar without room for it has no field of the name
    let (name, width) = (&state.document.name, ui.available_width());
    ui.label(say(ui, "problem-name"));
    let (_, changed) = text_field(ui, say(ui, "problem-name"), name, width);
    if let Some(name) = changed {
        text_field_took(ui, say(ui, "problem-name"), &name);
        actions.edit(Edit::Rename(name));
    }
    let mut text = state.document.about.clone();
    let field = egui::TextEdit::multiline(&mut text).desired_rows(4).desired_width(f32::INFINITY);
    if ui.add(field.hint_text(say(ui, "problem-about-hint"))).accessible_name(say(ui, "problem-about")).changed() {
        actions.edit(Edit::SetAbout(text));
    }
}

fn shape(ui: &mut Ui, settings: &Settings, actions: &mut Actions) {
    Grid::new("shape").num_columns(2).spacing([10.0, 5.0]).show(ui, |ui| {
        for (name, value, max) in [
            ("batch", settings.batch, 1 << 16),
            ("heads", settings.heads, 1 << 12),
            ("kv_heads", settings.kv_heads, 1 << 12),
            ("head_dim", settings.head_dim, 256),
        ] {
            let shown = match name {
                "batch" => say(ui, "problem-batch"),
                "heads" => say(ui, "problem-heads"),
                field => field,
            };
            ui.label(shown);
            if let Some(new) = whole(ui, shown, value, 1..=max) {
                actions.edit(settings_edit(settings, |s| set(s, name, new)));
            }
            ui.end_row();
        }
        dtype(ui, settings, actions);
        block_size(ui, settings, actions);
    });
    egui::CollapsingHeader::new(rare_words(ui, settings)).id_salt("rare settings").show(ui, |ui| {
        Grid::new("rare").num_columns(2).spacing([10.0, 5.0]).show(ui, |ui| {
            value_dim(ui, settings, actions);
            layout(ui, settings, actions);
            scale(ui, settings, actions);
            fast_math(ui, settings, actions);
        });
    });
}

/// The values set among the rarely used settings, so that folding hides nothing.
fn rare_words(ui: &Ui, settings: &Settings) -> String {
    let (more, mut words) = (say(ui, "design-more"), Vec::new());
    words.extend(settings.head_dim_v.map(|n| format!("head_dim_v {n}")));
    words.extend((settings.layout != Layout::Bhsd).then(|| "B S H D".to_string()));
    words.extend(settings.scale.map(|s| say_with(ui, "problem-scale-is", &[("scale", s.to_string().into())])));
    words.extend(settings.fast_math.then(|| say(ui, "problem-fast").to_string()));
    if words.is_empty() { more.into() } else { format!("{more}: {}", words.join(", ")) }
}

fn set(settings: &mut Settings, name: &str, value: usize) {
    match name {
        "batch" => settings.batch = value,
        "heads" => settings.set_heads(value),
        "kv_heads" => settings.kv_heads = value,
        _ => settings.head_dim = value,
    }
}

fn value_dim(ui: &mut Ui, settings: &Settings, actions: &mut Actions) {
    ui.label("head_dim_v");
    ui.horizontal(|ui| {
        let mut own = settings.head_dim_v.is_some();
        let toggled = ui.checkbox(&mut own, "").accessible_name(say(ui, "problem-own-dim")).changed();
        if toggled {
            actions.edit(settings_edit(settings, |s| s.head_dim_v = own.then_some(s.head_dim)));
        }
        match settings.head_dim_v {
            Some(value) => {
                if let Some(new) = whole(ui, "head_dim_v", value, 1..=256) {
                    actions.edit(settings_edit(settings, |s| s.head_dim_v = Some(new)));
                }
            }
            None => {
                ui.weak(say(ui, "problem-as-dim"));
            }
        }
    });
    ui.end_row();
}

fn dtype(ui: &mut Ui, settings: &Settings, actions: &mut Actions) {
    ui.label("dtype");
    ui.horizontal(|ui| {
        for (dtype, name) in [(DType::BF16, "bf16"), (DType::F16, "fp16"), (DType::F32, "fp32")] {
            let words = if dtype == DType::F32 { say(ui, "problem-cpu-only") } else { say(ui, "problem-sums") };
            if ui.selectable_label(settings.dtype == dtype, name).on_hover_text(words).clicked() {
                actions.edit(settings_edit(settings, |s| s.dtype = dtype));
            }
        }
    });
    ui.end_row();
}

fn layout(ui: &mut Ui, settings: &Settings, actions: &mut Actions) {
    ui.label(say(ui, "problem-layout"));
    ui.horizontal(|ui| {
        for (layout, name) in [(Layout::Bhsd, "B H S D"), (Layout::Bshd, "B S H D")] {
            if ui.selectable_label(settings.layout == layout, name).clicked() {
                actions.edit(settings_edit(settings, |s| s.layout = layout));
            }
        }
    });
    ui.end_row();
}

fn block_size(ui: &mut Ui, settings: &Settings, actions: &mut Actions) {
    ui.label("BLOCK_SIZE");
    let BlockSize { q, kv } = settings.block_size;
    ui.horizontal(|ui| {
        if let Some(q) = whole(ui, "block_size_q", q, 1..=1 << 20) {
            actions.edit(settings_edit(settings, |s| s.block_size.q = q));
        }
        ui.label("x");
        if let Some(kv) = whole(ui, "block_size_kv", kv, 1..=1 << 20) {
            actions.edit(settings_edit(settings, |s| s.block_size.kv = kv));
        }
    });
    ui.end_row();
    ui.label("");
    block_slider(ui, settings, actions);
    ui.end_row();
}

/// Square blocks from 8 to 2048 by powers of two; the sparsity above the picture follows.
fn block_slider(ui: &mut Ui, settings: &Settings, actions: &mut Actions) {
    let BlockSize { q, kv } = settings.block_size;
    let mut power = q.max(kv).max(1).ilog2().clamp(3, 11);
    ui.spacing_mut().slider_width = 110.0;
    let slider = slider_of(&mut power, 3..=11).show_value(false);
    let response = ui.add(slider).accessible_name(say(ui, "problem-square"));
    if response.on_hover_text(say(ui, "problem-square.tip")).changed() {
        actions.edit(settings_edit(settings, |s| s.block_size = BlockSize::square(1 << power)));
    }
}

fn scale(ui: &mut Ui, settings: &Settings, actions: &mut Actions) {
    ui.label(say(ui, "problem-scale"));
    let text = settings.scale.map(|s| s.to_string()).unwrap_or_default();
    let parse = |text: &str| -> Result<(Option<f64>, String), Diagnostic> {
        let text = text.trim();
        if text.is_empty() {
            return Ok((None, String::new()));
        }
        let bad = || {
            Diagnostic::error("scale", format!("`{text}` is not a finite number"))
                .hint("leave the field empty for 1/sqrt(head_dim)")
        };
        let value: f64 = text.parse().ok().filter(|v: &f64| v.is_finite()).ok_or_else(bad)?;
        Ok((Some(value), value.to_string()))
    };
    ui.vertical(|ui| {
        ui.set_max_width(170.0);
        if let Some(scale) = parsed_field(ui, say(ui, "problem-scale"), &text, 90.0, Commit::AtEnd, parse) {
            actions.edit(settings_edit(settings, |s| s.scale = scale));
        }
        if settings.scale.is_none() {
            ui.weak(format!("1/sqrt({}) = {:.4}", settings.head_dim, 1.0 / (settings.head_dim as f64).sqrt()));
        }
    });
    ui.end_row();
}

fn fast_math(ui: &mut Ui, settings: &Settings, actions: &mut Actions) {
    ui.label(say(ui, "problem-fast"));
    let mut on = settings.fast_math;
    if ui.checkbox(&mut on, say(ui, "problem-tanh")).on_hover_text(say(ui, "problem-tanh.tip")).changed() {
        actions.edit(settings_edit(settings, |s| s.fast_math = on));
    }
    ui.end_row();
}
