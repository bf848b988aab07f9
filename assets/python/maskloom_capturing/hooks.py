# SPDX-License-Identifier: MIT
"""The wrappers of a capture: functions, modules and tables that are replaced while it runs and restored at its end.

Invariant: `remove` undoes every `put`, in reverse order. Must not know what is captured.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .calls import PACKAGES, Seen, arguments, flex_arguments

# calls that start a prompt: module, class, function
PROMPTS = (
    ("diffusers.pipelines.pipeline_utils", "DiffusionPipeline", "progress_bar"),
    ("transformers.generation.utils", "GenerationMixin", "generate"),
)


class Hooks:
    """attention(read, source, call) wraps every attention call, module(call, module) wraps every module's call, and
    prompt() runs before each call that starts a prompt."""

    def __init__(
        self,
        attention: Callable[[Callable[[], Seen], str, Callable[[], Any]], Any],
        module: Callable[[Callable[[], Any], torch.nn.Module], Any],
        prompt: Callable[[], None],
    ) -> None:
        self.attention, self.module, self.prompt = attention, module, prompt
        self._undo: list[tuple[Any, str, Any]] = []
        self._stance: Any = None

    def put(self) -> None:
        try:
            self._modules()
            self._functions()
            self._packages()
            self._transformers()
            self._prompts()
            self._run_uncompiled()
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        for owner, name, before in reversed(self._undo):
            if before is self:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._undo = []
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None

    def _set(self, owner: Any, name: str, value: Any) -> None:
        self._undo.append((owner, name, owner.__dict__.get(name, self)))
        setattr(owner, name, value)

    def _replace_everywhere(self, original: Any, wrapped: Any) -> None:
        """Replaces the function by the wrapped one under every name in every module, until the end."""
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", None)
            if not isinstance(names, dict) or module is sys.modules[__name__]:
                continue
            for name in [n for n, value in list(names.items()) if value is original]:
                self._set(module, name, wrapped)

    def _modules(self) -> None:
        original = torch.nn.Module.__call__

        @functools.wraps(original)
        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            return self.module(lambda: original(module, *args, **kwargs), module)

        self._set(torch.nn.Module, "__call__", call)

    def _functions(self) -> None:
        self._wrap(torch.nn.functional.scaled_dot_product_attention, "scaled_dot_product_attention")
        flex = sys.modules.get("torch.nn.attention.flex_attention")
        if flex is not None:
            self._wrap(flex.flex_attention, "flex_attention", "flex")
        dispatcher = sys.modules.get("diffusers.models.attention_dispatch")
        if dispatcher is not None:
            self._wrap(dispatcher.dispatch_attention_fn, "diffusers", "bshd")

    def _packages(self) -> None:
        for module, name, layout in PACKAGES:
            original = getattr(sys.modules.get(module), name, None)
            if callable(original):
                self._wrap(original, module.split(".")[0], layout)

    def _run_uncompiled(self) -> None:
        """Runs the Python code instead of compiled code until the end, because compiled code does not call the wrappers."""
        stance = getattr(torch.compiler, "set_stance", None)
        if stance is not None:
            self._stance = stance("force_eager")
            self._stance.__enter__()

    def _wrap(self, original: Callable[..., Any], source: str, layout: str = "bhsd") -> None:
        @functools.wraps(original)
        def attention(*args: Any, **kwargs: Any) -> Any:
            read = (lambda: flex_arguments(args, kwargs)) if layout == "flex" else lambda: arguments(layout, args, kwargs)
            return self.attention(read, source, lambda: original(*args, **kwargs))

        self._replace_everywhere(original, attention)

    def _transformers(self) -> None:
        utils = sys.modules.get("transformers.modeling_utils")
        table = getattr(utils, "ALL_ATTENTION_FUNCTIONS", None)
        if table is None:
            return
        wrapped: dict[Any, Any] = {}

        def wrap(original: Callable[..., Any]) -> Any:
            def attention(module: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
                def read() -> Seen:
                    return [query, key, value], transformers_details(module, query, args, kwargs)

                return self.attention(read, "transformers", lambda: original(module, query, key, value, *args, **kwargs))

            return wrapped.setdefault(original, functools.wraps(original)(attention))

        kind = type(table)
        for name in ("get_interface", "__getitem__"):
            lookup = getattr(kind, name, None)
            if lookup is not None:
                self._set(kind, name, lambda *args, _lookup=lookup, **kw: once(wrap, _lookup(*args, **kw)))

    def _prompts(self) -> None:
        for module, kind, name in PROMPTS:
            owner = getattr(sys.modules.get(module), kind, None)
            original = getattr(owner, name, None)
            if original is not None:
                self._set(owner, name, self._after_prompt(original))

    def _after_prompt(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.prompt()
            return original(*args, **kwargs)

        return call


def once(wrap: Callable[[Any], Any], function: Any) -> Any:
    return function if getattr(function, "__wrapped__", None) is not None else wrap(function)


def transformers_details(module: Any, query: Tensor, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The relevant arguments of a call of one of transformers' attention functions."""
    mask = args[0] if args else kwargs.get("attention_mask")
    causal = kwargs.get("is_causal")
    if causal is None:
        # the same decision as in transformers
        causal = getattr(module, "is_causal", False) and mask is None and query.shape[2] > 1
    details = {"scale": kwargs.get("scaling"), "is_causal": causal, "sinks": kwargs.get("s_aux")}
    details["softcap"] = kwargs.get("softcap")
    details["block_mask" if hasattr(mask, "mask_mod") else "attn_mask"] = mask
    window = kwargs.get("sliding_window")
    if isinstance(window, int) and not hasattr(mask, "mask_mod") and not (isinstance(mask, Tensor) and mask.dim() == 4):
        details["window_size"] = (window - 1, 0)
    return details
