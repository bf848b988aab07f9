//! Every reader of strangers' bytes as a function of bytes: for `fuzz/`, and for the kept cases of `tests/data/fuzz`.
//!
//! Invariant: whatever the bytes are, a reader returns; what it accepts survives writing and reading again. Must not know a fuzzer.

use crate::base::{Diagnostic, Source};
use crate::document::file;
use crate::ir::graph::ModKind;
use crate::python::trace::Limits;
use crate::python::trace::{TraceRequest, trace};
use crate::tasks::run_file::RunFile;
use crate::trainers::config::{ConfigRequest, Trainer, config as merged};
use crate::trainers::read::TrainerConfig;
use crate::worker::transport::{self, Incoming};
use std::path::Path;

/// A reader by its name.
pub type Target = (&'static str, fn(&[u8]));

/// The targets.
pub const TARGETS: [Target; 7] = [
    ("text", text),
    ("document", document),
    ("tensors", tensors),
    ("archive", archive),
    ("protocol", protocol),
    ("run_file", run_file),
    ("config", config),
];

/// FlexAttention code, as a mask and as a score mod.
pub fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for kind in [ModKind::Mask, ModKind::Score] {
        let mut request = TraceRequest::new(Source::new("fuzzed.py", text), "", kind);
        request.limits = Limits {
            steps: 20_000,
            tensor_bytes: 1 << 20,
            container_bytes: 1 << 20,
            nodes: 2_000,
            ..Limits::default()
        };
        let traced = trace(&request);
        assert!(traced.result.is_some() || !traced.diagnostics.is_empty(), "refused without a word");
        traced.diagnostics.iter().for_each(|reported| drop(reported.render()));
    }
}

/// A document's file.
pub fn document(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match file::from_json(text) {
        Ok(read) => {
            let written = file::to_json(&read);
            assert_eq!(file::from_json(&written), Ok(read), "a document is not what was saved");
        }
        Err(reported) => assert!(!reported.is_empty(), "refused without a word"),
    }
}

/// safetensors, npy and PNG: the first byte chooses.
pub fn tensors(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    imported(["safetensors", "npy", "png"][usize::from(kind % 3)], rest);
}

/// npz and pt: the first byte chooses.
pub fn archive(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    imported(["npz", "pt"][usize::from(kind % 2)], rest);
}

fn imported(ending: &str, bytes: &[u8]) {
    let name = format!("fuzzed.{ending}");
    if let Ok(Some(found)) = super::imports::import_bytes(Path::new(&name), bytes) {
        let written = file::to_json(&found.document);
        assert_eq!(file::from_json(&written), Ok(found.document), "an imported document is not what was saved");
    }
}

/// Both directions of the worker's protocol: a worker reads requests, a client reads a greeting and answers.
pub fn protocol(bytes: &[u8]) {
    let mut requests = bytes;
    // a broken request does not put the stream out of step, a broken answer does
    loop {
        match transport::read_request(&mut requests) {
            Ok(Incoming::End) => break,
            Ok(Incoming::Message(request)) => {
                let mut written = Vec::new();
                transport::write_request(&mut written, &request).expect("into memory");
            }
            Ok(Incoming::Noise(_)) => {}
            Err((_, why)) if [transport::CUT_SHORT, transport::BROKEN].contains(&&*why.code) => break,
            Err(_) => {}
        }
    }
    let mut answers = bytes;
    while let Ok(Incoming::Message(_) | Incoming::Noise(_)) =
        transport::read_greeting(&mut answers, false, |id| id % 2 == 1)
    {}
}

/// A saved run.
pub fn run_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(run) = RunFile::from_json(text) {
        let written = run.to_json().expect("what was read can be written");
        assert!(RunFile::from_json(&written).is_ok(), "a run file is refused after it was saved");
    }
}

/// A trainer's config: read, and a setting merged into it, under the names that trainers give their files.
pub fn config(bytes: &[u8]) {
    for name in ["config.json", "config.toml", "config.yaml"] {
        if let Ok(read) = TrainerConfig::read(name, bytes) {
            drop((read.meaning().to_string(), read.document().map(|d| d.validate())));
        }
        for trainer in [Trainer::SimpleTuner, Trainer::Transformers] {
            let request =
                ConfigRequest { trainer, designed: true, existing: Some((name, bytes)), ..ConfigRequest::default() };
            let Ok(once) = merged(&request) else { continue };
            let again = merged(&ConfigRequest { existing: Some((name, &once.file.bytes)), ..request });
            let again: Result<_, Diagnostic> = again.map(|c| c.file.bytes);
            assert_eq!(again, Ok(once.file.bytes), "a merged config changes when it is merged again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    /// Cases that lie elsewhere in the tree: whole files of a target's kind.
    const ELSEWHERE: [(&str, &str); 6] = [
        ("text", "assets/patterns/causal.py"),
        ("text", "assets/patterns/sliding_window.py"),
        ("document", "presets/alibi.json"),
        ("document", "presets/natten_2d.json"),
        ("document", "presets/painted_blocks.json"),
        ("run_file", "tests/data/run_version_1.json"),
    ];

    /// The cases of a target: what fuzzing found, and whole files of its kind.
    fn cases(name: &str) -> Vec<Vec<u8>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let kept = std::fs::read_dir(root.join("tests/data/fuzz").join(name)).into_iter().flatten();
        let kept = kept.map(|case| case.expect("an entry").path());
        let elsewhere = ELSEWHERE.iter().filter(|(of, _)| *of == name).map(|(_, path)| root.join(path));
        kept.chain(elsewhere).map(|path| std::fs::read(path).expect("a file")).collect()
    }

    #[test]
    fn kept_cases_of_fuzzing_are_read_without_a_panic() {
        for (name, target) in TARGETS {
            let cases = cases(name);
            assert!(!cases.is_empty(), "{name} has no case");
            cases.iter().for_each(|case| target(case));
        }
    }

    /// The kept cases, cut, repeated and with bytes changed: a few of what `fuzz/` tries by the million.
    #[test]
    fn changed_cases_are_read_without_a_panic() {
        let mut rng = Rng::new(20_261_127);
        for (name, target) in TARGETS {
            for whole in cases(name) {
                for _ in 0..40 {
                    target(&changed(&whole, &mut rng));
                }
            }
        }
    }

    fn changed(whole: &[u8], rng: &mut Rng) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        for _ in 0..=rng.below(3) {
            if bytes.is_empty() {
                break;
            }
            let at = rng.below(bytes.len());
            match rng.below(4) {
                0 => bytes[at] = rng.below(256) as u8,
                1 => bytes[at] ^= 1 << rng.below(8),
                2 => bytes.truncate(at),
                _ => {
                    let part = bytes[at..(at + 1 + rng.below(16)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        bytes
    }
}
