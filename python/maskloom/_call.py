"""Calls of the compiled module, with its exceptions in this package's own classes."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from . import _native
from .errors import ArgumentError, InternalError

T = TypeVar("T")


def call(function: Callable[..., T], *args: object) -> T:
    """Calls it. Errors: `ArgumentError` for a refusal, `InternalError` for a panic."""
    try:
        return function(*args)
    except _native.Refused as refused:
        code, message, hint, _ = refused.args
        raise ArgumentError(code, message, hint) from None
    except _native.Panicked as fault:
        raise panicked(fault) from None


F = TypeVar("F", bound=Callable[..., Any])


def uncompiled(function: F) -> F:
    """A function that torch.compile leaves alone with all that it calls: a compiled function calls it between graphs.

    torch.compiler.disable does the same, and imports the compiler, which takes a second."""
    marked: Any = function
    marked._torchdynamo_disable = True
    marked._torchdynamo_disable_msg = "a mod is recorded: make the mask outside"
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):  # from PyTorch 2.7 on
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))
    return function


def panicked(fault: _native.Panicked) -> InternalError:
    """The report of a panic."""
    message, place = fault.args
    where = f" at {place}" if place else ""
    system = f"maskloom {_native.__version__}, Python {platform.python_version()}, {platform.platform()}"
    return InternalError(
        "panic",
        f"Maskloom failed: {message}{where} ({system})",
        "this is a fault of Maskloom: report this message with the mask that caused it",
    )
