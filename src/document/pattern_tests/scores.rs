//! Score mods.
//!
//! Invariant: see the parent; formulas are in f64, patterns' tables in f32. Must not know how patterns are written.

use super::{HEADS, ScoreCase, floats, ints, score_case as score};
use serde_json::json;

pub(super) fn cases() -> Vec<ScoreCase> {
    let mut cases = distances();
    cases.extend(tables());
    cases.extend(others());
    cases.extend(graphs());
    cases
}

fn slope(h: i64) -> f64 {
    2f64.powf(-8.0 * (h + 1) as f64 / HEADS as f64)
}

fn distances() -> Vec<ScoreCase> {
    vec![
        score("alibi", "tokens 9", json!({}), |s, _, h, q, k| s + (k - q) as f64 * slope(h)),
        score("distance_penalty", "tokens 9", json!({"strength": 1.5, "scale": 3.0}), |s, _, _, q, k| {
            s - 1.5 * (1.0 + (q - k).abs() as f64 / 3.0).ln()
        }),
        score("sandwich", "tokens 9", json!({"dim": 6}), |s, _, h, q, k| {
            let waves = (0..3).map(|i| ((q - k) as f64 / 10_000f64.powf(2.0 * f64::from(i) / 6.0)).cos());
            s + waves.sum::<f64>() * HEADS as f64 / (8.0 * (h + 1) as f64)
        }),
        score("soft_cap", "tokens 5", json!({"cap": 3.0}), |s, _, _, _, _| 3.0 * (s / 3.0).tanh()),
        score("forget_gate", "tokens 9", json!({"every": 4}), |s, _, h, q, k| {
            let sum = |t: i64| -slope(h) * (t + 1) as f64 - 4.0 * (t / 4 + 1) as f64;
            s + sum(q) - sum(k)
        }),
        running(&[HEADS as usize, 9]),
        running(&[2, HEADS as usize, 9]),
        score("temperature", "tokens 5", json!({"factor": 0.25}), |s, _, _, _, _| s / 4.0),
        score(
            "region_bias",
            "text 4 | image 2x3",
            json!({"gain": 1.25}),
            |s, _, _, q, k| {
                if q >= 4 && k < 4 { s + 1.25 } else { s }
            },
        ),
    ]
}

/// Forget gates of a layer's own, with one for each batch entry or without.
fn running(shape: &[usize]) -> ScoreCase {
    let batched = shape.len() == 3;
    let sums: Vec<f32> = (0..shape.iter().product::<usize>()).map(|n| -0.25 * (n * n % 37) as f32).collect();
    let args = json!({"running": floats(shape, &sums)});
    score("forget_gate", "tokens 9", args, move |s, b, h, q, k| {
        let at = |t: i64| f64::from(sums[((if batched { b * HEADS } else { 0 } + h) * 9 + t) as usize]);
        s + at(q) - at(k)
    })
}

/// T5's bucket of a distance `memory - query`, as its paper has it.
fn bucket(distance: i64, buckets: i64, longest: i64, both: bool) -> i64 {
    let half = if both { buckets / 2 } else { buckets };
    let side = if both && distance > 0 { half } else { 0 };
    let far = if both { distance.abs() } else { (-distance).max(0) };
    let exact = half / 2;
    if far < exact {
        return side + far;
    }
    let grown = (far as f64 / exact as f64).ln() / (longest as f64 / exact as f64).ln() * (half - exact) as f64;
    side + (exact + grown.floor() as i64).min(half - 1)
}

fn tables() -> Vec<ScoreCase> {
    let values: Vec<f32> = (0..8 * HEADS).map(|n| (n * n % 23) as f32 * 0.5 - 4.0).collect();
    let t5 = |both: bool| {
        let values = values.clone();
        let args = json!({
            "table": floats(&[8, HEADS as usize], &values), "buckets": 8, "max_distance": 11, "bidirectional": both,
        });
        score("t5_bias", "tokens 17", args, move |s, _, h, q, k| {
            s + f64::from(values[(bucket(k - q, 8, 11, both) * HEADS + h) as usize])
        })
    };
    let grid: Vec<f32> = (0..3 * 5 * HEADS).map(|n| (n * 7 % 19) as f32 * 0.25).collect();
    let table = floats(&[3, 5, HEADS as usize], &grid);
    vec![
        t5(true),
        t5(false),
        score("relative_bias_2d", "text 2 | image 2x3", json!({"table": table}), move |s, _, h, q, k| {
            if q < 2 || k < 2 {
                return s;
            }
            let rows = (q - 2) / 3 - (k - 2) / 3 + 1;
            let columns = (q - 2) % 3 - (k - 2) % 3 + 2;
            s + f64::from(grid[((rows * 5 + columns) * HEADS + h) as usize])
        }),
    ]
}

fn others() -> Vec<ScoreCase> {
    let sinks = [0.5f32, -1.0, 2.0, 0.0];
    let q_rope: Vec<f32> = (0..2 * 4 * 3 * 2).map(|n| (n % 7) as f32 - 3.0).collect();
    let k_rope: Vec<f32> = (0..2 * 2 * 5 * 2).map(|n| (n % 5) as f32 * 0.5 - 1.0).collect();
    let rope = json!({
        "q_rope": floats(&[2, 4, 3, 2], &q_rope), "k_rope": floats(&[2, 2, 5, 2], &k_rope), "group": 2, "scale": 0.3,
    });
    vec![
        score(
            "learned_sinks",
            "tokens 5 -> tokens 6",
            json!({"sinks": floats(&[4], &sinks), "sink": 5}),
            move |s, _, h, _, k| {
                if k == 5 { f64::from(sinks[h as usize]) } else { s }
            },
        ),
        score("activation", "tokens 5", json!({}), |s, _, _, _, _| (s.max(0.0) + 1.0).ln()),
        score("activation", "tokens 5", json!({"function": "relu_squared", "offset": 0.5}), |s, _, _, _, _| {
            (s.max(0.0).powi(2) + 0.5).ln()
        }),
        score("activation", "tokens 5", json!({"function": "sigmoid", "offset": 2.0}), |s, _, _, _, _| {
            (1.0 / (1.0 + (-s).exp()) + 2.0).ln()
        }),
        score("activation", "tokens 5", json!({"function": "silu"}), |s, _, _, _, _| {
            (s / (1.0 + (-s).exp()) + 1.0).ln()
        }),
        score("mla_rope", "tokens 3 -> tokens 5", rope, move |s, b, h, q, k| {
            let q_at = (((b * 4 + h) * 3 + q) * 2) as usize;
            let k_at = (((b * 2 + h / 2) * 5 + k) * 2) as usize;
            let dot: f32 = (0..2).map(|n| q_rope[q_at + n] * k_rope[k_at + n]).sum();
            s + 0.3 * f64::from(dot)
        }),
        // the placeholder: rotated copies of one vector
        score("mla_rope", "tokens 7", json!({"dim": 4, "scale": 0.5}), |s, _, _, q, k| {
            s + 0.5 * (((q - k) as f64).cos() + ((q - k) as f64 / 100.0).cos())
        }),
    ]
}

fn graphs() -> Vec<ScoreCase> {
    let bias: Vec<f32> = (0..4 * 3).map(|n| n as f32 * 0.3 - 1.0).collect();
    let distance: Vec<i64> = (0..2 * 4 * 4).map(|n| n * 5 % 3).collect();
    let spatial = json!({"bias": floats(&[4, 3], &bias), "distance": ints(&[2, 4, 4], &distance)});
    let edges: Vec<f32> = (0..4 * 2 * 3).map(|n| (n * 11 % 13) as f32 * 0.2).collect();
    let path: Vec<i64> = (0..2 * 4 * 4 * 2).map(|n| n * 7 % 3).collect();
    let length: Vec<i64> = (0..2 * 4 * 4).map(|n| n * 3 % 4 % 3).collect();
    let edge = json!({
        "bias": floats(&[4, 2, 3], &edges), "path": ints(&[2, 4, 4, 2], &path), "length": ints(&[2, 4, 4], &length),
    });
    vec![
        score("graphormer_spatial", "nodes 4", spatial, move |s, b, h, q, k| {
            let apart = distance[((b * 4 + q) * 4 + k) as usize];
            s + f64::from(bias[(h * 3 + apart) as usize])
        }),
        score("graphormer_spatial", "nodes 9", json!({"longest": 3}), |s, _, h, q, k| {
            let ring = (q - k).abs().min(9 - (q - k).abs()).min(3);
            s - slope(h) * ring as f64
        }),
        score("graphormer_edge", "nodes 4", edge, move |s, b, h, q, k| {
            let pair = ((b * 4 + q) * 4 + k) as usize;
            let count = length[pair];
            let of = |n: i64| f64::from(edges[((h * 2 + n) * 3 + path[pair * 2 + n as usize]) as usize]);
            s + (0..count).map(of).sum::<f64>() / count.max(1) as f64
        }),
        score("graphormer_edge", "nodes 9", json!({"steps": 3, "kinds": 4}), |s, _, h, q, k| {
            // walk the ring the shorter way; the edge from n to n + 1 has number n
            let forward = (k - q).rem_euclid(9);
            let (step, count) = if forward <= 4 { (1, forward) } else { (-1, 9 - forward) };
            let mut node = q;
            let mut total = 0.0;
            for n in 0..count.min(3) {
                let edge = if step == 1 { node } else { (node - 1).rem_euclid(9) };
                total -= slope(h) * (n + edge % 4 + 1) as f64;
                node = (node + step).rem_euclid(9);
            }
            s + total / count.clamp(1, 3) as f64
        }),
    ]
}
