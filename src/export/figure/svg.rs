//! A figure as SVG.
//!
//! Invariant: it loads nothing. Must not know what is drawn.

use super::{Anchor, Colour, DARK, Figure, Item, Text, text};
use crate::document::page::escaped;
use crate::export::picture::encoded;
use base64::Engine;
use std::fmt::Write as _;

const FONTS: &str = "Ubuntu, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', 'Noto Sans', sans-serif";

/// The file's text.
pub(super) fn file(figure: &Figure) -> String {
    let [w, h] = figure.size;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}pt\" height=\"{h:.0}pt\" viewBox=\"0 0 {w:.2} {h:.2}\" role=\"img\" \
         font-family=\"{FONTS}\">\n{}<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        if figure.follows_theme { dark() } else { String::new() },
        escaped(&figure.described)
    );
    figure.items.iter().for_each(|item| out.push_str(&one(item)));
    out + "</svg>\n"
}

/// Each colour that has another on a dark page.
fn dark() -> String {
    let one = |(light, dark): &(Colour, Colour)| {
        let (light, dark) = (hex(*light), hex(*dark));
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    };
    let rules: String = DARK.iter().map(one).collect();
    format!("<style>@media (prefers-color-scheme: dark){{{rules}}}</style>\n")
}

/// The room of a text, which a viewer's other font then fills too; not of letters whose width is a bound.
fn length(text: &Text) -> String {
    match text::is_known(&text.words) && text.words.chars().count() > 1 {
        true => format!(" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\"", text::width(&text.words, text.size)),
        false => String::new(),
    }
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn one(item: &Item) -> String {
    let mut out = String::new();
    let _ = match item {
        Item::Box([x, y, w, h], colour) => writeln!(
            out,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{w:.2}\" height=\"{h:.2}\" fill=\"{}\"/>",
            hex(*colour)
        ),
        Item::Line([x, y], [to_x, to_y], thick, dashed, colour) => {
            let dashes = if *dashed { " stroke-dasharray=\"3 2\"" } else { "" };
            writeln!(
                out,
                "<path d=\"M{x:.2} {y:.2}L{to_x:.2} {to_y:.2}\" stroke=\"{}\" stroke-width=\"{thick}\" fill=\"none\"{dashes}/>",
                hex(*colour)
            )
        }
        Item::Text(text) => {
            let anchor = match text.anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let [x, y] = text.at;
            let turn = if text.up { format!(" transform=\"rotate(-90 {x:.2} {y:.2})\"") } else { String::new() };
            writeln!(
                out,
                "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\"{}{turn}>{}</text>",
                text.size,
                hex(text.colour),
                length(text),
                escaped(&text.words)
            )
        }
        Item::Pixels([x, y, w, h], rgb, [across, down]) => {
            // pixels that cannot be encoded are none
            let png = encoded(rgb, *across, *down).unwrap_or_default();
            let png = base64::engine::general_purpose::STANDARD.encode(png);
            writeln!(
                out,
                "<image x=\"{x:.2}\" y=\"{y:.2}\" width=\"{w:.2}\" height=\"{h:.2}\" preserveAspectRatio=\"none\" \
                 style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{png}\"/>"
            )
        }
    };
    out
}
