"""Attention over several GPUs with any mask: each rank receives only the keys that its queries need.

    plan = maskloom.distributed.plan_context_parallel(block_mask, group)
    q, k, v = (plan.shard(x) for x in (q, k, v))
    out = plan.unshard(plan.flex_attention(q, k, v))

Invariant: outputs and gradients are those of one process up to rounding, for any mask, length and number of ranks.
Wrong input raises the same error on every rank."""

from __future__ import annotations

from .._torch import needs

needs(__name__)

from .attention import ContextParallel  # noqa: E402
from .planning import plan_context_parallel  # noqa: E402

__all__ = ["ContextParallel", "PlanBalancer", "plan_context_parallel"]


def __getattr__(name: str) -> object:
    """PyTorch's balancers are private and of its newest versions: they are imported at the first use."""
    if name == "PlanBalancer":
        from .balancer import PlanBalancer

        return PlanBalancer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
