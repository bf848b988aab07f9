import torch


def graphormer_edge(
    bias: "torch.Tensor" = None,
    path: "torch.Tensor" = None,
    length: "torch.Tensor" = None,
    heads: int = 8,
    nodes: int = 256,
    steps: int = 4,
    kinds: int = 3,
):
    """Graphormer's edge encoding: the mean, over the edges of the shortest path, of one number for head, step and kind.

    `score + mean over n < length[b, q, k] of bias[h, n, path[b, q, k, n]]`, `bias` [heads, steps, kinds], `path` [batch,
    nodes, nodes, steps], `length` [batch, nodes, nodes]. Without a path the nodes form a ring whose edges take the kinds in
    turn, walked the shorter way, at most `steps` edges. `bias` learns.

    Source: Ying et al., Graphormer, arXiv:2106.05234; attention-gym's graphormer_edge_bias.

    Args:
        bias: number for each head, step of the path and kind of edge
        path: kind of each edge on the way from one node to another
        length: edges on that way; needed with a path
        heads: number of query heads [1..128] follows heads
        nodes: nodes of the ring [1..q_len] follows q_len
        steps: edges of a path that count, from its beginning [1..16]
        kinds: kinds of edges of the ring [1..64]
    """
    assert path is None or length is not None, "a path needs the length of each path"
    if path is not None:
        steps = path.shape[-1]
    if bias is None:
        step = torch.arange(steps)[None, :, None]
        kind = torch.arange(kinds)[None, None, :]
        slopes = torch.exp2(-8.0 * (torch.arange(heads) + 1) / heads)
        bias = -slopes[:, None, None] * (step + kind + 1)

    def edges(b, q_idx, kv_idx):
        if path is not None:
            return length[b, q_idx, kv_idx]
        ahead = (kv_idx - q_idx) % nodes
        return torch.minimum(ahead, nodes - ahead).clamp(max=steps)

    def kind_of(b, q_idx, kv_idx, n):
        if path is not None:
            return path[b, q_idx, kv_idx, n]
        forward = 2 * ((kv_idx - q_idx) % nodes) <= nodes
        return torch.where(forward, (q_idx + n) % nodes, (q_idx - 1 - n) % nodes) % kinds

    def score_mod(score, b, h, q_idx, kv_idx):
        count = edges(b, q_idx, kv_idx)
        total = 0.0
        for n in range(steps):
            total = total + torch.where(n < count, bias[h, n, kind_of(b, q_idx, kv_idx, n)], 0.0)
        return score + total / count.clamp(min=1)

    return score_mod
