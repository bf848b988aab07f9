def block_diffusion(length: int = 1024, block: int = 64):
    """Training mask of block diffusion over 2 * length tokens, the noised half first.

    A noised block sees itself and the clean blocks before it; a clean block sees the clean blocks up to itself.

    Source: Arriola et al., Block Diffusion (BD3-LM), arXiv:2503.09573; attention-gym's block_diffusion.

    Args:
        length: tokens of one half [1..q_len]
        block: tokens of a block [1..1024]
    """

    def mask_mod(b, h, q_idx, kv_idx):
        q_noised = q_idx < length
        kv_noised = kv_idx < length
        q_block = (q_idx % length) // block
        kv_block = (kv_idx % length) // block
        diagonal = (q_block == kv_block) & (q_noised == kv_noised)
        earlier_clean = (q_block > kv_block) & q_noised & ~kv_noised
        clean = (q_block >= kv_block) & ~q_noised & ~kv_noised
        return diagonal | earlier_clean | clean

    return mask_mod
