"""Tables of what SimpleTuner's and diffusers' releases do with attention, made from their wheels.

    python .ci/trainers/table.py DIFFUSERS.whl SIMPLETUNER.whl...   prints the tables as JSON
    python .ci/trainers/table.py --changes ...                       says what differs from assets/trainers/known.json
    python .ci/trainers/table.py --newest ...                        downloads the newest wheels first, with pip

Owns: the file's form. Invariant: facts only, read from the text of the wheels; a fact that cannot be read is `unknown`.
With --changes the exit status is 1 where something differs. It is 77 where the wheels cannot be downloaded."""

import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import controller  # noqa: E402
import dispatcher  # noqa: E402
import families  # noqa: E402
from wheel import Wheel  # noqa: E402

KNOWN = pathlib.Path(__file__).parents[2] / "assets/trainers/known.json"


def tables(diffusers, trainers):
    """One object: diffusers' backends, and for each release of the trainer its values and families. Newest first."""
    backends = dispatcher.backends(diffusers)
    targets = controller.reader_of(diffusers, dispatcher.MODULE).members("AttentionBackendName")
    rows = []
    for wheel in trainers:
        values, default = controller.choices(wheel)
        rows.append(
            {
                "version": wheel.version,
                "built": wheel.built,
                "default": default,
                "default_usage": controller.default_usage(wheel),
                "values": {value: controller.row(wheel, value, targets) for value in values},
                "families": families.families(wheel, diffusers),
            }
        )
    rows.sort(key=lambda row: [int(part) for part in row["version"].split(".")], reverse=True)
    return {"diffusers": {"version": diffusers.version, "built": diffusers.built, "backends": backends}, "simpletuner": rows}


def changes(known, found):
    """Lines that say what differs between the newest releases of two tables."""
    lines = []
    old, new = known["simpletuner"][0], found["simpletuner"][0]
    of = f"SimpleTuner {old['version']} -> {new['version']}"
    for key in ("default", "default_usage"):
        if old[key] != new[key]:
            lines.append(f"{of}: {key}: {old[key]} -> {new[key]}")
    for part in ("values", "families"):
        lines += _rows(f"{of}: {part}", old[part], new[part])
    before, after = known["diffusers"], found["diffusers"]
    lines += _rows(f"diffusers {before['version']} -> {after['version']}: backends", before["backends"], after["backends"])
    return lines


def _rows(of, old, new):
    lines = [f"{of}: {name} is new: {json.dumps(new[name])}" for name in sorted(set(new) - set(old))]
    lines += [f"{of}: {name} is gone" for name in sorted(set(old) - set(new))]
    same = sorted(set(old) & set(new))
    return lines + [f"{of}: {n}: {json.dumps(old[n])} -> {json.dumps(new[n])}" for n in same if old[n] != new[n]]


def written(table, depth=0):
    """The file's text: one row a line, so that a difference names its row."""
    named = isinstance(table, dict) and any(key in table for key in ("calls", "always", "mask", "inference"))
    if not isinstance(table, (dict, list)) or named:
        return json.dumps(table)
    pad, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(table, list):
        return "[" + ",".join(pad + written(item, depth + 1) for item in table) + end + "]"
    rows = [f"{pad}{json.dumps(key)}: {written(value, depth + 1)}" for key, value in table.items()]
    return "{" + ",".join(rows) + end + "}"


def _newest(folder):
    """The newest wheels, downloaded. None: they cannot be."""
    for project in ("diffusers", "simpletuner"):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--python-version", "3.12", "--dest", folder, project]
        if subprocess.run(command).returncode != 0:
            return None
    files = sorted(pathlib.Path(folder).glob("*.whl"))
    return [str(f) for f in files]


def main(arguments):
    flags = {a for a in arguments if a.startswith("--")}
    paths = [a for a in arguments if not a.startswith("--")]
    with tempfile.TemporaryDirectory() as folder:
        if "--newest" in flags:
            found = _newest(folder)
            if found is None:
                print("skipped: the wheels cannot be downloaded here")
                return 77
            paths += found
        wheels = [Wheel(path) for path in paths]
        diffusers = [w for w in wheels if w.project == "diffusers"]
        trainers = [w for w in wheels if w.project == "simpletuner"]
        if len(diffusers) != 1 or not trainers:
            print(__doc__)
            return 2
        table = tables(diffusers[0], trainers)
    if "--changes" not in flags:
        print(written(table))
        return 0
    lines = changes(json.loads(KNOWN.read_text()), table)
    print("\n".join(lines) or "nothing changed")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
