"""What is made once for each key and kept while it is among the newest, as block masks and compiled functions are.

Threads may use one at once: each step is one operation of a dict, no lock is held while something is made, and what was found
is held by the caller. Must not know what it keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes


class Newest:
    """At most `most` values; what has not been used for longest is forgotten first, and `gone` is told its key and value."""

    def __init__(self, most: int, gone: Callable[[Any, Any], None] | None = None) -> None:
        self.most = most
        self.gone = gone
        self.held: dict[object, Any] = {}
        # keys, the newest last
        self.used: dict[object, None] = {}

    def __call__(self, key: object, make: Callable[[], Any]) -> Any:
        """What `make` gives, made once for a key that is among the newest."""
        found = self.held.get(key, self)
        if found is self:
            # to be kept: torch.export's tensors have no values, and those of inference mode have no backward pass
            with torch.inference_mode(False), _disable_current_modes():
                made = make()
            found = self.held.setdefault(key, made)
        self._use(key)
        return found

    def put(self, key: object, value: Any) -> None:
        """A value in the place of the one that is kept, if there is one."""
        self.held[key] = value
        self._use(key)

    def clear(self) -> None:
        """Forgets all."""
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
