"""What `verify` compares with: its attention by hand finds a fault anywhere in the sidecar's own. Run by behaviour.py."""

import ast
import copy
import importlib
import os

import torch
from exports import adapter, export
from families import built


class Step(torch.nn.Module):
    """The next tokens of a text whose beginning is cached; each pass has a copy of the cache."""

    def __init__(self, model, ids):
        super().__init__()
        self.model, self.cache = model, model(input_ids=ids, use_cache=True).past_key_values

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, past_key_values=copy.deepcopy(self.cache))


def proof_of_a_step(family, design, cached, queries=2):
    """What `verify` says of a generation step after so many cached tokens."""
    model, inputs, _ = built(family)
    handle = adapter(design, "transformers").use(model, strict=True)
    ids = inputs["input_ids"][1:]
    verify = importlib.import_module("maskloom_sidecar.verified").verify
    try:
        with torch.no_grad():
            return verify(Step(model, ids[:, :cached]), {"input_ids": ids[:, cached : cached + queries]})
    finally:
        handle.remove()


# module, function, its fault, a model and a design in which it matters
FAULTS = (
    ("attention", "_weighted", lambda real: lambda scores, value, sinks: real(scores, value, None), "gpt_oss", "sinks"),
    ("attention", "_weighted", lambda real: lambda *given: real(*given) * 1.01, "llama", "sinks"),
    ("attention", "_places", lambda real: lambda scores: [real(scores)[axis] for axis in (0, 1, 3, 2)], "llama", "leaning"),
    ("attention", "composed", lambda real: lambda score_mod, brought: real(None, brought), "llama", "leaning"),
    ("attention", "create_mask", lambda real: lambda mod, *given, **more: ~real(mod, *given, **more), "llama", "sinks"),
    ("planning", "shifted", lambda real: lambda mods, q, kv, end: real(mods, q - 1, kv, end), "llama", "sinks"),
)  # fmt: skip


def a_fault_in_a_step_of_a_generation_is_not_proved():
    for number, (module, name, fault, family, design) in enumerate(FAULTS):
        # plans are kept for each length, so that a fault needs a length of its own
        right = proof_of_a_step(family, design, 40)
        assert right.ok and right.from_dense > 1e-4, (name, right)
        place = importlib.import_module(f"maskloom_sidecar.{module}")
        real = getattr(place, name)
        setattr(place, name, fault(real))
        try:
            wrong = proof_of_a_step(family, design, 41 + number)
        finally:
            setattr(place, name, real)
        assert wrong.masked > 0 and not wrong.ok, (name, family, wrong)


def rows_without_a_key_are_compared():
    # a window that ends before each query: the first rows see nothing
    design = export("behind")[1]
    empty = ~design.make_mask("cpu")[0, 0].any(-1)
    assert empty.sum() == 8
    reference = importlib.import_module("maskloom_sidecar.reference")
    attention = importlib.import_module("maskloom_sidecar.attention")
    designs = importlib.import_module("maskloom_sidecar.designs")
    found = designs.design_of(os.path.join(export("behind")[0], "sidecar", "sidecar.json"))
    q, k, v = (torch.randn(1, 2, 80, 64) for _ in range(3))
    calls = importlib.import_module("maskloom_sidecar.plan")
    none = calls.Brought()
    want = reference.attend(found, None, q, k, v, None, none)
    assert (want[:, :, empty] == 0.0).all() and (want[:, :, ~empty] != 0.0).any()
    plan = calls.Plan("whole", found, mask_mod=found.mods(q.device)[0], extents=(None, None))
    assert (attention.dense(plan, q, k, v, None, none) - want).abs().max() < 2e-5


def the_attention_by_hand_has_no_code_of_the_package():
    file = importlib.import_module("maskloom_sidecar.reference").__file__
    with open(file) as text:
        tree = ast.parse(text.read())
    named = [part for part in tree.body if isinstance(part, (ast.Import, ast.ImportFrom))]
    modules = {part.module if isinstance(part, ast.ImportFrom) else part.names[0].name for part in named}
    assert modules == {"__future__", "typing", "torch"}, modules
    inside = [node for part in tree.body if not isinstance(part, ast.If) for node in ast.walk(part)]
    assert sum(isinstance(node, (ast.Import, ast.ImportFrom)) for node in inside) == len(named)
