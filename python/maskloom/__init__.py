"""Maskloom: attention masks in Python, as PyTorch's FlexAttention takes them.

`create_block_mask` has PyTorch's arguments and result, and takes a fraction of its time and memory."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from . import _interpreter as _interpreter
from ._native import __version__
from ._torch import needs
from .errors import ArgumentError, DividedWarning, FallbackWarning, InternalError, MaskloomError, RecordingError

if TYPE_CHECKING:
    from .attention import flex_attention
    from .block_mask import LongBlockMask, create_block_mask, create_block_masks
    from .design import Design, from_design
    from .distributed import plan_context_parallel
    from .notebook import explain, quality, race, share, show, suggest, verdict
    from .packed import document_mask, packed_documents
    from .varlen import flex_attention_varlen

__all__ = [
    "ArgumentError",
    "Design",
    "DividedWarning",
    "FallbackWarning",
    "InternalError",
    "LongBlockMask",
    "MaskloomError",
    "RecordingError",
    "__version__",
    "create_block_mask",
    "create_block_masks",
    "document_mask",
    "explain",
    "flex_attention",
    "flex_attention_varlen",
    "from_design",
    "packed_documents",
    "plan_context_parallel",
    "quality",
    "race",
    "share",
    "show",
    "suggest",
    "verdict",
]

_HOMES = {
    "Design": "design",
    "document_mask": "packed",
    "from_design": "design",
    "packed_documents": "packed",
    "plan_context_parallel": "distributed",
    "LongBlockMask": "block_mask",
    "create_block_mask": "block_mask",
    "create_block_masks": "block_mask",
    "flex_attention": "attention",
    "flex_attention_varlen": "varlen",
    **dict.fromkeys(("explain", "quality", "race", "share", "show", "suggest", "verdict"), "notebook"),
}


def __dir__() -> list[str]:
    """For completion, also what was not imported yet."""
    return sorted({*globals(), *__all__, "integrations", "notebook", "open"})


def __getattr__(name: str) -> object:
    """What needs PyTorch is imported at its first use."""
    if name == "open":  # no name of `from maskloom import *`, which would hide Python's own
        needs(f"{__name__}.{name}")
        return importlib.import_module(f"{__name__}.notebook").open_window
    if name in ("integrations", "notebook"):
        needs(f"{__name__}.{name}")
        return importlib.import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is not None:
        needs(f"{__name__}.{name}")
        found = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
