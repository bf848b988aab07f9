//! Exports into folders with other files, with places that are taken, and after a run was killed in between.
//!
//! Invariant: a folder is compared whole, with hidden names. Only compiled for tests.

use super::*;
use crate::base::ExportKind;
use std::collections::BTreeMap;

fn export(what: &str) -> Vec<ExportFile> {
    ["config.json", "mask.py", "sidecar/sidecar.json", "sidecar/maskloom_sidecar/__init__.py", "mask_manifest.json"]
        .map(|name| ExportFile::new(ExportKind::Module, name, format!("{what} {name}"), ""))
        .into()
}

/// Every file below a folder with its text.
fn content(folder: &Path) -> BTreeMap<String, String> {
    let read = |name: String| (name.clone(), std::fs::read_to_string(folder.join(name)).expect("text"));
    names_below(folder).expect("a folder").into_iter().map(read).collect()
}

fn is(files: &[ExportFile]) -> BTreeMap<String, String> {
    files.iter().map(|f| (f.name.clone(), String::from_utf8(f.bytes.clone()).expect("text"))).collect()
}

#[test]
fn an_export_makes_its_folder_and_replaces_itself_and_nothing_else() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("above/out");
    place(&folder, &export("first")).expect("is written");
    assert_eq!(content(&folder), is(&export("first")));
    assert_eq!(std::fs::read_dir(home.path().join("above")).expect("a folder").count(), 1, "nothing beside it");
    std::fs::write(folder.join("notes.txt"), "mine").expect("is written");
    place(&folder, &export("second")).expect("is written");
    let mut wanted = is(&export("second"));
    wanted.insert("notes.txt".into(), "mine".into());
    assert_eq!(content(&folder), wanted);
    assert_eq!(in_the_way(&folder, &export("third")).len(), 5);
}

#[test]
fn a_place_that_is_taken_leaves_the_folder_as_it_was() {
    for name in ["mask_manifest.json", "config.json", "sidecar/sidecar.json"] {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("mask.py"), "old").expect("is written");
        std::fs::create_dir_all(home.path().join(name).join("inside")).expect("is made");
        let why = place(home.path(), &export("new")).expect_err("is refused");
        assert_eq!(why.code, "cannot-write");
        assert!(why.message.contains(name) && why.message.contains("nothing was written"), "{}", why.message);
        assert_eq!(content(home.path()), BTreeMap::from([("mask.py".to_string(), "old".to_string())]));
    }
    // a file where a folder of the export belongs
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("sidecar"), "old").expect("is written");
    let why = place(home.path(), &export("new")).expect_err("is refused").message;
    assert!(why.contains("sidecar is a file"), "{why}");
    assert_eq!(content(home.path()).len(), 1);
    // and where the export's own folder belongs
    assert_eq!(place(&home.path().join("sidecar"), &export("new")).expect_err("is refused").code, "cannot-write");
}

/// The folder appears between the look and the rename.
#[test]
fn runs_at_once_into_a_new_folder_share_it_or_say_whose_it_is() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("out");
    place_new(&folder, &export("first")).expect("is written");
    place_new(&folder, &export("first")).expect("the same files are there");
    let why = place_new(&folder, &export("second")).expect_err("is refused");
    assert!(why.code == "written-meanwhile" && why.message.contains("mask.py, sidecar/sidecar.json"), "{why}");
    assert_eq!(content(&folder), is(&export("first")));
    // what is missing is nobody's
    std::fs::remove_file(folder.join("config.json")).expect("is removed");
    let why = place_new(&folder, &export("second")).expect_err("is refused");
    assert!(!why.message.contains("config.json"), "{why}");
    place_new(&folder, &export("first")).expect("is written");
    let beside = [ExportFile::new(ExportKind::Module, "notes.txt", "other", "")];
    place_new(&folder, &beside).expect("nothing is in its way");
    assert_eq!(content(&folder).len(), 6);
    assert_eq!(std::fs::read_dir(home.path()).expect("a folder").count(), 1, "nothing beside it");
    // really at once
    for round in 0..40 {
        let folder = home.path().join(format!("round {round}"));
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..8).map(|_| scope.spawn(|| place(&folder, &export("same")))).collect();
            runs.into_iter().for_each(|run| run.join().expect("no panic").expect("is written"));
        });
        assert_eq!(content(&folder), is(&export("same")));
    }
}

/// A rename that fails after others have succeeded: the place is taken between the look and the rename.
#[test]
fn a_failure_in_between_puts_the_old_files_back() {
    let home = tempfile::tempdir().expect("a folder");
    let old = &export("old")[..3];
    place(home.path(), old).expect("is written");
    let new = export("new");
    let places: Vec<Place> =
        new.iter().map(|f| Place::of(home.path(), &f.name)).collect::<Result<_, _>>().expect("are free");
    let stage = home.path().join(UNFINISHED);
    stage_all(&stage.join(NEW), &new).expect("is written");
    keep_old(&stage.join(OLD), &places).expect("is kept");
    std::fs::create_dir(home.path().join("mask_manifest.json")).expect("is made");
    assert_eq!(replace_all(&stage, &new, &places).expect_err("fails").code, "cannot-write");
    std::fs::remove_dir_all(&stage).expect("is removed");
    assert_eq!(content(home.path()), is(old));
}

#[test]
fn a_run_that_was_killed_leaves_the_old_files_or_is_finished_by_the_next_one() {
    // killed while it wrote: the old files are there, and what it wrote goes
    let home = tempfile::tempdir().expect("a folder");
    place(home.path(), &export("old")).expect("is written");
    stage_all(&home.path().join(".maskloom-abc123").join(NEW), &export("new")[..3]).expect("is written");
    leftovers::sweep(home.path());
    assert_eq!(content(home.path()), is(&export("old")));
    // killed after any number of renames: the next export of another design finishes the first one
    for placed in 0..=5 {
        let home = tempfile::tempdir().expect("a folder");
        place(home.path(), &export("old")).expect("is written");
        let (new, stage) = (export("new"), home.path().join(UNFINISHED));
        stage_all(&stage.join(NEW), &new).expect("is written");
        for f in &new[..placed] {
            std::fs::rename(stage.join(NEW).join(&f.name), home.path().join(&f.name)).expect("is renamed");
        }
        place(home.path(), &[ExportFile::new(ExportKind::Module, "other.py", "other", "")]).expect("is written");
        let mut wanted = is(&new);
        wanted.insert("other.py".into(), "other".into());
        assert_eq!(content(home.path()), wanted, "after {placed}");
        assert!(!stage.exists());
    }
}

#[cfg(unix)]
#[test]
fn links_stay_links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let home = tempfile::tempdir().expect("a folder");
    let out = home.path().join("out");
    std::fs::create_dir(&out).expect("is made");
    std::fs::write(home.path().join("shared.py"), "old").expect("is written");
    std::fs::set_permissions(home.path().join("shared.py"), PermissionsExt::from_mode(0o640)).expect("is set");
    symlink(home.path().join("shared.py"), out.join("mask.py")).expect("is linked");
    place(&out, &export("new")).expect("is written");
    assert!(out.join("mask.py").symlink_metadata().expect("is there").is_symlink());
    let shared = home.path().join("shared.py");
    assert_eq!(std::fs::read_to_string(&shared).expect("text"), "new mask.py");
    assert_eq!(std::fs::metadata(&shared).expect("is there").permissions().mode() & 0o777, 0o640);
}

/// A folder of the export may lie on another disk.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_on_another_disk_is_written_too() {
    let (home, other) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir_in("/dev/shm").expect("shared memory"));
    std::os::unix::fs::symlink(other.path(), home.path().join("sidecar")).expect("is linked");
    place(home.path(), &export("first")).expect("is written");
    place(home.path(), &export("second")).expect("is written");
    assert_eq!(
        std::fs::read_to_string(other.path().join("sidecar.json")).expect("text"),
        "second sidecar/sidecar.json"
    );
    assert_eq!(std::fs::read_dir(home.path()).expect("a folder").count(), 4);
}
