"""Which layer runs now: the attention layers of a model are found once and watched by hooks.

What a model carries (a record in each layer, the hooks) can be copied and pickled with it. Must not know designs' insides
or libraries.
"""

import re
import sys
import threading

import torch

from . import grids
from .grids import tracing
from .tally import Layer, Model, forget


class _Now(threading.local):
    """Per thread, because a checkpointed layer runs again in autograd's own thread."""

    def __init__(self):
        self.layer = self.hidden = self.context = None


class _Traced:
    """The same for torch.compile, which cannot follow a thread's own values: it traces one thread."""

    layer = hidden = context = None


now = _Now()
traced = _Traced()


def current():
    """Where attention is called now: its `layer` (None: no watched one) and the shapes that the layer was given."""
    return traced if tracing() else now


_CROSS = re.compile(r"(^|[._])(attn2|cross\w*|encoder_attn|encdecattention|crossattn|ca)$", re.IGNORECASE)
_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
# parts of a model that attend over something else than its main sequence: only where they are asked for by name
_ASIDE = re.compile(
    r"(^|[._])(\w*refiner\w*|context_embedder|caption_\w+|text_encoder\w*|vision\w*|visual\w*|image_encoder\w*|audio\w*|\w*connector\w*|\w*projector)([._]|$)",
    re.IGNORECASE,
)
# what stands in the __dict__ of watched layers and of watched models
_LAYER, _MODEL = "_maskloom", "_maskloom_model"


def record(module):
    """What is known of a watched layer, else None."""
    return module.__dict__.get(_LAYER)


class _Enter:
    """Before a watched layer."""

    def __init__(self, layer):
        self.layer = layer

    def __call__(self, module, args, kwargs):
        hidden = args[0] if args else kwargs.get("hidden_states")
        context = kwargs.get("encoder_hidden_states", args[1] if len(args) > 1 else None)
        context = None if context is hidden else context
        places = (traced,) if tracing() else (traced, now)
        for place in places:
            place.layer = self.layer
            place.hidden = getattr(hidden, "shape", None)
            place.context = getattr(context, "shape", None)
        self.layer.reached = True


class _Leave:
    """After it, also when it failed."""

    def __call__(self, module, args, output):
        for place in (traced,) if tracing() else (traced, now):
            place.layer = place.hidden = place.context = None


class _Begin:
    """Before a watched model: which grid it runs over."""

    def __init__(self, model, reader):
        self.model = model
        self.reader = reader

    def __call__(self, module, args, kwargs):
        if self.model.wants_grid():
            self.model.grids, self.model.pyramid = self.reader.read(args, kwargs)
            if not tracing():
                self.model.remember_grid()


class _End:
    """After it: what happened is told once."""

    def __init__(self, model):
        self.model = model

    def __call__(self, module, args, output):
        if not tracing():
            self.model.ended()


class hidden:
    """While a watched layer's call is left to what the model has: calls underneath are no calls of the layer's."""

    def __enter__(self):
        self.place = current()
        self.layer = self.place.layer
        self.place.layer = None

    def __exit__(self, *_):
        self.place.layer = self.layer


def crosses(q_len, kv_len):
    """Whether these lengths, in the layer that runs now, are attention from one sequence to another."""
    place = current()
    if q_len != kv_len:
        return True
    hidden, context = place.hidden, place.context
    if hidden is None or context is None or len(hidden) != 3 or len(context) != 3:
        return False
    # joint attention runs over both together; here the queries are of the one and the keys of the other
    return hidden[1] == q_len and context[1] == kv_len


def crosses_by_name(name, module):
    """Whether a layer attends to another sequence, by what it is called."""
    return bool(getattr(module, "is_cross_attention", False) or _CROSS.search(name))


def _is_attention(module):
    kind = type(module).__name__
    named = bool(_ATTENTION.search(kind)) and not kind.endswith(("Processor", "Model", "Block", "Layer"))
    return named or hasattr(module, "processor")


def find(model, wanted=None, cross=False):
    """(name, module) of the self-attention or cross-attention layers of a model.

    `wanted`: a regular expression or a function that accepts names; without it all but those of parts beside the model's
    main sequence (refiners of the text, towers for images).
    """
    accepts = wanted.search if hasattr(wanted, "search") else wanted
    named = [(name, m) for name, m in model.named_modules() if name and crosses_by_name(name, m) == cross]
    if accepts is not None:
        named = [(name, m) for name, m in named if accepts(name)]
    else:
        named = [(name, m) for name, m in named if not _ASIDE.search(name)]
    found = [(name, m) for name, m in named if _is_attention(m)]
    if found:
        # an attention layer inside another is the one that attends
        outer = {n for n, _ in found if any(o.startswith(n + ".") for o, _ in found)}
        return [(name, m) for name, m in found if name not in outer]
    if accepts is None:
        return []
    # modules of another make, by name alone: not their parts, which match as well
    return [(name, m) for name, m in named if not any(name.startswith(o + ".") for o, _ in named)]


def watch(model, named, strict=False, assume=False):
    """Hooks the layers in `named`, {name: (module, its designs)}; returns the record of the model.

    Layers that are watched already get the designs beside theirs. A model inside another, watched first, becomes part of it.
    """
    watched = model.__dict__.get(_MODEL)
    if watched is None:
        watched = model.__dict__[_MODEL] = Model(type(model).__name__)
        begin = _Begin(watched, grids.Reader(model))
        watched.hooks = [
            model.register_forward_pre_hook(begin, with_kwargs=True),
            model.register_forward_hook(_End(watched)),
        ]
    watched.strict, watched.assume = watched.strict or strict, watched.assume or assume
    watched.told = False
    for name, (module, designs) in named.items():
        layer = record(module)
        if layer is None:
            layer = Layer(name, watched)
            # past nn.Module's own __setattr__: no parameter, no submodule, nothing of the state dict
            module.__dict__[_LAYER] = layer
            layer.hooks = [
                module.register_forward_pre_hook(_Enter(layer), with_kwargs=True),
                module.register_forward_hook(_Leave(), always_call=True),
            ]
        layer.join(watched, name)
        layer.designs += [d for d in designs if d not in layer.designs]
    forget_compiled()
    return watched


def unwatch(module):
    """A layer is as it was."""
    layer = module.__dict__.pop(_LAYER, None)
    if layer is not None:
        layer.join(None, layer.name)
        for hook in layer.hooks:
            hook.remove()
        forget_compiled()


def unwatch_model(model):
    """A model without watched layers is as it was."""
    watched = model.__dict__.pop(_MODEL, None)
    if watched is not None:
        for hook in watched.hooks:
            hook.remove()
        forget(watched)


def forget_compiled():
    """Compiled code does not look for new hooks: what was compiled before is compiled anew."""
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


def grids_of(model):
    """A function of a call's number of query tokens that gives its grids."""

    def of(tokens):
        if model.pyramid is not None:
            return grids.of_level(model.pyramid, tokens)
        return model.grids

    return of
