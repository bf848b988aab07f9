//! Runs that ship with the presets: results of a known card, labelled as recorded and never as measured here.
//!
//! Invariant: a recorded run belongs to one exact document (its fingerprint), so that an outdated one is not shown;
//! wrong or failed backends are never recorded: one of ours refuses the run, one of PyTorch is left out by name.
//! Must not know how a run is shown.

use crate::base::{BackendName, Diagnostic, Provenance};
use crate::document::model::{Document, Layer};
use crate::problem::result::{GradientError, GradientOutcome, Outcome, RunReport, Timing};
use crate::problem::{Fingerprint, ProblemSpec};
use crate::tasks::ratios;
use crate::tasks::run_file::{Conditions, RunFile};
use crate::words::Words;
use crate::worker::files;
use crate::worker::protocol::RunRequest;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

/// Version written to new files. Readers accept this and every older one.
pub const RECORDED_VERSION: u32 = 2;

/// One file for each card.
const EMBEDDED: [&str; 2] =
    [include_str!("../../presets/recorded/nvidia_h200.json"), include_str!("../../presets/recorded/nvidia_h100.json")];

/// A run without its bulk: no kernel texts, no pictures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// For the document that ran; see [`fingerprint`].
    pub fingerprint: String,
    /// For the problem that ran; absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Fingerprint>,
    /// How it ran.
    pub conditions: Conditions,
    /// The result.
    pub report: RunReport,
}

/// The runs of one card, by the presets' names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Collection {
    /// [`RECORDED_VERSION`] when saved.
    pub maskloom_recorded: u32,
    /// One for each preset.
    pub runs: BTreeMap<String, Recorded>,
}

/// The parts that define a document's problem: axes, layers, score mods and shapes; not names, help, seed or backends.
pub fn fingerprint(document: &Document) -> String {
    let layer = |l: &Layer| match &l.heads {
        None => json!([l.combine, l.content]),
        Some(heads) => json!([l.combine, l.content, heads]),
    };
    let layers: Vec<_> = document.layers.iter().filter(|l| l.enabled).map(layer).collect();
    let scores: Vec<_> = document.scores.iter().filter(|s| s.enabled).map(|s| json!(s.content)).collect();
    let s = &document.settings;
    let shapes =
        json!([s.batch, s.heads, s.kv_heads, s.head_dim, s.head_dim_v, s.dtype, s.layout, s.scale, s.block_size]);
    let mut text = json!([document.axes, layers, scores, shapes]).to_string();
    if s.fast_math {
        text.push_str("fast");
    }
    blake3::hash(text.as_bytes()).to_hex()[..16].to_string()
}

/// Every run that ships.
pub fn embedded() -> &'static [Collection] {
    static ALL: OnceLock<Vec<Collection>> = OnceLock::new();
    // what ships is tested; a broken file would leave the presets without runs, nothing worse
    ALL.get_or_init(|| EMBEDDED.iter().filter_map(|text| Collection::from_json(text).ok()).collect())
}

/// The recorded runs of exactly this document, one a card; those with more of PyTorch beside us come first.
pub fn of(document: &Document) -> Vec<&'static Recorded> {
    let wanted = fingerprint(document);
    let mut runs: Vec<_> =
        embedded().iter().flat_map(|c| c.runs.values()).filter(|r| r.fingerprint == wanted).collect();
    sort(&mut runs);
    runs
}

/// Those with more of PyTorch beside us come first; the others keep their order.
fn sort(runs: &mut [&Recorded]) {
    let timed = |run: &Recorded| {
        let torch = run.report.backends.iter().filter(|b| b.backend.is_torch());
        torch.filter(|b| b.outcome.right().is_some()).count()
    };
    runs.sort_by_key(|run| std::cmp::Reverse((run.report.beside_pytorch(), timed(run))));
}

/// Those runs whose numbers belong to this document's problem: a user's own pattern with a built-in name, or a newer
/// pattern of that name, gives another problem. `density` is the share of cells that its mask keeps, if counted: runs
/// that do not name their problem are compared by it.
pub fn of_problem(document: &Document, problem: &ProblemSpec, density: Option<f64>) -> Vec<&'static Recorded> {
    of(document).into_iter().filter(|run| run.is_of(problem, density)).collect()
}

impl Recorded {
    /// Whether it is of this problem, as far as that is known; see [`of_problem`].
    pub fn is_of(&self, problem: &ProblemSpec, density: Option<f64>) -> bool {
        match (&self.problem, density) {
            (Some(own), _) => *own == problem.fingerprint(),
            (None, Some(density)) => (self.report.work.density - density).abs() < 1e-9,
            (None, None) => true,
        }
    }

    /// Reduces a run. Errors: a backend failed or was wrong, or none was timed.
    pub fn new(document: &Document, request: &RunRequest, report: &RunReport) -> Result<Recorded, Diagnostic> {
        Recorded::reduced(document, Some(request.problem.fingerprint()), Conditions::of(request), report)
    }

    /// Reduces a run file.
    pub fn of_run(run: &RunFile) -> Result<Recorded, Diagnostic> {
        Recorded::reduced(&run.document, run.fingerprint.clone(), run.conditions.clone(), &run.report)
    }

    fn reduced(
        document: &Document,
        problem: Option<Fingerprint>,
        conditions: Conditions,
        report: &RunReport,
    ) -> Result<Recorded, Diagnostic> {
        let refuse = |what: String| {
            Diagnostic::error("not-recorded", format!("{}: {what}; the run is not recorded", document.name))
                .hint("only runs in which every backend was right or refused are recorded")
        };
        // one of PyTorch is left out by name, one of ours refuses the run
        let without = |of: BackendName, fault: String| match of.is_torch() {
            true => Ok(Diagnostic::error("recorded-without", format!("{fault}; its timing is not recorded"))),
            false => Err(refuse(fault)),
        };
        let mut report = report.clone();
        let mut timed = 0;
        for backend in &mut report.backends {
            let fault = match &mut backend.outcome {
                Outcome::Done { error, timings, artefact, .. } if error.passed() => {
                    timed += usize::from(timings.forward().is_some());
                    timings.0.iter_mut().for_each(|row| shorten(&mut row.timing));
                    *artefact = None;
                    continue;
                }
                Outcome::Done { error, .. } => format!("was wrong: {}", error.fault().unwrap_or_default()),
                Outcome::Refused { why } => {
                    why.labels.clear();
                    continue;
                }
                Outcome::Failed { why } => format!("failed: {}", why.message),
            };
            let why = without(backend.backend, format!("{} {fault}", backend.backend))?;
            backend.outcome = Outcome::Refused { why };
        }
        for backend in &mut report.gradients {
            let fault = match &mut backend.outcome {
                GradientOutcome::Done { errors, timing, .. } => {
                    timing.iter_mut().for_each(shorten);
                    match errors.iter().find_map(GradientError::words) {
                        Some(words) => format!("was wrong: {words}"),
                        None => continue,
                    }
                }
                GradientOutcome::Refused { why } => {
                    why.labels.clear();
                    continue;
                }
                GradientOutcome::Failed { why } => format!("failed: {}", why.message),
            };
            let fault = format!("the backward pass of {} {fault}", backend.backend);
            backend.outcome = GradientOutcome::Refused { why: without(backend.backend, fault)? };
        }
        if timed == 0 {
            return Err(refuse("no backend was timed".into()));
        }
        // the name of a rented machine is meaningless to others
        report.environment.remove("host");
        report.notes.clear();
        Ok(Recorded { fingerprint: fingerprint(document), problem, conditions, report })
    }

    /// Where its numbers come from.
    pub fn provenance(&self) -> Provenance {
        Provenance::Recorded(self.report.place())
    }

    /// The same as [`Recorded::summary`] in a language.
    pub fn told(&self, said: &'static Words) -> Option<String> {
        let time = ("time", format!("{:.2}", self.report.median_ms(BackendName::Flex)?).into());
        let of = self.report.baseline().zip(self.report.versus(BackendName::Flex));
        Some(match of {
            None => said.with("recorded-times", &[time]),
            Some((base, of)) => {
                let versus = ratios::versus(said, &of, Some(&base.ran));
                said.with("recorded-versus", &[time, ("versus", versus.into())])
            }
        })
    }

    /// `flex 0.31 ms, 2.10x cuDNN 9.19 SDPA`; None where flex was not timed.
    pub fn summary(&self) -> Option<String> {
        let flex = self.report.median_ms(BackendName::Flex)?;
        let versus = self.report.baseline().zip(self.report.versus(BackendName::Flex));
        let versus = versus.map(|(base, versus)| format!(", {}", versus.words_of(&base.words)));
        Some(format!("flex {flex:.2} ms{}", versus.unwrap_or_default()))
    }
}

/// Five digits are more than a clock gives.
fn shorten(timing: &mut Timing) {
    let five = |x: f64| format!("{x:.4e}").parse().unwrap_or(x);
    timing.samples_ms.iter_mut().for_each(|s| *s = five(*s));
    timing.median_ms = five(timing.median_ms);
    timing.spread = five(timing.spread);
    timing.calls.iter_mut().for_each(|calls| calls.median_ms = five(calls.median_ms));
}

impl Collection {
    /// From JSON. Errors: no such file, a newer version, wrong types.
    pub fn from_json(text: &str) -> Result<Collection, Diagnostic> {
        let broken = |why: String| {
            Diagnostic::error("recorded-file", format!("this is not a file of recorded runs: {why}"))
                .hint("`maskloom presets record --into F.json` writes one")
        };
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| broken(e.to_string()))?;
        let version = value.get("maskloom_recorded").and_then(|v| v.as_u64());
        match version {
            Some(v) if (1..=u64::from(RECORDED_VERSION)).contains(&v) => {}
            Some(v) => {
                let message =
                    format!("the recorded runs have format version {v}; this Maskloom reads up to {RECORDED_VERSION}");
                return Err(Diagnostic::error("recorded-version", message).hint("update Maskloom"));
            }
            None => return Err(broken("it has no `maskloom_recorded` version".into())),
        }
        serde_json::from_value(value).map_err(|e| broken(e.to_string()))
    }

    /// As JSON, a line for each preset.
    pub fn to_json(&self) -> Result<String, Diagnostic> {
        let line = |(name, run): (&String, &Recorded)| {
            let run = serde_json::to_string(run)
                .map_err(|e| Diagnostic::error("recorded-file", format!("{name} cannot be written: {e}")))?;
            Ok(format!("{}: {run}", json!(name)))
        };
        let lines: Vec<String> = self.runs.iter().map(line).collect::<Result<_, Diagnostic>>()?;
        Ok(format!("{{\"maskloom_recorded\": {RECORDED_VERSION}, \"runs\": {{\n{}\n}}}}\n", lines.join(",\n")))
    }

    /// Opens a file; a missing one is empty.
    pub fn open(path: &Path) -> Result<Collection, Diagnostic> {
        if !files::is_there(path)? {
            return Ok(Collection::default());
        }
        Collection::from_json(&files::read_text(path)?)
    }

    /// Adds runs to a file as it is now, and gives what it has then: another program may have added its own since it was opened.
    pub fn add(path: &Path, runs: impl IntoIterator<Item = (String, Recorded)>) -> Result<Collection, Diagnostic> {
        files::alone(path, || {
            let mut all = Collection::open(path)?;
            all.maskloom_recorded = RECORDED_VERSION;
            all.runs.extend(runs);
            files::save(path, all.to_json()?.as_bytes())?;
            Ok(all)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::library;
    use crate::problem::result::GradientReport;

    #[test]
    fn what_ships_is_right_and_fits_its_preset() {
        for (text, card) in EMBEDDED.into_iter().zip(["H200", "H100"]) {
            let collection = Collection::from_json(text).expect("a file of recorded runs");
            // files of older versions are written as tables with the same data
            let again = Collection::from_json(&collection.to_json().unwrap()).unwrap();
            assert_eq!(again.runs, collection.runs);
            for (name, run) in &collection.runs {
                let document = library::preset(name).unwrap_or_else(|| panic!("no preset {name}")).document().unwrap();
                assert_eq!(run.fingerprint, fingerprint(&document), "{name} has changed since: record it anew");
                assert!(of(&document).contains(&run), "{name}");
                let right = |o: &Outcome| match o {
                    Outcome::Done { error, .. } => error.passed(),
                    Outcome::Refused { .. } => true,
                    Outcome::Failed { .. } => false,
                };
                assert!(run.report.backends.iter().all(|b| right(&b.outcome)), "{name}");
                assert!(run.report.device_name.contains(card) && run.summary().is_some(), "{name}");
                let passes = 1 + usize::from(!run.report.gradients.is_empty());
                assert!(serde_json::to_string(run).unwrap().len() < 8000 * passes, "{name} is large");
            }
        }
    }

    #[test]
    fn what_ships_is_of_the_masks_that_are_made_today() {
        use crate::document::compile::{BuiltIn, compile};
        let mut counted = 0;
        for (name, run) in embedded().iter().flat_map(|c| &c.runs) {
            let document = library::preset(name).unwrap().document().unwrap();
            let problem = crate::document::from_document(&document, &compile(&document, &BuiltIn)).unwrap();
            if problem.q_len * problem.kv_len > 1 << 26 {
                continue;
            }
            let blocks = problem.block_mask(problem.block_size, &crate::base::Control::new()).unwrap();
            let density = blocks.stats().density;
            assert!(run.is_of(&problem, Some(density)), "{name}: {density} is kept, {} was", run.report.work.density);
            // runs of older versions know their mask by its share of kept cells alone
            let (other, share) = match run.problem {
                Some(_) => (ProblemSpec { scale: Some(0.123), ..problem.spec().clone() }, density),
                None => (problem.spec().clone(), density * 0.99 + 0.001),
            };
            assert!(!of_problem(&document, &other, Some(share)).contains(&run), "{name}");
            counted += 1;
        }
        assert!(counted > 60, "{counted}");
    }

    #[test]
    fn a_wrong_or_failed_backward_pass_is_not_recorded() {
        let (document, run) = embedded()[0].runs.iter().next().map(|(n, r)| (library::preset(n).unwrap(), r)).unwrap();
        let document = document.document().unwrap();
        let reduced_of = |backend, outcome| {
            let mut report = run.report.clone();
            report.gradients = vec![GradientReport { backend, outcome }];
            Recorded::reduced(&document, None, run.conditions.clone(), &report)
        };
        let reduced = |outcome| reduced_of(BackendName::Flex, outcome);
        let done = |max_abs| {
            let error =
                GradientError { name: "dq".into(), max_abs, largest: 1.0, allowed: 0.1, ..GradientError::default() };
            let timing = Some(Timing { samples_ms: vec![1.23456789], median_ms: 1.23456789, spread: 0.0, calls: None });
            GradientOutcome::Done {
                kernel: "k".into(),
                errors: vec![error],
                timing,
                unordered: None,
                memory_bytes: None,
            }
        };
        let kept = reduced(done(0.01)).unwrap();
        let GradientOutcome::Done { timing: Some(timing), .. } = &kept.report.gradients[0].outcome else { panic!() };
        assert_eq!(timing.samples_ms, [1.2346]);
        let why = reduced(done(0.2)).unwrap_err().message;
        assert!(why.contains("the backward pass of flex was wrong: dq: error 2.0e-1"), "{why}");
        let failed = GradientOutcome::Failed { why: Diagnostic::error("x", "it broke") };
        assert!(reduced(failed.clone()).unwrap_err().message.contains("the backward pass of flex failed: it broke"));
        // PyTorch's own fault costs only its row
        for (outcome, said) in [(done(0.2), "was wrong: dq: error 2.0e-1"), (failed, "failed: it broke")] {
            let kept = reduced_of(BackendName::TorchFlex, outcome).unwrap();
            let GradientOutcome::Refused { why } = &kept.report.gradients[0].outcome else { panic!() };
            assert!(why.message.contains(said) && why.message.contains("torch:flex"), "{}", why.message);
            assert_eq!(kept.report.backends, run.report.backends);
        }
    }

    #[test]
    fn what_the_user_would_run_instead_comes_first() {
        let runs = |name: &str| of(&library::preset(name).unwrap().document().unwrap());
        let on = |run: &Recorded, card: &str| run.report.device_name.contains(card);
        // PyTorch ran on both cards, FlashAttention-4 on one of them: its run comes first
        let mut alibi = runs("alibi");
        assert!(alibi.iter().all(|run| run.report.beside_pytorch()) && on(alibi[0], "H200") && on(alibi[1], "H100"));
        let line = alibi[0].summary().unwrap();
        // files have the English words
        assert_eq!(alibi[0].told(Words::of(crate::words::Language::English)).as_ref(), Some(&line));
        assert!(line.contains("x PyTorch 2.11 FlexAttention, FlashAttention-4"), "{line}");
        alibi.reverse();
        sort(&mut alibi);
        assert!(on(alibi[0], "H200"));
        // PyTorch ran on one card alone
        let mut images = runs("axial_image");
        assert!(images[0].report.beside_pytorch() && !images[1].report.beside_pytorch());
        images.reverse();
        sort(&mut images);
        assert!(images[0].report.beside_pytorch());
        // without PyTorch on any card they keep the cards' order
        let mut own: Vec<Recorded> = runs("wan_natten_3d").into_iter().cloned().collect();
        let ours = [BackendName::Flex, BackendName::Sdpa];
        own.iter_mut().for_each(|run| run.report.backends.retain(|report| ours.contains(&report.backend)));
        let mut video: Vec<&Recorded> = own.iter().collect();
        sort(&mut video);
        assert!(on(video[0], "H200") && !video[0].report.beside_pytorch() && !video[1].report.beside_pytorch());
        assert!(video[0].summary().unwrap().contains("x our dense-mask kernel"));
    }

    /// A machine with two cards records half of the presets on each, into one file, for hours.
    #[test]
    fn runs_that_two_programs_record_into_one_file_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/runs.json");
        let runs: Vec<_> = embedded()[0].runs.iter().take(8).map(|(name, run)| (name.clone(), run.clone())).collect();
        std::thread::scope(|threads| {
            for one in &runs {
                let path = &path;
                threads.spawn(move || Collection::add(path, [one.clone()]).unwrap());
            }
        });
        assert_eq!(Collection::open(&path).unwrap().runs, runs.into_iter().collect());
    }

    #[test]
    fn names_and_seeds_do_not_matter_and_shapes_do() {
        let document = library::preset("alibi").unwrap().document().unwrap();
        let mut other = document.clone();
        other.name = "else".into();
        other.settings.seed = 9;
        other.settings.backends.clear();
        assert_eq!(fingerprint(&other), fingerprint(&document));
        other.settings.heads = 8;
        assert_ne!(fingerprint(&other), fingerprint(&document));
        assert_eq!(Collection::from_json("{\"maskloom_recorded\": 3}").unwrap_err().code, "recorded-version");
        assert_eq!(Collection::from_json("[]").unwrap_err().code, "recorded-file");
    }
}
