//! Limits of cards by their makers' data sheets: the roof above measured times.
//!
//! Invariant: dense products of 16-bit values with sums in float32, and the memory's bandwidth; an unknown card has no
//! roof. Must not know measurements.

use crate::base::DType;
use crate::problem::ProblemSpec;

/// The limits of a card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roof {
    /// FLOP a second.
    pub flop: f64,
    /// Bytes a second from its memory.
    pub bytes: f64,
}

/// A part of a card's name, TFLOP/s, TB/s. The first that fits counts.
const CARDS: [(&str, f64, f64); 11] = [
    ("H200", 989.4, 4.8),
    ("H100 PCIe", 756.0, 2.0),
    ("H100 NVL", 835.0, 3.9),
    ("H100", 989.4, 3.35),
    ("A100-SXM4-80GB", 312.0, 2.039),
    ("A100 80GB PCIe", 312.0, 1.935),
    ("A100", 312.0, 1.555),
    ("L40S", 362.05, 0.864),
    ("RTX 5090", 209.5, 1.792),
    ("RTX 4090", 165.2, 1.008),
    ("RTX 3090", 71.0, 0.936),
];

impl Roof {
    /// That of a card, for 16-bit tensors; None: not known.
    pub fn of(device_name: &str, dtype: DType) -> Option<Roof> {
        if dtype.size() != 2 {
            return None;
        }
        let (_, tera_flop, tera_bytes) = CARDS.iter().find(|(name, ..)| device_name.contains(name))?;
        Some(Roof { flop: tera_flop * 1e12, bytes: tera_bytes * 1e12 })
    }

    /// FLOP a second at most, at so many FLOP for each byte.
    pub fn at(&self, flop_per_byte: f64) -> f64 {
        self.flop.min(self.bytes * flop_per_byte)
    }

    /// FLOP for each byte from which on arithmetic is the limit.
    pub fn ridge(&self) -> f64 {
        self.flop / self.bytes
    }
}

/// Bytes of q, k, v and the output, each moved once: the least that attention moves.
pub fn least_bytes(problem: &ProblemSpec) -> f64 {
    let queries = (problem.heads * problem.q_len) as f64;
    let keys = (problem.kv_heads * problem.kv_len) as f64;
    let dims = (problem.head_dim + problem.head_dim_v) as f64;
    problem.dtype.size() as f64 * problem.batch as f64 * (queries + keys) * dims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_known_by_the_names_that_drivers_give() {
        let roof = |name| Roof::of(name, DType::BF16).map(|roof| (roof.flop / 1e12, roof.bytes / 1e12));
        assert_eq!(roof("NVIDIA H100 80GB HBM3"), Some((989.4, 3.35)));
        assert_eq!(roof("NVIDIA H100 PCIe"), Some((756.0, 2.0)));
        assert_eq!(roof("NVIDIA H200"), Some((989.4, 4.8)));
        assert_eq!(roof("Intel(R) Xeon(R) Processor"), None);
        assert_eq!(Roof::of("NVIDIA H200", DType::F32), None);
    }

    #[test]
    fn the_roof_bends_where_arithmetic_takes_as_long_as_memory() {
        let roof = Roof { flop: 100.0, bytes: 10.0 };
        assert_eq!((roof.ridge(), roof.at(5.0), roof.at(10.0), roof.at(1e9)), (10.0, 50.0, 100.0, 100.0));
        // 2 bytes x (32 + 8 heads) x 1024 tokens x (128 + 128)
        let problem = ProblemSpec::plain(1, (32, 8), (1024, 1024), 128);
        assert_eq!(least_bytes(&problem), 2.0 * 40.0 * 1024.0 * 256.0);
    }
}
