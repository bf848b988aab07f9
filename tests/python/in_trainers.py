"""Designs in trainers that replace PyTorch's attention later, for training or for validation alone. Run by behaviour.py."""

import os

from exports import WORK
from in_sidecar import sidecar

PASSES = """
import os
import families, a_trainer
# one import for all cases: nothing of the models ran in the process from which each case is forked
from diffusers import FluxTransformer2DModel, UNet2DConditionModel, WanTransformer3DModel

for at, (family, phases, copies) in enumerate({cases!r}):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0, family
        continue
    for name, to in (("out", 1), ("err", 2)):
        os.dup2(os.open(f"passes_{{at}}.{{name}}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), to)
    torch.manual_seed(0)
    model, inputs, _ = families.built(family)
    with torch.no_grad():
        want = model(**inputs)[0]
        trainer = a_trainer.Controller(phases, copies=copies)
        for phase in ("train", "eval", "train", "eval"):
            trainer.apply(phase)
            print(float((model(**inputs)[0] - want).abs().max()))
    break
else:
    # the sidecar has watched no model in this process
    os._exit(0)
"""


def a_function_that_is_replaced_later_is_masked_in_every_pass():
    cases = [("flux", phases, copies) for phases in (("train",), ("eval",)) for copies in (False, True)]
    cases += [("wan", ("train", "eval"), False), ("unet", ("eval",), False)]
    _, said, status = sidecar(PASSES.format(cases=cases), "near", MASKLOOM_SIDECAR_STRICT="1")
    assert status == 0, said
    for at, case in enumerate(cases):
        got, said = (open(os.path.join(WORK, f"passes_{at}.{name}")).read() for name in ("out", "err"))
        assert all(float(off) < 2e-5 for off in got.split()) and len(got.split()) == 4, (case, got, said)
        assert "was replaced by `replacement`" in said and "; 0 calls left as they are" in said, (case, said)


def what_is_left_goes_to_the_replacement_and_counts_once():
    # a design of 80 tokens and a model of 96: every call is left, and the replacement calls back what it replaced
    code = """
import families, a_trainer
model, inputs, _ = families.sd3()
inputs["encoder_hidden_states"] = torch.randn(2, 32, 32)
trainer = a_trainer.Controller(("train",), calls_back=True)
with torch.no_grad():
    model(**inputs)
    trainer.apply("train")
    model(**inputs)
print(trainer.calls)
"""
    got, said, _ = sidecar(code, "rows")
    assert int(got) > 0 and "4 calls left as they are; 4 times in" in said, (got, said)


COMPILED = """
import families, a_trainer
model, inputs, _ = families.built("flux")
with torch.no_grad():
    want = model(**inputs)[0]
    run = torch.compile(model, backend="aot_eager")
    trainer = a_trainer.Controller(("train",))
    for phase in ("eval", "train", "eval", "train"):
        trainer.apply(phase)
        print(float((run(**inputs)[0] - want).abs().max()))
"""


def compiled_models_are_masked_after_a_replacement():
    got, said, status = sidecar(COMPILED, "near", MASKLOOM_SIDECAR_STRICT="1")
    assert status == 0 and len(got.split()) == 4, said[-3000:]
    assert all(float(off) < 2e-5 for off in got.split()), (got, said[-3000:])


def checkpointed_layers_are_masked_in_the_backward_pass():
    code = """
import families, a_trainer
grads = []
for replaced in (False, True):
    torch.manual_seed(0)
    model, inputs, _ = families.built("flux")
    model.enable_gradient_checkpointing()
    model.train()
    trainer = a_trainer.Controller(("train",))
    if replaced:
        trainer.apply("train")
    model(**inputs)[0].square().sum().backward()
    grads.append([p.grad for p in model.parameters() if p.grad is not None])
print(max(float((a - b).abs().max()) for a, b in zip(*grads)))
"""
    got, said, status = sidecar(code, "near", MASKLOOM_SIDECAR_STRICT="1")
    assert status == 0 and float(got) < 1e-4, (got, said[-2000:])
