# SPDX-License-Identifier: MIT
"""Runs a script once without the exported design and once with it, and prints the changes.

    PYTHONPATH=EXPORT/sidecar python -m maskloom_sidecar [options] SCRIPT.py [ARGUMENTS]
    PYTHONPATH=EXPORT/sidecar python -m maskloom_sidecar [options] -- accelerate launch train.py ...

It compares the outputs of the watched models (logits, or a predicted velocity or noise), call by call; the models' losses and
perplexities; and the losses whose `backward` was called. Both runs draw the same random numbers if the script sets no
seed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m maskloom_sidecar", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", help="regular expression: layers with the design, by name (MASKLOOM_SIDECAR_LAYERS)")
    parser.add_argument("--models", help="class names of models (MASKLOOM_SIDECAR_MODELS)")
    parser.add_argument("--export", help="folders of designs (MASKLOOM_SIDECAR); default: the folder of this package")
    parser.add_argument("--calls", type=int, default=16, help="number of compared forward passes (16)")
    parser.add_argument("--seed", default="0", help="of both runs, or `none` (0)")
    parser.add_argument("--strict", action="store_true", help="an unmasked watched call is an error")
    parser.add_argument("--json", metavar="FILE", help="the same in numbers")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="SCRIPT ...")
    return parser.parse_args()


def _environment(options: argparse.Namespace, run: str, folder: str) -> dict[str, str]:
    path = [str(_PACKAGE.parent), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    designs = options.export or os.environ.get("MASKLOOM_SIDECAR") or str(_PACKAGE.parent)
    given = {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)), "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
        "MASKLOOM_SIDECAR": designs, "MASKLOOM_SIDECAR_RUN": run, "MASKLOOM_SIDECAR_RECORD": folder,
        "MASKLOOM_SIDECAR_CALLS": str(options.calls), "MASKLOOM_SIDECAR_SEED": options.seed,
    }  # fmt: skip
    if options.layers:
        given["MASKLOOM_SIDECAR_LAYERS"] = options.layers
    if options.models:
        given["MASKLOOM_SIDECAR_MODELS"] = options.models
    if options.strict and run == "mask":
        given["MASKLOOM_SIDECAR_STRICT"] = "1"
    return dict(os.environ) | given


class Run:
    """The records of one run."""

    def __init__(self, folder: Path) -> None:
        # processes without a watched model wrote nothing; of several the first is used, as with several ranks
        found = sorted(folder.glob("*/run.json"), key=lambda file: file.parent.stat().st_ctime)
        self.processes = len(found)
        said: dict[str, Any] = json.loads(found[0].read_text(encoding="utf-8")) if found else {}
        self.files = sorted(found[0].parent.glob("*.pt")) if found else []
        self.calls: int = said.get("calls", 0)
        self.losses: list[tuple[str, float, bool]] = said.get("losses", [])
        self.trained: list[float] = said.get("trained", [])
        self.layers: list[dict[str, Any]] = said.get("layers", [])


def _fail(text: str) -> None:
    print(f"maskloom: {text}", file=sys.stderr)
    sys.exit(1)


def _run(options: argparse.Namespace, command: list[str], name: str, folder: Path) -> Run:
    place = folder / name
    place.mkdir()
    print(f"maskloom: {'without the design' if name == 'dense' else 'with the design'}: {' '.join(command)}", file=sys.stderr)
    status = subprocess.run(command, env=_environment(options, name, str(place)), check=False).returncode
    if status != 0:
        _fail(f"the script ended with {status} {'without' if name == 'dense' else 'with'} the design: there is no comparison")
    return Run(place)


def _differences(dense: Run, mask: Run) -> list[Any]:
    import torch

    from .difference import Difference, Seen

    found = []
    for a, b in zip(dense.files, mask.files, strict=False):
        one, other = (Seen(**torch.load(file, weights_only=True)) for file in (a, b))
        try:
            found.append(Difference(one, other))
        except ValueError as why:
            print(f"{why}; it and later ones are not compared", file=sys.stderr)
            break
    return found


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _pair(pair: tuple[float, float] | None, form: str) -> str:
    return "" if pair is None else f"{pair[0]:{form}} -> {pair[1]:{form}}"


def _table(rows: list[list[str]]) -> str:
    used = [i for i in range(len(rows[0])) if any(row[i] for row in rows[1:])]
    width = {i: max(len(row[i]) for row in rows) for i in used}
    return "\n".join("  ".join(row[i].rjust(width[i]) for i in used).rstrip() for row in rows)


def _calls(differences: list[Any]) -> str:
    rows = [["call", "output", "relative", "cosine", "largest", "KL", "same top token", "loss", "perplexity", ""]]
    for number, one in enumerate(differences, 1):
        top = None if one.top1 is None else 100 * one.top1
        rows.append([
            str(number), f"{one.name} of {one.model}", f"{one.relative:.3g}", f"{one.cosine:.5f}", f"{one.largest:.3g}",
            _number(one.kl, ".4g"), "" if top is None else f"{top:.1f} %", _pair(one.losses, ".4f"),
            _pair(one.perplexities, ".4g"), "" if one.same_inputs else "other inputs",
        ])  # fmt: skip
    return _table(rows)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _losses(dense: Run, mask: Run) -> list[tuple[str, float, float, int]]:
    """(name, without, with, count) of the whole runs."""
    found = []
    pairs = list(zip(dense.losses, mask.losses, strict=False))
    if pairs:
        a, b = _mean([one[1] for one, _ in pairs]), _mean([other[1] for _, other in pairs])
        found.append(("mean loss of the models", a, b, len(pairs)))
        if all(one[2] and other[2] for one, other in pairs) and max(a, b) < 700:
            found.append(("perplexity (exp of that mean)", math.exp(a), math.exp(b), len(pairs)))
    both = list(zip(dense.trained, mask.trained, strict=False))
    if both:
        found.append(("mean loss at backward", _mean([a for a, _ in both]), _mean([b for _, b in both]), len(both)))
        found.append(("last loss at backward", both[-1][0], both[-1][1], len(both)))
    return found


def _masked(run: Run) -> dict[str, int]:
    """Layers with the design, compiled layers, masked calls, unmasked calls."""
    layers = [one for model in run.layers for one in model.values()]
    return {
        "layers": sum(bool(one["masked"] or one["compiled"]) for one in layers),
        "compiled": sum(bool(one["compiled"]) for one in layers),
        "masked": sum(one["masked"] for one in layers),
        "left": sum(sum(one["left"].values()) for one in layers),
    }


def _where(found: dict[str, int]) -> str:
    compiled = f", compiled into {found['compiled']}" if found["compiled"] else ""
    counts = f"{found['masked']} calls had it, {found['left']} were left as they are"
    return f"The design was in {found['layers']} layers{compiled}: {counts}."


def main() -> None:
    """Errors: exit 1 if a run fails, or if nothing can be compared."""
    options = _options()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        _fail("which script? python -m maskloom_sidecar [options] SCRIPT.py [ARGUMENTS]")
    if command[0].endswith(".py"):
        command = [sys.executable, *command]
    with tempfile.TemporaryDirectory(prefix="maskloom-") as name:
        folder = Path(name)
        dense, mask = (_run(options, command, run, folder) for run in ("dense", "mask"))
        if not dense.calls or not mask.calls:
            _fail("no watched model ran to its end: name its class with --models")
        differences = _differences(dense, mask)
    where = _masked(mask)
    losses = _losses(dense, mask)
    print(_where(where))
    print(_calls(differences))
    print("relative: L2 of the difference over L2 of the output without the design. KL: nats a token, without || with.")
    if dense.calls > len(differences):
        print(f"The outputs are those of the first {len(differences)} of {dense.calls} forward passes (--calls).")
    for what, a, b, count in losses:
        print(f"{what}, {count} of them: {a:.6g} without the design, {b:.6g} with it ({b - a:+.3g})")
    if options.json:
        said = where | {
            "calls": [one.state() for one in differences],
            "losses": [{"what": what, "dense": a, "mask": b, "of": n} for what, a, b, n in losses],
        }
        Path(options.json).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    if mask.processes > 1:
        print(f"The comparison uses the first of {mask.processes} processes that ran a model.")
    if differences and not differences[0].same_inputs:
        _fail("the first forward passes had different inputs, which also changes outputs: set a seed in the script")
    if not where["layers"]:
        _fail("the design masked no call: the lines above give the reasons")


if __name__ == "__main__":
    main()
