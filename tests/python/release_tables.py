"""Whether .ci/trainers reads what a trainer's text does. The texts are stand-ins in wheels made here; nothing of them is run.

    python release_tables.py
"""

import json
import os
import pathlib
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.ci/trainers"))
import table
from wheel import Wheel

CONTROLLER = """
from enum import Enum
import torch
from diffusers.models.attention_dispatch import AttentionBackendName
from diffusers.models.attention_dispatch import attention_backend as diffusers_attention_backend
raise SystemExit("this text is never run")
TARGETS = {"flex": "flex", "kernel-one": "native"}
class AttentionBackendMode(str, Enum):
    TRAINING = "training"
    INFERENCE = "inference"
    @property
    def trains(self):
        return self in (AttentionBackendMode.TRAINING,)
class AttentionPhase(Enum):
    TRAIN = "train"
    EVAL = "eval"
class AttentionBackendController:
    _active = None
    @classmethod
    def apply(cls, config, phase):
        value = getattr(config, "attention_mechanism", "plain").strip().lower()
        if value.startswith("sage"):
            usage = AttentionBackendMode(getattr(config, "sageattention_usage", AttentionBackendMode.INFERENCE))
            if (phase == AttentionPhase.TRAIN) == usage.trains:
                cls._replace(value)
            else:
                cls.restore()
            return
        if value in TARGETS:
            diffusers_attention_backend(AttentionBackendName(TARGETS[value])).__enter__()
            return
        if value == "lucky":
            if torch.cuda.is_available():
                torch.nn.functional.scaled_dot_product_attention = keeper
            return
        cls.restore()
    @classmethod
    def restore(cls):
        functional = torch.nn.functional
        if hasattr(functional, "scaled_dot_product_attention_sdpa"):
            functional.scaled_dot_product_attention = functional.scaled_dot_product_attention_sdpa
    @classmethod
    def _replace(cls, value):
        def wrapper(query, key, value, attn_mask=None, is_causal=False):
            return fast(query, key, value, is_causal=is_causal)
        torch.nn.functional.scaled_dot_product_attention = wrapper
        logger.warning("%s: attention layers will not be trained", value)
def keeper(query, key, value, attn_mask=None):
    return slow(query, key, value, attn_mask).clone()
"""
SETTING = """
attention_mechanisms = ["plain", "flex", "kernel-one", "sage", "lucky"]
registry.add(Field(name="attention_mechanism", default_value="plain", choices=attention_mechanisms))
"""
DISPATCH = """
class AttentionBackendName(str, Enum):
    FLEX = "flex"
    NATIVE = "native"
@_AttentionBackendRegistry.register(AttentionBackendName.FLEX, supports_context_parallel=False)
def kernel(query, key, value, attn_mask=None, is_causal=False, _parallel_config=None):
    if attn_mask is None or isinstance(attn_mask, BlockMask):
        mask = attn_mask
    elif is_causal:
        mask = create_block_mask(causal)
    else:
        def mod(b, h, q, k):
            return attn_mask[b, h, q, k]
        mask = create_block_mask(mod)
    return flex_attention(query, key, value, mask)
@_AttentionBackendRegistry.register(AttentionBackendName.NATIVE, supports_context_parallel=True)
def kernel(query, key, value, attn_mask=None, is_causal=False, _parallel_config=None):
    if attn_mask is not None:
        raise ValueError("no masks")
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal)
    return out.permute(0, 2, 1, 3)
def dispatch_attention_fn(query, key, value):
    pass
"""
DIRECT = """
from .net import Net
class Model:
    MODEL_CLASS = Net
ModelRegistry.register("direct", Model)
"""
NET = """
import torch.nn.functional as F
class Inner:
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)
class Net:
    def __init__(self):
        self.inner = Inner()
"""
VIA = NET.replace("F.scaled_dot_product_attention(q, k, v)", "dispatch_attention_fn(q, k, v, is_causal=True)")


def wheel(folder, name, files):
    path = os.path.join(folder, name)
    with zipfile.ZipFile(path, "w") as archive:
        for module, text in files.items():
            archive.writestr(module.replace(".", "/") + ".py", text)
    return Wheel(path)


def check(found, want):
    assert found == want, f"{found}\n  and not\n{want}"


def main():
    models = "simpletuner.helpers.models"
    files = {
        "simpletuner.helpers.training.attention_backend": CONTROLLER,
        "simpletuner.simpletuner_sdk.server.services.field_registry.sections.advanced": SETTING,
        f"{models}.direct.model": DIRECT,
        f"{models}.direct.net": NET,
        f"{models}.via.model": DIRECT.replace('"direct"', '"via"'),
        f"{models}.via.net": VIA,
    }
    with tempfile.TemporaryDirectory() as folder:
        diffusers = wheel(folder, "diffusers-9.9-py3-none-any.whl", {"diffusers.models.attention_dispatch": DISPATCH})
        trainer = wheel(folder, "simpletuner-9.8.7-py3-none-any.whl", files)
        made = table.tables(diffusers, [trainer])
    release = made["simpletuner"][0]
    check((release["version"], release["default"], release["default_usage"]), ("9.8.7", "plain", "inference"))
    none = {"effect": "none"}
    both = {name: {"always": {"training": act, "validation": act}} for name, act in (
        ("plain", none),
        ("flex", {"effect": "none", "dispatcher": "flex"}),
        ("kernel-one", {"effect": "none", "dispatcher": "native"}),
        ("lucky", {"effect": "may replace", "mask": "keeps"}),
    )}
    sage = {"effect": "replaces", "mask": "drops", "untrained": True}
    both["sage"] = {"training": {"training": sage, "validation": none}, "inference": {"training": none, "validation": sage}}
    check(release["values"], both)
    check(release["families"], {"direct": {"calls": ["sdpa"]}, "via": {"calls": ["dispatches"], "is_causal": True}})
    flex, native = made["diffusers"]["backends"]["flex"], made["diffusers"]["backends"]["native"]
    check(flex, {"mask": "keeps", "causal": "drops", "mask_with_causal": "drops some", "context_parallel": False})
    check(native, {"mask": "refuses", "causal": "keeps", "mask_with_causal": "refuses", "context_parallel": True})
    other = {**made, "simpletuner": [{**release, "version": "9.9.0", "default": "flex"}]}
    check(table.changes(made, other), ["SimpleTuner 9.8.7 -> 9.9.0: default: plain -> flex"])
    # the file in the tree is as the script writes it
    text = pathlib.Path(table.KNOWN).read_text()
    check(table.written(json.loads(text)) + "\n", text)
    print("the tables are right")


main()
