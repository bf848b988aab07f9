"""An exported design in tiny models of every family: adapters, sidecar, outputs and gradients, against the mask by hand.

    python matrix.py EXPORT [--only flux,llama] [--ways adapter,sidecar] [--markdown]

EXPORT is a design over 80 plain tokens. "By hand" gives the design's dense mask, and what the model has of its own, to the
model's own attention. Each row must be equal there, differ from the model without the design, and be counted as masked.
"""

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager

import families
import torch
import torch.nn.functional as F

ALLOWED = 2e-5


def opened(export):
    """The exported module and its name."""
    export = os.path.abspath(export)
    stem = next(name[:-14] for name in os.listdir(export) if name.endswith(".maskloom.json"))
    if export not in sys.path:
        sys.path.insert(0, export)
    return importlib.import_module(stem), stem


def apart(a, b):
    return (a.double() - b.double()).abs().max().item()


@contextmanager
def sdpa_by_hand(model, chosen, mask):
    """Each chosen layer's scaled_dot_product_attention gets the dense mask beside the model's own, or its beginning."""
    inside, plain, hooks = [False], F.scaled_dot_product_attention, []

    def masked(query, key, value, attn_mask=None, **kwargs):
        length = query.shape[-2]
        if inside[0] and length == key.shape[-2] <= mask.shape[-1]:
            kwargs["is_causal"] = False
            kept = mask[..., :length, :length]
            if attn_mask is None:
                attn_mask = kept
            elif attn_mask.dtype == torch.bool:
                attn_mask = attn_mask & kept
            else:
                attn_mask = attn_mask.masked_fill(~kept, -float("inf"))
        out = plain(query, key, value, attn_mask=attn_mask, **kwargs)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            # a row without keys is 0
            out = out.masked_fill(~attn_mask.expand(*out.shape[:-1], key.shape[-2]).any(-1, keepdim=True), 0.0)
        return out

    F.scaled_dot_product_attention = masked
    for name, module in model.named_modules():
        if chosen(name):
            hooks.append(module.register_forward_pre_hook(lambda *_: inside.__setitem__(0, True)))
            hooks.append(module.register_forward_hook(lambda *_: inside.__setitem__(0, False)))
    try:
        yield
    finally:
        F.scaled_dot_product_attention = plain
        for hook in hooks:
            hook.remove()


@contextmanager
def eager_by_hand(model, mask, documents=None):
    """transformers' eager attention with the design's mask and padding in place of the model's pattern."""
    from transformers import AttentionMaskInterface

    plain = AttentionMaskInterface()["eager"]

    def by_hand(batch_size=None, q_length=None, kv_length=None, attention_mask=None, dtype=torch.float32, **_):
        kept = mask[..., :q_length, :kv_length]
        if attention_mask is not None:
            kept = kept & attention_mask.bool()[:, None, None, :]
        if documents is not None:
            kept = kept & (documents[:, None, :, None] == documents[:, None, None, :])
        return torch.where(kept, torch.zeros((), dtype=dtype), torch.finfo(dtype).min).expand(batch_size, -1, -1, -1)

    AttentionMaskInterface.register("eager", by_hand)
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        AttentionMaskInterface.register("eager", plain)


def real(inputs):
    """Where tokens are no padding: rows of padding mean nothing."""
    return inputs["attention_mask"].bool() if "input_ids" in inputs else slice(None)


def step(model, inputs):
    """The output, and the gradients of its mean square."""
    out = model(**inputs)[0]
    found = torch.autograd.grad(out[real(inputs)].square().mean(), list(model.parameters()), allow_unused=True)
    return out.detach(), [g for g in found if g is not None]


def wanted(name, mask):
    """(by hand, gradients by hand, without the design, inputs) of a family."""
    model, inputs, chosen = families.built(name)
    dense, _ = step(model, inputs)
    with sdpa_by_hand(model, chosen, mask) if chosen else eager_by_hand(model, mask):
        want, gradients = step(model, inputs)
    return want, gradients, dense, inputs


def compared(name, got, grads, reference):
    """What a row says, and whether it is right."""
    want, gradients, dense, inputs = reference
    got, want, dense = (out[real(inputs)] for out in (got, want, dense))
    off, from_dense = apart(got, want), apart(got, dense)
    off_grads = max((apart(a, b) for a, b in zip(grads, gradients, strict=True)), default=0.0)
    largest = max(1.0, want.abs().max().item())
    good = off < ALLOWED * largest and off_grads < ALLOWED * largest and from_dense > 1e-4
    return f"off by {off:.1e}, gradients {off_grads:.1e}, {from_dense:.3f} from dense", good


def by_adapter(name, stem, mask):
    library = "diffusers" if name in families.DIFFUSERS else "transformers"
    adapter = importlib.import_module(f"{stem}_{library}")
    reference = wanted(name, mask)
    model, inputs, _ = families.built(name)
    handle = adapter.use(model)
    got, grads = step(model, inputs)
    words, good = compared(name, got, grads, reference)
    with torch.no_grad():
        inference = model(**inputs)[0]
    at = real(inputs)
    good = good and apart(inference[at], got[at]) < ALLOWED * max(1.0, got.abs().max().item())
    counts = handle.report().values()
    masked, left = sum(one["masked"] for one in counts), sum(sum(one["left"].values()) for one in counts)
    proof = handle.verify(inputs)
    handle.remove()
    taken_out = torch.equal(step(model, inputs)[0], reference[2])
    good = good and masked > 0 and left == 0 and proof.ok and taken_out
    said = "proved" if proof.ok else str(proof)
    return f"{words}, {masked} calls masked, {left} left, {said}{'' if taken_out else ', NOT taken out'}", good


CHILD = """
import sys
sys.path.append(sys.argv[1])
import families, torch
from matrix import step
found = {}
for name in sys.argv[3:]:
    model, inputs, _ = families.built(name)
    got, grads = step(model, inputs)
    with torch.no_grad():
        found[name] = got, grads, model(**inputs)[0]
torch.save(found, sys.argv[2])
"""


def by_sidecar(names, export, mask, **environment):
    """Rows of the sidecar: one process for each library."""
    for library in (families.DIFFUSERS, families.TRANSFORMERS):
        mine = [name for name in names if name in library]
        if not mine:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "found.pt")
            env = os.environ | {"MASKLOOM_SIDECAR": export, "PYTHONPATH": os.path.join(export, "sidecar")} | environment
            command = [sys.executable, "-c", CHILD, os.path.dirname(os.path.abspath(__file__)), file, *mine]
            ran = subprocess.run(command, env=env, capture_output=True, text=True)
            if ran.returncode != 0:
                yield from ((name, f"failed: {ran.stderr[-1500:]}", False) for name in mine)
                continue
            found = torch.load(file)
        for name in mine:
            got, grads, inference = found[name]
            reference = wanted(name, mask)
            words, good = compared(name, got, grads, reference)
            at = real(reference[3])
            good = good and apart(inference[at], got[at]) < ALLOWED * max(1.0, got.abs().max().item())
            yield name, words, good
        assert "at the end:" in ran.stderr and "the sidecar is loaded" in ran.stderr, ran.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export")
    parser.add_argument("--only", help="families, separated by commas")
    parser.add_argument("--ways", default="adapter,sidecar")
    parser.add_argument("--markdown", action="store_true", help="rows of a table")
    options = parser.parse_args()
    export = os.path.abspath(options.export)
    design, stem = opened(export)
    mask = design.make_mask("cpu")
    there = []
    for library, known in (("diffusers", families.DIFFUSERS), ("transformers", families.TRANSFORMERS)):
        if importlib.util.find_spec(library):
            there += known
        else:
            print(f"skipped: no {library}")
    names = [name for name in there if options.only is None or name in options.only.split(",")]
    bad = 0

    def row(way, name, words, good):
        nonlocal bad
        bad += not good
        word = "equal" if good else "FAILED"
        print(f"| {name} | {way} | {word} | {words} |" if options.markdown else f"{word} {way} {name}: {words}", flush=True)

    if "adapter" in options.ways:
        for name in names:
            try:
                words, good = by_adapter(name, stem, mask)
            except Exception as error:
                words, good = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}", False
            row("adapter", name, words, good)
    if "sidecar" in options.ways:
        for name, words, good in by_sidecar(names, export, mask):
            row("sidecar", name, words, good)
    print(f"{bad} rows failed" if bad else "all rows equal")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
