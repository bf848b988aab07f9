"""Whether the capture's statistics are those of a plain float64 attention, and its file whole, bounded and readable.

    python capture_statistics.py CAPTURE WORK

CAPTURE is maskloom_capture.py. Inputs are random; the references hold the full matrix.
"""

import importlib
import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import types

import families
import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

SCRIPT, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path.insert(0, os.path.dirname(SCRIPT))
tool = importlib.import_module("maskloom_capture")
calls = importlib.import_module("maskloom_capturing.calls")
exact = importlib.import_module("maskloom_capturing.statistics")
files = importlib.import_module("maskloom_capturing.file")
FILE = os.path.join(WORK, "stats.safetensors")


def read(path=FILE):
    """(all tensors, infos of calls, what is said of the whole)."""
    with safe_open(path, "pt") as file:
        about = file.metadata()
        found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return found, json.loads(about["maskloom"]), json.loads(about["maskloom_capture"])


def dense(q, k, scale=None, bias=None, kept=None, softcap=None):
    """(scores, probabilities) in float64; rows that keep nothing have probability 0."""
    group = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(group, 1)
    s = q.double() @ k.double().transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = s if softcap is None else softcap * torch.tanh(s / softcap)
    s = s if bias is None else s + bias
    s = s if kept is None else s.masked_fill(~kept, -math.inf)
    return s, torch.softmax(s, -1).nan_to_num(0)


def blocks(p, size):
    """Means over a block's rows of the mass in each key block, by a loop."""
    rows = [p[..., i : i + size[0], :].mean(-2) for i in range(0, p.shape[-2], size[0])]
    columns = [[r[..., j : j + size[1]].sum(-1) for j in range(0, p.shape[-1], size[1])] for r in rows]
    return torch.stack([torch.stack(line, -1) for line in columns], -2)


def compare(found, info, s, p, size, axes=None):
    """Every statistic of a call against the full matrix."""
    of = {name: found.get(tensor) for name, tensor in info["statistics"].items() if isinstance(tensor, str)}
    mass, want = of["mass"], blocks(p, size)
    if mass.dtype == torch.uint8:
        assert ((mass == 0) == (want == 0)).all() and (exact.decoded(mass[mass > 1]) / want[mass > 1] - 1).abs().max() < 0.0294
        assert (want[mass == 1] < 4.4e-7).all()
    else:
        assert torch.allclose(mass.double(), want, atol=2e-7)
    rows = s.isfinite().any(-1)
    assert torch.allclose(of["lse"].double()[rows], s.logsumexp(-1)[rows], atol=2e-5)
    assert torch.allclose(of["max"].double()[rows], s.amax(-1)[rows], atol=2e-5)
    assert (of["lse"][~rows] == -math.inf).all() and (of["entropy"][~rows] == 0).all()
    assert torch.allclose(of["entropy"].double(), -torch.xlogy(p, p).sum(-1), atol=2e-5)
    assert torch.allclose(of["columns"].double(), p.mean(-2), rtol=2**-8, atol=1e-9)
    q_len, kv_len = p.shape[-2:]
    far = torch.arange(q_len)[:, None] - torch.arange(kv_len)
    bounds = of["distance_edges"]
    assert bounds[0] == 1 - kv_len and bounds[-1] == q_len and (bounds.diff() > 0).all()
    bins = torch.bucketize(far, bounds.long(), right=True) - 1
    want = torch.zeros(*p.shape[:2], len(bounds) - 1, dtype=torch.float64).index_add_(2, bins.flatten(), p.flatten(2))
    assert torch.allclose(of["distance"].double(), want / q_len, atol=2e-7)
    if axes is not None:
        offsets(of["offsets"].double(), p, axes, info["statistics"]["offsets_signed"])


def offsets(found, p, axes, signed):
    extents, start = axes.extents, axes.start
    inside = p[..., start : start + axes.tokens, start : start + axes.tokens]
    at = torch.stack(torch.meshgrid(*(torch.arange(n) for n in extents), indexing="ij"), -1).reshape(-1, len(extents))
    far = at[:, None] - at[None]
    shape, flat = axes.bins(), torch.zeros(axes.tokens, axes.tokens, dtype=torch.long)
    assert list(found.shape[2:]) == shape
    for axis, (extent, bins) in enumerate(zip(extents, shape, strict=True)):
        flat = flat * bins + (far[..., axis] + extent - 1 if signed[axis] else far[..., axis].abs())
    want = torch.zeros(*p.shape[:2], math.prod(shape), dtype=torch.float64)
    want.index_add_(2, flat.flatten(), inside.flatten(2))
    assert torch.allclose(found.flatten(2), want / axes.tokens, rtol=2**-7, atol=1e-9)


def random(*shape):
    return torch.randn(*shape) * 1.5


@torch.no_grad()
def plain_calls_agree_with_float64():
    for b, h, hk, q_len, kv_len, size in ((2, 4, 2, 300, 300, (128, 64)), (1, 2, 1, 70, 190, (32, 32)), (1, 1, 1, 2500, 40, (64, 16))):
        q, k, v = random(b, h, q_len, 16), random(b, hk, kv_len, 16), random(b, hk, kv_len, 16)
        for causal in (False, True):
            with tool.capture(FILE, block_size=size, mass="uint8" if causal else "float32") as kept:
                F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True, scale=0.3)
            found, infos, whole = read()
            (info,) = infos.values()
            mask = torch.arange(q_len)[:, None] >= torch.arange(kv_len) if causal else None
            compare(found, info, *dense(q, k, 0.3, kept=mask), size)
            assert info["statistics"]["own_mask"] == ("applied" if causal else "none") and whole["block_size"] == list(size)
            # the size that was predicted is the size of what is there, except for the bounds of bins and fillers
            there = sum(t.nbytes for name, t in found.items() if not name.startswith(("pad.", "edges.")))
            assert there == info["bytes"] == kept.bytes and found[f"{next(iter(infos))}.q"].equal(q)


@torch.no_grad()
def masks_of_every_kind_are_applied():
    b, h, n = 2, 2, 96
    q, k, v = random(b, h, n, 16), random(b, h, n, 16), random(b, h, n, 16)
    kept = torch.rand(b, 1, n, n) < 0.4
    kept[1, 0, 7] = False
    bias = random(1, h, n, n)
    for given, of in (({"attn_mask": kept}, {"kept": kept}), ({"attn_mask": bias}, {"bias": bias})):
        with tool.capture(FILE, block_size=32, mass="float32"):
            F.scaled_dot_product_attention(q, k, v, **given)
        found, infos, _ = read()
        (info,) = infos.values()
        compare(found, info, *dense(q, k, **of), (32, 32))
        assert found[info["mask_tensor"]].expand(b, h, n, n).equal(next(iter(given.values())).expand(b, h, n, n))
    window = torch.arange(n)[:, None] - torch.arange(n)
    slopes = torch.tensor([0.1, 0.4])
    block_mask = create_block_mask(lambda b, h, i, j: (i - j).abs() < 20 + 10 * h, 1, h, n, n, device="cpu", BLOCK_SIZE=32)
    with tool.capture(FILE, block_size=32, mass="float32"):
        flex_attention(q, k, v, lambda s, b, h, i, j: s - slopes[h] * (i - j).abs(), block_mask)
    found, infos, _ = read()
    (info,) = infos.values()
    near = torch.stack([window.abs() < 20, window.abs() < 30])[None]
    compare(found, info, *dense(q, k, bias=-slopes[:, None, None] * window.abs(), kept=near), (32, 32))
    assert info["mod"] and info["statistics"]["own_mask"] == "applied"


@torch.no_grad()
def packages_align_their_last_rows():
    """flash-attn: causal from the end, windows, sequences one after the other; positions as its documentation says."""
    q, k, v = random(1, 40, 2, 16), random(1, 72, 2, 16), random(1, 72, 2, 16)
    module = types.ModuleType("flash_attn")
    module.flash_attn_func = lambda q, k, v, **_: q
    module.flash_attn_varlen_func = lambda q, *_, **__: q
    sys.modules["flash_attn"] = module
    far = torch.arange(40)[:, None] + 32 - torch.arange(72)
    bounds = (torch.tensor([0, 15, 40]), torch.tensor([0, 30, 72]))
    ids = [torch.bucketize(torch.arange(n), b[1:], right=True) for n, b in zip((40, 72), bounds, strict=True)]
    last = torch.tensor([30 - 15, 72 - 40])[ids[0]]
    packed = (ids[0][:, None] == ids[1]) & (torch.arange(40)[:, None] + last[:, None] >= torch.arange(72))
    try:
        for call, mask in (
            (lambda: module.flash_attn_func(q, k, v, causal=True), far >= 0),
            (lambda: module.flash_attn_func(q, k, v, causal=True, window_size=(9, 0)), (far >= 0) & (far <= 9)),
            (lambda: module.flash_attn_varlen_func(q[0], k[0], v[0], *bounds, 25, 42, causal=True), packed),
        ):
            with tool.capture(FILE, block_size=16, mass="float32"):
                call()
            found, infos, _ = read()
            (info,) = infos.values()
            compare(found, info, *dense(q.transpose(1, 2), k.transpose(1, 2), kept=mask), (16, 16))
    finally:
        sys.modules.pop("flash_attn")


@torch.no_grad()
def offsets_follow_the_axes():
    for extents, start, n in (({"t": 3, "h": 4, "w": 5}, 7, 70), ({"h": 6, "w": 9}, 0, 54), ({"x": 33}, 2, 40)):
        q, k, v = (random(1, 2, n, 16) for _ in "qkv")
        with tool.capture(FILE, block_size=16, axes=extents | {"start": start}):
            F.scaled_dot_product_attention(q, k, v)
        found, infos, whole = read()
        (info,) = infos.values()
        compare(found, info, *dense(q, k), (16, 16), tool.grid(extents | {"start": start}))
        assert whole["axes"] == {"names": list(extents), "extents": list(extents.values()), "start": start}
    before, exact.SIGNED = exact.SIGNED, 10
    try:
        with tool.capture(FILE, block_size=16, axes={"t": 3, "h": 3, "w": 4}):
            F.scaled_dot_product_attention(*(random(1, 2, 36, 16) for _ in "qkv"))
        found, infos, _ = read()
        (info,) = infos.values()
        q, k = (found[f"{next(iter(infos))}.{x}"] for x in "qk")
        assert info["statistics"]["offsets_signed"] == [True, False, False]
        compare(found, info, *dense(q, k), (16, 16), tool.grid({"t": 3, "h": 3, "w": 4}))
    finally:
        exact.SIGNED = before


@torch.no_grad()
def strips_of_any_height_agree():
    q, k, v = (random(1, 3, 130, 16) for _ in "qkv")
    before = dict(exact.STRIP)
    try:
        for cells in (50, 130 * 40, 130 * 64 * 2):
            exact.STRIP["cpu"] = cells
            with tool.capture(FILE, block_size=64, mass="float32", axes={"h": 10, "w": 13}):
                F.scaled_dot_product_attention(q, k, v)
            found, infos, _ = read()
            compare(found, next(iter(infos.values())), *dense(q, k), (64, 64), tool.grid({"h": 10, "w": 13}))
    finally:
        exact.STRIP.update(before)


@torch.no_grad()
def broken_scores_count_as_nothing():
    q, k, v = (random(1, 2, 40, 16) for _ in "qkv")
    clean = dense(q, k)
    q[0, 0, 3], q[0, 1, 8] = math.nan, math.inf
    with tool.capture(FILE, block_size=16, mass="float32") as kept:
        F.scaled_dot_product_attention(q, k, v)
    found, infos, _ = read()
    (info,) = infos.values()
    p = clean[1].clone()
    p[0, 0, 3] = p[0, 1, 8] = 0
    assert torch.allclose(found[info["statistics"]["mass"]].double(), blocks(p, (16, 16)), atol=2e-7)
    assert kept.bad_rows == info["statistics"]["bad_rows"] == 2 and found[info["statistics"]["lse"]].isnan().any()
    half = (q * 300).half().nan_to_num(0, 6e4, -6e4), (k * 300).half()
    with tool.capture(FILE, block_size=16, mass="float32"):
        F.scaled_dot_product_attention(*half, v.half())
    found, infos, _ = read()
    (info,) = infos.values()
    assert info["dtype"] == "float16" and info["statistics"]["bad_rows"] == 0
    assert torch.allclose(found[info["statistics"]["mass"]].double(), blocks(dense(*half)[1], (16, 16)), atol=2e-5)


@torch.no_grad()
def models_of_libraries_give_the_statistics_of_what_they_attend_with():
    for name in ("llama_gqa", "gpt_oss", "gemma2", "flux", "hunyuan", "unet"):
        built = families.built(name)
        if built is None:
            continue
        model, inputs, _ = built
        if name == "flux":
            model.fuse_qkv_projections()
        with tool.capture(FILE, block_size=16, mass="float32"):
            model(**inputs)
        found, infos, whole = read()
        assert infos and whole["complete"] and whole["calls"] == len(infos), name
        for key, info in infos.items():
            q, k = found[f"{key}.q"], found[f"{key}.k"]
            assert info["statistics"]["own_mask"] != "unknown", (name, key)
            mask = found.get(info.get("mask_tensor"))
            of = {} if mask is None else {"kept": mask} if mask.dtype == torch.bool else {"bias": mask.double()}
            if info["is_causal"]:
                of["kept"] = torch.arange(q.shape[2])[:, None] >= torch.arange(k.shape[2])
            compare(found, info, *dense(q, k, info["scale"], softcap=info.get("softcap"), **of), (16, 16))
        print(f"  {name}: {len(infos)} calls", flush=True)


@torch.no_grad()
def heads_steps_and_prompts_are_chosen_apart():
    model, inputs, _ = families.built("llama")
    with tool.capture(FILE, block_size=16, heads=[1], steps=[0, 2], prompts=None, layers=[1]) as kept:
        for prompt in ("a cat", "a dog", "a fox"):
            kept.next_prompt(prompt)
            for _ in range(3):
                model(**inputs)
    found, infos, whole = read()
    assert whole["prompts"] == ["a cat", "a dog", "a fox"]
    assert [(i["prompt"], i["step"], i["layer"]) for i in infos.values()] == [(p, s, 1) for p in range(3) for s in (0, 2)]
    name = next(iter(infos)).removesuffix(".step0")
    assert list(infos) == [f"{name}.step{s}" + f".prompt{p}" * (p > 0) for p in range(3) for s in (0, 2)]
    for key, info in infos.items():
        assert info["captured_heads"] == [1] and found[f"{key}.q"].shape[1] == 1 and found[f"{key}.mass"].shape[1] == 2
        assert info["name"] == name
    # equal masks are in the file once, for all steps
    assert sum(key.endswith(".mask") for key in found) == 1 and len({i["mask_tensor"] for i in infos.values()}) == 1
    with tool.capture(FILE, block_size=16, heads=()):
        model(**inputs)
    found, infos, _ = read()
    assert not any(key.endswith((".q", ".k", ".v", ".mask")) for key in found)
    assert not any(info["qkv"] for info in infos.values()) and all(info["statistics"] for info in infos.values())


@torch.no_grad()
def generate_begins_a_prompt():
    model, inputs, _ = families.built("llama")
    with tool.capture(FILE, steps=None, prompts=[1]):
        for _ in range(2):
            model.generate(inputs["input_ids"], max_new_tokens=3, do_sample=False)
    _, infos, _ = read()
    assert {(info["prompt"], info["step"]) for info in infos.values()} == {(1, 0), (1, 1), (1, 2)}


SCRIPT_TEXT = """
import sys, os, signal, torch
sys.path.insert(0, {folder!r})
import maskloom_capturing.file as files
files.BETWEEN = 0.0
model = torch.nn.Module()
model.forward = lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x)
for step in range(6):
    torch.manual_seed(step)
    model(torch.randn(1, 2, 64, 16))
    if step == 3 and {how!r} == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if step == 3 and {how!r} == "fail":
        raise ValueError("planted")
"""


def an_unfinished_run_leaves_what_it_had():
    for how in ("kill", "fail"):
        script, out = os.path.join(WORK, f"{how}.py"), os.path.join(WORK, f"{how}.safetensors")
        with open(script, "w") as text:
            text.write(SCRIPT_TEXT.format(folder=os.path.dirname(SCRIPT), how=how))
        ran = subprocess.run([sys.executable, SCRIPT, "--steps", "all", "--block-size", "32", "--out", out, script], capture_output=True)
        assert ran.returncode == (-signal.SIGKILL if how == "kill" else 1), ran.stderr
        assert os.path.exists(out) == (how == "fail") and os.path.exists(out + ".part") == (how == "kill")
        found, infos, whole = read(out + ".part" * (how == "kill"))
        assert not whole["complete"] and len(infos) == whole["calls"] == 4, whole
        assert whole["stopped"] == ("ValueError: planted" if how == "fail" else "it still runs")
        torch.manual_seed(3)
        assert found[f"{list(infos)[3]}.q"].equal(torch.randn(1, 2, 64, 16))
        if how == "kill":
            os.unlink(out + ".part")


def the_file_has_no_gaps_and_holds_little_memory():
    """Odd sizes, both ways to finish, a header without room; a capture larger than the memory it may take."""
    tensors = {"a": torch.arange(5, dtype=torch.uint8), "b": torch.randn(3, 7), "c": torch.randn(3).bfloat16(), "e": torch.zeros(0, 4),
               "d": torch.randn(2, 2).double(), "m": torch.tensor([True, False, True])}  # fmt: skip
    for room, copied in ((1 << 12, 0), (1 << 12, 1 << 30), (64, 0)):
        made = files.Growing(FILE, room, copied)
        for name, tensor in tensors.items():
            made.add(name, tensor)
        made.finish({"layout": "bhsd"})
        with safe_open(FILE, "pt") as file:
            assert all(file.get_tensor(name).equal(tensor) for name, tensor in tensors.items())
        assert not os.path.exists(FILE + ".part")
    text = f"""
        import resource, sys, torch
        sys.path.insert(0, {os.path.dirname(SCRIPT)!r})
        from maskloom_capture import capture
        q = torch.randn(1, 64, 256, 64)
        def run(steps):
            with capture({FILE!r}, steps=None):
                for _ in range(steps):
                    torch.nn.functional.scaled_dot_product_attention(q, q, q)
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        first = run(2)
        more = (run(20) - first) / 1024
        assert more < 64, f"{{more:.0f}} MiB more for ten times the calls, which are 250 MB"
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    os.unlink(FILE)


# a short process collects no garbage of its imports
DDP = """
import gc, os, sys, torch
gc.disable()
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(os.environ["RANK"]), world_size=2)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.MultiheadAttention(32, 2, batch_first=True) for _ in range(2))
    def forward(self, x):
        for block in self.blocks:
            x = block(x, x, x, need_weights=False)[0]
        return x
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(Model())
torch.manual_seed(dist.get_rank())
model(torch.randn(1, 40, 32)).sum().backward()
dist.barrier()
"""


def processes_of_a_group_write_files_of_their_own():
    script = os.path.join(WORK, "ddp.py")
    with open(script, "w") as out:
        out.write(DDP)
    for args, there in ((["--all-ranks"], 2), ([], 1)):
        meet = os.path.join(WORK, f"meet{there}")
        path = os.path.join(WORK, f"ddp{there}.safetensors")
        if os.path.exists(meet):
            os.unlink(meet)
        run = [sys.executable, SCRIPT, "--block-size", "16", *args, "--out", path, script, meet]
        env = {**os.environ, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
        ranks = [subprocess.Popen(run, env={**env, "RANK": str(r)}, stderr=subprocess.PIPE, text=True) for r in range(2)]
        said = [rank.communicate(timeout=120)[1] for rank in ranks]
        assert all(rank.returncode == 0 for rank in ranks), said
        made = [path, path.replace(".safetensors", ".rank1.safetensors")]
        assert [os.path.exists(p) for p in made] == [True, there == 2]
        seen = [read(p) for p in made[:there]]
        for rank, (_, infos, whole) in enumerate(seen):
            assert whole["rank"] == rank and whole["world_size"] == 2
            assert list(infos) == ["blocks.0.step0", "blocks.1.step0"] and infos["blocks.0.step0"]["model"] == "Model"
        if there == 2:
            assert not seen[0][0]["blocks.0.step0.q"].equal(seen[1][0]["blocks.0.step0.q"])


def a_size_is_told_before_and_after_the_first_pass():
    script = os.path.join(WORK, "two.py")
    with open(script, "w") as out:
        out.write("import torch\nm = torch.nn.Module()\nm.forward = lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x)\n"
                  "for _ in range(2):\n    m(torch.randn(1, 2, 256, 16))\n")  # fmt: skip
    run = [sys.executable, SCRIPT, "--out", FILE, "--block-size", "32", "--heads", "none", "--steps", "0,1"]
    want = exact.sizes((1, 2, 256, 16), 256, (32, 32), None, 1)
    ran = subprocess.run([*run, "--preview", script], capture_output=True, text=True)
    assert ran.returncode == 0 and f"{want / 2**20:.1f} MiB" in ran.stdout and "2 calls" in ran.stdout, ran.stdout
    assert not os.path.exists(FILE)
    ran = subprocess.run([*run, script], capture_output=True, text=True)
    assert "MiB a pass (1 calls), 2 steps of 1 prompts: 0.00 GiB" in ran.stderr, ran.stderr
    ran = subprocess.run([*run, "--axes", "t=0", script], capture_output=True, text=True)
    assert ran.returncode == 2 and "Traceback" not in ran.stderr, ran.stderr


def main():
    os.makedirs(WORK, exist_ok=True)
    torch.set_num_threads(2)
    for check in (
        plain_calls_agree_with_float64,
        masks_of_every_kind_are_applied,
        packages_align_their_last_rows,
        offsets_follow_the_axes,
        strips_of_any_height_agree,
        broken_scores_count_as_nothing,
        models_of_libraries_give_the_statistics_of_what_they_attend_with,
        heads_steps_and_prompts_are_chosen_apart,
        generate_begins_a_prompt,
        an_unfinished_run_leaves_what_it_had,
        the_file_has_no_gaps_and_holds_little_memory,
        processes_of_a_group_write_files_of_their_own,
        a_size_is_told_before_and_after_the_first_pass,
    ):
        torch.manual_seed(torch.seed() % 2**32)
        check()
        print(f"ok {check.__name__}", flush=True)
    print("all statistics agree")


main()
