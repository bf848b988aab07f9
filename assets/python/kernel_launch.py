# SPDX-License-Identifier: MIT
"""Launches the kernels of DESIGN.

It owns the variant for a device, the arrays of a variant, and what is kept between calls: for each kind of call (device,
stream, shapes, strides, scale) a plan, made once. A call gives the plan its tensors' addresses.

Each value that a launch reads comes from the caller's tensors or from this folder. launch.json names the fields of the kernels'
structs in their order, so nothing here knows a layout. It does not know operators, autograd or what a caller may pass:
DESIGN_kernel.py loads this file and checks that. plans.py knows the driver.
"""

import ctypes
import functools
import importlib.util
import itertools
import json
import math
import struct
from pathlib import Path

import torch

FOLDER = Path(__file__).parent
LAUNCH = json.loads(FOLDER.joinpath("launch.json").read_text(encoding="utf-8"))
PROBLEM = LAUNCH["problem"]
DTYPE = getattr(torch, PROBLEM["dtype"])
# float tensors that get gradients
LEARNS = LAUNCH["learns"]
# the driver's CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
SHARED_BYTES = 8
POINTER = [("mods", "u64")]


def _plans():
    """plans.py. Several designs may be loaded at once, so each has its own, and none takes a place in sys.modules."""
    spec = importlib.util.spec_from_file_location(f"{__name__}_plans", FOLDER / "plans.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


plans = _plans()


def loaded(cubin, *entries):
    """The functions of a module, as numbers; it stays loaded."""
    module = ctypes.c_void_p()
    plans.driver()("cuModuleLoadData", ctypes.byref(module), FOLDER.joinpath(cubin).read_bytes())
    found = [ctypes.c_void_p() for _ in entries]
    for function, entry in zip(found, entries):
        plans.driver()("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
    return [function.value for function in found]


# ---- variants and their arrays


def runs_on(arch, major, minor):
    """Whether machine code for an architecture runs on a device: its own, or an older one of the same generation."""
    digits = arch.removeprefix("sm_")
    number = int(digits.rstrip("af"))
    if digits.endswith("a"):
        return number == 10 * major + minor
    return number // 10 == major and number % 10 <= minor


def newness(variant):
    """The larger, the better on devices that run it; code for one architecture alone comes before portable code."""
    digits = variant["arch"].removeprefix("sm_")
    return int(digits.rstrip("af")), digits.endswith("a")


def variant_for(device):
    """The variant for a device's architecture: its own, otherwise the newest older one of the same generation."""
    major, minor = torch.cuda.get_device_capability(device)
    usable = [variant for variant in LAUNCH["variants"] if runs_on(variant["arch"], major, minor)]
    if not usable:
        have = ", ".join(v["arch"] for v in LAUNCH["variants"])
        raise RuntimeError(f"maskloom: kernels for {have} do not run on sm_{major}{minor}: export --kernels sm_{major}{minor}")
    return max(usable, key=newness)


def tensors():
    """The arrays of the kernels by name: a safetensors file, read here so that no package is needed."""
    raw = FOLDER.joinpath("tensors.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    dtypes = {"I32": torch.int32, "U8": torch.uint8}
    arrays = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name != "__metadata__":
            start, end = (8 + length + at for at in entry["data_offsets"])
            arrays[name] = torch.frombuffer(bytearray(raw[start:end]), dtype=dtypes[entry["dtype"]])
    return arrays


# ---- kernels and their plans


def capturing():
    return torch.cuda.is_current_stream_capturing()


# of a device's current stream the driver's number; without PyTorch's short way the long one
stream_of = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (lambda index: torch.cuda.current_stream(index).cuda_stream)


def map_of(tensor, at, dim, rows):
    """The map over a tensor of 16-bit numbers: (element, token, head, batch), boxes of `rows` x 64 elements."""
    batch, heads, tokens, _ = tensor.shape
    strides = [2 * tensor.stride(axis) for axis in (2, 1, 0)]
    return plans.Map(DTYPE, at, (dim, tokens, heads, batch), strides, (64, rows), 3)


def map_of_words(dtype, at, dims, boxes):
    """The same over contiguous 32-bit words, without swizzle."""
    strides = list(itertools.accumulate(dims[:3], lambda stride, extent: stride * extent, initial=4))[1:]
    return plans.Map(dtype, at, dims, strides, boxes, 0)


def strides(tensors):
    """Strides of tensors, by the names of their fields."""
    found = {}
    for name, tensor in tensors:
        found |= zip((f"{name}_b", f"{name}_h", f"{name}_s"), tensor.stride())
    return found


class Kernel:
    """The kernels on one device: modules, functions, lists and captured tensors; it makes plans."""

    def __init__(self, device):
        self.variant = v = variant_for(device)
        self.properties = torch.cuda.get_device_properties(device)
        self.device, own = device, f"{v['arch']}."
        self.arrays, self.structs = {}, {}
        # counters by stream, and what launches only read
        self.counters, self.constants, self.pinned = plans.Kept(64), plans.Kept(64), {}
        self.context = ctypes.c_void_p()
        with torch.cuda.device(device):
            for name, array in tensors().items():
                if name.startswith(own):
                    name = name.removeprefix(own)
                    if name.endswith("mods"):
                        self.structs[name] = array.numpy().tobytes()
                    else:
                        self.arrays[name] = array.to(device)
            torch.cuda.current_stream().synchronize()
            plans.driver()("cuCtxGetCurrent", ctypes.byref(self.context))
            join = [v["decode"]["join_entry"]] if v["decode"] else []
            self.function, *self.join = loaded(v["cubin"], v["entry"], *join)
            plans.driver()("cuFuncSetAttribute", self.function, SHARED_BYTES, v["shared_bytes"])
            if v["backward"].get("main"):
                self.load_backward(v["backward"])

    def load_backward(self, b):
        (main,) = loaded(b["main"], b["entry"])
        plans.driver()("cuFuncSetAttribute", main, SHARED_BYTES, b["shared_bytes"])
        captured = ["backward_captured"] if b["bins"] else []
        self.backward_functions = (main, *loaded(b["rows"], "backward_rows", "backward_queries", *captured))

    def address(self, name):
        array = self.arrays.get(name)
        return 0 if array is None else array.data_ptr()

    def constant(self, key, make):
        """A tensor that launches on any stream read. One that a graph makes belongs to it: each replay makes it again. One
        that a graph finds stays, as it may be replayed at any time."""
        if capturing():
            found = self.constants.held.get(key)
            if found is not None:
                self.pinned[key] = found
            return make() if found is None else found

        def ready():
            made = make()
            torch.cuda.current_stream(self.device).synchronize()
            return made

        found = self.constants(key, ready)
        if found.is_cuda:
            found.record_stream(torch.cuda.current_stream(self.device))
        return found

    def mods(self, prefix, places, captured, gradients, by_pointer):
        """The mods' struct as a parameter, addresses first: those of captured tensors, of which a call may give some, then
        `gradients`. Besides, the struct that each call writes to the device, and what must live as long as the plan."""
        own = [self.address(f"{prefix}capture{at}") for at in range(len(places))]
        first = [f"captured{place}" if captured and place is not None else at for place, at in zip(places, own)]
        words = plans.Words(self.structs[f"{prefix}mods"], [*first, *gradients])
        if not by_pointer:
            return words, None, []
        if words.places:
            return plans.Struct(POINTER, {}, ["mods"]), words, []
        if f"{prefix}mods" not in self.pinned:
            self.pinned[f"{prefix}mods"] = words.filled({}, ()).to(self.device)
        held = self.pinned[f"{prefix}mods"]
        return plans.Struct(POINTER, {"mods": held.data_ptr()}), None, [held]

    def forward(self, query, key, value, captured, scale, stream):
        """The plan of a forward pass; captured: how many tensors a call gives."""
        v, (batch, heads, q_len, _) = self.variant, query.shape
        results = {
            "o": torch.empty((batch, heads, q_len, value.shape[3]), dtype=DTYPE, device="meta"),
            "lse": torch.empty((batch, heads, q_len), dtype=torch.float32, device="meta"),
        }
        tensors = (query, key, value, results["o"])
        mods, pointed, held = self.mods("", v["captures"], captured, [], v["mods_by_pointer"])
        names, scratch = ["q", "k", "v", *(f"captured{at}" for at in range(captured))], {}
        group, scheduled = heads // key.shape[1], self.scheduled(batch)
        params = {
            "batch": batch, "heads": heads, "group": group, "q_len": q_len, "kv_len": key.shape[2], "scale": scale,
            "section": scheduled["section"] if scheduled else self.section(key, value, batch * heads, group),
        }  # fmt: skip
        params |= {name: v[name] for name in ("q_tiles", "mask_batch", "mask_heads", "lowest")}
        lists = ("tile_order", "row_start", "runs", "bitmap_start", "bitmap_ids", "bitmaps")
        params |= {name: self.address(name) for name in lists} | strides(zip("qkvo", tensors))
        params = plans.Struct(LAUNCH["params"], params, [*names[:3], *results])
        if v["decode"]:
            scratch, launches = self.decode(query, key.shape[1], params, mods)
        elif v["tensor_maps"]:
            counter, scratch, launch = self.hopper(tensors, params, mods, stream)
            held, launches = [*held, counter], [launch]
        else:
            blocks = batch * heads * v["q_tiles"]
            launches = [plans.Launch(self.function, [params, mods], blocks, v["threads"], v["shared_bytes"])]
        return plans.Plan(names, results, scratch, launches, (self.device, stream, self.context), held, pointed)

    def decode(self, query, kv_heads, params, mods):
        """One kernel computes pieces of the keys, another joins them."""
        v, d, rows = self.variant, self.variant["decode"], query.shape[:3].numel()
        parts = rows * d["parts_a_row"]
        scratch = {"parts": 4 * parts * d["part_width"], "part_lse": 4 * parts}
        extra = plans.Struct(LAUNCH["decode"], d, list(scratch))
        blocks = query.shape[0] * kv_heads * d["splits"] * d["row_tiles"]
        main = plans.Launch(self.function, [params, extra, mods], blocks, v["threads"], v["shared_bytes"])
        return scratch, [main, plans.Launch(self.join[0], [params, extra], rows, d["join_threads"])]

    def hopper(self, tensors, params, mods, stream):
        """The kernel reads tensors through maps and takes its tiles from a counter, whole ones and pieces."""
        v, (batch, heads) = self.variant, tensors[0].shape[:2]
        arrivals = self.counter(stream)
        counter, scheduled, scratch = arrivals.data_ptr(), self.scheduled(batch), {}
        units = whole = batch * heads * v["q_tiles"]
        extra = {"kv_num_tiles": self.address("kv_num_tiles"), "counter": counter}
        if scheduled and scheduled["pieces"]:
            scratch["parts"], whole = scheduled["pieces"] * scheduled["part_bytes"], scheduled["whole"]
            units = whole + scheduled["pieces"]
            extra |= {"pieces": self.address(f"pieces{batch}"), "arrived": counter + 8}
        extra = plans.Struct(LAUNCH["hopper"], extra | {"units": units, "whole": whole}, list(scratch))
        dims = (PROBLEM["head_dim"], PROBLEM["head_dim"], PROBLEM["head_dim_v"], PROBLEM["head_dim_v"])
        rows = (v["tile_q"], v["tile_kv"], v["tile_kv"], v["stored_rows"])
        maps = [map_of(*of) for of in zip(tensors, "qkvo", dims, rows)]
        # lines of 128 bytes, eight for a warpgroup's rows; without bitmaps their map reads nothing
        bitmaps = self.arrays.get("bitmaps")
        if bitmaps is not None:
            # words of bitmaps are mapped as numbers of the design's dtype
            bitmaps = map_of(bitmaps.view(torch.int16).view(1, 1, -1, 64), bitmaps.data_ptr(), 64, 8)
        maps.append(bitmaps or maps[1])
        blocks = min(units, v["min_blocks"] * self.properties.multi_processor_count)
        launch = plans.Launch(self.function, [*maps, params, extra, mods], blocks, v["threads"], v["shared_bytes"])
        return arrivals, scratch, launch

    def backward(self, saved, captured, scale, stream, zeros):
        """The plan of a backward pass of query, key, value, out and d_out; zeros: the lse's gradient of calls that have none."""
        v, b = self.variant, self.variant["backward"]
        query, key = saved[:2]
        like = lambda tensor: torch.empty(tensor.shape, dtype=DTYPE, device="meta")
        results = dict(zip(("dq", "dk", "dv"), map(like, saved)))
        batch, heads, q_len, _ = query.shape
        tiles = batch * heads * b["q_tiles"]
        items = self.items(batch)
        scratch = {"rows": 4 * tiles * b["tile_q"] * 2, "dq_sum": 4 * tiles * b["tile_q"] * b["qk_width"]}
        scratch |= {"turns": 4 * tiles * 2, "counter": 4 * 4}
        names = ["q", "k", "v", "o", "d_o", "lse", "d_lse"]
        params = {
            "batch": batch, "heads": heads, "group": heads // key.shape[1], "q_len": q_len, "kv_len": key.shape[2],
            "units": len(items), "scale": scale, "items": items.data_ptr(),
        }  # fmt: skip
        params |= {name: b[name] for name in ("q_tiles", "kv_tiles", "mask_batch", "mask_heads")}
        lists = ("row_start", "runs", "bitmap_start", "bitmap_ids", "bitmaps", "ranges", "order_start", "order")
        params |= {name: self.address(f"backward_{name}") for name in lists}
        params |= strides(zip((*names[:5], *results), (*saved, *results.values())))
        params = plans.Struct(LAUNCH["backward"], params, [*names, *results, *scratch])
        words, sums = self.sums()
        mods, pointed, held = self.mods("backward_", b["captures"], captured, words, b["mods_by_pointer"])
        main, before, after, *of_bins = self.backward_functions
        around = {"blocks": (b["q_tiles"], heads, batch), "threads": 256}
        maps, blocks = [], len(items)
        if b["hopper"]:
            maps = self.backward_maps(saved, results, tiles)
            blocks = min(blocks, self.properties.multi_processor_count)
        launches = [plans.Launch(before, [params], **around)]
        launches += [plans.Launch(main, [*maps, params, mods], blocks, b["threads"], b["shared_bytes"])]
        launches += [plans.Launch(after, [params], **around)]
        launches += [plans.Launch(*of_bins, [own], blocks, 256) for own, blocks in sums]
        counts = {"captured": captured, "sum": len(LEARNS), "bins": len(b["bins"] or [])}
        names += [f"{what}{at}" for what, count in counts.items() for at in range(count)]
        plan = plans.Plan(names, results, scratch, launches, (self.device, stream, self.context), [*held, items], pointed)
        plan.zeros, plan.bins = zeros, b["bins"] or []
        return plan

    def sums(self):
        """The words by which kernels find each captured tensor's gradient: its address, or, where no order may change the sums,
        that with the address of its bins (0: it needs none) and its elements. Besides, those structs that need a launch at the
        end, and its blocks."""
        bins, words, last = self.variant["backward"]["bins"], [], []
        if bins is None:
            return [f"sum{at}" for at in range(len(LEARNS))], []
        for at, (wanted, each) in enumerate(zip(LEARNS, bins)):
            count = math.prod(max(n, 1) for n in wanted["shape"])
            own = [f"sum{at}", f"bins{at}" if each else 0, count]
            words += own
            last += [(plans.Words(bytes(24), own), -(-count // 256))] if each else []
        return words, last

    def items(self, batch):
        """The backward pass's work, four words each: that of the design, or of each batch entry."""
        items = self.arrays["backward_items"].view(-1, 4)
        if PROBLEM["mask_per_batch"]:
            return items

        def repeated():
            own = items.repeat(batch, 1)
            own[:, 0] = torch.arange(batch, dtype=torch.int32, device=own.device).repeat_interleave(len(items))
            return own

        return self.constant(("items", batch), repeated)

    def backward_maps(self, saved, results, tiles):
        """Of query, key, value, d_out, dk and dv, then of the rows' numbers, the bitmaps and the sums of dq."""
        b, dim, dim_v = self.variant["backward"], PROBLEM["head_dim"], PROBLEM["head_dim_v"]
        query, key, value, _, d_out = saved
        m, n = b["tile_q"], b["tile_kv"]
        of = (
            (query, "q", dim, m), (key, "k", dim, n), (value, "v", dim_v, n), (d_out, "d_o", dim_v, m),
            (results["dk"], "dk", dim, 64),
            (results["dv"], "dv", dim_v, 64),
        )  # fmt: skip
        maps = [map_of(*each) for each in of]
        bitmaps = self.arrays["backward_bitmaps"]
        lines = max(len(bitmaps) // b["bit_words"], 1) * b["bit_words"] // (2 * m)
        batch, heads = query.shape[:2]
        words = functools.partial(map_of_words, torch.float32)
        maps.append(words("rows", (2 * m, b["q_tiles"], heads, batch), (2 * m, 1)))
        maps.append(map_of_words(torch.int32, bitmaps.data_ptr(), (2 * m, lines, 1, 1), (2 * m, n // 64)))
        maps.append(words("dq_sum", (256, tiles * m * b["qk_width"] // 256, 1, 1), (256, b["part_lines"])))
        return maps

    def section(self, key, value, pairs, group):
        """Heads whose keys and values share the L2 cache."""
        row = sum(-(-t.shape[-1] // 8) * 8 for t in (key, value))
        kv_heads = max(self.properties.L2_cache_size // 2 // max(key.shape[2] * row * 2, 1), 1)
        return max(min(kv_heads * group, pairs), 1)

    def scheduled(self, batch):
        """Sections, and pieces of the last tiles, if they are known for this batch and this number of multiprocessors."""
        here = (batch, self.properties.multi_processor_count)
        return next((d for d in self.variant["units"] if (d["batch"], d["multiprocessors"]) == here), None)

    def counter(self, stream):
        """Two zero words and one for each arrival of a piece. The kernel resets them to zero. Launches that may run at the
        same time must not share them. Freed memory is reused by the same stream only."""
        words = 2 + max((scheduled["arrivals"] for scheduled in self.variant["units"]), default=0)
        make = lambda: torch.zeros(words, dtype=torch.int32, device=self.device)
        # two graphs captured on one stream may run at the same time: each clears its own memory
        return make() if capturing() else self.counters(stream, make)


@functools.cache
def kernel_on(device):
    if capturing():
        raise RuntimeError("maskloom: call the kernel once on this device before capturing a CUDA graph: the call loads it")
    return Kernel(device)


# the plans of all devices
FORWARD, BACKWARD = plans.Kept(128), plans.Kept(128)


def kind_of(stream, scale, tensors, captured):
    """What a plan is made for. Tensors of another device, dtype or layout are of another kind."""
    kind = (stream, scale, *[(t.get_device(), t.dtype, t.shape, t.stride()) for t in tensors])
    return kind + tuple([(t.get_device(), t.dtype, t.shape, t.is_contiguous()) for t in captured]) if captured else kind


def forward(query, key, value, captured, scale, checked=False):
    """Output and lse. None: no plan is kept for a call of this kind, or its tensors lie at odd addresses. With `checked` a plan
    is made, of tensors in the kernels' layout: rows of whole 16-byte chunks."""
    index = query.get_device()
    if index != torch.cuda.current_device():
        with torch.cuda.device(index):
            return forward(query, key, value, captured, scale, checked)
    stream = stream_of(index)
    kind = kind_of(stream, scale, (query, key, value), captured)
    plan = None if capturing() else FORWARD.held.get(kind)
    at = (query.data_ptr(), key.data_ptr(), value.data_ptr())
    if (plan is None or (at[0] | at[1] | at[2]) & 15) and not checked:
        return None
    if plan is None:
        make = lambda: kernel_on(query.device).forward(query, key, value, len(captured), scale, stream)
        # two graphs may run at the same time: each has memory of its own
        plan = make() if capturing() else FORWARD(kind, make)
    return plan.run(*at, *[t.data_ptr() for t in captured])


def backward(saved, lse, d_out, d_lse, captured, scale, checked=False):
    """Gradients of query, key and value of a forward pass, `saved`: these and its output; and float32 sums, the gradients of
    LEARNS. None as in `forward`."""
    query, key, value, out = saved
    index = query.get_device()
    if index != torch.cuda.current_device():
        with torch.cuda.device(index):
            return backward(saved, lse, d_out, d_lse, captured, scale, checked)
    stream = stream_of(index)
    whole = (lse, *captured) if d_lse is None else (lse, d_lse, *captured)
    kind = kind_of(stream, (scale, len(captured)), (*saved, d_out), whole)
    plan = None if capturing() else BACKWARD.held.get(kind)
    at = (query.data_ptr(), key.data_ptr(), value.data_ptr(), out.data_ptr(), d_out.data_ptr())
    if (plan is None or (at[0] | at[1] | at[2] | at[3] | at[4]) & 15) and not checked:
        return None
    if plan is None:

        def make():
            kernel = kernel_on(query.device)
            zeros = kernel.constant(("zeros", lse.numel()), lambda: torch.zeros_like(lse)) if d_lse is None else None
            return kernel.backward((*saved, d_out), len(captured), scale, stream, zeros)

        plan = make() if capturing() else BACKWARD(kind, make)
    sums, more = [], []
    if LEARNS:
        sums = [query.new_zeros([max(n, 1) for n in wanted["shape"]], dtype=torch.float32) for wanted in LEARNS]
        bins = [sum_.new_zeros(sum_.numel() * each, dtype=torch.uint8) for sum_, each in zip(sums, plan.bins)]
        more = [tensor.data_ptr() for tensor in (*captured, *sums, *bins)]
    d_lse = plan.zeros if d_lse is None else d_lse
    return plan.run(*at, lse.data_ptr(), d_lse.data_ptr(), *more), sums
