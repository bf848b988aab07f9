"""Calls of the compiled module, with its exceptions in this package's own classes."""

from __future__ import annotations

import functools
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
    frames = _frames()
    if not reads_closures():
        return _without_compiler(function, frames)
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))
    return _marked(function)


def reads_closures() -> bool:
    """Whether torch.compile of this PyTorch reads closures: from 2.7 on, as it can leave alone all that is called."""
    return hasattr(_frames(), "set_code_exec_strategy")


def _frames() -> Any:
    return getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)


def _without_compiler(function: F, frames: Any) -> F:
    """Before PyTorch 2.7 a mark leaves a function alone, and not what it calls: the compiler is off meanwhile."""

    def alone(*args: Any, **kwargs: Any) -> Any:
        before = frames.set_eval_frame(None)
        try:
            return function(*args, **kwargs)
        finally:
            frames.set_eval_frame(before)

    if hasattr(frames, "skip_code"):
        frames.skip_code(alone.__code__)
    made: F = _marked(functools.wraps(function)(alone))  # type: ignore[assignment]
    return made


def _marked(function: F) -> F:
    marked: Any = function
    marked._torchdynamo_disable = True
    marked._torchdynamo_disable_msg = "a mod is recorded: make the mask outside"
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
