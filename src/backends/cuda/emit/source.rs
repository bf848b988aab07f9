//! The complete text that NVRTC compiles: macros of the variant, our own headers, the emitted mods, the kernel.
//!
//! Invariant: it needs no external header; every part starts with a `#line` mark that names its file. Must not know
//! problems or devices.

use crate::backends::cuda::variant::backward::{BackwardKernel, BackwardSpec};
use crate::backends::cuda::variant::spec::{Kernel, KernelSpec, MaskKind, ScoreKind};
use crate::base::DType;

/// An embedded file of `kernels/`.
macro_rules! part {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../kernels/", $name)))
    };
}

type Part = (&'static str, &'static str);
const BEFORE_MODS: &[Part] = &[part!("types.cuh"), part!("ptx.cuh"), part!("params.cuh"), part!("mods.cuh")];
const AFTER_MODS: &[Part] = &[
    part!("tile.cuh"),
    part!("schedule.cuh"),
    part!("cursor.cuh"),
    part!("ranges.cuh"),
    part!("softmax.cuh"),
    part!("attend.cuh"),
];
const FOR_HOPPER: &[Part] = &[
    part!("schedule.cuh"),
    part!("cursor.cuh"),
    part!("ranges.cuh"),
    part!("hopper.cuh"),
    part!("pipeline_sm90.cuh"),
    part!("scores_sm90.cuh"),
    part!("rows_sm90.cuh"),
];
const FOR_DECODE: &[Part] = &[part!("tile.cuh"), part!("cursor.cuh"), part!("softmax.cuh")];
const FLEX_SM90: Part = part!("flex_sm90.cu");
const FLEX_SM80: Part = part!("flex_sm80.cu");
const DECODE_SM80: Part = part!("decode_sm80.cu");
const EAGER: Part = part!("eager.cu");
const DENSE: Part = part!("dense.cuh");
const LINKED: Part = part!("linked.cuh");
const LINKED_MODS: Part = part!("linked_mods.cuh");
const MAP: Part = part!("map.cu");
const BEFORE_MERGE: Part = part!("types.cuh");
const MERGE: Part = part!("merge.cu");
const WIDE: Part = part!("wide.cuh");
const BLOCK_MASK: Part = part!("block_mask.cu");
const BEFORE_BACKWARD_MODS: &[Part] = &[part!("types.cuh"), part!("ptx.cuh"), part!("backward.cuh"), part!("mods.cuh")];
const FAMILIES: Part = part!("families.cuh");
const HOPPER_BACKWARD: &[Part] = &[
    part!("cursor.cuh"),
    part!("hopper.cuh"),
    part!("reduce_sm90.cuh"),
    part!("captures.cuh"),
    part!("words.cuh"),
    part!("backward_pipeline_sm90.cuh"),
    part!("cells.cuh"),
    part!("products_sm90.cuh"),
    part!("parts_sm90.cuh"),
];
const AMPERE_BACKWARD: &[Part] =
    &[part!("cursor.cuh"), part!("tile.cuh"), part!("captures.cuh"), part!("words.cuh"), part!("cells.cuh")];
const BACKWARD_SM90: Part = part!("backward_sm90.cu");
const BACKWARD_WIDE_SM90: Part = part!("backward_wide_sm90.cu");
const BACKWARD_SM80: Part = part!("backward_sm80.cu");
const DELTA: Part = part!("delta.cu");
const BINS: Part = part!("bins.cuh");
const CAPTURED: Part = part!("captured.cu");
const EAGER_BACKWARD: &[Part] = &[part!("tile.cuh"), part!("eager_backward.cu")];

/// The text for a variant and its emitted mods; if they are linked, its own part does not contain them.
pub(crate) fn assemble(spec: &KernelSpec, mods: &str) -> String {
    let (after, kernel) = match spec.kernel {
        Kernel::FlexSm90 => (FOR_HOPPER, FLEX_SM90),
        Kernel::FlexSm80 => (AFTER_MODS, FLEX_SM80),
        Kernel::DecodeSm80 => (FOR_DECODE, DECODE_SM80),
        Kernel::Eager => (AFTER_MODS, EAGER),
    };
    let dense = (spec.mask == MaskKind::Dense).then_some(DENSE);
    let mut text = format!("// {}\n{}", spec.name(), spec.defines());
    BEFORE_MODS.iter().for_each(|part| push(&mut text, part));
    match spec.score {
        ScoreKind::Linked => push(&mut text, &LINKED),
        _ => text.push_str(mods),
    }
    after.iter().chain([&kernel]).chain(dense.as_ref()).for_each(|part| push(&mut text, part));
    text
}

/// The text of a backward kernel with its emitted mods.
pub(crate) fn assemble_backward(spec: &BackwardSpec, mods: &str) -> String {
    let (after, kernel) = match spec.kernel {
        BackwardKernel::Hopper => (HOPPER_BACKWARD, BACKWARD_SM90),
        BackwardKernel::HopperWide => (HOPPER_BACKWARD, BACKWARD_WIDE_SM90),
        BackwardKernel::Ampere => (AMPERE_BACKWARD, BACKWARD_SM80),
    };
    let mut text = before_backward(spec, mods);
    // the emitted text brings its own sums where captured tensors get gradients
    let wanted = after.iter().filter(|(name, _)| !spec.mods.captures() || *name != "captures.cuh");
    wanted.chain([&kernel]).for_each(|part| push(&mut text, part));
    text
}

/// The text of what runs before and after it.
pub(crate) fn assemble_rows(spec: &BackwardSpec, mods: &str) -> String {
    let mut text = before_backward(spec, mods);
    push(&mut text, &DELTA);
    if spec.has_bins() {
        push(&mut text, &CAPTURED);
    }
    text
}

/// The text of eager's backward pass with its own macros.
pub(crate) fn assemble_eager_backward(name: &str, defines: &str, mods: &str) -> String {
    let mut text = format!("// {name}\n{defines}");
    BEFORE_MODS.iter().for_each(|part| push(&mut text, part));
    text.push_str(mods);
    EAGER_BACKWARD.iter().for_each(|part| push(&mut text, part));
    text
}

fn before_backward(spec: &BackwardSpec, mods: &str) -> String {
    let mut text = format!("// {}\n{}", spec.name(), spec.defines());
    for part in BEFORE_BACKWARD_MODS {
        push(&mut text, part);
        if part.0 == "backward.cuh" && spec.has_bins() {
            push(&mut text, &BINS);
        }
    }
    if spec.mods.in_families() {
        push(&mut text, &FAMILIES);
    }
    text + mods
}

/// The other part, for a variant to which mods are linked. `mask` and `score`: which of them are emitted.
pub(crate) fn assemble_mods(spec: &KernelSpec, mods: &str, mask: bool, score: bool) -> String {
    let values = [
        ("M_TILES", spec.tile_q / (16 * spec.warps)),
        ("COLUMNS", spec.tile_kv / 4),
        ("HAS_MASK", usize::from(mask)),
        ("HAS_SCORE", usize::from(score)),
        ("BITMAP", usize::from(matches!(spec.mask, MaskKind::Bitmap | MaskKind::Interval))),
        ("BF16", usize::from(spec.dtype == DType::BF16)),
    ];
    let mut text = values.map(|(name, value)| format!("#define ML_{name} {value}\n")).concat();
    BEFORE_MODS.iter().for_each(|part| push(&mut text, part));
    text.push_str(mods);
    push(&mut text, &LINKED_MODS);
    text
}

/// The text that draws attention maps, with its own macros.
pub(crate) fn assemble_map(values: &[(&str, usize)], mods: &str) -> String {
    let mut text: String = values.iter().map(|(name, value)| format!("#define ML_{name} {value}\n")).collect();
    BEFORE_MODS.iter().for_each(|part| push(&mut text, part));
    text.push_str(mods);
    push(&mut text, &MAP);
    text
}

/// The text that merges parts of attention.
pub(crate) fn assemble_merge(dtype: DType) -> String {
    let mut text =
        format!("// merge\n#define ML_BF16 {}\n#define ML_MAX_SCORES 0\n", usize::from(dtype == DType::BF16));
    [BEFORE_MERGE, MERGE].iter().for_each(|part| push(&mut text, part));
    text
}

/// The text that finds the blocks of a mask whose ints have 64 bits.
pub(crate) fn assemble_block_mask(mask: &str) -> String {
    let mut text = String::from("// block_mask\n#define ML_BF16 1\n#define ML_MAX_SCORES 0\n#define ML_BOUNDED 0\n");
    BEFORE_MODS.iter().chain([&WIDE]).for_each(|part| push(&mut text, part));
    text.push_str(mask);
    push(&mut text, &BLOCK_MASK);
    text
}

fn push(text: &mut String, (name, body): &Part) {
    text.push_str(&format!("#line 1 \"{name}\"\n{body}\n"));
}

/// The emitted mods with a kernel that only calls them: for tests of the emitter, because it compiles quickly.
#[cfg(test)]
pub(crate) fn probe(emitted: &str, mask: bool, score: bool) -> String {
    let mut text = String::from("#define ML_BF16 1\n");
    BEFORE_MODS.iter().for_each(|part| push(&mut text, part));
    text.push_str(emitted);
    text.push_str(
        "extern \"C\" __global__ void probe(ML_MODS_PARAMETER, float *out, int n) {\n    float x = out[n];\n",
    );
    text.push_str(
        "    int b = n, h = n * 3, q_idx = threadIdx.x, kv_idx = blockIdx.x;\n    HeadValues head = head_values(ML_MODS, b, h);\n    \
         RowValues row = row_values(ML_MODS, head, b, h, q_idx);\n    \
         ColumnValues column = column_values(ML_MODS, head, b, h, kv_idx);\n",
    );
    let arguments = "head, row, column, b, h, q_idx, kv_idx";
    if score {
        text.push_str(&format!(
            "    x = score_mod(ML_MODS, 0, x, 0.5f, {arguments}) + score_mod(ML_MODS, 1, x, 0.5f, {arguments});\n"
        ));
    }
    if mask {
        text.push_str(&format!("    if (!mask_mod(ML_MODS, {arguments})) x = negative_infinity();\n"));
    }
    text.push_str("    out[threadIdx.x] = x;\n}\n");
    text
}
