import math

import torch


def t5_bias(
    table: "torch.Tensor" = None,
    buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
    heads: int = 8,
    length: int = 4096,
):
    """T5's relative position bias: one number for each head and bucket, buckets growing with the distance.

    `score + table[bucket(kv_idx - q_idx), h]`, `table` as in a T5 checkpoint, [buckets, heads]. Without one a stand-in
    falls with the bucket, more steeply for lower heads. `table` learns.

    Source: Raffel et al., T5, arXiv:1910.10683.

    Args:
        table: the checkpoint's relative_attention_bias.weight
        buckets: number of buckets [2..256]
        max_distance: distance from which on the last bucket serves [2..4096]
        bidirectional: whether keys after the query have buckets of their own
        heads: number of query heads [1..128] follows heads
        length: largest number of queries or keys [1..kv_len] follows kv_len
    """
    side = buckets // 2 if bidirectional else buckets
    exact = side // 2

    def bucket(distance):
        first = 0
        if bidirectional:
            if distance > 0:
                first = side
            distance = abs(distance)
        else:
            distance = max(-distance, 0)
        if distance < exact:
            return first + distance
        grown = exact + int(math.log(distance / exact) / math.log(max_distance / exact) * (side - exact))
        return first + min(grown, side - 1)

    if table is None:
        rows = []
        for n in range(buckets):
            rows.append([-0.25 * (n % side) * 2.0 ** (-8.0 * (head + 1) / heads) for head in range(heads)])
        table = torch.tensor(rows)
    reach = min(max_distance, length)
    by_distance = torch.tensor([bucket(distance) for distance in range(-reach, reach + 1)])

    def score_mod(score, b, h, q_idx, kv_idx):
        distance = (kv_idx - q_idx).clamp(-reach, reach)
        return score + table[by_distance[distance + reach], h]

    return score_mod
