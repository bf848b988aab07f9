def window_sinks(back: int = 512, ahead: int = 512, sinks: int = 4):
    """A window to both sides and the first tokens: `kv_idx < sinks or -ahead <= q_idx - kv_idx <= back`.

    Source: Beltagy et al., Longformer, arXiv:2004.05150 (the window), with the sinks of StreamingLLM, arXiv:2309.17453.

    Args:
        back: keys before the query [0..kv_len]
        ahead: keys after the query [0..kv_len]
        sinks: first tokens that all see [0..kv_len]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        near = (q_idx - kv_idx <= back) & (kv_idx - q_idx <= ahead)
        return (kv_idx < sinks) | near

    return mask_mod
