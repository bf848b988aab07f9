def strided(stride: int = 128):
    """The last `stride` keys, and every `stride`-th key before them; causal.

    `q_idx >= kv_idx and (q_idx - kv_idx < stride or (q_idx - kv_idx) % stride == 0)`.

    Source: Child et al., Sparse Transformers, arXiv:1904.10509 (strided).

    Args:
        stride: distance and window [1..kv_len]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        distance = q_idx - kv_idx
        return (distance >= 0) & ((distance < stride) | (distance % stride == 0))

    return mask_mod
