def make_mask_func(batch: int, device: Device) -> Tensor:
    """int32 [1 or HEADS, NFUNC, batch * Q_LEN] on the device.

    Each row keeps the keys before its first end, then those between each further pair of ends.
    """
    func = _tensors(device)["mask_func"]
    return func if BATCH is not None else func.repeat(1, 1, batch)


def make_plan(query: Tensor, key: Tensor, value: Tensor, *, build_backward: bool | None = None) -> Any:
    """The mask plan for tensors of these shapes: [B, S, H, D] in float16 or bfloat16 on a GPU. One plan serves every layer.

    build_backward: whether gradients are wanted; None is whether a tensor requires them. Errors: ValueError for other lengths.
    """
    flex = importlib.import_module("cudnn.flex_attention")
    func = make_mask_func(_check(query, key), query.device)
    return flex.create_mask_plan(func, query, key, value, build_backward=build_backward)


def attend(query: Tensor, key: Tensor, value: Tensor, *, plan: Any = None, deterministic: bool = False) -> Tensor:
    """Attention on [B, S, H, D] tensors of a GPU, as [B, S, H, D].

    plan: that of `make_plan`; None makes one for this call. deterministic: gradients have the same bits in every run.
    Errors: ValueError for other lengths; cuDNN's own for head dims and dtypes that it does not take.
    """
    flex = importlib.import_module("cudnn.flex_attention")
    _check(query, key)
    plan = make_plan(query, key, value) if plan is None else plan
    out = flex.flex_attn_func(query, key, value, mask_plan=plan, softmax_scale=SCALE, deterministic=deterministic)
    return cast(Tensor, out)


def make_mask(device: Device = "cpu") -> Tensor:
    """The cells that the ends keep: bool [BATCH or 1, HEADS or 1, Q_LEN, KV_LEN]."""
    ends = make_mask_func(1, device).reshape(HEADS or 1, NFUNC, BATCH or 1, Q_LEN).permute(2, 0, 1, 3)
    at = torch.arange(KV_LEN, device=device)
    kept = at < ends[:, :, 0, :, None]
    for n in range(1, NFUNC, 2):
        kept |= (at >= ends[:, :, n, :, None]) & (at < ends[:, :, n + 1, :, None])
    return kept
