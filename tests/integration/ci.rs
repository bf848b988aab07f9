//! The last lines of `.ci/run` where something is missing, with stand-ins for cargo, Python and what it installs.
//!
//! Invariant: the script itself runs, in a folder of its own; nothing is installed or compiled. Must not know its steps.

#![cfg(target_os = "linux")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Tools of the system that the script calls.
const SYSTEM: [&str; 18] = [
    "awk", "bash", "cat", "cp", "dirname", "env", "find", "flock", "git", "grep", "head", "mkdir", "mktemp", "rm",
    "sed", "sh", "sleep", "timeout",
];

/// Says that the tests which need what the script does not promise are skipped, as tests do.
const CARGO: &str = r#"[ "$*" = test ] || exit 0
case ",$MASKLOOM_NEEDS" in *,cxx,*) ;; *) printf 'cxx\t1\tbinary one\tno C++ compiler\n%.0s' 1 2 >>"$MASKLOOM_SKIPS" ;; esac
case ",$MASKLOOM_NEEDS" in *,torch,*) ;; *) printf 'torch\t1\tbinary two\tno Python with torch\n' >>"$MASKLOOM_SKIPS" ;; esac
printf 'gpu\t26\tmain\tno GPU\n' >>"$MASKLOOM_SKIPS"
"#;

/// Makes an environment, and installs in it unless `NO_TORCH` is set.
const PYTHON: &str = r#"case "$*" in
"-m venv "*) mkdir -p "$3/bin" "$3/lib"; cp "$0" "$3/bin/python" ;;
*"pip install"*--target*) mkdir -p .tools/nvrtc; >.tools/nvrtc/libnvrtc.so.13 ;;
*"pip install"*) [ -z "${NO_TORCH:-}" ] || exit 1; >.tools/python/lib/libcudnn.so.9 ;;
*importlib.metadata*) [ -e .tools/python/lib/libcudnn.so.9 ] ;;
*) echo words ;;
esac
"#;

fn program(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/bash\n{text}")).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("set");
}

/// Exit status and output of `.ci/run` without the programs `missing`.
fn run(missing: &[&str], ci: bool, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let (tree, programs) = (folder.path().join("tree"), folder.path().join("programs"));
    for made in [&tree.join(".ci"), &programs] {
        std::fs::create_dir_all(made).expect("made");
    }
    for file in [".ci/run", ".ci/real-window", "README.md", "Cargo.lock"] {
        std::fs::copy(own.join(file), tree.join(file)).expect("copied");
    }
    for name in SYSTEM {
        let found = maskloom::worker::user_python::on_path(name).unwrap_or_else(|| panic!("no {name} on PATH"));
        symlink(found, programs.join(name)).expect("linked");
    }
    program(&programs.join("cargo"), CARGO);
    program(&programs.join("python3"), PYTHON);
    program(&programs.join("id"), "echo 1000\n");
    for name in ["cargo-deny", "rustdoc", "c++", "Xvfb", "xdotool", "import", "identify", "sshd"] {
        if !missing.contains(&name) {
            program(&programs.join(name), "exit 0\n");
        }
    }
    for name in ["docs", "window", "walks"] {
        // where their programs are missing the last two end before they open a window
        let real = missing.contains(&"Xvfb") && name != "docs";
        let text =
            if real { std::fs::read_to_string(own.join(".ci").join(name)).expect("UTF-8") } else { "exit 0\n".into() };
        program(&tree.join(".ci").join(name), &text);
    }
    let mut command = Command::new(programs.join("bash"));
    command.arg(tree.join(".ci/run")).env_clear().env("PATH", &programs).env("HOME", folder.path().join("home"));
    let made = Command::new("git").args(["init", "-q"]).arg(&tree).status().expect("git runs");
    assert!(made.success());
    command.envs(variables.iter().copied()).envs(ci.then_some(("CI", "true")));
    let ran = command.output().expect("it runs");
    let text = [ran.stdout, ran.stderr].concat();
    (ran.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn all_steps_passed_where_all_that_is_promised_was_found() {
    for ci in [true, false] {
        let (code, text) = run(&[], ci, &[]);
        assert!(code == Some(0) && text.contains("all steps passed in "), "{text}");
        assert!(text.contains("not promised here: 26 tests (gpu: no GPU)"), "{text}");
    }
}

/// What is missing fails the run under `CI=true` and is named; elsewhere the last line counts what was skipped.
#[track_caller]
fn reported(missing: &[&str], variables: &[(&str, &str)], named: &str, skipped: &str) {
    let (code, text) = run(missing, true, variables);
    assert!(code == Some(1) && text.contains("FAILED: ") && text.contains(named), "{text}");
    assert!(!text.contains("passed in"), "{text}");
    let (code, text) = run(missing, false, variables);
    assert!(code == Some(0) && text.contains(named), "{text}");
    let last = text.lines().rfind(|line| line.starts_with("passed in ")).unwrap_or_else(|| panic!("{text}"));
    assert!(last.ends_with(skipped) && !text.contains("all steps passed"), "{text}");
}

#[test]
fn a_run_without_a_compiler_says_so() {
    reported(&["c++"], &[], "not found: a C++ compiler (cxx)", ", 2 skipped: compiler; 1 test (cxx: no C++ compiler)");
}

#[test]
fn a_run_without_pytorch_says_so() {
    reported(
        &[],
        &[("NO_TORCH", "1")],
        "not found: PyTorch (torch)",
        ", 4 skipped: Python; Python package; package sources; 1 test (torch: no Python with torch)",
    );
}

#[test]
fn a_run_without_a_window_says_so() {
    reported(&["Xvfb"], &[], "skipped: no Xvfb", ", 3 skipped: window packages; window; walks");
}

#[test]
fn a_tree_that_cannot_be_looked_at_is_not_clean() {
    let lost = |file: &str| {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/run")).expect("UTF-8");
        let checks = text
            .split("\nabsent() {")
            .nth(1)
            .and_then(|rest| rest.split("\nevery_test() {").next())
            .expect("the checks");
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!("absent() {{{checks}\nno_wgpu && no_machine_paths");
        std::fs::write(folder.path().join("Cargo.lock"), "name = \"egui\"\n").expect("written");
        let made = Command::new("git").args(["init", "-q"]).arg(folder.path()).status().expect("git runs");
        assert!(made.success());
        if !file.is_empty() {
            std::fs::rename(folder.path().join(file), folder.path().join("elsewhere")).expect("moved");
        }
        let ran = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().expect("it runs");
        ran.status.success()
    };
    assert!(lost("") && !lost("Cargo.lock") && !lost(".git"));
}
