# SPDX-License-Identifier: MIT
"""The sidecar in an unchanged trainer: models are watched when they are built, libraries are patched when they are imported."""

from __future__ import annotations

import atexit
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import counts, layers, settings
from .settings import say

if TYPE_CHECKING:
    from torch import nn

    from .designs import Design


@functools.cache
def _designs() -> list[Design]:
    from .counts import at_end
    from .designs import of_environment

    found = of_environment()
    names = ", ".join(f"{d.name} ({d.lengths[0]} x {d.lengths[1]})" for d in found)
    if settings.dense_run():
        return found
    at_end(names)
    strict = "; a call that cannot have it is an error" if settings.strict() else ""
    say(f"the sidecar is loaded: {names}{strict}")
    return found


def torch_ready(torch: ModuleType) -> None:
    """scaled_dot_product_attention, and plain modules if their class was named."""
    from . import patched

    patched.patch_torch()
    atexit.register(_at_end_of_any)
    if settings.record_folder():
        from . import recording

        recording.begin()
    if settings.model_patterns() is not None:
        _designs()
        _at_first_call(torch.nn.modules.module)


def _at_end_of_any() -> None:
    """A process that used torch but neither library also prints the last line."""
    from .counts import tell

    if _designs.cache_info().currsize == 0 and not settings.dense_run():
        tell(", ".join(said.get("design", said["module"]) for said in map(settings.read, settings.files())))


def diffusers_dispatch(dispatch: ModuleType) -> None:
    """diffusers' dispatcher."""
    from . import patched

    patched.patch_diffusers(dispatch)


def watch(model: nn.Module) -> int:
    """Hooks the design's layers of a model; none in a run without the design. Returns their number."""
    from .learning import reported

    named: dict[str, tuple[nn.Module, list[Design]]] = {}
    for design in _designs():
        wanted = settings.layer_pattern() or design.layers
        for name, module in layers.find(model, wanted, design.cross):
            named.setdefault(name, (module, []))[1].append(design)
    if not named:
        _refuse_later(model)
        return 0
    for words in filter(None, map(reported, _designs())):
        say(words)
    if not settings.layer_pattern():
        beside = layers.reported(model)
        if beside:
            say(f"{type(model).__name__} has the design{beside} in MASKLOOM_SIDECAR_LAYERS")
    if settings.record_folder():
        from . import recording

        recording.attach(model)
    if settings.dense_run():
        return len(named)
    chosen = {id(module) for module, _ in named.values()}
    # a part that was watched as a separate model and is not a layer of this model
    for _, module in model.named_modules():
        if layers.record(module) is not None and id(module) not in chosen:
            layers.unwatch(module)
    return len(layers.watch(model, named, settings.strict(), settings.assumes_grid()).layers)


def _refuse_later(model: nn.Module) -> None:
    """In strict mode: a model with attention layers, none of which is accepted by name, is refused at its first call."""
    wanted = settings.layer_pattern()
    if not settings.strict() or settings.dense_run() or not layers.find(model, ".", _designs()[0].cross):
        return
    patterns = [wanted.pattern] if wanted else [d.layers.pattern for d in _designs() if d.layers]
    named = f"none of its attention layers is accepted by {' or '.join(patterns)}"
    why = named if patterns else "it has none of the design's layers"

    def refuse(*_: object) -> None:
        counts.refusals.append(why)
        say(f"{type(model).__name__}: {why}")
        raise RuntimeError(f"maskloom: {type(model).__name__}: {why}. MASKLOOM_SIDECAR_MODELS names the models that are meant")

    model.register_forward_pre_hook(refuse)


def diffusers_models(modeling: Any) -> None:
    """Every diffusers model that is built; autoencoders only if they are named."""
    _designs()

    def built(model: nn.Module) -> None:
        kind = type(model).__name__
        wanted = settings.wants_model(kind)
        if wanted is None:
            wanted = not any(part in kind for part in ("Autoencoder", "VAE", "VQModel"))
        if wanted:
            watch(model)

    _after_construction(modeling.ModelMixin, built)


# models with other inputs than text
_SENSES = ("Vision", "Audio", "Image", "Siglip", "Speech", "Whisper", "Wav2Vec")


def transformers_models(modeling: Any) -> None:
    """Models of transformers: the named ones, otherwise all if diffusers is not in use (with diffusers they encode the text)."""
    _designs()

    def built(model: nn.Module) -> None:
        kind = type(model).__name__
        wanted = settings.wants_model(kind)
        if wanted is None:
            if "diffusers" in sys.modules:
                say(f"{kind} is left as it is, because diffusers is in this process: MASKLOOM_SIDECAR_MODELS={kind} watches it")
                return
            wanted = not any(part in kind for part in _SENSES)
        if wanted and watch(model):
            from . import hf

            if not settings.dense_run():
                hf.take_over(model)
        elif settings.wants_model(kind):
            say(f"no layer of {kind} looks like attention: name them in MASKLOOM_SIDECAR_LAYERS")

    _after_construction(modeling.PreTrainedModel, built)


def _after_construction(base: Any, then: Callable[[Any], None]) -> None:
    """Calls `then(model)` for every object of a subclass of `base`, once it is built."""
    before = base.__dict__.get("__init_subclass__")

    def __init_subclass__(cls: Any, /, **kwargs: Any) -> None:
        if before is None:
            super(base, cls).__init_subclass__(**kwargs)
        else:
            before.__func__(cls, **kwargs)
        init = cls.__dict__.get("__init__")
        if init is not None:
            cls.__init__ = _then(init, then)

    base.__init_subclass__ = classmethod(__init_subclass__)


def _then(init: Callable[..., None], then: Callable[[Any], None]) -> Callable[..., None]:
    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        # the constructor of a base class is not the last constructor
        if type(self).__init__ is __init__:
            then(self)

    return __init__


def _at_first_call(module_library: Any) -> None:
    """Plain modules named by class are watched at their first call."""

    def look(module: nn.Module, _: object) -> None:
        if "_maskloom_seen" in module.__dict__ or not settings.wants_model(type(module).__name__):
            return
        module.__dict__["_maskloom_seen"] = True
        if any(layers.record(m) is not None for m in module.modules()) or watch(module):
            handle.remove()
        else:
            say(f"no layer of {type(module).__name__} looks like attention: name them in MASKLOOM_SIDECAR_LAYERS")

    handle = module_library.register_module_forward_pre_hook(look)
