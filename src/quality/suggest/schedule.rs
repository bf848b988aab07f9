//! Layers and steps that should stay dense: those where a mask loses more than the limit.
//!
//! Invariant: a layer or step is judged by its worst capture. Must not know masks.

use std::collections::BTreeMap;

/// Mass that a mask keeps in one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Layer's number and name.
    pub layer: (usize, String),
    /// Step.
    pub step: usize,
    /// Mean mass over heads.
    pub mass: f64,
}

/// Which stay dense.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// First steps: all below this number.
    pub dense_steps: usize,
    /// Layers, by number and name.
    pub dense_layers: Vec<(usize, String)>,
    /// Smallest mass of the sparse calls; None without any.
    pub worst: Option<f64>,
}

/// The schedule that keeps every sparse call at `mass` or above: first steps first, while most of their layers miss it, then layers.
pub fn schedule(seen: &[Seen], mass: f64) -> Schedule {
    let mut steps: BTreeMap<usize, Vec<&Seen>> = BTreeMap::new();
    seen.iter().for_each(|s| steps.entry(s.step).or_default().push(s));
    let mut dense_steps = 0;
    if steps.len() > 1 {
        for (step, of) in &steps {
            let missed = of.iter().filter(|s| s.mass < mass).count();
            if 2 * missed <= of.len() {
                break;
            }
            dense_steps = step + 1;
        }
    }
    let left: Vec<&Seen> = seen.iter().filter(|s| s.step >= dense_steps).collect();
    let mut dense_layers: Vec<(usize, String)> =
        left.iter().filter(|s| s.mass < mass).map(|s| s.layer.clone()).collect();
    dense_layers.sort();
    dense_layers.dedup();
    let sparse = left.iter().filter(|s| !dense_layers.contains(&s.layer)).map(|s| s.mass);
    let worst = sparse.fold(None, |least: Option<f64>, m| Some(least.map_or(m, |l| l.min(m))));
    Schedule { dense_steps, dense_layers, worst }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_steps_and_weak_layers_stay_dense() {
        let seen = |layer: usize, step: usize, mass: f64| Seen { layer: (layer, format!("l{layer}")), step, mass };
        let mut all = Vec::new();
        for step in 0..4 {
            for layer in 0..3 {
                all.push(seen(
                    layer,
                    step,
                    if step == 0 {
                        0.5
                    } else if layer == 2 {
                        0.8
                    } else {
                        0.96 + 0.001 * step as f64
                    },
                ));
            }
        }
        let found = schedule(&all, 0.95);
        assert_eq!((found.dense_steps, found.dense_layers), (1, vec![(2, "l2".to_string())]));
        assert!((found.worst.unwrap() - 0.961).abs() < 1e-9);
        assert_eq!(schedule(&all[..3], 0.95).dense_layers.len(), 3);
    }
}
