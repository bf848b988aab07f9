//! The window's state: the document, its derived data, and the view of it.
//!
//! Invariant: only `act` changes it; the document defines the mask, the session can be rebuilt, the view is remembered.
//! Must not know how anything is drawn.

use super::bars::GivenUp;
use super::canvas::{Picture, Texts, Tool};
use super::command::Command;
use super::connecting::Connecting;
use super::drafts::{Dialog, ExportPage};
use super::gesture::Gesture;
use super::homes::{Home, Homes};
use super::language;
use super::notices::Notices;
use super::recovery::{Place, Recovery, Tab};
use super::session::{JobFor, Running, Session};
use super::theme::ThemeChoice;
use super::trail::Trail;
use super::view::View;
use crate::base::Diagnostic;
use crate::document::edit::Edit;
use crate::document::heads::Heads;
use crate::document::history::{History, Step};
use crate::document::library;
use crate::document::model::*;
use crate::trainers::read::TrainerConfig;
use crate::words::{Language, Words};
use crate::worker::protocol::{InputSource, MapKind};
use crate::worker::seen::Seen;
use std::path::PathBuf;

/// The revision of a document that no file has in any state.
pub(crate) const NEVER: u64 = u64::MAX;

/// What another program has made of the document's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// It holds this.
    Changed(Seen),
    /// It is no longer there.
    Gone,
}

/// The present place and selection; not stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Focus {
    /// How often another document took this one's place: what was typed for one is not for the next.
    pub opened: u64,
    /// Selected layer or score mod.
    pub layer: Option<u64>,
    pub tool: Tool,
    pub picture: Picture,
    /// Whether the keys of one query are drawn where they stand, not the matrix.
    pub patches: bool,
    /// Which numbers [`Picture::Map`] draws.
    pub map: MapKind,
    /// Whether they are coloured by their logarithm.
    pub map_log: bool,
    pub b: usize,
    pub h: usize,
    /// Heads that are painted on and that new layers are for; None: all.
    pub picked: Option<Heads>,
    /// Cell under the pointer (q_idx, kv_idx).
    pub hovered: Option<[usize; 2]>,
    /// Cell of the Cell page: the clicked one, or the last under the pointer.
    pub pinned: [usize; 2],
    /// Whether it was clicked, and stays until another is or Escape.
    pub is_pinned: bool,
    /// Tiles that the walk over a row of blocks has stepped; None: there is no walk.
    pub step: Option<usize>,
    /// Whether brush or eraser is down.
    pub drawing: bool,
    /// The area whose figures are told.
    pub area: Option<super::area::Area>,
    /// The stroke in work, from its first cells on.
    pub stroke: Option<Gesture>,
}

/// An open document that waits, as it was left.
#[derive(Default)]
pub(crate) struct Parked {
    /// None only in a value that is being made.
    pub document: Option<Document>,
    pub history: History,
    pub homes: Homes,
    /// The same as long as it is open.
    pub id: u64,
    /// The revision at which it became inactive.
    pub mark: u64,
    pub dirty: bool,
    /// Whether it is dirty only because its file was deleted.
    pub gone: bool,
    pub kept_as: Option<PathBuf>,
    pub path: Option<PathBuf>,
    pub seen: Option<Seen>,
    pub config: Option<PathBuf>,
    pub trainer: Option<Box<TrainerConfig>>,
    pub export: ExportPage,
    pub focus: Focus,
    /// The race that it showed.
    pub race: Option<u64>,
}

/// Everything.
pub(crate) struct State {
    pub document: Document,
    pub history: History,
    /// The other open documents, left to right.
    pub parked: Vec<Parked>,
    /// The place of the one in work among all of them.
    pub tab: usize,
    /// The one in work: the same as long as it is open.
    pub id: u64,
    /// The last number that was given to an open document.
    pub last_id: u64,
    /// Raised by every change of the document.
    pub revision: u64,
    /// The revision in the file, or the revision at opening.
    pub saved: u64,
    /// The revision at which this document took the place of another.
    pub begun: u64,
    /// The file among the unsaved documents that it came back from.
    pub kept_as: Option<PathBuf>,
    /// The files of documents that undo and redo bring back.
    pub homes: Homes,
    /// Where it is saved.
    pub path: Option<PathBuf>,
    /// What that file held when it was read or written last; None: it never was.
    pub seen: Option<Seen>,
    /// What another program has made of that file, until the user has chosen.
    pub outside: Option<Outside>,
    /// A trainer's config.json that export merges into.
    pub config: Option<PathBuf>,
    /// The content of that file.
    pub trainer: Option<Box<TrainerConfig>>,
    /// The page of exports.
    pub export: ExportPage,
    pub session: Session,
    /// A worker that has not answered yet.
    pub connecting: Option<Connecting>,
    /// The reason why the last requested one is missing.
    pub connect_error: Option<Vec<Diagnostic>>,
    pub view: View,
    pub focus: Focus,
    pub dialog: Option<Dialog>,
    pub notices: Notices,
    pub recovery: Recovery,
    /// Seconds of the window's clock.
    pub now: f64,
    /// Whether the text field with the focus shows text of the document, whose undo is the document's.
    pub editing_document: bool,
    /// Whether the system is to say that the window has news.
    pub calls: bool,
    /// The name of a document of which it was said that no font has its characters.
    pub named_for_fonts: String,
    /// The language that the system asks for.
    pub system_language: Language,
    /// The language of which it was said that no font has its letters.
    pub unreadable: Option<Language>,
    /// What is handed on at the end of a frame.
    pub sharing: super::clipboard::Waiting,
    /// How often compiling was asked for: the page of code then shows what comes of it.
    pub compiles: u64,
    /// Whether the window is to close.
    pub quit: bool,
    /// Whether it closes although unsaved documents cannot be kept.
    pub leaves: bool,
    /// Whether the keyboard is to go to the page at the side.
    pub into_page: bool,
    /// Whether panel sizes are to be forgotten.
    pub reset_layout: bool,
    /// What the window has no room for.
    pub given_up: GivenUp,
    /// Whether the first steps are shown.
    pub first_steps: bool,
    /// Panels, theme and size from before a presentation; None: no presentation.
    pub before_present: Option<(bool, bool, ThemeChoice, f32)>,
    /// The tour, while it plays.
    pub tour: Option<super::tour::Tour>,
    /// The names of the last actions.
    pub trail: Trail,
}

impl State {
    /// The language that is wanted: chosen here, or the system's.
    pub(crate) fn wanted_language(&self) -> Language {
        self.view.language.unwrap_or(self.system_language)
    }

    /// The texts of the language that is spoken.
    pub(crate) fn words(&self) -> &'static Words {
        Words::of(language::readable(self.wanted_language()).0)
    }

    /// Whether there are changes that no file has.
    pub(crate) fn is_dirty(&self) -> bool {
        self.revision != self.saved || self.outside == Some(Outside::Gone)
    }

    /// Whether there are none but that its file was deleted.
    pub(crate) fn is_only_gone(&self) -> bool {
        self.revision == self.saved && self.outside == Some(Outside::Gone)
    }

    /// Whether this is the first screen's document, untouched.
    pub(crate) fn is_pristine(&self) -> bool {
        self.path.is_none() && self.revision == 0
    }

    /// A number for a document that is opened now.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// All open documents, left to right, as they are to be kept.
    pub(crate) fn tabs(&self) -> Vec<Tab<'_>> {
        let parked = |tab: &Parked| Place {
            path: tab.path.clone(),
            seen: tab.seen.clone(),
            dirty: tab.dirty,
            gone: tab.gone,
            config: tab.config.clone(),
            kept_as: tab.kept_as.clone(),
        };
        let waiting = self.parked.iter().filter_map(|tab| {
            let document = tab.document.as_ref()?;
            Some(Tab { id: tab.id, mark: tab.mark, document, history: &tab.history, place: parked(tab) })
        });
        let mut tabs: Vec<Tab<'_>> = waiting.collect();
        let place = Place {
            path: self.path.clone(),
            seen: self.seen.clone(),
            dirty: self.is_dirty(),
            gone: self.is_only_gone(),
            config: self.config.clone(),
            kept_as: self.kept_as.clone(),
        };
        let (id, mark) = (self.id, self.revision);
        let own = Tab { id, mark, document: &self.document, history: &self.history, place };
        tabs.insert(self.tab.min(tabs.len()), own);
        tabs
    }

    /// Changes the document. A refused edit changes nothing and is reported.
    pub(crate) fn edit(&mut self, edit: Edit) -> bool {
        // what undo comes back to has no changes where it has none now
        self.remember_home(edit.replaces_document() || !self.is_dirty());
        self.history.work_on(self.focus.layer);
        match self.history.apply(&mut self.document, edit, self.now) {
            Ok(()) => {
                self.changed();
                true
            }
            Err(why) => {
                self.notices.tell(why, self.now);
                false
            }
        }
    }

    /// Another document is to take the place of the one in work, or it is to be changed, if so: its file is remembered.
    pub(crate) fn remember_home(&mut self, if_so: bool) {
        if if_so {
            let (path, seen) = (self.path.clone(), self.seen.clone());
            self.homes.keep(&self.document, Home { path, seen, is_saved: !self.is_dirty() });
        }
    }

    /// The file holds the document as it is now.
    pub(crate) fn came_home(&mut self) {
        let (path, seen) = (self.path.clone(), self.seen.clone());
        self.homes.keep(&self.document, Home { path, seen, is_saved: true });
    }

    /// Whether the document is as its file is known to hold it, where it holds what was `seen`; without a file: as it was
    /// before anybody changed it.
    pub(crate) fn is_home(&self, seen: Option<&Seen>) -> bool {
        let home = self.homes.of(&self.document);
        home.is_saved && home.path == self.path && home.seen.as_ref() == seen
    }

    /// The run in work, if it is of the open document.
    pub(crate) fn own_run(&self) -> Option<&Running> {
        let problem = self.session.built.as_ref().and_then(|built| built.problem.as_ref().ok());
        self.session.jobs_running.iter().find(|running| match running.of {
            JobFor::Run(id) => self.session.race.as_ref().is_some_and(|race| race.id == id),
            JobFor::Sweep(id, _) => {
                let sweep = self.session.races.sweep.as_ref().filter(|sweep| sweep.id == id);
                sweep.is_some_and(|sweep| Some(&sweep.of) == problem)
            }
            _ => false,
        })
    }

    /// To be called after every change of the document.
    pub(crate) fn changed(&mut self) {
        self.revision += 1;
        let settings = &self.document.settings;
        self.focus.b = self.focus.b.min(settings.batch.saturating_sub(1));
        self.focus.h = self.focus.h.min(settings.heads.saturating_sub(1));
        let alive = |id: u64| self.document.layer(id).is_some() || self.document.score(id).is_some();
        if self.focus.layer.is_some_and(|id| !alive(id)) {
            self.focus.layer = None;
        }
    }

    /// Must be called after an undo, redo or cancel: the selection stays if possible, and follows the changed layer if
    /// layers appeared or disappeared. The file's name does not belong to another document.
    pub(crate) fn turned(&mut self, step: &Step) {
        if step.replaced {
            let home = self.homes.of(&self.document);
            // what the file holds now is known better than when the other document left it
            let same = home.path.is_some() && home.path == self.path;
            let is_saved = home.is_saved && (!same || home.seen == self.seen);
            self.saved = if is_saved { self.revision + 1 } else { NEVER };
            self.seen = if same { self.seen.take() } else { home.seen };
            (self.path, self.outside) = (home.path, None);
            (self.kept_as, self.begun) = (None, self.revision + 1);
            (self.focus.drawing, self.focus.stroke) = (false, None);
            (self.focus.tool, self.focus.picked) = (Tool::Pan, None);
            self.session.another_document();
        }
        let alive = |id: &u64| self.document.layer(*id).is_some() || self.document.score(*id).is_some();
        if step.layers_changed {
            let worked_on = step.layer.filter(alive);
            self.focus.layer = worked_on.or(self.focus.layer.filter(alive));
        }
        self.changed();
    }

    /// Tells the user something.
    pub(crate) fn tell(&mut self, what: Diagnostic) {
        self.notices.tell(what, self.now);
    }

    /// Tells the user that something is done.
    pub(crate) fn done(&mut self, message: impl Into<String>) {
        self.notices.done(message, self.now);
    }

    /// Whether a command can be carried out now.
    pub(crate) fn can(&self, command: Command) -> bool {
        use Command::*;
        match command {
            Undo => self.history.undo_title().is_some(),
            Redo => self.history.redo_title().is_some(),
            Cancel => self.session.running().is_some() || self.session.shrinking.is_some(),
            Run | RunWhole | RaceLengths => !self.session.is_racing() && self.session.shrinking.is_none(),
            CopyCode | SaveHtml | Detach => self.session.built.as_ref().is_some_and(|built| built.problem.is_ok()),
            CopyChart => self.view.right && (!self.given_up.panels || self.view.drawer),
            SaveRun => self.session.race.as_ref().is_some_and(|race| race.report.is_some()),
            CloseTab | NextTab | PreviousTab => !self.parked.is_empty(),
            StopComparing => self.session.compared.is_some(),
            KeepArea | DropArea => self.focus.area.is_some(),
            DeleteLayer | DuplicateLayer | MirrorLayer | ToggleLayer | LayerUp | LayerDown => {
                self.focus.layer.is_some()
            }
            _ => true,
        }
    }

    /// What figures of an area are to be of now.
    pub(crate) fn area_of(&self) -> super::area::Of {
        let built = self.session.built.as_ref();
        let (number, revision) = built.map_or((0, 0), |built| (built.number, built.revision));
        let captured = self.session.heads.as_ref().map_or(0, |heads| heads.number);
        [number, revision, self.focus.b as u64, self.focus.h as u64, captured]
    }

    /// The texts of queries and keys, if the open capture has them and matches the document's lengths.
    pub(crate) fn texts(&self) -> [Option<Texts<'_>>; 2] {
        let lengths = self.document.axes.lengths().ok();
        self.session.captured.as_ref().zip(lengths).map_or([None, None], |(captured, l)| captured.texts(l))
    }

    /// Where runs take q, k and v from.
    pub(crate) fn input_source(&self) -> InputSource {
        let inputs = &self.view.inputs;
        if !inputs.used {
            return InputSource::Random { seed: self.document.settings.seed };
        }
        InputSource::File { path: inputs.path.clone(), names: inputs.names.clone(), layout: inputs.layout }
    }

    /// Rows and columns of the selected layer, if it is a rectangle.
    pub(crate) fn selected_rectangle(&self) -> Option<[[usize; 2]; 2]> {
        let layer = self.document.layer(self.focus.layer?).filter(|layer| layer.enabled)?;
        if let MaskContent::Rectangle { q, kv } = layer.content { Some([q, kv]) } else { None }
    }

    /// The selected layer's painted cells, when it has some.
    pub(crate) fn painted(&self) -> Option<(u64, &Painted)> {
        let layer = self.document.layer(self.focus.layer?)?;
        match &layer.content {
            MaskContent::Painted(painted) => Some((layer.id, painted)),
            _ => None,
        }
    }
}

/// The document of the first screen.
pub(crate) fn first_document() -> Document {
    let first = library::presets().first().and_then(|preset| preset.document().ok());
    first.unwrap_or_else(|| empty_document("tokens 4096"))
}

/// A document that keeps every cell. The axis must parse.
pub(crate) fn empty_document(axes: &str) -> Document {
    use crate::base::BackendName::{Eager, Flex, Sdpa};
    let axes = Axes::same(Axis::parse(axes).unwrap_or_else(|_| Axis::tokens(4096)));
    let settings = Settings { backends: vec![Eager, Sdpa, Flex], ..Settings::new(16, 128) };
    Document::new("Untitled", axes, settings)
}
