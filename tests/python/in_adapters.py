"""The adapters in use: several designs, grids, compiled models, threads, copies, shapes. Run by behaviour.py."""

import copy
import importlib
import os
import pickle
import subprocess
import sys
import threading
from types import SimpleNamespace

import families
import torch
from exports import CLOSE, WORK, adapter, by_hand, export, lines, mask, preset, refused
from matrix import apart, sdpa_by_hand, step

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


def a_sequence_that_others_divide_is_left_or_refused():
    """PyTorch's context_parallel and diffusers' ring: a design has other positions there, and both are put back after."""
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 11):
        print("left out: context_parallel is read from PyTorch 2.11 on")
        return
    import torch.distributed as dist
    from torch.distributed.tensor.experimental import context_parallel

    model, inputs, _ = families.built("flux")
    handle = adapter("near").use(model, strict=True)
    want = step(model, inputs)[0]
    own = torch.nn.functional.scaled_dot_product_attention
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
        for _ in range(2):
            with context_parallel(mesh, buffers=[torch.zeros(1, 4)], buffer_seq_dims=[1]):
                refused(lambda: model(**inputs), "context_parallel")
            # PyTorch put its function back
            assert torch.nn.functional.scaled_dot_product_attention is own
            x = torch.randn(1, 2, 8, 16)
            assert type(torch.nn.functional.scaled_dot_product_attention(x, x, x)) is torch.Tensor
    finally:
        dist.destroy_process_group()
    ring = SimpleNamespace(context_parallel_config=SimpleNamespace(ring_degree=2, ulysses_degree=1))
    processors = [part.processor for part in model.modules() if hasattr(part, "processor")]
    for processor in processors:
        processor._parallel_config = ring
    refused(lambda: model(**inputs), "ring_degree=2")
    for processor in processors:
        processor._parallel_config = None
    assert torch.equal(step(model, inputs)[0], want)
    left = " ".join(reason for one in handle.report().values() for reason in one["left"])
    assert "context_parallel" in left and "ring_degree=2" in left, left
    handle.remove()


def a_pool_of_tokens_is_no_layer_of_the_main_sequence():
    """Mochi makes one token of its text by an attention of one query."""
    from diffusers import MochiTransformer3DModel

    torch.manual_seed(0)
    model = MochiTransformer3DModel(
        patch_size=2, **families.HEADS, num_layers=2, pooled_projection_dim=16, in_channels=4, text_embed_dim=16,
        time_embed_dim=8, activation_fn="swiglu", max_sequence_length=16,
    )  # fmt: skip
    inputs = dict(
        hidden_states=torch.randn(1, 4, 4, 8, 8), encoder_hidden_states=torch.randn(1, 16, 16), timestep=torch.tensor([5]),
        encoder_attention_mask=torch.ones(1, 16, dtype=torch.bool), return_dict=False,
    )  # fmt: skip
    _equal_by_hand(model, inputs, lambda name: name.endswith(".attn1"))


def a_layer_of_self_attention_is_known_by_its_name():
    """OmniGen's says that it reads tokens of another width, by which diffusers counts it as cross-attention."""
    from diffusers import OmniGenTransformer2DModel

    torch.manual_seed(0)
    model = OmniGenTransformer2DModel(
        hidden_size=32, num_attention_heads=2, num_key_value_heads=2, intermediate_size=32, num_layers=2, pad_token_id=0,
        vocab_size=32, in_channels=4, time_step_dim=4,
        rope_scaling={"long_factor": list(range(1, 9)), "short_factor": list(range(1, 9))},
    )  # fmt: skip
    inputs = dict(
        hidden_states=torch.randn(1, 4, 16, 16), timestep=torch.tensor([5.0]), input_ids=torch.randint(1, 32, (1, 15)),
        input_img_latents=[], input_image_sizes={}, attention_mask=torch.ones(1, 80, 80),
        position_ids=torch.arange(80)[None], return_dict=False,
    )  # fmt: skip
    _equal_by_hand(model, inputs, lambda name: name.endswith(".self_attn"))


def _equal_by_hand(model, inputs, chosen):
    """A model whose layers begin as zeros has the design in the chosen layers, and no call of them is left."""
    torch.manual_seed(1)
    for parameter in model.parameters():
        if parameter.dim() > 1 and parameter.abs().max() == 0:
            torch.nn.init.normal_(parameter, std=0.2)
    model.eval()
    with torch.no_grad():
        plain = model(**inputs)[0]
        handle = adapter("near").use(model, strict=True)
        got = model(**inputs)[0]
        assert handle.verify(inputs).ok
        handle.remove()
        with sdpa_by_hand(model, chosen, mask("near")):
            want = model(**inputs)[0]
    assert apart(got, want) < CLOSE and apart(got, plain) > 1e-3


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


def the_sparsity_that_is_said_is_the_first_block_masks():
    adapter("near")._runtime()
    model = importlib.import_module("maskloom_sidecar.counts").Model
    for first, said in ((37.5, 37.5), (-12.5, 0.0), (None, 0.0)):
        counts = SimpleNamespace(sparsity=None)
        for value in (first, 99.0):
            model.note_sparsity(counts, None if value is None else SimpleNamespace(sparsity=lambda value=value: value))
        assert counts.sparsity == said, (first, counts.sparsity)


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


def a_design_for_each_batch_entry_is_for_so_many():
    design = export("each")[1]
    q = torch.randn(3, 2, 80, 64)
    refused(lambda: design.attend(q, q, q, compiled=False), "each of 2 batch entries")
    model, inputs, chosen = families.built("flux")
    handle = adapter("each").use(model)
    assert apart(step(model, inputs)[0], by_hand(*families.built("flux"), "each")) < CLOSE
    # the last batch of an epoch
    halved = lambda t: t[:1] if isinstance(t, torch.Tensor) and t.dim() and t.shape[0] == 2 else t
    one = {name: halved(t) for name, t in inputs.items()}
    got = step(model, one)[0]
    assert sum(sum(each["left"].values()) for each in handle.report().values()) == 3
    assert "each of 2 batch entries, but the call has 1" in str(handle.report())
    handle.remove()
    assert torch.equal(got, step(model, one)[0])
    handle = adapter("each").use(model, strict=True)
    refused(lambda: model(**one), "each of 2 batch entries, but the call has 1")
    handle.remove()


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


def the_oldest_pytorch_makes_block_masks():
    # PyTorch 2.5 has no argument for the lengths of block lists, and vmap there reads no tensor at an index
    design = export("table")[1]
    blocks, vmap = design.BlockMask, torch.vmap
    new = design.make_block_mask("cpu", 80, 80)

    class Older:
        @staticmethod
        def from_kv_blocks(*lists, BLOCK_SIZE=128, mask_mod=None):
            return blocks.from_kv_blocks(*lists, BLOCK_SIZE=BLOCK_SIZE, mask_mod=mask_mod)

    def refusing(*_, **__):
        raise RuntimeError("vmap: It looks like you're calling .item() on a Tensor")

    q, k, v = (torch.randn(1, 2, 80, 64, requires_grad=True) for _ in range(3))
    design.BlockMask = Older
    try:
        old = design.make_block_mask("cpu", 80, 80)
        torch.vmap = refusing
        got = design.attend(q, k, v, block_mask=new)
    finally:
        design.BlockMask, torch.vmap = blocks, vmap
    assert torch.equal(old.kv_num_blocks, new.kv_num_blocks) and torch.equal(old.full_kv_indices, new.full_kv_indices)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=design.make_mask("cpu"), scale=design.SCALE)
    assert apart(got, want) < CLOSE


KERNEL = """
import torch
import {module} as design

calls = []


def _check(query, key, value):
    if query.shape[1:3] != (2, 80):
        raise ValueError("maskloom: another shape")


def attend(query, key, value, scale=None):
    calls.append(scale)
    mask = design.make_mask("cpu") {wrong}
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
"""


def an_exported_kernel_computes_what_needs_no_gradients():
    for name, wrong in (("quick", ""), ("lame", "& False")):
        folder, _ = preset(name, "sliding_window", "--arg", "window=6", "--seq", "80")
        with open(os.path.join(folder, f"d_{name}_kernel.py"), "w") as out:
            out.write(KERNEL.format(module=f"d_{name}", wrong=wrong))
        model, inputs, _ = families.built("flux")
        handle = adapter(name).use(model, strict=True)
        kernels = sys.modules["maskloom_sidecar"].kernels
        on, kernels._on = kernels._on, lambda device: True
        try:
            got = step(model, inputs)[0]
            assert f"maskloom_kernel_d_{name}_kernel" not in sys.modules, "with gradients FlexAttention computes"
            with torch.no_grad():
                fast = model(**inputs)[0]
            calls = sys.modules[f"maskloom_kernel_d_{name}_kernel"].calls
            assert len(calls) == 3
            # a kernel that computes another mask is found out
            assert (apart(fast, got) < CLOSE) == (wrong == "") == handle.verify(inputs).ok
            seen = len(calls)
            padded, given, _ = families.built("qwen_padded")
            other = adapter(name).use(padded, strict=True)
            with torch.no_grad():
                padded(**given)
            assert len(calls) == seen, "a model's own mask is none of the kernel's"
            other.remove()
        finally:
            kernels._on = on
            handle.remove()
