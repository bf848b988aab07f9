import torch


def soft_cap(cap: float = 50.0):
    """Scores stay within -cap .. cap: `cap * tanh(score / cap)`.

    Source: Gemma 2, arXiv:2408.00118 (cap 50).

    Args:
        cap: largest score [1..100 step 0.5]
    """

    def score_mod(score, b, h, q_idx, kv_idx):
        return cap * torch.tanh(score / cap)

    return score_mod
