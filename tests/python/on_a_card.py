"""Exported kernel bundles trained on a GPU: python on_a_card.py MASKLOOM WORK [--deterministic] [PRESET...]

Each preset is exported with its own heads and about 1,024 tokens. A small model of projections around its operators takes two steps of an
optimiser plainly, under torch.compile(fullgraph), checkpointed, with selective checkpointing and inside a CUDA graph. Gradients of both
steps are compared with those of the same model in float32, whose attention is the exported module's dense mask and score in plain
PyTorch. With --deterministic three backward passes of every kernel must have the same bits besides. Exit status 77: there is no GPU.
"""

import importlib
import os
import subprocess
import sys

import torch
from torch.utils import checkpoint

MASKLOOM, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
AXES = {
    "alibi": ["--seq", "1024"],
    "t5_encoder": ["--seq", "1024"],
    "gemma2_softcap_window": ["--seq", "1024"],
    "gpt_oss_sinks": ["--axes", "tokens 1024", "--kv-axes", "sink 1 | tokens 1024"],
    "prefix_lm": ["--axes", "prefix 256 | answer 768"],
}
ORDERED = ["--deterministic"] if "--deterministic" in sys.argv else []
PRESETS = [name for name in sys.argv[3:] if name not in ORDERED] or list(AXES)
BATCH, WIDTH = 2, 256
# of the largest gradient; bf16 has steps of 2^-8, and a gradient passes two projections and the attention
ALLOWED = 4e-2


def export(preset):
    folder = os.path.join(WORK, preset)
    command = [MASKLOOM, "export", preset, "--kernels", *ORDERED, *AXES.get(preset, []), "--to", folder]
    subprocess.run(command, check=True, capture_output=True)
    sys.path.insert(0, folder)
    stem = next(name[: -len("_kernel.py")] for name in os.listdir(folder) if name.endswith("_kernel.py"))
    return importlib.import_module(stem), importlib.import_module(f"{stem}_kernel")


class Model(torch.nn.Module):
    """Projections around attention; `attend` takes q, k, v and the learned tensors by name."""

    def __init__(self, kernel, attend, start):
        super().__init__()
        self.shape, self.attend = kernel.PROBLEM, attend
        p = self.shape
        self.q = torch.nn.Linear(WIDTH, p["heads"] * p["head_dim"], bias=False)
        self.k = torch.nn.Linear(WIDTH, p["kv_heads"] * p["head_dim"], bias=False)
        self.v = torch.nn.Linear(WIDTH, p["kv_heads"] * p["head_dim_v"], bias=False)
        self.out = torch.nn.Linear(p["heads"] * p["head_dim_v"], WIDTH, bias=False)
        self.names = list(start)  # Dynamo of PyTorch 2.11 cannot unpack a ParameterDict
        self.learnt = torch.nn.ParameterDict({name: t.detach().clone() for name, t in start.items()})

    def forward(self, x):
        heads = lambda made, count: made.unflatten(-1, (count, -1)).transpose(1, 2)
        p = self.shape
        queries, keys = x[:, : p["q_len"]], x[:, : p["kv_len"]]
        q, k, v = heads(self.q(queries), p["heads"]), heads(self.k(keys), p["kv_heads"]), heads(self.v(keys), p["kv_heads"])
        out = self.attend(q, k, v, {name: self.learnt[name] for name in self.names})
        return self.out(out.transpose(1, 2).flatten(2).to(x.dtype))


def grads(model):
    return {name: p.grad.detach().float().clone() for name, p in model.named_parameters() if p.grad is not None}


def two_steps(model, run, x, target):
    """Gradients of each step."""
    optimiser, found = torch.optim.SGD(model.parameters(), lr=0.05), []
    for _ in range(2):
        optimiser.zero_grad()
        loss_of(run(x), target).backward()
        found.append(grads(model))
        optimiser.step()
    return found


def two_replays(model, x, target):
    """The same with a step captured as a CUDA graph."""
    side, begin = torch.cuda.Stream(), [p.detach().clone() for p in model.parameters()]
    optimiser, found = torch.optim.SGD(model.parameters(), lr=0.05), []
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimiser.zero_grad()
            loss_of(model(x), target).backward()
    torch.cuda.current_stream().wait_stream(side)
    optimiser.zero_grad()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss_of(model(x), target).backward()
    with torch.no_grad():
        for p, value in zip(model.parameters(), begin):
            p.copy_(value)
    for _ in range(2):
        for p in model.parameters():
            p.grad.fill_(torch.nan)  # a gradient that a replay only adds to would stay NaN
            p.grad.zero_()
        graph.replay()
        found.append(grads(model))
        optimiser.step()
    return found


def loss_of(out, target):
    return ((out.float() - target) ** 2).mean()


def selective(kernel):
    policy = lambda _, op, *__, **___: (
        checkpoint.CheckpointPolicy.MUST_SAVE if op in kernel.OPERATORS else checkpoint.CheckpointPolicy.PREFER_RECOMPUTE
    )
    return lambda: checkpoint.create_selective_checkpoint_contexts(policy)


def same_bits(kernel, start):
    """Whether three backward passes of the operators give the same gradients."""
    p, runs = kernel.PROBLEM, []
    q = torch.randn(BATCH, p["heads"], p["q_len"], p["head_dim"], device="cuda", dtype=kernel.DTYPE)
    k = torch.randn(BATCH, p["kv_heads"], p["kv_len"], p["head_dim"], device="cuda", dtype=kernel.DTYPE)
    v = torch.randn(BATCH, p["kv_heads"], p["kv_len"], p["head_dim_v"], device="cuda", dtype=kernel.DTYPE)
    learnt = {name: t.detach().clone() for name, t in start.items()}
    given = [t.requires_grad_() for t in (q, k, v, *learnt.values())]
    out = kernel.attend(q, k, v, captured=learnt or None)
    seed = torch.randn_like(out)
    for _ in range(3):
        runs.append(torch.autograd.grad(out, given, seed, retain_graph=True))
    return all(torch.equal(a, b) for run in runs[1:] for a, b in zip(run, runs[0]))


def ways(kernel, model):
    again = lambda **more: lambda x: checkpoint.checkpoint(model, x, use_reentrant=False, **more)
    yield "plain", lambda x, t: two_steps(model, model, x, t)
    yield "compiled", lambda x, t: two_steps(model, torch.compile(model, fullgraph=True), x, t)
    yield "checkpointed", lambda x, t: two_steps(model, again(), x, t)
    yield "selective", lambda x, t: two_steps(model, again(context_fn=selective(kernel)), x, t)
    yield "CUDA graph", lambda x, t: two_replays(model, x, t)


def one(preset):
    torch.manual_seed(1)
    design, kernel = export(preset)
    module = kernel.Attention().cuda()
    start = {name: t for name, t in getattr(module, "learnt", {}).items()}
    low = lambda *tensors: [t.to(kernel.DTYPE) for t in tensors]
    operators = lambda q, k, v, learnt: kernel.attend(*low(q, k, v), captured=learnt or None)
    dense = lambda q, k, v, learnt: design.attend(q, k, v, compiled=False, **({"learned": learnt} if learnt else {}))
    plain = Model(kernel, dense, start).cuda()
    p = kernel.PROBLEM
    x = torch.randn(BATCH, max(p["q_len"], p["kv_len"]), WIDTH, device="cuda")
    target = torch.randn(BATCH, p["q_len"], WIDTH, device="cuda")
    weights = {name: t.clone() for name, t in plain.state_dict().items()}
    want = two_steps(plain, plain, x, target)
    bad = int(bool(ORDERED) and not same_bits(kernel, start))
    if ORDERED:
        print(f"{'FAILED' if bad else 'ok    '} {preset}, the same bits in three passes", flush=True)
    model = Model(kernel, operators, start).cuda()
    for way, run in ways(kernel, model):
        model.load_state_dict(weights)
        try:
            got = run(x, target)
        except Exception as why:
            print(f"FAILED {preset}, {way}: {type(why).__name__}: {str(why)[:400]}", flush=True)
            bad += 1
            continue
        worst = ("", 0.0)
        for have, wanted in zip(got, want):
            assert have.keys() == wanted.keys(), (have.keys(), wanted.keys())
            for name, w in wanted.items():
                off = ((have[name] - w).abs().max() / w.abs().max()).item()
                worst = max(worst, (name, off if off == off else float("inf")), key=lambda found: found[1])
        bad += worst[1] > ALLOWED
        print(f"{'ok    ' if worst[1] <= ALLOWED else 'FAILED'} {preset}, {way}: {worst[0]} off by {worst[1]:.1e}", flush=True)
    return bad


def main():
    if not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU")
        sys.exit(77)
    torch.backends.cuda.matmul.allow_tf32 = False
    os.makedirs(WORK, exist_ok=True)
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    sys.exit(min(sum(one(preset) for preset in PRESETS), 1))


main()
