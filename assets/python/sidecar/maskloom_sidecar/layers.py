"""Which layer runs now: the self-attention layers of a model are found once and watched by hooks."""

import functools
import re
import threading

from .settings import layer_pattern, model_patterns, say, wants_model


class _Now(threading.local):
    """Per thread, because a checkpointed layer runs again in autograd's own thread."""

    layer = None
    hidden = None
    context = None


now = _Now()

_CROSS = re.compile(r"(^|[._])(attn2|cross\w*|encoder_attn|crossattn|ca)$", re.IGNORECASE)
_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)


class Layer:
    """One watched layer, and what happened in it."""

    def __init__(self, name, model):
        self.name = name
        self.model = model
        self.active = False
        self.reached = False


class Model:
    """A model whose layers are watched; tells once how many of them the mask is active in."""

    def __init__(self, name):
        self.name = name
        self.layers = []
        self.sparsity = None
        self.told = False

    def tell(self, *_):
        if self.told or not any(layer.reached for layer in self.layers):
            return
        self.told = True
        active = sum(layer.active for layer in self.layers)
        of = "" if active == len(self.layers) else f" of {len(self.layers)}"
        sparsity = "" if self.sparsity is None else f", sparsity {self.sparsity:.1f}%"
        say(f"mask active in {active}{of} layers of {self.name}{sparsity}")
        if active == 0:
            say("the mask is active in no layer: the lines above say why, or the model calls attention on a way of its own")


class _Enter:
    def __init__(self, layer):
        self.layer = layer

    def __call__(self, module, args, kwargs):
        self.layer.reached = True
        now.layer = self.layer
        hidden = args[0] if args else kwargs.get("hidden_states")
        context = kwargs.get("encoder_hidden_states", args[1] if len(args) > 1 else None)
        now.hidden = getattr(hidden, "shape", None)
        now.context = None if context is hidden else getattr(context, "shape", None)


def _leave(*_):
    now.layer = now.hidden = now.context = None


def crosses(q_len, kv_len):
    """Whether these lengths, in the layer that runs now, are attention from one sequence to another."""
    hidden, context = now.hidden, now.context
    if q_len != kv_len:
        return True
    if hidden is None or context is None or len(hidden) != 3 or len(context) != 3:
        return False
    # joint attention runs over both together; here the queries are of the one and the keys of the other
    return hidden[1] == q_len and context[1] == kv_len


def _crosses_by_name(name, module):
    return bool(getattr(module, "is_cross_attention", False) or _CROSS.search(name))


def _is_attention(module):
    kind = type(module).__name__
    named = bool(_ATTENTION.search(kind)) and not kind.endswith(("Processor", "Model", "Block", "Layer"))
    return named or hasattr(module, "processor")


def find(model):
    """(name, module) of the self-attention layers asked for."""
    pattern = layer_pattern()
    named = [(name, m) for name, m in model.named_modules() if name and not _crosses_by_name(name, m)]
    if pattern is not None:
        named = [(name, m) for name, m in named if pattern.search(name)]
    found = [(name, m) for name, m in named if _is_attention(m)]
    if found:
        # an attention layer inside another is the one that attends
        outer = {n for n, _ in found if any(o.startswith(n + ".") for o, _ in found)}
        return [(name, m) for name, m in found if name not in outer]
    if pattern is None:
        return []
    # modules of another make, by name alone: not their parts, which match as well
    return [(name, m) for name, m in named if not any(name.startswith(o + ".") for o, _ in named)]


def watch(model):
    """Hooks a model's layers; returns their number. Layers watched already are left as they are."""
    import torch

    watched = Model(type(model).__name__)
    for name, module in find(model):
        if "_maskloom" in module.__dict__:
            continue
        layer = Layer(name, watched)
        # past nn.Module's own __setattr__: no parameter, no submodule, nothing of the state dict
        module.__dict__["_maskloom"] = layer
        watched.layers.append(layer)
        module.register_forward_pre_hook(torch.compiler.disable(_Enter(layer)), with_kwargs=True)
        module.register_forward_hook(torch.compiler.disable(_leave), always_call=True)
    if watched.layers:
        model.register_forward_hook(torch.compiler.disable(watched.tell))
    return len(watched.layers)


def after_construction(base, then):
    """Calls `then(model)` for every object of a subclass of `base`, once it is built."""
    before = base.__dict__.get("__init_subclass__")

    def __init_subclass__(cls, **kwargs):
        if before is None:
            super(base, cls).__init_subclass__(**kwargs)
        else:
            before.__func__(cls, **kwargs)
        init = cls.__dict__.get("__init__")
        if init is not None:
            cls.__init__ = _then(init, then)

    base.__init_subclass__ = classmethod(__init_subclass__)


def _then(init, then):
    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        init(self, *args, **kwargs)
        # the constructor of a base class is not the end of it
        if type(self).__init__ is __init__:
            then(self)

    return __init__


def at_first_call(module_library):
    """Plain modules asked for by class name are watched when they are first called."""
    if model_patterns() is None:
        return

    def look(module, _):
        if "_maskloom_seen" not in module.__dict__ and wants_model(type(module).__name__):
            module.__dict__["_maskloom_seen"] = True
            if watch(module):
                handle.remove()
            else:
                say(f"no layer of {type(module).__name__} looks like attention: name them in MASKLOOM_SIDECAR_LAYERS")

    handle = module_library.register_module_forward_pre_hook(look)
