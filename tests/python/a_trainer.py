"""A stand-in for a trainer that replaces PyTorch's SDPA by phase, as SimpleTuner's releases 3.1.6 to 4.10.1 do.

It does what those do: the first replacement puts the present function aside under another name, a phase that uses the
replacement puts it in, and any other phase puts back what was put aside. The replacement ignores masks.
"""

import torch
from torch.nn import functional


class Controller:
    """`phases`: those in which the replacement is used; `copies` takes over the attributes of the function that it replaces."""

    def __init__(self, phases, copies=False, calls_back=False):
        self.phases, self.copies, self.calls_back = phases, copies, calls_back
        self.calls = 0

    def apply(self, phase):
        if phase not in self.phases:
            if hasattr(functional, "sdpa_put_aside"):
                functional.scaled_dot_product_attention = functional.sdpa_put_aside
            return
        if not hasattr(functional, "sdpa_put_aside"):
            functional.sdpa_put_aside = functional.scaled_dot_product_attention

        def replacement(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
            self.calls += 1
            if self.calls_back:
                return functional.sdpa_put_aside(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
            scores = query @ key.transpose(-2, -1) * (scale or query.shape[-1] ** -0.5)
            return torch.softmax(scores, -1) @ value

        if self.copies:
            replacement.__dict__.update(functional.sdpa_put_aside.__dict__)
        functional.scaled_dot_product_attention = replacement
