//! The mods as PyTorch, and the kernel: its CUDA text, registers, shared memory, spills.
//!
//! Invariant: what is shown is what was compiled; an older kernel says that it is stale. Must not know emitters.

use crate::app::action::{Action, Actions};
use crate::app::command::Command;
use crate::app::panels::highlight;
use crate::app::session::JobKind;
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::widgets::{command_button, id};
use crate::base::BackendName;
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
}

/// Architectures that a kernel can be compiled for without a card.
const ARCHITECTURES: [&str; 6] = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"];

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    let memory = id("code tab");
    let mut shown = ui.data(|d| d.get_temp::<Shown>(memory)).unwrap_or_default();
    let kernel = kernel(state);
    ui.horizontal_wrapped(|ui| {
        for (which, name) in [
            (Shown::Python, "Python"),
            (Shown::Mods, "CUDA: mods"),
            (Shown::Kernel, "CUDA: kernel"),
            (Shown::Log, "Compiler"),
        ] {
            ui.selectable_value(&mut shown, which, name);
        }
        ui.separator();
        compile(ui, state, actions);
        if let Some((artefact, not_of_this)) = &kernel {
            facts(ui, artefact, *not_of_this);
        }
    });
    ui.data_mut(|d| d.insert_temp(memory, shown));
    if let Some(why) = &state.session.kernel_error
        && shown != Shown::Python
    {
        super::told(ui, why);
    }
    let text = match (shown, &kernel) {
        (Shown::Python, _) => python(ui, state),
        (Shown::Mods, Some((artefact, _))) => artefact.mods.clone(),
        (Shown::Kernel, Some((artefact, _))) => artefact.source.clone(),
        (Shown::Log, Some((artefact, _))) => log(artefact),
        (_, None) => {
            ui.weak("No kernel yet: run on a GPU, or compile here (needs NVRTC, no GPU).");
            return;
        }
    };
    if ui.small_button("Copy").on_hover_text("Copies the whole text.").clicked() {
        ui.ctx().copy_text(text.clone());
    }
    listing(ui, &text, shown == Shown::Python);
}

/// Why a kernel is not the document's: a word, and a sentence.
type NotOfThis = Option<(&'static str, &'static str)>;

const STALE: (&str, &str) = ("stale", "The document has changed since this was compiled.");
const COPY: (&str, &str) = ("smaller copy", "Compiled for the smaller copy that was raced.");

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
    ui.menu_button("for…", |ui| {
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
        ui.label(RichText::new(word).strong().color(colours.warning)).on_hover_text(sentence);
    }
    ui.strong(&artefact.name);
    ui.label(&artefact.arch);
    ui.label(format!("{} registers", artefact.registers));
    ui.label(format!("{:.1} KB shared memory", f64::from(artefact.shared_bytes) / 1024.0));
    let spills = format!("{} bytes spilled", artefact.spill_bytes);
    if artefact.spill_bytes > 0 {
        ui.colored_label(colours.warning, spills)
            .on_hover_text("Registers did not suffice: local memory is read and written.");
    } else {
        ui.label(spills);
    }
    if artefact.stack_bytes > 0 {
        ui.label(format!("{} bytes of stack", artefact.stack_bytes));
    }
    if let Some(blocks) = artefact.blocks_per_sm {
        ui.label(format!("{blocks} blocks a multiprocessor"));
    }
    ui.weak(if artefact.cached {
        "from the cache".to_string()
    } else {
        format!("compiled in {:.0} ms", artefact.compile_ms)
    });
}

fn log(artefact: &KernelArtefact) -> String {
    let log = if artefact.log.trim().is_empty() { "The compiler said nothing." } else { &artefact.log };
    format!("{log}\n\nkey {}", artefact.key)
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
    let text = text.unwrap_or_else(|| "# the document has errors: see Problems\n".to_string());
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
