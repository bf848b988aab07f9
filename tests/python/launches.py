"""What a kernel bundle gives the driver, without a GPU: python launches.py EXPORT STEM

EXPORT is bundle.py's: a design of 2 heads and 80 tokens that learns `slopes`, for sm_80 and sm_90a. A driver of Python writes down the
bytes of all parameters at each launch, as the GPU would read them. Checked are those bytes against the call's tensors, that a plan which
was used before gives the bytes of a fresh one, also at used addresses, in many threads and on other streams, and what is kept between calls.
"""

import contextlib
import ctypes
import importlib
import itertools
import math
import struct
import sys
import threading
import time
import types

import torch

sys.path.insert(0, sys.argv[1])
STEM = sys.argv[2]
kernel = importlib.import_module(f"{STEM}_kernel")
launch, plans, P = kernel._launch, kernel._launch.plans, kernel.PROBLEM
ORDERED = kernel.LAUNCH["deterministic"]
BATCH = 3


class Recorder:
    """A driver that writes launches down: function, grid, stream and the bytes behind each parameter."""

    def __init__(self):
        self.local, self.names, self.sizes, self.answers, self.contexts = threading.local(), {}, {}, [], []
        self.pause, self.functions = False, {}

    def __getattr__(self, name):
        if name not in plans.Driver.MAPS | plans.Driver.OTHERS:
            raise AttributeError(name)
        # functions of ctypes take attributes
        return self.functions.setdefault(name, lambda *arguments: getattr(self, name.replace("cu", "do_", 1))(*arguments))

    def do_GetErrorName(self, status, text):
        text._obj.value = f"ERROR_{status}".encode()

    def do_ModuleLoadData(self, module, data):
        return 0

    def do_FuncSetAttribute(self, function, what, value):
        return 0

    def do_CtxGetCurrent(self, context):
        context._obj.value = 0x55
        return 0

    def do_CtxSetCurrent(self, context):
        self.contexts.append(context.value)
        return 0

    def do_ModuleGetFunction(self, function, module, entry):
        function._obj.value = 0x1000 + len(self.names)
        self.names[function._obj.value] = entry.decode()
        return 0

    def do_TensorMapEncodeTiled(self, to, dtype, rank, address, dims, strides, boxes, steps, leave, swizzle, promote, fill):
        assert to % 64 == 0 and address % 16 == 0 and all(s % 16 == 0 for s in strides) and rank == 4
        words = [address, dtype << 8 | swizzle, *dims, *strides, *(a | b << 32 for a, b in zip(boxes[::2], boxes[1::2]))]
        ctypes.memmove(to, struct.pack(f"<{len(words)}Q", *words), 8 * len(words))
        return 0

    def do_TensorMapReplaceAddress(self, to, address):
        assert address % 16 == 0
        ctypes.memmove(to, struct.pack("<Q", address), 8)
        return 0

    def do_LaunchKernel(self, function, *rest):
        answer = self.answers.pop(0) if self.answers else 0
        if answer:
            return answer
        *grid, shared, stream, pointers, _ = rest
        name = self.names[function.value]
        sizes = self.sizes[name]
        assert len(pointers) == len(sizes)
        read = lambda: [ctypes.string_at(at, size) for at, size in zip(pointers, sizes)]
        before = read()
        if self.pause:
            time.sleep(1e-4)  # other threads run meanwhile
            assert read() == before, "another call wrote the parameters of a launch"
        self.mine().append((name, [n.value for n in grid] + [shared.value], stream.value, before))
        return 0

    def mine(self):
        """This thread's launches."""
        if not hasattr(self.local, "launches"):
            self.local.launches = []
        return self.local.launches


class Here:
    """PyTorch and driver as on a GPU of an architecture, for tensors on the cpu."""

    def __init__(self, capability):
        self.recorder, self.capturing, self.device = Recorder(), False, -1
        stream = types.SimpleNamespace(cuda_stream=7, synchronize=lambda: None)
        properties = types.SimpleNamespace(multi_processor_count=132, L2_cache_size=50 << 20)
        self.stream = 7
        self.entered = []
        self.stand_ins = [
            (torch.cuda, "get_device_properties", lambda _: properties), (torch.cuda, "get_device_capability", lambda _: capability),
            (torch.cuda, "current_stream", lambda *_: stream), (torch.cuda, "device", self.on),
            (torch.cuda, "is_current_stream_capturing", lambda: self.capturing), (torch.cuda, "current_device", lambda: self.device),
            (launch, "stream_of", lambda _: self.stream), (plans, "driver", self.driver),
            (plans, "empty", lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype)), (kernel, "_DEVICE", "cpu"),
            (launch, "kernel_on", self.kernel_on), (launch, "FORWARD", plans.Kept(128)), (launch, "BACKWARD", plans.Kept(128)),
        ]  # fmt: skip
        self.made = {}
        self.opened = plans.Driver(lambda _: self.recorder)

    def driver(self):
        return self.opened

    @contextlib.contextmanager
    def on(self, device):
        # by number for a call, as a device when a kernel is loaded
        before, self.device = self.device, device if isinstance(device, int) else self.device
        self.entered.append(device)
        yield
        self.device = before

    def kernel_on(self, device):
        if "kernel" not in self.made:
            self.made["kernel"] = launch.Kernel(device)
            self.learn_sizes(self.made["kernel"].variant)
        return self.made["kernel"]

    def learn_sizes(self, v):
        size = lambda fields: struct.calcsize("<" + "".join(plans.CODES[kind] for _, kind in fields))
        b, raw = v["backward"], launch.tensors()
        mods = {name: len(raw[f"{v['arch']}.{name}"]) for name in ("mods", "backward_mods")}
        params, extra, back = (size(kernel.LAUNCH[name]) for name in ("params", "hopper", "backward"))
        maps = lambda count: [plans.MAP_BYTES] * count
        self.recorder.sizes = {
            v["entry"]: [*maps(5), params, extra, mods["mods"]] if v["tensor_maps"] else [params, mods["mods"]],
            b["entry"]: [*maps(9 if b["hopper"] else 0), back, mods["backward_mods"]],
            "backward_rows": [back], "backward_queries": [back], "backward_captured": [24],
        }  # fmt: skip

    def __enter__(self):
        self.before = [(place, name, getattr(place, name)) for place, name, _ in self.stand_ins]
        for place, name, stand_in in self.stand_ins:
            setattr(place, name, stand_in)
        return self

    def __exit__(self, *_):
        for place, name, own in self.before:
            setattr(place, name, own)

    def launches(self, run):
        """This thread's launches of a call."""
        mine = self.recorder.mine()
        mine.clear()
        run()
        return list(mine)

    def afresh(self):
        """Plans that were made are forgotten."""
        launch.FORWARD.held.clear()
        launch.BACKWARD.held.clear()


class Call:
    """Tensors of one forward and backward pass, kept so that addresses stay."""

    def __init__(self, layout="bhsd", batch=BATCH, learnt=True, memory=None, odd=0):
        self.memory = memory if memory is not None else [torch.zeros(batch * P["heads"] * 80 * 64 + 8, dtype=kernel.DTYPE) for _ in range(4)]
        shape, strides = (batch, P["heads"], 80, 64), {"bhsd": (80 * 64 * P["heads"], 80 * 64, 64, 1), "bshd": (80 * 64 * P["heads"], 64, 64 * P["heads"], 1)}
        self.q, self.k, self.v, self.d_out = (t.as_strided(shape, strides[layout], odd) for t in self.memory)
        self.captured = [torch.tensor([0.3, 0.1])] if learnt else []
        self.lse = torch.zeros(batch, P["heads"], 80)
        self.d_lse, self.scale, self.out = None, 0.5, torch.zeros(shape, dtype=kernel.DTYPE)

    def forward(self):
        self.found = kernel._forward(self.q, self.k, self.v, self.captured, self.scale)

    def backward(self):
        self.gradients = kernel._backward(self.d_out, self.d_lse, self.q, self.k, self.v, self.out, self.lse, self.captured, self.scale)

    def both(self):
        self.forward()
        self.backward()


def unpacked(fields, raw):
    codes = "<" + "".join(plans.CODES[kind] for _, kind in fields)
    return dict(zip((name for name, _ in fields), struct.unpack(codes, raw)))


def of_tensor(name, tensor, fields):
    assert fields[name] == tensor.data_ptr(), name
    assert tuple(fields[f"{name}_{axis}"] for axis in "bhs") == tensor.stride()[:3], name


def of_map(tensor, raw, rows):
    """`rows` of a tensor's tokens are copied at once, 64 elements of each."""
    address, _, *dims_and_strides = struct.unpack("<9Q", raw[:72])
    batch, heads, tokens, width = tensor.shape
    strides = [2 * tensor.stride(axis) for axis in (2, 1, 0)]
    assert (address, dims_and_strides) == (tensor.data_ptr(), [width, tokens, heads, batch, *strides])
    assert struct.unpack("<4I", raw[72:88]) == (64, rows, 1, 1)


def of_word_map(raw, address, line, lines, box):
    """The same over lines of 32-bit words, one behind the other."""
    at, _, *rest = struct.unpack("<9Q", raw[:72])
    extents, strides = rest[:4], rest[4:]
    assert at == address and extents[0] == line and math.prod(extents[1:]) == lines, (extents, line, lines)
    assert strides == [4 * math.prod(extents[:n]) for n in (1, 2, 3)], "without a gap"
    assert struct.unpack("<4I", raw[72:88]) == (*box, 1, 1)


def are_the_forward_pass_of(call, launches, stream=7):
    """Every parameter that depends on the call, in the bytes that the driver got."""
    v = HERE.made["kernel"].variant
    ((name, grid, on, parts),) = launches
    q, k, v_, (out, lse) = call.q, call.k, call.v, call.found
    tiles = call.q.shape[0] * P["heads"] * v["q_tiles"]
    assert (name, on, grid[0]) == (v["entry"], stream, min(tiles, 132) if v["tensor_maps"] else tiles), (name, on, grid)
    assert grid[1:] == [1, 1, v["threads"], 1, 1, v["shared_bytes"]], grid
    fields = unpacked(kernel.LAUNCH["params"], parts[5 if v["tensor_maps"] else 0])
    for name, tensor in {"q": q, "k": k, "v": v_, "o": out}.items():
        of_tensor(name, tensor, fields)
    assert fields["lse"] == lse.data_ptr() and fields["scale"] == call.scale and fields["batch"] == len(q)
    lists = ("tile_order", "row_start", "runs")
    assert all(fields[name] == HERE.made["kernel"].address(name) != 0 for name in lists)
    assert out.shape == q.shape and out.is_contiguous() and lse.shape == q.shape[:3] and lse.dtype == torch.float32
    if v["tensor_maps"]:
        for tensor, raw, rows in zip((q, k, v_, out), parts, (v["tile_q"], v["tile_kv"], v["tile_kv"], v["stored_rows"])):
            of_map(tensor, raw, rows)
        extra = unpacked(kernel.LAUNCH["hopper"], parts[6])
        assert extra["counter"] != 0 and extra["units"] == tiles == extra["whole"]
    learnt = call.captured[0].data_ptr() if call.captured else HERE.made["kernel"].address("capture0")
    assert struct.unpack("<Q", parts[-1][:8]) == (learnt,)
    return parts


def are_the_backward_pass_of(call, launches, stream=7):
    b = HERE.made["kernel"].variant["backward"]
    names = ["backward_rows", b["entry"], "backward_queries", *(["backward_captured"] if ORDERED else [])]
    assert [name for name, *_ in launches] == names and {on for _, _, on, _ in launches} == {stream}
    (_, before, _, (rows,)), (_, grid, _, parts), (_, after, _, (queries,)), *last = launches
    fields = unpacked(kernel.LAUNCH["backward"], parts[-2])
    assert rows == queries == parts[-2]
    batch, units = len(call.q), fields["units"]
    assert before == after == [b["q_tiles"], P["heads"], batch, 256, 1, 1, 0], before
    assert units == batch * P["kv_heads"] * b["kv_tiles"], units
    assert grid == [min(units, 132) if b["hopper"] else units, 1, 1, b["threads"], 1, 1, b["shared_bytes"]], grid
    dq, dk, dv, *_ = call.gradients
    of = {"q": call.q, "k": call.k, "v": call.v, "o": call.out, "d_o": call.d_out, "dq": dq, "dk": dk, "dv": dv}
    for name, tensor in of.items():
        of_tensor(name, tensor, fields)
    sizes = ("batch", "heads", "group", "q_len", "kv_len")
    assert [fields[name] for name in sizes] == [batch, P["heads"], P["heads"] // P["kv_heads"], 80, 80]
    assert fields["scale"] == call.scale and fields["lse"] == call.lse.data_ptr()
    assert all(fields[name] == HERE.made["kernel"].address(f"backward_{name}") != 0 for name in ("row_start", "order", "bitmaps"))
    # pieces of one memory, apart from each other
    tiles = batch * P["heads"] * b["q_tiles"]
    ends = {"rows": 8 * tiles * b["tile_q"], "dq_sum": 4 * tiles * b["tile_q"] * b["qk_width"], "turns": 8 * tiles, "counter": 16}
    spans = sorted((fields[name], fields[name] + size) for name, size in ends.items())
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:])) and all(fields[name] % 16 == 0 for name in ends)
    if call.d_lse is not None:
        assert fields["d_lse"] == call.d_lse.data_ptr()
    else:
        zeros = (ctypes.c_float * call.lse.numel()).from_address(fields["d_lse"])
        assert not any(zeros), "the gradient of an lse that has none"
    items = (ctypes.c_int32 * (4 * units)).from_address(fields["items"])
    assert sorted(items[::4]) == sorted(list(range(batch)) * (units // batch)), "work of each batch entry"
    if b["hopper"]:
        m, n = b["tile_q"], b["tile_kv"]
        for tensor, raw, box in zip((call.q, call.k, call.v, call.d_out, dk, dv), parts, (m, n, n, m, 64, 64)):
            of_map(tensor, raw, box)
        bitmaps = HERE.made["kernel"].arrays["backward_bitmaps"]
        assert len(bitmaps) % (2 * m) == 0
        of_word_map(parts[6], fields["rows"], 2 * m, tiles, (2 * m, 1))
        of_word_map(parts[7], fields["bitmaps"], 2 * m, len(bitmaps) // (2 * m), (2 * m, n // 64))
        of_word_map(parts[8], fields["dq_sum"], 256, tiles * m * b["qk_width"] // 256, (256, b["part_lines"]))
    learnt = call.captured[0].data_ptr() if call.captured else HERE.made["kernel"].address("backward_capture0")
    found, total = struct.unpack("<2Q", parts[-1][:16])
    assert found == learnt and total != 0
    if ORDERED:
        ((_, grid, _, (own,)),) = last
        assert grid == [1, 1, 1, 256, 1, 1, 0] and b["bins"] == [256], grid
        assert struct.unpack("<3Q", own) == struct.unpack("<3Q", parts[-1][8:32]) and own[8:16] != bytes(8)
        assert struct.unpack("<3Q", own)[::2] == (total, 2)
    return fields


def checked(call, **on):
    forward, backward = HERE.launches(call.forward), HERE.launches(call.backward)
    are_the_forward_pass_of(call, forward, **on)
    return are_the_backward_pass_of(call, backward, **on)


def kept():
    return len(launch.FORWARD.held), len(launch.BACKWARD.held)


def calls_have_their_tensors_parameters():
    for learnt, layout, batch in itertools.product((True, False), ("bhsd", "bshd"), (3, 1, 2)):
        call = Call(layout, batch, learnt)
        for d_lse in (None, torch.ones(batch, P["heads"], 80)):
            call.d_lse = d_lse
            checked(call)
    assert kept() == (12, 24), kept()
    # plans of a kind that was met serve other tensors
    for layout in ("bshd", "bhsd") * 2:
        checked(Call(layout))
    assert kept() == (12, 24), kept()
    for change in ({"scale": 0.25}, {"out": torch.zeros(BATCH, 80, P["heads"], 64, dtype=kernel.DTYPE).transpose(1, 2)}):
        call = Call()
        call.__dict__.update(change)
        checked(call)
    assert kept() == (13, 26), kept()


def other_strides_at_a_used_address():
    first = Call("bhsd")
    checked(first)
    for layout in ("bshd", "bhsd", "bshd"):
        again = Call(layout, memory=first.memory)
        assert again.q.data_ptr() == first.q.data_ptr()
        checked(again)


def a_used_plan_writes_what_a_fresh_one_does():
    """Bit for bit, whatever it was used for before."""
    made, call, memory = HERE.made["kernel"], Call(), torch.zeros(1 << 22, dtype=torch.uint8)
    call.both()
    drawn = torch.Generator().manual_seed(1)
    given = (call.q, call.k, call.v)
    makers = {
        "forward": lambda: made.forward(*given, 1, 0.5, 7),
        "backward": lambda: made.backward((*given, call.out, call.d_out), 1, 0.5, 7, None),
    }
    # results and scratch memory of both lie at the same places
    before, plans.empty = plans.empty, lambda shape, strides, dtype: memory[at[0] % 4 * 512 :]
    for name, make in makers.items():
        used = make()
        count = len(used.names) - 1 - len(used.starts) - len(used.results)
        for turn in range(20):
            # an address may stay or change
            at = [16 * n for n in torch.randint(1, 3 if turn % 2 else 1 << 40, (count,), generator=drawn).tolist()]
            mine, fresh = (HERE.launches(lambda plan=plan: plan.run(*at)) for plan in (used, make()))
            assert mine == fresh, (name, turn)
        assert len(used.free) == 1
    plans.empty = before


def threads_do_not_write_each_others_parameters():
    HERE.recorder.pause, wrong = True, []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work(layout):
        try:
            for call in (Call(layout), Call(layout)) * 10:
                checked(call)
        except BaseException as why:
            wrong.append(repr(why))

    try:
        threads = [threading.Thread(target=work, args=(("bhsd", "bshd")[at % 2],)) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        HERE.recorder.pause = False
        sys.setswitchinterval(interval)
    assert not wrong, wrong[0]
    blocks = [len(plan.free) for plan in launch.FORWARD.held.values()]
    assert max(blocks) > 1 and sum(blocks) <= 8 + len(blocks), blocks


def counter_of(call):
    fields = are_the_forward_pass_of(call, HERE.launches(call.forward), stream=HERE.stream)[6]
    return unpacked(kernel.LAUNCH["hopper"], fields)["counter"]


def streams_and_graphs_share_no_counter():
    call, hopper = Call(), HERE.made["kernel"].variant["tensor_maps"]
    for HERE.stream in (7, 8, 7):
        checked(call, stream=HERE.stream)
    if hopper:
        found = {}
        for HERE.stream in (7, 8, 7, 8):
            found.setdefault(HERE.stream, set()).add(counter_of(call))
        assert all(len(own) == 1 for own in found.values()) and found[7] != found[8], found
    HERE.stream, before = 7, kept()
    HERE.capturing = True
    fields = checked(call)
    # of a graph what no later call may free
    assert kept() == before and fields["items"] in {t.data_ptr() for t in HERE.made["kernel"].pinned.values()}
    if hopper:
        assert counter_of(call) not in found[7] | found[8], "a graph has a counter of its own"
        made = HERE.made["kernel"]
        held = [made.counter(7) for _ in range(3)]
        assert len({t.data_ptr() for t in held} | found[7]) == 4
    HERE.capturing = False
    checked(call)


def what_is_kept_is_bounded():
    HERE.afresh()
    call = Call()
    for at in range(300):
        call.scale = 0.5 + at / 1024
        checked(call)
    assert kept() == (128, 128), kept()
    for batch in range(1, 80):
        Call(batch=batch).both()
    made = HERE.made["kernel"]
    assert len(made.constants.held) <= 64 and len(made.counters.held) <= 64
    # a plan holds what it reads, though it was made long ago
    checked(call)


def errors_of_the_driver_are_told_and_leave_nothing():
    call = Call()
    checked(call)
    for answer in (201, 400):
        HERE.recorder.answers, HERE.recorder.contexts = [answer], []
        checked(call)
        assert HERE.recorder.contexts == [0x55], "a thread without a context gets the kernel's"
    for answers in ([700], [201, 201]):
        HERE.recorder.answers = list(answers)
        try:
            call.forward()
        except RuntimeError as why:
            assert f"cuLaunchKernel failed: ERROR_{answers[-1]}" in str(why), why
        else:
            raise AssertionError("not told")
        assert not HERE.recorder.answers
        checked(call)


def tensors_at_odd_addresses_are_copied():
    """Their rows do not begin at multiples of 16 bytes."""
    plain = Call()
    checked(plain)
    call = Call(odd=1)
    assert call.q.is_contiguous() and call.q.data_ptr() % 16 == 2
    ((*_, parts),) = HERE.launches(call.forward)
    fields = unpacked(kernel.LAUNCH["params"], parts[5 if HERE.made["kernel"].variant["tensor_maps"] else 0])
    assert all(fields[name] % 16 == 0 for name in "qkv")
    for *_, parts in HERE.launches(call.backward):
        fields = unpacked(kernel.LAUNCH["backward"], parts[-2]) if len(parts) > 1 else fields
        assert all(fields[name] % 16 == 0 for name in "qkv")
    assert fields["d_o"] % 16 == 0
    # a gradient that is the same number everywhere has no strides of its own
    call = Call()
    call.d_out = torch.ones((), dtype=kernel.DTYPE).expand(call.q.shape)
    call.forward()
    for name, _, _, parts in HERE.launches(call.backward):
        if name == "backward_rows":
            fields = unpacked(kernel.LAUNCH["backward"], parts[0])
            assert (fields["d_o_b"], fields["d_o_h"], fields["d_o_s"]) == (P["heads"] * 80 * 64, 80 * 64, 64), fields


def calls_on_another_device_enter_it():
    call = Call()
    checked(call)
    HERE.device, HERE.entered = 5, []
    checked(call)
    assert HERE.entered == [-1, -1] and HERE.device == 5, HERE.entered
    HERE.device = -1


def wrong_tensors_are_refused_after_right_ones():
    call = Call()
    checked(call)
    for name, tensor, word in (
        ("k", call.k[:, :1], "key is"), ("v", call.v.float(), "value is"), ("q", call.q[:, :, :7], "query is"),
        ("captured", [torch.zeros(3)], "it must be (2,)"), ("captured", [torch.zeros(2, dtype=torch.int32)], "of floats"),
    ):  # fmt: skip
        wrong = Call()
        setattr(wrong, name, tensor)
        for run in (wrong.forward, wrong.backward):
            try:
                run()
            except ValueError as why:
                assert word in str(why), why
            else:
                raise AssertionError(f"not refused: {name}")


def mods_that_are_too_many_for_a_parameter_lie_on_the_device():
    """They are made once where no call gives an address in them; else each call writes them."""
    here = HERE.made["kernel"]
    captures = here.variant["captures"]
    whole, pointed, held = here.mods("", captures, 0, [], False)
    assert (pointed, held) == (None, []) and not whole.places
    there, pointed, (words,) = here.mods("", captures, 0, [], True)
    assert bytes(words.numpy()) == bytes(whole.raw) and pointed is None
    assert struct.unpack("<Q", bytes(there.raw)[:8]) == (words.data_ptr(),) and not there.places
    assert here.mods("", captures, 0, [], True)[2][0] is words, "made once"
    del here.pinned["mods"]
    there, pointed, held = here.mods("", captures, 1, [], True)
    assert [name for _, name in there.places] == ["mods"] and held == []
    assert [name for _, name in pointed.places] == ["captured0"]


def a_sections_keys_and_values_fill_half_the_cache():
    """Of 50 MB. Rows are padded to multiples of 8 elements."""
    section = HERE.made["kernel"].section
    of = lambda tokens, *widths: [torch.empty(1, 8, tokens, n, dtype=kernel.DTYPE, device="meta") for n in widths]
    assert section(*of(16384, 64, 64), 64, 1) == 6 and section(*of(16384, 64, 64), 64, 4) == 24
    assert section(*of(16384, 57, 60), 64, 1) == 6 and section(*of(16384, 65, 64), 64, 1) == 5
    assert section(*of(1 << 22, 64, 64), 64, 4) == 4 and section(*of(80, 64, 64), 8, 1) == 8


for CAPABILITY, ARCH in (((8, 0), "sm_80"), ((9, 0), "sm_90a")):
    with Here(CAPABILITY) as HERE:
        calls_have_their_tensors_parameters()
        assert HERE.made["kernel"].variant["arch"] == ARCH
        other_strides_at_a_used_address()
        a_used_plan_writes_what_a_fresh_one_does()
        threads_do_not_write_each_others_parameters()
        streams_and_graphs_share_no_counter()
        errors_of_the_driver_are_told_and_leave_nothing()
        tensors_at_odd_addresses_are_copied()
        calls_on_another_device_enter_it()
        wrong_tensors_are_refused_after_right_ones()
        mods_that_are_too_many_for_a_parameter_lie_on_the_device()
        a_sections_keys_and_values_fill_half_the_cache()
        what_is_kept_is_bounded()
print("the launches have their parameters")
