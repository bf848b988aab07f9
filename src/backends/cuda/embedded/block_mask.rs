//! The recipe that finds a mask's blocks on the device, from tensors whose contents the host never sees.
//!
//! Invariant: the lists are those of `analysis::block_mask` for the same contents. What is chosen depends on shapes alone. Must not know
//! PyTorch's objects.

use super::Card;
use super::recipe::{At, Part, Recipe};
use crate::backends::cuda::emit::mods::LiftedMods;
use crate::backends::cuda::emit::{functions, source};
use crate::backends::cuda::launch::params::packed;
use crate::backends::cuda::toolchain::cache::Cache;
use crate::backends::cuda::toolchain::compile::{Compiler, Form, obtain};
use crate::backends::cuda::variant::exact;
use crate::base::{BlockSize, Diagnostic, Lengths};
use crate::ir::graph::{Input, Mod};
use crate::ir::schedule::needed;

packed! {
    /// kernels/block_mask.cu's struct; addresses are u64, 0 where a list is not wanted.
    Blocks {
        classes: u64, spans: u64,
        kv_counts: u64, kv_indices: u64, full_kv_counts: u64, full_kv_indices: u64,
        q_counts: u64, q_indices: u64, full_q_counts: u64, full_q_indices: u64,
        q_len: i64, kv_len: i64,
        block_q: i32, block_kv: i32, rows: i32, columns: i32,
        heads: i32, entry_batch: i32, entry_heads: i32, nothing: i32,
    }
}

/// The lists' names in the struct, in the order of [`Wanted::places`].
const LISTS: [&str; 8] = [
    "kv_counts",
    "kv_indices",
    "full_kv_counts",
    "full_kv_indices",
    "q_counts",
    "q_indices",
    "full_q_counts",
    "full_q_indices",
];
/// Bytes of a line's spans at most: a holder keeps four values (`emit/hoist.rs`).
const LINE_BYTES: usize = 4 * 16;
/// Threads of a block of `mark_blocks`, and of `span_lines` and `list_blocks`, as the kernels have them.
const MARKING: usize = 256;
const LISTING: usize = 128;
/// Blocks that a launch has in its second and third direction.
const MOST: usize = 65_535;
/// Cells that may have to be looked at one by one; beyond, the host finds the blocks sooner, which divides boxes further.
const CELLS: u128 = 1 << 34;
/// Operations of a mask: a row's values lie in shared memory.
const OPERATIONS: usize = 256;
/// Smallest blocks in tokens: smaller ones leave most threads without cells.
const SMALLEST: usize = 16;

/// Which block mask is wanted, and where its lists lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// Batch entries and heads of the lists.
    pub groups: (usize, usize),
    /// Tokens.
    pub lengths: Lengths,
    /// Tokens of a block.
    pub block: BlockSize,
    /// For the kv blocks of each q block counts and indices of the partial ones, counts and indices of the full ones, and the same for the q
    /// blocks of each kv block: int32 elements before the list in the call's memory. Without full ones the partial lists hold both.
    pub places: [Option<usize>; 8],
}

/// How many entries of a dimension differ.
fn differing(mask: &Mod, input: Input, count: usize) -> usize {
    if mask.depends().on(input) { count } else { 1 }
}

/// Errors if the kernel does not take this mask at these sizes.
fn check(mask: &Mod, wanted: &Wanted, entries: usize, (rows, columns): (usize, usize)) -> Result<(), Diagnostic> {
    let pairs = wanted.groups.0 * wanted.groups.1;
    let cells = wanted.lengths.q_len as u128 * wanted.lengths.kv_len as u128 * entries as u128;
    let dims = mask.graph.captures().iter().flat_map(|c| c.tensor.shape());
    let why = if !exact::in_wide_ints(mask) {
        "a GPU rounds or holds a value of this mask otherwise than the host"
    } else if needed(&mask.graph, &[mask.root]).len() > OPERATIONS {
        "the mask has too many operations"
    } else if cells > CELLS {
        "the host finds the blocks of so many cells sooner"
    } else if rows > MOST || pairs > MOST || columns > i32::MAX as usize / 2 {
        "a launch has fewer blocks"
    } else if wanted.block.q.min(wanted.block.kv) < SMALLEST {
        "the blocks are small"
    } else if dims.into_iter().any(|n| i32::try_from(*n).is_err()) {
        "a captured tensor is too long"
    } else {
        return Ok(());
    };
    Err(Diagnostic::error("block-mask-on-card", why).hint("copy the tensors to the host"))
}

/// Compiles the kernels. A call gives the lists' memory and the captured tensors.
pub(super) fn recipe(
    mask: &Mod,
    wanted: &Wanted,
    card: &Card,
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
) -> Result<Recipe, Diagnostic> {
    let (rows, columns) =
        (wanted.lengths.q_len.div_ceil(wanted.block.q), wanted.lengths.kv_len.div_ceil(wanted.block.kv));
    let (batch, heads) = wanted.groups;
    let (entry_batch, entry_heads) = (differing(mask, Input::B, batch), differing(mask, Input::H, heads));
    check(mask, wanted, entry_batch * entry_heads, (rows, columns))?;
    let mods = LiftedMods::new(Some(mask), None);
    let emitted = functions::emit_wide(&mods.template());
    if emitted.layout.by_pointer() {
        return Err(Diagnostic::error("block-mask-on-card", "the mask holds too many numbers"));
    }
    let text = source::assemble_block_mask(&emitted.text);
    let made = obtain(&text, &card.limits.arch(), Form::Kernel, compiler, cache, &mods.sources)?;
    let captured = mask.graph.captures();
    let mut recipe = Recipe { calls: 1 + captured.len(), ..Recipe::default() };
    let int = |n: usize| n as i32; // checked above
    let raw = Blocks {
        q_len: wanted.lengths.q_len as i64,
        kv_len: wanted.lengths.kv_len as i64,
        block_q: int(wanted.block.q),
        block_kv: int(wanted.block.kv),
        rows: int(rows),
        columns: int(columns),
        heads: int(heads),
        entry_batch: int(entry_batch),
        entry_heads: int(entry_heads),
        ..Blocks::default()
    };
    let classes = recipe.scratch(entry_batch * entry_heads * rows * columns);
    let lists = LISTS.iter().zip(wanted.places).filter_map(|(name, place)| Some((*name, At::call(0).plus(4 * place?))));
    let spans = recipe.scratch(entry_batch * entry_heads * (rows + columns) * LINE_BYTES);
    let places: Vec<_> = [("classes", classes), ("spans", spans)].into_iter().chain(lists).collect();
    let blocks = recipe.fields(raw.bytes(), &Blocks::layout(), &places);
    let own = mods.captures();
    let at = |name: &str| captured.iter().position(|c| c.name == name).expect("lifting keeps names");
    let words = own.iter().enumerate().map(|(word, (name, _))| (8 * word, At::call(1 + at(name)))).collect();
    let tensors: Vec<_> = own.iter().map(|(_, tensor)| *tensor).collect();
    let values = emitted.layout.fill(&vec![0; emitted.layout.words()], &tensors, &mods.ints, &mods.floats);
    let values = recipe.part(Part::Bytes(values, words));
    let spanning = recipe.code(&made.key, &made.cubin, "span_lines", 0);
    let marking = recipe.code(&made.key, &made.cubin, "mark_blocks", 0);
    let listing = recipe.code(&made.key, &made.cubin, "list_blocks", 0);
    let grid = (columns as u32, rows as u32, (entry_batch * entry_heads) as u32);
    let lines = ((rows + columns) as u32, (entry_batch * entry_heads) as u32, 1);
    recipe.launch(spanning, vec![blocks, values], lines, LISTING);
    recipe.launch(marking, vec![blocks, values], grid, MARKING);
    recipe.launch(listing, vec![blocks], ((rows + columns) as u32, (batch * heads) as u32, 1), LISTING);
    Ok(recipe)
}
