"""Exported modules in training on the cpu: keys of another number than queries, learned tensors, DDP and FSDP. Run by behaviour.py."""

import json
import os
import subprocess
import sys

import torch
from exports import CLOSE, MASKLOOM, WORK, _made, preset
from matrix import apart

KEEP = """
def mask_mod(b, h, q_idx, kv_idx):
    at = q_idx + 56
    return (kv_idx <= at) & ((at - kv_idx < 9) | (kv_idx < 4)) & (q_idx != 5)
"""
SCORE = """
import torch
bias = torch.linspace(-1, 1, 320).reshape(4, 80)
gate = torch.tensor([0.5, 1.0, 1.5, 2.0])

def score_mod(score, b, h, q_idx, kv_idx):
    return score * gate[h] + bias[h, kv_idx]
"""


def offset():
    """Module of a design of 24 queries over 80 keys, 4 heads over 2, with sinks, a window and one row that keeps nothing."""
    if "offset" not in _made:
        file, folder = os.path.join(WORK, "offset.json"), os.path.join(WORK, "offset")
        code = lambda text: {"kind": "text", "source": text, "entry": "", "args": {}, "tensors": {}}
        document = {
            "maskloom": 1, "name": "Offset", "axes": {"q": "tokens 24", "kv": "tokens 80"},
            "layers": [{"id": 1, "name": "kept", "enabled": True, "combine": "and", "content": code(KEEP)}],
            "scores": [{"id": 2, "name": "scored", "enabled": True, "content": code(SCORE)}],
            "settings": {
                "batch": 1, "heads": 4, "kv_heads": 2, "head_dim": 64, "dtype": "f32", "layout": "bhsd", "seed": 0,
                "block_size": {"q": 128, "kv": 128}, "backends": ["flex"],
            },
        }  # fmt: skip
        if not os.path.isdir(folder):
            os.makedirs(WORK, exist_ok=True)
            with open(file, "w") as out:
                json.dump(document, out)
            ran = subprocess.run([MASKLOOM, "export", file, "--name", "d_offset", "--to", folder], capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
        sys.path.insert(0, folder)
        _made["offset"] = folder, __import__("d_offset")
    return _made["offset"]


def plainly(q, k, v, keep, score, scale):
    """Attention of whole tensors in float64; a row that keeps nothing is 0."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    cells = score(q @ k.transpose(-1, -2) * scale).masked_fill(~keep, -1e30)
    return (torch.softmax(cells, -1) * keep.any(-1, keepdim=True)) @ v


def trained(run, start, steps=3):
    """What is learned in some steps of Adam, and the gradients of the first."""
    held = {name: torch.nn.Parameter(t.clone()) for name, t in start.items()}
    optimiser, first = torch.optim.Adam(held.values(), lr=0.02), {}
    for _ in range(steps):
        optimiser.zero_grad()
        (run(held).square() + run(held)).mean().backward()
        first = first or {name: t.grad.clone() for name, t in held.items()}
        optimiser.step()
    return first, {name: t.detach() for name, t in held.items()}


def alike(run, by_hand, start):
    got, want = trained(run, start), trained(by_hand, {name: t.double() for name, t in start.items()})
    for name in start:
        assert want[0][name].abs().max() > 1e-6, name
        assert apart(got[0][name], want[0][name]) < CLOSE * max(1.0, want[0][name].abs().max().item()), name
        assert apart(got[1][name], want[1][name]) < 2e-3 and apart(want[1][name], start[name]) > 1e-2, name


def keys_of_another_number_train_as_plain_autograd_does():
    design = offset()[1]
    assert (design.Q_LEN, design.KV_LEN, set(design.LEARNS)) == (24, 80, {"bias", "gate"})
    torch.manual_seed(0)
    draw = lambda heads, tokens: torch.randn(3, heads, tokens, 64)
    start = {"q": draw(4, 24), "k": draw(2, 80), "v": draw(2, 80)}
    start |= {"bias": torch.linspace(-1, 1, 320).reshape(4, 80), "gate": torch.tensor([0.5, 1.0, 1.5, 2.0])}
    at, key = torch.arange(24)[:, None] + 56, torch.arange(80)
    keep = (key <= at) & ((at - key < 9) | (key < 4)) & (at != 61)
    assert torch.equal(design.make_mask("cpu")[0, 0], keep)
    for compiled in (True, False):
        run = lambda t: design.attend(
            t["q"], t["k"], t["v"], compiled=compiled, learned={name: t[name] for name in ("bias", "gate")}
        )
        score = lambda t: lambda s: s * t["gate"].view(1, 4, 1, 1) + t["bias"][None, :, None]
        alike(run, lambda t: plainly(t["q"], t["k"], t["v"], keep, score(t), design.SCALE), start)
    # the design's own values, which do not learn
    qkv = {name: start[name] for name in "qkv"}
    own = lambda t: plainly(t["q"], t["k"], t["v"], keep, score({n: start[n].double() for n in ("bias", "gate")}), design.SCALE)
    alike(lambda t: design.attend(t["q"], t["k"], t["v"]), own, qkv)


def learned_sinks_train_as_plain_autograd_does():
    """One key more than queries, which is each head's sink."""
    design = preset("oss", "gpt_oss_sinks", "--axes", "tokens 40", "--kv-axes", "sink 1 | tokens 40", "--head-dim", "64")[1]
    assert (design.Q_LEN, design.KV_LEN, design.LEARNS) == (40, 41, ("sinks",))
    torch.manual_seed(1)
    start = {name: torch.randn(2, 2, 40, 64) for name in ("q", "k", "v")} | {"sinks": torch.tensor([0.3, -0.4])}
    zeros = torch.zeros(2, 2, 1, 64)
    keep = torch.cat([torch.ones(40, 1), torch.ones(40, 40).tril()], 1).bool()
    assert torch.equal(design.make_mask("cpu")[0, 0], keep)
    extra = lambda t: torch.cat([zeros.to(t.dtype), t], 2)
    run = lambda t: design.attend(t["q"], extra(t["k"]), extra(t["v"]), learned={"sinks": t["sinks"]})

    def by_hand(t):
        # no key: one term more in each row's sum
        scores = (t["q"] @ t["k"].transpose(-1, -2) * design.SCALE).masked_fill(~keep[:, 1:], -1e30)
        lse = torch.logsumexp(scores, -1, keepdim=True)
        return torch.softmax(scores, -1) @ t["v"] * torch.sigmoid(lse - t["sinks"].view(1, 2, 1, 1))

    alike(run, by_hand, start)


SPREAD = """
import sys
sys.path.append(sys.argv[1])
import torch, d_offset as design
import torch.distributed as dist
from torch.utils import checkpoint
way, file = sys.argv[2:4]

class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = torch.nn.Linear(32, 256), torch.nn.Linear(32, 256)
        self.bias = torch.nn.Parameter(torch.linspace(-1, 1, 320).reshape(4, 80))
        self.gate = torch.nn.Parameter(torch.tensor([0.5, 1.0, 1.5, 2.0]))
    def attend(self, x):
        q = self.q(x[:, :24]).unflatten(-1, (4, 64)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, 2, 64)).permute(2, 0, 3, 1, 4)
        return design.attend(q, k, v, learned={"bias": self.bias, "gate": self.gate})
    def forward(self, x):
        return checkpoint.checkpoint(self.attend, x, use_reentrant=False) if "checkpointed" in way else self.attend(x)

torch.manual_seed(0)
model, x = Own(), torch.randn(4, 80, 32)
if way != "alone":
    dist.init_process_group("gloo")
    x = x.chunk(2)[dist.get_rank()]
if way.startswith("ddp"):
    run = torch.nn.parallel.DistributedDataParallel(model)
elif way.startswith("fsdp2"):
    from torch.distributed.fsdp import fully_shard
    run = fully_shard(model)
elif way.startswith("fsdp1"):
    from torch.distributed.fsdp import FullyShardedDataParallel, StateDictType
    run = FullyShardedDataParallel(model, use_orig_params=True, device_id=torch.device("cpu"))
else:
    run = model
optimiser = torch.optim.SGD(run.parameters(), lr=0.5)
for _ in range(2):
    optimiser.zero_grad()
    run(x).square().mean().backward()
    optimiser.step()
if way.startswith("fsdp1"):
    with FullyShardedDataParallel.state_dict_type(run, StateDictType.FULL_STATE_DICT):
        found = run.state_dict()
else:
    found = {n: p.full_tensor() if hasattr(p, "full_tensor") else p for n, p in model.state_dict().items()}
if way == "alone" or dist.get_rank() == 0:
    torch.save({n: p.detach().clone() for n, p in found.items()}, file)
if way != "alone":
    dist.barrier()
    dist.destroy_process_group()
"""


def modules_learn_spread_over_processes_as_in_one():
    script = os.path.join(WORK, "spread.py")
    with open(script, "w") as out:
        out.write(SPREAD)
    found = {}
    for way in ("alone", "ddp", "ddp checkpointed", "fsdp1", "fsdp2", "fsdp2 checkpointed"):
        if way.startswith("fsdp2") and not hasattr(torch.distributed.fsdp, "fully_shard"):
            continue
        file = os.path.join(WORK, "spread.pt")
        launch = [] if way == "alone" else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command = [sys.executable, *launch, script, offset()[0], way, file]
        ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"})
        assert ran.returncode == 0, (way, ran.stderr[:6000])
        found[way] = torch.load(file)
    for way, learned in found.items():
        for name, want in found["alone"].items():
            got = learned[name]
            assert apart(got, want) < CLOSE, (way, name, apart(got, want))
    start = torch.linspace(-1, 1, 320).reshape(4, 80)
    assert apart(found["alone"]["bias"], start) > 1e-5
