//! Workspaces: layouts of the window, each for one task, and the pages that any of them can show at its side.
//!
//! Invariant: each has a command of the table. Must not know what is drawn in them.

use super::command::Command;
use serde::{Deserialize, Serialize};

/// The task of a layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Workspace {
    #[default]
    Design,
    Race,
    Quality,
    Code,
    Export,
    Learn,
    Parallel,
}

impl Workspace {
    pub(crate) const ALL: [Workspace; 7] = [
        Workspace::Design,
        Workspace::Race,
        Workspace::Quality,
        Workspace::Code,
        Workspace::Export,
        Workspace::Learn,
        Workspace::Parallel,
    ];

    /// The command that shows it.
    pub(crate) fn command(self) -> Command {
        match self {
            Workspace::Design => Command::ShowDesign,
            Workspace::Race => Command::ShowRace,
            Workspace::Quality => Command::ShowQuality,
            Workspace::Code => Command::ShowCode,
            Workspace::Export => Command::ShowExport,
            Workspace::Learn => Command::ShowLearn,
            Workspace::Parallel => Command::ShowParallel,
        }
    }

    /// The id of the name of the workspace's page at the side.
    pub(crate) fn page(self) -> &'static str {
        match self {
            Workspace::Design => "page-design",
            Workspace::Race => "page-race",
            Workspace::Quality => "page-quality",
            Workspace::Code => "page-code",
            Workspace::Export => "page-export",
            Workspace::Learn => "page-learn",
            Workspace::Parallel => "page-parallel",
        }
    }

    /// Whether the layers are on the left.
    pub(crate) fn has_layers(self) -> bool {
        self == Workspace::Design
    }

    /// Points that its side wants at first, in a window of this width.
    pub(crate) fn side(self, window: f32) -> f32 {
        match self {
            Workspace::Design => 300.0,
            Workspace::Learn => window * 0.34,
            _ => window * 0.46,
        }
    }
}

/// A page that takes the place of a workspace's own until it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aside {
    Cell,
    Problems,
    Setup,
}

impl Aside {
    pub(crate) const ALL: [Aside; 3] = [Aside::Cell, Aside::Problems, Aside::Setup];

    /// The command that shows it.
    pub(crate) fn command(self) -> Command {
        match self {
            Aside::Cell => Command::ShowCell,
            Aside::Problems => Command::ShowProblems,
            Aside::Setup => Command::ShowSetup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maskloom_testing::names::variants;

    #[test]
    fn all_has_every_workspace_and_every_page() {
        let names = |all: &[String]| all.iter().map(|name| name.to_lowercase()).collect::<Vec<_>>();
        assert_eq!(variants::<Workspace>(), names(&Workspace::ALL.map(|one| format!("{one:?}"))));
        assert_eq!(variants::<Aside>(), names(&Aside::ALL.map(|one| format!("{one:?}"))));
    }
}
