//! Figures for papers: rectangles, lines, text and pictures at places in points, as SVG or PDF.
//!
//! Invariant: both files show the same items at the same places; text stays text, in fonts that the PDF holds. Must not know what is drawn.

mod pdf;
pub mod plots;
mod svg;
mod text;

use super::{ExportFile, ExportKind};
use crate::base::words::is_number;
use crate::base::{Diagnostic, Provenance};
pub use text::width;

/// Red, green, blue.
pub type Colour = [u8; 3];

/// Text and axes.
pub const INK: Colour = [0x1f, 0x23, 0x28];
/// What explains.
pub const QUIET: Colour = [0x59, 0x63, 0x6e];
/// Lines behind data.
pub const GRID: Colour = [0xd1, 0xd9, 0xe0];
/// Colours on a white page, and on a dark one.
const DARK: [(Colour, Colour); 9] = [
    ([0xff, 0xff, 0xff], [0x0d, 0x11, 0x17]),
    (INK, [0xe6, 0xed, 0xf3]),
    (QUIET, [0x91, 0x98, 0xa1]),
    (GRID, [0x3d, 0x44, 0x4d]),
    ([0x0b, 0x57, 0xa4], [0x4f, 0x9c, 0xf5]),
    ([0xb3, 0x59, 0x00], [0xe0, 0x8b, 0x35]),
    ([0x1a, 0x7f, 0x37], [0x3f, 0xb9, 0x50]),
    ([0x82, 0x50, 0xdf], [0xa3, 0x71, 0xf7]),
    ([0xe3, 0xb5, 0x87], [0x7d, 0x55, 0x28]),
];
/// Borders of segments.
pub const BORDER: Colour = [0xaa, 0x00, 0x55];

/// Where a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// A text on one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Its words.
    pub words: String,
    /// Its place on the baseline: right, down.
    pub at: [f64; 2],
    /// Its height in points.
    pub size: f64,
    /// Which end stands at its place.
    pub anchor: Anchor,
    /// Whether it runs upwards.
    pub up: bool,
    /// Its colour.
    pub colour: Colour,
}

impl Text {
    /// A text that begins at a place.
    pub fn new(words: impl Into<String>, at: [f64; 2], size: f64) -> Text {
        Text { words: words.into(), at, size, anchor: Anchor::Start, up: false, colour: INK }
    }

    /// The same with another end at its place.
    pub fn anchored(self, anchor: Anchor) -> Text {
        Text { anchor, ..self }
    }

    /// The same in another colour.
    pub fn in_colour(self, colour: Colour) -> Text {
        Text { colour, ..self }
    }

    /// Left, top, right and bottom of what it may fill.
    pub fn room(&self) -> [f64; 4] {
        let long = width(&self.words, self.size);
        let before = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => long / 2.0,
            Anchor::End => long,
        };
        let ([x, y], high, low) = (self.at, 0.95 * self.size, 0.25 * self.size);
        match self.up {
            false => [x - before, y - high, x - before + long, y + low],
            true => [x - high, y + before - long, x + low, y + before],
        }
    }
}

/// One thing of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Left, top, width, height, filled.
    Box([f64; 4], Colour),
    /// From, to, thickness, dashes.
    Line([f64; 2], [f64; 2], f64, bool, Colour),
    /// Words.
    Text(Text),
    /// A picture of pixels, drawn without smoothing: left, top, width, height; red, green and blue bytes; pixels across and down.
    Pixels([f64; 4], Vec<u8>, [usize; 2]),
}

/// A figure that is being drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Points across and down.
    pub size: [f64; 2],
    /// A description for those who cannot see it, with where its numbers come from.
    pub described: String,
    /// In the order of drawing.
    pub items: Vec<Item>,
    /// The numbers behind it as a table: names, then rows. None: it has no chart.
    pub data: Option<Vec<Vec<String>>>,
    /// Whether it is dark on dark pages, as SVG: for pages, not for paper.
    pub follows_theme: bool,
}

impl Figure {
    /// An empty one. What is drawn also says where its numbers come from.
    pub fn new(size: [f64; 2], described: &str, from: &Provenance) -> Figure {
        let described = format!("{described} {}", from.sentence());
        Figure { size, described, items: Vec::new(), data: None, follows_theme: false }
    }

    /// A caption, and below it where the numbers come from and what made the figure. Gives the line below.
    fn sign(&mut self, caption: &str, from: &Provenance, at: [f64; 2], size: f64, across: f64) -> f64 {
        self.prose(format!("{caption} {}", from.caption()).trim_start(), at, size, across)
    }

    /// Adds an item.
    pub fn push(&mut self, item: Item) {
        self.items.push(item);
    }

    /// Adds a text.
    pub fn text(&mut self, text: Text) {
        self.items.push(Item::Text(text));
    }

    /// Paragraphs below each other from a line on, broken to a width. Gives the line below.
    fn prose(&mut self, words: &str, [x, mut y]: [f64; 2], size: f64, across: f64) -> f64 {
        for line in text::broken(words, size, across) {
            self.text(Text::new(line, [x, y], size).in_colour(QUIET));
            y += size * 1.35;
        }
        y
    }

    /// The files of a name that ends in `.svg` or `.pdf`: the figure, and the data beside a chart as `.csv`. Errors: another ending, or text
    /// that cannot be put into a PDF.
    pub fn files(&self, name: &str) -> Result<Vec<ExportFile>, Diagnostic> {
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        let bytes = match ending.to_lowercase().as_str() {
            "svg" => svg::file(self).into_bytes(),
            "pdf" => pdf::bytes(self)?,
            _ => return Err(Diagnostic::error("figure-ending", format!("`{name}` ends neither in .svg nor in .pdf"))),
        };
        let mut files = vec![ExportFile::new(ExportKind::Page, name, bytes, "the figure")];
        if let Some(data) = &self.data {
            files.push(ExportFile::new(
                ExportKind::Page,
                format!("{stem}.csv"),
                csv(data),
                "the numbers behind the figure",
            ));
        }
        Ok(files)
    }
}

/// Rows as comma-separated values.
pub fn csv(rows: &[Vec<String>]) -> String {
    let cell = |text: &String| match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.clone(),
    };
    let line = |row: &Vec<String>| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
    // thousands apart are for readers
    rows.iter().map(line).collect::<String>().replace('\u{202f}', "")
}

/// Rows as a LaTeX table in the rules of booktabs, the first row as titles; columns of numbers stand right.
pub fn tex(rows: &[Vec<String>]) -> String {
    let Some((titles, body)) = rows.split_first() else { return String::new() };
    let column =
        |at: usize| if body.iter().all(|row| row.get(at).is_none_or(|cell| is_number(cell))) { 'r' } else { 'l' };
    let columns: String = (0..titles.len()).map(column).collect();
    let line = |row: &Vec<String>| {
        let mut cells: Vec<String> = row.iter().map(|cell| quoted(cell)).collect();
        cells.resize(titles.len().max(cells.len()), String::new());
        format!("{} \\\\\n", cells.join(" & "))
    };
    let body: String = body.iter().map(line).collect();
    format!(
        "\\begin{{tabular}}{{{columns}}}\n\\toprule\n{}\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n",
        line(titles)
    )
}

/// Text that stays text in LaTeX.
fn quoted(text: &str) -> String {
    let one = |c: char| match c {
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{c}"),
        '\\' => "\\textbackslash{}".into(),
        '~' => "\\textasciitilde{}".into(),
        '^' => "\\textasciicircum{}".into(),
        '\u{202f}' => "\\,".into(),
        'µ' => "$\\mu$".into(),
        '±' => "$\\pm$".into(),
        '<' => "$<$".into(),
        '>' => "$>$".into(),
        c => c.to_string(),
    };
    text.chars().map(one).collect()
}

#[cfg(test)]
mod tests;
