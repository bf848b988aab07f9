//! What NVIDIA's cudnn.flex_attention and FlashAttention-4 under FlexAttention refuse, before anything is compiled.
//!
//! Invariant: the rules are those of their sources (nvidia-cudnn-frontend 1.32.0; flash-attn-4 4.0.0b36 below PyTorch 2.15), in their
//! words where these are fixed. Must not know whether they are installed.

use crate::analysis::lowered::{Lowered, RowEnds};
use crate::base::words::bytes;
use crate::base::{BlockSize, Control, DType, Diagnostic};
use crate::problem::Problem;

/// Ranges of keys a row that a plan is made of, at most: each one is looked at for every tile.
const RANGES: usize = 1024;
/// Bytes of a plan's row ends, at most.
const BYTES: u64 = 1 << 30;

/// Whether cudnn.flex_attention takes a problem, but for its mask. `capability` is the GPU's, 90 for 9.0. Errors: its refusal.
pub fn cudnn_flex(problem: &Problem, capability: u32) -> Result<(), Diagnostic> {
    let refuse = |message: String, hint: &str| Err(Diagnostic::error("cudnn-flex-refused", message).hint(hint));
    if !matches!(capability, 90 | 100 | 103) {
        let message = format!("cudnn.flex_attention supports SM90, SM100, and SM103; got SM{capability}");
        return refuse(message, "use torch:flex, or flex");
    }
    if problem.score.is_some() {
        let message = "cudnn.flex_attention takes a mask and no score mod, bias, sink or soft cap";
        return refuse(message.into(), "use torch:flex, or flex");
    }
    if problem.dtype == DType::F32 {
        return refuse("q must have dtype torch.float16 or torch.bfloat16".into(), "choose bfloat16 or float16");
    }
    let dims = (problem.head_dim, problem.head_dim_v);
    let usual = |n: usize| (8..=128).contains(&n) && n.is_multiple_of(8);
    if !(usual(dims.0) && usual(dims.1) || matches!(dims, (192, 128) | (256, 256))) {
        let message = format!(
            "supported head dimensions are Dqk and Dv independently in [8, 128] and divisible by 8, or (192, 128), or (256, 256); got {dims:?}"
        );
        return refuse(message, "use torch:flex, or flex");
    }
    Ok(())
}

/// The same of its gradients.
pub fn cudnn_flex_gradients(problem: &Problem, capability: u32) -> Result<(), Diagnostic> {
    cudnn_flex(problem, capability)?;
    if capability == 90 && problem.heads != problem.kv_heads && problem.head_dim != problem.head_dim_v {
        let message = format!(
            "SM90 arbitrary backward only supports signatures implemented by native SM90 CuTe DSL public forward/backward; got D={}, Dv={}, Hq={}, Hkv={}",
            problem.head_dim, problem.head_dim_v, problem.heads, problem.kv_heads
        );
        return Err(Diagnostic::error("cudnn-flex-refused", message).hint("repeat keys and values, or use flex"));
    }
    Ok(())
}

/// A problem's mask as ranges of keys, of which all forms for other libraries are made. Errors: rows keep too many, it was cancelled.
pub fn ranges(problem: &Problem, control: &Control) -> Result<Lowered, Diagnostic> {
    Lowered::new(&problem.block_mask(BlockSize::DEFAULT, control)?, RANGES, control)
}

/// A problem's mask as cudnn.flex_attention takes it. Errors: rows keep too many ranges, it takes too many bytes, it was cancelled.
pub fn mask_func(problem: &Problem, control: &Control) -> Result<RowEnds, Diagnostic> {
    let lowered = ranges(problem, control).map_err(|why| match why.code.as_ref() {
        "too-many-ranges" => {
            reported(format!("cudnn.flex_attention takes each row as ranges of keys, and {}", why.message))
        }
        _ => why,
    })?;
    ends_of(&lowered, problem.batch)
}

/// The same of a mask whose ranges are known.
pub fn ends_of(lowered: &Lowered, batch: usize) -> Result<RowEnds, Diagnostic> {
    let ends = lowered.row_ends();
    let size = ends.bytes(batch);
    if size > BYTES {
        let words = ends.words(batch);
        let message = format!("the mask as cudnn.flex_attention takes it ({words}) is larger than {}", bytes(BYTES));
        return Err(reported(message));
    }
    Ok(ends)
}

fn reported(message: String) -> Diagnostic {
    Diagnostic::error("cudnn-flex-mask", message).hint("use torch:flex or flex, which take masks as block lists")
}

/// Whether FlashAttention-4 under FlexAttention takes a problem. Errors: its refusal.
pub fn flash(problem: &Problem, capability: u32) -> Result<(), Diagnostic> {
    flash_shapes(problem, capability)?;
    if problem.mask.is_some() && capability / 10 == 9 && !fits_tiles(problem) {
        let (d, size, tile) = (problem.head_dim, problem.block_size, key_tile(problem));
        let message = format!(
            "the forward tiles of FlashAttention-4 at head_dim {d} are 64 or 128 queries by {tile} keys, and BLOCK_SIZE {size} is not made of them"
        );
        return Err(Diagnostic::error("flash-refused", message).hint(format!("choose BLOCK_SIZE 128 x {tile}")));
    }
    Ok(())
}

/// The same of its gradients, whose tiles are others: a BLOCK_SIZE of theirs suits the forward pass too.
pub fn flash_gradients(problem: &Problem, capability: u32) -> Result<(), Diagnostic> {
    flash_shapes(problem, capability)?;
    let (d, size, (q, kv)) = (problem.head_dim, problem.block_size, gradient_tile(problem, capability));
    // a block of Blackwell may have several tiles of keys
    let fits =
        size.q.is_multiple_of(q) && if capability / 10 == 9 { size.kv == kv } else { size.kv.is_multiple_of(kv) };
    if problem.mask.is_none() || fits {
        return Ok(());
    }
    let message = format!(
        "the backward tiles of FlashAttention-4 at head_dim {d} are {q} queries by {kv} keys, and BLOCK_SIZE {size} is not made of them"
    );
    let hint = format!("choose BLOCK_SIZE 128 x {kv}, or use torch:flex, or flex");
    Err(Diagnostic::error("flash-refused", message).hint(hint))
}

/// What both passes take, but for the block lists.
fn flash_shapes(problem: &Problem, capability: u32) -> Result<(), Diagnostic> {
    let refuse = |message: String, hint: &str| Err(Diagnostic::error("flash-refused", message).hint(hint));
    if !matches!(capability / 10, 9..=11) {
        let message = "FlashAttention-4 supports mods and block masks on compute capability 9, 10 and 11 only";
        return refuse(message.into(), "use torch:flex, or flex");
    }
    if problem.dtype == DType::F32 {
        return refuse("FlashAttention-4 supports float16 and bfloat16".into(), "choose bfloat16 or float16");
    }
    let (d, dv) = (problem.head_dim, problem.head_dim_v);
    let within = |most: usize| [d, dv].iter().all(|n| (8..=most).contains(n) && n.is_multiple_of(8));
    let (fits, rule) = match capability / 10 {
        9 => (within(256), "on SM90 head_dim and head_dim_v must be between 8 and 256 and divisible by 8"),
        _ => (
            within(128) || matches!((d, dv), (192, 128) | (256, 256) | (64, 512) | (512, 512)),
            "on SM100/SM110 head_dim and head_dim_v must be between 8 and 128 and divisible by 8, or (192, 128), or (256, 256)",
        ),
    };
    if !fits {
        return refuse(
            format!("(head_dim, head_dim_v)=({d}, {dv}) is not supported: {rule}"),
            "use torch:flex, or flex",
        );
    }
    Ok(())
}

/// Keys of a forward tile on Hopper.
fn key_tile(problem: &Problem) -> usize {
    match (problem.head_dim, problem.head_dim_v) {
        (65..=96, _) if problem.block_size.q.is_multiple_of(192) => 144,
        (..=128, _) | (..=192, ..=128) => 128,
        (..=192, _) => 112,
        _ => 80,
    }
}

/// Queries and keys of a backward tile under block lists; the queries are those that 128 is made of.
fn gradient_tile(problem: &Problem, capability: u32) -> (usize, usize) {
    match (capability / 10, problem.head_dim) {
        (9, ..=64) => (128, 128),
        (9, ..=128) => (64, 128),
        (9, ..=192) => (64, 96),
        (9, _) => (64, 64),
        // two processors share a tile
        (_, 192) => (128, 256),
        _ => (128, 128),
    }
}

/// On Hopper a block has one tile of keys, which may be smaller, and whole tiles of queries.
fn fits_tiles(problem: &Problem) -> bool {
    let (size, tile) = (problem.block_size, key_tile(problem));
    let smaller = size.kv < tile && size.kv.is_multiple_of(16);
    size.q.is_multiple_of(64) && (size.kv == tile || smaller)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::testing::{causal, distance_score, spec, with_mods};
    use crate::base::words::grouped;
    use crate::ir::text::parse;
    use crate::problem::ProblemSpec;

    fn half(heads: (usize, usize), dims: (usize, usize)) -> Problem {
        let given = spec(1, heads.0, heads.1, 256, 256, dims.0);
        let given = ProblemSpec { dtype: DType::BF16, head_dim_v: dims.1, ..given };
        with_mods(given, Some(causal(0)), None)
    }

    #[test]
    fn cudnn_takes_what_its_validation_takes() {
        for dims in [(8, 8), (128, 64), (72, 128), (192, 128), (256, 256)] {
            assert_eq!(cudnn_flex(&half((4, 4), dims), 90), Ok(()), "{dims:?}");
        }
        for (dims, capability, words) in [
            ((256, 128), 90, "supported head dimensions"),
            ((20, 20), 90, "supported head dimensions"),
            ((64, 64), 80, "got SM80"),
            ((64, 64), 120, "got SM120"),
        ] {
            let why = cudnn_flex(&half((4, 4), dims), capability).expect_err(words);
            assert!(why.message.contains(words) && why.hint.is_some(), "{}", why.message);
        }
        let single = with_mods(spec(1, 2, 2, 64, 64, 64), Some(causal(0)), None);
        assert!(cudnn_flex(&single, 90).unwrap_err().message.contains("torch.bfloat16"));
        let scored = ProblemSpec { dtype: DType::BF16, ..spec(1, 2, 2, 64, 64, 64) };
        let scored = with_mods(scored, None, Some(distance_score()));
        assert!(cudnn_flex(&scored, 90).unwrap_err().message.contains("no score mod"));
        assert_eq!(cudnn_flex_gradients(&half((4, 4), (192, 128)), 90), Ok(()));
        let grouped = half((4, 2), (192, 128));
        assert!(cudnn_flex(&grouped, 90).is_ok() && cudnn_flex_gradients(&grouped, 90).is_err());
        assert_eq!(cudnn_flex_gradients(&grouped, 100), Ok(()));
    }

    #[test]
    fn masks_with_too_many_ranges_are_refused_with_their_number() {
        let causal = mask_func(&half((2, 2), (64, 64)), &Control::new()).expect("one range a row");
        assert_eq!((causal.count(), causal.words(1)), (1, "nfunc 1, 1.00 KiB".to_string()));
        let given = ProblemSpec { dtype: DType::BF16, ..spec(1, 1, 1, 4096, 4096, 64) };
        let striped = with_mods(given, Some(parse("(eq (mod kv_idx 3) 0)", &[]).expect("a mask")), None);
        let words = mask_func(&striped, &Control::new()).expect_err("every third key").message;
        assert!(words.contains("a row has") && words.contains(&grouped(RANGES as u128)), "{words}");
    }

    #[test]
    fn flash_trains_with_blocks_of_its_backward_tiles() {
        let of = |dims, q, kv| {
            let given = spec(1, 4, 4, 256, 256, 64);
            let (head_dim, head_dim_v) = dims;
            let block_size = BlockSize { q, kv };
            let given = ProblemSpec { dtype: DType::BF16, head_dim, head_dim_v, block_size, ..given };
            with_mods(given, Some(causal(0)), None)
        };
        // flash-attn 4.0.0b36 on an H200: "Block sparsity expects sparse_block_size[1]=96 for kv_subtile_factor=1."
        let deepseek = of((192, 128), 128, 128);
        assert_eq!(flash(&deepseek, 90), Ok(()));
        let why = flash_gradients(&deepseek, 90).expect_err("96 keys");
        assert!(
            why.message.contains("64 queries by 96 keys") && why.hint.unwrap().contains("128 x 96"),
            "{}",
            why.message
        );
        for (dims, q, kv, capability) in [
            ((64, 64), 128, 128, 90),
            ((128, 128), 64, 128, 90),
            ((192, 128), 128, 96, 90),
            ((192, 192), 128, 96, 90),
            ((256, 256), 128, 64, 90),
            ((128, 128), 128, 256, 100),
            ((192, 128), 128, 256, 100),
        ] {
            let problem = of(dims, q, kv);
            assert_eq!(
                (flash(&problem, capability), flash_gradients(&problem, capability)),
                (Ok(()), Ok(())),
                "{dims:?} {q} {kv}"
            );
        }
        for (dims, q, kv, capability) in
            [((64, 64), 64, 128, 90), ((128, 128), 128, 64, 90), ((192, 128), 128, 128, 100), ((64, 64), 128, 64, 100)]
        {
            assert!(flash_gradients(&of(dims, q, kv), capability).is_err(), "{dims:?} {q} {kv} {capability}");
        }
        let unmasked =
            with_mods(ProblemSpec { dtype: DType::BF16, ..spec(1, 4, 4, 256, 256, 192) }, None, Some(distance_score()));
        assert_eq!(flash_gradients(&unmasked, 90), Ok(()), "no lists");
        assert!(flash_gradients(&of((128, 128), 128, 128), 80).is_err(), "what the forward pass refuses");
    }

    #[test]
    fn flash_takes_blocks_of_its_tiles() {
        assert_eq!(flash(&half((4, 4), (128, 128)), 90), Ok(()));
        let why = flash(&half((4, 4), (256, 256)), 90).expect_err("a tile has 80 keys");
        assert!(why.message.contains("by 80 keys") && why.hint.is_some(), "{}", why.message);
        assert_eq!(flash(&half((4, 4), (256, 256)), 100), Ok(()));
        assert!(flash(&half((4, 4), (160, 160)), 100).is_err() && flash(&half((4, 4), (128, 128)), 120).is_err());
    }
}
