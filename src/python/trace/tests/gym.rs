//! attention-gym's own files, unmodified: every mask and score mod traces. They are not part of this repository: an
//! environment variable names the folder of the installed package.

use crate::base::tensor::Data;
use crate::python::trace::tests::*;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Names the folder that holds `attn_gym`, such as a virtual environment's site-packages.
const FOLDER: &str = "MASKLOOM_ATTN_GYM";

struct Folder(PathBuf);

impl ModuleLoader for Folder {
    fn load(&self, dotted: &str) -> Option<Source> {
        let path = self.0.join(dotted.replace('.', "/"));
        let found = [path.with_extension("py"), path.join("__init__.py")].into_iter().find(|p| p.is_file())?;
        Some(Source::new(found.to_string_lossy(), std::fs::read_to_string(&found).ok()?))
    }
}

fn ints(shape: &[usize], values: impl Iterator<Item = i32>) -> Arg {
    Arg::Tensor(HostTensor::new(shape, Data::I32(values.take(shape.iter().product()).collect())).expect("fits"))
}

fn floats(shape: &[usize]) -> Arg {
    let values = (0..shape.iter().product::<usize>()).map(|i| (i as f32 * 0.37).sin()).collect();
    Arg::Tensor(HostTensor::new(shape, Data::F32(values)).expect("fits"))
}

fn int(n: i64) -> Arg {
    Arg::Int(n)
}

fn pair(a: i64, b: i64) -> Arg {
    Arg::Tuple(vec![int(a), int(b)])
}

type Case = (&'static str, &'static str, Vec<(&'static str, Arg)>);

fn masks(folder: &Path) -> Vec<Case> {
    let offsets = || ints(&[5], [0, 40, 90, 200, 320].into_iter());
    let text = std::fs::read_to_string(folder.join("attn_gym/masks/causal.py")).expect("causal.py");
    let causal = || Arg::Mod {
        source: Source::new("causal.py", text.as_str()),
        entry: "causal_mask".into(),
        call: false,
        args: Vec::new(),
    };
    vec![
        ("causal", "causal_mask", vec![]),
        ("sliding_window", "generate_sliding_window", vec![("window_size", int(40))]),
        ("prefix_lm", "generate_prefix_lm_mask", vec![("prefix_length", int(77))]),
        ("document_mask", "generate_doc_mask_mod", vec![("mask_mod", causal()), ("offsets", offsets())]),
        ("document_mask", "generate_packed_causal_doc_mask_mod", vec![("offsets", offsets())]),
        (
            "dilated_sliding_window",
            "generate_dilated_sliding_window",
            vec![("window_size", int(60)), ("dilation", int(3))],
        ),
        (
            "global_sliding_window",
            "generate_global_sliding_window",
            vec![("window_size", int(16)), ("is_global", ints(&[320], (0..320).map(|i| i32::from(i % 50 == 0))))],
        ),
        (
            "natten",
            "generate_natten",
            vec![("canvas_w", int(20)), ("canvas_h", int(16)), ("kernel_w", int(7)), ("kernel_h", int(5))],
        ),
        (
            "natten",
            "generate_tiled_natten",
            vec![("W", int(32)), ("H", int(32)), ("K_W", int(7)), ("K_H", int(7)), ("T_W", int(8)), ("T_H", int(8))],
        ),
        (
            "natten",
            "generate_morton_natten",
            vec![("canvas_w", int(16)), ("canvas_h", int(16)), ("kernel_w", int(5)), ("kernel_h", int(5))],
        ),
        (
            "flamingo",
            "generate_vision_cross_attention_mask_mod",
            vec![("intervals", ints(&[2, 2], [0, 90, 40, 200].into_iter())), ("image_token_length", int(30))],
        ),
        (
            "sta",
            "generate_sta_mask_mod_2d",
            vec![
                ("canvas_hw", pair(32, 32)),
                ("kernel_hw", pair(16, 24)),
                ("tile_hw", pair(8, 8)),
                ("text_seq_len", int(20)),
            ],
        ),
        (
            "sta",
            "generate_sta_mask_mod_3d",
            vec![
                ("canvas_twh", Arg::Tuple(vec![int(8), int(16), int(16)])),
                ("kernel_twh", Arg::Tuple(vec![int(4), int(8), int(8)])),
                ("tile_twh", Arg::Tuple(vec![int(4), int(4), int(4)])),
                ("text_seq_len", int(20)),
            ],
        ),
        (
            "svg",
            "generate_spatial_head_mask_mod",
            vec![
                ("prompt_length", int(30)),
                ("num_frames", int(4)),
                ("token_per_frame", int(64)),
                ("width", int(2)),
                ("round_width", int(64)),
            ],
        ),
        (
            "svg",
            "generate_temporal_head_mask_mod",
            vec![("prompt_length", int(30)), ("num_frames", int(4)), ("token_per_frame", int(64)), ("width", int(2))],
        ),
        (
            "shared_prefix",
            "generate_shared_prefix_mask_mod",
            vec![("offsets", offsets()), ("prefix_document_id", ints(&[4], [0, 0, 2, 2].into_iter()))],
        ),
        ("block_diffusion", "generate_block_diffusion_mask", vec![("seq_len", int(160)), ("block_size", int(16))]),
        ("batchify", "batchify_mask_mod", vec![("mask_mod", causal()), ("batchify_size", int(64))]),
        (
            "jetspec",
            "generate_jetspec_tree_causal_mask_mod",
            vec![
                ("prefix_length", int(100)),
                ("ancestor_matrix", ints(&[24, 24], (0..).map(|i| i32::from(i % 25 == 0)))),
            ],
        ),
        ("jetspec", "generate_jetspec_training_mask_mod", vec![("prefix_length", int(100)), ("block_size", int(4))]),
        (
            "vsa",
            "generate_vsa_mask_mod",
            vec![("topk_indices", ints(&[1, 2, 4, 2], (0..).map(|i| i % 4))), ("tile_numel", int(16))],
        ),
    ]
}

fn scores() -> Vec<Case> {
    vec![
        ("alibi", "generate_alibi_bias", vec![("H", int(4))]),
        ("softcapping", "generate_tanh_softcap", vec![("soft_cap", int(20))]),
        ("softcapping", "generate_tanh_softcap", vec![("soft_cap", int(20)), ("approx", Arg::Bool(true))]),
        ("activation", "generate_activation_score_mod", vec![("offset", Arg::Float(1.0))]),
        ("sandwich", "generate_sandwich_bias", vec![("H", int(4)), ("max_seq_len", int(320))]),
        (
            "graphormer",
            "generate_graphormer_spatial_bias",
            vec![("spatial_bias", floats(&[2, 12])), ("distances", ints(&[2, 64, 64], (0..).map(|i| i % 12)))],
        ),
        (
            "graphormer",
            "generate_graphormer_edge_bias",
            vec![
                ("edge_bias", floats(&[2, 3, 5])),
                ("path_edge_types", ints(&[1, 16, 16, 3], (0..).map(|i| i % 5))),
                ("path_lengths", ints(&[1, 16, 16], (0..).map(|i| i % 4))),
            ],
        ),
        (
            "latent_attention",
            "generate_mla_rope_score_mod",
            vec![
                ("query_rope", floats(&[1, 4, 96, 16])),
                ("key_rope", floats(&[1, 1, 96, 16])),
                ("num_heads", int(4)),
                ("scale", Arg::Float(0.3)),
            ],
        ),
    ]
}

#[test]
fn every_mod_of_attention_gym_traces_unmodified() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        maskloom_testing::needs::missing("gym", &format!("{FOLDER} names no folder with the attn_gym package"));
        return;
    };
    let loader = Folder(folder.clone());
    let kinds = [(ModKind::Mask, "masks", masks(&folder)), (ModKind::Score, "mods", scores())];
    let mut failed = Vec::new();
    for (kind, group, cases) in kinds {
        for (module, entry, args) in cases {
            let source = loader.load(&format!("attn_gym.{group}.{module}")).expect("a module of the package");
            let args = args.into_iter().map(|(n, a)| (n.to_string(), a)).collect();
            let request = TraceRequest { args, loader: &loader, ..TraceRequest::new(source, entry, kind) };
            let started = Instant::now();
            let traced = trace(&request);
            let ms = started.elapsed().as_secs_f64() * 1e3;
            let nodes = traced.result.as_ref().map_or(0, |r| r.graph.nodes().len());
            println!("{module:24} {entry:44} {ms:8.2} ms {nodes:5} nodes");
            if traced.result.is_none() {
                failed.push(format!("{entry}: {}", said(&traced)));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
