

def make_mask(device: Device | None = None, q_len: int = Q_LEN, kv_len: int = KV_LEN) -> Tensor:
    """The dense mask, [1, 1, q_len, kv_len] bool: every cell is kept."""
    _check_lengths(q_len, kv_len)
    return torch.ones(1, 1, q_len, kv_len, dtype=torch.bool, device=_device(device))


def make_block_mask(device: Device | None = None, q_len: int = Q_LEN, kv_len: int = KV_LEN) -> BlockMask | None:
    """Every cell is kept: None for flex_attention."""
    _check_lengths(q_len, kv_len)
    return None
