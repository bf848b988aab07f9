//! Things that take their time and belong to no worker: reading files, native dialogs, small pictures.
//!
//! Invariant: starting one and asking for news never wait; each ends in exactly one answer. Must not know what is done
//! with the answers.

use super::background::Wake;
use super::compile::{Built, our_mistake};
use super::exporting::{self, ExportWish, Pieces};
use super::opening::{self, Opened};
use super::smaller;
use crate::base::Diagnostic;
use crate::service::doctor::mend::{self, FetchPlan};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// An answer.
#[derive(Debug)]
pub(crate) enum Done {
    /// A file was read.
    Opened { path: PathBuf, what: Result<Opened, Vec<Diagnostic>> },
    /// A native dialog was closed; None: without a choice, or there is no dialog on this system.
    Picked(Option<PathBuf>),
    /// The files of an export, or why there are none.
    Exported { wish: ExportWish, pieces: Pieces },
    /// How NVRTC would be fetched.
    Planned(Result<FetchPlan, Diagnostic>),
    /// Where it lies now.
    Fetched(Result<PathBuf, Diagnostic>),
    /// A smaller copy of the document of this revision; None where there is none.
    Smaller { revision: u64, built: Option<Box<Built>> },
    /// A preset's small picture: rows and columns, and the kept share of each pixel.
    Thumbnail { preset: String, size: usize, pixels: Vec<f32> },
}

/// Starts errands and hears of them.
pub(crate) struct Errands {
    sender: Sender<Done>,
    answers: Receiver<Done>,
    wake: Wake,
    /// A native dialog is open.
    pub picking: bool,
}

impl Errands {
    /// None started.
    pub fn new(wake: Wake) -> Self {
        let (sender, answers) = channel();
        Self { sender, answers, wake, picking: false }
    }

    /// What has come.
    pub fn poll(&mut self) -> Vec<Done> {
        let done: Vec<_> = self.answers.try_iter().collect();
        if done.iter().any(|d| matches!(d, Done::Picked(_))) {
            self.picking = false;
        }
        done
    }

    /// Reads a file and finds out what it is; `config`: it is said to be a trainer's configuration.
    pub fn open(&self, path: &Path, config: bool) {
        let path = path.to_path_buf();
        self.start("open", move || {
            let read = catch_unwind(|| if config { opening::open_config(&path) } else { opening::open(&path) });
            let what = read.unwrap_or_else(|panic| Err(vec![our_mistake("reading a file", &*panic)]));
            Done::Opened { path, what }
        });
    }

    /// Opens a native dialog, unless one is open.
    pub fn pick(&mut self, pick: &super::action::Pick) {
        use super::action::Pick;
        if self.picking {
            return;
        }
        self.picking = true;
        let pick = pick.clone();
        self.start("dialog", move || {
            // without a portal some systems panic in here; to the user that is the same as no choice
            let ask = move || match pick {
                Pick::File(label, extensions) => rfd::FileDialog::new().add_filter(label, extensions).pick_file(),
                Pick::Save(name) => rfd::FileDialog::new().set_file_name(name).save_file(),
                Pick::Folder => rfd::FileDialog::new().pick_folder(),
            };
            Done::Picked(catch_unwind(ask).ok().flatten())
        });
    }

    /// Makes the files of an export.
    pub fn export(&self, built: Arc<Built>, wish: ExportWish) {
        self.start("export", move || {
            let made = catch_unwind(AssertUnwindSafe(|| exporting::pieces(&built, &wish)));
            let pieces = made.unwrap_or_else(|panic| Err(vec![our_mistake("exporting", &*panic)]));
            Done::Exported { wish, pieces }
        });
    }

    /// Finds out how NVRTC would be fetched.
    pub fn plan_fetch(&self) {
        self.start("plan", || Done::Planned(mend::nvrtc_plan()));
    }

    /// Fetches it.
    pub fn fetch(&self, plan: FetchPlan) {
        self.start("fetch", move || Done::Fetched(mend::fetch_nvrtc(&plan)));
    }

    /// Makes a smaller copy of a document.
    pub fn shrink(&self, built: Arc<Built>, base: Option<PathBuf>) {
        self.start("shrink", move || {
            let made = catch_unwind(AssertUnwindSafe(|| smaller::smaller(&built.document, base)));
            Done::Smaller { revision: built.revision, built: made.ok().flatten().map(Box::new) }
        });
    }

    /// Draws presets small, one after the other.
    pub fn thumbnails(&self, presets: Vec<String>, size: usize) {
        self.start_many("thumbnails", move |send| {
            for preset in presets {
                let drawn = catch_unwind(|| opening::thumbnail(&preset, size)).ok().flatten();
                let Some(pixels) = drawn else { continue };
                if !send(Done::Thumbnail { preset, size, pixels }) {
                    return;
                }
            }
        });
    }

    fn start(&self, name: &str, work: impl FnOnce() -> Done + Send + 'static) {
        self.start_many(name, move |send| {
            send(work());
        });
    }

    fn start_many(&self, name: &str, work: impl FnOnce(&dyn Fn(Done) -> bool) + Send + 'static) {
        let (sender, wake) = (self.sender.clone(), self.wake.clone());
        let send = move |done| {
            let heard = sender.send(done).is_ok();
            wake();
            heard
        };
        // a system without threads left answers nothing; the window stays
        drop(std::thread::Builder::new().name(name.into()).spawn(move || work(&send)));
    }
}
