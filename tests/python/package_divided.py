"""A sequence that another library has divided over ranks: Maskloom's calls there are refused or warned of, and nowhere
else. PyTorch's context_parallel with 2 processes, accelerate's hooks, diffusers' configurations, DTensors.

    python package_divided.py

Exit status 77: a library is not installed, and what was run is right.
"""

import datetime
import importlib.util
import os
import sys
import tempfile
import warnings
from types import SimpleNamespace

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import package

maskloom = package.found()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

TOKENS = 32
MISSING = [name for name in ("transformers", "diffusers", "accelerate") if not importlib.util.find_spec(name)]


def causal(b, h, q, k):
    return q >= k


def lost(work, *words):
    from maskloom.integrations import MaskLost

    try:
        work()
    except MaskLost as why:
        assert why.code == "context-parallel" and why.hint, why
        assert all(word in str(why) for word in words), why
        return
    raise AssertionError(f"not refused: {words}")


def warned(work):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        work()
    return [str(one.message) for one in seen if one.category.__name__ == "DividedWarning"]


def nothing_is_divided():
    """A program without context parallelism is told nothing, and loads nothing for it."""
    from maskloom import integrations

    q = torch.randn(1, 2, TOKENS, 16)
    mask = maskloom.create_block_mask(causal, None, None, TOKENS, TOKENS, device="cpu")
    assert warned(lambda: maskloom.flex_attention(q, q, q, block_mask=mask)) == []
    assert integrations.divided() is None and integrations.divided(torch.nn.Linear(2, 2)) is None
    assert "torch.distributed.tensor.experimental" not in sys.modules
    assert "accelerate" not in sys.modules


def in_diffusers():
    """Every division is refused; none, or one over one rank, is not."""
    import maskloom.integrations.diffusers as backend
    from maskloom.integrations import divided

    config = lambda ring, ulysses: SimpleNamespace(
        context_parallel_config=SimpleNamespace(ring_degree=ring, ulysses_degree=ulysses)
    )
    q = torch.randn(1, TOKENS, 2, 16)
    call = lambda given: backend._attention(q, q, q, _parallel_config=given)
    lost(lambda: call(config(2, None)), "ring_degree=2", "first rank's")
    lost(lambda: call(config(2, 2)), "ring_degree=2")
    lost(lambda: call(config(None, 4)), "ulysses_degree=4")
    want = call(None)
    # another release's fields: what is divided is not known, that it is, is
    lost(lambda: call(SimpleNamespace(context_parallel_config=SimpleNamespace())), "context parallelism")
    for given in (config(1, 1), config(None, None), SimpleNamespace(context_parallel_config=None), SimpleNamespace()):
        assert torch.equal(call(given), want)
    model = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
    model[0]._parallel_config = config(2, 1)
    assert "ring_degree=2" in divided(model)
    model[0]._parallel_config = config(1, 1)
    assert divided(model) is None
    # diffusers' own classes have these fields
    from diffusers import ContextParallelConfig

    real = SimpleNamespace(context_parallel_config=ContextParallelConfig(ring_degree=2))
    lost(lambda: call(real), "ring_degree=2")


def llama(name):
    import transformers as hf

    sizes = dict(
        hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        vocab_size=32, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    return hf.LlamaForCausalLM(hf.LlamaConfig(**sizes, attn_implementation=name)).eval()


def in_accelerate():
    """Its hooks take masks away; its state says what it was started for."""
    from accelerate.big_modeling import _attach_context_parallel_hooks
    from accelerate.parallelism_config import ParallelismConfig
    from accelerate.state import AcceleratorState
    from maskloom.integrations import MaskLost, divided, proof, transformers

    assert warned(transformers.register) == []
    model, ids = llama("maskloom"), torch.randint(3, 32, (1, TOKENS))
    model(input_ids=ids)
    _attach_context_parallel_hooks(model)
    assert "accelerate's context parallelism" in divided(model)
    lost(lambda: model(input_ids=ids), "accelerate's context parallelism", "self_attn")
    other = llama("sdpa")
    _attach_context_parallel_hooks(other)
    try:
        proof(other, dict(input_ids=ids))
        raise AssertionError("a mask was proved")
    except MaskLost as why:
        assert "accelerate's context parallelism" in str(why) and "plan_context_parallel" in why.hint, why
    assert divided() is None
    before = dict(AcceleratorState._shared_state)
    try:
        AcceleratorState._shared_state["parallelism_config"] = ParallelismConfig(cp_size=1)
        assert divided() is None
        AcceleratorState._shared_state["parallelism_config"] = ParallelismConfig(cp_size=4)
        assert "cp_size=4" in divided()
        (said,) = warned(transformers.register)
        assert "cp_size=4" in said and "refused" in said, said
    finally:
        AcceleratorState._shared_state.clear()
        AcceleratorState._shared_state.update(before)


def of_placements(mesh):
    from maskloom.integrations._calls import attend
    from torch.distributed.tensor import DTensor, Shard

    x = torch.randn(1, 2, TOKENS, 16)
    mask = maskloom.create_block_mask(causal, None, None, TOKENS, TOKENS, device="cpu")
    tokens = DTensor.from_local(x, mesh, [Shard(2)], run_check=False)
    lost(lambda: attend(tokens, tokens, tokens, mask), "queries", "DTensor")
    lost(lambda: attend(x, tokens, tokens, mask), "keys", "DTensor")
    # heads are divided by others: that changes no position
    from maskloom import _divided

    assert _divided.of_call(DTensor.from_local(x, mesh, [Shard(1)], run_check=False)) is None
    try:
        maskloom.flex_attention(tokens, tokens, tokens, block_mask=mask)
        raise AssertionError("a DTensor was taken")
    except maskloom.ArgumentError as why:
        assert why.code == "dtensor" and "to_local" in why.hint, why


def in_pytorch(rank, mesh):
    """Inside context_parallel, and after it."""
    from maskloom.integrations import divided
    from torch.distributed.tensor.experimental import context_parallel

    half = maskloom.create_block_mask(causal, None, None, TOKENS // 2, TOKENS // 2, device="cpu")
    q = torch.randn(1, 2, TOKENS // 2, 16)
    function = torch.nn.functional.scaled_dot_product_attention
    model = None
    if "transformers" not in MISSING:
        from maskloom.integrations import transformers

        transformers.register()
        model = llama("maskloom")
    ids = torch.randint(3, 32, (1, TOKENS))
    assert divided() is None
    for turn in range(2):
        whole = ids.clone()
        with context_parallel(mesh, buffers=[whole], buffer_seq_dims=[1]):
            assert whole.shape[1] == TOKENS // 2
            assert "context_parallel" in divided(), divided()
            said = warned(lambda: maskloom.flex_attention(q, q, q, block_mask=half))
            # once in a process
            assert len(said) == (1 if turn == 0 else 0) and all("plan_context_parallel" in one for one in said), said
            assert warned(lambda: maskloom.flex_attention(q, q, q)) == []
            if model is not None:
                lost(lambda whole=whole: model(input_ids=whole), "context_parallel")
        assert divided() is None and torch.nn.functional.scaled_dot_product_attention is function
        assert warned(lambda: maskloom.flex_attention(q, q, q, block_mask=half)) == []
        if model is not None:
            model(input_ids=ids)


def in_a_ring(rank, mesh):
    """PyTorch's ring asks the registry's operator for parts: without a window they are right, with one refused."""
    from maskloom.integrations import torch_sdpa
    from torch.distributed.tensor.experimental._context_parallel import _attention as ring

    if not hasattr(torch.nn.attention, "register_flash_attention_impl"):
        return
    gen = torch.Generator().manual_seed(1)
    whole = [torch.randn(1, 2, TOKENS, 16, generator=gen) for _ in range(3)]
    mine = [x.chunk(2, 2)[rank] for x in whole]
    ring._cp_options.enable_load_balance = False

    def step(window):
        def op(q, k, v, is_causal=False, **more):
            return torch_sdpa._cpu(window)[0](q, k, v, 0.0, is_causal)

        return ring._templated_ring_attention(mesh.get_group(), 2, op, *mine, is_causal=True)[0]

    want = torch.nn.functional.scaled_dot_product_attention(*whole, is_causal=True).chunk(2, 2)[rank]
    assert (step(None) - want).abs().max() < 1e-5
    lost(lambda: step(8), "window of 8", "ring")
    dist.barrier()
    torch_sdpa._cpu(8)[0](*whole, 0.0, True)


def work(rank, port_file):
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=f"file://{port_file}", rank=rank, world_size=2, timeout=limit)
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
    of_placements(mesh)
    in_pytorch(rank, mesh)
    in_a_ring(rank, mesh)
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)


if __name__ == "__main__":
    if package.VERSION < (2, 11):
        print("skipped: PyTorch's context_parallel is read from 2.11 on")
        sys.exit(77)
    nothing_is_divided()
    if "diffusers" not in MISSING:
        in_diffusers()
    if not {"accelerate", "transformers"} & set(MISSING):
        in_accelerate()
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, args=(f"{folder}/store",), nprocs=2, start_method="spawn")
    if MISSING:
        print(f"skipped: no {', no '.join(MISSING)}")
        sys.exit(77)
    print("masked calls in divided sequences are refused or told, and no others")
