"""What the package refuses: each with its code, the user's file and line, the cause and a way out; never an abort.

python package_refusals.py
"""

import concurrent.futures
import importlib
import inspect
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings

import package
import torch
from torch.nn.attention.flex_attention import create_block_mask

maskloom = package.found()
warnings.filterwarnings("ignore", message=".*performance drop.*")
HERE = os.path.abspath(__file__)


def made(mod, *args, **options):
    return maskloom.create_block_mask(mod, *(args or (None, None, 64, 64)), device="cpu", BLOCK_SIZE=16, **options)


def causal(b, h, q, kv):
    return q >= kv


def refused(code, action, *words, kind=None):
    """The refusal, with its words."""
    try:
        action()
    except maskloom.MaskloomError as why:
        assert type(why) is (kind or type(why)), why
        assert why.code == code, f"{why.code} instead of {code}: {why}"
        assert why.hint, f"no way out: {why}"
        for word in words:
            assert word in str(why), f"{word!r} is not in: {why}"
        again = pickle.loads(pickle.dumps(why))
        assert (str(again), again.code, type(again)) == (str(why), code, type(why))
        return why
    raise AssertionError(f"accepted: {code} {inspect.getsource(action)}")


def recording(code, mod, *words, line=1):
    """A mod that cannot be recorded is refused at its own line, and PyTorch may take its place aloud."""
    why = refused(code, lambda: made(mod), *words, kind=maskloom.RecordingError)
    first = inspect.getsourcelines(mod)[1]
    assert os.path.abspath(why.file) == HERE, why.file
    assert why.line == first + line, f"line {why.line} instead of {first + line}: {why}"
    return why


def branch(b, h, q, kv):
    if q > 3:
        return q >= kv
    return q < kv


def conjunction(b, h, q, kv):
    return q >= kv and q < 9


def item(b, h, q, kv):
    return q >= kv.item()


def number(b, h, q, kv):
    return int(q) >= kv


def printed(b, h, q, kv):
    print(q)
    return q >= kv


def formatted(b, h, q, kv):
    assert f"{q}"
    return q >= kv


def listed(b, h, q, kv):
    return [1, 2, 3][q] >= kv


def ranged(b, h, q, kv):
    return kv >= sum(range(q))


def raising(b, h, q, kv):
    raise KeyError("a name")


def caught(b, h, q, kv):
    try:
        return q.item() >= kv
    except Exception:
        return q >= kv


def a_float(b, h, q, kv):
    return q * 1.5


def an_int(b, h, q, kv):
    return q - kv


def nothing(b, h, q, kv):
    q >= kv  # noqa: B015


def a_bool(b, h, q, kv):
    return True


def a_pair(b, h, q, kv):
    return q >= kv, q < kv


def a_row(b, h, q, kv):
    return torch.ones(5, dtype=torch.bool) & (q >= kv)


TABLE = torch.zeros(64, dtype=torch.long)


def written(b, h, q, kv):
    TABLE[q] = 1
    return q >= kv


def float_index(b, h, q, kv):
    return TABLE[q / 2] == 0


def numpy_attribute(b, h, q, kv):
    import numpy

    return numpy.maximum(q, 3) >= kv


def mods():
    recording("branch-on-index", branch, "torch.where")
    recording("branch-on-index", conjunction, "`&`")
    recording("value-of-index", item, "item")
    recording("value-of-index", number, "int()")
    recording("printed-index", printed)
    recording("printed-index", formatted)
    recording("value-of-index", listed, "torch.as_tensor")
    recording("value-of-index", ranged)
    recording("raised", raising, "KeyError", "a name")
    recording("value-of-index", caught, line=2)
    recording("mod-result", nothing, "None", line=0)
    recording("mod-result", a_bool, "bool", "torch.ones_like", line=0)
    recording("mod-result", a_pair, "tuple", line=0)
    recording("write", written, "before")
    recording("index-dtype", float_index, "//")
    for code, mod in [("float-mask", a_float), ("mask-not-bool", an_int), ("wrong-result", a_row)]:
        why = refused(code, lambda mod=mod: made(mod), kind=maskloom.RecordingError)
        assert os.path.abspath(why.file) == HERE, why
    refused("raised", lambda: made(numpy_attribute), "ufunc", kind=maskloom.RecordingError)
    refused("arity", lambda: made(lambda score, b, h, q, kv: score), "score_mod")
    refused("arity", lambda: made(lambda q, kv: q >= kv), "got 2")
    refused("not-a-mod", lambda: made(3), "mask_mod is an int")
    refused("not-a-mod", lambda: made(None), "mask_mod")


def fallback():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        got = made(prints_shape, fallback="torch")
    assert [w.category for w in said if issubclass(w.category, maskloom.FallbackWarning)], said
    assert "print" in str([w.message for w in said])
    want = create_block_mask(prints_shape, None, None, 64, 64, device="cpu", BLOCK_SIZE=16)
    package.same_block_masks(want, got, "fallback")
    refused("fallback", lambda: made(causal, fallback="numpy"), "numpy")
    # what PyTorch cannot do either is PyTorch's error
    try:
        made(branch, fallback="torch")
    except maskloom.MaskloomError as why:
        raise AssertionError("PyTorch was not asked") from why
    except RuntimeError:
        pass


def prints_shape(b, h, q, kv):
    str(q)
    return q >= kv


def another_default_dtype():
    """PyTorch makes floats of ints in its default dtype; here they are float32, and others are refused."""
    halves = lambda b, h, q, kv: q * 0.5 >= kv
    made(halves)  # known from now on
    for dtype in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(dtype)
        try:
            refused("default-dtype", lambda: made(halves), str(dtype), "set_default_dtype")
            refused("default-dtype", lambda: made(lambda b, h, q, kv: q - kv < 7.5), str(dtype))
            made(causal)
            made(lambda b, h, q, kv: q.float() * 0.5 >= kv)
        finally:
            torch.set_default_dtype(torch.float32)


def arguments():
    argument = maskloom.ArgumentError
    for name, args in [("Q_LEN", (None, None, 0, 64)), ("KV_LEN", (None, None, 64, -1))]:
        refused("zero-length", lambda args=args: made(causal, *args), name, kind=argument)
    for name, args in [("Q_LEN", (None, None, 2**31, 64)), ("KV_LEN", (None, None, 64, 2**40))]:
        refused("length-too-large", lambda args=args: made(causal, *args), name, kind=argument)
    for name, args in [
        ("B", (1.5, None, 64, 64)),
        ("H", (None, "2", 64, 64)),
        ("Q_LEN", (None, None, 64.0, 64)),
        ("KV_LEN", (None, None, 64, None)),
        ("B", (True, None, 64, 64)),
    ]:
        refused("not-an-int", lambda args=args: made(causal, *args), name, kind=argument)
    refused("count", lambda: made(causal, 0, None, 64, 64), "B is 0", kind=argument)
    for size in (0, -1, (1, 2, 3)):
        make = lambda size=size: maskloom.create_block_mask(causal, 1, 1, 64, 64, BLOCK_SIZE=size)
        refused("block-size", make, "BLOCK_SIZE", kind=argument)
    refused("device", lambda: maskloom.create_block_mask(causal, 1, 1, 64, 64, device="meta"), "meta", kind=argument)
    refused(
        "device", lambda: maskloom.create_block_mask(causal, 1, 1, 64, 64, device="toaster"), "toaster", kind=argument
    )
    refused("dq-kv-order", lambda: made(causal, dq_kv_order=torch.arange(4)), kind=argument)
    # more lists than memory has: refused before anything is allocated
    refused("grid-too-large", lambda: maskloom.create_block_mask(causal, 64, 64, 2**20, 2**20), kind=argument)


def tensors():
    argument = maskloom.ArgumentError
    for code, tensor in [
        ("tensor-meta", torch.zeros(64, dtype=torch.long, device="meta")),
        ("tensor-layout", torch.eye(64).to_sparse()),
        ("tensor-layout", torch.nested.nested_tensor([torch.zeros(64)])),
        ("tensor-dtype", torch.zeros(64, dtype=torch.complex64)),
        ("tensor-dtype", torch.zeros(64).to(torch.float8_e4m3fn)),
    ]:
        refused(code, lambda t=tensor: made(lambda b, h, q, kv: t[q] == t[kv]), "mask_mod", kind=argument)
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.zeros(64, dtype=torch.long)
    refused("tensor-values", lambda: made(lambda b, h, q, kv: fake[q] == fake[kv]), kind=argument)
    with FakeTensorMode():
        refused("tensor-values", lambda: made(causal), "FakeTensor", kind=argument)
    endless = torch.zeros(1, requires_grad=True).expand(2**32)
    refused("tensor-too-large", lambda: made(lambda b, h, q, kv: endless[q] == endless[kv]), "GiB", kind=argument)
    # what is not free is refused before it is allocated, by the program's own rule
    _mods = importlib.import_module("maskloom._mods")
    most, _mods.LARGEST = _mods.LARGEST, 2**62
    huge = torch.zeros(1, requires_grad=True).expand(2**50)
    refused("out-of-memory", lambda: made(lambda b, h, q, kv: huge[q] == huge[kv]), "GiB are free", kind=argument)
    _mods.LARGEST = most
    refused("out-of-memory", lambda: _mods.fits("the output", 2**60), "the output takes", kind=argument)
    with torch.device("meta"):  # a default device is not where block lists are made
        package.same_block_masks(made(causal), made(lambda b, h, q, kv: q >= kv), "default device")
    # a compiled function calls it between two graphs
    compiled = torch.compile(lambda x: x + made(causal).kv_num_blocks.sum(), backend="eager")
    assert int(compiled(torch.zeros(()))) == int(made(causal).kv_num_blocks.sum())
    # PyTorch itself refuses integers that require gradients; floats that do are read
    weights = torch.linspace(-1, 1, 64, requires_grad=True)
    doc = (torch.arange(256).reshape(64, 4) // 40).t()[1]
    assert not doc.is_contiguous()
    for mod in (lambda b, h, q, kv: weights[q] > weights[kv], lambda b, h, q, kv: doc[q] == doc[kv]):
        want = create_block_mask(mod, None, None, 64, 64, device="cpu", BLOCK_SIZE=16)
        package.same_block_masks(want, made(mod), "a view")
    empty = torch.zeros(0, dtype=torch.long)
    made(lambda b, h, q, kv: (q >= kv) & (empty.numel() == 0))


def expanded():
    """A large expanded tensor is read from what it stores; an index outside is refused as in a small one."""
    stored = torch.arange(64) % 5
    large, small = stored.expand(2**25, 64), stored.expand(4, 64)
    assert large.nbytes > 8 << 30
    for of in (
        lambda t: lambda b, h, q, kv: (t[b, kv] > 1) & (q >= kv),
        # PyTorch 2.5 takes no number as an index here
        lambda t: lambda b, h, q, kv: (t[b * 0 - 1, kv] > 1) | (t[q // 16, q] > 3),
    ):
        want = create_block_mask(of(small), 2, None, 64, 64, device="cpu", BLOCK_SIZE=16)
        package.same_block_masks(want, made(of(large), 2, None, 64, 64), "expanded")
    inputs = [torch.randn(1, 2, 64, 16) for _ in range(3)]
    attended = [
        maskloom.flex_attention(*inputs, score_mod=lambda score, b, h, q, kv, t=t: score + t[h, kv])
        for t in (stored.float().expand(2**26, 64), stored.float().expand(2, 64))
    ]
    assert torch.equal(*attended)
    outside = torch.zeros(1, 1).expand(40, 2**23)
    for at in (40, -41):
        action = lambda at=at: made(lambda b, h, q, kv: outside[at, kv] < 1)
        refused("index-out-of-range", action, kind=maskloom.RecordingError)


def lengths():
    """Tokens that no list can number are refused before a tensor of them is made."""
    packed = maskloom.packed_documents
    for action in (
        lambda: packed([2**40], device="cpu"),
        lambda: packed([2**62] * 4, device="cpu"),  # beyond int64 PyTorch 2.5 ends in a fault of memory
        lambda: packed(cu_seqlens=[0, 2**40], device="cpu"),
        lambda: packed([4], total=2**40, device="cpu"),
    ):
        refused("length-too-large", action, "2^30", kind=maskloom.ArgumentError)
    refused("design-file", lambda: maskloom.from_design(None), "is None", kind=maskloom.ArgumentError)


def words_are_of_this_place():
    """Hints name what Python's user can do, never a field of the window; nothing of PyTorch's or Python's escapes."""
    row = torch.randn(1, 2, 64, 16)
    rows = torch.randn(20, 2, 16)
    attend, varlen, mask = maskloom.flex_attention, maskloom.flex_attention_varlen, made(causal)
    for code, action, *words in (
        ("not-a-mod", lambda: attend(row, row, row, "alibi"), "score_mod is a str", "score, b, h, q_idx, kv_idx"),
        ("not-a-mod", lambda: attend(row, row, row, mask), "score_mod is a BlockMask", "block_mask="),
        ("not-a-mod", lambda: made(mask), "a BlockMask", "its mask_mod"),
        ("scale", lambda: attend(row, row, row, scale=float("nan")), "scale is nan", "1 / sqrt(E)"),
        ("scale", lambda: attend(row, row, row, scale=float("inf")), "scale is inf"),
        ("shape", lambda: attend(row[:, :, :0], row, row), "query is (1, 2, 0, 16)"),
        ("shape", lambda: attend(row, row[:, :, :0], row[:, :, :0]), "key is (1, 2, 0, 16)"),
        ("shape", lambda: attend(row[:0], row[:0], row[:0]), "query is (0, 2, 64, 16)"),
        ("head-dim", lambda: attend(*[torch.zeros(1, 1, 8, 257)] * 3), "E=257", "1 to 256"),
        ("not-a-bool", lambda: made(causal, separate_full_blocks="no"), "separate_full_blocks is 'no'"),
        ("not-a-bool", lambda: made(causal, compute_dq_write_order="yes"), "compute_dq_write_order"),
        ("not-a-list", lambda: maskloom.create_block_masks(causal, None, None, 64, 64), "mask_mods is a function"),
        ("documents", lambda: maskloom.packed_documents([0, 0], device="cpu"), "lengths: document lengths are [0, 0]"),
        ("documents", lambda: varlen(rows, rows, rows, None), "cu_seq_q is None"),
        ("documents", lambda: varlen(rows, rows, rows, "0, 20"), "cu_seq_q is a str"),
        ("plan-group", lambda: maskloom.plan_context_parallel(mask), "no process group", "init_process_group"),
        ("cell", lambda: maskloom.explain(mask, q=64), "q is 64, of 64 tokens"),
        ("cell", lambda: maskloom.explain("causal", h=-1), "h is -1"),
        ("capture", lambda: maskloom.suggest(None), "capture is None"),
        ("mask", lambda: maskloom.race(3), "an int is no mask"),
        ("rows", lambda: maskloom.show(mask, rows=5), "rows is 5, of 64 tokens"),
        ("rows", lambda: maskloom.show(mask, rows=("a", "b")), "rows is"),
        ("lengths", lambda: maskloom.show(causal, 64.0), "lengths is 64.0"),
        ("count", lambda: maskloom.show(causal, 64, heads=0), "heads is 0"),
        ("score", lambda: maskloom.explain(causal, score="x"), "score is a str"),
        ("path", lambda: maskloom.share(mask, None), "path is None"),
        ("path", lambda: maskloom.share(mask, os.path.dirname(HERE)), "cannot be written"),
        ("path", lambda: maskloom.share(mask, os.path.join(HERE, "x.html")), "cannot be written"),
        ("not-an-int", lambda: maskloom.packed_documents([3], total="5", device="cpu"), "total is '5'"),
        ("not-an-int", lambda: maskloom.packed_documents([3], window=2.5, device="cpu"), "window is 2.5"),
        ("not-a-bool", lambda: maskloom.packed_documents([3], causal="no", device="cpu"), "causal is 'no'"),
    ):
        why = refused(code, action, *words)
        assert "settings" not in why.hint and "field" not in why.hint, why
    cards = torch.cuda.device_count()
    on = lambda device: maskloom.create_block_mask(causal, None, None, 64, 64, device=device)
    refused("device", lambda: on(f"cuda:{cards}"), f"cuda:{cards}", "NVIDIA GPU", kind=maskloom.ArgumentError)


def names_are_completed():
    """Also those that are imported at their first use."""
    code = "import maskloom; print(*dir(maskloom)); assert 'create_block_mask' not in vars(maskloom)"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
    assert {*maskloom.__all__, "open", "notebook", "integrations"} <= set(names), names


def varlen_takes_pytorchs_arguments():
    """Those of `varlen_attn` by place and by name."""
    rows = [torch.randn(20, 2, 16) for _ in range(3)]
    cu = torch.tensor([0, 8, 20])
    want = maskloom.flex_attention_varlen(*rows, cu, return_lse=True)
    got = maskloom.flex_attention_varlen(*rows, cu, cu, 12, 12, window_size=(-1, -1))
    assert torch.equal(want[0], got)
    request = getattr(importlib.import_module("torch.nn.attention.flex_attention"), "AuxRequest", None)
    if request is not None:
        out, lse = maskloom.flex_attention_varlen(*rows, cu, None, 12, 12, return_aux=request(lse=True))
        assert torch.equal(out, want[0]) and torch.equal(lse, want[1])


def sub_interpreters():
    """PyTorch cannot be loaded twice in a process: the import says so before that."""
    from maskloom import _interpreter

    class Second:
        get_current, get_main = (lambda: 1), (lambda: 0)

    refused("sub-interpreter", lambda: _interpreter.check(Second), "main interpreter")
    code = f"""
try:
    import _interpreters as own
except ImportError:
    import _xxsubinterpreters as own
made = own.create("legacy") if hasattr(own, "new_config") else own.create()
said = own.run_string(made, "import sys; sys.path[:] = {sys.path!r}; import maskloom")
print(getattr(said, "formatted", said))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "[sub-interpreter]" in ran.stdout + ran.stderr and ran.returncode >= 0, ran


def panics():
    from maskloom import _call, _native

    for elsewhere in (False, True):
        why = refused(
            "panic",
            lambda e=elsewhere: _call.call(_native.panic_on_purpose, e),
            "on purpose",
            kind=maskloom.InternalError,
        )
        assert "report" in why.hint
    package.same_block_masks(made(causal), made(causal), "after a panic")


def work(seed):
    """A data loader's worker: blocks of a mask large enough for several threads."""
    doc = torch.arange(8192) // (100 + seed)
    mod = lambda b, h, q, kv: (doc[q] == doc[kv]) & ((q * 7 + kv * kv) % 5 < 4)
    mask = maskloom.create_block_mask(mod, None, None, 8192, 8192, device="cpu")
    return [int(getattr(mask, name).sum()) for name in ("kv_num_blocks", "full_kv_num_blocks", "q_indices")]


def processes():
    want = [work(seed) for seed in range(4)]
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            got = list(pool.map(work, range(4), timeout=300))
        assert got == want, method
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, list(range(4)) * 4)) == want * 4


def unlocked():
    """Other threads run while a mask is computed."""
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    mod = lambda b, h, q, kv: (q * kv + q * q) % 7 < 3
    maskloom.create_block_mask(mod, None, None, 8192, 8192, device="cpu")
    end = time.perf_counter()
    done.set()
    thread.join()
    inside = sum(start < tick < end for tick in ticks)
    assert inside > (end - start) / 0.02, f"{inside} ticks in {end - start:.3f} s"


def old_torch():
    """A PyTorch without FlexAttention."""
    maskloom.__dict__.pop("create_block_mask", None)
    version, torch.__version__ = torch.__version__, "2.4.1+cpu"
    try:
        refused("torch-version", lambda: maskloom.create_block_mask, "2.5", "2.4.1")
        # also where a part is imported by its own name
        for part in ("integrations", "notebook", "distributed"):
            for name in [name for name in sys.modules if name.startswith(f"maskloom.{part}")]:
                del sys.modules[name]
            refused("torch-version", lambda p=part: importlib.import_module(f"maskloom.{p}"), f"maskloom.{part}", "2.5")
    finally:
        torch.__version__ = version


if __name__ == "__main__":
    mods()
    fallback()
    another_default_dtype()
    arguments()
    tensors()
    expanded()
    lengths()
    words_are_of_this_place()
    names_are_completed()
    varlen_takes_pytorchs_arguments()
    sub_interpreters()
    panics()
    processes()
    unlocked()
    old_torch()
    print("every refusal has its words")
    sys.exit(0)
