import torch


def global_window(window: int = 256, globals: tuple = (0,), length: int = 4096):
    """A window of `window` tokens to either side, and global tokens that see and are seen by all.

    `abs(q_idx - kv_idx) <= window`, or the query or the key is global.

    Source: Longformer, arXiv:2004.05150; attention-gym's global_sliding_window.

    Args:
        window: tokens to either side [0..kv_len]
        globals: indices of the global tokens
        length: tokens of the sequence [1..kv_len] follows kv_len
    """
    is_global = torch.zeros(length, dtype=torch.bool)
    for index in globals:
        is_global[index] = True

    def mask_mod(b, h, q_idx, kv_idx):
        near = (q_idx - kv_idx <= window) & (kv_idx - q_idx <= window)
        return near | is_global[q_idx] | is_global[kv_idx]

    return mask_mod
