"""The package on an NVIDIA GPU: results and gradients beside the float64 formula.

python package_on_a_card.py

It needs a GPU, PyTorch with CUDA, NVRTC and the installed package. `MASKLOOM_CACHE` should name an empty folder. A
failure is told with its trace, and the script ends with 1. package_costs_on_a_card.py tells what calls cost.
"""

import inspect
import math
import os
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import maskloom
import torch
from maskloom import create_block_mask, flex_attention
from torch.nn.attention.flex_attention import AuxRequest
from torch.nn.attention.flex_attention import create_block_mask as torchs_block_mask

DEVICE = torch.device("cuda", 0)
#: Largest error, of the largest number of the result.
MOST = {torch.bfloat16: 1.6e-2, torch.float16: 3e-3}


KNOWN = inspect.signature(torchs_block_mask).parameters
ARRAYS = [f"{side}_{what}" for side in ("kv", "full_kv", "q", "full_q") for what in ("num_blocks", "indices")]


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def window(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < 256)


def prefix(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) | (kv_idx < 100)


def empty_rows(b, h, q_idx, kv_idx):
    return (q_idx > 130) & (kv_idx < q_idx)


def formula(q, k, v, mask_mod, score_mod, scale):
    """Output, lse and largest scores in float64."""
    group = q.shape[1] // k.shape[1]
    k, v = (t.expand(q.shape[0], -1, -1, -1).repeat_interleave(group, 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    axes = [torch.arange(n, device=q.device) for n in scores.shape]
    cells = [axis.view([-1 if at == own else 1 for at in range(4)]) for own, axis in enumerate(axes)]
    if score_mod is not None:
        scores = score_mod(scores, *cells)
    if mask_mod is not None:
        scores = scores.masked_fill(~mask_mod(*cells), -math.inf)
    largest = scores.amax(-1)
    lse = scores.logsumexp(-1)
    weights = torch.where(
        torch.isneginf(lse)[..., None], 0.0, (scores - lse.masked_fill(torch.isneginf(lse), 0)[..., None]).exp()
    )
    return weights @ v, lse, largest


def inputs(shape, dtype, layout="bhsd", kv_batch=None, seed=0):
    batch, heads, kv_heads, q_len, kv_len, dim, dim_v = shape
    made = torch.Generator(device=DEVICE).manual_seed(seed)

    def one(b, h, s, d):
        size = (b, h, s, d) if layout == "bhsd" else (b, s, h, d)
        t = torch.randn(size, generator=made, device=DEVICE).to(dtype)
        t = t if layout == "bhsd" else t.transpose(1, 2)
        return t.detach().requires_grad_()

    kv_batch = batch if kv_batch is None else kv_batch
    return one(batch, heads, q_len, dim), one(kv_batch, kv_heads, kv_len, dim), one(kv_batch, kv_heads, kv_len, dim_v)


def near(what, found, wanted, most):
    wanted = wanted.double()
    kept = torch.isfinite(wanted)
    assert bool((torch.isfinite(found) == kept).all()), f"{what}: other values are infinite or NaN"
    found, wanted = found.detach(), wanted.detach()
    scale = max(float(wanted[kept].abs().max()), 1e-3) if bool(kept.any()) else 1.0
    error = float((found.double() - wanted)[kept].abs().max()) / scale if bool(kept.any()) else 0.0
    assert error <= most, f"{what}: {error:.2e} of the largest number, {most:.1e} allowed"
    return error


def check(
    shape,
    dtype,
    mask=None,
    score=None,
    learnt=(),
    scale=None,
    maker=create_block_mask,
    groups=(None, None),
    with_lse=True,
    run=None,
    **how,
):
    """One call with gradients beside the formula."""
    q, k, v = inputs(shape, dtype, **how)
    block_mask = None if mask is None else maker(mask, *groups, shape[3], shape[4], device=DEVICE)
    gqa = shape[1] != shape[2]
    call = run or flex_attention
    out, lse = call(q, k, v, score, block_mask, scale, gqa, return_lse=True)
    doubles = [t.detach().double().requires_grad_() for t in (q, k, v)]
    wanted, wanted_lse, _ = formula(*doubles, mask, score, scale)
    errors = [near("output", out, wanted, MOST[dtype]), near("lse", lse, wanted_lse, 2e-3)]
    d_out = torch.randn_like(out)
    d_lse = torch.where(torch.isneginf(lse), 0.0, torch.randn_like(lse)) if with_lse else None
    of = [q, k, v, *learnt]
    seeds = ([out, lse], [d_out, d_lse]) if with_lse else ([out], [d_out])
    found = torch.autograd.grad(*seeds[:1], of, seeds[1])
    kept_lse = wanted_lse.masked_fill(torch.isneginf(wanted_lse), 0)
    seeds = ([wanted, kept_lse], [d_out.double(), d_lse.double()]) if with_lse else ([wanted], [d_out.double()])
    wanted = torch.autograd.grad(seeds[0], [*doubles, *learnt], seeds[1])
    for name, a, b in zip(["dq", "dk", "dv", *[f"learnt {i}" for i in range(len(learnt))]], found, wanted):
        errors.append(near(name, a, b, 2 * MOST[dtype]))
    return max(errors)


# --- the cases ---

BF16, F16 = torch.bfloat16, torch.float16


def a_causal_mask():
    check((2, 4, 4, 700, 700, 64, 64), BF16, causal)
    check((2, 4, 4, 333, 333, 64, 64), BF16, causal, with_lse=False)


def a_window_with_grouped_heads():
    check((2, 8, 2, 1024, 1024, 128, 128), BF16, window)


def a_prefix_in_wide_heads():
    check((1, 2, 2, 500, 600, 256, 256), F16, prefix)


def documents_of_a_captured_tensor():
    document = torch.arange(900, device=DEVICE) // 170

    def same(b, h, q_idx, kv_idx):
        return (document[q_idx] == document[kv_idx]) & (q_idx >= kv_idx)

    check((2, 4, 4, 900, 900, 128, 128), BF16, same)


def documents_by_batch_entry():
    document = torch.stack([torch.arange(640, device=DEVICE) // 100, torch.arange(640, device=DEVICE) // 333])

    def same(b, h, q_idx, kv_idx):
        return (document[b, q_idx] == document[b, kv_idx]) & (q_idx >= kv_idx)

    check((2, 4, 4, 640, 640, 64, 64), BF16, same, groups=(2, None))


def a_mask_that_changes_in_place():
    document = torch.arange(512, device=DEVICE) // 100
    q, k, v = inputs((1, 2, 2, 512, 512, 64, 64), BF16)

    def same(b, h, q_idx, kv_idx):
        return document[q_idx] == document[kv_idx]

    block_mask = create_block_mask(same, None, None, 512, 512, device=DEVICE)
    for _ in range(2):
        near(
            "output",
            flex_attention(q, k, v, block_mask=block_mask),
            formula(q.double(), k.double(), v.double(), same, None, None)[0],
            MOST[BF16],
        )
        document.copy_(torch.arange(512, device=DEVICE) // 37)


def slopes_that_learn():
    slopes = torch.linspace(0.01, 0.5, 4, device=DEVICE, requires_grad=True)

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    check((2, 4, 4, 512, 512, 64, 64), BF16, causal, alibi, (slopes,))


def a_table_that_learns():
    table = torch.randn(4, 33, device=DEVICE).requires_grad_()

    def relative(score, b, h, q_idx, kv_idx):
        return score + table[h, (q_idx - kv_idx).clamp(-16, 16) + 16]

    check((1, 4, 4, 400, 400, 128, 128), BF16, None, relative, (table,))
    q, k, v = inputs((1, 4, 4, 400, 400, 128, 128), BF16)
    wanted = torch.autograd.grad(flex_attention(q, k, v, relative).float().square().sum(), table)[0]
    table = table.detach().to(BF16).requires_grad_()
    found = torch.autograd.grad(flex_attention(q, k, v, relative).float().square().sum(), table)[0]
    assert found.dtype == BF16
    near("in bfloat16", found, wanted, 3e-2)


def soft_caps():
    def capped(score, b, h, q_idx, kv_idx):
        return 20 * torch.tanh(score / 20)

    check((1, 4, 4, 600, 600, 128, 128), F16, causal, capped)
    check((1, 4, 4, 600, 600, 128, 128), BF16, causal, capped)


def a_score_by_a_captured_int():
    bucket = torch.arange(512, device=DEVICE) % 7
    bias = torch.randn(7, device=DEVICE, requires_grad=True)

    def by_bucket(score, b, h, q_idx, kv_idx):
        return score + bias[bucket[kv_idx]]

    check((1, 2, 2, 512, 512, 64, 64), BF16, None, by_bucket, (bias,))
    bucket.copy_(torch.arange(512, device=DEVICE) // 80)
    check((1, 2, 2, 512, 512, 64, 64), BF16, None, by_bucket, (bias,))


def no_mask_and_odd_lengths():
    check((1, 3, 3, 300, 517, 128, 128), BF16)


def rows_that_keep_nothing():
    check((1, 2, 2, 300, 300, 64, 64), BF16, empty_rows)


def heads_of_odd_widths():
    check((1, 2, 2, 200, 200, 20, 44), BF16, causal)
    check((1, 2, 2, 300, 300, 80, 80), F16, causal)


def few_queries():
    q, k, v = inputs((2, 8, 2, 1, 2048, 128, 128), BF16)
    with torch.no_grad():
        out = flex_attention(q, k, v, enable_gqa=True)
    near("output", out, formula(q.double(), k.double(), v.double(), None, None, None)[0], MOST[BF16])
    check((2, 8, 2, 16, 1024, 64, 64), BF16)


def one_batch_of_keys():
    check((3, 2, 2, 256, 256, 64, 64), BF16, causal, kv_batch=1)


def transposed_tensors():
    check((2, 4, 4, 384, 384, 64, 64), BF16, causal, layout="bshd")


def a_block_mask_of_pytorch():
    check((1, 2, 2, 512, 512, 64, 64), BF16, window, maker=torchs_block_mask)


def another_scale():
    check((1, 2, 2, 256, 256, 64, 64), BF16, causal, scale=0.5)


def largest_scores():
    q, k, v = inputs((1, 4, 4, 512, 512, 64, 64), BF16)
    mask = create_block_mask(causal, None, None, 512, 512, device=DEVICE)
    out, aux = flex_attention(q, k, v, block_mask=mask, return_aux=AuxRequest(lse=True, max_scores=True))
    wanted = formula(q.double(), k.double(), v.double(), causal, None, None)
    for name, a, b in zip(("output", "lse", "largest"), (out, aux.lse, aux.max_scores), wanted):
        near(name, a, b, MOST[BF16])


def a_compiled_graph():
    slopes = torch.linspace(0.01, 0.5, 4, device=DEVICE, requires_grad=True)

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    compiled = torch.compile(flex_attention, fullgraph=True, backend="aot_eager")
    check((2, 4, 4, 512, 512, 64, 64), BF16, causal, alibi, (slopes,), run=compiled)


def checkpoints():
    from torch.utils.checkpoint import checkpoint

    def again(*given, **named):
        return checkpoint(lambda *g: flex_attention(*g, **named), *given, use_reentrant=False)

    check((2, 4, 4, 512, 512, 64, 64), BF16, causal, run=again)


def a_mode_that_watches():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    def watched(*given, **named):
        with Watch():
            return flex_attention(*given, **named)

    check((2, 4, 4, 512, 512, 64, 64), BF16, causal, run=watched)
    assert any("maskloom.flex_attention" in name for name in seen), seen[:5]


def streams_and_threads():
    q, k, v = (t.detach() for t in inputs((2, 4, 4, 1024, 1024, 64, 64), BF16))
    mask = create_block_mask(causal, None, None, 1024, 1024, device=DEVICE)
    wanted = flex_attention(q, k, v, block_mask=mask)
    torch.cuda.synchronize()
    failed = []

    def work(number):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), torch.no_grad():
            scaled = [(number + at / 64) * v for at in range(64)]
            found = [flex_attention(q, k, own, block_mask=mask) for own in scaled]
            stream.synchronize()
            for at, own in enumerate(found):
                error = float((own - (number + at / 64) * wanted).abs().max())
                if error > 0.03 * (number + 1) * 4:
                    failed.append((number, at, error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed, failed[:3]


def inference_and_autocast():
    q, k, v = (t.detach() for t in inputs((1, 4, 4, 512, 512, 64, 64), BF16))
    wanted = formula(q.double(), k.double(), v.double(), window, None, None)[0]
    with torch.inference_mode():
        mask = create_block_mask(window, None, None, 512, 512, device=DEVICE)
        near("inference", flex_attention(q.clone(), k, v, block_mask=mask), wanted, MOST[BF16])
    with torch.autocast("cuda", dtype=BF16):
        out = flex_attention(q.float(), k.float(), v.float(), block_mask=mask)
    assert out.dtype == BF16
    near("autocast", out, wanted, MOST[BF16])


def arrays_on_the_card():
    document = torch.arange(1000, device=DEVICE) // 170
    same = lambda b, h, q, k: (document[q] == document[k]) & (q >= k)
    for mod in (window, same):
        own = create_block_mask(mod, None, None, 1000, 1000, device=DEVICE)
        wanted = torchs_block_mask(mod, None, None, 1000, 1000, device=DEVICE)
        for name in (
            "kv_num_blocks",
            "kv_indices",
            "full_kv_num_blocks",
            "full_kv_indices",
            "q_num_blocks",
            "q_indices",
        ):
            a, b = getattr(own, name), getattr(wanted, name)
            assert a.device == b.device and a.dtype == b.dtype and torch.equal(a, b), name


def blocks_found_on_the_card():
    """Masks whose tensors lie on the card, made again with other contents: PyTorch's arrays, and nothing waits."""
    made = torch.Generator(device=DEVICE).manual_seed(3)

    def ints(most, *shape, dtype=torch.int64):
        return torch.randint(0, most, shape, generator=made, device=DEVICE, dtype=dtype)

    def documents():
        doc = ints(9, 700).sort().values + (1 << 40)  # no 32 bits hold them
        return lambda b, h, q, kv: (q >= kv) & (doc[q] == doc[kv])

    def by_batch_entry():
        doc = ints(5, 3, 700, dtype=torch.int32).sort(-1).values
        return lambda b, h, q, kv: doc[b, q] == doc[b, kv]

    def padding():
        lengths = ints(700, 3)
        return lambda b, h, q, kv: kv < lengths[b]

    def by_head():
        spans = ints(600, 4, dtype=torch.int16)
        return lambda b, h, q, kv: (q - kv).abs() <= spans[h]

    def tables():
        kept = ints(2, 6, 6) > 0
        return lambda b, h, q, kv: kept[q // 128, kv // 128] & (q >= kv)

    def floats():
        at = torch.rand(700, generator=made, device=DEVICE)
        return lambda b, h, q, kv: at[q] * 0.5 > at[kv] - 0.25

    for kind in (documents, by_batch_entry, padding, by_head, tables, floats):
        for sizes in ((3, 4, 700, 700, 128), (3, 4, 640, 300, (64, 32))):
            *groups, q_len, kv_len, block = sizes
            for turn in range(4):
                for separate in (True, False):
                    if not separate and "separate_full_blocks" not in KNOWN:
                        continue
                    mod = kind()
                    torch.cuda.synchronize()
                    # the first is copied to the host, the second prepares the kernel
                    torch.cuda.set_sync_debug_mode("error" if turn > 1 else "default")
                    options = {"device": DEVICE, "BLOCK_SIZE": block}
                    if not separate:
                        options["separate_full_blocks"] = False
                    try:
                        got = create_block_mask(mod, *groups, q_len, kv_len, **options)
                    finally:
                        torch.cuda.set_sync_debug_mode("default")
                    wanted = torchs_block_mask(mod, *groups, q_len, kv_len, **options)
                    for name in ARRAYS:
                        one, other = getattr(got, name), getattr(wanted, name)
                        assert (one is None) == (other is None), (kind.__name__, turn, name)
                        assert one is None or torch.equal(one, other), (kind.__name__, turn, name)
                    assert turn < 2 or "_maskloom_held" not in got.__dict__, "the host has found the blocks"


def packed_sequences():
    cu = torch.tensor([0, 100, 100, 333, 600], device=DEVICE, dtype=torch.int32)
    rows = [torch.randn(600, heads, 64, device=DEVICE).to(BF16).requires_grad_() for heads in (8, 2, 2)]
    out = maskloom.flex_attention_varlen(*rows, cu, window_size=(-1, 0), enable_gqa=True)
    doubles = [row.detach().double().requires_grad_() for row in rows]
    ends = cu.tolist()
    parts = [[row[a:b].transpose(0, 1)[None] for row in doubles] for a, b in zip(ends, ends[1:]) if b > a]
    wanted = torch.cat([formula(*part, causal, None, None)[0][0].transpose(0, 1) for part in parts])
    near("output", out, wanted, MOST[BF16])
    d_out = torch.randn_like(out)
    found = torch.autograd.grad(out, rows, d_out)
    for name, a, b in zip(("dq", "dk", "dv"), found, torch.autograd.grad(wanted, doubles, d_out.double())):
        near(name, a, b, 2 * MOST[BF16])


def parts_that_are_merged():
    from maskloom import _cuda

    q, k, v = (t.detach() for t in inputs((2, 4, 2, 300, 500, 64, 64), BF16))
    attend = partial(flex_attention, enable_gqa=True, return_lse=True)
    wanted, wanted_lse = attend(q, k, v)
    out, lse = attend(q, k[:, :, :200], v[:, :, :200])
    rows = torch.cat([torch.arange(40, 130), torch.arange(200, 300)]).to(DEVICE)
    before = out.clone()
    part, part_lse = attend(q.index_select(2, rows), k[:, :, 200:], v[:, :, 200:])
    _cuda.merge(out, lse, part, part_lse, rows)
    near("merged rows", out[:, :, rows], wanted[:, :, rows], MOST[BF16])
    near("their lse", lse[:, :, rows], wanted_lse[:, :, rows], 1e-3)
    assert torch.equal(out[:, :, :40], before[:, :, :40]) and torch.equal(out[:, :, 130:200], before[:, :, 130:200])


def refusals():
    q, k, v = inputs((1, 2, 2, 256, 256, 64, 64), BF16)

    def refused(code, call):
        try:
            call()
        except maskloom.ArgumentError as why:
            assert why.code == code, (why.code, code)
            assert why.hint
            return
        raise AssertionError(f"{code} was not refused")

    refused("dtype", lambda: flex_attention(q.float(), k.float(), v.float()))
    refused("device", lambda: flex_attention(q, k.cpu(), v))
    refused("gqa-heads", lambda: flex_attention(q, k[:, :1], v[:, :1]))
    refused(
        "block-mask-length",
        lambda: flex_attention(q, k, v, block_mask=create_block_mask(causal, None, None, 128, 128, device=DEVICE)),
    )
    mask = create_block_mask(causal, None, None, 256, 256, device=DEVICE)
    flex_attention(q, k, v, block_mask=mask)
    refused("gqa-heads", lambda: flex_attention(q, k[:, :1], v[:, :1], block_mask=mask))
    refused("vmap", lambda: torch.func.vmap(lambda a: flex_attention(a, k, v))(q[None]))
    refused("double-backward", lambda: torch.autograd.grad(flex_attention(q, k, v).sum(), q, create_graph=True))


CASES = [
    *(a_causal_mask, a_window_with_grouped_heads, a_prefix_in_wide_heads, documents_of_a_captured_tensor),
    *(documents_by_batch_entry, a_mask_that_changes_in_place, slopes_that_learn, a_table_that_learns, soft_caps),
    *(a_score_by_a_captured_int, no_mask_and_odd_lengths, rows_that_keep_nothing, heads_of_odd_widths, few_queries),
    *(one_batch_of_keys, transposed_tensors, a_block_mask_of_pytorch, another_scale, largest_scores),
    *(
        checkpoints,
        inference_and_autocast,
        refusals,
        arrays_on_the_card,
        packed_sequences,
        parts_that_are_merged,
    ),
]


def another_length_compiles_nothing():
    folder = Path(os.environ.get("MASKLOOM_CACHE", Path.home() / ".cache/maskloom"))
    kernels = lambda: len(list(folder.rglob("*.mlk")))
    check((2, 4, 4, 704, 704, 64, 64), BF16, causal)
    before = kernels()
    check((1, 4, 4, 1100, 1100, 64, 64), BF16, causal)
    width = 77
    check((2, 4, 4, 900, 900, 64, 64), BF16, lambda b, h, q, k: (q >= k) & (q - k < width))
    assert before > 0 and kernels() == before, f"{before} kernels became {kernels()}"


def gradients_in_one_order():
    slopes = torch.linspace(0.01, 0.5, 8, device=DEVICE, requires_grad=True)

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    torch.use_deterministic_algorithms(True)
    try:
        q, k, v = inputs((2, 8, 2, 2048, 2048, 128, 128), BF16)
        mask = create_block_mask(window, None, None, 2048, 2048, device=DEVICE)
        runs = []
        for _ in range(3):
            out = flex_attention(q, k, v, alibi, mask, enable_gqa=True)
            runs.append(torch.autograd.grad(out.float().square().sum(), (q, k, v, slopes)))
        for other in runs[1:]:
            assert all(torch.equal(a, b) for a, b in zip(runs[0], other))
    finally:
        torch.use_deterministic_algorithms(False)


def captured_graphs():
    q, k, v = inputs((2, 4, 4, 1024, 1024, 64, 64), BF16)
    mask = create_block_mask(causal, None, None, 1024, 1024, device=DEVICE)
    d_out = torch.randn_like(q)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            torch.autograd.grad(flex_attention(q, k, v, block_mask=mask), (q, k, v), d_out)
    torch.cuda.current_stream().wait_stream(side)
    graphs = []
    for _ in range(2):  # two that may run at once
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = flex_attention(q, k, v, block_mask=mask)
            gradients = torch.autograd.grad(out, (q, k, v), d_out)
        graphs.append((graph, [out, *gradients]))
    with torch.no_grad():
        [t.copy_(torch.randn_like(t)) for t in (q, k, v)]
    for _ in range(3):
        [graph.replay() for graph, _ in graphs]
    torch.cuda.synchronize()
    out = flex_attention(q, k, v, block_mask=mask)
    wanted = [out, *torch.autograd.grad(out, (q, k, v), d_out)]
    for _, found in graphs:
        for name, a, b in zip(("output", "dq", "dk", "dv"), found, wanted):
            near(name, a, b.detach(), 1e-2)


#: Those that change what holds for the whole process, or look at it.
ALONE = [
    *(a_compiled_graph, a_mode_that_watches, streams_and_threads, another_length_compiles_nothing),
    *(gradients_in_one_order, captured_graphs, blocks_found_on_the_card),
]


def tried(case):
    try:
        case()
        torch.cuda.synchronize()
        return case.__name__, None
    except BaseException:
        return case.__name__, traceback.format_exc(limit=8)


def main():
    begin = time.perf_counter()
    with ThreadPoolExecutor(12) as pool:
        done = list(pool.map(tried, CASES))
    done += [tried(case) for case in ALONE]
    failed = [(name, why) for name, why in done if why is not None]
    for name, why in failed:
        print(f"--- {name}\n{why}", flush=True)
    spent = time.perf_counter() - begin
    print(f"{len(done) - len(failed)} of {len(done)} cases are as the float64 formula says, {spent:.0f} s", flush=True)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    sys.exit(1 if failed else 0)


main()
