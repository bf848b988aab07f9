"""Maskloom's sidecar: exported designs inside a trainer's process, with no change to the trainer.

    export PYTHONPATH=/path/to/export/sidecar:$PYTHONPATH
    export MASKLOOM_SIDECAR=/path/to/export
    accelerate launch train.py ...

The environment reaches every process that the trainer starts. With MASKLOOM_SIDECAR unset nothing happens. It may name
several folders, one for each resolution (separated like PATH): the design with the right number of tokens is taken.

MASKLOOM_SIDECAR_LAYERS   regular expression: the layers to change, by name ("single_transformer_blocks"); all by default
MASKLOOM_SIDECAR_MODELS   class names of models, comma-separated, `*` stands for anything; without it the models of
                          diffusers but autoencoders, and those of transformers only where diffusers is not in use
MASKLOOM_SIDECAR_SHAPES   `any`: the design's formula also at other lengths than its own; `exact`: only at its own

Self-attention is replaced, cross-attention never. After the first step it logs how many layers the mask is active in.
"""

import importlib.abc
import sys


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls back when one of the named modules has been imported. Nothing is imported for its sake."""

    def __init__(self, callbacks):
        self.callbacks = callbacks

    def find_spec(self, name, path, target=None):
        callback = self.callbacks.get(name)
        if callback is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None and spec.loader is not None:
                _call_after(spec.loader, callback)
                return spec
        return None


def _call_after(loader, callback):
    execute = loader.exec_module

    def exec_module(module):
        execute(module)
        callback(module)

    loader.exec_module = exec_module


def install():
    """Makes every seam ready; each is patched when its library is imported."""
    from . import seams

    callbacks = {
        "torch.nn.functional": seams.torch_functional,
        "torch.nn.modules.module": seams.torch_module,
        "diffusers.models.modeling_utils": seams.diffusers_models,
        "diffusers.models.attention_dispatch": seams.diffusers_dispatch,
        "transformers.modeling_utils": seams.transformers_models,
    }
    for name in list(callbacks):
        if name in sys.modules:
            callbacks.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, _AfterImport(callbacks))
