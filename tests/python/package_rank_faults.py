"""Faults over several ranks on gloo: every kind of wrong input on one rank, and one rank that fails on the way. Every
rank raises the same code, nobody waits, and the next call is right.

usage: package_rank_faults.py [WORLD,...]     the numbers of processes; 2,3 if none are given
"""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
import time

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.nn.attention import flex_attention as flex
except ImportError as why:
    print(f"skipped: {why}")
    sys.exit(77)

from package import KEEPS_LENGTHS, NEWEST, VERSION, found
from package_ranks import Formula, check, near, reference

TOKENS = 96 if KEEPS_LENGTHS else 160  # fewer than 128 are one block of PyTorch 2.5, of one rank
#: Seconds after which a wait is a fault of ours: the group's own limit is longer.
SOON = 20

create_block_mask = flex.create_block_mask
if VERSION < NEWEST:
    create_block_mask = __import__("maskloom").create_block_mask


def made(mod, q_len=TOKENS, kv_len=TOKENS, heads=None, block=16):
    return create_block_mask(mod, None, heads, q_len, kv_len, device="cpu", BLOCK_SIZE=block)


def causal(b, h, q, k):
    return q >= k


count = 0


def raises(code, work, words=""):
    """Every rank raises this code, soon."""
    global count
    from maskloom.distributed.errors import PlanError

    began, got = time.monotonic(), None
    try:
        work()
    except PlanError as why:
        got = why
    seen = [None] * dist.get_world_size()
    dist.all_gather_object(seen, None if got is None else (got.code, str(got)))
    assert [one and one[0] for one in seen] == [code] * len(seen), f"{code}: {seen}"
    assert all(words in text for _, text in seen), f"{words}: {seen}"
    assert "\n  " in str(got) and time.monotonic() - began < SOON, f"{code} took {time.monotonic() - began:.1f} s"
    count += 1


class Places:
    """A plan of a causal mask, its inputs on this rank, and which rank is the odd one."""

    def __init__(self, rank, world, mod=causal):
        import maskloom.distributed as md

        self.md, self.rank, self.world, self.odd = md, rank, world, rank == world - 1
        self.mask = made(mod)
        self.plan = md.plan_context_parallel(self.mask)
        gen = torch.Generator().manual_seed(3)
        self.whole = [torch.randn(1, 2, TOKENS, 8, generator=gen, dtype=torch.float64) for _ in range(3)]
        self.qkv = [self.plan.shard(x) for x in self.whole]

    def call(self, *given, **more):
        return self.plan.flex_attention(*(given or self.qkv), **more)

    def pick(self, wrong, right):
        return wrong if self.odd else right

    def works(self):
        """The plan is whole after all: outputs and gradients as one process has them."""
        leaves = [x.clone().requires_grad_() for x in self.qkv]
        out = self.plan.unshard(self.call(*leaves))
        wholes = [x.clone().requires_grad_() for x in self.whole]
        want, _ = reference(*wholes, self.mask.mask_mod, None, None)
        near(out, want, "after a fault")
        ones = torch.ones_like(want)
        for got, expected in zip(torch.autograd.grad(out, leaves, ones), torch.autograd.grad(want, wholes, ones)):
            near(got, self.plan.shard(expected), "gradient after a fault")


def shapes_and_places(at):
    """One rank's tensors are others: in length, heads, widths, dtype, device, kind."""
    q, k, v = at.qkv
    one = lambda wrong, right: at.pick(wrong, right)
    raises("plan-local-length", lambda: at.call(one(q[:, :, :-1], q), k, v), "tokens")
    raises("plan-local-length", lambda: at.call(q, one(torch.cat([k, k], 2), k), v))
    raises("plan-heads", lambda: at.call(q, one(k[..., :-1], k), v), "head_dim")
    raises("plan-heads", lambda: at.call(q, one(k.repeat(1, 2, 1, 1), k), one(v.repeat(1, 2, 1, 1), v)))
    raises("plan-heads", lambda: at.call(q, one(k[:, :0], k), one(v[:, :0], v)))
    raises("plan-calls-differ", lambda: at.call(*(x.repeat(one(2, 1), 1, 1, 1) for x in (q, k, v))))
    raises("plan-calls-differ", lambda: at.call(q, k, one(v[..., :-2], v)), "value dim")
    raises("plan-calls-differ", lambda: at.call(*(x.to(one(torch.float32, x.dtype)) for x in (q, k, v))))
    raises("plan-device", lambda: at.call(q, one(k.float(), k), v))
    raises("plan-device", lambda: at.call(q.to(one("meta", "cpu")), k, v), "meta")
    raises("plan-device", lambda: at.call(*(x.to(one("meta", "cpu")) for x in (q, k, v))), "strided")
    raises("plan-device", lambda: at.call(one(q.to_sparse(), q), k, v), "sparse")
    raises("plan-device", lambda: at.call(one(None, q), k, v), "None")
    raises("plan-device", lambda: at.call(q, one([1.0], k), v), "list")
    raises("plan-shape", lambda: at.call(q, one(k[0], k), v))
    raises("plan-calls-differ", lambda: at.call(scale=at.pick(0.5, 0.25)), "scale")
    raises("plan-calls-differ", lambda: at.call(deterministic=at.odd))
    raises("plan-calls-differ", lambda: at.call(score_mod=at.pick(lambda s, b, h, i, j: s * 2, None)), "score mod")
    raises("plan-calls-differ", lambda: at.call(q.clone().requires_grad_(at.odd), k, v), "gradients")
    raises("plan-mask", lambda: at.call(mask=at.pick("none", None)))
    raises("plan-mask", lambda: at.call(mask=at.pick(7, None)))
    raises("plan-local-length", lambda: at.plan.unshard(one(q[:, :, :-1], q)))
    raises("plan-calls-differ", lambda: at.plan.unshard(q.to(one(torch.float32, q.dtype))), "unshard")
    raises("plan-calls-differ", lambda: at.plan.unshard(one(q[:, :1], q)))
    raises("plan-call", lambda: at.plan.unshard(q, dim=one(7, 2)))
    raises("plan-of", lambda: at.plan.unshard(q, of="v"))
    raises("plan-call", lambda: at.plan.unshard(one(None, q)))
    raises("plan-device", lambda: at.plan.unshard(q.to(one("meta", "cpu"))))
    raises("plan-of", lambda: at.plan.shard(at.whole[0], of="both"))
    raises("plan-length", lambda: at.plan.shard(at.whole[0][:, :, :-1]))
    for x, dim in ((None, 2), (at.whole[0].tolist(), 2), (at.whole[0], 7), (at.whole[0], 2.0)):
        raises("plan-shape", lambda x=x, dim=dim: at.plan.shard(x, dim), "dim is")
    raises("plan-dtype", lambda: at.call(*(one(x.int(), x) for x in (q, k, v))))
    raises("scale", lambda: at.call(scale=one("x", 0.5)))
    raises("scale", lambda: at.call(scale=torch.tensor(one(torch.nan, torch.nan))), "finite")
    raises("scale", lambda: at.call(scale=torch.tensor(0.5, requires_grad=True)), "gradient")
    if VERSION >= (2, 7):
        from torch.distributed.tensor import DTensor, Shard

        mesh = dist.device_mesh.init_device_mesh("cpu", (at.world,))
        there = lambda x: DTensor.from_local(x, mesh, [Shard(2)], run_check=False)
        raises("plan-device", lambda: at.call(one(there(q), q), k, v), "DTensor")
    at.works()


def planning(at):
    """One rank plans something else, or what cannot be planned."""
    md, one = at.md, at.pick
    plan = lambda *given, **more: lambda: md.plan_context_parallel(*given, **more)
    raises("plan-calls-differ", plan(one(made(causal, TOKENS - 16, TOKENS - 16), at.mask)))
    raises("plan-calls-differ", plan(at.mask, layers=one({"mask": 2}, None)))
    raises("plan-no-mask", plan(one(None, at.mask)))
    raises("plan-no-mask", plan(one([], at.mask)))
    raises("plan-no-mask", plan(one([at.mask, None], [at.mask, at.mask])), "is None")
    raises("plan-no-mask", plan(one({"a": torch.ones(2)}, {"a": at.mask})))
    raises("plan-dtype", plan(at.mask, dtype=one(torch.int8, torch.bfloat16)))
    raises("plan-layers", plan(at.mask, layers=one({"none": 1}, None)))
    raises("plan-layers", plan(at.mask, layers=one(5, None)), "int")
    raises("parallel-bandwidth", plan(at.mask, bandwidth=one(object(), 100.0)))
    raises("parallel-bandwidth", plan(at.mask, bandwidth=one(torch.tensor(3.0), True)))
    raises("parallel-card", plan(at.mask, card=one(3, None)), "int")
    raises("plan-no-mask", plan(one({1: at.mask}, {"a": at.mask})), "string")
    for group in (3, "gloo", dist.device_mesh.init_device_mesh("cpu", (at.world,))):
        raises("plan-group", plan(at.mask, group), "get_group")
    # the same blocks, other cells: another table, another number
    for wrong, right in ((torch.zeros(4), torch.ones(4)), (3, 4)):
        edge = one(wrong, right)
        limit = edge if isinstance(edge, int) else 4 + edge.sum().int()
        mod = lambda b, h, q, k, limit=limit: (q >= k) & ((q % 16 != limit) | (q == k))
        raises("plan-calls-differ", plan(made(mod)), "what the masks read")
    # the planner's own words
    raises("parallel-card", plan(at.mask, card="Abacus"))
    raises("plan-group", lambda: md.ContextParallel(dict(at.plan._plan, world_size=9), {"mask": at.mask}, None), "9")
    raises("plan-masks", lambda: md.ContextParallel(at.plan._plan, {"other": at.mask}, None))
    # a rank that is not in the group is told so, and the group does not wait for it
    if at.world > 2:
        group = dist.new_group([0, 1])
        if at.odd:
            try:
                md.plan_context_parallel(at.mask, group)
                raise AssertionError("planned for a group of others")
            except md.attention.PlanError as why:
                assert why.code == "plan-group", why
        else:
            two = md.plan_context_parallel(at.mask, group)
            assert two.world_size == 2
        dist.barrier()
    at.works()


def masks_of_numpy(at):
    """An array that a mask reads is read by each rank, and watched as a tensor is."""
    import maskloom
    import numpy

    document = numpy.arange(TOKENS) // 20
    same = torch.from_numpy(document.copy())
    mod = lambda b, h, q, k: (document[q] == document[k]) & (q >= k)
    mask = maskloom.create_block_mask(mod, None, None, TOKENS, TOKENS, device="cpu", BLOCK_SIZE=16)
    plan = at.md.plan_context_parallel(mask)
    qkv = [plan.shard(x) for x in at.whole]
    want, _ = reference(*at.whole, lambda b, h, q, k: (same[q] == same[k]) & (q >= k), None, None)
    near(plan.unshard(plan.flex_attention(*qkv)), want, "a mask of NumPy")
    if at.odd:
        document[3] = 7
    raises("plan-mask-changed", lambda: plan.flex_attention(*qkv), "the array document")
    raises("plan-calls-differ", lambda: at.md.plan_context_parallel(mask), "what the masks read")


def masks_that_change(at):
    """Written to, bound to something else, behind other functions; what only has such a name is not watched."""
    table = torch.ones(TOKENS, dtype=torch.bool)

    def through(k):
        return kept[k]

    kept = torch.ones(TOKENS, dtype=torch.bool)
    width = 200
    mods = {
        "written": lambda b, h, q, k: (q >= k) & table[k],
        "rebound": lambda b, h, q, k: (q >= k) & through(k),
        "number": lambda b, h, q, k: (q >= k) & (q - k < width),
    }
    for name, mod in mods.items():
        mask = made(mod)
        plan = at.md.plan_context_parallel(mask)
        qkv = [plan.shard(x) for x in at.whole]
        plan.flex_attention(*qkv)
        if at.odd:
            if name == "written":
                table[3] = False
            elif name == "rebound":
                kept = torch.ones(TOKENS, dtype=torch.bool)
            else:
                width = 30
        words = {"written": "table", "rebound": "kept", "number": "width"}[name]
        raises("plan-mask-changed", lambda plan=plan, qkv=qkv: plan.flex_attention(*qkv), words)

    # of PyTorch's and_masks, and of an object that is called
    class Held:
        def __init__(self):
            self.own = torch.ones(TOKENS, dtype=torch.bool)

        def __call__(self, b, h, q, k):
            return (q >= k) & self.own[k]

    inner, held = torch.ones(TOKENS, dtype=torch.bool), Held()
    for mod, tensor, word in (
        (flex.and_masks(causal, lambda b, h, q, k: inner[k]), inner, "inner"),
        (lambda b, h, q, k: held(b, h, q, k), held.own, "own"),
    ):
        plan = at.md.plan_context_parallel(made(mod))
        qkv = [plan.shard(x) for x in at.whole]
        plan.flex_attention(*qkv)
        if at.odd:
            tensor[5] = False
        raises("plan-mask-changed", lambda plan=plan, qkv=qkv: plan.flex_attention(*qkv), word)
    lists = made(causal)
    plan = at.md.plan_context_parallel(lists)
    qkv = [plan.shard(x) for x in at.whole]
    if at.odd:
        lists.kv_num_blocks[0, 0, 0] = 0
    raises("plan-mask-changed", lambda: plan.flex_attention(*qkv), "block lists")
    # a global tensor named as an attribute that the mod reads is not what the mod reads
    scope = {"abs": torch.ones(2), "torch": torch}
    exec("def mod(b, h, q, k):\n    return torch.abs(q - k) < 40", scope)
    plan = at.md.plan_context_parallel(made(scope["mod"]))
    scope["abs"] += 1
    plan.flex_attention(*(plan.shard(x) for x in at.whole))


def a_rank_that_fails(at, kernels):
    """An exception of one rank in packing, in preparing, in computing: with and without gradients."""
    from maskloom.distributed import attention, exchange

    class Odd(Exception):
        pass

    def broken(*given, **more):
        raise Odd("out of memory, say")

    plan = at.plan
    plan._kernels = kernels
    computing = (attention, "attend") if kernels is None else (type(kernels), "forward")
    places = {"packing": (exchange.Exchange, "packed"), "computing": computing}
    if kernels is not None:
        places["preparing"] = (type(kernels), "ready")
    for learns in (False, True):
        for what, (owner, name) in places.items():
            right = getattr(owner, name)
            leaves = [x.clone().requires_grad_(learns) for x in at.qkv]

            def step(learns=learns, leaves=leaves, owner=owner, name=name, right=right):
                if at.odd:
                    setattr(owner, name, broken)
                try:
                    out = at.call(*leaves)
                finally:
                    setattr(owner, name, right)
                if learns:
                    # the others learn of it before they send gradients
                    torch.autograd.grad(out.sum(), leaves)

            if what == "computing" and not learns:
                # nobody needs anything of that rank any more: it raises alone, and the next call is right
                try:
                    step()
                    assert not at.odd
                except Odd:
                    assert at.odd
            else:
                raises("plan-rank-failed", step, "Odd: out of memory, say")
            at.works()
    # twice in a row, and a second backward pass
    leaves = [x.clone().requires_grad_() for x in at.qkv]
    out = at.call(*leaves)
    if kernels is not None:
        first, second = (torch.autograd.grad(out.sum(), leaves, retain_graph=True) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, second))
    else:
        torch.autograd.grad(out.sum(), leaves)
    try:
        torch.autograd.grad(at.call(*leaves).sum(), leaves, create_graph=True)
        raise AssertionError("a gradient of a gradient")
    except __import__("maskloom").ArgumentError as why:
        assert why.code == "double-backward", why
    plan._kernels = None


def two_plans_at_once(at, kernels):
    """Calls of two plans between each other, gradients in both, recomputed too: as each alone; the same bits twice."""
    from torch.utils.checkpoint import checkpoint

    near_mask = made(lambda b, h, q, k: (q >= k) & (q - k < 9))
    other = at.md.plan_context_parallel(near_mask)
    at.plan._kernels = other._kernels = kernels
    runs = []
    for recomputed in (False, False, True):
        leaves = [x.clone().requires_grad_() for x in at.whole]
        ways = []
        for plan in (at.plan, other, at.plan):
            call = lambda *qkv, plan=plan: plan.flex_attention(*qkv, deterministic=True)
            given = [plan.shard(x) for x in leaves]
            out = checkpoint(call, *given, use_reentrant=False) if recomputed else call(*given)
            ways.append(plan.unshard(out))
        loss = ways[0].sum() + (ways[1] * ways[2]).sum()
        runs.append((*ways, *torch.autograd.grad(loss, leaves)))
    for again in runs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(runs[0], again))
    wants = [reference(*at.whole, mask.mask_mod, None, None)[0] for mask in (at.mask, near_mask)]
    for got, want in zip(runs[0], (*wants, wants[0])):
        near(got, want, "two plans")
    at.plan._kernels = None


def edges(rank, world):
    """Rows that keep nothing, ranks without work, other keys than queries, masks that differ by head, one token."""
    import maskloom.distributed as md

    nothing = lambda b, h, q, k: (q < 0) & (k >= 0)
    some = lambda b, h, q, k: (q % 5 == 2) & (k % 3 == 0)
    heads = lambda b, h, q, k: (q >= k) & ((k + h) % 2 == 0)
    cases = [
        ("nothing is kept", nothing, False, (40, 40)),
        ("empty rows", some, False, (45, 45)),
        ("fewer blocks than ranks", causal, False, (9, 9)),
        ("one token", causal, False, (1, 1)),
        ("one query", lambda b, h, q, k: k % 2 == 0, False, (1, 77)),
        ("one key", lambda b, h, q, k: q % 2 == 0, False, (77, 1)),
        ("more keys", some, False, (23, 90)),
        ("heads differ", heads, True, (50, 50)),
        ("heads differ, nothing in some", lambda b, h, q, k: (h == 1) & (q >= k), True, (50, 34)),
    ]
    for number, (name, mod, differs, lengths) in enumerate(cases):
        plan = check(name, rank, mod, differs, lengths, 8, number)
        if differs:
            most = plan.block_masks()[0].kv_num_blocks.shape[1]
            assert most == 1 or plan.notes, "masks that differ by head are said"
    if KEEPS_LENGTHS:
        empty = md.plan_context_parallel(made(causal, 9, 9, block=8))
        assert 0 in empty.lengths() or world == 2, empty.lengths()
    return len(cases)


def work(rank, world, port_file):
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=f"file://{port_file}", rank=rank, world_size=world, timeout=limit)
    at = Places(rank, world)
    shapes_and_places(at)
    planning(at)
    masks_that_change(at)
    masks_of_numpy(at)
    for kernels in (None, Formula()):
        a_rank_that_fails(at, kernels)
        two_plans_at_once(at, kernels)
    cases = edges(rank, world)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"{world} processes: {count} faults were raised by every rank alike, {cases} edges are right", flush=True)
    # one in five times gloo's threads abort an interpreter that ends by itself (PyTorch 2.15)
    os._exit(0)


def dies(rank, world, port_file, at_gradients):
    """A process that ends on its way: the others get PyTorch's own error long before its timeout."""
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=f"file://{port_file}", rank=rank, world_size=world, timeout=limit)
    at = Places(rank, world)
    began = time.monotonic()
    try:
        if rank == 1 and not at_gradients:
            os._exit(9)
        out = at.call(*(t.clone().requires_grad_() for t in at.qkv))
        if rank == 1:
            out.register_hook(lambda _: os._exit(9))
        out.sum().backward()
    except RuntimeError as why:
        is_torchs = "gloo" in str(why) or "peer" in str(why)
        os._exit(0 if is_torchs and time.monotonic() - began < 30 else 2)
    os._exit(3)


def a_rank_that_dies():
    for at_gradients in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            start = mp.get_context("fork").Process
            ranks = [start(target=dies, args=(r, 3, f"{folder}/store", at_gradients), daemon=True) for r in range(3)]
            for rank in ranks:
                rank.start()
            for rank in ranks:
                rank.join(90)
            assert [rank.exitcode for rank in ranks] == [0, 9, 0], [rank.exitcode for rank in ranks]
    print("a rank that dies, forward and backward, is an error of the others")


if __name__ == "__main__":
    found()
    a_rank_that_dies()
    worlds = [int(n) for n in sys.argv[1].split(",")] if len(sys.argv) > 1 else [2, 3]
    for world in worlds:
        with tempfile.TemporaryDirectory() as folder:
            mp.start_processes(work, args=(world, f"{folder}/store"), nprocs=world, start_method="fork")
