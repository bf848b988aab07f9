//! The window.
//!
//! Invariant: the document (saved) is separate from the session (derived, can be rebuilt); views send commands, one
//! place carries them out. Must not know the command line, CUDA or Python.

// Every path from a crate's root to an item is the same inside and outside of it.
extern crate self as app;
use maskloom_analysis as analysis;
use maskloom_backends as backends;
use maskloom_base as base;
use maskloom_document as document;
use maskloom_export as export;
use maskloom_ir as ir;
use maskloom_parallel as parallel;
use maskloom_problem as problem;
use maskloom_python as python;
use maskloom_quality as quality;
use maskloom_tasks as tasks;
use maskloom_trainers as trainers;
use maskloom_words as words;
use maskloom_worker as worker;

mod act;
mod action;
mod area;
mod around;
mod background;
mod bars;
pub mod canvas;
mod captured;
#[cfg(test)]
mod captured_tests;
mod cards;
mod changed_lines;
mod clipboard;
mod command;
mod compile;
mod connecting;
mod counting;
mod dialogs;
mod differing;
mod drafts;
#[cfg(test)]
mod editing_tests;
mod editor;
mod errands;
mod exporting;
mod far_jobs;
mod fields;
mod file_choices;
mod fonts;
mod frame;
pub mod frames;
mod gesture;
#[cfg(test)]
mod hands_tests;
#[cfg(test)]
mod heads_tests;
mod hints;
mod homes;
mod hosts;
#[cfg(test)]
mod keeping_tests;
mod language;
#[cfg(test)]
mod language_tests;
mod layout;
mod leaving;
#[cfg(test)]
mod leaving_tests;
mod left;
mod literal;
#[cfg(test)]
mod looking_tests;
mod mending;
mod mishaps;
mod names;
mod notices;
mod numbers;
mod opening;
mod origins;
mod painting;
mod panels;
mod panics;
mod past;
mod picture;
mod question;
mod races;
mod reading;
mod recovery;
mod region;
#[cfg(test)]
mod room_tests;
mod session;
mod sharing;
#[cfg(test)]
mod sharing_tests;
#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
mod software;
mod speaking;
mod state;
mod sweeps;
mod tabs;
#[cfg(test)]
mod tests;
mod theme;
mod there;
mod timings;
mod titles;
mod tour;
#[cfg(test)]
mod tour_tests;
mod trace;
mod trail;
#[cfg(test)]
mod truth_tests;
mod unsaved;
mod view;
mod watch;
mod widgets;
mod workspace;
mod writing;

pub use frame::Workbench;
pub use question::ask;

use crate::base::Diagnostic;
use crate::worker::asking;
use crate::worker::display::{self, Display, X11_PACKAGES};
use crate::worker::target::Target;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The window's start-up options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A file to open: a document, FlexAttention code, a run file, a trainer's config.json.
    pub open: Option<PathBuf>,
    /// A preset to open, by name.
    pub preset: Option<String>,
    /// The language that the system asks for.
    pub language: words::Language,
    /// The worker's target; None: the last one, initially this machine.
    pub target: Option<Target>,
    /// Where the last document and the window's preferences are kept; None: nothing is kept.
    pub folder: Option<PathBuf>,
}

impl Options {
    /// Stores its state in the user's data folder.
    pub fn for_user() -> Options {
        let folder =
            directories::ProjectDirs::from("", "", "maskloom").map(|dirs| dirs.data_local_dir().join("window"));
        Options { folder, language: words::Language::of_environment(), ..Options::default() }
    }
}

/// Why the window is not open, other than that the user has closed it.
#[derive(Debug)]
pub enum Ended {
    /// There is no display, or something that a window needs is missing; nothing was shown.
    NoWindow(Diagnostic),
    /// It was open, and a mistake of ours or the end of the window system has closed it. The document is saved.
    Broke(Diagnostic),
}

/// Opens the window and stays until it is closed.
pub fn run(options: Options) -> Result<(), Ended> {
    let timings = timings::Timings::begin();
    asking::in_a_window();
    match display::probe() {
        Display::Ready(_) | Display::ReadyWithoutWayland(_) => {}
        Display::Missing(why) => return Err(Ended::NoWindow(why)),
    }
    background::calm_pool();
    panics::watch();
    let folder = options.folder.clone();
    let fate = Fate::default();
    let of_window = fate.clone();
    // the window system's start panics if a library is missing that the probe does not check
    let opened = std::panic::catch_unwind(AssertUnwindSafe(move || open(options, timings, of_window)));
    let shown = fate.shown.load(Ordering::Relaxed);
    match opened {
        Ok(Ok(())) => fate.ended.get().cloned().map_or(Ok(()), |why| Err(Ended::Broke(why))),
        Ok(Err(why)) if !shown => Err(Ended::NoWindow(no_window(&why.to_string()))),
        Err(panic) if !shown => {
            Err(Ended::NoWindow(no_window(&mishaps::our_mistake("opening the window", &*panic).message)))
        }
        Ok(Err(why)) => Err(Ended::Broke(closed(&format!("the window system has ended: {why}"), None))),
        Err(panic) => {
            let caught = panics::caught(&*panic);
            let report = panics::report(folder.as_deref(), &caught, "showing the window", "");
            Err(Ended::Broke(closed(&format!("Maskloom made a mistake: {}", caught.message), report)))
        }
    }
}

/// What becomes of a window, told outside of it.
#[derive(Clone, Default)]
struct Fate {
    /// Whether it has been there.
    shown: Arc<AtomicBool>,
    /// Why it has closed by itself.
    ended: Arc<OnceLock<Diagnostic>>,
}

fn closed(why: &str, report: Option<PathBuf>) -> Diagnostic {
    let kept = "the document is kept: the next start opens it";
    let send = report.map(|path| format!("please report it with the file {}", path.display()));
    Diagnostic::error("window-closed", format!("the window has been closed: {why}"))
        .hint(send.map_or(kept.into(), |send| format!("{kept}; {send}")))
}

fn no_window(why: &str) -> Diagnostic {
    Diagnostic::error("no-window", format!("no window can be opened: {why}"))
        .hint(format!("sudo apt-get install -y {X11_PACKAGES}"))
}

fn open(options: Options, mut timings: Option<timings::Timings>, fate: Fate) -> eframe::Result {
    let native = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_app_id("maskloom")
            .with_title("Maskloom")
            .with_icon(icon())
            .with_inner_size([1400.0, 880.0])
            .with_min_inner_size([640.0, 420.0]),
        ..eframe::NativeOptions::default()
    };
    let start = move |cc: &eframe::CreationContext<'_>| {
        fate.shown.store(true, Ordering::Relaxed);
        timings.iter_mut().for_each(timings::Timings::ready);
        fonts::start(&cc.egui_ctx);
        names::begin(&cc.egui_ctx);
        Ok(Box::new(Workbench::new(&cc.egui_ctx, options).timed(timings).ending(fate.ended)) as Box<dyn eframe::App>)
    };
    eframe::run_native("Maskloom", native, Box::new(start))
}

/// The window's icon: a causal mask of blocks, its diagonal lit.
fn icon() -> egui::IconData {
    const SIDE: u32 = 64;
    const BLOCK: u32 = 16;
    let pixel = |at: u32| {
        let (row, col) = (at / SIDE, at % SIDE);
        let gap = row % BLOCK < 2 || col % BLOCK < 2;
        match (row / BLOCK).cmp(&(col / BLOCK)) {
            _ if gap => [0x13, 0x15, 0x19, 0xff],
            std::cmp::Ordering::Greater => [0x2f, 0xb1, 0xa4, 0xff],
            std::cmp::Ordering::Equal => [0xe8, 0xb0, 0x4b, 0xff],
            std::cmp::Ordering::Less => [0x2a, 0x2f, 0x38, 0xff],
        }
    };
    egui::IconData { rgba: (0..SIDE * SIDE).flat_map(pixel).collect(), width: SIDE, height: SIDE }
}
