//! Pages of the mask lab: an HTML file without other files.
//!
//! Invariant: text of the user is escaped. Must not know measures.

use crate::base::Provenance;
use crate::document::page::escaped;
use base64::Engine;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}\
pre{background:#f6f6f3;padding:.8rem;overflow:auto}img{image-rendering:pixelated;max-width:100%}figcaption{color:#555}";

/// A page under construction.
pub(crate) struct Page {
    out: String,
}

impl Page {
    /// A page with a title, which says where its numbers come from.
    pub(crate) fn new(title: &str, from: &Provenance) -> Page {
        let (title, from) = (escaped(title), escaped(&from.caption()));
        let out = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n\
             <p>{from}</p>\n"
        );
        Page { out }
    }

    /// A heading.
    pub(crate) fn heading(&mut self, text: &str) {
        self.out.push_str(&format!("<h2>{}</h2>\n", escaped(text)));
    }

    /// A paragraph.
    pub(crate) fn text(&mut self, text: &str) {
        self.out.push_str(&format!("<p>{}</p>\n", escaped(text)));
    }

    /// Preformatted lines.
    pub(crate) fn lines(&mut self, text: &str) {
        self.out.push_str(&format!("<pre>{}</pre>\n", escaped(text)));
    }

    /// A PNG with a caption.
    pub(crate) fn picture(&mut self, png: &[u8], caption: &str) {
        let data = base64::engine::general_purpose::STANDARD.encode(png);
        let caption = escaped(caption);
        self.out.push_str(&format!(
            "<figure><img alt=\"{caption}\" src=\"data:image/png;base64,{data}\"><figcaption>{caption}</figcaption></figure>\n"
        ));
    }

    /// A plot of named points over two axes that begin at 0.
    pub(crate) fn plot(&mut self, points: &[(&str, [f64; 2])], names: [&str; 2]) {
        let most = |axis: usize| points.iter().map(|(_, p)| p[axis]).fold(0.0, f64::max).max(1e-9) * 1.15;
        let (wide, high, left, top) = (560.0, 300.0, 60.0, 10.0);
        let at = |p: [f64; 2]| [left + wide * p[0] / most(0), top + high * (1.0 - p[1] / most(1))];
        let mut svg = format!(
            "<svg viewBox=\"0 0 760 350\" width=\"760\" role=\"img\" aria-label=\"{} against {}\" font-size=\"11\">\n\
             <path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#888\"/>\n",
            escaped(names[1]),
            escaped(names[0]),
            bottom = top + high,
            right = left + wide
        );
        for part in 1..=4 {
            let share = f64::from(part) / 4.0;
            let [x, y] = [most(0) * share, most(1) * share];
            let [px, py] = at([x, y]);
            svg.push_str(&format!(
                "<text x=\"{px:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{x:.3}</text><text x=\"{:.1}\" y=\"{py:.1}\" text-anchor=\"end\">{y:.3}</text>\n",
                top + high + 14.0,
                left - 4.0
            ));
        }
        for (name, point) in points {
            let [x, y] = at(*point);
            svg.push_str(&format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#0b2f5b\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                x + 6.0,
                y - 4.0,
                escaped(name)
            ));
        }
        svg.push_str(&format!(
            "<text x=\"{}\" y=\"{}\">{}</text></svg>\n",
            left + wide / 2.0,
            top + high + 32.0,
            escaped(names[0])
        ));
        self.out.push_str(&format!(
            "<figure>{svg}<figcaption>{}</figcaption></figure>\n",
            escaped(&format!("{} against {}", names[1], names[0]))
        ));
    }

    /// The whole page.
    pub(crate) fn end(self) -> String {
        self.out + "</body></html>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_text_stays_text() {
        let mut page = Page::new("<b>mine</b>", &Provenance::inputs("a<b>.safetensors"));
        page.lines("a < b");
        page.picture(&[1, 2, 3], "\"x\"");
        let text = page.end();
        assert!(text.contains("<p>Q and k of a&lt;b&gt;.safetensors. Made by Maskloom "), "{text}");
        assert!(!text.contains("<b>") && text.contains("a &lt; b") && text.contains("base64,AQID"), "{text}");
    }
}
