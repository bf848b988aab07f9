//! One problem, several backends: which support it, which outputs are right, and their times.
//!
//! Invariant: every output is compared with the f64 reference before anything is timed, and every timing comes with
//! such a comparison; a failing backend does not stop the others. Must not know the backends' implementation.

use super::compare::compare;
use super::gate::{Bars, Rounds};
use super::reference::{Reference, check_mods, choose_rows_of, emulated, reference};
use super::{Backend, Inputs, Output, Prepared, stats};
use crate::analysis::block_mask::BlockMask;
use crate::base::{BackendName, Control, Diagnostic, HostTensor};
use crate::problem::Problem;
use crate::problem::result::*;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

/// How a race is run: in requests, in run files, here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaceOptions {
    /// Timing rounds, interleaved over the backends; 0: correctness only.
    pub rounds: u32,
    /// Passes a backend makes in one round.
    pub passes: u32,
    /// Untimed passes first.
    pub warmup: u32,
    /// Query rows compared with the reference at most, over batch and heads; small problems are compared whole.
    pub reference_rows: u32,
}

impl RaceOptions {
    /// Unless asked otherwise.
    pub const USUAL: RaceOptions = RaceOptions { rounds: 10, passes: 1, warmup: 2, reference_rows: 1024 };
}

impl Default for RaceOptions {
    fn default() -> Self {
        Self::USUAL
    }
}

/// A race's results.
pub struct Race {
    /// One for each backend, in the order given.
    pub reports: Vec<BackendReport>,
    /// The kept cells and blocks.
    pub work: WorkStats,
    /// The outputs of those that ran.
    pub outputs: Vec<(BackendName, Output)>,
    /// Those whose outputs were right, ready to run on where they can: a gradient race goes on with them.
    pub ready: Vec<Ready>,
}

/// A backend that is prepared for the problem and inputs of a race.
pub type Ready = (BackendName, Box<dyn Prepared>);

/// Share of the progress bar before timing.
const CHECKING: f32 = 0.6;

/// Runs the race. Errors: only those that concern no single backend (`cancelled`, a mask too large to list).
pub fn race(
    problem: &Problem,
    inputs: &Inputs,
    backends: &mut [Box<dyn Backend>],
    options: &RaceOptions,
    control: &Control,
    on_step: &mut dyn FnMut(RunStep),
) -> Result<Race, Diagnostic> {
    let mut progress = Progress { control, on_step, stage: Stage::Checking };
    progress.say(Doing::Blocks, 0.0)?;
    let blocks = problem.block_mask(problem.block_size, control)?;
    let work = work_of(problem, &blocks, control)?;
    let rows = choose_rows_of(problem, options.reference_rows, Some(&blocks));
    progress.say(Doing::Mods, 0.02)?;
    check_mods(problem, &rows, control)?;
    progress.say(Doing::Reference, 0.04)?;
    let exact = reference(problem, inputs, rows, control)?;
    progress.say(Doing::Rounding, 0.1)?;
    let emulated = emulated(problem, inputs, &exact, control)?;
    let bars = |rounds| Bars::new(problem, &exact, &emulated, rounds);
    let judge = Judge { problem, exact: &exact, fused: bars(Rounds::Fused), eager: bars(Rounds::Eager) };
    let mut lanes = check_all(problem, inputs, backends, &judge, &mut progress)?;
    time_all(&mut lanes, options, &mut progress)?;
    let mut race = Race { reports: Vec::new(), work, outputs: Vec::new(), ready: Vec::new() };
    for lane in lanes {
        let (report, ran) = lane.finish();
        progress.report(&report, 1.0);
        race.reports.push(report);
        if let Some((output, ready)) = ran {
            race.outputs.push(output);
            race.ready.extend(ready);
        }
    }
    Ok(race)
}

/// The kept cells and blocks, at the problem's own BLOCK_SIZE. Errors: `cancelled`, a grid too large to list.
pub fn work_stats(problem: &Problem, control: &Control) -> Result<WorkStats, Diagnostic> {
    work_of(problem, &problem.block_mask(problem.block_size, control)?, control)
}

fn work_of(problem: &Problem, blocks: &BlockMask, control: &Control) -> Result<WorkStats, Diagnostic> {
    let found = blocks.stats_with(control).ok_or_else(super::reference::cancelled)?;
    Ok(stats::work(problem, &found))
}

struct Progress<'a> {
    control: &'a Control,
    on_step: &'a mut dyn FnMut(RunStep),
    stage: Stage,
}

impl Progress<'_> {
    fn say(&mut self, what: Doing, fraction: f32) -> Result<(), Diagnostic> {
        if self.control.is_cancelled() {
            return Err(super::reference::cancelled());
        }
        self.control.set_progress(f64::from(fraction));
        let step = self.step(what, fraction);
        (self.on_step)(step);
        Ok(())
    }

    /// The times so far, for progress reports; outside of the timed code.
    fn medians(&mut self, lanes: &[Lane], what: Doing, fraction: f32) {
        let so_far = lanes.iter().filter_map(|lane| Some((lane.backend, lane.timing()?))).collect();
        let step = RunStep { so_far, ..self.step(what, fraction) };
        (self.on_step)(step);
    }

    fn report(&mut self, report: &BackendReport, fraction: f32) {
        let what = Doing::Done(report.backend);
        let step = RunStep { report: Some(Box::new(report.clone())), ..self.step(what, fraction) };
        (self.on_step)(step);
    }

    fn step(&self, what: Doing, fraction: f32) -> RunStep {
        RunStep { stage: self.stage, ..RunStep::new(what, fraction) }
    }
}

/// Compares outputs with the reference, and knows how large an error may be. The verdict on an output does not depend on
/// who else races.
struct Judge<'a> {
    problem: &'a Problem,
    exact: &'a Reference,
    /// For kernels that keep scores in float32: all of ours, and PyTorch's flex.
    fused: Bars,
    /// For those that may materialise scores or biases in the dtype.
    eager: Bars,
}

impl Judge<'_> {
    fn compare(&self, name: BackendName, output: &Output) -> Result<ErrorStats, Diagnostic> {
        let bars = match name {
            BackendName::TorchEager | BackendName::TorchSdpa => &self.eager,
            _ => &self.fused,
        };
        compare(self.problem, output, self.exact, bars)
    }
}

/// One backend's way through the race.
struct Lane {
    backend: BackendName,
    state: State,
}

/// What is left of a backend that ran: its output, and itself if that was right.
type Ran = ((BackendName, Output), Option<Ready>);

/// How long outputs took to come to the host.
#[derive(Clone, Copy)]
struct Waited {
    /// When preparing began.
    since: Instant,
    /// Until the first pass could begin.
    prepared_ms: f64,
    /// To the first output.
    first_ms: f64,
    /// Until the first output of the timed kernel, if another kernel gave the first output.
    settled_ms: Option<f64>,
}

impl Waited {
    fn ms(&self) -> f64 {
        self.since.elapsed().as_secs_f64() * 1e3
    }
}

enum State {
    Out(Outcome),
    Running { prepared: Box<dyn Prepared>, output: Output, error: ErrorStats, samples: Timed, waited: Waited },
}

impl Lane {
    /// The report; of a backend that ran its output, and itself if that was right.
    fn finish(self) -> (BackendReport, Option<Ran>) {
        let backend = self.backend;
        match self.state {
            State::Out(outcome) => (BackendReport { backend, outcome }, None),
            State::Running { prepared, output, error, samples, waited } => {
                let goes_on = error.passed() && prepared.goes_on();
                let outcome = done(prepared.as_ref(), error, samples, waited, &output);
                let ready = goes_on.then_some((backend, prepared));
                (BackendReport { backend, outcome }, Some(((backend, output), ready)))
            }
        }
    }

    /// Its samples so far.
    fn timing(&self) -> Option<Timing> {
        if let State::Running { samples, .. } = &self.state { stats::timing_of(samples.clone()) } else { None }
    }

    /// The present report, for progress reports.
    fn snapshot(&self) -> BackendReport {
        let outcome = match &self.state {
            State::Out(outcome) => outcome.clone(),
            State::Running { prepared, output, error, samples, waited } => {
                done(prepared.as_ref(), error.clone(), samples.clone(), *waited, output)
            }
        };
        BackendReport { backend: self.backend, outcome }
    }
}

fn done(prepared: &dyn Prepared, error: ErrorStats, samples: Timed, waited: Waited, output: &Output) -> Outcome {
    let artefact = prepared.artefact().map(|a| Box::new(a.clone()));
    Outcome::Done {
        kernel: prepared.kernel(),
        error,
        timings: Timings::new([
            (Phase::Prepare, Some(Timing::once(waited.prepared_ms))),
            (Phase::Compile, prepared.artefact().filter(|a| !a.cached).map(|a| Timing::once(a.compile_ms))),
            (Phase::Forward, stats::timing_of(samples)),
        ]),
        artefact,
        ready_ms: Some(waited.first_ms),
        settled_ms: waited.settled_ms,
        max_scores: output.max_scores.as_ref().map(head_maxima).unwrap_or_default(),
        memory_bytes: prepared.memory(),
    }
}

/// The largest score of every head over batch entries and rows, of [B, Hq, Q]; NaN if one is NaN.
fn head_maxima(rows: &HostTensor) -> Vec<HeadMaximum> {
    let [_, heads, q_len] = rows.shape() else { return Vec::new() };
    let mut found = vec![HeadMaximum(f64::NEG_INFINITY); *heads];
    for at in 0..rows.numel() {
        let (score, head) = (rows.float_at(at), &mut found[at / q_len % heads].0);
        if score > *head || score.is_nan() {
            *head = score;
        }
    }
    found
}

/// Prepares, runs and compares every backend, in the requested order.
fn check_all(
    problem: &Problem,
    inputs: &Inputs,
    backends: &mut [Box<dyn Backend>],
    judge: &Judge,
    progress: &mut Progress,
) -> Result<Vec<Lane>, Diagnostic> {
    let count = backends.len().max(1);
    let mut lanes = Vec::with_capacity(count);
    for (done, backend) in backends.iter_mut().enumerate() {
        let name = backend.name();
        let fraction = 0.15 + (CHECKING - 0.15) * done as f32 / count as f32;
        progress.say(Doing::Preparing(name), fraction)?;
        let mut lane = Lane { backend: name, state: check_one(problem, inputs, backend.as_mut(), judge) };
        if lane.is_provisional() {
            progress.report(&lane.snapshot(), fraction);
            progress.say(Doing::Compiling(name), fraction)?;
        }
        lane.settle(judge);
        progress.report(&lane.snapshot(), fraction);
        lanes.push(lane);
    }
    Ok(lanes)
}

fn check_one(problem: &Problem, inputs: &Inputs, backend: &mut dyn Backend, judge: &Judge) -> State {
    if let Err(why) = backend.support(problem) {
        return State::Out(Outcome::Refused { why });
    }
    let mut attempt = || -> Result<State, Diagnostic> {
        let mut waited = Waited { since: Instant::now(), prepared_ms: 0.0, first_ms: 0.0, settled_ms: None };
        let mut prepared = backend.prepare(problem, inputs)?;
        waited.prepared_ms = waited.ms();
        let output = prepared.output()?;
        waited.first_ms = waited.ms();
        let error = judge.compare(backend.name(), &output)?;
        Ok(State::Running { prepared, output, error, samples: Timed::default(), waited })
    };
    attempt().unwrap_or_else(|why| State::Out(Outcome::Failed { why }))
}

/// Interleaved rounds: a machine that slows down slows all backends down. Each round has another order, because a
/// backend that runs after one that heats the chip has lower clocks. Wrong results are not timed.
fn time_all(lanes: &mut [Lane], options: &RaceOptions, progress: &mut Progress) -> Result<(), Diagnostic> {
    if options.rounds == 0 {
        return Ok(());
    }
    progress.stage = Stage::Timing;
    progress.say(Doing::Warming, CHECKING)?;
    if options.warmup > 0 {
        lanes.iter_mut().for_each(|lane| lane.time(options.warmup as usize, false));
    }
    for round in 0..options.rounds {
        let fraction = CHECKING + (1.0 - CHECKING) * round as f32 / options.rounds as f32;
        progress.say(Doing::Round(round + 1, options.rounds), fraction)?;
        for at in order(lanes.len(), round) {
            lanes[at].time(options.passes.max(1) as usize, true);
            progress.say(Doing::Round(round + 1, options.rounds), fraction)?;
        }
        progress.medians(lanes, Doing::Timed(round + 1, options.rounds), fraction);
    }
    Ok(())
}

/// The lanes in a round's order: by a hash of both.
fn order(lanes: usize, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lanes).collect();
    order.sort_by_key(|at| {
        let mut hasher = DefaultHasher::new();
        (round, at).hash(&mut hasher);
        hasher.finish()
    });
    order
}

impl Lane {
    /// Whether the outcome is that of a kernel that only serves until another one is ready.
    fn is_provisional(&self) -> bool {
        matches!(&self.state, State::Running { prepared, .. } if prepared.is_provisional())
    }

    /// Waits for the kernel that is timed, and compares it too. A first output that was wrong stays the outcome.
    fn settle(&mut self, judge: &Judge) {
        let name = self.backend;
        let State::Running { prepared, output, error, waited, .. } = &mut self.state else { return };
        if !prepared.is_provisional() || !error.passed() {
            return;
        }
        let mut attempt = || -> Result<(), Diagnostic> {
            prepared.settle()?;
            *output = prepared.output()?;
            waited.settled_ms = Some(waited.ms());
            *error = judge.compare(name, output)?;
            Ok(())
        };
        if let Err(why) = attempt() {
            self.state = State::Out(Outcome::Failed { why });
        }
    }

    fn time(&mut self, count: usize, keep: bool) {
        let State::Running { prepared, error, samples, .. } = &mut self.state else { return };
        if !error.passed() {
            return;
        }
        match prepared.time(count) {
            Ok(times) if keep => samples.extend(times),
            Ok(_) => {}
            Err(why) => self.state = State::Out(Outcome::Failed { why }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::testing::{causal, distance_score, problem, spec, with_mods};
    use crate::backends::{cpu, inputs};
    use crate::base::{DType, tensor::Data};
    use crate::problem::facts::KernelReport;

    /// Answers with zeros, refuses or fails.
    struct Odd(&'static str);

    impl Backend for Odd {
        fn name(&self) -> BackendName {
            BackendName::TorchFlex
        }
        fn support(&self, _: &Problem) -> Result<(), Diagnostic> {
            if self.0 == "refuse" { Err(Diagnostic::error("no", "no").hint("none")) } else { Ok(()) }
        }
        fn prepare(&mut self, problem: &Problem, _: &Inputs) -> Result<Box<dyn Prepared>, Diagnostic> {
            if self.0 == "fail" {
                return Err(Diagnostic::error("broken", "broken"));
            }
            let shape = [problem.batch, problem.heads, problem.q_len, problem.head_dim_v];
            Ok(Box::new(Zeros(shape)))
        }
    }

    struct Zeros([usize; 4]);

    impl Prepared for Zeros {
        fn kernel(&self) -> KernelReport {
            "zeros".into()
        }
        fn output(&mut self) -> Result<Output, Diagnostic> {
            let out = HostTensor::new(self.0, Data::F32(vec![0.0; self.0.iter().product()]))?;
            Ok(Output { out, lse: None, max_scores: None })
        }
        fn time(&mut self, count: usize) -> Result<Timed, Diagnostic> {
            Ok(vec![1.0; count].into())
        }
    }

    /// Serves zeros, or the cpu's output, until it has settled to the cpu's.
    struct Provisional {
        right: bool,
        settled: bool,
        serving: Box<dyn Prepared>,
    }

    struct InStages(bool);

    impl Backend for InStages {
        fn name(&self) -> BackendName {
            BackendName::Flex
        }
        fn support(&self, _: &Problem) -> Result<(), Diagnostic> {
            Ok(())
        }
        fn prepare(&mut self, problem: &Problem, inputs: &Inputs) -> Result<Box<dyn Prepared>, Diagnostic> {
            let serving = cpu::backend(BackendName::Flex).expect("the cpu has flex").prepare(problem, inputs)?;
            Ok(Box::new(Provisional { right: self.0, settled: false, serving }))
        }
    }

    impl Prepared for Provisional {
        fn kernel(&self) -> KernelReport {
            if self.settled { "settled".into() } else { "first".into() }
        }
        fn output(&mut self) -> Result<Output, Diagnostic> {
            let output = self.serving.output()?;
            let out = HostTensor::new(output.out.shape().to_vec(), Data::F32(vec![0.0; output.out.numel()]))?;
            Ok(if self.settled || self.right { output } else { Output { out, ..output } })
        }
        fn is_provisional(&self) -> bool {
            !self.settled
        }
        fn settle(&mut self) -> Result<(), Diagnostic> {
            self.settled = true;
            Ok(())
        }
        fn time(&mut self, count: usize) -> Result<Timed, Diagnostic> {
            assert!(self.settled, "only the settled kernel is timed");
            Ok(vec![1.0; count].into())
        }
    }

    #[test]
    fn a_first_output_is_told_before_the_kernel_that_is_timed_and_a_wrong_one_stays() {
        let p = problem(1, 2, 1, 40, 40, 16);
        let given = inputs::random(&p, 2);
        let outcome = |right: bool| {
            let mut reported = Vec::new();
            let mut watch = |s: RunStep| {
                let outcome = s.report.map(|report| report.outcome);
                if let Some(Outcome::Done { kernel, error, .. }) = outcome {
                    reported.push((kernel.words, error.passed()));
                }
            };
            let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(InStages(right))];
            let race = race(&p, &given, &mut backends, &options(), &Control::new(), &mut watch).expect("a race");
            let Outcome::Done { timings, ready_ms, settled_ms, .. } = race.reports[0].outcome.clone() else {
                panic!("{:?}", race.reports)
            };
            (reported, timings.forward().is_some(), ready_ms.zip(settled_ms).map(|(first, settled)| first <= settled))
        };
        let (reported, timed, in_order) = outcome(true);
        assert_eq!(
            (reported[0].clone(), reported[1].clone()),
            (("first".to_string(), true), ("settled".to_string(), true))
        );
        assert!(timed && in_order == Some(true));
        let (reported, timed, in_order) = outcome(false);
        assert!(reported.iter().all(|t| *t == ("first".to_string(), false)) && !timed && in_order.is_none());
    }

    fn options() -> RaceOptions {
        RaceOptions { rounds: 3, passes: 2, warmup: 1, reference_rows: 64 }
    }

    #[test]
    fn wrong_results_are_reported_and_not_timed_and_failures_stop_nobody() {
        let p = problem(1, 2, 1, 40, 40, 16);
        let given = inputs::random(&p, 1);
        let mut backends: Vec<Box<dyn Backend>> =
            vec![Box::new(Odd("fail")), Box::new(Odd("zeros")), Box::new(Odd("refuse"))];
        backends.extend(cpu::backends());
        let (mut seen, mut rounds) = (Vec::new(), Vec::new());
        let mut watch = |s: RunStep| {
            seen.extend(s.report.map(|r| r.backend));
            rounds.extend(
                (!s.so_far.is_empty()).then(|| s.so_far.iter().map(|t| t.1.samples_ms.len()).collect::<Vec<_>>()),
            );
        };
        let race = race(&p, &given, &mut backends, &options(), &Control::new(), &mut watch).expect("a race");
        assert!(matches!(&race.reports[0].outcome, Outcome::Failed { why } if why.code == "broken"));
        assert!(
            matches!(&race.reports[1].outcome, Outcome::Done { error, timings, .. } if !error.passed() && timings.forward().is_none())
        );
        assert!(matches!(&race.reports[2].outcome, Outcome::Refused { .. }));
        for report in &race.reports[3..] {
            let Outcome::Done { error, timings, .. } = &report.outcome else { panic!("{report:?}") };
            let timing = timings.forward().expect("timed");
            let prepare = timings.of(Phase::Prepare).expect("told");
            assert!(prepare.median_ms > 0.0 && timings.of(Phase::Backward).is_none());
            assert!(error.passed() && error.rows_checked == 80, "{report:?}");
            assert_eq!(timing.samples_ms.len(), 6);
        }
        assert_eq!(race.outputs.len(), 5);
        assert!(seen.len() >= race.reports.len());
        // who watches has the medians of each round as soon as it is over
        assert_eq!((rounds.len(), rounds[0].len(), rounds.last().map(|r| r[0])), (3, race.reports.len() - 3, Some(6)));
        assert_eq!(race.work.density, 1.0);
    }

    #[test]
    fn every_cpu_backend_passes_in_every_dtype_or_refuses_in_words() {
        for dtype in [DType::F32, DType::BF16, DType::F16] {
            for (mask, score) in [(None, None), (Some(causal(0)), None), (Some(causal(9)), Some(distance_score()))] {
                let spec = crate::problem::ProblemSpec { dtype, ..spec(2, 4, 2, 150, 170, 24) };
                let p = with_mods(spec, mask, score);
                let given = inputs::random(&p, 5);
                let quick = RaceOptions { rounds: 0, ..options() };
                let race =
                    race(&p, &given, &mut cpu::backends(), &quick, &Control::new(), &mut |_| {}).expect("a race");
                for report in &race.reports {
                    match &report.outcome {
                        Outcome::Done { error, .. } => assert!(error.passed(), "{dtype} {report:?}"),
                        Outcome::Refused { why } => assert!(why.hint.is_some(), "{report:?}"),
                        Outcome::Failed { why } => panic!("{why}"),
                    }
                }
            }
        }
    }

    #[test]
    fn rounds_differ_in_their_order_so_that_nobody_always_follows_the_same_one() {
        let follows = |round| {
            let order = order(4, round);
            assert_eq!(order.iter().sum::<usize>(), 6, "{order:?}");
            order.windows(2).find(|pair| pair[1] == 0).map(|pair| pair[0])
        };
        let before: std::collections::BTreeSet<_> = (0..40).map(follows).collect();
        assert_eq!(before.len(), 4, "{before:?}");
    }

    #[test]
    fn a_cancelled_race_says_so() {
        let p = problem(1, 1, 1, 8, 8, 8);
        let control = Control::new();
        control.cancel();
        let got = race(&p, &inputs::random(&p, 0), &mut cpu::backends(), &options(), &control, &mut |_| {});
        assert_eq!(got.err().expect("it stopped").code, "cancelled");
    }
}
