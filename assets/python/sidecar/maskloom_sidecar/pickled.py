# SPDX-License-Identifier: MIT
"""The runtime's part of a model (hooks, the records of its layers), pickled so that another process can load the model.

Another process imports the runtime through the adapter if it is on no path. Must not know the objects' content, nor what loading
does: `patched` hands `remade` in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

# restores a pickled object, under a name that another process can import: `patched.remade`, since it was imported
remade: Callable[..., Any] | None = None


class Carried:
    """Pickled and copied with the attributes from `carries`."""

    # the adapter's module, because the runtime may be on no path of another process
    opener: str | None = None

    def carries(self) -> dict[str, Any]:
        """The attributes to pickle."""
        return dict(self.__dict__)

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self)
        return maker(self.opener), (kind.__module__.rpartition(".")[2], kind.__qualname__), self.carries()


def maker(opener: str | None) -> Callable[..., Any]:
    """The function that restores an object of a model that the adapter `opener` applied a design to."""
    adapter = sys.modules.get(opener or "")
    if adapter is not None:
        return cast("Callable[..., Any]", adapter.__dict__["_remade"])
    assert remade is not None, "a watched model has patched attention"
    return remade
