"""Models with a design in other processes: saved, spawned, in data loaders, and as torch.export writes them. Run by behaviour.py."""

import importlib
import os
import subprocess
import sys

import families
import torch
from exports import CLOSE, WORK, adapter, export, mask
from in_sidecar import sidecar
from matrix import apart

HERE = os.path.dirname(os.path.abspath(__file__))


def alone(code, *arguments, **environment):
    """What a script prints, in a file of its own and without a word of the sidecar's settings."""
    script = os.path.join(WORK, "alone.py")
    with open(script, "w") as out:
        out.write(code)
    env = {k: v for k, v in os.environ.items() if not k.startswith("MASKLOOM")} | environment
    ran = subprocess.run([sys.executable, script, *arguments], env=env, capture_output=True, text=True, cwd=WORK)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout, ran.stderr


LOAD = """
import sys
import torch
sys.path.append(sys.argv[1])
model, inputs, want, plain = torch.load("saved.pt", weights_only=False)
with torch.no_grad():
    got = model(**inputs)[0]
print((got - want).abs().max().item() < 2e-5, (got - plain).abs().max().item() > 1e-3)
"""


def saved(model, inputs, plain):
    with torch.no_grad():
        torch.save((model, inputs, model(**inputs)[0], plain), os.path.join(WORK, "saved.pt"))


def a_saved_model_has_its_design_in_another_process():
    for family, design, library in (("flux", "near", "diffusers"), ("llama", "table", "transformers")):
        model, inputs, _ = families.built(family)
        if family == "llama":
            inputs = {"input_ids": inputs["input_ids"], "use_cache": False}
        with torch.no_grad():
            plain = model(**inputs)[0]
        handle = adapter(design, library).use(model, strict=True)
        saved(model, inputs, plain)
        handle.remove()
        assert alone(LOAD, export(design)[0])[0].split() == ["True", "True"], family


SAVE = """
import sys
sys.path.append(sys.argv[1])
import families, torch
model, inputs, _ = families.built("flux")
import maskloom_sidecar.verified as proof
with torch.no_grad():
    want = model(**inputs)[0]
    with proof._run("plain"):
        plain = model(**inputs)[0]
    torch.save((model, inputs, want, plain), "saved.pt")
"""


def what_the_sidecar_saved_has_its_design_where_the_sidecar_is_on_the_path():
    _, said, status = sidecar(SAVE, "near")
    assert status == 0, said
    for more in ({}, {"MASKLOOM_SIDECAR": export("near")[0]}):
        got, _ = alone(LOAD, HERE, PYTHONPATH=os.path.join(export("near")[0], "sidecar"), **more)
        assert got.split() == ["True", "True"], more


SPAWN = """
import sys
import torch

class Masks(torch.utils.data.Dataset):
    def __init__(self, design):
        self.mod, self.made, self.model = design.mask_mod, design.make_block_mask("cpu"), None
    def __len__(self):
        return 2
    def __getitem__(self, at):
        places = torch.arange(80)
        dense = self.mod(torch.tensor(0), torch.tensor(0), places[:, None], places[None])
        return dense, self.made.to_dense().sum()

def work(rank, model, inputs, design, into):
    with torch.no_grad():
        into[rank] = (model(**inputs)[0].double() * (rank + 1)).sum()

def main():
    sys.path[:0] = [sys.argv[1], sys.argv[2]]
    import importlib, families
    design = importlib.import_module(sys.argv[3])
    model, inputs, _ = families.built("flux")
    with torch.no_grad():
        plain = model(**inputs)[0].double().sum().item()
    if len(sys.argv) > 4:
        importlib.import_module(sys.argv[4]).use(model, strict=True)
    with torch.no_grad():
        want = model(**inputs)[0].double().sum().item()
    into = torch.zeros(2, dtype=torch.float64).share_memory_()
    mod = design.mask_mod
    torch.multiprocessing.spawn(work, (model, inputs, mod, into), nprocs=2)
    right = abs(into[0].item() - want) < 1e-3 and abs(into[1].item() - 2 * want) < 1e-3
    loader = torch.utils.data.DataLoader(Masks(design), num_workers=1, multiprocessing_context="spawn")
    kept = all(dense[0].equal(design.make_mask("cpu")[0, 0]) for dense, _ in loader)
    print(right, kept, abs(plain - want) > 1e-2 or len(sys.argv) < 5)

if __name__ == "__main__":
    main()
"""


def spawned_processes_and_data_loaders_get_designs():
    folder = export("table")[0]
    got, _ = alone(SPAWN, folder, HERE, "d_table", "d_table_diffusers")
    assert got.split() == ["True"] * 3, got
    own = {"MASKLOOM_SIDECAR": folder, "PYTHONPATH": os.path.join(folder, "sidecar"), "MASKLOOM_SIDECAR_STRICT": "1"}
    got, said = alone(SPAWN, folder, HERE, "d_table", **own)
    assert got.split() == ["True"] * 3 and "mask active in 3 layers" in said, (got, said)
    assert "no layer was watched" not in said, "a worker that runs no model says nothing"


EXPORT = """
import sys
import torch
sys.path.append(sys.argv[1])
import importlib
design = importlib.import_module(sys.argv[2])

class Own(torch.nn.Module):
    def __init__(self, compiled):
        super().__init__()
        self.compiled = compiled
        self.project = torch.nn.Linear(128, 3 * 128)
    def forward(self, x):
        q, k, v = (t.unflatten(-1, (2, 64)).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        return design.attend(q, k, v, compiled=self.compiled).transpose(1, 2).flatten(2)

own, dense, x = Own(True), Own(False), torch.randn(1, 80, 128)
dense.load_state_dict(own.state_dict())
near = lambda a, b: (a - b).abs().max().item() < 2e-5
with torch.no_grad():
    # before anything was made that is kept
    exported = torch.export.export(own, (x,), strict=sys.argv[3] == "strict")
    want = own(x)
    q, k, v = (t.unflatten(-1, (2, 64)).transpose(1, 2) for t in own.project(x).chunk(3, -1))
    by_hand = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=design.make_mask("cpu"))
    print(near(by_hand.transpose(1, 2).flatten(2), want), near(exported.module()(x), want))
    exported = torch.export.export(dense, (x,), strict=sys.argv[3] == "strict")
    torch.export.save(exported, "own.pt2")
    print(near(torch.export.load("own.pt2").module()(x), want))
x.requires_grad_()
own(x).sum().backward()
trained = torch.export.export(own, (x.detach(),), strict=sys.argv[3] == "strict")
print(near(trained.module()(x), want), x.grad.abs().sum().item() > 0)
"""


def modules_go_through_torch_export():
    for name in ("near", "table"):
        for strict in ("strict", "loose"):
            got, _ = alone(EXPORT, export(name)[0], f"d_{name}", strict)
            assert got.split() == ["True"] * 5, (name, strict, got)


def models_with_adapters_go_through_torch_export():
    for family, design, library in (("flux", "near", "diffusers"), ("llama", "sinks", "transformers")):
        model, inputs, _ = families.built(family)
        if family == "llama":
            inputs["use_cache"] = False
        handle = adapter(design, library).use(model.eval(), strict=True)
        with torch.no_grad():
            for strict in (False, True):
                exported = torch.export.export(model, (), inputs, strict=strict)
                want = model(**inputs)[0]
                assert apart(exported.module()(**inputs)[0], want) < CLOSE, (family, strict)
                file = os.path.join(WORK, "model.pt2")
                torch.export.save(exported, file)
                assert apart(torch.export.load(file).module()(**inputs)[0], want) < CLOSE, (family, strict)
        handle.remove()


INFERENCE = """
import sys
import torch
sys.path.append(sys.argv[1])
import importlib
design = importlib.import_module(sys.argv[2])
q = torch.randn(1, 2, 80, 64)
with torch.inference_mode():
    design.attend(q, q, q, compiled=False)
mask = design._mask_at("cpu", 80, 80)
print(any(t.is_inference() for t in (mask.kv_indices, mask.kv_num_blocks, mask.q_indices)))
"""


def masks_made_in_inference_can_be_trained_with():
    assert alone(INFERENCE, export("table")[0], "d_table")[0].split() == ["False"]


# what is kept


def masks_and_functions_are_kept_within_bounds():
    import gc
    import weakref

    design = export("near")[1]
    real, made = torch.compile, []

    def counting(function, **kwargs):
        made.append(weakref.ref(function))
        return real(function, backend="eager", **kwargs)

    before = design.KEPT_MASKS, design.KEPT_FUNCTIONS
    design.KEPT_MASKS = design.KEPT_FUNCTIONS = 3
    torch.compile = counting
    try:
        for _ in range(2):
            for length in (40, 41, 42, 43, 44):
                q = torch.randn(1, 2, length, 64)
                kept = mask("near")[..., :length, :length]
                with torch.no_grad():
                    got = design.attend(q, q, q)
                assert apart(got, torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=kept)) < CLOSE
        assert len(vars(design._masks)) == len(design._masks_used) == 3
        assert len(design._functions) == len(design._functions_used) == 3
        # what is used stays
        assert len(made) == 10
        for length in (44, 43, 42):
            q = torch.randn(1, 2, length, 64)
            with torch.no_grad():
                design.attend(q, q, q)
        assert len(made) == 10
        gc.collect()
        assert sum(one() is not None for one in made) == 3, "compiled functions that are forgotten are freed"
    finally:
        torch.compile = real
        design.KEPT_MASKS, design.KEPT_FUNCTIONS = before


def compiled_callers_survive_what_is_forgotten():
    design = export("table")[1]
    before, design.KEPT_MASKS = design.KEPT_MASKS, 2
    torch._dynamo.reset()
    try:
        run = torch.compile(lambda q: design.attend(q, q, q), fullgraph=True, backend="eager", dynamic=False)
        for _ in range(2):
            for length in (50, 51, 52):
                q = torch.randn(1, 2, length, 64)
                want = torch.nn.functional.scaled_dot_product_attention(
                    q, q, q, attn_mask=mask("table")[..., :length, :length]
                )
                with torch.no_grad():
                    assert apart(run(q), want) < CLOSE
    finally:
        design.KEPT_MASKS = before


def threads_share_what_is_kept():
    import threading

    adapter("near")._runtime()
    newest = importlib.import_module("maskloom_sidecar.cache").Newest(3)
    design = export("near")[1]
    before, design.KEPT_MASKS = design.KEPT_MASKS, 2
    wrong = []

    def work(seed):
        drawn = torch.Generator().manual_seed(seed)
        try:
            for _ in range(4000):
                key = int(torch.randint(6, (), generator=drawn))
                if newest(key, lambda key=key: [key]) != [key]:
                    wrong.append(key)
            for _ in range(60):
                length = 60 + int(torch.randint(5, (), generator=drawn))
                if design._mask_at("cpu", length, length).seq_lengths != (length, length):
                    wrong.append(length)
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
        design.KEPT_MASKS = before
    assert not wrong, wrong[:5]
    assert len(newest.held) <= 3 and len(newest.used) <= 3 and len(vars(design._masks)) <= 3


def plans_of_compiled_models_go_with_them():
    import gc

    adapter("near")._runtime()
    from maskloom_sidecar.counts import plans

    gc.collect()
    model, inputs, _ = families.built("flux")
    handle = adapter("near").use(model)
    assert not vars(plans), "what was compiled is compiled anew"
    with torch.no_grad():
        torch.compile(model, backend="eager")(**inputs)
    assert len(vars(plans)) == 3
    layer = next(m for m in model.modules() if "_maskloom" in m.__dict__).__dict__["_maskloom"]
    for at in range(40):
        setattr(plans, f"plan_{at}", at)
        layer.plans.put(f"plan_{at}", at)
    assert len(layer.plans.held) == 32 and len(vars(plans)) == 32 + 2
    handle.remove()
    assert not vars(plans)
