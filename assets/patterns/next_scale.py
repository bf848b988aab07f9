import torch


def next_scale(scales: tuple = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16), total: int = 680):
    """Maps of growing sides, one after another; a token sees its own map whole and all smaller ones.

    `scale[q_idx] >= scale[kv_idx]`, where the map of side n has n * n tokens. Tokens after the last map are one more map.

    Source: VAR, next-scale prediction, arXiv:2404.02905; Infinity, arXiv:2412.04431.

    Args:
        scales: side of each map, in the order of generation
        total: tokens of the sequence [1..q_len] follows q_len
    """
    sizes = [side * side for side in scales]
    rest = total - sum(sizes)
    assert rest >= 0, f"the maps have {sum(sizes)} tokens, the sequence only {total}"
    scale = torch.repeat_interleave(torch.arange(len(sizes) + 1), torch.tensor(sizes + [rest]))

    def mask_mod(b, h, q_idx, kv_idx):
        return scale[q_idx] >= scale[kv_idx]

    return mask_mod
