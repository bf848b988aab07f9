//! Export: first the program in use, then the files to write, the changes of a configuration, and the next steps.
//!
//! Invariant: nothing is written before the user decides; replacing files needs consent; every file is shown before it
//! is written; the button that writes is always visible. Must not know file formats.

mod preview;

use crate::app::action::{Action, Actions, Pick};
use crate::app::drafts::ExportPage;
use crate::app::drafts::export::{Done, ExportChoices, Picture, SIDECAR};
use crate::app::drafts::path::{beside_home, expand};
use crate::app::drafts::uses::Use;
use crate::app::exporting::{ExportWish, Made};
use crate::app::language::{say, say_with, words as words_of};
use crate::app::state::State;
use crate::app::theme;
use crate::app::widgets::{diagnostic_below, painted, path_label, primary_button, section};
use crate::app::writing::Order;
use crate::base::{BackendName, Diagnostic};
use crate::export::{ExportFile, ExportKind};
use crate::problem::result::{BackendReport, RunReport};
use crate::trainers::Trainer;
use egui::{RichText, ScrollArea, Sense, TextEdit, Ui, Vec2};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The initial choices of a document's first export.
fn first(state: &State) -> ExportChoices {
    let config = state.config.as_ref().map(|c| c.display().to_string()).unwrap_or_default();
    let beside = state.config.as_ref().or(state.path.as_ref()).and_then(|p| p.parent());
    let folder = match beside {
        Some(folder) if state.config.is_some() => folder.display().to_string(),
        Some(folder) => folder.join("export").display().to_string(),
        None => beside_home("maskloom-export"),
    };
    let of = state.trainer.as_ref().map(|t| match t.trainer {
        Trainer::SimpleTuner => Use::SimpleTuner,
        Trainer::Transformers => Use::Transformers,
    });
    ExportChoices { of, folder, config, in_place: true, backend: None, ticked: BTreeMap::new() }
}

/// Requests the files again if the choices or the document have changed.
fn follow(page: &mut ExportPage, state: &State, actions: &mut Actions) {
    let (Some(built), Some(choices)) = (&state.session.built, &page.choices) else { return };
    let Some(of) = choices.of else { return };
    let wish = ExportWish {
        revision: built.revision,
        config: choices.config_path(),
        trainer: of.trainer().unwrap_or_default(),
        backend: choices.backend,
        measured: measured(state),
        kernels: of == Use::Kernels,
        run: race(state),
        shown: (state.focus.b, state.focus.h),
        base: state.path.as_ref().and_then(|p| p.parent()).map(PathBuf::from),
    };
    if page.wish.as_ref() != Some(&wish) {
        (page.wish, page.pieces) = (Some(wish.clone()), None);
        page.existing.clear();
    }
    // a path that is typed is a new wish with every key
    if (page.pieces.is_none() || page.anew) && !page.making {
        (page.making, page.anew) = (true, false);
        actions.push(Action::MakeExport(wish));
    }
}

/// The last race, if it is of the complete present document.
fn race(state: &State) -> Option<Box<RunReport>> {
    state.session.race.as_ref().filter(|race| !race.stale && race.is_whole())?.report.clone()
}

/// The fastest right backend of the last race, if it ran without a mask.
fn measured(state: &State) -> Option<BackendName> {
    let race = state.session.race.as_ref().filter(|race| !race.stale && race.is_whole())?;
    let (request, _) = race.request.as_ref()?;
    if request.problem.mask.is_some() || request.problem.score.is_some() {
        return None;
    }
    let time = |report: &BackendReport| report.outcome.right().map(|timing| timing.median_ms);
    let timed = race.reports.iter().filter_map(|r| Some((r.backend, time(r)?)));
    timed.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(backend, _)| backend)
}

/// Height of the strip that writes, in points.
const FOOT: f32 = 46.0;

/// Draws it: questions and files, scrolled, above the button that writes.
pub(super) fn show(ui: &mut Ui, state: &State, page: &mut ExportPage, actions: &mut Actions) {
    let asked = page.choices.as_ref().is_some_and(|choices| choices.of.is_some());
    let height = ui.available_height() - if asked { FOOT } else { 0.0 };
    let area = ScrollArea::vertical().id_salt("export").auto_shrink([false, false]).max_height(height.max(80.0));
    let made = area.show(ui, |ui| contents(ui, state, page, actions)).inner;
    if asked {
        ui.separator();
        foot(ui, state, page, made, actions);
    }
}

/// The questions, and the files to write; returns the files if they are ready.
fn contents(ui: &mut Ui, state: &State, page: &mut ExportPage, actions: &mut Actions) -> Option<Made> {
    let mut choices = page.choices.take().unwrap_or_else(|| first(state));
    question(ui, &mut choices);
    let Some(of) = choices.of else {
        page.choices = Some(choices);
        return None;
    };
    where_to(ui, page, &mut choices, actions);
    page.choices = Some(choices);
    follow(page, state, actions);
    let made = match &page.pieces {
        Some(Ok(made)) => made.clone(),
        Some(Err(why)) => {
            why.iter().for_each(|d| diagnostic_below(ui, d));
            return None;
        }
        None => {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.label(say(ui, "export-creating"));
            });
            return None;
        }
    };
    let choices = page.choices.as_mut()?;
    if let Some(merged) = made.merged.as_ref().filter(|_| choices.changes_file()) {
        section(ui, say(ui, "export-changes"));
        preview::difference(ui, merged);
    }
    files(ui, &made, choices, &mut page.shown, &mut page.picture);
    let folder = choices.folder.clone();
    // notes about a configuration are shown if one is written
    let config = choices.changes_file() || made.files.first().is_some_and(|file| choices.takes(file));
    let said = made.notes.iter().filter(|note| config || !note.code.starts_with("config-"));
    said.for_each(|note| diagnostic_below(ui, &with_folder(note, &folder)));
    if let Some(done) = page.done.clone().filter(|done| done.of == of) {
        let shown = next(ui, &done, actions);
        if !std::mem::replace(&mut page.reported, true) {
            shown.scroll_to_me(None);
        }
    }
    Some(made)
}

/// The button that writes, and its effect.
fn foot(ui: &mut Ui, state: &State, page: &mut ExportPage, made: Option<Made>, actions: &mut Actions) {
    let Some(choices) = &page.choices else { return };
    let overwrite = !page.existing.is_empty();
    let yes = say(ui, if overwrite { "export-replace-them" } else { "export-write-files" });
    let free = !choices.folder.trim().is_empty() && !page.writing && !page.making && !page.anew;
    let ready = free && made.is_some();
    ui.horizontal(|ui| {
        let button = primary_button(ui, yes, ready);
        let clicked = ui.add_enabled_ui(ready, |ui| ui.add_sized(Vec2::new(150.0, 30.0), button)).inner.clicked();
        match &made {
            _ if overwrite => {
                let colour = ui.visuals().warn_fg_color;
                let words = RichText::new(would_be_replaced(ui, &page.existing)).color(colour);
                ui.add(egui::Label::new(words).truncate()).on_hover_text(page.existing.join("\n"));
            }
            Some(made) => {
                let count = made.files.iter().enumerate().filter(|(at, file)| taken(choices, made, *at, file)).count();
                let words = per_head(ui, state, counted(ui, count));
                ui.add(egui::Label::new(RichText::new(words).weak()).truncate());
            }
            None => {}
        }
        if let Some(made) = made.filter(|_| clicked) {
            actions.push(Action::Export(order(choices, made, overwrite)));
            page.writing = true;
        }
    });
}

fn counted(ui: &Ui, files: usize) -> String {
    say_with(ui, "export-files", &[("n", files.into())])
}

/// Says of a mask that differs between heads that each gets its own.
fn per_head(ui: &Ui, state: &State, files: String) -> String {
    let problem = state.session.built.as_ref().and_then(|built| built.problem.as_ref().ok());
    let differs = problem.filter(|problem| problem.mask_per_head());
    let Some(problem) = differs else { return files };
    say_with(ui, "export-files-per-head", &[("files", files.into()), ("heads", problem.heads.into())])
}

/// The question for the program in use.
fn question(ui: &mut Ui, choices: &mut ExportChoices) {
    ui.label(RichText::new(say(ui, "export-question")).heading());
    let gap = ui.spacing().item_spacing.x;
    // once it is answered, the room belongs to what follows
    let answered = choices.of.is_some();
    let columns = match ui.available_width() {
        narrow if narrow < 330.0 => 1.0,
        wide if answered && wide >= 600.0 => 4.0,
        wide if answered && wide >= 420.0 => 3.0,
        _ => 2.0,
    };
    let width = ((ui.available_width() - gap * (columns - 1.0)) / columns).floor() - 1.0;
    // all alike, and high enough for the longest words
    let longest = Use::ALL.map(|of| words(ui, of, width).size().y).into_iter().fold(0.0, f32::max);
    let height = if answered { 28.0 } else { longest + 32.0 };
    ui.horizontal_wrapped(|ui| {
        for of in Use::ALL {
            if card(ui, Vec2::new(width, height), choices.of == Some(of), answered, of).clicked() {
                choices.of = Some(of);
                choices.ticked.clear();
            }
        }
    });
}

/// One answer, with its meaning until one is chosen.
fn card(ui: &mut Ui, size: Vec2, chosen: bool, short: bool, of: Use) -> egui::Response {
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    let title = say(ui, of.title());
    response.widget_info(|| egui::WidgetInfo::selected(egui::Role::RadioButton, true, chosen, title));
    let visuals = ui.style().interact_selectable(&response, chosen);
    ui.painter().rect(rect, 6.0, visuals.weak_bg_fill, visuals.bg_stroke, egui::StrokeKind::Inside);
    let inner = rect.shrink2(Vec2::new(9.0, 5.0));
    painted(ui, inner.left_top(), inner.width(), RichText::new(title).strong());
    if !short {
        let galley = words(ui, of, size.x);
        ui.painter().galley(inner.left_top() + Vec2::new(0.0, 20.0), galley, ui.visuals().text_color());
    }
    response.on_hover_text(say(ui, of.words()))
}

/// The meaning of an answer, wrapped inside a card of this width.
fn words(ui: &Ui, of: Use, width: f32) -> std::sync::Arc<egui::Galley> {
    let text = egui::WidgetText::from(RichText::new(say(ui, of.words())).small().weak());
    text.into_galley(ui, Some(egui::TextWrapMode::Wrap), width - 18.0, egui::TextStyle::Body)
}

/// Folder, configuration and the value that it gets.
fn where_to(ui: &mut Ui, page: &mut ExportPage, choices: &mut ExportChoices, actions: &mut Actions) {
    section(ui, say(ui, "export-where"));
    let field = |ui: &mut Ui, name: &str, text: &mut String, hint: &str| {
        let label = ui.label(name);
        ui.horizontal(|ui| {
            let width = ui.available_width() - 80.0;
            let field = TextEdit::singleline(text).desired_width(width).hint_text(hint);
            let changed = ui.add(field).labelled_by(label.id).changed();
            (
                changed,
                ui.button(say(ui, "export-browse"))
                    .accessible_name(say_with(ui, "export-browse-name", &[("name", name.into())]))
                    .clicked(),
            )
        })
        .inner
    };
    let (changed, browse) = field(ui, say(ui, "export-folder"), &mut choices.folder, "");
    if changed {
        page.existing.clear();
    }
    if browse {
        page.picking_config = false;
        actions.push(Action::Pick(Pick::Folder));
    }
    let Some(trainer) = choices.of.and_then(Use::trainer) else { return };
    let (_, browse) = field(ui, say(ui, "export-config"), &mut choices.config, say(ui, "export-config-none"));
    if browse {
        page.picking_config = true;
        actions.push(Action::Pick(Pick::File("config.json", &["json"])));
    }
    setting(ui, trainer, choices);
    let Some(config) = choices.config_path() else { return };
    let name = config.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let copy = expand(&choices.folder).join(&name);
    let beside = choices.beside();
    ui.horizontal_wrapped(|ui| {
        let shown = config.display().to_string();
        let words = say_with(ui, "export-in-place-tip", &[("file", shown.into()), ("name", name.into())]);
        ui.radio_value(&mut choices.in_place, true, say(ui, "export-in-place")).on_hover_text(words);
        ui.add_enabled_ui(!beside, |ui| {
            let words = say_with(ui, "export-copy", &[("path", copy.display().to_string().into())]);
            ui.radio_value(&mut choices.in_place, false, words).on_hover_text(say(ui, "export-copy-tip"));
        });
    });
}

/// Which backend the trainer's setting selects.
fn setting(ui: &mut Ui, trainer: Trainer, choices: &mut ExportChoices) {
    ui.horizontal(|ui| {
        ui.label(trainer.key());
        let unmasked = say(ui, "export-no-mask");
        let name = |backend: Option<BackendName>| match backend {
            None => unmasked.to_string(),
            Some(backend) => format!("{} ({backend})", trainer.value(backend).0),
        };
        let all = BackendName::ALL.into_iter().filter(|backend| !backend.is_torch());
        let combo = egui::ComboBox::from_id_salt("setting").selected_text(name(choices.backend)).width(200.0);
        let shown = combo.show_ui(ui, |ui| {
            for choice in [None].into_iter().chain(all.map(Some)) {
                ui.selectable_value(&mut choices.backend, choice, name(choice));
            }
        });
        let words = say(ui, "export-setting.tip");
        shown.response.accessible_name(say(ui, "export-setting")).on_hover_text(words);
    });
}

/// The files with their purpose; a tick selects one for writing, a click shows it.
fn files(
    ui: &mut Ui,
    made: &Made,
    choices: &mut ExportChoices,
    shown: &mut Option<String>,
    picture: &mut Option<Picture>,
) {
    section(ui, say(ui, "export-to-write"));
    let changes = choices.changes_file() && made.merged.is_some();
    for file in made.files.iter().skip(usize::from(changes)) {
        // the runtime is one thing of many files
        if file.kind == ExportKind::Sidecar && file.name != SIDECAR {
            continue;
        }
        let mut on = choices.takes(file);
        let open = shown.as_ref() == Some(&file.name);
        ui.horizontal(|ui| {
            if ui
                .checkbox(&mut on, "")
                .accessible_name(say_with(ui, "export-write", &[("name", (&*file.name).into())]))
                .changed()
            {
                choices.ticked.insert(file.name.clone(), on);
            }
            let name = if file.name == "sidecar/sidecar.json" { "sidecar/" } else { &file.name };
            let text = RichText::new(name).monospace();
            let text = if on { text } else { text.weak() };
            if ui.selectable_label(open, text).on_hover_text(say(ui, "export-shows")).clicked() {
                *shown = (!open).then(|| file.name.clone());
            }
            ui.add(egui::Label::new(RichText::new(words_of(ui.ctx()).phrase(&file.what)).small().weak()).truncate());
        });
        if open {
            preview::preview(ui, picture, file);
        }
    }
}

/// Whether a file is written into the folder: a configuration changed in its place is not.
fn taken(choices: &ExportChoices, made: &Made, at: usize, file: &ExportFile) -> bool {
    if at == 0 && made.merged.is_some() && choices.changes_file() {
        return false;
    }
    choices.takes(file)
}

/// The files to write.
fn order(choices: &ExportChoices, made: Made, overwrite: bool) -> Order {
    let wanted: Vec<bool> = made.files.iter().enumerate().map(|(at, file)| taken(choices, &made, at, file)).collect();
    let merged = made.merged.filter(|_| choices.changes_file());
    let files = made.files.into_iter().zip(wanted).filter(|(_, wanted)| *wanted).map(|(f, _)| f).collect();
    Order { folder: expand(&choices.folder), files, merged, overwrite }
}

/// Words that speak of the export's folder name the real one.
fn with_folder(note: &Diagnostic, folder: &str) -> Diagnostic {
    let folder = expand(folder).display().to_string();
    let hint = note.hint.as_ref().map(|hint| hint.replace("EXPORT", &folder));
    Diagnostic { hint, ..note.clone() }
}

/// The first few names; the page must not grow out of the window.
fn would_be_replaced(ui: &Ui, names: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names[..names.len().min(SHOWN)].join(", ");
    let figures = [("n", names.len().into()), ("names", shown.into()), ("more", more.into())];
    say_with(ui, if more > 0 { "export-replaced-more" } else { "export-replaced" }, &figures)
}

/// The written files, and the next steps.
fn next(ui: &mut Ui, done: &Done, actions: &mut Actions) -> egui::Response {
    let colours = theme::palette(ui.visuals());
    ui.add_space(6.0);
    let group = egui::Frame::group(ui.style()).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.horizontal(|ui| {
            ui.label(RichText::new(say(ui, "export-written")).strong().color(colours.good));
            if ui.button(say(ui, "export-open-folder")).on_hover_text(say(ui, "export-open-folder.tip")).clicked() {
                actions.push(Action::OpenFolder(done.folder.clone()));
            }
        });
        let files = say_with(ui, "export-count-in", &[("files", counted(ui, done.files).into())]);
        path_label(ui, &files, &done.folder);
        if let Some(changed) = &done.config {
            match &changed.backup {
                Some(backup) => {
                    path_label(ui, say(ui, "export-has-value"), &changed.path);
                    path_label(ui, say(ui, "export-old-file"), backup);
                }
                None => drop(path_label(ui, say(ui, "export-had-value"), &changed.path)),
            }
        }
        ui.add_space(4.0);
        ui.strong(say(ui, "export-next"));
        for (kind, text) in done.of.next(&done.folder, &done.stem) {
            ui.horizontal_top(|ui| {
                if ui
                    .button(say(ui, "copy"))
                    .accessible_name(say_with(ui, "export-copy-lines", &[("kind", kind.into())]))
                    .clicked()
                {
                    ui.ctx().copy_text(text.clone());
                }
                ui.add(egui::Label::new(RichText::new(&text).monospace()).wrap());
            });
        }
    });
    group.response
}
