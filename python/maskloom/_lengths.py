"""Lengths as callers write them: 4096, "8k", (1024, 2048).

Invariant: what is no number of tokens is an ArgumentError that names the argument. Must not know masks.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Union

from . import _native
from .errors import ArgumentError

#: tokens of queries and keys: one number for both, or two; text such as "8k" or "1_024" counts as on the command line
Lengths = Union[int, str, "Sequence[int | str]", None]
#: Tokens of one axis; so many blocks would be counted that the process ends for want of memory.
MOST = 1 << 30


def tokens(value: Any) -> int | None:
    """A number of tokens from 1 on; None: it is none. True and False are none."""
    if isinstance(value, str):
        count = _native.count(value) or 0
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
    if max(read[0], read[1]) > MOST:
        message = f"lengths is {lengths!r}, above 2^30 tokens"
        raise ArgumentError("length-too-large", message, "block lists hold 32-bit numbers")
    return read[0], read[1]
