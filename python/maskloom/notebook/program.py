"""The program's answers as objects: it is started with `--json`, and its own words are kept.

Invariant: a failure of the program is an exception with its code; its result is not changed. Nothing runs in this
process.
"""

from __future__ import annotations

import html
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..__main__ import program as installed
from .._lengths import Lengths
from ..errors import ArgumentError, MaskloomError, a_kind
from .subject import Mask, Subject, subject

__all__ = ["Answer", "open_window", "quality", "race", "suggest", "verdict"]


class Answer:
    """What a command of the program printed, as data. `rows` is its main table."""

    def __init__(self, command: str, of: str, data: dict[str, Any], said: str, version: str) -> None:
        self.command, self.of, self.data, self.said, self.version = command, of, data, said, version

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table: a backend, a proposal or a head each."""
        return _ROWS[self.command](self.data)

    def to_dict(self) -> dict[str, Any]:
        """The program's own JSON object."""
        return self.data

    def __repr__(self) -> str:
        rows = [{name: _short(value) for name, value in row.items()} for row in self.rows]
        names = list(dict.fromkeys(name for row in rows for name in row))
        widths = [max(len(name), *(len(row.get(name, "")) for row in rows)) for name in names]
        table = [names, *([row.get(name, "") for name in names] for row in rows)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in table]
        return "\n".join([f"maskloom {self.command} of {self.of}", *lines])

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_short(row.get(name, '')))}</td>" for name in names) + "</tr>"
            for row in self.rows
        )
        caption = f"maskloom {self.command} of {self.of}; {self.version}"
        return f"<table><caption>{html.escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def race(
    mask: Mask, lengths: Lengths = None, *, score_mod: Any = None, program: str | None = None, **options: Any
) -> Answer:
    """Races backends on a mask: time, error against the float64 reference, refusals.

    Args:
        mask, lengths, score_mod: as `show`.
        program: path of the program; None: the installed one.
        options: of `maskloom run`, by name: `heads=8, head_dim=64, dtype="bf16", device="cpu", backend=["flex",
            "sdpa"]`.
            True is a flag.

    Raises:
        MaskloomError: the program's own error, with its code; or there is no program.
    """
    return _asked("run", subject(mask, lengths, score_mod), [], program, options)


def verdict(
    mask: Mask, lengths: Lengths = None, *, score_mod: Any = None, program: str | None = None, **options: Any
) -> Answer:
    """Which backends take a mask forward and backward, with the reasons of refusals. Args and errors: those of
    `race`."""
    return _asked("verdict", subject(mask, lengths, score_mod), [], program, options)


def quality(
    mask: Mask,
    capture: str | os.PathLike[str],
    lengths: Lengths = None,
    *,
    program: str | None = None,
    **options: Any,
) -> Answer:
    """What a mask costs on captured q, k and v: mass kept, output error. `capture`: a file of maskloom_capture.py.

    Other args and errors: those of `race`, options of `maskloom quality`."""
    return _asked("quality", subject(mask, lengths), [_capture(capture)], program, options)


def suggest(capture: str | os.PathLike[str], *, program: str | None = None, **options: Any) -> Answer:
    """Masks proposed from captured q and k. `capture`: a file of maskloom_capture.py.

    Other args and errors: those of `race`, options of `maskloom suggest`."""
    return _asked("suggest", None, [_capture(capture)], program, options)


def _capture(file: Any) -> str:
    if not isinstance(file, (str, os.PathLike)):
        raise ArgumentError("capture", f"capture is {a_kind(file)}", "pass the path of a file of maskloom_capture.py")
    return str(os.fspath(file))


#: what says where a window can open
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET")


def open_window(mask: Mask, lengths: Lengths = None, *, score_mod: Any = None, program: str | None = None) -> Path:
    """Opens the workbench on a mask, as a document of its own; returns the document's path. It does not wait.

    Raises:
        MaskloomError: as `race`; no display on Linux (`no-display`).
    """
    of = subject(mask, lengths, score_mod)
    if sys.platform == "linux" and not any(os.environ.get(name) for name in _DISPLAYS):
        hint = "maskloom.show draws it here; maskloom.share writes a page that a browser opens"
        raise MaskloomError("no-display", "no window: neither DISPLAY nor WAYLAND_DISPLAY is set", hint)
    path = _program(program)
    folder = Path(tempfile.mkdtemp(prefix="maskloom-"))
    document = folder / f"{_file_name(of.name)}.json"
    _run(path, ["import", *_given(of, folder), "--to", str(document)], "import")
    subprocess.Popen([path, str(document)], stdin=subprocess.DEVNULL, start_new_session=True)
    return document


def _asked(command: str, of: Subject | None, more: list[str], program: str | None, options: dict[str, Any]) -> Answer:
    path = _program(program)
    with tempfile.TemporaryDirectory(prefix="maskloom-") as folder:
        given = [] if of is None else _given(of, Path(folder), options)
        out, said = _run(path, [command, *given[:1], *more, *given[1:], *_options(options), "--json"], command)
    version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout.strip()
    try:
        data = json.loads(out)
    except ValueError:
        message = f"{path} did not answer `{command} --json` with JSON"
        raise MaskloomError("no-program", message, "pass program=, the path of the program maskloom") from None
    return Answer(command, of.name if of is not None else Path(more[0]).name, data, said, version)


def _program(given: Any) -> str:
    if given is not None and not isinstance(given, (str, os.PathLike)):
        raise ArgumentError("program", f"program is {a_kind(given)}", "pass the path of the program maskloom, or None")
    return installed() if given is None else str(os.fspath(given))


def _given(of: Subject, folder: Path, options: dict[str, Any] | None = None) -> list[str]:
    """A mask as arguments of the program: its code, its tensors, its lengths."""
    options = options or {}
    text, tensors = of.texts()
    file = folder / f"{_file_name(of.name)}.py"
    file.write_text(text, encoding="utf-8")
    out = [str(file)]
    # lengths among the options are the caller's word
    if not options.keys() & {"seq", "axes"}:
        out += ["--seq", str(of.q_len)]
        if of.kv_len != of.q_len and not options.keys() & {"kv_seq", "kv_axes"}:
            out += ["--kv-seq", str(of.kv_len)]
    if "batch" not in options and of.per_batch:
        out += ["--batch", str(of.batch)]
    if "heads" not in options and of.per_head and of.heads > 1:
        out += ["--heads", str(of.heads)]
    if tensors:
        where = folder / "tensors.safetensors"
        where.write_bytes(_safetensors(tensors))
        out += ["--tensors", str(where)]
    return out


def _options(options: dict[str, Any]) -> list[str]:
    out = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                out.append(flag)
            elif one is not None and one is not False:
                out += [flag, str(one)]
    return out


def _run(path: str, arguments: list[str], command: str) -> tuple[str, str]:
    try:
        ran = subprocess.run([path, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as why:
        raise MaskloomError("no-program", f"{path} cannot be started: {why}", "pass program=") from None
    if ran.returncode == 0:
        return ran.stdout, ran.stderr
    try:
        error = json.loads(ran.stdout)["error"]
        code, message, hint = error["code"], error["message"], error.get("hint")
    except (ValueError, KeyError, TypeError):
        code, message, hint = "program", (ran.stderr.strip() or f"status {ran.returncode}")[-2000:], None
    raise MaskloomError(code, f"maskloom {command}: {message}", hint)


def _file_name(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "mask"


def _safetensors(tensors: dict[str, torch.Tensor]) -> bytes:
    kinds = {
        torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32", torch.int64:
        "I64",
        torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64",
    }  # fmt: skip
    header, body = {}, b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())
        header[name] = {
            "dtype": kinds[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def _short(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _of_race(data: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for one in data["backends"]:
        row = {"backend": one["backend"], "outcome": one["outcome"]}
        for timing in one.get("timings") or ():
            row[f"{timing['phase']} ms"] = timing["median_ms"]
        error, versus = one.get("error"), one.get("versus")
        if error and error.get("worst"):
            row["error of allowed"] = error["worst"]["ratio"]
        if versus:
            row["times the baseline"] = versus.get("ratio")
            row["difference shown"] = versus.get("shown")
        if one.get("fault"):
            row["fault"] = one["fault"].get("message", one["fault"]) if isinstance(one["fault"], dict) else one["fault"]
        rows.append(row)
    return rows


def _of_verdict(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"who": one["who"], **{way: f"{one[way]['answer']}: {one[way]['words']}" for way in ("forward", "backward")}}
        for one in data["verdicts"]
    ]


def _scalars(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if not isinstance(value, (dict, list))} for row in rows]


def _of_quality(data: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for one in data["calls"]:
        for head in one["heads"]:
            found = head["measures"]
            row = {"call": one["call"], "head": head["head"]}
            row |= {"mass": found["mass"]["mean"], "smallest mass": found["mass"]["min"]}
            row |= {"blocks": found["cost"]["blocks"], "of": found["cost"]["all_blocks"]}
            row |= {"relative L1 error": found["error"]["relative_l1"], "cosine": found["error"]["cosine"]}
            rows.append(row)
    return rows


def _of_suggest(data: dict[str, Any]) -> list[dict[str, Any]]:
    return _scalars(data["proposals"])


_ROWS: dict[str, Callable[[dict[str, Any]], list[dict[str, Any]]]] = {
    "run": _of_race,
    "verdict": _of_verdict,
    "quality": _of_quality,
    "suggest": _of_suggest,
}
