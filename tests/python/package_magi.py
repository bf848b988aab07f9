"""Plans for MagiAttention: their slices are the masks, cell for cell, and their chunks the plan's tokens. With
MagiAttention's Python beside it, its own dispatch and areas of the same slices.

usage: package_magi.py [FOLDER]     of MagiAttention's sources, whose Python needs no GPU
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import random
import sys
import types

import package

maskloom = package.found()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from maskloom.distributed import ContextParallel  # noqa: E402
from maskloom.distributed.errors import PlanError  # noqa: E402
from maskloom.distributed.magi import MagiPlan, magi_plan, slices  # noqa: E402
from maskloom.distributed.planning import make_plan, request_of  # noqa: E402
from package_ranks import GALLERY, pattern, random_mask  # noqa: E402

# it keeps a mask's lengths in every PyTorch
create_block_mask = maskloom.create_block_mask


def cells(mod, q_len, kv_len):
    at = [torch.arange(n).view([-1 if i == j else 1 for j in range(4)]) for i, n in enumerate((1, 1, q_len, kv_len))]
    return mod(*at).expand(1, 1, q_len, kv_len)[0, 0].to(torch.int32)


def painted(found, q_len, kv_len):
    """How many slices each cell is in, by the definition of MagiAttention's kinds."""
    seen = torch.zeros(q_len, kv_len, dtype=torch.int32)
    for (q0, q1), (k0, k1), kind in found:
        own = torch.ones(q1 - q0, k1 - k0, dtype=torch.int32)
        if kind in ("causal", "bi_causal"):
            own = own.tril((k1 - k0) - (q1 - q0))
        if kind in ("inv_causal", "bi_causal"):
            own = own.triu()
        seen[q0:q1, k0:k1] += own
    return seen


def plan_of(masks, ranks):
    """A plan without processes."""
    import json

    return make_plan(json.dumps(request_of(masks, ranks)))


def exact():
    """Slices of the pattern library and of random masks, in several sizes of blocks: every kept cell in one of them."""
    done, kinds = 0, set()
    for name in GALLERY:
        mod = pattern(name)
        length = 61 + 2 * done
        if mod is None or name == "alternate_heads":
            continue
        try:
            want = cells(mod, length, length)
        except IndexError:
            continue  # a table of a fixed length
        for block in (16, 32, (8, 16)):
            mask = create_block_mask(mod, None, None, length, length, device="cpu", BLOCK_SIZE=block)
            found = slices(mask, (length, length))
            assert torch.equal(painted(found, length, length), want), (name, block)
            kinds |= {kind for _, _, kind in found}
        done += 1
    assert done >= 20, done
    for seed in range(60):
        draw = random.Random(seed)
        q_len, kv_len = draw.randint(1, 90), draw.randint(1, 90)
        mod, differs = random_mask(seed, q_len, kv_len)
        if differs:
            continue
        mask = create_block_mask(mod, None, None, q_len, kv_len, device="cpu", BLOCK_SIZE=draw.choice([8, 16, (16, 8)]))
        assert torch.equal(painted(slices(mask, (q_len, kv_len)), q_len, kv_len), cells(mod, q_len, kv_len)), seed
        done += 1
    assert kinds == {"full", "causal", "inv_causal", "bi_causal"}, kinds
    return done


def short():
    """Masks that are one slice, or few, are no more."""
    documents = torch.tensor([0] * 40 + [1] * 70 + [2] * 18)
    cases = [
        (lambda b, h, q, k: q >= k, ["causal"]),
        (lambda b, h, q, k: q <= k, ["inv_causal"]),
        (lambda b, h, q, k: (q >= 0) & (k >= 0), ["full"]),
        (lambda b, h, q, k: (q >= k) & (q - k < 20), ["causal", "bi_causal"]),
        (lambda b, h, q, k: (q >= k) & (documents[q] == documents[k]), ["causal"] * 3),
        (lambda b, h, q, k: (q >= k) | (k < 30), ["full", "causal"]),
    ]
    for mod, kinds in cases:
        mask = create_block_mask(mod, None, None, 128, 128, device="cpu", BLOCK_SIZE=16)
        found = slices(mask, (128, 128))
        assert [kind for _, _, kind in found] == kinds, found
    return len(cases)


def refused(code, work, words):
    try:
        work()
    except PlanError as why:
        assert why.code == code and words in str(why) and why.hint, why
        return
    raise AssertionError(f"not refused: {words}")


def refusals():
    causal = lambda b, h, q, k: q >= k
    make = lambda mod, q=128, k=128, **more: create_block_mask(
        mod, more.pop("B", None), more.pop("H", None), q, k, device="cpu", **{"BLOCK_SIZE": 16, **more}
    )

    def magi(mask, ranks=2):
        plan = plan_of({"mask": mask}, ranks)
        return magi_plan(mask, (plan["q_len"], plan["kv_len"]), plan["ranks"])

    heads = make(lambda b, h, q, k: (q >= k) & ((k + h) % 2 == 0), H=2)
    refused("plan-magi", lambda: magi(heads), "2 heads")
    batch = make(lambda b, h, q, k: (q >= k) & ((k + b) % 2 == 0), B=3)
    refused("plan-magi", lambda: magi(batch), "3 batch entries")
    refused("plan-magi", lambda: magi(make(causal, 128, 96)), "128 queries and 96 keys")
    refused("plan-magi", lambda: magi(make(causal, BLOCK_SIZE=(16, 32))), "blocks of 16 and 32")
    refused("plan-magi", lambda: magi(make(causal), 9), "ranks [8]")
    refused("plan-magi", lambda: magi(make(lambda b, h, q, k: (q < 0) & (k >= 0))), "keeps nothing")
    random_cells = torch.rand(768, 768, generator=torch.Generator().manual_seed(0)) < 0.5
    refused("plan-magi", lambda: magi(make(lambda b, h, q, k: random_cells[q, k], 768, 768)), "65536 slices")
    plain = magi(make(causal))
    refused("plan-magi", lambda: plain.dispatch_metas(0), "MagiAttention cannot be imported")
    return 8


def of_a_plan():
    """The same from a plan over processes; two kinds share their chunks, and the last chunk may be short."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    masks = {
        "global": create_block_mask(lambda b, h, q, k: q >= k, None, None, 170, 170, device="cpu", BLOCK_SIZE=16),
        "local": create_block_mask(
            lambda b, h, q, k: (q >= k) & (q - k < 9), None, None, 170, 170, device="cpu", BLOCK_SIZE=16
        ),
    }
    plan = maskloom.plan_context_parallel(masks)
    one, two = (plan.magi(name) for name in masks)
    assert isinstance(plan, ContextParallel) and isinstance(one, MagiPlan)
    assert one.partitions == two.partitions == [list(range(11))] and one.chunk_sizes == [16] * 10 + [10]
    assert one.key_arguments()["attn_mask_type"] == ["causal"] and one.key_arguments()["total_seqlen_q"] == 170
    dist.destroy_process_group()
    for ranks in (2, 3, 4):
        for q_len in (128, 170, 250):
            mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, q_len, q_len, device="cpu", BLOCK_SIZE=16)
            made = plan_of({"mask": mask}, ranks)
            magi = magi_plan(mask, (q_len, q_len), made["ranks"])
            assert sorted(chunk for of in magi.partitions for chunk in of) == list(range(-(-q_len // 16)))
            assert magi.split_sizes == [rank["q_len"] for rank in made["ranks"]] and sum(magi.split_sizes) == q_len
            assert magi.uneven == (len(set(magi.split_sizes)) > 1)


def beside_magi(folder):
    """MagiAttention's own Python reads the slices: its dispatch is the plan's shard, its areas are the mask's cells,
    and the buckets of all ranks together are the mask."""
    sys.path.insert(0, str(folder))
    os.environ.setdefault("MAGI_ATTENTION_CPP_BACKEND", "0")
    # packages whose own __init__ needs compiled kernels, and what only debugs
    for name in ("magi_attention", "magi_attention.functional"):
        stub = sys.modules[name] = types.ModuleType(name)
        stub.__path__ = [str(pathlib.Path(folder, *name.split(".")))]
    if not importlib.util.find_spec("debugpy"):
        sys.modules["debugpy"] = types.ModuleType("debugpy")
    from magi_attention.common import AttnRanges
    from magi_attention.common.enum import AttnMaskType
    from magi_attention.functional.dispatch import _gather_and_unpermute, _select_local_chunks
    from magi_attention.meta import make_bucket_per_rank_from_qk_ranges

    assert callable(_gather_and_unpermute)
    done = 0
    for name in GALLERY:
        mod = pattern(name)
        length = 96 + 7 * (done % 3)
        if mod is None or name == "alternate_heads":
            continue
        try:
            want = cells(mod, length, length)
        except IndexError:
            continue
        for ranks in (2, 3):
            mask = create_block_mask(mod, None, None, length, length, device="cpu", BLOCK_SIZE=8)
            made = plan_of({"mask": mask}, ranks)
            try:
                plan = magi_plan(mask, (length, length), made["ranks"])
            except PlanError as why:
                assert "keeps nothing" in str(why), (name, why)
                continue
            metas = [plan.dispatch_metas(rank) for rank in range(ranks)]
            x = torch.arange(length)
            for rank, (meta, keys) in enumerate(metas):
                tokens = [
                    t for n in sorted(made["ranks"][rank]["q_blocks"]) for t in range(8 * n, min(8 * n + 8, length))
                ]
                for one in (meta, keys):
                    assert _select_local_chunks(x, one, rank, 0).tolist() == tokens, name
                hosts = [[r.start, r.end] for r in meta.host_ranges_per_rank[rank]]
                assert sum(end - start for start, end in hosts) == meta.shard_seqlen == len(tokens)
            kinds = [AttnMaskType(kind) for kind in plan.attn_mask_type]
            ranges = (AttnRanges.from_ranges(plan.q_ranges), AttnRanges.from_ranges(plan.k_ranges))
            buckets = make_bucket_per_rank_from_qk_ranges(*ranges, kinds, metas[0][0])
            every, seen = [], torch.zeros(length, length, dtype=torch.int32)
            for rank, bucket in enumerate(buckets):
                own = []
                for chunk in bucket.q_chunks:
                    for one in chunk.q_slices:
                        q, k = one.q_range, one.k_range
                        own.append(((q.start, q.end), (k.start, k.end), one.mask_type.value))
                mine = painted(own, length, length)
                tokens = torch.zeros(length, dtype=torch.bool)
                tokens[_select_local_chunks(x, metas[rank][0], rank, 0)] = True
                assert torch.equal(mine[tokens], want[tokens]) and not mine[~tokens].any(), (name, rank)
                assert bucket.area == int(want[tokens].sum()), (name, rank, bucket.area)
                seen += mine
                every += own
            assert torch.equal(seen, want), name
        done += 1
    return done


if __name__ == "__main__":
    masks, few = exact(), short()
    said = refusals()
    of_a_plan()
    print(f"{masks} masks are their slices, {few} are as few as they can be, {said} refusals have words")
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MASKLOOM_MAGI", "")
    if folder:
        print(f"MagiAttention divides and counts {beside_magi(folder)} masks as the plan says")
    else:
        print("left out: MagiAttention's own dispatch, whose folder MASKLOOM_MAGI names")
