"""The exported adapters in tiny models of the installed diffusers and transformers.

    python adapters.py EXPORT

EXPORT is `sliding_window --arg window=20` over 80 tokens. With the adapter each model's output, and for diffusers its gradients,
must equal those with the mask of masks.py given to the model's own attention by hand; must differ from the model as it is;
taken back, the model is as it was. In transformers padding still counts, and a step with a key-value cache equals the
last row of the whole pass. Exit status 77: a library is not installed, and what was run is right.
"""

import importlib.util
import os
import sys

import masks
import tiny_models
import torch
import torch.nn.functional as F

EXPORT = os.path.abspath(sys.argv[1])
STEM = next(name[:-14] for name in os.listdir(EXPORT) if name.endswith(".maskloom.json"))
sys.path.insert(0, EXPORT)
torch.manual_seed(0)
MASK = masks.window()


def apart(a, b):
    return (a - b).abs().max().item()


def tell(model, off, from_dense, **more):
    words = ", ".join(f"{name} off by {value:.1e}" for name, value in more.items())
    print(f"{type(model).__name__}: off by {off:.1e}, {from_dense:.3f} from dense, {words}")
    assert off < 2e-5 and from_dense > 1e-3 and all(value < 2e-5 for value in more.values())


def by_hand(model, chosen, run):
    """`run()` while each chosen layer's attention is given the dense mask."""
    inside, plain, hooks = [False], F.scaled_dot_product_attention, []

    def masked(query, key, value, attn_mask=None, **kwargs):
        return plain(query, key, value, attn_mask=MASK if inside[0] else attn_mask, **kwargs)

    F.scaled_dot_product_attention = masked
    for name, module in model.named_modules():
        if chosen(name):
            hooks.append(module.register_forward_pre_hook(lambda *_: inside.__setitem__(0, True)))
            hooks.append(module.register_forward_hook(lambda *_: inside.__setitem__(0, False)))
    try:
        return run()
    finally:
        F.scaled_dot_product_attention = plain
        for hook in hooks:
            hook.remove()


def of_diffusers(model, inputs, chosen):
    adapter = importlib.import_module(f"{STEM}_diffusers")

    def step():
        out = model(**inputs)[0]
        found = torch.autograd.grad(out.square().mean(), list(model.parameters()), allow_unused=True)
        return out.detach(), [g for g in found if g is not None]

    dense, _ = step()
    handle = adapter.use(model)
    got, grads = step()
    with torch.no_grad():
        forward = model(**inputs)[0]
    handle.remove()
    assert torch.equal(step()[0], dense), "the model is not as it was"
    want, wanted = by_hand(model, chosen, step)
    gradients = max(apart(a, b) for a, b in zip(grads, wanted, strict=True))
    tell(model, apart(got, want), apart(got, dense), gradients=gradients, inference=apart(forward, want))


def of_transformers(model, padded):
    adapter = importlib.import_module(f"{STEM}_transformers")
    model.eval()
    ids = torch.randint(3, 32, (2, 80))
    real = torch.ones(2, 80, dtype=torch.long)
    if padded:
        real[1, :7] = 0
    with torch.no_grad():
        dense = model(input_ids=ids, attention_mask=real).logits
        adapter.use(model)
        got = model(input_ids=ids, attention_mask=real).logits
        cache = model(input_ids=ids[:, :60], attention_mask=real[:, :60], use_cache=True).past_key_values
        step = model(input_ids=ids[:, 60:61], attention_mask=real[:, :61], past_key_values=cache).logits[:, -1]
        whole = model(input_ids=ids[:, :61], attention_mask=real[:, :61]).logits[:, -1]
        model.set_attn_implementation("eager")
        added = torch.where(MASK & real.bool()[:, None, None, :], 0.0, torch.finfo(torch.float32).min)
        gemma = "Gemma" in type(model).__name__
        given = {"full_attention": added, "sliding_attention": added} if gemma else added
        want = model(input_ids=ids, attention_mask=given).logits
    at = real.bool()
    tell(model, apart(got[at], want[at]), apart(got[at], dense[at]), cached=apart(step, whole))


def diffusers_models():
    from diffusers import FluxTransformer2DModel

    of_diffusers(*tiny_models.flux(FluxTransformer2DModel))
    of_diffusers(*tiny_models.wan())


def transformers_models():
    from transformers import Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM

    sizes = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
                 head_dim=16, vocab_size=32)
    for padded in (False, True):
        of_transformers(LlamaForCausalLM(LlamaConfig(**sizes)), padded)
        gemma = Gemma2Config(**sizes, query_pre_attn_scalar=16, attn_logit_softcapping=None, sliding_window=64)
        of_transformers(Gemma2ForCausalLM(gemma), padded)


missing = []
for library, models in (("diffusers", diffusers_models), ("transformers", transformers_models)):
    if importlib.util.find_spec(library):
        models()
    else:
        missing.append(library)
if missing:
    print(f"skipped: no {' and no '.join(missing)}")
    sys.exit(77)
