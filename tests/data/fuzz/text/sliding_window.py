def sliding_window(window: int = 1024):
    """Causal, and at most `window` keys, the query itself included: `0 <= q_idx - kv_idx < window`.

    This is the convention of Hugging Face, Mistral and torchtitan. attention-gym and the PyTorch blog keep one key more,
    `q_idx - kv_idx <= W`: write W + 1 here.

    Source: Child et al., Sparse Transformers, arXiv:1904.10509; Mistral 7B, arXiv:2310.06825.

    Args:
        window: keys a query sees, itself included [1..kv_len]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx < window)

    return mask_mod
