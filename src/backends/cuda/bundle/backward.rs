//! The backward pass in a kernel bundle: its texts, machine code, lists and launch, and the tensors with gradients.
//!
//! Invariant: without a backward pass the bundle gives the reason before the first training step. Each value that
//! Python fills in is named with its type, in the struct's order. Must not know folders or devices.

use crate::backends::cuda::emit::layout::capture_bytes;
use crate::backends::cuda::lists::words::{Item, words};
use crate::backends::cuda::toolchain::backward::{BIN_BYTES, BackwardDraft, MOST_ADDITIONS, most_additions};
use crate::backends::cuda::toolchain::cache::Cache;
use crate::backends::cuda::toolchain::compile::Compiler;
use crate::backends::cuda::variant::backward::{BackwardKernel, BackwardWays};
use crate::backends::cuda::variant::limits::Limits;
use crate::backends::cuda::variant::spec::MaskKind;
use crate::base::tensor::Data;
use crate::base::{Diagnostic, ExportFile, ExportKind, HostTensor};
use crate::ir::graph::{CaptureId, Mod};
use crate::ir::made::Made;
use crate::ir::passes::derive::derive;
use crate::problem::Problem;
use serde_json::{Value, json};

/// The float tensors that get gradients, as the score mod reads them.
pub(super) fn learning(problem: &Problem) -> Vec<CaptureId> {
    let derived = problem.score.as_deref().map(|score| derive(score, |_| true));
    derived.and_then(Result::ok).map(|derived| derived.captures()).unwrap_or_default()
}

/// Their description in the loader, with their names in the module.
pub(super) fn reported(problem: &Problem, names: &[(String, HostTensor)]) -> Vec<Value> {
    let Some(score) = problem.score.as_deref() else { return Vec::new() };
    let one = |id: CaptureId| {
        let held = score.graph.capture(id);
        let named = names.iter().find(|(_, tensor)| tensor.same_storage(&held.tensor));
        json!({
            "name": named.map_or(held.name.as_str(), |(name, _)| name.as_str()), "shape": held.tensor.shape(), "dtype": held.tensor.dtype().torch_name(),
            "computed_from": held.made.as_deref().map(Made::parents).unwrap_or_default(),
        })
    };
    learning(problem).into_iter().map(one).collect()
}

/// For each captured tensor of a launch, its index among the tensors with gradients.
pub(super) fn places(problem: &Problem, captured: &[(&str, &HostTensor)]) -> Vec<Value> {
    let score: Option<&Mod> = problem.score.as_deref();
    let learning = learning(problem);
    let place = |tensor: &HostTensor| {
        let same = |id: &CaptureId| score.is_some_and(|s| s.graph.capture(*id).tensor.same_storage(tensor));
        learning.iter().position(same).map_or(Value::Null, |at| json!(at))
    };
    captured.iter().map(|(_, tensor)| place(tensor)).collect()
}

/// The backward pass of one architecture: its launch, or the refusal. Its files and tensors are added to the existing
/// ones.
pub(super) fn variant(
    problem: &Problem,
    deterministic: bool,
    (limits, arch): (&Limits, &str),
    (compiler, cache): (&dyn Compiler, Option<&Cache>),
    files: &mut Vec<ExportFile>,
    tensors: &mut Vec<(String, HostTensor)>,
) -> Result<Value, Diagnostic> {
    // the loader gives the gradient of the lse too: zeros where nothing is made of it
    let ways = BackwardWays { deterministic, d_lse: true };
    let (draft, code) = match BackwardDraft::made(problem, limits, ways, arch, compiler, cache) {
        Ok(made) => made,
        // a failing compiler fails the export, and so does a requested order; the module reports an unsupported problem
        // at its first call
        Err(why) if why.code.starts_with("kernel-") || why.code == "no-fixed-order" => return Err(why),
        Err(why) => return Ok(json!({ "refused": refusal(&why) })),
    };
    let spec = &draft.spec;
    let mut kernel = |what: &str, text: &str, cubin: &[u8]| {
        let name = format!("{what}.{arch}");
        files.push(ExportFile::new(
            ExportKind::Kernel,
            format!("kernels/{name}.cu"),
            text,
            "the kernel's complete text, without includes",
        ));
        let made = format!("machine code for {arch}, made by {}", compiler.version());
        files.push(ExportFile::new(ExportKind::Kernel, format!("kernels/{name}.cubin"), cubin.to_vec(), made));
        format!("{name}.cubin")
    };
    let main = kernel(spec.entry(), &draft.text, &code.main.cubin);
    let rows = kernel("backward_rows", &draft.rows_text, &code.rows.cubin);
    lists(problem, &draft, arch, tensors);
    let captured = draft.mods.captures();
    for (at, (name, tensor)) in captured.iter().enumerate() {
        let data = Data::U8(capture_bytes(name, tensor)?);
        tensors.push((format!("{arch}.backward_capture{at}"), HostTensor::vector(data)));
    }
    let gradient = draft.mods.gradient.as_ref();
    // bytes of an element's bins; 0 where each element is written by one cell
    let bins = gradient.filter(|_| spec.has_bins()).map(|g| {
        let bytes = |has| if has { BIN_BYTES } else { 0 };
        g.with_bins().into_iter().map(bytes).collect::<Vec<_>>()
    });
    let additions = gradient.map_or(0, |g| most_additions(problem, g, spec));
    let values: Vec<_> = captured.iter().map(|(_, tensor)| *tensor).collect();
    let layout = &draft.emitted.layout;
    // addresses come first; the loader writes them
    let mods = layout.fill(&vec![0; layout.words()], &values, &draft.mods.ints, &draft.mods.floats);
    tensors.push((format!("{arch}.backward_mods"), HostTensor::vector(Data::U8(mods))));
    Ok(json!({
        "main": main, "rows": rows, "entry": spec.entry(), "threads": spec.threads(),
        "shared_bytes": spec.shared_bytes(), "hopper": spec.is_hopper(),
        "tile_q": spec.tile_q, "tile_kv": spec.tile_kv, "qk_width": spec.qk_width,
        "part_lines": if spec.kernel == BackwardKernel::Hopper { 64 * spec.part_width() / 256 } else { 1 },
        "bit_words": spec.bit_words(), "q_tiles": draft.q_tiles, "kv_tiles": draft.lists.kv_tiles,
        "mask_batch": draft.lists.batch, "mask_heads": draft.lists.heads,
        "captures": places(problem, &captured), "gradients": gradient.map_or(0, |g| g.captures.len()),
        "mods_by_pointer": layout.by_pointer(),
        "bins": bins, "additions": additions as u64, "most_additions": MOST_ADDITIONS as u64,
    }))
}

/// The refusal on one line, with its way out.
fn refusal(why: &Diagnostic) -> String {
    match &why.hint {
        Some(hint) => format!("{} ({hint})", why.message),
        None => why.message.clone(),
    }
}

/// Lists as `launch/backward.rs` uploads them; units of one batch entry if the mask is the same in all.
fn lists(problem: &Problem, draft: &BackwardDraft, arch: &str, tensors: &mut Vec<(String, HostTensor)>) {
    let (lists, bits) = (&draft.lists, &draft.bits);
    let one_batch = |item: &&Item| problem.mask_per_batch() || item.batch == 0;
    let items: Vec<Item> = lists.items.iter().filter(one_batch).copied().collect();
    let blank = vec![0u32; draft.spec.bit_words()];
    let is_bitmap = draft.spec.mask == MaskKind::Bitmap;
    let or_blank = |words: &Vec<u32>, kept: bool| if !kept || words.is_empty() { blank.clone() } else { words.clone() };
    let all = [
        ("items", words(&items)),
        ("row_start", lists.row_start.clone()),
        ("runs", lists.runs.as_flattened().to_vec()),
        ("bitmap_start", or_blank(&bits.start, is_bitmap)),
        ("bitmap_ids", or_blank(&bits.ids, is_bitmap)),
        ("bitmaps", or_blank(&bits.words, is_bitmap)),
        ("ranges", or_blank(&draft.ranges, true)),
        ("order_start", or_blank(&lists.order_start, draft.spec.ways.deterministic)),
        ("order", or_blank(&lists.order, draft.spec.ways.deterministic)),
    ];
    for (name, words) in all {
        let data = Data::I32(words.iter().map(|w| *w as i32).collect());
        tensors.push((format!("{arch}.backward_{name}"), HostTensor::vector(data)));
    }
}
