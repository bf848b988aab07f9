"""An exported design in tiny models of every family: adapters, sidecar, outputs and gradients, against the mask by hand.

    python matrix.py EXPORT [--only flux,llama] [--ways adapter,sidecar] [--json FILE]

EXPORT is `sliding_window --arg window=20` over 80 plain tokens. "By hand" passes the mask of masks.py, which no export made,
combined with the model's own mask, to the model's own attention. A row is
  equal     outputs and gradients equal those of the mask passed by hand, they differ from the model without the design, and
            every call was counted as masked
  reported  the model calls attention by a function that is not watched: nothing is masked, and the report says so
  absent    the installed library has no such model
  FAILED    anything else
SimpleTuner's own transformers have rows if its package is on the path. Exit status 77: a library is not installed, and no row failed.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager

import families
import masks
import simpletuner_models
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
    """Each chosen layer's scaled_dot_product_attention gets the dense mask in addition to the model's own, or its beginning."""
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
    if hasattr(model, "set_attn_implementation"):
        model.set_attn_implementation("eager")
    else:
        model.config._attn_implementation = "eager"
    try:
        yield
    finally:
        AttentionMaskInterface.register("eager", plain)


def asks(model):
    """Whether a model of transformers asks its table of attentions which one to call."""
    return hasattr(sys.modules[type(model).__module__], "ALL_ATTENTION_FUNCTIONS")


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
    if name in families.TRANSFORMERS and not asks(model):
        # older models call scaled_dot_product_attention themselves
        def chosen(name):
            return name.endswith(("attention.self", ".attn"))

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
    library = "transformers" if name in families.TRANSFORMERS else "diffusers"
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
    if masked == 0 and taken_out and apart(got, reference[2]) == 0.0:
        reported = not proof.ok and all(one["masked"] == one["compiled"] == 0 for one in handle.report().values())
        word = "reported" if reported else "FAILED"
        return "the model calls attention by a function that is not watched; verify says so", word
    good = good and masked > 0 and left == 0 and proof.ok and taken_out
    said = "proved" if proof.ok else str(proof)
    words = f"{words}, {masked} calls masked, {left} left, {said}{'' if taken_out else ', NOT taken out'}"
    return words, "equal" if good else "FAILED"


CHILD = """
import sys
sys.path.append(sys.argv[1])
import families, torch
from matrix import step
found = {}
for name in sys.argv[3:]:
    try:
        model, inputs, _ = families.built(name)
    except ImportError as why:
        found[name] = str(why)
        continue
    got, grads = step(model, inputs)
    with torch.no_grad():
        found[name] = got, grads, model(**inputs)[0]
torch.save(found, sys.argv[2])
"""


def by_sidecar(names, export, mask, **environment):
    """Rows of the sidecar: one process for each library."""
    for library in (families.DIFFUSERS | families.SIMPLETUNER, families.TRANSFORMERS):
        mine = [name for name in names if name in library]
        if not mine:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "found.pt")
            path = os.pathsep.join(p for p in (os.path.join(export, "sidecar"), os.environ.get("PYTHONPATH")) if p)
            env = os.environ | {"MASKLOOM_SIDECAR": export, "PYTHONPATH": path} | environment
            command = [sys.executable, "-c", CHILD, os.path.dirname(os.path.abspath(__file__)), file, *mine]
            ran = subprocess.run(command, env=env, capture_output=True, text=True)
            if ran.returncode != 0:
                yield from ((name, f"failed: {ran.stderr[-1500:]}", "FAILED") for name in mine)
                continue
            found = torch.load(file)
        for name in mine:
            if isinstance(found[name], str):
                yield name, found[name], "absent"
                continue
            got, grads, inference = found[name]
            reference = wanted(name, mask)
            words, good = compared(name, got, grads, reference)
            at = real(reference[3])
            good = good and apart(inference[at], got[at]) < ALLOWED * max(1.0, got.abs().max().item())
            if apart(got, reference[2]) == 0.0:
                kind = type(families.built(name)[0]).__name__
                reported = f"0 layers of {kind}" in ran.stderr or f"0 of 2 layers of {kind}" in ran.stderr
                word = "reported" if reported else "FAILED"
                yield name, "the model calls attention by a function that is not watched; the log says so", word
            else:
                yield name, words, "equal" if good else "FAILED"
        assert "at the end:" in ran.stderr and "the sidecar is loaded" in ran.stderr, ran.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export")
    parser.add_argument("--only", help="families, separated by commas")
    parser.add_argument("--ways", default="adapter,sidecar")
    parser.add_argument("--json", metavar="FILE", help="the rows, for models.py")
    options = parser.parse_args()
    export = os.path.abspath(options.export)
    _, stem = opened(export)
    mask = masks.window()
    there, missing = [], []
    for library, known in (("diffusers", families.DIFFUSERS), ("transformers", families.TRANSFORMERS)):
        if importlib.util.find_spec(library):
            there += known
        else:
            missing.append(library)
    if simpletuner_models.there() and importlib.util.find_spec("diffusers"):
        there += families.SIMPLETUNER
    names = there if options.only is None else options.only.split(",")
    unknown = [name for name in names if name not in families.DIFFUSERS | families.TRANSFORMERS | families.SIMPLETUNER]
    if unknown:
        sys.exit(f"no such family: {', '.join(unknown)}")
    names = [name for name in names if name in there]
    rows = []

    def row(way, name, words, word):
        rows.append({"family": name, "way": way, "word": word, "about": words})
        print(f"{word} {way} {name}: {words}", flush=True)

    if "adapter" in options.ways:
        for name in names:
            try:
                families.built(name)
            except ImportError as error:
                row("adapter", name, str(error).split(" (")[0], "absent")
                continue
            try:
                words, word = by_adapter(name, stem, mask)
            except Exception as error:
                words, word = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}", "FAILED"
            row("adapter", name, words, word)
    if "sidecar" in options.ways:
        for name, words, word in by_sidecar(names, export, mask):
            row("sidecar", name, words, word)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows, out)
    bad = sum(one["word"] == "FAILED" for one in rows)
    said = f"skipped: no {' and no '.join(missing)}" if missing else "no row failed" if rows else "no row was run"
    print(f"{bad} rows failed" if bad else said)
    sys.exit(1 if bad or not rows and not missing else 77 if missing else 0)


if __name__ == "__main__":
    main()
