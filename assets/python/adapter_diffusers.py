"""The attention of DESIGN.py inside a diffusers transformer.

    import DESIGN_diffusers
    handle = DESIGN_diffusers.use(pipe.transformer)
    handle = DESIGN_diffusers.use(pipe.transformer, layers=lambda name: "single" in name)
    handle.remove()

Self-attention over Q_LEN x KV_LEN tokens is replaced in the chosen layers, whatever backend is set; everything else
(cross-attention, other resolutions) runs as before. The scale stays the model's own. It works for models that call diffusers' dispatcher and for those
that call PyTorch's scaled_dot_product_attention, forward and backward.
"""

import logging
import sys

import DESIGN as design
import torch
import torch.nn.functional as F

log = logging.getLogger("maskloom")


class _State:
    """Which layer runs now, and what has been said already."""

    layer = None
    said = set()


def _say(text):
    if text not in _State.said:
        _State.said.add(text)
        log.warning(text)


def _takes(q_len, kv_len, attn_mask):
    if _State.layer is None:
        return False
    if (q_len, kv_len) != (design.Q_LEN, design.KV_LEN):
        _say(f"maskloom: {q_len} x {kv_len} tokens are not the design's {design.Q_LEN} x {design.KV_LEN}: left as they are")
        return False
    if attn_mask is not None:
        _say("maskloom: the model's own attention mask is replaced by the design")
    return True


def _attend(query, key, value, scale):
    """The design on [B, H, S, D]."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    if query.device.type != "cpu":
        return design.attend(query, key, value, scale=scale)
    if torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value)):
        # FlexAttention has no backward pass on the cpu
        if design.score_mod is not None:
            raise RuntimeError("a score_mod has no backward pass on the cpu: train on a GPU")
        mask = design.make_mask("cpu")
        gqa = query.shape[1] != key.shape[1]
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=gqa)
        return out.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return design.attend(query, key, value, scale=scale, compiled=False)


def _dispatched(original):
    def dispatch_attention_fn(query, key, value, attn_mask=None, *args, **kwargs):
        if not _takes(query.shape[1], key.shape[1], attn_mask):
            return original(query, key, value, attn_mask, *args, **kwargs)
        # the dispatcher's layout is [B, S, H, D]
        scale = args[2] if len(args) > 2 else kwargs.get("scale")
        out = _attend(*(t.transpose(1, 2) for t in (query, key, value)), scale)
        return out.transpose(1, 2)

    dispatch_attention_fn.maskloom = original
    return dispatch_attention_fn


class _Functional:
    """torch.nn.functional, but for one function."""

    maskloom = F

    def __getattr__(self, name):
        return getattr(F, name)

    @staticmethod
    def scaled_dot_product_attention(query, key, value, attn_mask=None, *args, **kwargs):
        if not _takes(query.shape[2], key.shape[2], attn_mask):
            return F.scaled_dot_product_attention(query, key, value, attn_mask, *args, **kwargs)
        return _attend(query, key, value, args[2] if len(args) > 2 else kwargs.get("scale"))


def _patch(processor):
    """Lets a processor's own module call the design; a module is patched once. Returns whether it calls attention."""
    module = sys.modules[type(processor).__module__]
    if hasattr(module, "dispatch_attention_fn"):
        if not hasattr(module.dispatch_attention_fn, "maskloom"):
            module.dispatch_attention_fn = _dispatched(module.dispatch_attention_fn)
        return True
    if getattr(module, "F", None) is F:
        module.F = _Functional()
    return isinstance(getattr(module, "F", None), _Functional)


class Handle:
    """Takes the design out of the model again."""

    def __init__(self, hooks, layers):
        self.hooks = hooks
        self.layers = layers

    def remove(self):
        for hook in self.hooks:
            hook.remove()


def use(model, layers=None):
    """Gives the design to the self-attention layers of `model` whose name `layers` accepts (all of them by default)."""
    hooks, names = [], []
    for name, module in model.named_modules():
        processor = getattr(module, "processor", None)
        cross = getattr(module, "is_cross_attention", False) or name.endswith("attn2")
        if processor is None or cross or (layers is not None and not layers(name)) or not _patch(processor):
            continue

        def enter(_, __, name=name):
            _State.layer = name

        def leave(*_):
            _State.layer = None

        hooks += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave, always_call=True)]
        names.append(name)
    if not names:
        raise ValueError("no self-attention layer was found: is this a diffusers transformer?")
    block_mask = design.make_block_mask(next(model.parameters()).device)
    # PyTorch counts whole blocks: a sequence shorter than one would be below 0
    sparsity = 0.0 if block_mask is None else max(block_mask.sparsity(), 0.0)
    log.warning("maskloom: mask active in %d layers, sparsity %.1f%%", len(names), sparsity)
    return Handle(hooks, names)
