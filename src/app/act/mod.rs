//! Carries out the actions of views: the only place that changes the state.
//!
//! Invariant: every action either changes the state or reports the reason; none waits. Must not know how anything is
//! drawn.

mod asking;
mod canvas;
mod documents;
mod far;
mod files;
pub(super) mod jobs;
mod layers;
mod looks;
mod outside;
mod sweep;
mod tensors;
mod there;
pub(super) mod tour;
mod turning;

use super::action::{Action, Fit};
use super::canvas::{Picture, Tool};
use super::clipboard;
use super::command::Command;
use super::connecting::{self, Answer, Connecting};
use super::dialogs;
use super::drafts::Dialog;
use super::errands::Done;
use super::layout::{Dock, Part};
use super::races::Wanted;
use super::session::JobKind;
use super::sharing;
use super::state::{State, empty_document};
use super::theme::ThemeChoice;
use super::workspace::{Aside, Workspace};
use crate::base::Diagnostic;
use crate::document::edit::Edit;
use crate::document::library;
use crate::document::model::{Axes, Axis, Document};
use crate::document::pasted::OwnSizes;
use crate::document::resize;
use crate::document::title::Title;

/// Carries one action out.
pub(super) fn act(state: &mut State, action: Action) {
    state.trail.follow(&action);
    match action {
        Action::Command(command) => run_command(state, command),
        // a question about what was typed comes first
        Action::Afterwards(_) if state.dialog.is_some() => {}
        Action::Afterwards(command) => run_command(state, command),
        // another document never keeps this one's file
        Action::Edit(Edit::Replace(document)) => replace_document(state, *document),
        Action::Edit(edit) => {
            state.edit(layers::mended(&state.document, edit));
        }
        Action::TakeProposal(edit) => {
            state.history.pointer_down();
            state.history.name_gesture(Title::Take);
            state.edit(edit);
            state.history.pointer_up();
        }
        Action::SetAxes(axes) => set_axes(state, axes),
        Action::TakeSizes(sizes) => take_sizes(state, &sizes),
        Action::Resize(axes, how) => match resize::follow_axes(&state.document, axes, how) {
            Ok(edit) => {
                state.history.seal();
                state.edit(edit);
                state.history.seal();
                state.dialog = None;
            }
            Err(why) => state.tell(why),
        },
        Action::Select(layer) => {
            state.focus.layer = layer;
            state.session.canvas.take_focus();
        }
        Action::MoveLayer(id, to) => layers::move_to(state, id, Some(to)),
        Action::ShowDocument(at) => documents::show(state, at),
        Action::SetPicture(picture) => state.focus.picture = picture,
        Action::Count(true) => state.session.count_again(),
        Action::Count(false) => state.session.stop_count(),
        Action::PickHeads(heads) => {
            // cells painted for some heads are visible while painting
            if let Some(first) = heads.as_ref().filter(|heads| !heads.contains(state.focus.h)) {
                state.focus.h = first.ranges().first().map_or(state.focus.h, |[from, _]| *from);
            }
            state.focus.picked = heads;
            state.session.canvas.take_focus();
        }
        Action::SetHead { b, h } => (state.focus.b, state.focus.h) = (b, h),
        Action::Pin(cell) => (state.focus.pinned, state.focus.is_pinned) = (cell, true),
        Action::Step(step) => state.focus.step = step,
        Action::GoTo(cell) => state.session.canvas.look_at_cell(cell),
        Action::Unpin => state.focus.is_pinned = false,
        Action::Canvas(event) => canvas::event(state, event),
        Action::AddPattern(name) => layers::add_pattern(state, &name),
        Action::OpenPreset(name) => open_preset(state, &name),
        Action::Open(path) => state.session.errands.open(&path, false),
        Action::OpenConfig(path) => state.session.errands.open(&path, true),
        Action::QuitAnyway => (state.quit, state.leaves) = (true, true),
        Action::CloseAnyway => documents::close_anyway(state),
        Action::SaveTo(path) => files::save_to(state, path),
        Action::Outside(choice) => outside::choose(state, choice),
        Action::SaveRunTo(path) => files::save_run_to(state, path),
        Action::SaveRecorderTo(path) => files::save_recorder_to(state, path),
        Action::ForgetArea => state.focus.area = None,
        Action::PauseTour => state.tour.iter_mut().for_each(|tour| tour.paused = !tour.paused),
        Action::EndTour => tour::end(state),
        Action::SaveHtmlTo(path) => files::save_html_to(state, path),
        Action::AddCode { text, replace } => layers::add_code(state, &text, replace),
        Action::LinkCode { path, score } => layers::link_code(state, path, score),
        Action::Connect { target, python, limit } => {
            let wake = state.session.wake();
            state.connect_error = None;
            state.connecting = Some(Connecting::start(target, python, limit, wake));
        }
        Action::Job(wish) => far::wish(state, wish),
        Action::ForgetHost(target) => state.view.hosts.retain(|host| host.target != target),
        Action::CancelConnect => (state.connecting, state.connect_error) = (None, None),
        Action::SetInputs(inputs) => match inputs {
            Some(inputs) => state.view.inputs = inputs,
            None => state.view.inputs.used = false,
        },
        Action::SetRounds(rounds) => state.view.rounds = rounds,
        Action::SetBackward(on) => state.view.backward = on,
        Action::FindVerdicts(place) => jobs::find_verdicts(state, place),
        Action::CheckOwnGradients => jobs::run(state, Wanted::OwnGradients),
        Action::SetDeterministic(on) => state.view.deterministic = on,
        Action::SetWidth(part, size) => {
            let dock = state.view.docks.of(part);
            state.view.widths.set(state.view.workspace, part, dock, size);
        }
        Action::LoadTensors(asked) => state.session.errands.tensors(asked),
        Action::RequestMap { race, request } => jobs::request_map(state, race, request),
        Action::RequestNumbers { race, request } => jobs::request_numbers(state, race, request),
        Action::SetMapKind(kind) => (state.focus.map, state.focus.picture) = (kind, Picture::Map),
        Action::SetLanguage(language) => state.view.language = language,
        Action::SetMapLog(on) => state.focus.map_log = on,
        Action::Compile { backend, arch } => jobs::compile(state, backend, arch),
        Action::MakeExport(wish) => {
            if let Some(built) = state.session.built.clone() {
                state.session.errands.export(built, wish);
            }
        }
        Action::Export(order) => state.session.errands.export_to(order),
        Action::OpenFolder(folder) => open_folder(state, &folder),
        Action::ListFolder { far: true, ask } => there::list(state, ask),
        Action::ListFolder { far: false, ask } => state.session.errands.list(ask),
        Action::OpenFar(path) => there::open(state, &path),
        Action::AskTensors(path) => there::ask_tensors(state, &path),
        Action::TakeTensors(path, names) => there::take_tensors(state, &path, &names),
        Action::Reopen(file) => state.session.errands.reopen(file),
        Action::Discard(file) => {
            if let Some(root) = state.recovery.folder().map(Into::into) {
                state.session.errands.discard(root, file);
            }
        }
        Action::Pick(pick) => state.session.errands.pick(&pick),
        Action::Fetch(plan) => {
            state.done(state.words().text("done-installing"));
            state.session.errands.fetch(plan);
        }
        Action::Dismiss(at) => state.notices.dismiss(at),
        Action::FitConfig { path, trainer, start } => {
            match start {
                Fit::Preset(name) => open_preset(state, &name),
                Fit::Plain(document) => {
                    open_document(state, *document);
                    state.dialog = None;
                    jobs::run(state, Wanted::Race);
                }
            }
            (state.config, state.trainer) = (Some(path), Some(trainer));
        }
    }
}

/// Takes what other threads and the worker have done since the last frame.
pub(super) fn listen(state: &mut State) {
    jobs::listen(state);
    connections(state);
    for done in state.session.errands.poll() {
        match done {
            Done::Opened { path, what } => files::opened(state, path, what),
            Done::Picked { path, shown } => dialogs::picked(state, path, shown),
            Done::Listed(ask, listing) => dialogs::listed(state, false, &ask, listing),
            Done::OpenedThere { path, what } => there::opened(state, &path, what),
            Done::JobsOf { target, listed } => state.session.far.others.put(target, listed),
            Done::Saved { path, revision, result } => files::saved(state, path, revision, result),
            Done::Looked { path, now } => outside::looked(state, &path, now),
            Done::Reloaded { path, what } => outside::reloaded(state, &path, what),
            Done::Compared { path, theirs } => outside::compared(state, &path, theirs),
            Done::RunSaved { path, result } => files::run_saved(state, &path, result),
            Done::RecorderSaved { path, result } => files::recorder_saved(state, path, result),
            Done::HtmlSaved { path, result } => files::html_saved(state, &path, result),
            Done::OwnPresets { folder, own, why } => dialogs::own_presets(state, folder, own, why),
            Done::RaceKept(kept) => kept.err().into_iter().for_each(|why| state.tell(why)),
            Done::Area { region, figures } => canvas::area_counted(state, &region, figures),
            Done::Written(what) => files::written(state, what),
            Done::Tensors { asked, tensors } => tensors::loaded(state, asked, tensors),
            Done::Unsaved(list) => dialogs::unsaved(state, list),
            Done::Reopened { file, what } => files::reopened(state, file, what),
            Done::Exported { wish, pieces } => state.export.put(&wish, pieces),
            Done::Verdicts { of, place, found } => jobs::verdicts_found(state, of, &place, found),
            Done::SshNames(names) => dialogs::ssh_names(state, names),
            Done::Planned(Ok(plan)) => ask(state, Dialog::Fetch(plan)),
            Done::Fetched(Ok(folder)) => fetched(state, &folder),
            Done::Planned(Err(why)) | Done::Fetched(Err(why)) => state.tell(why),
            Done::Smaller { of, made } => jobs::run_smaller(state, of, made),
            Done::Length { sweep, at, made } => sweep::made(state, sweep, at, made),
            Done::Thumbnail { preset, picture } => dialogs::thumbnail(state, preset, picture),
        }
    }
    super::mishaps::ours().take().into_iter().for_each(|what| state.tell(what));
    let path = state.path.clone();
    state.session.follow(&state.document, state.revision, path.as_deref());
    tour::follow(state);
    canvas::count_area(state);
    state.session.follow_difference(state.focus.picture == Picture::Difference);
    state.session.follow_file(path.as_deref());
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
            state.done(state.words().text("done-new"));
        }
        Open => ask(state, Dialog::open()),
        Save => match state.path.clone() {
            Some(path) => files::save_to(state, path),
            None => ask(state, dialogs::save_as(state)),
        },
        SaveAs => ask(state, dialogs::save_as(state)),
        SaveRun => ask(state, dialogs::save_run(state)),
        OpenSample => state.session.errands.sample(),
        SaveRecorder => ask(state, Dialog::save_recorder()),
        CopyPicture => state.sharing.picture(clipboard::Part::Canvas),
        CopyChart => state.sharing.picture(clipboard::Part::Page),
        CopyCode => state.sharing.text = sharing::code(state),
        SaveHtml => ask(state, Dialog::save_html(&state.document.name)),
        Unsaved => {
            let dialog = dialogs::list_unsaved(state);
            ask(state, dialog);
        }
        Quit => state.quit = true,
        Undo => turning::undo(state),
        Redo => turning::redo(state),
        Run => jobs::run(state, Wanted::Race),
        RunWhole => jobs::run(state, Wanted::Whole),
        RaceLengths => sweep::start(state),
        Detach => jobs::run(state, Wanted::Detached),
        Jobs => ask(state, Dialog::Jobs),
        Cancel => jobs::cancel(state),
        Compile => jobs::compile(state, crate::base::BackendName::Flex, None),
        Examine => jobs::examine(state),
        FetchNvrtc => state.session.errands.plan_fetch(),
        PasteCode => ask(state, dialogs::paste(state)),
        OpenConfig => ask(state, Dialog::open_config()),
        Connect => ask(state, dialogs::connect(state)),
        Gallery => {
            let dialog = dialogs::gallery(state);
            ask(state, dialog);
        }
        Tour => tour::start(state),
        Palette => ask(state, Dialog::palette()),
        Shortcuts => ask(state, Dialog::Shortcuts),
        Messages => ask(state, Dialog::Messages),
        ShowDesign | ShowRace | ShowQuality | ShowCode | ShowExport | ShowLearn | ShowParallel => {
            let workspace = Workspace::ALL.into_iter().find(|w| w.command() == command);
            state.view.show(workspace.unwrap_or_default());
        }
        NewTab => documents::new(state),
        CloseTab => documents::close(state),
        NextTab => documents::step(state, 1),
        PreviousTab => documents::step(state, -1),
        ShowCell => state.view.show_aside(Aside::Cell),
        ShowProblems => state.view.show_aside(Aside::Problems),
        ShowSetup => state.view.show_aside(Aside::Setup),
        SwitchFocus if state.session.canvas.has_focus() => {
            state.view.open_page();
            state.into_page = true;
        }
        SwitchFocus => state.session.canvas.take_focus(),
        ZoomIn => state.session.canvas.zoom(1),
        ZoomOut => state.session.canvas.zoom(-1),
        FitMask => state.session.canvas.fit(),
        Patches => {
            state.focus.patches = !state.focus.patches;
            state.session.canvas.take_focus();
        }
        GoToCell => state.session.canvas.go_to(),
        Compare => match state.session.compare_with_this(state.id) {
            Some(name) => {
                state.done(state.words().with("done-compared", &[("name", name.into())]));
            }
            None => state.tell(Diagnostic::warning("compare", "comparing needs a mask without errors")),
        },
        StopComparing => {
            state.session.compared = None;
            if state.focus.picture == Picture::Difference {
                state.focus.picture = Picture::default();
            }
        }
        Present => looks::present(state),
        NextHead => state.focus.h = (state.focus.h + 1) % state.document.settings.heads.max(1),
        PreviousHead => {
            let heads = state.document.settings.heads.max(1);
            state.focus.h = (state.focus.h + heads - 1) % heads;
        }
        ToggleLeft => looks::toggle_layers(state),
        ToggleRight => looks::toggle_page(state),
        CanvasOnly => looks::toggle_both(state),
        SwapSides => state.view.docks.swap(),
        LayersLeft => state.view.docks.put(Part::Layers, Dock::Left),
        LayersRight => state.view.docks.put(Part::Layers, Dock::Right),
        LayersBelow => state.view.docks.put(Part::Layers, Dock::Below),
        PageLeft => state.view.docks.put(Part::Page, Dock::Left),
        PageRight => state.view.docks.put(Part::Page, Dock::Right),
        PageBelow => state.view.docks.put(Part::Page, Dock::Below),
        LargerText => looks::scale_text(state, 1.1),
        SmallerText => looks::scale_text(state, 1.0 / 1.1),
        NormalText => state.view.scale = 1.0,
        ResetLayout => {
            (state.view.left, state.view.right, state.reset_layout) = (true, true, true);
            state.view.widths = Default::default();
            state.view.docks = Default::default();
        }
        StartStrip => {
            state.first_steps = !state.first_steps;
            state.view.start_strip = state.first_steps;
        }
        ThemeSystem => state.view.theme = ThemeChoice::System,
        ThemeLight => state.view.theme = ThemeChoice::Light,
        ThemeDark => state.view.theme = ThemeChoice::Dark,
        ReadLinked => {
            state.session.read_again();
            state.done(state.words().text("done-linked"));
        }
        ToolPan => layers::take_tool(state, Tool::Pan),
        ToolBrush => layers::take_tool(state, Tool::Brush),
        ToolLine => layers::take_tool(state, Tool::Line),
        ToolEraser => layers::take_tool(state, Tool::Eraser),
        ToolRectangle => layers::take_tool(state, Tool::Rectangle),
        ToolBand => layers::take_tool(state, Tool::Band),
        ToolArea => layers::take_tool(state, Tool::Area),
        ToolPolygon => layers::take_tool(state, Tool::Polygon),
        ToolLasso => layers::take_tool(state, Tool::Lasso),
        KeepArea => canvas::fill_area(state, true),
        DropArea => canvas::fill_area(state, false),
        AddRectangle => layers::add(state, layers::New::Rectangle),
        AddBand => layers::add(state, layers::New::Band),
        AddPainted => layers::add(state, layers::New::Painted),
        AddText => layers::add(state, layers::New::Text),
        AddCurve => layers::add(state, layers::New::Curve),
        AddScoreText => layers::add(state, layers::New::ScoreText),
        AddLinked => ask(state, Dialog::link(false)),
        AddScoreLinked => ask(state, Dialog::link(true)),
        DeleteLayer => layers::selected(state, layers::Change::Delete),
        MirrorLayer => layers::selected(state, layers::Change::Mirror),
        DuplicateLayer => layers::selected(state, layers::Change::Duplicate),
        ToggleLayer => layers::selected(state, layers::Change::Toggle),
        LayerUp => layers::selected(state, layers::Change::Up),
        LayerDown => layers::selected(state, layers::Change::Down),
    }
    state.history.seal();
}

/// The system's file manager opens a folder by itself; without one, the path is reported.
fn open_folder(state: &mut State, folder: &std::path::Path) {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    use std::process::{Command, Stdio};
    let mut command = Command::new(program);
    command.arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        // not waited for here: a thread waits for its end
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(why) => {
            let message = format!("no file manager starts ({program}: {why})");
            state.tell(Diagnostic::warning("no-file-manager", message).hint(format!("it is {}", folder.display())));
        }
    }
}

fn ask(state: &mut State, dialog: Dialog) {
    state.dialog = Some(dialog);
}

/// Starts a new worker, which finds the installed software.
fn fetched(state: &mut State, folder: &std::path::Path) {
    state.done(state.words().with("done-nvrtc", &[("folder", folder.display().to_string().into())]));
    let target = state.view.target.clone();
    state.session.connect(target);
    jobs::examine(state);
}

/// Pending workers: one that answers becomes active, and none is waited for beyond its time.
fn connections(state: &mut State) {
    const MENDED: [&str; 4] = ["worker-silent", "worker-died", "target-launch", "target-command"];
    if let Some(mut waiting) = state.connecting.take() {
        match waiting.poll() {
            None => state.connecting = Some(waiting),
            Some(Answer::Failed(why)) => state.connect_error = Some(why),
            Some(Answer::Worker(info)) => {
                (state.view.target, state.view.python) = (waiting.target.clone(), waiting.python.clone());
                super::hosts::remember(&mut state.view.hosts, &waiting.target, waiting.python.as_deref());
                state.session.adopt(waiting.into_jobs());
                state.notices.dismiss_mended(&MENDED);
                jobs::hello(state, info);
            }
        }
    }
    let overdue = |r: &&super::session::Running| r.kind == JobKind::Hello && r.since.elapsed() > connecting::LIMIT;
    if let Some(job) = state.session.jobs_running.iter().find(overdue).map(|r| r.job) {
        state.session.jobs.cancel(job);
        state.session.jobs_running.retain(|r| r.job != job);
        let why = connecting::silent(&state.view.target, connecting::LIMIT);
        state.session.worker_error = Some(vec![why.clone()]);
        state.tell(why);
    }
}

/// A document that replaces the one there is, as it was opened; undo brings that back, and the new one has no file. Work
/// that no file has is kept.
pub(super) fn replace_document(state: &mut State, document: Document) {
    state.session.canvas.fit();
    keep_unsaved(state);
    state.history.seal();
    state.edit(Edit::Replace(Box::new(document)));
    state.history.seal();
    state.session.another_document();
    (state.path, state.kept_as, state.export) = (None, None, Default::default());
    (state.seen, state.outside) = (None, None);
    (state.config, state.trainer) = (None, None);
    state.first_steps = false;
    (state.saved, state.begun) = (state.revision, state.revision);
    state.focus.opened += 1;
    state.focus.layer = state.document.layers.first().map(|l| l.id);
    // the first click on a document that was just opened draws nothing
    (state.focus.tool, state.focus.is_pinned, state.focus.picked) = (Tool::Pan, false, None);
    (state.focus.drawing, state.focus.stroke) = (false, None);
}

/// A document that was opened: instead of the one in work if nobody has touched that, else in a tab of its own. Returns
/// how the one before comes back, in words.
pub(super) fn open_document(state: &mut State, document: Document) -> &'static str {
    if is_untouched(state) {
        replace_document(state, document);
        return state.words().text("done-undo-restores");
    }
    documents::open(state, document);
    state.session.canvas.fit();
    // the first click on a document that was just opened draws nothing
    (state.focus.tool, state.focus.is_pinned, state.focus.picked) = (Tool::Pan, false, None);
    state.words().text("done-keeps-tab")
}

/// Whether nobody has worked on the document in work: another one may take its place.
fn is_untouched(state: &State) -> bool {
    state.revision == state.begun && !state.is_dirty() && state.session.race.is_none()
}

/// The document in work is another: nothing that was derived from the one before is of it.
fn replaced(state: &mut State) {
    state.session.another_document();
    state.first_steps = false;
    if let Ok(lengths) = state.document.axes.lengths() {
        let [q, kv] = state.focus.pinned;
        state.focus.pinned = [q.min(lengths.q_len - 1), kv.min(lengths.kv_len - 1)];
    }
}

/// Stores unsaved work, and reports it.
fn keep_unsaved(state: &mut State) {
    if !state.is_dirty() && !is_preset(&state.document) {
        // its file may have been deleted a moment ago
        if let Some(path) = state.path.as_deref() {
            state.recovery.set_aside_if_gone(&state.document, state.history.undo_title(), path);
        }
    } else if set_aside(state).is_some() {
        tell_kept(state);
    }
}

/// The same before the document goes, with its undo: it waits until the work is kept. Errors: why it is not.
fn keep_unsaved_now(state: &mut State) -> Result<(), Diagnostic> {
    if !state.is_dirty() || is_preset(&state.document) {
        keep_unsaved(state);
        return Ok(());
    }
    let (last, path) = (state.history.undo_title(), state.path.as_deref());
    state.recovery.set_aside_now(&state.document, last, path, state.kept_as.clone())?;
    tell_kept(state);
    Ok(())
}

fn tell_kept(state: &mut State) {
    let name = state.document.name.clone();
    let command = Command::Unsaved.named(state.words());
    state.done(state.words().with("done-unsaved", &[("name", name.into()), ("command", command.into())]));
}

/// Keeps work that no file has among the unsaved documents. Returns the name of its file there.
pub(super) fn set_aside(state: &mut State) -> Option<String> {
    if !state.is_dirty() {
        return None;
    }
    let (last, path) = (state.history.undo_title(), state.path.as_deref());
    if is_preset(&state.document) {
        return None;
    }
    state.recovery.set_aside(&state.document, last, path, state.kept_as.clone())
}

/// Whether a document is as the library has it: that is no work of anybody's.
fn is_preset(document: &Document) -> bool {
    let of_name = library::presets().iter().filter(|p| p.text.contains(&*document.name));
    of_name.filter_map(|p| p.document().ok()).any(|preset| preset == *document)
}

fn open_preset(state: &mut State, name: &str) {
    let Some(preset) = library::preset(name) else { return };
    match preset.document() {
        Ok(document) => {
            open_document(state, document);
            state.dialog = None;
        }
        Err(why) => why.into_iter().for_each(|d| state.tell(d)),
    }
}

/// One undo point. A segment's name and grid stay where its length does.
fn take_sizes(state: &mut State, sizes: &OwnSizes) {
    state.history.seal();
    state.history.pointer_down();
    let mut settings = state.document.settings.clone();
    settings.batch = sizes.batch;
    if settings.heads != sizes.heads {
        settings.set_heads(sizes.heads);
        let is_shared = settings.heads.is_multiple_of(settings.kv_heads);
        settings.kv_heads = if is_shared { settings.kv_heads } else { settings.heads };
    }
    if settings != state.document.settings {
        state.edit(Edit::SetSettings(Box::new(settings)));
    }
    let old = &state.document.axes;
    let axis = |old: &Axis, len: usize| if old.len() == len { old.clone() } else { Axis::tokens(len) };
    let (q, kv) = (axis(&old.q, sizes.q_len), axis(old.kv(), sizes.kv_len));
    let axes = Axes { kv: (kv != q).then_some(kv), q };
    if axes != state.document.axes {
        set_axes(state, axes);
    }
    state.history.pointer_up();
}

/// The axis of the keys; queries that share it have it too.
fn set_keys_axis(state: &mut State, axis: Axis) {
    let mut axes = state.document.axes.clone();
    match &mut axes.kv {
        Some(kv) => *kv = axis,
        None => axes.q = axis,
    }
    state.history.seal();
    set_axes(state, axes);
    state.history.seal();
}

fn set_axes(state: &mut State, axes: Axes) {
    if resize::needs_choice(&state.document, &axes) {
        ask(state, Dialog::Resize(axes));
        return;
    }
    state.edit(Edit::SetAxes(axes));
}
