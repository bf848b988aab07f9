"""A plan's order of tokens for PyTorch's own context parallelism.

Invariant: the order is the plan's; PyTorch then gathers every key, as it always does. Must not know transfers."""

from __future__ import annotations

from torch import Tensor
from torch.distributed.tensor.experimental._context_parallel._load_balancer import _LoadBalancer

from .attention import ContextParallel
from .errors import PlanError

__all__ = ["PlanBalancer"]


class PlanBalancer(_LoadBalancer):
    """For `_context_parallel_shard(..., load_balancer=PlanBalancer(plan))` and `_ContextParallel`.

    Raises PlanError: ranks with different numbers of tokens, which PyTorch's sharding does not take, or keys in an
    order of their own."""

    def __init__(self, plan: ContextParallel, device: str = "cpu") -> None:
        lengths = plan.lengths()
        if len(set(lengths)) > 1:
            raise PlanError(
                "plan-uneven",
                f"the ranks have {lengths} tokens; PyTorch's sharding takes equal ones",
                "use plan.shard and plan.flex_attention, or pad the sequence to a multiple of ranks x BLOCK_SIZE",
            )
        if plan.q_len != plan.kv_len:
            raise PlanError(
                "plan-uneven",
                f"{plan.q_len} queries and {plan.kv_len} keys have orders of their own",
                "use plan.shard and plan.flex_attention",
            )
        self._indices, self._restore = plan.indices(device), plan.restore(device)

    def _generate_indices(self, restore: bool = False) -> Tensor:
        """int64 [1, tokens], as PyTorch asks for it."""
        return (self._restore if restore else self._indices).unsqueeze(0)
