"""The package with every PyTorch from 2.5 on: block masks of whole blocks, what a version lacks, gradients.

python package_versions.py   (run it with the oldest and the newest PyTorch)
"""

import inspect

import package
import torch
from torch.nn.attention import flex_attention as flex
from torch.nn.attention.flex_attention import and_masks, create_block_mask
from torch.overrides import TorchFunctionMode

maskloom = package.found()
from maskloom import block_mask  # noqa: E402
from maskloom.distributed.local import _over  # noqa: E402
from maskloom.distributed.planning import request_of  # noqa: E402
from maskloom.integrations import comfyui, sdnq  # noqa: E402

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
    make = lambda: maskloom.create_block_mask(causal, 1, 1, 256, 256, "cpu", compute_dq_write_order=True)
    refused("torch-version", make, torch.__version__)


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


class Without(flex.BlockMask):
    """A BlockMask as PyTorch 2.5 has it: it keeps no lengths, and its shape is that of whole blocks."""

    def __init__(
        self, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices,
        full_q_num_blocks, full_q_indices, BLOCK_SIZE, mask_mod,
    ):  # fmt: skip
        own = dict(locals())
        self.__dict__.update({name: value for name, value in own.items() if name not in ("self", "__class__")})

    @property
    def shape(self):
        (q, kv), counts = self.BLOCK_SIZE, self.kv_num_blocks
        return torch.Size((*counts.shape[:2], counts.shape[2] * q, self.q_num_blocks.shape[2] * kv))


def without_lengths():
    """What is given to a mask of PyTorch 2.5 is compared with the lengths that it was made for."""
    mask = maskloom.create_block_mask(causal, None, None, 48, 48, device="cpu", BLOCK_SIZE=16)
    assert isinstance(mask, flex.BlockMask) and not hasattr(mask, "seq_lengths") and mask.shape[-2:] != (48, 48)
    query = torch.randn(1, 2, 64, 16)
    short = query[:, :, :48]
    want = torch.nn.functional.scaled_dot_product_attention(short, short, short, is_causal=True)
    torch.testing.assert_close(maskloom.flex_attention(short, short, short, block_mask=mask), want)
    refused("block-mask-length", lambda: maskloom.flex_attention(query, query, query, block_mask=mask), "smaller", "48")
    # PyTorch 2.5 says that blocks of 64 are of 128
    mask = maskloom.create_block_mask(causal, None, None, 256, 256, device="cpu", BLOCK_SIZE=64)
    mask.__dict__["BLOCK_SIZE"] = (128, 128)
    del mask.__dict__["_maskloom_lengths"]
    row = torch.randn(1, 1, 256, 16)
    refused("block-mask-length", lambda: maskloom.flex_attention(row, row, row, block_mask=mask), "512")
    refused("plan-lengths", lambda: request_of({"mask": mask}, 2), "2.6")
    mask = maskloom.create_block_mask(causal, None, None, 300, 200, device="cpu", BLOCK_SIZE=16)
    request = request_of({"mask": mask}, 2)
    assert (request["q_len"], request["kv_len"]) == (300, 200)
    assert comfyui.override(mask).lengths == (300, 200)
    tiles = lambda b, h, q_idx, kv_idx: q_idx // 16 >= kv_idx // 16
    assert sdnq.block_mask(tiles, 48, 48, block=(16, 16), device="cpu")["block_mask"].sum() == 6
    assert maskloom.show(mask).to_dict()["lengths"] == [300, 200]


def as_before_2_6():
    kept, flex.BlockMask = flex.BlockMask, Without
    block_mask._parameters.cache_clear()
    try:
        without_lengths()
    finally:
        flex.BlockMask = kept
        block_mask._parameters.cache_clear()


class NoElements(TorchFunctionMode):
    """Before PyTorch 2.9 an index of vmap reads no element of a tensor."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.__getitem__ and isinstance(args[1], (tuple, torch.Tensor)):
            raise RuntimeError("vmap: .item()")
        return func(*args, **(kwargs or {}))


def tables_under_vmap():
    """Attention of one rank reads tables in every PyTorch."""
    table = torch.randn(2, 9)
    mod = lambda b, h, q_idx, kv_idx: (DOC[q_idx * 40] == DOC[kv_idx * 40]) & (table[1, kv_idx] < table[h, q_idx])
    at = [torch.arange(n).view([-1 if axis == own else 1 for own in range(4)]) for axis, n in enumerate((1, 2, 9, 9))]
    want = mod(*at).expand(1, 2, 9, 9)
    with NoElements():
        assert torch.equal(_over(mod, 1, 2, torch.arange(9), torch.arange(9)), want)


def refused(code, action, *words):
    try:
        action()
    except maskloom.MaskloomError as why:
        assert why.code == code and why.hint and all(word in str(why) for word in words), why
        return
    raise AssertionError(f"accepted: {code}")


masks()
newer()
gradients()
if package.KEEPS_LENGTHS:
    as_before_2_6()
else:
    without_lengths()
tables_under_vmap()
print(f"the package works with PyTorch {torch.__version__}")
