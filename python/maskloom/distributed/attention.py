"""A plan carried out on torch.distributed: sharding, attention with its exchange, and back.

Invariant: outputs and gradients are those of one process up to rounding, added in one order whatever the ranks' speed.
Every rank makes the same collectives in the same order, or every rank raises. Must not know how a plan is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from .._checks import no_second_order, number
from .._functions import with_tensors
from ..errors import a_kind
from .cards import CARDS, all_ready, fits
from .errors import PlanError, Vote, agree, as_plan_error, asked, talk
from .exchange import Exchange, Packed
from .local import Mod, Stage, attend
from .magi import MagiPlan, magi_plan
from .staged import Kernels, Staged, at, settings
from .watched import Watched, tensors_of

__all__ = ["ContextParallel"]


class ContextParallel:
    """A plan over the ranks of a group; made by `plan_context_parallel`.

    `figures` holds the predicted loads, bytes and times, `notes` what a user should know."""

    def __init__(
        self, plan: Mapping[str, Any], masks: Mapping[str, BlockMask], group: dist.ProcessGroup | None
    ) -> None:
        """Carries out `plan`, the object that `maskloom parallel --json` prints, for these masks.

        Raises PlanError: a group of another size, or other masks, than planned."""
        world = dist.get_world_size(group)
        if plan["world_size"] != world:
            raise PlanError(
                "plan-group",
                f"the plan is for {plan['world_size']} ranks, the group has {world}",
                "plan for this group: plan_context_parallel(masks, group)",
            )
        if [kind["name"] for kind in plan["kinds"]] != list(masks):
            planned = [kind["name"] for kind in plan["kinds"]]
            raise PlanError("plan-masks", f"the plan is for {planned}, the masks are {list(masks)}", "plan these masks")
        self.group, self.world_size, self.rank = group, world, dist.get_rank(group)
        #: None: by the tensors of a call
        self._kernels: Kernels | None = None
        #: who is asked before each call, and where: on hosts, so that nobody waits for a GPU
        self._talk = talk(group)
        self._devices = _devices(group)
        self.q_len, self.kv_len = plan["q_len"], plan["kv_len"]
        self.block_size: tuple[int, int] = tuple(plan["block_size"])
        self.figures, self.notes = plan["figures"], plan["notes"]
        self._plan, self._masks = plan, dict(masks)
        self._watched = {name: Watched(mask) for name, mask in masks.items()}
        self._stages: dict[tuple[str, torch.device], list[Stage]] = {}
        self._exchanges: dict[tuple[str, torch.device], list[Exchange]] = {}

    # --- tokens ---

    def indices(self, device: torch.device | str | None = None, *, of: str = "q") -> Tensor:
        """int64 [length]: the tokens in the order of ranks, each rank's side by side. `of`: "q" or "kv"."""
        return torch.cat([self._positions(rank, of) for rank in range(self.world_size)]).to(device)

    def restore(self, device: torch.device | str | None = None, *, of: str = "q") -> Tensor:
        """int64 [length]: the inverse of `indices`."""
        order = self.indices(of=of)
        out = torch.empty_like(order)
        out[order] = torch.arange(len(order))
        return out.to(device)

    def lengths(self, *, of: str = "q") -> list[int]:
        """Tokens of each rank. They differ by at most one block; nothing is padded."""
        return [rank[f"{_side(of)}_len"] for rank in self._plan["ranks"]]

    def shard(self, x: Tensor, dim: int = 2, *, of: str | None = None) -> Tensor:
        """This rank's tokens of a whole tensor, in the plan's order. No communication.

        Args:
            x: any tensor with the whole sequence along `dim`, the same on every rank.
            of: "q" for queries, positions, labels; "kv" for keys and values. None: by the length, which is no question
                where both lengths are equal.

        Raises:
            PlanError: another length than planned.
        """
        if not isinstance(x, Tensor) or not isinstance(dim, int) or not -x.dim() <= dim < x.dim():
            what = f"x of shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"x is {a_kind(x)}"
            raise PlanError("plan-shape", f"{what}, dim is {dim!r}", "pass a tensor, and the dimension of its tokens")
        length = x.shape[dim]
        if of is None:
            of = "q" if length == self.q_len else "kv"
        wanted = self.q_len if _side(of) == "q" else self.kv_len
        if length != wanted:
            raise PlanError(
                "plan-length",
                f"dimension {dim} has {length} tokens; the plan is for {self.q_len} queries and {self.kv_len} keys",
                "pass the whole sequence, or plan masks of this length",
            )
        return x.index_select(dim, self._positions(self.rank, of).to(x.device))

    def unshard(self, x: Tensor, dim: int = 2, *, of: str = "q") -> Tensor:
        """The whole tensor on every rank, in the original order, from each rank's tokens. A collective.

        The gradient of each rank's tokens is taken from the gradient that this rank computes for the whole: every
        rank is expected to compute the same from it.

        Raises:
            PlanError: on every rank alike, if one has another length than planned.
        """
        fault: PlanError | None = None
        said: tuple[Any, ...] = ()
        try:
            wanted = self.lengths(of=of)[self.rank]
            if x.shape[dim] != wanted:
                raise PlanError(
                    "plan-local-length",
                    f"dimension {dim} has {x.shape[dim]} tokens; rank {self.rank} has {wanted} by the plan",
                    "pass what came from plan.shard or plan.flex_attention",
                )
            self._movable("x", x)
            others = [n for at, n in enumerate(x.shape) if at != dim % x.dim()]
            said = ("unshard", of, dim % x.dim(), "of", others, str(x.dtype), x.device.type)
        except Exception as why:
            fault = as_plan_error(why, "plan-call", "pass a tensor with this rank's tokens along `dim`")
        agree(fault, *self._talk, said)
        return _Unshard.apply(x, self, dim, of)  # type: ignore[no-any-return]

    def _positions(self, rank: int, of: str) -> Tensor:
        return _positions(self._plan["ranks"][rank][f"{of}_blocks"], of, self.block_size, (self.q_len, self.kv_len))

    # --- attention ---

    def flex_attention(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: str | BlockMask | None = None,
        score_mod: Mod | None = None,
        scale: float | None = None,
        return_lse: bool = False,
        deterministic: bool = False,
    ) -> Any:
        """FlexAttention of this rank's queries over all keys that its mask keeps. A collective, with autograd.

        The keys and values of other ranks arrive while the own ones are computed. Partial results are merged by their
        logsumexp. In the backward pass gradients return the same way, and are added in the order of ranks.

        Args:
            q: [B, Hq, own queries, D], as `shard` returns it.
            k, v: [B, Hkv, own keys, D] and [B, Hkv, own keys, Dv]; Hkv divides Hq.
            mask: the kind of layer, by name or by its BlockMask; None where there is one.
            score_mod: as FlexAttention's, on the whole sequence's indices. Tensors that it reads get no gradient.
            scale: None: 1/sqrt(D).
            return_lse: also the logsumexp, float [B, Hq, own queries], -inf where a row keeps nothing.
            deterministic: PyTorch's deterministic algorithms for the local kernels; the exchange always is.

        Returns:
            [B, Hq, own queries, Dv], in the plan's order; with `return_lse` a pair.

        Raises:
            PlanError: on every rank alike: another length, dtype, device or number of heads than the other ranks or the
                plan have, a mask that was not planned or has changed since.
        """
        fault: PlanError | None = None
        name, learns = "", False
        said: tuple[Any, ...] = ()
        try:
            name = self._kind(mask)
            self._check(q, k, v, name)
            _check_score(score_mod)
            scale = None if scale is None else number(scale)
            score_mod = None if score_mod is None else with_tensors(score_mod)
            # what is made once can fail, too, and tells how much each rank sends
            self._made(name, q.device)
            learns = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
            said = self._said(q, k, v, name, (learns, score_mod is not None, scale, deterministic))
        except Exception as why:
            fault = as_plan_error(why, "plan-call", "see what this rank's call was given")
        answer = asked(fault, *self._talk, said)
        if fault is not None:
            answer()
        return self._agreed(q, k, v, name, (score_mod, scale, deterministic, learns), answer, return_lse)

    def _said(self, q: Tensor, k: Tensor, v: Tensor, name: str, how: tuple[Any, ...]) -> tuple[Any, ...]:
        """What every rank's call must have alike."""
        learns, scored, scale, deterministic = how
        sizes = ("batch and heads", tuple(q.shape[:2]), "head_dim", q.shape[3], "key heads", k.shape[1])
        kinds = ("value dim", v.shape[3], str(q.dtype), q.device.type, "mask", name)
        more = ("score mod", scored, "scale", None if scale is None else float(scale), "deterministic", deterministic)
        return (*sizes, *kinds, *more, "gradients", learns)

    def _agreed(
        self, q: Tensor, k: Tensor, v: Tensor, name: str, how: tuple[Any, ...], answer: Any, return_lse: bool
    ) -> Any:
        """The call, whose question to the other ranks is under way. An exception on one rank is raised on all of them:
        here, or where they would use what that rank has not computed."""
        score_mod, scale, deterministic, learns = how
        stages, exchanges = self._made(name, q.device)
        vote, late = Vote(*self._talk), None
        kernels = made = None
        packed: list[Packed] = []
        try:
            # what takes no other rank is done while these answer: hosts need 0.4 ms for that (2 H200, 2026-11-28)
            kernels = self._kernels if self._kernels is not None else CARDS if fits(q, k, v) else None
            made = all_ready(kernels, stages, score_mod) if kernels is not None else None
            packed = [exchange.packed(k, v) for exchange in exchanges]
        except Exception as why:
            late = as_plan_error(why, "plan-rank-failed", "see the exception of that rank")
        answer()
        # without a backward pass the answer is awaited at the end of this call: it is asked for at its beginning
        if not learns:
            vote.cast(late)
        if late is not None:
            # in the order of the others, who exchange now
            for exchange in exchanges:
                exchange.nothing(k, v)
            vote.cast(late)
            vote.settle()
        if kernels is not None and made is not None:
            results = Staged.apply(q, k, v, kernels, made, exchanges, packed, scale, deterministic, vote)
        else:
            results = _Attention.apply(q, k, v, stages, exchanges, packed, score_mod, scale, deterministic, vote)
        return results if return_lse else results[0]

    def block_masks(self, mask: str | BlockMask | None = None, device: torch.device | str = "cpu") -> list[BlockMask]:
        """The BlockMasks that this rank computes, over local indices: own keys first, then those of each exchange."""
        return [stage.block_mask() for stage in self._made(self._kind(mask), torch.device(device))[0]]

    def magi(self, mask: str | BlockMask | None = None) -> MagiPlan:
        """This plan for MagiAttention: a mask as ranges, and the chunks of each rank. No communication.

        Raises:
            PlanError: a mask that differs by batch entry or head, other keys than queries, ranks without tokens, or
                more than 65,536 slices: MagiAttention has no such form.
        """
        name = self._kind(mask)
        return magi_plan(self._masks[name], (self.q_len, self.kv_len), self._plan["ranks"])

    def _kind(self, mask: str | BlockMask | None) -> str:
        names = list(self._masks)
        if mask is None and len(names) == 1:
            return names[0]
        found = [name for name in names if mask == name or self._masks[name] is mask]
        if not found:
            said = repr(mask) if isinstance(mask, str) else "None" if mask is None else "another BlockMask"
            raise PlanError("plan-mask", f"mask is {said}; the plan has {names}", "name a planned mask, or plan again")
        return found[0]

    def _check(self, q: Tensor, k: Tensor, v: Tensor, name: str) -> None:
        """Raises PlanError: what does not fit the plan."""
        for what, x in (("q", q), ("k", k), ("v", v)):
            self._movable(what, x)
        if any(x.dim() != 4 for x in (q, k, v)):
            raise PlanError(
                "plan-shape", f"q, k and v have {q.dim()}, {k.dim()} and {v.dim()} dimensions", "pass [B, H, tokens, D]"
            )
        wanted = (self.lengths()[self.rank], self.lengths(of="kv")[self.rank])
        if (q.shape[2], k.shape[2], v.shape[2]) != (wanted[0], wanted[1], wanted[1]):
            raise PlanError(
                "plan-local-length",
                f"q, k and v have {q.shape[2]}, {k.shape[2]} and {v.shape[2]} tokens; rank {self.rank} has {wanted[0]} "
                f"queries and {wanted[1]} keys by the plan",
                "pass what plan.shard returns",
            )
        if len({x.device for x in (q, k, v)}) > 1 or len({x.dtype for x in (q, k, v)}) > 1:
            raise PlanError(
                "plan-device",
                f"q, k and v are {q.dtype} on {q.device}, {k.dtype} on {k.device}, {v.dtype} on {v.device}",
                "move them to one device and one dtype",
            )
        if not q.is_floating_point():
            raise PlanError("plan-dtype", f"q, k and v are {q.dtype}", "pass floating-point tensors")
        if (
            k.shape[1] != v.shape[1]
            or k.shape[1] == 0
            or q.shape[1] % k.shape[1]
            or not (q.shape[0] == k.shape[0] == v.shape[0])
            or q.shape[3] != k.shape[3]
        ):
            raise PlanError(
                "plan-heads",
                f"q, k and v are {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}",
                "give one batch, one head_dim of q and k, and key heads that divide the query heads",
            )
        batch, heads = self._masks[name].kv_num_blocks.shape[:2]
        if batch not in (1, q.shape[0]) or heads not in (1, q.shape[1]):
            raise PlanError(
                "plan-heads",
                f"the mask is for {batch} batch entries and {heads} heads, q is {tuple(q.shape)}",
                "make the mask for these, or for 1 to share it",
            )
        changed = self._watched[name].changed()
        if changed:
            raise PlanError(
                "plan-mask-changed",
                f"the mask {name!r} has changed since it was planned: {changed}",
                "plan again after changing a mask or a tensor that it reads",
            )

    def _movable(self, what: str, x: Any) -> None:
        """Raises PlanError: the group does not move such a tensor."""
        placements = getattr(x, "placements", None)
        if not isinstance(x, Tensor) or placements is not None:
            kind = f"a DTensor, {placements}" if isinstance(x, Tensor) else a_kind(x)
            raise PlanError("plan-device", f"{what} is {kind}", "pass this rank's own tensor: x.to_local()")
        if x.layout is not torch.strided or x.device.type not in self._devices:
            raise PlanError(
                "plan-device",
                f"{what} is {x.layout} on {x.device}, the group moves strided tensors of {sorted(self._devices)}",
                "move it there, or plan on a group for that device",
            )

    def _made(self, name: str, device: torch.device) -> tuple[list[Stage], list[Exchange]]:
        key = (name, device)
        if key not in self._stages:
            kind = next(kind for kind in self._plan["kinds"] if kind["name"] == name)
            sizes, lengths = self.block_size, (self.q_len, self.kv_len)
            own = self._positions(self.rank, "q").to(device)
            stages = []
            for number, stage in enumerate(kind["stages"][self.rank]):
                blocks = [block for _, of in stage["sources"] for block in of]
                rows, picked = stage["rows"], None
                active = [row for row in range(len(rows[0])) if any(of[row] for of in rows)]
                if number > 0 and len(active) < len(rows[0]):
                    # queries that need none of these keys take no part
                    rows = [[of[row] for row in active] for of in rows]
                    picked = _tokens(active, sizes[0], len(own)).to(device)
                stages.append(
                    Stage(
                        sources=[(rank, of) for rank, of in stage["sources"]],
                        rows=[[[tuple(run) for run in row] for row in of] for of in rows],
                        distinct=(kind["batch"], kind["heads"]),
                        block_size=sizes,
                        q_positions=own if picked is None else own[picked],
                        kv_positions=_positions(blocks, "kv", sizes, lengths).to(device),
                        mask_mod=with_tensors(self._masks[name].mask_mod),
                        picked=picked,
                    )
                )
            blocks = self._plan["ranks"][self.rank]["kv_blocks"]
            self._stages[key] = stages
            self._exchanges[key] = [
                Exchange(kind["stages"], n, blocks, (sizes[1], self.kv_len), self.group, device)
                for n in range(1, len(stages))
            ]
        return self._stages[key], self._exchanges[key]


def _check_score(score_mod: Mod | None) -> None:
    """Raises PlanError: a score mod that reads a tensor which waits for a gradient."""
    if score_mod is None or not torch.is_grad_enabled():
        return
    waiting = [name for name, tensor in tensors_of(score_mod) if tensor.requires_grad]
    if waiting:
        raise PlanError(
            "plan-score-gradient",
            f"the score mod reads {waiting[0]}, which requires a gradient: a plan gives none to what a score mod reads",
            "read it detached, or train it with maskloom.flex_attention on one GPU",
        )


def _positions(blocks: list[int], of: str, sizes: tuple[int, int], lengths: tuple[int, int]) -> Tensor:
    """The tokens of some blocks in their order."""
    size, length = (sizes[0], lengths[0]) if of == "q" else (sizes[1], lengths[1])
    return _tokens(blocks, size, length)


def _tokens(blocks: list[int], size: int, length: int) -> Tensor:
    parts = [torch.arange(block * size, min((block + 1) * size, length)) for block in blocks]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)


def _side(of: str) -> str:
    """Raises PlanError: neither queries nor keys."""
    if of not in ("q", "kv"):
        raise PlanError("plan-of", f"of is {of!r}", 'pass "q" for queries, "kv" for keys and values')
    return of


def _devices(group: dist.ProcessGroup | None) -> set[str]:
    """The kinds of devices whose tensors a group moves."""
    whole: Any = group if group is not None else dist.group.WORLD
    return {device.type for device in whole._device_types} - {"meta"}


def _put(x: Tensor, rows: Tensor | None, values: Tensor) -> Tensor:
    """Replaces them in place."""
    return x.copy_(values) if rows is None else x.index_copy_(2, rows, values)


def _weight(part: Tensor, whole: Tensor) -> Tensor:
    """What a part's rows count in the whole, from both logsumexps: 0 where nothing is kept."""
    empty = whole == -torch.inf
    return torch.exp(part - whole.masked_fill(empty, 0.0)).masked_fill(empty, 0.0)


def _merge(out: Tensor, lse: Tensor, part: tuple[Tensor, Tensor], rows: Tensor | None) -> None:
    """Adds a part over more keys to its rows of output and logsumexp, in place."""
    before, more = at(lse, rows), part[1].to(lse.dtype)
    both = torch.logaddexp(before, more)
    mine, other = (_weight(x, both).unsqueeze(-1) for x in (before, more))
    merged = mine * at(out, rows).to(lse.dtype) + other * part[0].to(lse.dtype)
    _put(out, rows, merged.to(out.dtype))
    _put(lse, rows, both)


def _same(x: Tensor) -> Tensor:
    return x


class _Attention(torch.autograd.Function):
    """All stages of one call. Each stage's own graph is kept for the backward pass, which goes through them in the
    order that hides the exchange."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        stages: list[Stage],
        exchanges: list[Exchange],
        packed: list[Packed],
        score_mod: Mod | None,
        scale: float | None,
        deterministic: bool,
        vote: Vote,
    ) -> tuple[Tensor, Tensor]:
        needs = any(ctx.needs_input_grad[:3])
        kept: list[tuple[list[Tensor], tuple[Tensor, Tensor] | None]] = []
        # hooks of the caller (activation checkpointing) must not see the stages' own graphs: ranks have different ones,
        # and each would ask for another recomputation, with its collectives
        own = torch.autograd.graph.saved_tensors_hooks(_same, _same)
        with vote.through(needs), settings(deterministic), torch.set_grad_enabled(needs), own:
            pending = [exchange.send(sent) for exchange, sent in zip(exchanges, packed)]
            arriving = [lambda: [k.detach(), v.detach()], *pending]
            for stage, wait in zip(stages, arriving):
                leaves = [x.detach().requires_grad_(needs) for x in (at(q.detach(), stage.picked), *wait())]
                # nothing to compute: no kernel is asked for an empty result
                empty = leaves[0].shape[2] == 0 or leaves[1].shape[2] == 0
                found = None if empty else attend(leaves[0], leaves[1], leaves[2], stage, score_mod, scale)
                kept.append((leaves, found))
        exact = torch.float64 if q.dtype == torch.float64 else torch.float32
        first = kept[0][1]
        if first is None:
            out = q.new_zeros(*q.shape[:3], v.shape[3])
            lse = q.new_full(q.shape[:3], -torch.inf, dtype=exact)
        else:
            out, lse = first[0].detach().clone(), first[1].detach().to(exact, copy=True)
        rows = [stage.picked for stage in stages]
        for places, (_, found) in zip(rows[1:], kept[1:]):
            if found is not None:
                _merge(out, lse, (found[0].detach(), found[1].detach()), places)
        ctx.kept, ctx.exchanges, ctx.deterministic, ctx.rows, ctx.vote = kept, exchanges, deterministic, rows, vote
        ctx.save_for_backward(out, lse)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor, grad_lse: Tensor | None) -> tuple[Tensor | None, ...]:
        no_second_order()
        ctx.vote.settle()
        out, lse = ctx.saved_tensors
        grad = torch.zeros_like(out) if grad_out is None else grad_out
        # another backward pass follows (retain_graph=True): the stages' graphs are kept, too
        keep: bool = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: False)()
        grads = [
            None if found is None else (found, _given(found, (out, lse), (grad, grad_lse), rows), leaves)
            for (leaves, found), rows in zip(ctx.kept, ctx.rows)
        ]
        with settings(ctx.deterministic):
            sent, of_q = [], []
            # the keys of others first: their gradients travel while the own ones are computed
            for exchange, one, (leaves, _) in zip(ctx.exchanges, grads[1:], ctx.kept[1:]):
                found = _grads(one, leaves, keep)
                of_q.append(found[0] if one is not None else None)
                sent.append(exchange.send_back(found[1], found[2]))
            q_grad, k_grad, v_grad = _grads(grads[0], ctx.kept[0][0], keep)
        for part, rows in zip(of_q, ctx.rows[1:]):
            if part is not None:
                q_grad = q_grad + part if rows is None else q_grad.index_add(2, rows, part)
        for wait in sent:
            k_grad, v_grad = wait(k_grad, v_grad)
        if not keep:
            del ctx.kept
        return q_grad, k_grad, v_grad, None, None, None, None, None, None, None


def _given(
    part: tuple[Tensor, Tensor],
    whole: tuple[Tensor, Tensor],
    grads: tuple[Tensor, Tensor | None],
    rows: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """The gradients of a part's output and logsumexp, from those of the whole's at the part's rows."""
    out, lse = (at(x, rows) for x in whole)
    grad = at(grads[0], rows)
    weight = _weight(part[1].detach().to(lse.dtype), lse)
    difference = (part[0].detach() - out).to(lse.dtype)
    of_lse = (grad.to(lse.dtype) * difference).sum(-1)
    if grads[1] is not None:
        of_lse = of_lse + at(grads[1], rows)
    of_out = (weight.unsqueeze(-1) * grad).to(part[0].dtype)
    return of_out, (weight * of_lse).to(part[1].dtype)


def _grads(of: Any, leaves: list[Tensor], keep: bool) -> list[Tensor]:
    """The gradients of q, k and v in one stage; zeros where nothing was computed."""
    if of is None:
        return [torch.zeros_like(x) for x in leaves]
    outputs, given, _ = of
    found = torch.autograd.grad(outputs, leaves, given, retain_graph=keep, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, leaves)]


class _Unshard(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, plan: ContextParallel, dim: int, of: str) -> Tensor:
        lengths = plan.lengths(of=of)
        mine = x.movedim(dim, 0).contiguous()
        whole = mine.new_empty(sum(lengths), *mine.shape[1:])
        # every rank sends its tokens to each: lengths may differ, which an all-gather into one tensor refuses
        sent = mine.repeat(plan.world_size, *([1] * (mine.dim() - 1)))
        dist.all_to_all_single(whole, sent, lengths, [len(mine)] * plan.world_size, group=plan.group)
        ctx.positions, ctx.dim = plan._positions(plan.rank, of), dim
        return whole.index_select(0, plan.restore(x.device, of=of)).movedim(0, dim)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return grad.index_select(ctx.dim, ctx.positions.to(grad.device)), None, None, None
