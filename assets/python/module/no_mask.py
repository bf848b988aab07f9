

def make_mask(device: Device | None = None, q_len: int = Q_LEN, kv_len: int = KV_LEN) -> Tensor:
    """The dense mask, [1, 1, q_len, kv_len] bool: everything is kept."""
    _check_lengths(q_len, kv_len)
    return torch.ones(1, 1, q_len, kv_len, dtype=torch.bool, device=_device(device))


def make_block_mask(device: Device | None = None, q_len: int = Q_LEN, kv_len: int = KV_LEN) -> BlockMask | None:
    """Everything is kept: flex_attention takes None."""
    _check_lengths(q_len, kv_len)
    return None
