"""The page of models that take an export: every family and every way of training, in each Python that is named.

    python models.py MASKLOOM WORK PYTHON... [--simpletuner FOLDER...] > docs/models.md

MASKLOOM is the program; a design over 80 tokens is exported into WORK. Each PYTHON has its own torch, diffusers and transformers;
the newest comes first. FOLDER holds SimpleTuner's package: its transformers run in the first PYTHON.
"""

import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("torch", "diffusers", "transformers", "peft", "accelerate")
VERSIONS = f"""
import importlib.metadata as m, json
print(json.dumps([(n, m.version(n)) for n in {PACKAGES!r} if any(d.name == n for d in m.distributions())]))
"""
HEAD = """# Models tested with an exported design

Printed by `tests/python/models.py` from `tests/python/matrix.py` and `tests/python/training.py`: tiny models of random weights
over 80 tokens, on the cpu, with

{versions}

- equal: outputs and gradients equal those of the model's own attention with the same mask passed by hand. They differ from those
  of the model without the design. Every watched call was masked, and the adapter's `verify` confirms it. The mask by hand is
  written a second time, in `tests/python/masks.py`: the rows prove that the design that was drawn is what each layer attends with,
  and a wrong cell of the exported module fails them. They prove it for one design, a causal window of 20 of 80 tokens. That the
  exported masks of all patterns and presets are right is proved by `tests/python/modules.py`.
- reported: the model of that version calls attention by a function that is not watched. Nothing is masked. `verify`, strict mode and
  the log say so.
- absent: that version has no such model.

The adapter is `DESIGN_diffusers.use(model)` or `DESIGN_transformers.use(model)`. Environment variables load the sidecar into an
unchanged script. If a cell has two words, the first is the result of the adapter and the second that of the sidecar. The figures
are those of the adapter in the first column.
"""
TAIL = """
Not run: SimpleTuner's own training loop (its transformers are run), CUDA, other versions than those above.
"""


def rows(python, script, export, extra, path):
    """The rows that a script wrote, run by one Python."""
    file = os.path.join(os.path.dirname(export), f"{script}.json")
    if os.path.exists(file):
        os.remove(file)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    if path:
        env["PYTHONPATH"] = path
    command = [python, os.path.join(HERE, script), export, "--json", file, *extra]
    ran = subprocess.run(command, env=env, capture_output=True, text=True)
    sys.stderr.write(ran.stdout)
    if not os.path.exists(file):
        sys.exit(f"{' '.join(command)} failed:\n{ran.stderr[-3000:]}")
    with open(file) as found:
        return json.load(found)


def table(heads, lines):
    print()
    for line in [heads, ["---"] * len(heads), *lines]:
        print(f"| {' | '.join(line)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("maskloom")
    parser.add_argument("work")
    parser.add_argument("python", nargs="+")
    parser.add_argument("--simpletuner", nargs="+", default=[], metavar="FOLDER")
    options = parser.parse_args()
    work = os.path.abspath(options.work)
    os.makedirs(work, exist_ok=True)
    export = os.path.join(work, "export")
    design = ["sliding_window", "--arg", "window=20", "--seq", "80", "--heads", "2", "--kv-heads", "2", "--to", export, "--force"]
    made = subprocess.run([options.maskloom, "export", *design], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    heads, models, ways, versions = [], {}, {}, []
    for python in options.python:
        known = dict(json.loads(subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True).stdout))
        heads.append(f"torch {known['torch']}")
        versions.append(known)
        for row in rows(python, "matrix.py", export, [], None):
            models.setdefault(row["family"], {}).setdefault(heads[-1], {})[row["way"]] = row
        for row in rows(python, "training.py", export, [], None):
            ways.setdefault(row["way"], {})[heads[-1]] = row
    print(HEAD.format(versions="\n".join("- " + ", ".join(f"{n} {v}" for n, v in known.items()) for known in versions)), end="")

    def cell(found):
        words = list(dict.fromkeys(found[way]["word"] for way in ("adapter", "sidecar") if way in found))
        return ", ".join(words) or "not run"

    def figures(found):
        adapter = found.get("adapter", {})
        return ", ".join(adapter["about"].split(", ")[:3]) if adapter.get("word") == "equal" else ""

    lines = [
        [name, *(cell(by.get(head, {})) for head in heads), figures(by.get(heads[0], {}))]
        for name, by in models.items()
        if not name.startswith("simpletuner_")
    ]
    table(["model", *heads, "off by, gradients, away from dense"], lines)
    print("\n## Ways of training")
    lines = [
        [way, *(by[head]["word"] if head in by else "not run" for head in heads), by.get(heads[0], {}).get("about", "")]
        for way, by in ways.items()
    ]
    table(["way", *heads, "off by"], lines)
    failed = [row for by in models.values() for at in by.values() for row in at.values() if row["word"] == "FAILED"]
    failed += [row for by in ways.values() for row in by.values() if row["word"] == "FAILED"]
    if options.simpletuner:
        print(f"\n## SimpleTuner's own transformers\n\nIn the Python with torch {versions[0]['torch']}.")
        found = {}
        for folder in options.simpletuner:
            for row in rows(options.python[0], "matrix.py", export, ["--only", ONLY], os.path.abspath(folder)):
                found.setdefault(row["family"].removeprefix("simpletuner_"), {}).setdefault(folder, {})[row["way"]] = row
                failed += [row] if row["word"] == "FAILED" else []
        lines = [
            [name, *(cell(by.get(folder, {})) for folder in options.simpletuner), figures(by[options.simpletuner[-1]])]
            for name, by in found.items()
        ]
        table(["model", *map(release, options.simpletuner), "off by, gradients, away from dense"], lines)
    print(TAIL, end="")
    for row in failed:
        print(f"FAILED: {row}", file=sys.stderr)
    sys.exit(bool(failed))


def release(folder):
    """The release of a folder that holds SimpleTuner."""
    file = os.path.join(folder, "simpletuner", "__init__.py")
    if os.path.exists(file):
        with open(file) as text:
            for line in text:
                if line.startswith("__version__"):
                    return f"SimpleTuner {line.split('=')[1].strip().strip(chr(34))}"
    return "SimpleTuner"


sys.path.append(HERE)
if __name__ == "__main__":
    from simpletuner_models import CLASSES

    ONLY = ",".join(f"simpletuner_{name}" for name in CLASSES)
    main()
