//! The window's end, by a command or by its button.
//!
//! Invariant: it closes once the open documents are kept for the next start, or the user gives the unsaved ones up. Must not know
//! how they are kept.

use super::act;
use super::action::Action;
use super::command::{self, Command};
use super::drafts::{Dialog, Leaving};
use super::frame::Workbench;
use super::state::State;
use egui::{Context, ViewportCommand};

impl Workbench {
    /// Closes the window where that is wished and loses nothing; asks where it does.
    pub(super) fn follow_closing(&mut self, ctx: &Context) {
        let wished = std::mem::take(&mut self.state.quit);
        let by_button = ctx.input(|i| i.viewport().close_requested());
        if !wished && !by_button {
            return;
        }
        // what is typed counts first, as for the command; a field that is not seen has no frame in which it could
        let unseen = ctx.input(|i| i.viewport().minimized == Some(true));
        if by_button && !wished && !unseen && !self.state.editing_document && command::leave_field(ctx) {
            ctx.send_viewport_cmd(ViewportCommand::CancelClose);
            self.actions.afterwards(Command::Quit);
            return ctx.request_repaint();
        }
        if !may_close(&mut self.state) {
            if by_button {
                ctx.send_viewport_cmd(ViewportCommand::CancelClose);
            }
            if ctx.input(|i| i.viewport().minimized == Some(true)) {
                // the question is to be seen
                ctx.send_viewport_cmd(ViewportCommand::Minimized(false));
            }
            ctx.request_repaint();
        } else if !by_button {
            ctx.send_viewport_cmd(ViewportCommand::Close);
        }
    }
}

/// Whether nothing is lost by closing. Else a question is open from here on.
fn may_close(state: &mut State) -> bool {
    if state.leaves {
        return true;
    }
    if state.tour.is_some() {
        act::tour::end(state);
    }
    // the list of tabs borrows the state, which the recovery is a part of
    let mut recovery = std::mem::take(&mut state.recovery);
    let kept = recovery.keep_now(&state.tabs(), state.tab);
    state.recovery = recovery;
    let Err(why) = kept else { return true };
    let tabs = state.tabs();
    let names: Vec<String> = tabs.iter().filter(|tab| tab.place.dirty).map(|tab| tab.document.name.clone()).collect();
    let first = tabs.iter().position(|tab| tab.place.dirty);
    drop(tabs);
    let Some(first) = first else { return true };
    if !state.is_dirty() {
        // the one that can be saved from the question
        act::act(state, Action::ShowDocument(first));
    }
    let behind = match state.dialog.take() {
        Some(Dialog::Leave { behind, .. }) => behind,
        other => other.map(Box::new),
    };
    state.dialog = Some(Dialog::Leave { of: Leaving::Window, why, names, behind });
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::recovery::Recovery;
    use crate::app::tests::{Window, click, state, step_until, window};
    use crate::document::edit::Edit;
    use crate::document::library;
    use egui::{ViewportEvent, ViewportId};
    use egui_kittest::kittest::Queryable;
    use std::path::Path;

    fn quit(window: &mut Window) {
        act::act(&mut window.state_mut().state, Action::Command(Command::Quit));
        window.step();
    }

    fn sent(window: &Window, command: &ViewportCommand) -> bool {
        window.output().viewport_output[&ViewportId::ROOT].commands.contains(command)
    }

    fn edited(window: &mut Window, name: &str) {
        assert!(window.state_mut().state.edit(Edit::Rename(name.into())));
        window.run_steps(2);
    }

    /// Nothing can be written into the folder from here on, as where the disk is full.
    fn block(folder: &Path) {
        std::fs::remove_dir_all(folder.join("sessions")).unwrap();
        std::fs::write(folder.join("sessions"), "").unwrap();
    }

    #[test]
    fn what_cannot_be_kept_keeps_the_window_open_until_it_is_saved_or_given_up() {
        let home = tempfile::tempdir().unwrap();
        let mut window = window(Some(home.path()));
        edited(&mut window, "Hours of work");
        block(home.path());
        quit(&mut window);
        assert!(!sent(&window, &ViewportCommand::Close));
        window.run_steps(3);
        let Some(Dialog::Leave { why, names, .. }) = &state(&window).dialog else { panic!("a question") };
        assert_eq!((&*why.code, &names[..]), ("cannot-write", &["Hours of work".to_string()][..]));
        assert!(window.query_by_label_contains("would be lost: Hours of work").is_some());
        window.key_press(egui::Key::Escape);
        window.run_steps(2);
        assert!(state(&window).dialog.is_none());
        // a second time it is not taken for kept; the button of the window asks too
        let root = window.input_mut().viewports.get_mut(&ViewportId::ROOT).expect("the window");
        root.events.push(ViewportEvent::Close);
        window.step();
        assert!(sent(&window, &ViewportCommand::CancelClose));
        window.run_steps(3);
        click(&mut window, "Save as…");
        assert!(matches!(&state(&window).dialog, Some(Dialog::Path(path)) if path.saves()));
        let path = home.path().join("saved.json");
        act::act(&mut window.state_mut().state, Action::SaveTo(path));
        step_until(&mut window, "it is saved", |s| !s.is_dirty());
        quit(&mut window);
        assert!(sent(&window, &ViewportCommand::Close), "nothing is lost any more");
        // unsaved again, and given up
        edited(&mut window, "Not worth it");
        quit(&mut window);
        window.run_steps(3);
        window.get_by_label("Quit anyway").click();
        let closes = (0..4).any(|_| {
            window.step();
            sent(&window, &ViewportCommand::Close)
        });
        assert!(closes);
    }

    #[test]
    fn a_window_that_keeps_all_closes_at_once_and_the_next_has_the_work() {
        let home = tempfile::tempdir().unwrap();
        let mut window = window(Some(home.path()));
        edited(&mut window, "Kept");
        quit(&mut window);
        assert!(sent(&window, &ViewportCommand::Close) && state(&window).dialog.is_none());
        drop(window);
        let (_, recovered) = Recovery::open(Some(home.path().into()));
        assert_eq!(recovered.tabs.into_iter().map(|tab| tab.document.name).collect::<Vec<_>>(), ["Kept"]);
    }

    /// Nothing is kept anywhere, and a document in another tab is unsaved: that one is shown with the question.
    #[test]
    fn an_unsaved_document_in_another_tab_is_asked_for_too_and_untouched_ones_are_not() {
        let mut window = window(None);
        quit(&mut window);
        assert!(sent(&window, &ViewportCommand::Close), "nobody has touched anything");
        edited(&mut window, "Mine");
        act::act(&mut window.state_mut().state, Action::Command(Command::NewTab));
        let preset = library::preset("causal").unwrap().document().unwrap();
        act::open_document(&mut window.state_mut().state, preset);
        window.run_steps(2);
        assert!(!state(&window).is_dirty());
        quit(&mut window);
        assert!(!sent(&window, &ViewportCommand::Close));
        assert!(matches!(&state(&window).dialog, Some(Dialog::Leave { names, .. }) if names[..] == ["Mine"]));
        assert_eq!(state(&window).document.name, "Mine");
    }
}
