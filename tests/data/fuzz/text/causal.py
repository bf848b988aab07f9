import torch


def causal(offset: int = 0):
    """A query sees itself and every key before it: `q_idx + offset >= kv_idx`.

    With more keys than queries, `offset = kv_len - q_len` aligns the last query with the last key (bottom-right);
    0 aligns the first ones (top-left), as FlexAttention's plain `q_idx >= kv_idx` does.

    Source: Vaswani et al., Attention Is All You Need, arXiv:1706.03762.

    Args:
        offset: position of the first query among the keys [0..kv_len]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx + offset >= kv_idx

    return mask_mod
