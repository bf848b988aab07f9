import torch


def block_topk(selected: "torch.Tensor" = None, block: int = 64, length: int = 4096, top: int = 8, causal: bool = False):
    """Each row of query blocks sees only its selected key blocks, head by head.

    `selected` is [batch, heads, query blocks, k] of key block numbers, as a router or a dump of attention scores gives
    it. Without one, a stand-in keeps the query's own block, the first one, and `top - 2` others spread by a fixed rule.

    Source: NSA, arXiv:2502.11089; MoBA, arXiv:2502.13189; VSA, arXiv:2505.13389; attention-gym's vsa.

    Args:
        selected: key blocks of each batch entry, head and query block
        block: tokens of a block, for queries and keys [1..1024]
        length: tokens of the sequence [1..kv_len] follows kv_len
        top: blocks a row of the stand-in [1..64]
        causal: whether later keys are masked too
    """
    blocks = (length + block - 1) // block
    if selected is None:
        keep = torch.zeros(1, 1, blocks, blocks, dtype=torch.bool)
        for row in range(blocks):
            reach = row + 1 if causal else blocks
            keep[0, 0, row, row] = True
            keep[0, 0, row, 0] = True
            for n in range(top - 2):
                keep[0, 0, row, (row * 7 + n * n * 13 + n * 5) % reach] = True
    else:
        batch, heads, rows, picks = selected.shape
        keep = torch.zeros(batch, heads, rows, blocks, dtype=torch.bool)
        for n in range(batch):
            for head in range(heads):
                for row in range(rows):
                    for pick in range(picks):
                        keep[n, head, row, selected[n, head, row, pick]] = True
    last_batch = keep.shape[0] - 1
    last_head = keep.shape[1] - 1

    def mask_mod(b, h, q_idx, kv_idx):
        kept = keep[b.clamp(max=last_batch), h.clamp(max=last_head), q_idx // block, kv_idx // block]
        return kept & (q_idx >= kv_idx) if causal else kept

    return mask_mod
