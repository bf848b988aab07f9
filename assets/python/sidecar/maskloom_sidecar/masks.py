"""The exported designs: which one suits a shape, its BlockMask there, and attention with it."""

import functools
import importlib.util
import os
import sys

from .settings import designs, say


class Design:
    """One exported module and what its sidecar.json says."""

    def __init__(self, folder, settings):
        file = folder.joinpath(settings["module"]).resolve()
        spec = importlib.util.spec_from_file_location(f"maskloom_design_{file.stem}", file)
        self.module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = self.module
        spec.loader.exec_module(self.module)
        self.lengths = (self.module.Q_LEN, self.module.KV_LEN)
        self.shapes = os.environ.get("MASKLOOM_SIDECAR_SHAPES") or settings.get("shapes", "exact")
        # a table that the mods read ends where the design does
        self.tables = settings.get("tables", True)
        blocks = file.with_name(f"{file.stem}_blocks.safetensors")
        self.blocks = blocks if blocks.is_file() else None
        self.made = {}

    def fits(self, q_len, kv_len):
        """Whether it means something at these lengths."""
        if (q_len, kv_len) == self.lengths:
            return True
        inside = q_len <= self.lengths[0] and kv_len <= self.lengths[1]
        return self.shapes == "any" and (inside or not self.tables)

    def block_mask(self, device, q_len, kv_len):
        """The BlockMask at these lengths, made once for each."""
        key = (device, q_len, kv_len)
        if key not in self.made:
            if self.blocks is not None and (q_len, kv_len) == self.lengths:
                self.made[key] = self.module.load_block_mask(self.blocks, device)
            else:
                self.made[key] = self.module.make_block_mask(device, q_len, kv_len)
        return self.made[key]

    def block_mask_with(self, kept, batch, heads, device, q_len, kv_len):
        """The BlockMask of the design and the model's own mask `kept`, [B or 1, H or 1, Q or 1, KV or 1] bool."""
        storage = (kept.data_ptr(), kept._version, tuple(kept.shape), kept.stride())
        last = self.made.get("with")
        # the tensor is held, so that no other can come to lie where it does
        if last is not None and last[0] == storage:
            return last[2]
        from torch.nn.attention.flex_attention import create_block_mask

        mask_mod = self.mask_with(kept, device)
        b = batch if kept.shape[0] > 1 else self.module.BATCH
        h = heads if kept.shape[1] > 1 else self.module.HEADS
        made = create_block_mask(mask_mod, b, h, q_len, kv_len, device=device, BLOCK_SIZE=self.module.BLOCK_SIZE)
        self.made["with"] = (storage, kept, made)
        return made

    def mask_with(self, kept, device):
        """mask_mod of the design and the model's own mask; without one, the design's."""
        keep = self.module.make_mods(device)[0]
        if kept is None:
            return keep
        varying = [i for i, n in enumerate(kept.shape) if n > 1]
        table = kept.reshape([kept.shape[i] for i in varying])

        # PyTorch counts the parameters: four must be named
        def mask_mod(b, h, q_idx, kv_idx):
            index = (b, h, q_idx, kv_idx)
            own = table[tuple(index[i] for i in varying)]
            return own if keep is None else keep(*index) & own

        return mask_mod


@functools.cache
def _all():
    return [Design(folder, settings) for folder, settings in designs()]


def design_for(q_len, kv_len):
    """The design for these lengths: the one made for them, else one whose formula holds at any; None with a word."""
    exact = [d for d in _all() if d.lengths == (q_len, kv_len)]
    found = exact or [d for d in _all() if d.fits(q_len, kv_len)]
    if found:
        return found[0]
    lengths = " or ".join("{} x {}".format(*d.lengths) for d in _all())
    say(f"attention over {q_len} x {kv_len} tokens is left as it is: the design is made for {lengths}")
    return None


def suits(design, batch, heads):
    """Whether a design with masks of its own for batch entries or heads can serve these."""
    for what, wanted, got in (("batch entries", design.module.BATCH, batch), ("heads", design.module.HEADS, heads)):
        if wanted is not None and wanted != got:
            say(f"left as it is: the design has a mask for each of {wanted} {what}, and here are {got}")
            return False
    return True


def as_kept(mask, batch):
    """A model's own mask as bool [B, H, Q, KV], any of them 1. Errors: it adds a bias, which the design would drop."""
    import torch

    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    if mask.dtype == torch.bool:
        return mask
    if not bool(((mask == 0) | (mask <= -1e4)).all()):
        raise RuntimeError("maskloom: the model adds a bias to its scores, which the design would drop: choose other layers")
    return mask > -1e4


def attend(design, query, key, value, scale, kept=None):
    """The design's attention and its BlockMask. query [B, Hq, Q, E], key [B, Hkv, KV, E], value [B, Hkv, KV, Ev]."""
    batch, heads, q_len, _ = query.shape
    kv_len = key.shape[2]
    if kept is None:
        mask = design.block_mask(query.device, q_len, kv_len)
    else:
        mask = design.block_mask_with(kept, batch, heads, query.device, q_len, kv_len)
    return attend_with(design, mask, query, key, value, scale), mask


def attend_with(design, block_mask, query, key, value, scale):
    """Attention by a BlockMask (None: everything is kept) and the design's score_mod, forward and backward."""
    import torch

    scale = query.shape[-1] ** -0.5 if scale is None else scale
    on_cpu = query.device.type == "cpu"
    if on_cpu and torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value)):
        # FlexAttention has no backward pass on the cpu
        return _dense(design, block_mask, query, key, value, scale)
    # given None the module makes its own mask, which is none too
    return design.module.attend(query, key, value, block_mask=block_mask, scale=scale, compiled=not on_cpu)


def _dense(design, block_mask, query, key, value, scale):
    """The same with all scores in memory: for trying on the cpu."""
    import torch
    from torch.nn.attention.flex_attention import create_mask

    batch, heads, q_len, _ = query.shape
    kv_len, device = key.shape[2], query.device
    group = heads // key.shape[1]
    key, value = (t.repeat_interleave(group, dim=1) if group > 1 else t for t in (key, value))
    scores = (query @ key.transpose(-1, -2)).float() * scale
    score_mod = design.module.make_mods(device)[1]
    if score_mod is not None:
        for axes in ((0, None, None, None, 0), (0, None, None, 0, None), (0, None, 0, None, None), (0, 0, None, None, None)):
            score_mod = torch.vmap(score_mod, in_dims=axes)
        index = [torch.arange(n, device=device) for n in (batch, heads, q_len, kv_len)]
        scores = score_mod(scores, *index)
    if block_mask is not None:
        mask = create_mask(block_mask.mask_mod, batch, heads, q_len, kv_len, device=device)
        scores = scores.masked_fill(~mask, float("-inf"))
    empty = (scores == float("-inf")).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
    return weights.to(value.dtype) @ value
