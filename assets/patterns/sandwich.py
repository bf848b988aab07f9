import torch


def sandwich(heads: int = 8, length: int = 4096, dim: int = 128):
    """Bias by the inner product of sinusoidal position embeddings, scaled per head: `score + T[q - k] * H / (8 * (h + 1))`.

    `T[d] = sum over i of cos(d / 10000 ** (2i / dim))` for i below dim / 2. T is fixed and gets no gradient.

    Source: Chi et al., Sandwich, arXiv:2212.10356; attention-gym's sandwich.

    Args:
        heads: number of query heads [1..128] follows heads
        length: tokens of the sequence [1..kv_len] follows kv_len
        dim: of the position embedding [2..512]
    """
    half = dim // 2
    frequencies = torch.exp2(torch.arange(half) * (-13.287712379549449 / half))
    distances = torch.arange(2 * length - 1) - (length - 1)
    total = torch.zeros(2 * length - 1)
    for n in range(half):
        total = total + torch.cos(distances * frequencies[n])

    def score_mod(score, b, h, q_idx, kv_idx):
        scale = heads / (8.0 * (h + 1))
        return score + total[q_idx - kv_idx + length - 1].detach() * scale

    return score_mod
