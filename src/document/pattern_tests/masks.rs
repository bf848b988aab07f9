//! Masks over plain sequences, documents, trees and selected blocks.
//!
//! Invariant: see the parent. Must not know how patterns are written.

use super::{MaskCase, ints, mask};
use serde_json::json;

/// The part of a token, for consecutive parts of these lengths; the rest is one more part.
fn part(lengths: &[i64], token: i64) -> i64 {
    let mut end = 0;
    for (at, length) in lengths.iter().enumerate() {
        end += length;
        if token < end {
            return at as i64;
        }
    }
    lengths.len() as i64
}

fn start(lengths: &[i64], part: i64) -> i64 {
    lengths[..part as usize].iter().sum()
}

pub(super) fn cases() -> Vec<MaskCase> {
    let mut cases = sequences();
    cases.extend(documents());
    cases.extend(blocks());
    cases.extend(trees());
    cases
}

fn sequences() -> Vec<MaskCase> {
    vec![
        mask("causal", "tokens 12", json!({}), |_, _, q, k| k <= q),
        mask("causal", "tokens 5 -> tokens 12", json!({"offset": 7}), |_, _, q, k| k <= q + 7),
        mask("sliding_window", "tokens 15", json!({"window": 4}), |_, _, q, k| (q - 3..=q).contains(&k)),
        mask("local_window", "tokens 13", json!({"radius": 3}), |_, _, q, k| (q - 3..=q + 3).contains(&k)),
        mask("prefix_lm", "tokens 12", json!({"prefix": 5}), |_, _, q, k| k < 5 || k <= q),
        mask("attention_sinks", "tokens 14", json!({"sinks": 2, "window": 3}), |_, _, q, k| {
            k <= q && (k < 2 || q - k < 3)
        }),
        mask("window_sinks", "tokens 14", json!({"back": 3, "ahead": 1, "sinks": 2}), |_, _, q, k| {
            k < 2 || (q - 3..=q + 1).contains(&k)
        }),
        mask(
            "block_stripes",
            "tokens 19",
            json!({"columns": [1, 2], "diagonals": [-1, 0, 2, 4], "block": 4}),
            |_, _, q, k| k / 4 == 1 || [-1, 2, 3].contains(&(q / 4 - k / 4)),
        ),
        mask(
            "block_stripes",
            "tokens 14",
            json!({"columns": [], "diagonals": [0, 2], "block": 5, "causal": true}),
            |_, _, q, k| k <= q && q / 5 - k / 5 < 2,
        ),
        mask("chunked_causal", "tokens 14", json!({"chunk": 4}), |_, _, q, k| k <= q && k >= q - q % 4),
        mask("dilated_window", "tokens 16", json!({"window": 6, "dilation": 3}), |_, _, q, k| {
            [-6, -3, 0, 3, 6].contains(&(q - k))
        }),
        mask("global_window", "tokens 14", json!({"window": 2, "globals": [0, 9]}), |_, _, q, k| {
            (q - k).abs() <= 2 || [0, 9].contains(&q) || [0, 9].contains(&k)
        }),
        mask("strided", "tokens 17", json!({"stride": 4}), |_, _, q, k| {
            k <= q && ((q - k) < 4 || [4, 8, 12, 16].contains(&(q - k)))
        }),
        // batch entries beyond the given lengths take the last one
        mask("key_padding", "tokens 9", json!({"lengths": [4, 7]}), |b, _, _, k| k < [4, 7][b as usize]),
        mask("key_padding", "tokens 9", json!({"lengths": [5]}), |_, _, _, k| k < 5),
        mask("text_padding", "text 6 | image 2x4", json!({"lengths": [3, 5]}), |b, _, _, k| {
            k >= 6 || k < [3, 5][b as usize]
        }),
        mask("text_padding", "video 2x2x2 | text 6", json!({"lengths": [2]}), |_, _, _, k| k < 8 + 2),
        mask("joint_blocks", "text 5 | image 2x3", json!({}), |_, _, q, k| if q < 5 { k < 5 } else { true }),
        mask(
            "joint_blocks",
            "text 5 | image 2x3",
            json!({"text_sees_image": true, "image_sees_text": false}),
            |_, _, q, k| if q < 5 { true } else { k >= 5 },
        ),
        mask(
            "vision_cross_attention",
            "tokens 9 -> tokens 12",
            json!({"intervals": [[0, 3], [2, 7], [7, 9]], "tokens": 4}),
            |_, _, q, k| match k {
                0..4 => q < 3,
                4..8 => (2..7).contains(&q),
                _ => (7..9).contains(&q),
            },
        ),
        mask(
            "alternate_heads",
            "tokens 10",
            json!({"first": {"mask": {"name": "causal"}}, "second": {"mask": {"name": "local_window", "args": {"radius": 1}}}, "every": 3}),
            |_, h, q, k| if h == 2 { (q - k).abs() <= 1 } else { k <= q },
        ),
    ]
}

fn documents() -> Vec<MaskCase> {
    const PARTS: [i64; 3] = [5, 3, 4];
    const TREE: [i64; 5] = [4, 3, 2, 3, 4];
    const CONTINUES: [i64; 6] = [0, 0, 0, 3, 3, 5];
    vec![
        mask("packed_documents", "tokens 14", json!({"lengths": PARTS}), |_, _, q, k| {
            k <= q && part(&PARTS, q) == part(&PARTS, k)
        }),
        mask("packed_documents", "tokens 14", json!({"lengths": PARTS, "causal": false}), |_, _, q, k| {
            part(&PARTS, q) == part(&PARTS, k)
        }),
        mask(
            "document_mask",
            "tokens 14",
            json!({"lengths": PARTS, "mask": {"mask": {"name": "prefix_lm", "args": {"prefix": 2}}}}),
            |_, _, q, k| {
                let own = part(&PARTS, q);
                own == part(&PARTS, k) && (k - start(&PARTS, own) < 2 || k <= q)
            },
        ),
        mask(
            "batched",
            "tokens 14",
            json!({"length": 5, "mask": {"mask": {"name": "sliding_window", "args": {"window": 2}}}}),
            |_, _, q, k| q / 5 == k / 5 && (k == q || k + 1 == q),
        ),
        mask("shared_prefix", "tokens 16", json!({"prefix": 4, "lengths": [3, 5]}), |_, _, q, k| {
            let answer = |t| part(&[4, 3, 5], t);
            k <= q && (answer(k) == 0 || answer(k) == answer(q))
        }),
        mask("shared_prefixes", "tokens 18", json!({"lengths": TREE, "prefixes": [0, 0, 0, 3, 3]}), |_, _, q, k| {
            let (own, other) = (part(&TREE, q), part(&TREE, k));
            if own == other { k <= q } else { CONTINUES[own as usize] == other }
        }),
        mask("block_diffusion", "tokens 16", json!({"length": 8, "block": 3}), |_, _, q, k| {
            let (noised, block) = (|t: i64| t < 8, |t: i64| (t % 8) / 3);
            match (noised(q), noised(k)) {
                (true, true) => block(q) == block(k),
                (true, false) => block(k) < block(q),
                (false, false) => block(k) <= block(q),
                (false, true) => false,
            }
        }),
    ]
}

fn blocks() -> Vec<MaskCase> {
    // rows of 3 query blocks for 2 heads, 2 picks each; head 2 and 3 take those of head 1
    let picks: [i64; 12] = [0, 2, 1, 1, 2, 0, 0, 1, 2, 2, 1, 0];
    vec![
        mask("block_causal", "tokens 14", json!({"block": 3}), |_, _, q, k| k < (q / 3 + 1) * 3),
        mask("block_causal", "tokens 17", json!({"block": 3, "window": 2, "sink": 1}), |_, _, q, k| {
            let end = (q / 3 + 1) * 3;
            k < end && (k >= end - 6 || k < 3)
        }),
        mask("next_scale", "tokens 16", json!({"scales": [1, 2, 3]}), |_, _, q, k| {
            let end = [1, 5, 14, 16].into_iter().find(|end| q < *end);
            end.is_some_and(|end| k < end)
        }),
        mask(
            "block_topk",
            "tokens 11",
            json!({"selected": ints(&[1, 2, 3, 2], &picks), "block": 4}),
            move |_, h, q, k| {
                let at = ((h.min(1) * 3 + q / 4) * 2) as usize;
                picks[at..at + 2].contains(&(k / 4))
            },
        ),
        mask("block_topk", "tokens 11", json!({"block": 4, "top": 2, "causal": true}), |_, _, q, k| {
            k <= q && (k / 4 == 0 || k / 4 == q / 4)
        }),
        mask(
            "bigbird",
            "tokens 15",
            json!({"block": 2, "window": 3, "globals": 1, "random": 1, "seed": 5}),
            |_, _, q, k| {
                let mut state: i64 = 5 * 7919 + 12345;
                let drawn: Vec<i64> = (0..8)
                    .map(|_| {
                        state = (state * 1_103_515_245 + 12345) % (1 << 31);
                        (state >> 16) % 8
                    })
                    .collect();
                let (row, column) = (q / 2, k / 2);
                (row - column).abs() <= 1 || row == 0 || column == 0 || drawn[row as usize] == column
            },
        ),
    ]
}

fn trees() -> Vec<MaskCase> {
    const PARENTS: [i64; 6] = [-1, 0, 0, 1, 3, -1];
    vec![
        mask(
            "tree_decoding",
            "draft 6 -> cache 7 | draft 6",
            json!({"prefix": 7, "parents": PARENTS}),
            |_, _, q, k| {
                let mut node = q;
                while k >= 7 && node >= 0 {
                    if node == k - 7 {
                        return true;
                    }
                    node = PARENTS[node as usize];
                }
                k < 7
            },
        ),
        // texts of one token each: the order in which a tree of 7 is written down
        mask(
            "token_tree",
            "tokens 7",
            json!({"depth": 3, "tokens": 7, "spread": 0, "breadth_first": true}),
            |_, _, q, k| {
                let mut text = q + 1;
                while text > k + 1 {
                    text /= 2;
                }
                text == k + 1
            },
        ),
        mask("token_tree", "tokens 7", json!({"depth": 3, "tokens": 7, "spread": 0}), |_, _, q, k| {
            const LAST_BELOW: [i64; 7] = [6, 3, 2, 3, 6, 5, 6];
            (k..=LAST_BELOW[k as usize]).contains(&q)
        }),
        mask(
            "packed_targets",
            "tokens 14",
            json!({"contexts": [3, 2], "targets": [2, 4], "total": 14}),
            |_, _, q, k| match q {
                0..3 => k <= q,
                3..5 => k < 3 || k == q,
                5..7 => (5..=q).contains(&k),
                7..11 => (5..7).contains(&k) || k == q,
                _ => (11..=q).contains(&k),
            },
        ),
        mask("packed_targets", "tokens 6", json!({"contexts": [3], "targets": [9], "total": 6}), |_, _, q, k| {
            (k < 3 && k <= q) || k == q
        }),
        mask("speculative_training", "tokens 9 -> tokens 14", json!({"prefix": 5, "steps": 3}), |_, _, q, k| {
            k < 5 || (q / 3 == (k - 5) / 3 && (k - 5) % 3 <= q % 3)
        }),
    ]
}
