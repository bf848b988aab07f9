//! The code: edited, and compiled: PyTorch, the kernel's CUDA text, registers, shared memory, spills.
//!
//! Invariant: the shown code is the compiled code; an older kernel is marked as stale. Must not know emitters.

use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::editor::{self, highlight};
use crate::app::language::{say, say_with};
use crate::app::session::JobKind;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{command_button, id};
use crate::base::BackendName;
use crate::document::model::{MaskContent, ScoreContent};
use crate::export::torch_module;
use crate::problem::result::{KernelArtefact, Outcome};
use egui::{RichText, ScrollArea, TextStyle, Ui};

/// Which text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Shown {
    #[default]
    Python,
    Mods,
    Kernel,
    Log,
    Cell,
}

/// The smallest width, in points, with the editor next to the compiled code.
const BESIDE: f32 = 760.0;
/// Architectures that a kernel can be compiled for without a card.
const ARCHITECTURES: [&str; 6] = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"];

/// Draws it: the editor, and next to it or below it the compiled code.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let room = ui.available_size();
    // without a text to edit the room belongs to what the design becomes
    if room.x >= BESIDE && !texts(state).is_empty() {
        ui.horizontal_top(|ui| {
            let side = |ui: &mut Ui, width: f32, contents: &mut dyn FnMut(&mut Ui)| {
                ui.allocate_ui_with_layout(egui::vec2(width, room.y), egui::Layout::top_down(egui::Align::Min), |ui| {
                    ui.set_width(width);
                    contents(ui);
                });
            };
            side(ui, room.x * 0.5 - 8.0, &mut |ui| editor(ui, state, room.y, actions));
            ui.separator();
            side(ui, room.x * 0.5 - 14.0, &mut |ui| becomes(ui, state, actions));
        });
        return;
    }
    editor(ui, state, room.y * 0.5, actions);
    ui.separator();
    becomes(ui, state, actions);
}

/// The text of the layer in hand, or of the first that has one.
fn editor(ui: &mut Ui, state: &State, height: f32, actions: &mut Actions) {
    let texts = texts(state);
    let chosen = texts.iter().find(|t| Some(t.0) == state.focus.layer).or(texts.first());
    let Some((id, _, source)) = chosen else {
        match linked(state) {
            Some((name, path)) => {
                let words = say_with(ui, "code-linked", &[("name", name.into()), ("path", path.into())]);
                ui.add(egui::Label::new(words).wrap());
            }
            None => drop(ui.label(say(ui, "code-none"))),
        }
        ui.horizontal_wrapped(|ui| {
            command_button(ui, Command::PasteCode, true, actions);
            command_button(ui, Command::AddText, true, actions);
            command_button(ui, Command::AddScoreText, true, actions);
        });
        return;
    };
    if texts.len() > 1 {
        ui.horizontal_wrapped(|ui| {
            for (other, name, _) in &texts {
                if ui.selectable_label(other == id, *name).clicked() {
                    actions.push(Action::Select(Some(*other)));
                }
            }
        });
    }
    let height = (height - if texts.len() > 1 { 34.0 } else { 8.0 }).max(120.0);
    editor::show(ui, state, *id, source, height, actions);
}

/// The first layer whose code is a file: its name and path.
fn linked(state: &State) -> Option<(&str, &str)> {
    let mask = state.document.layers.iter().find_map(|l| match &l.content {
        MaskContent::Linked(code) => Some((l.name.as_str(), code.path.as_str())),
        _ => None,
    });
    let score = state.document.scores.iter().find_map(|s| match &s.content {
        ScoreContent::Linked(code) => Some((s.name.as_str(), code.path.as_str())),
        _ => None,
    });
    mask.or(score)
}

/// Layers with editable text: id, name, text.
fn texts(state: &State) -> Vec<(u64, &str, &str)> {
    let masks = state.document.layers.iter().filter_map(|l| match &l.content {
        MaskContent::Text(code) => Some((l.id, l.name.as_str(), &*code.source)),
        _ => None,
    });
    let scores = state.document.scores.iter().filter_map(|s| match &s.content {
        ScoreContent::Text(code) => Some((s.id, s.name.as_str(), &*code.source)),
        _ => None,
    });
    masks.chain(scores).collect()
}

/// The compiled forms of the code: PyTorch, CUDA, the compiler's log, one cell step by step.
fn becomes(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let memory = id("code tab");
    let (mut shown, compiles) = ui.data(|d| d.get_temp::<(Shown, u64)>(memory)).unwrap_or_default();
    if compiles != state.compiles && !matches!(shown, Shown::Mods | Shown::Kernel | Shown::Log) {
        shown = Shown::Log;
    }
    let kernel = kernel(state);
    ui.horizontal_wrapped(|ui| {
        for (which, name) in [
            (Shown::Python, "PyTorch"),
            (Shown::Mods, say(ui, "code-mods")),
            (Shown::Kernel, say(ui, "code-kernel")),
            (Shown::Log, say(ui, "code-compiler")),
            (Shown::Cell, say(ui, "code-steps")),
        ] {
            ui.selectable_value(&mut shown, which, name);
        }
        if !matches!(shown, Shown::Python | Shown::Cell) {
            ui.separator();
            compile(ui, state, actions);
            if let Some((artefact, not_of_this)) = &kernel {
                facts(ui, artefact, *not_of_this);
            }
        }
    });
    ui.data_mut(|d| d.insert_temp(memory, (shown, state.compiles)));
    if shown == Shown::Cell {
        return super::cell::show(ui, state, actions);
    }
    if let Some(why) = &state.session.kernel_error
        && shown != Shown::Python
    {
        super::reported(ui, why);
    }
    let text = match (shown, &kernel) {
        (Shown::Python, _) => python(ui, state),
        (Shown::Mods, Some((artefact, _))) => artefact.mods.clone(),
        (Shown::Kernel, Some((artefact, _))) => artefact.source.clone(),
        (Shown::Log, Some((artefact, _))) => log(ui, artefact),
        (Shown::Cell, _) => return,
        (_, None) => {
            ui.weak(say(ui, "code-no-kernel"));
            return;
        }
    };
    if ui.small_button(say(ui, "copy")).on_hover_text(say(ui, "code-copy-tip")).clicked() {
        ui.ctx().copy_text(text.clone());
    }
    listing(ui, &text, shown == Shown::Python);
}

/// Why a kernel is not the document's: the texts of a word and of a sentence.
type NotOfThis = Option<(&'static str, &'static str)>;

const STALE: (&str, &str) = ("race-stale", "code-stale-tip");
const COPY: (&str, &str) = ("race-smaller-copy", "code-smaller-tip");

/// The newest kernel: compiled on demand, else that of the race.
fn kernel(state: &State) -> Option<(&KernelArtefact, NotOfThis)> {
    if let Some(kernel) = &state.session.kernel {
        return Some((&kernel.artefact, kernel.stale.then_some(STALE)));
    }
    let race = state.session.race.as_ref()?;
    race.reports.iter().rev().find_map(|report| match &report.outcome {
        Outcome::Done { artefact: Some(artefact), .. } => {
            let not = race.stale.then_some(STALE).or((!race.is_whole()).then_some(COPY));
            Some((&**artefact, not))
        }
        _ => None,
    })
}

fn compile(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let working = state.session.has(JobKind::Compile);
    command_button(ui, Command::Compile, !working, actions);
    ui.menu_button(say(ui, "code-for"), |ui| {
        for arch in ARCHITECTURES {
            if ui.button(arch).clicked() {
                actions.push(Action::Compile { backend: BackendName::Flex, arch: Some(arch.into()) });
                ui.close();
            }
        }
    });
    if working {
        ui.spinner();
    }
}

fn facts(ui: &mut Ui, artefact: &KernelArtefact, not_of_this: NotOfThis) {
    let colours = palette(ui.visuals());
    if let Some((word, sentence)) = not_of_this {
        let word = RichText::new(say(ui, word)).strong().color(colours.warning);
        ui.label(word).on_hover_text(say(ui, sentence));
    }
    ui.strong(&artefact.name);
    ui.label(&artefact.arch);
    ui.label(say_with(ui, "code-registers", &[("n", artefact.registers.into())]));
    ui.label(say_with(
        ui,
        "code-shared",
        &[("kb", format!("{:.1}", f64::from(artefact.shared_bytes) / 1024.0).into())],
    ));
    let spills = say_with(ui, "code-spilled", &[("n", artefact.spill_bytes.into())]);
    if artefact.spill_bytes > 0 {
        ui.colored_label(colours.warning, spills).on_hover_text(say(ui, "code-spilled-tip"));
    } else {
        ui.label(spills);
    }
    if artefact.stack_bytes > 0 {
        ui.label(say_with(ui, "code-stack", &[("n", artefact.stack_bytes.into())]));
    }
    if let Some(blocks) = artefact.blocks_per_sm {
        ui.label(say_with(ui, "code-blocks", &[("n", blocks.into())]));
    }
    ui.weak(if artefact.cached {
        say(ui, "code-cached").to_string()
    } else {
        say_with(ui, "code-compiled", &[("ms", format!("{:.0}", artefact.compile_ms).into())])
    });
}

fn log(ui: &Ui, artefact: &KernelArtefact) -> String {
    let log = if artefact.log.trim().is_empty() { say(ui, "code-silent") } else { &artefact.log };
    let key = say_with(ui, "code-key", &[("key", artefact.key.to_string().into())]);
    format!("{log}\n\n{key}")
}

/// The exported module, made once for each compiled document.
fn python(ui: &Ui, state: &State) -> String {
    let Some(built) = &state.session.built else { return String::new() };
    let memory = id("python text");
    if let Some((_, text)) = ui.data(|d| d.get_temp::<(u64, String)>(memory)).filter(|(at, _)| *at == built.revision) {
        return text;
    }
    let text = match &built.problem {
        Ok(problem) => torch_module(problem).into_iter().next().map(|file| String::from_utf8_lossy(&file.bytes).into()),
        Err(_) => None,
    };
    let text = text.unwrap_or_else(|| format!("# {}\n", say(ui, "code-errors")));
    ui.data_mut(|d| d.insert_temp(memory, (built.revision, text.clone())));
    text
}

/// A long text, of which only the lines in sight are laid out; Python, which is short, in colours.
fn listing(ui: &mut Ui, text: &str, is_python: bool) {
    /// Longer texts have captured tensors written out, which no colour helps.
    const COLOURED: usize = 100_000;
    let area = ScrollArea::both().id_salt("listing").auto_shrink([false, false]);
    if is_python && text.len() < COLOURED {
        area.show(ui, |ui| {
            let font = TextStyle::Monospace.resolve(ui.style());
            let job = highlight::job(text, &[], font, &palette(ui.visuals()), ui.visuals().text_color());
            ui.add(egui::Label::new(job).extend());
        });
        return;
    }
    let lines: Vec<&str> = text.lines().collect();
    let height = ui.text_style_height(&TextStyle::Monospace);
    area.show_rows(ui, height, lines.len(), |ui, rows| {
        for line in &lines[rows] {
            // an empty line has the height of any other
            let line = if line.is_empty() { " " } else { *line };
            ui.add(egui::Label::new(RichText::new(line).monospace()).extend());
        }
    });
}
