//! A design as one HTML file to hand on: the picture with its shares, numbers, runs, code, and the document itself.
//!
//! Invariant: every number is of the design in the page; a run says its card and where it is from. Must not know who ran it, nor files.

use super::report::{counts, race, shape};
use super::{ExportFile, ExportKind, about, picture};
use crate::analysis::raster::{self, Picture, Region};
use crate::base::provenance::Looked;
use crate::base::{Control, Diagnostic, Provenance};
use crate::document::model::Document;
use crate::document::page::{self, Label, Page, Text, Tongue};
use crate::problem::Problem;
use crate::problem::result::RunReport;
use serde_json::json;

/// Pixels of the picture's longer side, at most.
const SIDE: usize = 1024;

/// The content of a page.
#[derive(Clone, Copy, Debug)]
pub struct ShareRequest<'a> {
    /// The file's name.
    pub name: &'a str,
    /// The design; its layers follow no files.
    pub document: &'a Document,
    /// The same, compiled.
    pub problem: &'a Problem,
    /// Batch entry and head of the picture.
    pub shown: (usize, usize),
    /// The race, if there was one.
    pub run: Option<&'a RunReport>,
    /// Runs of exactly this design that ship with Maskloom.
    pub recorded: &'a [&'a RunReport],
    /// Day on which it is made; None: it is not said.
    pub date: Option<&'a str>,
    /// The language of its labels.
    pub tongue: Tongue<'a>,
}

/// The page. Errors: cancelled, or it cannot be encoded.
pub fn share(request: &ShareRequest, control: &Control) -> Result<ExportFile, Diagnostic> {
    let (document, problem) = (request.document, request.problem);
    let (b, h) = request.shown;
    let longer = problem.lengths().longer();
    let [height, width] = problem.lengths().in_pixels(SIDE.min(longer));
    let region = Region::whole([b, h], problem.lengths(), [height, width]);
    let Picture { pixels, exact } = raster::picture(problem.mask.as_ref(), &region, control);
    let mut numbers = shape(document, problem);
    numbers.extend(counts(problem, control)?);
    if control.is_cancelled() {
        return Err(Diagnostic::error("cancelled", "the page was cancelled"));
    }
    let from = Provenance::design([b, h], [problem.q_len, problem.kv_len], [height, width], Looked::of(exact));
    let rgb: Vec<u8> = pixels.iter().flat_map(|share| picture::colour(*share)).collect();
    let code = page::printed(problem.mask.as_deref(), problem.score.as_deref()).code;
    let mut sections =
        request.run.map(|run| race(run, &Provenance::Measured(run.place()), request.tongue)).unwrap_or_default();
    request
        .recorded
        .iter()
        .for_each(|run| sections.push_str(&race(run, &Provenance::Recorded(run.place()), request.tongue)));
    let tell = request.tongue.tell;
    let label = |label| tell(&Text::Label(label));
    let mut made: Vec<_> = request.date.map(|day| (label(Label::At), day.to_string())).into_iter().collect();
    made.push((label(Label::Method), label(Label::Graph)));
    made.push((label(Label::Design), label(Label::Held)));
    let english = numbers.iter().map(|(name, value)| (name.words(), value.to_string()));
    let axes = &document.axes;
    let text = Page {
        title: &document.name,
        about: &about::description(document).unwrap_or_default(),
        picture: &picture::encoded(&rgb, width, height)?,
        shares: &picture::packed(&pixels.iter().map(|share| page::shade(*share)).collect::<Vec<u8>>()),
        data: json!({
            "name": document.name, "lengths": [problem.q_len, problem.kv_len], "b": b, "h": h, "exact": exact,
            "rows": [0, problem.q_len], "cols": [0, problem.kv_len], "width": width, "height": height,
            "numbers": english.collect::<std::collections::BTreeMap<_, _>>(),
            "segments": {"q": page::segments(&axes.q), "kv": page::segments(axes.kv())},
        }),
        numbers: numbers.iter().map(|(name, value)| (label(*name), tell(value))).collect(),
        sections: &sections,
        code: &code,
        from,
        made,
        design: Some(document.clone()),
        tongue: request.tongue,
    };
    Ok(ExportFile::new(
        ExportKind::Page,
        request.name,
        text.text(),
        "the design as one page: picture, numbers, runs, code, the design itself",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::{from_document, library};

    #[test]
    fn a_page_holds_picture_numbers_code_and_its_own_design() {
        let document = library::preset("flux_text_padding").expect("there").document().expect("loads");
        let problem = from_document(&document, &compile(&document, &BuiltIn)).expect("compiles");
        let request = ShareRequest {
            name: "x.html",
            document: &document,
            problem: &problem,
            shown: (0, 0),
            run: None,
            recorded: &[],
            date: Some("2026-11-27"),
            tongue: Tongue::ENGLISH,
        };
        let made = share(&request, &Control::new()).expect("made");
        let text = String::from_utf8(made.bytes).expect("text");
        assert_eq!(page::read(&text).expect("a page").expect("a design"), document);
        for part in ["def mask_mod(b, h, q_idx, kv_idx)", "<th>cells kept</th>", "2026-11-27", "head 0", "\"segments\""]
        {
            assert!(text.contains(part), "{part}");
        }
        assert!(text.split("src=\"").skip(1).all(|after| after.starts_with("data:")), "it loads nothing");
        let control = Control::new();
        control.cancel();
        assert_eq!(share(&request, &control).expect_err("cancelled").code, "cancelled");
    }
}
