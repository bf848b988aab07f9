def dilated_window(window: int = 1024, dilation: int = 4):
    """Every `dilation`-th key at most `window` tokens away on either side.

    `abs(q_idx - kv_idx) <= window` and `(q_idx - kv_idx) % dilation == 0`.

    Source: Longformer, arXiv:2004.05150; attention-gym's dilated_sliding_window.

    Args:
        window: tokens to either side [0..kv_len]
        dilation: distance between kept keys [1..64]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        distance = q_idx - kv_idx
        near = (distance <= window) & (-distance <= window)
        return near & (distance % dilation == 0)

    return mask_mod
