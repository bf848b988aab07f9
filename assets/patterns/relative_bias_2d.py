import torch


def relative_bias_2d(table: "torch.Tensor" = None, canvas_h: int = 16, canvas_w: int = 16, heads: int = 8, start: int = 0):
    """Swin's relative position bias: one number for each head, row distance and column distance.

    `score + table[q_y - k_y + H - 1, q_x - k_x + W - 1, h]` with `table` [2H-1, 2W-1, heads]. Without one a stand-in falls
    with the distance. Tokens outside the image get no bias. `table` learns.

    Source: Liu et al., Swin Transformer, arXiv:2103.14030.

    Args:
        table: biases by row distance, column distance and head
        canvas_h: rows of the image or window [1..128] follows image.h
        canvas_w: columns of the image or window [1..128] follows image.w
        heads: number of query heads [1..128] follows heads
        start: first image token [0..q_len] follows image.start
    """
    if table is None:
        rows = torch.arange(2 * canvas_h - 1) - (canvas_h - 1)
        columns = torch.arange(2 * canvas_w - 1) - (canvas_w - 1)
        slopes = torch.exp2(-8.0 * (torch.arange(heads) + 1) / heads)
        table = -(rows.abs()[:, None, None] + columns.abs()[None, :, None]) * slopes[None, None, :]
    pixels = canvas_h * canvas_w

    def score_mod(score, b, h, q_idx, kv_idx):
        q = (q_idx - start).clamp(0, pixels - 1)
        k = (kv_idx - start).clamp(0, pixels - 1)
        bias = table[q // canvas_w - k // canvas_w + canvas_h - 1, q % canvas_w - k % canvas_w + canvas_w - 1, h]
        inside = (q == q_idx - start) & (k == kv_idx - start)
        return torch.where(inside, score + bias, score)

    return score_mod
