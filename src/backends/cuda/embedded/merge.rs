//! The recipe that merges attention over some keys into that over others, in place.
//!
//! Invariant: rows that a part does not have stay as they are. Must not know ranks.

use super::Card;
use super::recipe::{At, Recipe};
use crate::backends::cuda::emit::source;
use crate::backends::cuda::launch::params::packed;
use crate::backends::cuda::toolchain::cache::Cache;
use crate::backends::cuda::toolchain::compile::{Compiler, Form, obtain};
use crate::base::{DType, Diagnostic};

packed! {
    /// kernels/merge.cu's struct.
    Merge {
        out: u64, lse: u64, part: u64, part_lse: u64, places: u64,
        pairs: i64, q_len: i64, rows: i64, row: i64,
    }
}

/// Rows of a block.
const ROWS: usize = 8;

/// Compiles the kernel. A call gives the output and its lse, the part's, and its rows' places (0: all in their order).
pub(super) fn recipe(
    dtype: DType,
    [pairs, q_len, rows, row]: [usize; 4],
    card: &Card,
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
) -> Result<Recipe, Diagnostic> {
    if row % 8 != 0 || !matches!(dtype, DType::BF16 | DType::F16) {
        let message = format!("rows of {row} {} are not merged", dtype.torch_name());
        return Err(Diagnostic::error("merge", message).hint("merge rows of 16-bit numbers, in multiples of 8"));
    }
    let text = source::assemble_merge(dtype);
    let made = obtain(&text, &card.limits.arch(), Form::Kernel, compiler, cache, &[])?;
    let mut recipe = Recipe { calls: 5, ..Recipe::default() };
    let [pairs, q_len, rows, row] = [pairs, q_len, rows, row].map(|n| n as i64);
    let raw = Merge { pairs, q_len, rows, row, ..Merge::default() }.bytes();
    let names = ["out", "lse", "part", "part_lse", "places"];
    let places: Vec<_> = names.into_iter().enumerate().map(|(at, name)| (name, At::call(at))).collect();
    let part = recipe.fields(raw, &Merge::layout(), &places);
    let kernel = recipe.code(&made.key, &made.cubin, "merge_rows", 0);
    let blocks = (pairs as usize * rows as usize).div_ceil(ROWS);
    recipe.launch(kernel, vec![part], (blocks as u32, 1, 1), 32 * ROWS);
    Ok(recipe)
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::embedded::merge::*;
    use crate::backends::cuda::launch::params::declared;

    #[test]
    fn the_struct_is_the_kernels() {
        let text = include_str!("../../../../kernels/merge.cu");
        let own: Vec<_> = Merge::fields().into_iter().map(|(name, size)| (name.to_string(), size)).collect();
        assert_eq!(own, declared(text, "Merge"));
    }
}
