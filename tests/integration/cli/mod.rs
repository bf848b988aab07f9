//! The real binary, command by command, on the CPU. Documents here are made of shapes, so that only the command line
//! and its tasks are tested.

mod ending;
mod exchange;
mod exports;
mod lab;
mod languages;
mod lines;
mod logins;
mod looks;
mod machine;
mod mistakes;
#[cfg(target_os = "linux")]
mod names;
mod parallel;
mod races;
mod targets;

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A folder with documents, and the binary run in it.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

/// The output of a run.
pub(crate) struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> Ran {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> Ran {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in:\n{}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}", self.out))
    }
}

/// The commands that the program's help lists.
pub(crate) fn commands() -> Vec<String> {
    let help = Bench::new().run(&["--help"]).ok().out;
    let list = help.split_once("\nCommands:\n").expect("a list of commands").1.split("\n\n").next().unwrap_or_default();
    let lines = list.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names: Vec<String> =
        lines.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").map(String::from).collect();
    assert!(names.len() > 20, "{names:?}");
    names
}

const BAND: &str = r#"{
  "maskloom": 1, "name": "Band", "axes": {"q": "tokens 300"},
  "layers": [{"id": 1, "name": "Band", "enabled": true, "combine": "and", "content": {"kind": "band", "lo": 0, "hi": 63}}],
  "scores": [{"id": 2, "name": "Fall", "enabled": true, "content": {"kind": "curve", "points": [[0, 0.0], [64, -1.0]]}}],
  "settings": {"batch": 1, "heads": 4, "kv_heads": 2, "head_dim": 32, "dtype": "bf16", "block_size": {"q": 64, "kv": 64},
               "backends": ["eager", "sdpa", "flash_attention_2", "flex"]}
}"#;

impl Bench {
    pub(crate) fn new() -> Bench {
        let bench = Bench { folder: tempfile::tempdir().expect("a folder") };
        bench.write("band.json", BAND);
        bench.write(
            "plain.json",
            &BAND.replace(
                "\"enabled\": true, \"content\": {\"kind\": \"curve\"",
                "\"enabled\": false, \"content\": {\"kind\": \"curve\"",
            ),
        );
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maskloom"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        for gone in ["DISPLAY", "WAYLAND_DISPLAY", "MASKLOOM_PRESETS", "MASKLOOM_PATTERNS"] {
            command.env_remove(gone);
        }
        // texts are compared in English, whatever this system speaks
        command.env("LC_ALL", "C.UTF-8").env("MASKLOOM_CACHE", self.path("cache"));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Bench::ran(&mut self.command(args))
    }

    pub(crate) fn ran(command: &mut Command) -> Ran {
        let output = command.output().expect("the binary starts");
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A table's shape: digits as `0`, so that only words and columns remain.
fn shape(table: &str) -> Vec<String> {
    let number = |word: &str| word.chars().any(|c| c.is_ascii_digit());
    let line = |l: &str| l.split_whitespace().map(|w| if number(w) { "0" } else { w }).collect::<Vec<_>>().join(" ");
    table.lines().map(line).collect()
}
