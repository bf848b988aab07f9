"""The transformers adapter in use: generation, packing, sinks, towers next to the text. Run by behaviour.py."""

import families
import masks
import torch
from exports import CLOSE, adapter, mask, refused
from matrix import apart, eager_by_hand, sdpa_by_hand


def hf(name, kind="sinks", **use):
    model, inputs, _ = families.built(name)
    return model, inputs, adapter(kind, "transformers").use(model, **use)


def generated_tokens_are_those_of_a_step_by_step_run():
    for name in ("llama", "mistral", "gemma2"):
        model, inputs, handle = hf(name)
        ids = inputs["input_ids"][:1, :40]
        with torch.no_grad():
            want = ids
            for _ in range(24):
                want = torch.cat([want, model(input_ids=want, use_cache=False).logits[:, -1:].argmax(-1)], dim=1)
            given = dict(max_new_tokens=24, min_new_tokens=24, do_sample=False, pad_token_id=0)
            got = model.generate(ids, attention_mask=torch.ones_like(ids), **given)
            static = model.generate(ids, attention_mask=torch.ones_like(ids), cache_implementation="static", **given)
        assert torch.equal(got, want), name
        if name == "llama":
            assert torch.equal(static, want), "static cache"
        handle.remove()


def a_cache_of_chunks_keeps_what_the_design_reads():
    """Llama 4 drops the keys of chunks that ended."""
    import transformers

    if not hasattr(transformers, "Llama4TextConfig"):
        print("left out: this transformers has no Llama 4")
        return
    torch.manual_seed(0)
    config = transformers.Llama4TextConfig(
        **families.SIZES, head_dim=16, attention_chunk_size=9, num_local_experts=2, intermediate_size_mlp=32,
        no_rope_layers=[1, 0], bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = transformers.Llama4ForCausalLM(config).eval()
    handle = adapter("sinks", "transformers").use(model, strict=True)
    ids = torch.randint(3, 32, (1, 40))
    given = dict(max_new_tokens=12, min_new_tokens=12, do_sample=False, pad_token_id=0)
    given |= dict(output_logits=True, return_dict_in_generate=True)
    with torch.no_grad():
        got = model.generate(ids, attention_mask=torch.ones_like(ids), **given)
        want = model(input_ids=got.sequences[:, :-1], use_cache=False).logits[0, 39:]
    assert apart(torch.cat(got.logits), want) < CLOSE
    handle.remove()


def steps_of_a_generation_compile_nothing():
    model, inputs, handle = hf("llama")
    import maskloom_sidecar.attention as attention

    real, lengths = attention.flex_attention, []

    def watching(query, *args, **kwargs):
        lengths.append(query.shape[2])
        return real(query, *args, **kwargs)

    attention.flex_attention = watching
    try:
        model.generate(
            inputs["input_ids"][:1, :40], max_new_tokens=6, min_new_tokens=6, do_sample=False, pad_token_id=0
        )
    finally:
        attention.flex_attention = real
    assert lengths == [40, 40], lengths
    handle.remove()


def a_static_cache_takes_padding():
    model, inputs, handle = hf("llama")
    ids, real = inputs["input_ids"][:, :40], inputs["attention_mask"][:, :40]
    given = dict(attention_mask=real, max_new_tokens=20, min_new_tokens=20, do_sample=False, pad_token_id=0)
    got = model.generate(ids, cache_implementation="static", **given)
    assert torch.equal(got, model.generate(ids, **given))
    handle.remove()


def packed_documents_do_not_see_each_other():
    model, inputs, handle = hf("llama")
    ids = inputs["input_ids"][:1]
    places = torch.cat([torch.arange(30), torch.arange(50)])[None]
    with torch.no_grad():
        got = model(input_ids=ids, position_ids=places, use_cache=False).logits
        alone = torch.cat([model(input_ids=ids[:, :30]).logits, model(input_ids=ids[:, 30:]).logits], dim=1)
        changed = ids.clone()
        changed[:, :30] = (changed[:, :30] - 2) % 29 + 3
        after = model(input_ids=changed, position_ids=places, use_cache=False).logits
    assert torch.equal(after[:, 30:], got[:, 30:]) and not torch.equal(after[:, :30], got[:, :30])
    assert apart(got, alone) < CLOSE
    proof = handle.verify(dict(input_ids=ids, position_ids=places, use_cache=False))
    assert proof.ok, proof
    handle.remove()


def unselected_layers_are_the_models_own():
    for name in ("gemma2", "gpt_oss", "llama"):
        model, inputs, handle = hf(name, layers=r"layers\.0\.")
        got = model(**inputs)[0]
        assert len(handle.layers) == 1
        handle.remove()
        want = None
        from transformers import AttentionMaskInterface

        plain = AttentionMaskInterface()["eager"]
        # by hand: the first layer's mask differs from the second's
        first = model.model.layers[0]
        given = []

        def swap(module, args, kwargs):
            padding = inputs["attention_mask"].bool()[:, None, None, :]
            kept = masks.from_padding(mask("sinks"), inputs["attention_mask"]) & padding
            kwargs["attention_mask"] = torch.where(kept, 0.0, torch.finfo(torch.float32).min)
            given.append(1)
            return args, kwargs

        hook = first.self_attn.register_forward_pre_hook(swap, with_kwargs=True)
        model.set_attn_implementation("eager")
        want = model(**inputs)[0]
        hook.remove()
        at = inputs["attention_mask"].bool()
        assert given and plain is not None and apart(got[at], want[at]) < CLOSE, (name, apart(got[at], want[at]))


def a_vision_tower_is_left_alone():
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    vision = CLIPVisionConfig(
        hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=16, patch_size=2
    )
    text = LlamaConfig(**families.SIZES, head_dim=16)
    model = LlavaForConditionalGeneration(
        LlavaConfig(vision_config=vision, text_config=text, image_token_index=31)
    ).eval()
    tower = model.model.vision_tower
    pixels = torch.randn(1, 3, 16, 16)
    before = tower(pixels)[0]
    handle = adapter("leaning", "transformers").use(model)
    assert torch.equal(tower(pixels)[0], before)
    assert all("language_model" in name for name in handle.layers), handle.layers
    ids = torch.randint(3, 30, (1, 80))
    assert handle.verify(dict(input_ids=ids)).ok
    handle.remove()


def _with_images(name):
    """A tiny PaliGemma or Gemma-3 whose image tokens attend both ways, and its inputs."""
    import transformers as hf

    tower = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, image_size=16)
    vision = hf.SiglipVisionConfig(**tower, patch_size=4, vision_use_head=False, projection_dim=32)
    sizes = dict(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, head_dim=16
    )
    if name == "paligemma":
        text = hf.GemmaConfig(**sizes, num_key_value_heads=1)
        model = hf.PaliGemmaForConditionalGeneration(
            hf.PaliGemmaConfig(
                vision_config=vision, text_config=text, image_token_index=63, projection_dim=32, hidden_size=32
            )
        )
        before, image = 0, 16
    else:
        text = hf.Gemma3TextConfig(**sizes, num_key_value_heads=2, sliding_window=64, query_pre_attn_scalar=16)
        model = hf.Gemma3ForConditionalGeneration(
            hf.Gemma3Config(vision_config=vision, text_config=text, mm_tokens_per_image=4, image_token_index=63)
        )
        before, image = 8, 4
    ids = torch.randint(1, 60, (1, 40))
    ids[:, before : before + image] = 63
    # PaliGemma: which tokens are the answer; Gemma-3: which are images
    types = torch.arange(40)[None] >= 30 if name == "paligemma" else ids == 63
    pixels = torch.randn(1, 3, 16, 16)
    return model.eval(), dict(
        input_ids=ids, pixel_values=pixels, attention_mask=torch.ones_like(ids), token_type_ids=types.long()
    )


def images_that_attend_both_ways_are_left_as_a_whole_or_replaced_as_a_whole():
    import os

    for name in ("paligemma", "gemma3"):
        model, inputs = _with_images(name)
        refused(lambda model=model, inputs=inputs: _strictly(model, inputs), "MASKLOOM_SIDECAR_REPLACE")
        four = dict(max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0)
        with torch.no_grad():
            plain = model.generate(**inputs, **four)
            handle = adapter("sinks", "transformers").use(model)
            assert torch.equal(model.generate(**inputs, **four), plain), name
            # neither the prompt nor the tokens that follow it
            assert all(layer["masked"] == 0 for layer in handle.report().values()), handle.report()
            handle.remove()
            os.environ["MASKLOOM_SIDECAR_REPLACE"] = "1"
            try:
                handle = adapter("sinks", "transformers").use(model, strict=True)
                assert handle.verify(inputs).ok
                got, want = model.generate(**inputs, **four), inputs["input_ids"]
                for _ in range(4):
                    more = torch.full((1, want.shape[1] - 40), int(name == "paligemma"))
                    step = dict(
                        input_ids=want,
                        attention_mask=torch.ones_like(want),
                        token_type_ids=torch.cat([inputs["token_type_ids"], more], dim=1),
                    )
                    logits = model(**inputs | step, use_cache=False).logits
                    want = torch.cat([want, logits[:, -1:].argmax(-1)], dim=1)
                assert torch.equal(got, want), name
                handle.remove()
            finally:
                del os.environ["MASKLOOM_SIDECAR_REPLACE"]


def _strictly(model, inputs):
    handle = adapter("sinks", "transformers").use(model, strict=True)
    try:
        model(**inputs)
    finally:
        handle.remove()


def what_is_not_known_is_refused_by_name():
    model, inputs, handle = hf("llama", strict=True)
    layer = model.model.layers[0].self_attn
    hidden = torch.randn(1, 80, 32)
    places = model.model.rotary_emb(hidden, torch.arange(80)[None])
    call = lambda **more: layer(hidden, position_embeddings=places, attention_mask=None, **more)
    refused(lambda: call(head_mask=torch.ones(2)), "head_mask")
    call(head_mask=None)
    handle.remove()


def layers_that_put_a_mask_of_their_own_to_the_given_one_have_both():
    """DeepSeek's indexer chooses keys; Doge weighs them. Layers without the design keep the model's pattern."""
    import transformers

    sizes = families.SIZES | dict(bos_token_id=1, eos_token_id=2)
    experts = dict(n_routed_experts=2, num_experts_per_tok=1, moe_intermediate_size=16, n_group=1, topk_group=1)
    latent = dict(kv_lora_rank=8, q_lora_rank=8, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=16)
    index = dict(index_topk=8, index_n_heads=2, index_head_dim=16)
    for name, more in (("DeepseekV32", experts | latent | index), ("Doge", {})):
        if not hasattr(transformers, f"{name}Config"):
            print(f"left out: this transformers has no {name}")
            continue
        torch.manual_seed(0)
        config = getattr(transformers, f"{name}Config")(**sizes | more)
        model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
        ids, real = torch.randint(3, 32, (2, 80)), torch.ones(2, 80, dtype=torch.long)
        real[1, -7:] = 0
        inputs = dict(input_ids=ids, attention_mask=real, use_cache=False)
        with torch.no_grad():
            plain = model(**inputs).logits
            handle = adapter("sinks", "transformers").use(model, layers=r"layers\.0\.", strict=True)
            got = model(**inputs).logits
            assert handle.verify(inputs).ok
            handle.remove()
            with sdpa_by_hand(model, lambda part: part == "model.layers.0.self_attn", mask("sinks")):
                want = model(**inputs).logits
        at = real.bool()
        assert apart(got[at], want[at]) < CLOSE and apart(got[at], plain[at]) > 1e-4, (name, apart(got[at], want[at]))


def a_position_bias_and_a_score_mod_are_not_mixed():
    model, inputs, handle = hf("t5_encoder", kind="leaning", strict=True)
    refused(lambda: model(**inputs), "position bias")
    # nor where nothing is trained
    with torch.no_grad():
        refused(lambda: model(**inputs), "position bias")
    handle.remove()


def tables_end_where_the_design_does():
    model, inputs, handle = hf("llama", kind="table")
    ids = torch.randint(3, 32, (1, 90))
    with torch.no_grad():
        got = model(input_ids=ids).logits
    assert "90 x 90" in str(handle.report())
    # each call that is left is counted once, without those from before
    proof = handle.verify(dict(input_ids=ids))
    assert (proof.masked, list(proof.left.values())) == (0, [2]) and not proof.ok, proof.left
    handle.remove()
    assert torch.equal(got, model(input_ids=ids).logits)


def a_score_mod_stands_where_its_queries_do():
    from transformers import LlamaConfig, LlamaForCausalLM

    # one layer, for the design masks nothing and later layers would see the future
    model = LlamaForCausalLM(LlamaConfig(**families.SIZES | {"num_hidden_layers": 1}, head_dim=16)).eval()
    handle = adapter("leaning", "transformers").use(model)
    ids = torch.randint(3, 32, (1, 80))
    with torch.no_grad():
        whole = model(input_ids=ids).logits
        cache = model(input_ids=ids[:, :60], use_cache=True).past_key_values
        rest = model(input_ids=ids[:, 60:], past_key_values=cache).logits
    assert apart(whole[:, 60:], rest) < CLOSE
    handle.remove()


def encoders_by_hand():
    model, inputs, handle = hf("bert", kind="near")
    got = model(**inputs)[0]
    handle.remove()
    with eager_by_hand(model, mask("near")):
        want = model(**inputs)[0]
    at = inputs["attention_mask"].bool()
    assert apart(got[at], want[at]) < CLOSE
