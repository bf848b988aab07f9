"""One cell, step by step: what each part of a mod is there.

Invariant: the values are the interpreter's, which defines a mask's meaning.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from .. import _native
from .._call import call
from .._lengths import MOST, Lengths, pair
from .._mods import traced
from ..errors import ArgumentError, a_kind
from .subject import CPU, Mask, subject

__all__ = ["Explanation", "explain"]


class Explanation:
    """The steps of a cell in their order, the result last: (text, value, depth, clamped) each."""

    def __init__(self, name: str, place: tuple[int, int, int, int], steps: list[tuple[str, str, int, bool]]) -> None:
        self.name, self.place, self.steps = name, place, steps

    @property
    def value(self) -> bool | float:
        """The result: whether a mask keeps the cell, or what a score mod makes of the score."""
        text = self.steps[-1][1]
        return text == "True" if text in ("True", "False") else float(text)

    def to_dict(self) -> dict[str, Any]:
        """name, place and steps."""
        keys = ("text", "value", "depth", "outside_its_tensor")
        return {
            "name": self.name,
            "place": dict(zip(("b", "h", "q_idx", "kv_idx"), self.place)),
            "value": self.value,
            "steps": [dict(zip(keys, step)) for step in self.steps],
        }

    def __repr__(self) -> str:
        b, h, q, kv = self.place
        width = max(len(text) for text, *_ in self.steps)
        lines = [f"{text:<{width}}  {_shown(value, outside)}" for text, value, _, outside in self.steps]
        return "\n".join([f"{self.name} at b {b}, h {h}, q_idx {q}, kv_idx {kv}", *lines])

    def _repr_html_(self) -> str:
        b, h, q, kv = self.place
        rows = "".join(
            f"<tr><td style='text-align:left'><code>{html.escape(text)}</code></td>"
            f"<td style='text-align:right'>{html.escape(_shown(value, outside))}</td></tr>"
            for text, value, _, outside in self.steps
        )
        where = f"b {b}, h {h}, q_idx {q}, kv_idx {kv}"
        return f"<table><caption>{html.escape(self.name)} at {where}</caption>{rows}</table>"


def _shown(value: str, outside: bool) -> str:
    return f"{value} (read outside its tensor: the nearest element)" if outside else value


def explain(
    mod: Mask, b: int = 0, h: int = 0, q: int = 0, k: int = 0, *, score: float | None = None, lengths: Lengths = None
) -> Explanation:
    """The steps of a mod at one cell.

    Args:
        mod: a mask_mod, or with `score` a score_mod; or a BlockMask, design, preset or document, whose mask is taken,
            and with `score` the score mod.
        b, h, q, k: the cell.
        score: the score before a score mod.
        lengths: for a document of other lengths.

    Raises:
        ArgumentError: an index that is no number from 0 on or beyond the mask's tokens, a design without the mod.
        RecordingError: the mod does what cannot be recorded.
    """
    place = (b, h, q, k)
    pair(lengths)  # a function has no lengths of its own; what is no length is refused all the same
    if score is not None and not isinstance(score, (int, float)):
        raise ArgumentError("score", f"score is {a_kind(score)}", "pass a number: the score before the score mod")
    for name, at in zip(("b", "h", "q", "k"), place):
        if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < MOST:
            raise ArgumentError("cell", f"{name} is {at!r}", "pass a number from 0 on, below 2^30")
    if callable(mod) and not hasattr(mod, "mask_mod"):
        own: Callable[..., Any] = mod
        name = str(getattr(own, "__name__", type(own).__name__))
        mask = traced(own, "mod", score=score is not None, device=CPU)[0]
    else:
        of = subject(mod, lengths)
        found = of.mask if score is None else of.score
        if found is None:
            what = "mask" if score is None else "score mod"
            raise ArgumentError("mod", f"{of.name} has no {what}", "score=0.0 asks for the score mod")
        for what, at, extent in (("q", q, of.q_len), ("k", k, of.kv_len)):
            if at >= extent:
                raise ArgumentError(
                    "cell", f"{what} is {at}, of {extent} tokens", "pass the number of one that there is"
                )
        of.check_place(b, h)
        name, mask = of.name, found[0]
    return Explanation(name, place, call(_native.explain, mask, place, 0.0 if score is None else float(score)))
