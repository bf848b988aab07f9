import torch


def mla_rope(
    q_rope: "torch.Tensor" = None,
    k_rope: "torch.Tensor" = None,
    group: int = 1,
    scale: float = 0.07216878364870322,
    length: int = 1024,
    dim: int = 64,
):
    """The rotary part of multi-head latent attention, added to the scores of the latent part.

    `score + scale * dot(q_rope[b, h, q_idx], k_rope[b, h // group, kv_idx])`, `q_rope` [batch, heads, q_len, r], `k_rope`
    [batch, kv heads, kv_len, r]. Without them a stand-in rotates the same vector at every token, so that the score falls
    with the distance as rotary embeddings make it.

    Source: DeepSeek-V2, arXiv:2405.04434; attention-gym's mla_rope.

    Args:
        q_rope: rotated queries
        k_rope: rotated keys
        group: query heads that share a rotated key [1..128]
        scale: factor of the product; 1 / sqrt(192) in DeepSeek-V3 [0..1 step 0.001]
        length: tokens of the stand-in [1..kv_len] follows kv_len
        dim: dimensions of the stand-in, even [2..128]
    """
    if q_rope is None or k_rope is None:
        half = dim // 2
        frequencies = torch.exp2(torch.arange(half) * (-13.287712379549449 / half))
        angles = torch.arange(length)[:, None] * frequencies[None, :]
        turned = torch.cat([torch.cos(angles), torch.sin(angles)], dim=1)[None, None]
        q_rope = turned if q_rope is None else q_rope
        k_rope = turned if k_rope is None else k_rope
    last_q = q_rope.shape[1] - 1
    last_k = k_rope.shape[1] - 1
    last_q_batch = q_rope.shape[0] - 1
    last_k_batch = k_rope.shape[0] - 1

    def score_mod(score, b, h, q_idx, kv_idx):
        q = q_rope[b.clamp(max=last_q_batch), h.clamp(max=last_q), q_idx]
        k = k_rope[b.clamp(max=last_k_batch), (h // group).clamp(max=last_k), kv_idx]
        return score + scale * torch.dot(q, k)

    return score_mod
