//! A small SVG picture of rectangles, lines and measured text, for light and dark pages.
//!
//! Invariant: colours are classes that follow the reader's theme, with those of a light page where style sheets are not read; every text knows
//! the rectangle that it may fill in a wide font. Must not know what is drawn.

use std::fmt::Write as _;

/// A class, its colour on a light page and that on a dark one.
const COLOURS: [(&str, &str, &str); 9] = [
    ("page", "#ffffff", "#0d1117"),
    ("ink", "#1f2328", "#e6edf3"),
    ("quiet", "#59636e", "#9198a1"),
    ("grid", "#d1d9e0", "#3d444d"),
    ("first", "#0b57a4", "#4f9cf5"),
    ("second", "#b35900", "#e08b35"),
    ("third", "#1a7f37", "#3fb950"),
    ("fourth", "#8250df", "#a371f7"),
    ("faint", "#e3b587", "#7d5528"),
];

/// Widths of the printable ASCII characters in thousandths of the size, in DejaVu Sans: most fonts of screens are narrower.
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636,
    636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863,
    748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635,
    615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
    337, 636, 838,
];

/// What bold text is wider than plain text, at most.
const BOLD: f64 = 1.16;

/// The width of a text in pixels, at most.
pub fn width(text: &str, size: f64, bold: bool) -> f64 {
    let one = |c: char| (c as usize).checked_sub(32).and_then(|at| WIDTHS.get(at)).map_or(1000.0, |w| f64::from(*w));
    text.chars().map(one).sum::<f64>() * size / 1000.0 * if bold { BOLD } else { 1.0 }
}

/// Where a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Its colour.
    pub class: &'static str,
    /// Its size in pixels.
    pub size: f64,
    /// Whether it is bold.
    pub bold: bool,
    /// Which end stands at its place.
    pub anchor: Anchor,
}

/// A picture that is being drawn.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
    /// Left, top, right and bottom of each text, with its words.
    pub texts: Vec<([f64; 4], String)>,
}

impl Svg {
    /// An empty page with a description for those who cannot see it.
    pub fn new(width: f64, height: f64, described: &str) -> Svg {
        let mut svg = Svg { width, height, body: String::new(), texts: Vec::new() };
        let _ = writeln!(svg.body, "<title>{}</title>", escaped(described));
        svg.rectangle("page", [0.0, 0.0, width, height]);
        svg
    }

    /// A filled rectangle: left, top, width, height.
    pub fn rectangle(&mut self, class: &str, [x, y, w, h]: [f64; 4]) {
        let fill = light(class);
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" fill=\"{fill}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\"/>"
        );
    }

    /// An upright line of one pixel.
    pub fn upright(&mut self, class: &str, x: f64, top: f64, bottom: f64) {
        self.rectangle(class, [x - 0.5, top, 1.0, bottom - top]);
    }

    /// A text whose baseline is at `y`.
    pub fn text(&mut self, look: Look, x: f64, y: f64, words: &str) {
        let Look { class, size, bold, anchor } = look;
        let wide = width(words, size, bold);
        let (left, word) = match anchor {
            Anchor::Start => (x, "start"),
            Anchor::Middle => (x - wide / 2.0, "middle"),
            Anchor::End => (x - wide, "end"),
        };
        self.texts.push(([left, y - 0.95 * size, left + wide, y + 0.25 * size], words.into()));
        let weight = if bold { " font-weight=\"bold\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" fill=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{word}\"{weight}>{}</text>",
            light(class),
            escaped(words)
        );
    }

    /// The file.
    pub fn finish(&self) -> String {
        let dark: String = COLOURS.iter().map(|(class, _, dark)| format!(".{class}{{fill:{dark}}}")).collect();
        let (w, h) = (self.width, self.height);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
             font-family=\"-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n\
             <style>@media (prefers-color-scheme: dark){{{dark}}}</style>\n{}</svg>\n",
            self.body
        )
    }
}

fn light(class: &str) -> &'static str {
    COLOURS.iter().find(|(name, ..)| *name == class).map_or("#000000", |(_, light, _)| light)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Asserts that all texts lie inside the page and none touches another.
#[cfg(test)]
#[track_caller]
pub fn assert_readable(svg: &Svg) {
    for (at, ([left, top, right, bottom], words)) in svg.texts.iter().enumerate() {
        let inside = *left >= 0.0 && *top >= 0.0 && *right <= svg.width && *bottom <= svg.height;
        assert!(inside, "`{words}` leaves the page of {} x {}", svg.width, svg.height);
        for ([l, t, r, b], other) in &svg.texts[..at] {
            assert!(left >= r || l >= right || top >= b || t >= bottom, "`{words}` touches `{other}`");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { class: "ink", size: 10.0, bold: false, anchor: Anchor::Start };

    #[test]
    fn texts_are_measured_and_characters_of_markup_escaped() {
        assert!((width("mi ", 10.0, false) - 15.7).abs() < 1e-9);
        let mut svg = Svg::new(100.0, 40.0, "a < b");
        svg.text(PLAIN, 0.0, 12.0, "a & b");
        svg.text(Look { anchor: Anchor::End, ..PLAIN }, 100.0, 12.0, "right");
        assert_readable(&svg);
        let text = svg.finish();
        assert!(text.contains("<title>a &lt; b</title>") && text.contains(">a &amp; b</text>"), "{text}");
        assert!(text.contains("prefers-color-scheme: dark") && text.contains(".ink{fill:#e6edf3}"), "{text}");
    }

    #[test]
    #[should_panic(expected = "touches")]
    fn texts_that_meet_are_found() {
        let mut svg = Svg::new(100.0, 40.0, "");
        svg.text(PLAIN, 0.0, 12.0, "a long text");
        svg.text(PLAIN, 30.0, 14.0, "another");
        assert_readable(&svg);
    }
}
