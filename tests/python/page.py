"""The page of models that take an export, from rows of matrix.py and training.py.

    (python matrix.py EXPORT --markdown; python training.py EXPORT --markdown) > ROWS
    python page.py ROWS > docs/models.md
"""

import importlib.metadata
import sys

HEAD = """# Which models take an exported design

Made by `tests/python/matrix.py` and `tests/python/training.py` on tiny models of random weights over 80 tokens, with {versions}
on the cpu. "equal" is: outputs and gradients are those of the model's own attention with the design's dense mask given by hand,
they differ from the model without the design, every watched call was masked, and the adapter's `verify` proves it.

The adapter is `DESIGN_diffusers.use(model)` or `DESIGN_transformers.use(model)`; the sidecar is loaded by the environment into a
process that knows nothing of it.

| model | adapter | sidecar | adapter: off by, gradients, away from dense |
|---|---|---|---|
"""
TRAINING = """
## Ways of training

| way | result | off by |
|---|---|---|
"""
NOT = """
Not run: SimpleTuner's own loop (its transformers are, by `tests/python/sidecar.py EXPORT WORK simpletuner`, where it is
installed), CUDA, other versions than those above.
"""


def main():
    with open(sys.argv[1]) as file:
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in file if line.startswith("| ")]
    models, ways = {}, []
    for row in rows:
        if len(row) == 4:
            models.setdefault(row[0], {})[row[1]] = (row[2], row[3])
        else:
            ways.append(row)
    found = [(name, importlib.metadata.version(name)) for name in ("torch", "diffusers", "transformers", "peft", "accelerate")]
    print(HEAD.format(versions=", ".join(f"{name} {version}" for name, version in found)), end="")
    for name, by in models.items():
        adapter, sidecar = by.get("adapter", ("not run", "")), by.get("sidecar", ("not run", ""))
        print(f"| {name} | {adapter[0]} | {sidecar[0]} | {', '.join(adapter[1].split(', ')[:3])} |")
    print(TRAINING, end="")
    for row in ways:
        print(f"| {' | '.join(row)} |")
    print(NOT, end="")


main()
