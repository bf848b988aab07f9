"""The sidecar and the adapters in the ways in which people train: compiled, checkpointed, LoRA, DDP, FSDP, transformers' Trainer.

    python training.py EXPORT [--only compiled,checkpointed,lora,ddp,fsdp,trainer] [--json FILE]

EXPORT is `sliding_window --arg window=20` over 80 plain tokens. Each way is compared with the mask of masks.py, which no export
made, given to the model's own attention by hand.
Exit status 77: a package is not installed, and the ways that were run are equal.
"""

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import families
import masks
import torch
from matrix import ALLOWED, apart, opened, sdpa_by_hand

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds of a process that takes 10 to 25 s where two cores are free: one that hangs must not be waited for.
LONGEST = 400

# two processes; the first writes what came out. Collecting garbage takes a quarter of the time in which they import PyTorch and diffusers.
SPREAD = """
import gc, os, sys
gc.disable()
sys.path.append(sys.argv[1])
import families, torch
import torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
model, inputs, _ = families.built("flux")
way = sys.argv[3]
if way == "ddp":
    run = torch.nn.parallel.DistributedDataParallel(model)
else:
    from torch.distributed.fsdp import fully_shard
    model.enable_gradient_checkpointing()
    model.train()
    for block in [*model.transformer_blocks, *model.single_transformer_blocks]:
        fully_shard(block)
    run = fully_shard(model)
out = run(**inputs)[0]
out.square().mean().backward()
grads = {}
for name, parameter in model.named_parameters():
    grad = parameter.grad
    if grad is not None:
        grads[name] = grad.full_tensor() if hasattr(grad, "full_tensor") else grad
if dist.get_rank() == 0:
    torch.save((out.detach(), grads), sys.argv[2])
dist.barrier()
# What is tried here is done: how PyTorch takes its threads down is not part of it.
sys.stderr.flush()
os._exit(0)
"""

TRAINER = """
import gc, sys
gc.disable()
sys.path.append(sys.argv[1])
import families, torch, transformers
model, inputs, _ = families.built("llama")
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, at):
        ids, real = inputs["input_ids"][at % 2], inputs["attention_mask"][at % 2]
        # rows of padding mean nothing, and the first real token is predicted by one
        known = (real > 0) & (real.roll(1) > 0)
        return {"input_ids": ids, "attention_mask": real, "labels": ids.masked_fill(~known, -100)}
given = transformers.TrainingArguments(
    output_dir=sys.argv[2] + ".run", max_steps=3, per_device_train_batch_size=2, learning_rate=0.5, optim="sgd", logging_steps=1, report_to=[],
    use_cpu=True, save_strategy="no", seed=0, gradient_checkpointing=True, disable_tqdm=True,
)
def train():
    trainer = transformers.Trainer(model=model, args=given, train_dataset=Rows())
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
if len(sys.argv) > 3:
    import masks
    from matrix import eager_by_hand
    start = {name: value.clone() for name, value in model.state_dict().items()}
    plain = train()
    model.load_state_dict(start)
    with eager_by_hand(model, masks.window()):
        torch.save((plain, train()), sys.argv[2])
else:
    torch.save(train(), sys.argv[2])
"""


class Absent(Exception):
    """The installed packages cannot train in this way."""


def child(code, *args, processes=1, **environment):
    """What a script saved, and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        script, file = os.path.join(folder, "script.py"), os.path.join(folder, "found.pt")
        with open(script, "w") as out:
            out.write(code)
        env = {k: v for k, v in os.environ.items() if not k.startswith("MASKLOOM_SIDECAR")} | environment
        # a process that is aborted says where it was
        env["PYTHONFAULTHANDLER"] = "1"
        launch = [sys.executable]
        if processes > 1:
            launch += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        with open(os.path.join(folder, "said"), "w+") as words:
            ran = subprocess.Popen([*launch, script, HERE, file, *args], env=env, stdout=subprocess.DEVNULL, stderr=words)
            try:
                ran.wait(timeout=LONGEST)
            except subprocess.TimeoutExpired:
                # torch.distributed.run ends its processes, which are in sessions of their own
                ran.terminate()
                ran.wait(timeout=60)
            words.seek(0)
            said = words.read()
        assert ran.returncode == 0, f"status {ran.returncode}, negative after {LONGEST} s: {of_processes(said)}"
        return torch.load(file), said


def of_processes(said):
    """What the processes said themselves, of all that their launcher says after them."""
    return said.partition("torch.distributed.elastic.multiprocessing.errors")[0][:6000]


def sidecar(export):
    return {"MASKLOOM_SIDECAR": export, "PYTHONPATH": os.path.join(export, "sidecar"), "MASKLOOM_SIDECAR_STRICT": "1"}


def trained(model, inputs):
    """The output, and the gradients of the parameters that are trained."""
    out = model(**inputs)[0]
    model.zero_grad()
    out.square().mean().backward()
    return out.detach(), [p.grad for p in model.parameters() if p.requires_grad]


def in_use(stem, change):
    """How far a model that `change` changed is from one as it was, with the mask by hand."""
    model, inputs, chosen = families.built("flux")
    handle = importlib.import_module(f"{stem}_diffusers").use(model, strict=True)
    got = trained(change(model), inputs)
    handle.remove()
    model, inputs, chosen = families.built("flux")
    with sdpa_by_hand(model, chosen, masks.window()):
        want = trained(model, inputs)
    return max(apart(got[0], want[0]), *(apart(a, b) for a, b in zip(got[1], want[1], strict=True)))


def compiled(export, stem):
    """torch.compile(fullgraph=True) of the model, and of its repeated blocks alone"""

    def blocks(model):
        if not hasattr(model, "compile_repeated_blocks"):
            return model
        model.compile_repeated_blocks(fullgraph=True, backend="aot_eager")
        return model

    whole = in_use(stem, lambda model: torch.compile(model, fullgraph=True, backend="aot_eager"))
    return max(whole, in_use(stem, blocks))


def checkpointed(export, stem):
    """Gradient checkpointing"""

    def change(model):
        model.enable_gradient_checkpointing()
        return model.train()

    return in_use(stem, change)


def lora(export, stem):
    """peft's layers inside the watched ones, put there before and after the design."""
    from peft import LoraConfig

    off = 0.0
    for before in (True, False):
        model, inputs, chosen = families.built("flux")
        adapter = importlib.import_module(f"{stem}_diffusers")
        config = LoraConfig(r=2, target_modules=["to_q", "to_k", "to_v"], init_lora_weights=False)
        torch.manual_seed(5)
        if before:
            model.add_adapter(config)
        handle = adapter.use(model, strict=True)
        if not before:
            model.add_adapter(config)
        got = trained(model, inputs)
        handle.remove()
        with sdpa_by_hand(model, chosen, masks.window()):
            want = trained(model, inputs)
        assert len(got[1]) > 0
        off = max(off, apart(got[0], want[0]), *(apart(a, b) for a, b in zip(got[1], want[1], strict=True)))
    return off


def spread(way, export):
    (out, grads), said = child(SPREAD, way, processes=2, **sidecar(export))
    assert "mask active in 3 layers" in said, said[-3000:]
    torch.manual_seed(0)
    model, inputs, chosen = families.built("flux")
    with sdpa_by_hand(model, chosen, masks.window()):
        want = model(**inputs)[0]
        want.square().mean().backward()
    wanted = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert wanted.keys() == {name.removeprefix("module.") for name in grads}
    worst = max(apart(grad, wanted[name.removeprefix("module.")]) for name, grad in grads.items())
    return max(apart(out, want.detach()), worst)


def ddp(export, stem):
    """DistributedDataParallel, two processes on gloo."""
    return spread("ddp", export)


def fsdp(export, stem):
    """fully_shard with gradient checkpointing, two processes on gloo."""
    if not hasattr(importlib.import_module("torch.distributed.fsdp"), "fully_shard"):
        raise Absent("before PyTorch 2.6 fully_shard needs CUDA")
    return spread("fsdp", export)


def trainer(export, stem):
    """transformers' Trainer with gradient checkpointing, three steps of Llama."""
    got, said = child(TRAINER, **sidecar(export))
    assert "mask active in 2 layers of LlamaForCausalLM" in said, said[-3000:]
    (plain, want), _ = child(TRAINER, "without the design and by hand")
    assert len(got) == len(want) == 3 and max(abs(a - b) for a, b in zip(got, plain, strict=True)) > 1e-3, (got, plain)
    return max(abs(a - b) for a, b in zip(got, want, strict=True))


WAYS = {
    "compiled": (compiled, "diffusers"),
    "checkpointed": (checkpointed, "diffusers"),
    "lora": (lora, "peft"),
    "ddp": (ddp, "diffusers"),
    "fsdp": (fsdp, "diffusers"),
    "trainer": (trainer, "accelerate"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export")
    parser.add_argument("--only", help="ways, separated by commas")
    parser.add_argument("--json", metavar="FILE", help="the rows, for models.py")
    options = parser.parse_args()
    export = os.path.abspath(options.export)
    _, stem = opened(export)
    rows, missing = [], []
    wanted = options.only.split(",") if options.only else list(WAYS)
    unknown = [name for name in wanted if name not in WAYS]
    if unknown:
        sys.exit(f"no such way: {', '.join(unknown)}")
    for name in wanted:
        way, package = WAYS[name]
        about = (way.__doc__ or "").strip().rstrip(".")
        if not importlib.util.find_spec(package):
            rows.append({"way": about, "word": "absent", "about": f"no {package}"})
            missing.append(f"no {package} for {name}")
            continue
        try:
            off = way(export, stem)
            good, words = off < ALLOWED, f"off by {off:.1e}"
            word = "equal" if good else "FAILED"
        except Absent as error:
            word, words = "absent", str(error)
            missing.append(f"{words} for {name}")
        except Exception as error:
            word, words = "FAILED", f"{type(error).__name__}: {str(error)[-1500:]}"
        rows.append({"way": about, "word": word, "about": words})
        print(f"{word} {name}: {words}", flush=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows, out)
    bad = sum(row["word"] == "FAILED" for row in rows)
    print(f"{bad} ways failed" if bad else f"skipped: {', '.join(missing)}" if missing else "all ways equal")
    sys.exit(1 if bad else 77 if missing else 0)


if __name__ == "__main__":
    main()
