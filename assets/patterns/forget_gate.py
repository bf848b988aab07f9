import torch


def forget_gate(running: "torch.Tensor" = None, heads: int = 8, tokens: int = 1024, every: int = 512):
    """A forget gate for each token: `score + running[h, q_idx] - running[h, kv_idx]`, where `running` sums up the gates' logarithms.

    A key's weight is multiplied by the product of all gates after it up to the query. `running` learns: it is
    `torch.cumsum(torch.nn.functional.logsigmoid(gates), -1)` of gates that a layer computes from its tokens, `[heads, tokens]` or
    `[batch, heads, tokens]`, and autograd passes its gradient on to them. Without it each head has fixed gates, and every
    `every` tokens one gate is nearly shut.

    Source: Lin et al., Forgetting Transformer, arXiv:2503.02130.

    Args:
        running: running sums of the logarithms of the gates that learn
        heads: number of query heads [1..128] follows heads
        tokens: tokens of the sequence [1..kv_len] follows kv_len
        every: without `running`: tokens from one gate that is nearly shut to the next [1..kv_len]
    """
    if running is None:
        rate = torch.exp2(-8.0 * (torch.arange(heads) + 1) / heads)
        shut = (torch.arange(tokens) % every == 0).float() * 4.0
        running = torch.cumsum(-rate[:, None] - shut, -1)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + running[h, q_idx] - running[h, kv_idx]

    def of_batch(score, b, h, q_idx, kv_idx):
        return score + running[b, h, q_idx] - running[b, h, kv_idx]

    return score_mod if running.dim() == 2 else of_batch
