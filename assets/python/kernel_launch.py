"""Launches the kernels of DESIGN.

It owns the driver's functions, the variant for a device, the arrays of a variant and the parameters of each launch.

Each value that a launch reads comes from the caller's tensors or from this folder. launch.json names the fields of the kernels'
structs in their order, so nothing here knows a layout. It does not know operators, autograd or what a caller may pass:
DESIGN_kernel.py loads this file and checks that.
"""

import ctypes
import functools
import json
import struct
from pathlib import Path

import torch

FOLDER = Path(__file__).parent
LAUNCH = json.loads(FOLDER.joinpath("launch.json").read_text(encoding="utf-8"))
PROBLEM = LAUNCH["problem"]
DTYPE = getattr(torch, PROBLEM["dtype"])
CODES = {"u64": "Q", "i64": "q", "i32": "i", "u32": "I", "f32": "f"}
# the driver's numbers: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, and the types of tensor maps
SHARED_BYTES = 8
MAP_TYPES = {torch.int32: 2, torch.float16: 6, torch.float32: 7, torch.bfloat16: 9}


# ---- the driver


class Driver:
    """The few functions of libcuda that a launch needs."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            if torch.version.hip is not None:
                raise RuntimeError("maskloom: these kernels need an NVIDIA GPU; this PyTorch is for AMD GPUs") from None
            self.library = ctypes.CDLL("nvcuda.dll")

    def __call__(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"maskloom: {name} failed: {(text.value or b'?').decode()}")


@functools.cache
def driver():
    return Driver()


def start(function, arguments, blocks, threads, shared, stream):
    """One launch; the arguments are bytes, or buffers of ctypes. blocks: a number, or three."""
    pointers = (ctypes.c_void_p * len(arguments))()
    held = [a if isinstance(a, ctypes.Array) else ctypes.create_string_buffer(a, len(a)) for a in arguments]
    for at, argument in enumerate(held):
        pointers[at] = argument.aligned if hasattr(argument, "aligned") else ctypes.addressof(argument)
    one = ctypes.c_uint(1)
    blocks = tuple(map(ctypes.c_uint, blocks if isinstance(blocks, tuple) else (blocks, 1, 1)))
    grid = (*blocks, ctypes.c_uint(threads), one, one)
    driver()("cuLaunchKernel", function, *grid, ctypes.c_uint(shared), ctypes.c_void_p(stream), pointers, ctypes.c_void_p())


def loaded(cubin, *entries):
    """The functions of a module; it stays loaded."""
    module = ctypes.c_void_p()
    driver()("cuModuleLoadData", ctypes.byref(module), FOLDER.joinpath(cubin).read_bytes())
    found = [ctypes.c_void_p() for _ in entries]
    for function, entry in zip(found, entries):
        driver()("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
    return found


def packed(fields, values):
    """A struct of the kernel's as bytes; fields without a value are 0."""
    return struct.pack("<" + "".join(CODES[kind] for _, kind in fields), *(values.get(name, 0) for name, _ in fields))


def addressed(tensors):
    """Addresses and strides of tensors, by the names of their fields."""
    found = {}
    for name, tensor in tensors.items():
        found[name] = tensor.data_ptr()
        found |= zip((f"{name}_b", f"{name}_h", f"{name}_s"), tensor.stride())
    return found


def tensor_map(tensor, kind, dims, strides, boxes, swizzle):
    """The driver's tensor map over a tensor: extents and strides in bytes from the fastest axis on, boxes of two axes."""
    u64, u32 = ctypes.c_uint64, ctypes.c_uint32
    buffer = ctypes.create_string_buffer(128 + 64)
    buffer.aligned = -(-ctypes.addressof(buffer) // 64) * 64
    # no interleaving, the swizzle, L2 promotion of 256 bytes, zeros outside
    driver()(
        "cuTensorMapEncodeTiled", ctypes.c_void_p(buffer.aligned), kind, ctypes.c_uint(4), ctypes.c_void_p(tensor.data_ptr()),
        (u64 * 4)(*dims), (u64 * 3)(*strides), (u32 * 4)(*boxes, 1, 1), (u32 * 4)(1, 1, 1, 1), 0, swizzle, 3, 0,
    )  # fmt: skip
    return buffer


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


@functools.cache
def constants():
    """The mods' structs of all variants, on the host."""
    return {name: array for name, array in tensors().items() if name.endswith("mods")}


def on(device):
    """All arrays that launches read, on a device, by name."""
    return {name: array.to(device) for name, array in tensors().items() if not name.endswith("mods")}


class Arrays:
    """Lists and captured tensors of one architecture on a device: the kernel's own, or a module's buffers."""

    def __init__(self, arch, arrays):
        own = f"{arch}."
        self.all = {name.removeprefix(own): array for name, array in arrays.items() if name.startswith(own)}

    def address(self, name):
        array = self.all.get(name)
        return 0 if array is None else array.data_ptr()

    def mods(self, prefix, places, captured, gradients, by_pointer, device):
        """The mods' struct for a launch, with addresses first (of gradients those given), and the objects that must live until
        the launch has run."""
        mods = bytearray(constants()[prefix].numpy().tobytes())
        learnt = [captured[place] if captured and place is not None else None for place in places]
        name = prefix.split(".", 1)[1].removesuffix("mods")
        own = [self.address(f"{name}capture{at}") for at in range(len(places))]
        addresses = [at if tensor is None else tensor.data_ptr() for at, tensor in zip(own, learnt)]
        addresses += gradients
        struct.pack_into(f"<{len(addresses)}Q", mods, 0, *addresses)
        if not by_pointer:
            return bytes(mods), None
        held = torch.frombuffer(mods, dtype=torch.uint8).to(device)
        return struct.pack("<Q", held.data_ptr()), held


class Newest:
    """A bounded cache of values by key, without the least recently used. Threads may use it at once: each step is
    one operation of a dict, and the caller holds the found value."""

    def __init__(self, most):
        self.most, self.held, self.used = most, {}, {}

    def __call__(self, key, make):
        found = self.held.get(key)
        if found is None:
            found = self.held.setdefault(key, make())
        self.used.pop(key, None)
        self.used[key] = None
        if len(self.used) > self.most:
            for old in list(self.used)[: -self.most]:
                self.used.pop(old, None)
                self.held.pop(old, None)
        return found


# ---- launches


class Kernel:
    """The kernels on one device: modules, functions, lists and captured tensors."""

    def __init__(self, device):
        self.variant = v = variant_for(device)
        self.properties = torch.cuda.get_device_properties(device)
        self.device = device
        self.arrays = Arrays(v["arch"], on(device))
        self.own_mods = self.mods(self.arrays, None)
        # shared by launches on a stream and by tensors at an address, the newest
        self.counters, self.maps, self.backward_functions = Newest(64), Newest(256), None
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()
            join = [v["decode"]["join_entry"]] if v["decode"] else []
            self.function, *self.join = loaded(v["cubin"], v["entry"], *join)
            driver()("cuFuncSetAttribute", self.function, SHARED_BYTES, v["shared_bytes"])
            if v["backward"].get("main"):
                self.load_backward(v["backward"])

    def load_backward(self, b):
        (main,) = loaded(b["main"], b["entry"])
        driver()("cuFuncSetAttribute", main, SHARED_BYTES, b["shared_bytes"])
        captured = ["backward_captured"] if b["bins"] else []
        self.backward_functions = (main, *loaded(b["rows"], "backward_rows", "backward_queries", *captured))

    def mods(self, arrays, captured):
        v = self.variant
        return arrays.mods(f"{v['arch']}.mods", v["captures"], captured, [], v["mods_by_pointer"], self.device)

    def started(self):
        """`start` on the current stream."""
        return functools.partial(start, stream=torch.cuda.current_stream(self.device).cuda_stream)

    def launch(self, query, key, value, out, lse, scale, arrays=None, captured=None):
        """Writes the output and the lse of a forward pass."""
        v, start_here = self.variant, self.started()
        own = arrays is None and captured is None
        arrays = arrays or self.arrays
        mods, _held = self.own_mods if own else self.mods(arrays, captured)
        params = self.params((query, key, value, out), lse, scale, arrays)
        main = functools.partial(start_here, self.function, threads=v["threads"], shared=v["shared_bytes"])
        if v["decode"]:
            self.decode(main, start_here, query, key.shape[1], params, mods)
        elif v["tensor_maps"]:
            self.hopper(main, (query, key, value, out), params, mods, arrays)
        else:
            main([params, mods], blocks=query.shape[:2].numel() * v["q_tiles"])

    def params(self, tensors, lse, scale, arrays):
        """The forward pass's struct, of query, key, value and output."""
        query, key, value, out = tensors
        batch, heads, q_len, _ = query.shape
        kv_heads, kv_len = key.shape[1:3]
        drawn = self.drawn(batch)
        params = {
            "lse": lse.data_ptr(), "batch": batch, "heads": heads, "group": heads // kv_heads, "q_len": q_len, "kv_len": kv_len,
            "section": drawn["section"] if drawn else self.section(key, value, batch * heads, heads // kv_heads), "scale": scale,
        }  # fmt: skip
        params |= {name: self.variant[name] for name in ("q_tiles", "mask_batch", "mask_heads", "lowest")}
        lists = ("tile_order", "row_start", "runs", "bitmap_start", "bitmap_ids", "bitmaps")
        params |= {name: arrays.address(name) for name in lists}
        params |= addressed({"q": query, "k": key, "v": value, "o": out})
        return packed(LAUNCH["params"], params)

    def decode(self, main, start_here, query, kv_heads, params, mods):
        """One kernel computes pieces of the keys, another joins them."""
        d, rows = self.variant["decode"], query.shape[:3].numel()
        parts = query.new_empty(rows * d["parts_a_row"], d["part_width"], dtype=torch.float32)
        part_lse = query.new_empty(rows * d["parts_a_row"], dtype=torch.float32)
        extra = packed(LAUNCH["decode"], d | {"parts": parts.data_ptr(), "part_lse": part_lse.data_ptr()})
        main([params, extra, mods], blocks=query.shape[0] * kv_heads * d["splits"] * d["row_tiles"])
        start_here(self.join[0], [params, extra], blocks=rows, threads=d["join_threads"], shared=0)

    def hopper(self, main, tensors, params, mods, arrays):
        """The kernel reads tensors through maps and draws its tiles from a counter, whole ones and pieces."""
        query, batch = tensors[0], tensors[0].shape[0]
        tiles = query.shape[:2].numel() * self.variant["q_tiles"]
        arrivals = self.counter(torch.cuda.current_stream(self.device).cuda_stream, query.device)
        counter, drawn, draws = arrivals.data_ptr(), self.drawn(batch), tiles
        extra = {"kv_num_tiles": arrays.address("kv_num_tiles"), "counter": counter, "whole": tiles}
        if drawn and drawn["pieces"]:
            parts = query.new_empty(drawn["pieces"] * drawn["part_bytes"], dtype=torch.uint8)
            draws = drawn["whole"] + drawn["pieces"]
            extra |= {"whole": drawn["whole"], "pieces": arrays.address(f"pieces{batch}")}
            extra |= {"parts": parts.data_ptr(), "arrived": counter + 8}
        extra = packed(LAUNCH["hopper"], extra | {"draws": draws})
        blocks = min(draws, self.properties.multi_processor_count)
        main([*self.forward_maps(tensors, arrays), params, extra, mods], blocks=blocks)

    def forward_maps(self, tensors, arrays):
        """Of query, key, value, output and bitmaps."""
        v, dim, dim_v = self.variant, PROBLEM["head_dim"], PROBLEM["head_dim_v"]
        rows = (v["tile_q"], v["tile_kv"], v["tile_kv"], v["stored_rows"])
        maps = [self.map(*of) for of in zip(tensors, (dim, dim, dim_v, dim_v), rows)]
        bitmaps = arrays.all.get("bitmaps")
        # lines of 128 bytes, eight for a warpgroup's rows; without bitmaps their map reads nothing
        some = bitmaps is not None
        return [*maps, self.map(bitmaps.view(torch.int16).view(1, 1, -1, 64), 64, 8) if some else maps[1]]

    def backward(self, saved, gradients, d_captured, scale, arrays=None, captured=None):
        """Writes dq, dk and dv of a saved forward pass into `gradients`; adds those of captured tensors to `d_captured`."""
        v, b, arrays = self.variant, self.variant["backward"], arrays or self.arrays
        query = saved[0]
        batch, heads = query.shape[:2]
        scratch, items = self.scratch(query), self.items(batch, arrays)
        params = self.backward_params(saved, gradients, scratch, items, scale, arrays)
        sums, _bins = self.sums(d_captured)
        words = [word for own in sums for word in own]
        mods, _held = arrays.mods(f"{v['arch']}.backward_mods", b["captures"], captured, words, b["mods_by_pointer"], self.device)
        start_here = self.started()
        main, before, after, *of_bins = self.backward_functions
        around = {"blocks": (b["q_tiles"], heads, batch), "threads": 256, "shared": 0}
        start_here(before, [params], **around)
        maps, blocks = [], len(items)
        if b["hopper"]:
            maps = self.backward_maps(saved, gradients, scratch, arrays)
            blocks = min(blocks, self.properties.multi_processor_count)
        start_here(main, [*maps, params, mods], blocks=blocks, threads=b["threads"], shared=b["shared_bytes"])
        start_here(after, [params], **around)
        for own in sums if of_bins else []:
            if own[1]:
                start_here(*of_bins, [struct.pack("<3Q", *own)], blocks=-(-own[2] // 256), threads=256, shared=0)

    def sums(self, d_captured):
        """The words by which kernels find each captured tensor's gradient, and the memory that must live until they have run: its
        address, or, where no order may change the sums, that with the address of its bins (0: it needs none) and its elements."""
        bins = self.variant["backward"]["bins"]
        if bins is None:
            return [(tensor.data_ptr(),) for tensor in d_captured], []
        held = [tensor.new_zeros(tensor.numel() * each, dtype=torch.uint8) for tensor, each in zip(d_captured, bins)]
        words = [(t.data_ptr(), own.data_ptr() if len(own) else 0, t.numel()) for t, own in zip(d_captured, held)]
        return words, held

    def scratch(self, query):
        """Memory of one backward pass, by its fields."""
        b = self.variant["backward"]
        tiles = query.shape[:2].numel() * b["q_tiles"]
        return {
            "rows": query.new_empty(tiles * b["tile_q"] * 2, dtype=torch.float32),
            "dq_sum": query.new_empty(tiles * b["tile_q"] * b["qk_width"], dtype=torch.float32),
            "turns": query.new_empty(tiles * 2, dtype=torch.int32),
            "counter": query.new_empty(4, dtype=torch.int32),
        }

    def items(self, batch, arrays):
        """The backward pass's work, four words each: that of the design, or of each batch entry."""
        items = arrays.all["backward_items"].view(-1, 4)
        if not PROBLEM["mask_per_batch"]:
            items = items.repeat(batch, 1)
            items[:, 0] = torch.arange(batch, dtype=torch.int32, device=items.device).repeat_interleave(len(items) // batch)
        return items

    def backward_params(self, saved, gradients, scratch, items, scale, arrays):
        """The backward pass's struct, of whole 8 bytes."""
        query, key, value, out, lse, d_out, d_lse = saved
        dq, dk, dv = gradients
        batch, heads, q_len, _ = query.shape
        kv_heads, kv_len = key.shape[1:3]
        params = {
            "batch": batch, "heads": heads, "group": heads // kv_heads, "q_len": q_len, "kv_len": kv_len,
            "draws": len(items), "scale": scale,
        }  # fmt: skip
        params |= {name: self.variant["backward"][name] for name in ("q_tiles", "kv_tiles", "mask_batch", "mask_heads")}
        whole = scratch | {"lse": lse, "d_lse": d_lse, "items": items}
        params |= {name: tensor.data_ptr() for name, tensor in whole.items()}
        lists = ("row_start", "runs", "bitmap_start", "bitmap_ids", "bitmaps", "ranges", "order_start", "order")
        params |= {name: arrays.address(f"backward_{name}") for name in lists}
        params |= addressed({"q": query, "k": key, "v": value, "o": out, "d_o": d_out, "dq": dq, "dk": dk, "dv": dv})
        found = packed(LAUNCH["backward"], params)
        return found + bytes(-len(found) % 8)

    def backward_maps(self, saved, gradients, scratch, arrays):
        """Of query, key, value, d_out, dk and dv, then of the rows' numbers, the bitmaps and the sums of dq."""
        b, dim, dim_v = self.variant["backward"], PROBLEM["head_dim"], PROBLEM["head_dim_v"]
        (query, key, value, _, _, d_out, _), (_, dk, dv) = saved, gradients
        m, n = b["tile_q"], b["tile_kv"]
        of = ((query, dim, m), (key, dim, n), (value, dim_v, n), (d_out, dim_v, m), (dk, dim, 64), (dv, dim_v, 64))
        maps = [self.map(*each) for each in of]
        bitmaps, dq_sum = arrays.all["backward_bitmaps"], scratch["dq_sum"]
        lines = max(len(bitmaps) // b["bit_words"], 1) * b["bit_words"] // (2 * m)
        batch, heads = query.shape[:2]
        maps.append(self.map_words(scratch["rows"], (2 * m, b["q_tiles"], heads, batch), (2 * m, 1)))
        maps.append(self.map_words(bitmaps, (2 * m, lines, 1, 1), (2 * m, n // 64)))
        maps.append(self.map_words(dq_sum, (256, len(dq_sum) // 256, 1, 1), (256, b["part_lines"])))
        return maps

    def section(self, key, value, pairs, group):
        """Heads whose keys and values share the L2 cache."""
        row = sum(-(-t.shape[-1] // 8) * 8 for t in (key, value))
        kv_heads = max(self.properties.L2_cache_size // 2 // max(key.shape[2] * row * 2, 1), 1)
        return max(min(kv_heads * group, pairs), 1)

    def drawn(self, batch):
        """Sections, and pieces of the last tiles, if they are known for this batch and this number of multiprocessors."""
        here = (batch, self.properties.multi_processor_count)
        return next((d for d in self.variant["draws"] if (d["batch"], d["multiprocessors"]) == here), None)

    def counter(self, stream, device):
        """Two zero words and one for each arrival of a piece. The kernel resets them to zero. Launches that may run at the
        same time must not share them. Freed memory is reused by the same stream only."""
        words = 2 + max((drawn["arrivals"] for drawn in self.variant["draws"]), default=0)
        make = lambda: torch.zeros(words, dtype=torch.int32, device=device)
        # two graphs captured on one stream may run at the same time: each clears its own memory
        return make() if torch.cuda.is_current_stream_capturing() else self.counters(stream, make)

    def map(self, tensor, dim, rows):
        """The tensor map over a tensor of 16-bit numbers: (element, token, head, batch), boxes of `rows` x 64 elements."""
        batch, heads, tokens, _ = tensor.shape
        dims = (dim, tokens, heads, batch)
        strides = [2 * tensor.stride(axis) for axis in (2, 1, 0)]
        key = (tensor.data_ptr(), *dims, *strides, rows)
        # words of bitmaps are mapped as numbers of the design's dtype
        return self.maps(key, lambda: tensor_map(tensor, MAP_TYPES[DTYPE], dims, strides, (64, rows), 3))

    def map_words(self, tensor, dims, boxes):
        """The same over contiguous 32-bit words, without swizzle."""
        strides, stride = [], 4
        for extent in dims[:3]:
            stride *= extent
            strides.append(stride)
        key = (tensor.data_ptr(), *dims, *boxes)
        return self.maps(key, lambda: tensor_map(tensor, MAP_TYPES[tensor.dtype], dims, strides, boxes, 0))


@functools.cache
def kernel_on(device):
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("maskloom: call the kernel once on this device before capturing a CUDA graph: the call loads it")
    return Kernel(device)
