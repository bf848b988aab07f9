//! A router as the settings of the frameworks that ship it.
//!
//! Invariant: every key was read in the named version; a framework without such a router gets none. Must not know how
//! routers rank.

use super::{Budget, Ranking, Router};
use crate::quality::suggest::order::Order;
use serde_json::json;

/// Settings to paste.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Framework, and where its text goes.
    pub framework: &'static str,
    /// The source of the keys.
    pub read_from: &'static str,
    /// The text.
    pub text: String,
}

/// The settings of a router; `dense_steps` first steps and layers below `dense_layers` stay dense.
pub fn settings(router: &Router, dense_steps: usize, dense_layers: usize) -> Vec<Settings> {
    let mut found = Vec::new();
    let Budget::TopK(share) = router.budget else { return cubes(router) };
    match (router.ranking, router.order, router.block) {
        (Ranking::MeanPool, Order::Tiles([t, h, w]), _) if t * h * w == 128 => found.push(Settings {
            framework: "SimpleTuner, config.json",
            read_from: "documentation/quickstart/MINIMAX_H3.md at 0a03ecf",
            text: pretty(&json!({
                "minimax_h3_sparse_attention": "moba3d",
                "minimax_h3_sparse_block_shape": format!("{t},{h},{w}"),
                "minimax_h3_sparse_video_kv_fraction": rounded(share),
                "minimax_h3_sparse_share_heads": false,
                "minimax_h3_sparse_start_layer": dense_layers,
            })),
        }),
        (Ranking::MeanPool, Order::Raster, None) => found.push(Settings {
            framework: "LightX2V, config.json",
            read_from: "ModelTC/LightX2V configs/attentions/wan_i2v_sla_flex_block_480p.json at 29c8504",
            text: pretty(&json!({
                "self_attn_1_type": "general_sparse_attn",
                "general_sparse_attn_setting": {
                    "sparse_mask_generator": "sla_mask_generator",
                    "sparse_setting": {"sla_sparsity_ratio": rounded(1.0 - share)},
                    "sparse_operator": "flex_block_operator",
                },
            })),
        }),
        (Ranking::SubBlock { parts }, Order::Raster, _) => {
            let config = json!({"sparsity": rounded(1.0 - share), "n_k": parts, "n_q": parts, "skip_first_steps": dense_steps,
                "skip_first_layers": dense_layers, "min_seq_len": 4096});
            found.push(Settings {
                framework: "SGLang, command line",
                read_from: "sgl-project/sglang#34680 (2026-08-13)",
                text: format!("--attention-backend subblock_sparse_attn --attention-backend-config '{config}'"),
            });
        }
        (Ranking::MeanPool, Order::Raster, Some(block)) if (block.q, block.kv) == (64, 64) => found.push(Settings {
            framework: "ComfyUI, BlockSparseAttention node",
            read_from: "Comfy-Org/embedded-docs#142 (2026-09-08)",
            text: format!("method: top-k (SLA), keep_percent: {:.1}", (100.0 * share).clamp(0.5, 95.0)),
        }),
        _ => {}
    }
    found
}

/// SGLang's cubes take ratios by step.
fn cubes(router: &Router) -> Vec<Settings> {
    let Order::Tiles(tile) = router.order else { return Vec::new() };
    if router.ranking != Ranking::MeanPool || tile.iter().product::<usize>() != 64 {
        return Vec::new();
    }
    let config = json!({"local_cube_size": tile});
    vec![Settings {
        framework: "SGLang, command line",
        read_from: "sgl-project/sglang#34893 (2026-08-15)",
        text: format!(
            "--component-attention-backends transformer=cube_sparse_attn --attention-backend-config '{config}' (its topk_ratio_list has a ratio a step)"
        ),
    }]
}

fn rounded(x: f64) -> f64 {
    (x * 1e4).round() / 1e4
}

fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::profile::Grid;
    use crate::quality::routers::routers;

    #[test]
    fn each_framework_gets_its_own_keys() {
        let all = routers(0.25, 0.9, Some(Grid { extents: [4, 8, 16], start: 0 }));
        let of = |name: &str| settings(all.iter().find(|r| r.name == name).unwrap(), 10, 2);
        let simple = of("moba3d");
        let value: serde_json::Value = serde_json::from_str(&simple[0].text).unwrap();
        assert_eq!(
            (&value["minimax_h3_sparse_block_shape"], &value["minimax_h3_sparse_video_kv_fraction"]),
            (&json!("1,8,16"), &json!(0.25))
        );
        assert_eq!(value["minimax_h3_sparse_start_layer"], json!(2));
        assert!(
            of("sub-block LSE")[0].text.contains("\"sparsity\":0.75")
                && of("sub-block LSE")[0].text.contains("\"skip_first_steps\":10")
        );
        assert!(of("SLA")[0].text.ends_with("keep_percent: 25.0"), "{:?}", of("SLA"));
        assert!(of("VSA")[0].text.contains("[4,4,4]"));
        assert_eq!(of("Quest"), []);
        let light: serde_json::Value = serde_json::from_str(&of("mean pool top-k")[0].text).unwrap();
        assert_eq!(light["general_sparse_attn_setting"]["sparse_setting"]["sla_sparsity_ratio"], json!(0.75));
    }
}
