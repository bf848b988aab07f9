//! The draft of a path to open or save, and typed paths.
//!
//! Invariant: it opens and writes nothing. Must not know the files' meaning, nor how it is shown.

use crate::app::action::Action;
use crate::worker::protocol::folder::{FolderAsk, Listing};
use std::path::{Path, PathBuf};

/// The purpose of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    Open,
    Config,
    Save,
    SaveRun,
    /// The capture script.
    SaveRecorder,
    /// The design as a page.
    SaveHtml,
    Link {
        score: bool,
    },
}

/// The draft.
#[derive(Clone, Debug)]
pub(crate) struct PathDialog {
    pub purpose: Purpose,
    pub text: String,
    /// A native dialog has decided.
    pub decided: bool,
    pub focused: bool,
    /// The path that would be overwritten, asked about.
    pub asked: Option<String>,
    /// A path on the worker's machine.
    pub far: bool,
    /// Whether hidden files are listed.
    pub hidden: bool,
    /// The last requested folder, on which machine, and its content.
    pub folder: Option<(bool, FolderAsk)>,
    pub listing: Option<Listing>,
    /// The entry that the arrow keys are at.
    pub at: Option<usize>,
}

impl PathDialog {
    pub(crate) fn new(purpose: Purpose, text: &str) -> Self {
        Self {
            purpose,
            text: text.into(),
            decided: false,
            focused: false,
            asked: None,
            far: false,
            hidden: false,
            folder: None,
            listing: None,
            at: None,
        }
    }

    /// A native dialog has answered.
    pub(crate) fn pick(&mut self, picked: &Path) {
        (self.text, self.decided) = (picked.display().to_string(), true);
    }

    /// A folder has been listed.
    pub(crate) fn listed(&mut self, far: bool, ask: &FolderAsk, listing: Listing) {
        if !self.folder.as_ref().is_some_and(|(on, asked)| *on == far && asked == ask) {
            return;
        }
        if far && self.text.trim().is_empty() && listing.items.is_ok() {
            // the home there, whose name nobody knew
            self.text = format!("{}/", listing.folder.trim_end_matches('/'));
            self.folder = Some((far, FolderAsk { path: listing.folder.clone(), ..ask.clone() }));
            self.focused = false;
        }
        (self.listing, self.at) = (Some(listing), None);
    }

    /// The other machine is meant from now on.
    pub(crate) fn change_place(&mut self, far: bool) {
        (self.far, self.text, self.listing, self.folder, self.at) = (far, String::new(), None, None, None);
        self.focused = false;
    }

    /// Of the listed files.
    pub(crate) fn extensions(&self) -> &'static [&'static str] {
        match self.purpose {
            Purpose::Open => &["json", "py", "html", "safetensors", "npy", "npz", "pt", "pth", "txt"],
            Purpose::Config | Purpose::Save | Purpose::SaveRun => &["json"],
            Purpose::Link { .. } | Purpose::SaveRecorder => &["py"],
            Purpose::SaveHtml => &["html"],
        }
    }

    pub(crate) fn saves(&self) -> bool {
        matches!(self.purpose, Purpose::Save | Purpose::SaveRun | Purpose::SaveRecorder | Purpose::SaveHtml)
    }

    /// The action after the decision.
    pub(crate) fn action(&self) -> Action {
        let path = expand(&self.text);
        match self.purpose {
            Purpose::Open if self.far => Action::OpenFar(self.text.trim().into()),
            Purpose::Open => Action::Open(path),
            Purpose::Config => Action::OpenConfig(path),
            Purpose::Save => Action::SaveTo(path),
            Purpose::SaveRun => Action::SaveRunTo(path),
            Purpose::SaveRecorder => Action::SaveRecorderTo(path),
            Purpose::SaveHtml => Action::SaveHtmlTo(path),
            Purpose::Link { score } => Action::LinkCode { path: path.display().to_string(), score },
        }
    }

    /// The texts on its heading, and on the button that does it.
    pub(crate) fn words(&self) -> (&'static str, &'static str) {
        match self.purpose {
            Purpose::Open => ("path-open", "open"),
            Purpose::Config => ("path-config", "open"),
            Purpose::Save => ("path-save", "save"),
            Purpose::SaveRun => ("path-save-run", "save"),
            Purpose::SaveRecorder => ("path-save-script", "save"),
            Purpose::SaveHtml => ("path-save-html", "save"),
            Purpose::Link { .. } => ("path-link", "path-link-yes"),
        }
    }
}

/// `~` is the home folder, as in a shell.
pub(crate) fn expand(text: &str) -> PathBuf {
    let text = text.trim();
    match (text.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

pub(in crate::app) fn home() -> Option<PathBuf> {
    directories::UserDirs::new().map(|dirs| dirs.home_dir().to_path_buf())
}

/// A place for a new file: the folder the window was started in, or the home folder.
pub(crate) fn beside_home(name: &str) -> String {
    let folder = std::env::current_dir().ok().filter(|f| f.parent().is_some()).or_else(home).unwrap_or_default();
    folder.join(name).display().to_string()
}

/// A title as a file name.
pub(crate) fn file_name(title: &str, extension: &str) -> String {
    let plain: String = title.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let plain = plain.trim_matches('_');
    format!("{}.{extension}", if plain.is_empty() { "mask" } else { plain })
}
