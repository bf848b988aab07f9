"""The masks that tests pass by hand, from definitions of their own: no cell comes from an exported module.

That an exported module's mask is the design's is tested by modules.py; here it is tested that this very mask arrives.
"""

import torch

TOKENS, WINDOW = 80, 20


def window(tokens=TOKENS, width=WINDOW):
    """The design that scripts take as EXPORT: `sliding_window --arg window=20` over 80 tokens, [1, 1, tokens, tokens]."""
    q, kv = torch.arange(tokens)[:, None], torch.arange(tokens)[None, :]
    # each token sees itself and the 19 before it
    return ((kv <= q) & (kv > q - width))[None, None]


def from_padding(mask, real):
    """The mask [1 or B, H, tokens, tokens] of rows that begin with padding, [B, H, ..]: it begins at each row's first token."""
    out = []
    for row, here in enumerate(real):
        first, one = int(here.long().argmax()), mask[row % len(mask)]
        out.append(torch.zeros_like(one))
        out[-1][..., first:, first:] = one[..., : one.shape[-2] - first, : one.shape[-1] - first]
    return torch.stack(out)


def of_text(text, lengths, batch=1, heads=1):
    """The dense mask [batch, heads, Q, KV] of a user's own text: its mask_mod as Python runs it, before any export."""
    scope = {}
    exec(text, scope)
    shape = (batch, heads, *lengths)
    places = [torch.arange(n).view([-1 if axis == at else 1 for axis in range(4)]) for at, n in enumerate(shape)]
    return scope["mask_mod"](*places).expand(shape)
