"""What the tests of the Python package share: finding it, its refusals, and comparing block masks."""

import importlib
import sys

import torch

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
#: The version whose every result is compared; a former one may fail at what it was not made for.
NEWEST = (2, 15)
#: PyTorch 2.5 keeps no lengths in a BlockMask: it rounds them up to whole blocks, and names blocks of 128 for all.
KEEPS_LENGTHS = VERSION >= (2, 6)
#: What a former PyTorch failed at.
left_out = []
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


def refused(call, *words):
    """The package's error of a call, in which these words stand."""
    try:
        call()
    except found().MaskloomError as why:
        assert all(word in str(why) for word in words), why
        return why
    raise AssertionError(f"not refused: {words}")


def theirs(make, *args, **options):
    """What PyTorch makes; None where a former version fails at it."""
    try:
        return make(*args, **options)
    except (AttributeError, IndexError, RuntimeError, TypeError) as why:
        if VERSION >= NEWEST:
            raise
        left_out.append(f"{type(why).__name__}: {why}".splitlines()[0])
        return None


def and_left_out():
    """The end of a script's last line."""
    return f"; PyTorch {torch.__version__} itself failed at {len(left_out)} more" if left_out else ""


def same_block_masks(want, got, label):
    """Every array: dtype, shape and each entry; and what belongs to them."""
    for name in FIELDS:
        theirs, ours = getattr(want, name), getattr(got, name)
        if theirs is None or ours is None:
            assert theirs is None and ours is None, f"{label}: {name}"
            continue
        assert (ours.dtype, ours.shape, ours.device) == (theirs.dtype, theirs.shape, theirs.device), f"{label}: {name}"
        assert torch.equal(ours, theirs), f"{label}: {name}\n{theirs}\n{ours}"
    assert got.BLOCK_SIZE == want.BLOCK_SIZE or not KEEPS_LENGTHS, label
    assert getattr(got, "seq_lengths", None) == getattr(want, "seq_lengths", None), label
