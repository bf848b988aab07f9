//! A problem as a PyTorch module: its mods, captured tensors, `make_block_mask(device)`, `make_mask(device)` and
//! `attend(query, key, value)`.
//!
//! Invariant: in PyTorch it gives the mask and scores of the graph; it needs only torch, and safetensors if it reads a
//! file of tensors. Must not know trainers.

use super::ranges::index_ranges;
use super::tensors::{self, Literal};
use super::{ExportFile, ExportKind, lines};
use crate::analysis::promises::promises;
use crate::base::{Control, HostTensor, identity};
use crate::ir::graph::{CaptureId, Input, Mod};
use crate::ir::made::Made;
use crate::ir::passes::derive::derive;
use crate::ir::passes::simplify::simplify;
use crate::ir::print::{Names, function};
use crate::problem::Problem;
use std::fmt::Write;

/// Names in the module that captured tensors and locals must not take.
const OWN: &[&str] = &[
    "annotations",
    "base64",
    "Callable",
    "Path",
    "FunctionType",
    "Union",
    "cast",
    "torch",
    "Tensor",
    "BlockMask",
    "create_mask",
    "flex_attention",
    "Device",
    "MaskMod",
    "ScoreMod",
    "ParamSpec",
    "P",
    "device",
    "shape",
    "dtype",
    "text",
    "lists",
    "stored",
    "load_file",
    "load_block_mask",
    "block_mask_of",
    "attend",
    "learned",
    "trained",
    "scores",
    "weights",
    "places",
    "nothing",
    "exact",
    "LEARNS",
    "Mapping",
    "make_mods",
    "make_mask",
    "make_block_mask",
    "key",
    "query",
    "value",
    "mods",
    "mod",
    "mask",
    "score",
    "name",
    "cells",
    "kept",
    "first",
    "Q_LEN",
    "KV_LEN",
    "BATCH",
    "HEADS",
    "HEAD_DIM",
    "SCALE",
    "BLOCK_SIZE",
    "OTHER_LENGTHS",
    "AXES",
    "KERNEL_OPTIONS",
];

/// The name of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleOptions {
    /// File stem: `NAME.py`, `NAME.safetensors`. An identifier, so that it can be imported.
    pub name: String,
    /// First line of its docstring.
    pub title: String,
    /// The docstring's description of the design, one paragraph per line: its axes and layers. Empty: none.
    pub about: Vec<String>,
    /// Other lengths at which the mods keep their meaning; None: any if they capture no tensor, otherwise shorter ones.
    pub other_lengths: Option<OtherLengths>,
    /// Whether `attend` tells PyTorch's kernels what the mask promises, which takes a look at its blocks.
    pub promises: bool,
}

/// At which lengths but its own a design means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherLengths {
    /// A formula of plain tokens.
    Any,
    /// Lengths that begin like the design: its tables end with it.
    Shorter,
    /// None: its tokens are a grid.
    None,
}

impl OtherLengths {
    /// As the module writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Shorter => "shorter",
            Self::None => "none",
        }
    }
}

impl Default for ModuleOptions {
    fn default() -> Self {
        Self {
            name: "maskloom_attention".into(),
            title: "An attention mask made with Maskloom.".into(),
            about: Vec::new(),
            other_lengths: None,
            promises: false,
        }
    }
}

/// The module of a problem under its default name: the `.py` first, then the captured tensors' file if it needs one.
///
/// It defines `Q_LEN`, `KV_LEN`, `BATCH` and `HEADS` (None: broadcast), `HEAD_DIM`, `SCALE`, `BLOCK_SIZE`, `KERNEL_OPTIONS`, `mask_mod`
/// and `score_mod` (on the CPU, None if absent), `make_mods(device)`, `make_mask(device)` (dense bool [B or 1, H or 1,
/// Q, KV]), `make_block_mask(device)` and `attend(query, key, value)` on [B, H, S, D].
pub fn torch_module(problem: &Problem) -> Vec<ExportFile> {
    torch_module_with(problem, &ModuleOptions::default())
}

/// The same under a chosen name.
pub fn torch_module_with(problem: &Problem, options: &ModuleOptions) -> Vec<ExportFile> {
    let Printed { names, mask, texts } = printed(problem);
    let with_file = tensors::need_file(&names.tensors);
    let text = Text { problem, options, mask: mask.as_ref(), tensors: &names.tensors, with_file };
    let module = text.module(texts);
    let mut files = vec![ExportFile::new(
        ExportKind::Module,
        format!("{}.py", options.name),
        module,
        "PyTorch module: mask_mod, score_mod, make_block_mask(device), attend(q, k, v)",
    )];
    if with_file {
        let in_file = |t: &HostTensor| matches!(tensors::literal(t, true), Literal::Stored);
        let stored: Vec<_> = names.tensors.iter().filter(|(_, t)| in_file(t)).cloned().collect();
        let name = format!("{}.safetensors", options.name);
        let made = crate::base::tensor_file(
            ExportKind::Module,
            name,
            &stored,
            "captured tensors of the PyTorch module; keep this file next to the .py",
        );
        files.push(made.expect("names are unique and shapes fit their data"));
    }
    files
}

/// The captured tensors by the names that they have in the module, where some words mean something else.
pub fn names(problem: &Problem) -> Vec<(String, HostTensor)> {
    printed(problem).names.tensors
}

/// The mods as text: mask_mod, score_mod.
struct Printed {
    names: Names,
    mask: Option<Mod>,
    texts: [Option<String>; 2],
}

fn printed(problem: &Problem) -> Printed {
    let mut names = Names::reserving(OWN);
    let mask = problem.mask.as_deref().map(simplify);
    let score = problem.score.as_deref().map(simplify);
    let mut text = |name: &str, of: &Option<Mod>| {
        let of = of.as_ref()?;
        let ranges = index_ranges(of, problem);
        let range = |id| ranges.get(&id).copied().unwrap_or((i64::MIN, i64::MAX));
        Some(function(name, of, &mut names, &range))
    };
    let texts = [text("mask_mod", &mask), text("score_mod", &score)];
    Printed { names, mask, texts }
}

struct Text<'a> {
    problem: &'a Problem,
    options: &'a ModuleOptions,
    mask: Option<&'a Mod>,
    tensors: &'a [(String, HostTensor)],
    /// Whether the module has a file of tensors.
    with_file: bool,
}

impl Text<'_> {
    fn module(&self, mods: [Option<String>; 2]) -> String {
        let mut out = self.docstring();
        out.push_str(&self.imports(mods[0].is_some()));
        out.push_str(&self.constants());
        if self.decodes() {
            out.push_str(DECODED);
        }
        out.push_str(&self.mods(mods));
        out.push_str(if self.mask.is_some() { MASK } else { NO_MASK });
        out.push_str(ATTEND);
        out
    }

    fn docstring(&self) -> String {
        let p = self.problem;
        let heads = if p.kv_heads == p.heads {
            format!("{} heads", p.heads)
        } else {
            format!("{} query heads over {} kv heads", p.heads, p.kv_heads)
        };
        let mut out = lines::prose("", &format!("\"\"\"{}", safe(&self.options.title))) + "\n";
        let _ = writeln!(
            out,
            "Designed for {heads} of {} over {} x {} tokens. `attend(query, key, value)` takes [B, H, S, D].",
            p.head_dim, p.q_len, p.kv_len
        );
        for line in &self.options.about {
            out.push('\n');
            out.push_str(&lines::prose("", &safe(line)));
        }
        let _ = write!(out, "\n{LICENCE}\nWritten by Maskloom {}.\n\"\"\"\n\n", identity::build());
        out
    }

    fn imports(&self, mask: bool) -> String {
        let mut out = "from __future__ import annotations\n\n".to_string();
        if self.decodes() {
            out.push_str("import base64\n");
        }
        out.push_str("from collections.abc import Callable, Mapping\n");
        out.push_str("from itertools import count\n");
        if self.with_file || mask {
            out.push_str("from pathlib import Path\n");
        }
        out.push_str(
            "from threading import Lock\nfrom types import FunctionType\nfrom typing import Any, ParamSpec, cast\n\n",
        );
        out.push_str("import torch\nfrom torch import Tensor\n");
        let names = if mask { "BlockMask, create_mask, flex_attention" } else { "BlockMask, flex_attention" };
        let _ = writeln!(out, "from torch.nn.attention.flex_attention import {names}");
        out.push_str("from torch.utils._python_dispatch import _disable_current_modes\n\n");
        out.push_str(TYPES);
        out
    }

    fn constants(&self) -> String {
        let p = self.problem;
        let on = |input| self.mask.is_some_and(|m| m.depends().on(input));
        let extent = |differs: bool, n: usize| if differs { n.to_string() } else { "None".to_string() };
        let other = self.options.other_lengths.unwrap_or(match self.tensors.is_empty() {
            true => OtherLengths::Any,
            false => OtherLengths::Shorter,
        });
        let mut out = String::new();
        let _ = writeln!(out, "Q_LEN = {}\nKV_LEN = {}", p.q_len, p.kv_len);
        let _ = writeln!(out, "# at which other lengths it means the same: any, shorter, none");
        let _ = writeln!(out, "OTHER_LENGTHS: str = \"{}\"", other.word());
        let _ = writeln!(out, "# None: the mask is the same in every batch entry, or for every head");
        let _ = writeln!(out, "BATCH: int | None = {}", extent(on(Input::B), p.batch));
        let _ = writeln!(out, "HEADS: int | None = {}", extent(on(Input::H), p.heads));
        let _ = writeln!(out, "HEAD_DIM = {}", p.head_dim);
        let _ = writeln!(out, "BLOCK_SIZE = ({}, {})", p.block_size.q, p.block_size.kv);
        let _ = writeln!(out, "SCALE = {:?}", p.scale());
        out.push_str(&self.promised());
        let learns: Vec<String> = self.learns().iter().map(|name| format!("\"{name}\"")).collect();
        let head = "LEARNS: tuple[str, ...] = ";
        let _ = writeln!(out, "# float tensors of score_mod that `attend` takes others for, so that they learn");
        out.push_str(&self.computed());
        let _ = writeln!(out, "{head}{}", lines::tuple(0, head.len(), &learns));
        out
    }

    /// `KERNEL_OPTIONS` with the reasons. PyTorch's kernel for fewer than 128 queries reads keys in another order.
    fn promised(&self) -> String {
        let p = self.problem;
        let asked = self.options.promises && p.mask.is_some() && p.q_len >= 128;
        let blocks = asked.then(|| p.block_mask(p.block_size, &Control::new()).ok()).flatten();
        let found = blocks.map(|blocks| promises(&blocks)).unwrap_or_default();
        let all = [
            // a score_mod may give -inf, which hides a cell
            (found.rows_safe && p.score.is_none(), "ROWS_GUARANTEED_SAFE", SAFE),
            (found.contiguous, "BLOCKS_ARE_CONTIGUOUS", SIDE_BY_SIDE),
        ];
        let mut out =
            "# what the mask promises to FlexAttention's kernels at these lengths and this BLOCK_SIZE\n".to_string();
        let made = || all.iter().filter(|(holds, ..)| *holds);
        made().for_each(|(_, name, why)| out.push_str(&lines::prose("# ", &format!("{name}: {why}"))));
        let values: Vec<String> = made().map(|(_, name, _)| format!("\"{name}\": True")).collect();
        let _ = writeln!(out, "KERNEL_OPTIONS: dict[str, bool] = {{{}}}", values.join(", "));
        out
    }

    /// Names in the module of tensors that a gradient of the scores goes to.
    fn learns(&self) -> Vec<&str> {
        let Some(score) = self.problem.score.as_deref() else { return Vec::new() };
        let simple = simplify(score);
        let read = derive(&simple, |_| true).map(|derived| derived.captures()).unwrap_or_default();
        let tensor = |id: &CaptureId| &simple.graph.capture(*id).tensor;
        let named = |id: &CaptureId| self.tensors.iter().find(|(_, t)| t.same_storage(tensor(id)));
        read.iter().filter_map(named).map(|(name, _)| name.as_str()).collect()
    }

    /// Comments on those of them that the design's code computed from parameters.
    fn computed(&self) -> String {
        let Some(score) = self.problem.score.as_deref() else { return String::new() };
        let mut out = String::new();
        for (name, tensor) in self.tensors.iter().filter(|(name, _)| self.learns().contains(&name.as_str())) {
            let of = |id| score.graph.capture(id);
            let held = score.graph.ids_of_captures().map(of).find(|held| held.tensor.same_storage(tensor));
            let parents = held.and_then(|held| held.made.as_deref()).map(Made::parents).unwrap_or_default();
            if parents.is_empty() {
                continue;
            }
            let reported = format!(
                "{name} is computed from {} by the design's code: `attend` takes it computed, and its gradient is of it",
                parents.join(" and ")
            );
            out.push_str(&lines::prose("# ", &reported));
        }
        out
    }

    fn decodes(&self) -> bool {
        self.tensors.iter().any(
            |(_, t)| matches!(tensors::literal(t, self.with_file), Literal::Text(text) if text.starts_with("_decoded")),
        )
    }

    /// `make_mods`, and the mods themselves: at the top level if they capture nothing, otherwise in the function.
    fn mods(&self, mods: [Option<String>; 2]) -> String {
        let [mask, score] = mods.map(|text| text.map(|text| annotated(&text)));
        if self.tensors.is_empty() {
            let alone = |name: &str, kind: &str, text: &Option<String>| match text {
                Some(text) => format!("\n\n{text}"),
                None => format!("\n\n{name}: {kind} | None = None\n"),
            };
            return [alone("mask_mod", "MaskMod", &mask), alone("score_mod", "ScoreMod", &score), PLAIN_MODS.into()]
                .concat();
        }
        let mut out = format!("\n\ndef _mods(device: torch.device, learned: Mapping[str, Tensor] = {{}}) -> {MODS}:\n");
        if self.with_file {
            let file = format!("Path(__file__).with_name(\"{}.safetensors\")", self.options.name);
            out.push_str("    from safetensors.torch import load_file\n\n");
            let given = [file, "device=str(device)".to_string()];
            let _ = writeln!(out, "    {}", lines::call(4, 4, "stored = load_file", &given, ""));
        }
        let learns = self.learns();
        for (name, tensor) in self.tensors {
            let value = match tensors::literal(tensor, self.with_file) {
                Literal::Text(text) => text,
                Literal::Stored => format!("stored[\"{name}\"]"),
            };
            let _ = writeln!(out, "    {name} = {}", given(name, &value, learns.contains(&name.as_str())));
        }
        for (name, kind, text) in [("mask_mod", "MaskMod", mask), ("score_mod", "ScoreMod", score)] {
            match text {
                Some(text) => {
                    let indented: String = text.lines().map(|l| format!("    {l}\n")).collect();
                    let _ = write!(out, "\n{indented}");
                }
                None => {
                    let _ = writeln!(out, "\n    {name}: {kind} | None = None");
                }
            }
        }
        out.push_str("\n    return mask_mod, score_mod\n");
        out.push_str(MAKE_MODS);
        out
    }
}

/// A tensor's value in the function that creates the mods: the learned one if there is one, otherwise its own.
fn given(name: &str, own: &str, learns: bool) -> String {
    if !learns {
        return own.to_string();
    }
    let whole = format!("learned[\"{name}\"] if \"{name}\" in learned else {own}");
    if lines::fits(4 + name.len() + 3, &whole) {
        return whole;
    }
    let own = own.replace('\n', "\n    ");
    format!("(\n        learned[\"{name}\"]\n        if \"{name}\" in learned\n        else {own}\n    )")
}

/// A mod's first line with types.
fn annotated(function: &str) -> String {
    let (head, body) = function.split_once(":\n").expect("a function");
    let (name, parameters) = head.split_once('(').expect("parameters");
    let typed: Vec<String> =
        parameters.trim_end_matches(')').split(", ").map(|parameter| format!("{parameter}: Tensor")).collect();
    format!("{name}({}) -> Tensor:\n{body}", typed.join(", "))
}

/// Text that cannot end a docstring, on one line.
fn safe(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace("\"\"\"", "'''");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const SAFE: &str = "each query keeps one of the first 16 keys of the first block that is read for it";
const SIDE_BY_SIDE: &str = "the partial blocks of each row and column lie side by side, and the full ones too";
/// The mods of a device.
const MODS: &str = "tuple[MaskMod | None, ScoreMod | None]";
const LICENCE: &str = "SPDX-License-Identifier: MIT (the text around the design; the design is its maker's).";
const TYPES: &str = r#"Device = torch.device | str
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
P = ParamSpec("P")

"#;
const PLAIN_MODS: &str = r#"

def make_mods(device: Device) -> tuple[MaskMod | None, ScoreMod | None]:
    """mask_mod and score_mod; they capture no tensors."""
    return mask_mod, score_mod


def _mods(device: torch.device, learned: Mapping[str, Tensor] = {}) -> tuple[MaskMod | None, ScoreMod | None]:
    return mask_mod, score_mod
"#;
const DECODED: &str = include_str!("../../assets/python/module/decoded.py");
const MAKE_MODS: &str = include_str!("../../assets/python/module/make_mods.py");
const MASK: &str = include_str!("../../assets/python/module/mask.py");
const NO_MASK: &str = include_str!("../../assets/python/module/no_mask.py");
const ATTEND: &str = include_str!("../../assets/python/module/attend.py");

#[cfg(test)]
#[path = "module_tests.rs"]
mod tests;
