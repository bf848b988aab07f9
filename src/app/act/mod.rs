//! Carries out what views ask for: the one place that changes the state.
//!
//! Invariant: every action either changes the state or tells why not; none waits. Must not know how anything is drawn.

mod canvas;
mod files;
mod jobs;
mod layers;
mod tensors;

use super::action::{Action, Fit};
use super::command::Command;
use super::dialogs::{self, Dialog};
use super::errands::Done;
use super::state::{State, Tab, empty_document};
use super::theme::ThemeChoice;
use crate::document::edit::Edit;
use crate::document::library;
use crate::document::model::{Axes, Settings};
use crate::document::resize;

/// Carries one action out.
pub(super) fn act(state: &mut State, action: Action) {
    match action {
        Action::Command(command) => run_command(state, command),
        Action::Edit(edit) => {
            state.edit(edit);
        }
        Action::SetAxes(axes) => set_axes(state, axes),
        Action::Resize(axes, how) => match resize::set_axes(&state.document, axes, how) {
            Ok(edit) => {
                state.history.seal();
                state.edit(edit);
                state.history.seal();
                state.dialog = None;
            }
            Err(why) => state.tell(why),
        },
        Action::Select(layer) => state.focus.layer = layer,
        Action::SetPicture(picture) => state.focus.picture = picture,
        Action::Count(true) => state.session.count_again(),
        Action::Count(false) => state.session.stop_count(),
        Action::SetHead { b, h } => (state.focus.b, state.focus.h) = (b, h),
        Action::Pin(cell) => state.focus.pinned = cell,
        Action::Canvas(event) => canvas::event(state, event),
        Action::AddPattern(name) => layers::add_pattern(state, &name),
        Action::OpenPreset(name) => open_preset(state, &name),
        Action::Open(path) => state.session.errands.open(&path, false),
        Action::OpenConfig(path) => state.session.errands.open(&path, true),
        Action::SaveTo(path) => files::save_to(state, path),
        Action::SaveRunTo(path) => files::save_run_to(state, &path),
        Action::AddCode { text, replace } => layers::add_code(state, &text, replace),
        Action::LinkCode { path, score } => layers::link_code(state, path, score),
        Action::Connect(target) => {
            state.view.target = target.clone();
            state.session.connect(target);
        }
        Action::SetPython(python) => state.view.python = python,
        Action::SetInputs(inputs) => match inputs {
            Some(inputs) => state.view.inputs = inputs,
            None => state.view.inputs.used = false,
        },
        Action::SetRounds(rounds) => state.view.rounds = rounds,
        Action::LoadTensors { layer, argument, path } => tensors::load(state, layer, argument, &path),
        Action::RequestMap(request) => jobs::request_map(state, request),
        Action::Compile { backend, arch } => jobs::compile(state, backend, arch),
        Action::MakeExport(wish) => {
            if let Some(built) = state.session.built.clone() {
                state.session.errands.export(built, wish);
            }
        }
        Action::Export { folder, files, overwrite } => files::export(state, &folder, files, overwrite),
        Action::Pick(pick) => state.session.errands.pick(&pick),
        Action::Fetch(plan) => {
            state.done("Fetching NVRTC; this takes a minute or so.");
            state.session.errands.fetch(plan);
        }
        Action::Dismiss(at) => state.notices.dismiss(at),
        Action::FitConfig { path, trainer, start } => {
            match start {
                Fit::Preset(name) => open_preset(state, &name),
                Fit::Plain(document) => {
                    replace_document(state, *document);
                    state.dialog = None;
                    jobs::run(state, false);
                }
            }
            (state.config, state.trainer) = (Some(path), Some(trainer));
        }
    }
}

/// Takes what other threads and the worker have done since the last frame.
pub(super) fn listen(state: &mut State) {
    jobs::listen(state);
    for done in state.session.errands.poll() {
        match done {
            Done::Opened { path, what } => files::opened(state, path, what),
            Done::Picked(path) => dialogs::picked(state, path),
            Done::Exported { wish, pieces } => dialogs::exported(state, &wish, pieces),
            Done::Planned(Ok(plan)) => ask(state, Dialog::Fetch(plan)),
            Done::Fetched(Ok(folder)) => fetched(state, &folder),
            Done::Planned(Err(why)) | Done::Fetched(Err(why)) => state.tell(why),
            Done::Smaller { revision, built } => jobs::run_smaller(state, revision, built),
            Done::Thumbnail { preset, size, pixels } => dialogs::thumbnail(state, preset, size, pixels),
        }
    }
    let path = state.path.clone();
    state.session.follow(&state.document, state.revision, path.as_deref());
}

fn run_command(state: &mut State, command: Command) {
    use Command::*;
    if !state.can(command) {
        return;
    }
    state.history.seal();
    match command {
        New => {
            replace_document(state, empty_document("tokens 4096"));
            state.done("A new document. Undo brings the one before back.");
        }
        Open => ask(state, Dialog::open()),
        Save => match state.path.clone() {
            Some(path) => files::save_to(state, path),
            None => ask(state, Dialog::save_as(state)),
        },
        SaveAs => ask(state, Dialog::save_as(state)),
        SaveRun => ask(state, Dialog::save_run(state)),
        Export => ask(state, Dialog::export(state)),
        Quit => state.quit = true,
        Undo => undo(state),
        Redo => redo(state),
        Run => jobs::run(state, false),
        RunWhole => jobs::run(state, true),
        Cancel => jobs::cancel(state),
        Compile => jobs::compile(state, crate::base::BackendName::Flex, None),
        Examine => jobs::examine(state),
        FetchNvrtc => state.session.errands.plan_fetch(),
        PasteCode => ask(state, Dialog::paste(state)),
        OpenConfig => ask(state, Dialog::open_config()),
        Connect => ask(state, Dialog::connect(state)),
        Gallery => {
            let dialog = Dialog::gallery(state);
            ask(state, dialog);
        }
        Palette => ask(state, Dialog::palette()),
        Shortcuts => ask(state, Dialog::Shortcuts),
        Messages => ask(state, Dialog::Messages),
        ShowTiming | ShowMap | ShowCell | ShowCode | ShowProblems | ShowDoctor => {
            let tab = Tab::ALL.into_iter().find(|tab| tab.command() == command).unwrap_or_default();
            (state.view.tab, state.view.bottom) = (tab, true);
        }
        NextHead => state.focus.h = (state.focus.h + 1) % state.document.settings.heads.max(1),
        PreviousHead => {
            let heads = state.document.settings.heads.max(1);
            state.focus.h = (state.focus.h + heads - 1) % heads;
        }
        ToggleLeft => state.view.left = !state.view.left,
        ToggleRight => state.view.right = !state.view.right,
        ToggleBottom => state.view.bottom = !state.view.bottom,
        ResetLayout => {
            (state.view.left, state.view.right, state.view.bottom, state.reset_layout) = (true, true, true, true);
        }
        StartStrip => state.view.start_strip = !state.view.start_strip,
        ThemeSystem => state.view.theme = ThemeChoice::System,
        ThemeLight => state.view.theme = ThemeChoice::Light,
        ThemeDark => state.view.theme = ThemeChoice::Dark,
        ReadLinked => {
            state.session.read_again();
            state.done("Linked files are read again.");
        }
        _ => layers::command(state, command),
    }
    state.history.seal();
}

fn ask(state: &mut State, dialog: Dialog) {
    state.dialog = Some(dialog);
}

/// A new worker finds what was fetched.
fn fetched(state: &mut State, folder: &std::path::Path) {
    state.done(format!("NVRTC lies in {}.", folder.display()));
    let target = state.view.target.clone();
    state.session.connect(target);
    jobs::examine(state);
}

/// A document that replaces the one there is; undo brings that back, and the new one has no file.
pub(super) fn replace_document(state: &mut State, document: crate::document::model::Document) {
    state.history.seal();
    state.edit(Edit::Replace(Box::new(document)));
    state.history.seal();
    state.path = None;
    (state.config, state.trainer) = (None, None);
    state.focus.layer = state.document.layers.first().map(|l| l.id);
    state.focus.stroke = None;
}

fn open_preset(state: &mut State, name: &str) {
    let Some(preset) = library::preset(name) else { return };
    match preset.document() {
        Ok(document) => {
            replace_document(state, document);
            state.dialog = None;
        }
        Err(why) => why.into_iter().for_each(|d| state.tell(d)),
    }
}

fn undo(state: &mut State) {
    let whole = state.history.undo_title().is_some_and(|t| t.starts_with("Open "));
    if let Some(title) = state.history.undo(&mut state.document) {
        turned(state, whole, &format!("Undone: {title}"));
    }
}

fn redo(state: &mut State) {
    let whole = state.history.redo_title().is_some_and(|t| t.starts_with("Open "));
    if let Some(title) = state.history.redo(&mut state.document) {
        turned(state, whole, &format!("Done again: {title}"));
    }
}

/// After undo or redo. Where the whole document changed, the file's name no longer belongs to it.
fn turned(state: &mut State, whole: bool, message: &str) {
    if whole {
        state.path = None;
    }
    state.changed();
    state.done(message);
}

fn set_axes(state: &mut State, axes: Axes) {
    if resize::needs_choice(&state.document, &axes) {
        ask(state, Dialog::Resize(axes));
        return;
    }
    state.edit(Edit::SetAxes(axes));
}

/// An edit of the settings.
pub(super) fn settings_edit(settings: &Settings, change: impl FnOnce(&mut Settings)) -> Edit {
    let mut settings = settings.clone();
    change(&mut settings);
    Edit::SetSettings(Box::new(settings))
}
