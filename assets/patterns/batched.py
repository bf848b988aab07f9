from torch.nn.attention.flex_attention import noop_mask


def batched(mask: "mask_mod" = noop_mask, length: int = 1024):
    """Equal chunks of `length` tokens that do not see each other, with any mask inside.

    `q_idx // n == kv_idx // n and mask(q_idx % n, kv_idx % n)`: a batch folded into the sequence.

    Source: attention-gym's batchify_mask_mod.

    Args:
        mask: the mask inside a chunk
        length: tokens of a chunk [1..q_len]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        same = q_idx // length == kv_idx // length
        return same & mask(b, h, q_idx % length, kv_idx % length)

    return mask_mod
