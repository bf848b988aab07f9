"""Maskloom's attention where PyTorch's libraries take one: by their own registries, with no change to a model.

| module | plugs into |
| --- | --- |
| `transformers` | both registries of transformers: `attn_implementation="maskloom"` |
| `diffusers` | the dispatcher's registry: `model.set_attention_backend("maskloom")` |
| `torch_sdpa` | PyTorch's registry of flash attention: `activate_flash_attention_impl("maskloom")` |
| `sdnq` | `block_mask` of SDNQ's attention, which SimpleTuner uses |
| `hub` | a folder that Hugging Face's `kernels` loads |
| `comfyui` | ComfyUI's `optimized_attention_override` |

`proof(model, inputs)` shows that the mask is in a model: it changes one token and compares the rows that changed with
the mask.

Invariant: a call whose mask is missing is an error, never a call without a mask. No module imports its library before
it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._torch import needs

needs(__name__)

from ._calls import MaskLost  # noqa: E402

if TYPE_CHECKING:
    from ._proof import Proof, proof

__all__ = ["MaskLost", "Proof", "proof"]


def __getattr__(name: str) -> object:
    if name in ("Proof", "proof"):
        from importlib import import_module

        found = import_module(f"{__name__}._proof")
        globals().update(Proof=found.Proof, proof=found.proof)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
