"""The exported sidecar in a training script that knows nothing of it, launched plainly and by `accelerate launch`.

    python sidecar.py EXPORT WORK [simpletuner]

EXPORT is `sliding_window --arg window=20` over 80 tokens. Two training steps of tiny models are run three ways: as they are, with the
sidecar (also by `accelerate launch`), and with the mask of masks.py given to the model's own attention by hand. The second must equal the third and
differ from the first. `simpletuner` takes Flux from SimpleTuner's own code instead of diffusers'. DEVICE=cuda trains on the GPU.
Exit status 77: accelerate is not installed, and what was run is right.
"""

import importlib.util
import os
import subprocess
import sys

# Collecting garbage takes a quarter of the time in which a process imports PyTorch and diffusers.
TRAIN = '''
import gc, os, sys
gc.disable()
import torch

kind, out, reference, tests = sys.argv[1:5]
sys.path.append(tests)
import masks, tiny_models

torch.manual_seed(0)
DEVICE = os.environ.get("DEVICE", "cpu")


def flux():
    if kind == "simpletuner":
        # its packages import every model it has, and their dependencies; only this one's file is wanted
        import types

        for name in ("", ".helpers", ".helpers.models", ".helpers.models.flux", ".helpers.training", ".helpers.utils"):
            package = types.ModuleType("simpletuner" + name)
            folder = next(p for p in sys.path if os.path.isdir(os.path.join(p, "simpletuner")))
            package.__path__ = [os.path.join(folder, "simpletuner", *name.split(".")[1:])]
            sys.modules[package.__name__] = package
        from simpletuner.helpers.models.flux.transformer import FluxTransformer2DModel
    else:
        from diffusers import FluxTransformer2DModel
    return tiny_models.flux(FluxTransformer2DModel)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=2, vocab_size=32, attn_implementation="sdpa")
    model = LlamaForCausalLM(config)
    ids = torch.randint(0, 32, (2, 80))
    return model, dict(input_ids=ids, return_dict=False), lambda name: name.endswith(".self_attn")


class Plain(torch.nn.Module):
    """Attention written by hand."""

    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(32, 96)
        self.query = torch.nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, 16).permute(2, 0, 3, 1, 4)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class PlainModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.ModuleDict({"mixing": Plain()}) for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = x + block["mixing"](x)
        return (x,)


def plain():
    # two of the three layers, as the settings below ask
    return PlainModel(), dict(x=torch.randn(2, 80, 32)), lambda name: name in ("blocks.1.mixing", "blocks.2.mixing")


def by_hand(model, chosen):
    """The mask given to each chosen layer's own attention, which every other seam leaves alone."""
    mask, inside = masks.window().to(DEVICE), [False]
    import torch.nn.functional as F

    original = F.scaled_dot_product_attention

    def masked(query, key, value, attn_mask=None, **kwargs):
        if inside[0]:
            kwargs["is_causal"] = False
        return original(query, key, value, attn_mask=mask if inside[0] else attn_mask, **kwargs)

    F.scaled_dot_product_attention = masked

    for name, module in model.named_modules():
        if chosen(name):
            module.register_forward_pre_hook(lambda *_: inside.__setitem__(0, True))
            module.register_forward_hook(lambda *_: inside.__setitem__(0, False))


model, inputs, chosen = {"flux": flux, "simpletuner": flux, "wan": tiny_models.wan, "llama": llama, "plain": plain}[kind]()
model = model.to(DEVICE)
inputs = {name: x.to(DEVICE) if torch.is_tensor(x) else x for name, x in inputs.items()}
if reference != "-":
    by_hand(model, chosen)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
if "ACCELERATE_MIXED_PRECISION" in os.environ or "ACCELERATE_USE_CPU" in os.environ:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=DEVICE == "cpu")
    model, optimizer = accelerator.prepare(model, optimizer)
    backward = accelerator.backward
else:
    backward = torch.Tensor.backward
outputs = []
for _ in range(2):
    result = model(**inputs)[0]
    outputs.append(result.detach().clone())
    optimizer.zero_grad()
    backward(result.square().mean())
    optimizer.step()
model.eval()
with torch.no_grad():
    outputs.append(model(**inputs)[0])
torch.save(outputs, out)
'''


def launch(command, env, work):
    done = subprocess.run(command, env=env, cwd=work, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stderr + done.stdout


def main():
    export, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    kinds = sys.argv[3:] or ["flux", "wan", "llama", "plain"]
    import torch

    script = os.path.join(work, "train.py")
    with open(script, "w") as file:
        file.write(TRAIN)
    # a sitecustomize of the user's own must still run
    os.makedirs(os.path.join(work, "own"), exist_ok=True)
    with open(os.path.join(work, "own", "sitecustomize.py"), "w") as file:
        file.write("import sys\nprint('own sitecustomize', file=sys.stderr)\n")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MASKLOOM", "PYTHONPATH"))}
    extra = os.environ.get("EXTRA_PATH")
    own = os.pathsep.join(p for p in (os.path.join(work, "own"), extra) if p)
    clean |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": own}
    # on the path, but not asked for
    idle = clean | {"PYTHONPATH": os.pathsep.join([os.path.join(export, "sidecar"), own])}
    sidecar = idle | {"MASKLOOM_SIDECAR": export}
    cpu = ["--cpu"] if os.environ.get("DEVICE", "cpu") == "cpu" else []
    accelerate = [sys.executable, "-m", "accelerate.commands.launch", *cpu, "--num_processes", "1", "--mixed_precision", "no"]

    for kind in kinds:
        settings, layers = {}, {"flux": 3, "simpletuner": 3, "wan": 2, "llama": 2, "plain": 2}[kind]
        if kind == "plain":
            settings = {"MASKLOOM_SIDECAR_MODELS": "PlainM*", "MASKLOOM_SIDECAR_LAYERS": r"blocks\.[12]\.mixing"}

        def run(name, env, reference="-", prefix=(sys.executable,)):
            out = os.path.join(work, f"{kind}_{name}.pt")
            said = launch([*prefix, script, kind, out, reference, os.path.dirname(os.path.abspath(__file__))], env, work)
            return torch.load(out), said

        dense, said = run("dense", idle)
        assert "maskloom" not in said and said.count("own sitecustomize") == 1, said
        wanted, _ = run("wanted", clean, "by hand")
        ways = {"alone": (sys.executable,)}
        if kind == kinds[0] and importlib.util.find_spec("accelerate"):
            ways["accelerate launch"] = accelerate
        for way, prefix in ways.items():
            got, said = run(way.split()[0], sidecar | settings, "-", prefix)
            line = f"mask active in {layers} layers of"
            assert said.count(line) == 1 and "sparsity" in said and "sparsity -" not in said, said
            assert "own sitecustomize" in said, said
            for step, (have, want, plain) in enumerate(zip(got, wanted, dense)):
                off = (have - want).abs().max().item()
                apart = (have - plain).abs().max().item()
                assert off < 2e-5, (kind, way, step, off)
                assert apart > 1e-3, (kind, way, step, apart)
            reported = next(text for text in said.splitlines() if line in text)
            print(f"{kind}, {way}: {reported.strip()}; off by {off:.1e}, {apart:.3f} from dense")
    if not importlib.util.find_spec("accelerate"):
        print("skipped: no accelerate")
        sys.exit(77)


main()
