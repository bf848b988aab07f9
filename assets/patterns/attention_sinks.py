def attention_sinks(sinks: int = 4, window: int = 1024):
    """The first `sinks` tokens and the last `window` ones, the query itself included; causal.

    `q_idx >= kv_idx and (kv_idx < sinks or q_idx - kv_idx < window)`.

    Source: Xiao et al., StreamingLLM, arXiv:2309.17453.

    Args:
        sinks: first tokens that stay visible [0..kv_len]
        window: keys a query sees, itself included [1..kv_len]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & ((kv_idx < sinks) | (q_idx - kv_idx < window))

    return mask_mod
