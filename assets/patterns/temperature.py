def temperature(factor: float = 1.0, factors: "torch.Tensor" = None):
    """Scores times a factor: above 1 sharpens attention, below 1 flattens it.

    With `factors` given, one for each head, these learn.

    Source: YaRN's attention temperature, arXiv:2309.00071.

    Args:
        factor: what scores are multiplied by [0..4 step 0.01]
        factors: factors of the heads that learn
    """

    def score_mod(score, b, h, q_idx, kv_idx):
        return score * factor

    def learning(score, b, h, q_idx, kv_idx):
        return score * factor * factors[h]

    return score_mod if factors is None else learning
