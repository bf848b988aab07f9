"""The sidecar in processes of its own. Run by behaviour.py."""

import os
import subprocess
import sys

import families
import torch
from exports import WORK, by_hand, export

# collecting garbage takes a quarter of the time in which a process imports PyTorch and diffusers
PRELUDE = "import gc, sys; gc.disable(); sys.path.append(sys.argv[1]); import torch\n"


def sidecar(code, *names, **environment):
    """(stdout, stderr, return code) of a script under the sidecar."""
    folders = os.pathsep.join(export(name)[0] for name in names)
    env = {k: v for k, v in os.environ.items() if not k.startswith("MASKLOOM")}
    env |= {"MASKLOOM_SIDECAR": folders, "PYTHONPATH": os.path.join(export(names[0])[0], "sidecar")} | environment
    here = os.path.dirname(os.path.abspath(__file__))
    ran = subprocess.run([sys.executable, "-c", PRELUDE + code, here], env=env, capture_output=True, text=True, cwd=WORK)
    return ran.stdout, ran.stderr, ran.returncode


FLUX = """
import families
model, inputs, _ = families.built("flux")
with torch.no_grad(): out = model(**inputs)[0]
print(float(out.double().sum()))
"""


def the_sidecar_says_so_when_nothing_was_watched():
    _, said, _ = sidecar("import diffusers.models.modeling_utils", "near")
    assert "the sidecar is loaded" in said and "at the end: no layer was watched" in said, said
    _, said, _ = sidecar(FLUX, "near", MASKLOOM_SIDECAR_LAYERS="no_such_layer")
    assert "no layer was watched" in said, said
    _, said, _ = sidecar(FLUX, "near", MASKLOOM_SIDECAR_MODELS="Fluxx*")
    assert "no layer was watched" in said, said
    code = "import diffusers, families\nmodel, inputs, _ = families.built('llama')\nmodel(**inputs)"
    _, said, _ = sidecar(code, "near")
    assert "LlamaForCausalLM is left as it is, because diffusers is in this process" in said, said
    # torch alone, and no torch
    _, said, status = sidecar("print(1)", "near")
    assert status == 0 and said.count("maskloom:") == said.count("no layer was watched") == 1, said
    folder, _ = export("near")
    env = os.environ | {"MASKLOOM_SIDECAR": folder, "PYTHONPATH": os.path.join(folder, "sidecar")}
    ran = subprocess.run([sys.executable, "-c", "print(1)"], env=env, capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr


def the_sidecars_last_line_counts():
    _, said, _ = sidecar(FLUX, "near")
    assert "mask active in 3 layers of FluxTransformer2DModel" in said, said
    assert "at the end: FluxTransformer2DModel: 3 calls masked in 3 layers; 0 calls left as they are" in said, said


def a_unet_is_one_model_of_all_its_layers():
    code = "import families\nmodel, inputs, _ = families.built('unet')\nmodel(**inputs)"
    _, said, _ = sidecar(code, "near")
    assert said.count("mask active in ") == 1 and "of UNet2DConditionModel" in said, said
    assert "of Transformer2DModel" not in said, said


def the_last_line_names_the_layers_that_were_left():
    code = "import families\nmodel, inputs, _ = families.sd3()\ninputs['encoder_hidden_states'] = torch.randn(2, 32, 32)\nmodel(**inputs)"
    _, said, _ = sidecar(code, "rows")
    want = "2 calls left as they are; 2 times in transformer_blocks.0.attn, transformer_blocks.1.attn: attention over 96 x 96 tokens"
    assert want in said, said


def a_strict_sidecar_stops():
    code = "import families\nmodel, inputs, _ = families.sd3()\ninputs['encoder_hidden_states'] = torch.randn(2, 32, 32)\nmodel(**inputs)"
    _, said, status = sidecar(code, "rows", MASKLOOM_SIDECAR_STRICT="1")
    assert status != 0 and "96 x 96 tokens is left as it is" in said, said
    # a pattern that matches nothing, and a program that goes on after the error
    swallowed = FLUX.replace("with torch.no_grad(): out = model(**inputs)[0]", "try: model(**inputs)\nexcept RuntimeError: out = torch.ones(1)")
    settings = {"MASKLOOM_SIDECAR_STRICT": "1", "MASKLOOM_SIDECAR_LAYERS": "no_such_layer"}
    got, said, status = sidecar(swallowed, "near", **settings)
    assert status == 1 and got == "1.0\n" and "accepted by no_such_layer" in said, (got, said)


def wrong_settings_are_told_at_the_start():
    for name, value, word in (
        ("MASKLOOM_SIDECAR_LAYERS", "(", "regular expression"),
        ("MASKLOOM_SIDECAR", os.path.join(WORK, "nowhere"), "no sidecar.json"),
        ("MASKLOOM_SIDECAR_SHAPES", "all", "`any` or `exact`"),
    ):
        _, said, status = sidecar("print(1)", "near", **{name: value})
        assert word in said and status == 0, said
        # strict: no program runs without the design
        got, said, status = sidecar("print(1)", "near", MASKLOOM_SIDECAR_STRICT="1", **{name: value})
        assert word in said and status == 1 and not got, (got, said)
    code = "import os; os.chdir('/')\n" + FLUX
    env = {"MASKLOOM_SIDECAR": os.path.relpath(export("near")[0], WORK)}
    _, said, status = sidecar(code, "near", **env)
    assert status == 0 and "mask active in 3 layers" in said, said


def the_sidecar_tells_portrait_from_landscape():
    code = """
import families
for grid in ((5, 2, 8), (5, 8, 2)):
    torch.manual_seed(0)
    model, inputs, _ = families.wan(grid)
    print(model(**inputs)[0].double().sum().item())
"""
    got, said, status = sidecar(code, "wide", "tall", MASKLOOM_SIDECAR_STRICT="1")
    assert status == 0, said
    for line, grid, name in zip(got.split(), ((5, 2, 8), (5, 8, 2)), ("wide", "tall")):
        torch.manual_seed(0)
        want = by_hand(*families.wan(grid), name).double().sum().item()
        assert abs(float(line) - want) < 1e-3, (line, want)


def two_designs_for_the_same_call_are_neither():
    got, said, _ = sidecar(FLUX, "near", "far")
    assert "are made for the same 80 x 80 tokens and layers: choose one" in said, said
    model, inputs, _ = families.built("flux")
    assert abs(float(got) - model(**inputs)[0].double().sum().item()) < 1e-4


COMPILED = """
import families
model, inputs, _ = families.built("flux")
with torch.no_grad():
    want = model(**inputs)[0]
    run = torch.compile(model, fullgraph=True, backend="aot_eager")
    print((run(**inputs)[0] - want).abs().max().item() < 2e-5)
"""
KEPT = """
import families
model, inputs, _ = families.built("flux")
with torch.no_grad():
    want = model(**inputs)[0]
    exported = torch.export.export(model, (), inputs, strict=False)
    print((exported.module()(**inputs)[0] - want).abs().max().item() < 2e-5)
    torch.save(model, "sidecar.pt")
    print(torch.equal(torch.load("sidecar.pt", weights_only=False)(**inputs)[0], want))
import maskloom_sidecar
print(maskloom_sidecar.verify(model, inputs).ok)
"""


def the_sidecar_compiles_whole():
    got, said, status = sidecar(COMPILED, "near")
    assert status == 0 and got.split() == ["True"], (got, said[-3000:])
    assert "compiled into 3 layers" in said, said


def the_sidecar_exports_pickles_and_proves():
    got, said, status = sidecar(KEPT, "near")
    assert status == 0 and got.split() == ["True"] * 3, (got, said[-3000:])
