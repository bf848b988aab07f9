//! Random valid problems, for `conform --random` and for property tests.
//!
//! Invariant: a seed names one problem on every machine. Must not know backends.

use crate::base::{BlockSize, DType, Device, Layout};
use crate::ir::random::{self, Rng};
use crate::problem::ProblemSpec;
use std::sync::Arc;

/// One line: the seed, the shape and what the problem has.
pub fn describe(seed: u64, s: &ProblemSpec) -> String {
    let mods = match (&s.mask, &s.score) {
        (Some(_), Some(_)) => "mask+score",
        (Some(_), None) => "mask",
        (None, Some(_)) => "score",
        (None, None) => "plain",
    };
    let layout = if s.layout == Layout::Bhsd { "bhsd" } else { "bshd" };
    let aux = if s.max_scores { " max_scores" } else { "" };
    format!(
        "{seed}: {}x{}/{}x{}x{}x{}/{} {} {layout} {mods}{aux}",
        s.batch, s.heads, s.kv_heads, s.q_len, s.kv_len, s.head_dim, s.head_dim_v, s.dtype
    )
}

/// Problem `seed`. A GPU takes no float32.
pub fn problem(seed: u64, device: Device) -> ProblemSpec {
    let mut rng = Rng::new(seed);
    let kv_heads = 1 + rng.below(3);
    let heads = kv_heads * *rng.pick(&[1, 1, 2, 4]);
    let batch = 1 + rng.below(2);
    let (q_len, kv_len) = lengths(&mut rng);
    let head_dim = dim(&mut rng);
    let head_dim_v = if rng.chance(15) { dim(&mut rng) } else { head_dim };
    let dtype = match device {
        Device::Cpu => *rng.pick(&[DType::F32, DType::F32, DType::BF16, DType::F16]),
        Device::Cuda(_) => *rng.pick(&[DType::BF16, DType::BF16, DType::F16]),
    };
    let options = random::Options { batch, heads, q_len, kv_len, depth: 2 + rng.below(3) as u32, portable: true };
    let spec = ProblemSpec {
        batch,
        heads,
        kv_heads,
        q_len,
        kv_len,
        head_dim,
        head_dim_v,
        dtype,
        layout: *rng.pick(&[Layout::Bhsd, Layout::Bshd]),
        scale: if rng.chance(20) { Some(0.02 + 0.3 * rng.unit()) } else { None },
        block_size: *rng.pick(&[BlockSize::DEFAULT, BlockSize::square(64), BlockSize { q: 256, kv: 128 }]),
        mask: rng.chance(85).then(|| Arc::new(random::mask(seed, &options))),
        score: rng.chance(40).then(|| Arc::new(random::score(seed, &options))),
        // a GPU uses other kernels if they are requested, and the kernels without them must be tested too
        max_scores: device == Device::Cpu || rng.chance(50),
    };
    steep(spec, &mut rng)
}

/// Scores so far apart, now and then, that a row's largest rises by many powers of two from one tile of keys to the next.
fn steep(spec: ProblemSpec, rng: &mut Rng) -> ProblemSpec {
    let deviation = *rng.pick(&[4.0, 12.0, 40.0]);
    let wanted = rng.chance(30) && spec.score.is_none();
    let scale = if wanted { Some(deviation / (spec.head_dim as f64).sqrt()) } else { spec.scale };
    ProblemSpec { scale, ..spec }
}

/// Edges of tiles, single rows as in decoding, and anything between.
fn lengths(rng: &mut Rng) -> (usize, usize) {
    let mut one = || match rng.below(4) {
        0 => *rng.pick(&[1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257]),
        _ => 1 + rng.below(700),
    };
    let (q_len, kv_len) = (one(), one());
    if rng.chance(15) {
        // few rows over many keys
        return (*rng.pick(&[1, 1, 1, 2, 4, 7, 16, 33, 64]), 256 + rng.below(3000));
    }
    if rng.chance(40) { (q_len, q_len) } else { (q_len, kv_len) }
}

/// Sizes that models have, and any other.
fn dim(rng: &mut Rng) -> usize {
    if rng.chance(80) { *rng.pick(&[16, 32, 40, 64, 72, 80, 96, 128, 128, 192, 256]) } else { 1 + rng.below(256) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    #[test]
    fn every_seed_gives_one_valid_problem() {
        for seed in 0..60 {
            for device in [Device::Cpu, Device::Cuda(0)] {
                let spec = problem(seed, device);
                assert_eq!(spec, problem(seed, device));
                assert!(device == Device::Cpu || spec.dtype != DType::F32);
                assert!(device != Device::Cpu || spec.max_scores);
                Problem::new(spec).expect("valid");
            }
        }
        let asking = (0..60).filter(|seed| problem(*seed, Device::Cuda(0)).max_scores).count();
        assert!((15..45).contains(&asking), "{asking}");
    }
}
