//! Typed and chosen values in dialogs and on the export page, before they take effect.
//!
//! Invariant: plain data; a draft changes only itself. Must not know the state, nor how it is shown.

pub(crate) mod connect;
pub(crate) mod export;
pub(crate) mod gallery;
pub(crate) mod palette;
pub(crate) mod paste;
pub(crate) mod path;
pub(crate) mod trainer;
pub(crate) mod unsaved;
pub(crate) mod uses;

pub(crate) use export::ExportPage;

use crate::base::Diagnostic;
use crate::document::model::Axes;
use crate::tasks::doctor::mend::FetchPlan;
use connect::ConnectDialog;
use gallery::GalleryDialog;
use palette::PaletteDialog;
use paste::PasteDialog;
use path::{PathDialog, Purpose, beside_home};
use std::path::PathBuf;
use trainer::TrainerDialog;
use unsaved::UnsavedDialog;

/// What is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    Window,
    Tab,
}

/// The question of the dialog.
#[derive(Clone, Debug)]
pub(crate) enum Dialog {
    Path(PathDialog),
    Paste(PasteDialog),
    Connect(ConnectDialog),
    Gallery(GalleryDialog),
    /// New axes while painted cells exist.
    Resize(Axes),
    Trainer(Box<TrainerDialog>),
    Palette(PaletteDialog),
    /// A failure; the previous dialog returns after it.
    Failure {
        title: String,
        why: Vec<Diagnostic>,
        behind: Option<Box<Dialog>>,
    },
    /// The window or a tab is to close, and these documents would be lost; the previous dialog returns after it.
    Leave {
        of: Leaving,
        why: Diagnostic,
        names: Vec<String>,
        behind: Option<Box<Dialog>>,
    },
    /// Fetching NVRTC, after a yes.
    Fetch(FetchPlan),
    Unsaved(UnsavedDialog),
    /// The document's own file as another program left it, and the document.
    Difference {
        path: PathBuf,
        theirs: String,
        mine: String,
    },
    /// Jobs that go on without the window.
    Jobs,
    Shortcuts,
    Messages,
}

impl Dialog {
    pub(crate) fn open() -> Self {
        Dialog::Path(PathDialog::new(Purpose::Open, ""))
    }

    pub(crate) fn open_config() -> Self {
        Dialog::Path(PathDialog::new(Purpose::Config, ""))
    }

    pub(crate) fn link(score: bool) -> Self {
        Dialog::Path(PathDialog::new(Purpose::Link { score }, ""))
    }

    pub(crate) fn save_recorder() -> Self {
        Dialog::Path(PathDialog::new(Purpose::SaveRecorder, &beside_home(crate::export::RECORDER)))
    }

    pub(crate) fn save_html(name: &str) -> Self {
        Dialog::Path(PathDialog::new(Purpose::SaveHtml, &beside_home(&path::file_name(name, "html"))))
    }

    pub(crate) fn palette() -> Self {
        Dialog::Palette(PaletteDialog::default())
    }

    /// And whether the file is a configuration.
    pub(crate) fn trainer(path: PathBuf, text: &str) -> (Self, bool) {
        let dialog = TrainerDialog::new(path, text);
        let is_one = dialog.is_one();
        (Dialog::Trainer(Box::new(dialog)), is_one)
    }

    /// Whether it asks where to save.
    pub(crate) fn saves(&self) -> bool {
        matches!(self, Dialog::Path(dialog) if dialog.saves())
    }

    /// Whether a click outside may close it: nothing was typed or chosen in it.
    pub(crate) fn is_light(&self) -> bool {
        use Dialog::*;
        matches!(self, Gallery(_) | Palette(_) | Shortcuts | Messages | Jobs | Difference { .. } | Failure { .. })
    }

    pub(crate) fn failure(title: &str, why: Vec<Diagnostic>, behind: Option<Dialog>) -> Self {
        Dialog::Failure { title: title.into(), why, behind: behind.map(Box::new) }
    }
}
