//! A design's patterns as Python that follows the axes of a call: other grids, other lengths of the text.
//!
//! Invariant: a file is created only if every layer has the same meaning over other axes of the same segments; over the
//! design's own axes its mods equal those of the exported module. Must not know models.

use super::about;
use super::sidecar::identified;
use super::{ExportFile, ExportKind, file_stem, lines};
use crate::document::compile::BuiltIn;
use crate::document::controls::{Control, controls};
use crate::document::library;
use crate::document::model::*;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Patterns whose arguments mean the same over other axes: distances, windows, switches, and what follows an axis.
const FREE: &[&str] = &[
    "alibi",
    "attention_sinks",
    "axial",
    "causal",
    "dilated_window",
    "distance_penalty",
    "joint_blocks",
    "local_window",
    "natten_2d",
    "natten_3d",
    "natten_tiled",
    "radial",
    "region_bias",
    "shifted_windows",
    "sliding_window",
    "soft_cap",
    "sta_2d",
    "sta_3d",
    "svg_spatial",
    "svg_temporal",
    "temperature",
    "window_sinks",
];

const AXES: &str = include_str!("../../assets/python/module/axes.py");
const HEAD: &str = r#"
The patterns' own parameters stay as they are; what follows an axis is read from the axes that are given. The text of the
patterns is the library's.
SPDX-License-Identifier: MIT. Written by Maskloom MASKLOOM_VERSION.
"""

# the patterns stand as the library has them, without annotations
# mypy: disable-error-code="no-untyped-def, no-untyped-call, type-arg, no-any-return, attr-defined"

from __future__ import annotations

"#;
const TYPES: &str = r#"
Axes = tuple[tuple[str, tuple[int, ...]], ...]
Device = torch.device | str
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]

"#;

/// `STEM_axes.py`, if the design has a grid and all its layers follow; the runtime of the sidecar loads it.
pub(super) fn following(document: &Document, stem: &str) -> Option<ExportFile> {
    let axis = &document.axes.q;
    let has_grid = axis.segments.iter().any(|s| s.grid.len() > 1);
    if document.axes.kv.is_some() || !has_grid {
        return None;
    }
    let masks: Vec<_> = document.layers.iter().filter(|l| l.enabled).collect();
    let scores: Vec<_> = document.scores.iter().filter(|s| s.enabled).collect();
    if masks.is_empty() && scores.is_empty() {
        return None;
    }
    let mut text = Text { document, factories: BTreeSet::new(), taken: BTreeSet::new(), made: String::new() };
    let mut mask = Vec::new();
    for layer in masks {
        mask.push((text.mask(layer)?, layer.combine));
    }
    let mut score = Vec::new();
    for layer in scores {
        score.push(text.score(layer)?);
    }
    let what = "the design's patterns over other axes: masks for aspect buckets and trimmed prompts";
    Some(ExportFile::new(ExportKind::Module, format!("{stem}_axes.py"), text.file(stem, &mask, &score), what))
}

struct Text<'a> {
    document: &'a Document,
    factories: BTreeSet<&'static str>,
    /// Names of layers.
    taken: BTreeSet<String>,
    /// Statements that make the layers.
    made: String,
}

/// How a layer is made.
enum Made {
    /// By a factory and its arguments.
    Called(&'static str, Vec<String>),
    /// By an expression of the cell.
    Kept(String),
}

impl Text<'_> {
    fn mask(&mut self, layer: &Layer) -> Option<String> {
        let made = match &layer.content {
            MaskContent::Pattern(code) => self.call(layer.id, code)?,
            MaskContent::Band { lo, hi } => Made::Kept(band(*lo, *hi)),
            _ => return None,
        };
        Some(self.named(&layer.name, made, &about::content(&layer.content)))
    }

    fn score(&mut self, score: &ScoreLayer) -> Option<String> {
        let ScoreContent::Pattern(code) = &score.content else { return None };
        let made = self.call(score.id, code)?;
        Some(self.named(&score.name, made, &about::score_content(&score.content)))
    }

    /// A layer under a unique name.
    fn named(&mut self, layer: &str, made: Made, about: &str) -> String {
        let stem = file_stem(layer);
        let taken = |name: &String| self.taken.contains(name) || library::pattern(name).is_some() || is_own(name);
        let mut name = stem.clone();
        let mut number = 1;
        while taken(&name) {
            number += 1;
            name = format!("{stem}_{number}");
        }
        self.taken.insert(name.clone());
        if matches!(made, Made::Kept(_)) && !self.made.is_empty() && !self.made.ends_with("\n\n") {
            self.made.push('\n');
        }
        self.made.push_str(&lines::prose("        # ", &about.replace('\n', " ")));
        let _ = match made {
            Made::Called(factory, arguments) => {
                let call = lines::call(8, 8, &format!("{name} = {factory}"), &arguments, "");
                writeln!(self.made, "        {call}")
            }
            Made::Kept(cells) => {
                let head = format!("def {name}(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:");
                writeln!(self.made, "        {head}\n            return {cells}\n")
            }
        };
        name
    }

    /// The factory's call with every parameter in place.
    fn call(&mut self, id: u64, code: &CodeRef) -> Option<Made> {
        let name = FREE.iter().find(|name| **name == code.name)?;
        let (_, controls) = controls(self.document, id, &BuiltIn).ok()?;
        let args: Option<Vec<String>> =
            controls.iter().map(|c| Some(format!("{}={}", c.name, self.argument(c)?))).collect();
        self.factories.insert(name);
        Some(Made::Called(name, args?))
    }

    /// None: the argument is for the design's own axes alone.
    fn argument(&self, control: &Control) -> Option<String> {
        let value = control.value.as_ref()?;
        if control.name == "frame" {
            return self.frame(value);
        }
        match (&control.follows, value) {
            (Some(fact), ArgValue::Int(value)) => self.fact(fact, *value),
            (_, ArgValue::Int(value)) => Some(value.to_string()),
            (_, ArgValue::Float(value)) => Some(format!("{value:?}")),
            (_, ArgValue::Bool(value)) => Some(if *value { "True" } else { "False" }.into()),
            (_, ArgValue::None) => Some("None".into()),
            (_, ArgValue::Text(text)) if text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                Some(format!("\"{text}\""))
            }
            _ => None,
        }
    }

    /// Tokens of a frame follow the video if they are one frame of it.
    fn frame(&self, value: &ArgValue) -> Option<String> {
        let at = self.document.axes.q.segments.iter().position(|s| s.grid.len() == 3)?;
        let [_, h, w] = self.document.axes.q.segments[at].grid[..] else { return None };
        (*value == ArgValue::Int((h * w) as i64)).then(|| format!("at[{at}].h * at[{at}].w"))
    }

    /// The value that a parameter follows, if it has that value; without a segment to follow it is unchanged if it is
    /// 0.
    fn fact(&self, fact: &str, value: i64) -> Option<String> {
        let (axis, settings) = (&self.document.axes.q, &self.document.settings);
        let same = |n: usize, text: String| (n as i64 == value).then_some(text);
        match fact {
            "q_len" | "kv_len" => same(axis.len(), "at[-1].end".into()),
            "heads" => same(settings.heads, value.to_string()),
            "kv_heads" => same(settings.kv_heads, value.to_string()),
            "head_dim" => same(settings.head_dim, value.to_string()),
            "batch" => same(settings.batch, value.to_string()),
            _ => {
                let (segment, attribute) = fact.rsplit_once('.')?;
                match crate::document::find_segment(axis, segment) {
                    Some(at) => {
                        let n = crate::document::attribute_of(axis, at, attribute)?;
                        same(n, format!("at[{at}].{attribute}"))
                    }
                    None => (value == 0).then(|| "0".to_string()),
                }
            }
        }
    }

    fn file(&self, stem: &str, mask: &[(String, Combine)], score: &[String]) -> String {
        let inner = |s: &Segment| lines::tuple(0, 0, &s.grid.iter().map(usize::to_string).collect::<Vec<_>>());
        let segments = &self.document.axes.q.segments;
        let own: Vec<String> = segments.iter().map(|s| format!("({:?}, {})", s.name, inner(s))).collect();
        let head = "AXES: Axes = ";
        let own = lines::tuple(0, head.len(), &own);
        let mut out = format!("\"\"\"The patterns of {stem} over other axes: aspect buckets, trimmed prompts.\n\n");
        let _ = writeln!(out, "    from {stem}_axes import AXES, mods_at");
        out.push_str("    mask_mod, score_mod = mods_at(AXES, \"cuda\")\n");
        out.push_str(&identified(HEAD));
        out.push_str("import math\nfrom collections.abc import Callable\n\nimport torch\nfrom torch import Tensor\n");
        out.push_str(TYPES);
        let _ = writeln!(out, "# what the design was made for; other axes have the same segments\n{head}{own}");
        out.push_str(AXES);
        for name in &self.factories {
            let text = library::pattern(name).expect("it was called").text;
            let body: Vec<&str> = text.lines().filter(|l| !l.starts_with("import ")).collect();
            let _ = write!(out, "{}\n\n\n", body.join("\n").trim());
        }
        out.push_str("def mods_at(axes: Axes, device: Device) -> tuple[MaskMod | None, ScoreMod | None]:\n");
        out.push_str("    \"\"\"mask_mod and score_mod over other axes. Errors: ValueError or AssertionError for axes that they cannot have.\"\"\"\n");
        let _ = write!(out, "    at = _segments(axes)\n    with torch.device(device):\n{}\n", self.made.trim_end());
        out.push_str(&composed(mask, score));
        let given = |any: bool, name: &str| if any { name.to_string() } else { "None".into() };
        let _ = writeln!(
            out,
            "\n    return {}, {}",
            given(!mask.is_empty(), "mask_mod"),
            given(!score.is_empty(), "score_mod")
        );
        out
    }
}

/// The joined mods.
fn composed(mask: &[(String, Combine)], score: &[String]) -> String {
    let mut out = String::new();
    if !mask.is_empty() {
        out.push_str("\n    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:\n");
        for (at, (name, combine)) in mask.iter().enumerate() {
            let call = format!("{name}(b, h, q_idx, kv_idx)");
            let line = match (at, combine) {
                (0, Combine::AndNot) => format!("keep = ~{call}"),
                (0, _) => format!("keep = {call}"),
                (_, Combine::And) => format!("keep = keep & {call}"),
                (_, Combine::Or) => format!("keep = keep | {call}"),
                (_, Combine::AndNot) => format!("keep = keep & ~{call}"),
            };
            let _ = writeln!(out, "        {line}");
        }
        out.push_str("        return keep\n");
    }
    if !score.is_empty() {
        out.push_str(
            "\n    def score_mod(score: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:\n",
        );
        for name in score {
            let _ = writeln!(out, "        score = {name}(score, b, h, q_idx, kv_idx)");
        }
        out.push_str("        return score\n");
    }
    out
}

/// Cells at distances `lo..=hi`.
fn band(lo: Option<i64>, hi: Option<i64>) -> String {
    let low = lo.map(|lo| format!("(q_idx - kv_idx >= {lo})"));
    let high = hi.map(|hi| format!("(q_idx - kv_idx <= {hi})"));
    let sides: Vec<String> = low.into_iter().chain(high).collect();
    if sides.is_empty() { "q_idx == q_idx".to_string() } else { sides.join(" & ") }
}

/// Names that the file uses itself.
fn is_own(name: &str) -> bool {
    let own = [
        "at",
        "axes",
        "device",
        "mask_mod",
        "score_mod",
        "mods_at",
        "torch",
        "math",
        "tensor",
        "keep",
        "score",
        "b",
        "h",
        "q_idx",
        "kv_idx",
    ];
    own.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::testing;

    fn of(axes: &str, content: MaskContent) -> Option<String> {
        let mut document = testing::empty(axes);
        document.layers.push(testing::layer(1, content));
        following(&document, "mine").map(|f| String::from_utf8(f.bytes).expect("text"))
    }

    fn natten(args: &[(&str, ArgValue)]) -> MaskContent {
        MaskContent::Pattern(testing::pattern("natten_2d", args))
    }

    #[test]
    fn what_follows_an_axis_is_read_from_it_and_the_rest_stays() {
        let text = of("text 16 | image 8x10", natten(&[("kernel_h", ArgValue::Int(5))])).expect("follows");
        let call = "natten_2d(canvas_h=at[1].h, canvas_w=at[1].w, kernel_h=5, kernel_w=13, start=at[1].start)";
        assert!(text.contains(call), "{text}");
        assert!(text.contains("AXES: Axes = ((\"text\", (16,)), (\"image\", (8, 10)))"), "{text}");
        assert_eq!(text.matches("def natten_2d(").count(), 1);
        // an image without text begins at 0
        assert!(of("image 8x10", natten(&[])).expect("follows").contains("start=at[0].start"));
    }

    #[test]
    fn what_is_for_its_own_axes_alone_does_not_follow() {
        assert!(of("tokens 80", natten(&[])).is_none(), "no grid");
        assert!(of("image 8x10", natten(&[("canvas_h", ArgValue::Int(4))])).is_none(), "another canvas");
        let painted = MaskContent::Rectangle { q: [0, 4], kv: [0, 4] };
        assert!(of("image 8x10", painted).is_none());
        let regional = MaskContent::Pattern(testing::pattern("regional_prompting", &[]));
        assert!(of("text 512 | image 64x64", regional).is_none(), "boxes do not scale");
        let radial = |frame| MaskContent::Pattern(testing::pattern("radial", &[("frame", ArgValue::Int(frame))]));
        assert!(of("video 3x4x5", radial(20)).expect("a frame").contains("frame=at[0].h * at[0].w"));
        assert!(of("video 3x4x5", radial(21)).is_none());
    }
}
