"""Packed documents and designs of the package, against PyTorch's own block masks and the program's.

python package_documents.py [MASKLOOM WORK]
MASKLOOM, WORK: the program and an empty folder; presets are compared with its block lists.
"""

import json
import subprocess
import sys
from pathlib import Path

import package
import torch
from torch.nn.attention.flex_attention import create_block_mask

maskloom = package.found()


def by_hand(rows, causal, window):
    """The mask from the documents' numbers, by PyTorch."""
    doc = torch.tensor(rows)

    def mod(b, h, q, kv):
        kept = (doc[b, q] == doc[b, kv]) & (doc[b, q] >= 0)
        if causal:
            kept = kept & (q >= kv)
        return kept if window is None else kept & ((q - kv).abs() < window)

    tokens = doc.size(1)
    return package.theirs(create_block_mask, mod, len(rows), None, tokens, tokens, device="cpu", BLOCK_SIZE=32)


def compare(want, got, label):
    """Both masks, where PyTorch makes one."""
    if want is not None:
        package.same_block_masks(want, got, label)


def packed():
    """The three ways give one mask."""
    lengths = [70, 1, 130, 0, 99]
    ends = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    positions = torch.cat([torch.arange(n) for n in lengths])
    row = [at for at, n in enumerate(lengths) for _ in range(n)]
    options = {"device": "cpu", "BLOCK_SIZE": 32}
    for causal in (True, False):
        for window in (None, 20):
            want = by_hand([row], causal, window)
            same = {"causal": causal, "window": window, **options}
            ways = [
                maskloom.packed_documents(lengths, **same),
                maskloom.packed_documents(torch.tensor(lengths), **same),
                maskloom.packed_documents(cu_seqlens=ends, **same),
                maskloom.packed_documents(cu_seqlens=ends.tolist(), **same),
                maskloom.packed_documents(position_ids=positions, **same),
                maskloom.packed_documents(position_ids=positions[None].to(torch.int32), **same),
            ]
            for at, got in enumerate(ways):
                compare(want, got, f"way {at}, causal {causal}, window {window}")
    two = torch.stack([positions, torch.arange(300) % 100])
    got = maskloom.packed_documents(position_ids=two, **options)
    want = by_hand([row, [at // 100 for at in range(300)]], True, None)
    compare(want, got, "two rows")
    got = maskloom.packed_documents(lengths, total=320, **options)
    compare(by_hand([[*row, *[-1] * 20]], True, None), got, "padded")


def refusals():
    """Each names what is wrong."""
    bad = [
        ({}, "none of them"),
        ({"lengths": [3], "cu_seqlens": [0, 3]}, "lengths and cu_seqlens"),
        ({"lengths": [3, -1]}, "-1"),
        ({"lengths": []}, "[]"),
        ({"lengths": [1.5]}, "float"),
        ({"cu_seqlens": [1, 3]}, "cu_seqlens"),
        ({"cu_seqlens": [0, 5, 3]}, "-2"),
        ({"position_ids": [0, 1]}, "position_ids"),
        ({"position_ids": torch.tensor([False, True])}, "position_ids is torch.bool"),
        ({"position_ids": torch.zeros(2, 2, 2)}, "position_ids"),
        ({"lengths": [3], "total": 2}, "total"),
        ({"lengths": [3], "window": 0}, "window"),
    ]
    for options, word in bad:
        try:
            maskloom.packed_documents(**options, device="cpu")
        except maskloom.ArgumentError as why:
            assert word in str(why) and why.hint, why
        else:
            raise AssertionError(f"accepted: {options}")


def designs():
    """Presets at their own and at other lengths; the functions alone give the block mask, by PyTorch."""
    design = maskloom.from_design("sliding_window", lengths=400)
    assert (design.q_len, design.kv_len) == (400, 400)
    want = package.theirs(create_block_mask, design.mask_mod, None, None, 400, 400, "cpu", design.BLOCK_SIZE)
    compare(want, design.block_mask(device="cpu"), "sliding_window at 400")
    for argument in ("no_such_preset", "no/such/file.json"):
        try:
            maskloom.from_design(argument)
        except maskloom.ArgumentError as why:
            assert why.hint and argument in str(why), why
        else:
            raise AssertionError(argument)


def beside_the_program(program, work):
    """The program's own lists of a preset, and of the document saved as a file."""
    listed = json.loads(
        subprocess.run([program, "presets", "--json"], capture_output=True, text=True, check=True).stdout
    )
    names = [row["name"] for row in (listed["presets"] if isinstance(listed, dict) else listed)]
    compared = 0
    for name in names:
        file = work / f"{name}.json"
        design = maskloom.from_design(name)
        if design.q_len * design.kv_len > 1 << 28:
            continue
        sizes = design.BLOCK_SIZE if isinstance(design.BLOCK_SIZE, tuple) else (design.BLOCK_SIZE,) * 2
        odd = design.q_len < 128 or design.q_len % sizes[0] or design.kv_len % sizes[1]
        if odd and not package.KEEPS_LENGTHS:
            continue
        subprocess.run([program, "blocks", name, "--out", str(file)], capture_output=True, check=True)
        want = json.loads(file.read_text())
        got = design.block_mask(device="cpu")
        for field in package.FIELDS:
            theirs = torch.tensor(want[field], dtype=torch.int32)
            ours = getattr(got, field)
            assert torch.equal(theirs.expand_as(ours), ours), (name, field)
        compared += 1
    assert compared > 10, names
    print(f"{compared} presets have the program's block lists")


packed()
refusals()
designs()
if len(sys.argv) > 2:
    beside_the_program(sys.argv[1], Path(sys.argv[2]))
print(f"packed documents and designs have PyTorch's block masks{package.and_left_out()}")
