# SPDX-License-Identifier: MIT
"""Plans of launches: the parameters of kernels in memory, ready but for the addresses of a call's tensors.

It owns the driver's functions, the bytes of parameters, and their blocks. A plan's bytes are those that a plan made anew would
have for the same addresses. It does not know what kernels, fields or tensors mean: launch.py describes them.
"""

import ctypes
import functools
import itertools
import struct
import threading

import torch

CODES = {"u64": "Q", "i64": "q", "i32": "i", "u32": "I", "f32": "f"}
# the driver's numbers of the types of tensor maps
MAP_TYPES = {torch.int32: 2, torch.float16: 6, torch.float32: 7, torch.bfloat16: 9}
MAP_BYTES = 128
# what the driver answers in a thread in which no context is current, or another device's: INVALID_CONTEXT, INVALID_HANDLE
ELSEWHERE = (201, 400)


# ---- the driver


class Driver:
    """The few functions of libcuda that launches need. Those of tensor maps write host memory alone: they keep the interpreter's
    lock, and all others let it go, as a launch may wait for the GPU."""

    U32, AT = ctypes.c_uint, ctypes.c_void_p
    MAPS = {
        "cuTensorMapEncodeTiled": [AT, U32, U32, AT, AT, AT, AT, AT, U32, U32, U32, U32],
        "cuTensorMapReplaceAddress": [AT, AT],
    }
    OTHERS = {
        "cuLaunchKernel": [AT, U32, U32, U32, U32, U32, U32, U32, AT, AT, AT],
        "cuModuleLoadData": [AT, AT],
        "cuModuleGetFunction": [AT, AT, ctypes.c_char_p],
        "cuFuncSetAttribute": [AT, ctypes.c_int, ctypes.c_int],
        "cuCtxGetCurrent": [AT],
        "cuCtxSetCurrent": [AT],
        "cuGetErrorName": [ctypes.c_int, AT],
    }

    def __init__(self, opened=None):
        opened = opened or self.opened
        self.functions = {}
        for kind, names in ((ctypes.PyDLL, self.MAPS), (ctypes.CDLL, self.OTHERS)):
            library = opened(kind)
            for name, types in names.items():
                # drivers before CUDA 12 have no tensor maps, and run kernels that need none
                function = getattr(library, name, None)
                if function is not None:
                    function.argtypes = types
                self.functions[name] = function
        self.launch, self.replace = self.functions["cuLaunchKernel"], self.functions["cuTensorMapReplaceAddress"]

    @staticmethod
    def opened(kind):
        try:
            return kind("libcuda.so.1")
        except OSError:
            if torch.version.hip is not None:
                raise RuntimeError("maskloom: these kernels need an NVIDIA GPU; this PyTorch is for AMD GPUs") from None
            return kind("nvcuda.dll")

    def __call__(self, name, *arguments):
        function = self.functions[name]
        if function is None:
            raise RuntimeError(f"maskloom: this driver has no {name}: it is older than CUDA 12; install a newer driver")
        self.passed(name, function(*arguments))

    def passed(self, name, status):
        if status != 0:
            text = ctypes.c_char_p()
            self.functions["cuGetErrorName"](status, ctypes.byref(text))
            raise RuntimeError(f"maskloom: {name} failed: {(text.value or b'?').decode()}")


@functools.cache
def driver():
    return Driver()


class Kept:
    """A bounded store of what was made for a key; what was made first goes first. Threads may use it at once: a look is one
    operation of a dict, and the caller holds what it found."""

    def __init__(self, most):
        self.most, self.held, self.lock = most, {}, threading.Lock()

    def __call__(self, key, make):
        found = self.held.get(key)
        if found is None:
            made = make()
            with self.lock:
                found = self.held.setdefault(key, made)
                while len(self.held) > self.most:
                    del self.held[next(iter(self.held))]
        return found


# ---- what a plan consists of


class Struct:
    """A struct of the kernel's as bytes: fields without a value are 0, and some are addresses that each call writes."""

    def __init__(self, fields, values, called=()):
        """called: names of the fields that hold an address of each call."""
        codes = [CODES[kind] for _, kind in fields]
        ends = itertools.accumulate(map(struct.calcsize, ("<" + code for code in codes)))
        starts = dict(zip((name for name, _ in fields), [0, *ends]))
        self.raw = struct.pack("<" + "".join(codes), *(values.get(name, 0) for name, _ in fields))
        self.places = [(starts[name], name) for name in called]


class Words:
    """Bytes that begin with addresses: those named are written by each call, the others are given."""

    def __init__(self, raw, first):
        self.raw = bytearray(raw)
        self.places = [(8 * at, word) for at, word in enumerate(first) if isinstance(word, str)]
        struct.pack_into(f"<{len(first)}Q", self.raw, 0, *(0 if isinstance(word, str) else word for word in first))

    def filled(self, names, addresses):
        raw = bytearray(self.raw)
        for offset, name in self.places:
            struct.pack_into("<Q", raw, offset, addresses[names[name]])
        return torch.frombuffer(raw, dtype=torch.uint8)


class Map:
    """A tensor map: extents and strides in bytes from the fastest axis on, and boxes of two axes, over the memory at an
    address, or at the address of that name in each call."""

    places = ()

    def __init__(self, dtype, at, dims, strides, boxes, swizzle):
        self.raw, self.at = bytes(MAP_BYTES), at
        u64, u32 = ctypes.c_uint64, ctypes.c_uint32
        self.extents = ((u64 * 4)(*dims), (u64 * 3)(*strides), (u32 * 4)(*boxes, 1, 1), (u32 * 4)(1, 1, 1, 1))
        self.dtype, self.swizzle = MAP_TYPES[dtype], swizzle

    def encode(self, to, address):
        # no interleaving, the swizzle, L2 promotion of 256 bytes, zeros outside
        driver()("cuTensorMapEncodeTiled", to, self.dtype, 4, address, *self.extents, 0, self.swizzle, 3, 0)


class Launch:
    """One launch of a plan: a function, its parameters, and its grid (a number of blocks, or three)."""

    def __init__(self, function, parameters, blocks, threads, shared=0):
        self.function, self.parameters = function, parameters
        self.grid = (*(blocks if isinstance(blocks, tuple) else (blocks, 1, 1)), threads, 1, 1, shared)


# memory of the current device by shape, strides and dtype: without PyTorch's shortest way the long one
empty = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None) or (
    lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device="cuda")
)


class Plan:
    """The launches of a pass for one kind of call. A call gives the addresses of `names` in this order. After them come those of
    `results`, tensors like these that a call makes, and of `scratch`, pieces of these bytes of one memory that it makes. Threads
    may run a plan at once."""

    def __init__(self, names, results, scratch, launches, place, held, pointed):
        """place: device, stream and context; held: tensors that kernels read; pointed: a struct that each call writes to the
        device."""
        *starts, self.scratch_bytes = itertools.accumulate((-(-size // 512) * 512 for size in scratch.values()), initial=0)
        self.starts = starts
        self.results = [(tuple(like.shape), like.stride(), like.dtype) for like in results.values()]
        self.names = {name: at for at, name in enumerate((*names, *results, *scratch, "mods"))}
        self.parts = list(dict.fromkeys(part for launch in launches for part in launch.parameters))
        self.device, self.stream, self.context = place
        # and blocks that no call uses
        self.launches, self.held, self.pointed, self.free = launches, held, pointed, []

    def run(self, *addresses):
        """The results, computed on the plan's stream; its device must be the current one."""
        results = tuple([empty(*like) for like in self.results])
        addresses += tuple([result.data_ptr() for result in results])
        if self.scratch_bytes:
            scratch = empty((self.scratch_bytes,), (1,), torch.uint8)
            begin = scratch.data_ptr()
            addresses += tuple([begin + start for start in self.starts])
        if self.pointed is not None:
            mods = self.pointed.filled(self.names, addresses).to(self.device)
            addresses += (mods.data_ptr(),)
        try:
            block = self.free.pop()
        except IndexError:
            block = Block(self, addresses)
        block.run(addresses)
        self.free.append(block)
        return results


class Block:
    """The parameters of a plan's launches in memory, for one call at a time. The driver copies them as it launches, so the next
    call may write them once this one's launches have returned."""

    def __init__(self, plan, addresses):
        self.driver, self.context = driver(), plan.context
        *starts, size = itertools.accumulate((-(-len(part.raw) // 64) * 64 for part in plan.parts), initial=0)
        memory = bytearray(size + 64)
        self.kept = (ctypes.c_char * len(memory)).from_buffer(memory)
        # maps lie at multiples of 64
        shift = -ctypes.addressof(self.kept) % 64
        begin = ctypes.addressof(self.kept) + shift
        self.words = memoryview(memory)[shift : shift + size].cast("Q")
        self.places, self.maps, self.mapped = [], [], []
        at = dict(zip(plan.parts, starts))
        for part, start in at.items():
            memory[shift + start : shift + start + len(part.raw)] = part.raw
            self.places += [((start + offset) // 8, plan.names[name]) for offset, name in part.places]
            if isinstance(part, Map):
                own = plan.names.get(part.at)
                address = part.at if own is None else addresses[own]
                part.encode(begin + start, address)
                if own is not None:
                    self.maps.append((len(self.mapped), own, begin + start))
                    self.mapped.append(address)
        number, pointer = ctypes.c_uint, ctypes.c_void_p
        self.calls = []
        for launch in plan.launches:
            pointers = (pointer * len(launch.parameters))(*(begin + at[part] for part in launch.parameters))
            self.calls.append((pointer(launch.function), *map(number, launch.grid), pointer(plan.stream), pointers, pointer()))

    def run(self, addresses):
        words, mapped, driver = self.words, self.mapped, self.driver
        for word, at in self.places:
            words[word] = addresses[at]
        for number, at, to in self.maps:
            address = addresses[at]
            if mapped[number] != address:
                driver.passed("cuTensorMapReplaceAddress", driver.replace(to, address))
                mapped[number] = address
        for call in self.calls:
            status = driver.launch(*call)
            if status in ELSEWHERE:
                driver("cuCtxSetCurrent", self.context)
                status = driver.launch(*call)
            if status:
                driver.passed("cuLaunchKernel", status)
