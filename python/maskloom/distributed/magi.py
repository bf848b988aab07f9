"""A plan as MagiAttention takes it: the mask as ranges with a kind, and which chunk of tokens belongs to which rank.

Invariant: no cell of the mask is in two slices, and none is missing. Must not know how a plan is found, nor import
MagiAttention before it is asked for its objects."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from .errors import PlanError
from .local import _over

__all__ = ["MagiPlan", "magi_plan", "slices"]

#: Slices that are made, at most.
MOST = 1 << 16
#: A slice's kind by how its left and its right edge move from a row to the next.
_KINDS = {(0, 0): "full", (0, 1): "causal", (1, 0): "inv_causal", (1, 1): "bi_causal"}

Interval = tuple[int, int]


@dataclass(frozen=True)
class MagiPlan:
    """One kind of layer of a plan for MagiAttention. Plans of several kinds have the same `partitions`."""

    #: [start, end) of each slice's queries and keys, in tokens of the whole sequence, sorted by queries.
    q_ranges: list[list[int]]
    k_ranges: list[list[int]]
    #: "full", "causal" (the last query sees the last key), "inv_causal" (the first sees the first) or "bi_causal".
    attn_mask_type: list[str]
    total_seqlen: int
    chunk_size: int
    #: For each rank its chunks of `chunk_size` tokens, ascending.
    partitions: list[list[int]]

    @property
    def uneven(self) -> bool:
        """Whether ranks have different numbers of tokens, which MagiAttention calls `uneven_shard`."""
        return len(set(self.split_sizes)) > 1

    @property
    def chunk_sizes(self) -> list[int]:
        """Tokens of each chunk: the last one may have fewer."""
        count = -(-self.total_seqlen // self.chunk_size)
        return [self.chunk_size] * (count - 1) + [self.total_seqlen - (count - 1) * self.chunk_size]

    @property
    def split_sizes(self) -> list[int]:
        """Tokens of each rank."""
        sizes = self.chunk_sizes
        return [sum(sizes[chunk] for chunk in of) for of in self.partitions]

    def key_arguments(self) -> dict[str, Any]:
        """The arguments of `magi_attn_flex_key` that say the mask. MagiAttention then divides the tokens by its own
        rule: `manager` divides them by the plan."""
        lengths = {"total_seqlen_q": self.total_seqlen, "total_seqlen_k": self.total_seqlen}
        masks = {"q_ranges": self.q_ranges, "k_ranges": self.k_ranges, "attn_mask_type": self.attn_mask_type}
        return {**masks, **lengths}

    def dispatch_metas(self, rank: int) -> tuple[Any, Any]:
        """MagiAttention's `DispatchMeta` of queries and of keys for a rank.

        Raises:
            PlanError: MagiAttention is not installed, or has other fields (May 2026 was read).
        """
        collection, enum = _magi("meta.collection"), _magi("common.enum")
        order = [chunk for of in self.partitions for chunk in of]
        inverse = sorted(range(len(order)), key=order.__getitem__)
        whole = not self.uneven and self.total_seqlen % self.chunk_size == 0
        given = {
            "attn_type": enum.AttnType.SELF_ATTN,
            "total_seqlen": self.total_seqlen,
            "shard_seqlen": self.split_sizes[rank],
            "max_valid_ids": max((end for _, end in self.q_ranges), default=self.total_seqlen),
            "chunk_size": self.chunk_size,
            "num_chunks": len(order),
            "cp_rank": rank,
            "cp_size": len(self.partitions),
            "partitions": self.partitions,
            "partitions_perm_idxs": order,
            "partitions_unperm_idxs": inverse,
            "chunk_actual_sizes": None if whole else self.chunk_sizes,
            "split_sizes": None if whole else self.split_sizes,
        }
        roles = (enum.AttnRole.QUERY, enum.AttnRole.KEY)
        try:
            queries, keys = (collection.DispatchMeta(attn_role=role, **given) for role in roles)
        except TypeError as why:
            raise PlanError("plan-magi", f"this MagiAttention is another: {why}", "use the one of May 2026") from None
        return queries, keys

    def manager(self, group: Any, num_heads_q: int, num_heads_kv: int, head_dim: int, **more: Any) -> Any:
        """MagiAttention's `DistAttnRuntimeMgr` with the plan's division: `dispatch_qo`, `dispatch_kv`, `calc_attn`,
        `undispatch_qo`. `more` goes to `init_dist_attn_runtime_mgr`.

        Raises:
            PlanError: MagiAttention is not installed, or has other fields.
        """
        common, enum, rank = _magi("common"), _magi("common.enum"), torch.distributed.get_rank(group)
        queries, keys = self.dispatch_metas(rank)
        if "dist_attn_config" not in more:
            config = _magi("config")
            uneven = self.uneven or self.total_seqlen % self.chunk_size != 0
            how = config.DispatchConfig(chunk_size=self.chunk_size, uneven_shard=uneven)
            more["dist_attn_config"] = config.DistAttnConfig(dispatch_config=how)
        return _magi("").init_dist_attn_runtime_mgr(
            q_ranges=common.AttnRanges.from_ranges(self.q_ranges),
            k_ranges=common.AttnRanges.from_ranges(self.k_ranges),
            attn_mask_type=[enum.AttnMaskType(kind) for kind in self.attn_mask_type],
            total_seqlen_q=self.total_seqlen,
            total_seqlen_k=self.total_seqlen,
            num_heads_q=num_heads_q,
            num_heads_kv=num_heads_kv,
            head_dim=head_dim,
            chunk_size=self.chunk_size,
            cp_group=group,
            ref_dispatch_meta_q=queries,
            ref_dispatch_meta_k=keys,
            **more,
        )


def _magi(name: str) -> Any:
    try:
        return importlib.import_module(f"magi_attention.{name}".rstrip("."))
    except ImportError as why:
        hint = "install it from github.com/SandAI-org/MagiAttention"
        raise PlanError("plan-magi", f"MagiAttention cannot be imported: {why}", hint) from None


def magi_plan(mask: BlockMask, lengths: Interval, ranks: list[Mapping[str, Any]]) -> MagiPlan:
    """`ranks`: those of a plan. Raises PlanError: MagiAttention has no such form."""
    batch, heads = mask.kv_num_blocks.shape[:2]
    (q_len, kv_len), (block_q, block_kv) = lengths, mask.BLOCK_SIZE
    way_out = "use plan.flex_attention, which takes any mask"
    if batch > 1 or heads > 1:
        what = f"the mask is for {batch} batch entries and {heads} heads"
        raise PlanError("plan-magi", f"{what}; MagiAttention has one mask over one packed sequence", way_out)
    if q_len != kv_len or block_q != block_kv:
        what = f"{q_len} queries and {kv_len} keys in blocks of {block_q} and {block_kv}"
        raise PlanError("plan-magi", f"{what}; MagiAttention divides queries and keys in the same chunks", way_out)
    partitions = [sorted(rank["q_blocks"]) for rank in ranks]
    if any(sorted(rank["kv_blocks"]) != own for rank, own in zip(ranks, partitions)):
        what = "the plan divides keys otherwise than queries"
        raise PlanError("plan-magi", f"{what}; MagiAttention divides them in the same chunks", way_out)
    empty = [rank for rank, own in enumerate(partitions) if not own]
    if empty:
        message = f"ranks {empty} have no chunk of {block_q} of the {q_len} tokens, which MagiAttention refuses"
        raise PlanError("plan-magi", message, "plan for fewer ranks, or in smaller blocks")
    found = slices(mask, lengths)
    if not found:
        raise PlanError("plan-magi", "the mask keeps nothing: there is no slice", way_out)
    q_ranges, k_ranges = [list(queries) for queries, _, _ in found], [list(keys) for _, keys, _ in found]
    return MagiPlan(q_ranges, k_ranges, [kind for _, _, kind in found], q_len, block_q, partitions)


def slices(mask: BlockMask, lengths: Interval) -> list[tuple[Interval, Interval, str]]:
    """The kept cells of a mask of one batch entry and head: queries, keys and kind of each slice, sorted by queries.

    Raises:
        PlanError: there are more than 65,536.
    """
    done: list[tuple[Interval, Interval, str]] = []
    running: list[_Slice] = []
    row = 0
    for intervals, count in _rows(mask, lengths):
        for _ in range(min(count, 2)):
            running = _continued(running, intervals, row, done)
            row += 1
        if count > 2:
            # what goes on through two equal rows, or begins at the second, is full
            for one in running:
                one.rows, one.moves = one.rows + count - 2, (0, 0)
            row += count - 2
        if len(done) + len(running) > MOST:
            message = f"the first {row} of {lengths[0]} rows make more than {MOST} slices"
            raise PlanError("plan-magi", message, "use plan.flex_attention, which takes any mask")
    done += [one.made() for one in running]
    return sorted(done)


class _Slice:
    """Rows from `first` on: the interval of the first one, and how its edges move."""

    __slots__ = ("first", "left", "moves", "right", "rows")

    def __init__(self, first: int, interval: Interval) -> None:
        self.first, self.rows = first, 1
        self.left, self.right = interval
        #: None: of one row, which may move any way
        self.moves: tuple[int, int] | None = None

    def next(self) -> Iterator[tuple[Interval, tuple[int, int]]]:
        """The intervals of the next row that continue it, with the moves that they mean."""
        for moves in _KINDS if self.moves is None else (self.moves,):
            left, right = (edge + move * self.rows for edge, move in zip((self.left, self.right), moves))
            yield (left, right), moves

    def made(self) -> tuple[Interval, Interval, str]:
        moves = self.moves or (0, 0)
        return (self.first, self.first + self.rows), (self.left, self.right + moves[1] * (self.rows - 1)), _KINDS[moves]


def _continued(
    running: list[_Slice], intervals: list[Interval], row: int, done: list[tuple[Interval, Interval, str]]
) -> list[_Slice]:
    """The slices that a row continues or begins; those that it ends are done."""
    free, kept = set(intervals), []
    for one in running:
        for interval, moves in one.next():
            if interval in free:
                free.remove(interval)
                one.rows, one.moves = one.rows + 1, moves
                kept.append(one)
                break
        else:
            done.append(one.made())
    return kept + [_Slice(row, interval) for interval in intervals if interval in free]


def _rows(mask: BlockMask, lengths: Interval) -> Iterator[tuple[list[Interval], int]]:
    """The kept intervals of keys, row by row, and how many rows have the same ones."""
    (q_len, kv_len), (rows, size) = lengths, mask.BLOCK_SIZE
    counts, indices = mask.kv_num_blocks[0, 0].tolist(), mask.kv_indices[0, 0].tolist()
    full_counts = [0] * len(counts) if mask.full_kv_num_blocks is None else mask.full_kv_num_blocks[0, 0].tolist()
    full = indices if mask.full_kv_indices is None else mask.full_kv_indices[0, 0].tolist()
    device = mask.kv_num_blocks.device
    for block in range(-(-q_len // rows)):
        queries = torch.arange(block * rows, min((block + 1) * rows, q_len), device=device)
        whole = [(n * size, min((n + 1) * size, kv_len)) for n in full[block][: full_counts[block]]]
        cut = sorted(n for n in indices[block][: counts[block]])
        if not cut:
            yield _merged(whole), len(queries)
            continue
        edges = [(n * size, min((n + 1) * size, kv_len)) for n in cut]
        keys = torch.cat([torch.arange(start, end, device=device) for start, end in edges])
        kept = _over(mask.mask_mod, 1, 1, queries, keys)[0, 0].cpu()
        last: list[Interval] | None = None
        same = 0
        for intervals in _kept(kept, keys.cpu(), whole):
            if intervals == last:
                same += 1
                continue
            if last is not None:
                yield last, same
            last, same = intervals, 1
        if last is not None:
            yield last, same


def _kept(kept: Tensor, keys: Tensor, whole: list[Interval]) -> Iterator[list[Interval]]:
    """For each row the intervals of kept keys and of whole blocks."""
    edge = torch.nn.functional.pad(kept.to(torch.int8), (1, 1)).diff(dim=1)
    starts: list[list[int]] = [[] for _ in range(len(kept))]
    ends: list[list[int]] = [[] for _ in range(len(kept))]
    for sign, of in ((1, starts), (-1, ends)):
        for row, at in (edge == sign).nonzero().tolist():
            of[row].append(at)
    tokens = keys.tolist()
    gaps = [at for at in range(1, len(tokens)) if tokens[at] != tokens[at - 1] + 1]
    for first, last in zip(starts, ends):
        found = list(whole)
        for start, end in zip(first, last):
            # keys side by side here may lie apart
            cuts = [start, *(gap for gap in gaps if start < gap < end), end]
            found += [(tokens[a], tokens[b - 1] + 1) for a, b in zip(cuts, cuts[1:])]
        yield _merged(found)


def _merged(intervals: list[Interval]) -> list[Interval]:
    out: list[Interval] = []
    for start, end in sorted(intervals):
        if out and out[-1][1] == start:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out
