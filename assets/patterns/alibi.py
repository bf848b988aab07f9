import torch


def alibi(heads: int = 8):
    """Linear bias by distance, steeper for lower heads: `score + (kv_idx - q_idx) * 2 ** (-8 * (h + 1) / heads)`.

    Source: Press et al., ALiBi, arXiv:2108.12409.

    Args:
        heads: number of query heads [1..128] follows heads
    """

    def score_mod(score, b, h, q_idx, kv_idx):
        slope = torch.exp2(-8.0 * (h + 1) / heads)
        return score + (kv_idx - q_idx) * slope

    return score_mod
