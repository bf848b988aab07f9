"""Tiny models of many families train through each integration; losses equal those of PyTorch's own attention and mask.

    python package_training.py [STEPS [INTEGRATION ..]]

Each integration has ten models or more with the newest libraries. A model that does not ask an integration for its
attention is named; then `proof` or `masked` must have said so. Exit status 77: a library is not installed.
"""

import contextlib
import copy
import importlib.util
import inspect
import logging
import sys
import warnings

import package

maskloom = package.found()

import families  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

TOKENS, HEADS = 80, 2
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
#: Largest difference of losses, relative: what other orders of float32 sums amount to after ten steps.
CLOSE = 1e-4
PLAIN = F.scaled_dot_product_attention
TILE = 16
#: Every model and integration must be there: with the PyTorch, transformers and diffusers that CI installs.
ALL_NEWEST = package.VERSION >= package.NEWEST


def near(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & ((q_idx - kv_idx < 20) | (kv_idx < 3))


def tiles(b, h, q_idx, kv_idx):
    return (q_idx // TILE >= kv_idx // TILE) | (kv_idx // TILE == 4)


def dense(mod):
    at = [torch.arange(n).view([-1 if axis == own else 1 for own in range(4)]) for axis, n in enumerate((1, 1, 80, 80))]
    return mod(*at).expand(1, 1, TOKENS, TOKENS)


def losses(model, inputs):
    """Training with SGD: the loss of each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    found = []
    for _ in range(STEPS):
        out = model(**inputs)[0]
        real = inputs.get("attention_mask")
        loss = (out if real is None or real.dim() != 2 or real.size(1) != out.size(1) else out[real.bool()]).float()
        loss = loss.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def apart(got, want):
    return max(abs(a - b) / abs(b) for a, b in zip(got, want))


def together(mod, attn_mask):
    """A mask and what the model gives, as one mask of PyTorch's function."""
    mask = dense(mod)
    if attn_mask is None:
        return mask
    return mask & attn_mask if attn_mask.dtype == torch.bool else attn_mask.masked_fill(~mask, -torch.inf)


@contextlib.contextmanager
def every_sdpa(function):
    """All calls of scaled_dot_product_attention go there."""
    F.scaled_dot_product_attention = function
    try:
        yield
    finally:
        F.scaled_dot_product_attention = PLAIN


def by_hand(mod):
    """PyTorch's own with the mask, in calls over so many tokens."""

    def masked(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **more):
        if query.shape[-2] == key.shape[-2] == TOKENS and query.dim() == 4:
            assert not is_causal
            attn_mask = together(mod, attn_mask)
        return PLAIN(query, key, value, attn_mask, dropout_p, is_causal, **more)

    return every_sdpa(masked)


def like_flux(kind):
    """A model of Flux's arguments, as far as its class has them."""
    own = getattr(importlib.import_module("diffusers"), kind)
    known, takes = (inspect.signature(function).parameters for function in (own.__init__, own.forward))
    model, inputs, _ = families.flux(lambda **given: own(**{name: n for name, n in given.items() if name in known}))
    return model, {name: given for name, given in inputs.items() if name in takes}


def skyreels():
    library = importlib.import_module("diffusers")
    kept, library.WanTransformer3DModel = library.WanTransformer3DModel, library.SkyReelsV2Transformer3DModel
    try:
        return families.wan()[:2]
    finally:
        library.WanTransformer3DModel = kept


def causal(kind):
    return families._causal(f"{kind}Config", f"{kind}ForCausalLM")[:2]


#: Models of diffusers' dispatcher and of transformers beside those of `families`.
DISPATCHED = {
    "ovis": lambda: like_flux("OvisImageTransformer2DModel"),
    "longcat": lambda: like_flux("LongCatImageTransformer2DModel"),
    "bria": lambda: like_flux("BriaTransformer2DModel"),
    "skyreels": skyreels,
}
TEXT = {"olmo2": lambda: causal("Olmo2"), "cohere": lambda: causal("Cohere"), "falcon": lambda: causal("Falcon")}


def built(name):
    """A model and its inputs; None where the installed library has no such model."""
    try:
        make = {**DISPATCHED, **TEXT}.get(name)
        torch.manual_seed(0)
        model, inputs = families.built(name)[:2] if make is None else make()
        if not ALL_NEWEST:
            model(**inputs)
        return model.eval(), inputs
    except (AttributeError, ImportError, TypeError, ValueError) as why:
        if ALL_NEWEST:
            raise
        print(f"{name}: not in this library: {why}")
        return None


class Table:
    """What each integration's models came to."""

    def __init__(self):
        self.rows, self.without = {}, {}

    def equal(self, integration, name, got, want, other=None):
        off = apart(got, want)
        assert off < CLOSE and (STEPS == 1 or got[0] != got[-1]), (integration, name, off, got, want)
        if other is not None:
            assert apart(other, want) > max(1e-6, 4 * off), (integration, name, "another mask gives other losses")
        self.rows.setdefault(integration, {})[name] = off
        print(f"{integration} {name}: losses of {len(got)} steps within {off:.1e}", flush=True)

    def left(self, integration, name, why):
        self.without.setdefault(integration, {})[name] = why
        print(f"{integration} {name}: not trained: {why}", flush=True)


def switched(name, way):
    """A model with an implementation of attention, its inputs, and whether its library let it have that one."""
    made = built(name)
    if made is None:
        return None
    model, inputs = made
    with contextlib.suppress(
        KeyError, ValueError
    ):  # no sinks in PyTorch's attention, none but its own in BERT before 4.54
        if hasattr(model, "set_attn_implementation"):
            model.set_attn_implementation(way)
        else:  # transformers before 4.54
            weights = model.state_dict()
            model = type(model)._from_config(copy.deepcopy(model.config), attn_implementation=way).eval()
            model.load_state_dict(weights)
    return model, inputs, model.config._attn_implementation == way


def of_transformers(table):
    import maskloom.integrations.transformers as plugged

    plugged.register()
    for name in [*families.TRANSFORMERS, *TEXT]:
        made = switched(name, "maskloom")
        if made is None:
            continue
        model, inputs, done = made
        try:
            maskloom.integrations.proof(model, inputs, exact=False)
        except maskloom.integrations.MaskLost:
            # transformers warns at most, and goes on with the attention that the model had
            assert not done or not ALL_NEWEST, name
            table.left("transformers", name, "its class keeps its own attention, and proof() says so")
            continue
        except KeyError as why:
            assert not ALL_NEWEST, name
            table.left("transformers", name, f"its class has a table of its own: KeyError {why}")
            continue
        with maskloom.integrations._calls.recorded() as seen:
            got = losses(model, inputs)
        assert done and len(seen) == 2 * STEPS, (name, len(seen))
        table.equal("transformers", name, got, losses(*switched(name, "eager")[:2]))


def of_torch_sdpa(table):
    import maskloom.integrations.torch_sdpa as plugged

    if not hasattr(torch.nn.attention, "register_flash_attention_impl"):
        table.left("torch_sdpa", "all", "this PyTorch has no registry")
        return
    from torch.nn.attention import activate_flash_attention_impl, restore_flash_attention_impl

    for name in [*families.TRANSFORMERS, *families.DIFFUSERS]:
        text = name in families.TRANSFORMERS
        made = switched(name, "sdpa") if text else native(name)
        if made is None or (text and not made[2]):
            table.left("torch_sdpa", name, "its library gives it no scaled_dot_product_attention")
            continue
        plugged.register()
        activate_flash_attention_impl("maskloom")
        try:
            with maskloom.integrations._calls.recorded() as seen:
                got = losses(*made[:2])
        finally:
            restore_flash_attention_impl()
        if not seen:
            assert name == "t5_encoder", name
            table.left("torch_sdpa", name, "PyTorch keeps calls whose mask wants a gradient")
            continue
        with maskloom.integrations._calls.recorded() as seen:
            want = losses(*(switched(name, "sdpa") if text else native(name))[:2])
        assert not seen, name
        table.equal("torch_sdpa", name, got, want)


def native(name):
    """A model of diffusers whose attention is PyTorch's."""
    made = built(name)
    if made is not None and hasattr(made[0], "set_attention_backend"):
        made[0].set_attention_backend("native")
    return made


def of_diffusers(table):
    import maskloom.integrations.diffusers as plugged

    plugged.install()
    mask = maskloom.create_block_mask(near, None, None, TOKENS, TOKENS, device="cpu")
    for name in [*families.DIFFUSERS, *DISPATCHED]:
        made = built(name)
        if made is None:
            continue
        made[0].set_attention_backend("maskloom")
        try:
            with plugged.masked(mask):
                got = losses(*made)
        except maskloom.integrations.MaskLost:
            table.left("diffusers", name, "it does not use the dispatcher, and masked() says so")
            continue
        with by_hand(near):
            want = losses(*native(name))
        table.equal("diffusers", name, got, want, losses(*native(name)))


def of_comfyui(table):
    """Each call as ComfyUI makes it: the override gets its function, tensors and mask."""
    from maskloom.integrations import comfyui

    mask = maskloom.create_block_mask(near, None, None, TOKENS, TOKENS, device="cpu")

    def theirs(q, k, v, heads, mask=None, attn_precision=None, skip_reshape=False, skip_output_reshape=False, **more):
        assert skip_reshape and skip_output_reshape
        return PLAIN(q, k, v, mask, scale=more.get("scale"))

    for name in families.DIFFUSERS:
        made = native(name)
        if made is None:
            continue
        override = comfyui.override(mask)

        def comfy(
            query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, override=override, **_
        ):
            assert not is_causal and not dropout_p
            more = {"scale": scale} if scale is not None else {}
            return override(
                theirs,
                query,
                key,
                value,
                query.size(1),
                mask=attn_mask,
                skip_reshape=True,
                skip_output_reshape=True,
                **more,
            )

        with every_sdpa(comfy):
            got = losses(*made)
        with by_hand(near):
            want = losses(*native(name))
        assert override.calls, (name, override.others)
        table.equal("comfyui", name, got, want, losses(*native(name)))


def of_sdnq(table):
    """SDNQ's function needs a GPU: a stand-in that keeps whole blocks as `block_mask` says, in PyTorch."""
    from maskloom.integrations import sdnq

    given = sdnq.block_mask(tiles, TOKENS, TOKENS, block=(TILE, TILE), device="cpu")

    def atten(query, key, value, attn_mask, block_mask, block_mask_m, block_mask_n, **more):
        kept = block_mask.bool().repeat_interleave(block_mask_m, -2).repeat_interleave(block_mask_n, -1)
        kept = kept[..., : query.size(-2), : key.size(-2)]
        if attn_mask is not None:
            kept = kept & attn_mask if attn_mask.dtype == torch.bool else attn_mask.masked_fill(~kept, -torch.inf)
        return PLAIN(query, key, value, kept, **more)

    def routed(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **more):
        if query.shape[-2] == key.shape[-2] == TOKENS and query.dim() == 4:
            return atten(query, key, value, attn_mask, **given, **more)
        return PLAIN(query, key, value, attn_mask, dropout_p, is_causal, **more)

    for name in families.DIFFUSERS:
        made = native(name)
        if made is None:
            continue
        with every_sdpa(routed):
            got = losses(*made)
        with by_hand(tiles):
            want = losses(*native(name))
        table.equal("sdnq", name, got, want, losses(*native(name)))


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    libraries = {"transformers": of_transformers, "torch_sdpa": of_torch_sdpa}
    libraries.update(diffusers=of_diffusers, comfyui=of_comfyui, sdnq=of_sdnq)
    missing = [name for name in ("transformers", "diffusers") if not importlib.util.find_spec(name)]
    if missing:
        print(f"skipped: no {' and no '.join(missing)}")
        sys.exit(77)
    table = Table()
    for name, train in libraries.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        try:
            train(table)
        except maskloom.MaskloomError as why:
            # a former library without a registry is refused in words that name the version
            if ALL_NEWEST or why.code not in ("transformers", "diffusers") or "or newer" not in why.hint:
                raise
            table.left(name, "all", str(why))
    for name, rows in table.rows.items():
        print(f"{name}: {len(rows)} models of {STEPS} steps, losses within {max(rows.values()):.1e}")
        assert len(rows) >= 10 or not ALL_NEWEST, (name, rows, table.without)
    print("models train through each integration as with PyTorch's own attention")


main()
