def prefix_lm(prefix: int = 512):
    """The prefix is seen by all, the rest is causal: `kv_idx < prefix or q_idx >= kv_idx`.

    Source: Raffel et al., T5, arXiv:1910.10683; PaliGemma, arXiv:2407.07726, whose image and prompt are the prefix.

    Args:
        prefix: tokens of the prefix [0..kv_len]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        return (kv_idx < prefix) | (q_idx >= kv_idx)

    return mask_mod
