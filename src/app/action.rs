//! The actions of views: commands, edits and everything with parameters. Views push these; `act` carries them out.
//!
//! Invariant: an action is plain data; creating one changes nothing. Must not know how it is carried out.

use super::canvas::{CanvasEvent, Picture};
use super::command::Command;
use super::exporting::ExportWish;
use super::far_jobs::JobWish;
use super::layout::Part;
use super::view::FileInputs;
use super::writing::Order;
use crate::base::BackendName;
use crate::document::edit::Edit;
use crate::document::heads::Heads;
use crate::document::model::{Axes, Document, Settings};
use crate::document::pasted::OwnSizes;
use crate::document::resize::Resize;
use crate::tasks::doctor::mend::FetchPlan;
use crate::tasks::verdicts::Place;
use crate::trainers::read::TrainerConfig;
use crate::words::Language;
use crate::worker::protocol::folder::FolderAsk;
use crate::worker::protocol::{MapKind, MapRequest};
use crate::worker::target::Target;
use std::path::PathBuf;
use std::time::Duration;

/// What becomes of a document whose file was changed or deleted by another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileChoice {
    /// The file takes the document's place.
    Reload,
    /// The document stays, and the next save writes over the file, or writes it again.
    KeepMine,
    /// Shows both.
    Difference,
}

/// One wish of the user.
#[derive(Debug)]
pub(crate) enum Action {
    /// What becomes of a file that another program changed.
    Outside(FileChoice),
    Command(Command),
    /// The same, once what was typed has its effect.
    Afterwards(Command),
    /// A change of the document.
    Edit(Edit),
    /// The same, for a proposal of masks: one step of that name.
    TakeProposal(Edit),
    /// New axes; asks what to do with painted cells if there are any.
    SetAxes(Axes),
    /// The answer to that question.
    Resize(Axes, Resize),
    /// The lengths and heads that a layer's code is made for, as the document's.
    TakeSizes(OwnSizes),
    Select(Option<u64>),
    /// Moves a layer or score mod to a place in its own list.
    MoveLayer(u64, usize),
    /// Works on the open document at this place, counted from the left.
    ShowDocument(usize),
    SetPicture(Picture),
    /// Starts or stops counting the blocks and cells of the shown mask.
    Count(bool),
    SetHead {
        b: usize,
        h: usize,
    },
    /// Heads that are painted on and that new layers are for; None: all.
    PickHeads(Option<Heads>),
    /// The cell that the Cell page shows.
    Pin([usize; 2]),
    /// Brings a cell to the middle and pins it.
    GoTo([usize; 2]),
    /// The Cell page follows the pointer again.
    Unpin,
    /// How many tiles the walk over a row has stepped; None: there is no walk.
    Step(Option<usize>),
    Canvas(CanvasEvent),
    /// A pattern of the library as a layer or score mod.
    AddPattern(String),
    OpenPreset(String),
    /// A document, code, a run file, a config.json: any kind of file.
    Open(PathBuf),
    /// A trainer's configuration.
    OpenConfig(PathBuf),
    /// Closes the window although unsaved documents cannot be kept.
    QuitAnyway,
    /// Closes the tab in work although its document cannot be kept.
    CloseAnyway,
    SaveTo(PathBuf),
    SaveRunTo(PathBuf),
    /// The capture script, under this name, and the package that it imports next to it.
    SaveRecorderTo(PathBuf),
    /// The tour stands, or goes on.
    PauseTour,
    /// The tour ends.
    EndTour,
    /// No area is selected.
    ForgetArea,
    /// Saves the design as a page.
    SaveHtmlTo(PathBuf),
    /// FlexAttention text as layers; `replace`: instead of those there are.
    AddCode {
        text: String,
        replace: bool,
    },
    /// The same from a file that stays linked.
    LinkCode {
        path: String,
        score: bool,
    },
    /// Another place for the worker; the one there is stays until the new one answers.
    Connect {
        target: Target,
        /// Python for `torch:*`; None: found by the worker.
        python: Option<String>,
        /// How long it may take to answer.
        limit: Duration,
    },
    /// About jobs that go on without the window.
    Job(JobWish),
    /// Removes a machine from the list of those that answered.
    ForgetHost(Target),
    /// Waits for it no longer.
    CancelConnect,
    SetInputs(Option<FileInputs>),
    SetRounds(u32),
    /// Whether runs compute gradients too.
    SetBackward(bool),
    /// Finds out who takes the document there, before anything is compiled.
    FindVerdicts(Place),
    /// Checks the gradients of the user's own PyTorch.
    CheckOwnGradients,
    /// Whether gradients must have the same bits in every run.
    SetDeterministic(bool),
    /// How wide a panel at a side is to be, or how high one below the canvas, in points.
    SetWidth(Part, f32),
    /// Tensors of a safetensors file: one as an argument, or all as globals of a layer's code.
    LoadTensors(TensorsFor),
    /// A map of the inputs of a race.
    RequestMap {
        race: u64,
        request: MapRequest,
    },
    /// Numbers of cells for the canvas.
    RequestNumbers {
        race: u64,
        request: MapRequest,
    },
    /// Which numbers the canvas draws.
    SetMapKind(MapKind),
    /// The language of the window; None: the system's.
    SetLanguage(Option<Language>),
    /// Whether they are coloured by their logarithm.
    SetMapLog(bool),
    Compile {
        backend: BackendName,
        arch: Option<String>,
    },
    /// Makes the files of an export; they come to the open dialog.
    MakeExport(ExportWish),
    /// Writes an export.
    Export(Order),
    /// Shows a folder in the system's file manager.
    OpenFolder(PathBuf),
    /// Opens a native dialog; its answer goes to the open dialog's path field.
    Pick(Pick),
    /// The content of a folder, of the worker's machine if it is `far`; sent to the open dialog.
    ListFolder {
        far: bool,
        ask: FolderAsk,
    },
    /// A file of the worker's machine.
    OpenFar(String),
    /// Asks for the tensors of a file there that is no capture.
    AskTensors(PathBuf),
    /// Such a file's tensors, as inputs of runs: the names.
    TakeTensors(PathBuf, Vec<String>),
    /// Opens a document that was kept unsaved.
    Reopen(PathBuf),
    /// Removes one for good.
    Discard(PathBuf),
    /// NVRTC, by a command that the user has agreed to.
    Fetch(FetchPlan),
    Dismiss(usize),
    /// A document for the model of a trainer's configuration, which export will merge into.
    FitConfig {
        path: PathBuf,
        trainer: Box<TrainerConfig>,
        start: Fit,
    },
}

impl Action {
    /// Whether it follows what was typed and is wrong without it.
    pub(crate) fn needs_all(&self) -> bool {
        matches!(self, Action::Afterwards(command) if command.needs_all())
    }
}

/// Starting points for a trainer's configuration.
#[derive(Debug)]
pub(crate) enum Fit {
    Preset(String),
    /// The model's attention as it is, raced at once.
    Plain(Box<Document>),
}

/// The purpose of a native dialog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pick {
    /// A file to open, of these kinds (label, extensions).
    File(&'static str, &'static [&'static str]),
    /// A file to save, with a suggested name.
    Save(String),
    Folder,
}

/// The use of a file's tensors: one is an argument, or all are globals of a layer's code.
#[derive(Clone, Debug)]
pub(crate) struct TensorsFor {
    pub layer: u64,
    /// The parameter, and which tensor; empty: the one of its name, or the only one.
    pub argument: Option<(String, String)>,
    pub path: PathBuf,
}

/// Wishes of one frame.
#[derive(Debug, Default)]
pub(crate) struct Actions {
    list: Vec<Action>,
    /// Those after all others.
    last: Vec<Action>,
}

impl Actions {
    pub(crate) fn push(&mut self, action: Action) {
        self.list.push(action);
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.list.push(Action::Command(command));
    }

    /// A command after all wishes of the frame that is drawn next.
    pub(crate) fn afterwards(&mut self, command: Command) {
        self.last.push(Action::Afterwards(command));
    }

    pub(crate) fn edit(&mut self, edit: Edit) {
        self.list.push(Action::Edit(edit));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.last.is_empty()
    }

    pub(crate) fn take(&mut self) -> Vec<Action> {
        let mut all = std::mem::take(&mut self.list);
        all.append(&mut self.last);
        all
    }
}

/// An edit of the settings.
pub(crate) fn settings_edit(settings: &Settings, change: impl FnOnce(&mut Settings)) -> Edit {
    let mut settings = settings.clone();
    change(&mut settings);
    Edit::SetSettings(Box::new(settings))
}
