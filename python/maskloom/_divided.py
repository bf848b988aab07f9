# SPDX-License-Identifier: MIT
"""Whether another library has divided the sequence over ranks, and what it does with a mask there.

The package and the exported sidecar have this file both. What is read in libraries: PyTorch 2.15, accelerate 1.15,
diffusers 0.42.

Invariant: nothing is imported, because a library that is not loaded divides nothing; what is not sure is not said.
Must not know attention.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["of_call", "of_model", "of_process", "region", "ringed"]

_PYTORCH = (
    "torch.distributed.tensor.experimental._context_parallel._attention",
    # PyTorch before 2.10
    "torch.distributed.tensor.experimental._attention",
)
#: How far above an attention operator its ring is looked for.
_FRAMES = 24


def of_call(query: Any, key: Any = None, parallel_config: Any = None, module: Any = None) -> str | None:
    """Why a call of attention on [B, H, S, D] is over divided tokens, in words; None where nothing says so.

    parallel_config: what diffusers gives its backends. module: the layer, whose hooks are looked at."""
    return (
        _of_config(parallel_config)
        or region()
        or _of_placements("queries", query)
        or _of_placements("keys", key)
        or (None if module is None else _of_hooks(module))
    )


def region() -> str | None:
    """Inside `torch.distributed.tensor.experimental.context_parallel`, which accelerate, transformers' Trainer and TRL
    enter where cp_size > 1."""
    if not any(name in sys.modules for name in _PYTORCH):
        return None
    functional = getattr(sys.modules.get("torch.nn"), "functional", None)
    function = getattr(functional, "scaled_dot_product_attention", None)
    for name in _PYTORCH:
        replaced = getattr(sys.modules.get(name), "_replaced_functions", None)
        if not isinstance(replaced, dict) or not replaced:
            continue
        # other programs may have wrapped it since
        inner, depth = function, 0
        while inner is not None and depth < 8:
            if inner in replaced:
                return (
                    "PyTorch's context_parallel (accelerate, Trainer, TRL: cp_size > 1) has divided the sequence: "
                    "its ring knows is_causal and no mask"
                )
            inner, depth = getattr(inner, "maskloom", None) or getattr(inner, "__wrapped__", None), depth + 1
    return None


def ringed() -> bool:
    """Whether a step of PyTorch's ring asks for the present operator: its is_causal is of a part of the sequence."""
    frame: Any = sys._getframe(1)
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name in ("_templated_ring_attention", "_templated_ring_attention_backward"):
            return frame.f_globals.get("__name__") in _PYTORCH
        frame = frame.f_back
    return False


def of_model(model: Any) -> str | None:
    """What divides a model's sequence whenever it is called."""
    for part in model.modules():
        found = _of_config(getattr(part, "_parallel_config", None)) or _of_hooks(part)
        if found is not None:
            return found
    return None


def of_process() -> str | None:
    """What this process was started for."""
    state = getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None)
    shared = getattr(state, "_shared_state", None) or {}
    size = getattr(shared.get("parallelism_config"), "cp_size", None)
    if isinstance(size, int) and size > 1:
        return f"accelerate runs with cp_size={size}: it makes every layer's mask a causal one"
    return None


def _of_config(config: Any) -> str | None:
    """diffusers' ParallelConfig."""
    found = getattr(config, "context_parallel_config", None)
    if found is None:
        return None
    ring, ulysses = (getattr(found, f"{name}_degree", None) or 1 for name in ("ring", "ulysses"))
    if ring > 1:
        return f"diffusers' ring_degree={ring} masks every rank's keys as the first rank's"
    if ulysses > 1:
        return f"diffusers' ulysses_degree={ulysses} has divided heads and tokens: the mask is of the whole sequence"
    if not hasattr(found, "ring_degree"):
        return "diffusers' context parallelism has divided the sequence, by fields that are not known here"
    return None


def _of_placements(what: str, tensor: Any) -> str | None:
    """A DTensor [B, H, S, D] whose tokens are divided."""
    placements = getattr(tensor, "placements", None)
    if not isinstance(placements, tuple):
        return None
    divided = [one for one in placements if getattr(one, "dim", None) in (2, -2)]
    return f"the {what} are a DTensor whose tokens are divided ({divided[0]})" if divided else None


def _of_hooks(module: Any) -> str | None:
    """accelerate's hook on a layer, which takes its mask away."""
    for hook in getattr(module, "_forward_pre_hooks", {}).values():
        name = getattr(hook, "__qualname__", "")
        if getattr(hook, "__module__", "") == "accelerate.big_modeling" and "context_parallel" in name:
            return "accelerate's context parallelism takes the mask of every self_attn away and says is_causal"
    return None
