//! What a block costs on a card.
//!
//! Invariant: a card's constants reproduce its measured runs (the tests read them); a card that was not measured is
//! scaled by its data sheet and says so. Must not know plans.

use crate::base::provenance::Basis;
use crate::base::{BlockSize, DType, Diagnostic, Provenance};
use crate::problem::roofs::Roof;
use serde::{Deserialize, Serialize};

/// Nanoseconds of one pass at head_dim 128 in a 16-bit type, for blocks of 128 x 128, on the whole card.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// A full block of one head.
    pub full: f64,
    /// A partial block of one head.
    pub partial: f64,
    /// A row of blocks of one head that keeps something, beside its blocks.
    pub row: f64,
}

impl Pass {
    fn scaled(self, blocks: f64, row: f64) -> Pass {
        Pass { full: self.full * blocks, partial: self.partial * blocks, row: self.row * row }
    }
}

/// Both passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The forward pass.
    pub forward: Pass,
    /// The backward pass.
    pub backward: Pass,
    /// Where the constants, and every time that they predict, come from.
    pub source: Provenance,
}

/// Measured cards: part of the name, forward, backward, the runs that they reproduce.
const MEASURED: [(&str, Pass, Pass, &str); 2] = [
    (
        "H100",
        Pass { full: 10.42, partial: 11.24, row: 12.0 },
        Pass { full: 35.8, partial: 60.0, row: 20.0 },
        "docs/measurements/h100-kernels-{forward,backward}-2026-11-27.json",
    ),
    (
        "H200",
        Pass { full: 10.27, partial: 11.07, row: 9.0 },
        Pass { full: 36.5, partial: 55.0, row: 20.0 },
        "docs/measurements/h200-kernels-{forward-2026-11-24,forward-2026-11-25,backward-2026-11-24}.json",
    ),
];

/// The card if none is named.
pub const CARD: &str = "NVIDIA H100 80GB HBM3";

impl Cost {
    /// That of a card, as its driver names it. Errors: a card of which nothing is known.
    pub fn of_card(name: &str) -> Result<Cost, Diagnostic> {
        if let Some((_, forward, backward, source)) = MEASURED.iter().find(|row| name.contains(row.0)) {
            let source = Provenance::estimated(name, Basis::Blocks((*source).into()));
            return Ok(Cost { forward: *forward, backward: *backward, source });
        }
        let (base, forward, backward, _) = &MEASURED[0];
        let (Some(own), Some(of)) = (Roof::of(name, DType::BF16), Roof::of(base, DType::BF16)) else {
            return Err(Diagnostic::error("parallel-card", format!("nothing is known of the card `{name}`"))
                .hint("name one of H200, H100, A100, L40S, RTX 5090, RTX 4090, RTX 3090"));
        };
        let slower = of.flop / own.flop;
        Ok(Cost {
            forward: forward.scaled(slower, slower),
            backward: backward.scaled(slower, slower),
            source: Provenance::estimated(name, Basis::BlocksScaled("an H100".into(), (100.0 * slower).round() as u32)),
        })
    }

    /// Every full, partial and row block counts the same: the unit is a block.
    pub fn blocks() -> Cost {
        let pass = Pass { full: 1.0, partial: 1.0, row: 0.0 };
        Cost { forward: pass, backward: pass, source: Provenance::Estimated { device: None, basis: Basis::Count } }
    }

    /// The same for other blocks, head sizes and types.
    pub fn shaped(&self, block: BlockSize, head_dims: usize, dtype: DType) -> Cost {
        let rows = block.q as f64 / 128.0 * dtype.size() as f64 / 2.0;
        let blocks = rows * block.kv as f64 / 128.0 * head_dims as f64 / 256.0;
        Cost {
            forward: self.forward.scaled(blocks, rows),
            backward: self.backward.scaled(blocks, rows),
            source: self.source.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::block_mask::{BlockMask, MaskShape};
    use crate::analysis::examples;
    use crate::base::{Control, Lengths};
    use crate::ir::graph::Mod;
    use crate::rows::MaskRows;

    /// Milliseconds of a run's workload.
    fn measured(run: &str, name: &str) -> f64 {
        let run: serde_json::Value = serde_json::from_str(run).expect("a run");
        let rows = run["ratios"].as_array().expect("ratios");
        rows.iter().find(|row| row["name"] == name).expect("the workload")["flex_ms"].as_f64().expect("a time")
    }

    fn predicted(pass: Pass, mask: Option<&Mod>) -> f64 {
        let lengths = Lengths::new(8192, 8192).unwrap();
        let built = BlockMask::build(mask, MaskShape::broadcast(lengths), BlockSize::DEFAULT, &Control::new());
        let (full, partial) = MaskRows::from(&built.unwrap()).listed();
        // batch 4, 16 heads, 64 rows
        64.0 * (full as f64 * pass.full + partial as f64 * pass.partial + 64.0 * pass.row) / 1e6
    }

    #[test]
    fn the_constants_reproduce_the_runs_that_they_name() {
        let runs = [
            (
                "NVIDIA H100 80GB HBM3",
                include_str!("../../docs/measurements/h100-kernels-forward-2026-11-27.json"),
                include_str!("../../docs/measurements/h100-kernels-forward-2026-11-27.json"),
                include_str!("../../docs/measurements/h100-kernels-backward-2026-11-27.json"),
            ),
            (
                "NVIDIA H200",
                include_str!("../../docs/measurements/h200-kernels-forward-2026-11-24.json"),
                include_str!("../../docs/measurements/h200-kernels-forward-2026-11-25.json"),
                include_str!("../../docs/measurements/h200-kernels-backward-2026-11-24.json"),
            ),
        ];
        let (causal, window) = (examples::causal(), examples::sliding_window(1023));
        let workloads = [("full", None), ("causal", Some(&causal)), ("sliding window 1024", Some(&window))];
        for (card, forward, window_forward, backward) in runs {
            let cost = Cost::of_card(card).unwrap();
            for (name, mask) in workloads {
                let of = if name.starts_with("sliding") { window_forward } else { forward };
                for (pass, run) in [(cost.forward, of), (cost.backward, backward)] {
                    let (want, got) = (measured(run, name), predicted(pass, mask));
                    assert!((got / want - 1.0).abs() < 0.1, "{card} {name}: {got:.3} ms for {want:.3} ms");
                }
            }
        }
    }

    #[test]
    fn other_cards_are_scaled_and_say_so() {
        let scaled = Cost::of_card("NVIDIA A100-SXM4-80GB").unwrap();
        assert!(
            matches!(&scaled.source, Provenance::Estimated { basis: Basis::BlocksScaled(..), .. })
                && scaled.forward.full > 30.0,
            "{scaled:?}"
        );
        assert_eq!(Cost::of_card("Abacus").unwrap_err().code, "parallel-card");
        let half = Cost::of_card("H100").unwrap().shaped(BlockSize { q: 128, kv: 64 }, 128, DType::F32);
        assert_eq!(half.forward.full, 10.42 / 2.0);
    }
}
