//! Masks over images and videos.
//!
//! Invariant: see the parent; a token's position is decoded by hand. Must not know how patterns are written.

use super::{MaskCase, mask};
use serde_json::json;

/// Whether `k` is in the window of `width` places around `q` that is pushed inside an axis of `size` places.
fn near(q: i64, k: i64, size: i64, width: i64) -> bool {
    let first = (q - width / 2).clamp(0, size - width);
    (first..first + width).contains(&k)
}

/// Row and column in an image of this width.
fn at(token: i64, width: i64) -> (i64, i64) {
    (token.div_euclid(width), token.rem_euclid(width))
}

pub(super) fn cases() -> Vec<MaskCase> {
    let mut cases = neighbourhoods();
    cases.extend(tiles());
    cases.extend(images());
    cases.extend(videos());
    cases
}

fn neighbourhoods() -> Vec<MaskCase> {
    vec![
        mask("natten_2d", "text 2 | image 5x6", json!({"kernel_h": 3, "kernel_w": 5}), |_, _, q, k| {
            if q < 2 || k < 2 {
                return true;
            }
            let ((qy, qx), (ky, kx)) = (at(q - 2, 6), at(k - 2, 6));
            near(qy, ky, 5, 3) && near(qx, kx, 6, 5)
        }),
        mask("natten_3d", "video 3x4x5", json!({"kernel_t": 1, "kernel_h": 3, "kernel_w": 3}), |_, _, q, k| {
            let ((qt, qi), (kt, ki)) = (at(q, 20), at(k, 20));
            let ((qy, qx), (ky, kx)) = (at(qi, 5), at(ki, 5));
            near(qt, kt, 3, 1) && near(qy, ky, 4, 3) && near(qx, kx, 5, 3)
        }),
        mask(
            "natten_tiled",
            "image 4x6",
            json!({"kernel_h": 3, "kernel_w": 3, "tile_h": 2, "tile_w": 3}),
            |_, _, q, k| {
                // two tiles of 2x3 across
                let place = |t: i64| {
                    let ((ty, tx), (y, x)) = (at(t / 6, 2), at(t % 6, 3));
                    (ty * 2 + y, tx * 3 + x)
                };
                let ((qy, qx), (ky, kx)) = (place(q), place(k));
                near(qy, ky, 4, 3) && near(qx, kx, 6, 3)
            },
        ),
        mask("natten_morton", "image 8x8", json!({"kernel_h": 3, "kernel_w": 5}), |_, _, q, k| {
            let bits = |t: i64, first: i64| (0..3).map(|n| ((t >> (2 * n + first)) & 1) << n).sum::<i64>();
            near(bits(q, 1), bits(k, 1), 8, 3) && near(bits(q, 0), bits(k, 0), 8, 5)
        }),
    ]
}

/// Tiles of a window: an even number reaches one further to the left.
fn near_tiles(q: i64, k: i64, tiles: i64, width: i64) -> bool {
    let first = (q - width / 2).clamp(0, tiles - width);
    (first..first + width).contains(&k)
}

fn tiles() -> Vec<MaskCase> {
    let two = json!({"kernel_h": 2, "kernel_w": 4, "tile_h": 1, "tile_w": 2});
    let three = json!({"kernel_t": 2, "kernel_h": 2, "kernel_w": 6, "tile_t": 1, "tile_h": 2, "tile_w": 2});
    vec![
        mask("sta_2d", "image 4x8 | text 3", two, |_, _, q, k| {
            if q >= 32 || k >= 32 {
                return true;
            }
            let ((qy, qx), (ky, kx)) = (at(q / 2, 4), at(k / 2, 4));
            near_tiles(qy, ky, 4, 2) && near_tiles(qx, kx, 4, 2)
        }),
        mask("sta_3d", "video 3x4x8 | text 2", three, |_, _, q, k| {
            if q >= 96 || k >= 96 {
                return true;
            }
            let ((qt, qi), (kt, ki)) = (at(q / 4, 8), at(k / 4, 8));
            let ((qy, qx), (ky, kx)) = (at(qi, 4), at(ki, 4));
            near_tiles(qt, kt, 3, 2) && near_tiles(qy, ky, 2, 1) && near_tiles(qx, kx, 4, 3)
        }),
    ]
}

fn images() -> Vec<MaskCase> {
    let regions = json!({"prompts": [2, 3], "boxes": [[0, 0, 3, 2], [1, 1, 3, 4]]});
    vec![
        mask("shifted_windows", "image 6x6", json!({"window": 3, "shift": 1}), |_, _, q, k| {
            let window = |t: i64| ((t / 6 + 1) / 3, (t % 6 + 1) / 3);
            window(q) == window(k)
        }),
        mask("axial", "text 2 | image 3x4", json!({}), |_, _, q, k| {
            let ((qy, qx), (ky, kx)) = (at(q - 2, 4), at(k - 2, 4));
            q < 2 || k < 2 || qy == ky || qx == kx
        }),
        mask("axial", "image 3x4", json!({"columns": false}), |_, _, q, k| q / 4 == k / 4),
        mask("regional_prompting", "text 5 | image 3x4", regions, |_, _, q, k| {
            let inside = |prompt: i64, token: i64| {
                let (y, x) = at(token - 5, 4);
                if prompt == 0 { x < 2 } else { y >= 1 && x >= 1 }
            };
            let prompt = |t: i64| i64::from(t >= 2);
            match (q < 5, k < 5) {
                (true, true) => prompt(q) == prompt(k),
                (true, false) => inside(prompt(q), k),
                (false, true) => inside(prompt(k), q),
                (false, false) => true,
            }
        }),
    ]
}

fn videos() -> Vec<MaskCase> {
    vec![
        mask("radial", "text 1 | video 10x1x5", json!({"frame": 5}), |_, _, q, k| {
            if q < 1 || k < 1 || k < 1 + 5 {
                return true;
            }
            let ((qf, qi), (kf, ki)) = (at(q - 1, 5), at(k - 1, 5));
            let (apart, shift) = ((qf - kf).abs(), (qi - ki).abs());
            match apart {
                0 | 1 => true,
                2 | 3 => shift < 2,
                // from 8 on a stripe of 5 / 8 of a token: one token wide, in every (8 / 5)th frame, rounded down: in all
                _ => shift < 1,
            }
        }),
        mask("svg_spatial", "text 3 | video 4x2x3", json!({"frame": 6, "width": 1.5, "round": 4}), |_, _, q, k| {
            // 1.5 frames of 6 tokens, rounded down to a multiple of 4
            q < 3 || k < 3 || (q - k).abs() < 8
        }),
        mask(
            "svg_spatial",
            "video 4x2x3",
            json!({"frame": 6, "width": 1.0, "round": 2, "sink": true}),
            |_, _, q, k| k < 6 || (q - k).abs() < 6,
        ),
        mask("svg_temporal", "text 3 | video 4x2x3", json!({"frame": 6, "width": 2}), |_, _, q, k| {
            q < 3 || k < 3 || ((q - 3) % 6 - (k - 3) % 6).abs() < 3
        }),
    ]
}
