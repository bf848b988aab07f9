from torch.nn.attention.flex_attention import noop_mask


def alternate_heads(first: "mask_mod" = noop_mask, second: "mask_mod" = noop_mask, every: int = 2):
    """Two masks dealt out over the heads: every `every`-th head takes the second one.

    `second if h % every == every - 1 else first`: Sparse VideoGen's spatial and temporal heads, or local and global ones.

    Source: arXiv:2502.01776; the local : global layers of Gemma, seen as heads.

    Args:
        first: mask of the other heads
        second: mask of every `every`-th head
        every: period over the heads [1..heads]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        turn = h % every == every - 1
        return (turn & second(b, h, q_idx, kv_idx)) | (~turn & first(b, h, q_idx, kv_idx))

    return mask_mod
