//! Pages of the mask lab: an HTML file that needs no other.
//!
//! Invariant: text of the user stays text. Must not know measures.

use base64::Engine;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}\
pre{background:#f6f6f3;padding:.8rem;overflow:auto}img{image-rendering:pixelated;max-width:100%}figcaption{color:#555}";

/// A page under construction.
pub struct Page {
    out: String,
}

impl Page {
    /// A page with a title.
    pub fn new(title: &str) -> Page {
        let title = escaped(title);
        let out = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n\
             <p>Made by Maskloom {}.</p>\n",
            env!("CARGO_PKG_VERSION")
        );
        Page { out }
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) {
        self.out.push_str(&format!("<h2>{}</h2>\n", escaped(text)));
    }

    /// A paragraph.
    pub fn text(&mut self, text: &str) {
        self.out.push_str(&format!("<p>{}</p>\n", escaped(text)));
    }

    /// Lines as they stand.
    pub fn lines(&mut self, text: &str) {
        self.out.push_str(&format!("<pre>{}</pre>\n", escaped(text)));
    }

    /// A PNG with a caption.
    pub fn picture(&mut self, png: &[u8], caption: &str) {
        let data = base64::engine::general_purpose::STANDARD.encode(png);
        let caption = escaped(caption);
        self.out.push_str(&format!(
            "<figure><img alt=\"{caption}\" src=\"data:image/png;base64,{data}\"><figcaption>{caption}</figcaption></figure>\n"
        ));
    }

    /// The whole page.
    pub fn end(self) -> String {
        self.out + "</body></html>\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_text_stays_text() {
        let mut page = Page::new("<b>mine</b>");
        page.lines("a < b");
        page.picture(&[1, 2, 3], "\"x\"");
        let text = page.end();
        assert!(!text.contains("<b>") && text.contains("a &lt; b") && text.contains("base64,AQID"), "{text}");
    }
}
