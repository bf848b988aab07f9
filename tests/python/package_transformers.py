"""maskloom.integrations.transformers where a model's mask is not the one that its layers attend with.

    python package_transformers.py

Layers that make a mask of their own, packed documents that come as lengths alone, calls inside of torch.func. Exit
status 77: transformers is not installed.
"""

import copy
import importlib.util
import sys

import package
from package import refused

maskloom = package.found()

import torch  # noqa: E402

if not importlib.util.find_spec("transformers"):
    print("skipped: no transformers")
    sys.exit(77)

import transformers  # noqa: E402

TOKENS, CLOSE = 48, 2e-5
SIZES = dict(
    hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
    vocab_size=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
LATENT = dict(
    kv_lora_rank=8, q_lora_rank=8, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=2,
    num_experts_per_tok=1, moe_intermediate_size=16, n_group=1, topk_group=1, index_topk=8, index_n_heads=2,
    index_head_dim=16,
)  # fmt: skip
FLASH = "cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k"


def near(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < 7)


def made(name, **more):
    """A model in inference mode; None where the installed library has none of this name."""
    if not hasattr(transformers, f"{name}Config"):
        print(f"left out: this transformers has no {name}")
        return None
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SIZES | more)
    return getattr(transformers, f"{name}ForCausalLM")(config).eval()


def layers_with_a_mask_of_their_own():
    """DeepSeek reads the mask as numbers; Doge adds numbers to it, or attends by these alone where it is none."""
    ids = torch.randint(3, 32, (1, TOKENS))
    for name, more in (("DeepseekV32", LATENT), ("Doge", {})):
        model = made(name, **more)
        for implementation in ("maskloom", "near") if model is not None else ():
            model.set_attn_implementation(implementation)
            why = refused(lambda model=model: model(input_ids=ids, use_cache=False), f"{name}Config", "choose keys")
            assert isinstance(why, maskloom.integrations.MaskLost), why


def documents_that_come_as_lengths_alone():
    """Positions may say nothing of packing, and gpt-oss does not look at them."""
    ids, places = torch.randint(3, 32, (1, TOKENS)), torch.cat([torch.arange(20), torch.arange(TOKENS - 20)])[None]
    starts = torch.tensor([0, 20, TOKENS], dtype=torch.int32)
    lengths = dict(zip(FLASH, (starts, starts, TOKENS - 20, TOKENS - 20)))
    alone = torch.tensor([0, TOKENS], dtype=torch.int32)
    experts = dict(num_local_experts=2, num_experts_per_tok=2, sliding_window=9)
    for name, more in (("GptOss", experts), ("Llama", {}), ("Mistral", dict(sliding_window=9))):
        model = made(name, head_dim=16, **more)
        if model is None:
            continue
        model.set_attn_implementation("eager")
        with torch.no_grad():
            parts = [model(input_ids=part, use_cache=False).logits for part in (ids[:, :20], ids[:, 20:])]
            whole = model(input_ids=ids, use_cache=False).logits
            own = copy.deepcopy(model)
            own.set_attn_implementation("maskloom")
            got = own(input_ids=ids, position_ids=places, use_cache=False, **lengths).logits
            assert (got - torch.cat(parts, 1)).abs().max() < CLOSE, name
            # rows of the second document know nothing of the first, wherever their positions begin
            other = ids.clone()
            other[:, :20] = (other[:, :20] - 2) % 29 + 3
            got, changed = (own(input_ids=x, use_cache=False, **lengths).logits for x in (ids, other))
            assert (got[:, 20:] - changed[:, 20:]).abs().max() < CLOSE < (got - changed).abs().max(), name
            one = {**lengths, "cu_seq_lens_q": alone, "cu_seq_lens_k": alone}
            assert (own(input_ids=ids, use_cache=False, **one).logits - whole).abs().max() < CLOSE, name
            # a mask of the user's own counts from each document's beginning, which its maker did not know
            own.set_attn_implementation("near")
            why = refused(lambda own=own: own(input_ids=ids, use_cache=False, **lengths), "cu_seq_lens_q")
            assert isinstance(why, maskloom.integrations.MaskLost) and "position_ids" in why.hint, why


def calls_inside_of_torch_func():
    model = made("Llama", head_dim=16)
    model.set_attn_implementation("maskloom")
    ids, real = torch.randint(3, 32, (2, TOKENS)), torch.ones(2, TOKENS, dtype=torch.long)
    real[1, :6] = 0
    given = dict(input_ids=ids, attention_mask=real, use_cache=False)
    loss = lambda weights: torch.func.functional_call(model, weights, kwargs=given).logits.sum()  # noqa: E731
    refused(lambda: torch.func.grad(loss)(dict(model.named_parameters())), "torch.func")


def main():
    import maskloom.integrations.transformers as plugged

    try:
        plugged.register()
        plugged.register("near", mask_mod=near)
    except maskloom.MaskloomError as why:
        # a former library without a registry is refused in words that name the version
        if package.VERSION >= package.NEWEST or "or newer" not in why.hint:
            raise
        print(f"skipped: {why}")
        sys.exit(77)
    for check in (layers_with_a_mask_of_their_own, documents_that_come_as_lengths_alone, calls_inside_of_torch_func):
        check()
        print(f"ok {check.__name__}", flush=True)
    print("what is not in the model's mask is there or refused")


main()
