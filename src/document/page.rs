//! A design as one HTML file: a picture that zooms, numbers, code, provenance, and the document itself.
//!
//! Invariant: the page loads nothing; a user's text stays text; a page with a design gives an equal document back. The program and the
//! Python package fill the same template. Must not know how pictures are drawn, nor runs.

pub use super::labels::{Label, Text};

use super::file;
use super::model::{Axes, Axis, Document, Layer, MaskContent, ScoreContent, ScoreLayer, Settings, TextCode};
use crate::base::provenance::maskloom;
use crate::base::{BlockSize, Diagnostic, Lengths, Provenance};
use crate::ir::graph::Mod;
use crate::ir::passes::simplify::simplify;
use crate::ir::print::{Names, any_range, function};
use base64::Engine;
use serde_json::{Value, json};

const TEMPLATE: &str = include_str!("../../assets/share/page.html");
const OPENS: &str = "<script type=\"application/json\" id=\"maskloom-design\">";
const CLOSES: &str = "</script>";

/// The language of a page: its code, and what a text of the page is in it.
#[derive(Clone, Copy)]
pub struct Tongue<'a> {
    /// Such as `zh`.
    pub code: &'a str,
    /// The text in this language.
    pub tell: &'a dyn Fn(&Text<'_>) -> String,
}

impl Tongue<'static> {
    /// The language that all texts are written in.
    pub const ENGLISH: Tongue<'static> = Tongue { code: "en", tell: &|text| text.to_string() };
}

impl std::fmt::Debug for Tongue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tongue({})", self.code)
    }
}

/// Words of the page's script, by their names there.
const SCRIPT: [(&str, Label); 4] =
    [("nothing", Label::Nothing), ("kept", Label::Kept), ("share", Label::Share), ("to", Label::To)];
/// Words of the template, by their places.
const LABELS: [(&str, Label); 5] = [
    ("MASK", Label::Mask),
    ("KEYS", Label::Keys),
    ("HINT", Label::Hint),
    ("CODE_TITLE", Label::Code),
    ("PROVENANCE_TITLE", Label::Provenance),
];

/// What a page holds.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// Its title.
    pub title: &'a str,
    /// A description in paragraphs.
    pub about: &'a str,
    /// The picture: a PNG.
    pub picture: &'a [u8],
    /// The kept share of each pixel as a byte, packed by zlib: 0 nothing, 255 everything.
    pub shares: &'a [u8],
    /// Names and values of the numbers beside it.
    pub numbers: Vec<(String, String)>,
    /// More of the page, as HTML.
    pub sections: &'a str,
    /// PyTorch code.
    pub code: &'a str,
    /// Where the picture's numbers come from.
    pub from: Provenance,
    /// More about how it was made: when, by which versions.
    pub made: Vec<(String, String)>,
    /// width, height, rows and cols of the picture, and segments of the axes if they have some.
    pub data: Value,
    /// Read back when the page is opened.
    pub design: Option<Document>,
    /// The language of its labels. Names in `data` stay English.
    pub tongue: Tongue<'a>,
}

impl Page<'_> {
    /// The file's text.
    pub fn text(&self) -> String {
        let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        let numbers: String = self.numbers.iter().map(|(name, value)| row(name, value)).collect();
        let label = |label| (self.tongue.tell)(&Text::Label(label));
        let from = (self.tongue.tell)(&Text::From(&self.from));
        let first = [(label(Label::Picture), from), (label(Label::MadeBy), maskloom())];
        let made = first.iter().chain(&self.made);
        let made: String = made.map(|(k, v)| format!("<li>{}: {}</li>", escaped(k), escaped(v))).collect();
        let about = self.about.split("\n\n").filter(|p| !p.trim().is_empty());
        let design = self.design.as_ref().map(|document| format!("{OPENS}{}{CLOSES}", quiet(&file::to_json(document))));
        let mut data = self.data.clone();
        if let Some(data) = data.as_object_mut() {
            data.insert("words".into(), SCRIPT.iter().map(|(name, text)| (*name, label(*text))).collect());
        }
        let labels = LABELS.map(|(place, text)| (place, escaped(&label(text))));
        let labels = labels.iter().map(|(place, text)| (*place, text.as_str()));
        let parts = [
            ("LANG", self.tongue.code),
            ("TITLE", &escaped(self.title)),
            ("ABOUT", &about.map(|p| format!("<p>{}</p>", escaped(p))).collect::<String>()),
            ("PICTURE", &base64(self.picture)),
            ("NUMBERS", &numbers),
            ("SECTIONS", self.sections),
            ("CODE", &escaped(self.code)),
            ("PROVENANCE", &made),
            ("DATA", &quiet(&data.to_string())),
            ("DESIGN", &design.unwrap_or_default()),
            ("SHARES", &base64(self.shares)),
        ];
        filled(&parts.into_iter().chain(labels).collect::<Vec<_>>())
    }
}

/// The document in a page. None: the text is no page. Errors: a page without a design, or with a broken one.
pub fn read(text: &str) -> Option<Result<Document, Vec<Diagnostic>>> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let first: String = start.chars().take(14).collect::<String>().to_lowercase();
    if !first.starts_with("<!doctype html") && !first.starts_with("<html") {
        return None;
    }
    let inside = start.split_once(OPENS).and_then(|(_, rest)| rest.split_once(CLOSES));
    Some(match inside {
        Some((json, _)) => file::from_json(json),
        None => Err(vec![
            Diagnostic::error("page-design", "this HTML file holds no design of Maskloom's")
                .hint("open a page that `maskloom share` or Share, Save as HTML wrote"),
        ]),
    })
}

/// Both mods as PyTorch code, and the document that this code alone defines.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// mask_mod and score_mod, where there are such.
    pub code: String,
    /// Layers of that code with its tensors.
    pub layers: Vec<Layer>,
    /// The score mod.
    pub scores: Vec<ScoreLayer>,
}

/// Prints mods.
pub fn printed(mask: Option<&Mod>, score: Option<&Mod>) -> Printed {
    let mut code = String::from("import math\n\nimport torch\n");
    let (mut layers, mut scores) = (Vec::new(), Vec::new());
    let mut of = |name: &str, of: &Mod| {
        let mut names = Names::reserving(&["torch", "math", "mask_mod", "score_mod"]);
        let text = function(name, &simplify(of), &mut names, &any_range);
        code.push_str(&format!("\n\n{text}"));
        let source = format!("import math\n\nimport torch\n\n\n{text}");
        TextCode { source, entry: name.into(), tensors: names.tensors.into_iter().collect(), ..TextCode::default() }
    };
    if let Some(mask) = mask {
        let content = MaskContent::Text(of("mask_mod", mask));
        let (name, combine) = ("mask_mod".into(), super::model::Combine::And);
        layers.push(Layer { id: 1, name, enabled: true, combine, heads: None, content });
    }
    if let Some(score) = score {
        let content = ScoreContent::Text(of("score_mod", score));
        scores.push(ScoreLayer { id: 2, name: "score_mod".into(), enabled: true, content });
    }
    Printed { code, layers, scores }
}

/// A document of mods that were never one.
pub fn of_mods(
    name: &str,
    printed: Printed,
    lengths: Lengths,
    [batch, heads]: [usize; 2],
    blocks: BlockSize,
) -> Document {
    let mut axes = Axes::same(Axis::tokens(lengths.q_len));
    if lengths.kv_len != lengths.q_len {
        axes.kv = Some(Axis::tokens(lengths.kv_len));
    }
    let mut settings = Settings::new(heads, 64);
    (settings.batch, settings.block_size) = (batch, blocks);
    let mut document = Document::new(name, axes, settings);
    (document.layers, document.scores) = (printed.layers, printed.scores);
    document
}

/// The same design without files beside it: where a layer follows a file, all layers of its kind become their printed code.
pub fn whole(document: &Document, mask: Option<&Mod>, score: Option<&Mod>) -> Document {
    let mut out = document.clone();
    let text = printed(mask, score);
    if document.layers.iter().any(|l| l.enabled && matches!(l.content, MaskContent::Linked(_))) {
        out.layers = text.layers;
    }
    if document.scores.iter().any(|l| l.enabled && matches!(l.content, ScoreContent::Linked(_))) {
        out.scores = text.scores;
    }
    out.layers.retain(|l| !matches!(l.content, MaskContent::Linked(_)));
    out.scores.retain(|l| !matches!(l.content, ScoreContent::Linked(_)));
    let taken = out.layers.iter().map(|l| l.id).max().unwrap_or(0);
    if out.layers.iter().any(|l| out.scores.iter().any(|s| s.id == l.id)) {
        out.scores.iter_mut().zip(taken + 1..).for_each(|(score, id)| score.id = id);
    }
    out
}

/// Starts, ends and names of an axis's segments: what `segments` of a page's data holds for it.
pub fn segments(axis: &Axis) -> Value {
    let starts = axis.starts();
    let of = |(at, segment): (usize, &super::model::Segment)| json!([starts[at], starts[at + 1], segment.to_string()]);
    match axis.segments.len() {
        0 | 1 => json!([]),
        _ => axis.segments.iter().enumerate().map(of).collect(),
    }
}

/// A share as a byte of `shares`: only nothing is 0, and only everything is 255.
pub fn shade(share: f32) -> u8 {
    match share {
        share if share <= 0.0 => 0,
        share if share >= 1.0 => 255,
        share => (1.0 + share * 253.0).round().clamp(1.0, 254.0) as u8,
    }
}

/// Text that stays text in HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#x27;")
}

fn row(name: &str, value: &str) -> String {
    format!("<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value))
}

/// JSON that cannot end its script.
fn quiet(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// The template with its parts, in one pass: a part's own text is never taken for a place.
fn filled(parts: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(TEMPLATE.len() + parts.iter().map(|(_, text)| text.len()).sum::<usize>());
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once('@') {
        out.push_str(before);
        let part = parts.iter().find(|(name, _)| after.strip_prefix(name).is_some_and(|more| more.starts_with('@')));
        match part {
            Some((name, text)) => {
                out.push_str(text);
                rest = &after[name.len() + 1..];
            }
            None => {
                out.push('@');
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::provenance::Looked;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::library;

    fn page(document: &Document) -> Page<'_> {
        Page {
            title: &document.name,
            code: "</pre><script>@DESIGN@",
            data: json!({"width": 1, "note": "</script>"}),
            design: Some(document.clone()),
            about: "",
            picture: &[],
            shares: &[],
            numbers: Vec::new(),
            sections: "",
            from: Provenance::design([0, 0], [8, 8], [8, 8], Looked::All),
            made: Vec::new(),
            tongue: Tongue::ENGLISH,
        }
    }

    #[test]
    fn every_preset_comes_back_equal() {
        for preset in library::presets() {
            let mut document = preset.document().expect("loads");
            document.name = format!("</script>@SHARES@ & \"{}\" 滑动窗口", document.name);
            let text = page(&document).text();
            assert_eq!(read(&text).expect("a page").expect("a design"), document, "{}", preset.name);
        }
    }

    #[test]
    fn every_place_of_the_template_is_filled_and_user_text_stays_text() {
        let document = library::preset("causal").expect("there").document().expect("loads");
        let text = Page { code: "a < b", title: "<i>", ..page(&document) }.text();
        let left: Vec<&str> = text.split('@').skip(1).filter(|after| after.starts_with(char::is_uppercase)).collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(
            text.contains("<li>picture: batch entry 0, head 0; one pixel is one cell</li><li>made by: Maskloom "),
            "{text}"
        );
        assert!(text.contains("<pre>a &lt; b</pre>") && text.contains("<title>&lt;i&gt;</title>"), "{text}");
        assert_eq!(text.matches(CLOSES).count(), 3, "nothing of the data ends its script");
    }

    #[test]
    fn only_nothing_is_0_and_only_everything_is_255() {
        assert_eq!([0.0, 1e-9, 0.5, 0.999_999, 1.0].map(shade), [0, 1, 128, 254, 255]);
    }

    #[test]
    fn other_texts_are_no_pages_and_pages_of_others_say_so() {
        assert!(read("{\"maskloom\": 1}").is_none() && read("def mask_mod(): <html>").is_none() && read("").is_none());
        let why = read(" <!DOCTYPE html><p>mine</p>").expect("HTML").expect_err("no design");
        assert_eq!(why[0].code, "page-design");
        let why = read(&format!("<html>{OPENS}{{}}{CLOSES}")).expect("HTML").expect_err("broken");
        assert!(!why.is_empty());
    }

    #[test]
    fn printed_mods_are_a_document_of_the_same_cells() {
        for name in ["document_packing", "alibi", "sliding_window"].into_iter().filter(|n| library::preset(n).is_some())
        {
            let document = library::preset(name).expect("there").document().expect("loads");
            let compiled = compile(&document, &BuiltIn);
            let text = printed(compiled.mask.as_deref(), compiled.score.as_deref());
            let lengths = document.axes.lengths().expect("lengths");
            let made = of_mods(name, text, lengths, [1, document.settings.heads], document.settings.block_size);
            let again = compile(&made, &BuiltIn);
            assert!(!again.has_errors(), "{name}: {:?}", again.all_diagnostics().collect::<Vec<_>>());
            let shown = |of: &Option<std::sync::Arc<Mod>>| of.as_ref().map(|m| printed(Some(m), None).code);
            assert_eq!(shown(&again.mask), shown(&compiled.mask), "{name}");
            assert_eq!(again.score.is_some(), compiled.score.is_some(), "{name}");
        }
    }
}
