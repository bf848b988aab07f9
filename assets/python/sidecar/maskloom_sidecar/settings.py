# SPDX-License-Identifier: MIT
"""The settings of the environment and of the exported sidecar.json, and the lines on stderr.

This module does not import torch: it is loaded when Python starts.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import logging
import os
import re
from pathlib import Path
from typing import Any, cast

log = logging.getLogger("maskloom")
# trainers reconfigure their loggers and mute the existing ones: this one writes to stderr itself
log.propagate = False
if not log.handlers:
    log.addHandler(logging.StreamHandler())
_said: set[str] = set()


def say(text: str, again: bool = False) -> None:
    """Logs a text once (`again`: each time), in the first process of each machine."""
    if text in _said and not again:
        return
    _said.add(text)
    if os.environ.get("LOCAL_RANK", "0") == "0":
        log.disabled = False
        log.warning("maskloom: %s", text)


def wanted() -> Any:
    """Whether the environment loads the sidecar; adapters work without it."""
    return bool(os.environ.get("MASKLOOM_SIDECAR"))


@functools.cache
def files() -> list[Path]:
    """The sidecar.json of every folder that MASKLOOM_SIDECAR names, as they were when Python started.

    Errors: a folder has none.
    """
    found = []
    for entry in os.environ.get("MASKLOOM_SIDECAR", "").split(os.pathsep):
        if not entry:
            continue
        for file in (Path(entry, "sidecar", "sidecar.json"), Path(entry, "sidecar.json")):
            if file.is_file():
                found.append(file.resolve())
                break
        else:
            raise FileNotFoundError(f"MASKLOOM_SIDECAR: there is no sidecar.json in {entry} or {entry}/sidecar")
    return found


def read(file: str | Path) -> dict[str, Any]:
    """A sidecar.json. Errors: an interrupted export left files of two exports in its folder."""
    folder = Path(file).resolve().parent.parent
    if folder.joinpath(".maskloom-unfinished").exists():
        raise FileNotFoundError(f"{folder} holds files of two exports, because one was interrupted: export again")
    return cast("dict[str, Any]", json.loads(Path(file).read_text(encoding="utf-8")))


def strict() -> bool:
    """Whether an unmasked watched call raises an error."""
    return _flag("MASKLOOM_SIDECAR_STRICT")


def assumes_grid() -> bool:
    """Whether a model whose grid cannot be read is assumed to have the design's."""
    value = os.environ.get("MASKLOOM_SIDECAR_GRID", "")
    if value not in ("", "assume"):
        raise ValueError(f"MASKLOOM_SIDECAR_GRID is {value!r}: only `assume` is known")
    return value == "assume"


def kernel() -> bool:
    """Whether an exported kernel may replace FlexAttention."""
    return _flag("MASKLOOM_SIDECAR_KERNEL", "1")


REPLACE = "MASKLOOM_SIDECAR_REPLACE"


def replaces() -> bool:
    """Whether the design also takes the place of what a model brings beside its pattern: images that attend both ways."""
    return _flag(REPLACE)


def _flag(name: str, default: str = "") -> bool:
    value = os.environ.get(name, "") or default
    if value not in ("", "0", "1"):
        raise ValueError(f"{name} is {value!r}: it must be 1 or 0")
    return value == "1"


def record_folder() -> str:
    """The folder of a compared run's records; empty: the run is not compared."""
    return os.environ.get("MASKLOOM_SIDECAR_RECORD", "")


def dense_run() -> bool:
    """Whether this is the run without the design, of two compared runs."""
    return os.environ.get("MASKLOOM_SIDECAR_RUN", "") == "dense"


def model_patterns() -> list[str] | None:
    """The named classes, or None."""
    text = os.environ.get("MASKLOOM_SIDECAR_MODELS", "")
    return [p.strip() for p in text.split(",") if p.strip()] or None


def wants_model(name: str) -> bool | None:
    """Whether a model of this class was named; None if no class was named."""
    patterns = model_patterns()
    return None if patterns is None else any(fnmatch.fnmatchcase(name, p) for p in patterns)


def layer_pattern() -> re.Pattern[str] | None:
    """The environment's regular expression of layer names, or None. Errors: it is invalid."""
    return pattern(os.environ.get("MASKLOOM_SIDECAR_LAYERS", ""), "MASKLOOM_SIDECAR_LAYERS")


def pattern(text: str, of: str) -> re.Pattern[str] | None:
    """A regular expression, None for an empty text. Errors: it is invalid."""
    try:
        return re.compile(text) if text else None
    except re.error as why:
        raise ValueError(f"{of} is not a regular expression: {why}: {text}") from None


def check() -> None:
    """Reads every setting once, so that a mistake is reported when Python starts, not at the first attention call."""
    strict(), assumes_grid(), layer_pattern(), kernel(), replaces()
    shapes = os.environ.get("MASKLOOM_SIDECAR_SHAPES", "")
    if shapes not in ("", "any", "exact"):
        raise ValueError(f"MASKLOOM_SIDECAR_SHAPES is {shapes!r}: it must be `any` or `exact`")
    for file in files():
        read(file)
