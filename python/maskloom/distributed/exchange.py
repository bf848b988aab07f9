"""The exchange of keys and values by blocks, and of their gradients back.

Invariant: one all-to-all each way; a rank's own keys do not move. Gradients of others are added in the order of
ranks, so that the sum does not depend on who is faster. Must not know masks."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["Exchange", "Packed"]


class Packed(NamedTuple):
    """What is sent, [tokens, B, Hkv, D + Dv]; the room for what arrives; the keys' head_dim."""

    sent: Tensor
    room: Tensor
    width: int


class Exchange:
    """One stage's transfers at this rank."""

    def __init__(
        self,
        stages: list[list[dict[str, Any]]],
        number: int,
        own_blocks: list[int],
        block: tuple[int, int],
        group: dist.ProcessGroup | None,
        device: torch.device,
    ) -> None:
        """`stages`: of every rank. `own_blocks`: this rank's key blocks. `block`: tokens of a block, of the
        sequence."""
        self.group, rank = group, dist.get_rank(group)
        world = len(stages)
        size, length = block

        def tokens(of: list[int]) -> int:
            return sum(min(size, length - n * size) for n in of)

        starts, at = {}, 0
        for n in own_blocks:
            starts[n] = at
            at += min(size, length - n * size)
        sends: list[Tensor] = []
        self.sent: list[int] = []
        for to in range(world):
            of = {source: blocks for source, blocks in stages[to][number]["sources"]}.get(rank, [])
            self.sent.append(tokens(of))
            sends += [torch.arange(starts[n], starts[n] + min(size, length - n * size)) for n in of]
        #: The own tokens in the order in which they are sent.
        self.picked = (torch.cat(sends) if sends else torch.empty(0, dtype=torch.int64)).to(device)
        sources = stages[rank][number]["sources"]
        by_rank = {source: tokens(blocks) for source, blocks in sources}
        self.received = [by_rank.get(source, 0) for source in range(world)]
        # the stage's order may have a rank last whose last block is not whole
        offsets = [sum(self.received[:source]) for source in range(world)]
        order = [torch.arange(offsets[source], offsets[source] + by_rank[source]) for source, _ in sources]
        self.order = (torch.cat(order) if order else torch.empty(0, dtype=torch.int64)).to(device)
        self.in_order = bool((self.order == torch.arange(len(self.order), device=device)).all())

    def _started(self, out: Tensor, packed: Tensor, received: list[int], sent: list[int]) -> dist.Work:
        work = dist.all_to_all_single(out, packed, received, sent, group=self.group, async_op=True)
        assert work is not None, "this process is in the group"
        return work

    def packed(self, k: Tensor, v: Tensor) -> Packed:
        """What this rank sends of its keys and values, and room for those of others. No communication."""
        # only what is sent is copied: first its rows, then keys and values side by side, by tokens
        sent = [x.detach().index_select(2, self.picked).permute(2, 0, 1, 3) for x in (k, v)]
        packed = torch.cat(sent, dim=-1).contiguous()
        return Packed(packed, packed.new_empty(sum(self.received), *packed.shape[1:]), k.shape[-1])

    def send(self, packed: Packed) -> Callable[[], list[Tensor]]:
        """Starts it. The result waits for the keys and values [B, Hkv, tokens, D] of the stage."""
        sent, out, width = packed
        work = self._started(out, sent, self.received, self.sent)

        def wait() -> list[Tensor]:
            work.wait()
            found = out if self.in_order else out.index_select(0, self.order)
            # as they lie: kernels read any strides
            both = found.permute(1, 2, 0, 3)
            return [both[..., :width], both[..., width:]]

        # the buffers live until the exchange has ended
        wait.buffers = packed  # type: ignore[attr-defined]
        return wait

    def nothing(self, k: Tensor, v: Tensor) -> None:
        """Takes part with zeros: this rank has nothing to send, and nobody shall wait for it."""
        shape = (k.shape[0], k.shape[1], k.shape[3] + v.shape[3])
        sent, out = k.new_zeros(sum(self.sent), *shape), k.new_empty(sum(self.received), *shape)
        self._started(out, sent, self.received, self.sent).wait()

    def send_back(self, k: Tensor, v: Tensor) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Starts the return of gradients; the result adds what arrives to the own ones."""
        packed = torch.cat((k, v), dim=-1).permute(2, 0, 1, 3)
        if not self.in_order:
            unsorted = torch.empty_like(packed)
            unsorted[self.order] = packed
            packed = unsorted
        packed = packed.contiguous()
        out = packed.new_empty(sum(self.sent), *packed.shape[1:])
        work = self._started(out, packed, self.sent, self.received)
        width = k.shape[-1]

        def wait(k_grad: Tensor, v_grad: Tensor) -> tuple[Tensor, Tensor]:
            work.wait()
            both, at = out.permute(1, 2, 0, 3), 0
            for count in self.sent:
                if count > 0:
                    # a rank sends each token once: no two of these places are the same
                    places = self.picked[at : at + count]
                    for of, part in ((k_grad, both[..., :width]), (v_grad, both[..., width:])):
                        of.index_copy_(2, places, of.index_select(2, places) + part[:, :, at : at + count])
                at += count
            return k_grad, v_grad

        wait.buffers = (packed, out)  # type: ignore[attr-defined]
        return wait
