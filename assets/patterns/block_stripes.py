import torch


def block_stripes(columns: tuple = (0, 1), diagonals: tuple = (0, 1), block: int = 128, causal: bool = False):
    """Columns and diagonals of whole blocks, the "vertical-slash" shape without partial blocks.

    `columns` and `diagonals` list half-open ranges one after the other: `(0, 1, 5, 7)` is 0 and 5 to 6. A column is
    `kv_idx // block`, a diagonal `q_idx // block - kv_idx // block`.

    Source: Jiang et al., MInference, arXiv:2407.02490.

    Args:
        columns: ranges of key blocks that all queries see
        diagonals: ranges of distances in blocks
        block: tokens of a block [1..1024]
        causal: whether later keys are masked too
    """
    assert len(columns) % 2 == 0 and len(diagonals) % 2 == 0, "ranges are pairs: first, one past the last"

    def inside(x, ranges):
        kept = torch.zeros_like(x, dtype=torch.bool)
        for n in range(0, len(ranges), 2):
            kept = kept | ((x >= ranges[n]) & (x < ranges[n + 1]))
        return kept

    def mask_mod(b, h, q_idx, kv_idx):
        column = kv_idx // block
        kept = inside(column, columns) | inside(q_idx // block - column, diagonals)
        return kept & (q_idx >= kv_idx) if causal else kept

    return mask_mod
