"""What goes wrong in use: every way in which a mask could be missing from a model, or another one in it, without a word.

    python behaviour.py MASKLOOM WORK [NAME...]

MASKLOOM is the program; designs are exported into WORK. Each check compares with the mask given by hand.
"""

import contextlib
import copy
import importlib
import io
import logging
import os
import pickle
import subprocess
import sys
import threading
import traceback

import families
import torch
from matrix import apart, eager_by_hand, sdpa_by_hand, step

MASKLOOM, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CLOSE = 2e-5
SHAPE = ["--heads", "2", "--kv-heads", "2"]
WINDOW = "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx - kv_idx < {0}) & (kv_idx - q_idx < {0})\n"
GRID = "def mask_mod(b, h, q_idx, kv_idx):\n    return abs(q_idx // {0} % {1} - kv_idx // {0} % {1}) < 1\n"
CODE = {
    "near": WINDOW.format(6),
    "far": "def mask_mod(b, h, q_idx, kv_idx):\n    return abs(q_idx - kv_idx) > 20\n",
    "wide": GRID.format(8, 2),
    "tall": GRID.format(2, 8),
    "rows": "W = 10\ndef mask_mod(b, h, q_idx, kv_idx):\n    return abs(q_idx // W - kv_idx // W) < 2\n",
    "heads": "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < 8 + 30 * h\n",
    "leaning": "def score_mod(score, b, h, q_idx, kv_idx):\n    return score - 0.1 * abs(q_idx - kv_idx)\n",
    "sinks": "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & ((q_idx - kv_idx < 12) | (kv_idx < 4))\n",
    "table": (
        "import torch\ndoc = torch.arange(80) // 11\n"
        "def mask_mod(b, h, q_idx, kv_idx):\n    return (doc[q_idx] == doc[kv_idx]) & (q_idx >= kv_idx)\n"
    ),
    "cross": "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx + kv_idx) % 3 > 0\n",
}
AXES = {"wide": "video 5x2x8", "tall": "video 5x8x2"}
MORE = {"cross": ["--kv-seq", "12"]}
_made = {}


def export(name):
    """(folder, module) of a design over 80 tokens."""
    if name not in _made:
        folder = os.path.join(WORK, name)
        if not os.path.isdir(folder):
            os.makedirs(WORK, exist_ok=True)
            file = os.path.join(WORK, f"{name}.py")
            with open(file, "w") as out:
                out.write(CODE[name])
            size = ["--axes", AXES[name]] if name in AXES else ["--seq", "80"]
            size += [*SHAPE, "--head-dim", "64", *MORE.get(name, [])]
            command = [MASKLOOM, "export", file, *size, "--name", f"d_{name}", "--to", folder]
            ran = subprocess.run(command, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
        sys.path.insert(0, folder)
        _made[name] = folder, importlib.import_module(f"d_{name}")
    return _made[name]


def adapter(name, library="diffusers"):
    export(name)
    return importlib.import_module(f"d_{name}_{library}")


def mask(name):
    return export(name)[1].make_mask("cpu")


def by_hand(model, inputs, chosen, name):
    with sdpa_by_hand(model, chosen, mask(name)):
        return step(model, inputs)[0]


@contextlib.contextmanager
def lines():
    """What is said meanwhile."""
    out, log = io.StringIO(), logging.getLogger("maskloom")
    handler = logging.StreamHandler(out)
    log.addHandler(handler)
    try:
        yield out
    finally:
        log.removeHandler(handler)


def refused(call, word):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        assert word in str(error), error
        return
    raise AssertionError(f"not refused: {word}")


# ---- adapters


def a_second_design_is_applied_and_one_after_another_was_removed():
    model, inputs, chosen = families.built("flux")
    first = adapter("near").use(model)
    first.remove()
    second = adapter("far").use(model)
    assert apart(step(model, inputs)[0], by_hand(*families.built("flux"), "far")) < CLOSE
    third = adapter("near").use(model)
    assert apart(step(model, inputs)[0], by_hand(*families.built("flux"), "near")) < CLOSE
    third.remove()
    second.remove()


def designs_by_layer():
    model, inputs, _ = families.built("flux")
    one = adapter("near").use(model, layers=r"^transformer_blocks")
    two = adapter("far").use(model, layers=r"^single_transformer_blocks")
    got = step(model, inputs)[0]
    model2, _, _ = families.built("flux")
    double = lambda n: n.startswith("transformer_blocks") and n.endswith(".attn")
    single = lambda n: n.startswith("single") and n.endswith(".attn")
    with sdpa_by_hand(model2, double, mask("near")), sdpa_by_hand(model2, single, mask("far")):
        want = step(model2, inputs)[0]
    assert apart(got, want) < CLOSE
    assert sum(c["masked"] for c in one.report().values()) == 1 and sum(c["masked"] for c in two.report().values()) == 2


def portrait_is_not_landscape():
    for grid, right, wrong in (((5, 2, 8), "wide", "tall"), ((5, 8, 2), "tall", "wide")):
        torch.manual_seed(0)
        model, inputs, chosen = families.wan(grid)
        plain = step(model, inputs)[0]
        handle = adapter(wrong).use(model)
        assert torch.equal(step(model, inputs)[0], plain)
        assert any("grid" in reason for one in handle.report().values() for reason in one["left"]), handle.report()
        other = adapter(right).use(model)
        got = step(model, inputs)[0]
        other.remove()
        handle.remove()
        want = by_hand(model, inputs, chosen, right)
        assert apart(got, want) < CLOSE and apart(got, plain) > 1e-3


def strict_refuses_what_would_be_left():
    torch.manual_seed(0)
    model, inputs, _ = families.wan((5, 8, 2))
    handle = adapter("wide").use(model, strict=True)
    refused(lambda: model(**inputs), "grid")
    handle.remove()
    model, inputs, _ = families.sd3()
    inputs["encoder_hidden_states"] = torch.randn(2, 32, 32)
    handle = adapter("rows").use(model, strict=True)
    refused(lambda: model(**inputs), "96 x 96")


def a_grid_that_cannot_be_read_is_no_grid():
    class Block(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.scaled_dot_product_attention(x, x, x)

    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Block()

        def forward(self, x):
            return (self.attention(x),)

    model, x = Plain(), torch.randn(1, 2, 80, 16)
    handle = adapter("wide").use(model, layers="attention")
    assert torch.equal(model(x)[0], torch.nn.functional.scaled_dot_product_attention(x, x, x))
    assert "cannot be read" in str(handle.report())
    handle.remove()
    handle = adapter("wide").use(model, layers="attention", grid="assume")
    want = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask("wide"))
    assert apart(model(x)[0], want) < CLOSE
    handle.remove()


def compiled_before_and_after():
    model, inputs, chosen = families.built("flux")
    want = by_hand(*families.built("flux"), "near")
    with torch.no_grad():
        plain = model(**inputs)[0]
        run = torch.compile(model, backend="aot_eager")
        assert apart(run(**inputs)[0], plain) < CLOSE
        handle = adapter("near").use(model)
        assert apart(run(**inputs)[0], want) < CLOSE, "compiled before"
        again = torch.compile(model, backend="aot_eager", fullgraph=True)
        assert apart(again(**inputs)[0], want) < CLOSE, "fullgraph"
        assert all(one["compiled"] for one in handle.report().values())
        handle.remove()
        assert apart(run(**inputs)[0], plain) < CLOSE, "taken out"


def compiled_blocks_of_one_design_follow_the_grid():
    torch.manual_seed(0)
    model, inputs, chosen = families.wan((5, 2, 8))
    _, other, _ = families.wan((5, 8, 2))
    wants = by_hand(model, inputs, chosen, "wide"), by_hand(model, other, chosen, "tall")
    adapter("wide").use(model), adapter("tall").use(model)
    model.compile_repeated_blocks(fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        for _ in range(2):
            for given, want in zip((inputs, other), wants):
                assert apart(model(**given)[0], want) < CLOSE


def threads_do_not_mix_layers():
    model, inputs, chosen = families.built("flux")
    want = by_hand(*families.built("flux"), "near")
    handle = adapter("near").use(model)
    off = []

    def work():
        for _ in range(15):
            with torch.no_grad():
                off.append(apart(model(**inputs)[0], want))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handle.remove()
    assert len(off) == 45 and max(off) < CLOSE, max(off)


def checkpointing_and_copies_keep_the_design():
    model, inputs, chosen = families.built("flux")
    handle = adapter("near").use(model)
    got = step(model, inputs)
    copied = step(copy.deepcopy(model), inputs)
    model.enable_gradient_checkpointing()
    model.train()
    again = step(model, inputs)
    for other in (copied, again):
        assert apart(got[0], other[0]) < CLOSE
        assert max(apart(a, b) for a, b in zip(got[1], other[1])) < CLOSE
    handle.remove()


def models_and_masks_can_be_pickled():
    model, inputs, _ = families.built("flux")
    handle = adapter("near").use(model)
    got = step(model, inputs)[0]
    file = os.path.join(WORK, "model.pt")
    torch.save(model, file)
    assert torch.equal(step(torch.load(file, weights_only=False), inputs)[0], got)
    handle.remove()
    design = export("table")[1]
    block_mask = design.make_block_mask("cpu")
    found = pickle.loads(pickle.dumps((design.mask_mod, block_mask)))
    assert found[0] is design.mask_mod and torch.equal(found[1].to_dense(), block_mask.to_dense())
    code = (
        "import pickle, sys, torch; sys.path.insert(0, sys.argv[1]);"
        "mod = pickle.load(open(sys.argv[2], 'rb')); print(mod(0, 0, torch.tensor(12), torch.tensor(11)).item())"
    )
    file = os.path.join(WORK, "mod.pickle")
    with open(file, "wb") as out:
        pickle.dump(design.mask_mod, out)
    ran = subprocess.run([sys.executable, "-c", code, export("table")[0], file], capture_output=True, text=True)
    assert ran.stdout.strip() == "True", ran.stderr


def the_log_says_what_happened():
    model, inputs, _ = families.sd3()
    inputs["encoder_hidden_states"] = torch.randn(2, 32, 32)
    with lines() as said:
        handle = adapter("rows").use(model.eval())
        with torch.no_grad():
            model(**inputs)
    text = said.getvalue()
    assert "mask active in 0 of 2 layers" in text, text
    assert sum(c["masked"] for c in handle.report().values()) == 0
    assert sum(sum(c["left"].values()) for c in handle.report().values()) == 2
    handle.remove()


def cross_attention_takes_a_design():
    model, inputs, _ = families.built("unet")
    adapter("cross")
    handle = adapter("cross").use(model, strict=True)
    assert all(name.endswith("attn2") for name in handle.layers)
    proof = handle.verify(inputs)
    assert proof.ok and proof.from_dense > 1e-4, proof
    handle.remove()


def captured_tensors_compile_whole():
    design = export("table")[1]
    q, k, v = (torch.randn(1, 2, 80, 64) for _ in range(3))
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask("table"))
    with torch.no_grad():
        assert apart(design.attend(q, k, v, compiled=False), want) < CLOSE
        run = torch.compile(lambda *a: design.attend(*a), fullgraph=True, backend="aot_eager")
        assert apart(run(q, k, v), want) < CLOSE


def many_shapes_stay_fused():
    design = export("near")[1]
    real, compiled = torch.compile, []

    def counting(function, **kwargs):
        compiled.append(function)
        return real(function, backend="aot_eager", **kwargs)

    torch.compile = counting
    torch._dynamo.reset()
    before, torch._dynamo.config.fail_on_recompile_limit_hit = torch._dynamo.config.fail_on_recompile_limit_hit, True
    try:
        for length in range(20, 32):
            q = torch.randn(1, 2, length, 64)
            kept = mask("near")[..., :length, :length]
            want = torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=kept)
            for _ in range(2):
                with torch.no_grad():
                    assert apart(design.attend(q, q, q), want) < CLOSE
    finally:
        torch.compile = real
        torch._dynamo.config.fail_on_recompile_limit_hit = before
    assert len(compiled) == 12


def shapes_are_checked_in_words():
    design, table = export("heads")[1], export("table")[1]
    q = torch.randn(1, 2, 80, 64)
    refused(lambda: design.attend(q[:, :1], q[:, :1], q[:, :1], compiled=False), "each of 2 heads")
    refused(lambda: design.attend(q[..., :32], q[..., :32], q[..., :32], compiled=False), "head_dim of 64")
    long = torch.randn(1, 2, 90, 64)
    refused(lambda: table.attend(long, long, long, compiled=False), "80 x 80")
    refused(lambda: table.make_mask("cpu", 90, 90), "80 x 80")
    assert table.make_mask("cpu", 70, 70).shape[-2:] == (70, 70)


def pasted_grids_are_for_their_own_length():
    design = export("rows")[1]
    assert design.OTHER_LENGTHS == "shorter"
    model, inputs, _ = families.built("flux")
    plain = model(**inputs)[0]
    refused(lambda: design.make_mask("cpu", 168, 168), "80 x 80")
    assert plain.shape == (2, 64, 8)


def block_masks_hold_few_cells():
    # by its parts: no tensor larger than the band is ever made
    design = export("near")[1]
    import torch.nn.attention.flex_attention as flex

    largest, real = [0], flex.create_mask

    def watching(mod, batch, heads, q_len, kv_len, **kwargs):
        largest[0] = max(largest[0], q_len * kv_len)
        return real(mod, batch, heads, q_len, kv_len, **kwargs)

    design.create_mask = watching
    try:
        made = design.make_block_mask("cpu", 8192, 8192)
    finally:
        design.create_mask = real
    assert largest[0] <= 2**24 and made.shape[-2:] == (8192, 8192)
    small = real(design.mask_mod, None, None, 1000, 1000, device="cpu")
    plain = flex.create_block_mask(design.mask_mod, None, None, 1000, 1000, device="cpu", BLOCK_SIZE=design.BLOCK_SIZE)
    mine = design.make_block_mask("cpu", 1000, 1000)
    assert torch.equal(plain.to_dense(), mine.to_dense()) and plain.sparsity() == mine.sparsity() and small.any()
    assert torch.equal(plain.full_kv_num_blocks, mine.full_kv_num_blocks)


# ---- transformers


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
            kept = mask("sinks") & padding
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
    model = LlavaForConditionalGeneration(LlavaConfig(vision_config=vision, text_config=text, image_token_index=31)).eval()
    tower = model.model.vision_tower
    pixels = torch.randn(1, 3, 16, 16)
    before = tower(pixels)[0]
    handle = adapter("leaning", "transformers").use(model)
    assert torch.equal(tower(pixels)[0], before)
    assert all("language_model" in name for name in handle.layers), handle.layers
    ids = torch.randint(3, 30, (1, 80))
    assert handle.verify(dict(input_ids=ids)).ok
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


def a_position_bias_and_a_score_mod_are_not_mixed():
    model, inputs, handle = hf("t5_encoder", kind="leaning", strict=True)
    refused(lambda: model(**inputs), "position bias")
    handle.remove()


def tables_end_where_the_design_does():
    model, inputs, handle = hf("llama", kind="table")
    ids = torch.randint(3, 32, (1, 90))
    with torch.no_grad():
        got = model(input_ids=ids).logits
    assert "90 x 90" in str(handle.report())
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


# ---- the sidecar, in a process of its own

PRELUDE = "import sys; sys.path.append(sys.argv[1]); import torch\n"


def sidecar(code, *names, **environment):
    """(stdout, stderr, return code) of a script under the sidecar."""
    folders = os.pathsep.join(export(name)[0] for name in names)
    env = {k: v for k, v in os.environ.items() if not k.startswith("MASKLOOM")}
    env |= {"MASKLOOM_SIDECAR": folders, "PYTHONPATH": os.path.join(export(names[0])[0], "sidecar")} | environment
    here = os.path.dirname(os.path.abspath(__file__))
    ran = subprocess.run([sys.executable, "-c", PRELUDE + code, here], env=env, capture_output=True, text=True, cwd=WORK)
    return ran.stdout, ran.stderr, ran.returncode


FLUX = """
import families
model, inputs, _ = families.built("flux")
with torch.no_grad(): out = model(**inputs)[0]
print(float(out.double().sum()))
"""


def the_sidecar_says_so_when_nothing_was_watched():
    _, said, _ = sidecar("import diffusers.models.modeling_utils", "near")
    assert "the sidecar is loaded" in said and "at the end: no layer was watched" in said, said
    _, said, _ = sidecar(FLUX, "near", MASKLOOM_SIDECAR_LAYERS="no_such_layer")
    assert "no layer was watched" in said, said
    _, said, _ = sidecar(FLUX, "near", MASKLOOM_SIDECAR_MODELS="Fluxx*")
    assert "no layer was watched" in said, said
    code = "import diffusers, families\nmodel, inputs, _ = families.built('llama')\nmodel(**inputs)"
    _, said, _ = sidecar(code, "near")
    assert "LlamaForCausalLM is left as it is, because diffusers is in this process" in said, said
    _, said, status = sidecar("print(1)", "near")
    assert status == 0 and said == "", said


def the_sidecars_last_line_counts():
    _, said, _ = sidecar(FLUX, "near")
    assert "mask active in 3 layers of FluxTransformer2DModel" in said, said
    assert "at the end: FluxTransformer2DModel: 3 calls masked in 3 layers; 0 calls left as they are" in said, said


def a_strict_sidecar_stops():
    code = "import families\nmodel, inputs, _ = families.sd3()\ninputs['encoder_hidden_states'] = torch.randn(2, 32, 32)\nmodel(**inputs)"
    _, said, status = sidecar(code, "rows", MASKLOOM_SIDECAR_STRICT="1")
    assert status != 0 and "96 x 96 tokens is left as it is" in said, said


def wrong_settings_are_told_at_the_start():
    for name, value, word in (
        ("MASKLOOM_SIDECAR_LAYERS", "(", "regular expression"),
        ("MASKLOOM_SIDECAR", os.path.join(WORK, "nowhere"), "no sidecar.json"),
        ("MASKLOOM_SIDECAR_SHAPES", "all", "`any` or `exact`"),
    ):
        _, said, _ = sidecar("print(1)", "near", **{name: value})
        assert word in said, said
    code = "import os; os.chdir('/')\n" + FLUX
    env = {"MASKLOOM_SIDECAR": os.path.relpath(export("near")[0], WORK)}
    _, said, status = sidecar(code, "near", **env)
    assert status == 0 and "mask active in 3 layers" in said, said


def the_sidecar_tells_portrait_from_landscape():
    code = """
import families
for grid in ((5, 2, 8), (5, 8, 2)):
    torch.manual_seed(0)
    model, inputs, _ = families.wan(grid)
    print(model(**inputs)[0].double().sum().item())
"""
    got, said, status = sidecar(code, "wide", "tall", MASKLOOM_SIDECAR_STRICT="1")
    assert status == 0, said
    for line, grid, name in zip(got.split(), ((5, 2, 8), (5, 8, 2)), ("wide", "tall")):
        torch.manual_seed(0)
        want = by_hand(*families.wan(grid), name).double().sum().item()
        assert abs(float(line) - want) < 1e-3, (line, want)


def two_designs_for_the_same_call_are_neither():
    got, said, _ = sidecar(FLUX, "near", "far")
    assert "are made for the same 80 x 80 tokens and layers: choose one" in said, said
    model, inputs, _ = families.built("flux")
    assert abs(float(got) - model(**inputs)[0].double().sum().item()) < 1e-4


COMPILED = """
import families
model, inputs, _ = families.built("flux")
with torch.no_grad():
    want = model(**inputs)[0]
    run = torch.compile(model, fullgraph=True, backend="aot_eager")
    print((run(**inputs)[0] - want).abs().max().item() < 2e-5)
"""
KEPT = """
import families
model, inputs, _ = families.built("flux")
with torch.no_grad():
    want = model(**inputs)[0]
    exported = torch.export.export(model, (), inputs, strict=False)
    print((exported.module()(**inputs)[0] - want).abs().max().item() < 2e-5)
    torch.save(model, "sidecar.pt")
    print(torch.equal(torch.load("sidecar.pt", weights_only=False)(**inputs)[0], want))
import maskloom_sidecar
print(maskloom_sidecar.verify(model, inputs).ok)
"""


def the_sidecar_compiles_whole():
    got, said, status = sidecar(COMPILED, "near")
    assert status == 0 and got.split() == ["True"], (got, said[-3000:])
    assert "compiled into 3 layers" in said, said


def the_sidecar_exports_pickles_and_proves():
    got, said, status = sidecar(KEPT, "near")
    assert status == 0 and got.split() == ["True"] * 3, (got, said[-3000:])


def main():
    checks = [f for name, f in globals().items() if callable(f) and f.__module__ == "__main__" and f.__code__.co_argcount == 0]
    helpers = {lines.__name__, "main", "lines"}
    checks = [f for f in checks if f.__name__ not in helpers and "_" in f.__name__]
    wanted, bad = sys.argv[3:], 0
    if not all(importlib.util.find_spec(name) for name in ("diffusers", "transformers")):
        print("skipped: no diffusers and transformers")
        return
    os.makedirs(WORK, exist_ok=True)
    for check in checks:
        if wanted and check.__name__ not in wanted:
            continue
        try:
            check()
            print(f"ok {check.__name__}", flush=True)
        except Exception:
            bad += 1
            print(f"FAILED {check.__name__}\n{traceback.format_exc()}", flush=True)
    print(f"{bad} failed" if bad else "all behave")
    sys.exit(bad > 0)


main()
