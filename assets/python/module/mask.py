

def make_mask(device: Device | None = None, q_len: int = Q_LEN, kv_len: int = KV_LEN) -> Tensor:
    """The dense mask, [B or 1, H or 1, q_len, kv_len] bool: for scaled_dot_product_attention, or for inspection.

    device: None is the GPU if there is one. Errors: ValueError for lengths at which the design is undefined.
    """
    _check_lengths(q_len, kv_len)
    at = _device(device)
    return create_mask(_mask_mod(at), BATCH, HEADS, q_len, kv_len, device=str(at))


def make_block_mask(device: Device | None = None, q_len: int = Q_LEN, kv_len: int = KV_LEN) -> BlockMask:
    """The BlockMask for flex_attention. Create it once for each shape and pass it to every layer."""
    _check_lengths(q_len, kv_len)
    at = _device(device)
    return block_mask_of(_mask_mod(at), BATCH, HEADS, q_len, kv_len, at)


def load_block_mask(path: str | Path, device: Device | None = None) -> BlockMask:
    """The BlockMask from exported block lists: it never allocates memory of the mask's size. For Q_LEN and KV_LEN."""
    from safetensors.torch import load_file

    at = _device(device)
    lists = load_file(path, device=str(at))
    return BlockMask.from_kv_blocks(
        lists["kv_num_blocks"],
        lists["kv_indices"],
        lists["full_kv_num_blocks"],
        lists["full_kv_indices"],
        BLOCK_SIZE=BLOCK_SIZE,
        mask_mod=_mask_mod(at),
        **_lengths(Q_LEN, KV_LEN),
    )


def _lengths(q_len: int, kv_len: int) -> dict[str, Any]:
    """The lengths of a BlockMask as an argument; PyTorch 2.5 has no such argument and uses whole blocks."""
    from inspect import signature

    known = "seq_lengths" in signature(BlockMask.from_kv_blocks).parameters
    return {"seq_lengths": (q_len, kv_len)} if known else {}


def block_mask_of(
    mask: MaskMod, batch: int | None, heads: int | None, q_len: int, kv_len: int, device: Device
) -> BlockMask:
    """The BlockMask of any mask_mod at BLOCK_SIZE. Cells are evaluated in bands of rows, to save memory."""
    q_block, kv_block = BLOCK_SIZE
    columns = -(-kv_len // kv_block)
    band = q_block * max(1, 2**24 // (q_block * columns * kv_block * (batch or 1) * (heads or 1)))
    kept = []
    for first in range(0, q_len, band):
        rows = min(band, q_len - first)
        cells = create_mask(_moved(mask, first), batch, heads, rows, kv_len, device=str(device))
        cells = torch.nn.functional.pad(cells, (0, columns * kv_block - kv_len, 0, -rows % q_block))
        blocks = cells.reshape(*cells.shape[:-2], -1, q_block, columns, kv_block)
        kept.append(blocks.sum(dim=(-3, -1)))
    cells_kept = torch.cat(kept, dim=-2)
    full = cells_kept == q_block * kv_block
    return BlockMask.from_kv_blocks(
        *_listed((cells_kept > 0) & ~full),
        *_listed(full),
        BLOCK_SIZE=BLOCK_SIZE,
        mask_mod=mask,
        **_lengths(q_len, kv_len),
    )


def _moved(mask: MaskMod, first: int) -> MaskMod:
    def moved(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return mask(b, h, q_idx + first, kv_idx)

    return moved


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Counts and numbers of the blocks of each row, the listed ones first."""
    order = torch.argsort(blocks.to(torch.int32), dim=-1, descending=True, stable=True)
    return blocks.sum(dim=-1, dtype=torch.int32), order.to(torch.int32).contiguous()


def _mask_mod(device: torch.device) -> MaskMod:
    mask = make_mods(device)[0]
    assert mask is not None
    return mask
