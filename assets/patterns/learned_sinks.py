import torch


def learned_sinks(sinks: "torch.Tensor" = None, heads: int = 8, sink: int = 0):
    """A learned sink for each head, as the score of one extra key whose value is zero: `sinks[h] if kv_idx == sink`.

    Prepend one key and one value of zeros (or append them and set `sink`): softmax then divides by one term more,
    `exp(sinks[h])`, and nothing is added. The same through the lse, without the key: `out * sigmoid(lse - sinks[h])`.
    `sinks` learns: as the key's score, or through the lse's own gradient.

    Source: GPT-OSS, arXiv:2508.10925; softmax-off-by-one, Miller 2023, is a sink of 0.

    Args:
        sinks: the checkpoint's sink of each head
        heads: number of query heads [1..128] follows heads
        sink: index of the extra key [0..kv_len]
    """
    if sinks is None:
        sinks = torch.arange(heads) * (2.0 / heads) - 1.0

    def score_mod(score, b, h, q_idx, kv_idx):
        return torch.where(kv_idx == sink, sinks[h], score)

    return score_mod
