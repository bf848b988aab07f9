"""SimpleTuner's own transformers as tiny models, where the package can be found: NAME -> builder, as in families.

Its packages import every model that it has, and their dependencies. Only the file of one transformer is wanted, so that its
folders are packages here whose own code does not run.
"""

import importlib
import importlib.machinery
import inspect
import os
import sys

import torch

# name -> (folder of SimpleTuner, class, which diffusers has as well)
CLASSES = {
    "flux": ("flux", "FluxTransformer2DModel"),
    "flux2": ("flux2", "Flux2Transformer2DModel"),
    "chroma": ("chroma", "ChromaTransformer2DModel"),
    "wan": ("wan", "WanTransformer3DModel"),
    "qwen": ("qwen_image", "QwenImageTransformer2DModel"),
    "ltx": ("ltxvideo", "LTXVideoTransformer3DModel"),
    "sd3": ("sd3", "SD3Transformer2DModel"),
    "pixart": ("pixart", "PixArtTransformer2DModel"),
    "auraflow": ("auraflow", "AuraFlowTransformer2DModel"),
    "lumina2": ("lumina2", "Lumina2Transformer2DModel"),
}


class _Folders:
    """Folders of SimpleTuner as packages without code."""

    def find_spec(self, name, path, target=None):
        if name.split(".")[0] != "simpletuner":
            return None
        for entry in sys.path:
            folder = os.path.join(entry, *name.split("."))
            if os.path.isdir(folder):
                spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = [folder]
                return spec
        return None


def there():
    return any(os.path.isdir(os.path.join(entry, "simpletuner", "helpers")) for entry in sys.path)


def made(name, build):
    """What `build` of families makes, of SimpleTuner's class. ImportError where its package has no such file."""
    import diffusers

    if not any(isinstance(finder, _Folders) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Folders())
    folder, kind = CLASSES[name]
    own = getattr(importlib.import_module(f"simpletuner.helpers.models.{folder}.transformer"), kind)
    known = getattr(diffusers, kind, None)
    takes = inspect.signature(own.__init__).parameters
    setattr(diffusers, kind, lambda **given: own(**{name: value for name, value in given.items() if name in takes}))
    try:
        model, inputs, chosen = build()
    finally:
        if known is None:
            delattr(diffusers, kind)
        else:
            setattr(diffusers, kind, known)
    assert type(model) is own
    if "guidance_embeds" not in takes and "guidance" in inspect.signature(own.forward).parameters:
        # a model that always has it
        inputs["guidance"] = torch.full_like(inputs["timestep"], 3.5)
    if "txt_seq_lens" in inspect.signature(own.forward).parameters:
        inputs["txt_seq_lens"] = [inputs["encoder_hidden_states"].shape[1]] * len(inputs["hidden_states"])
    return model, inputs, chosen
