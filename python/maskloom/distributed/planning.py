"""Plans: from BlockMasks to who computes what, made on one rank and the same on all.

Invariant: every rank plans the same masks, or every rank raises. Must not know how a plan is carried out."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.attention.flex_attention import BlockMask

from .. import _native
from .._call import call
from .._checks import known_lengths, lengths
from ..errors import ArgumentError, a_kind
from .attention import ContextParallel
from .errors import PlanError, agree, as_plan_error
from .watched import contents

__all__ = ["make_plan", "plan_context_parallel", "request_of"]

#: The version of request and plan that this file writes and reads.
VERSION = 1


def plan_context_parallel(
    masks: BlockMask | Mapping[str, BlockMask] | Sequence[BlockMask],
    group: dist.ProcessGroup | None = None,
    *,
    layers: Mapping[str, int] | None = None,
    heads: int = 16,
    kv_heads: int | None = None,
    head_dim: int = 128,
    dtype: torch.dtype = torch.bfloat16,
    card: str | None = None,
    bandwidth: float | Sequence[Sequence[float]] | None = None,
) -> ContextParallel:
    """Plans attention over the ranks of a group. A collective: every rank calls it with the same masks.

    Args:
        masks: the BlockMask of every layer, or one for each kind of layer by name. All cover one sequence in blocks
            of one size, with a mask_mod. Any length; q_len and kv_len may differ.
        group: None: the default group.
        layers: how many layers each kind has; 1 where nothing is said.
        heads, kv_heads, head_dim, dtype: of the layers. They weigh computation against transfers in the predicted times
            and change no result.
        card: as the driver names it; None: this process's GPU, or an H100.
        bandwidth: GB/s that a rank receives, or a matrix [from][to].

    Returns:
        The plan. `plan.figures` has its predicted loads, bytes and times.

    Raises:
        PlanError: on every rank alike: masks that differ between ranks or cannot be planned together.
    """
    _member(group)
    device = _device(group)
    fault, text, read = None, "", ""
    kinds: dict[str, BlockMask] = {}
    try:
        kinds = _kinds(masks)
        request = request_of(
            kinds,
            dist.get_world_size(group),
            layers=layers,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            dtype=dtype,
            card=card or _card(device),
            bandwidth=bandwidth,
        )
        text = json.dumps(request, sort_keys=True)
        read = repr([contents(mask) for mask in kinds.values()])
    except Exception as why:
        fault = as_plan_error(why, "plan-call", "see what this rank was called with")
    # every rank must plan the same: digests stand for the whole request, and for the cells of blocks that are cut
    digests = tuple(hashlib.sha256(of.encode()).hexdigest()[:16] for of in (text, read))
    agree(fault, group, device, ("masks, layers and settings", digests[0], "what the masks read", digests[1]))
    made: list[Any] = [None, None]
    if dist.get_rank(group) == 0:
        try:
            made[0] = make_plan(text)
        except Exception as why:
            made[1] = as_plan_error(why, "plan-call", "report this: planning failed on rank 0")
    source = 0 if group is None else dist.get_global_rank(group, 0)
    dist.broadcast_object_list(made, src=source, group=group)
    if made[1] is not None:
        raise made[1]
    return ContextParallel(made[0], kinds, group)


def request_of(
    kinds: Mapping[str, BlockMask],
    world_size: int,
    *,
    layers: Mapping[str, int] | None = None,
    heads: int = 16,
    kv_heads: int | None = None,
    head_dim: int = 128,
    dtype: torch.dtype = torch.bfloat16,
    card: str | None = None,
    bandwidth: float | Sequence[Sequence[float]] | None = None,
) -> dict[str, Any]:
    """A request as the planner reads it. Raises PlanError: masks that cannot be planned together."""
    if not kinds:
        raise PlanError("plan-no-mask", "there is no mask to plan", "give at least one BlockMask")
    for name, mask in kinds.items():
        if not isinstance(mask, BlockMask):
            message = f"mask {name!r} is {a_kind(mask)}"
            raise PlanError("plan-no-mask", message, "give BlockMasks, as of maskloom.create_block_mask")
        if not isinstance(name, str):
            raise PlanError("plan-no-mask", f"a mask is called {name!r}", "call each by a string")
    if layers is not None and not isinstance(layers, Mapping):
        raise PlanError("plan-layers", f"layers is {a_kind(layers)}", "pass a dict of numbers by the masks' names")
    if card is not None and not isinstance(card, str):
        raise PlanError("parallel-card", f"card is {a_kind(card)}", "pass the card's name")
    unknown = sorted(set(layers or {}) - set(kinds))
    if unknown:
        raise PlanError("plan-layers", f"layers names {unknown}, the masks are {sorted(kinds)}", "use the masks' names")
    _check_numbers(heads, kv_heads, head_dim, layers, bandwidth)
    names = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32", torch.float64: "f64"}
    if dtype not in names:
        raise PlanError("plan-dtype", f"dtype {dtype} is not planned", f"take one of {list(names)}")
    first = next(iter(kinds.values()))
    if any(known_lengths(mask) is None for mask in kinds.values()):
        message = f"block masks of PyTorch {torch.__version__} do not say how many tokens they cover"
        raise PlanError(
            "plan-lengths", message, "make them with maskloom.create_block_mask, or use PyTorch 2.6 or newer"
        )
    extents = lengths(first)
    batch = max(mask.kv_num_blocks.shape[0] for mask in kinds.values())
    written = []
    for name, mask in kinds.items():
        if lengths(mask) != extents or mask.BLOCK_SIZE != first.BLOCK_SIZE:
            raise PlanError(
                "plan-extents",
                f"mask {name!r} covers {lengths(mask)} tokens in blocks of {mask.BLOCK_SIZE}, "
                f"the first {extents} in {first.BLOCK_SIZE}",
                "plan masks of one sequence and one block size together",
            )
        count = (layers or {}).get(name, 1)
        rows = _rows(mask)
        written.append(
            {
                "name": name,
                "layers": count,
                "batch": mask.kv_num_blocks.shape[0],
                "heads": mask.kv_num_blocks.shape[1],
                "rows": rows,
            }
        )
    most = max(mask.kv_num_blocks.shape[1] for mask in kinds.values())
    heads = most if most > 1 else heads
    kv_heads = kv_heads if kv_heads is not None and heads % kv_heads == 0 else heads
    request: dict[str, Any] = {
        "version": VERSION,
        "ranks": world_size,
        "q_len": extents[0],
        "kv_len": extents[1],
        "block_size": list(first.BLOCK_SIZE),
        "shape": {"batch": batch, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "dtype": names[dtype]},
        "kinds": written,
    }
    if card is not None:
        request["card"] = card
    if bandwidth is not None:
        request["bandwidth"] = bandwidth
    return request


def _check_numbers(
    heads: int, kv_heads: int | None, head_dim: int, layers: Mapping[str, int] | None, bandwidth: Any
) -> None:
    counts = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    counts |= {f"layers[{name!r}]": count for name, count in (layers or {}).items()}
    for name, count in counts.items():
        if name == "kv_heads" and count is None:
            continue
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise PlanError("plan-number", f"{name} is {count!r}", "pass a whole number from 1 on")
    rows = bandwidth if isinstance(bandwidth, (tuple, list)) else [bandwidth]
    for rate in (one for row in rows for one in (row if isinstance(row, (tuple, list)) else [row])):
        if bandwidth is None:
            break
        if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not 0 <= rate < math.inf:
            hint = "pass GB/s, or a matrix [from][to] of them"
            raise PlanError("parallel-bandwidth", f"bandwidth holds {rate!r}", hint)


def make_plan(request: str) -> dict[str, Any]:
    """The plan of a request, both as JSON. Raises PlanError: the planner's refusal."""
    try:
        return json.loads(call(_native.plan_parallel, request))  # type: ignore[no-any-return]
    except ArgumentError as why:
        raise PlanError(why.code, why.message, why.hint) from None


def _kinds(masks: BlockMask | Mapping[str, BlockMask] | Sequence[BlockMask]) -> dict[str, BlockMask]:
    if isinstance(masks, BlockMask):
        return {"mask": masks}
    if isinstance(masks, Mapping):
        return dict(masks)
    if not isinstance(masks, Sequence):
        message = f"masks is {a_kind(masks)}"
        raise PlanError("plan-no-mask", message, "give a BlockMask, several, or a dict of them by name")
    return {f"mask {n}": mask for n, mask in enumerate(masks)}


def _rows(mask: BlockMask) -> list[list[list[tuple[int, int, bool]]]]:
    """For each batch entry and head the runs of every row of blocks: [start, end, full]."""
    partial = _listed(mask.kv_num_blocks, mask.kv_indices)
    full: list[list[list[int]]]
    if mask.full_kv_num_blocks is None or mask.full_kv_indices is None:
        full = [[[] for _ in rows] for rows in partial]
    else:
        full = _listed(mask.full_kv_num_blocks, mask.full_kv_indices)
    out = []
    for some, whole in zip(partial, full):
        rows = []
        for a, b in zip(some, whole):
            blocks = sorted([(block, False) for block in a] + [(block, True) for block in b])
            runs: list[tuple[int, int, bool]] = []
            for block, is_full in blocks:
                if runs and runs[-1][1] == block and runs[-1][2] == is_full:
                    runs[-1] = (runs[-1][0], block + 1, is_full)
                else:
                    runs.append((block, block + 1, is_full))
            rows.append(runs)
        out.append(rows)
    return out


def _listed(counts: torch.Tensor, indices: torch.Tensor) -> list[list[list[int]]]:
    """The listed blocks of each (batch, head) and row."""
    counts, indices = counts.flatten(0, 1).cpu(), indices.flatten(0, 1).cpu()
    return [[row[:n] for n, row in zip(ns, rows)] for ns, rows in zip(counts.tolist(), indices.tolist())]


def _member(group: dist.ProcessGroup | None) -> None:
    """Raises PlanError: there are no ranks; or this process is not in the group, whose ranks do not wait for it."""
    if not dist.is_initialized():
        message = "torch.distributed has no process group here"
        raise PlanError("plan-group", message, "torchrun starts ranks, and init_process_group is called before")
    none: Any = dist.GroupMember.NON_GROUP_MEMBER
    if group is not None and group is not none and not isinstance(group, dist.ProcessGroup):
        raise PlanError("plan-group", f"group is {a_kind(group)}", "pass a group, as mesh.get_group() is one, or None")
    if dist.get_rank(group) < 0:
        message = f"this process, rank {dist.get_rank()} of all, is not in the group"
        raise PlanError("plan-group", message, "plan on the ranks of the group alone")


def _device(group: dist.ProcessGroup | None) -> torch.device:
    """Where collectives of the group take their tensors."""
    if "nccl" in str(dist.get_backend(group)):
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _card(device: torch.device) -> str | None:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else None
