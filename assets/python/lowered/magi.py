def make_slices(batch: int, device: Device) -> tuple[Tensor, Tensor, Tensor]:
    """`q_ranges`, `k_ranges` int32 [n, 2] and `attn_type_map` int32 [n] on the device.

    They count tokens through all batch entries.
    """
    own = _tensors(device)
    queries, keys, kinds = (own[name] for name in ("q_ranges", "k_ranges", "attn_type_map"))
    if BATCH is None:
        at = torch.arange(batch, dtype=torch.int32, device=device)[:, None, None]
        queries, keys = (queries + Q_LEN * at).flatten(0, 1), (keys + KV_LEN * at).flatten(0, 1)
        kinds = kinds.repeat(batch)
    return queries, keys, kinds


def attend(query: Tensor, key: Tensor, value: Tensor, *, slices: tuple[Tensor, Tensor, Tensor] | None = None) -> Tensor:
    """Attention on [B, S, H, D] tensors of a GPU in float16 or bfloat16, as [B, S, H, D].

    slices: those of `make_slices`; None makes them for this call. Errors: ValueError for other lengths; MagiAttention's own.
    """
    batch = _check(query, key)
    queries, keys, kinds = make_slices(batch, query.device) if slices is None else slices
    call = importlib.import_module("magi_attention.functional").flex_flash_attn_func
    packed = (t.flatten(0, 1) for t in (query, key, value))
    out = call(*packed, q_ranges=queries, k_ranges=keys, attn_type_map=kinds, softmax_scale=SCALE)
    out = cast(Tensor, out[0] if isinstance(out, tuple) else out)
    return out.reshape(batch, Q_LEN, query.shape[2], value.shape[3])


def make_mask(device: Device = "cpu") -> Tensor:
    """The cells of the slices: bool [BATCH or 1, 1, Q_LEN, KV_LEN]. Errors: RuntimeError if a cell were in two."""
    batch = BATCH or 1
    seen = torch.zeros(batch * Q_LEN, batch * KV_LEN, dtype=torch.int32, device=device)
    for (q0, q1), (k0, k1), kind in zip(*(t.tolist() for t in make_slices(1, device)), strict=True):
        own = torch.ones(q1 - q0, k1 - k0, dtype=torch.bool, device=device)
        if kind in (1, 3):
            # the last query sees the last key
            own = own.tril((k1 - k0) - (q1 - q0))
        if kind in (2, 3):
            # the first query sees the first key
            own = own.triu()
        seen[q0:q1, k0:k1] += own
    if int(seen.max()) > 1:
        raise RuntimeError("a cell is in two slices")
    each = [seen[b * Q_LEN : (b + 1) * Q_LEN, b * KV_LEN : (b + 1) * KV_LEN] for b in range(batch)]
    return torch.stack(each)[:, None].bool()
