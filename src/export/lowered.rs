//! A design's mask in the forms of other libraries: a small Python module with the call, and a file with the numbers.
//!
//! Invariant: `make_mask()` of each module is the design's mask, cell by cell, at its own lengths; a design with a score mod is refused.
//! Must not know how the forms are found.

use super::{ExportFile, ExportKind, lines};
use crate::analysis::lowered::{ColumnBounds, RowEnds, Slice, SliceKind};
use crate::base::tensor::Data;
use crate::base::words::grouped;
use crate::base::{Diagnostic, HostTensor, identity};
use crate::problem::Problem;
use std::fmt::Write;

const SHARED: &str = include_str!("../../assets/python/lowered/shared.py");
const CUDNN: &str = include_str!("../../assets/python/lowered/cudnn.py");
const FLASHMASK: &str = include_str!("../../assets/python/lowered/flashmask.py");
const MAGI: &str = include_str!("../../assets/python/lowered/magi.py");

/// A library that takes masks as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `cudnn.flex_attention`: ends of each row's ranges of keys.
    Cudnn,
    /// FlashMask: bounds of the rows that each key is hidden from.
    FlashMask,
    /// MagiAttention: slices.
    Magi,
}

impl Target {
    /// Its name, and that of its files after the design's.
    pub fn name(self) -> &'static str {
        match self {
            Target::Cudnn => "cudnn",
            Target::FlashMask => "flashmask",
            Target::Magi => "magi",
        }
    }

    /// The library's own name.
    pub fn library(self) -> &'static str {
        match self {
            Target::Cudnn => "cudnn.flex_attention",
            Target::FlashMask => "FlashMask",
            Target::Magi => "MagiAttention",
        }
    }
}

/// A mask in a target's form.
#[derive(Clone, Debug)]
pub enum Form {
    /// For `cudnn.flex_attention`.
    Ends(RowEnds),
    /// For FlashMask.
    Bounds(ColumnBounds),
    /// For MagiAttention: those of each batch entry that differs.
    Slices(Vec<Vec<Slice>>),
}

impl Form {
    fn target(&self) -> Target {
        match self {
            Form::Ends(_) => Target::Cudnn,
            Form::Bounds(_) => Target::FlashMask,
            Form::Slices(_) => Target::Magi,
        }
    }

    /// `nfunc 3, 96 KiB`, `1 bound a key, causal`, `17 slices`.
    pub fn words(&self, batch: usize) -> String {
        match self {
            Form::Ends(ends) => ends.words(batch),
            Form::Bounds(found) => {
                let (many, causal) =
                    (if found.count() == 1 { "" } else { "s" }, if found.causal { ", causal" } else { "" });
                format!("{} bound{many} a key{causal}", found.count())
            }
            Form::Slices(all) => {
                let count: usize = all.iter().map(Vec::len).sum();
                format!("{} slice{}", grouped(count as u128), if count == 1 { "" } else { "s" })
            }
        }
    }

    /// Constants of the module, and the tensors of its file.
    fn numbers(&self, q_len: u32, kv_len: u32) -> (String, Vec<(String, HostTensor)>) {
        match self {
            Form::Ends(found) => {
                let constants = format!("# ends of a row\nNFUNC = {}\n", found.count());
                (constants, vec![("mask_func".into(), found.ends.clone())])
            }
            Form::Bounds(found) => {
                let causal = if found.causal { "True" } else { "False" };
                let constants = format!(
                    "# bounds of a key\nBOUNDS = {}\n# whether queries before the key are hidden, too\nCAUSAL = {causal}\n",
                    found.count()
                );
                (constants, vec![("startend_row_indices".into(), found.bounds.clone())])
            }
            Form::Slices(all) => {
                let (mut q, mut k, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
                for (b, slice) in all.iter().enumerate().flat_map(|(b, own)| own.iter().map(move |s| (b as u32, s))) {
                    q.extend([slice.q.start, slice.q.end].map(|n| (b * q_len + n) as i32));
                    k.extend([slice.k.start, slice.k.end].map(|n| (b * kv_len + n) as i32));
                    kinds.push(kind(slice.kind));
                }
                let pairs = |all: Vec<i32>| {
                    HostTensor::new([all.len() / 2, 2], Data::I32(all)).expect("its shape has as many elements")
                };
                let kinds = HostTensor::vector(Data::I32(kinds));
                let tensors = [("q_ranges", pairs(q)), ("k_ranges", pairs(k)), ("attn_type_map", kinds)];
                (String::new(), tensors.map(|(name, tensor)| (name.to_string(), tensor)).into())
            }
        }
    }
}

/// MagiAttention's number of a kind.
fn kind(of: SliceKind) -> i32 {
    match of {
        SliceKind::Full => 0,
        SliceKind::Causal => 1,
        SliceKind::InverseCausal => 2,
        SliceKind::BiCausal => 3,
    }
}

/// The refusal of a score mod, which no target takes.
pub fn no_score(target: Target) -> Diagnostic {
    let message = format!("{} takes a mask, and this design has a score mod", target.library());
    Diagnostic::error("lowered-score", message)
}

/// The module `STEM_TARGET.py` and its numbers. Errors: the design has a score mod, which no target takes.
pub fn lowered(stem: &str, title: &str, problem: &Problem, form: &Form) -> Result<[ExportFile; 2], Diagnostic> {
    let target = form.target();
    if problem.score.is_some() {
        return Err(no_score(target).hint("export the PyTorch module or a kernel, or switch the score mod off"));
    }
    let name = format!("{stem}_{}", target.name());
    let (constants, tensors) = form.numbers(problem.q_len as u32, problem.kv_len as u32);
    let words = form.words(problem.batch);
    let text = module(title, problem, target, &words, &constants);
    let what = format!("the mask for {}: {words}", target.library());
    Ok([
        ExportFile::new(ExportKind::Module, format!("{name}.py"), text, &what),
        crate::base::tensor_file(
            ExportKind::Module,
            format!("{name}.safetensors"),
            &tensors,
            "its numbers; keep this file next to the .py",
        )?,
    ])
}

fn module(title: &str, problem: &Problem, target: Target, words: &str, constants: &str) -> String {
    let (about, body) = match target {
        Target::Cudnn => {
            ("Needs nvidia-cudnn-frontend 1.32 or newer, and a GPU of compute capability 9.0, 10.0 or 10.3.", CUDNN)
        }
        Target::FlashMask => (
            "Needs FlashMask for PyTorch (PaddlePaddle/flash-attention). Bounds mean what its dense form means.",
            FLASHMASK,
        ),
        Target::Magi => ("Needs MagiAttention. No cell is in two slices.", MAGI),
    };
    let title = title.replace('\\', "\\\\").replace("\"\"\"", "'''");
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = lines::prose("", &format!("\"\"\"{title} for {}.", target.library())) + "\n";
    let exact = format!(
        "The mask as {words}: exactly the design's cells at {} queries and {} keys. At other lengths it means nothing.",
        problem.q_len, problem.kv_len
    );
    out.push_str(&lines::prose("", &exact));
    out.push_str(&lines::prose("", about));
    let _ = write!(
        out,
        "\nSPDX-License-Identifier: MIT (the text around the design; the design is its maker's).\nWritten by Maskloom {}.\n\"\"\"\n\n",
        identity::build()
    );
    out.push_str("from __future__ import annotations\n\nimport importlib\nfrom pathlib import Path\n");
    let typing = if target == Target::Cudnn { "Any, cast" } else { "cast" };
    let _ = writeln!(
        out,
        "from typing import {typing}\n\nimport torch\nfrom safetensors.torch import load_file\nfrom torch import Tensor\n"
    );
    let extent = |differs: bool, n: usize| if differs { n.to_string() } else { "None".to_string() };
    let _ = writeln!(out, "Device = torch.device | str\n\nQ_LEN = {}\nKV_LEN = {}", problem.q_len, problem.kv_len);
    let _ = writeln!(out, "# None: the mask is the same in every batch entry, or for every head");
    let _ = writeln!(out, "BATCH: int | None = {}", extent(problem.mask_per_batch(), problem.batch));
    let _ = writeln!(out, "HEADS: int | None = {}", extent(problem.mask_per_head(), problem.heads));
    let _ = writeln!(out, "SCALE = {:?}", problem.scale());
    out.push_str(constants);
    out.push_str(SHARED);
    out.push_str("\n\n");
    out.push_str(body);
    out
}
