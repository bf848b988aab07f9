def block_causal(block: int = 1560, window: int = 0, sink: int = 0):
    """Blocks (frames, chunks) see themselves whole and all blocks before them: `kv_idx // n <= q_idx // n`.

    With `window` above 0 only that many blocks, the query's own included; the first `sink` blocks stay visible.

    Source: CausVid, arXiv:2412.07772; Self-Forcing, arXiv:2506.08009; MAGI-1's chunk-causal attention, arXiv:2505.13211.

    Args:
        block: tokens of a block, such as one latent frame [1..q_len]
        window: blocks kept, the query's own included; 0 keeps all [0..64]
        sink: first blocks that stay visible beyond the window [0..64]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        q_block = q_idx // block
        kv_block = kv_idx // block
        keep = q_block >= kv_block
        if window > 0:
            keep = keep & ((q_block - kv_block < window) | (kv_block < sink))
        return keep

    return mask_mod
