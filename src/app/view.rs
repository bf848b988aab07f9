//! The view of the document, restored at the next start.
//!
//! Invariant: files of older windows can be read. Must not know the document.

use super::hosts::Host;
use super::layout::{Docks, Widths};
use super::theme::ThemeChoice;
use super::workspace::{Aside, Workspace};
use crate::base::Layout;
use crate::words::Language;
use crate::worker::target::Target;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Q, K and V from a file on the worker's machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileInputs {
    pub path: String,
    /// Names of the tensors for q, k and v.
    pub names: [String; 3],
    pub layout: Layout,
    /// Whether runs use it; a file that is switched off is remembered.
    pub used: bool,
}

impl Default for FileInputs {
    fn default() -> Self {
        let names = ["q", "k", "v"].map(String::from);
        Self { path: String::new(), names, layout: Layout::Bhsd, used: false }
    }
}

/// How the document is looked at; comes back at the next start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct View {
    pub workspace: Workspace,
    /// A page in the place of the workspace's own.
    pub aside: Option<Aside>,
    pub theme: ThemeChoice,
    /// None: the system's.
    pub language: Option<Language>,
    /// Whether the layers are shown, if the workspace has them.
    pub left: bool,
    /// Whether the page at the side is shown.
    pub right: bool,
    /// Whether panels for which there is no room lie over the mask.
    #[serde(skip)]
    pub drawer: bool,
    pub widths: Widths,
    /// The positions of layers and page.
    pub docks: Docks,
    /// Size of everything, 1 at first.
    pub scale: f32,
    /// Whether the window starts with the first steps.
    pub start_strip: bool,
    /// Newest first.
    #[serde(with = "crate::base::kept_path")]
    pub recent: Vec<PathBuf>,
    pub target: Target,
    /// Machines that answered, newest first.
    pub hosts: Vec<Host>,
    pub python: Option<String>,
    pub inputs: FileInputs,
    /// Timing rounds of a run.
    pub rounds: u32,
    /// Whether a run computes gradients too.
    pub backward: bool,
    /// Whether its gradients must have the same bits in every run.
    pub deterministic: bool,
    /// Notes of workers that the user has seen.
    pub reported: Vec<String>,
    /// The newest unsaved document that a start has offered, by its file's name.
    pub offered: Option<String>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            workspace: Workspace::Design,
            aside: None,
            theme: ThemeChoice::System,
            language: None,
            left: true,
            right: true,
            drawer: false,
            widths: Widths::default(),
            docks: Docks::default(),
            scale: 1.0,
            start_strip: true,
            recent: Vec::new(),
            target: Target::local(),
            hosts: Vec::new(),
            python: None,
            inputs: FileInputs::default(),
            rounds: crate::tasks::plan::ROUNDS,
            backward: false,
            deterministic: false,
            reported: Vec::new(),
            offered: None,
        }
    }
}

impl View {
    /// Shows a workspace with its own page.
    pub(crate) fn show(&mut self, workspace: Workspace) {
        (self.workspace, self.aside) = (workspace, None);
        self.open_page();
    }

    /// Shows a page at the side, in any workspace.
    pub(crate) fn show_aside(&mut self, aside: Aside) {
        self.aside = Some(aside);
        self.open_page();
    }

    /// Shows the page at the side, over the mask where there is no room beside it.
    pub(crate) fn open_page(&mut self) {
        (self.right, self.drawer) = (true, true);
    }

    /// Whether a workspace's own page is in front.
    pub(crate) fn is_at(&self, workspace: Workspace) -> bool {
        self.workspace == workspace && self.aside.is_none()
    }

    /// Puts a path in front of the recent ones.
    pub(crate) fn remember(&mut self, path: &Path) {
        const RECENT: usize = 10;
        self.recent.retain(|p| p != path);
        self.recent.insert(0, path.to_path_buf());
        self.recent.truncate(RECENT);
    }
}
