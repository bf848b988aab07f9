"""Hugging Face's `kernels`: a mask as a folder that `get_local_kernel` loads, or that is uploaded as a repository of
type `kernel`.

The folder needs PyTorch alone: no Maskloom, no compiler, any version from 2.5 on.

Invariant: the folder's functions are the mask's; it is noarch, and the same for every device.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from ..errors import ArgumentError

__all__ = ["write"]

_MODULE = '''"""{title}: an attention mask made with Maskloom {version}.

`attend(query, key, value)` is FlexAttention with this mask, [B, H, S, D]; `mask_mod` and `score_mod` are its functions.
SPDX-License-Identifier: {license}
"""

import base64

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

Q_LEN, KV_LEN = {lengths}
{tensors}
{text}
mask_mod = globals().get("mask_mod")
score_mod = globals().get("score_mod")
_made = {{}}


def _on(device):
    """The tensors that the functions read, on a device."""
    globals().update({{name: globals()[name].to(device) for name in {names}}})


def block_mask(device, q_len=Q_LEN, kv_len=KV_LEN, batch={batch}, heads={heads}):
    """The BlockMask at these lengths, made once for each."""
    _on(device)
    key = (str(device), q_len, kv_len, batch, heads)
    if mask_mod is not None and key not in _made:
        _made[key] = create_block_mask(mask_mod, batch, heads, q_len, kv_len, device=str(device), BLOCK_SIZE={block})
    return _made.get(key)


def attend(query, key, value, scale={scale}, compiled=True):
    """query [B, Hq, Q, E], key [B, Hkv, KV, E], value [B, Hkv, KV, Ev]. Returns [B, Hq, Q, Ev]. scale: None is
    1 / sqrt(E). compiled: by torch.compile, on a GPU."""
    _on(query.device)
    run = torch.compile(flex_attention, dynamic=False) if compiled and query.is_cuda else flex_attention
    mask = block_mask(query.device, query.shape[2], key.shape[2])
    gqa = query.shape[1] != key.shape[1]
    return run(query, key, value, score_mod=score_mod, block_mask=mask, scale=scale, enable_gqa=gqa)
'''


def write(design: Any, folder: str | os.PathLike[str], name: str, *, version: int = 1, license: str = "MIT") -> Path:
    """Writes a design as a kernel's folder; returns the folder.

    Args:
        design: of `maskloom.from_design`.
        folder: where `build/torch-cpu` and `build/torch-cuda` are written. It is made if it does not exist.
        name: of the kernel: letters, digits and "-".
        version: the kernel's, from 1 on; Hugging Face's branch is v1, v2 and so on.
        license: of the kernel.

    Raises:
        ArgumentError: the name cannot be one of a kernel.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ArgumentError("name", f"{name!r} is no name of a kernel", 'use small letters, digits and "-"')
    if not isinstance(version, int) or version < 1:
        raise ArgumentError("version", f"version is {version!r}", "pass a whole number from 1 on")
    from .. import __version__
    from .._mods import traced

    batch = heads = None
    if design.mask_mod is not None:
        import torch

        per_batch, per_head = traced(design.mask_mod, "mask_mod", device=torch.device("cpu"))[0].depends()
        batch, heads = (design.batch if per_batch else None), (design.heads if per_head else None)
    text = _MODULE.format(
        title=name, version=__version__, license=license, lengths=(design.q_len, design.kv_len),
        tensors=_tensors(design),
        text=design.text, batch=batch, heads=heads, block=design.BLOCK_SIZE,
        scale=design.scale, names=list(design.tensors),
    )  # fmt: skip
    where = Path(folder)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    for backend in ("cpu", "cuda"):
        variant = where / "build" / f"torch-{backend}"
        variant.mkdir(parents=True, exist_ok=True)
        (variant / "__init__.py").write_text(text, encoding="utf-8")
        about = {
            "id": f"_{name.replace('-', '_')}_{backend}_{digest}", "name": name, "version": version, "license": license,
            "python-depends": [], "backend": {"type": backend},
        }  # fmt: skip
        (variant / "metadata.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return where


def _tensors(design: Any) -> str:
    """The tensors that the functions read, as lines of code."""
    lines = []
    for name, tensor in design.tensors.items():
        import torch

        raw = tensor.contiguous().view(-1).view(torch.uint8) if tensor.numel() else tensor
        packed = base64.b64encode(bytes(raw.tolist())).decode()
        kind = str(tensor.dtype)
        shape = tuple(tensor.shape)
        lines.append(
            f'{name} = torch.frombuffer(bytearray(base64.b64decode("{packed}")), dtype={kind}).reshape({shape})'
        )
    return "\n".join(lines)
