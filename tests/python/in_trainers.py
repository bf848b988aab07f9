"""Designs in trainers that replace PyTorch's attention later, for training or for validation alone. Run by behaviour.py."""

from in_sidecar import sidecar

PASSES = """
import families, a_trainer
torch.manual_seed(0)
model, inputs, _ = families.built({family!r})
with torch.no_grad():
    want = model(**inputs)[0]
    trainer = a_trainer.Controller({phases}, copies={copies}, calls_back={back})
    for phase in ("train", "eval", "train", "eval"):
        trainer.apply(phase)
        print(float((model(**inputs)[0] - want).abs().max()))
print(trainer.calls, file=__import__("sys").stderr)
"""


def passes(family="sd3", phases=("train",), copies=False, back=False, name="rows", **environment):
    code = PASSES.format(family=family, phases=repr(phases), copies=copies, back=back)
    return sidecar(code, name, **environment)


def a_function_that_is_replaced_later_is_masked_in_every_pass():
    cases = [("flux", phases, copies) for phases in (("train",), ("eval",)) for copies in (False, True)]
    cases += [("wan", ("train", "eval"), False), ("unet", ("eval",), False)]
    for family, phases, copies in cases:
        got, said, status = passes(family, phases, copies, name="near", MASKLOOM_SIDECAR_STRICT="1")
        assert status == 0, said
        assert all(float(off) < 2e-5 for off in got.split()) and len(got.split()) == 4, (family, phases, got, said)
        assert "was replaced by `replacement`" in said and "; 0 calls left as they are" in said, said


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
