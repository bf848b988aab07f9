

def _tensors(device: Device) -> dict[str, Tensor]:
    """The mask's numbers, in the file next to this one."""
    return load_file(Path(__file__).with_suffix(".safetensors"), device=str(device))


def _check(query: Tensor, key: Tensor) -> int:
    """The batch size. Errors: ValueError for other lengths, heads or batch sizes than the design's."""
    batch, q_len, heads = query.shape[:3]
    if (q_len, key.shape[1]) != (Q_LEN, KV_LEN):
        given = f"{q_len} and {key.shape[1]}"
        raise ValueError(f"the mask is of {Q_LEN} queries and {KV_LEN} keys, not of {given}: export it for these lengths")
    if HEADS is not None and heads != HEADS:
        raise ValueError(f"the mask differs between {HEADS} heads, and there are {heads}")
    if BATCH is not None and batch != BATCH:
        raise ValueError(f"the mask differs between {BATCH} batch entries, and there are {batch}")
    return int(batch)
