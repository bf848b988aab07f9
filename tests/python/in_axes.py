"""Designs that follow the axes of a call: aspect buckets and trimmed prompts. Run by behaviour.py."""

import importlib
from types import SimpleNamespace

import families
import torch
from exports import CLOSE, adapter, lines, preset
from matrix import apart, sdpa_by_hand, step
from torch.nn.attention.flex_attention import create_mask

BOX = ("natten_2d", "--arg", "kernel_h=3", "--arg", "kernel_w=5")
TILES = ("--arg", "kernel_h=4", "--arg", "kernel_w=4", "--arg", "tile_h=2", "--arg", "tile_w=2")
# (name, arguments but axes, the design's axes, other axes)
FOLLOWED = (
    ("box", BOX, "text 16 | image 8x8", ("text 12 | image 10x6", "text 1 | image 5x12")),
    ("lines", ("axial_image",), "image 8x8", ("image 10x6",)),
    ("tiles", ("sta_image", *TILES), "image 8x8", ("image 12x4",)),
    ("ring", ("wan_radial", "--arg", "frame=20"), "video 6x4x5", ("video 9x3x4",)),
    ("slopes", ("alibi",), "image 8x8", ("image 6x10",)),
)
# frames, rows and columns of the parts of the design's own axes
EXTENTS = {"box": [(1, 1, 16), (1, 8, 8)], "ring": [(6, 4, 5)]}


def parsed(axes):
    parts = (part.split() for part in axes.split("|"))
    return tuple((name, tuple(int(n) for n in grid.split("x"))) for name, grid in parts)


def flux(rows, columns, text):
    model, inputs, chosen = families.built("flux")
    torch.manual_seed(3)
    ids = torch.zeros(rows * columns, 3)
    ids[:, 1], ids[:, 2] = torch.arange(rows * columns) // columns, torch.arange(rows * columns) % columns
    inputs |= dict(
        hidden_states=torch.randn(2, rows * columns, 8), encoder_hidden_states=torch.randn(2, text, 32), img_ids=ids,
        txt_ids=torch.zeros(text, 3),
    )  # fmt: skip
    return model, inputs, chosen


def patterns_over_other_axes_are_those_of_another_export():
    for name, args, own, others in FOLLOWED:
        preset(name, *args, "--axes", own)
        module = importlib.import_module(f"d_{name}_axes")
        assert module.AXES == parsed(own)
        if name in EXTENTS:
            assert [(part.t, part.h, part.w) for part in module._segments(module.AXES)] == EXTENTS[name]
        for number, axes in enumerate((own, *others)):
            more = () if name != "ring" or axes == own else ("--arg", "frame=12")
            want = preset(f"{name}_{number}", *args, *more, "--axes", axes)[1]
            keep, score = module.mods_at(parsed(axes), "cpu")
            assert (keep is None, score is None) == (want.mask_mod is None, want.score_mod is None)
            if keep is not None:
                got = create_mask(keep, want.BATCH, want.HEADS, want.Q_LEN, want.KV_LEN, device="cpu")
                assert got.equal(want.make_mask("cpu")), (name, axes)
            if score is not None:
                at = torch.arange(want.Q_LEN)
                cells = (torch.randn(want.Q_LEN, want.Q_LEN), torch.tensor(0), torch.tensor(1), at[:, None], at[None])
                assert torch.allclose(score(*cells), want.score_mod(*cells)), (name, axes)


def buckets_and_trimmed_prompts_have_their_own_mask():
    preset("box", *BOX, "--axes", "text 16 | image 8x8")
    other = preset("box_1", *BOX, "--axes", "text 12 | image 10x6")[1].make_mask("cpu")
    model, inputs, chosen = flux(10, 6, 12)
    plain = step(model, inputs)[0]
    handle = adapter("box").use(model, strict=True)
    got = step(model, inputs)
    with torch.no_grad():
        run = torch.compile(model, backend="aot_eager")
        compiled = run(**inputs)[0]
    assert handle.verify(inputs).ok
    # the design's own axes, again
    square = flux(8, 8, 16)[1]
    assert handle.verify(square).ok
    want = model(**square)[0]
    handle.remove()
    handle = adapter("box").use(model, strict=True, grid="assume")
    with torch.no_grad():
        whole = torch.compile(model, backend="aot_eager", fullgraph=True)
        assert apart(whole(**square)[0], want) < CLOSE
    handle.remove()
    with sdpa_by_hand(model, chosen, other):
        want = step(model, inputs)
    assert apart(got[0], want[0]) < CLOSE and apart(got[0], plain) > 1e-3 and apart(compiled, want[0]) < CLOSE
    assert max(apart(a, b) for a, b in zip(got[1], want[1], strict=True)) < CLOSE


def a_call_that_has_other_segments_is_left_and_told():
    preset("box", *BOX, "--axes", "text 16 | image 8x8")
    model, inputs, _ = families.wan((5, 4, 4))
    with lines() as said:
        handle = adapter("box").use(model)
        model(**inputs)
    assert "over a grid of 5x4x4" in said.getvalue(), said.getvalue()
    handle.remove()


def grids_are_read_from_the_ids_of_their_tokens():
    adapter("near")._runtime()
    of_ids = importlib.import_module("maskloom_sidecar.grids")._of_ids
    ids = torch.cartesian_prod(torch.tensor([7]), torch.arange(3), torch.arange(4))
    assert of_ids(ids) == of_ids(ids[None].expand(2, -1, -1)) == ((1, 3, 4),)
    # another order, a missing token, samples of different grids
    turned = torch.stack([ids, ids[:, [0, 2, 1]]])
    assert [of_ids(other) for other in (ids.flip(0), ids[:-1], turned)] == [None] * 3


def tokens_beside_a_grid_are_counted():
    adapter("near")._runtime()
    followed = importlib.import_module("maskloom_sidecar.designs")._followed
    design = SimpleNamespace(follows=True, shapes="exact", axes=(("text", (5,)), ("image", (2, 3))))
    for tokens, reason in ((4, "over a part of the grid"), (6, " and 0 tokens beside it"), (5, "over a part of the grid")):
        made, why = followed(design, tokens, ((2, 3),))
        assert made is None and why.endswith(reason), (tokens, why)
    alone = SimpleNamespace(follows=True, shapes="exact", axes=(("image", (2, 3)),))
    assert followed(alone, 9, ((2, 3),))[1].endswith(" and 3 tokens beside it")
