//! `maskloom bench recorded --chart F.svg`: how much faster flex is than what a user would run instead in the recorded runs, as a picture.
//!
//! Invariant: every bar is a quotient of two recorded medians of one run, to the fastest of the others; card, date and versions are those
//! of the runs that are drawn. Must not know how they were measured.

use super::super::svg::{Anchor, Look, Svg, width};
use super::recorded::{backward, mean_of, nearest, range};
use crate::base::{BackendName, Diagnostic};
use crate::problem::facts::MaskRead;
use crate::problem::result::{GradientOutcome, Outcome, RunReport, Timing};
use crate::tasks::recorded::{Collection, embedded};
use crate::worker::files;
use std::path::Path;

/// What a user would run instead: backend, class of its bars, word behind its number, words of the legend.
const OTHERS: [(BackendName, &str, &str, &str); 4] = [
    (BackendName::TorchFlex, "first", "Triton", "FlexAttention, Triton"),
    (BackendName::TorchFlexFlash, "third", "FLASH", "FlexAttention, FlashAttention-4"),
    (BackendName::CudnnFlex, "fourth", "cuDNN", "cudnn.flex_attention"),
    (BackendName::TorchSdpa, "second", "SDPA", "SDPA"),
];
/// SDPA that reads the mask as a tensor.
const DENSE: (&str, &str) = ("faint", "SDPA, dense mask");

type TimeOf = fn(&RunReport, BackendName) -> Option<&Timing>;
/// The times of both passes.
const PASSES: [(&str, TimeOf); 2] =
    [("Forward pass", |report, backend| report.timing(backend)), ("Backward pass", backward)];

/// The fastest of the others in one pass of one preset.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Nearest {
    /// Its time over that of flex.
    ratio: f64,
    class: &'static str,
    word: &'static str,
}

/// A preset: forward, backward.
type Row<'a> = (&'a String, [Option<Nearest>; 2]);

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
    reports.filter(|(_, report)| nearest_of(report, 0).is_some())
}

fn nearest_of(report: &RunReport, pass: usize) -> Option<Nearest> {
    let timing = PASSES[pass].1;
    let ratio = |backend| nearest(report, &[backend], timing);
    let found = OTHERS.iter().filter_map(|(b, class, word, _)| Some((*b, Nearest { ratio: ratio(*b)?, class, word })));
    let (backend, found) = found.min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))?;
    let class = if reads_dense(report, backend, pass) { DENSE.0 } else { found.class };
    Some(Nearest { class, ..found })
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

/// The file. Errors: PyTorch was timed in none of the runs.
fn chart(collection: &Collection) -> Result<String, Diagnostic> {
    drawn(collection).map(|svg| svg.finish())
}

const PAGE: f64 = 900.0;
const MARGIN: f64 = 20.0;
const TOP: f64 = 134.0;
const ROW: f64 = 15.0;
const BAR: f64 = 10.0;
/// Kept free behind the longest bar for its number.
const NUMBER: f64 = 84.0;
const TICKS: [f64; 8] = [0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0, 500.0];
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

    fn bar(&self, svg: &mut Svg, class: &str, row: usize, ratio: f64, words: &str) {
        let (one, end, y) = (self.x(1.0), self.x(ratio), top(row));
        svg.rectangle(class, [one.min(end), y, (end - one).abs().max(1.0), BAR]);
        svg.text(Look { size: 10.0, class: "ink", ..SMALL }, one.max(end) + 4.0, y + BAR - 1.5, words);
    }
}

/// Where the bars of a row begin.
fn top(row: usize) -> f64 {
    TOP + ROW * row as f64 + (ROW - BAR) / 2.0
}

/// Means over each of the others, then over the fastest, then a free row.
const MEANS: usize = OTHERS.len() + 2;

fn drawn(collection: &Collection) -> Result<Svg, Diagnostic> {
    let rows: Vec<Row<'_>> =
        beside(collection).map(|(name, r)| (name, [0, 1].map(|pass| nearest_of(r, pass)))).collect();
    if rows.is_empty() {
        return Err(Diagnostic::error("no-pytorch", "PyTorch was timed in none of these runs").hint(
            "name a file of recorded runs with torch:flex or torch:sdpa, such as presets/recorded/nvidia_h100.json",
        ));
    }
    let words = Words::of(collection, rows.len());
    let bottom = TOP + ROW * (rows.len() + MEANS) as f64;
    let mut svg = Svg::new(PAGE, bottom + 78.0, &format!("{}. {}", words.title, words.run));
    words.head(&mut svg);
    let named: Vec<(usize, String)> = labels(&rows);
    let widths = named.iter().map(|(row, name)| width(name, PLAIN.size, *row < MEANS));
    let label = widths.fold(0.0, f64::max) + MARGIN + 12.0;
    let half = (PAGE - label - MARGIN) / 2.0;
    for (pass, (title, _)) in PASSES.iter().enumerate() {
        let left = label + half * pass as f64;
        let means = means(collection, &rows, pass);
        let all = || rows.iter().filter_map(|(_, of)| Some(of[pass]?.ratio)).chain(means.iter().map(|mean| mean.2));
        let (least, most) = (all().fold(1.0, f64::min) / 1.05, all().fold(2.0, f64::max) * 1.05);
        let panel = Panel { left, right: left + half - 12.0, least, most };
        panel.grid(&mut svg, title, bottom);
        means.iter().for_each(|(row, class, mean, count)| {
            panel.bar(&mut svg, class, *row, *mean, &format!("{mean:.2} (n {count})"))
        });
        for (at, (_, of)) in rows.iter().enumerate() {
            let Some(Nearest { ratio, class, word }) = of[pass] else { continue };
            panel.bar(&mut svg, class, at + MEANS, ratio, &format!("{ratio:.2} {word}"));
        }
    }
    for (row, name) in named {
        let look = Look { bold: row < MEANS, anchor: Anchor::End, ..PLAIN };
        svg.text(look, label - 10.0, top(row) + BAR - 1.0, &name);
    }
    words.foot(&mut svg, bottom);
    Ok(svg)
}

/// The names of the rows, with their places.
fn labels(rows: &[Row<'_>]) -> Vec<(usize, String)> {
    let of = |(at, (_, _, word, _)): (usize, &(BackendName, &str, &str, &str))| (at, format!("mean over {word}"));
    let mut named: Vec<(usize, String)> = OTHERS.iter().enumerate().map(of).collect();
    named.push((OTHERS.len(), "mean over the fastest".into()));
    named.extend(rows.iter().enumerate().map(|(at, (name, _))| (at + MEANS, name.to_string())));
    named
}

/// Geometric means: row, class, the mean and of how many.
fn means(collection: &Collection, rows: &[Row<'_>], pass: usize) -> Vec<(usize, &'static str, f64, usize)> {
    let over = |backend| beside(collection).filter_map(move |(_, r)| nearest(r, &[backend], PASSES[pass].1)).collect();
    let mut all: Vec<(usize, &'static str, Vec<f64>)> =
        OTHERS.iter().enumerate().map(|(at, (backend, class, ..))| (at, *class, over(*backend))).collect();
    all.push((OTHERS.len(), "ink", rows.iter().filter_map(|(_, of)| Some(of[pass]?.ratio)).collect()));
    all.into_iter().filter_map(|(row, class, ratios)| Some((row, class, mean_of(&ratios)?, ratios.len()))).collect()
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
        let named = |words: &str, key: &'static str| match said(key).as_str() {
            "unknown" => String::new(),
            version => format!(", {words} {version}"),
        };
        let card = range(reports().map(|report| &report.device_name));
        Words {
            title: "Time of the fastest of what a user would run instead, over that of Maskloom's flex kernel".into(),
            run: format!(
                "{card}, {}, PyTorch {}, cuDNN {}, Triton {}{}{}; {presets} presets",
                said("date"),
                said("torch"),
                dotted(&said("torch cudnn")),
                said("triton"),
                named("flash-attn-4", "flash-attn-4"),
                named("nvidia-cudnn-frontend", "nvidia-cudnn-frontend"),
            ),
        }
    }

    fn head(&self, svg: &mut Svg) {
        svg.text(Look { size: 16.0, bold: true, ..PLAIN }, MARGIN, 30.0, &self.title);
        svg.text(SMALL, MARGIN, 50.0, &self.run);
        let mut x = MARGIN;
        for (class, words) in OTHERS.iter().map(|(_, class, _, words)| (*class, *words)).chain([DENSE]) {
            svg.rectangle(class, [x, 64.0, BAR, BAR]);
            svg.text(SMALL, x + BAR + 5.0, 73.0, words);
            x += BAR + 5.0 + width(words, SMALL.size, false) + 14.0;
        }
    }

    fn foot(&self, svg: &mut Svg, bottom: f64) {
        let lines = [
            "Logarithmic scale. 1x: as fast as Maskloom's kernel; longer to the right: the other takes so many times as long; to the left: it is faster.",
            "Each number is a quotient of the medians of one run, of the GPU's work alone. No bar: none of the others was timed and right.",
            "The first rows are geometric means over each of the others, where it was timed, and over the fastest in each preset.",
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
        let fastest = OTHERS.map(|(backend, ..)| ms(backend)).into_iter().fold(f64::INFINITY, f64::min);
        let of = nearest_of(report, 0).expect("one was timed");
        assert_eq!((of.ratio, of.word), (fastest / ms(BackendName::Flex), "cuDNN"));
        // is_causal is no dense mask
        assert!(!reads_dense(report, BackendName::TorchSdpa, 0) && nearest_of(report, 1).is_some());
        let one = drawn(&collection).expect("drawn");
        svg::assert_readable(&one);
        for shown in [
            format!("{:.2} cuDNN", of.ratio),
            format!("{:.2} (n 1)", ms(BackendName::TorchFlex) / ms(BackendName::Flex)),
        ] {
            assert!(one.texts.iter().any(|(_, words)| *words == shown), "{shown}");
        }
    }

    #[test]
    fn sdpa_that_reads_a_dense_mask_has_bars_of_its_own() {
        let collection = richest(embedded()).expect("runs");
        let report = &collection.runs["kerple"].report;
        assert_eq!(nearest_of(report, 0).map(|of| (of.word, of.class)), Some(("SDPA", DENSE.0)));
    }

    #[test]
    fn a_version_is_written_with_dots() {
        assert_eq!(["91900", "91002", "unknown"].map(dotted), ["9.19.0", "9.10.2", "unknown"]);
    }

    #[test]
    fn runs_without_pytorch_have_no_chart() {
        let mut collection = embedded()[0].clone();
        collection.runs.retain(|name, _| name == "wan_natten_3d");
        assert_eq!(chart(&collection).unwrap_err().code, "no-pytorch");
    }
}
