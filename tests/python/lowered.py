"""Masks as other libraries take them: python lowered.py MASKLOOM WORK ASSETS

Each exported form is compared cell for cell with the mask of the user's own text. The calls go to stand-ins for the libraries, which
compute what those define of the numbers that they are given; Maskloom's worker calls one of them, too.
"""

import importlib
import os
import subprocess
import sys
import types

import torch
import torch.nn.functional as F

import exports

sys.path.insert(0, sys.argv[3])
import maskloom_beside  # noqa: E402
import maskloom_cudnn  # noqa: E402
import maskloom_job  # noqa: E402

ALL = ("cudnn", "flashmask", "magi")
DESIGNS = {
    "near": ALL, "far": ALL, "sinks": ALL, "table": ALL, "behind": ALL, "each": ALL, "heads": ALL[:2], "cross": ALL[:1],
}  # fmt: skip
HEADS, DIM = 2, 16


def masked(q, k, v, keep, scale):
    """Attention of [B, S, H, D], in float64."""
    q, k, v = (t.transpose(1, 2).double() for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=keep, scale=scale).transpose(1, 2)


def of_ends(func, batch, q_len, kv_len):
    """What cuDNN defines of mask_func."""
    heads, count, rows = func.shape
    assert func.dtype == torch.int32 and func.is_contiguous() and count % 2 == 1 and rows == batch * q_len, func.shape
    keep = torch.zeros(batch, heads, q_len, kv_len, dtype=torch.bool)
    for h in range(heads):
        for row in range(rows):
            ends = [0, *func[h, :, row].tolist()]
            assert ends == sorted(ends) and ends[-1] <= kv_len, ends
            for start, end in zip(ends[::2], ends[1::2]):
                keep[row // q_len, h, row % q_len, start:end] = True
    return keep


def stand_ins():
    """The libraries, as modules that can be imported."""
    cudnn, flex = types.ModuleType("cudnn"), types.ModuleType("cudnn.flex_attention")

    def create_mask_plan(mask_func, q, k, v, *, build_backward=None):
        return of_ends(mask_func, q.shape[0], q.shape[1], k.shape[1]), build_backward

    def flex_attn_func(q, k, v, *, mask_plan, softmax_scale=None, deterministic=False, return_lse=False):
        keep, backward = mask_plan
        assert backward is not False or not (torch.is_grad_enabled() and q.requires_grad), "built without backward payloads"
        out = masked(q, k, v, keep, softmax_scale).to(q.dtype)
        scores = torch.einsum("bqhd,bkhd->bhqk", q.double(), k.double()) * softmax_scale
        lse = scores.masked_fill(~keep, float("-inf")).logsumexp(-1)
        return (out, lse) if return_lse else out

    flex.create_mask_plan, flex.flex_attn_func, cudnn.flex_attention = create_mask_plan, flex_attn_func, flex
    magi, functional = types.ModuleType("magi_attention"), types.ModuleType("magi_attention.functional")

    def flex_flash_attn_func(q, k, v, q_ranges, k_ranges, attn_type_map, *, softmax_scale):
        seen = torch.zeros(len(q), len(k), dtype=torch.int32)
        for (q0, q1), (k0, k1), kind in zip(q_ranges.tolist(), k_ranges.tolist(), attn_type_map.tolist()):
            at, key = torch.arange(q0, q1)[:, None], torch.arange(k0, k1)
            own = torch.ones(q1 - q0, k1 - k0, dtype=torch.bool)
            if kind in (1, 3):
                own &= key - k1 <= at - q1
            if kind in (2, 3):
                own &= key - k0 >= at - q0
            seen[q0:q1, k0:k1] += own
        assert int(seen.max()) == 1, "it would add a cell twice"
        return masked(q[None], k[None], v[None], seen.bool(), softmax_scale)[0].to(q.dtype), None

    functional.flex_flash_attn_func = flex_flash_attn_func
    flashmask = types.ModuleType("flashmask")

    def flashmask_attention(q, k, v, bounds, *, causal, softmax_scale):
        batch, heads, keys, count = bounds.shape
        assert bounds.dtype == torch.int32 and (batch, keys) == (q.shape[0], k.shape[1]), bounds.shape
        keep = torch.ones(batch, heads, q.shape[1], keys, dtype=torch.bool)
        for b, h, key in torch.cartesian_prod(*(torch.arange(n) for n in (batch, heads, keys))).tolist():
            own, column = bounds[b, h, key].tolist(), keep[b, h, :, key]
            ended = count == (2 if causal else 4)
            column[own[0] : own[1] if ended else None] = False
            if causal:
                column[:key] = False
            else:
                column[slice(own[2], own[3]) if ended else slice(0, own[1])] = False
        return masked(q, k, v, keep, softmax_scale).to(q.dtype)

    flashmask.flashmask_attention = flashmask_attention
    return {m.__name__: m for m in (cudnn, flex, magi, functional, flashmask)}


def inputs(name, batch, kv_len, **how):
    seeded = torch.Generator().manual_seed(len(name))
    return [torch.randn(batch, n, HEADS, DIM, generator=seeded, **how) for n in (80, kv_len, kv_len)]


def compare(name, targets):
    exports.MORE[name] = [*exports.MORE.get(name, []), *(f"--to-{target}" for target in targets)]
    exports.export(name)
    want = exports.mask(name)
    batch, kv_len = 2, want.shape[-1]
    q, k, v = inputs(name, batch, kv_len)
    for target in targets:
        form = importlib.import_module(f"d_{name}_{target}")
        made = form.make_mask()
        assert torch.equal(made.expand(want.shape), want), f"{name} for {target}"
        got = form.attend(q, k, v)
        assert torch.allclose(got, masked(q, k, v, want, form.SCALE).float(), atol=1e-6, equal_nan=True), f"{name} for {target}"
        short = lambda: form.attend(q[:, 1:], k, v)  # noqa: B023, E731
        exports.refused(short, "export it for these lengths")
    return want


def in_the_worker(name, layout):
    """The racer `cudnn:flex`, forward and backward, on the exported numbers."""
    folder, design = exports.export(name)
    want = exports.mask(name)
    batch, kv_len = 2, want.shape[-1]
    form = importlib.import_module(f"d_{name}_cudnn")
    file = os.path.join(folder, "given.safetensors")
    maskloom_beside.write_tensors(file, {"mask_func": form._tensors("cpu")["mask_func"]})
    given = [t.transpose(1, 2).contiguous() for t in inputs(name, batch, kv_len)]
    spec = {
        "batch": batch, "heads": HEADS, "kv_heads": HEADS, "q_len": 80, "kv_len": kv_len, "head_dim_v": DIM, "scale": form.SCALE,
        "dtype": "float32", "layout": layout, "block_size": [128, 128], "mask_per_batch": form.BATCH is not None,
        "mask_per_head": form.HEADS is not None, "pattern": "ranges", "has_mask": True, "has_score": False, "module": None,
        "mask_func": file, "mask_words": "nfunc",
    }  # fmt: skip
    with torch.no_grad():
        prepared = maskloom_cudnn.prepare(maskloom_job.Job(spec, given, "cpu"))
        assert not os.path.exists(file) and "cudnn.flex_attention" in prepared.kernel, prepared.kernel
        out = prepared.output()
    leaves = [t.double().requires_grad_() for t in given]
    right = F.scaled_dot_product_attention(*leaves, attn_mask=want, scale=form.SCALE)
    seed = torch.randn(right.shape, generator=torch.Generator().manual_seed(1))
    grads = torch.autograd.grad(right, leaves, seed.double())
    assert torch.allclose(out["out"].double(), right, atol=1e-5) and out["lse"].shape == right.shape[:3]
    found = prepared.backward("cudnn:flex").named({"do": seed})
    for named, wanted in zip(("dq", "dk", "dv"), grads):
        assert torch.allclose(found[named].double(), wanted, atol=1e-5), (name, named)


# The worker takes stdout for itself: it is imported in a process of its own.
HINTS = """
import sys
import types

sys.path.insert(0, sys.argv[1])
import maskloom_torch

hint = lambda device, words: maskloom_torch.compile_hint(types.SimpleNamespace(device=device), ValueError(words))
# PyTorch names both sizes of a tile, Triton's assertion one of them
for words in ("SPARSE_Q_BLOCK_SIZE % BLOCK_M == 0", "SPARSE_KV_BLOCK_SIZE % BLOCK_N == 0", "BLOCK_M=64, BLOCK_N=32"):
    assert "multiple of 128" in hint("cuda", words), words
assert "smaller tiles" in hint("cuda", "out of resource: shared memory") and "triton" in hint("cuda", "no module")
assert "C++ compiler" in hint("cpu", "no compiler")
"""


def errors_of_compilation_have_their_way_out():
    ran = subprocess.run([sys.executable, "-c", HINTS, sys.argv[3]], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def main():
    errors_of_compilation_have_their_way_out()
    sys.modules.update(stand_ins())
    kept = {name: compare(name, targets) for name, targets in DESIGNS.items()}
    for name, layout in (("near", "bhsd"), ("each", "bshd"), ("heads", "bhsd")):
        in_the_worker(name, layout)
    # the worker tells what the library says
    sys.modules["cudnn.flex_attention"] = None
    try:
        maskloom_cudnn.prepare(types.SimpleNamespace(torch=torch))
        raise AssertionError("nothing to import")
    except maskloom_beside.Refused as why:
        assert why.code == "no-cudnn-flex" and "nvidia-cudnn-frontend" in why.hint, why.hint
    print(f"{len(kept)} masks keep their cells in every form")


main()
