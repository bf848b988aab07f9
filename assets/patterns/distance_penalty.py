import torch


def distance_penalty(strength: float = 1.0, scale: float = 64.0):
    """A smooth fall with distance: `score - strength * log(1 + abs(q_idx - kv_idx) / scale)`.

    Source: Chi et al., KERPLE (logarithmic), arXiv:2205.09921.

    Args:
        strength: how much [0..8 step 0.05]
        scale: distance at which it sets in, in tokens [1..4096]
    """

    def score_mod(score, b, h, q_idx, kv_idx):
        distance = torch.abs(q_idx - kv_idx)
        return score - strength * torch.log(1.0 + distance / scale)

    return score_mod
