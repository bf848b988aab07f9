"""The kernel of DESIGN as a PyTorch operator. It needs PyTorch and the driver.

    import DESIGN_kernel as kernel
    out = kernel.attend(query, key, value)            # [B, H, S, D], bfloat16 or float16 as designed
    out, lse = kernel.attend(query, key, value, return_lse=True)

Any batch size (unless the mask differs between batch entries) and any strides; heads and lengths of the design. Its operator
in torch.ops.maskloom has the design's name and a hash of the kernel's contents, so that two designs with the same name
stay distinct. It works under torch.compile, and in CUDA graphs after one call outside of a graph on each device.

It can be trained: a second operator computes the gradients of query, key and value, also through the lse, and of the tensors
in LEARNS, if they are passed (`captured={"table": parameter}`, or `kernel.Attention()`, which holds them as
parameters and the kernel's lists as buffers that are not saved). Unsupported gradients are refused at the first call.
Selective checkpointing keeps the outputs of OPERATORS[0]. The gradcheck script of the export checks all gradients.
"""

import ctypes
import functools
import hashlib
import json
import math
import struct
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F

# tried with these; older ones have no operators of this form
if (2, 5) > (_version := tuple(map(int, torch.__version__.split(".")[:2]))):
    raise ImportError(f"maskloom: {__name__} needs PyTorch 2.5 or newer, and this is {torch.__version__}: install a newer one")
if _version > (2, 15):
    warnings.warn(f"maskloom: tried with PyTorch 2.5 to 2.15; with {torch.__version__} run the gradcheck first", stacklevel=2)

FOLDER = Path(__file__).with_name("kernels")
LAUNCH = json.loads(FOLDER.joinpath("launch.json").read_text(encoding="utf-8"))
PROBLEM = LAUNCH["problem"]
DTYPE = getattr(torch, PROBLEM["dtype"])
# float tensors that get gradients: name, shape and dtype, in the operators' order
LEARNS = LAUNCH["learns"]


def _contents():
    """A hash of the operator's content: its settings, its arrays and its kernels."""
    found = hashlib.sha256()
    for file in sorted(FOLDER.iterdir()):
        found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:16]


NAME = f"maskloom::DESIGN_{_contents()}"
_CODES = {"u64": "Q", "i64": "q", "i32": "i", "u32": "I", "f32": "f"}


def _packed(fields, values):
    """A struct of the kernel's as bytes; fields without a value are 0."""
    return struct.pack("<" + "".join(_CODES[kind] for _, kind in fields), *(values.get(name, 0) for name, _ in fields))


class _Driver:
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
def _driver():
    return _Driver()


def _tensors():
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


def _variant(device):
    """The variant for a device's architecture: its own, otherwise the newest older one of the same generation."""
    major, minor = torch.cuda.get_device_capability(device)
    usable = []
    for variant in LAUNCH["variants"]:
        digits = variant["arch"].removeprefix("sm_")
        exact, number = digits.endswith("a"), int(digits.rstrip("af"))
        if number == 10 * major + minor if exact else number // 10 == major and number % 10 <= minor:
            usable.append((number, exact, variant))
    if not usable:
        have = ", ".join(v["arch"] for v in LAUNCH["variants"])
        raise RuntimeError(f"maskloom: kernels for {have} do not run on sm_{major}{minor}: export --kernels sm_{major}{minor}")
    return max(usable, key=lambda u: u[:2])[2]


def _start(function, arguments, blocks, threads, shared, stream):
    """One launch; the arguments are bytes, or buffers of ctypes. blocks: a number, or three."""
    pointers = (ctypes.c_void_p * len(arguments))()
    held = [a if isinstance(a, ctypes.Array) else ctypes.create_string_buffer(a, len(a)) for a in arguments]
    for at, argument in enumerate(held):
        pointers[at] = argument.aligned if hasattr(argument, "aligned") else ctypes.addressof(argument)
    one = ctypes.c_uint(1)
    blocks = tuple(map(ctypes.c_uint, blocks if isinstance(blocks, tuple) else (blocks, 1, 1)))
    grid = (*blocks, ctypes.c_uint(threads), one, one)
    _driver()("cuLaunchKernel", function, *grid, ctypes.c_uint(shared), ctypes.c_void_p(stream), pointers, ctypes.c_void_p())


def _loaded(cubin, *entries):
    """The functions of a module; it stays loaded."""
    module = ctypes.c_void_p()
    _driver()("cuModuleLoadData", ctypes.byref(module), FOLDER.joinpath(cubin).read_bytes())
    found = [ctypes.c_void_p() for _ in entries]
    for function, entry in zip(found, entries):
        _driver()("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
    return found


class _Arrays:
    """Lists and captured tensors of one architecture on a device: the kernel's own, or a module's buffers."""

    def __init__(self, arch, arrays):
        own = f"{arch}."
        self.all = {name.removeprefix(own): array for name, array in arrays.items() if name.startswith(own)}

    def address(self, name):
        array = self.all.get(name)
        return 0 if array is None else array.data_ptr()

    def mods(self, prefix, places, captured, gradients, by_pointer, device):
        """The mods' struct for a launch, with addresses first, and the objects that must live until the launch has run."""
        mods = bytearray(_constants()[prefix].numpy().tobytes())
        learnt = [captured[place] if captured and place is not None else None for place in places]
        name = prefix.split(".", 1)[1].removesuffix("mods")
        own = [self.address(f"{name}capture{at}") for at in range(len(places))]
        addresses = [at if tensor is None else tensor.data_ptr() for at, tensor in zip(own, learnt)]
        addresses += [tensor.data_ptr() for tensor in gradients]
        struct.pack_into(f"<{len(addresses)}Q", mods, 0, *addresses)
        if not by_pointer:
            return bytes(mods), None
        held = torch.frombuffer(mods, dtype=torch.uint8).to(device)
        return struct.pack("<Q", held.data_ptr()), held


@functools.cache
def _constants():
    """The mods' structs of all variants, on the host."""
    return {name: array for name, array in _tensors().items() if name.endswith("mods")}


def _on(device):
    """All arrays that launches read, on a device, by name."""
    return {name: array.to(device) for name, array in _tensors().items() if not name.endswith("mods")}


class _Newest:
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


class _Kernel:
    """The kernels on one device: modules, functions, lists and captured tensors."""

    def __init__(self, device):
        self.variant = v = _variant(device)
        self.properties = torch.cuda.get_device_properties(device)
        self.device = device
        self.arrays = _Arrays(v["arch"], _on(device))
        self.own_mods = self.mods(self.arrays, None)
        # shared by launches on a stream and by tensors at an address, the newest
        self.counters, self.maps, self.backward_functions = _Newest(64), _Newest(256), None
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()
            join = [v["decode"]["join_entry"]] if v["decode"] else []
            self.function, *self.join = _loaded(v["cubin"], v["entry"], *join)
            # 8: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _driver()("cuFuncSetAttribute", self.function, 8, v["shared_bytes"])
            if v["backward"].get("main"):
                self.load_backward(v["backward"])

    def load_backward(self, b):
        (main,) = _loaded(b["main"], b["entry"])
        _driver()("cuFuncSetAttribute", main, 8, b["shared_bytes"])
        self.backward_functions = (*_loaded(b["rows"], "backward_rows", "backward_queries"), main)

    def mods(self, arrays, captured):
        v = self.variant
        return arrays.mods(f"{v['arch']}.mods", v["captures"], captured, [], v["mods_by_pointer"], self.device)

    def launch(self, query, key, value, out, lse, scale, arrays=None, captured=None):
        v = self.variant
        own = arrays is None and captured is None
        arrays = arrays or self.arrays
        mods_argument, _held = self.own_mods if own else self.mods(arrays, captured)
        batch, heads, q_len, _ = query.shape
        kv_heads, kv_len = key.shape[1:3]
        tiles = batch * heads * v["q_tiles"]
        drawn = self.drawn(batch)
        section = drawn["section"] if drawn else self.section(key, value, batch * heads, heads // kv_heads)
        params = {
            "q": query.data_ptr(), "k": key.data_ptr(), "v": value.data_ptr(), "o": out.data_ptr(), "lse": lse.data_ptr(),
            "tile_order": arrays.address("tile_order"), "row_start": arrays.address("row_start"), "runs": arrays.address("runs"),
            "batch": batch, "heads": heads, "group": heads // kv_heads, "q_len": q_len, "kv_len": kv_len,
            "q_tiles": v["q_tiles"], "mask_batch": v["mask_batch"], "mask_heads": v["mask_heads"],
            "section": section, "scale": scale, "lowest": v["lowest"],
        }  # fmt: skip
        params |= {name: arrays.address(name) for name in ("bitmap_start", "bitmap_ids", "bitmaps")}
        for name, tensor in (("q", query), ("k", key), ("v", value), ("o", out)):
            params |= zip((f"{name}_b", f"{name}_h", f"{name}_s"), tensor.stride())
        params = _packed(LAUNCH["params"], params)
        stream = torch.cuda.current_stream(query.device).cuda_stream
        start = functools.partial(_start, stream=stream)
        main = functools.partial(start, self.function, threads=v["threads"], shared=v["shared_bytes"])
        if v["decode"]:
            # one kernel computes pieces of the keys, another joins them
            d, rows = v["decode"], batch * heads * q_len
            parts = query.new_empty(rows * d["parts_a_row"], d["part_width"], dtype=torch.float32)
            part_lse = query.new_empty(rows * d["parts_a_row"], dtype=torch.float32)
            extra = _packed(LAUNCH["decode"], d | {"parts": parts.data_ptr(), "part_lse": part_lse.data_ptr()})
            main([params, extra, mods_argument], blocks=batch * kv_heads * d["splits"] * d["row_tiles"])
            start(self.join[0], [params, extra], blocks=rows, threads=d["join_threads"], shared=0)
        elif v["tensor_maps"]:
            rows = (v["tile_q"], v["tile_kv"], v["tile_kv"], v["stored_rows"])
            dims = (PROBLEM["head_dim"], PROBLEM["head_dim"], PROBLEM["head_dim_v"], PROBLEM["head_dim_v"])
            maps = [self.map(*of) for of in zip((query, key, value, out), dims, rows)]
            bitmaps = arrays.all.get("bitmaps")
            # lines of 128 bytes, eight for a warpgroup's rows; without bitmaps their map reads nothing
            some = bitmaps is not None
            maps.append(self.map(bitmaps.view(torch.int16).view(1, 1, -1, 64), 64, 8) if some else maps[1])
            draws, arrivals = tiles, self.counter(stream, query.device)
            counter = arrivals.data_ptr()
            extra = {"kv_num_tiles": arrays.address("kv_num_tiles"), "counter": counter, "whole": tiles}
            if drawn and drawn["pieces"]:
                parts = query.new_empty(drawn["pieces"] * drawn["part_bytes"], dtype=torch.uint8)
                draws = drawn["whole"] + drawn["pieces"]
                extra |= {"whole": drawn["whole"], "pieces": arrays.address(f"pieces{batch}")}
                extra |= {"parts": parts.data_ptr(), "arrived": counter + 8}
            arguments = [*maps, params, _packed(LAUNCH["hopper"], extra | {"draws": draws}), mods_argument]
            main(arguments, blocks=min(draws, self.properties.multi_processor_count))
        else:
            main([params, mods_argument], blocks=tiles)

    def backward(self, saved, gradients, d_captured, scale, arrays=None, captured=None):
        """Writes dq, dk and dv of a saved forward pass into `gradients`; adds those of captured tensors to `d_captured`."""
        v, b, arrays = self.variant, self.variant["backward"], arrays or self.arrays
        query, key, value, out, lse, d_out, d_lse = saved
        dq, dk, dv = gradients
        batch, heads, q_len, _ = query.shape
        kv_heads, kv_len = key.shape[1:3]
        tiles, m, n = batch * heads * b["q_tiles"], b["tile_q"], b["tile_kv"]
        rows = query.new_empty(tiles * m * 2, dtype=torch.float32)
        dq_sum = query.new_empty(tiles * m * b["qk_width"], dtype=torch.float32)
        turns = query.new_empty(tiles * 2, dtype=torch.int32)
        counter = query.new_empty(4, dtype=torch.int32)
        items = arrays.all["backward_items"].view(-1, 4)
        if not PROBLEM["mask_per_batch"]:
            items = items.repeat(batch, 1)
            items[:, 0] = torch.arange(batch, dtype=torch.int32, device=items.device).repeat_interleave(len(items) // batch)
        draws = len(items)
        params = {
            "lse": lse.data_ptr(), "d_lse": d_lse.data_ptr(), "rows": rows.data_ptr(), "dq_sum": dq_sum.data_ptr(),
            "turns": turns.data_ptr(), "counter": counter.data_ptr(), "items": items.data_ptr(),
            "batch": batch, "heads": heads, "group": heads // kv_heads, "q_len": q_len, "kv_len": kv_len,
            "q_tiles": b["q_tiles"], "kv_tiles": b["kv_tiles"], "mask_batch": b["mask_batch"],
            "mask_heads": b["mask_heads"], "draws": draws, "scale": scale,
        }  # fmt: skip
        lists = ("row_start", "runs", "bitmap_start", "bitmap_ids", "bitmaps", "ranges", "order_start", "order")
        params |= {name: arrays.address(f"backward_{name}") for name in lists}
        named = {"q": query, "k": key, "v": value, "o": out, "d_o": d_out, "dq": dq, "dk": dk, "dv": dv}
        for name, tensor in named.items():
            params[name] = tensor.data_ptr()
            params |= zip((f"{name}_b", f"{name}_h", f"{name}_s"), tensor.stride())
        packed = _packed(LAUNCH["backward"], params)
        packed += bytes(-len(packed) % 8)
        mods, _held = arrays.mods(
            f"{v['arch']}.backward_mods", b["captures"], captured, d_captured, b["mods_by_pointer"], self.device
        )
        start = functools.partial(_start, stream=torch.cuda.current_stream(query.device).cuda_stream)
        before, after, main = self.backward_functions
        around = {"blocks": (b["q_tiles"], heads, batch), "threads": 256, "shared": 0}
        start(before, [packed], **around)
        if b["hopper"]:
            dim, dim_v = PROBLEM["head_dim"], PROBLEM["head_dim_v"]
            of = ((query, dim, m), (key, dim, n), (value, dim_v, n), (d_out, dim_v, m), (dk, dim, 64), (dv, dim_v, 64))
            maps = [self.map(*each) for each in of]
            bitmaps = arrays.all["backward_bitmaps"]
            lines = max(len(bitmaps) // b["bit_words"], 1) * b["bit_words"] // (2 * m)
            maps.append(self.map_words(rows, (2 * m, b["q_tiles"], heads, batch), (2 * m, 1)))
            maps.append(self.map_words(bitmaps, (2 * m, lines, 1, 1), (2 * m, n // 64)))
            maps.append(self.map_words(dq_sum, (256, len(dq_sum) // 256, 1, 1), (256, b["part_lines"])))
            blocks = min(draws, self.properties.multi_processor_count)
            start(main, [*maps, packed, mods], blocks=blocks, threads=b["threads"], shared=b["shared_bytes"])
        else:
            start(main, [packed, mods], blocks=draws, threads=b["threads"], shared=b["shared_bytes"])
        start(after, [packed], **around)

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
        """The tensor map over a tensor, made by the driver: (element, token, head, batch), boxes of `rows` x 64 elements."""
        (batch, heads, tokens, _), strides = tensor.shape, [2 * tensor.stride(i) for i in (2, 1, 0)]
        key = (tensor.data_ptr(), batch, heads, tokens, dim, *strides, rows)
        kind = 9 if DTYPE == torch.bfloat16 else 6
        return self.maps(key, lambda: _map(tensor, kind, (dim, tokens, heads, batch), strides, (64, rows), 3))

    def map_words(self, tensor, dims, boxes):
        """The same over contiguous words, without swizzle."""
        key, (a, b, c, _) = (tensor.data_ptr(), *dims, *boxes), dims
        # 7: floats, 2: words
        kind = 7 if tensor.dtype == torch.float32 else 2
        return self.maps(key, lambda: _map(tensor, kind, dims, (4 * a, 4 * a * b, 4 * a * b * c), boxes, 0))


def _map(tensor, kind, dims, strides, boxes, swizzle):
    u64, u32 = ctypes.c_uint64, ctypes.c_uint32
    buffer = ctypes.create_string_buffer(128 + 64)
    buffer.aligned = -(-ctypes.addressof(buffer) // 64) * 64
    # no interleaving, the swizzle, L2 promotion of 256 bytes, zeros outside
    _driver()(
        "cuTensorMapEncodeTiled", ctypes.c_void_p(buffer.aligned), kind, ctypes.c_uint(4), ctypes.c_void_p(tensor.data_ptr()),
        (u64 * 4)(*dims), (u64 * 3)(*strides), (u32 * 4)(*boxes, 1, 1), (u32 * 4)(1, 1, 1, 1), 0, swizzle, 3, 0,
    )  # fmt: skip
    return buffer


@functools.cache
def _kernel(device):
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("maskloom: call the kernel once on this device before capturing a CUDA graph: the call loads it")
    return _Kernel(device)


def _rows(tensor):
    """The tensor with rows of whole 16-byte chunks, padded with zeros, at any other strides."""
    if tensor.shape[-1] % 8:  # F.pad copies even if it adds nothing
        tensor = F.pad(tensor, (0, -tensor.shape[-1] % 8))
    aligned = tensor.data_ptr() % 16 == 0 and tensor.stride(-1) == 1 and all(s % 8 == 0 and s > 0 for s in tensor.stride()[:-1])
    return tensor if aligned else tensor.contiguous()


def _on_gpu(tensor):
    """Errors: there is no kernel for the tensor's device."""
    if tensor.device.type != "cuda":
        other = f"DESIGN.attend, which runs on {tensor.device.type}"
        words = f"these kernels run on NVIDIA GPUs: move query, key and value to a GPU, or use {other}"
        raise ValueError(f"maskloom: query is on {tensor.device}; {words}")


def _check(query, key, value):
    p = PROBLEM
    batch = query.shape[0]
    wanted = [
        ("query", query, (batch, p["heads"], p["q_len"], p["head_dim"])),
        ("key", key, (batch, p["kv_heads"], p["kv_len"], p["head_dim"])),
        ("value", value, (batch, p["kv_heads"], p["kv_len"], p["head_dim_v"])),
    ]
    for name, tensor, shape in wanted:
        if tensor.device != query.device:
            raise ValueError(f"maskloom: query is on {query.device} and {name} on {tensor.device}: move one of them")
        if tuple(tensor.shape) != shape or tensor.dtype != DTYPE:
            got = f"{tuple(tensor.shape)} of {tensor.dtype}"
            raise ValueError(f"maskloom: {name} is {got}; this kernel was compiled for {shape} of {DTYPE}")
    if p["mask_per_batch"] and batch != p["batch"]:
        raise ValueError(f"maskloom: the mask differs between batch entries and supports a batch of {p['batch']}, not {batch}")
    if p["score_per_batch"] and batch > p["batch"]:
        words = f"the score mod reads tensors by batch entry; they hold {p['batch']} entries, and the call has {batch}"
        raise ValueError(f"maskloom: {words}")


def _check_captured(query, captured):
    """Errors: tensors of other shapes or devices than the design's, or of ints."""
    for tensor, wanted in zip(captured, LEARNS):
        shape = tuple(wanted["shape"])
        if tuple(tensor.shape) != shape or not tensor.is_floating_point() or tensor.device != query.device:
            got = f"{tuple(tensor.shape)} of {tensor.dtype} on {tensor.device}"
            raise ValueError(f"maskloom: {wanted['name']} is {got}; it must be {shape} of floats on {query.device}")


def _read(tensor):
    """A captured tensor in the layout of the kernels."""
    return tensor.contiguous() if tensor.dtype == torch.float64 else tensor.float().contiguous()


def _chosen(query, captured, lists):
    """The device's kernel, its arrays and the captured tensors for a launch; None: the design's tensors."""
    _check_captured(query, captured)
    kernel = _kernel(query.device)
    if captured and kernel.variant["bounded"]:
        names = ", ".join(tensor["name"] for tensor in LEARNS)
        raise ValueError(f"maskloom: this kernel relies on the design's values of {names}: export it in float16 to train them")
    arrays = _Arrays(kernel.variant["arch"], dict(zip(ARRAYS, lists))) if lists else None
    return kernel, arrays, [_read(tensor) for tensor in captured] or None


# names of the arrays that operators take, in order
ARRAYS = [name for name in sorted(_tensors()) if not name.endswith("mods")]


# for every device: without it PyTorch reports missing dispatch keys
@torch.library.custom_op(NAME, mutates_args=())
def _attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    captured: Sequence[torch.Tensor],
    lists: Sequence[torch.Tensor],
    scale: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    _check(query, key, value)
    _on_gpu(query)
    kernel, arrays, learnt = _chosen(query, captured, lists)
    # here and not in `attend`: torch.compile would add a guard on the design's constant
    scale = PROBLEM["scale"] if scale is None else scale
    if kernel.variant["positive_scale"] and not scale > 0:
        raise ValueError("maskloom: this kernel was compiled for a positive scale")
    batch, heads, q_len, _ = query.shape
    width = value.shape[-1]
    out = query.new_empty(batch, heads, q_len, -(-width // 8) * 8)
    lse = query.new_empty(batch, heads, q_len, dtype=torch.float32)
    with torch.cuda.device(query.device):
        kernel.launch(_rows(query), _rows(key), _rows(value), out, lse, scale, arrays, learnt)
    return (out if out.shape[-1] == width else out[..., :width].contiguous()), lse


@_attend.register_fake
def _(query, key, value, captured, lists, scale):
    _check(query, key, value)
    _check_captured(query, captured)
    shape = (*query.shape[:-1], value.shape[-1])
    return query.new_empty(shape), query.new_empty(shape[:-1], dtype=torch.float32)


@torch.library.custom_op(f"{NAME}_backward", mutates_args=())
def _attend_backward(
    d_out: torch.Tensor,
    d_lse: torch.Tensor | None,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    captured: Sequence[torch.Tensor],
    lists: Sequence[torch.Tensor],
    scale: float | None,
) -> list[torch.Tensor]:
    _check(query, key, value)
    _on_gpu(query)
    _must_be_ordered()
    kernel, arrays, learnt = _chosen(query, captured, lists)
    _must_differentiate([kernel.variant])
    scale = PROBLEM["scale"] if scale is None else scale
    d_lse = torch.zeros_like(lse) if d_lse is None else d_lse.float().contiguous()
    wide = lambda t: t.new_empty(*t.shape[:-1], -(-t.shape[-1] // 8) * 8)
    gradients = [wide(tensor) for tensor in (query, key, value)]
    sums = [query.new_zeros([max(n, 1) for n in t["shape"]], dtype=torch.float32) for t in LEARNS]
    with torch.cuda.device(query.device):
        saved = (*map(_rows, (query, key, value, out)), lse.contiguous(), _rows(d_out.to(out.dtype)), d_lse)
        kernel.backward(saved, gradients, sums, scale, arrays, learnt)
    own = [g[..., : t.shape[-1]].contiguous() for g, t in zip(gradients, (query, key, value))]
    return own + [sum_.to(tensor.dtype) for sum_, tensor in zip(sums, captured)]


@_attend_backward.register_fake
def _(d_out, d_lse, query, key, value, out, lse, captured, lists, scale):
    return [t.new_empty(t.shape) for t in (query, key, value, *captured)]


def _save(ctx, inputs, output):
    query, key, value, captured, lists, scale = inputs
    ctx.counts, ctx.scale = (len(captured), len(lists)), scale
    ctx.save_for_backward(query, key, value, *output, *captured, *lists)


def _differentiate(ctx, d_out, d_lse):
    query, key, value, out, lse, *rest = ctx.saved_tensors
    captured, lists = rest[: ctx.counts[0]], rest[ctx.counts[0] :]
    d_out = torch.zeros_like(out) if d_out is None else d_out
    found = _attend_backward(d_out, d_lse, query, key, value, out, lse, captured, lists, ctx.scale)
    return *found[:3], found[3:], [None] * len(lists), None


_attend.register_autograd(_differentiate, setup_context=_save)
# forward and backward, as selective checkpointing names them
OPERATORS = tuple(getattr(torch.ops.maskloom, name.split("::")[1]).default for name in (NAME, f"{NAME}_backward"))


def _must_be_ordered():
    """Errors: PyTorch requires deterministic algorithms, but this backward pass adds in no fixed order."""
    if LAUNCH["deterministic"] or not torch.are_deterministic_algorithms_enabled():
        return
    words = (
        "maskloom: this backward pass adds in no fixed order, and torch.use_deterministic_algorithms is on; export it again "
        "with `maskloom export --kernels --deterministic`"
    )
    if not torch.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(words)
    warnings.warn(words, stacklevel=2)


def _must_differentiate(variants):
    """Errors: none of these variants has a backward pass; the message gives the reason."""
    refusals = [variant["backward"].get("refused") for variant in variants]
    if all(refusals):
        words = "train with DESIGN.attend, or call it under torch.no_grad()"
        raise RuntimeError(f"maskloom: no gradient here: {refusals[0]}; {words}")


def _attended(query, key, value, captured, lists, scale, return_lse):
    if torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value, *captured)):
        _must_differentiate(LAUNCH["variants"])
    out, lse = _attend(query, key, value, captured, lists, None if scale is None else float(scale))
    return (out, lse) if return_lse else out


def attend(query, key, value, scale=None, return_lse=False, captured=None):
    """The design's attention of query [B, Hq, Q, E], key [B, Hkv, KV, E] and value [B, Hkv, KV, Ev]; lse [B, Hq, Q].

    captured: tensors by name that replace those in LEARNS: all of them, or none.
    """
    given = dict(captured or {})
    learnt = [given.pop(wanted["name"]) for wanted in LEARNS if wanted["name"] in given]
    if given or len(learnt) not in (0, len(LEARNS)):
        names = ", ".join(wanted["name"] for wanted in LEARNS) or "nothing"
        raise ValueError(f"maskloom: captured names {sorted(captured)}; the design learns {names}: pass all of them")
    return _attended(query, key, value, learnt, [], scale, return_lse)


class Attention(torch.nn.Module):
    """The same as a module: the design's learned tensors as parameters, with the design's values, and the kernels' lists
    as buffers that move with it and are not saved."""

    def __init__(self):
        super().__init__()
        arrays = _tensors()
        for name in ARRAYS:
            self.register_buffer("list_" + name.replace(".", "_"), arrays[name], persistent=False)
        self.learnt = torch.nn.ParameterDict({t["name"]: torch.nn.Parameter(_initial(t, arrays)) for t in LEARNS})

    def forward(self, query, key, value, scale=None, return_lse=False):
        lists = [getattr(self, "list_" + name.replace(".", "_")) for name in ARRAYS]
        learnt = [self.learnt[wanted["name"]] for wanted in LEARNS]
        return _attended(query, key, value, learnt, lists, scale, return_lse)


def _initial(wanted, arrays):
    """A tensor's values in the design."""
    at = next(i for i, t in enumerate(LEARNS) if t is wanted)
    v = LAUNCH["variants"][0]
    dtype = getattr(torch, wanted["dtype"])
    held = arrays[f"{v['arch']}.capture{v['captures'].index(at)}"]
    held = held.view(torch.float64 if dtype == torch.float64 else torch.float32)
    return held[: math.prod(wanted["shape"])].reshape(wanted["shape"]).to(dtype)
