"""Context parallelism on gloo compared with one process: outputs, logsumexp and gradients, wrong input, PyTorch's
shard.

usage: package_ranks.py [WORLD,...]     the numbers of processes; 2,3,4 if none are given
Masks: of the pattern library, and random ones, over odd lengths. Float64: what differs is an error, not rounding.
"""

from __future__ import annotations

import datetime
import importlib.util
import inspect
import itertools
import math
import os
import pathlib
import random
import sys
import tempfile

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.nn.attention import flex_attention as flex
except ImportError as why:
    print(f"skipped: {why}")
    sys.exit(77)

from package import KEEPS_LENGTHS, NEWEST, VERSION, found, theirs

create_block_mask = flex.create_block_mask
if VERSION < NEWEST:  # some former ones cannot make all of these masks, and 2.5 keeps no lengths
    create_block_mask = __import__("maskloom").create_block_mask

PATTERNS = pathlib.Path(__file__).parent.parent.parent / "assets" / "patterns"
GALLERY = [
    "sliding_window",
    "causal",
    "prefix_lm",
    "dilated_window",
    "strided",
    "attention_sinks",
    "window_sinks",
    "local_window",
    "chunked_causal",
    "block_causal",
    "global_window",
    "natten_2d",
    "axial",
    "bigbird",
    "block_diffusion",
    "alternate_heads",
    "text_padding",
    "radial",
    "shifted_windows",
    "sta_2d",
    "natten_3d",
    "document_mask",
    "joint_blocks",
    "vision_cross_attention",
    "packed_documents",
    "tree_decoding",
    "svg_spatial",
    "svg_temporal",
    "speculative_training",
    "shared_prefix",
]


def pattern(name: str):
    """A mask of the library with small parameters; None where its factory wants tensors."""
    spec = importlib.util.spec_from_file_location(name, PATTERNS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    factory = getattr(module, name)
    args = {}
    for key, parameter in inspect.signature(factory).parameters.items():
        if parameter.default is inspect.Parameter.empty:
            return None
        small = (
            isinstance(parameter.default, int) and not isinstance(parameter.default, bool) and parameter.default > 16
        )
        args[key] = 9 if small else parameter.default
    try:
        made = factory(**args)
    except AssertionError:
        return None  # these sizes do not fit
    return made if list(inspect.signature(made).parameters)[0] == "b" else None


def random_mask(seed: int, q_len: int, kv_len: int):
    """A random combination of causal, window, documents, sinks, a table of blocks, heads."""
    draw = random.Random(seed)
    gen = torch.Generator().manual_seed(seed)
    window, sink, every = draw.randint(1, 40), draw.randint(0, 6), draw.randint(2, 5)
    doc_q = torch.randint(0, 4, (q_len,), generator=gen).sort().values
    doc_kv = torch.randint(0, 4, (kv_len,), generator=gen).sort().values
    table = torch.rand(-(-q_len // 8), -(-kv_len // 8), generator=gen) < 0.4
    kinds = draw.sample(["causal", "window", "documents", "table", "heads", "stripes"], draw.randint(1, 3))

    def mask_mod(b, h, q_idx, kv_idx):
        kept = kv_idx >= 0
        if "causal" in kinds:
            kept = kept & (q_idx >= kv_idx)
        if "window" in kinds:
            kept = kept & ((q_idx - kv_idx).abs() < window)
        if "documents" in kinds:
            kept = kept & (doc_q[q_idx] == doc_kv[kv_idx])
        if "table" in kinds:
            kept = kept & table[q_idx // 8, kv_idx // 8]
        if "heads" in kinds:
            kept = kept & ((kv_idx + h) % every != 0)
        if "stripes" in kinds:
            kept = kept & (q_idx % every != 1)
        return kept | ((kv_idx < sink) & (q_idx % every != 1))

    return mask_mod, "heads" in kinds


def reference(q, k, v, mask_mod, score_mod, scale):
    """Attention in one process: no blocks, no stages."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = torch.einsum("bhqd,bhkd->bhqk", q, k) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    at = [torch.arange(n).view([-1 if d == i else 1 for i in range(4)]) for d, n in enumerate(s.shape)]
    if score_mod is not None:
        s = score_mod(s, *at)
    kept = mask_mod(*at).expand(s.shape)
    s = s.masked_fill(~kept, -math.inf)
    empty = ~kept.any(-1, keepdim=True)
    lse = torch.logsumexp(s, -1)
    p = torch.exp(s - lse.unsqueeze(-1).masked_fill(empty, 0.0))
    return p @ v, lse


def near(got, want, what):
    both = torch.stack([got.detach(), want.detach()]).nan_to_num(neginf=-1e30)
    worst = (both[0] - both[1]).abs().max().item() if got.numel() else 0.0
    assert got.shape == want.shape and worst < 1e-11, (
        f"{what}: {tuple(got.shape)} {tuple(want.shape)} differ by {worst}"
    )


class Formula:
    """What the kernels of a GPU compute of a stage, in float64: the backward pass takes the whole's logsumexp."""

    def ready(self, stage, score_mod):
        return stage, score_mod

    def forward(self, of, q, k, v, scale, learns):
        from maskloom.distributed.local import attend

        with torch.no_grad():
            return attend(q, k, v, *of, scale)

    def backward(self, of, saved, lse, d_out, d_lse, scale):
        from maskloom.distributed.local import _over

        stage, score_mod = of
        q, k, v, out = saved
        group = q.shape[1] // k.shape[1]
        with torch.enable_grad():
            q, k = (x.detach().requires_grad_() for x in (q, k))
            s = q @ k.repeat_interleave(group, 1).transpose(-1, -2)
            s = s * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
            if score_mod is not None:
                s = _over(score_mod, *q.shape[:2], stage.q_positions, stage.kv_positions, s)
        weights = torch.exp(s - lse.unsqueeze(-1)).masked_fill(~stage.dense(*q.shape[:2]), 0.0)
        delta = (d_out * out).sum(-1) - (0 if d_lse is None else d_lse)
        of_s = weights * (d_out @ v.repeat_interleave(group, 1).transpose(-1, -2) - delta.unsqueeze(-1))
        dq, dk = torch.autograd.grad(s, (q, k), of_s.detach())
        dv = (weights.detach().transpose(-1, -2) @ d_out).unflatten(1, (k.shape[1], group)).sum(2)
        return dq, dk, dv

    def merge(self, out, lse, part, part_lse, rows):
        rows = torch.arange(out.shape[2]) if rows is None else rows
        before = lse[:, :, rows]
        both = torch.logaddexp(before, part_lse)
        mine, other = (torch.exp(x - both).nan_to_num(0.0).unsqueeze(-1) for x in (before, part_lse))
        out[:, :, rows] = mine * out[:, :, rows] + other * part
        lse[:, :, rows] = both


def check(name, rank, mask_mod, heads_differ, lengths, block, seed, score_mod=None):
    import maskloom.distributed as md

    draw = random.Random(seed)
    q_len, kv_len = lengths
    B, Hkv, D, Dv = draw.choice([1, 2]), draw.choice([1, 2]), 8, draw.choice([8, 5])
    H = Hkv * draw.choice([1, 2])
    block_mask = create_block_mask(
        mask_mod, None, H if heads_differ else None, q_len, kv_len, device="cpu", BLOCK_SIZE=block
    )
    plan = md.plan_context_parallel(block_mask)
    check_local(plan, name)
    gen = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(*shape, generator=gen, dtype=torch.float64).requires_grad_()
    q, k, v = make(B, H, q_len, D), make(B, Hkv, kv_len, D), make(B, Hkv, kv_len, Dv)
    grad, grad_lse = (
        torch.randn(B, H, q_len, Dv, generator=gen, dtype=torch.float64),
        torch.randn(B, H, q_len, generator=gen, dtype=torch.float64),
    )
    want, want_lse = reference(q, k, v, mask_mod, score_mod, None)
    finite = want_lse.detach() != -math.inf
    wanted = torch.autograd.grad((want, want_lse.masked_fill(~finite, 0.0)), (q, k, v), (grad, grad_lse * finite))
    locals_ = [plan.shard(x, of=of) for x, of in ((q, "q"), (k, "kv"), (v, "kv"))]
    out, lse = plan.flex_attention(*locals_, score_mod=score_mod, return_lse=True)
    whole, whole_lse = plan.unshard(out), plan.unshard(lse)
    near(whole, want, f"{name}: output")
    near(whole_lse, want_lse, f"{name}: lse")
    masked = whole_lse.masked_fill(~finite, 0.0)
    found = torch.autograd.grad((whole, masked), locals_, (grad, grad_lse * finite))
    for what, got, expected, of in zip("qkv", found, wanted, ("q", "kv", "kv")):
        near(got, plan.shard(expected, of=of), f"{name}: gradient of {what}")
    # the same by kernels that take the whole's logsumexp, as on GPUs
    plan._kernels = Formula()
    again, again_lse = plan.flex_attention(*locals_, score_mod=score_mod, return_lse=True)
    near(again, out, f"{name}: output by stages")
    near(again_lse, lse, f"{name}: lse by stages")
    local = plan.shard(finite)
    seeds = (plan.shard(grad), plan.shard(grad_lse) * local)
    staged = torch.autograd.grad((again, again_lse.masked_fill(~local, 0.0)), locals_, seeds)
    for what, got, expected in zip("qkv", staged, found):
        near(got, expected, f"{name}: gradient of {what} by stages")
    return plan


def kinds_of_blocks(mask):
    """For each mask, row and key block: 0 skipped, 1 partial, 2 full."""
    rows, columns = (-(-n // size) for n, size in zip(mask.seq_lengths, mask.BLOCK_SIZE))
    out = torch.zeros(*mask.kv_num_blocks.shape[:2], rows, columns, dtype=torch.int8)
    pairs = ((mask.kv_num_blocks, mask.kv_indices, 1), (mask.full_kv_num_blocks, mask.full_kv_indices, 2))
    for counts, indices, kind in pairs:
        for at in itertools.product(*(range(n) for n in counts.shape)):
            out[at][indices[at][: counts[at]].long()] = kind
    return out


def check_local(plan, name):
    """A rank's BlockMasks are those that PyTorch makes of its local mods."""
    (mask,) = plan._masks
    stages, _ = plan._made(mask, torch.device("cpu"))
    for stage in stages:
        lengths = len(stage.q_positions), len(stage.kv_positions)
        if 0 in lengths:
            continue
        if not KEEPS_LENGTHS:
            stage.block_mask()
            continue
        size = plan.block_size
        local = stage.at(stage.mask_mod)
        want = theirs(flex.create_block_mask, local, *stage.distinct, *lengths, device="cpu", BLOCK_SIZE=size)
        got = stage.block_mask()
        if want is None:
            continue
        assert got.seq_lengths == want.seq_lengths, name
        assert torch.equal(kinds_of_blocks(got), kinds_of_blocks(want)), f"{name}: local blocks"


def raises(code, work):
    """The code that every rank raises."""
    from maskloom.distributed.errors import PlanError

    try:
        work()
    except PlanError as why:
        seen = [None] * dist.get_world_size()
        dist.all_gather_object(seen, why.code)
        assert seen == [code] * len(seen), f"{code}: {seen}"
        assert "\n  " in str(why)
        return
    raise AssertionError(f"{code} was not raised")


def refusals(rank, world):
    import maskloom.distributed as md

    tokens = 96 if KEEPS_LENGTHS else 160  # fewer than 128 are one block of PyTorch 2.5, of one rank
    table = torch.ones(tokens, dtype=torch.bool)
    mod = lambda b, h, q, k: (q >= k) & table[k]
    mask = create_block_mask(mod, None, None, tokens, tokens, device="cpu", BLOCK_SIZE=16)
    other = create_block_mask(mod, None, None, tokens - 16, tokens - 16, device="cpu", BLOCK_SIZE=16)
    plan = md.plan_context_parallel(mask)
    x = torch.randn(1, 2, tokens, 8)
    q = plan.shard(x)
    run = lambda *args, **kw: lambda: plan.flex_attention(*args, **kw)
    run(q, q, q)()
    raises("plan-length", lambda: plan.shard(x[:, :, :-1]))
    last = rank == world - 1
    short = q[:, :, :-1] if last else q
    raises("plan-local-length", run(short, q, q))
    raises("plan-local-length", lambda: plan.unshard(short))
    raises("plan-device", run(q, q.double() if last else q, q))
    raises("plan-calls-differ", run(*([q.double()] * 3 if last else [q] * 3)))
    raises("plan-mask", run(q, q, q, mask=other))
    raises("plan-heads", run(q, q.repeat(1, 2, 1, 1), q.repeat(1, 2, 1, 1)))
    leaf = q.clone().requires_grad_()
    try:
        torch.autograd.grad(plan.flex_attention(leaf, q, q).sum(), leaf, create_graph=True)
        raise AssertionError("a gradient of a gradient")
    except __import__("maskloom").ArgumentError as why:
        assert why.code == "double-backward"
    learned = torch.zeros(tokens, requires_grad=last)
    raises("plan-score-gradient", run(q, q, q, score_mod=lambda s, b, h, i, j: s + learned[i]))
    raises("plan-calls-differ", lambda: md.plan_context_parallel(other if last else mask))
    raises("plan-extents", lambda: md.plan_context_parallel({"a": mask, "b": other}))
    raises("plan-no-mask", lambda: md.plan_context_parallel([]))
    raises("plan-layers", lambda: md.plan_context_parallel(mask, layers={"none": 2}))
    # the planner's own words, on every rank
    raises("plan-number", lambda: md.plan_context_parallel(mask, heads="16"))
    raises("plan-number", lambda: md.plan_context_parallel(mask, layers={"mask": 0}))
    raises("parallel-bandwidth", lambda: md.plan_context_parallel(mask, bandwidth="214"))
    raises("parallel-bandwidth", lambda: md.plan_context_parallel(mask, bandwidth=-1))
    raises("parallel-card", lambda: md.plan_context_parallel(mask, card="Abacus"))
    raises("parallel-bandwidth", lambda: md.plan_context_parallel(mask, bandwidth=0.0))
    wrong = dict(plan._plan, world_size=world + 1)
    raises("plan-group", lambda: md.ContextParallel(wrong, {"mask": mask}, None))
    raises("plan-masks", lambda: md.ContextParallel(plan._plan, {"other": mask}, None))
    if last:
        table[3] = False
    raises("plan-mask-changed", run(q, q, q))
    # behind another function too
    inner = torch.ones(tokens, dtype=torch.bool)
    keep = lambda k: inner[k]
    nested = create_block_mask(
        lambda b, h, q, k: (q >= k) & keep(k), None, None, tokens, tokens, device="cpu", BLOCK_SIZE=16
    )
    plan = md.plan_context_parallel(nested)
    q = plan.shard(x)
    run(q, q, q)()
    if last:
        inner[3] = False
    raises("plan-mask-changed", run(q, q, q))


def several(rank, world):
    """Two kinds of layers under one division, the same bits in two runs, scale and half precision."""
    import maskloom.distributed as md

    causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 250, 250, device="cpu", BLOCK_SIZE=32)
    window = create_block_mask(
        lambda b, h, q, k: (q >= k) & (q - k < 30), None, None, 250, 250, device="cpu", BLOCK_SIZE=32
    )
    plan = md.plan_context_parallel({"global": causal, "local": window}, layers={"global": 1, "local": 5})
    gen = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(1, 4, 250, 16, generator=gen) for _ in range(3))
    for name, mask in (("global", causal), ("local", window)):
        runs = []
        for _ in range(2):
            leaves = [plan.shard(x).requires_grad_() for x in (q, k, v)]
            out = plan.flex_attention(*leaves, mask=mask, scale=0.3, deterministic=True)
            runs.append((out, *torch.autograd.grad(out.square().sum(), leaves)))
        assert all(torch.equal(a, b) for a, b in zip(*runs)), name
        out = plan.flex_attention(*leaves, mask=mask, scale=0.3, deterministic=True)
        loss = out.square().sum()
        kept = torch.autograd.grad(loss, leaves, retain_graph=True)
        assert all(torch.equal(a, b) for a, b in zip(kept, torch.autograd.grad(loss, leaves))), "a second pass"
        want, _ = reference(q.double(), k.double(), v.double(), mask.mask_mod, None, 0.3)
        whole = plan.unshard(runs[0][0])
        assert (whole.double() - want).abs().max() < 1e-5, name
        low = plan.flex_attention(*(plan.shard(x).bfloat16() for x in (q, k, v)), mask=name, scale=0.3)
        assert low.dtype == torch.bfloat16 and (plan.unshard(low).double() - want).abs().max() < 0.05
    for local in plan.block_masks("local"):
        assert local.BLOCK_SIZE == (32, 32)


def balancer(rank, world):
    """PyTorch's own sharding takes the plan's order."""
    try:
        from maskloom.distributed import PlanBalancer
        from torch.distributed.tensor.experimental._context_parallel import _attention as cp

        shard = cp._context_parallel_shard
    except (ImportError, AttributeError) as why:
        print(f"PyTorch without balancers: {why}")
        return
    import maskloom.distributed as md

    tokens = 32 * world * 3
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, tokens, tokens, device="cpu", BLOCK_SIZE=32)
    plan = md.plan_context_parallel(mask)
    mesh = dist.device_mesh.init_device_mesh("cpu", (world,))
    x = torch.arange(tokens, dtype=torch.float32).view(1, 1, tokens, 1)
    (local,) = shard(mesh, [x.clone()], [2], load_balancer=PlanBalancer(plan))
    assert torch.equal(local, plan.shard(x)), "PyTorch's shard is the plan's"
    uneven = create_block_mask(lambda b, h, q, k: q >= k, None, None, 45, 45, device="cpu", BLOCK_SIZE=32)
    raises("plan-uneven", lambda: PlanBalancer(md.plan_context_parallel(uneven)))


def work(rank, world, port_file, cases):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{port_file}", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=60)
    )
    done = 0
    for name in GALLERY:
        made = pattern(name)
        if made is None:
            continue
        length = 61 + 2 * done
        differs = name == "alternate_heads"
        try:
            check(name, rank, made, differs, (length, length), 16, done)
        except IndexError:
            continue  # a table of a fixed length
        done += 1
        if done == 20:
            break
    assert done == 20, f"only {done} masks of the library were taken"
    for seed in range(cases):
        draw = random.Random(seed)
        q_len = draw.randint(1, 90)
        kv_len = draw.randint(1, 90) if seed % 3 == 0 else q_len
        mod, differs = random_mask(seed, q_len, kv_len)
        score = None if seed % 4 else (lambda s, b, h, q, k: torch.tanh(s / 3) * 3 + (q - k) * 0.01)
        check(
            f"random {seed}", rank, mod, differs, (q_len, kv_len), draw.choice([8, 16, (8, 16), (16, 8)]), seed, score
        )
    several(rank, world)
    balancer(rank, world)
    refusals(rank, world)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"{world} processes: 20 masks of the library and {cases} random ones as in one process", flush=True)
    # one in five times gloo's threads abort an interpreter that ends by itself (PyTorch 2.15)
    os._exit(0)


if __name__ == "__main__":
    found()
    worlds = [int(n) for n in sys.argv[1].split(",")] if len(sys.argv) > 1 else [2, 3, 4]
    for world in worlds:
        with tempfile.TemporaryDirectory() as folder:
            # PyTorch is imported once for all of them
            mp.start_processes(work, args=(world, f"{folder}/store", 50), nprocs=world, start_method="fork")
