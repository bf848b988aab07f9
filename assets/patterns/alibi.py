import torch


def alibi(heads: int = 8, slopes: "torch.Tensor" = None):
    """Linear bias by distance, steeper for lower heads: `score + (kv_idx - q_idx) * 2 ** (-8 * (h + 1) / heads)`.

    With `slopes` given, one for each head, these learn; ALiBi's own are fixed.

    Source: Press et al., ALiBi, arXiv:2108.12409.

    Args:
        heads: number of query heads [1..128] follows heads
        slopes: slopes of the heads that learn
    """

    def score_mod(score, b, h, q_idx, kv_idx):
        slope = torch.exp2(-8.0 * (h + 1) / heads)
        return score + (kv_idx - q_idx) * slope

    def learning(score, b, h, q_idx, kv_idx):
        return score + (kv_idx - q_idx) * slopes[h]

    return score_mod if slopes is None else learning
