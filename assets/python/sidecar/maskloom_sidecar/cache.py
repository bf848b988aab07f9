# SPDX-License-Identifier: MIT
"""A cache of the newest values by key, for block masks and compiled functions.

Threads may use one at once: each step is one operation of a dict, no lock is held while a value is computed, and the caller
holds the found value. Must not know the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes


class Newest:
    """At most `most` values; the least recently used is dropped first, and `gone` receives its key and value."""

    def __init__(self, most: int, gone: Callable[[Any, Any], None] | None = None) -> None:
        self.most = most
        self.gone = gone
        self.held: dict[object, Any] = {}
        # keys, the newest last
        self.used: dict[object, None] = {}

    def __call__(self, key: object, make: Callable[[], Any]) -> Any:
        """The result of `make`, computed once for each cached key."""
        found = self.held.get(key, self)
        if found is self:
            # only such tensors are cached: torch.export's have no values, and those of inference mode have no backward
            # pass
            with torch.inference_mode(False), _disable_current_modes():
                made = make()
            found = self.held.setdefault(key, made)
        self._use(key)
        return found

    def put(self, key: object, value: Any) -> None:
        """Replaces a cached value, if there is one."""
        self.held[key] = value
        self._use(key)

    def clear(self) -> None:
        """Drops all values."""
        for key in list(self.used):
            self._forget(key)

    def _use(self, key: object) -> None:
        self.used.pop(key, None)
        self.used[key] = None
        if len(self.used) > self.most:
            for old in list(self.used)[: -self.most]:
                self._forget(old)

    def _forget(self, key: object) -> None:
        self.used.pop(key, None)
        value = self.held.pop(key, self)
        if self.gone is not None and value is not self:
            self.gone(key, value)
