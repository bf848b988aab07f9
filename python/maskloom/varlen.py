"""Attention of sequences packed side by side, named by where each starts: the same kernels, another mask.

Invariant: a query attends to keys of its own sequence alone. Must not know who computes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from ._checks import check_aux
from ._functions import Mod
from ._held import tokens_of
from ._mods import bounded
from .attention import flex_attention
from .block_mask import create_block_mask
from .errors import ArgumentError, a_kind
from .packed import Ints, _ints

__all__ = ["flex_attention_varlen"]

#: Masks kept, by their cu_seq.
MOST = 64
_MASKS: dict[Any, tuple[flex.BlockMask, Any]] = {}


def flex_attention_varlen(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seq_q: Ints,
    cu_seq_k: Ints | None = None,
    max_q: int | None = None,
    max_k: int | None = None,
    *,
    score_mod: Mod | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    return_lse: bool = False,
    return_aux: Any = None,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Attention of packed sequences, with gradients: arguments as PyTorch's `varlen_attn`, and a score mod.

    Args:
        query: [tokens, Hq, E], float32 (CPU only), bfloat16 or float16.
        key: [tokens of keys, Hkv, E].
        value: [tokens of keys, Hkv, Ev].
        cu_seq_q: where sequences start, and the end of the last: ints [sequences + 1], a list or a tensor. A tensor on
            a GPU is read once for each of its versions, which waits for it. Tokens behind the end attend to nothing.
        cu_seq_k: the same of keys; None: as the queries'.
        max_q, max_k: tokens of the longest sequence, as PyTorch takes them. They have no effect.
        score_mod: as of `flex_attention`; q_idx and kv_idx count the tokens of the packed row, b is 0.
        scale: factor on the scores; None is 1 / sqrt(E).
        window_size: keys before and after the query's own place that are kept, -1: all; (-1, 0) is causal. Where a
            sequence has another number of keys, the last query's place is that of the last key.
        enable_gqa: query head h reads key head h // (Hq / Hkv).
        return_lse: also returns the lse, float32 [Hq, tokens].
        return_aux: an `AuxRequest` (PyTorch 2.9): with `lse=True` the same as return_lse.

    Returns:
        [tokens, Hq, Ev] of query's dtype; 0 for tokens of no sequence.

    Raises:
        ArgumentError: an argument cannot be used; the message names it.
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != 3:
            got = f"has {tensor.dim()} dimensions" if isinstance(tensor, torch.Tensor) else f"is {a_kind(tensor)}"
            raise ArgumentError("dimensions", f"{name} {got}", "pass [tokens, heads, head_dim]")
    if return_aux is not None:
        check_aux(return_aux)
        return_lse = return_lse or bool(return_aux.lse)
    for name, cu in (("cu_seq_q", cu_seq_q), ("cu_seq_k", cu_seq_k)):
        if isinstance(cu, str) or not isinstance(cu, Iterable) and (cu is not None or name == "cu_seq_q"):
            raise ArgumentError("documents", f"{name} is {a_kind(cu)}", "pass a list or tensor of ints")
    lengths = query.shape[0], key.shape[0]
    mask = _mask(cu_seq_q, cu_seq_q if cu_seq_k is None else cu_seq_k, lengths, _window(window_size), query.device)
    q, k, v = (tensor.transpose(0, 1).unsqueeze(0) for tensor in (query, key, value))
    out, lse = flex_attention(q, k, v, score_mod, mask, scale, enable_gqa, return_lse=True)
    out = out.squeeze(0).transpose(0, 1)
    return (out, lse.squeeze(0)) if return_lse else out


def _window(window_size: Any) -> tuple[int, int]:
    pair = tuple(window_size) if isinstance(window_size, (tuple, list)) else ()
    if len(pair) != 2 or any(type(side) is not int or side < -1 for side in pair):
        message = f"window_size is {window_size!r}"
        raise ArgumentError("window", message, "pass (keys before, keys after); -1 is all, (-1, 0) is causal")
    return pair[0], pair[1]


def _mask(
    of_q: Ints, of_k: Ints, lengths: tuple[int, int], window: tuple[int, int], device: torch.device
) -> flex.BlockMask:
    # what lies here is read at each call: NumPy and `.data` change it uncounted
    read: list[Any] = [
        cu if _elsewhere(cu) else _ints(cu, name) for cu, name in ((of_q, "cu_seq_q"), (of_k, "cu_seq_k"))
    ]
    held = [cu for cu in read if _elsewhere(cu)]
    named = [(None if _elsewhere(cu) else tuple(cu.tolist())) for cu in read]
    tokens = tokens_of(held)
    seen = tuple([(tensor.shape, tensor.stride(), tensor.dtype) for tensor in held])
    key = (tokens, seen, tuple(named), lengths, window, device)
    found = _MASKS.get(key)
    if found is not None and all(token[1] != -1 for token in tokens):
        return found[0]
    bounds = [_bounds(cu, name, length) for cu, name, length in zip(read, ("cu_seq_q", "cu_seq_k"), lengths)]
    if len(bounds[0]) != len(bounds[1]):
        message = f"cu_seq_q names {len(bounds[0]) - 1} sequences, cu_seq_k {len(bounds[1]) - 1}"
        raise ArgumentError("documents", message, "name the same sequences in both")
    made = create_block_mask(_mod(bounds, lengths, window), None, None, *lengths, device=device)
    bounded(_MASKS, MOST)
    # the tensors are held, so that no other takes their address
    _MASKS[key] = (made, held)
    return made


def _elsewhere(cu: Any) -> bool:
    """Whether it is a tensor whose values the host has to wait for."""
    return isinstance(cu, torch.Tensor) and cu.device.type != "cpu"


def _bounds(cu: Ints, name: str, length: int) -> torch.Tensor:
    ends = _ints(cu, name)
    if ends.numel() < 2 or int(ends[0]) != 0 or bool((ends.diff() < 0).any()) or int(ends[-1]) > length:
        message = f"{name} is {ends.tolist()[:20]} for {length} tokens"
        raise ArgumentError("documents", message, "pass [0, end of the first sequence, ..., end of the last]")
    return ends


def _mod(bounds: list[torch.Tensor], lengths: tuple[int, int], window: tuple[int, int]) -> Mod:
    counts = [ends.diff() for ends in bounds]
    # a number for each token; tokens of no sequence have other numbers in queries and in keys
    of_q, of_k = (
        torch.nn.functional.pad(torch.repeat_interleave(own), (0, length - int(ends[-1])), value=none)
        for own, ends, length, none in zip(counts, bounds, lengths, (-1, -2))
    )
    before, after = window
    same = torch.equal(bounds[0], bounds[1])
    # by how much a sequence's places of queries and of keys differ
    moved = (bounds[1][1:] - bounds[0][1:]).repeat_interleave(counts[0])
    moved = torch.nn.functional.pad(moved, (0, lengths[0] - len(moved)))

    def mask_mod(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        kept = of_q[q_idx] == of_k[kv_idx]
        place = q_idx if same else q_idx + moved[q_idx]
        if before >= 0:
            kept = kept & (place - kv_idx <= before)
        if after >= 0:
            kept = kept & (kv_idx - place <= after)
        return kept

    return mask_mod
