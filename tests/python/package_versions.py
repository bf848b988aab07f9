"""The package with every PyTorch from 2.5 on: block masks of whole blocks, what a version lacks, gradients.

python package_versions.py   (run it with the oldest and the newest PyTorch)
"""

import inspect

import package
import torch
from torch.nn.attention.flex_attention import and_masks, create_block_mask

maskloom = package.found()
DOC = torch.arange(384) // 70
KNOWN = inspect.signature(create_block_mask).parameters


def causal(b, h, q, kv):
    return q >= kv


MODS = [
    causal,
    lambda b, h, q, kv: (DOC[q] == DOC[kv]) & (q >= kv),
    and_masks(causal, lambda b, h, q, kv: q - kv < 50),
    lambda b, h, q, kv: torch.where(q > kv, q - kv < 50, kv < 9),
    lambda b, h, q, kv: (q // 7 + h) % 3 < kv // 9,
]


def masks():
    """2.5 rounds lengths up to whole blocks, and has one row of blocks for fewer than 128 queries."""
    for mod in MODS:
        for lengths in [(384, 384), (256, 384), (64, 384), (100, 256)]:
            for heads in (None, 3):
                want = create_block_mask(mod, 2, heads, *lengths, device="cpu")
                got = maskloom.create_block_mask(mod, 2, heads, *lengths, device="cpu")
                package.same_block_masks(want, got, f"{lengths} {heads}")
                assert type(want) is type(got) and str(want) == str(got)


def newer():
    """An argument that this version lacks is refused; one that it has is PyTorch's."""
    if "compute_dq_write_order" in KNOWN:
        assert (
            maskloom.create_block_mask(causal, 1, 1, 256, 256, "cpu", compute_dq_write_order=True).dq_write_order
            is not None
        )
        return
    try:
        maskloom.create_block_mask(causal, 1, 1, 256, 256, "cpu", compute_dq_write_order=True)
    except maskloom.ArgumentError as why:
        assert why.code == "torch-version" and torch.__version__ in str(why)
    else:
        raise AssertionError("accepted")


def gradients():
    """Attention has them."""
    query = torch.randn(1, 2, 128, 32, requires_grad=True)
    mask = maskloom.create_block_mask(causal, None, None, 128, 128, device="cpu")
    out = maskloom.flex_attention(query, query, query, block_mask=mask)
    want = torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True)
    (got_grad,) = torch.autograd.grad(out.square().sum(), query)
    (want_grad,) = torch.autograd.grad(want.square().sum(), query)
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(got_grad, want_grad, rtol=1e-4, atol=1e-4)


masks()
newer()
gradients()
print(f"the package works with PyTorch {torch.__version__}")
