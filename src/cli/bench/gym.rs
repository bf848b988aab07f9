//! The workloads of `maskloom bench language`: short Python texts that PyTorch and Maskloom run alike.
//!
//! Invariant: each text binds `mask_mod` (or `score_mod`) for a mask of [`LENGTH`] x [`LENGTH`]; attention-gym's own
//! code is imported from its installation. Must not know how anything is measured.

/// Query and key tokens of every mask.
pub(super) const LENGTH: usize = 4096;

/// A text and its name in the table.
pub(super) struct Workload {
    pub name: &'static str,
    pub text: &'static str,
}

const fn mask(name: &'static str, text: &'static str) -> Workload {
    Workload { name, text }
}

/// Masks without any import: they run on every installation of PyTorch.
pub(super) const PLAIN: &[Workload] = &[
    mask("causal", "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n"),
    mask(
        "causal_window",
        "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx <= 1024)\n",
    ),
];

/// The masks of attention-gym.
pub(super) const GYM: &[Workload] = &[
    mask("gym causal", "from attn_gym.masks.causal import causal_mask as mask_mod\n"),
    mask(
        "gym sliding_window",
        "from attn_gym.masks.sliding_window import generate_sliding_window\nmask_mod = generate_sliding_window(1024)\n",
    ),
    mask(
        "gym dilated_window",
        "from attn_gym.masks.dilated_sliding_window import generate_dilated_sliding_window\nmask_mod = generate_dilated_sliding_window(512, 4)\n",
    ),
    mask(
        "gym global_window",
        "import torch\nfrom attn_gym.masks.global_sliding_window import generate_global_sliding_window\nmask_mod = generate_global_sliding_window(256, torch.arange(4096) % 511 == 0)\n",
    ),
    mask(
        "gym prefix_lm",
        "from attn_gym.masks.prefix_lm import generate_prefix_lm_mask\nmask_mod = generate_prefix_lm_mask(1024)\n",
    ),
    mask(
        "gym documents",
        "from attn_gym.masks.causal import causal_mask\nfrom attn_gym.masks.document_mask import generate_doc_mask_mod, length_to_offsets\nmask_mod = generate_doc_mask_mod(causal_mask, length_to_offsets([100, 900, 1500, 596, 1000], \"cpu\"))\n",
    ),
    mask(
        "gym packed_documents",
        "from attn_gym.masks.document_mask import generate_packed_causal_doc_mask_mod, length_to_offsets\nmask_mod = generate_packed_causal_doc_mask_mod(length_to_offsets([100, 900, 1500, 596, 1000], \"cpu\"))\n",
    ),
    mask(
        "gym shared_prefix",
        "import torch\nfrom attn_gym.masks.document_mask import length_to_offsets\nfrom attn_gym.masks.shared_prefix import generate_shared_prefix_mask_mod\nmask_mod = generate_shared_prefix_mask_mod(length_to_offsets([1024, 1024, 1024, 1024], \"cpu\"), torch.tensor([0, 0, 0, 0]))\n",
    ),
    mask(
        "gym batchify",
        "from attn_gym.masks.batchify import batchify_mask_mod\nfrom attn_gym.masks.causal import causal_mask\nmask_mod = batchify_mask_mod(causal_mask, 512)\n",
    ),
    mask(
        "gym block_diffusion",
        "from attn_gym.masks.block_diffusion import generate_block_diffusion_mask\nmask_mod = generate_block_diffusion_mask(2048, 32)\n",
    ),
    mask(
        "gym jetspec_training",
        "from attn_gym.masks.jetspec import generate_jetspec_training_mask_mod\nmask_mod = generate_jetspec_training_mask_mod(1024, 64)\n",
    ),
    mask(
        "gym cross_attention",
        "import torch\nfrom attn_gym.masks.flamingo import generate_vision_cross_attention_mask_mod\nmask_mod = generate_vision_cross_attention_mask_mod(torch.tensor([[0, 900], [900, 2000], [2000, 3000], [3000, 4096]]), 1024)\n",
    ),
    mask(
        "gym natten",
        "from attn_gym.masks.natten import generate_natten\nmask_mod = generate_natten(64, 64, 13, 13)\n",
    ),
    mask(
        "gym tiled_natten",
        "from attn_gym.masks.natten import generate_tiled_natten\nmask_mod = generate_tiled_natten(64, 64, 13, 13, 8, 8)\n",
    ),
    mask(
        "gym morton_natten",
        "from attn_gym.masks.natten import generate_morton_natten\nmask_mod = generate_morton_natten(64, 64, 13, 13)\n",
    ),
    mask(
        "gym sta_2d",
        "from attn_gym.masks.sta import generate_sta_mask_mod_2d\nmask_mod = generate_sta_mask_mod_2d((64, 64), (24, 24), (8, 8))\n",
    ),
    mask(
        "gym sta_3d",
        "from attn_gym.masks.sta import generate_sta_mask_mod_3d\nmask_mod = generate_sta_mask_mod_3d((16, 16, 16), (8, 8, 8), (4, 4, 4))\n",
    ),
    mask(
        "gym svg_spatial",
        "from attn_gym.masks.svg import generate_spatial_head_mask_mod\nmask_mod = generate_spatial_head_mask_mod(prompt_length=256, num_frames=15, token_per_frame=256)\n",
    ),
    mask(
        "gym svg_temporal",
        "from attn_gym.masks.svg import generate_temporal_head_mask_mod\nmask_mod = generate_temporal_head_mask_mod(prompt_length=256, num_frames=15, token_per_frame=256)\n",
    ),
    mask(
        "gym vsa",
        "import torch\nfrom attn_gym.masks.vsa import generate_vsa_mask_mod\nmask_mod = generate_vsa_mask_mod(torch.arange(64 * 8).reshape(1, 1, 64, 8) * 7 % 64, 64)\n",
    ),
];

/// attention-gym's score mods, which are only traced.
pub(super) const SCORES: &[Workload] = &[
    mask("gym alibi", "from attn_gym.mods.alibi import generate_alibi_bias\nscore_mod = generate_alibi_bias(16)\n"),
    mask(
        "gym tanh_softcap",
        "from attn_gym.mods.softcapping import generate_tanh_softcap\nscore_mod = generate_tanh_softcap(30, approx=False)\n",
    ),
    mask(
        "gym mla_rope",
        "import torch\nfrom attn_gym.mods.latent_attention import generate_mla_rope_score_mod\nscore_mod = generate_mla_rope_score_mod(torch.ones(1, 8, 64, 64), torch.ones(1, 1, 64, 64), 8)\n",
    ),
    mask(
        "gym activation",
        "from attn_gym.mods.activation import generate_activation_score_mod\nscore_mod = generate_activation_score_mod()\n",
    ),
    mask(
        "gym graphormer_spatial",
        "import torch\nfrom attn_gym.mods.graphormer import generate_graphormer_spatial_bias\nscore_mod = generate_graphormer_spatial_bias(torch.ones(8, 16), torch.zeros(1, 64, 64, dtype=torch.long))\n",
    ),
    mask(
        "gym graphormer_edge",
        "import torch\nfrom attn_gym.mods.graphormer import generate_graphormer_edge_bias\nscore_mod = generate_graphormer_edge_bias(torch.ones(8, 4, 16), torch.zeros(1, 64, 64, 4, dtype=torch.long), torch.ones(1, 64, 64, dtype=torch.long))\n",
    ),
    mask(
        "gym sandwich",
        "from attn_gym.mods.sandwich import generate_sandwich_bias\nscore_mod = generate_sandwich_bias(8, 1024)\n",
    ),
];
