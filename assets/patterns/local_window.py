def local_window(radius: int = 256):
    """Keys at most `radius` tokens away on either side: `abs(q_idx - kv_idx) <= radius`.

    Source: Beltagy et al., Longformer, arXiv:2004.05150 (its local part).

    Args:
        radius: tokens to either side [0..kv_len]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx - kv_idx <= radius) & (kv_idx - q_idx <= radius)

    return mask_mod
