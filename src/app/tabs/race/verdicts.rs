//! Who takes the design, forward and backward, before anything is compiled: our backends and other libraries.
//!
//! Invariant: the table is of the compiled document and of the chosen place; nothing is looked up while it is closed. Must
//! not know how answers are found.

use crate::app::action::{Action, Actions};
use crate::app::language::{say, say_with, words as words_of};
use crate::app::state::State;
use crate::app::theme::palette;
use crate::app::tour::Show;
use crate::app::widgets::id;
use crate::base::Device;
use crate::tasks::verdicts::{Answer, Place, READ, Verdict};
use egui::{ComboBox, Grid, RichText, Ui};

/// GPUs to ask for, with cards that people know.
const CARDS: [(&str, &str); 6] = [
    ("sm_80", "A100"),
    ("sm_86", "RTX 30"),
    ("sm_89", "RTX 40, L40"),
    ("sm_90a", "H100, H200"),
    ("sm_100a", "B200"),
    ("sm_120a", "RTX 50"),
];
/// Widths in points: of the columns before what a library says, and of that at least and at most.
const BEFORE: f32 = 260.0;
const WORDS: std::ops::RangeInclusive<f32> = 160.0..=640.0;

/// Draws it.
pub(super) fn show(ui: &mut Ui, state: &State, actions: &mut Actions) {
    // the tour shows what is behind it
    let open = state.tour.as_ref().filter(|tour| tour.is_at(Show::Race)).map(|_| true);
    egui::CollapsingHeader::new(say(ui, "verdicts-title")).id_salt("verdicts").open(open).show(ui, |ui| {
        let place = chosen(ui, state);
        let Some(built) = &state.session.built else { return };
        let wanted = [built.number, built.revision];
        let found = state.session.verdicts.as_ref().filter(|v| v.of == wanted && v.place == place);
        match found.map(|found| &found.answer) {
            None => {
                actions.push(Action::FindVerdicts(place));
                ui.spinner();
            }
            Some(None) => drop(ui.spinner()),
            Some(Some(Err(why))) => {
                app::widgets::refusal(ui, why);
                ui.colored_label(palette(ui.visuals()).error, &why.message);
            }
            Some(Some(Ok(all))) => table(ui, all),
        }
    });
}

/// The place that is asked for: this device, unless another is chosen.
fn chosen(ui: &mut Ui, state: &State) -> Place {
    let memory = id("place of verdicts");
    let mut place = ui.data(|d| d.get_temp::<Place>(memory)).unwrap_or_else(|| here(state));
    ui.horizontal(|ui| {
        let label = ui.label(say(ui, "verdicts-on"));
        let combo = ComboBox::from_id_salt("place of verdicts").selected_text(name(ui, &place));
        let answer = combo.show_ui(ui, |ui| {
            let cards = CARDS.iter().map(|(arch, _)| Place::Gpu(arch.to_string()));
            for one in std::iter::once(Place::Cpu).chain(cards) {
                let text = name(ui, &one);
                if ui.selectable_value(&mut place, one, text).clicked() {
                    ui.data_mut(|d| d.insert_temp(memory, place.clone()));
                }
            }
        });
        answer.response.labelled_by(label.id);
        ui.weak(say_with(ui, "verdicts-others", &[("day", READ.into())]));
    });
    place
}

/// The device that races run on.
fn here(state: &State) -> Place {
    let device = state.session.device(&state.document);
    let infos = state.session.worker.as_ref().map_or(&[][..], |w| &w.devices);
    match infos.iter().find(|d| d.device == device).and_then(|d| d.compute_capability) {
        Some((9, 0)) => Place::Gpu("sm_90a".into()),
        Some((major, minor)) if device != Device::Cpu => Place::Gpu(format!("sm_{major}{minor}")),
        _ => Place::Cpu,
    }
}

fn name(ui: &Ui, place: &Place) -> String {
    match place {
        Place::Cpu => say(ui, "verdicts-cpu").into(),
        Place::Gpu(arch) => match CARDS.iter().find(|(own, _)| own == arch) {
            Some((_, cards)) => format!("{arch} ({cards})"),
            None => arch.clone(),
        },
    }
}

fn table(ui: &mut Ui, all: &[Verdict]) {
    let width = (ui.available_width() - BEFORE).clamp(*WORDS.start(), *WORDS.end());
    Grid::new("verdicts").num_columns(4).striped(true).show(ui, |ui| {
        [say(ui, "verdicts-who"), say(ui, "verdicts-forward"), say(ui, "verdicts-backward"), say(ui, "verdicts-how")]
            .iter()
            .for_each(|head| drop(ui.weak(*head)));
        ui.end_row();
        for one in all {
            ui.label(RichText::new(&one.who).strong());
            answer(ui, &one.forward);
            answer(ui, &one.backward);
            ui.vertical(|ui| words(ui, one, width));
            ui.end_row();
        }
    });
}

fn answer(ui: &mut Ui, answer: &Answer) {
    let colours = palette(ui.visuals());
    let (word, colour) = match answer {
        Answer::Takes(_) => (say(ui, "verdicts-takes"), colours.good),
        Answer::Dense(_) => (say(ui, "verdicts-dense"), colours.warning),
        Answer::Refuses(_) => (say(ui, "verdicts-refuses"), colours.error),
    };
    ui.colored_label(colour, word).on_hover_text(answer.told(words_of(ui.ctx())));
}

/// Its words on both passes, and the exact call if it takes one of them.
fn words(ui: &mut Ui, one: &Verdict, width: f32) {
    ui.set_max_width(width);
    let wrapped = |ui: &mut Ui, text: String| drop(ui.add(egui::Label::new(RichText::new(text).weak()).wrap()));
    let said = words_of(ui.ctx());
    wrapped(ui, one.forward.told(said));
    if one.backward.told(said) != one.forward.told(said) {
        wrapped(ui, say_with(ui, "verdicts-back", &[("words", one.backward.told(said).into())]));
    }
    if let Some(call) = one.call.as_ref().filter(|_| one.forward.takes() || one.backward.takes()) {
        ui.add(egui::Label::new(RichText::new(said.phrase(call)).monospace()).wrap());
    }
}
