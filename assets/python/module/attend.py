

# a traced caller treats the result of such a function as a constant
_constant = cast("Callable[[Callable[P, str]], Callable[P, str]]", torch.compiler.assume_constant_result)


class _Made:
    """Mods and block masks, as attributes: a caller that torch.compile traces reads them directly."""


_made = _Made()
_masks = _Made()
# PyTorch 2.15 notes in one place for all threads that it makes a block mask, and fails where two do at once
_making = Lock()
# PyTorch 2.5, the first FlexAttention: none on the CPU, and on a GPU a head_dim that is a power of 2
_FIRST = hasattr(torch.nn.attention.flex_attention, "_supported_head_dim")
# cached block masks and compiled functions: the newest, one bucket of shapes each
KEPT_MASKS = 32
KEPT_FUNCTIONS = 128
# their keys, the newest last
_masks_used: dict[str, None] = {}
_functions: dict[object, Callable[..., Tensor]] = {}
_functions_used: dict[object, None] = {}
_numbers = count()


def _newest(held: dict[Any, Any], used: dict[Any, None], most: int, key: object, make: Callable[[], Any]) -> Any:
    """The result of `make`, computed once for each cached key; the least recently used is dropped.

    Threads may call it at once: each step is one operation of a dict, and the result is referenced here.
    """
    found = held.get(key, used)
    if found is used:
        found = held.setdefault(key, make())
    used.pop(key, None)
    used[key] = None
    if len(used) > most:
        for old in list(used)[:-most]:
            used.pop(old, None)
            held.pop(old, None)
    return found


@_constant
def _mods_for(device: str) -> str:
    """Creates the mods of a device; returns their name in the cache."""
    name = f"mods_{device.replace(':', '_')}"
    setattr(_made, name, make_mods(device))
    return name


def _mask_name(device: str, q_len: int, kv_len: int) -> str:
    return f"mask_{device.replace(':', '_')}_{q_len}_{kv_len}"


def _mask_at(device: str, q_len: int, kv_len: int) -> BlockMask | None:
    """The block mask of a device and lengths."""

    def make() -> BlockMask | None:
        # only such tensors are cached: torch.export's have no values, and those of inference mode have no backward pass
        with _making, torch.inference_mode(False), _disable_current_modes():
            return make_block_mask(device, q_len, kv_len)

    found = _newest(vars(_masks), _masks_used, KEPT_MASKS, _mask_name(device, q_len, kv_len), make)
    return cast("BlockMask | None", found)


@_constant
def _mask_for(device: str, q_len: int, kv_len: int) -> str:
    """Creates the block mask of a device and lengths; returns its name in the cache."""
    _mask_at(device, q_len, kv_len)
    return _mask_name(device, q_len, kv_len)


def _fixed(n: int) -> int:
    """A length as a number: a traced caller is specialised to the lengths of its block mask."""
    return next(iter(range(n, n + 1)))


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    compiled: bool = True,
    learned: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """FlexAttention with this mask and score mod.

    query: [B, Hq, Q, E]; key: [B, Hkv, KV, E]; value: [B, Hkv, KV, Ev], Hq a multiple of Hkv. block_mask: one of
    make_block_mask's; by default created and cached for the lengths. scale: of the scores; default SCALE.
    KERNEL_OPTIONS go to the kernel with such a mask. compiled: False materialises all scores, for tests, and for
    torch.export.save, which cannot write FlexAttention. learned: tensors that replace those named in LEARNS, such as
    parameters: they receive gradients, on a GPU or uncompiled. Returns [B, Hq, Q, Ev]. Errors: ValueError for shapes, lengths,
    batch, heads or devices that the design does not support.
    """
    _check(query, key, value, scale)
    device = str(query.device)
    options = None
    if block_mask is None:
        q_len, kv_len = _fixed(query.shape[2]), _fixed(key.shape[2])
        if KERNEL_OPTIONS and device != "cpu" and (q_len, kv_len) == (Q_LEN, KV_LEN):
            options = KERNEL_OPTIONS
        _check_lengths(q_len, kv_len)
        traced = torch.compiler.is_compiling()
        block_mask = getattr(_masks, _mask_for(device, q_len, kv_len)) if traced else _mask_at(device, q_len, kv_len)
    unknown = [name for name in learned or () if name not in LEARNS]
    if unknown:
        has = ", ".join(LEARNS) or "nothing"
        raise ValueError(f"the design's score_mod has no tensor {', '.join(unknown)} with gradients; it has {has}")
    score = _mods(query.device, learned)[1] if learned else getattr(_made, _mods_for(device))[1]
    scale = SCALE if scale is None else scale
    gqa = query.shape[1] != key.shape[1]
    trained = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value, *(learned or {}).values()))
    if device == "cpu" and (trained or _FIRST):
        return _in_memory(query, key, value, score, block_mask, scale)
    if not compiled and torch.compiler.is_compiling():
        return _in_memory(query, key, value, score, block_mask, scale)
    if not compiled or torch.compiler.is_compiling():
        return _attention(query, key, value, score, block_mask, scale, gqa, options)
    return _fused(query, key, value, block_mask, options)(query, key, value, score, block_mask, scale, gqa, options)


def _check(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> None:
    """Errors: ValueError that describes the wrong argument."""
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise ValueError("query, key and value must be [batch, heads, tokens, head_dim]")
    if key.shape[:3] != value.shape[:3] or key.shape[0] != query.shape[0] or key.shape[3] != query.shape[3]:
        shapes = f"{tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}"
        raise ValueError(f"the shapes of query, key and value do not match: {shapes}")
    if query.device != key.device or query.device != value.device:
        raise ValueError(f"query is on {query.device}, key on {key.device}, value on {value.device}")
    for what, wanted, got in (("batch entries", BATCH, query.shape[0]), ("heads", HEADS, query.shape[1])):
        if wanted is not None and wanted != got:
            raise ValueError(f"the design has a mask for each of {wanted} {what}, but the call has {got}")
    if query.shape[1] % key.shape[1] != 0:
        raise ValueError(f"{query.shape[1]} query heads are not a multiple of {key.shape[1]} key heads")
    if scale is None and query.shape[3] != HEAD_DIM:
        raise ValueError(f"SCALE is for a head_dim of {HEAD_DIM}, but the call has {query.shape[3]}: pass scale=")


def _check_lengths(q_len: int, kv_len: int) -> None:
    """Errors: ValueError for lengths at which the design is undefined."""
    shorter = q_len <= Q_LEN and kv_len <= KV_LEN
    if (q_len, kv_len) != (Q_LEN, KV_LEN) and OTHER_LENGTHS != "any" and not (OTHER_LENGTHS == "shorter" and shorter):
        raise ValueError(
            f"the design is made for {Q_LEN} x {KV_LEN} tokens, but the call has {q_len} x {kv_len}: export it for these lengths"
        )


def _device(device: Device | None) -> torch.device:
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: ScoreMod | None,
    block_mask: BlockMask | None,
    scale: float,
    gqa: bool,
    options: dict[str, bool] | None,
) -> Tensor:
    width = value.shape[-1]
    query, key, value = _widened(query), _widened(key), _widened(value)
    reported = cast("Any", options)
    out = flex_attention(
        query, key, value, score_mod=score, block_mask=block_mask, scale=scale, enable_gqa=gqa, kernel_options=reported
    )
    # with lse the result would be a tuple
    out = out if isinstance(out, Tensor) else out[0]
    return out if out.shape[-1] == width else out[..., :width]


def _widened(tensor: Tensor) -> Tensor:
    """A head_dim that FlexAttention takes here; the zeros change no product."""
    width = tensor.shape[-1]
    if not _FIRST or width & (width - 1) == 0:
        return tensor
    return torch.nn.functional.pad(tensor, (0, 2 ** width.bit_length() - width))


def _in_memory(
    query: Tensor, key: Tensor, value: Tensor, score: ScoreMod | None, block_mask: BlockMask | None, scale: float
) -> Tensor:
    """Attention with all scores in memory, for the CPU, where PyTorch's flex_attention has no gradients, and in 2.5 nothing."""
    exact = torch.promote_types(query.dtype, torch.float32)
    key, value = (t.to(exact).repeat_interleave(query.shape[1] // t.shape[1], 1) for t in (key, value))
    scores = query.to(exact) @ key.transpose(-1, -2) * scale
    # b, h, q_idx and kv_idx, broadcast over all cells
    indices = [torch.arange(n, device=query.device) for n in scores.shape]
    places = [index.view([-1 if axis == at else 1 for axis in range(4)]) for at, index in enumerate(indices)]
    if score is not None:
        # a score_mod that ignores the score has only the axes that it reads
        scores = score(scores, *places).to(exact).expand_as(scores)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.mask_mod(*places), -torch.inf)
    nothing = (scores == -torch.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(nothing, 0.0), -1).masked_fill(nothing, 0.0)
    return (weights @ value).to(query.dtype)


def _fused(
    query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, options: dict[str, bool] | None
) -> Callable[..., Tensor]:
    """Compiled FlexAttention for calls of this kind."""
    inputs = tuple((tuple(t.shape), t.stride(), t.dtype, t.device, t.requires_grad) for t in (query, key, value))
    lists = None if block_mask is None else tuple(block_mask.shape)
    kind = (inputs, lists, options is None, torch.is_grad_enabled(), torch.is_inference_mode_enabled())

    def make() -> Callable[..., Tensor]:
        # PyTorch stops compiling a function after 8 compilations and runs it uncompiled: each kind has its own code
        code = _attention.__code__.replace(co_name=f"attention_{next(_numbers)}")
        return torch.compile(FunctionType(code, globals(), code.co_name), dynamic=False)

    return cast("Callable[..., Tensor]", _newest(_functions, _functions_used, KEPT_FUNCTIONS, kind, make))
