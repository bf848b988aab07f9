//! A mask's picture with its axes: borders of segments, their names, token numbers, and its heads.
//!
//! Invariant: heads with equal pictures at the picture's resolution share one picture. Must not know files.

use super::ExportFile;
use super::picture::{PictureOptions, picture};
use crate::base::{Control, Diagnostic};
use crate::document::model::{Axis, Document};
use crate::document::page::escaped;
use crate::problem::Problem;
use base64::Engine;
use std::fmt::Write;

/// Pixels of a picture's longer side on the page.
const SIDE: f64 = 560.0;
/// Room for names and numbers.
const MARGIN: f64 = 92.0;
/// Number of kinds of heads with a separate picture.
const MOST_KINDS: usize = 8;
/// Number of pixels for comparing kinds of heads.
const COMPARED: usize = 256;

/// Heads whose masks look alike.
struct Kind {
    heads: Vec<usize>,
    picture: ExportFile,
}

/// Every kind of head with its axes, as SVG. `first`: the picture that the export has already. Errors: cancelled.
pub(super) fn plates(
    document: &Document,
    problem: &Problem,
    first: &ExportFile,
    control: &Control,
) -> Result<String, Diagnostic> {
    if !problem.mask_per_head() {
        return Ok(plate(document, problem, first, "all heads"));
    }
    let mut kinds: Vec<Kind> = Vec::new();
    for h in 0..problem.heads {
        let options = PictureOptions { h, size: COMPARED, ..PictureOptions::default() };
        let picture = picture("head.png", problem.mask.as_ref(), problem.lengths(), &options, control)?;
        match kinds.iter_mut().find(|kind| kind.picture.bytes == picture.bytes) {
            Some(kind) => kind.heads.push(h),
            None => kinds.push(Kind { heads: vec![h], picture }),
        }
    }
    let mut out = String::new();
    for kind in kinds.iter().take(MOST_KINDS) {
        out.push_str(&plate(document, problem, &kind.picture, &heads(&kind.heads)));
    }
    if kinds.len() > MOST_KINDS {
        let more = kinds.len() - MOST_KINDS;
        let _ = writeln!(out, "<p class=\"weak\">{more} more kinds of heads are not shown.</p>");
    }
    Ok(out)
}

/// `heads 0 to 3, 7`
fn heads(all: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for h in all {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *h => *last = *h,
            _ => runs.push((*h, *h)),
        }
    }
    let word = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    let runs: Vec<String> = runs.iter().map(word).collect();
    format!("{} {}", if all.len() == 1 { "head" } else { "heads" }, runs.join(", "))
}

fn plate(document: &Document, problem: &Problem, picture: &ExportFile, heads: &str) -> String {
    let longer = problem.q_len.max(problem.kv_len) as f64;
    let (width, height) = (SIDE * problem.kv_len as f64 / longer, SIDE * problem.q_len as f64 / longer);
    let png = base64::engine::general_purpose::STANDARD.encode(&picture.bytes);
    let mut out = format!(
        "<figure><svg viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-label=\"the mask of {heads}\">\n",
        width + MARGIN + 4.0,
        height + MARGIN + 4.0
    );
    let _ = writeln!(
        out,
        "<image x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{width:.1}\" height=\"{height:.1}\" preserveAspectRatio=\"none\" \
         href=\"data:image/png;base64,{png}\"/>\n<rect x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"frame\"/>"
    );
    let _ = writeln!(out, "<text x=\"{:.0}\" y=\"14\" class=\"title\">keys (kv_idx)</text>", MARGIN + width / 2.0);
    let middle = MARGIN + height / 2.0;
    let _ = writeln!(
        out,
        "<text x=\"14\" y=\"{middle:.0}\" class=\"title\" transform=\"rotate(-90 14 {middle:.0})\">queries (q_idx)</text>"
    );
    out.push_str(&ruler(document.axes.kv(), width, height, true));
    out.push_str(&ruler(&document.axes.q, height, width, false));
    let _ = writeln!(out, "</svg><figcaption>{heads}: blue kept, white dropped, orange mixed</figcaption></figure>");
    out
}

/// Names and first tokens of segments, and the lines between them.
fn ruler(axis: &Axis, along: f64, across: f64, is_keys: bool) -> String {
    let tokens = axis.len().max(1) as f64;
    let starts = axis.starts();
    let mut out = String::new();
    let number = |token: usize| {
        let at = MARGIN + along * token as f64 / tokens;
        let (x, y) = if is_keys { (at, MARGIN - 6.0) } else { (MARGIN - 6.0, at) };
        let anchor = match (is_keys, token) {
            (false, _) => "end",
            (true, 0) => "start",
            (true, _) if token == axis.len() => "end",
            _ => "middle",
        };
        let shift = if is_keys {
            0.0
        } else if token == 0 {
            9.0
        } else {
            4.0
        };
        format!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{token}</text>\n", y + shift)
    };
    out.push_str(&number(0));
    out.push_str(&number(axis.len()));
    for (at, segment) in axis.segments.iter().enumerate() {
        let middle = MARGIN + along * (starts[at] + starts[at + 1]) as f64 / 2.0 / tokens;
        let name = escaped(&segment.to_string());
        let place = if is_keys {
            format!("x=\"{middle:.1}\" y=\"34\" text-anchor=\"middle\"")
        } else {
            format!("x=\"34\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 34 {middle:.1})\"")
        };
        let _ = writeln!(out, "<text {place}>{name}</text>");
        if at > 0 {
            let line = MARGIN + along * starts[at] as f64 / tokens;
            let far = MARGIN + across;
            let _ = match is_keys {
                true => writeln!(
                    out,
                    "<line x1=\"{line:.1}\" y1=\"{MARGIN}\" x2=\"{line:.1}\" y2=\"{far:.1}\" class=\"border\"/>"
                ),
                false => writeln!(
                    out,
                    "<line x1=\"{MARGIN}\" y1=\"{line:.1}\" x2=\"{far:.1}\" y2=\"{line:.1}\" class=\"border\"/>"
                ),
            };
            if along * segment.len() as f64 / tokens > 24.0 && along * starts[at] as f64 / tokens > 24.0 {
                out.push_str(&number(starts[at]));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::compile::{BuiltIn, compile};
    use crate::document::from_document;
    use crate::document::model::{MaskContent, TextCode};
    use crate::document::testing;

    fn drawn(source: &str) -> String {
        let mut document = testing::empty("text 16 | image 8x8");
        document.settings.heads = 4;
        document.settings.kv_heads = 4;
        let code = TextCode { source: source.into(), ..TextCode::default() };
        document.layers.push(testing::layer(1, MaskContent::Text(code)));
        let problem = from_document(&document, &compile(&document, &BuiltIn)).expect("compiles");
        let control = Control::new();
        let first = picture("a.png", problem.mask.as_ref(), problem.lengths(), &PictureOptions::default(), &control);
        plates(&document, &problem, &first.expect("made"), &control).expect("made")
    }

    #[test]
    fn axes_have_names_numbers_and_borders() {
        let text = drawn("def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n");
        for part in
            ["keys (kv_idx)", "queries (q_idx)", ">image 8x8</text>", ">text 16</text>", ">80</text>", "all heads"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!((text.matches("class=\"border\"").count(), text.matches("<svg").count()), (2, 1));
    }

    #[test]
    fn every_kind_of_head_has_a_picture() {
        let text = drawn("def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) | (h % 3 == 0)\n");
        assert_eq!(text.matches("<svg").count(), 2);
        assert!(text.contains("heads 0, 3:") && text.contains("heads 1, 2:"), "{text}");
        assert_eq!(heads(&[0, 1, 2, 5]), "heads 0 to 2, 5");
    }
}
