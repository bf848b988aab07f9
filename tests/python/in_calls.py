"""Each attention call of a watched layer: masked, or left with a reason, in every pass. Run by behaviour.py.

A generation's prompt is the beginning of the design, its queries are the newest tokens; nothing of one call is in another.
"""

import contextlib
import copy

import families
import torch
from exports import CLOSE, adapter, lines, mask, refused
from matrix import apart, eager_by_hand, sdpa_by_hand
from transformers import BartConfig, BartForConditionalGeneration, FalconConfig, FalconForCausalLM, T5Config, T5ForConditionalGeneration

STEPS = dict(max_new_tokens=12, min_new_tokens=12, do_sample=False, pad_token_id=0, output_logits=True, return_dict_in_generate=True)


def off_of_a_generation(model, plain, ids, name, padding=0, **more):
    """How far each step's logits are from one pass of `plain` over all tokens with the mask given by hand."""
    start = torch.nn.functional.pad(ids, (padding, 0))
    real = (torch.arange(start.shape[1]) >= padding).long()[None]
    with torch.no_grad():
        got = model.generate(start, attention_mask=real, **STEPS, **more)
        tokens = got.sequences[:, padding:-1]
        with eager_by_hand(plain, mask(name)):
            want = plain(input_ids=tokens, use_cache=False).logits[0, ids.shape[1] - 1 :]
    return apart(torch.cat(got.logits), want)


def a_prompt_is_the_beginning_of_a_design_of_fixed_shape():
    # a model, its cache and how its prompt is padded
    ways = [("llama", {}, 0), ("mistral", {}, 7), ("gpt_oss", {"use_cache": False}, 0), ("llama", {"cache_implementation": "static"}, 7)]
    for family, more, padding in ways:
        model, inputs, _ = families.built(family)
        handle = adapter("table", "transformers").use(model, strict=True)
        off = off_of_a_generation(model, families.built(family)[0], inputs["input_ids"][:1, :40], "table", padding, **more)
        assert off < CLOSE, (family, more, padding, off)
        assert not any(one["left"] for one in handle.report().values()), handle.report()
        handle.remove()


def a_step_beyond_the_design_is_left_and_told():
    model, inputs, _ = families.built("llama")
    handle = adapter("table", "transformers").use(model)
    model.generate(inputs["input_ids"][:1, :74], attention_mask=torch.ones(1, 74), **STEPS)
    said = str(handle.report())
    assert "the last 1 of 81 tokens of a sequence" in said and "80 tokens of a sequence" not in said, said
    handle.remove()
    # a padded prompt is the whole of its sequence
    handle = adapter("wide", "transformers").use(model)
    padded = torch.nn.functional.pad(inputs["input_ids"][:1, :40], (7, 0))
    model.generate(padded, attention_mask=(torch.arange(47) >= 7).long()[None], **STEPS)
    said = str(handle.report())
    assert "attention over 40 x 40 tokens" in said and "the last 47 of" not in said, said
    handle.remove()


def positions_count_from_the_padding():
    model, inputs, _ = families.built("llama")
    handle = adapter("sinks", "transformers").use(model, strict=True)
    ids = inputs["input_ids"][:, :30]
    real = torch.ones(2, 40, dtype=torch.long)
    real[0, :10], real[1, :4] = 0, 0
    padded = torch.zeros(2, 40, dtype=torch.long)
    padded[0, 10:], padded[1, 4:34], padded[1, 34:] = ids[0], ids[1], 5
    with torch.no_grad():
        got = model(input_ids=padded, attention_mask=real, position_ids=(real.cumsum(-1) - 1).clamp(min=0)).logits
        for row, first in ((0, 10), (1, 4)):
            alone = model(input_ids=padded[row : row + 1, first:]).logits
            assert apart(got[row : row + 1, first:], alone) < CLOSE, row
    assert handle.verify(dict(input_ids=padded, attention_mask=real)).ok
    with torch.no_grad():
        run = torch.compile(model, backend="aot_eager", fullgraph=True)
        again = run(input_ids=padded, attention_mask=real, position_ids=(real.cumsum(-1) - 1).clamp(min=0), use_cache=False).logits
    assert apart(again[real.bool()], got[real.bool()]) < CLOSE
    handle.remove()


def documents_of_one_model_are_not_in_another():
    policy, inputs, _ = families.built("llama")
    reference, _, _ = families.built("llama")
    ids = inputs["input_ids"][:1]
    places = torch.cat([torch.arange(30), torch.arange(50)])[None]
    handle = adapter("sinks", "transformers").use(policy)
    with torch.no_grad():
        want = policy(input_ids=ids).logits
        reference(input_ids=ids, position_ids=places, use_cache=False)
        assert torch.equal(policy(input_ids=ids).logits, want)
        # a call that fails between the mask's creation and its use leaves nothing behind either
        packed = policy(input_ids=ids, position_ids=places, use_cache=False).logits
        assert apart(packed, want) > 1e-3 and torch.equal(policy(input_ids=ids).logits, want)
    handle.remove()


def strict_judges_every_pass():
    model, inputs, _ = families.built("llama")
    handle = adapter("sinks", "transformers").use(model, strict=True)
    with torch.no_grad():
        model(**inputs)
        model.set_attn_implementation("eager")
        refused(lambda: model(**inputs), "called no watched attention")
    handle.remove()
    unet, inputs, _ = families.built("unet")
    for strict in (True, False):
        handle = adapter("near").use(unet, strict=strict)
        with torch.no_grad():
            unet(**inputs)
            unet.set_attention_slice("auto")
            if strict:
                refused(lambda: unet(**inputs), "called no watched attention")
            else:
                unet(**inputs)
                assert "called no watched attention" in str(handle.report())
        unet.set_default_attn_processor()
        handle.remove()


class CachedAttention(torch.nn.Module):
    """Attention written by hand, with a cache of its own."""

    def __init__(self):
        super().__init__()
        self.qkv, self.cache = torch.nn.Linear(32, 96), None

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, 16).permute(2, 0, 3, 1, 4)
        if self.cache is not None:
            k, v = torch.cat([self.cache[0], k], 2), torch.cat([self.cache[1], v], 2)
        self.cache = k, v
        return torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.ModuleList(CachedAttention() for _ in range(2))

    def forward(self, x):
        for one in self.attention:
            x = x + one(x)
        return (x,)


def queries_of_a_models_own_cache_are_the_newest_tokens():
    torch.manual_seed(0)
    for alibi in (False, True):
        config = FalconConfig(vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, alibi=alibi, multi_query=False)
        model = FalconForCausalLM(config).eval()
        handle = adapter("table", "transformers").use(model, strict=True)
        ids = torch.randint(3, 32, (1, 40))
        with torch.no_grad():
            got = model.generate(ids, attention_mask=torch.ones_like(ids), **STEPS)
            handle.remove()
            with sdpa_by_hand(model, lambda name: name.endswith("self_attention"), mask("table")):
                want = model(input_ids=got.sequences[:, :-1], use_cache=False).logits[0, 39:]
        assert apart(torch.cat(got.logits), want) < CLOSE, (alibi, apart(torch.cat(got.logits), want))
    model, x = Stack(), torch.randn(1, 60, 32)
    handle = adapter("table").use(model, strict=True, layers=r"attention\.\d")
    with torch.no_grad():
        steps = [model(x[:, first:last])[0] for first, last in ((0, 40), (40, 41), (41, 45), (45, 60))]
        handle.remove()
        for one in model.attention:
            one.cache = None
        with sdpa_by_hand(model, lambda name: name in ("attention.0", "attention.1"), mask("table")):
            want = model(x)[0]
    assert apart(torch.cat(steps, 1), want) < CLOSE


def frames_of_a_models_own_cache_are_the_newest_of_the_grid():
    model, x = Stack(), torch.randn(1, 80, 32)
    # as long as a chunk of frames is the grid's, its queries are the newest frames; otherwise it is left
    handle = adapter("wide").use(model, layers=r"attention\.\d", grid="assume")
    with torch.no_grad():
        for first, last in ((0, 64), (64, 80)):
            got = model(x[:, first:last])[0]
    counts = list(handle.report().values())
    assert [one["masked"] for one in counts] == [1, 1] and "64 x 64" in str(counts), counts
    first = model.attention[0]
    q, k, v = first.qkv(x).view(1, 80, 3, 2, 16).permute(2, 0, 3, 1, 4)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask("wide")).transpose(1, 2).flatten(2)
    first.cache = tuple(t[:, :, :64] for t in first.cache)
    with torch.no_grad():
        assert apart(first(x[:, 64:]), want[:, 64:]) < CLOSE and got is not None
        first.cache = tuple(t[:, :, :70] for t in first.cache)
        first(x[:, 70:])
    assert "the last 10 of 80 tokens of a sequence" in str(handle.report()), handle.report()
    handle.remove()


def attention_to_another_sequence_is_counted_apart():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Both()

        def forward(self, x, images):
            return (self.attention(x, images),)

    class Both(torch.nn.Module):
        def forward(self, x, images):
            attend = torch.nn.functional.scaled_dot_product_attention
            q, k = (t.unflatten(2, (2, 16)).transpose(1, 2) for t in (x, images))
            return (attend(q, q, q) + attend(q, k, k)).transpose(1, 2).flatten(2)

    model = Two()
    handle = adapter("table").use(model, strict=True, layers="attention")
    model(torch.randn(1, 80, 32), torch.randn(1, 9, 32))
    report = handle.report()["attention"]
    assert (report["masked"], report["aside"], report["left"]) == (1, 1, {}), report
    # keys that nothing explains are left, aloud
    one = model.attention.forward
    model.attention.forward = lambda x, images: one(x, torch.randn(1, 7, 32))
    refused(lambda: model(torch.randn(1, 80, 32), None), "80 queries over 7 keys")
    handle.remove()


def encoder_decoders_have_one_record_for_each_layer():
    sizes = dict(d_model=32, d_kv=16, d_ff=32, num_layers=1, num_decoder_layers=1, num_heads=2, vocab_size=32)
    model = T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=0)).eval()
    handle = adapter("table", "transformers").use(model, strict=True)
    assert sorted(handle.layers) == ["decoder.block.0.layer.0.SelfAttention", "encoder.block.0.layer.0.SelfAttention"], handle.layers
    with torch.no_grad():
        model(input_ids=torch.randint(3, 32, (1, 80)), decoder_input_ids=torch.randint(3, 32, (1, 80)))
    assert all(one["masked"] == 1 and not one["left"] for one in handle.report().values()), handle.report()
    handle.remove()


def a_design_from_one_sequence_to_another_is_in_cross_attention():
    sizes = dict(encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2)
    config = BartConfig(vocab_size=32, d_model=32, encoder_ffn_dim=32, decoder_ffn_dim=32, pad_token_id=0, **sizes)
    model = BartForConditionalGeneration(config).eval()
    real = torch.ones(2, 12, dtype=torch.long)
    real[0, :3] = 0
    inputs = dict(input_ids=torch.randint(3, 32, (2, 12)), decoder_input_ids=torch.randint(3, 32, (2, 80)), attention_mask=real)
    handle = adapter("cross", "transformers").use(model, strict=True)
    assert handle.layers == ["model.decoder.layers.0.encoder_attn"]
    with torch.no_grad():
        got = model(**inputs).logits
    handle.remove()
    with torch.no_grad(), _sdpa_of_lengths(mask("cross") & real.bool()[:, None, None, :]):
        assert apart(got, model(**inputs).logits) < CLOSE


@contextlib.contextmanager
def _sdpa_of_lengths(mask):
    """Each call of the mask's very lengths has it."""
    plain = torch.nn.functional.scaled_dot_product_attention

    def masked(query, key, value, attn_mask=None, **more):
        here = (query.shape[2], key.shape[2]) == mask.shape[2:]
        return plain(query, key, value, attn_mask=mask if here else attn_mask, **more)

    torch.nn.functional.scaled_dot_product_attention = masked
    try:
        yield
    finally:
        torch.nn.functional.scaled_dot_product_attention = plain


def learned_tensors_learn_in_a_model():
    model, inputs, _ = families.built("llama")
    ids = inputs["input_ids"]
    with lines() as said:
        adapter("biased", "transformers").use(model).remove()
    assert "bias keeps its exported values" in said.getvalue(), said.getvalue()
    use = adapter("biased", "transformers").use
    refused(lambda: use(model, learned={"bios": torch.zeros(80)}), "no tensor bios")
    refused(lambda: use(model, learned={"bias": torch.zeros(8)}), "(8,)")
    handle = use(model, strict=True, learned=True)
    bias = handle.learned["bias"]
    assert dict(model.named_parameters())["maskloom_d_biased_bias"] is bias
    loss = model(input_ids=ids, use_cache=False).logits.square().mean()
    (got,) = torch.autograd.grad(loss, [bias])
    # by hand: the bias as an additive mask
    own = bias.detach().clone().requires_grad_()
    places = torch.arange(80)
    added = torch.where(places[:, None] >= places, own[(places[:, None] - places).abs()], -torch.inf)[None, None]
    plain, _, _ = families.built("llama")
    plain.set_attn_implementation("eager")
    want_loss = plain(input_ids=ids, attention_mask=added, use_cache=False).logits.square().mean()
    (want,) = torch.autograd.grad(want_loss, [own])
    assert apart(loss, want_loss) < CLOSE and apart(got, want) < 1e-3 * want.abs().max() and want.abs().max() > 0
    # copies and saved models have the same tensor
    with torch.no_grad():
        before = model(input_ids=ids).logits
        twin = copy.deepcopy(model)
        dict(twin.named_parameters())["maskloom_d_biased_bias"].fill_(0.0)
        assert apart(twin(input_ids=ids).logits, before) > 1e-4 and torch.equal(model(input_ids=ids).logits, before)
        proof = handle.verify(dict(input_ids=ids))
    assert proof.ok, proof
    handle.remove()
    assert not [name for name, _ in model.named_parameters() if "maskloom" in name]


def the_main_sequence_is_found_by_whole_words():
    from maskloom_sidecar import layers

    class Part(torch.nn.Module):
        def __init__(self, **parts):
            super().__init__()
            for name, module in parts.items():
                setattr(self, name, module)

    model = Part(
        visual_transformer_blocks=torch.nn.ModuleList([Part(self_attention=CachedAttention())]),
        text_transformer_blocks=torch.nn.ModuleList([Part(self_attention=CachedAttention())]),
        visual=Part(attention=CachedAttention()),
    )
    assert [name for name, _ in layers.find(model)] == ["visual_transformer_blocks.0.self_attention"]
    assert layers.left_out(model) == {"text_transformer_blocks": 1, "visual": 1}
    assert "not in text_transformer_blocks (1 layers), visual (1 layers)" in layers.reported(model)
