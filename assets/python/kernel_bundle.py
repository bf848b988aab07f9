"""The kernel that Maskloom compiled for DESIGN, as a PyTorch operator. Needs PyTorch and the driver: no compiler, no toolkit.

    import DESIGN_kernel
    out = DESIGN_kernel.attend(query, key, value)            # [B, H, S, D], bfloat16 or float16 as designed
    out, lse = DESIGN_kernel.attend(query, key, value, return_lse=True)

Any batch size (unless the mask differs between batch entries) and any strides; heads and lengths are the design's. It is
torch.ops.maskloom.DESIGN_ and a number that is made of the kernel's contents, so that two designs of one name do not take each
other's place. It works under torch.compile, and in CUDA graphs after one call outside of them on each device. It computes
forward only, and refuses inputs that need a gradient: train with DESIGN.attend.
"""

import ctypes
import functools
import hashlib
import json
import struct
from pathlib import Path

import torch
import torch.nn.functional as F

FOLDER = Path(__file__).with_name("kernels")
LAUNCH = json.loads(FOLDER.joinpath("launch.json").read_text(encoding="utf-8"))
PROBLEM = LAUNCH["problem"]
DTYPE = getattr(torch, PROBLEM["dtype"])



def _contents():
    """A number for what this operator computes: its settings, its arrays and its kernels."""
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
                raise RuntimeError("maskloom: these kernels are for NVIDIA's GPUs; this PyTorch is for AMD's") from None
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
    """The arrays beside the kernels, by name: safetensors, read here so that no package is needed."""
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
    """The variant for a device's architecture: its own, else the newest older one of the same generation."""
    major, minor = torch.cuda.get_device_capability(device)
    usable = []
    for variant in LAUNCH["variants"]:
        digits = variant["arch"].removeprefix("sm_")
        exact, number = digits.endswith("a"), int(digits.rstrip("af"))
        fits = number == 10 * major + minor if exact else number // 10 == major and number % 10 <= minor
        if fits:
            usable.append((number, exact, variant))
    if not usable:
        have = ", ".join(v["arch"] for v in LAUNCH["variants"])
        raise RuntimeError(f"maskloom: kernels for {have} do not run on sm_{major}{minor}: export with --kernels sm_{major}{minor}")
    return max(usable, key=lambda u: u[:2])[2]


def _start(function, arguments, blocks, threads, shared, stream):
    """One launch; the arguments are bytes, or buffers of ctypes."""
    pointers = (ctypes.c_void_p * len(arguments))()
    held = [a if isinstance(a, ctypes.Array) else ctypes.create_string_buffer(a, len(a)) for a in arguments]
    for at, argument in enumerate(held):
        pointers[at] = argument.aligned if hasattr(argument, "aligned") else ctypes.addressof(argument)
    one = ctypes.c_uint(1)
    grid = (ctypes.c_uint(blocks), one, one, ctypes.c_uint(threads), one, one)
    _driver()("cuLaunchKernel", function, *grid, ctypes.c_uint(shared), ctypes.c_void_p(stream), pointers, ctypes.c_void_p())


class _Kernel:
    """The kernel on one device: module, functions, lists and captured tensors."""

    def __init__(self, device):
        self.variant = v = _variant(device)
        self.properties = torch.cuda.get_device_properties(device)
        self.arrays = {
            name.split(".", 1)[1]: array.to(device)
            for name, array in _tensors().items()
            if name.startswith(v["arch"] + ".") and not name.endswith(".mods")
        }
        mods = bytearray(_tensors()[v["arch"] + ".mods"].numpy().tobytes())
        for at in range(v["captures"]):
            struct.pack_into("<Q", mods, 8 * at, self.arrays[f"capture{at}"].data_ptr())
        if v["mods_by_pointer"]:
            self.mods = torch.frombuffer(mods, dtype=torch.uint8).to(device)
            mods = struct.pack("<Q", self.mods.data_ptr())
        self.mods_argument = bytes(mods)
        self.counters, self.maps = {}, {}
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()
            module, self.function, self.join = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
            self.image = FOLDER.joinpath(v["cubin"]).read_bytes()
            _driver()("cuModuleLoadData", ctypes.byref(module), self.image)
            _driver()("cuModuleGetFunction", ctypes.byref(self.function), module, v["entry"].encode())
            if v["decode"]:
                _driver()("cuModuleGetFunction", ctypes.byref(self.join), module, v["decode"]["join_entry"].encode())
            # 8: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _driver()("cuFuncSetAttribute", self.function, 8, v["shared_bytes"])

    def address(self, name):
        array = self.arrays.get(name)
        return 0 if array is None else array.data_ptr()

    def launch(self, query, key, value, out, lse, scale):
        v = self.variant
        batch, heads, q_len, _ = query.shape
        kv_heads, kv_len = key.shape[1:3]
        tiles = batch * heads * v["q_tiles"]
        drawn = self.drawn(batch)
        section = drawn["section"] if drawn else self.section(key, value, batch * heads, heads // kv_heads)
        params = {
            "q": query.data_ptr(), "k": key.data_ptr(), "v": value.data_ptr(), "o": out.data_ptr(), "lse": lse.data_ptr(),
            "tile_order": self.address("tile_order"), "row_start": self.address("row_start"), "runs": self.address("runs"),
            "batch": batch, "heads": heads, "group": heads // kv_heads, "q_len": q_len, "kv_len": kv_len,
            "q_tiles": v["q_tiles"], "mask_batch": v["mask_batch"], "mask_heads": v["mask_heads"],
            "section": section, "scale": scale, "lowest": v["lowest"],
        }  # fmt: skip
        params |= {name: self.address(name) for name in ("bitmap_start", "bitmap_ids", "bitmaps")}
        for name, tensor in (("q", query), ("k", key), ("v", value), ("o", out)):
            params |= zip((f"{name}_b", f"{name}_h", f"{name}_s"), tensor.stride())
        params = _packed(LAUNCH["params"], params)
        stream = torch.cuda.current_stream(query.device).cuda_stream
        # two graphs that are captured on one stream may run at the same time
        own = f"graph {len(self.counters)}" if torch.cuda.is_current_stream_capturing() else stream
        start = functools.partial(_start, stream=stream)
        main = functools.partial(start, self.function, threads=v["threads"], shared=v["shared_bytes"])
        if v["decode"]:
            # pieces of the keys by one kernel, joined by another
            d, rows = v["decode"], batch * heads * q_len
            parts = query.new_empty(rows * d["parts_a_row"], d["part_width"], dtype=torch.float32)
            part_lse = query.new_empty(rows * d["parts_a_row"], dtype=torch.float32)
            extra = _packed(LAUNCH["decode"], d | {"parts": parts.data_ptr(), "part_lse": part_lse.data_ptr()})
            main([params, extra, self.mods_argument], blocks=batch * kv_heads * d["splits"] * d["row_tiles"])
            start(self.join, [params, extra], blocks=rows, threads=d["join_threads"], shared=0)
        elif v["tensor_maps"]:
            rows = (v["tile_q"], v["tile_kv"], v["tile_kv"], v["stored_rows"])
            dims = (PROBLEM["head_dim"], PROBLEM["head_dim"], PROBLEM["head_dim_v"], PROBLEM["head_dim_v"])
            maps = [self.map(*of) for of in zip((query, key, value, out), dims, rows)]
            bitmaps = self.arrays.get("bitmaps")
            # lines of 128 bytes, eight of them for a warpgroup's rows; without bitmaps nothing is read by their map
            some = bitmaps is not None
            maps.append(self.map(bitmaps.view(torch.int16).view(1, 1, -1, 64), 64, 8) if some else maps[1])
            draws, counter = tiles, self.counter(own, query.device).data_ptr()
            extra = {"kv_num_tiles": self.address("kv_num_tiles"), "counter": counter, "whole": tiles}
            if drawn and drawn["pieces"]:
                parts = query.new_empty(drawn["pieces"] * drawn["part_bytes"], dtype=torch.uint8)
                draws = drawn["whole"] + drawn["pieces"]
                extra |= {"whole": drawn["whole"], "pieces": self.address(f"pieces{batch}")}
                extra |= {"parts": parts.data_ptr(), "arrived": counter + 8}
            arguments = [*maps, params, _packed(LAUNCH["hopper"], extra | {"draws": draws}), self.mods_argument]
            main(arguments, blocks=min(draws, self.properties.multi_processor_count))
        else:
            main([params, self.mods_argument], blocks=tiles)

    def section(self, key, value, pairs, group):
        """Heads whose keys and values share the L2 cache."""
        row = sum(-(-t.shape[-1] // 8) * 8 for t in (key, value))
        kv_heads = max(self.properties.L2_cache_size // 2 // max(key.shape[2] * row * 2, 1), 1)
        return max(min(kv_heads * group, pairs), 1)

    def drawn(self, batch):
        """Sections, and pieces of the last tiles, where they are known for this batch and this many multiprocessors."""
        here = (batch, self.properties.multi_processor_count)
        return next((d for d in self.variant["draws"] if (d["batch"], d["multiprocessors"]) == here), None)

    def counter(self, stream, device):
        """Two words at zero and one for each arrival of a piece, which the kernel leaves at zero; launches that may run at the
        same time must not share them."""
        if stream not in self.counters:
            words = 2 + max((drawn["arrivals"] for drawn in self.variant["draws"]), default=0)
            self.counters[stream] = torch.zeros(words, dtype=torch.int32, device=device)
        return self.counters[stream]

    def map(self, tensor, dim, rows):
        """The tensor map over a tensor, made by the driver: (element, token, head, batch), boxes of `rows` x 64 elements."""
        batch, heads, tokens, _ = tensor.shape
        strides = [2 * tensor.stride(i) for i in (2, 1, 0)]
        key = (tensor.data_ptr(), batch, heads, tokens, dim, *strides, rows)
        if key not in self.maps:
            if len(self.maps) > 256:
                self.maps.clear()
            u64, u32 = ctypes.c_uint64, ctypes.c_uint32
            buffer = ctypes.create_string_buffer(128 + 64)
            buffer.aligned = -(-ctypes.addressof(buffer) // 64) * 64
            kind = 9 if DTYPE == torch.bfloat16 else 6
            # no interleaving, 128-byte swizzle, L2 promotion of 256 bytes, zeros outside
            _driver()(
                "cuTensorMapEncodeTiled", ctypes.c_void_p(buffer.aligned), kind, ctypes.c_uint(4), ctypes.c_void_p(tensor.data_ptr()),
                (u64 * 4)(dim, tokens, heads, batch), (u64 * 3)(*strides), (u32 * 4)(64, rows, 1, 1), (u32 * 4)(1, 1, 1, 1),
                0, 3, 3, 0,
            )  # fmt: skip
            self.maps[key] = buffer
        return self.maps[key]


@functools.cache
def _kernel(device):
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("maskloom: call the kernel once on this device before a CUDA graph is captured: that loads it")
    return _Kernel(device)


def _rows(tensor):
    """Rows as the kernel reads them: whole 16-byte chunks, padded with zeros, at any other strides."""
    if tensor.shape[-1] % 8:  # F.pad copies even where it adds nothing
        tensor = F.pad(tensor, (0, -tensor.shape[-1] % 8))
    aligned = tensor.data_ptr() % 16 == 0 and tensor.stride(-1) == 1 and all(s % 8 == 0 and s > 0 for s in tensor.stride()[:-1])
    return tensor if aligned else tensor.contiguous()


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
        raise ValueError(f"maskloom: the mask differs between batch entries; it was made for {p['batch']}, not {batch}")


@torch.library.custom_op(NAME, mutates_args=(), device_types="cuda")
def _attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float | None) -> tuple[torch.Tensor, torch.Tensor]:
    _check(query, key, value)
    kernel = _kernel(query.device)
    # here and not in `attend`: torch.compile would guard on the design's constant
    scale = PROBLEM["scale"] if scale is None else scale
    if kernel.variant["positive_scale"] and not scale > 0:
        raise ValueError("maskloom: this kernel was compiled for a positive scale")
    batch, heads, q_len, _ = query.shape
    width = value.shape[-1]
    out = query.new_empty(batch, heads, q_len, -(-width // 8) * 8)
    lse = query.new_empty(batch, heads, q_len, dtype=torch.float32)
    with torch.cuda.device(query.device):
        kernel.launch(_rows(query), _rows(key), _rows(value), out, lse, scale)
    return (out if out.shape[-1] == width else out[..., :width].contiguous()), lse


@_attend.register_fake
def _(query, key, value, scale):
    _check(query, key, value)
    shape = (*query.shape[:-1], value.shape[-1])
    return query.new_empty(shape), query.new_empty(shape[:-1], dtype=torch.float32)


def _no_backward(*_):
    raise RuntimeError("maskloom: the compiled kernel is forward only: train with DESIGN.attend, or call it under torch.no_grad()")


_attend.register_autograd(_no_backward)


def attend(query, key, value, scale=None, return_lse=False):
    """The design's attention of query [B, Hq, Q, E], key [B, Hkv, KV, E] and value [B, Hkv, KV, Ev]; lse [B, Hq, Q]."""
    if torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad):
        _no_backward()
    out, lse = _attend(query, key, value, None if scale is None else float(scale))
    return (out, lse) if return_lse else out
