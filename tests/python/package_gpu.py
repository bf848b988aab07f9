"""flex_attention on a GPU, without one: which mods a call has, what is prepared and when, what a launch is given.

python package_gpu.py

Kernels are compiled where NVRTC is found; a stand-in takes the place of their launches, and tensors lie on the CPU.
package_on_a_card.py checks results.
"""

import contextlib
import copy
import functools
import os
import pickle
import sys
import threading
import types

import package
import torch
from torch.nn.attention.flex_attention import create_block_mask

maskloom = package.found()
from maskloom import _cuda, _gpu, _held, _native  # noqa: E402
from maskloom._signature import signature  # noqa: E402

checked = []
BF16 = torch.bfloat16
CPU = torch.device("cpu")
WINDOW = 5
TABLE = torch.arange(8.0)


def check(function):
    function()
    checked.append(function.__name__)


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


# --- which function it is ---


def equal_functions_have_one_signature():
    def made(cap, slopes, inner=None):
        return lambda score, b, h, q, k: (score * cap + slopes[h]) if inner is None else inner(score) + slopes[h]

    a, b = torch.zeros(4), torch.ones(4)
    one, other = signature(made(2.0, a)), signature(made(2.0, b))
    assert one[0] == other[0] and one[1][0] is a and other[1][0] is b
    for cap in (3.0, -0.0, 0.0, True, 1, 1.0):
        assert signature(made(cap, a))[0] != one[0], cap
    keys = [signature(made(cap, a))[0] for cap in (-0.0, 0.0, True, 1, 1.0)]
    assert len(set(keys)) == 5
    assert signature(made(2.0, torch.zeros(5)))[0] != one[0], "another shape"
    assert signature(made(2.0, a.double()))[0] != one[0], "another dtype"
    assert signature(made(2.0, a, torch.tanh))[0] != signature(made(2.0, a, torch.sin))[0]
    assert signature(made(2.0, a, lambda x: x + 1))[0] != signature(made(2.0, a, lambda x: x + 2))[0]


def what_mods_usually_do_has_a_signature():
    from torch.nn import functional

    table, n = torch.zeros(4), 3
    for mod in (
        lambda score, b, h, q, k: torch.where(q >= k, score, torch.finfo(torch.float32).min),
        lambda score, b, h, q, k: score + functional.softplus(table)[h] * min(n, 2),
        lambda score, b, h, q, k: score.to(torch.float16) * table.shape[0] + torch.special.expit(table[h]),
        lambda score, b, h, q, k: torch.maximum(score, torch.zeros_like(score)) + table.unbind()[n],
        lambda b, h, q, k: torch.isin(k, torch.arange(n, device=q.device)) | (abs(q - k) < n),
    ):
        assert signature(mod) is not None, mod


def tensors_that_are_one_are_told_from_two():
    def made(x, y):
        return lambda score, b, h, q, k: score + x[q] * y[k]

    a, b = torch.zeros(4), torch.zeros(4)
    assert signature(made(a, a))[0] != signature(made(a, b))[0]


def a_global_is_part_of_the_signature():
    global WINDOW
    reads = lambda score, b, h, q, k: score + WINDOW * TABLE[h]
    before = signature(reads)
    WINDOW = 6
    assert signature(reads)[0] != before[0] and before[1][0] is TABLE


def what_may_change_unseen_has_no_signature():
    holder = types.SimpleNamespace(cap=2.0)
    module = types.ModuleType("settings")
    for mod in (
        lambda score, b, h, q, k: score * holder.cap,
        lambda score, b, h, q, k: score * module.cap,
        holder,
        torch.tanh,
        lambda score, b, h, q, k: score * torch.get_num_threads(),
        lambda score, b, h, q, k: score * TABLE.custom,
        lambda score, b, h, q, k: print("called") or score,
        imports,
        functools.partial(lambda cap, score, b, h, q, k: score * cap, holder),
        lambda score, b, h, q, k, many=list(range(100)): score * many[3],
    ):
        assert signature(mod) is None, mod


def imports(score, b, h, q, k):
    from math import pi

    return score * pi


def a_partial_has_the_signature_of_what_it_holds():
    def capped(cap, table, score, b, h, q, k):
        return score * cap + table[h]

    made = lambda cap, table, **more: signature(functools.partial(capped, cap, table, **more))
    a, b = torch.zeros(4), torch.ones(4)
    assert made(2.0, a)[0] == made(2.0, b)[0] and made(2.0, b)[1][0] is b
    assert len({made(2.0, a)[0], made(3.0, a)[0], made(2.0, torch.zeros(5))[0], made(2.0, a, h=1)[0]}) == 4


# --- which mods a call has ---


def a_score_mod_is_recorded_once_for_all_values():
    calls = []

    def made(slopes):
        def alibi(score, b, h, q, k):
            note()
            return score + slopes[h] * (k - q)

        return alibi

    def note():
        calls.append(1)

    first, tensors = _held.recorded(made(torch.ones(4)))
    again, others = _held.recorded(made(torch.zeros(4)))
    assert first is again and len(calls) == 2, "it captures a list: recorded twice, translated once"
    plain = lambda slopes: lambda score, b, h, q, k: score + slopes[h] * (k - q)
    own = torch.full((4,), 3.0)
    _held.recorded(plain(torch.ones(4)))
    kept = len(_held._SCORES)
    found, tensors = _held.recorded(plain(own))
    assert tensors[0] is own and len(_held._SCORES) == kept


def ints_of_a_score_mod_are_read_again_when_they_change():
    bucket, bias = torch.arange(64) % 7, torch.zeros(7)
    mod = lambda score, b, h, q, k: score + bias[bucket[k]]
    mods = lambda: _held.with_score(None, known, *_held.recorded(mod))
    known = {}
    first, live = mods()
    assert live[0] is bias and mods()[0] is first
    bias.add_(1)
    assert mods()[0] is first, "floats are read in place"
    bucket.add_(0)
    assert mods()[0] is not first


def what_a_mod_asks_of_contents_is_asked_again():
    kept, bias = torch.tensor([5, 3]), torch.zeros(64)
    asks = [
        lambda score, b, h, q, k: score + torch.where(k < int(kept.max()), bias[k], 1.0),
        lambda score, b, h, q, k: score + (bias[k] if bool(kept[0] < 7) else 1.0),
        lambda score, b, h, q, k: score + bias[k] * torch.equal(input=kept[:1], other=kept[1:] + 2),
    ]
    for mod in asks:
        kept.copy_(torch.tensor([5, 3]))
        first, _ = _held.recorded(mod)
        kept.copy_(torch.tensor([9, 3]))
        assert _held.recorded(mod)[0] is not first
    moved = lambda table: lambda score, b, h, q, k: score + table[k] * table.stride(0)
    first, _ = _held.recorded(moved(torch.zeros(64)))
    assert _held.recorded(moved(torch.zeros(128)[::2]))[0] is not first


def a_mask_is_that_of_its_block_mask():
    document = torch.arange(256) // 60
    same = lambda b, h, q, k: document[q] == document[k]
    make = lambda: maskloom.create_block_mask(same, None, None, 256, 256, device="cpu")
    mask = make()
    held = _held.held_of(mask)
    assert _held.held_of(mask) is held
    document.copy_(torch.arange(256) // 30)
    assert _held.held_of(mask) is not held, "changed in place"
    for other in (copy.deepcopy(mask), pickle.loads(pickle.dumps(make_plain()))):
        assert _held.held_of(other).mask is not None
    foreign = mask.to("cpu") if hasattr(mask, "to") else mask
    assert _held.held_of(foreign).mask is not None
    two = [_held.held_of(make_plain()) for _ in range(2)]
    assert two[0].mods is two[1].mods, "a mask without tensors shares what was prepared"


def make_plain():
    return maskloom.create_block_mask(causal, None, None, 128, 128, device="cpu")


def arrays_for_a_device_are_parts_of_one():
    from maskloom.block_mask import _Arrays

    shapes = {"a": (1, 2, 5), "b": (1, 2, 5, 7), "c": (3,)}
    made = _Arrays(shapes, types.SimpleNamespace(type="elsewhere"))
    made.device = torch.device("cpu")
    for number, part in enumerate(made.host.values()):
        part.fill_(number + 1)
    found = made.there()
    assert {name: part.shape for name, part in found.items()} == {name: torch.Size(s) for name, s in shapes.items()}
    assert all(bool((part == number + 1).all()) for number, part in enumerate(found.values()))
    starts = [part.data_ptr() - made.whole.data_ptr() for part in found.values()]
    assert all(start % 64 == 0 for start in starts) and len(set(starts)) == 3


# --- what is prepared and launched ---


class Pass:
    """Stands for a pass that is compiled: 64 bytes of lists, 32 of scratch, 8 of counters."""

    def __init__(self, live, learned, log):
        self.of, self.log = (live, learned), log

    def bytes(self):
        return 64, 32, 8

    def live(self):
        return self.of[0]

    def learned(self):
        return self.of[1]

    def kernel(self):
        return "stand-in"

    def write(self, address, to):
        assert address % 16 == 0 and to

    def load(self, address):
        self.log.append("loaded")
        return self

    def run(self, stream, scratch, counter, call):
        if "broken" in self.log:
            raise _native.Refused("gpu-driver", "the driver says no", "restart it", None)
        self.log.append((stream, scratch, counter, tuple(call)))


class Event:
    def record(self, stream):
        pass


class Here:
    """PyTorch as on a GPU, for tensors on the CPU."""

    def __init__(self):
        self.log, self.made, self.stream, self.capturing, self.waits = [], [], 7, False, 0
        self.live, self.learned, self.streams = [], [], {}

    def forward_pass(self, *given):
        self.made.append(("forward", given))
        return Pass(self.live, [], self.log)

    def backward_pass(self, *given):
        self.made.append(("backward", given))
        return Pass(self.live, self.learned, self.log)

    def current(self, *_):
        found = self.streams.get(self.stream)
        if found is None:
            found = self.streams[self.stream] = types.SimpleNamespace(cuda_stream=self.stream, wait_event=self.wait)
        return found

    def wait(self, event):
        self.waits += 1

    @contextlib.contextmanager
    def put(self):
        empty = lambda shape, strides, dtype, index: torch.empty_strided(shape, strides, dtype=dtype)
        stand_ins = [
            *((_native, "forward_pass", self.forward_pass), (_native, "backward_pass", self.backward_pass)),
            *((_cuda, "stream_of", lambda index: self.stream), (_cuda, "empty", empty)),
            *((_cuda, "_capturing", lambda: self.capturing), (_cuda, "current_device", lambda: -1)),
            *((torch.cuda, "Event", Event), (torch.cuda, "current_stream", self.current)),
            (torch.Tensor, "record_stream", lambda tensor, stream: None),
            (_gpu, "alone", lambda *tensors: True),
        ]
        before = [(owner, name, getattr(owner, name)) for owner, name, _ in stand_ins]
        for owner, name, value in stand_ins:
            setattr(owner, name, value)
        try:
            yield self
        finally:
            for owner, name, value in before:
                setattr(owner, name, value)


def inputs(dim=64, dim_v=64, length=128):
    return [torch.zeros(2, 4, length, d, dtype=BF16) for d in (dim, dim, dim_v)]


def attend(q, k, v, score=None, mask=None, largest=False, scale=None):
    return _gpu.attend(q, k, v, score, mask, scale, False, None, largest, None)


def a_call_of_a_known_kind_prepares_nothing():
    with Here().put() as here:
        mask = maskloom.create_block_mask(lambda b, h, q, k: q - k < 33, None, None, 128, 128, device="cpu")
        q, k, v = inputs()
        out, lse = attend(q, k, v, mask=mask)
        assert out.shape == v.shape and lse.shape == q.shape[:3] and lse.dtype == torch.float32
        stream, scratch, counter, call = here.log[-1]
        assert stream == 7 and scratch and counter
        wanted = [q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), lse.data_ptr(), 0]
        assert list(call) == wanted
        attend(*inputs(), mask=mask)
        assert len(here.made) == 1 and here.log[-1][2] == counter, "the same counters in order on one stream"
        here.stream = 8
        attend(q, k, v, mask=mask)
        assert len(here.made) == 1 and here.log[-1][2] != counter and here.waits == 1
        attend(q, k, v, mask=mask, scale=0.5)
        attend(q.transpose(1, 2).contiguous().transpose(1, 2), k, v, mask=mask)
        assert len(here.made) == 3, "another scale and other strides are other kinds"
        strides = here.made[-1][1][7]
        assert strides[0] == [4 * 128 * 64, 64, 4 * 64], strides


def a_graph_has_counters_of_its_own():
    with Here().put() as here:
        q, k, v = inputs(length=144)
        here.capturing = True
        try:
            attend(q, k, v)
            raise AssertionError("prepared while a graph is captured")
        except maskloom.ArgumentError as why:
            assert why.code == "capture" and why.hint
        here.capturing = False
        attend(q, k, v)
        outside = here.log[-1][2]
        here.capturing = True
        kept = []
        for _ in range(2):
            kept.append(attend(q, k, v))
            assert here.log[-1][2] not in (0, outside)
        assert any(ready.counter == 8 for ready in _cuda._PINNED)


def odd_tensors_become_rows_of_whole_chunks():
    with Here().put() as here:
        out, _ = attend(*inputs(20, 44))
        assert out.shape == (2, 4, 128, 44) and out.is_contiguous()
        extents, strides = here.made[-1][1][2], here.made[-1][1][7]
        assert extents[5:] == [20, 44] and strides[0] == [4 * 128 * 24, 128 * 24, 24]
        q, k, v = inputs(length=160)
        odd = torch.zeros(q.numel() + 1, dtype=BF16)[1:].view(q.shape)
        attend(odd, k, v)
        assert here.log[-1][3][0] % 16 == 0 and here.log[-1][3][0] != odd.data_ptr()
        attend(q, k[:1], v[:1])
        assert here.log[-1][3][1] != k.data_ptr(), "one batch entry of keys is copied for all"


def gradients_go_where_the_call_says():
    with Here().put() as here:
        slopes = torch.zeros(4, dtype=BF16, requires_grad=True)
        alibi = lambda score, b, h, q, k: score + slopes[h] * (k - q)
        here.live, here.learned = [0], [(0, 4)]
        q, k, v = (t.requires_grad_() for t in inputs())
        out, lse = attend(q, k, v, alibi)
        assert here.log[-1][3][6] != slopes.data_ptr(), "read as float32"
        torch.autograd.grad(out, (q, slopes), torch.ones_like(out).expand_as(out), retain_graph=True)
        call = here.log[-1][3]
        assert call[:4] == (q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr()) and call[6] == 0, "no lse's"
        assert len(call) == 12 and len(set(call)) == 12
        assert here.made[-1][1][5] == (False, False)
        found = torch.autograd.grad((out, lse), (v, slopes), (torch.ones_like(out), torch.ones_like(lse)))
        assert here.made[-1][1][5] == (False, True) and here.log[-1][3][6] != 0
        assert found[1].dtype == BF16 and found[1].shape == (4,)
        torch.use_deterministic_algorithms(True)
        try:
            torch.autograd.grad(attend(q, k, v, alibi)[0].sum(), q)
        finally:
            torch.use_deterministic_algorithms(False)
        assert here.made[-1][1][5] == (True, False)


def what_the_driver_says_is_an_error_in_words():
    with Here().put() as here:
        q, k, v = inputs(length=208)
        attend(q, k, v)
        here.log.append("broken")
        try:
            attend(q, k, v)
            raise AssertionError("a launch that failed was taken for one")
        except maskloom.ArgumentError as why:
            assert why.code == "gpu-driver" and why.hint == "restart it"


def threads_prepare_once():
    with Here().put() as here:
        given = inputs(length=176)
        threads = [threading.Thread(target=attend, args=given) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(here.made) == 1 and len([one for one in here.log if one != "loaded"]) == 8


def what_was_refused_once_is_refused_again():
    with Here().put():
        q, k, v = inputs(length=192)
        attend(q, k, v)
        for code, given in (
            ("dtype", (q, k.half(), v)),
            ("gqa-heads", (q, k[:, :2], v[:, :2])),
            ("shape", (q, k, v[:, :, :9])),
        ):
            for _ in range(2):
                try:
                    attend(*given)
                    raise AssertionError(f"{code} was not refused")
                except maskloom.ArgumentError as why:
                    assert why.code == code, why.code


def masks_that_come_again_are_not_recorded():
    from maskloom import _mods, block_mask

    records, recorded = [], block_mask.record
    block_mask.record = lambda *given: records.append(1) or recorded(*given)

    def of(doc, width=50):
        return lambda b, h, q, kv: (doc[q] == doc[kv]) & (q - kv < width)

    def count(mod):
        records.clear()
        got = maskloom.create_block_mask(mod, None, None, 192, 192, device="cpu", BLOCK_SIZE=16)
        package.same_block_masks(
            create_block_mask(mod, None, None, 192, 192, device="cpu", BLOCK_SIZE=16), got, "comes again"
        )
        return len(records)

    try:
        doc, other = torch.arange(192) // 50, torch.arange(192) // 70
        assert [count(of(doc)), count(of(other)), count(of(doc))] == [1, 0, 0]
        doc[100:] = 9
        assert count(of(doc)) == 0, "contents are read in each call"
        assert [count(of(doc, 30)), count(of(doc.int())), count(of(doc, 30))] == [1, 1, 0]
        partial = lambda doc: functools.partial(lambda doc, b, h, q, kv: doc[q] == doc[kv], doc)
        assert [count(partial(doc)), count(partial(other))] == [1, 0]
        asks = lambda b, h, q, kv: (q - kv < int(doc.max())) & (doc[q] == doc[kv])
        assert [count(asks), count(asks)] == [1, 1], "it asks for a content"
        whole = lambda b, h, q, kv: q - kv < doc.max()
        assert [count(whole), count(whole)] == [1, 1], "it depends on a content"
        # nothing is launched on a GPU, and none is here
        tape, result = _mods.record(of(doc), False, torch.device("cuda", 0))
        assert tape.zero is None and "t0" in tape.text_of(result)
    finally:
        block_mask.record = recorded


def lists_on_a_card_take_one_operation_each():
    from maskloom import _arrays, _card_blocks, _mods
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counted(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    doc, seen = torch.arange(192) // 50, []
    mask, tensors = _mods.traced(lambda b, h, q, kv: doc[q] == doc[kv], "mask_mod", device=CPU)
    wanted = _arrays.Wanted((2, 3), (192, 192), (64, 64), True)
    given = _native.block_mask_pass, _card_blocks.current_device
    with Here().put() as here:
        _native.block_mask_pass = lambda *given: Pass([], [], here.log)
        _card_blocks.current_device = lambda: -1
        try:
            there = types.SimpleNamespace(index=-1)
            _card_blocks.lists_on_card(mask, tensors, wanted, there)
            with Counted():
                found = _card_blocks.lists_on_card(mask, tensors, wanted, there)
        finally:
            _native.block_mask_pass, _card_blocks.current_device = given
    assert {name: array.shape for name, array in found.items()} == wanted.shapes()
    assert all(array.is_contiguous() and array.data_ptr() % 64 == 0 for array in found.values())
    # the lists' memory, the kernels' own, and eight arrays
    assert len(seen) == 10, seen


def masks_that_come_again_are_not_read():
    from maskloom import _mods

    def of(doc):
        return lambda b, h, q, kv: (doc[q] == doc[kv]) & (q >= kv)

    def recorded(mod, device=CPU):
        tape, result = _mods.record(mod, False, device)
        found = _mods.unread(tape, tape.text_of(result))
        return found if found is not None and _mods.lie_on(found[1], CPU) else None

    first, other = torch.arange(192) // 50, torch.arange(192) // 70
    assert recorded(of(first)) is None, "it was never translated"
    _mods.kept(of(first), "mask_mod", device=CPU)
    mask, tensors = recorded(of(other))
    assert tensors == [other] and mask.captures() == ["t0"]
    assert recorded(of(other.float())) is None and recorded(of(other[:100])) is None, "another dtype, another length"
    assert recorded(causal) is None, "it reads nothing"
    _mods.kept(lambda b, h, q, kv: kv < first.max(), "mask_mod", device=CPU)
    assert recorded(lambda b, h, q, kv: kv < first.max()) is None, "a content decides"
    assert not _mods.lie_on(tensors, torch.device("cuda", 0)), "it lies elsewhere"
    place, places = (0, "sm_90a", _cuda._packages()), [0, 16, 32, 48, 64, 80, 96, 112]
    made = _native.block_mask_pass(mask, (2, 3), (192, 192), (64, 64), places, place)
    assert made.kernel() == "mark_blocks" and made.bytes()[1] >= 9, "classes of blocks of one entry"
    for sizes, block in (((192, 192), (8, 64)), ((1 << 20, 1 << 20), (128, 128))):
        try:
            _native.block_mask_pass(mask, (1, 1), sizes, block, places, place)
            raise AssertionError(f"{sizes} in {block} were taken")
        except _native.Refused as why:
            assert why.args[0] == "block-mask-on-card", why.args


def kernels_are_compiled_for_their_architecture():
    place = lambda arch: (0, arch, _cuda._packages())
    held = _held.held_of(make_plain())
    extents, rows = [2, 4, 2, 128, 128, 64, 64], [[4 * 128 * 64, 128 * 64, 64], *[[2 * 128 * 64, 128 * 64, 64]] * 2]
    wide = [*rows, rows[0], rows[0]]
    for arch, name in (("sm_80", "flex_sm80"), ("sm_90a", "flex_sm90")):
        made = _native.forward_pass(held.mask, None, extents, "bfloat16", None, False, True, rows, place(arch))
        assert made.kernel().startswith(name) and made.bytes()[0] > 0, made.kernel()
        _native.backward_pass(held.mask, None, extents, "bfloat16", None, (True, True), wide, place(arch))
        merged = _native.merge_pass("bfloat16", [8, 128, 64, 64], place(arch))
        assert merged.kernel() == "merge_rows"
    try:
        _native.forward_pass(None, None, extents, "float32", None, False, True, rows, place("sm_80"))
        raise AssertionError("float32 was taken")
    except _native.Refused as why:
        assert why.args[0] == "gpu-float32"


for name in (
    *(equal_functions_have_one_signature, tensors_that_are_one_are_told_from_two, a_global_is_part_of_the_signature),
    *(what_may_change_unseen_has_no_signature, a_score_mod_is_recorded_once_for_all_values),
    *(ints_of_a_score_mod_are_read_again_when_they_change, a_mask_is_that_of_its_block_mask),
    *(arrays_for_a_device_are_parts_of_one, what_a_mod_asks_of_contents_is_asked_again),
    what_mods_usually_do_has_a_signature,
    *(a_partial_has_the_signature_of_what_it_holds, masks_that_come_again_are_not_recorded),
    lists_on_a_card_take_one_operation_each,
    *(a_call_of_a_known_kind_prepares_nothing, a_graph_has_counters_of_its_own, threads_prepare_once),
    what_the_driver_says_is_an_error_in_words,
    *(
        odd_tensors_become_rows_of_whole_chunks,
        gradients_go_where_the_call_says,
        what_was_refused_once_is_refused_again,
    ),
):
    check(name)
if os.environ.get("MASKLOOM_NVRTC"):
    check(kernels_are_compiled_for_their_architecture)
    check(masks_that_come_again_are_not_read)
print(f"{len(checked)} rules of calls on a GPU hold")
sys.exit(0)
