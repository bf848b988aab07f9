"""Which of the process's interpreters this is: imported before the compiled module and PyTorch.

Invariant: only the main interpreter goes on. PyTorch cannot be loaded twice in a process: it ends in an abort there.
"""

from __future__ import annotations

from typing import Any

from .errors import MaskloomError

__all__ = ["check"]


def _own() -> Any:
    """CPython's module about interpreters, where it has one."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            return __import__(name)
        except ImportError:
            continue
    return None


def check(interpreters: Any) -> None:
    """Errors: MaskloomError in a sub-interpreter."""
    if interpreters is None or interpreters.get_current() == interpreters.get_main():
        return
    message = "maskloom is imported in a sub-interpreter, where PyTorch cannot be loaded"
    raise MaskloomError("sub-interpreter", message, "import it in the main interpreter, or start a process")


check(_own())
