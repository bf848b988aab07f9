"""maskloom.integrations: tiny models by each registry beside PyTorch's own attention, and the probe for lost masks.

    python package_integrations.py

package_training.py trains models. Exit status 77: a library is not installed, and what was run is right.
"""

import importlib.util
import os
import sys
import tempfile
import threading
import warnings
from types import SimpleNamespace

import package
from package import refused

maskloom = package.found()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

TOKENS, CLOSE = 48, 2e-5
MISSING = [name for name in ("transformers", "diffusers") if not importlib.util.find_spec(name)]


def near(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & ((q_idx - kv_idx < 7) | (kv_idx < 3))


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def dense(mod, batch=1, heads=1, tokens=TOKENS):
    at = [
        torch.arange(n).view([-1 if i == j else 1 for j in range(4)])
        for i, n in enumerate((batch, heads, tokens, tokens))
    ]
    return mod(*at).expand(batch, heads, tokens, tokens)


SIZES = dict(
    hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
    vocab_size=32, pad_token_id=0,
)  # fmt: skip


def language_models():
    """Models by name: grouped heads, sliding and mixed layers, sinks, soft caps, both ways, a position bias."""
    import transformers as hf

    gemma = dict(SIZES, head_dim=16, query_pre_attn_scalar=16, sliding_window=9)
    bert = {name: n for name, n in SIZES.items() if name != "num_key_value_heads"}
    moe = dict(num_local_experts=2, num_experts_per_tok=2, sliding_window=9)
    t5 = dict(d_model=32, d_kv=16, d_ff=32, num_layers=2, num_heads=2, vocab_size=32)
    return {
        "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, head_dim=16)),
        "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**SIZES, head_dim=16, sliding_window=9)),
        "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**SIZES, head_dim=16)),
        "gemma2": lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(**gemma, attn_logit_softcapping=0.05)),
        "gemma3": lambda: hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(**gemma)),
        "gpt_oss": lambda: hf.GptOssForCausalLM(hf.GptOssConfig(**SIZES, head_dim=16, **moe)),
        "bert": lambda: hf.BertForMaskedLM(
            hf.BertConfig(**bert, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        ),
        "t5": lambda: hf.T5EncoderModel(hf.T5Config(**t5, dropout_rate=0.0)),
    }


def masks_in_place_of_the_pattern():
    """A mask of the user's own, with padding, packed documents, a cache and generation."""
    import maskloom.integrations.transformers as plugged

    plugged.register()
    plugged.register("near", mask_mod=near)
    torch.manual_seed(0)
    model = language_models()["mistral"]().eval()
    if not hasattr(model, "set_attn_implementation"):
        print("left out: this transformers sets no implementation of a model that is there")
        return
    ids = torch.randint(3, 32, (1, TOKENS))
    with torch.no_grad():
        model.set_attn_implementation("eager")
        want = model(input_ids=ids, attention_mask=torch.where(dense(near), 0.0, torch.finfo(torch.float32).min)).logits
        model.set_attn_implementation("near")
        got = model(input_ids=ids, use_cache=False).logits
        assert (got - want).abs().max() < CLOSE
        # the caller's own masks, bool and float
        for mask in (dense(near), torch.where(dense(near), 0.0, -torch.inf)):
            assert (model(input_ids=ids, attention_mask=mask, use_cache=False).logits - want).abs().max() < CLOSE
        padded, real = F.pad(ids, (5, 0)), F.pad(torch.ones_like(ids), (5, 0))
        places = (real.cumsum(-1) - 1).clamp(min=0)
        assert (
            model(input_ids=padded, attention_mask=real, position_ids=places).logits[:, 5:] - want
        ).abs().max() < CLOSE
        places = torch.cat([torch.arange(20), torch.arange(28)])[None]
        packed = model(input_ids=ids, position_ids=places, use_cache=False).logits
        alone = torch.cat([model(input_ids=part, use_cache=False).logits for part in (ids[:, :20], ids[:, 20:])], 1)
        assert (packed - alone).abs().max() < CLOSE
        given = dict(
            max_new_tokens=8,
            min_new_tokens=8,
            do_sample=False,
            pad_token_id=0,
            output_logits=True,
            return_dict_in_generate=True,
        )
        from transformers import DynamicCache

        cache = {"past_key_values": DynamicCache()}
        made = model.generate(ids[:, :20], attention_mask=torch.ones(1, 20), **given, **cache)
        steps = model(input_ids=made.sequences[:, :-1], use_cache=False).logits[0, 19:]
        assert (torch.cat(made.logits) - steps).abs().max() < CLOSE


def proofs_of_transformers():
    import maskloom.integrations.transformers as plugged

    plugged.register()
    if not hasattr(language_models()["llama"](), "set_attn_implementation"):
        print("left out: this transformers sets no implementation of a model that is there")
        return
    torch.manual_seed(0)
    for name in ("llama", "mistral", "gemma2"):
        model = language_models()[name]().eval()
        inputs = dict(input_ids=torch.randint(3, 32, (1, TOKENS)))
        model.set_attn_implementation("maskloom")
        found = maskloom.integrations.proof(model, inputs)
        assert found.ok and found.calls == 2 and 0 < len(found.changed) < TOKENS, found
        model.set_attn_implementation("near")
        found = maskloom.integrations.proof(model, inputs, mask=dense(near)[0, 0])
        assert found.ok, found
        not_proved(model, inputs)
    # one registry alone: the mask does not arrive
    from transformers import AttentionInterface

    AttentionInterface.register("half", plugged._attention(None))
    model = language_models()["llama"]().eval()
    model.set_attn_implementation("half")
    why = refused(lambda: model(input_ids=torch.randint(3, 32, (1, TOKENS))), "no mask arrived")
    assert isinstance(why, maskloom.integrations.MaskLost)
    refused(lambda: plugged.register("sdpa"), "of transformers")
    # as before 4.53: an older one has no registry of masks
    import transformers

    kept = sys.modules["transformers"]
    sys.modules["transformers"] = SimpleNamespace(AttentionInterface=transformers.AttentionInterface)
    try:
        refused(plugged.register, "no registry", "4.53")
    finally:
        sys.modules["transformers"] = kept


def not_proved(model, inputs):
    """A mask that is not the model's, a narrower and a wider one; attention that another function took."""
    proof = maskloom.integrations.proof
    model.set_attn_implementation("maskloom")
    refused(lambda: proof(model, inputs, token=20, mask=torch.eye(TOKENS).bool()), "rows changed")
    both = torch.ones(TOKENS, TOKENS, dtype=torch.bool)
    refused(lambda: proof(model, inputs, token=20, mask=both), "did not change")
    model.set_attn_implementation("eager")
    refused(lambda: proof(model, inputs), "no attention call")


def flux(kind):
    model = kind(
        patch_size=1, in_channels=8, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8), guidance_embeds=False,
    )  # fmt: skip
    ids = torch.zeros(36, 3)
    ids[:, 1], ids[:, 2] = torch.arange(36) // 6, torch.arange(36) % 6
    inputs = dict(
        hidden_states=torch.randn(1, 36, 8), encoder_hidden_states=torch.randn(1, 12, 32), img_ids=ids,
        pooled_projections=torch.randn(1, 32), timestep=torch.tensor([0.3]), txt_ids=torch.zeros(12, 3),
        return_dict=False,
    )  # fmt: skip
    return model, inputs


def wan():
    from diffusers import WanTransformer3DModel

    model = WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4, text_dim=16,
        freq_dim=16, ffn_dim=32, num_layers=2, cross_attn_norm=True, rope_max_seq_len=32,
    )  # fmt: skip
    inputs = dict(
        hidden_states=torch.randn(1, 4, 3, 8, 8), timestep=torch.tensor([5]),
        encoder_hidden_states=torch.randn(1, 12, 16), return_dict=False,
    )  # fmt: skip
    return model, inputs


def of_diffusers():
    import maskloom.integrations.diffusers as plugged

    plugged.install(), plugged.install()
    from diffusers import FluxTransformer2DModel
    from diffusers.models.attention_dispatch import AttentionBackendName, dispatch_attention_fn

    assert AttentionBackendName("maskloom") is AttentionBackendName.MASKLOOM
    mask = maskloom.create_block_mask(near, None, None, TOKENS, TOKENS, device="cpu")
    model, inputs = wan()
    model.set_attention_backend("maskloom")
    with plugged.masked(mask) as given:
        model(**inputs)
    assert given.calls == 2 and given.others == {(48, 12): 2}, (given.calls, given.others)
    refused(lambda: lost(plugged, mask, wan), "no call over 48 x 48 tokens had the mask")
    refused(lambda: plugged.masked(near).__enter__(), "block_mask is a function")
    refused(lambda: plugged.masked(score_mod=near, lengths=("a", 3)).__enter__(), "lengths is")
    # a token of the image: 12 of text go before it
    model, inputs = flux(FluxTransformer2DModel)
    model.eval().set_attention_backend("maskloom")
    with plugged.masked(mask):
        proved = maskloom.integrations.proof(model, inputs, change=other_pixel, token=9, offset=12)
    assert proved.ok and proved.calls == 2, proved
    # every argument of the dispatcher
    q, k, v = (torch.randn(2, TOKENS, 2, 16) for _ in range(3))
    keys = torch.rand(2, TOKENS) > 0.3
    for more in (
        dict(is_causal=True), dict(attn_mask=keys), dict(attn_mask=dense(near)),
        dict(attn_mask=torch.randn(2, 1, 1, TOKENS)), dict(attn_mask=torch.randn(2, 2, TOKENS, TOKENS), scale=0.3),
    ):  # fmt: skip
        got = dispatch_attention_fn(q, k, v, **more, backend=AttentionBackendName.MASKLOOM)
        if more.get("attn_mask") is keys:
            more = dict(attn_mask=keys[:, None, None])
        want = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), **more).transpose(1, 2)
        assert (got - want).abs().max() < CLOSE, more.keys()
    refused(lambda: dispatch_attention_fn(q, k, v, dropout_p=0.5, backend=AttentionBackendName.MASKLOOM), "dropout")
    split = SimpleNamespace(context_parallel_config=SimpleNamespace())
    refused(lambda: plugged._attention(q, k, v, _parallel_config=split), "context parallelism")


def lost(plugged, mask, build):
    """A model of another backend: the mask is in no call."""
    model, inputs = build()
    model.set_attention_backend("native")
    with plugged.masked(mask):
        model(**inputs)


def other_pixel(inputs, token):
    changed = inputs["hidden_states"].clone()
    changed[0, token] += 1.0
    return {**inputs, "hidden_states": changed}


def of_torch_sdpa():
    import maskloom.integrations.torch_sdpa as plugged

    if not hasattr(torch.nn.attention, "register_flash_attention_impl"):
        refused(plugged.register, "no registry")
        return
    from torch.nn.attention import activate_flash_attention_impl, restore_flash_attention_impl

    q, k, v = (torch.randn(2, 2, TOKENS, 16, requires_grad=True) for _ in range(3))
    weights = torch.randn(2, 2, TOKENS, 16)

    def run(**more):
        out = F.scaled_dot_product_attention(q, k, v, **more)
        return [out.detach(), *torch.autograd.grad((out * weights).sum(), (q, k, v))]

    window = dense(lambda b, h, q_idx, kv_idx: (q_idx >= kv_idx) & (q_idx - kv_idx < 7))
    ways = (dict(), dict(is_causal=True), dict(attn_mask=dense(near)), dict(scale=0.2))
    want = [run(**way) for way in ways]
    near_want = run(attn_mask=window)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plugged.register()
        activate_flash_attention_impl("maskloom")
    try:
        with maskloom.integrations._calls.recorded() as seen:
            got = [run(**way) for way in ways]
        # where the gradient is PyTorch's, it computes the call again
        once = hasattr(torch.library, "get_kernel")
        assert len(seen) == (1 if once else 2) * len(ways), len(seen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plugged.register(window=7)
            activate_flash_attention_impl("maskloom")
        near_got = run(is_causal=True)
        late = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    finally:
        restore_flash_attention_impl()
    # a gradient is that of the call's own forward pass, whatever is active by then
    gradients = torch.autograd.grad((late * weights).sum(), (q, k, v)) if once else near_want[1:]
    assert max((x - y).abs().max() for x, y in zip(gradients, near_want[1:], strict=True)) < CLOSE
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        activate_flash_attention_impl("maskloom")
    try:
        refused(lambda: torch.autograd.grad(theirs.sum(), q), "no window of Maskloom", "a window of 7")
    finally:
        restore_flash_attention_impl()
    for a, b in zip([*got, near_got], [*want, near_want], strict=True):
        assert max((x - y).abs().max() for x, y in zip(a, b, strict=True)) < CLOSE
    with maskloom.integrations._calls.recorded() as seen:
        assert torch.equal(run()[0], want[0][0]) and not seen, "PyTorch's own again"
    refused(lambda: plugged.register(window=0), "window is 0")


def of_sdnq():
    from maskloom.integrations import sdnq

    def tiles(b, h, q_idx, kv_idx):
        return (q_idx // 16 >= kv_idx // 16) & (kv_idx // 16 != h)

    given = sdnq.block_mask(tiles, TOKENS + 7, TOKENS, H=2, block=(16, 16), device="cpu")
    want = dense(tiles, 1, 2, 64)[:, :, ::16, ::16][..., :3]
    assert given["block_mask"].bool().equal(want) and (given["block_mask_m"], given["block_mask_n"]) == (16, 16)
    refused(lambda: sdnq.block_mask(near, TOKENS, TOKENS, block=(16, 16), device="cpu"), "cuts", "16 x 16")
    cells = dense(near)[0, 0].view(3, 16, 3, 16).transpose(1, 2).flatten(2)
    for partial, kept in (("keep", cells.any(-1)), ("drop", cells.all(-1))):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = sdnq.block_mask(near, TOKENS, TOKENS, block=(16, 16), partial=partial, device="cpu")
        assert found["block_mask"][0, 0].bool().equal(kept) and "the mask cuts" in str(said[0].message)
    whole = maskloom.create_block_mask(tiles, 1, 2, 64, TOKENS, device="cpu")
    assert sdnq.block_mask(whole, block=(16, 16), device="cpu")["block_mask"].bool().equal(want)
    refused(lambda: sdnq.block_mask(near), "not given")


def of_hub():
    from maskloom.integrations import hub

    design = maskloom.from_design("packed_documents")
    with tempfile.TemporaryDirectory() as folder:
        where = hub.write(design, folder, "documents-mask")
        if importlib.util.find_spec("kernels"):
            os.environ["HF_HUB_OFFLINE"] = "1"
            from kernels import get_local_kernel

            kernel = get_local_kernel(where, backend="cpu")
            print("loaded by kernels' get_local_kernel")
        else:
            file = os.path.join(folder, "build", "torch-cpu", "__init__.py")
            spec = importlib.util.spec_from_file_location("documents_mask", file)
            kernel = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(kernel)
        q_idx, kv_idx = torch.randint(0, design.q_len, (2, 5000))
        zero = torch.zeros((), dtype=torch.int64)
        assert kernel.mask_mod(zero, zero, q_idx, kv_idx).equal(design.mask_mod(zero, zero, q_idx, kv_idx))
        with open(os.path.join(folder, "build", "torch-cuda", "__init__.py")) as text:
            assert "import maskloom" not in text.read()
    near_design = maskloom.from_design("sliding_window", lengths=TOKENS)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(hub.write(near_design, folder, "near"), "build", "torch-cpu", "__init__.py")
        space = {}
        with open(file) as text:
            exec(compile(text.read(), file, "exec"), space)
        q, k, v = (torch.randn(1, 2, TOKENS, 16) for _ in range(3))
        want = F.scaled_dot_product_attention(q, k, v, attn_mask=dense(near_design.mask_mod))
        assert (space["attend"](q, k, v) - want).abs().max() < CLOSE
    scaled = maskloom.from_design("t5_encoder", lengths=TOKENS)
    with tempfile.TemporaryDirectory() as folder:
        space = {}
        with open(os.path.join(hub.write(scaled, folder, "scaled"), "build", "torch-cpu", "__init__.py")) as text:
            exec(compile(text.read(), "scaled", "exec"), space)
        q, k, v = (torch.randn(scaled.batch, scaled.heads, TOKENS, 16) for _ in range(3))
        mask = None if scaled.mask_mod is None else scaled.block_mask(device="cpu")
        want = maskloom.flex_attention(q, k, v, scaled.score_mod, mask, scaled.scale)
        assert scaled.scale == 1.0 and (space["attend"](q, k, v) - want).abs().max() < CLOSE
    refused(lambda: hub.write(design, ".", "Bad Name"), "no name of a kernel")
    refused(lambda: hub.write(design, ".", "name", version=0), "version is 0")


def of_comfyui():
    from maskloom.integrations import comfyui

    mask = maskloom.create_block_mask(near, None, None, TOKENS, TOKENS, device="cpu")
    override = comfyui.override(mask)
    calls = []

    def theirs(q, k, v, heads, mask=None, attn_precision=None, skip_reshape=False, skip_output_reshape=False, **more):
        calls.append(more)
        q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)

    x = torch.randn(2, TOKENS, 32)
    split = x.unflatten(-1, (2, 16)).transpose(1, 2)
    want = F.scaled_dot_product_attention(split, split, split, dense(near))
    bias = torch.randn(TOKENS, TOKENS)
    with_bias = F.scaled_dot_product_attention(split, split, split, bias.masked_fill(~dense(near), -torch.inf))
    got = override(theirs, x, x, x, 2, attn_precision=None, transformer_options={})
    assert (got - want.transpose(1, 2).flatten(2)).abs().max() < CLOSE
    got = override(theirs, split, split, split, 2, skip_reshape=True, skip_output_reshape=True)
    assert (got - want).abs().max() < CLOSE
    for mask in (bias, bias[None].expand(2, -1, -1), bias[None, None]):
        got = override(theirs, x, x, x, 2, mask, skip_output_reshape=True)
        assert (got - with_bias).abs().max() < CLOSE
    keys = torch.rand(TOKENS, TOKENS) > 0.1
    keys.fill_diagonal_(True)
    got = override(theirs, x, x, x, 2, keys, skip_output_reshape=True)
    assert (got - F.scaled_dot_product_attention(split, split, split, dense(near) & keys)).abs().max() < CLOSE
    assert override.calls == 6 and not calls
    other = torch.randn(2, 9, 32)
    assert override(theirs, x, other, other, 2).equal(theirs(x, other, other, 2)) and override.others == {
        "48 x 9 tokens": 1
    }
    override(theirs, x, x, x, 2, something=1)
    assert "the call brings something" in override.others and override.calls == 6
    refused(comfyui.override, "neither block_mask nor lengths")


def of_dense_masks():
    """A dense mask: in inference mode, in several threads, of another shape or dtype than a mask's."""
    from maskloom.integrations import _calls

    with torch.inference_mode():
        mask = torch.rand(1, 1, 32, 32) > 0.5
        for _ in range(2):
            found = _calls.of_dense(mask, 2, 4, 32, 32).mask_mod
            assert torch.equal(dense(found, tokens=32), mask)
            mask.logical_not_()
    for wrong, word in (
        (torch.ones(2, 32, 32, dtype=torch.bool), "(2, 32, 32)"),
        (torch.ones(3, 1, 32, 32, dtype=torch.bool), "(3, 1, 32, 32)"),
        (torch.ones(32, dtype=torch.int64), "torch.int64"),
    ):
        refused(lambda wrong=wrong: _calls.of_dense(wrong, 2, 4, 32, 32), word)
        refused(lambda wrong=wrong: _calls.added(wrong, (2, 4, 32, 32)), word)
    failed = []

    def work():
        try:
            for _ in range(60):
                _calls.of_dense(torch.rand(32, 32) > 0.5, 1, 1, 32, 32)
        except Exception as why:
            failed.append(why)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert not failed, failed


def masks_of_transformers():
    """A mask of one's own is in every layer or it is told; a compiled model has its masks as a plain one."""
    import maskloom.integrations.transformers as plugged
    import transformers

    plugged.register("near", mask_mod=near)
    sizes = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    # its layers ask transformers for no mask
    tower = transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**sizes, image_size=16, patch_size=4)).eval()
    tower.set_attn_implementation("near")
    refused(lambda: tower(pixel_values=torch.randn(1, 3, 16, 16)), "SiglipAttention", "mask_mod did not arrive")
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**sizes, num_key_value_heads=1, vocab_size=64)
    ).eval()
    ids, mask = torch.randint(3, 64, (2, TOKENS)), torch.ones(2, TOKENS, dtype=torch.int64)
    mask[0, :9] = 0
    for name in (plugged.register(), "near"):
        model.set_attn_implementation(name)
        torch._dynamo.reset()
        compiled = torch.compile(model, backend="eager")
        for given in (mask, mask[:, 5:], None):
            call = dict(input_ids=ids if given is None else ids[:, -given.size(1) :], attention_mask=given)
            with torch.no_grad():
                assert (compiled(**call).logits - model(**call).logits).abs().max() < CLOSE
        with torch.inference_mode():
            whole = torch.rand(2, 1, TOKENS, TOKENS) > 0.3
            assert model(input_ids=ids, attention_mask=whole).logits.isfinite().all()


def checkpoints_of_diffusers():
    """What a backward pass computes again has the mask of its own forward pass."""
    import maskloom.integrations.diffusers as plugged

    plugged.install()
    from diffusers import WanTransformer3DModel

    model = WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4, text_dim=16,
        freq_dim=16, ffn_dim=32, num_layers=2, rope_max_seq_len=32,
    )  # fmt: skip
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model.set_attention_backend("maskloom")
    inputs = dict(
        hidden_states=torch.randn(1, 4, 3, 8, 8),
        timestep=torch.tensor([5]),
        encoder_hidden_states=torch.randn(1, 12, 16),
    )
    masks = [maskloom.create_block_mask(mod, None, None, 48, 48, device="cpu") for mod in (near, causal)]
    wanted = dict(model.named_parameters())

    def gradients(checkpoint):
        """Of a call with one mask, a call with another and one without, in one backward pass inside of a fourth."""
        model.disable_gradient_checkpointing()
        if checkpoint is not None:
            model.enable_gradient_checkpointing(checkpoint)
        losses = []
        for mask in masks:
            with plugged.masked(mask):
                losses.append(model(**inputs).sample.square().mean())
        losses.append(model(**inputs).sample.square().mean())
        model.zero_grad()
        with plugged.masked(masks[0]) as given:
            given.calls = 1
            (losses[0] + 2 * losses[1] + 3 * losses[2]).backward()
        return [parameter.grad for parameter in wanted.values()]

    want = gradients(None)
    for reentrant in (False, True):
        # the second checkpoint is inside of the first
        once = lambda function, *args, r=reentrant: torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=r)
        for way in (once, lambda function, *args, once=once: once(lambda *args: once(function, *args), *args)):
            for got, other in zip(gradients(way), want, strict=True):
                assert (got - other).abs().max() <= 1e-4 * other.abs().max() + 1e-7, f"reentrant={reentrant}"
    model.disable_gradient_checkpointing()
    # a backward pass makes a call again in a way that is not known
    x = torch.randn(1, 48, 2, 16, requires_grad=True)

    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return plugged._attention(x, x, x)

        @staticmethod
        def backward(ctx, d_out):
            return plugged._attention(d_out, d_out, d_out)

    with plugged.masked(masks[0]):
        out = Again.apply(x)
    refused(lambda: out.sum().backward(), "outside of `masked`")


def lists_without_a_mod():
    """A block mask that is its lists keeps them where a model's own mask is added."""
    import maskloom.integrations.diffusers as plugged
    from torch.nn.attention import flex_attention as flex

    counts = torch.ones(1, 1, 3, dtype=torch.int32)
    indices = torch.tensor([2, 0, 1], dtype=torch.int32).view(1, 1, 3, 1).expand(-1, -1, -1, 3).contiguous()
    blocks = flex.BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=16)
    x, keys = torch.randn(1, TOKENS, 2, 16), torch.rand(1, 1, 1, TOKENS) > 0.3
    listed = lambda b, h, q_idx, kv_idx: torch.tensor([2, 0, 1])[q_idx // 16] == kv_idx // 16
    with plugged.masked(blocks):
        got = plugged._attention(x, x, x, attn_mask=keys)
    heads = x.transpose(1, 2)
    kept = dense(listed) & keys
    want = F.scaled_dot_product_attention(heads, heads, heads, kept).transpose(1, 2)
    assert torch.where(kept.any(-1).view(1, -1, 1, 1), got - want, 0.0).abs().max() < CLOSE


def main():
    torch.manual_seed(0)
    for check in (of_torch_sdpa, of_sdnq, of_hub, of_comfyui, of_dense_masks):
        check()
        print(f"ok {check.__name__}", flush=True)
    for library, checks in (
        ("transformers", (masks_in_place_of_the_pattern, masks_of_transformers, proofs_of_transformers)),
        ("diffusers", (of_diffusers, checkpoints_of_diffusers, lists_without_a_mod)),
    ):
        for check in checks if library not in MISSING else ():
            try:
                check()
            except maskloom.MaskloomError as why:
                # a former library without a registry is refused in words that name the version
                if package.VERSION >= package.NEWEST or why.code != library or "or newer" not in why.hint:
                    raise
                print(f"{check.__name__}: refused: {why}", flush=True)
                continue
            print(f"ok {check.__name__}", flush=True)
    if MISSING:
        print(f"skipped: no {' and no '.join(MISSING)}")
        sys.exit(77)
    print("every integration has the mask")


main()
