"""Whether PyTorch can be used: asked before anything of this package imports it.

Invariant: a missing or an older PyTorch is told in words that name the version. Must not know what needs it.
"""

from __future__ import annotations

from .errors import MaskloomError

__all__ = ["needs"]

#: The first release with FlexAttention.
OLDEST = (2, 5)


def needs(name: str) -> None:
    """Errors: MaskloomError where PyTorch is missing or too old for what has this name."""
    try:
        import torch
    except ModuleNotFoundError as why:
        if why.name != "torch":
            raise
        raise MaskloomError("torch-missing", f"{name} needs PyTorch", "pip install torch") from None
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST:
        message = f"{name} needs PyTorch 2.5 or newer; this is {torch.__version__}"
        raise MaskloomError("torch-version", message, "pip install --upgrade torch")
