//! The window's application, and the order of a frame's work.
//!
//! Invariant: views only read; the actions of a frame are carried out after it was drawn, before the next frame. Must
//! not know what panels show.

use super::act;
use super::action::{Action, Actions};
use super::bars::Bars;
use super::canvas::Tool;
use super::command;
use super::drafts::ExportPage;
use super::language;
use super::panics::Part;
use super::recovery::{KeptTab, Recovered, Recovery};
use super::session::{JobKind, Session};
use super::sharing;
use super::state::{Focus, NEVER, Outside, Parked, State, first_document};
use super::tabs::{ParallelPage, QualityPage};
use super::timings::Timings;
use super::{Options, dialogs, theme, widgets};
use super::{editor, panels};
use crate::base::Diagnostic;
use crate::document::history::History;
use crate::document::library;
use crate::words::Value;
use egui::Ui;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The window's application.
pub struct Workbench {
    pub(super) state: State,
    pub(super) quality: QualityPage,
    pub(super) parallel: ParallelPage,
    pub(super) actions: Actions,
    /// Which bars there are.
    pub(super) bars: Bars,
    title: String,
    shown_theme: Option<theme::ThemeChoice>,
    /// The pointer was released in the last frame.
    released: bool,
    timings: Option<Timings>,
    /// Why the window closes by itself.
    pub(super) ended: Arc<OnceLock<Diagnostic>>,
    /// When a panic was survived.
    pub(super) mended: Option<Instant>,
}

impl Workbench {
    /// Starts with the stored state, or with the first screen's document.
    pub fn new(ctx: &egui::Context, options: Options) -> Self {
        theme::install(ctx);
        let wake = {
            let ctx = ctx.clone();
            Arc::new(move || ctx.request_repaint())
        };
        let (recovery, recovered) = Recovery::open(options.folder.clone());
        let mut view = recovered.view.clone();
        if let Some(target) = options.target.clone() {
            view.target = target;
        }
        let session = Session::new(view.target.clone(), wake);
        let mut state = State {
            document: first_document(),
            history: History::new(),
            parked: Vec::new(),
            tab: 0,
            id: 1,
            last_id: 1,
            revision: 0,
            saved: 0,
            begun: 0,
            kept_as: None,
            homes: Default::default(),
            path: None,
            seen: None,
            outside: None,
            config: None,
            trainer: None,
            export: ExportPage::default(),
            session,
            connecting: None,
            connect_error: None,
            view,
            focus: Focus::default(),
            dialog: None,
            notices: Default::default(),
            recovery,
            now: 0.0,
            editing_document: false,
            calls: false,
            sharing: Default::default(),
            named_for_fonts: String::new(),
            system_language: options.language,
            unreadable: None,
            compiles: 0,
            quit: false,
            leaves: false,
            into_page: false,
            reset_layout: false,
            given_up: Default::default(),
            first_steps: false,
            before_present: None,
            tour: None,
            trail: Default::default(),
        };
        begin(&mut state, options, recovered);
        state.session.hello();
        Self {
            state,
            quality: QualityPage::default(),
            parallel: ParallelPage::default(),
            actions: Actions::default(),
            bars: Bars::default(),
            title: String::new(),
            shown_theme: None,
            released: false,
            timings: None,
            ended: Arc::default(),
            mended: None,
        }
    }

    /// Tells how long the first frame takes.
    pub(super) fn timed(mut self, timings: Option<Timings>) -> Self {
        self.timings = timings;
        self
    }

    /// Tells there why the window closes by itself.
    pub(super) fn ending(mut self, ended: Arc<OnceLock<Diagnostic>>) -> Self {
        self.ended = ended;
        self
    }

    /// A frame's input before anything is drawn.
    pub(super) fn before(&mut self, ctx: &egui::Context) {
        let state = &mut self.state;
        state.now = ctx.input(|i| i.time);
        language::speak(ctx, state.words().language());
        // what the last frame wished belongs to the pointer as it was then
        for action in self.actions.take() {
            let wrong = if action.needs_all() { widgets::not_taken(ctx) } else { None };
            match wrong {
                Some(wrong) => state.dialog = Some(dialogs::not_taken(state, wrong)),
                None => act::act(state, action),
            }
        }
        // a drag with the pointer is one undo point
        if std::mem::take(&mut self.released) {
            state.history.pointer_up();
        }
        let (pressed, released) = ctx.input(|i| (i.pointer.any_pressed(), i.pointer.any_released()));
        if pressed {
            state.history.pointer_down();
        }
        self.released = released && !ctx.input(|i| i.pointer.any_down());
        if self.released {
            ctx.request_repaint();
        }
        act::listen(state);
        let typing = ctx.text_edit_focused();
        let on_canvas = (state.session.canvas.has_focus() || command::is_free(ctx)) && !typing;
        let brush = matches!(state.focus.tool, Tool::Brush | Tool::Eraser | Tool::Line);
        let focused = ctx.memory(|m| m.focused());
        state.editing_document = state.focus.layer.is_some_and(|layer| focused == Some(editor::editor_id(layer)));
        if state.tour.is_some() {
            if ctx.input(|i| i.key_pressed(egui::Key::Escape)) {
                act::act(state, Action::EndTour);
            }
            if state.tour.as_ref().is_some_and(|tour| !tour.paused) {
                ctx.request_repaint_after(Duration::from_millis(33));
            }
        } else if state.dialog.is_none() {
            // Escape that ends a stroke or leaves a field ends only that
            let escapes = !typing && !state.session.canvas.drawing() && ctx.input(|i| i.key_pressed(egui::Key::Escape));
            if escapes && state.before_present.is_some() && !egui::Popup::is_any_open(ctx) {
                act::act(state, Action::Command(command::Command::Present));
            } else if escapes && state.focus.is_pinned {
                act::act(state, Action::Unpin);
            } else if escapes && state.focus.area.is_some() {
                act::act(state, Action::ForgetArea);
            }
            for command in command::pressed(ctx, on_canvas, brush, typing && !state.editing_document) {
                match command.leaves() && !state.editing_document && command::leave_field(ctx) {
                    true => self.actions.afterwards(command),
                    false => act::act(state, Action::Command(command)),
                }
            }
        }
        if state.connecting.is_some() || state.session.has(JobKind::Hello) {
            // the seconds go on, and come to an end
            ctx.request_repaint_after(Duration::from_millis(500));
        }
        self.quality.follow(ctx, state, &mut self.actions);
        dropped_files(ctx, state);
        missing_font(state);
        unreadable(state);
        self.keep(ctx, false);
        self.follow_window(ctx);
        self.follow_closing(ctx);
    }

    /// Keeps document and habits, a moment after they changed.
    pub(super) fn keep(&mut self, ctx: &egui::Context, at_once: bool) {
        let state = &mut self.state;
        if state.tour.is_some() {
            if !at_once {
                // what is kept is what was there before
                return;
            }
            act::tour::end(state);
        }
        // the list of tabs borrows the state, which the recovery is a part of
        let mut recovery = std::mem::take(&mut state.recovery);
        let kept = recovery.follow(state.now, at_once, (&state.tabs(), state.tab), &state.view);
        state.recovery = recovery;
        match kept {
            Ok(Some(wait)) => ctx.request_repaint_after(Duration::from_secs_f64(wait)),
            Ok(None) => {}
            Err(why) => {
                let hint = why.hint.unwrap_or_default();
                let reported = Diagnostic::warning(
                    "recovery",
                    format!("the document cannot be kept for the next start: {}", why.message),
                );
                state.notices.tell(reported.hint(hint), state.now);
            }
        }
    }

    /// Title, theme, size.
    fn follow_window(&mut self, ctx: &egui::Context) {
        let state = &mut self.state;
        if (ctx.zoom_factor() - state.view.scale).abs() > 1e-4 {
            ctx.set_zoom_factor(state.view.scale);
        }
        if self.shown_theme != Some(state.view.theme) {
            self.shown_theme = Some(state.view.theme);
            ctx.set_theme(state.view.theme.preference());
        }
        let mark = if state.is_dirty() { "*" } else { "" };
        let title = format!("{}{mark} - Maskloom", state.document.name);
        if title != self.title {
            ctx.send_viewport_cmd(egui::ViewportCommand::Title(title.clone()));
            self.title = title;
        }
        if state.reset_layout {
            state.reset_layout = false;
            ctx.memory_mut(|m| m.reset_areas());
            ctx.data_mut(|d| d.remove_by_type::<egui::containers::panel::PanelState>());
        }
        if std::mem::take(&mut state.calls) && !ctx.input(|i| i.focused) {
            let kind = egui::UserAttentionType::Informational;
            ctx.send_viewport_cmd(egui::ViewportCommand::RequestUserAttention(kind));
        }
        if let Some(wait) = state.notices.tick(state.now) {
            ctx.request_repaint_after(Duration::from_secs_f64(wait.max(0.05)));
        }
    }

    /// Everything that a frame shows.
    pub(super) fn draw(&mut self, ui: &mut Ui) {
        widgets::type_for(ui.ctx(), [self.state.id, self.state.focus.opened]);
        self.panels(ui);
        let ctx = ui.ctx().clone();
        if let Some(dialog) = self.state.dialog.take() {
            self.state.dialog = dialogs::show(&ctx, &self.state, dialog, &mut self.actions);
        }
        panels::tour::show(&ctx, &self.state, &mut self.actions);
        panels::toasts::show(&ctx, &self.state, &mut self.actions);
        panels::toasts::drop_hint(&ctx);
        sharing::follow(&ctx, &mut self.state);
        // actions of this frame are carried out before the next
        if !self.actions.is_empty() {
            ctx.request_repaint();
        }
    }
}

/// The window's first content: a file, a preset, the stored state, the first screen.
fn begin(state: &mut State, options: Options, recovered: Recovered) {
    recovered.reported.into_iter().for_each(|d| state.tell(d));
    restore(state, recovered.tabs, recovered.active);
    let mut unread = None;
    if let Some(root) = state.recovery.folder() {
        state.session.races.remember(|number| {
            let (races, why) = super::past::read(root, number);
            unread = why;
            races
        });
    }
    unread.into_iter().for_each(|why| state.tell(why));
    if let Some(name) = options.preset {
        match library::preset(&name).map(|p| p.document()) {
            Some(Ok(document)) => act::replace_document(state, document),
            Some(Err(why)) => why.into_iter().for_each(|d| state.tell(d)),
            None => {
                let why = Diagnostic::error("no-such-preset", format!("there is no preset named `{name}`"));
                state.tell(why.hint("the Gallery shows all"));
            }
        }
    }
    if let Some(path) = options.open {
        state.session.errands.open(&path, false);
    }
    let mut recovery = std::mem::take(&mut state.recovery);
    recovery.assume(&state.tabs(), state.tab, &state.view);
    state.recovery = recovery;
    state.focus.layer = state.document.layers.first().map(|l| l.id);
    state.session.canvas.take_focus();
    if recovered.unsaved.is_some() && recovered.unsaved != state.view.offered {
        state.view.offered = recovered.unsaved;
        state.dialog = Some(dialogs::list_unsaved(state));
    }
    state.first_steps = state.view.start_strip && state.is_pristine();
    if let Ok(lengths) = state.document.axes.lengths() {
        state.focus.pinned = [lengths.q_len / 2, lengths.kv_len / 2];
    }
}

/// The documents of the last windows, each as it was left.
fn restore(state: &mut State, tabs: Vec<KeptTab>, active: usize) {
    for (at, KeptTab { document, history, place }) in tabs.into_iter().enumerate() {
        if at != active {
            let id = state.next_id();
            let (document, dirty) = (Some(document), place.dirty);
            let (gone, seen, kept_as) = (place.gone, place.seen, place.kept_as);
            let (path, config) = (place.path, place.config);
            let waiting =
                Parked { document, history, id, dirty, gone, path, seen, config, kept_as, ..Parked::default() };
            state.parked.push(waiting);
            continue;
        }
        (state.document, state.history, state.tab) = (document, history, at);
        (state.path, state.seen, state.config, state.kept_as) = (place.path, place.seen, place.config, place.kept_as);
        // not the untouched first document any more, and dirty if it was
        (state.revision, state.begun) = (1, 1);
        state.saved = if place.dirty && !place.gone { NEVER } else { 1 };
        state.outside = place.gone.then_some(Outside::Gone);
    }
}

/// Says once of each name that no font of this system can show it.
fn missing_font(state: &mut State) {
    if state.named_for_fonts == state.document.name {
        return;
    }
    let Some((writing, package)) = super::fonts::missing(&state.document.name) else { return };
    state.named_for_fonts = state.document.name.clone();
    let message = format!("this system has no font for {writing}: such text is drawn as boxes");
    state.tell(
        Diagnostic::warning("no-font", message)
            .hint(format!("install one, such as Noto: sudo apt-get install -y {package}")),
    );
}

/// Says why the window stays English, once for a language: nobody could read it.
fn unreadable(state: &mut State) {
    let wanted = state.wanted_language();
    let (_, Some(package)) = language::readable(wanted) else { return };
    if state.unreadable.replace(wanted) != Some(wanted) {
        let [name, package] = [language::named(wanted), package].map(Value::from);
        let message = state.words().with("setup-language-fonts", &[("name", name)]);
        let hint = state.words().with("setup-language-fonts-hint", &[("package", package)]);
        state.tell(Diagnostic::warning("no-font", message).hint(hint));
    }
}

/// Files dropped on the window are opened.
fn dropped_files(ctx: &egui::Context, state: &mut State) {
    let dropped = ctx.input(|i| i.raw.dropped_files.clone());
    dropped.into_iter().for_each(|file| act::act(state, Action::Open(file.path().to_path_buf())));
}

impl eframe::App for Workbench {
    fn logic(&mut self, ctx: &egui::Context, _frame: &mut eframe::Frame) {
        self.timings.iter_mut().for_each(Timings::frame);
        self.guarded(ctx, Part::Acting, |bench| bench.before(ctx));
    }

    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        let ctx = ui.ctx().clone();
        self.guarded(&ctx, Part::Drawing, |bench| bench.draw(ui));
        if self.timings.as_mut().is_some_and(Timings::laid_out) {
            ui.ctx().request_repaint();
        }
    }

    fn on_exit(&mut self, _gl: Option<&eframe::glow::Context>) {
        if self.ended.get().is_some() {
            return;
        }
        let ctx = egui::Context::default();
        // the next start is no presentation
        if self.state.before_present.is_some() {
            act::act(&mut self.state, Action::Command(command::Command::Present));
        }
        self.state.session.errands.finish();
        // reports the new file, so that the stored state contains it
        act::listen(&mut self.state);
        self.keep(&ctx, true);
        self.state.recovery.finish();
        self.state.session.jobs.cancel_all();
    }
}
