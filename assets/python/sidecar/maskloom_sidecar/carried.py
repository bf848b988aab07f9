# SPDX-License-Identifier: MIT
"""The runtime's part of a model (hooks, the records of its layers), pickled so that another process can load the model.

A process that has not imported the runtime imports it through the adapter if it is on no path, and patches attention.

Must not know the objects' content.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, cast


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
    """`remade`, under a name that another process can import."""
    adapter = sys.modules.get(opener or "")
    return remade if adapter is None else cast("Callable[..., Any]", adapter.__dict__["_remade"])


def remade(module: str, name: str, *given: Any) -> Any:
    """An object of a class of the runtime, without its state, or the result of a function of the runtime.

    A loaded model runs with its design, so attention is patched.
    """
    from . import seams

    seams.patch_torch()
    if "diffusers.models.attention_dispatch" in sys.modules:
        seams.patch_diffusers(sys.modules["diffusers.models.attention_dispatch"])
    found = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found(*given) if given else found.__new__(found)
