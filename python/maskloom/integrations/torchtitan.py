"""torchtitan: a plan for its context parallelism, so that each rank receives the keys that its queries need.

    torchrun --nproc-per-node 4 -m torchtitan.train --module llama3 --config llama3_debugmodel \
        --parallelism.context_parallel_degree 4 --parallelism.context_parallel_load_balancer maskloom \
        --override.imports maskloom.integrations.torchtitan.attention --training.disable_cuda_graphs

torchtitan imports this module where its override is named. Every batch is planned from its own masks.

Invariant: a call of divided tokens has its plan, or is an error. Must not know models.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import torch
from torch.nn.attention.flex_attention import BlockMask

from ..distributed import ContextParallel, plan_context_parallel
from ..errors import MaskloomError, a_kind
from ._calls import MaskLost

try:
    spmd: Any = import_module("spmd_types")
    trainer: Any = import_module("torchtitan.trainer")
    validate: Any = import_module("torchtitan.components.validate")
    overriding: Any = import_module("torchtitan.config.override")
    FlexAttention: Any = import_module("torchtitan.models.common.attention").FlexAttention
except (ImportError, AttributeError) as why:
    raise MaskloomError(
        "torchtitan", f"this Python has no torchtitan with overrides: {why}", "use torchtitan 0.3 or newer"
    ) from None

__all__ = ["PlannedAttention", "PlannedMask", "attention"]

#: The name for `parallelism.context_parallel_load_balancer`.
NAME = "maskloom"
_HINT = f"--parallelism.context_parallel_load_balancer {NAME} --override.imports {__name__}.attention"
#: What `plan_context_parallel` is given besides masks and group.
_settings: dict[str, Any] = {}


class PlannedMask:
    """Stands where torchtitan passes a layer's BlockMask: the batch's plan, and which of its masks it is."""

    def __init__(self, plan: ContextParallel, name: str) -> None:
        self.plan, self.name = plan, name

    def __repr__(self) -> str:
        return f"PlannedMask({self.name!r}, rank {self.plan.rank} of {self.plan.world_size})"


class PlannedAttention(FlexAttention):  # type: ignore[misc]
    """torchtitan's FlexAttention whose keys stay divided: a plan moves those that are needed."""

    @dataclass(kw_only=True, slots=True)
    class Config(FlexAttention.Config):  # type: ignore[misc]
        """As FlexAttention's."""

    def forward(
        self,
        q_BLNH: torch.Tensor,
        k_BLNH: torch.Tensor,
        v_BLNH: torch.Tensor,
        *,
        attention_masks: Any,
        score_mod: Callable[..., torch.Tensor] | None = None,
        scale: float | None = None,
        enable_gqa: bool = False,
        out_transform: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
        **more: Any,
    ) -> torch.Tensor:
        """[B, tokens, heads, head_dim], as FlexAttention's."""
        if not isinstance(attention_masks, PlannedMask):
            whole = getattr(attention_masks, "seq_lengths", (None, None))[1]
            if whole is not None and whole != k_BLNH.size(1):
                message = f"the mask is over {whole} keys and this rank has {k_BLNH.size(1)}: nobody planned the batch"
                raise MaskLost("mask-lost", message, _HINT)
            found: torch.Tensor = super().forward(
                q_BLNH,
                k_BLNH,
                v_BLNH,
                attention_masks=attention_masks,
                score_mod=score_mod,
                scale=scale,
                enable_gqa=enable_gqa,
                out_transform=out_transform,
                **more,
            )
            return found
        with spmd.no_typecheck():
            out, lse = _attend(attention_masks, (q_BLNH, k_BLNH, v_BLNH), score_mod, scale)
        return out if out_transform is None else out_transform(out, lse)


_REASON = "ranks agree on the host: switch compile.enable off, or leave `model` out of it"


@torch.compiler.disable(reason=_REASON)  # type: ignore[untyped-decorator, no-untyped-call]
def _attend(
    mask: PlannedMask,
    qkv: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    score_mod: Callable[..., torch.Tensor] | None,
    scale: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [B, tokens, heads, head_dim] and lse [B, tokens, heads]."""
    if qkv[0].is_cuda and torch.cuda.is_current_stream_capturing():
        message = "a CUDA graph records this step: each batch has its own plan, and ranks agree on the host"
        raise MaskloomError("torchtitan", message, "--training.disable_cuda_graphs")
    q, k, v = (x.transpose(1, 2) for x in qkv)
    out, lse = mask.plan.flex_attention(q, k, v, mask=mask.name, score_mod=score_mod, scale=scale, return_lse=True)
    return out.transpose(1, 2), lse.transpose(1, 2)


@overriding.override(
    target=FlexAttention.Config, exact=True, fqns=["*layers.*"], description="Maskloom's context parallelism"
)  # type: ignore[untyped-decorator]
def attention(config: Any, **settings: Any) -> Any:
    """The override for `--override.imports`.

    settings: what `maskloom.plan_context_parallel` takes besides masks and group, as
    `'maskloom.integrations.torchtitan.attention={"layers": {"sliding": 5}}'`."""
    known = {"layers", "heads", "kv_heads", "head_dim", "card", "bandwidth"}
    if set(settings) - known:
        message = f"the override is given {sorted(set(settings) - known)}"
        raise MaskloomError("torchtitan", message, f"known are {sorted(known)}")
    _settings.clear()
    _settings.update(settings)
    return overriding.derive(config, PlannedAttention.Config, sharding_config=_divided(config.sharding_config))


def _divided(sharding: Any) -> Any:
    """A sharding whose keys and values are not gathered over the ranks of a sequence."""
    if sharding is None or sharding.in_src_shardings is None or sharding.in_dst_shardings is None:
        return sharding
    kept = {}
    for name, wanted in sharding.in_dst_shardings.items():
        given = sharding.in_src_shardings[name]
        changed = [axis for axis, kind in given.axis_types.items() if wanted.axis_types.get(axis) != kind]
        if [axis for axis in changed if str(getattr(axis, "value", axis)) != "cp"]:
            message = f"{name} goes from {given} to {wanted}: more than its keys are gathered"
            raise MaskloomError("torchtitan", message, "leave the override out for this model")
        kept[name] = given
    region = sharding.local_map
    if region is not None and region.in_grad_placements is not None:
        names = ("q_BLNH", "k_BLNH", "v_BLNH")
        region = replace(region, in_grad_placements=tuple(kept[name] for name in names))
    return replace(sharding, in_dst_shardings=kept, local_map=region)


def _planned(original: Callable[..., Any]) -> Callable[..., Any]:
    """torchtitan's `prepare_context_parallel_input`, which knows one more name of a balancer."""

    @functools.wraps(original)
    def prepare_context_parallel_input(
        inputs: torch.Tensor,
        labels: torch.Tensor,
        extra_kwargs: dict[str, Any],
        cp_mesh: Any,
        device: torch.device,
        load_balancer_type: str | None = "headtail",
        ptrr_mask_key: str | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
        if load_balancer_type != NAME:
            return original(inputs, labels, extra_kwargs, cp_mesh, device, load_balancer_type, ptrr_mask_key)  # type: ignore[no-any-return]
        given = extra_kwargs.get("attention_masks")
        if isinstance(given, BlockMask):
            masks = {"mask": given}
        elif isinstance(given, Mapping):
            masks = {name: mask for name, mask in given.items() if mask is not None}
        else:
            message = f"the batch brings {'no mask' if given is None else a_kind(given)}"
            raise MaskloomError("torchtitan", message, "use a model of FlexAttention: its masks are planned")
        plan = plan_context_parallel(masks, cp_mesh.get_group(), **_settings)
        found = {name: PlannedMask(plan, name) for name in masks}
        extra_kwargs["attention_masks"] = found["mask"] if isinstance(given, BlockMask) else {**given, **found}
        extra_kwargs["positions"] = plan.shard(extra_kwargs["positions"], 1, of="q")
        return plan.shard(inputs, 1, of="q"), plan.shard(labels, 1, of="q"), extra_kwargs

    prepare_context_parallel_input.maskloom = True  # type: ignore[attr-defined]
    return prepare_context_parallel_input


for _module in (trainer, validate):
    if not hasattr(_module.prepare_context_parallel_input, "maskloom"):
        _module.prepare_context_parallel_input = _planned(_module.prepare_context_parallel_input)
