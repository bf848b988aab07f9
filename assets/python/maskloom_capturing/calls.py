# SPDX-License-Identifier: MIT
"""The arguments of one attention call: q, k and v as [B, H, S, D], the changes of its scores, and its own mask.

Invariant: nothing here keeps a tensor alive. Must not know files, layers or steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# attention functions of other packages: module, name, layout of query, key and value
PACKAGES = (
    ("flash_attn", "flash_attn_func", "bshd"),
    ("flash_attn", "flash_attn_qkvpacked_func", "packed"),
    ("flash_attn", "flash_attn_varlen_func", "varlen"),
    ("flash_attn_interface", "flash_attn_func", "bshd"),
    ("xformers.ops", "memory_efficient_attention", "bshd"),
    ("sageattention", "sageattn", "sage"),
)
# largest number of cells of a mask function that is written as a table
TABLE_CELLS = 2**26

Mod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Seen = tuple[list[Any], dict[str, Any]]


def _varlen(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Seen:
    """flash_attn_varlen_func: concatenated sequences of [tokens, H, D], each of which attends only to itself."""
    names = ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    seen = [given[name].transpose(0, 1)[None] for name in "qkv"]
    bounds = [given[name].long() for name in names[3:]]
    sizes = (seen[0].shape[2], seen[1].shape[2])
    ids = [torch.bucketize(torch.arange(size, device=b.device), b[1:], right=True) for size, b in zip(sizes, bounds, strict=True)]
    starts = [b[i.clamp(max=len(b) - 2)] for i, b in zip(ids, bounds, strict=True)]
    extra = ((bounds[1][1:] - bounds[1][:-1]) - (bounds[0][1:] - bounds[0][:-1]))[ids[0].clamp(max=len(bounds[0]) - 2)]
    causal = bool(given.get("causal"))

    def mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        kept = ids[0][q_idx] == ids[1][kv_idx]
        if causal:
            kept = kept & (q_idx - starts[0][q_idx] + extra[q_idx] >= kv_idx - starts[1][kv_idx])
        return kept

    return seen, {"scale": given.get("softmax_scale"), "mask_mod": mod, "softcap": given.get("softcap") or None}


def arguments(layout: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Seen:
    """([query, key, value] as [B, H, S, D], other relevant arguments) of a call of an attention function."""
    if layout == "varlen":
        return _varlen(args, kwargs)
    details = dict(kwargs)
    if layout == "packed":
        packed = kwargs["qkv"] if "qkv" in kwargs else args[0]
        details["is_causal"] = kwargs.get("causal", args[3] if len(args) > 3 else False)
        details["scale"] = kwargs.get("softmax_scale", args[2] if len(args) > 2 else None)
        return [t.transpose(1, 2) for t in packed.unbind(2)], details
    names = {"q": "query", "k": "key", "v": "value"}
    given = {names.get(name, name): value for name, value in kwargs.items()}
    given |= dict(zip(("query", "key", "value"), args, strict=False))
    seen = [given.get(name) for name in ("query", "key", "value")]
    if layout == "sage":
        layout = "bhsd" if kwargs.get("tensor_layout", "HND") == "HND" else "bshd"
    elif layout == "bshd" and "causal" in kwargs:
        # flash-attn aligns the last query with the last key
        details["causal_end"] = True
    if layout == "bshd":
        seen = [t.transpose(1, 2) if isinstance(t, Tensor) and t.dim() == 4 else t for t in seen]
    for ours, theirs in (("is_causal", "causal"), ("scale", "softmax_scale"), ("scale", "sm_scale"), ("attn_mask", "attn_bias")):
        if details.get(ours) is None and kwargs.get(theirs) is not None:
            details[ours] = kwargs[theirs]
    if len(args) > 3 and "attn_mask" not in details and isinstance(args[3], Tensor):
        details["attn_mask"] = args[3]
    return seen, details


def flex_arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Seen:
    """The same of flex_attention(query, key, value, score_mod, block_mask, scale, ...)."""
    names = ("query", "key", "value", "score_mod", "block_mask", "scale")
    given = {**kwargs, **dict(zip(names, args, strict=False))}
    return [given.pop(name, None) for name in names[:3]], given


def mask_table(details: Mapping[str, Any], q_len: int, kv_len: int) -> tuple[Any, Tensor] | None:
    """(the model's mask, and the same as [B or 1, H or 1, Q, KV]); None without a mask or for another kind of mask."""
    mask = details.get("attn_mask")
    if isinstance(mask, Tensor):
        # a padding mask of 0 and 1
        mask = mask if mask.dtype == torch.bool or mask.is_floating_point() else mask != 0
        table = mask[:, None, None, :] if mask.dim() == 2 and mask.shape != (q_len, kv_len) else mask
        while table.dim() < 4:
            table = table[None]
        fits = table.shape[-1] >= kv_len and table.shape[-2] in (1, q_len)
        return (mask, table[..., :kv_len].expand(-1, -1, q_len, -1)) if fits else None
    mod, extents, device = mask_mod(details)
    if mod is None or q_len * kv_len > TABLE_CELLS:
        return None
    from torch.nn.attention.flex_attention import create_mask

    return details.get("block_mask", mod), create_mask(mod, *extents, q_len, kv_len, device=device)


def mask_mod(details: Mapping[str, Any]) -> tuple[Mod | None, tuple[int, int], str]:
    """(the mask function, its batch entries and heads, its device) if the mask is a function."""
    if details.get("mask_mod") is not None:
        return details["mask_mod"], (1, 1), "cpu"
    block_mask = details.get("block_mask")
    mod = getattr(block_mask, "mask_mod", None)
    if block_mask is None or mod is None:
        return None, (1, 1), "cpu"
    kept = block_mask.kv_num_blocks
    return mod, (kept.shape[0], kept.shape[1]), str(kept.device)


def mask_words(details: Mapping[str, Any]) -> str:
    """The mask in words: dtype and shape of a table."""
    mask = details.get("attn_mask")
    if isinstance(mask, Tensor):
        return f"{str(mask.dtype).removeprefix('torch.')} {list(mask.shape)}"
    if mask is None and details.get("block_mask") is None:
        return "of sequences" if details.get("mask_mod") is not None else "none"
    return "block mask" if mask is None else type(mask).__name__


@dataclass
class Scores:
    """The scores of a call, a strip of rows at a time: q k^T * scale, soft cap, score mod, the model's mask and bias."""

    q: Tensor
    k: Tensor
    scale: float
    softcap: float | None
    score_mod: Callable[..., Tensor] | None
    table: Tensor | None
    mod: Mod | None
    # a key is visible to the rows from kv_idx - shift on; None if the call is not causal
    causal_shift: int | None
    window: tuple[int, int] | None
    # "applied", "none", or "unknown" if the call's mask cannot be read
    own_mask: str

    @staticmethod
    def of(q: Tensor, k: Tensor, details: Mapping[str, Any]) -> Scores:
        """q [B, H, Q, D], k [B, Hk, KV, D]."""
        scale = details.get("scale")
        softcap = details.get("softcap")
        q_len, kv_len = q.shape[2], k.shape[2]
        mask = details.get("attn_mask")
        table = mask_table({"attn_mask": mask}, q_len, kv_len) if isinstance(mask, Tensor) else None
        mod = mask_mod(details)[0]
        causal = bool(details.get("is_causal")) or "LowerTriangular" in type(mask).__name__
        shift = (kv_len - q_len if details.get("causal_end") else 0) if causal else None
        window = details.get("window_size")
        window = window if isinstance(window, tuple) and len(window) == 2 and window != (-1, -1) else None
        read = table is not None or mod is not None or causal or window is not None
        unread = (mask is not None and table is None and not causal) or details.get("alibi_slopes") is not None
        unread = unread or (details.get("block_mask") is not None and mod is None)
        return Scores(
            q, k, float(scale) if scale is not None else 1 / math.sqrt(q.shape[3]),
            float(softcap) if isinstance(softcap, (int, float)) and softcap > 0 else None, details.get("score_mod"),
            table[1] if table else None, mod, shift, window, "unknown" if unread else "applied" if read else "none",
        )  # fmt: skip

    def keys_until(self, end: int) -> int:
        """Keys that rows before `end` may attend to: causality excludes the later ones."""
        kv_len = int(self.k.shape[2])
        return kv_len if self.causal_shift is None else max(1, min(kv_len, end + self.causal_shift))

    def strip(self, b: int, heads: slice, rows: slice, keys: int) -> Tensor:
        """Scores [heads, rows, keys] in float32 of the first `keys` keys; -inf in cells that the model's mask drops."""
        group = max(1, self.q.shape[1] // self.k.shape[1])
        kv_heads = [h // group for h in range(heads.start, heads.stop)]
        k = self.k[b, kv_heads, :keys].float()
        s = (self.q[b, heads, rows].float() * self.scale) @ k.transpose(1, 2)
        if self.softcap is not None:
            s = torch.tanh(s / self.softcap) * self.softcap
        return self._masked(s, b, heads, rows, keys)

    def _masked(self, s: Tensor, b: int, heads: slice, rows: slice, keys: int) -> Tensor:
        device, kept = s.device, None
        q_idx = torch.arange(rows.start, rows.stop, device=device)[:, None]
        kv_idx = torch.arange(keys, device=device)[None]
        if self.score_mod is not None or self.mod is not None:
            at = torch.full((1, 1, 1), b, device=device)
            h = torch.arange(heads.start, heads.stop, device=device)[:, None, None]
            q3, kv3 = (i.expand(len(q_idx), keys)[None] for i in (q_idx, kv_idx))
            if self.score_mod is not None:
                s = self.score_mod(s, at, h, q3, kv3).float()
            if self.mod is not None:
                kept = self.mod(at, h, q3, kv3)
        if self.causal_shift is not None:
            seen = q_idx + self.causal_shift >= kv_idx
            kept = seen if kept is None else kept & seen
        if self.window is not None:
            left, right = self.window
            at_key = q_idx + self.k.shape[2] - self.q.shape[2]
            seen = (kv_idx >= at_key - left) | torch.tensor(left < 0, device=device)
            seen &= (kv_idx <= at_key + right) | torch.tensor(right < 0, device=device)
            kept = seen if kept is None else kept & seen
        if self.table is not None:
            table = self.table[b if self.table.shape[0] > 1 else 0]
            table = (table[heads] if table.shape[0] > 1 else table[:1])[:, rows, :keys].to(device)
            if table.dtype == torch.bool:
                kept = table if kept is None else kept & table
            else:
                s = s + table.float()
        return s if kept is None else s.masked_fill(~kept, -math.inf)
