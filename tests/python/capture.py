"""What the capture script sees: compiled models, grouped heads, fused functions of other packages, masks and sinks.

    python capture.py CAPTURE WORK

CAPTURE is maskloom_capture.py. Each check compares with q, k and v that the model itself hands to attention.
"""

import importlib
import json
import os
import subprocess
import sys
import textwrap
import types

import families
import torch
import torch.nn.functional as F

SCRIPT, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path.insert(0, os.path.dirname(SCRIPT))
tool = importlib.import_module("maskloom_capture")
PACKAGES = importlib.import_module("maskloom_capturing.calls").PACKAGES
FILE = os.path.join(WORK, "qkv.safetensors")


class Block(torch.nn.Module):
    """Attention by a function that is looked up as it is called."""

    def __init__(self, function=None):
        super().__init__()
        self.qkv = torch.nn.Linear(32, 96)
        self.function = function

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, 16).unbind(2)
        if self.function is not None:
            return self.function(q, k, v).flatten(2)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Model(torch.nn.Module):
    def __init__(self, *functions):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(function) for function in functions)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


def read():
    from safetensors.torch import load_file

    return load_file(FILE)


def wanted(model, x, at=0):
    """q, k and v of a block, by hand."""
    for block in model.blocks[:at]:
        x = x + block(x)
    return [t.transpose(1, 2) for t in model.blocks[at].qkv(x).view(*x.shape[:2], 3, 2, 16).unbind(2)]


def same(found, name, qkv):
    for letter, want in zip("qkv", qkv, strict=True):
        assert torch.allclose(found[f"{name}.{letter}"], want, atol=1e-6), letter


@torch.no_grad()
def compiled_models_are_seen_and_stay_compiled():
    model, x = Model(None, None), torch.randn(1, 20, 32)
    for compile in (lambda m: torch.compile(m, backend="aot_eager"), lambda m: m.compile(backend="aot_eager") or m):
        run = compile(Model(None, None))
        run.load_state_dict(model.state_dict()) if run.__class__ is Model else run._orig_mod.load_state_dict(model.state_dict())
        before = run(x)
        with tool.capture(FILE) as kept:
            assert torch.allclose(run(x), before, atol=1e-6)
        names = [key for key in kept.details]
        assert len(names) == 2, names
        same(read(), names[1], wanted(model, x, 1))
        assert torch.allclose(run(x), before, atol=1e-6)


@torch.no_grad()
def functions_of_other_packages_are_seen():
    seen = {}

    def package(name, function, layout):
        def attention(q, k, v, **kwargs):
            seen[name] = q
            return q + k + v

        module = types.ModuleType(name)
        setattr(module, function, attention)
        sys.modules[name] = module
        return lambda q, k, v: getattr(module, function)(q, k, v, **({"tensor_layout": "NHD"} if layout == "sage" else {}))

    there = [package(name, function, layout) for name, function, layout in PACKAGES if layout not in ("packed", "varlen")]
    x = torch.randn(2, 20, 32)
    model = Model(*there)
    try:
        with tool.capture(FILE) as kept:
            model(x)
    finally:
        for name, _, _ in PACKAGES:
            sys.modules.pop(name, None)
    found = read()
    assert len(kept.details) == len(there) == 4
    for at in range(4):
        same(found, f"blocks.{at}.step0", wanted(model, x, at))


@torch.no_grad()
def packages_that_are_imported_later_are_seen_and_get_their_functions_back():
    folder = os.path.join(WORK, "late")
    os.makedirs(folder)
    for name, text in (
        ("sageattention", "def sageattn(q, k, v, **more):\n    return q + k + v\n"),
        ("takes_a_name", "from sageattention import sageattn\n\nclass Holder:\n    call = staticmethod(sageattn)\n"),
    ):
        with open(os.path.join(folder, f"{name}.py"), "w") as out:
            out.write(text)
    sys.path.insert(0, folder)
    finders, q = list(sys.meta_path), torch.randn(1, 2, 9, 16)
    try:
        with tool.capture(FILE) as kept:
            taken = importlib.import_module("takes_a_name")
            taken.sageattn(q, q, q)
        package = sys.modules["sageattention"]
        assert len(kept.details) == 1 and taken.sageattn is package.sageattn and sys.meta_path == finders
        assert not hasattr(package.sageattn, "__wrapped__") and "exec_module" not in vars(package.__spec__.loader)
        # what is no module's name keeps its wrapper, which does nothing any more
        assert taken.Holder.call(q, q, q).equal(3 * q) and len(kept.details) == 1
        with tool.capture(FILE) as kept:
            taken.sageattn(q, q, q)
        assert len(kept.details) == 1
    finally:
        sys.path.remove(folder)
        for name in ("sageattention", "takes_a_name"):
            sys.modules.pop(name, None)


@torch.no_grad()
def packed_calls_are_taken_apart():
    x, module = torch.randn(1, 9, 3, 2, 16), types.ModuleType("flash_attn")
    module.flash_attn_qkvpacked_func = lambda qkv, dropout_p=0.0, softmax_scale=None, causal=False: qkv.sum(2)
    sys.modules["flash_attn"] = module
    try:
        with tool.capture(FILE) as kept:
            module.flash_attn_qkvpacked_func(x, causal=True)
    finally:
        sys.modules.pop("flash_attn")
    (name,) = kept.details
    assert kept.details[name]["is_causal"] and read()[f"{name}.k"].equal(x[:, :, 1].transpose(1, 2))


@torch.no_grad()
def masks_and_sinks_are_kept_once():
    model, inputs, _ = families.built("gpt_oss")
    with tool.capture(FILE) as kept:
        model(**inputs)
    found, names = read(), list(kept.details)
    assert len(names) == 2 and all(found[f"{name}.sinks"].shape == (2,) for name in names)
    assert found[f"{names[0]}.sinks"].equal(model.model.layers[0].self_attn.sinks)
    mask = found[kept.details[names[0]]["mask_tensor"]]
    kept_cells = mask if mask.dtype == torch.bool else mask > -1e4
    assert mask.shape[-2:] == (80, 80) and not kept_cells[1, 0, 40, :7].any() and kept_cells[0, 0, 40, 30]
    model, inputs, _ = families.built("llama_gqa")
    with tool.capture(FILE) as kept:
        model(**inputs)
    found, names = read(), list(kept.details)
    assert found[f"{names[0]}.k"].shape[1] == 1 and found[f"{names[0]}.q"].shape[1] == 2
    assert sum(name.endswith(".mask") for name in found) == 1 and len({kept.details[n]["mask_tensor"] for n in names}) == 1


@torch.no_grad()
def masks_that_each_layer_makes_anew_are_not_taken_for_each_other():
    """The second layer's mask is likely to have the address of the first one's, which is gone."""

    class Layer(torch.nn.Module):
        def __init__(self, window):
            super().__init__()
            self.window = window

        def forward(self, x):
            at = torch.arange(x.shape[-2])
            mask = (at[:, None] - at).abs() < self.window
            return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    layers = torch.nn.Sequential(*(Layer(window) for window in (2, 5, 9, 5)))
    with tool.capture(FILE) as kept:
        layers(torch.randn(1, 2, 24, 8))
    found, at = read(), torch.arange(24)
    for name, window in zip(kept.details, (2, 5, 9, 5), strict=True):
        expected = (at[:, None] - at).abs() < window
        assert found[kept.details[name]["mask_tensor"]].expand(1, 1, 24, 24)[0, 0].equal(expected), (name, window)
    assert sum(name.endswith(".mask") for name in found) == 3


@torch.no_grad()
def what_tokens_say_is_kept_by_prompt():
    from safetensors import safe_open

    model = Model(None)
    with tool.capture(FILE, prompts=None) as kept:
        model(torch.randn(1, 6, 32))
        kept.tokens(["a", " cat"], start=2)
        kept.next_prompt("two")
        kept.tokens(["of", "keys"], side="kv")
        model(torch.randn(1, 6, 32))
    with safe_open(FILE, "pt") as file:
        texts = json.loads(file.metadata()["maskloom_capture"])["tokens"]
    assert texts == [
        {"prompt": 0, "start": 2, "side": None, "text": ["a", " cat"]},
        {"prompt": 1, "start": 0, "side": "kv", "text": ["of", "keys"]},
    ], texts


def a_checkpointed_layer_is_captured_once():
    model, inputs, _ = families.built("flux")
    model.enable_gradient_checkpointing()
    model.train()
    with tool.capture(FILE) as kept:
        model(**inputs)[0].square().mean().backward()
    assert len(kept.details) == 3 and not any("call2" in name for name in kept.details), list(kept.details)


@torch.no_grad()
def memory_has_a_limit_and_a_preview():
    model, x = Model(None, None, None), torch.randn(1, 64, 32)
    one = 3 * 64 * 32 * 4
    with tool.capture(FILE, limit=2.5 * one / 2**30) as kept:
        model(x)
    assert kept.left_out == 1 and len(kept.details) == 2 and kept.bytes == 2 * one
    os.unlink(FILE)
    with tool.capture(FILE, preview=True) as kept:
        model(x)
    assert not os.path.exists(FILE) and kept.bytes == 3 * one and not kept.tensors


def a_choice_that_matches_nothing_is_told_without_a_traceback():
    script = os.path.join(WORK, "tiny.py")
    text = """
    import sys
    import torch
    print("imported", *{"transformers", "diffusers", "torch._dynamo"} & sys.modules.keys(), ".")
    attend, q = torch.nn.functional.scaled_dot_product_attention, torch.randn(1, 2, 8, 16)
    attend(q, q, q)
    if sys.argv[1:]:
        torch.compile(lambda q: attend(q, q, q), backend="aot_eager")(q)
    """
    with open(script, "w") as out:
        out.write(textwrap.dedent(text))
    run = [sys.executable, SCRIPT, "--out", FILE]
    ran = subprocess.run([*run, "--layers", "nowhere", script], capture_output=True, text=True)
    assert ran.returncode == 1 and "chose none of them" in ran.stderr and "Traceback" not in ran.stderr, ran.stderr
    ran = subprocess.run([*run, "--preview", script, "compiled"], capture_output=True, text=True)
    # nothing is imported that the script does not import; its compiled call is seen all the same
    assert ran.returncode == 0 and "imported ." in ran.stdout and "2 calls" in ran.stdout, (ran.stdout, ran.stderr)
    assert "2 heads, 8 x 8 tokens of 16" in ran.stdout, ran.stdout


def main():
    os.makedirs(WORK, exist_ok=True)
    for check in (
        compiled_models_are_seen_and_stay_compiled,
        functions_of_other_packages_are_seen,
        packages_that_are_imported_later_are_seen_and_get_their_functions_back,
        packed_calls_are_taken_apart,
        masks_and_sinks_are_kept_once,
        masks_that_each_layer_makes_anew_are_not_taken_for_each_other,
        what_tokens_say_is_kept_by_prompt,
        a_checkpointed_layer_is_captured_once,
        memory_has_a_limit_and_a_preview,
        a_choice_that_matches_nothing_is_told_without_a_traceback,
    ):
        torch.manual_seed(0)
        check()
        print(f"ok {check.__name__}", flush=True)
    print("all captured")


main()
