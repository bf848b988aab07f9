"""The layer that runs now: the attention layers of a model are found once and watched by hooks.

The runtime's part of a model (a record in each layer, the hooks) can be copied and pickled with it. Must not know designs
or libraries.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from . import grids
from .carried import Carried
from .grids import tracing
from .tally import Layer, Model, forget, forget_plans

if TYPE_CHECKING:
    from torch import nn

    from .designs import Design
    from .kinds import Grids, Wanted


class _Now(threading.local):
    """One per thread, because a checkpointed layer runs again in autograd's thread."""

    def __init__(self) -> None:
        self.layer: Layer | None = None
        self.hidden: torch.Size | None = None
        self.context: torch.Size | None = None


class _Traced:
    """The same for torch.compile, which cannot trace thread-local values: it traces one thread."""

    layer: Layer | None = None
    hidden: torch.Size | None = None
    context: torch.Size | None = None


now = _Now()
traced = _Traced()


def current() -> _Now | _Traced:
    """The place of the present attention call: its `layer` (None: not watched) and the shapes of the layer's inputs."""
    return traced if tracing() else now


_CROSS = re.compile(r"(^|[._])(attn2|cross\w*|encoder_attn|encdecattention|crossattn|ca)(\.self)?$", re.IGNORECASE)
_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
# parts of a model that attend over other tokens than its main sequence: only if they are named
_ASIDE = re.compile(
    r"(^|[._])(\w*refiner\w*|context_embedder|caption_\w+|text_encoder\w*|vision\w*|visual\w*|image_encoder\w*|audio\w*"
    r"|\w*connector\w*|\w*projector)([._]|$)",
    re.IGNORECASE,
)
# the keys in the __dict__ of watched layers and of watched models
_LAYER, _MODEL = "_maskloom", "_maskloom_model"


# what runs before each call of a watched model or layer: the seams look whether they are still there
before_calls: list[Callable[[], None]] = []


def record(module: nn.Module) -> Layer | None:
    """The record of a watched layer, otherwise None."""
    return module.__dict__.get(_LAYER)


class _Enter(Carried):
    """Before a watched layer."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not tracing():
            # a checkpointed layer runs again without its model
            for look in before_calls:
                look()
        hidden = args[0] if args else kwargs.get("hidden_states")
        context = kwargs.get("encoder_hidden_states", args[1] if len(args) > 1 else None)
        context = None if context is hidden else context
        places = (traced,) if tracing() else (traced, now)
        for place in places:
            place.layer = self.layer
            place.hidden = getattr(hidden, "shape", None)
            place.context = getattr(context, "shape", None)
        self.layer.reached = True


class _Leave(Carried):
    """After the layer's call, also after a failure."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: object) -> None:
        for place in (traced,) if tracing() else (traced, now):
            place.layer = place.hidden = place.context = None


class _Begin(Carried):
    """Before a watched model's call: reads its grid."""

    def __init__(self, model: Model, reader: grids.Reader) -> None:
        self.model = model
        self.reader = reader

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for look in before_calls:
            look()
        if self.model.wants_grid():
            if tracing() and self.model.assume:
                self.model.grids = self.model.pyramid = None
                return
            self.model.grids, self.model.pyramid = self.reader.read(args, kwargs)
            if not tracing():
                self.model.remember_grid()


class _End(Carried):
    """After the model's call: reports the result once."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: object) -> None:
        if not tracing():
            self.model.ended()


class hidden:
    """While the model's own code computes a watched layer's call: nested calls do not count as calls of the layer."""

    def __enter__(self) -> None:
        self.place = current()
        self.layer = self.place.layer
        self.place.layer = None

    def __exit__(self, *_: Any) -> None:
        self.place.layer = self.layer


def crosses(q_len: int, kv_len: int) -> bool:
    """Whether a call with these lengths, in the present layer, is attention from one sequence to another."""
    place = current()
    if q_len != kv_len:
        return True
    hidden, context = place.hidden, place.context
    if hidden is None or context is None or len(hidden) != 3 or len(context) != 3:
        return False
    # joint attention runs over both sequences together; here the queries come from one and the keys from the other
    return hidden[1] == q_len and context[1] == kv_len


def crosses_by_name(name: str, module: nn.Module) -> bool:
    """Whether a layer attends to another sequence: by its own attribute, otherwise by its name.

    SD3's second attention is also named attn2, but attends to its own tokens.
    """
    said = getattr(module, "is_cross_attention", None)
    return said if isinstance(said, bool) else bool(_CROSS.search(name))


def _is_attention(module: nn.Module) -> bool:
    kind = type(module).__name__
    named = bool(_ATTENTION.search(kind)) and not kind.endswith(("Processor", "Model", "Block", "Layer"))
    return named or hasattr(module, "processor")


def find(model: nn.Module, wanted: Wanted | None = None, cross: bool = False) -> list[tuple[str, nn.Module]]:
    """(name, module) of the self-attention or cross-attention layers of a model.

    `wanted`: a regular expression or a function that accepts names; without it all except those of parts outside the model's
    main sequence (refiners of the text, towers for images).
    """
    wanted = re.compile(wanted) if isinstance(wanted, str) else wanted
    accepts = wanted.search if isinstance(wanted, re.Pattern) else wanted
    named = [(name, m) for name, m in model.named_modules() if name and crosses_by_name(name, m) == cross]
    if accepts is not None:
        named = [(name, m) for name, m in named if accepts(name)]
    else:
        named = [(name, m) for name, m in named if not _ASIDE.search(name)]
    found = [(name, m) for name, m in named if _is_attention(m)]
    if found:
        # of nested attention layers, the inner one calls attention
        outer = {n for n, _ in found if any(o.startswith(n + ".") for o, _ in found)}
        return [(name, m) for name, m in found if name not in outer]
    if accepts is None:
        return []
    # modules of other libraries, by name alone, without their parts, which match too
    return [(name, m) for name, m in named if not any(name.startswith(o + ".") for o, _ in named)]


def watch(
    model: nn.Module, named: dict[str, tuple[nn.Module, list[Design]]], strict: bool = False, assume: bool = False
) -> Model:
    """Hooks the layers in `named`, {name: (module, its designs)}; returns the record of the model.

    Already watched layers get these designs too. A model inside another, watched first, becomes part of it.
    """
    opener = next((design.opener for _, designs in named.values() for design in designs), None)
    watched = model.__dict__.get(_MODEL)
    if watched is None:
        watched = model.__dict__[_MODEL] = Model(type(model).__name__)
        reader = grids.Reader(model)
        begin, end = _Begin(watched, reader), _End(watched)
        for one in (watched, reader, begin, end):
            one.opener = opener
        watched.hooks = [model.register_forward_pre_hook(begin, with_kwargs=True), model.register_forward_hook(end)]
    watched.strict, watched.assume = watched.strict or strict, watched.assume or assume
    watched.told = False
    for name, (module, designs) in named.items():
        layer = record(module)
        if layer is None:
            layer = Layer(name, watched)
            # bypasses nn.Module.__setattr__: no parameter, no submodule, nothing in the state dict
            module.__dict__[_LAYER] = layer
            enter, leave = _Enter(layer), _Leave()
            for part in (layer, enter, leave):
                part.opener = opener
            layer.hooks = [
                module.register_forward_pre_hook(enter, with_kwargs=True),
                module.register_forward_hook(leave, always_call=True),
            ]
        layer.join(watched, name)
        layer.designs += [d for d in designs if d not in layer.designs]
    forget_compiled()
    return watched


def unwatch(module: nn.Module) -> None:
    """Restores a layer."""
    layer = module.__dict__.pop(_LAYER, None)
    if layer is not None:
        layer.join(None, layer.name)
        for hook in layer.hooks:
            hook.remove()
        forget_compiled()


def unwatch_model(model: nn.Module) -> None:
    """Restores a model without watched layers."""
    watched = model.__dict__.pop(_MODEL, None)
    if watched is not None:
        for hook in watched.hooks:
            hook.remove()
        forget(watched)


def forget_compiled() -> None:
    """Resets compiled code, because it does not look for new hooks."""
    forget_plans()
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


def grids_of(model: Model) -> Callable[[int], Grids | None]:
    """A function from a call's number of query tokens to its grids."""

    def of(tokens: int) -> Grids | None:
        if model.pyramid is not None:
            return grids.of_level(model.pyramid, tokens)
        return model.grids

    return of
