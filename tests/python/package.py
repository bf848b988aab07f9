"""What the tests of the Python package share: finding it, and comparing block masks."""

import importlib
import sys

import torch

FIELDS = [f"{pair}_{what}" for pair in ("kv", "full_kv", "q", "full_q") for what in ("num_blocks", "indices")]


def found():
    """The package, or the end of this script as skipped."""
    try:
        module = importlib.import_module("maskloom")
        importlib.import_module("maskloom._native")
    except ImportError as why:
        print(f"skipped: the Python package is not installed ({why}): pip install .")
        sys.exit(77)
    return module


def same_block_masks(want, got, label):
    """Every array: dtype, shape and each entry; and what belongs to them."""
    for name in FIELDS:
        theirs, ours = getattr(want, name), getattr(got, name)
        if theirs is None or ours is None:
            assert theirs is None and ours is None, f"{label}: {name}"
            continue
        assert (ours.dtype, ours.shape, ours.device) == (theirs.dtype, theirs.shape, theirs.device), f"{label}: {name}"
        assert torch.equal(ours, theirs), f"{label}: {name}\n{theirs}\n{ours}"
    assert got.BLOCK_SIZE == want.BLOCK_SIZE, label
    assert getattr(got, "seq_lengths", None) == getattr(want, "seq_lengths", None), label
