"""Lengths as callers write them: 4096, "8k", (1024, 2048).

Invariant: what is no number of tokens is an ArgumentError that names the argument. Must not know masks.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Any, Union

from .errors import ArgumentError

#: tokens of queries and keys: one number for both, or two; text such as "8k" or "1_024" counts as on the command line
Lengths = Union[int, str, "Sequence[int | str]", None]
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}


def tokens(value: Any) -> int | None:
    """A number of tokens from 1 on; None: it is none. True and False are none."""
    if isinstance(value, str):
        written = re.fullmatch(r"\s*(\d+(?:_\d+)*)([km]?)\s*", value, re.ASCII | re.IGNORECASE)
        count = int(written[1].replace("_", "")) * _UNITS[written[2].lower()] if written else 0
    elif isinstance(value, (bool, float)):
        count = 0
    else:
        try:
            count = operator.index(value)
        except TypeError:
            count = 0
    return count if count > 0 else None


def pair(lengths: Any) -> tuple[int, int] | None:
    """(q_len, kv_len) of lengths; None where none are given. Errors: ArgumentError."""
    if lengths is None:
        return None
    two = lengths if isinstance(lengths, (tuple, list)) else (lengths, lengths)
    read = [tokens(one) for one in two]
    if len(read) != 2 or read[0] is None or read[1] is None:
        hint = 'pass a number of tokens, or (q, kv): 4096, "8k", (1024, 4096)'
        raise ArgumentError("lengths", f"lengths is {lengths!r}", hint)
    return read[0], read[1]
