"""Refusals that every rank makes alike.

Invariant: a message has the figures of the rank that found the fault. Must not know masks."""

from __future__ import annotations

import contextlib
import hashlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from ..errors import ArgumentError, MaskloomError

__all__ = ["PlanError", "Vote", "agree", "as_plan_error", "asked", "talk"]

#: Groups of hosts, for groups of GPUs.
_TALKING: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def talk(group: dist.ProcessGroup | None) -> tuple[dist.ProcessGroup | None, torch.device]:
    """The group in which its ranks agree before a call, and the device of its tensors: for GPUs one of gloo with the
    same ranks, as a number that a GPU sends waits for all that was enqueued there. A collective at the first call."""
    host = torch.device("cpu")
    if "nccl" not in str(dist.get_backend(group)):
        return group, host
    whole: Any = group if group is not None else dist.group.WORLD
    found: Any = _TALKING.get(whole)
    if found is None:
        ranks = dist.get_process_group_ranks(whole)
        made: Any = dist.new_group(ranks, backend="gloo", use_local_synchronization=True)
        found = _TALKING[whole] = made
    return found, host


class PlanError(ArgumentError):
    """Input that does not fit the plan, or cannot be planned. Raised on every rank alike."""


def as_plan_error(why: Exception, code: str, hint: str) -> PlanError:
    """An exception of one rank as one that every rank can raise."""
    if isinstance(why, PlanError):
        return why
    if isinstance(why, MaskloomError):
        return PlanError(why.code, why.message, why.hint or hint)
    made = PlanError(code, f"{type(why).__name__}: {why}", hint)
    made.__cause__ = why
    return made


def agree(
    fault: PlanError | None, group: dist.ProcessGroup | None, device: torch.device, said: tuple[Any, ...] = ()
) -> None:
    """Raises on every rank if one of them has a fault, or if they say different things: the lowest such rank's words. A
    collective of three numbers where all is well.

    Raises:
        PlanError: some rank's fault, or what two ranks say.
    """
    asked(fault, group, device, said)()


def asked(
    fault: PlanError | None, group: dist.ProcessGroup | None, device: torch.device, said: tuple[Any, ...] = ()
) -> Callable[[], None]:
    """Asks the other ranks; the result waits for them and raises as `agree` does. It may be called again."""
    digest = int.from_bytes(hashlib.sha256(repr(said).encode()).digest()[:7], "big")
    # the largest of all, and the smallest
    numbers = torch.tensor([int(fault is not None), digest, -digest], dtype=torch.int64, device=device)
    # a list, so that nothing of the group is held by the frames of an exception
    works = [dist.all_reduce(numbers, op=dist.ReduceOp.MAX, group=group, async_op=True)]

    def answer() -> None:
        if works:
            works.pop().wait()
        if numbers.tolist() != [0, digest, -digest]:
            _disagreed(fault, group, said)

    return answer


class Vote:
    """Whether every rank came through its part of a call, asked after the call was agreed to.

    Nobody waits for it where it is cast: the answer is needed before this rank uses what others sent."""

    def __init__(self, group: dist.ProcessGroup | None, device: torch.device) -> None:
        self._talk = (group, device)
        self._answer: Callable[[], None] | None = None

    def cast(self, fault: PlanError | None = None) -> None:
        """A collective, at the first call; later ones have no effect."""
        if self._answer is None:
            self._answer = asked(fault, *self._talk, ("came through",))

    def settle(self) -> None:
        """Raises PlanError: a rank's fault, on every rank alike."""
        assert self._answer is not None, "cast before"
        self._answer()

    @contextlib.contextmanager
    def through(self, learns: bool) -> Iterator[None]:
        """A rank's own part, in which it may fail. `learns`: a backward pass follows, which settles it."""
        try:
            yield
        except Exception as why:
            self.cast(as_plan_error(why, "plan-rank-failed", "see the exception of that rank"))
            self.settle()
            raise
        if learns:
            self.cast()
        else:
            self.settle()


def _disagreed(fault: PlanError | None, group: dist.ProcessGroup | None, said: tuple[Any, ...]) -> None:
    found: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, (fault, said), group=group)
    faulty = next(((rank, one) for rank, (one, _) in enumerate(found) if one is not None), None)
    if faulty is not None:
        rank, first = faulty
        if fault is not None and rank == dist.get_rank(group):
            raise fault
        raise PlanError(first.code, f"rank {rank}: {first.message}", first.hint)
    rank = next(rank for rank, (_, one) in enumerate(found) if one != found[0][1])
    raise PlanError(
        "plan-calls-differ",
        f"rank 0 says {found[0][1]}, rank {rank} {found[rank][1]}",
        "call with the same shapes, dtype, masks and settings on every rank",
    )
