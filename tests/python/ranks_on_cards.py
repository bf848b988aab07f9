"""Attention over the GPUs of one host: plans of maskloom.distributed with its own kernels, beside PyTorch's PTRR balancer
and all-gather with PyTorch's compiled FlexAttention, and beside one card that computes the whole.

    torchrun --nproc-per-node N ranks_on_cards.py [--tokens 65536] [--heads 16] [--kv-heads 8] [--json FILE] [--limit SECONDS]
        [--masks NAME,NAME] [--hybrid]

`--hybrid` measures six layers under one division, five of window 1,024 and one causal, as many models mix them. Rank 0 prints one JSON line a row: milliseconds of the slowest rank, medians; batch 1, head_dim 128, bfloat16. All plans are
measured first, then PTRR for as many masks as there is time. Outputs of both are compared with each other in the original
order. Needs CUDA and NCCL."""

import argparse
import datetime
import json
import os
import sys
import time
import traceback

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental._context_parallel import _load_balancer as balancers
from torch.distributed.tensor.experimental._context_parallel._attention import _create_cp_block_mask
from torch.distributed.tensor.experimental._context_parallel._cp_custom_ops import flex_cp_allgather
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import maskloom
import maskloom.distributed as parallel

parser = argparse.ArgumentParser()
parser.add_argument("--tokens", type=int, default=65536)
parser.add_argument("--heads", type=int, default=16)
parser.add_argument("--kv-heads", type=int, default=8)
parser.add_argument("--limit", type=float, default=200)
parser.add_argument("--masks", help="names, or the beginnings of names, separated by commas; all without it")
parser.add_argument("--hybrid", action="store_true")
parser.add_argument("--json")
args = parser.parse_args()
rank, world, began = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), time.time()
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=90))
S, H, KV, D = args.tokens, args.heads, args.kv_heads, 128
rows = []


def emit(**row):
    if rank == 0:
        rows.append(row)
        print("ROW", json.dumps(row), flush=True)
        if args.json:
            with open(args.json, "w") as out:
                json.dump(rows, out, indent=1)


def slowest(f, rounds=7):
    """Median milliseconds of a call, of the slowest rank."""
    for _ in range(3):
        f()
    times = []
    for _ in range(rounds):
        dist.barrier()
        torch.cuda.synchronize()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        f()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
    found = torch.tensor(sorted(times)[rounds // 2], device="cuda")
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return found.item()


def late():
    """The same answer on every rank."""
    said = torch.tensor(float(time.time() - began > args.limit), device="cuda")
    dist.broadcast(said, 0)
    return bool(said.item())


generator = torch.Generator().manual_seed(0)
cuts = torch.sort(torch.randint(1, S, (S // 4096 - 1,), generator=generator)).values
doc = torch.bucketize(torch.arange(S), cuts, right=True).to("cuda", torch.int32)
masks = {
    "window 1,024": lambda b, h, q, k: (q >= k) & (q - k < 1024),
    "documents 4k, causal": lambda b, h, q, k: (q >= k) & (doc[q] == doc[k]),
    "window 4,096": lambda b, h, q, k: (q >= k) & (q - k < 4096),
    "frames of 2,048, two neighbours": lambda b, h, q, k: (q // 2048 - k // 2048).abs() <= 2,
    "causal": lambda b, h, q, k: q >= k,
    "prefix 8,192": lambda b, h, q, k: (k < 8192) | (q >= k),
    "full": lambda b, h, q, k: k >= 0,
}
whole = [torch.randn(1, heads, S, D, device="cuda", dtype=torch.bfloat16) for heads in (H, KV, KV, H)]
for x in whole:
    dist.broadcast(x, 0)


def ours(mask):
    block_mask = maskloom.create_block_mask(mask, None, None, S, S, device="cpu")
    start = time.time()
    plan = parallel.plan_context_parallel(block_mask, heads=H, kv_heads=KV, head_dim=D)
    planned = time.time() - start
    q, k, v, do = (plan.shard(x).contiguous().requires_grad_(n < 3) for n, x in enumerate(whole))

    def forward():
        with torch.no_grad():
            return plan.flex_attention(q, k, v)

    def both():
        torch.autograd.grad(plan.flex_attention(q, k, v), (q, k, v), do)

    start = time.time()
    out = plan.unshard(forward())
    both()
    torch.cuda.synchronize()
    first = time.time() - start
    row = {"forward_ms": slowest(forward), "both_ms": slowest(both), "plan_s": planned, "first_s": first}
    row["stages"] = len(plan.block_masks(device="cuda"))
    row |= one_card(block_mask, out) | alone(plan, q, k, v)
    return row, out


def one_card(block_mask, out):
    """The whole on each card by itself, and how far the ranks' output is from its."""
    q, k, v, do = (x.detach().requires_grad_(n < 3) for n, x in enumerate(whole))
    attend = lambda: maskloom.flex_attention(q, k, v, block_mask=block_mask, enable_gqa=H != KV)

    def forward():
        with torch.no_grad():
            return attend()

    error = (forward().float() - out.float()).abs().max().item()
    both = lambda: torch.autograd.grad(attend(), (q, k, v), do)
    return {"one_card_forward_ms": slowest(forward), "one_card_both_ms": slowest(both), "from one card": error}


def alone(plan, q, k, v):
    """The stages' attention without exchange and merge."""
    from maskloom.distributed.cards import CARDS

    (name,) = plan._masks
    stages, _ = plan._made(name, q.device)
    given = []
    for number, stage in enumerate(stages):
        own = q if stage.picked is None else q.index_select(2, stage.picked)
        keys = [k, v] if number == 0 else [torch.randn_like(k[:, :, :1].expand(-1, -1, len(stage.kv_positions), -1)) for _ in "kv"]
        if own.shape[2] and keys[0].shape[2]:
            given.append((CARDS.ready(stage, None), own.detach(), *[x.detach() for x in keys]))
    return {"local_forward_ms": slowest(lambda: [CARDS.forward(*of, None, False) for of in given])}


def ptrr_of(mask):
    return balancers._PTRRLoadBalancer(create_block_mask(mask, None, None, S, S, device="cuda", _compile=True), world)


def ptrr(mask):
    balancer = ptrr_of(mask)
    order = balancer._generate_indices(restore=False).to("cuda").flatten()
    start = time.time()
    local = _create_cp_block_mask(mask, 1, 1, S, S, mesh, load_balancer=balancer)
    torch.cuda.synchronize()
    planned = time.time() - start
    own = order.chunk(world)[rank]
    q, k, v, do = (x.index_select(2, own).contiguous().requires_grad_(n < 3) for n, x in enumerate(whole))
    flex = torch.compile(flex_attention, dynamic=False)

    def attend():
        keys, values = flex_cp_allgather(k, v, 2, group)
        return flex(q, keys, values, block_mask=local, enable_gqa=H != KV)

    def forward():
        with torch.no_grad():
            return attend()

    def both():
        torch.autograd.grad(attend(), (q, k, v), do)

    start = time.time()
    part = forward()
    both()
    torch.cuda.synchronize()
    first = time.time() - start
    row = {"forward_ms": slowest(forward), "both_ms": slowest(both), "plan_s": planned, "first_s": first}
    parts = [torch.empty_like(part) for _ in range(world)]
    dist.all_gather(parts, part)
    out = torch.empty_like(whole[0])
    out[:, :, order] = torch.cat(parts, 2)
    return row, out


def layers_of(run):
    """One step of the hybrid: five layers of the first mask and one of the second."""
    return [run(HYBRID[0]) for _ in range(5)] + [run(HYBRID[1])]


def hybrid_ours():
    made = {name: maskloom.create_block_mask(masks[name], None, None, S, S, device="cpu") for name in HYBRID}
    plan = parallel.plan_context_parallel(made, layers={HYBRID[0]: 5, HYBRID[1]: 1}, heads=H, kv_heads=KV, head_dim=D)
    q, k, v, do = (plan.shard(x).contiguous().requires_grad_(n < 3) for n, x in enumerate(whole))
    step = lambda name: torch.autograd.grad(plan.flex_attention(q, k, v, mask=name), (q, k, v), do)
    return {"both_ms": slowest(lambda: layers_of(step), rounds=5)}


def hybrid_ptrr():
    """PyTorch's balancer of the causal mask: one division serves both kinds."""
    local = {}
    balancer = ptrr_of(masks[HYBRID[1]])
    own = balancer._generate_indices(restore=False).to("cuda").flatten().chunk(world)[rank]
    for name in HYBRID:
        local[name] = _create_cp_block_mask(masks[name], 1, 1, S, S, mesh, load_balancer=balancer)
    q, k, v, do = (x.index_select(2, own).contiguous().requires_grad_(n < 3) for n, x in enumerate(whole))
    flex = torch.compile(flex_attention, dynamic=False)

    def step(name):
        keys, values = flex_cp_allgather(k, v, 2, group)
        out = flex(q, keys, values, block_mask=local[name], enable_gqa=H != KV)
        return torch.autograd.grad(out, (q, k, v), do)

    return {"both_ms": slowest(lambda: layers_of(step), rounds=5)}


HYBRID = ("window 1,024", "causal")
mesh = init_device_mesh("cuda", (world,))
group = c10d._get_process_group_name(mesh.get_group())
emit(torch=torch.__version__, gpu=torch.cuda.get_device_name(), ranks=world, tokens=S, heads=H, kv_heads=KV)
found, outs = {}, {}


def tried(run, mask):
    """A row and an output; one that fails is told, and the others still count."""
    try:
        return run(mask)
    except Exception as why:
        traceback.print_exc()
        return {"error": repr(why)[:400]}, None


asked = args.masks.split(",") if args.masks else [""]
chosen = {name: mask for name, mask in masks.items() if any(name.startswith(word) for word in asked)}
if not chosen:
    sys.exit(f"--masks {args.masks} names none of {'; '.join(masks)}")
for name, mask in chosen.items():
    if late():
        emit(mask=name, skipped="no time left")
        continue
    found[name], outs[name] = tried(ours, mask)
    emit(mask=name, plan=found[name])
for name, out in outs.items():
    if late():
        emit(mask=name, **{"PTRR and all-gather": {"skipped": "no time left"}})
        continue
    torch._dynamo.reset()
    theirs, other = tried(ptrr, masks[name])
    row = {"mask": name, "PTRR and all-gather": theirs, "plan": found[name]}
    if other is not None and out is not None:
        row["largest difference"] = (out.float() - other.float()).abs().max().item()
        for of in ("forward_ms", "both_ms"):
            row["ratio " + of] = theirs[of] / found[name][of]
    emit(**row)
if args.hybrid and not late():
    torch._dynamo.reset()
    row = {"layers": f"5 of {HYBRID[0]}, 1 of {HYBRID[1]}", "plan": hybrid_ours()}
    emit(**row)
    if not late():
        row["PTRR and all-gather"] = hybrid_ptrr()
        row["ratio both_ms"] = row["PTRR and all-gather"]["both_ms"] / row["plan"]["both_ms"]
        emit(**row)
dist.destroy_process_group()
sys.exit(0)
