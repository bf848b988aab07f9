"""What a design changes, said by `compare` and by a script that is run twice. Run by behaviour.py."""

import importlib
import json
import math
import os
import subprocess
import sys
from types import SimpleNamespace

import families
import masks
import torch
from exports import CLOSE, WORK, adapter, export, mask, refused
from matrix import eager_by_hand, sdpa_by_hand, step

HERE = os.path.dirname(os.path.abspath(__file__))


def twice(code, name, *options, **environment):
    """(stdout, what --json wrote, stderr, return code) of a script run twice."""
    script, out = os.path.join(WORK, "compared.py"), os.path.join(WORK, "compared.json")
    with open(script, "w") as file:
        file.write(f"import sys\nsys.path.append({HERE!r})\n{code}")
    if os.path.exists(out):
        os.remove(out)
    env = {k: v for k, v in os.environ.items() if not k.startswith("MASKLOOM")}
    env |= {"PYTHONPATH": os.path.join(export(name)[0], "sidecar")} | environment
    command = [sys.executable, "-m", "maskloom_sidecar", "--json", out, *options, script]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, cwd=WORK)
    said = json.load(open(out)) if os.path.exists(out) else None
    return ran.stdout, said, ran.stderr, ran.returncode


def near(a, b, allowed=1e-4):
    assert abs(a - b) <= allowed * max(1.0, abs(a), abs(b)), (a, b)


def of_logits(a, b, ids, real):
    """relative, KL, same top token and (loss, loss), each by its definition."""
    rows = real.bool()
    x, y = a[rows].double(), b[rows].double()
    p, q = x.softmax(-1), y.softmax(-1)
    losses = []
    for logits in (a.double(), b.double()):
        found = [
            -logits[n, i].log_softmax(-1)[ids[n, i + 1]]
            for n in range(len(ids)) for i in range(ids.shape[1] - 1) if rows[n, i] and rows[n, i + 1]
        ]  # fmt: skip
        losses.append(torch.stack(found).mean().item())
    kl = (p * (p / q).log()).sum(-1).mean().item()
    return ((y - x).norm() / x.norm()).item(), kl, (x.argmax(-1) == y.argmax(-1)).double().mean().item(), losses


def compare_says_what_a_language_model_loses():
    use = adapter("sinks", "transformers").use
    model, inputs, _ = families.built("llama")
    with torch.no_grad():
        dense = model(**inputs).logits
        with eager_by_hand(model, masks.from_padding(mask("sinks"), inputs["attention_mask"])):
            masked = model(**inputs).logits
    model.set_attn_implementation("sdpa")
    use(model)
    found = adapter("sinks", "transformers").compare(model, inputs)
    relative, kl, top, losses = of_logits(dense, masked, inputs["input_ids"], inputs["attention_mask"])
    assert kl > 1e-4 and relative > 1e-2, (kl, relative)
    near(found.relative, relative)
    near(found.kl / kl, 1.0, 1e-2)
    near(found.top1, top, 0.02)
    for got, want, perplexity in zip(found.losses, losses, found.perplexities):
        near(got, want)
        near(perplexity, math.exp(want))
    with torch.no_grad():
        assert (model(**inputs).logits - masked)[inputs["attention_mask"].bool()].abs().max() < CLOSE
    # labels: the model's own loss
    labels = inputs["input_ids"].clone()
    labels[:, :40] = -100
    given = adapter("sinks", "transformers").compare(model, inputs | {"labels": labels})
    for got, logits in zip(given.losses, (dense, masked)):
        near(got, torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()).item())


def compare_says_what_a_velocity_loses():
    model, inputs, chosen = families.built("flux")
    dense = step(model, inputs)[0].double()
    with sdpa_by_hand(model, chosen, mask("near")):
        masked = step(model, inputs)[0].double()
    refused(lambda: adapter("near").compare(model, inputs), "no layer of this model is watched")
    found = adapter("near").use(model).compare(inputs)
    near(found.relative, ((masked - dense).norm() / dense.norm()).item())
    near(found.cosine, ((masked * dense).sum() / masked.norm() / dense.norm()).item(), 1e-6)
    assert found.kl is None and found.losses is None and found.relative > 1e-3
    one = adapter("near").use(families.built("flux")[0], layers="^transformer_blocks").compare(inputs)
    assert 0 < one.relative != found.relative


def a_row_says_what_is_known_of_a_call():
    adapter("near")._runtime()
    calls = importlib.import_module("maskloom_sidecar.__main__")._calls
    known = {"name": "out", "model": "Net", "relative": 0.25, "cosine": 0.5, "largest": 2.0, "kl": None, "perplexities": None}
    one = SimpleNamespace(**known, top1=0.875, losses=(1.5, 2.0), same_inputs=True)
    first, second = calls([one, SimpleNamespace(**known, top1=None, losses=None, same_inputs=False)]).splitlines()[1:]
    assert first.split() == ["1", "out", "of", "Net", "0.25", "0.50000", "2", "87.5", "%", "1.5000", "->", "2.0000"], first
    assert second.split() == ["2", "out", "of", "Net", "0.25", "0.50000", "2", "other", "inputs"], second


LLAMA = """
import families, torch
model, inputs, _ = families.built("llama")
# what padding says means nothing
labels = inputs["input_ids"].clone()
labels[:, :8] = -100
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(3):
    loss = model(**inputs, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def a_script_runs_without_the_design_and_with_it():
    text, said, errors, status = twice(LLAMA, "sinks", "--calls", "2")
    assert status == 0, errors
    runs = [line.split(":")[1] for line in errors.splitlines() if line.startswith("maskloom: with")]
    assert runs == [" without the design", " with the design"], errors
    assert (said["layers"], said["masked"], said["left"], said["compiled"]) == (2, 6, 0, 0), said
    assert "The outputs are those of the first 2 of 3 forward passes" in text and "perplexity" in text, text
    wanted = []
    for kept in (torch.ones(1, 1, 80, 80, dtype=torch.bool).tril(), mask("sinks")):
        model, inputs, _ = families.built("llama")
        labels = inputs["input_ids"].clone()
        labels[:, :8] = -100
        optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.5), []
        with eager_by_hand(model, masks.from_padding(kept, inputs["attention_mask"])):
            for _ in range(3):
                loss = model(**inputs, labels=labels).loss
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        wanted.append(losses)
    for call, dense, masked in zip(said["calls"], *wanted):
        assert call["same_inputs"]
        near(call["losses"][0], dense)
        near(call["losses"][1], masked)
    by_name = {one["what"]: one for one in said["losses"]}
    for what, of in (("mean loss of the models", lambda x: sum(x) / 3), ("last loss at backward", lambda x: x[-1])):
        near(by_name[what]["dense"], of(wanted[0]), 1e-5)
        near(by_name[what]["mask"], of(wanted[1]), 1e-5)
        assert by_name[what]["of"] == 3 and abs(of(wanted[0]) - of(wanted[1])) > 1e-4


FLUX = """
import families, torch
model, inputs, _ = families.built("flux")
run = torch.compile(model, fullgraph=True, backend="aot_eager")
with torch.no_grad():
    run(**inputs)
"""


def a_compiled_model_is_compared_in_chosen_layers():
    text, said, errors, status = twice(FLUX, "near", "--layers", "^single")
    assert status == 0, errors
    assert (said["layers"], said["compiled"]) == (2, 2) and "compiled into 2" in text, text
    model, inputs, _ = families.built("flux")
    dense = step(model, inputs)[0].double()
    with sdpa_by_hand(model, lambda name: name.startswith("single") and name.endswith(".attn"), mask("near")):
        masked = step(model, inputs)[0].double()
    near(said["calls"][0]["relative"], ((masked - dense).norm() / dense.norm()).item())


OWN = """
import torch
import torch.nn.functional as F

class Mixing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(32, 96)
    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, 16).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Mixing()
    def forward(self, x):
        return self.attention(x)

BEGIN
x = torch.randn(1, 80, 32)
with torch.no_grad():
    Own()(x)
"""


def what_cannot_be_compared_is_an_error():
    script = OWN.replace("BEGIN", "torch.seed()")
    _, said, errors, status = twice(script, "near", "--models", "Own", "--layers", "attention")
    assert status == 1 and "the first forward passes had different inputs" in errors and not said["calls"][0]["same_inputs"], errors
    _, said, errors, status = twice(OWN.replace("BEGIN", ""), "near")
    assert status == 1 and said is None and "no watched model ran" in errors, errors
    _, said, errors, status = twice("import torch\nsys.exit(3)", "near")
    assert status == 1 and said is None and "ended with 3 without the design" in errors, errors
    script = OWN.replace("BEGIN", "").replace("80, 32", "96, 32")
    # no seed in this script: both runs draw the same
    _, said, errors, status = twice(script, "table", "--models", "Own", "--layers", "attention")
    assert status == 1 and "the design masked no call" in errors and "96 x 96 tokens is left as it is" in errors, errors
    assert said["calls"][0]["same_inputs"] and said["left"] == 1, said
