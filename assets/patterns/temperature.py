def temperature(factor: float = 1.0):
    """Scores times a factor: above 1 sharpens attention, below 1 flattens it.

    Source: YaRN's attention temperature, arXiv:2309.00071.

    Args:
        factor: what scores are multiplied by [0..4 step 0.01]
    """

    def score_mod(score, b, h, q_idx, kv_idx):
        return score * factor

    return score_mod
