//! The backward pass of several backends: which compute gradients, which are right, and their times.
//!
//! Invariant: every gradient is compared with the float64 reference before its pass is timed; a failing backend does
//! not stop the others. Must not know the backends' implementation.

use super::gradient_gate::{Bars, judge};
use super::gradients::{Gradients, Seeds, same_bits};
use super::race::Ready;
use super::reference::gradient::{Arithmetic, Sample, gradients as exact, yardsticks};
use super::{Backend, Inputs, room, stats};
use crate::base::{BackendName, Control, Diagnostic};
use crate::problem::Problem;
use crate::problem::result::{GradientOutcome, GradientReport};

/// Its results.
#[derive(Debug)]
pub struct GradientRace {
    /// One for each backend, in the order given.
    pub reports: Vec<GradientReport>,
    /// With `keep`: the gradients of those that ran.
    pub gradients: Vec<(BackendName, Gradients)>,
}

/// Compares and times every backend's backward pass, of those that are `ready` (for the same problem and inputs) without preparing
/// them again. Errors: those that concern no single backend (`cancelled`, a score
/// mod without a derivative, seeds of another shape).
pub fn race(
    problem: &Problem,
    inputs: &Inputs,
    seeds: &Seeds,
    (backends, mut ready): (&mut [Box<dyn Backend>], Vec<Ready>),
    (rounds, keep): (u32, bool),
    control: &Control,
) -> Result<GradientRace, Diagnostic> {
    seeds.check(problem)?;
    let mut made = GradientRace { reports: Vec::new(), gradients: Vec::new() };
    let refused: Vec<Option<Diagnostic>> = backends.iter().map(|b| b.supports_gradients(problem).err()).collect();
    if refused.iter().all(Option::is_some) {
        let one = |(b, why): (&mut Box<dyn Backend>, Option<Diagnostic>)| {
            why.map(|why| report(b.name(), GradientOutcome::Refused { why }))
        };
        made.reports = backends.iter_mut().zip(refused).filter_map(one).collect();
        return Ok(made);
    }
    // stored gradients belong to the given seeds
    let sample = if keep { Sample::whole(problem) } else { Sample::affordable(problem) };
    room::check("the float64 reference of the gradients", sample.bytes(problem))?;
    let compared = sample.only(problem, seeds)?;
    let want = exact(problem, inputs, &compared, &sample, Arithmetic::Exact, control)?;
    let emulated = |how: Arithmetic| exact(problem, inputs, &compared, &sample, how, control);
    let coarse: Vec<_> = yardsticks(problem).into_iter().map(emulated).collect::<Result<_, _>>()?;
    let bars = Bars::new(problem, &want, &coarse);
    for (backend, refusal) in backends.iter_mut().zip(refused) {
        let name = backend.name();
        if let Some(why) = refusal {
            made.reports.push(report(name, GradientOutcome::Refused { why }));
            continue;
        }
        let mut attempt = || -> Result<(GradientOutcome, Gradients), Diagnostic> {
            let at = ready.iter().position(|(known, _)| *known == name);
            let mut prepared = match at.map(|at| ready.swap_remove(at)) {
                Some((_, prepared)) => prepared,
                None => backend.prepare(problem, inputs)?,
            };
            let found = prepared.gradients(&compared)?;
            if seeds.deterministic && !same_bits(&found, &prepared.gradients(&compared)?) {
                return Err(other_bits(name));
            }
            let errors = judge(problem, &found, &bars)?;
            let right = errors.iter().all(|e| e.passed());
            let rounds = if right { rounds as usize } else { 0 };
            let has_price = seeds.deterministic && prepared.orders_gradients();
            let mut timed = |seeds: &Seeds| match rounds {
                0 => Ok(None),
                n => prepared.time_backward(seeds, n).map(stats::timing_of),
            };
            let timing = timed(seeds)?;
            let unordered = match has_price {
                true => timed(&Seeds { deterministic: false, ..seeds.clone() })?,
                false => None,
            };
            let (kernel, memory_bytes) = (prepared.kernel(), prepared.training_memory());
            Ok((GradientOutcome::Done { kernel, errors, timing, unordered, memory_bytes }, found))
        };
        match attempt() {
            Ok((outcome, found)) => {
                made.reports.push(report(name, outcome));
                if keep {
                    made.gradients.push((name, found));
                }
            }
            Err(why) if why.refusal => made.reports.push(report(name, GradientOutcome::Refused { why })),
            Err(why) => made.reports.push(report(name, GradientOutcome::Failed { why })),
        }
    }
    Ok(made)
}

fn other_bits(name: BackendName) -> Diagnostic {
    Diagnostic::error(
        "gradients-differ",
        format!("two runs of {name}'s backward pass gave gradients with different bits"),
    )
    .hint("its sums have no fixed order; use flex or eager, or turn deterministic gradients off")
}

fn report(backend: BackendName, outcome: GradientOutcome) -> GradientReport {
    GradientReport { backend, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::race::{RaceOptions, race as forward_race};
    use crate::backends::testing::{causal, distance_score, problem, spec, with_mods};
    use crate::backends::{Output, Prepared, cpu, gradients, inputs};
    use crate::problem::result::Timed;

    /// The cpu's flex, whose gradients are spoilt by `spoil`.
    struct Spoilt(fn(&mut Gradients));
    struct Ready(Box<dyn Prepared>, fn(&mut Gradients));

    impl Backend for Spoilt {
        fn name(&self) -> BackendName {
            BackendName::TorchFlex
        }
        fn support(&self, _: &Problem) -> Result<(), Diagnostic> {
            Ok(())
        }
        fn supports_gradients(&self, _: &Problem) -> Result<(), Diagnostic> {
            Ok(())
        }
        fn prepare(&mut self, problem: &Problem, inputs: &Inputs) -> Result<Box<dyn Prepared>, Diagnostic> {
            let flex = cpu::backend(BackendName::Flex).expect("there is one").prepare(problem, inputs)?;
            Ok(Box::new(Ready(flex, self.0)))
        }
    }

    impl Prepared for Ready {
        fn kernel(&self) -> crate::problem::facts::KernelReport {
            "spoilt".into()
        }
        fn output(&mut self) -> Result<Output, Diagnostic> {
            self.0.output()
        }
        fn gradients(&mut self, seeds: &Seeds) -> Result<Gradients, Diagnostic> {
            let mut found = self.0.gradients(seeds)?;
            self.1(&mut found);
            Ok(found)
        }
        fn time(&mut self, count: usize) -> Result<Timed, Diagnostic> {
            Ok(vec![1.0; count].into())
        }
        fn time_backward(&mut self, _: &Seeds, count: usize) -> Result<Timed, Diagnostic> {
            Ok(vec![1.0; count].into())
        }
    }

    fn run(problem: &Problem, backends: Vec<Box<dyn Backend>>) -> Vec<GradientReport> {
        run_as(problem, backends, false)
    }

    fn run_as(problem: &Problem, mut backends: Vec<Box<dyn Backend>>, deterministic: bool) -> Vec<GradientReport> {
        let given = inputs::random(problem, 1);
        let seeds = Seeds { deterministic, ..gradients::random(problem, 1) };
        race(problem, &given, &seeds, (&mut backends, Vec::new()), (2, false), &Control::new())
            .expect("not cancelled")
            .reports
    }

    /// The cpu's flex as a backend that goes on, which may be prepared once.
    struct Once(bool);

    impl Backend for Once {
        fn name(&self) -> BackendName {
            BackendName::Flex
        }
        fn support(&self, _: &Problem) -> Result<(), Diagnostic> {
            Ok(())
        }
        fn supports_gradients(&self, _: &Problem) -> Result<(), Diagnostic> {
            Ok(())
        }
        fn prepare(&mut self, problem: &Problem, inputs: &Inputs) -> Result<Box<dyn Prepared>, Diagnostic> {
            assert!(!std::mem::replace(&mut self.0, true), "it was prepared twice");
            let flex = cpu::backend(BackendName::Flex).expect("there is one").prepare(problem, inputs)?;
            Ok(Box::new(Ready(flex, |_| ())))
        }
    }

    #[test]
    fn a_backend_goes_from_the_race_to_its_gradients_without_being_prepared_again() {
        let p = with_mods(spec(1, 4, 2, 70, 80, 16), Some(causal(5)), None);
        let (given, seeds) = (inputs::random(&p, 1), gradients::random(&p, 1));
        let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(Once(false))];
        let options = RaceOptions { rounds: 1, ..RaceOptions::USUAL };
        let control = Control::new();
        let forward = forward_race(&p, &given, &mut backends, &options, &control, &mut |_| {});
        let ready = forward.expect("not cancelled").ready;
        assert_eq!(ready.len(), 1);
        let found = race(&p, &given, &seeds, (&mut backends, ready), (1, false), &control).expect("not cancelled");
        assert!(
            matches!(&found.reports[0].outcome, GradientOutcome::Done { errors, .. } if errors.iter().all(|e| e.passed()))
        );
    }

    #[test]
    fn right_gradients_are_timed_and_refusals_say_why() {
        let p = with_mods(spec(1, 4, 2, 70, 80, 16), Some(causal(5)), Some(distance_score()));
        let reports = run(&p, cpu::backends());
        for r in &reports {
            match (&r.outcome, r.backend) {
                (GradientOutcome::Done { errors, timing, .. }, BackendName::Eager | BackendName::Flex) => {
                    assert!(errors.len() == 3 && errors.iter().all(|e| e.passed()), "{errors:?}");
                    assert_eq!(timing.as_ref().map(|t| t.samples_ms.len()), Some(2));
                }
                (GradientOutcome::Refused { why }, _) => assert!(why.hint.is_some()),
                other => panic!("{other:?}"),
            }
        }
    }

    /// `score + 3 * bias[h]`: softmax does not see it, and the gradient of `bias` is zero but for rounding.
    fn whole_rows() -> crate::ir::graph::Mod {
        use crate::base::{HostTensor, tensor::Data};
        use crate::ir::graph::{BinaryOp, Graph, Input, Mod, ModKind, Op};
        let mut g = Graph::new();
        let bias = g.add_capture("bias", HostTensor::vector(Data::F32(vec![0.5, -0.25])));
        let (h, score, three) = (g.input(Input::H), g.input(Input::Score), g.float(3.0));
        let bias = g.add(Op::Load(bias, smallvec::smallvec![h]), None);
        let by = g.binary(BinaryOp::Mul, bias, three);
        let root = g.binary(BinaryOp::Add, score, by);
        Mod { kind: ModKind::Score, graph: g, root, sources: Vec::new() }
    }

    #[test]
    fn a_gradient_that_vanishes_is_right_within_the_rounding_of_its_terms() {
        let p = with_mods(spec(1, 2, 2, 120, 130, 16), Some(causal(5)), Some(whole_rows()));
        let spoil = |g: &mut Gradients| {
            if let crate::base::tensor::Data::F32(v) = g.captures[0].gradient.data_mut() {
                v[0] += 0.05;
            }
        };
        let backends: Vec<Box<dyn Backend>> = vec![Box::new(Spoilt(|_| ())), Box::new(Spoilt(spoil))];
        let passed: Vec<bool> = run(&p, backends)
            .iter()
            .map(|r| match &r.outcome {
                GradientOutcome::Done { errors, .. } => errors.iter().all(|e| e.passed()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(passed, [true, false]);
    }

    #[test]
    fn spoilt_gradients_are_wrong_and_not_timed() {
        let p = problem(1, 2, 2, 70, 80, 16);
        fn first(t: &mut crate::base::HostTensor, f: fn(&mut f32)) {
            if let crate::base::tensor::Data::F32(v) = t.data_mut() {
                f(&mut v[3]);
            }
        }
        let spoils: [fn(&mut Gradients); 3] = [
            |g| first(&mut g.dq, |x| *x += 0.01),
            |g| first(&mut g.dk, |x| *x = f32::NAN),
            |g| first(&mut g.dv, |x| *x += 0.1),
        ];
        for spoil in spoils {
            let reports = run(&p, vec![Box::new(Spoilt(spoil))]);
            let GradientOutcome::Done { errors, timing, .. } = &reports[0].outcome else { panic!("{reports:?}") };
            assert!(timing.is_none() && errors.iter().filter(|e| !e.passed()).count() == 1, "{errors:?}");
        }
        let fine = run(&p, vec![Box::new(Spoilt(|_| ()))]);
        assert!(matches!(&fine[0].outcome, GradientOutcome::Done { timing: Some(_), .. }));
    }

    #[test]
    fn gradients_of_other_bits_fail_where_they_must_be_the_same() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let p = problem(1, 2, 2, 70, 80, 16);
        // within every bar, and another last bit in each run
        let drift: fn(&mut Gradients) = |g| {
            if let crate::base::tensor::Data::F32(v) = g.dk.data_mut() {
                v[3] = f32::from_bits(v[3].to_bits() ^ (RUNS.fetch_add(1, Ordering::Relaxed) & 1));
            }
        };
        let fine = run_as(&p, vec![Box::new(Spoilt(drift))], false);
        assert!(matches!(&fine[0].outcome, GradientOutcome::Done { timing: Some(_), unordered: None, .. }), "{fine:?}");
        let reports =
            run_as(&p, vec![Box::new(Spoilt(drift)), cpu::backend(BackendName::Flex).expect("there is one")], true);
        assert!(
            matches!(&reports[0].outcome, GradientOutcome::Failed { why } if why.code == "gradients-differ"),
            "{reports:?}"
        );
        assert!(
            matches!(&reports[1].outcome, GradientOutcome::Done { timing: Some(_), unordered: None, .. }),
            "{reports:?}"
        );
    }

    #[test]
    fn the_price_of_an_order_is_told_where_there_is_one() {
        let timing = |ms: f64| stats::timing(vec![ms]);
        let done = |ordered, unordered| GradientOutcome::Done {
            kernel: "k".into(),
            errors: vec![],
            timing: ordered,
            unordered,
            memory_bytes: None,
        };
        assert_eq!(done(timing(3.0), timing(2.0)).order_price(), Some((2.0, 50.0)));
        assert_eq!(done(timing(3.0), None).order_price(), None);
        assert_eq!(done(None, timing(2.0)).order_price(), None);
    }
}
