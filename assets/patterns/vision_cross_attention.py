import torch


def vision_cross_attention(intervals: tuple = ((0, 256), (256, 768)), tokens: int = 64):
    """Text to images: image i is seen by the text tokens in its interval.

    `intervals[kv_idx // tokens][0] <= q_idx < intervals[kv_idx // tokens][1]`.

    Source: Flamingo, arXiv:2204.14198; attention-gym's vision cross attention.

    Args:
        intervals: first and one past the last text token of each image
        tokens: tokens of an image [1..kv_len]
    """
    table = torch.tensor(intervals)

    def mask_mod(b, h, q_idx, kv_idx):
        image = kv_idx // tokens
        return (q_idx >= table[image, 0]) & (q_idx < table[image, 1])

    return mask_mod
