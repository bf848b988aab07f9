//! Races that outlive the window: a file for each, beside the kept documents.
//!
//! Invariant: two windows write no file of each other's; a file that cannot be read is no race. Must not know how they are shown.

use super::races::{PAST, Past};
use crate::problem::result::{Outcome, RunReport};
use crate::worker::files;
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

/// The files, oldest first.
fn all(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join(FOLDER)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "json")).collect();
    paths.sort();
    paths
}

/// Writes one, and removes the oldest beyond what is kept. A race that cannot be kept is lost with the window, nothing else.
pub(super) fn keep(root: &Path, past: &Past) {
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
        let _ = files::save_with_folders(&path, text.as_bytes());
    }
    let paths = all(root);
    for old in &paths[..paths.len().saturating_sub(PAST)] {
        let _ = std::fs::remove_file(old);
    }
}

/// Reads them, oldest first; `number` numbers them.
pub(super) fn read(root: &Path, mut number: impl FnMut() -> u64) -> Vec<Past> {
    let one = |path: PathBuf| serde_json::from_str::<Kept>(&std::fs::read_to_string(path).ok()?).ok();
    let kept = all(root).into_iter().filter_map(one);
    kept.map(|k| Past {
        id: number(),
        at: k.at,
        design: k.design,
        sizes: k.sizes,
        report: Box::new(k.report),
        before: true,
    })
    .collect()
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
            keep(home.path(), &past(n));
            std::thread::sleep(std::time::Duration::from_millis(2));
        });
        std::fs::write(home.path().join(FOLDER).join("9-broken.json"), "{").expect("written");
        let mut last = 0;
        let back = read(home.path(), || {
            last += 1;
            last
        });
        assert_eq!((back.len(), back[0].id), (PAST - 1 + 1, 1), "a broken file is no race");
        assert_eq!(back.last().map(|p| p.design.clone()), Some(format!("design {}", PAST + 2)));
        assert!(back.iter().all(|p| p.before && p.at == "2026-11-27 11:10" && p.report.work == report.work));
        assert!(read(&home.path().join("none"), || 1).is_empty());
    }
}
