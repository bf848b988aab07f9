//! Where numbers come from, in the language of the window.
//!
//! Invariant: the words are those of `tasks::origins`. Must not know what shows them.

use super::language::words;
use crate::base::Provenance;
use crate::base::provenance::Basis;
use crate::tasks::origins;
use egui::Ui;

pub(super) use crate::tasks::origins::{sentence as sentence_in, whole as whole_in};

/// All that is known, as it can stand behind a name.
pub(super) fn whole(ui: &Ui, from: &Provenance) -> String {
    origins::whole(words(ui.ctx()), from)
}

/// The kind and the device alone.
pub(super) fn brief(ui: &Ui, from: &Provenance) -> String {
    origins::brief(words(ui.ctx()), from)
}

/// What [`brief`] leaves out.
pub(super) fn rest(ui: &Ui, from: &Provenance) -> String {
    origins::rest(words(ui.ctx()), from)
}

/// With a capital, as a line begins.
pub(super) fn title(ui: &Ui, from: &Provenance) -> String {
    origins::title(words(ui.ctx()), from)
}

/// A sentence of its own.
pub(super) fn sentence(ui: &Ui, from: &Provenance) -> String {
    origins::sentence(words(ui.ctx()), from)
}

/// From what an estimate is made.
pub(super) fn basis(ui: &Ui, of: &Basis) -> String {
    origins::basis_of(words(ui.ctx()), of)
}
