//! A race, from request to report: creates or reads inputs, finds backends, reports every error.
//!
//! Invariant: a backend that cannot run is reported as refused, never omitted; inputs are kept for maps until the next
//! run. Must not know how the report is shown.

use super::racers;
use crate::backends::gradients::{self, Seeds};
use crate::backends::race::{self, Race};
use crate::backends::room;
use crate::backends::{Backend, Inputs, Output, gradient_race, inputs};
use crate::base::{BackendName, Control, DType, Device, Diagnostic, HostTensor};
use crate::problem::card::CardStates;
use crate::problem::facts::Busy;
use crate::problem::result::{BackendReport, Doing, Outcome, RunReport, RunStep, Stage};
use crate::problem::{Problem, ProblemSpec};
use crate::worker::faults;
use crate::worker::protocol::{InputSource, PayloadInfo, RunRequest, SeedSource};
use crate::worker::transport::Payload;
use crate::worker::{machine, tensors};
use std::path::Path;

/// The data for `Map` after a run.
pub(super) struct Kept {
    pub problem: Problem,
    pub inputs: Inputs,
    /// Where the run was, and pictures of it are made.
    pub device: Device,
    source: InputSource,
}

impl Kept {
    /// The inputs, if they are the random ones that such a run would create again. A file may have changed since.
    fn inputs_of(self, problem: &Problem, source: &InputSource) -> Option<Inputs> {
        let shape = |p: &Problem| {
            let s = p.spec();
            ([s.batch, s.heads, s.kv_heads, s.q_len, s.kv_len, s.head_dim, s.head_dim_v], s.dtype)
        };
        let same = matches!(source, InputSource::Random { .. })
            && self.source == *source
            && shape(&self.problem) == shape(problem);
        same.then_some(self.inputs)
    }
}

/// A run's results.
pub(super) struct Ran {
    pub report: RunReport,
    pub payloads: Vec<Payload>,
    pub kept: Kept,
}

/// Validates a problem that came over the wire: its graphs too, for evaluators rely on them.
pub(super) fn problem(spec: ProblemSpec) -> Result<Problem, Vec<Diagnostic>> {
    for given in [&spec.mask, &spec.score].into_iter().flatten() {
        let outside = given.root.0 as usize >= given.graph.nodes().len();
        let broken = if outside { Some("the result is not a node".to_string()) } else { given.graph.verify().err() };
        if let Some(why) = broken {
            return Err(vec![
                Diagnostic::error("graph-invalid", format!("a mod's graph is invalid: {why}"))
                    .hint("both sides must be the same version of Maskloom"),
            ]);
        }
    }
    Problem::new(spec)
}

/// Runs a request. `before` is the state of the last run: its inputs are reused if they would be equal, and are dropped
/// before others are created, so that two runs never fill the memory together. `tell` receives every step.
pub(super) fn run(
    request: RunRequest,
    before: Option<Kept>,
    gpus: &mut racers::Gpus,
    tell: &mut dyn FnMut(RunStep),
) -> Result<Ran, Vec<Diagnostic>> {
    let problem = problem(request.problem)?;
    let mut say = |what: Doing| tell(RunStep::new(what, 0.0));
    check_memory(&problem).map_err(|d| vec![d])?;
    let mut environment = machine::environment();
    say(Doing::Backends);
    let found = racers::find(&request.backends, request.device, request.python.as_deref(), gpus, &mut environment)
        .map_err(|d| vec![d])?;
    say(Doing::Inputs);
    let inputs = match before.and_then(|kept| kept.inputs_of(&problem, &request.inputs)) {
        Some(inputs) => inputs,
        None => read_inputs(&problem, &request.inputs, request.device)?,
    };
    let mut backends = found.backends;
    let control = Control::new();
    let state = || found.card.as_ref().and_then(|gpu| gpu.state());
    let before_timing = state();
    let mut busy = None;
    let on_cpu = request.device == Device::Cpu;
    let asked = Asked { problem: &problem, inputs: &inputs, options: &request.options, on_cpu, control: &control };
    let mut race = asked.race(&mut backends, &mut busy, tell).map_err(|why| vec![why])?;
    let mut notes = found.notes;
    if let Some(awaited) = found.awaited {
        tell(RunStep::new(Doing::Python, 0.95));
        let mut late = awaited.backends(&mut environment);
        let after = asked.race(&mut late, &mut busy, tell).map_err(|why| vec![why])?;
        notes.extend(raced_later(&after));
        race.reports.extend(after.reports);
        race.outputs.extend(after.outputs);
        race.ready.extend(after.ready);
        backends.extend(late);
        let place = |name: BackendName| request.backends.iter().position(|asked| *asked == name);
        race.reports.sort_by_key(|report| place(report.backend));
        backends.sort_by_key(|backend| place(backend.name()));
    }
    let Race { work, reports, outputs, ready } = race;
    let kept = outputs.iter().filter(|_| request.keep_outputs);
    let mut payloads: Vec<Payload> = kept.flat_map(|(name, output)| output_payloads(*name, output)).collect();
    let mut gradients = Vec::new();
    if let Some(asked) = &request.gradients {
        tell(RunStep::new(Doing::Gradients, 0.9));
        let mut seeds = read_seeds(&problem, &asked.seeds).map_err(|d| vec![d])?;
        seeds.deterministic = asked.deterministic;
        let how = (asked.rounds, asked.keep);
        let race = gradient_race::race(&problem, &inputs, &seeds, (&mut backends, ready), how, &control)
            .map_err(|d| vec![d])?;
        gradients = race.reports;
        for (name, found) in &race.gradients {
            payloads.extend(found.named().into_iter().map(|(what, t)| payload(format!("{name}.{what}"), t)));
        }
    }
    let card = before_timing.zip(state()).map(|(start, end)| CardStates { start, end });
    let (on_gpu, torch) = (request.device != Device::Cpu, environment.get("torch").map(String::as_str));
    notes.extend(faults::notes(&problem, on_gpu, torch, &gradients));
    let report = RunReport {
        device_name: found.device_name,
        device: request.device,
        environment,
        card,
        load: busy,
        work,
        backends: reports,
        gradients,
        notes,
    };
    Ok(Ran { report, payloads, kept: Kept { problem, inputs, device: request.device, source: request.inputs } })
}

/// What the races of a run have in common.
struct Asked<'a> {
    problem: &'a Problem,
    inputs: &'a Inputs,
    options: &'a race::RaceOptions,
    on_cpu: bool,
    control: &'a Control,
}

impl Asked<'_> {
    /// A race of these backends. `busy` is set to the load of other programs while a CPU was timed, where it matters. Errors: those of
    /// the reference, or it was cancelled.
    fn race(
        &self,
        backends: &mut [Box<dyn Backend>],
        busy: &mut Option<Busy>,
        tell: &mut dyn FnMut(RunStep),
    ) -> Result<Race, Diagnostic> {
        if let Some(reports) = all_refused(self.problem, backends) {
            for report in &reports {
                tell(RunStep { report: Some(Box::new(report.clone())), ..RunStep::new(Doing::Refused, 1.0) });
            }
            let work = race::work_stats(self.problem, self.control)?;
            return Ok(Race { work, reports, outputs: Vec::new(), ready: Vec::new() });
        }
        let mut load = machine::LoadWatch::default();
        let mut watched = |step: RunStep| {
            if step.stage == Stage::Timing {
                load.begin();
            }
            tell(step);
        };
        let race = race::race(self.problem, self.inputs, backends, self.options, self.control, &mut watched)?;
        *busy = busy.or(load.end(machine::threads()).filter(|_| self.on_cpu));
        Ok(race)
    }
}

/// Times of two races of one run are not interleaved: the reader is told.
fn raced_later(after: &Race) -> Option<Diagnostic> {
    let timed = after.reports.iter().any(|r| matches!(r.outcome, Outcome::Done { .. }));
    let message =
        "Python was silent at first, so that the others raced without PyTorch; its times are of a race after theirs";
    timed.then(|| {
        Diagnostic::note("raced-later", message).hint("run it again: Python is running now, and all are timed by turns")
    })
}

/// If no backend can run, neither reference nor timing is computed.
fn all_refused(problem: &Problem, backends: &mut [Box<dyn Backend>]) -> Option<Vec<BackendReport>> {
    let refusal = |b: &mut Box<dyn Backend>| {
        let why = b.support(problem).err()?;
        Some(BackendReport { backend: b.name(), outcome: Outcome::Refused { why } })
    };
    backends.iter_mut().map(refusal).collect()
}

/// Bytes of q, k, v and out on the host must fit into its memory; an allocation that fails would end the worker.
fn check_memory(problem: &Problem) -> Result<(), Diagnostic> {
    let s = problem.spec();
    let q = s.heads as u128 * s.q_len as u128 * (s.head_dim + 2 * s.head_dim_v) as u128;
    let kv = s.kv_heads as u128 * s.kv_len as u128 * (s.head_dim + s.head_dim_v) as u128;
    let bytes = s.batch as u128 * (q + kv) * s.dtype.size() as u128;
    let memory = match machine::memory() {
        0 => 64 << 30,
        known => u128::from(known),
    };
    if bytes * 5 <= memory * 4 {
        // captured tensors are held as they came, and as the backends and the reference read them
        let captured = 2 * u128::from(problem.captured_bytes());
        let all = u64::try_from(bytes + captured).unwrap_or(u64::MAX);
        return room::check("holding q, k, v, the outputs and the captured tensors", all);
    }
    let gib = |b: u128| b as f64 / (1u64 << 30) as f64;
    let message = format!(
        "q, k, v and the outputs of {} x {} heads x {} queries x {} keys take {:.1} GiB; this machine has {:.1} GiB",
        s.batch,
        s.heads,
        s.q_len,
        s.kv_len,
        gib(bytes),
        gib(memory)
    );
    Err(Diagnostic::error("inputs-too-large", message)
        .hint("shorten the axes, or lower batch and heads; masks and pictures have no such limit"))
}

fn read_inputs(problem: &Problem, source: &InputSource, device: Device) -> Result<Inputs, Vec<Diagnostic>> {
    match source {
        InputSource::Random { seed } => Ok(inputs::random(problem, *seed)),
        InputSource::File { path, names, layout } => {
            let bytes = tensors::read_some(Path::new(path), names).map_err(|d| vec![d])?;
            inputs::from_safetensors(&bytes, names, *layout, problem).map_err(|errors| {
                let on_gpu = |d| if device == Device::Cpu { d } else { float32_on_gpu(d, problem.dtype) };
                errors.into_iter().map(on_gpu).collect()
            })
        }
    }
}

fn read_seeds(problem: &Problem, source: &SeedSource) -> Result<Seeds, Diagnostic> {
    let (path, names) = match source {
        SeedSource::Random { seed } => return Ok(gradients::random(problem, *seed)),
        SeedSource::File { path, d_out, d_lse, layout } => (Path::new(path), (d_out, d_lse, *layout)),
    };
    let file = tensors::TensorFile::open(path)?;
    let get = |name: &String| {
        file.find(name)?.ok_or_else(|| {
            Diagnostic::error("no-such-tensor", format!("{} holds no `{name}`", path.display()))
                .hint("pass the name that the gradient of the output has in the file")
        })
    };
    let d_lse = names.1.as_ref().map(get).transpose()?;
    let single = |t: HostTensor| HostTensor::new(t.shape(), crate::base::tensor::Data::F32(t.to_f32_vec()));
    Ok(Seeds {
        d_out: inputs::heads_first(get(names.0)?, names.2)?,
        d_lse: d_lse.map(single).transpose()?,
        deterministic: false,
    })
}

/// On a GPU the way out of float32 tensors is not a float32 problem.
fn float32_on_gpu(why: Diagnostic, dtype: DType) -> Diagnostic {
    if why.code != inputs::FLOAT32 {
        return why;
    }
    Diagnostic::error(
        "gpu-float32",
        format!("Query, key, and value must be either bfloat16 or float16 on a GPU: {}", why.message),
    )
    .hint(format!("save the tensors as .to(torch.{dtype}), or run them on the cpu: --device cpu --dtype f32"))
}

fn output_payloads(name: BackendName, output: &Output) -> Vec<Payload> {
    let mut payloads = vec![payload(format!("{name}.out"), &output.out)];
    let rows = [("lse", &output.lse), ("max_scores", &output.max_scores)];
    payloads
        .extend(rows.into_iter().filter_map(|(what, given)| Some(payload(format!("{name}.{what}"), given.as_ref()?))));
    payloads
}

pub(super) fn payload(name: String, tensor: &HostTensor) -> Payload {
    let info = PayloadInfo { name, dtype: tensor.dtype(), shape: tensor.shape().to_vec() };
    (info, tensor.data().to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Layout;
    use crate::ir::graph::{Graph, Mod, ModKind, NodeId};
    use std::sync::Arc;

    fn spec() -> ProblemSpec {
        ProblemSpec::plain(1, (2, 2), (8, 8), 16)
    }

    #[test]
    fn float32_tensors_meet_the_gpu_with_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("qkv.safetensors");
        let tensor = HostTensor::new([1, 2, 8, 16], crate::base::tensor::Data::F32(vec![0.5; 256])).unwrap();
        let names = ["q", "k", "v"].map(String::from);
        let all = names.iter().map(|n| (n.clone(), &tensor));
        worker::files::save(&path, &tensors::write(all).unwrap()).unwrap();
        let source = InputSource::File { path: path.display().to_string(), names, layout: Layout::Bhsd };
        let problem = Problem::new(spec()).unwrap();
        let codes = |device| {
            let errors = read_inputs(&problem, &source, device).unwrap_err();
            assert!(errors[0].hint.as_ref().is_some_and(|h| h.contains("torch.bfloat16")), "{}", errors[0]);
            errors.iter().map(|e| e.code.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(codes(Device::Cuda(0)), ["gpu-float32"; 3]);
        assert_eq!(codes(Device::Cpu), [inputs::FLOAT32; 3]);
    }

    #[test]
    fn only_the_same_random_inputs_serve_again() {
        let random = |seed| InputSource::Random { seed };
        let kept = |source: InputSource| {
            let problem = Problem::new(spec()).unwrap();
            Kept { inputs: inputs::random(&problem, 3), problem, device: Device::Cpu, source }
        };
        let same = Problem::new(ProblemSpec { scale: Some(2.0), ..spec() }).unwrap();
        let longer = Problem::new(ProblemSpec { kv_len: 9, ..spec() }).unwrap();
        let first = kept(random(3));
        let again = Kept { inputs: first.inputs.clone(), ..kept(random(3)) };
        let served = again.inputs_of(&same, &random(3)).expect("the same inputs");
        assert!(served.q.same_storage(&first.inputs.q));
        assert!(first.inputs_of(&same, &random(4)).is_none());
        assert!(kept(random(3)).inputs_of(&longer, &random(3)).is_none());
        let file = InputSource::File {
            path: "qkv.safetensors".into(),
            names: ["q", "k", "v"].map(String::from),
            layout: Layout::Bhsd,
        };
        assert!(kept(file.clone()).inputs_of(&same, &file).is_none());
    }

    #[test]
    fn a_broken_graph_and_a_huge_problem_are_refused_in_words() {
        let graph: Graph = serde_json::from_str(r#"{"nodes": [], "captures": []}"#).unwrap();
        let broken = Mod { kind: ModKind::Mask, graph, root: NodeId(3), sources: vec![] };
        let why = problem(ProblemSpec { mask: Some(Arc::new(broken)), ..spec() }).unwrap_err();
        assert_eq!(why[0].code, "graph-invalid");
        let huge = Problem::new(ProblemSpec { batch: 1 << 16, q_len: 1 << 30, ..spec() }).unwrap();
        assert_eq!(check_memory(&huge).unwrap_err().code, "inputs-too-large");
        assert!(check_memory(&Problem::new(spec()).unwrap()).is_ok());
    }

    /// The other backends race before Python has said a word, and PyTorch is reported in its place when it has ended.
    #[cfg(unix)]
    #[test]
    fn a_silent_python_delays_no_other_backend() {
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join("python3");
        std::fs::write(&python, "#!/bin/sh\nsleep 2\nexit 3\n").unwrap();
        std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let names = vec![BackendName::TorchSdpa, BackendName::Flex];
        let problem = Problem::new(ProblemSpec { dtype: DType::F32, ..spec() }).unwrap();
        let mut request = RunRequest::new(&problem, InputSource::Random { seed: 1 }, names.clone(), Device::Cpu);
        request.python = Some(python.display().to_string());
        let mut steps = Vec::new();
        let ran = run(request, None, &mut racers::Gpus::default(), &mut |step| steps.push(step)).expect("a report");
        let at = |what: Doing| steps.iter().position(|step| step.what == what).expect("told");
        assert!(
            at(Doing::Done(BackendName::Flex)) < at(Doing::Python),
            "{:?}",
            steps.iter().map(|s| &s.what).collect::<Vec<_>>()
        );
        let outcomes: Vec<_> = ran.report.backends.iter().map(|r| (r.backend, &r.outcome)).collect();
        assert_eq!(outcomes.iter().map(|o| o.0).collect::<Vec<_>>(), names);
        assert!(matches!(outcomes[0].1, Outcome::Refused { why } if why.code == "torch-died"), "{:?}", outcomes[0].1);
        assert!(matches!(outcomes[1].1, Outcome::Done { .. }), "{:?}", outcomes[1].1);
    }
}
