# SPDX-License-Identifier: MIT
"""The wrappers of a capture: functions, modules and tables that are replaced while it runs and restored at its end.

Invariant: `remove` undoes every `put`, in reverse order. Nothing is imported for the wrappers' sake: what the program imports
later is wrapped as it arrives. Must not know what is captured.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from .calls import PACKAGES, Seen, arguments, flex_arguments

# calls that start a prompt: module, class, function
PROMPTS = (
    ("diffusers.pipelines.pipeline_utils", "DiffusionPipeline", "progress_bar"),
    ("transformers.generation.utils", "GenerationMixin", "generate"),
)
FLEX, DISPATCHER = "torch.nn.attention.flex_attention", "diffusers.models.attention_dispatch"
UTILS, DYNAMO = "transformers.modeling_utils", "torch._dynamo"


class Arrivals:
    """A finder of modules that finds none by itself: it calls arrived(name) after one of `names` has been imported."""

    def __init__(self, names: Sequence[str], arrived: Callable[[str], None]) -> None:
        self.names, self.arrived = set(names), arrived

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self.names:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None or finder is self else find(name, path, target)
            if spec is not None:
                self._told(name, spec)
                return spec
        return None

    def _told(self, name: str, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        original = getattr(loader, "exec_module", None)
        if original is None or isinstance(loader, type):
            return

        def exec_module(module: ModuleType) -> None:
            # a loader is kept with its module: it goes on as it was
            del loader.exec_module
            original(module)
            self.arrived(name)

        loader.exec_module = exec_module


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
        # functions by the ids of their wrappers, which stay alive with them
        self._wrapped: dict[int, tuple[Any, Any]] = {}
        names = (FLEX, DISPATCHER, UTILS, DYNAMO, *(name for name, *_ in (*PACKAGES, *PROMPTS)))
        self._arrivals = Arrivals(names, self._arrived)

    def put(self) -> None:
        try:
            self._modules()
            self._wrap(torch.nn.functional.scaled_dot_product_attention, "scaled_dot_product_attention")
            for name in sorted(self._arrivals.names & sys.modules.keys()):
                self._arrived(name)
            sys.meta_path.insert(0, self._arrivals)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        if self._arrivals in sys.meta_path:
            sys.meta_path.remove(self._arrivals)
        for owner, name, before in reversed(self._undo):
            if before is self:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._undo = []
        self._give_back()
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

    def _arrived(self, name: str) -> None:
        """Wraps what a module has, which is there before the capture or comes while it runs."""
        module = sys.modules.get(name)
        for package, function, layout in PACKAGES:
            original = getattr(module, function, None) if package == name else None
            if callable(original):
                self._wrap(original, package.split(".")[0], layout)
        for package, kind, function in PROMPTS:
            owner = getattr(module, kind, None) if package == name else None
            original = getattr(owner, function, None)
            if original is not None:
                self._set(owner, function, self._after_prompt(original))
        if name == FLEX and module is not None:
            self._wrap(module.flex_attention, "flex_attention", "flex")
        elif name == DISPATCHER and module is not None:
            self._wrap(module.dispatch_attention_fn, "diffusers", "bshd")
        elif name == UTILS:
            self._transformers(getattr(module, "ALL_ATTENTION_FUNCTIONS", None))
        elif name == DYNAMO:
            self._run_uncompiled()

    def _give_back(self) -> None:
        """The functions themselves to modules that were imported during the capture and took the wrapped ones."""
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", None)
            for name, value in list(names.items()) if isinstance(names, dict) else []:
                if id(value) in self._wrapped:
                    setattr(module, name, self._wrapped[id(value)][1])
        self._wrapped = {}

    def _run_uncompiled(self) -> None:
        """Runs the Python code instead of compiled code until the end, because compiled code does not call the wrappers."""
        stance = getattr(torch.compiler, "set_stance", None)
        if stance is not None and self._stance is None:
            self._stance = stance("force_eager")
            self._stance.__enter__()

    def _wrap(self, original: Callable[..., Any], source: str, layout: str = "bhsd") -> None:
        @functools.wraps(original)
        def attention(*args: Any, **kwargs: Any) -> Any:
            if not self._wrapped:
                # the capture is over, and something other than a module kept this
                return original(*args, **kwargs)
            read = (lambda: flex_arguments(args, kwargs)) if layout == "flex" else lambda: arguments(layout, args, kwargs)
            return self.attention(read, source, lambda: original(*args, **kwargs))

        self._wrapped[id(attention)] = (attention, original)
        self._replace_everywhere(original, attention)

    def _transformers(self, table: Any) -> None:
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
