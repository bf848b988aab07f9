//! `maskloom bench recorded --chart F.svg`: how much faster flex is than PyTorch in the recorded runs, as a picture.
//!
//! Invariant: every bar is a quotient of two recorded medians of one run; card, date and PyTorch's version are those of
//! the runs that are drawn. Must not know how they were measured.

use super::super::svg::{Anchor, Look, Svg, width};
use super::recorded::{backward, mean_of, range};
use crate::base::{BackendName, Diagnostic};
use crate::problem::facts::MaskRead;
use crate::problem::result::{GradientOutcome, Outcome, RunReport};
use crate::tasks::recorded::{Collection, embedded};
use crate::worker::files;
use std::path::Path;

/// The times of PyTorch's FlexAttention and SDPA over that of flex, in one pass of one preset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ratios {
    flex: Option<f64>,
    sdpa: Option<f64>,
    /// Whether SDPA read the mask as a tensor.
    dense: bool,
}

impl Ratios {
    fn nearest(self) -> Option<f64> {
        [self.flex, self.sdpa].into_iter().flatten().min_by(f64::total_cmp)
    }
}

/// A preset: forward, backward.
type Row = (String, [Ratios; 2]);

/// The chart of a file of recorded runs; None: of the shipped one with most of PyTorch. Errors: no such file, no PyTorch in it.
pub(super) fn of(from: Option<&Path>) -> Result<String, Diagnostic> {
    let read = from.map(|path| Collection::from_json(&files::read_text(path)?)).transpose()?;
    let found = read.as_ref().or_else(|| richest(embedded()));
    chart(found.ok_or_else(|| Diagnostic::error("no-run", "no recorded run ships with this program"))?)
}

/// Of the collections, the one with most presets beside PyTorch.
fn richest(all: &[Collection]) -> Option<&Collection> {
    all.iter().max_by_key(|collection| beside(collection).count())
}

fn beside(collection: &Collection) -> impl Iterator<Item = (&String, &RunReport)> + Clone {
    let reports = collection.runs.iter().map(|(name, run)| (name, &run.report));
    let timed = |report: &RunReport| {
        [BackendName::TorchFlex, BackendName::TorchSdpa].iter().any(|b| report.timing(*b).is_some())
    };
    reports.filter(move |(_, report)| timed(report) && report.timing(BackendName::Flex).is_some())
}

fn forward_of(report: &RunReport) -> Ratios {
    let ratio = |backend| Some(report.median_ms(backend)? / report.median_ms(BackendName::Flex)?);
    let dense =
        |outcome: &Outcome| matches!(outcome, Outcome::Done { kernel, .. } if kernel.facts.mask == MaskRead::Dense);
    let sdpa = report.backends.iter().find(|b| b.backend == BackendName::TorchSdpa);
    Ratios {
        flex: ratio(BackendName::TorchFlex),
        sdpa: ratio(BackendName::TorchSdpa),
        dense: sdpa.is_some_and(|b| dense(&b.outcome)),
    }
}

fn backward_of(report: &RunReport) -> Ratios {
    let ms = |backend| backward(report, backend).map(|timing| timing.median_ms);
    let ratio = |backend| Some(ms(backend)? / ms(BackendName::Flex)?);
    let dense = |outcome: &GradientOutcome| matches!(outcome, GradientOutcome::Done { kernel, .. } if kernel.facts.mask == MaskRead::Dense);
    let sdpa = report.gradients.iter().find(|b| b.backend == BackendName::TorchSdpa);
    Ratios {
        flex: ratio(BackendName::TorchFlex),
        sdpa: ratio(BackendName::TorchSdpa),
        dense: sdpa.is_some_and(|b| dense(&b.outcome)),
    }
}

/// The file. Errors: PyTorch was timed in none of the runs.
fn chart(collection: &Collection) -> Result<String, Diagnostic> {
    drawn(collection).map(|svg| svg.finish())
}

const PAGE: f64 = 900.0;
const MARGIN: f64 = 20.0;
const TOP: f64 = 134.0;
const ROW: f64 = 33.0;
const BAR: f64 = 11.0;
const STEP: f64 = 13.0;
/// Kept free behind the longest bar for its number.
const NUMBER: f64 = 66.0;
const TICKS: [f64; 8] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
const PLAIN: Look = Look { class: "ink", size: 12.0, bold: false, anchor: Anchor::Start };
const SMALL: Look = Look { class: "quiet", size: 11.0, bold: false, anchor: Anchor::Start };

/// One pass: where its bars begin, and its scale.
struct Panel {
    left: f64,
    right: f64,
    least: f64,
    most: f64,
}

impl Panel {
    /// The place of a ratio, on a logarithmic scale.
    fn x(&self, ratio: f64) -> f64 {
        let share = (ratio / self.least).ln() / (self.most / self.least).ln();
        self.left + share * (self.right - NUMBER - self.left)
    }

    fn grid(&self, svg: &mut Svg, title: &str, bottom: f64) {
        let heading = Look { bold: true, ..PLAIN };
        svg.text(heading, self.left, TOP - 26.0, title);
        for tick in TICKS.into_iter().filter(|tick| (self.least..=self.most).contains(tick)) {
            svg.upright(if tick == 1.0 { "quiet" } else { "grid" }, self.x(tick), TOP - 4.0, bottom);
            svg.text(Look { anchor: Anchor::Middle, ..SMALL }, self.x(tick), TOP - 8.0, &format!("{tick}x"));
        }
    }

    fn bar(&self, svg: &mut Svg, class: &str, y: f64, ratio: f64, words: &str) {
        let (one, end) = (self.x(1.0), self.x(ratio));
        svg.rectangle(class, [one.min(end), y, (end - one).abs().max(1.0), BAR]);
        svg.text(Look { size: 10.0, class: "ink", ..SMALL }, one.max(end) + 4.0, y + BAR - 2.0, words);
    }
}

fn drawn(collection: &Collection) -> Result<Svg, Diagnostic> {
    let rows: Vec<Row> = beside(collection).map(|(name, r)| (name.clone(), [forward_of(r), backward_of(r)])).collect();
    if rows.is_empty() {
        return Err(Diagnostic::error("no-pytorch", "PyTorch was timed in none of these runs").hint(
            "name a file of recorded runs with torch:flex or torch:sdpa, such as presets/recorded/nvidia_h100.json",
        ));
    }
    let words = Words::of(collection, rows.len());
    let bottom = TOP + ROW * (rows.len() + 2) as f64;
    let mut svg = Svg::new(PAGE, bottom + 78.0, &format!("{}. {}", words.title, words.run));
    words.head(&mut svg);
    let labels = rows.iter().map(|(name, _)| width(name, PLAIN.size, false));
    let label = labels.fold(width(MEAN, PLAIN.size, true), f64::max) + MARGIN + 12.0;
    let half = (PAGE - label - MARGIN) / 2.0;
    for pass in [0, 1] {
        let left = label + half * pass as f64;
        let all = || rows.iter().flat_map(move |(_, passes)| [passes[pass].flex, passes[pass].sdpa]).flatten();
        let (least, most) = (all().fold(1.0, f64::min) / 1.05, all().fold(2.0, f64::max) * 1.05);
        let panel = Panel { left, right: left + half - 12.0, least, most };
        panel.grid(&mut svg, ["Forward pass", "Backward pass"][pass], bottom);
        means(&mut svg, &panel, &rows, pass);
        for (at, (_, passes)) in rows.iter().enumerate() {
            bars(&mut svg, &panel, passes[pass], TOP + ROW * (at + 2) as f64);
        }
    }
    let named = [MEAN, NEAREST].into_iter().chain(rows.iter().map(|(name, _)| name.as_str()));
    for (at, name) in named.enumerate() {
        let look = Look { bold: at < 2, anchor: Anchor::End, ..PLAIN };
        svg.text(look, label - 10.0, TOP + ROW * at as f64 + STEP + 4.0, name);
    }
    words.foot(&mut svg, bottom);
    Ok(svg)
}

const MEAN: &str = "geometric mean";
const NEAREST: &str = "over the faster";

fn bars(svg: &mut Svg, panel: &Panel, of: Ratios, top: f64) {
    if let Some(ratio) = of.flex {
        panel.bar(svg, "first", top + 3.0, ratio, &shown(ratio));
    }
    if let Some(ratio) = of.sdpa {
        panel.bar(svg, if of.dense { "faint" } else { "second" }, top + 3.0 + STEP, ratio, &shown(ratio));
    }
}

/// The first two rows: the means over each, and over the faster of both where both ran.
fn means(svg: &mut Svg, panel: &Panel, rows: &[Row], pass: usize) {
    let of = |pick: fn(Ratios) -> Option<f64>| rows.iter().filter_map(|(_, p)| pick(p[pass])).collect::<Vec<_>>();
    let both = |r: Ratios| r.flex.and(r.sdpa).and(r.nearest());
    let picks: [(&str, f64, Vec<f64>); 3] = [
        ("first", TOP + 3.0, of(|r| r.flex)),
        ("second", TOP + 3.0 + STEP, of(|r| r.sdpa)),
        ("ink", TOP + ROW + 3.0 + STEP / 2.0, of(both)),
    ];
    for (class, y, ratios) in picks {
        if let Some(mean) = mean_of(&ratios) {
            panel.bar(svg, class, y, mean, &format!("{} (n {})", shown(mean), ratios.len()));
        }
    }
}

fn shown(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// cuDNN's number as its version: `91900` as `9.19.0`. Other words stay.
fn dotted(number: &str) -> String {
    match number.parse::<u32>() {
        Ok(n) if n >= 10_000 => format!("{}.{}.{}", n / 10_000, n / 100 % 100, n % 100),
        _ => number.into(),
    }
}

/// The texts around the bars.
struct Words {
    title: String,
    run: String,
}

impl Words {
    fn of(collection: &Collection, presets: usize) -> Words {
        let reports = || beside(collection).map(|(_, report)| report);
        let said = |key: &'static str| range(reports().filter_map(move |report| report.environment.get(key)));
        let card = range(reports().map(|report| &report.device_name));
        Words {
            title: "Times of PyTorch's attention over that of Maskloom's flex kernels".into(),
            run: format!(
                "{card}, {}, PyTorch {}, cuDNN {}, Triton {}; {presets} presets",
                said("date"),
                said("torch"),
                dotted(&said("torch cudnn")),
                said("triton")
            ),
        }
    }

    fn head(&self, svg: &mut Svg) {
        svg.text(Look { size: 16.0, bold: true, ..PLAIN }, MARGIN, 30.0, &self.title);
        svg.text(SMALL, MARGIN, 50.0, &self.run);
        let mut x = MARGIN;
        let legend = [
            ("first", "FlexAttention (torch:flex)"),
            ("second", "SDPA (torch:sdpa)"),
            ("faint", "SDPA that reads the mask as a dense tensor"),
            ("ink", "the faster of both"),
        ];
        for (class, words) in legend {
            svg.rectangle(class, [x, 64.0, BAR, BAR]);
            svg.text(SMALL, x + BAR + 5.0, 74.0, words);
            x += BAR + 5.0 + width(words, SMALL.size, false) + 18.0;
        }
    }

    fn foot(&self, svg: &mut Svg, bottom: f64) {
        let lines = [
            "Logarithmic scale. 1x: as fast as Maskloom's kernel; longer: PyTorch takes so many times as long; no bar: it was not timed.",
            "Each number is a quotient of the medians of one run, of the GPU's work alone. The mean over SDPA mixes both kinds of it.",
            "The mean over the faster takes for each preset the faster of FlexAttention and SDPA, where both were timed.",
        ];
        for (at, line) in lines.into_iter().enumerate() {
            svg.text(SMALL, MARGIN, bottom + 26.0 + 17.0 * at as f64, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::svg;

    #[test]
    fn the_readmes_chart_is_drawn_from_the_committed_runs() {
        let collection = richest(embedded()).expect("runs");
        let kept = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/images/recorded.svg"));
        let made = chart(collection).expect("a chart");
        assert!(made == kept, "draw it anew: maskloom bench recorded --chart docs/images/recorded.svg");
    }

    #[test]
    fn no_text_touches_another_and_each_ratio_is_a_quotient_of_medians() {
        let mut collection = richest(embedded()).expect("runs").clone();
        svg::assert_readable(&drawn(&collection).expect("drawn"));
        collection.runs.retain(|name, _| name == "causal");
        let report = &collection.runs["causal"].report;
        let ms = |backend| report.median_ms(backend).expect("timed");
        let (flex, sdpa) = (ms(BackendName::TorchFlex), ms(BackendName::TorchSdpa));
        let of = forward_of(report);
        assert_eq!((of.flex, of.sdpa), (Some(flex / ms(BackendName::Flex)), Some(sdpa / ms(BackendName::Flex))));
        assert!(!of.dense && backward_of(report).flex.is_some());
        let one = drawn(&collection).expect("drawn");
        svg::assert_readable(&one);
        let shown = format!("{:.2} (n 1)", flex / ms(BackendName::Flex));
        assert!(one.texts.iter().any(|(_, words)| *words == shown), "{shown}");
    }

    #[test]
    fn a_version_is_written_with_dots() {
        assert_eq!(["91900", "91002", "unknown"].map(dotted), ["9.19.0", "9.10.2", "unknown"]);
    }

    #[test]
    fn runs_without_pytorch_have_no_chart() {
        let mut collection = embedded()[0].clone();
        collection.runs.retain(|name, _| name == "alibi");
        assert_eq!(chart(&collection).unwrap_err().code, "no-pytorch");
    }
}
