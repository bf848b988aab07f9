import torch


def key_padding(lengths: tuple = (4096,)):
    """Keys from a batch entry's length on are seen by nobody: `kv_idx < lengths[b]`.

    Source: the padding masks of Hugging Face transformers.

    Args:
        lengths: real tokens of each batch entry (the last one serves further entries) [0..kv_len]
    """
    real = torch.tensor(lengths)
    last = len(lengths) - 1

    def mask_mod(b, h, q_idx, kv_idx):
        return kv_idx < real[b.clamp(max=last)]

    return mask_mod
