//! The Python worker: without torch it refuses, a silent or dying worker is ended, and with torch the numbers are
//! right.

use super::*;
use crate::backends::compare::compare;
use crate::backends::gate::{Bars, Rounds};
use crate::backends::inputs;
use crate::backends::reference::{choose_rows, emulated, reference};
use crate::backends::testing::{problem, spec};
use crate::base::{DType, Layout};
use crate::problem::ProblemSpec;

/// Problems without mods need no module.
fn none(_: &Problem, _: &str) -> Vec<(String, Vec<u8>)> {
    Vec::new()
}

#[test]
fn no_python_is_a_refusal_of_each_backend() {
    let names = [BackendName::TorchSdpa, BackendName::Flex, BackendName::TorchFlex];
    let (found, facts) = backends(&names, open(Some("/no/such/python"), Device::Cpu, none));
    assert_eq!(facts, None);
    let p = problem(1, 1, 1, 8, 8, 16);
    let refusals: Vec<_> = found.iter().map(|b| (b.name(), b.support(&p).unwrap_err().code.to_string())).collect();
    let why = "no-python".to_string();
    assert_eq!(refusals, [(BackendName::TorchSdpa, why.clone()), (BackendName::TorchFlex, why)]);
}

#[cfg(unix)]
mod fake {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    /// A "Python" that is a shell script.
    fn fake(script: &str) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("python3");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
        let path = path.display().to_string();
        (folder, path)
    }

    fn failure(script: &str) -> Diagnostic {
        let (_folder, python) = fake(script);
        open(Some(&python), Device::Cpu, none).err().expect("it cannot be opened")
    }

    #[test]
    fn a_dying_worker_is_reported_with_its_last_words() {
        let why = failure("echo 'Segmentation fault of torch' >&2; exit 3");
        assert_eq!(why.code, "torch-died");
        assert!(why.message.contains("exit status: 3") && why.message.contains("Segmentation"), "{}", why.message);
    }

    /// What prints nothing is told apart from what takes its time to import torch.
    #[test]
    fn a_python_that_says_nothing_is_told_soon() {
        let (_folder, python) = fake("read line; exec sleep 60");
        let limit = Duration::from_millis(300);
        let why = Session::start_within(python.into(), Device::Cpu, limit).err().expect("it says nothing");
        assert_eq!(why.code, "torch-silent");
        let (_folder, slow) = fake(
            "echo '{\"id\": 0}'; read line; sleep 1; echo '{\"id\": 1, \"ok\": {\"versions\": {}, \"device_name\": \"x\", \
             \"cuda\": false, \"flex_flash\": false}}'",
        );
        assert!(Session::start_within(slow.into(), Device::Cpu, Duration::from_millis(800)).is_ok());
    }

    #[test]
    fn what_the_worker_refuses_reaches_the_user() {
        let why = failure(
            "read line; echo noise; \
             echo '{\"id\": 1, \"error\": {\"code\": \"no-torch\", \"message\": \"no\", \"hint\": \"pip\"}}'; sleep 5",
        );
        assert_eq!((why.code.as_ref(), why.hint.as_deref()), ("no-torch", Some("pip")));
    }

    #[test]
    fn a_silent_worker_is_killed_with_what_it_started() {
        // nothing of PATH is called: its child stops itself, and it waits for the child
        let (folder, python) = fake(
            "read line; echo '{\"id\": 1, \"ok\": {\"versions\": {}, \"device_name\": \"x\", \"cuda\": false, \
             \"flex_flash\": false}}'; /bin/sh -c 'kill -STOP $$' & echo $! > ${0%/*}/child; wait",
        );
        let mut session = Session::start(python.into(), Device::Cpu, Heard::default()).expect("it says hello");
        let why = session.ask("waiting", "time", json!({}), Duration::from_millis(300)).unwrap_err();
        assert_eq!(why.code, "torch-timeout");
        let child = std::fs::read_to_string(folder.path().join("child")).expect("a process id");
        // a killed process is listed until a busy machine has come round to end it
        let listed = || std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        let lives = || !listed().is_empty() && !listed().contains(" Z ");
        let patience = Instant::now() + Duration::from_secs(30);
        while lives() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!lives(), "the grandchild lives: {}", listed());
        let again = session.ask("asking again", "time", json!({}), Duration::from_millis(300)).unwrap_err();
        assert_eq!(again.code, "torch-died");
    }
}

/// A Python with torch, or a word on stderr.
fn torch() -> Option<Torch> {
    match open(None, Device::Cpu, none) {
        Ok(torch) => Some(torch),
        Err(why) => {
            maskloom_testing::needs::missing(
                "torch",
                &format!("no Python with torch ({}); set MASKLOOM_PYTHON", why.message),
            );
            None
        }
    }
}

#[test]
fn pytorch_agrees_with_the_reference_on_problems_without_mods() {
    let Some(torch) = torch() else { return };
    for (dtype, layout, kv_heads) in
        [(DType::F32, Layout::Bhsd, 4), (DType::BF16, Layout::Bshd, 2), (DType::F16, Layout::Bhsd, 1)]
    {
        let p = Problem::new(ProblemSpec { dtype, layout, ..spec(2, 4, kv_heads, 33, 50, 32) }).expect("valid");
        let given = inputs::random(&p, 5);
        let exact = reference(&p, &given, choose_rows(&p, u32::MAX), &Control::new()).expect("computed");
        let emulated = emulated(&p, &given, &exact, &Control::new()).expect("computed");
        let bars = Bars::new(&p, &exact, &emulated, Rounds::Eager);
        for name in [BackendName::TorchEager, BackendName::TorchSdpa] {
            let mut backend = torch.backend(name).expect("one of its names");
            backend.support(&p).expect("supported");
            let mut prepared = backend.prepare(&p, &given).expect("prepared");
            let error = compare(&p, &prepared.output().expect("it runs"), &exact, &bars).expect("shapes agree");
            assert!(error.passed(), "{} {dtype}: {error:?}", prepared.kernel());
            let samples = prepared.time(3).expect("timed");
            let passes = &samples.passes_ms;
            assert!(passes.len() == 3 && passes.iter().all(|s| *s > 0.0), "{samples:?}");
            // a pass on the cpu is a call
            assert!(samples.clock.is_none() && samples.calls_ms.is_empty(), "{samples:?}");
        }
    }
}

#[test]
fn what_a_pass_of_pytorch_holds_is_counted() {
    let Some(torch) = torch() else { return };
    let p = Problem::new(ProblemSpec { dtype: DType::F32, ..spec(1, 2, 2, 256, 256, 32) }).expect("valid");
    let given = inputs::random(&p, 5);
    let mut prepared = torch.backend(BackendName::TorchEager).expect("there").prepare(&p, &given).expect("prepared");
    assert_eq!((prepared.memory(), prepared.training_memory()), (None, None));
    prepared.output().expect("it runs");
    prepared.gradients(&backends::gradients::random(&p, 5)).expect("it trains");
    let [forward, both] = [prepared.memory(), prepared.training_memory()].map(|bytes| bytes.expect("counted"));
    let scores = 2 * 256 * 256 * 4;
    // scores and weights in the forward pass, both and their gradients in the backward pass
    assert!((2 * scores..5 * scores).contains(&forward), "{forward}");
    assert!((3 * scores..9 * scores).contains(&both), "{both}");
}
