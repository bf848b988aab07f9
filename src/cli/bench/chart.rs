//! `maskloom bench recorded --chart F.svg`: how much faster flex is than PyTorch in the recorded runs, as a picture.
//!
//! Invariant: every bar is a quotient of two recorded medians of one run; card, date and PyTorch's version are those of
//! the runs that are drawn. Must not know how they were measured.

use super::recorded::{backward, mean_of, range};
use crate::base::provenance::Place;
use crate::base::{BackendName, Diagnostic, Provenance};
use crate::export::figure::{Anchor, Colour, Figure, GRID, INK, Item, QUIET, Text, width};
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
pub(super) fn of(from: Option<&Path>) -> Result<Figure, Diagnostic> {
    let read = from.map(|path| Collection::from_json(&files::read_text(path)?)).transpose()?;
    let found = read.as_ref().or_else(|| richest(embedded()));
    drawn(found.ok_or_else(|| Diagnostic::error("no-run", "no recorded run ships with this program"))?)
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

const PAGE: f64 = 900.0;
const MARGIN: f64 = 20.0;
const TOP: f64 = 134.0;
const ROW: f64 = 33.0;
const BAR: f64 = 11.0;
const STEP: f64 = 13.0;
/// Kept free behind the longest bar for its number.
const NUMBER: f64 = 66.0;
const TICKS: [f64; 8] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
const PLAIN: f64 = 12.0;
const SMALL: f64 = 11.0;
/// Sizes of the names of rows and of the numbers behind bars.
const NUMBERS: f64 = 10.0;
/// How much wider than the font that is measured a reader's own font may be.
const ROOM: f64 = 1.25;

/// Over FlexAttention, over SDPA, over SDPA with a dense mask.
const FIRST: Colour = [0x0b, 0x57, 0xa4];
const SECOND: Colour = [0xb3, 0x59, 0x00];
const FAINT: Colour = [0xe3, 0xb5, 0x87];

/// The width of a text in a wide font.
fn wide(words: &str, size: f64) -> f64 {
    ROOM * width(words, size)
}

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

    fn grid(&self, figure: &mut Figure, title: &str, bottom: f64) {
        figure.text(Text::new(title, [self.left, TOP - 26.0], PLAIN));
        for tick in TICKS.into_iter().filter(|tick| (self.least..=self.most).contains(tick)) {
            let (x, colour) = (self.x(tick), if tick == 1.0 { QUIET } else { GRID });
            figure.push(Item::Line([x, TOP - 4.0], [x, bottom], 1.0, false, colour));
            let words = Text::new(format!("{tick}x"), [x, TOP - 8.0], SMALL);
            figure.text(words.anchored(Anchor::Middle).in_colour(QUIET));
        }
    }

    fn bar(&self, figure: &mut Figure, colour: Colour, y: f64, ratio: f64, words: &str) {
        let (one, end) = (self.x(1.0), self.x(ratio));
        figure.push(Item::Box([one.min(end), y, (end - one).abs().max(1.0), BAR], colour));
        figure.text(Text::new(words, [one.max(end) + 4.0, y + BAR - 2.0], NUMBERS));
    }
}

/// The chart. Errors: PyTorch was timed in none of the runs.
fn drawn(collection: &Collection) -> Result<Figure, Diagnostic> {
    let rows: Vec<Row> = beside(collection).map(|(name, r)| (name.clone(), [forward_of(r), backward_of(r)])).collect();
    if rows.is_empty() {
        return Err(Diagnostic::error("no-pytorch", "PyTorch was timed in none of these runs").hint(
            "name a file of recorded runs with torch:flex or torch:sdpa, such as presets/recorded/nvidia_h100.json",
        ));
    }
    let (from, with) = source(collection);
    let bottom = TOP + ROW * (rows.len() + 2) as f64;
    let mut figure = Figure::new([PAGE, bottom + 78.0], &format!("{TITLE}."), &from);
    figure.follows_theme = true;
    head(&mut figure, &format!("{} {with}; {} presets.", from.sentence(), rows.len()));
    let labels = rows.iter().map(|(name, _)| wide(name, PLAIN));
    let label = labels.fold(wide(MEAN, PLAIN), f64::max) + MARGIN + 12.0;
    let half = (PAGE - label - MARGIN) / 2.0;
    for pass in [0, 1] {
        let left = label + half * pass as f64;
        let all = || rows.iter().flat_map(move |(_, passes)| [passes[pass].flex, passes[pass].sdpa]).flatten();
        let (least, most) = (all().fold(1.0, f64::min) / 1.05, all().fold(2.0, f64::max) * 1.05);
        let panel = Panel { left, right: left + half - 12.0, least, most };
        panel.grid(&mut figure, ["Forward pass", "Backward pass"][pass], bottom);
        means(&mut figure, &panel, &rows, pass);
        for (at, (_, passes)) in rows.iter().enumerate() {
            bars(&mut figure, &panel, passes[pass], TOP + ROW * (at + 2) as f64);
        }
    }
    let named = [MEAN, NEAREST].into_iter().chain(rows.iter().map(|(name, _)| name.as_str()));
    for (at, name) in named.enumerate() {
        let place = [label - 10.0, TOP + ROW * at as f64 + STEP + 4.0];
        figure.text(Text::new(name, place, PLAIN).anchored(Anchor::End));
    }
    for (at, line) in FOOT.into_iter().enumerate() {
        let place = [MARGIN, bottom + 26.0 + 17.0 * at as f64];
        figure.text(Text::new(line, place, SMALL).in_colour(QUIET));
    }
    Ok(figure)
}

const MEAN: &str = "geometric mean";
const NEAREST: &str = "over the faster";
const TITLE: &str = "Times of PyTorch's attention over that of Maskloom's flex kernels";
const FOOT: [&str; 3] = [
    "Logarithmic scale. 1x: as fast as Maskloom's kernel; longer: PyTorch takes so many times as long; no bar: it was not timed.",
    "Each number is a quotient of the medians of one run, of the GPU's work alone. The mean over SDPA mixes both kinds of it.",
    "The mean over the faster takes for each preset the faster of FlexAttention and SDPA, where both were timed.",
];

fn bars(figure: &mut Figure, panel: &Panel, of: Ratios, top: f64) {
    if let Some(ratio) = of.flex {
        panel.bar(figure, FIRST, top + 3.0, ratio, &shown(ratio));
    }
    if let Some(ratio) = of.sdpa {
        panel.bar(figure, if of.dense { FAINT } else { SECOND }, top + 3.0 + STEP, ratio, &shown(ratio));
    }
}

/// The first two rows: the means over each, and over the faster of both where both ran.
fn means(figure: &mut Figure, panel: &Panel, rows: &[Row], pass: usize) {
    let of = |pick: fn(Ratios) -> Option<f64>| rows.iter().filter_map(|(_, p)| pick(p[pass])).collect::<Vec<_>>();
    let both = |r: Ratios| r.flex.and(r.sdpa).and(r.nearest());
    let picks: [(Colour, f64, Vec<f64>); 3] = [
        (FIRST, TOP + 3.0, of(|r| r.flex)),
        (SECOND, TOP + 3.0 + STEP, of(|r| r.sdpa)),
        (INK, TOP + ROW + 3.0 + STEP / 2.0, of(both)),
    ];
    for (colour, y, ratios) in picks {
        if let Some(mean) = mean_of(&ratios) {
            panel.bar(figure, colour, y, mean, &format!("{} (n {})", shown(mean), ratios.len()));
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

/// Where the runs are from, and with which libraries they were made.
fn source(collection: &Collection) -> (Provenance, String) {
    let reports = || beside(collection).map(|(_, report)| report);
    let said = |key: &'static str| range(reports().filter_map(move |report| report.environment.get(key)));
    let device = range(reports().map(|report| &report.device_name));
    let from = Provenance::Recorded(Place { device, date: Some(said("date")), ..Place::default() });
    let cudnn = dotted(&said("torch cudnn"));
    (from, format!("PyTorch {}, cuDNN {cudnn}, Triton {}", said("torch"), said("triton")))
}

/// Title, source and legend.
fn head(figure: &mut Figure, source: &str) {
    figure.text(Text::new(TITLE, [MARGIN, 30.0], 16.0));
    figure.text(Text::new(source, [MARGIN, 50.0], SMALL).in_colour(QUIET));
    let mut x = MARGIN;
    let legend = [
        (FIRST, "FlexAttention (torch:flex)"),
        (SECOND, "SDPA (torch:sdpa)"),
        (FAINT, "SDPA that reads the mask as a dense tensor"),
        (INK, "the faster of both"),
    ];
    for (colour, words) in legend {
        figure.push(Item::Box([x, 64.0, BAR, BAR], colour));
        figure.text(Text::new(words, [x + BAR + 5.0, 74.0], SMALL).in_colour(QUIET));
        x += BAR + 5.0 + wide(words, SMALL) + 18.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts lie inside the page and none touches another, in a font that is somewhat wider than the measured one, too.
    #[track_caller]
    fn assert_readable(figure: &Figure) {
        let texts: Vec<&Text> =
            figure.items.iter().filter_map(|i| if let Item::Text(t) = i { Some(t) } else { None }).collect();
        let room = |text: &Text| Text { size: text.size * 1.04, ..text.clone() }.room();
        for (at, text) in texts.iter().enumerate() {
            let [l, t, r, b] = room(text);
            let inside = l >= 0.0 && t >= 0.0 && r <= figure.size[0] && b <= figure.size[1];
            assert!(inside, "`{}` leaves the page", text.words);
            for other in &texts[..at] {
                let [ol, ot, or, ob] = room(other);
                assert!(l >= or || ol >= r || t >= ob || ot >= b, "`{}` touches `{}`", text.words, other.words);
            }
        }
    }

    #[test]
    fn the_readmes_chart_is_drawn_from_the_committed_runs() {
        let collection = richest(embedded()).expect("runs");
        let kept = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/images/recorded.svg"));
        let made = drawn(collection).expect("a chart").files("recorded.svg").expect("a file");
        assert!(
            made[0].bytes == kept.as_bytes(),
            "draw it anew: maskloom bench recorded --chart docs/images/recorded.svg"
        );
    }

    #[test]
    fn no_text_touches_another_and_each_ratio_is_a_quotient_of_medians() {
        let mut collection = richest(embedded()).expect("runs").clone();
        assert_readable(&drawn(&collection).expect("drawn"));
        collection.runs.retain(|name, _| name == "causal");
        let report = &collection.runs["causal"].report;
        let ms = |backend| report.median_ms(backend).expect("timed");
        let (flex, sdpa) = (ms(BackendName::TorchFlex), ms(BackendName::TorchSdpa));
        let of = forward_of(report);
        assert_eq!((of.flex, of.sdpa), (Some(flex / ms(BackendName::Flex)), Some(sdpa / ms(BackendName::Flex))));
        assert!(!of.dense && backward_of(report).flex.is_some());
        let one = drawn(&collection).expect("drawn");
        assert_readable(&one);
        let shown = format!("{:.2} (n 1)", flex / ms(BackendName::Flex));
        let has = |words: &str| one.items.iter().any(|i| matches!(i, Item::Text(t) if t.words == words));
        assert!(has(&shown), "{shown}");
        let (from, _) = source(&collection);
        let said = one.described.ends_with(&from.sentence()) && from.brief().starts_with("recorded on NVIDIA");
        assert!(said, "{}", one.described);
    }

    #[test]
    fn a_version_is_written_with_dots() {
        assert_eq!(["91900", "91002", "unknown"].map(dotted), ["9.19.0", "9.10.2", "unknown"]);
    }

    #[test]
    fn runs_without_pytorch_have_no_chart() {
        let mut collection = embedded()[0].clone();
        collection.runs.retain(|name, _| name == "alibi");
        assert_eq!(drawn(&collection).unwrap_err().code, "no-pytorch");
    }
}
