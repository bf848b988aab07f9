//! A cubin's instructions in a kernel's main loops: the number issued for a tile.
//!
//! Invariant: loops are found by backward branches before the kernel's last exit; the code after it retries waits. Any
//! bytes are accepted; bytes that are not a cubin have no loops. Must not know what a kernel computes.

use super::code;

/// Bytes of an instruction.
const WIDTH: usize = 16;
const BRANCH: u64 = 0x947;
const EXIT: u64 = 0x94d;
/// Products of matrices: by a warpgroup, and by a warp.
const PRODUCTS: [u64; 3] = [0x9f0, 0xdf0, 0x23c];
/// Exponentials and their like.
const SPECIAL: u64 = 0x308;

/// An innermost loop that multiplies matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProductLoop {
    /// All its instructions: the most that a warp issues.
    pub instructions: usize,
    /// Products of matrices among them.
    pub products: usize,
    /// Exponentials and their like among them.
    pub special: usize,
}

/// The innermost loops of `entry` that multiply matrices, in the order of the code. `arch` selects the encoding of
/// branches.
pub(crate) fn product_loops(cubin: &[u8], entry: &str, arch: &str) -> Vec<ProductLoop> {
    let Some(code) = code(cubin, entry) else { return Vec::new() };
    let words: Vec<(u64, u64)> = code.chunks_exact(WIDTH).map(|i| (word(&i[..8]), word(&i[8..]))).collect();
    let op = |at: usize| words[at].0 & 0xfff;
    let last = (0..words.len()).rev().find(|at| op(*at) == EXIT).unwrap_or(0);
    let count = |from: usize, to: usize, of: &[u64]| (from..=to).filter(|at| of.contains(&op(*at))).count();
    let mut loops: Vec<(usize, usize)> = (0..last)
        .filter(|at| op(*at) == BRANCH)
        .filter_map(|at| {
            let to = usize::try_from(at as i64 + 1 + offset(words[at], arch) / WIDTH as i64).ok()?;
            (to <= at && count(to, at, &PRODUCTS) > 0).then_some((to, at))
        })
        .collect();
    let all = loops.clone();
    loops.retain(|(from, to)| !all.iter().any(|(a, b)| (a, b) != (from, to) && from <= a && b <= to));
    loops
        .into_iter()
        .map(|(from, to)| ProductLoop {
            instructions: to - from + 1,
            products: count(from, to, &PRODUCTS),
            special: count(from, to, &[SPECIAL]),
        })
        .collect()
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// From the instruction after a branch to its target, in bytes.
fn offset((low, high): (u64, u64), arch: &str) -> i64 {
    // 48 bits with their sign; from sm_90 on eight more lower bits are elsewhere
    let far = ((low >> 34 | high << 30) << 16) as i64 >> 16;
    let newer = arch.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().is_ok_and(|n: u32| n >= 90);
    if newer { (far * 256 + (low >> 16 & 0xff) as i64) * 4 } else { far * 4 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::cuda::emit::tests::nvrtc;
    use crate::backends::cuda::toolchain::backward::BackwardDraft;
    use crate::backends::cuda::variant::backward::BackwardWays;
    use crate::backends::cuda::variant::limits::Limits;
    use crate::backends::testing::{causal, spec, with_mods};
    use crate::base::DType;
    use crate::problem::ProblemSpec;

    #[test]
    fn what_is_no_cubin_has_no_loops() {
        for bytes in [&b""[..], b"\x7fELF", &[0x7f, b'E', b'L', b'F', 2, 1, 0, 0][..], &[0xff; 300]] {
            assert_eq!(product_loops(bytes, "backward_hopper", "sm_90a"), []);
        }
    }

    #[test]
    fn both_warpgroups_of_hoppers_backward_kernel_have_one_loop_with_five_products() {
        let Some(nvrtc) = nvrtc() else { return };
        let shape = ProblemSpec { dtype: DType::BF16, ..spec(1, 2, 2, 512, 512, 128) };
        let problem = with_mods(shape, Some(causal(0)), None);
        let loops = |arch: &str| {
            let limits = Limits::of_arch(arch).expect("an architecture");
            let draft = BackwardDraft::new(&problem, &limits, BackwardWays::default()).expect("a draft");
            let code = draft.compile(arch, nvrtc, None).expect("it compiles");
            product_loops(&code.main.cubin, draft.spec.entry(), arch)
        };
        // a tile of 64 queries and 64 of the keys: scores and dP in 8 steps of 16 each, dv and dk in 4, dq in 8
        let hopper = loops("sm_90a");
        assert_eq!(hopper.iter().map(|l| l.products).collect::<Vec<_>>(), [32, 32], "{hopper:?}");
        assert!(hopper.iter().all(|l| (400..900).contains(&l.instructions) && l.special >= 32), "{hopper:?}");
        for arch in ["sm_80", "sm_89"] {
            let found = loops(arch);
            assert!(found.iter().map(|l| l.products).sum::<usize>() >= 160, "{arch}: {found:?}");
        }
    }
}
