import torch


def bigbird(block: int = 64, window: int = 3, globals: int = 2, random: int = 3, length: int = 4096, seed: int = 0):
    """Blocks see a window of blocks, the first blocks, and a few random ones; the first blocks see all.

    The random blocks of every row are fixed by `seed` (a small congruential generator written out below, so that every
    PyTorch version draws the same).

    Source: Zaheer et al., BigBird, arXiv:2007.14062.

    Args:
        block: tokens of a block [1..1024]
        window: blocks of the window, centred on the query's [1..63]
        globals: first blocks that see and are seen by all [0..64]
        random: random blocks a row [0..32]
        length: tokens of the sequence [1..q_len] follows q_len
        seed: of the random blocks [0..1000]
    """
    blocks = (length + block - 1) // block
    half = window // 2
    drawn = torch.zeros(blocks, blocks, dtype=torch.bool)
    state = seed * 7919 + 12345
    for row in range(blocks if random > 0 else 0):
        for _ in range(random):
            state = (state * 1103515245 + 12345) % 2147483648
            drawn[row, (state // 65536) % blocks] = True

    def mask_mod(b, h, q_idx, kv_idx):
        q_block = q_idx // block
        kv_block = kv_idx // block
        near = (q_block - kv_block <= half) & (kv_block - q_block <= half)
        keep = near | (q_block < globals) | (kv_block < globals)
        if random > 0:
            keep = keep | drawn[q_block, kv_block]
        return keep

    return mask_mod
