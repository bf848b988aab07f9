"""A kernel bundle's operators as training uses them, without a GPU: python bundle.py EXPORT STEM

EXPORT holds STEM.py, STEM_kernel.py and kernels/, of a design of 2 heads and 80 tokens whose score_mod learns `slopes`. On the cpu
stand-ins compute what the kernels would, from the exported module's mods. Checked are gradients against plain autograd, also under
torch.compile, checkpointing and two steps of an optimiser, past PyTorch's dispatcher and through it, what fakes say, and what is
refused. launches.py checks the parameters of launches.
"""

import copy
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import types
import warnings

import torch
import torch.distributed.fsdp
import torch.multiprocessing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils import checkpoint

sys.path.insert(0, sys.argv[1])
STEM = sys.argv[2]
design = importlib.import_module(STEM)
kernel = importlib.import_module(f"{STEM}_kernel")
launch = kernel._launch
gradcheck = importlib.import_module(f"{STEM}_gradcheck")
P = kernel.PROBLEM
calls = {"forward": 0, "backward": 0}


def formula(query, key, value, learned, scale):
    """Output and lse of all rows in float64."""
    b, h, s, _ = query.shape
    rows = torch.cartesian_prod(torch.arange(b), torch.arange(h), torch.arange(s))
    mask_mod, score_mod = design._mods(query.device, learned)
    group = h // key.shape[1]
    at_b, at_h, at_q = rows.unbind(1)
    score = torch.einsum("rd,rkd->rk", query[at_b, at_h, at_q], key[at_b, at_h // group]) * scale
    # broadcast: the vmap of PyTorch 2.5 reads no tensor at an index
    at = (at_b[:, None], at_h[:, None], at_q[:, None], torch.arange(key.shape[2]))
    score, keep = score_mod(score, *at), mask_mod(*at)
    score = score.double().masked_fill(~keep, -torch.inf)
    lse = torch.logsumexp(score, 1)
    weight = torch.softmax(score, 1)
    out = torch.einsum("rk,rkd->rd", weight, value[at_b, at_h // group])
    return out.view(b, h, s, -1), lse.view(b, h, s)


def wide(*tensors):
    return [t.detach().double() for t in tensors]


def weights(q, k, captured, scale):
    """By hand, as neither autograd nor vmap run inside of an operator: score_mod is score - slopes[h] * (q_idx - kv_idx), the mask
    causal. Scores, and the distance of each cell."""
    slopes = wide(*captured)[0] if captured else torch.tensor([0.5, 0.25], dtype=torch.float64)
    at = torch.arange(P["q_len"])
    distance = (at[:, None] - at).double()
    score = q @ k.transpose(-1, -2) * (P["scale"] if scale is None else scale) - slopes[:, None, None] * distance
    return score.masked_fill(distance < 0, -torch.inf), distance


def a_tensor_on_the_cpu_is_refused_in_words():
    """Before the stand-ins exist, and without PyTorch's text on dispatch keys."""
    for grad in (False, True):
        q, k, v = (t.detach().requires_grad_(grad) for t in inputs())
        lse = torch.zeros(q.shape[:3])
        for call in (
            lambda: kernel.attend(q, k, v),
            lambda: kernel.Attention()(q, k, v),
            lambda: kernel._attend_backward(q, None, q, k, v, q, lse, [], None),
        ):
            try:
                call()
            except ValueError as why:
                assert "query is on cpu" in str(why) and f"use {STEM}.attend" in str(why), why
            else:
                raise AssertionError("not refused")


def inputs(batch=1, seed=0):
    drawn = torch.Generator().manual_seed(seed)
    shapes = [(P["heads"], P["q_len"], P["head_dim"]), (P["kv_heads"], P["kv_len"], P["head_dim"])]
    shapes.append((P["kv_heads"], P["kv_len"], P["head_dim_v"]))
    return [torch.randn(batch, *s, generator=drawn).to(kernel.DTYPE).requires_grad_() for s in shapes]


a_tensor_on_the_cpu_is_refused_in_words()


def forward(query, key, value, captured, scale, checked=False):
    """Launched nowhere; like the launcher it wants checked tensors first."""
    if not checked:
        return None
    calls["forward"] += 1
    q, k, v = wide(query, key, value)
    score, _ = weights(q, k, captured, scale)
    return (torch.softmax(score, -1) @ v).to(query.dtype), torch.logsumexp(score, -1).float()


def backward(saved, lse, d_out, d_lse, captured, scale, checked=False):
    if not checked:
        return None
    calls["backward"] += 1
    q, k, v, o, do = wide(*saved, d_out)
    score, distance = weights(q, k, captured, scale)
    weight = torch.exp(score - lse.double()[..., None])
    delta = (do * o).sum(-1) - (0 if d_lse is None else d_lse.double())
    d_score = weight * (do @ v.transpose(-1, -2) - delta[..., None])
    found = [d_score @ k * scale, d_score.transpose(-1, -2) @ q * scale, weight.transpose(-1, -2) @ do]
    # the kernels' sums are there also if no tensor is passed
    return [g.to(t.dtype) for g, t in zip(found, saved)], [-(d_score * distance).sum((0, 2, 3)).float()]


kernel._DEVICE, launch.forward, launch.backward = "cpu", forward, backward
kernel_on = launch.kernel_on
launch.kernel_on = lambda device: types.SimpleNamespace(variant=kernel.LAUNCH["variants"][0])
past_the_dispatcher = kernel._alone


def close(got, want, what, by=2e-2):
    error = (got.double() - want.double()).abs().max() / want.double().abs().max()
    assert error <= by, f"{what}: {error}"


def autograd(q, k, v, slopes, with_lse):
    """Plain autograd's gradients of sum(out * cos) (+ sum(lse))."""
    leaves = [t.requires_grad_() for t in wide(q, k, v, slopes)]
    out, lse = formula(*leaves[:3], {"slopes": leaves[3]}, P["scale"])
    loss = (out * out.detach().cos()).sum() + (lse.sum() if with_lse else 0)
    return torch.autograd.grad(loss, leaves)


def loss_of(out, lse, with_lse):
    return (out.double() * out.detach().double().cos()).sum() + (lse.double().sum() if with_lse else 0)


def gradients_are_autograds():
    for with_lse in (False, True):
        q, k, v = inputs(batch=2)
        slopes = torch.nn.Parameter(torch.tensor([0.3, 0.1]))
        want = autograd(q, k, v, slopes, with_lse)
        module = kernel.Attention()
        with torch.no_grad():
            module.learnt["slopes"].copy_(slopes)
        runs = {
            "attend": lambda: kernel.attend(q, k, v, return_lse=True, captured={"slopes": slopes}),
            "compiled": lambda: torch.compile(
                lambda *a: kernel.attend(*a[:3], return_lse=True, captured={"slopes": a[3]}), fullgraph=True, backend="aot_eager"
            )(q, k, v, slopes),
            "checkpointed": lambda: checkpoint.checkpoint(
                lambda *a: kernel.attend(*a[:3], return_lse=True, captured={"slopes": a[3]}), q, k, v, slopes, use_reentrant=False
            ),
            "reentrant": lambda: checkpoint.checkpoint(
                lambda *a: kernel.attend(*a[:3], return_lse=True, captured={"slopes": a[3]}), q, k, v, slopes, use_reentrant=True
            ),
        }  # fmt: skip
        for name, run in runs.items():
            got = torch.autograd.grad(loss_of(*run(), with_lse), [q, k, v, slopes]) if name != "reentrant" else None
            if got is None:
                for t in (q, k, v, slopes):
                    t.grad = None
                loss_of(*run(), with_lse).backward()
                got = [t.grad for t in (q, k, v, slopes)]
            for what, g, w in zip(("dq", "dk", "dv", "dslopes"), got, want):
                close(g, w, f"{name}: {what}")
        own = torch.autograd.grad(loss_of(*module(q, k, v, return_lse=True), with_lse), [q, module.learnt["slopes"]])
        close(own[0], want[0], "module: dq")
        close(own[1], want[3], "module: dslopes")


class Seen(TorchDispatchMode):
    """A mode that counts the operators."""

    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.ops.append(op)
        return op(*args, **(kwargs or {}))


def only_plain_calls_go_past_the_dispatcher():
    """Whoever watches calls sees the operators."""
    q, k, v = inputs()
    assert kernel._alone(q, k, v) and kernel._alone(torch.nn.Parameter(q.detach()), k)
    assert type(kernel.attend(q, k, v).grad_fn).__name__ == "_AttendBackward"

    class Own(torch.Tensor):
        pass

    negative = torch.randn(4, dtype=torch.complex64).conj().imag
    assert negative.is_neg()
    for odd in (q.detach().as_subclass(Own), negative, q.detach().to("meta")):
        assert not kernel._alone(odd, k, v), odd
    assert not kernel._alone(q, k, q.detach().as_subclass(Own)) and not kernel._alone(q, negative)
    with Seen() as seen:
        kernel.attend(q, k, v)
        assert not kernel._alone(q, k, v)
    assert kernel.OPERATORS[0] in seen.ops, seen.ops
    torch.func.vmap(lambda x: [refuse(kernel._alone(x, k, v)), x][1])(q)
    torch.jit.trace(lambda x: [refuse(kernel._alone(x, k, v)), x][1], q, check_trace=False)
    torch.compile(lambda x: x + refuse(kernel._alone(x, k, v)), fullgraph=True, backend="aot_eager")(q)
    # gradients of gradients are refused as the operator does it
    (dq,) = torch.autograd.grad(kernel.attend(q, k, v).float().sum(), q, create_graph=True)
    try:
        torch.autograd.grad(dq.float().sum(), q)
    except RuntimeError as why:
        assert "autograd" in str(why), why
    else:
        raise AssertionError("a second derivative of nothing")


def refuse(alone):
    assert not alone
    return 0


def selective():
    """Contexts of a checkpoint that keeps what the operators give."""
    policy = lambda _, op, *__, **___: (
        checkpoint.CheckpointPolicy.MUST_SAVE if op in kernel.OPERATORS else checkpoint.CheckpointPolicy.PREFER_RECOMPUTE
    )
    return checkpoint.create_selective_checkpoint_contexts(policy)


def selective_checkpointing_keeps_the_output():
    q, k, v = inputs(batch=5)
    calls["forward"] = calls["backward"] = 0
    out = checkpoint.checkpoint(lambda *a: kernel.attend(*a).sin(), q, k, v, use_reentrant=False, context_fn=selective)
    out.float().sum().backward()
    assert calls == {"forward": 1, "backward": 1}, calls


def two_steps_train_as_plain_autograd_does():
    """The module of kernels, and the exported PyTorch module on the cpu."""
    # of which every row keeps something
    weights = {"slopes": torch.tensor([0.3, 0.1]), "project": torch.eye(P["head_dim"])}
    x, target = inputs(seed=3)[1].detach().float(), inputs(seed=4)[2].detach().float()

    def steps(run, by):
        held = {n: torch.nn.Parameter(t.clone()) for n, t in weights.items()}
        optimiser = torch.optim.SGD(held.values(), lr=0.05)
        for _ in range(2):
            optimiser.zero_grad()
            y = x @ held["project"]
            ((run(y, held["slopes"]).float() - target) ** 2).mean().backward()
            optimiser.step()
        return held | {"by": by}

    plain = steps(lambda y, slopes: formula(y.double(), y.double(), y.double(), {"slopes": slopes}, P["scale"])[0], 0)
    low = lambda y: y.to(kernel.DTYPE)
    own = steps(lambda y, slopes: kernel.attend(low(y), low(y), low(y), captured={"slopes": slopes}), 5e-2)
    exported = steps(lambda y, slopes: design.attend(y, y, y, compiled=False, learned={"slopes": slopes}), 1e-4)
    for held in (own, exported):
        for name, start in weights.items():
            moved = plain[name].detach() - start
            assert moved.abs().max() > 0
            close(held[name].detach() - start, moved, name, held["by"])


class Model(torch.nn.Module):
    """Projections around the kernels' module, checkpointed but for what the operators give."""

    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(32, 3 * P["heads"] * P["head_dim"])
        self.attention = kernel.Attention()

    def attend(self, x):
        q, k, v = (t.unflatten(-1, (P["heads"], -1)).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        return self.attention(*(t.to(kernel.DTYPE) for t in (q, k, v)))

    def forward(self, x):
        return checkpoint.checkpoint(self.attend, x, use_reentrant=False, context_fn=selective)


WAYS = ("alone", "ddp", "fsdp1", "fsdp2")


def spread(rank, way, folder):
    """Two steps on the batch, or on this process's half of it; what was learned is written."""
    import torch.distributed as dist

    torch.manual_seed(0)
    model, x = Model(), torch.randn(6, P["q_len"], 32)
    if way != "alone":
        dist.init_process_group("gloo", init_method=f"file://{folder}/{way}.store", rank=rank, world_size=2)
        x = x.chunk(2)[rank]
    if way == "ddp":
        run = torch.nn.parallel.DistributedDataParallel(model)
    elif way == "fsdp1":
        run = torch.distributed.fsdp.FullyShardedDataParallel(model, use_orig_params=True, device_id=torch.device("cpu"))
    elif way == "fsdp2":
        run = torch.distributed.fsdp.fully_shard(model)
    else:
        run = model
    optimiser = torch.optim.SGD(run.parameters(), lr=2.0)
    for _ in range(2):
        optimiser.zero_grad()
        run(x).float().square().mean().backward()
        optimiser.step()
    assert calls == {"forward": 2, "backward": 2}, calls
    if way == "fsdp1":
        kind = torch.distributed.fsdp.StateDictType.FULL_STATE_DICT
        with torch.distributed.fsdp.FullyShardedDataParallel.state_dict_type(run, kind):
            found = run.state_dict()
    else:
        found = {n: p.full_tensor() if hasattr(p, "full_tensor") else p for n, p in model.state_dict().items()}
    if rank == 0:
        torch.save({n: p.detach().clone() for n, p in found.items()}, os.path.join(folder, f"{way}.pt"))
    if way != "alone":
        dist.barrier()
        dist.destroy_process_group()


def spread_each_way(folder):
    """Each way in processes that are forked from this one: it has imported PyTorch, and has run none of it."""
    for way in WAYS:
        if way == "fsdp2" and not hasattr(torch.distributed.fsdp, "fully_shard"):
            continue
        processes = 1 if way == "alone" else 2
        torch.multiprocessing.start_processes(spread, args=(way, folder), nprocs=processes, start_method="fork")


def kernels_learn_spread_over_processes_as_in_one():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:3], folder]
        ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"})
        assert ran.returncode == 0, ran.stderr[:6000]
        files = {way: os.path.join(folder, f"{way}.pt") for way in WAYS}
        found = {way: torch.load(file) for way, file in files.items() if os.path.exists(file)}
    assert len(found) == len(WAYS) - (not hasattr(torch.distributed.fsdp, "fully_shard")), found.keys()
    first = Model().state_dict()["attention.learnt.slopes"]
    for way, learned in found.items():
        for name, want in found["alone"].items():
            close(learned[name], want, f"{way}: {name}", 2e-3)
        moved = learned["attention.learnt.slopes"] - first
        assert moved.abs().max() > 1e-3, (way, moved)
        close(moved, found["alone"]["attention.learnt.slopes"] - first, f"{way}: slopes' way", 5e-2)


def bundles_of_one_name_are_told_apart():
    """By their contents: the operators of two designs do not take each other's place."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(kernel.FOLDER, os.path.join(folder, "kernels"))
        shutil.copy(kernel.__file__, folder)
        file = os.path.join(folder, "kernels", "launch.json")
        settings = json.load(open(file)) | {"problem": P | {"q_len": 40, "kv_len": 40}}
        json.dump(settings, open(file, "w"))
        spec = importlib.util.spec_from_file_location("another", os.path.join(folder, f"{STEM}_kernel.py"))
        another = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(another)
    assert another.NAME != kernel.NAME and another.NAME.rpartition("_")[0] == kernel.NAME.rpartition("_")[0]
    with FakeTensorMode():
        for module, tokens in ((kernel, 80), (another, 40), (kernel, 80)):
            q = torch.empty(1, P["heads"], tokens, P["head_dim"], dtype=kernel.DTYPE)
            assert module.attend(q, q, q).shape == q.shape


def other_versions_of_pytorch_are_told_at_the_import():
    here, found = torch.__version__, {}
    for version in ("2.4.1+cu121", here, "3.0.0"):
        spec = importlib.util.spec_from_file_location("again", kernel.__file__)
        again = importlib.util.module_from_spec(spec)
        torch.__version__ = version
        try:
            with warnings.catch_warnings(record=True) as reported:
                warnings.simplefilter("always")
                again.NAME = None
                # before anything else of the file
                source = open(kernel.__file__).read().partition("FOLDER = ")[0]
                exec(compile(source, kernel.__file__, "exec"), again.__dict__)
            found[version] = " ".join(str(one.message) for one in reported)
        except ImportError as why:
            found[version] = str(why)
        finally:
            torch.__version__ = here
    assert "again needs PyTorch 2.5 or newer, and this is 2.4.1+cu121" in found["2.4.1+cu121"], found
    assert "tried with PyTorch 2.5 to" in found["3.0.0"] and "maskloom" not in found[here], found


def what_launches_keep_is_bounded():
    kept, wrong = launch.plans.Kept(3), []

    def work(seed):
        drawn = torch.Generator().manual_seed(seed)
        try:
            for _ in range(3000):
                key = int(torch.randint(6, (), generator=drawn))
                if kept(key, lambda key=key: [key]) != [key]:
                    wrong.append(key)
        except Exception as why:
            wrong.append(repr(why))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong and len(kept.held) <= 3, wrong[:5]
    # counters: one for a stream, one for each launch that a graph captures
    made = object.__new__(launch.Kernel)
    made.counters, made.variant, made.device = launch.plans.Kept(4), {"units": [{"arrivals": 6}]}, torch.device("cpu")
    capturing, before = [False], torch.cuda.is_current_stream_capturing
    torch.cuda.is_current_stream_capturing = lambda: capturing[0]
    try:
        one = made.counter(7)
        assert one.shape == (8,) and made.counter(7) is one and made.counter(8) is not one
        capturing[0] = True
        graphs = [made.counter(7) for _ in range(10)]
        assert len({t.data_ptr() for t in graphs} | {one.data_ptr()}) == 11 and len(made.counters.held) == 2
        capturing[0] = False
        for stream in range(20):
            made.counter(stream)
        assert len(made.counters.held) == 4
    finally:
        torch.cuda.is_current_stream_capturing = before


def fakes_and_registrations():
    arguments = (*inputs(), [torch.tensor([0.3, 0.1], requires_grad=True)], None)
    torch.library.opcheck(kernel._attend, arguments)
    with FakeTensorMode():
        q, k, v = (torch.empty(3, *t.shape[1:], dtype=t.dtype) for t in inputs())
        out, lse = kernel._attend(q, k, v, [], None)
        assert out.shape == (3, P["heads"], P["q_len"], P["head_dim_v"]) and lse.dtype == torch.float32
        found = kernel._attend_backward(out, None, q, k, v, out, lse, [], None)
        assert [f.shape for f in found] == [t.shape for t in (q, k, v)]
    module = kernel.Attention()
    assert list(module.state_dict()) == ["learnt.slopes"] and not list(module.buffers())
    assert torch.equal(module.learnt["slopes"], design._mods(torch.device("cpu"))[1].__closure__[0].cell_contents.float())


def refusals_come_at_the_first_call():
    def refused(word, call):
        try:
            call()
        except (RuntimeError, ValueError) as why:
            assert word in str(why), why
        else:
            raise AssertionError(f"not refused: {word}")

    q, k, v = inputs()
    refused("it must be (2,)", lambda: kernel.attend(q, k, v, captured={"slopes": torch.zeros(3)}))
    refused("the design learns slopes", lambda: kernel.attend(q, k, v, captured={"table": torch.zeros(2)}))
    refused("was compiled for", lambda: kernel.attend(q[:, :, :7], k, v))
    refused("key on meta: move one of them", lambda: kernel._check(q, k.to("meta"), v))
    refused("slopes is (2,) of torch.int32", lambda: kernel.attend(q, k, v, captured={"slopes": torch.zeros(2, dtype=torch.int32)}))
    before, torch.cuda.is_current_stream_capturing = torch.cuda.is_current_stream_capturing, lambda: True
    refused("call the kernel once on this device before capturing a CUDA graph", lambda: kernel_on(torch.device("cuda", 7)))
    torch.cuda.is_current_stream_capturing = before
    refused("it has slopes", lambda: design.attend(q, k, v, compiled=False, learned={"table": torch.zeros(2)}))
    kept = copy.deepcopy(kernel.LAUNCH["variants"])
    for variant in kernel.LAUNCH["variants"]:
        variant["backward"] = {"refused": "no derivative of floor_divide"}
    refused("no derivative of floor_divide", lambda: kernel.attend(q, k, v))
    with torch.no_grad():
        kernel.attend(q, k, v)
    kernel.LAUNCH["variants"][:] = kept


def gradcheck_passes():
    sys.argv[1:] = ["--device", "cpu", "--rows", "12"]
    try:
        gradcheck.main()
    except SystemExit as end:
        assert end.code == 0, "gradcheck"


def too_many_additions_are_refused():
    b = {"bins": [256], "additions": 1 << 30, "most_additions": 1 << 32}
    kernel._must_hold(b, 4)
    kernel._must_hold(b | {"bins": None}, 5)
    try:
        kernel._must_hold(b, 5)
    except ValueError as why:
        assert "a batch of 5" in str(why) and "without --deterministic" in str(why), why
    else:
        raise AssertionError("not refused")


if len(sys.argv) > 3:
    spread_each_way(sys.argv[3])
    sys.exit()
for alone in (past_the_dispatcher, lambda *tensors: False):
    kernel._alone = alone
    gradients_are_autograds()
    selective_checkpointing_keeps_the_output()
    two_steps_train_as_plain_autograd_does()
kernel._alone = past_the_dispatcher
only_plain_calls_go_past_the_dispatcher()
fakes_and_registrations()
refusals_come_at_the_first_call()
too_many_additions_are_refused()
bundles_of_one_name_are_told_apart()
other_versions_of_pytorch_are_told_at_the_import()
what_launches_keep_is_bounded()
kernels_learn_spread_over_processes_as_in_one()
gradcheck_passes()
print("the bundle trains")
