//! Races that outlive the window: a file for each, beside the kept documents.
//!
//! Invariant: two windows write no file of each other's; a file that cannot be read is no race, and it is told. Must not know how
//! they are shown.

use super::races::{PAST, Past};
use crate::base::Diagnostic;
use crate::problem::result::{Outcome, RunReport};
use crate::worker::{files, folders};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const FOLDER: &str = "races";

/// A race as a file holds it.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    maskloom_past_race: u32,
    at: String,
    design: String,
    sizes: String,
    report: RunReport,
}

/// The files, oldest first. Errors: the folder cannot be listed.
fn all(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut paths = folders::entries(&root.join(FOLDER))?;
    paths.retain(|p| p.extension().is_some_and(|e| e == "json"));
    Ok(paths)
}

/// Writes one, and removes the oldest beyond what is kept. Errors: why it is lost with the window, or why old ones stay.
pub(super) fn keep(root: &Path, past: &Past) -> Result<(), Diagnostic> {
    let mut report = (*past.report).clone();
    // kernels' texts are large, and are in the kernel cache
    for backend in &mut report.backends {
        if let Outcome::Done { artefact, .. } = &mut backend.outcome {
            *artefact = None;
        }
    }
    let (at, design, sizes) = (past.at.clone(), past.design.clone(), past.sizes.clone());
    let kept = Kept { maskloom_past_race: 1, at, design, sizes, report };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
    let path = root.join(FOLDER).join(format!("{now:016}-{}.json", std::process::id()));
    if let Ok(text) = serde_json::to_string(&kept) {
        files::save_with_folders(&path, text.as_bytes()).map_err(|why| Diagnostic {
            message: format!("this race is not kept for later windows: {}", why.message),
            ..why
        })?;
    }
    let paths = all(root).map_err(|why| {
        let message = format!("old races in {} are not removed: {why}", root.join(FOLDER).display());
        Diagnostic::warning("folder-unread", message).hint("give this user the right to read the folder")
    })?;
    for old in &paths[..paths.len().saturating_sub(PAST)] {
        // one that another window has removed is gone; one that stays is found again by the next race
        let _ = std::fs::remove_file(old);
    }
    Ok(())
}

/// Reads them, oldest first, and says what cannot be read; `number` numbers them.
pub(super) fn read(root: &Path, mut number: impl FnMut() -> u64) -> (Vec<Past>, Option<Diagnostic>) {
    let folder = root.join(FOLDER);
    let paths = match all(root) {
        Ok(paths) => paths,
        Err(why) => {
            let message = format!("races of earlier windows in {} are not shown: {why}", folder.display());
            let why = Diagnostic::warning("folder-unread", message).hint("give this user the right to read the folder");
            return (Vec::new(), Some(why));
        }
    };
    let (mut races, mut unread) = (Vec::new(), Vec::new());
    for path in paths {
        let text = files::read_text(&path).map_err(|why| why.message);
        let kept = text
            .and_then(|text| serde_json::from_str::<Kept>(&text).map_err(|why| format!("{}: {why}", path.display())));
        match kept {
            Ok(k) => races.push(Past {
                id: number(),
                at: k.at,
                design: k.design,
                sizes: k.sizes,
                report: Box::new(k.report),
                before: true,
            }),
            Err(why) => unread.push(why),
        }
    }
    let told = unread.first().map(|first| {
        let message = format!("{} files of earlier races are passed over; the first: {first}", unread.len());
        Diagnostic::warning("races-unread", message).hint(format!("remove them from {}", folder.display()))
    });
    (races, told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::recorded::embedded;

    #[test]
    fn races_come_back_as_they_were_and_the_oldest_go() {
        let home = tempfile::tempdir().expect("a folder");
        let report = embedded()[0].runs.values().next().expect("a run").report.clone();
        let past = |n: usize| Past {
            id: 0,
            at: "2026-11-27 11:10".into(),
            design: format!("design {n}"),
            sizes: "64 x 64".into(),
            report: Box::new(report.clone()),
            before: false,
        };
        (0..PAST + 3).for_each(|n| {
            keep(home.path(), &past(n)).expect("kept");
            std::thread::sleep(std::time::Duration::from_millis(2));
        });
        std::fs::write(home.path().join(FOLDER).join("9-broken.json"), "{").expect("written");
        let mut last = 0;
        let (back, told) = read(home.path(), || {
            last += 1;
            last
        });
        assert_eq!((back.len(), back[0].id), (PAST - 1 + 1, 1), "a broken file is no race");
        let told = told.expect("it is told").message;
        assert!(told.starts_with("1 files") && told.contains("9-broken.json"), "{told}");
        assert_eq!(back.last().map(|p| p.design.clone()), Some(format!("design {}", PAST + 2)));
        assert!(back.iter().all(|p| p.before && p.at == "2026-11-27 11:10" && p.report.work == report.work));
        let (none, told) = read(&home.path().join("none"), || 1);
        assert!(none.is_empty() && told.is_none(), "no folder yet is no fault");
        // a folder that cannot be listed is not an empty one
        let wrong = tempfile::tempdir().expect("a folder");
        std::fs::write(wrong.path().join(FOLDER), "").expect("written");
        let (none, told) = read(wrong.path(), || 1);
        let told = told.expect("it is told");
        assert!(
            none.is_empty() && told.code == "folder-unread" && told.message.contains("it is no folder"),
            "{told:?}"
        );
        let lost = keep(wrong.path(), &past(0)).expect_err("there is no place for it");
        assert!(lost.message.starts_with("this race is not kept for later windows: "), "{lost:?}");
    }
}
