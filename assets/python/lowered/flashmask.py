def make_bounds(batch: int, device: Device) -> Tensor:
    """`startend_row_indices`: int32 [batch, 1 or kv heads, KV_LEN, BOUNDS] on the device."""
    bounds = _tensors(device)["startend_row_indices"]
    return bounds if BATCH is not None else bounds.expand(batch, -1, -1, -1).contiguous()


def attend(query: Tensor, key: Tensor, value: Tensor, *, bounds: Tensor | None = None) -> Tensor:
    """Attention on [B, S, H, D] tensors of a GPU in float16 or bfloat16, as [B, S, H, D].

    bounds: those of `make_bounds`; None makes them for this call. Errors: ValueError for other lengths; FlashMask's own.
    """
    batch = _check(query, key)
    bounds = make_bounds(batch, query.device) if bounds is None else bounds
    call = importlib.import_module("flashmask").flashmask_attention
    return cast(Tensor, call(query, key, value, bounds, causal=CAUSAL, softmax_scale=SCALE))


def make_mask(device: Device = "cpu") -> Tensor:
    """The cells that the bounds leave: bool [BATCH or 1, HEADS or 1, Q_LEN, KV_LEN]."""
    bounds = make_bounds(1, device)[:, :, None]
    rows = torch.arange(Q_LEN, device=device)[:, None]
    below = rows >= bounds[..., 0]
    if BOUNDS == 1:
        hidden = below
    elif BOUNDS == 4:
        hidden = (below & (rows < bounds[..., 1])) | ((rows >= bounds[..., 2]) & (rows < bounds[..., 3]))
    else:
        hidden = below & (rows < bounds[..., 1]) if CAUSAL else below | (rows < bounds[..., 1])
    if CAUSAL:
        hidden = hidden | (rows < torch.arange(KV_LEN, device=device))
    return ~hidden
