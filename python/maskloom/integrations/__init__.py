"""Maskloom's attention where PyTorch's libraries take one: by their own registries, with no change to a model.

| module | plugs into |
| --- | --- |
| `transformers` | both registries of transformers: `attn_implementation="maskloom"` |
| `diffusers` | the dispatcher's registry: `model.set_attention_backend("maskloom")` |
| `torch_sdpa` | PyTorch's registry of flash attention: `activate_flash_attention_impl("maskloom")` |
| `sdnq` | `block_mask` of SDNQ's attention, which SimpleTuner uses |
| `hub` | a folder that Hugging Face's `kernels` loads |
| `comfyui` | ComfyUI's `optimized_attention_override` |
| `torchtitan` | torchtitan's overrides and its context parallelism: `maskloom` as its load balancer |

`proof(model, inputs)` shows that the mask is in a model: it changes one token and compares the rows that changed with
the mask.

`divided(model)` says whether another library divides the model's sequence over ranks, and what becomes of a mask there.
A call of Maskloom in such a place is an error.

Invariant: a call whose mask is missing is an error, never a call without a mask. No module imports its library before
it is used; only torchtitan imports `torchtitan`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._torch import needs

needs(__name__)

from .. import _divided  # noqa: E402
from ._calls import MaskLost  # noqa: E402

if TYPE_CHECKING:
    from ._proof import Proof, proof

__all__ = ["MaskLost", "Proof", "divided", "proof"]


def divided(model: Any = None) -> str | None:
    """What divides the sequence over ranks besides Maskloom, and what it does with a mask, in words.

    Looked at: PyTorch's `context_parallel`, accelerate with cp_size > 1 (transformers' Trainer and TRL run by it), and
    in a model accelerate's hooks and diffusers' `enable_parallelism`.

    Args:
        model: a torch.nn.Module, or None.

    Returns:
        None where nothing divides it.
    """
    found = _divided.region() or _divided.of_process()
    return found if found is not None or model is None else _divided.of_model(model)


def __getattr__(name: str) -> object:
    if name in ("Proof", "proof"):
        from importlib import import_module

        found = import_module(f"{__name__}._proof")
        globals().update(Proof=found.Proof, proof=found.proof)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
