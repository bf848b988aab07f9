"""Stages of a plan by kernels whose backward pass takes the whole's output and logsumexp.

Invariant: a part's gradients are those that the whole's logsumexp gives its cells, so that no part's output is kept and
none is weighed again. Must not know how kernels compute, nor how a plan is found."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

import torch
from torch import Tensor

from .._checks import no_second_order
from .errors import Vote
from .exchange import Exchange, Packed
from .local import Mod, Stage

__all__ = ["Kernels", "Staged", "settings"]


class Kernels(Protocol):
    """Attention of one stage. `of` is what `ready` made of the stage and the score mod."""

    def ready(self, stage: Stage, score_mod: Mod | None) -> Any:
        """What is computed in this stage. Errors: a mod that cannot be used."""

    def forward(
        self, of: Any, q: Tensor, k: Tensor, v: Tensor, scale: float | None, learns: bool
    ) -> tuple[Tensor, Tensor]:
        """New tensors: output [B, Hq, L, Dv] and lse, float [B, Hq, L]."""

    def backward(
        self, of: Any, saved: tuple[Tensor, ...], lse: Tensor, d_out: Tensor, d_lse: Tensor | None, scale: float | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of q, k and v of `saved`: these and the whole's output, whose lse and gradients are given."""

    def merge(self, out: Tensor, lse: Tensor, part: Tensor, part_lse: Tensor, rows: Tensor | None) -> None:
        """Adds a part over more keys to its rows of output and lse, in place. All are contiguous."""


def at(x: Tensor, rows: Tensor | None) -> Tensor:
    """These query tokens of [B, H, tokens, ...]; None: all."""
    return x if rows is None else x.index_select(2, rows)


@contextlib.contextmanager
def settings(deterministic: bool) -> Any:
    """PyTorch's deterministic algorithms, if wanted."""
    before = torch.are_deterministic_algorithms_enabled()
    if deterministic:
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        if deterministic:
            torch.use_deterministic_algorithms(before)


class Staged(torch.autograd.Function):
    """All stages of one call. In the backward pass those with the keys of others come first: their gradients travel
    while the own ones are computed."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        kernels: Kernels,
        stages: list[tuple[Any, Tensor | None]],
        exchanges: list[Exchange],
        packed: list[Packed],
        scale: float | None,
        deterministic: bool,
        vote: Vote,
    ) -> tuple[Tensor, Tensor]:
        """stages: what each computes, and the local queries that take part (None: all); packed: what each exchange
        sends; vote: on whether every rank came through its forward pass."""
        learns = any(ctx.needs_input_grad[:3])
        kept: list[tuple[Tensor, Tensor] | None] = []
        out = lse = None
        with vote.through(learns), settings(deterministic):
            pending = [exchange.send(own) for exchange, own in zip(exchanges, packed)]
            for number, (of, rows) in enumerate(stages):
                keys, values = (k, v) if number == 0 else pending[number - 1]()
                own = at(q, rows)
                # nothing to compute: no kernel is asked for an empty result
                if own.shape[2] == 0 or keys.shape[2] == 0:
                    kept.append(None)
                    continue
                kept.append((keys, values))
                part, part_lse = kernels.forward(of, own, keys, values, scale, learns)
                if rows is None and out is None:
                    out, lse = part, part_lse
                    continue
                if out is None or lse is None:
                    out = q.new_zeros(*q.shape[:3], v.shape[3])
                    lse = part_lse.new_full(q.shape[:3], -torch.inf)
                kernels.merge(out, lse, part, part_lse, rows)
        if out is None or lse is None:
            out = q.new_zeros(*q.shape[:3], v.shape[3])
            exact = torch.float64 if q.dtype == torch.float64 else torch.float32
            lse = q.new_full(q.shape[:3], -torch.inf, dtype=exact)
        if learns:
            received = [x for pair in kept[1:] if pair is not None for x in pair]
            ctx.save_for_backward(q, k, v, out, lse, *received)
        ctx.kernels, ctx.stages, ctx.exchanges = kernels, stages, exchanges
        ctx.scale, ctx.deterministic, ctx.vote = scale, deterministic, vote
        ctx.computed = [pair is not None for pair in kept]
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[Tensor | None, ...]:
        no_second_order()
        ctx.vote.settle()
        q, k, v, out, lse, *received = ctx.saved_tensors
        grad = torch.zeros_like(out) if grad is None else grad
        pairs = iter(zip(received[::2], received[1::2]))
        held = [(k, v)] + [next(pairs) if computed else None for computed in ctx.computed[1:]]
        sent, of_q = [], []

        def gradients(number: int) -> tuple[Tensor, ...] | None:
            of, rows = ctx.stages[number]
            found = held[number]
            if not ctx.computed[number] or found is None:
                return None
            own, wholes = at(q, rows), at(out, rows)
            d_lse = None if grad_lse is None else at(grad_lse, rows)
            saved = (own, *found, wholes)
            found_of: tuple[Tensor, ...] = ctx.kernels.backward(
                of, saved, at(lse, rows), at(grad, rows), d_lse, ctx.scale
            )
            return found_of

        with settings(ctx.deterministic):
            for number, exchange in enumerate(ctx.exchanges, 1):
                found = gradients(number)
                if found is None:
                    count = sum(exchange.received)
                    nothing = [x.new_zeros(*x.shape[:2], count, x.shape[3]) for x in (k, v)]
                    sent.append(exchange.send_back(*nothing))
                    continue
                of_q.append((found[0], ctx.stages[number][1]))
                sent.append(exchange.send_back(found[1], found[2]))
            own = gradients(0)
        q_grad, k_grad, v_grad = own if own is not None else (torch.zeros_like(x) for x in (q, k, v))
        for part, rows in of_q:
            q_grad = q_grad + part if rows is None else q_grad.index_copy_(2, rows, at(q_grad, rows) + part)
        for wait in sent:
            k_grad, v_grad = wait(k_grad, v_grad)
        return q_grad, k_grad, v_grad, None, None, None, None, None, None, None
