//! What is known of a panic at the moment in which it happens, and the report of it as a file.
//!
//! Invariant: a report holds the build, the place, the backtrace and the names of the last actions, and nothing of the document.
//! Must not know what panicked.

use crate::base::identity;
use crate::worker::{files, folders, machine};
use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Folder of the reports, inside of the window's own.
const FOLDER: &str = "reports";
/// Reports that are kept.
const MOST: usize = 20;

/// Which part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Actions are carried out, results taken: the document may be in the middle of a change.
    Acting,
    /// Everything is drawn: the document is only read.
    Drawing,
}

impl Part {
    /// What it was doing.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Part::Acting => "carrying out an action",
            Part::Drawing => "drawing the window",
        }
    }
}

/// A panic of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Caught {
    /// Its own words.
    pub message: String,
    /// `src/app/frame.rs:12:5`
    pub place: String,
    pub backtrace: String,
}

thread_local! {
    static LAST: RefCell<Option<Caught>> = const { RefCell::new(None) };
}

/// From now on the place and the backtrace of each panic are known; the hook that was there still speaks.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let caught = Caught {
                message: words(panic.payload()),
                place: panic.location().map_or("an unknown place".into(), ToString::to_string),
                backtrace: Backtrace::force_capture().to_string(),
            };
            // a thread that is ending has no memory left
            let _ = LAST.try_with(|last| *last.borrow_mut() = Some(caught));
            before(panic);
        }));
    });
}

/// The panic that this thread has just caught.
pub(crate) fn caught(payload: &(dyn Any + Send)) -> Caught {
    LAST.try_with(|last| last.borrow_mut().take()).ok().flatten().unwrap_or_else(|| Caught {
        message: words(payload),
        place: "an unknown place".into(),
        backtrace: "not known\n".into(),
    })
}

fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    text.unwrap_or("no reason given").to_string()
}

/// Writes the report into the window's folder, whose oldest reports go. None: there is no folder, or it cannot be written.
pub(crate) fn report(root: Option<&Path>, caught: &Caught, doing: &str, actions: &str) -> Option<PathBuf> {
    let folder = root?.join(FOLDER);
    let text = format!(
        "Maskloom {} on {} {}, {}\n\npanicked while {doing}, at {}:\n{}\n\nlast actions, the newest at the end:\n{}\n\
         backtrace:\n{}",
        identity::build(),
        std::env::consts::OS,
        std::env::consts::ARCH,
        machine::moment(),
        caught.place,
        caught.message,
        if actions.is_empty() { "none\n" } else { actions },
        caught.backtrace
    );
    let stamp: String = machine::moment().chars().filter(char::is_ascii_digit).collect();
    let names = (1..100).map(|n| if n == 1 { format!("{stamp}.txt") } else { format!("{stamp}-{n:02}.txt") });
    let name = names.into_iter().find(|name| !folder.join(name).exists())?;
    let path = files::save_under(&folder, &name, text.as_bytes()).ok()?;
    // the report is written, also where those before it cannot be listed: they stay
    let mut all = folders::entries(&folder).unwrap_or_default();
    all.retain(|path| path.extension().is_some_and(|e| e == "txt"));
    all.sort_unstable();
    for old in &all[..all.len().saturating_sub(MOST)] {
        // a file that cannot be removed stays
        let _ = std::fs::remove_file(old);
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_happened_where_and_after_which_actions() {
        watch();
        let payload = std::panic::catch_unwind(|| panic!("tile {}", 7)).unwrap_err();
        let caught = caught(&*payload);
        let home = tempfile::tempdir().unwrap();
        let path = report(Some(home.path()), &caught, "drawing the window", "Command(Undo)\n").expect("written");
        let text = std::fs::read_to_string(&path).unwrap();
        let first = format!("Maskloom {} on {} ", identity::build(), std::env::consts::OS);
        assert!(text.starts_with(&first), "{text}");
        assert!(text.contains("while drawing the window, at src/") && text.contains("panics.rs:"), "{text}");
        assert!(text.contains(":\ntile 7\n") && text.contains("\nCommand(Undo)\n"), "{text}");
        // the frames of this test
        assert!(text.contains("backtrace:\n") && text.contains("a_report_says_what_happened"), "{text}");
        assert_eq!(report(None, &caught, "", ""), None);
        (0..MOST + 5).for_each(|_| drop(report(Some(home.path()), &caught, "again", "")));
        assert_eq!(std::fs::read_dir(home.path().join(FOLDER)).unwrap().count(), MOST);
    }
}
