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
use maskloom_problem as problem;
use maskloom_python as python;
use maskloom_quality as quality;
use maskloom_service as service;
use maskloom_trainers as trainers;

mod act;
mod action;
mod background;
mod browse;
pub mod canvas;
mod captured;
#[cfg(test)]
mod captured_tests;
mod cards;
mod command;
mod compile;
mod connecting;
mod dialogs;
mod drafts;
#[cfg(test)]
mod editing_tests;
mod editor;
mod errands;
mod exporting;
mod frame;
pub mod frames;
mod gesture;
#[cfg(test)]
mod heads_tests;
mod hints;
mod hosts;
mod layout;
mod literal;
#[cfg(test)]
mod looking_tests;
mod mishaps;
mod notices;
mod numbers;
mod opening;
mod painting;
mod panels;
mod races;
mod reading;
mod recovery;
mod session;
#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
mod software;
mod state;
mod sweeps;
mod tabs;
#[cfg(test)]
mod tests;
mod theme;
mod timings;
mod trace;
#[cfg(test)]
mod truth_tests;
mod unsaved;
mod view;
mod watch;
mod widgets;
mod workspace;
mod writing;

pub use frame::Workbench;

use crate::base::Diagnostic;
use crate::service::display::{self, Display, X11_PACKAGES};
use crate::service::target::Target;
use std::path::PathBuf;

/// The window's start-up options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A file to open: a document, FlexAttention code, a run file, a trainer's config.json.
    pub open: Option<PathBuf>,
    /// A preset to open, by name.
    pub preset: Option<String>,
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
        Options { folder, ..Options::default() }
    }
}

/// Opens the window and stays until it is closed. Errors: there is no display, or something that a window needs is
/// missing; nothing was shown then.
pub fn run(options: Options) -> Result<(), Diagnostic> {
    let timings = timings::Timings::begin();
    match display::probe() {
        Display::Ready(_) | Display::ReadyWithoutWayland(_) => {}
        Display::Missing(why) => return Err(why),
    }
    background::calm_pool();
    // the window system's start panics if a library is missing that the probe does not check
    let opened = std::panic::catch_unwind(move || open(options, timings));
    match opened {
        Ok(Ok(())) => Ok(()),
        Ok(Err(why)) => Err(no_window(&why.to_string())),
        Err(panic) => Err(no_window(&mishaps::our_mistake("opening the window", &*panic).message)),
    }
}

fn no_window(why: &str) -> Diagnostic {
    Diagnostic::error("no-window", format!("no window can be opened: {why}"))
        .hint(format!("sudo apt-get install -y {X11_PACKAGES}"))
}

fn open(options: Options, mut timings: Option<timings::Timings>) -> eframe::Result {
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
        timings.iter_mut().for_each(timings::Timings::ready);
        Ok(Box::new(Workbench::new(&cc.egui_ctx, options).timed(timings)) as Box<dyn eframe::App>)
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
