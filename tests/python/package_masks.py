"""The package's create_block_mask against PyTorch's, every array: attention-gym's masks, random ones, odd sizes.

python package_masks.py [MASKS.json [GYM.py]]
MASKS.json: random expressions with their tensors, tests/data/torch_masks.json. GYM.py: tests/data/make_gym_cases.py.
"""

import base64
import copy
import dataclasses
import functools
import importlib
import json
import math
import pickle
import random
import subprocess
import sys
import warnings

import package
import torch
from torch.nn.attention import flex_attention as flex
from torch.nn.attention.flex_attention import and_masks, create_block_mask, noop_mask, or_masks

maskloom = package.found()
warnings.filterwarnings("ignore", message=".*performance drop.*")
compared = 0


def compare(mod, B=None, H=None, Q=300, KV=300, name="", **options):
    """Both masks, every array. The mod may read another array for ours than for PyTorch's."""
    global compared
    theirs, ours = mod if isinstance(mod, tuple) else (mod, mod)
    want = package.theirs(create_block_mask, theirs, B, H, Q, KV, device="cpu", **options)
    got = maskloom.create_block_mask(ours, B, H, Q, KV, device="cpu", **options)
    label = f"{name} B={B} H={H} {Q}x{KV} {options}"
    if want is None:
        return
    package.same_block_masks(want, got, label)
    assert got.mask_mod == ours and type(got) is type(want), label
    compared += 1


def argument(written):
    """An argument of a case of make_gym_cases.py."""
    if isinstance(written, dict) and "tensor" in written:
        t = written["tensor"]
        flat = torch.frombuffer(bytearray(base64.b64decode(t["data"])), dtype=getattr(torch, t["dtype"]))
        return flat.reshape(t["shape"])
    if isinstance(written, dict) and "tuple" in written:
        return tuple(argument(item) for item in written["tuple"])
    if isinstance(written, dict) and "mod" in written:
        return made(written["mod"])
    return written


def made(case):
    """The function of a case."""
    function = getattr(importlib.import_module(case["module"]), case["function"])
    kwargs = {name: argument(value) for name, value in case["kwargs"].items()}
    return function(**kwargs) if case["factory"] else function


def of_the_gym(script, seed):
    """Every mask of attention-gym, with drawn lengths and parameters."""
    answer = subprocess.run([sys.executable, script, str(seed)], capture_output=True, text=True, check=True)
    cases = [case for case in json.loads(answer.stdout) if not case["score"]]
    assert len(cases) > 20
    for case in cases:
        mod, size = made(case), (case["q_len"], case["kv_len"])
        for block in (128, 8, (4, 16)):
            compare(mod, case["B"], case["H"], *size, name=case["name"], BLOCK_SIZE=block)


def of_texts(path):
    """Random expressions over the indices and tensors of every dtype."""
    with open(path) as file:
        stored = json.load(file)
    tensors = {
        name: torch.tensor(t["values"], dtype=getattr(torch, t["dtype"])).reshape(t["shape"])
        for name, t in stored["tensors"].items()
    }
    for case in stored["cases"]:
        space = {"torch": torch, "math": math, **tensors}
        mod = eval(f"lambda b, h, q, k: {case['text']}", space)
        compare(mod, 2, 3, stored["q_len"], stored["kv_len"], name=case["text"], BLOCK_SIZE=(4, 3))


def windows(seed):
    """Random masks of windows, prefixes, documents, strides and heads, at random lengths and block sizes."""
    r = random.Random(seed)
    for _ in range(60):
        Q, KV = r.randint(1, 400), r.randint(1, 400)
        doc = torch.randint(0, 5, (max(Q, KV),), generator=torch.Generator().manual_seed(seed)).sort().values
        doc = doc.to(r.choice([torch.int32, torch.int64, torch.uint8]))
        widths = torch.tensor([r.randint(1, 300) for _ in range(3)])
        window, stride, prefix = r.randint(0, 300), r.randint(1, 9), r.randint(0, 300)
        parts = [
            lambda b, h, q, kv: q >= kv,
            lambda b, h, q, kv, w=window: (q - kv).abs() <= w,
            lambda b, h, q, kv, p=prefix: kv < p,
            lambda b, h, q, kv, d=doc: d[q] == d[kv],
            lambda b, h, q, kv, s=stride: (q - kv) % s == 0,
            lambda b, h, q, kv, w=widths: q - kv < w[h],
            lambda b, h, q, kv, w=widths: kv // 7 < q // 3 + w[b],
            lambda b, h, q, kv: torch.where(h == 1, q >= kv, q <= kv),
        ]
        chosen = [r.choice(parts) for _ in range(r.randint(1, 3))]
        mod = r.choice([and_masks, or_masks])(*chosen)
        size = r.choice([128, 64, 17, (64, 32), (1, 128), (200, 3)])
        compare(mod, r.choice([None, 1, 2]), r.choice([None, 3]), Q, KV, name=f"seed {seed}", BLOCK_SIZE=size)


@dataclasses.dataclass
class Layout:
    """A mod with state."""

    window: int
    doc: torch.Tensor

    def __call__(self, b, h, q, kv):
        return (self.doc[q] == self.doc[kv]) & (q - kv < self.window)

    def method(self, b, h, q, kv):
        return self(b, h, q, kv)


LIMIT = 40
DOC = torch.arange(300) // 70


def with_global(b, h, q, kv):
    return (q - kv < LIMIT) & (DOC[q] == DOC[kv])


def windowed(window, b, h, q, kv):
    return (q >= kv) & (q - kv < window)


def of_all_kinds():
    """Functions as people write them."""
    layout = Layout(90, DOC)
    compare(layout, name="a callable object")
    # PyTorch itself counts the parameters of a bound method with `self`, and refuses it
    compare((layout, layout.method), name="a method")
    compare(functools.partial(windowed, 50), name="partial")
    compare(with_global, name="globals")
    compare(noop_mask, name="noop")
    compare(lambda b, h, q, kv, width=30: q - kv < width, name="default")
    compare(lambda b, h, q, kv: torch.tensor(True), name="constant")
    compare(lambda b, h, q, kv: torch.zeros_like(q, dtype=torch.bool), name="empty")
    compare(lambda b, h, q, kv: ~(q ^ kv).to(torch.bool) | ((q << 1) == kv) | (q >> 2 == kv), name="bits")
    compare(lambda b, h, q, kv: torch.isin(kv, torch.tensor([1, 5, 250])) | torch.logical_not(q > kv), name="isin")
    compare(lambda b, h, q, kv: torch.minimum(q, kv).clamp(3, 200) * 2 >= torch.maximum(q, kv), name="minimum")
    compare(lambda b, h, q, kv: torch.full_like(q, 7) < kv, name="full_like")
    compare(lambda b, h, q, kv: isinstance(q, torch.Tensor) and q >= kv, name="isinstance")
    grid = torch.rand(2, 3, 300, 300, generator=torch.Generator().manual_seed(0)) > 0.99
    compare(lambda b, h, q, kv: grid[b, h, q, kv], 2, 3, name="4-D")
    compare(lambda b, h, q, kv: grid[b][h][q][kv], 2, 3, name="chained")
    compare(lambda b, h, q, kv: grid[b, h].transpose(0, 1)[kv, q], 2, 3, name="transposed part")
    compare(lambda b, h, q, kv: grid[:, :, ::2][1, h, q // 2, kv], 2, 3, name="view inside")
    strided = torch.arange(1200)[::4] // 70
    compare(lambda b, h, q, kv: strided[q] == strided[kv], name="strided")
    ends = torch.tensor([100, 200, 300])
    compare(
        lambda b, h, q, kv: torch.searchsorted(ends, q, right=True) == torch.bucketize(kv, ends, right=True),
        name="search",
    )
    weights = torch.nn.Parameter(torch.linspace(-1, 1, 300))
    compare(lambda b, h, q, kv: weights[q] > weights[kv] - 0.5, name="parameter")
    compare(lambda b, h, q, kv: torch.arange(300)[q] >= kv, name="made inside")
    compare(lambda b, h, q, kv: torch.take(strided, q) == strided.index_select(0, kv.view(1))[0], name="take")
    compare(lambda b, h, q, kv: torch.sort(torch.stack([q, kv])).values[0] < 50, name="several results")
    compare(lambda b, h, q, kv: sum((q >= e) & (kv < e) for e in ends) > 0, name="a loop over a tensor")
    compare(lambda b, h, q, kv: (q.clone().add_(3) >= kv) & (q < 299), name="in place")
    compare(lambda b, h, q, kv: q >= kv, name="both", separate_full_blocks=False, BLOCK_SIZE=64)
    space = {"torch": torch}
    exec("def typed(b, h, q, kv):\n    return q >= kv", space)  # as in a REPL: without a file
    compare(space["typed"], name="REPL")
    write_order()


def write_order():
    """PyTorch's metadata for deterministic backward passes."""
    if not hasattr(flex, "_compute_dq_write_order_from_block_mask"):
        return
    for spt in (True, False):
        options = {"BLOCK_SIZE": 64, "compute_dq_write_order": True, "dq_kv_order": spt}
        want = create_block_mask(windowed_50, None, None, 300, 300, device="cpu", **options)
        got = maskloom.create_block_mask(windowed_50, None, None, 300, 300, device="cpu", **options)
        assert torch.equal(want.dq_write_order, got.dq_write_order), spt
        assert torch.equal(want.dq_write_order_full, got.dq_write_order_full), spt
        assert (want.dq_kv_order, want.dq_kv_order_spt) == (got.dq_kv_order, got.dq_kv_order_spt), spt


def windowed_50(b, h, q, kv):
    return windowed(50, b, h, q, kv)


def of_numpy():
    """Captured arrays of NumPy, in closures, defaults, globals and partials."""
    import numpy

    array = numpy.arange(300) // 70
    tensor = torch.as_tensor(array)
    compare((lambda b, h, q, kv: tensor[q] == tensor[kv], lambda b, h, q, kv: array[q] == array[kv]), name="closure")
    compare((lambda b, h, q, kv: tensor[q] == tensor[kv], lambda b, h, q, kv, d=array: d[q] == d[kv]), name="default")
    space = {"array": array}
    exec("def of_global(b, h, q, kv):\n    return array[q] == array[kv]", space)
    compare((lambda b, h, q, kv: tensor[q] == tensor[kv], space["of_global"]), name="global")

    def given(table, b, h, q, kv):
        return table[q] == table[kv]

    compare((lambda b, h, q, kv: tensor[q] == tensor[kv], functools.partial(given, array)), name="partial")
    width = numpy.int64(40)
    compare(lambda b, h, q, kv: (q - kv < width) & (width > kv - q), name="number")
    outer = lambda b, h, q, kv: array[q] == array[kv]  # noqa: E731
    compare(
        (lambda b, h, q, kv: tensor[q] == tensor[kv], lambda b, h, q, kv: outer(b, h, q, kv)),
        name="a function's closure",
    )


def of_arrays_that_something_holds():
    """A dict, a default that has a name, PyTorch's `and_masks`, lists of functions, which may hold each other."""
    import numpy

    array, other = numpy.arange(300) // 70, numpy.arange(300) % 7
    plain, odd = torch.as_tensor(array), torch.as_tensor(other)
    same = lambda b, h, q, kv: plain[q] == plain[kv]  # noqa: E731
    held = {"document": array, "width": 40}
    compare((same, lambda b, h, q, kv: held["document"][q] == held["document"][kv]), name="dict")

    def named(b, h, q, kv, *, table=array):
        return table[q] == table[kv]

    compare((same, named), name="named default")
    space = {"tables": [array, other], "torch": torch}
    exec("def of_list(b, h, q, kv):\n    return tables[0][q] == tables[0][kv]", space)
    compare((same, space["of_list"]), name="global list")
    one = lambda b, h, q, kv: array[q] == array[kv]  # noqa: E731
    two = lambda b, h, q, kv: other[q] >= other[kv]  # noqa: E731
    want = lambda b, h, q, kv: (plain[q] == plain[kv]) & (odd[q] >= odd[kv])  # noqa: E731
    compare((want, and_masks(one, two)), name="and_masks")
    parts = [one, two]
    every = lambda b, h, q, kv: parts[0](b, h, q, kv) & parts[1](b, h, q, kv)  # noqa: E731
    compare((want, every), name="list of functions")
    # each of 40 holds all of them: each is looked at once
    parts += [lambda b, h, q, kv, n=n: parts[n % 2](b, h, q, kv) for n in range(38)] + [every]
    compare((want, every), name="circle")
    array[:] = numpy.arange(300) // 90
    assert torch.equal(plain, torch.as_tensor(array))
    compare((want, and_masks(one, two)), name="changed in place")


def of_one_batch_after_another():
    """What changed between two calls is in the second mask: nothing kept is ever stale."""
    global LIMIT
    state = {"window": 10, "doc": torch.arange(300) // 30, "offset": torch.tensor(5)}

    def mod(b, h, q, kv):
        doc = state["doc"]
        return (doc[q] == doc[kv]) & (q - kv < state["window"] + state["offset"])

    compare(mod, name="first")
    state["window"] = 200
    compare(mod, name="a number")
    state["doc"] = torch.arange(300) // 100
    compare(mod, name="another tensor")
    state["doc"][150:] = 99
    compare(mod, name="in place")
    state["offset"] += 40
    compare(mod, name="a number in a tensor")
    state["doc"] = state["doc"].to(torch.int32)
    compare(mod, name="dtype")
    state["doc"] = torch.zeros(300, dtype=torch.int32)
    compare(mod, name="equal content")
    LIMIT = 90
    compare(with_global, name="a global")
    one, two = torch.zeros(300, dtype=torch.long), torch.zeros(300, dtype=torch.long)
    pair = lambda b, h, q, kv: one[q] == two[kv]  # noqa: E731
    compare(pair, name="equal tensors")
    one[100:] = 1
    compare(pair, name="no longer equal")
    two[200:] = 1
    compare(pair, name="different")


def of_long_masks():
    """A mask whose index arrays are made at their first use has the entries of one whose arrays are made at once."""
    from maskloom import _arrays

    mod = functools.partial(windowed, 50)
    _arrays.LONG, before = 0, _arrays.LONG
    try:
        for separate in (True, False):
            options = {"BLOCK_SIZE": (16, 32), "separate_full_blocks": separate}
            want = package.theirs(create_block_mask, mod, 2, None, 300, 280, device="cpu", **options)
            got = maskloom.create_block_mask(mod, 2, None, 300, 280, device="cpu", **options)
            assert type(got) is maskloom.LongBlockMask and "kv_indices" not in got.__dict__
            if want is None:
                continue
            package.same_block_masks(want, got, "long")
            got = maskloom.create_block_mask(mod, 2, None, 300, 280, device="cpu", **options).plain()
            assert type(got) is type(want)
            package.same_block_masks(want, got, "plain")
    finally:
        _arrays.LONG = before


def several():
    """Several masks at once."""
    mods = [functools.partial(windowed, width) for width in (5, 50)]
    made = maskloom.create_block_masks([*mods, mods[0]], None, None, 300, 300, device="cpu")
    assert made[0] is made[2] and made[0] is not made[1]
    for mod, got in zip(mods, made):
        package.same_block_masks(create_block_mask(mod, None, None, 300, 300, device="cpu"), got, "several")


def of_numbers_and_types():
    """A scalar of NumPy is a number, and Python's types are dtypes, as PyTorch takes them."""
    import numpy

    for number in (numpy.float16(0.1), numpy.float32(0.1), numpy.float64(0.1), numpy.int8(100), numpy.uint16(3)):
        compare(lambda b, h, q, kv, n=number: q * n >= kv * 3 - n, name=repr(number), BLOCK_SIZE=16)
    compare(lambda b, h, q, kv: torch.ones_like(q, dtype=bool) & (q >= kv), name="dtype=bool")
    compare(lambda b, h, q, kv: (q / 3).to(int) * 3 >= kv.to(float) * 0.9, name="to(int), to(float)", BLOCK_SIZE=16)


def of_what_was_asked():
    """Whether a tensor requires a gradient is asked again."""
    table = torch.randn(300)
    mod = lambda b, h, q, kv: ((q >= kv) if table.requires_grad else (q <= kv)) & (table[q] > -9)
    for learns in (False, True, False):
        table.requires_grad_(learns)
        compare(mod, name=f"requires_grad={learns}", BLOCK_SIZE=16)


def causal(b, h, q, kv):
    return q >= kv


def of_copies_of_long_masks():
    """A LongBlockMask is copied with its blocks; to another process it goes with all arrays."""
    from maskloom import _arrays

    kept, _arrays.LONG = _arrays.LONG, 1024
    try:
        long = maskloom.create_block_mask(causal, None, None, 3000, 3000, device="cpu")
    finally:
        _arrays.LONG = kept
    assert type(long) is maskloom.LongBlockMask
    for made in (copy.copy(long), copy.deepcopy(long)):
        assert type(made) is maskloom.LongBlockMask and "kv_indices" not in made.__dict__
        package.same_block_masks(create_block_mask(causal, None, None, 3000, 3000, device="cpu"), made, "a copy")
    sent = pickle.loads(pickle.dumps(long))
    package.same_block_masks(create_block_mask(causal, None, None, 3000, 3000, device="cpu"), sent, "sent")


def of_memory():
    """The memory of a former batch's tensors is the next one's: it is not asked from the system again."""
    try:
        import resource
    except ImportError:  # Windows
        return
    faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    from maskloom import _mods, _native

    doc = torch.arange(262_144) // 900
    mask, _ = _mods.traced(lambda b, h, q, kv: doc[q] == doc[kv], "mask_mod", device=torch.device("cpu"))
    given = _mods.given(doc)
    for _ in range(3):
        mask.rebound([given])
    before = faults()
    for _ in range(20):
        mask.rebound([given])
    # 2 MiB are 512 pages
    assert faults() - before < 20 * 64, f"{faults() - before} pages of new memory for 20 masks"
    held = [mask.rebound([given]) for _ in range(3)]
    doc.fill_(7)
    again = mask.rebound([given])
    blocks = lambda of: _native.build(of, (1, 1), (4096, 4096), (128, 128)).kept_cells()
    assert len({blocks(one) for one in held}) == 1 and blocks(again) == 4096**2 > blocks(held[0]), "it is its own"


of_all_kinds()
of_numpy()
of_arrays_that_something_holds()
of_one_batch_after_another()
of_long_masks()
of_numbers_and_types()
of_what_was_asked()
of_copies_of_long_masks()
of_memory()
several()
for seed in range(4):
    windows(seed)
if len(sys.argv) > 1:
    of_texts(sys.argv[1])
if len(sys.argv) > 2:
    for seed in (1, 2, 3):
        of_the_gym(sys.argv[2], seed)
print(f"{compared} block masks have PyTorch's arrays{package.and_left_out()}")
