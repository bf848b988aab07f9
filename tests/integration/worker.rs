//! Real worker processes: killed from inside and outside, and started again.

use maskloom::backends::race::RaceOptions;
use maskloom::base::{BackendName, Device};
use maskloom::problem::result::Doing;
use maskloom::problem::{Problem, ProblemSpec};
use maskloom::worker::jobs::{JobEvent, JobId, Jobs, News};
use maskloom::worker::protocol::{InputSource, MapKind, MapRequest, RunRequest};
use maskloom::worker::target::Target;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn jobs() -> Jobs {
    Jobs::new(Target::from_words(&[env!("CARGO_BIN_EXE_maskloom"), "worker"]), Arc::new(|| ()))
}

fn request(tokens: usize, rounds: u32) -> RunRequest {
    let spec = ProblemSpec::plain(1, (2, 1), (tokens, tokens), 32);
    let problem = Problem::new(spec).expect("valid");
    let backends = vec![BackendName::Flex, BackendName::Eager];
    RunRequest {
        options: RaceOptions { rounds, warmup: 0, reference_rows: 16, ..RaceOptions::USUAL },
        ..RunRequest::new(&problem, InputSource::Random { seed: 1 }, backends, Device::Cpu)
    }
}

fn end(jobs: &mut Jobs, job: JobId) -> News {
    jobs.wait(job, &mut |_| {})
}

#[track_caller]
fn runs(jobs: &mut Jobs) {
    let job = jobs.run(request(64, 1));
    let mut reports = 0;
    let news =
        jobs.wait(job, &mut |n| reports += u32::from(matches!(n, News::Progress(step) if step.report.is_some())));
    let News::Ran { report, .. } = news else { panic!("{news:?}") };
    assert!(report.median_ms(BackendName::Flex).is_some());
    assert!(reports >= 2, "{reports}");
}

#[test]
fn a_cancelled_run_ends_at_once_and_the_next_one_starts_a_new_worker() {
    let mut jobs = jobs();
    runs(&mut jobs);
    let long = jobs.run(request(2048, 1_000_000));
    let patience = Instant::now() + Duration::from_secs(120);
    while !jobs
        .poll()
        .iter()
        .any(|e| e.job == long && matches!(&e.news, News::Progress(step) if matches!(step.what, Doing::Round(..))))
    {
        assert!(Instant::now() < patience, "the run never got to its timing");
        std::thread::sleep(Duration::from_millis(5));
    }
    jobs.cancel(long);
    assert!(jobs.poll().iter().any(|e| e.job == long && matches!(e.news, News::Cancelled)));
    assert!(!jobs.is_busy());
    // the inputs went with the worker
    let map = MapRequest { b: 0, h: 0, q: [0, 64], kv: [0, 64], height: 8, width: 8, kind: MapKind::Probabilities };
    let job = jobs.map(map);
    let News::Failed { why } = end(&mut jobs, job) else { panic!("a map without inputs") };
    assert_eq!(why[0].code, "no-inputs");
    runs(&mut jobs);
}

#[test]
fn maps_show_the_last_runs_inputs() {
    let mut jobs = jobs();
    runs(&mut jobs);
    let whole =
        MapRequest { b: 0, h: 1, q: [0, 64], kv: [0, 64], height: 16, width: 999, kind: MapKind::Probabilities };
    let job = jobs.map(whole.clone());
    let News::Mapped { height, width, pixels } = end(&mut jobs, job) else { panic!("no map") };
    assert_eq!((height, width), (16, 64));
    assert!((pixels.iter().filter(|p| p.is_finite()).sum::<f32>() - 64.0).abs() < 1e-3);
    let job = jobs.map(MapRequest { kv: [0, 65], ..whole });
    let News::Failed { why } = end(&mut jobs, job) else { panic!("a map outside") };
    assert_eq!(why[0].code, "map-outside");
}

#[cfg(unix)]
#[test]
fn a_worker_killed_from_outside_is_told_and_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid = folder.path().join("pid");
    let script =
        format!("echo $$ > {}; echo 'last words' >&2; exec {} worker", pid.display(), env!("CARGO_BIN_EXE_maskloom"));
    let mut jobs = Jobs::new(Target::from_words(&["sh", "-c", &script]), Arc::new(|| ()));
    runs(&mut jobs);
    let long = jobs.run(request(2048, 1_000_000));
    let number = std::fs::read_to_string(&pid).expect("written before the worker started");
    let killed = std::process::Command::new("sh").args(["-c", &format!("kill -KILL {}", number.trim())]).status();
    assert!(killed.expect("sh").success());
    let News::Failed { why } = end(&mut jobs, long) else { panic!("it lived on") };
    assert_eq!(why[0].code, "worker-died");
    assert!(why[0].message.contains("SIGKILL") && why[0].message.contains("last words"), "{}", why[0].message);
    runs(&mut jobs);
}

#[test]
fn a_stale_compile_is_killed_and_the_inputs_stay() {
    let mut jobs = jobs();
    runs(&mut jobs);
    let compile = |jobs: &mut Jobs| {
        let problem = request(64, 1).problem;
        jobs.compile(maskloom::worker::protocol::CompileRequest {
            problem,
            backend: BackendName::Flex,
            arch: Some("sm_80".into()),
        })
    };
    let (stale, fresh) = (compile(&mut jobs), compile(&mut jobs));
    let first: Vec<JobEvent> = jobs.poll();
    assert!(first.iter().any(|e| e.job == stale && matches!(e.news, News::Cancelled)), "{first:?}");
    match end(&mut jobs, fresh) {
        News::Compiled(artefact) => assert!(artefact.registers > 0 && artefact.arch == "sm_80"),
        News::Failed { why } => assert_eq!(why[0].code, "nvrtc-missing"),
        other => panic!("{other:?}"),
    }
    let map = MapRequest { b: 0, h: 0, q: [0, 64], kv: [0, 64], height: 8, width: 8, kind: MapKind::Scores };
    let job = jobs.map(map);
    assert!(matches!(end(&mut jobs, job), News::Mapped { .. }));
}
