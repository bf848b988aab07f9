//! The figures of this program: a mask with its axes, times as bars, a sheet of small pictures.
//!
//! Invariant: every figure says what it is of, where its numbers come from, and its units; texts leave room for each other. Must not know files.

use super::{Anchor, BORDER, Colour, Figure, GRID, INK, Item, QUIET, Text, width};
use crate::base::Provenance;
use crate::document::model::Axis;

/// Points of a mask's longer side.
const SIDE: f64 = 300.0;
const MARGIN: f64 = 12.0;
const SMALL: f64 = 8.0;
const PLAIN: f64 = 9.0;
const TITLE: f64 = 12.0;

/// A mask or a bias as pixels, with what stands around it.
#[derive(Clone, Debug)]
pub struct MaskPlot<'a> {
    /// The design's name.
    pub title: &'a str,
    /// What it shows, with numbers.
    pub caption: &'a str,
    /// Red, green and blue bytes, row by row.
    pub rgb: Vec<u8>,
    /// Pixels across and down.
    pub pixels: [usize; 2],
    /// Query tokens shown.
    pub rows: [usize; 2],
    /// Key tokens shown.
    pub cols: [usize; 2],
    /// The query axis.
    pub q_axis: &'a Axis,
    /// The key axis.
    pub kv_axis: &'a Axis,
    /// Colours with their meaning.
    pub legend: Vec<(Colour, String)>,
    /// Where its numbers come from.
    pub from: Provenance,
}

/// Places of tokens that people like: multiples of a power of two, at most about six.
fn ticks([from, to]: [usize; 2]) -> Vec<usize> {
    let mut step = 1;
    while (to - from) / step > 6 {
        step *= 2;
    }
    (from.div_ceil(step)..=to / step).map(|n| n * step).collect()
}

/// A mask with its axes, legend, scale and caption.
pub fn mask(plot: &MaskPlot) -> Figure {
    let (tokens, many) = ([plot.rows[1] - plot.rows[0], plot.cols[1] - plot.cols[0]], [plot.rows, plot.cols]);
    let longer = tokens[0].max(tokens[1]).max(1) as f64;
    // a thin mask stays visible
    let side = |n: usize| (SIDE * n as f64 / longer).max(24.0);
    let (tall, wide) = (side(tokens[0]), side(tokens[1]));
    let numbers = many[0].map(|n| width(&n.to_string(), SMALL)).into_iter().fold(0.0, f64::max);
    let (left, top) = (MARGIN + 24.0 + numbers + 8.0, MARGIN + TITLE + 47.0);
    let across = (left + wide + MARGIN + 12.0).max(240.0);
    let mut figure = Figure::new([across, 0.0], &format!("{}. {}", plot.title, plot.caption), &plot.from);
    figure.text(Text::new(fitting(plot.title, TITLE, across - 2.0 * MARGIN), [MARGIN, MARGIN + TITLE], TITLE));
    figure.push(Item::Pixels([left, top, wide, tall], plot.rgb.clone(), plot.pixels));
    axis(&mut figure, plot.kv_axis, plot.cols, [left, top], [wide, tall], false);
    axis(&mut figure, plot.q_axis, plot.rows, [left, top], [wide, tall], true);
    for (from, to) in [
        ([left, top], [left + wide, top]),
        ([left, top + tall], [left + wide, top + tall]),
        ([left, top], [left, top + tall]),
        ([left + wide, top], [left + wide, top + tall]),
    ] {
        figure.push(Item::Line(from, to, 0.5, false, INK));
    }
    let middle = Text::new("keys (kv_idx, tokens)", [left + wide / 2.0, top - 33.0], PLAIN);
    figure.text(middle.anchored(Anchor::Middle));
    // a side that is too short for the words has the index alone
    let words = "queries (q_idx, tokens)";
    let words = if width(words, PLAIN) <= tall { words } else { "q_idx" };
    let upwards = Text::new(words, [MARGIN + 8.0, top + tall / 2.0], PLAIN);
    figure.text(Text { up: true, ..upwards.anchored(Anchor::Middle) });
    let mut y = top + tall + 18.0;
    y = legend(&mut figure, &plot.legend, y, across);
    y = figure.sign(plot.caption, &plot.from, [MARGIN, y + 6.0], SMALL, across - 2.0 * MARGIN);
    figure.size[1] = y + MARGIN - SMALL;
    figure
}

/// Numbers, names and borders of one axis of a mask at `at` of `size`.
fn axis(
    figure: &mut Figure,
    axis: &Axis,
    range: [usize; 2],
    [left, top]: [f64; 2],
    [wide, tall]: [f64; 2],
    down: bool,
) {
    let long = if down { tall } else { wide };
    let place = |token: usize| (token - range[0]) as f64 / (range[1] - range[0]).max(1) as f64 * long;
    let mut last = f64::NEG_INFINITY;
    for token in ticks(range) {
        let (p, words) = (place(token), token.to_string());
        let needed = if down { SMALL * 1.3 } else { width(&words, SMALL) + 6.0 };
        if p - last < needed {
            continue;
        }
        last = p;
        let (from, to) = match down {
            true => ([left - 3.0, top + p], [left, top + p]),
            false => ([left + p, top - 3.0], [left + p, top]),
        };
        figure.push(Item::Line(from, to, 0.5, false, INK));
        let text = match down {
            true => Text::new(words, [left - 5.0, top + p + SMALL * 0.35], SMALL).anchored(Anchor::End),
            false => Text::new(words, [left + p, top - 8.0], SMALL).anchored(Anchor::Middle),
        };
        figure.text(text);
    }
    let starts = axis.starts();
    for (at, segment) in axis.segments.iter().enumerate().filter(|_| axis.segments.len() > 1) {
        let (from, to) = (starts[at].max(range[0]), starts[at + 1].min(range[1]));
        if from >= to {
            continue;
        }
        let (a, b) = (place(from), place(to));
        if from > range[0] {
            let (from, to) = match down {
                true => ([left, top + a], [left + wide, top + a]),
                false => ([left + a, top], [left + a, top + tall]),
            };
            figure.push(Item::Line(from, to, 0.6, true, BORDER));
        }
        let name = segment.to_string();
        if width(&name, SMALL) > b - a {
            continue;
        }
        let text = match down {
            true => Text { up: true, ..Text::new(name, [MARGIN + 20.0, top + (a + b) / 2.0], SMALL) },
            false => Text::new(name, [left + (a + b) / 2.0, top - 20.0], SMALL),
        };
        figure.text(text.anchored(Anchor::Middle).in_colour(BORDER));
    }
}

/// Squares with their meaning, as many a line as fit. Gives the line below.
fn legend(figure: &mut Figure, entries: &[(Colour, String)], mut y: f64, across: f64) -> f64 {
    let mut x = MARGIN;
    for (colour, words) in entries {
        let needed = 12.0 + width(words, SMALL);
        if x > MARGIN && x + needed > across - MARGIN {
            (x, y) = (MARGIN, y + 12.0);
        }
        figure.push(Item::Box([x, y - 7.0, 8.0, 8.0], *colour));
        for (from, to) in [([x, y - 7.0], [x + 8.0, y - 7.0]), ([x, y + 1.0], [x + 8.0, y + 1.0])] {
            figure.push(Item::Line(from, to, 0.4, false, QUIET));
        }
        figure.text(Text::new(words.as_str(), [x + 12.0, y], SMALL));
        x += needed + 14.0;
    }
    y + 12.0
}

/// A text that is cut with dots where it is too long.
fn fitting(words: &str, size: f64, across: f64) -> String {
    if width(words, size) <= across {
        return words.to_string();
    }
    let mut kept: Vec<char> = words.chars().collect();
    while !kept.is_empty() && width(&kept.iter().collect::<String>(), size) + width("...", size) > across {
        kept.pop();
    }
    kept.into_iter().collect::<String>() + "..."
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Who.
    pub name: String,
    /// Milliseconds; None: it has no time.
    pub ms: Option<f64>,
    /// The smallest and the largest sample.
    pub range: Option<[f64; 2]>,
    /// What stands behind the bar, or instead of it.
    pub words: String,
    /// Its colour.
    pub colour: Colour,
}

/// Times as bars from zero, with whiskers over all samples.
pub fn bars(title: &str, groups: &[(&str, Vec<Bar>)], caption: &str, from: &Provenance) -> Figure {
    const ACROSS: f64 = 460.0;
    const ROW: f64 = 20.0;
    let groups: Vec<_> = groups.iter().filter(|(_, bars)| !bars.is_empty()).collect();
    let all = || groups.iter().flat_map(|(_, bars)| bars);
    let label = all().map(|bar| width(&bar.name, PLAIN)).fold(0.0, f64::max) + MARGIN + 8.0;
    let behind = all().filter(|b| b.ms.is_some()).map(|bar| width(&bar.words, SMALL)).fold(0.0, f64::max) + 10.0;
    let right = (ACROSS - MARGIN - behind).max(label + 80.0);
    let size = [ACROSS.max(right + behind + MARGIN), 0.0];
    let mut figure = Figure::new(size, &format!("{title}. {caption}"), from);
    let across = figure.size[0];
    figure.text(Text::new(fitting(title, TITLE, across - 2.0 * MARGIN), [MARGIN, MARGIN + TITLE], TITLE));
    let mut y = MARGIN + TITLE + 14.0;
    let mut data = vec![["pass", "backend", "median_ms", "min_ms", "max_ms", "note"].map(String::from).to_vec()];
    for (pass, bars) in &groups {
        let most = bars.iter().flat_map(|b| b.range.map(|r| r[1]).into_iter().chain(b.ms)).fold(0.0, f64::max);
        let step = round_step(most);
        let top = y + PLAIN + 6.0;
        figure.text(Text::new(
            format!("{pass}, milliseconds of the device's work (median; line: all samples)"),
            [MARGIN, y + PLAIN],
            SMALL,
        ));
        let bottom = top + ROW * bars.len() as f64;
        let place = |ms: f64| label + (right - label) * if most > 0.0 { ms / most } else { 0.0 };
        let mut mark = 0.0;
        while step > 0.0 && mark <= most * 1.0001 {
            let x = place(mark);
            figure.push(Item::Line([x, top], [x, bottom], 0.5, false, GRID));
            let words = Text::new(tick_words(mark), [x, bottom + SMALL + 2.0], SMALL);
            figure.text(words.anchored(Anchor::Middle).in_colour(QUIET));
            mark += step;
        }
        for (at, bar) in bars.iter().enumerate() {
            let row = top + ROW * at as f64;
            figure.text(Text::new(bar.name.as_str(), [label - 6.0, row + 13.0], PLAIN).anchored(Anchor::End));
            let end = bar.ms.map_or(label, place);
            figure.push(Item::Box([label, row + 4.0, end - label, ROW - 8.0], bar.colour));
            let mut after = end;
            if let Some([least, largest]) = bar.range {
                let (a, b) = (place(least), place(largest));
                figure.push(Item::Line([a, row + ROW / 2.0], [b, row + ROW / 2.0], 1.0, false, INK));
                after = after.max(b);
            }
            let room = across - MARGIN - after - 5.0;
            figure.text(Text::new(fitting(&bar.words, SMALL, room), [after + 5.0, row + 13.0], SMALL));
            let number = |n: Option<f64>| n.map_or(String::new(), |n| format!("{n:.6}"));
            data.push(vec![
                pass.to_string(),
                bar.name.clone(),
                number(bar.ms),
                number(bar.range.map(|r| r[0])),
                number(bar.range.map(|r| r[1])),
                bar.words.clone(),
            ]);
        }
        y = bottom + SMALL + 18.0;
    }
    y = figure.sign(caption, from, [MARGIN, y + 4.0], SMALL, across - 2.0 * MARGIN);
    figure.size[1] = y + MARGIN - SMALL;
    figure.data = Some(data);
    figure
}

/// 1, 2 or 5 times a power of ten, so that there are four to ten of them.
fn round_step(most: f64) -> f64 {
    if most <= 0.0 || !most.is_finite() {
        return 0.0;
    }
    let power = 10f64.powf((most / 4.0).log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|n| n * power).find(|step| most / step >= 4.0).unwrap_or(power)
}

fn tick_words(ms: f64) -> String {
    let text = format!("{ms:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Red, green and blue bytes; pixels across and down.
pub type Tile = (Vec<u8>, [usize; 2]);

/// Small pictures with their names, `across` a line.
pub fn sheet(
    title: &str,
    tiles: &[(String, Option<Tile>)],
    across: usize,
    legend_of: &[(Colour, String)],
    caption: &str,
    from: &Provenance,
) -> Figure {
    let across = across.clamp(1, 24);
    let side = (520.0 / across as f64).clamp(18.0, 72.0);
    let (wide, high) = (side + 6.0, side + SMALL + 6.0);
    let page = (2.0 * MARGIN + wide * across as f64).max(260.0);
    let mut figure = Figure::new([page, 0.0], &format!("{title}. {caption}"), from);
    figure.text(Text::new(fitting(title, TITLE, page - 2.0 * MARGIN), [MARGIN, MARGIN + TITLE], TITLE));
    let top = MARGIN + TITLE + 10.0;
    for (at, (name, tile)) in tiles.iter().enumerate() {
        let (x, y) = (MARGIN + wide * (at % across) as f64, top + high * (at / across) as f64);
        if let Some((rgb, size)) = tile {
            figure.push(Item::Pixels([x, y, side, side], rgb.clone(), *size));
            figure.text(Text::new(fitting(name, 6.0, side), [x, y + side + 7.0], 6.0).in_colour(QUIET));
        }
    }
    let mut y = top + high * tiles.len().div_ceil(across) as f64 + 8.0;
    y = legend(&mut figure, legend_of, y, page);
    y = figure.sign(caption, from, [MARGIN, y + 6.0], SMALL, page - 2.0 * MARGIN);
    figure.size[1] = y + MARGIN - SMALL;
    figure
}
