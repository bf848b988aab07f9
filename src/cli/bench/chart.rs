//! `maskloom bench recorded --chart F.svg`: how much faster flex is than what a user would run instead in the recorded runs, as a picture.
//!
//! Invariant: every bar is a quotient of two recorded medians of one run, to the fastest of the others; card, date and versions are those
//! of the runs that are drawn. Must not know how they were measured.

use super::recorded::{backward, mean_of, nearest, range};
use crate::base::provenance::Place;
use crate::base::{BackendName, Diagnostic, Provenance};
use crate::export::figure::{Anchor, Colour, Figure, GRID, INK, Item, QUIET, Text, width};
use crate::problem::facts::MaskRead;
use crate::problem::result::{GradientOutcome, Outcome, RunReport, Timing};
use crate::tasks::recorded::{Collection, embedded};
use crate::worker::files;
use std::path::Path;

/// What a user would run instead: backend, colour of its bars, word behind its number, words of the legend.
const OTHERS: [(BackendName, Colour, &str, &str); 4] = [
    (BackendName::TorchFlex, [0x0b, 0x57, 0xa4], "Triton", "FlexAttention, Triton"),
    (BackendName::TorchFlexFlash, [0x1a, 0x7f, 0x37], "FLASH", "FlexAttention, FlashAttention-4"),
    (BackendName::CudnnFlex, [0x82, 0x50, 0xdf], "cuDNN", "cudnn.flex_attention"),
    (BackendName::TorchSdpa, [0xb3, 0x59, 0x00], "SDPA", "SDPA"),
];
/// SDPA that reads the mask as a tensor.
const DENSE: (Colour, &str) = ([0xe3, 0xb5, 0x87], "SDPA, dense mask");

type TimeOf = fn(&RunReport, BackendName) -> Option<&Timing>;
/// The times of both passes.
const PASSES: [(&str, TimeOf); 2] =
    [("Forward pass", |report, backend| report.timing(backend)), ("Backward pass", backward)];

/// The fastest of the others in one pass of one preset.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Nearest {
    /// Its time over that of flex.
    ratio: f64,
    colour: Colour,
    word: &'static str,
}

/// A preset: forward, backward.
type Row<'a> = (&'a String, [Option<Nearest>; 2]);

/// The chart of a file of recorded runs; None: of the shipped one with most of PyTorch. Only rows whose name contains a word; `mean`
/// is the means alone. Errors: no such file, no PyTorch in it, no such row.
pub(super) fn of(from: Option<&Path>, only: &str) -> Result<Figure, Diagnostic> {
    let read = from.map(|path| Collection::from_json(&files::read_text(path)?)).transpose()?;
    let found = read.as_ref().or_else(|| richest(embedded()));
    drawn(found.ok_or_else(|| Diagnostic::error("no-run", "no recorded run ships with this program"))?, only)
}

/// Of the collections, the one with most presets beside PyTorch.
fn richest(all: &[Collection]) -> Option<&Collection> {
    all.iter().max_by_key(|collection| beside(collection).count())
}

fn beside(collection: &Collection) -> impl Iterator<Item = (&String, &RunReport)> + Clone {
    let reports = collection.runs.iter().map(|(name, run)| (name, &run.report));
    reports.filter(|(_, report)| nearest_of(report, 0).is_some())
}

fn nearest_of(report: &RunReport, pass: usize) -> Option<Nearest> {
    let timing = PASSES[pass].1;
    let ratio = |backend| nearest(report, &[backend], timing);
    let found =
        OTHERS.into_iter().filter_map(|(b, colour, word, _)| Some((b, Nearest { ratio: ratio(b)?, colour, word })));
    let (backend, found) = found.min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))?;
    let colour = if reads_dense(report, backend, pass) { DENSE.0 } else { found.colour };
    Some(Nearest { colour, ..found })
}

/// Whether SDPA read the mask as a tensor.
fn reads_dense(report: &RunReport, backend: BackendName, pass: usize) -> bool {
    let mut forward = report.backends.iter().filter(|row| row.backend == backend);
    let mut back = report.gradients.iter().filter(|row| row.backend == backend);
    let kernel = match pass {
        0 => forward.find_map(|row| if let Outcome::Done { kernel, .. } = &row.outcome { Some(kernel) } else { None }),
        _ => back
            .find_map(|row| if let GradientOutcome::Done { kernel, .. } = &row.outcome { Some(kernel) } else { None }),
    };
    backend == BackendName::TorchSdpa && kernel.is_some_and(|kernel| kernel.facts.mask == MaskRead::Dense)
}

const PAGE: f64 = 900.0;
const MARGIN: f64 = 20.0;
const TOP: f64 = 134.0;
const ROW: f64 = 15.0;
const BAR: f64 = 10.0;
/// Kept free behind the longest bar for its number.
const NUMBER: f64 = 84.0;
const TICKS: [f64; 8] = [0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0, 500.0];
/// Sizes of names, of what explains, and of the numbers behind bars.
const PLAIN: f64 = 12.0;
const SMALL: f64 = 11.0;
const NUMBERS: f64 = 10.0;
/// How much wider than the font that is measured a reader's own font may be.
const ROOM: f64 = 1.25;

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

    fn bar(&self, figure: &mut Figure, colour: Colour, row: usize, ratio: f64, words: &str) {
        let (one, end, y) = (self.x(1.0), self.x(ratio), top(row));
        figure.push(Item::Box([one.min(end), y, (end - one).abs().max(1.0), BAR], colour));
        figure.text(Text::new(words, [one.max(end) + 4.0, y + BAR - 1.5], NUMBERS));
    }
}

/// Where the bars of a row begin.
fn top(row: usize) -> f64 {
    TOP + ROW * row as f64 + (ROW - BAR) / 2.0
}

/// Means over each of the others, then over the fastest, then a free row.
const MEANS: usize = OTHERS.len() + 2;

/// The rows that are shown: those whose name contains a word, without a free row between; all of them without a word.
struct Shown(Vec<(usize, String)>, bool);

impl Shown {
    fn new(rows: &[Row<'_>], only: &str) -> Result<Shown, Diagnostic> {
        let mut named = labels(rows);
        named.retain(|(_, name)| name.contains(only));
        if named.is_empty() {
            let words = format!("no row of the chart has `{only}` in its name");
            return Err(Diagnostic::error("no-run", words));
        }
        Ok(Shown(named, only.is_empty()))
    }

    /// Where a row is drawn.
    fn at(&self, row: usize) -> Option<usize> {
        let at = self.0.iter().position(|(one, _)| *one == row)?;
        Some(if self.1 { row } else { at })
    }

    fn rows(&self) -> usize {
        self.0.last().map_or(0, |(row, _)| if self.1 { row + 1 } else { self.0.len() })
    }
}

/// The chart. Errors: none of the others was timed in any run; no such row.
fn drawn(collection: &Collection, only: &str) -> Result<Figure, Diagnostic> {
    let rows: Vec<Row<'_>> =
        beside(collection).map(|(name, r)| (name, [0, 1].map(|pass| nearest_of(r, pass)))).collect();
    if rows.is_empty() {
        return Err(Diagnostic::error("no-pytorch", "PyTorch was timed in none of these runs").hint(
            "name a file of recorded runs with torch:flex or torch:sdpa, such as presets/recorded/nvidia_h100.json",
        ));
    }
    let (from, with) = source(collection);
    let shown = Shown::new(&rows, only)?;
    let bottom = TOP + ROW * shown.rows() as f64;
    let mut figure = Figure::new([PAGE, bottom + 78.0], &format!("{TITLE}."), &from);
    figure.follows_theme = true;
    head(&mut figure, &[from.sentence(), format!("{with}; {} presets.", rows.len())]);
    let label = shown.0.iter().map(|(_, name)| wide(name, PLAIN)).fold(0.0, f64::max) + MARGIN + 12.0;
    let half = (PAGE - label - MARGIN) / 2.0;
    for (pass, (title, _)) in PASSES.iter().enumerate() {
        let left = label + half * pass as f64;
        let means = means(collection, &rows, pass);
        let means: Vec<_> =
            means.into_iter().filter_map(|(row, of, mean, n)| Some((shown.at(row)?, of, mean, n))).collect();
        let bars: Vec<(usize, Nearest)> =
            rows.iter().enumerate().filter_map(|(at, (_, of))| Some((shown.at(at + MEANS)?, of[pass]?))).collect();
        let all = || bars.iter().map(|(_, of)| of.ratio).chain(means.iter().map(|mean| mean.2));
        let (least, most) = (all().fold(1.0, f64::min) / 1.05, all().fold(2.0, f64::max) * 1.05);
        let panel = Panel { left, right: left + half - 12.0, least, most };
        panel.grid(&mut figure, title, bottom);
        means.iter().for_each(|(row, colour, mean, count)| {
            panel.bar(&mut figure, *colour, *row, *mean, &format!("{mean:.2} (n {count})"))
        });
        for (row, Nearest { ratio, colour, word }) in bars {
            panel.bar(&mut figure, colour, row, ratio, &format!("{ratio:.2} {word}"));
        }
    }
    for (row, name) in &shown.0 {
        let place = [label - 10.0, top(shown.at(*row).expect("a row that is shown")) + BAR - 1.0];
        figure.text(Text::new(name, place, PLAIN).anchored(Anchor::End));
    }
    for (at, line) in FOOT.into_iter().enumerate() {
        let place = [MARGIN, bottom + 26.0 + 17.0 * at as f64];
        figure.text(Text::new(line, place, SMALL).in_colour(QUIET));
    }
    Ok(figure)
}

const TITLE: &str = "Time of the fastest of what a user would run instead, over that of Maskloom's flex kernel";
const FOOT: [&str; 3] = [
    "Logarithmic scale. 1x: as fast as Maskloom's kernel; longer to the right: the other takes so many times as long; to the left: it is faster.",
    "Each number is a quotient of the medians of one run, of the GPU's work alone. No bar: none of the others was timed and right.",
    "The first rows are geometric means over each of the others, where it was timed, and over the fastest in each preset.",
];

/// The names of the rows, with their places.
fn labels(rows: &[Row<'_>]) -> Vec<(usize, String)> {
    let of = |(at, (_, _, word, _)): (usize, &(BackendName, Colour, &str, &str))| (at, format!("mean over {word}"));
    let mut named: Vec<(usize, String)> = OTHERS.iter().enumerate().map(of).collect();
    named.push((OTHERS.len(), "mean over the fastest".into()));
    named.extend(rows.iter().enumerate().map(|(at, (name, _))| (at + MEANS, name.to_string())));
    named
}

/// Geometric means: row, colour, the mean and of how many.
fn means(collection: &Collection, rows: &[Row<'_>], pass: usize) -> Vec<(usize, Colour, f64, usize)> {
    let over = |backend| beside(collection).filter_map(move |(_, r)| nearest(r, &[backend], PASSES[pass].1)).collect();
    let mut all: Vec<(usize, Colour, Vec<f64>)> =
        OTHERS.iter().enumerate().map(|(at, (backend, colour, ..))| (at, *colour, over(*backend))).collect();
    all.push((OTHERS.len(), INK, rows.iter().filter_map(|(_, of)| Some(of[pass]?.ratio)).collect()));
    all.into_iter().filter_map(|(row, colour, ratios)| Some((row, colour, mean_of(&ratios)?, ratios.len()))).collect()
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
    let named = |words: &'static str| match said(words).as_str() {
        "unknown" => String::new(),
        version => format!(", {words} {version}"),
    };
    let device = range(reports().map(|report| &report.device_name));
    let from = Provenance::Recorded(Place { device, date: Some(said("date")), ..Place::default() });
    let with = format!(
        "PyTorch {}, cuDNN {}, Triton {}{}{}",
        said("torch"),
        dotted(&said("torch cudnn")),
        said("triton"),
        named("flash-attn-4"),
        named("nvidia-cudnn-frontend"),
    );
    (from, with)
}

/// Title, source and legend.
fn head(figure: &mut Figure, source: &[String; 2]) {
    figure.text(Text::new(TITLE, [MARGIN, 26.0], 16.0));
    for (at, line) in source.iter().enumerate() {
        figure.text(Text::new(line, [MARGIN, 44.0 + 16.0 * at as f64], SMALL).in_colour(QUIET));
    }
    let mut x = MARGIN;
    for (colour, words) in OTHERS.into_iter().map(|(_, colour, _, words)| (colour, words)).chain([DENSE]) {
        figure.push(Item::Box([x, 72.0, BAR, BAR], colour));
        figure.text(Text::new(words, [x + BAR + 5.0, 81.0], SMALL).in_colour(QUIET));
        x += BAR + 5.0 + wide(words, SMALL) + 14.0;
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
        let made = drawn(collection, "").expect("a chart").files("recorded.svg").expect("a file");
        assert!(
            made[0].bytes == kept.as_bytes(),
            "draw it anew: maskloom bench recorded --chart docs/images/recorded.svg"
        );
        let kept = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/images/means.svg"));
        let means = drawn(collection, "mean").expect("a chart");
        assert_readable(&means);
        assert!(
            means.files("means.svg").expect("a file")[0].bytes == kept.as_bytes(),
            "draw it anew: maskloom bench recorded --only mean --chart docs/images/means.svg"
        );
    }

    #[test]
    fn a_chart_shows_the_rows_that_were_asked_for() {
        let collection = richest(embedded()).expect("runs");
        let names = |only: &str| -> Vec<String> {
            let figure = drawn(collection, only).expect("drawn");
            let ends = |i: &Item| match i {
                Item::Text(text) if matches!(text.anchor, Anchor::End) => Some(text.words.clone()),
                _ => None,
            };
            figure.items.iter().filter_map(ends).collect()
        };
        assert_eq!(names("mean").len(), OTHERS.len() + 1);
        assert_eq!(names("wan_radial"), ["wan_radial"]);
        assert_eq!(names("").len(), names("mean").len() + beside(collection).count());
        assert_eq!(drawn(collection, "no such row").unwrap_err().code, "no-run");
    }

    #[test]
    fn no_text_touches_another_and_each_ratio_is_a_quotient_of_medians() {
        let mut collection = richest(embedded()).expect("runs").clone();
        assert_readable(&drawn(&collection, "").expect("drawn"));
        collection.runs.retain(|name, _| name == "causal");
        let report = &collection.runs["causal"].report;
        let ms = |backend| report.median_ms(backend).expect("timed");
        let fastest = OTHERS.map(|(backend, ..)| ms(backend)).into_iter().fold(f64::INFINITY, f64::min);
        let of = nearest_of(report, 0).expect("one was timed");
        assert_eq!((of.ratio, of.word), (fastest / ms(BackendName::Flex), "cuDNN"));
        // is_causal is no dense mask
        assert!(!reads_dense(report, BackendName::TorchSdpa, 0) && nearest_of(report, 1).is_some());
        let one = drawn(&collection, "").expect("drawn");
        assert_readable(&one);
        for shown in [
            format!("{:.2} cuDNN", of.ratio),
            format!("{:.2} (n 1)", ms(BackendName::TorchFlex) / ms(BackendName::Flex)),
        ] {
            let has = |i: &Item| matches!(i, Item::Text(t) if t.words == shown);
            assert!(one.items.iter().any(has), "{shown}");
        }
        let (from, _) = source(&collection);
        let said = one.described.ends_with(&from.sentence()) && from.brief().starts_with("recorded on NVIDIA");
        assert!(said, "{}", one.described);
    }

    #[test]
    fn sdpa_that_reads_a_dense_mask_has_bars_of_its_own() {
        let collection = richest(embedded()).expect("runs");
        let report = &collection.runs["kerple"].report;
        assert_eq!(nearest_of(report, 0).map(|of| (of.word, of.colour)), Some(("SDPA", DENSE.0)));
    }

    #[test]
    fn a_version_is_written_with_dots() {
        assert_eq!(["91900", "91002", "unknown"].map(dotted), ["9.19.0", "9.10.2", "unknown"]);
    }

    #[test]
    fn runs_without_pytorch_have_no_chart() {
        let mut collection = embedded()[0].clone();
        collection.runs.retain(|name, _| name == "wan_natten_3d");
        drawn(&collection, "").expect("beside PyTorch");
        let run = collection.runs.get_mut("wan_natten_3d").expect("recorded");
        run.report.backends.retain(|report| [BackendName::Flex, BackendName::Sdpa].contains(&report.backend));
        assert_eq!(drawn(&collection, "").unwrap_err().code, "no-pytorch");
    }
}
