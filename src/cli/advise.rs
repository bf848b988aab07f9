//! `maskloom advise`: recommends an attention setting for a trainer's config.json and a design, from measured races.
//!
//! Invariant: advice rests on measurements only; a recorded run is labelled as recorded. Must not know how advice is
//! derived.

use super::arguments::Pass;
use super::opened::{self, CodeArgs, Opened};
use super::out::{self, Failure};
use super::overrides::Overrides;
use super::work::{Where, Worker};
use crate::base::{BackendName, Diagnostic, Severity};
use crate::document::model::Document;
use crate::problem::result::RunReport;
use crate::tasks::environment::Files;
use crate::tasks::run_file::RunFile;
use crate::tasks::{advising, plan, recorded, settings};
use crate::trainers::advice::{Advice, Attended, Measured, Measuring, Question, advise};
use crate::trainers::read::TrainerConfig;
use crate::words::{Value as Figure, Words};
use crate::worker::files;
use serde_json::json;
use std::path::PathBuf;

/// Choose an attention setting from measured races
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A trainer's or model's config.json: the shape of its model family is raced without a mask first
    config: Option<PathBuf>,
    /// The design: a preset, FILE.json or FILE.py:ENTRY
    #[arg(long, value_name = "PRESET")]
    design: Option<String>,
    /// Run files (`maskloom run --save-run`) whose measurements are used
    #[arg(long, value_name = "RUN.json", num_args = 1..)]
    run: Vec<PathBuf>,
    /// Race now: first the settings that need no mask, then the design
    #[arg(long)]
    race: bool,
    #[command(flatten)]
    at: Where,
    /// Passes that --race runs; with both, the advice covers training too
    #[arg(long, value_name = "PASS", default_value = "forward", requires = "race")]
    pass: Pass,
    /// Python with your PyTorch, for torch:* backends
    #[arg(long, value_name = "PATH")]
    python: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// A race of this call: here, from a file, or shipped.
struct Race {
    report: RunReport,
    recorded: bool,
}

impl Race {
    fn measured(&self) -> Measured<'_> {
        Measured { report: &self.report, recorded: self.recorded }
    }
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    if args.config.is_none() && args.design.is_none() && args.run.is_empty() {
        let why = Diagnostic::error("advise-what", "advise needs a config file or a design");
        return Err(Failure::WrongUse(why.hint("maskloom advise config.json, or maskloom advise --design PRESET")));
    }
    let config = args.config.as_ref().map(|path| {
        let name = path.display().to_string();
        TrainerConfig::read(&name, &files::read(path)?)
    });
    let config = config.transpose()?;
    let opened = args.design.as_ref().map(|name| opened::open(name, &CodeArgs::default(), &Overrides::default()));
    let design = opened.transpose()?;
    if let Some(design) = &design {
        let compiled = design.compile_telling(Severity::Note)?;
        super::verdict::notes(&design.problem(&compiled)?)?;
    }
    let plain =
        config.as_ref().and_then(TrainerConfig::document).or_else(|| design.as_ref().map(|d| bare(&d.document)));
    let (plain_race, design_race) = races(&args, plain.as_ref(), design.as_ref())?;
    let command = command(&args, plain.is_some());
    let axes = [plain.as_ref(), design.as_ref().map(|d| &d.document)].map(|d| d.map(|d| d.axes.q.to_string()));
    let advice = advise(&Question {
        trainer: config.as_ref().map(|c| c.trainer).unwrap_or_default(),
        family: config.as_ref().and_then(|c| c.family.as_deref()),
        current: config.as_ref().and_then(|c| c.setting.as_deref()),
        precision: config.as_ref().and_then(|c| c.precision.as_deref()),
        plain: plain_race.as_ref().map(Race::measured),
        designed: design_race.as_ref().map(Race::measured),
        has_design: design.is_some() || design_race.is_some(),
        model: config.as_ref().and(plain.as_ref()).zip(axes[0].as_deref()).map(|(d, axis)| attended(d, axis)),
        design: design.as_ref().zip(axes[1].as_deref()).map(|(d, axis)| attended(&d.document, axis)),
        weights: config.as_ref().and_then(|c| c.weights.as_deref()),
        setup: config.as_ref().map(TrainerConfig::setup).unwrap_or_default(),
        measuring: Measuring::Command(command),
    });
    tell(&args, config.as_ref(), plain.as_ref(), &advice)
}

fn attended<'a>(document: &Document, axis: &'a str) -> Attended<'a> {
    let (q_len, kv_len) = (document.axes.q.len(), document.axes.kv().len());
    Attended { heads: document.settings.heads, q_len, kv_len, axis }
}

fn tell(args: &Args, config: Option<&TrainerConfig>, plain: Option<&Document>, advice: &Advice) -> Result<(), Failure> {
    if args.json {
        let found = config.map(
            |c| json!({ "family": c.family, "setting": c.setting, "precision": c.precision, "meaning": c.meaning().to_string(), "own_masks": own_masks(out::words(), c) }),
        );
        return out::json(&json!({ "config": found, "document": plain, "advice": advising::json(advice) }));
    }
    let said = out::words();
    let text = config.map(|config| of_config(said, config, plain)).unwrap_or_default();
    out::text(&(text + &advising::render(said, advice)))
}

/// The model and its setting today, a line each.
fn of_config(said: &'static Words, config: &TrainerConfig, plain: Option<&Document>) -> String {
    let family = config.family.as_deref().unwrap_or(said.text("config-not-given"));
    let setting = config.setting.as_deref().unwrap_or(said.text("config-not-set"));
    let today = settings::told(said, &config.meaning());
    let mut lines = vec![
        said.with("config-family", &[("family", family.into())]),
        format!("{}: {setting}", config.trainer.key()),
        format!("  {}", said.with("config-today", &[("line", today.into())])),
    ];
    let mask = |line: String| format!("  {}", said.with("config-mask", &[("line", line.into())]));
    lines.extend(own_masks(said, config).into_iter().map(mask));
    lines.push(match plain {
        Some(d) => {
            let s = &d.settings;
            let counts = [("n", d.axes.q.len()), ("heads", s.heads), ("kv", s.kv_heads), ("dim", s.head_dim)];
            let counts = counts.map(|(name, n)| (name, Figure::from(n.to_string())));
            let axis = [("axis", Figure::from(d.axes.q.to_string()))];
            said.with("config-shape", &[&axis[..], &counts[..]].concat())
        }
        None => said.text("config-shape-unknown").into(),
    });
    lines.into_iter().map(|line| line + "\n").collect()
}

fn own_masks(said: &'static Words, config: &TrainerConfig) -> Vec<String> {
    config.own_masks().iter().map(|of| settings::own_mask(said, of)).collect()
}

/// The design's problem without its masks and score mods.
fn bare(document: &Document) -> Document {
    use BackendName::{FlashAttention2, Flex, Sdpa, TorchFlex, TorchSdpa};
    let mut bare = document.clone();
    bare.name = format!("{} without its design", document.name);
    bare.layers.clear();
    bare.scores.clear();
    bare.settings.backends = vec![Sdpa, FlashAttention2, Flex, TorchSdpa, TorchFlex];
    bare
}

fn command(args: &Args, known: bool) -> String {
    match (&args.config, &args.design) {
        (Some(path), _) if known => format!("maskloom advise {} --race", path.display()),
        (None, Some(design)) => format!("maskloom advise --design {design} --race"),
        _ => "maskloom run PRESET --backend sdpa,flex,torch:sdpa,torch:flex".into(),
    }
}

/// The race without the design and the race with it.
type Races = (Option<Race>, Option<Race>);

fn races(args: &Args, plain: Option<&Document>, design: Option<&Opened>) -> Result<Races, Failure> {
    let (mut without, mut with) = (None, None);
    for path in &args.run {
        let run = RunFile::open(path)?;
        let race = Race { report: run.report, recorded: false };
        // causal and full attention are the results of a setting without a mask
        let designed = !run.document.scores.is_empty() || !run.document.layers.is_empty();
        *(if designed { &mut with } else { &mut without }) = Some(race);
    }
    if args.race {
        let mut worker = Worker::connect(&args.at.target)?;
        if let (Some(document), None) = (plain, &without) {
            let opened = Opened::new(document.clone(), Files::new(None, Vec::new()));
            without = Some(race(args, &opened, &mut worker)?);
        }
        if let (Some(opened), None) = (design, &with) {
            let mut document = opened.document.clone();
            for name in [BackendName::TorchSdpa, BackendName::TorchFlex] {
                if !document.settings.backends.contains(&name) {
                    document.settings.backends.push(name);
                }
            }
            let compiled = opened.compile()?;
            let device = worker.device(args.at.device, &document);
            let mut request = plan::run_request(&opened.problem(&compiled)?, &document.settings, device);
            request.python = args.python.clone();
            args.pass.ask(&mut request, document.settings.seed, false);
            with = Some(Race { report: worker.run(request)?.0, recorded: false });
        }
    }
    let shipped =
        |document: &Document| recorded::of(document).first().map(|r| Race { report: r.report.clone(), recorded: true });
    Ok((without.or_else(|| plain.and_then(shipped)), with.or_else(|| design.and_then(|d| shipped(&d.document)))))
}

fn race(args: &Args, opened: &Opened, worker: &mut Worker) -> Result<Race, Failure> {
    let compiled = opened.compile()?;
    let device = worker.device(args.at.device, &opened.document);
    let mut request = plan::run_request(&opened.problem(&compiled)?, &opened.document.settings, device);
    request.python = args.python.clone();
    args.pass.ask(&mut request, opened.document.settings.seed, false);
    let (report, _) = worker.run(request)?;
    out::note(&format!("{}{}", super::race::render(&report), super::race::gradients(&report)));
    Ok(Race { report, recorded: false })
}
