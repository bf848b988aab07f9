import torch


def graphormer_spatial(
    bias: "torch.Tensor" = None, distance: "torch.Tensor" = None, heads: int = 8, nodes: int = 256, longest: int = 5
):
    """Graphormer's spatial encoding: one number for each head and distance in the graph.

    `score + bias[h, distance[b, q_idx, kv_idx]]`, `bias` [heads, distances], `distance` [batch, nodes, nodes]. Without a
    distance the nodes form a ring, and all distances above `longest` count as `longest`; without a bias a stand-in falls
    with the distance, more steeply for lower heads. `bias` learns.

    Source: Ying et al., Graphormer, arXiv:2106.05234; attention-gym's graphormer_spatial_bias.

    Args:
        bias: number added for each head and distance
        distance: length of the shortest path between two nodes, for each batch entry
        heads: number of query heads [1..128] follows heads
        nodes: nodes of the ring [1..q_len] follows q_len
        longest: largest distance of the ring with a number of its own [1..64]
    """
    if bias is None:
        slopes = torch.exp2(-8.0 * (torch.arange(heads) + 1) / heads)
        bias = -slopes[:, None] * torch.arange(longest + 1)[None, :]

    def apart(b, q_idx, kv_idx):
        if distance is not None:
            return distance[b, q_idx, kv_idx]
        ahead = (q_idx - kv_idx) % nodes
        return torch.minimum(ahead, nodes - ahead).clamp(max=longest)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + bias[h, apart(b, q_idx, kv_idx)]

    return score_mod
