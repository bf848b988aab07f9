//! Names of the steps of a history, as facts.
//!
//! Invariant: a name that an older file has is kept as it is. Must not know languages, nor how a step is undone.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A step by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Title {
    /// Another document took this one's place.
    Open(String),
    /// A layer of this name came.
    Add(String),
    /// A parameter of this name changed.
    Change(String),
    /// The document's name.
    Rename,
    /// Its description.
    About,
    /// Its axes.
    Axes,
    /// Its settings.
    Settings,
    /// A layer went.
    Remove,
    /// Layers were reordered.
    Move,
    /// A layer's name.
    RenameLayer,
    /// A layer takes part again.
    Enable,
    /// A layer takes no part.
    Disable,
    /// How a layer combines.
    Combine,
    /// A layer's heads.
    Heads,
    /// A layer's content.
    Layer,
    /// A layer's code.
    Code,
    /// Cells were painted.
    Paint,
    /// Cells were erased.
    Erase,
    /// A proposal of masks took the place of the layers that there were.
    Take,
    /// No edit at all.
    Nothing,
    /// What an older file says.
    #[serde(untagged)]
    Said(String),
}

/// In English.
impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Title::Open(name) => return write!(f, "Open {name}"),
            Title::Add(name) => return write!(f, "Add {name}"),
            Title::Change(name) => return write!(f, "Change {name}"),
            Title::Rename => "Rename the document",
            Title::About => "Edit the description",
            Title::Axes => "Change the axes",
            Title::Settings => "Change the settings",
            Title::Remove => "Remove a layer",
            Title::Move => "Reorder layers",
            Title::RenameLayer => "Rename a layer",
            Title::Enable => "Enable a layer",
            Title::Disable => "Disable a layer",
            Title::Combine => "Change how a layer combines",
            Title::Heads => "Change the heads of a layer",
            Title::Layer => "Change a layer",
            Title::Code => "Edit code",
            Title::Paint => "Paint",
            Title::Erase => "Erase",
            Title::Take => "Take a proposal",
            Title::Nothing => "Nothing",
            Title::Said(title) => title,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Title;

    #[test]
    fn a_name_comes_back_from_its_file_and_one_of_an_older_file_stays() {
        for title in [Title::Axes, Title::Change("window".into()), Title::Said("Paint".into())] {
            let text = serde_json::to_string(&title).expect("JSON");
            assert_eq!(serde_json::from_str::<Title>(&text).expect("a title"), title, "{text}");
        }
        let old: Title = serde_json::from_str("\"Rename the document\"").expect("a title");
        assert_eq!((old.to_string(), old), ("Rename the document".into(), Title::Said("Rename the document".into())));
    }
}
