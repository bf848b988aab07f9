"""The package's flex_attention on the CPU against a dense formula in float64 and against PyTorch's own flex_attention.

python package_attention.py [SEED]

Fresh random inputs, gradients of q, k, v and of what the score mod reads, from the output and from the lse. NaN counts
as a difference.
"""

import copy
import functools
import sys
import zlib

import package
import torch
import torch.utils.checkpoint
from torch.autograd import forward_ad
from torch.nn.attention import flex_attention as flex

maskloom = package.found()
compared = 0
HAS_AUX = hasattr(flex, "AuxRequest")
SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 0


def dense(q, k, v, score_mod, mask_mod, scale):
    """Output and lse in float64, cell by cell, with autograd through everything."""
    group = q.size(1) // k.size(1)
    k, v = (t.expand(q.size(0), -1, -1, -1).repeat_interleave(group, 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * scale
    grid = [torch.arange(n).view([-1 if axis == at else 1 for axis in range(4)]) for at, n in enumerate(scores.shape)]
    if score_mod is not None:
        scores = score_mod(scores, *grid)
    kept = torch.ones((), dtype=torch.bool) if mask_mod is None else mask_mod(*grid)
    kept = kept.expand(scores.shape)
    largest = torch.where(kept, scores, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    p = torch.where(kept, (torch.where(kept, scores, 0.0) - largest).exp(), 0.0)
    total = p.sum(-1, keepdim=True)
    some = total > 0
    safe = torch.where(some, total, 1.0)
    out = torch.where(some, (p / safe).to(v.dtype) @ v, 0.0)
    lse = torch.where(some, safe.log() + largest, -float("inf")).squeeze(-1)
    return out, lse, torch.where(some, largest, -float("inf")).squeeze(-1)


def near(got, want, tolerance, label, eager=None):
    """Errors relative to the largest value, with `eager` at most twice its error more; infinities are the same."""
    assert got.shape == want.shape, (label, got.shape, want.shape)
    got, want = got.double(), want.double()
    assert torch.equal(got.isfinite(), want.isfinite()) and not got.isnan().any(), label
    finite = want.isfinite()
    if not finite.any():
        return
    scale = want[finite].abs().max().item()
    error = (got[finite] - want[finite]).abs().max().item()
    most = tolerance * max(scale, 1e-6)
    if eager is not None:
        most += 2 * (eager.double()[finite] - want[finite]).abs().max().item()
    assert error <= most, f"{label}: {error:.2e} of {scale:.2e}, at most {most:.2e}"


def check(
    name,
    shape=(2, 4, 2, 70, 90, 32, 32),
    score=None,
    mask=None,
    dtype=torch.float32,
    scale=None,
    learned=(),
    block_mask=None,
):
    """One problem, both passes. `score` is called with the learned tensors to get the score mod."""
    global compared
    B, H, G, Q, KV, E, V = shape
    draw = torch.Generator().manual_seed(zlib.crc32(f"{SEED} {name} {shape}".encode()))
    given = [torch.randn(s, generator=draw) for s in ((B, H, Q, E), (B, G, KV, E), (B, G, KV, V))]
    given = [t.to(dtype) for t in given]
    ours = [t.clone().requires_grad_() for t in given]
    theirs = [t.double().requires_grad_() for t in given]
    own = [t.clone().requires_grad_() for t in learned]
    wide = [t.double().requires_grad_() for t in learned]
    made = block_mask
    if made is None and mask is not None:
        made = maskloom.create_block_mask(mask, B, H, Q, KV, device="cpu", BLOCK_SIZE=32)
    factor = E**-0.5 if scale is None else scale
    want, want_lse, want_max = dense(*theirs, score(*wide) if score else None, mask, factor)
    score_mod = score(*own) if score else None
    d_out, d_lse = torch.randn((B, H, Q, V), generator=draw).to(dtype), torch.randn((B, H, Q), generator=draw)
    some = want_lse.isfinite()

    def total(out, lse):
        return (out.double() * d_out.double()).sum() + (lse.double()[some] * d_lse.double()[some]).sum()

    given_all = dict(score_mod=score_mod, block_mask=made, scale=scale, enable_gqa=H != G)
    if HAS_AUX:
        asked = flex.AuxRequest(lse=True, max_scores=True)
        got, aux = maskloom.flex_attention(*ours, **given_all, return_aux=asked)
        got_lse, got_max = aux
    else:
        got, got_lse = maskloom.flex_attention(*ours, **given_all, return_lse=True)
        got_max = want_max
    # PyTorch's own operations in this dtype are the measure: a sum over all cells may nearly vanish
    same = [t.clone().requires_grad_() for t in given]
    plain = [t.clone().requires_grad_() for t in learned]
    out_eager, lse_eager, _ = dense(*same, score(*plain) if score else None, mask, factor)
    rough = [out_eager, *torch.autograd.grad(total(out_eager, lse_eager), [*same, *plain])]
    assert got.dtype == dtype and got_lse.dtype == torch.float32 and not (HAS_AUX and got_max.requires_grad)
    exact = 2e-6 if dtype == torch.float32 else 1e-4
    near(got, want, exact, f"{name}: out", rough[0])
    near(got_lse, want_lse, 1e-5, f"{name}: lse")
    near(got_max, want_max, 1e-5, f"{name}: max")
    got_grads = torch.autograd.grad(total(got, got_lse), [*ours, *own])
    want_grads = torch.autograd.grad(total(want, want_lse), [*theirs, *wide])
    names = ["dq", "dk", "dv", *(f"d captured {at}" for at in range(len(own)))]
    for label, g, w, e in zip(names, got_grads, want_grads, rough[1:]):
        assert g.dtype == dtype or label not in ("dq", "dk", "dv")
        near(g, w, 2e-5 if dtype == torch.float32 else 1e-4, f"{name}: {label}", e)
    compared += 1


DOC = torch.tensor([0] * 30 + [1] * 25 + [2] * 35)


def causal(b, h, q, kv):
    return q >= kv


def documents(b, h, q, kv):
    return (DOC[q] == DOC[kv]) & (q >= kv)


def empty_rows(b, h, q, kv):
    return (q >= kv) & (q % 3 != 1)


def never(b, h, q, kv):
    return (q < 0) & (kv < 0)


def per_head(b, h, q, kv):
    return q - kv < 10 * (h + 1) + 5 * b


def bias_of(bias):
    return lambda score, b, h, q, kv: score + bias[h, (q - kv).clamp(-8, 8) + 8]


def scaled_of(factor, bias):
    return lambda score, b, h, q, kv: torch.tanh(score * factor / 20) * 20 + bias[b, q] * factor


def keyed_of(factor, bias):
    return lambda score, b, h, q, kv: torch.tanh(score * factor / 20) * 20 + bias[b, kv // 2] * factor


def softcap():
    return lambda score, b, h, q, kv: 15 * torch.tanh(score / 15)


def alibi():
    return lambda score, b, h, q, kv: score - (q - kv).abs() * 0.125 * (h + 1)


def problems():
    """Masks, scores, dtypes, heads and sizes."""
    draw = torch.Generator().manual_seed(3)
    table, factor, rows = torch.randn(4, 17, generator=draw), torch.tensor(1.3), torch.randn(2, 70, generator=draw)
    for dtype in (torch.float32, torch.bfloat16):
        check("full", dtype=dtype)
        for mask in (causal, documents, empty_rows, never, per_head):
            check(mask.__name__, mask=mask, dtype=dtype)
        check("softcap", score=softcap, mask=causal, dtype=dtype)
        check("alibi", score=alibi, dtype=dtype)
        check("bias", score=bias_of, learned=(table,), mask=documents, dtype=dtype)
    # sums over all cells, and over rows, that nearly vanish: with outputs of 16 bits they are mostly rounding
    check("two", score=keyed_of, learned=(factor, rows), mask=empty_rows)
    check("a bias of rows", score=scaled_of, learned=(factor, rows), mask=empty_rows)
    check("half", mask=causal, dtype=torch.float16)
    check("scale", mask=causal, scale=0.3)
    check("value width", (1, 3, 1, 33, 65, 24, 40), mask=causal)
    check("one token", (1, 1, 1, 1, 1, 16, 16))
    check("one query", (2, 8, 2, 1, 90, 64, 64), mask=documents)
    check("odd", (3, 5, 5, 77, 41, 19, 7), mask=per_head, score=alibi)
    narrow = torch.randn(4, 17, generator=draw).to(torch.bfloat16)
    check("a bias of half precision", score=bias_of, learned=(narrow.float(),), mask=causal)


def block_masks():
    """Block masks of PyTorch, and ones whose lists are others than those of their mask_mod."""
    shape = (2, 4, 2, 90, 90, 32, 32)
    lengths = {"seq_lengths": (90, 90)} if package.KEEPS_LENGTHS else {}
    of_torch = package.theirs(flex.create_block_mask, documents, None, None, 90, 90, device="cpu", BLOCK_SIZE=32)
    if of_torch is not None:
        check("of torch", shape, mask=documents, block_mask=of_torch)
    no_mod = flex.BlockMask.from_kv_blocks(
        torch.tensor([[[1, 2, 0]]], dtype=torch.int32),
        torch.tensor([[[[2, 0, 1], [0, 2, 1], [0, 1, 2]]]], dtype=torch.int32),
        BLOCK_SIZE=32,
        **lengths,
    )
    listed = torch.tensor([[0, 0, 1], [1, 0, 1], [0, 0, 0]]).bool()
    check("lists alone", shape, mask=lambda b, h, q, kv: listed[q // 32, kv // 32], block_mask=no_mod)
    both = flex.BlockMask.from_kv_blocks(
        no_mod.kv_num_blocks,
        no_mod.kv_indices,
        torch.tensor([[[0, 1, 1]]], dtype=torch.int32),
        torch.tensor([[[[0, 1, 2], [1, 0, 2], [2, 1, 0]]]], dtype=torch.int32),
        BLOCK_SIZE=32,
        mask_mod=causal,
        **lengths,
    )
    full = torch.tensor([[0, 0, 0], [0, 1, 0], [0, 0, 1]]).bool()
    effective = lambda b, h, q, kv: full[q // 32, kv // 32] | (listed[q // 32, kv // 32] & (q >= kv))
    check("full blocks of its own", shape, mask=effective, block_mask=both)
    changed = copy.copy(maskloom.create_block_mask(causal, None, None, 90, 90, device="cpu", BLOCK_SIZE=32))
    check("ours", shape, mask=causal, block_mask=changed)
    if not package.KEEPS_LENGTHS:
        return  # there its queries are one block
    changed.mask_mod = documents  # the lists stay those of the former mod: full blocks are not looked at
    inside = torch.tensor([[0, 0, 0], [1, 0, 0], [0, 0, 0]]).bool()
    looked_at = torch.tensor([[1, 0, 0], [0, 1, 0], [1, 1, 1]]).bool()  # the last row of blocks hangs over the end
    other = lambda b, h, q, kv: inside[q // 32, kv // 32] | (looked_at[q // 32, kv // 32] & documents(b, h, q, kv))
    check("another mod", shape, mask=other, block_mask=changed)


def beside_torch():
    """PyTorch's own eager flex_attention, forward."""
    tokens = 100 if package.KEEPS_LENGTHS else 128
    q, k, v = (torch.randn(2, 2, tokens, 32) for _ in range(3))
    mask = maskloom.create_block_mask(causal, None, None, tokens, tokens, device="cpu")
    with torch.no_grad():
        want = flex.flex_attention(q.double(), k.double(), v.double(), score_mod=alibi(), block_mask=mask)
        got, lse = maskloom.flex_attention(q, k, v, alibi(), mask, return_lse=True)
    near(got, want, 2e-6, "torch")
    assert lse.shape == (2, 2, tokens)


def modes():
    """Autocast, checkpointing, inference mode, strides, a second backward pass, several calls alive at once."""
    q, k, v = (torch.randn(1, 2, 64, 32, requires_grad=True) for _ in range(3))
    mask = maskloom.create_block_mask(causal, None, None, 64, 64, device="cpu")
    attend = functools.partial(maskloom.flex_attention, block_mask=mask)
    with torch.autocast("cpu", torch.bfloat16):
        assert attend(q, k, v).dtype == torch.bfloat16
    with torch.inference_mode():
        near(attend(q, k, v), attend(q.detach(), k.detach(), v.detach()), 0.0, "inference")
    plain = torch.autograd.grad(attend(q, k, v).square().sum(), (q, k, v))
    again = torch.utils.checkpoint.checkpoint(attend, q, k, v, use_reentrant=False)
    for a, b in zip(plain, torch.autograd.grad(again.square().sum(), (q, k, v))):
        assert torch.equal(a, b)
    wide = torch.randn(1, 64, 2, 32).transpose(1, 2)
    assert not wide.is_contiguous()
    near(attend(wide, k, v), attend(wide.contiguous(), k, v), 0.0, "strides")
    one, two = attend(q, k, v), attend(q * 2, k, v)
    (grad_two,) = torch.autograd.grad(two.sum(), q, retain_graph=True)
    torch.autograd.grad(one.sum(), q)
    (grad_again,) = torch.autograd.grad(two.sum(), q)
    assert torch.equal(grad_two, grad_again)
    from maskloom import attention

    assert not attention._PLANS, "plans of finished calls are kept"


def refusals():
    """Each in words that name the argument."""
    q = torch.randn(1, 2, 64, 32)
    small = torch.randn(1, 1, 64, 32)
    mask = maskloom.create_block_mask(causal, None, None, 64, 64, device="cpu")
    attend = maskloom.flex_attention

    def refused(code, action, *words):
        try:
            action()
        except maskloom.MaskloomError as why:
            assert why.code == code and why.hint, f"{why.code}: {why}"
            assert all(word in str(why) for word in words), why
            return
        raise AssertionError(f"accepted: {code}")

    refused("dimensions", lambda: attend(q[0], q, q), "query", "4D")
    refused("dtype", lambda: attend(q.double(), q, q), "query", "float64")
    refused("dtype", lambda: attend(q, q.bfloat16(), q), "key")
    refused("gqa-heads", lambda: attend(q, small, small), "enable_gqa=True")
    refused("head-dim", lambda: attend(q, q[..., :16], q), "E=32 and E=16")
    refused("block-mask-length", lambda: attend(q[:, :, :32], q, q, block_mask=mask), "larger")
    refused("block-mask-length", lambda: attend(q.repeat(1, 1, 2, 1), q, q, block_mask=mask), "smaller")
    refused("block-mask", lambda: attend(q, q, q, block_mask=causal), "function")
    refused("not-a-tensor", lambda: attend(q, q, None), "value")
    refused("scale", lambda: attend(q, q, q, scale="big"), "scale")
    if HAS_AUX:
        refused("aux", lambda: attend(q, q, q, return_lse=True, return_aux=flex.AuxRequest(lse=True)))
        refused("aux", lambda: attend(q, q, q, return_aux=True), "return_aux", "bool")
        kept = flex.AuxOutput
        del flex.AuxOutput  # as before PyTorch 2.9
        refused("torch-version", lambda: attend(q, q, q, return_aux=flex.AuxRequest(lse=True)), "return_aux", "2.9")
        flex.AuxOutput = kept
    else:
        refused("torch-version", lambda: attend(q, q, q, return_aux=True), "return_aux", "2.9")
    refused("vmap", lambda: torch.vmap(lambda x: attend(x, x, x))(q[None]), "torch.vmap")
    none = q[..., :0]
    refused("head-dim", lambda: attend(none, none, none), "E=0")
    refused("head-dim", lambda: attend(q, q, none), "Ev=0")
    # what has no formula here is never a wrong number
    leaf = q.clone().requires_grad_()
    refused("double-backward", lambda: torch.autograd.grad(attend(leaf, q, q).sum(), leaf, create_graph=True))
    refused("forward-mode", lambda: torch.func.jvp(lambda x: attend(x, q, q), (q,), (q,)), "query", "tangent")
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.zeros(2), torch.ones(2))
        refused("forward-mode", lambda: attend(q, q, q, score_mod=lambda s, b, h, i, j: s + dual[h]), "score_mod")
        refused("forward-mode", lambda: attend(q, q, forward_ad.make_dual(q, q)), "value")
    refused("functorch", lambda: torch.func.grad(lambda x: attend(x, q, q).sum())(q), "query", "torch.func.grad")
    refused("tracing", lambda: torch.jit.trace(lambda x: attend(x, q, q), q), "torch.jit.trace")
    refused("arity", lambda: attend(q, q, q, score_mod=causal), "mask_mod")
    refused("branch-on-index", lambda: attend(q, q, q, score_mod=lambda s, b, h, i, j: s if i > j else -s))
    refused("tensor-layout", lambda: attend(torch.nested.nested_tensor([q[0]]), q, q), "query")


def lists_that_change():
    """Lists that were replaced or written are the mask's limits, whoever made them, as in PyTorch's kernels."""
    q = torch.randn(1, 2, 512, 16)  # PyTorch 2.5 has one row of blocks for fewer than 128 queries
    blocks = lambda b, h, q_idx, kv_idx: (q_idx >= kv_idx) & (q_idx // 128 == kv_idx // 128)
    for make in (maskloom.create_block_mask, flex.create_block_mask):
        for write in (
            lambda mask: setattr(mask, "full_kv_num_blocks", torch.zeros_like(mask.full_kv_num_blocks)),
            lambda mask: mask.full_kv_num_blocks.zero_(),
        ):
            mask = make(causal, None, None, 512, 512, device="cpu", BLOCK_SIZE=128)
            near(
                maskloom.flex_attention(q, q, q, block_mask=mask), dense(q, q, q, None, causal, 0.25)[0], 1e-5, "whole"
            )
            write(mask)
            for _ in range(2):
                got = maskloom.flex_attention(q, q, q, block_mask=mask)
                near(got, dense(q, q, q, None, blocks, 0.25)[0], 1e-5, "fewer blocks")


def packed_sequences_that_change():
    """What cu_seq_q holds is read at each call: other views of its memory, and changes that PyTorch does not count."""
    rows = [torch.randn(40, 2, 16) for _ in range(3)]

    def told(cu):
        near(attend(*rows, cu), attend(*rows, cu.tolist()), 1e-6, f"{cu.tolist()}")

    attend = maskloom.flex_attention_varlen
    ends = torch.tensor([0, 10, 20, 30, 40])
    told(ends[:3])
    told(ends[::2])
    buffer = ends.numpy()
    buffer[1] = 15
    told(ends)
    ends.data[1] = 5
    told(ends)
    with torch.inference_mode():
        ends = torch.tensor([0, 10, 40])
        told(ends)
        ends[1] = 20
        told(ends)


def packed_sequences():
    """Sequences side by side are each by itself; a query's place counts from the end where keys are more."""
    attend = maskloom.flex_attention_varlen
    for of_q, of_k, window, tensors in (
        ([0, 30, 30, 77], None, (-1, -1), False),
        ([0, 30, 77], None, (-1, 0), True),
        ([0, 21, 60], [0, 40, 90], (-1, 0), True),
        ([0, 21, 60], [0, 15, 70], (9, 4), False),
    ):
        ends = of_q if of_k is None else of_k
        rows = [torch.randn(n, h, 16, requires_grad=True) for n, h in ((of_q[-1] + 3, 4), (ends[-1], 2), (ends[-1], 2))]
        given = [torch.tensor(cu, dtype=torch.int32) if tensors and cu is not None else cu for cu in (of_q, of_k)]
        score = lambda s, b, h, q_idx, kv_idx: s + 0.01 * kv_idx * (h + 1)
        out, lse = attend(*rows, *given, score_mod=score, window_size=window, enable_gqa=True, return_lse=True)
        assert out.shape == rows[0].shape and lse.shape == (4, len(rows[0]))
        seed = torch.randn_like(out)
        found = torch.autograd.grad(out, rows, seed)
        doubles = [row.detach().double().requires_grad_() for row in rows]
        wanted = torch.zeros_like(out, dtype=torch.float64)
        for a, b, c, d in zip(of_q, of_q[1:], ends, ends[1:]):
            place = lambda q_idx, more=(d - c) - (b - a): q_idx + more
            inside = lambda b, h, q_idx, kv_idx, place=place, window=window: (
                ((place(q_idx) - kv_idx <= window[0]) | (window[0] < 0))
                & ((kv_idx - place(q_idx) <= window[1]) | (window[1] < 0))
            )
            moved = lambda s, b, h, q_idx, kv_idx, c=c: s + 0.01 * (kv_idx + c) * (h + 1)
            parts = [row[i:j].transpose(0, 1)[None] for row, (i, j) in zip(doubles, ((a, b), (c, d), (c, d)))]
            if b > a and d > c:
                wanted[a:b] = dense(*parts, moved, inside, 0.25)[0][0].transpose(0, 1)
        near(out, wanted, 1e-5, "packed sequences")
        for got, want in zip(found, torch.autograd.grad(wanted, doubles, seed.double())):
            near(got, want, 1e-5, "gradients of packed sequences")
    for code, given in (
        ("documents", ([0, 9], [0, 4, 9])),
        ("documents", ([1, 9],)),
        ("documents", ([0, 200],)),
        ("dimensions", None),
    ):
        row = torch.zeros(9, 2, 16)
        try:
            attend(row[None] if given is None else row, row, row, *(given or ([0, 9],)))
            raise AssertionError(f"{code} was not refused")
        except maskloom.ArgumentError as why:
            assert why.code == code and why.hint, why.code


problems()
packed_sequences()
packed_sequences_that_change()
lists_that_change()
block_masks()
beside_torch()
modes()
refusals()
print(f"{compared} problems have the gradients and results of the float64 formula")
sys.exit(0)
