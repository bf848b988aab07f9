//! A frame that panics: the documents are saved, the mistake is reported, and the session starts again in the same window.
//!
//! Invariant: a second panic soon after the first ends the window with a message, so that nothing repeats for ever; the next
//! start does not open what could not be drawn, and offers it among the unsaved documents. Must not know what a frame does.

use super::drafts::Dialog;
use super::frame::Workbench;
use super::panics::{self, Part};
use super::recovery::Tab;
use super::state::State;
use super::workspace::Workspace;
use super::{Options, act, unsaved};
use crate::base::Diagnostic;
use crate::document::history::History;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// A panic within this time after another one is the same mistake again.
const SOON: Duration = Duration::from_secs(10);

impl Workbench {
    /// Does a part of a frame. Nothing is done any more after the end.
    pub(super) fn guarded(&mut self, ctx: &egui::Context, part: Part, work: impl FnOnce(&mut Self)) {
        if self.ended.get().is_some() {
            return ctx.send_viewport_cmd(egui::ViewportCommand::Close);
        }
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work(self))) {
            self.mend(ctx, part, &panics::caught(&*payload));
        }
    }

    fn mend(&mut self, ctx: &egui::Context, part: Part, caught: &panics::Caught) {
        let folder = self.state.recovery.folder().map(Path::to_path_buf);
        let report = panics::report(folder.as_deref(), caught, part.words(), &self.state.trail.lines());
        let message = format!("Maskloom made a mistake while {}: {}", part.words(), caught.message);
        let send = report.map_or(String::new(), |path| format!("; please report it with the file {}", path.display()));
        let again = self.mended.is_some_and(|before| before.elapsed() < SOON);
        if !again {
            let reported = catch_unwind(AssertUnwindSafe(|| self.start_again(ctx, part)));
            if let Ok(kept) = reported {
                let hint = format!("{kept}{send}");
                let why = vec![Diagnostic::error("panic", message).hint(hint)];
                let behind = self.state.dialog.take();
                self.state.dialog = Some(Dialog::failure(self.state.words().text("mending-again"), why, behind));
                self.mended = Some(Instant::now());
                return ctx.request_repaint();
            }
        }
        let kept = catch_unwind(AssertUnwindSafe(|| self.state.leave())).unwrap_or("");
        let why = Diagnostic::error("panic", format!("{message}, twice; the window has been closed"));
        let _ = self.ended.set(why.hint(format!("{kept}{send}")));
        ctx.send_viewport_cmd(egui::ViewportCommand::Close);
    }

    /// A new session around the documents; says what became of them.
    fn start_again(&mut self, ctx: &egui::Context, part: Part) -> &'static str {
        let whole = self.state.document.validate().is_empty();
        if whole {
            self.save();
        } else {
            // as it was kept a moment before
            self.state.recovery.finish();
        }
        let options = Options {
            folder: self.state.recovery.folder().map(Path::to_path_buf),
            target: Some(self.state.view.target.clone()),
            ..Options::default()
        };
        ctx.memory_mut(|memory| memory.reset_areas());
        let fresh = Workbench::new(ctx, options);
        let mut old = std::mem::replace(self, fresh);
        self.ended = old.ended.clone();
        let (new, old_state) = (&mut self.state, &mut old.state);
        new.view = old_state.view.clone();
        new.trail = std::mem::take(&mut old_state.trail);
        new.notices = std::mem::take(&mut old_state.notices);
        (new.parked, new.tab) = (std::mem::take(&mut old_state.parked), old_state.tab);
        (new.id, new.last_id) = (old_state.id, new.last_id.max(old_state.last_id));
        if whole {
            new.document = old_state.document.clone();
            // at least 1: this is not the first screen's document
            (new.revision, new.begun) = (old_state.revision.max(1), old_state.begun);
            (new.saved, new.kept_as) = (old_state.saved, old_state.kept_as.take());
            (new.path, new.config) = (old_state.path.take(), old_state.config.take());
            (new.seen, new.outside) = (old_state.seen.take(), old_state.outside.take());
            new.trainer = old_state.trainer.take();
            new.focus.layer = old_state.focus.layer;
            new.first_steps = false;
        }
        let undo = whole && part == Part::Drawing;
        if undo {
            new.history = std::mem::replace(&mut old_state.history, History::new());
        }
        // workers and threads of the old session end; a second mistake in that changes nothing
        let _ = catch_unwind(AssertUnwindSafe(|| drop(old)));
        match (whole, undo) {
            (true, true) => "your documents are as they were; results of runs are gone",
            (true, false) => "your documents are as they were; results of runs and the steps to undo are gone",
            (false, _) => "the document was in the middle of a change: it is as it was a moment before",
        }
    }

    /// Writes the document and the habits, and waits for it.
    pub(super) fn save(&mut self) {
        self.keep(&egui::Context::default(), true);
        self.state.recovery.finish();
    }
}

impl State {
    /// The next start does not open this document; returns where it is.
    fn leave(&mut self) -> &'static str {
        self.view.show(Workspace::default());
        self.recovery.write_again();
        let kept = act::set_aside(self);
        self.recovery.finish();
        if let Some((name, root)) = kept.as_ref().zip(self.recovery.folder())
            && !unsaved::place(root, name).exists()
        {
            // it could not be written: rather the same mistake again than lost work
            return "the next start opens the document as it was kept last";
        }
        self.recovery.write_again();
        let mut recovery = std::mem::take(&mut self.recovery);
        let others: Vec<Tab<'_>> = self.tabs().into_iter().filter(|tab| tab.id != self.id).collect();
        // what cannot be written is opened again: rather the same mistake than lost work
        let _ = recovery.follow(self.now, true, (&others, 0), &self.view);
        recovery.finish();
        self.recovery = recovery;
        match (kept, &self.path) {
            (Some(_), _) => "your work is kept: the next start offers it among the unsaved documents",
            (None, Some(_)) => "your document is saved in its file",
            (None, None) => "the document had no changes of yours",
        }
    }
}

impl Drop for Workbench {
    /// A panic outside of a frame's parts takes the window with it: the document is saved first.
    fn drop(&mut self) {
        if std::thread::panicking() && self.ended.get().is_none() {
            let _ = catch_unwind(AssertUnwindSafe(|| self.save()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::recovery::Recovery;
    use crate::app::state::first_document;
    use crate::app::tests::{settle, state, window};
    use crate::document::edit::Edit;

    fn reports(home: &Path) -> Vec<String> {
        let read = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.unwrap().path()).unwrap();
        std::fs::read_dir(home.join("reports")).into_iter().flatten().map(read).collect()
    }

    fn renamed(state: &mut State, name: &str) {
        assert!(state.edit(Edit::Rename(name.into())));
    }

    #[test]
    fn a_panic_in_a_frame_is_told_and_the_window_comes_back_with_the_work() {
        let home = tempfile::tempdir().unwrap();
        let mut window = window(Some(home.path()));
        renamed(&mut window.state_mut().state, "Mine");
        settle(&mut window);
        panics::watch();
        let ctx = window.ctx.clone();
        window.state_mut().guarded(&ctx, Part::Drawing, |_| panic!("tile 7"));
        settle(&mut window);
        let now = state(&window);
        assert_eq!((now.document.name.as_str(), now.is_dirty()), ("Mine", true));
        assert!(now.history.undo_title().is_some(), "drawing changes no document: undo goes on");
        let Some(Dialog::Failure { title, why, .. }) = &now.dialog else { panic!("{:?}", now.dialog) };
        assert_eq!(title, "The window's session has started again");
        assert!(why[0].message.ends_with("while drawing the window: tile 7"), "{}", why[0].message);
        let [report] = &reports(home.path())[..] else { panic!("one report") };
        assert!(report.contains("tile 7") && report.contains("mending.rs"), "{report}");
        assert!(why[0].hint.as_ref().is_some_and(|hint| hint.contains("reports")), "{:?}", why[0].hint);
        // the window goes on working
        window.state_mut().state.dialog = None;
        renamed(&mut window.state_mut().state, "Mine too");
        settle(&mut window);
        assert!(window.state().ended.get().is_none());
        // what a start of the program would open
        window.state_mut().save();
        let (_, recovered) = Recovery::open(Some(home.path().into()));
        let opened = recovered.tabs.into_iter().map(|tab| (tab.document.name, tab.place.dirty));
        assert_eq!(opened.collect::<Vec<_>>(), [("Mine too".into(), true)]);
    }

    #[test]
    fn a_second_panic_soon_ends_the_window_and_the_next_start_opens_something_else() {
        let home = tempfile::tempdir().unwrap();
        let mut window = window(Some(home.path()));
        renamed(&mut window.state_mut().state, "Cannot be drawn");
        settle(&mut window);
        let ctx = window.ctx.clone();
        for _ in 0..3 {
            window.state_mut().guarded(&ctx, Part::Acting, |_| panic!("again"));
        }
        let why = window.state().ended.get().expect("ended").clone();
        assert!(why.message.contains("while carrying out an action: again, twice"), "{}", why.message);
        assert!(why.hint.as_ref().is_some_and(|hint| hint.contains("unsaved documents")), "{:?}", why.hint);
        assert_eq!(reports(home.path()).len(), 2, "after the end nothing is done");
        drop(window);
        let (_, recovered) = Recovery::open(Some(home.path().into()));
        assert!(recovered.tabs.is_empty() && recovered.reported.is_empty(), "{:?}", recovered.reported);
        let kept = unsaved::list(home.path()).unwrap();
        assert_eq!(kept.iter().map(|kept| kept.name.as_str()).collect::<Vec<_>>(), ["Cannot be drawn"]);
        assert!(recovered.unsaved.is_some());
    }

    /// It has been changed and changed back: no file has it, but there is nothing to lose.
    #[test]
    fn a_preset_that_cannot_be_drawn_is_not_opened_again() {
        let home = tempfile::tempdir().unwrap();
        let mut window = window(Some(home.path()));
        renamed(&mut window.state_mut().state, "Else");
        let name = first_document().name;
        renamed(&mut window.state_mut().state, &name);
        settle(&mut window);
        let ctx = window.ctx.clone();
        for _ in 0..2 {
            window.state_mut().guarded(&ctx, Part::Drawing, |_| panic!("again"));
        }
        let why = window.state().ended.get().expect("ended").clone();
        assert!(why.hint.as_ref().is_some_and(|hint| hint.contains("no changes of yours")), "{:?}", why.hint);
        drop(window);
        let (_, recovered) = Recovery::open(Some(home.path().into()));
        assert!(recovered.tabs.is_empty() && unsaved::list(home.path()).unwrap().is_empty());
    }

    #[test]
    fn a_document_in_the_middle_of_a_change_comes_back_as_it_was_before() {
        let home = tempfile::tempdir().unwrap();
        let mut window = window(Some(home.path()));
        renamed(&mut window.state_mut().state, "Whole");
        settle(&mut window);
        window.state_mut().keep(&egui::Context::default(), true);
        let ctx = window.ctx.clone();
        window.state_mut().guarded(&ctx, Part::Acting, |bench| {
            // two layers of one id: moved to its new place, and not yet gone from the old one
            let document = &mut bench.state.document;
            document.layers.push(document.layers[0].clone());
            document.name = "Half".into();
            panic!("half done");
        });
        settle(&mut window);
        let now = state(&window);
        assert_eq!((now.document.name.as_str(), now.document.layers.len(), now.is_dirty()), ("Whole", 1, true));
        assert_eq!(
            now.history.undo_title(),
            Some(&crate::document::title::Title::Rename),
            "as it was kept with the document"
        );
    }

    /// The painter or the window system panics, which no part of a frame catches.
    #[test]
    fn a_panic_outside_of_the_parts_saves_the_document_too() {
        let home = tempfile::tempdir().unwrap();
        let mut window = window(Some(home.path()));
        renamed(&mut window.state_mut().state, "Saved");
        let fallen = catch_unwind(AssertUnwindSafe(move || {
            let _window = window;
            panic!("outside");
        }));
        assert!(fallen.is_err());
        let (_, recovered) = Recovery::open(Some(home.path().into()));
        assert_eq!(recovered.tabs.into_iter().map(|tab| tab.document.name).collect::<Vec<_>>(), ["Saved"]);
    }
}
