"""Packed batches: several documents in one row of tokens, each of which attends only to itself.

Invariant: the three ways to name the documents (lengths, cu_seqlens, position_ids) give the same mask for the same
documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import torch
from torch.nn.attention import flex_attention as flex

from ._functions import Mod
from .block_mask import create_block_mask
from .errors import ArgumentError

__all__ = ["document_mask", "packed_documents"]

#: Tokens of a row.
MOST = 1 << 30
Ints = Union[torch.Tensor, Sequence[int]]


def packed_documents(
    lengths: Ints | None = None,
    *,
    cu_seqlens: Ints | None = None,
    position_ids: torch.Tensor | None = None,
    total: int | None = None,
    causal: bool = True,
    window: int | None = None,
    device: torch.device | str | int | None = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    **options: Any,
) -> flex.BlockMask:
    """The BlockMask of documents packed into one row of tokens. Name the documents in one of three ways.

    Args:
        lengths: tokens of each document, in order.
        cu_seqlens: where documents start, and the end of the last: int [documents + 1], as FlashAttention's varlen.
        position_ids: int [S] or [B, S]: a document starts where the position is 0. [B, S] gives a mask for each row.
        total: tokens of the row, if more than all documents have; the others attend to nothing and nothing to them.
        causal: a token attends to itself and those before it in its document; False: to its whole document.
        window: at most that many tokens back, the token itself included.
        device: of the arrays; None: the current accelerator, or else the CPU.
        BLOCK_SIZE, options: those of `create_block_mask`.

    Returns:
        A BlockMask of B = 1, or B rows of position_ids; H = 1.

    Raises:
        ArgumentError: none or several ways at once, negative lengths, sizes that do not agree.
    """
    mod, batch, tokens = document_mask(
        lengths, cu_seqlens=cu_seqlens, position_ids=position_ids, total=total, causal=causal, window=window
    )
    return create_block_mask(mod, batch, None, tokens, tokens, device=device, BLOCK_SIZE=BLOCK_SIZE, **options)


def document_mask(
    lengths: Ints | None = None,
    *,
    cu_seqlens: Ints | None = None,
    position_ids: torch.Tensor | None = None,
    total: int | None = None,
    causal: bool = True,
    window: int | None = None,
) -> tuple[Mod, int, int]:
    """The mask_mod of packed documents, for other masks to be combined with, and its B and tokens.

    Args and errors: those of `packed_documents`."""
    given = [name for name, value in _ways(lengths, cu_seqlens, position_ids) if value is not None]
    if len(given) != 1:
        what = "none of them" if not given else " and ".join(given)
        message = f"lengths, cu_seqlens or position_ids: {what} given"
        raise ArgumentError("documents", message, "name the documents in one of the three ways")
    for name, value in (("total", total), ("window", window)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise ArgumentError("not-an-int", f"{name} is {value!r}, not an int", "pass a number of tokens, or None")
    if not isinstance(causal, (bool, int)):
        raise ArgumentError("not-a-bool", f"causal is {causal!r}", "pass True or False")
    if window is not None and window < 1:
        raise ArgumentError("window", f"window is {window!r}", "pass a number of tokens, at least 1, or None")
    if position_ids is not None:
        doc = _of_positions(position_ids)
    else:
        if lengths is not None:
            counts = _ints(lengths, "lengths")
        else:
            ends = _ints(cu_seqlens, "cu_seqlens")
            if ends.numel() < 2 or int(ends[0]) != 0:
                message = f"cu_seqlens starts with {ends[:1].tolist()} and has {ends.numel()} entries"
                raise ArgumentError("documents", message, "pass [0, end of the first document, ..., end of the last]")
            counts = ends.diff()
        if not bool((counts > 0).any()) or bool((counts < 0).any()):
            message = f"{given[0]}: document lengths are {counts.tolist()[:20]}"
            raise ArgumentError("documents", message, "pass at least one token, and no document of negative length")
        if sum(counts.tolist()) > MOST:
            message = f"{given[0]}: the documents have {sum(counts.tolist())} tokens, above 2^30"
            raise ArgumentError("length-too-large", message, "block lists hold 32-bit numbers")
        doc = torch.repeat_interleave(counts)
    tokens = doc.size(-1)
    if total is not None:
        if total > MOST:
            raise ArgumentError(
                "length-too-large", f"total is {total}, above 2^30 tokens", "block lists hold 32-bit numbers"
            )
        if total < tokens:
            raise ArgumentError(
                "documents", f"total is {total}, the documents have {tokens}", "pass at least that many"
            )
        doc = torch.nn.functional.pad(doc, (0, total - tokens), value=-1)
    return _mod(doc, causal, window, doc.size(-1) > tokens), doc.size(0) if doc.dim() > 1 else 1, doc.size(-1)


def _ways(lengths: Any, cu_seqlens: Any, position_ids: Any) -> tuple[tuple[str, Any], ...]:
    return ("lengths", lengths), ("cu_seqlens", cu_seqlens), ("position_ids", position_ids)


def _ints(values: Any, name: str) -> torch.Tensor:
    try:
        tensor = torch.as_tensor(values, device="cpu")
    except (TypeError, ValueError, RuntimeError) as why:
        raise ArgumentError(
            "documents", f"{name} is not a row of ints: {why}", "pass a list or tensor of ints"
        ) from None
    if tensor.dim() != 1 or tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        if tensor.numel() == 0 and tensor.dim() == 1:
            return tensor.long()
        message = f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)}"
        raise ArgumentError("documents", message, "pass a list or 1-D tensor of ints")
    return tensor.long()


def _of_positions(position_ids: Any) -> torch.Tensor:
    if not isinstance(position_ids, torch.Tensor) or position_ids.dim() not in (1, 2):
        shape = tuple(position_ids.shape) if isinstance(position_ids, torch.Tensor) else type(position_ids).__name__
        raise ArgumentError("documents", f"position_ids is {shape}", "pass an int tensor [S] or [B, S]")
    if position_ids.is_floating_point() or position_ids.dtype == torch.bool or position_ids.numel() == 0:
        message = f"position_ids is {position_ids.dtype} of shape {tuple(position_ids.shape)}"
        raise ArgumentError("documents", message, "pass ints, at least one token")
    doc = (position_ids.cpu() == 0).cumsum(-1)
    return doc[0] if doc.dim() == 2 and doc.size(0) == 1 else doc


def _mod(doc: torch.Tensor, causal: bool, window: int | None, padded: bool) -> Mod:
    def mask_mod(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        own, other = (doc[b, q_idx], doc[b, kv_idx]) if doc.dim() == 2 else (doc[q_idx], doc[kv_idx])
        kept = own == other
        if padded:
            kept = kept & (own >= 0)
        if causal:
            kept = kept & (q_idx >= kv_idx)
        if window is not None:
            kept = kept & (q_idx - kv_idx < window)
            if not causal:
                kept = kept & (kv_idx - q_idx < window)
        return kept

    return mask_mod
