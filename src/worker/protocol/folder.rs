//! Messages about folders of the worker's machine: what a file picker shows.
//!
//! Invariant: a listing says what it left out; paths are whole. Must not know what is chosen.

use crate::base::Diagnostic;
use serde::{Deserialize, Serialize};

/// A request for the content of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderAsk {
    /// Its path; empty, or `~` in front: the home of the worker's user.
    pub path: String,
    /// Only files with these endings; all files if there are none.
    pub endings: Vec<String>,
    /// Whether names that begin with a dot are listed too.
    pub hidden: bool,
}

/// Something in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Item {
    /// Folders come first.
    pub is_file: bool,
    /// Its name.
    pub name: String,
    /// Bytes of a file.
    pub bytes: u64,
}

/// A folder and its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// Its whole path.
    pub folder: String,
    /// Folders, then files, each by name; the error is the reason why it cannot be listed.
    pub items: Result<Vec<Item>, Diagnostic>,
    /// How many more there are.
    pub left_out: usize,
}
