# SPDX-License-Identifier: MIT
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
from .counts import SILENT, Layer, Model, forget, forget_plans
from .grids import tracing
from .pickled import Carried

if TYPE_CHECKING:
    from torch import nn

    from .aliases import Grids, Wanted
    from .designs import Design


class _Now(threading.local):
    """One per thread, because a checkpointed layer runs again in autograd's thread."""

    def __init__(self) -> None:
        self.layer: Layer | None = None
        self.hidden: torch.Size | None = None
        self.context: torch.Size | None = None
        # lengths of the other sequences that the layer was given
        self.others: list[int] = []
        # attention calls since the layer was entered
        self.calls = 0


class _Traced:
    """The same for torch.compile, which cannot trace thread-local values: it traces one thread."""

    layer: Layer | None = None
    hidden: torch.Size | None = None
    context: torch.Size | None = None
    others: list[int] = []
    calls = 0


now = _Now()
traced = _Traced()


def current() -> _Now | _Traced:
    """The place of the present attention call: its `layer` (None: not watched) and the shapes of the layer's inputs."""
    return traced if tracing() else now


_CROSS = re.compile(r"(^|[._])(attn2|cross\w*|encoder_attn|encdecattention|crossattn|ca)(\.self)?$", re.IGNORECASE)
_SELF = re.compile(r"(^|[._])self_att(n|ention)$", re.IGNORECASE)
_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
# kinds of modules that make one token of many, by an attention whose queries are not the main sequence
_POOL = re.compile(r"Pool(er|ing|ingHead)?$")
# parts of a model that attend over other tokens than its main sequence, by their whole names in diffusers and transformers:
# they are watched only if they are named
_ASIDE = {
    *("noise_refiner", "context_refiner", "token_refiner", "siglip_refiner", "control_noise_refiner", "refiner_blocks"),
    *("add_control_noise_refiner", "context_embedder", "context_embedder_2", "caption_projection", "caption_embedder"),
    *("caption_norm", "time_caption_embed", "audio_caption_projection", "text_encoder", "text_encoder_2", "text_encoder_3"),
    *("text_transformer_blocks", "image_encoder", "image_embedder", "visual", "visual_encoder", "vision_tower"),
    *("vision_model", "vision_encoder", "vision_backbone", "vision_adapter", "audio_tower", "audio_model", "audio_encoder"),
    *("audio_attn1", "audio_attn2", "video_to_audio_attn", "audio_to_video_attn", "connector", "connectors"),
    *("text_connector", "text_connectors", "video_connector", "audio_connector", "projector", "prior_projector"),
    *("image_projector", "glyph_projector", "multi_modal_projector", "encoder_projector", "decoder_projector"),
    *("seed_projector", "projector_layer"),
}
# the keys in the __dict__ of watched layers and of watched models
_LAYER, _MODEL = "_maskloom", "_maskloom_model"


# what runs before each call of a watched model or layer: `patched` looks whether its functions are still there
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
        hidden = kwargs.get("hidden_states")
        if hidden is None:
            hidden = _first_tensor((*args, *kwargs.values()))
        context = kwargs.get("encoder_hidden_states", args[1] if len(args) > 1 else None)
        context = None if context is hidden else context
        places = (traced,) if tracing() else (traced, now)
        for place in places:
            place.layer = self.layer
            place.hidden = getattr(hidden, "shape", None)
            place.context = getattr(context, "shape", None)
            place.others = _lengths((*args, *kwargs.values()), hidden)
            place.calls = 0
        self.layer.reached = True


class _Leave(Carried):
    """After the layer's call, also after a failure. Errors: RuntimeError in strict mode if it called no watched attention."""

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: object) -> None:
        layer, calls = now.layer, now.calls
        for place in (traced,) if tracing() else (traced, now):
            place.layer = place.hidden = place.context = None
            place.others = []
        # a layer that failed has no output; compiled code calls no hook's function
        if not tracing() and layer is not None and calls == 0 and not layer.compiled and output is not None:
            layer.leaves(SILENT)


def _first_tensor(given: tuple[Any, ...]) -> Any:
    for value in given:
        if isinstance(value, torch.Tensor) and value.dim() > 2:
            return value
    return None


def _lengths(given: Any, hidden: Any) -> list[int]:
    """The numbers of tokens of the sequences among a layer's arguments, [B, tokens, E], but for its own."""
    found: list[int] = []
    for value in given:
        if isinstance(value, list):
            # an adapter's images: [B, images, tokens, E] each
            found += [v.shape[1] * v.shape[2] for v in value if isinstance(v, torch.Tensor) and v.dim() == 4]
            found += [v.shape[1] for v in value if isinstance(v, torch.Tensor) and v.dim() == 3]
        elif isinstance(value, torch.Tensor) and value is not hidden and value.dim() == 3 and value.is_floating_point():
            found.append(value.shape[1])
    return found


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


def reads_another(q_len: int, kv_len: int) -> bool:
    """Whether a call of these lengths evidently has its keys from another sequence that the present layer was given."""
    place = current()
    if q_len != kv_len:
        return kv_len in place.others
    hidden, context = place.hidden, place.context
    if hidden is None or context is None or len(hidden) != 3 or len(context) != 3:
        return False
    # joint attention runs over both sequences together; here the queries come from one and the keys from the other
    return hidden[1] == q_len and context[1] == kv_len


def given(tokens: int) -> bool:
    """Whether the present layer was given one sequence of so many tokens, and no context beside it."""
    place = current()
    return place.context is None and place.hidden is not None and len(place.hidden) == 3 and place.hidden[1] == tokens


def crosses_by_name(name: str, module: nn.Module) -> bool:
    """Whether a layer attends to another sequence: by its own attribute, otherwise by its name.

    SD3's second attention is also named attn2, but attends to its own tokens. OmniGen's self_attn gives a width of other tokens,
    by which diffusers takes it for cross-attention.
    """
    said = getattr(module, "is_cross_attention", None)
    return said and not _SELF.search(name) if isinstance(said, bool) else bool(_CROSS.search(name))


def aside(name: str, pools: set[str]) -> str | None:
    """The part beside the main sequence that a layer belongs to: by the whole words of its name, or one of the model's `pools`.

    None: it belongs to none."""
    parts = name.split(".")
    names = ((".".join(parts[: at + 1]), part) for at, part in enumerate(parts))
    return next((one for one, part in names if part in _ASIDE or one in pools), None)


def pools_of(model: nn.Module) -> set[str]:
    """The names of the parts of a model that make one token of many."""
    return {name for name, module in model.named_modules() if name and _POOL.search(type(module).__name__)}


def left_out(model: nn.Module) -> dict[str, int]:
    """The parts beside the main sequence that a model has, with the numbers of their attention layers."""
    found: dict[str, int] = {}
    pools = pools_of(model)
    for name, module in model.named_modules():
        part = aside(name, pools)
        if part is not None and _is_attention(module) and not crosses_by_name(name, module):
            found[part] = found.get(part, 0) + 1
    return found


def reported(model: nn.Module) -> str:
    """The parts beside the main sequence in words, to be added to a line; empty if there are none."""
    parts = ", ".join(f"{part} ({n} layers)" for part, n in left_out(model).items())
    return f"; not in {parts}: `layers` names them" if parts else ""


def _is_attention(module: nn.Module) -> bool:
    kind = type(module).__name__
    named = bool(_ATTENTION.search(kind)) and not kind.endswith(("Processor", "Model", "Block", "Layer"))
    return named or hasattr(module, "processor")


def find(model: nn.Module, wanted: Wanted | None = None, cross: bool = False) -> list[tuple[str, nn.Module]]:
    """(name, module) of the self-attention or cross-attention layers of a model.

    `wanted`: a regular expression or a function that accepts names; without it all except those of parts outside the model's
    main sequence (refiners of the text, towers for images, pools).
    """
    pools = pools_of(model)
    wanted = re.compile(wanted) if isinstance(wanted, str) else wanted
    accepts = wanted.search if isinstance(wanted, re.Pattern) else wanted
    every = [(name, m) for name, m in model.named_modules() if name]
    attend = [name for name, m in every if _is_attention(m)]
    # of nested attention layers the inner one calls attention, whichever sequence it reads
    outer = {name for name in attend if any(other.startswith(name + ".") for other in attend)}
    named = [(name, m) for name, m in every if crosses_by_name(name, m) == cross]
    named = [(name, m) for name, m in named if (not aside(name, pools) if accepts is None else accepts(name))]
    found = [(name, m) for name, m in named if _is_attention(m)]
    if found:
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
    # models of diffusers and those made from them compute pictures
    watched.sequential = not any(kind.__module__.startswith("diffusers.") for kind in type(model).__mro__)
    watched.strict, watched.assume = watched.strict or strict, watched.assume or assume
    watched.reported = False
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
