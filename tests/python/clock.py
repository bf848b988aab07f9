"""The clock of PyTorch's passes over a GPU that is imitated, whose host is slow on purpose: python clock.py ASSETS

The host's time and the GPU's are two numbers. A kernel begins when it was launched and those before it have ended. Without torch.
"""

import contextlib
import sys
import types

sys.path.insert(0, sys.argv[1])
import maskloom_clock  # noqa: E402


class Gpu:
    """Host and GPU, in milliseconds; stands in for torch."""

    def __init__(self):
        self.host = self.free = 0.0
        self.recording, self.kernels, self.graphs, self.emptied = None, [], 0, 0
        gpu = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                gpu.host += 0.001
                self.at = gpu.free = max(gpu.free, gpu.host)

            def elapsed_time(self, later):
                return later.at - self.at

        class Graph:
            def __init__(self):
                gpu.graphs += 1

            def pool(self):
                return "memory"

            def capture_begin(self, pool=None, capture_error_mode=None):
                assert (pool is None) == (gpu.graphs == 1) and capture_error_mode == "thread_local"
                gpu.recording = []

            def capture_end(self):
                self.kernels, gpu.recording = gpu.recording, None

            def replay(self):
                gpu.host += 0.01
                for took in self.kernels:
                    gpu.kernel(took)

        stream = types.SimpleNamespace(wait_stream=lambda _: None)
        self.cuda = types.SimpleNamespace(
            Event=Event, CUDAGraph=Graph, Stream=lambda: stream, current_stream=lambda *_: stream,
            stream=lambda _: contextlib.nullcontext(), synchronize=self.synchronize, empty_cache=self.empty_cache,
            _sleep=lambda cycles: self.kernel(cycles / 2e6),
        )  # fmt: skip
        self.autograd = types.SimpleNamespace(DeviceType=types.SimpleNamespace(CUDA="cuda"))
        self.profiler = types.ModuleType("torch.profiler")
        self.profiler.ProfilerActivity, self.profiler.profile = types.SimpleNamespace(CUDA="cuda"), self.profile

    def kernel(self, took):
        if self.recording is not None:
            self.recording.append(took)
            return
        self.host += 0.003
        start = max(self.free, self.host)
        self.free = start + took
        self.kernels.append((start, self.free))

    def synchronize(self, *_):
        if self.recording is not None:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.host = max(self.host, self.free)

    def empty_cache(self):
        self.emptied += 1

    @contextlib.contextmanager
    def profile(self, activities):
        assert activities == ["cuda"]
        first, seen = len(self.kernels), types.SimpleNamespace()
        yield seen
        span = lambda start, end: types.SimpleNamespace(start=1e3 * start, end=1e3 * end)
        event = lambda own: types.SimpleNamespace(device_type="cuda", time_range=span(*own))
        found = [event(own) for own in self.kernels[first:]]
        note = types.SimpleNamespace(device_type="cuda", time_range=span(0, 1e6), is_user_annotation=True)
        seen.events = lambda: [*found, note, types.SimpleNamespace(device_type="cpu", time_range=span(0, 1e6))]


def run(call, count=5, copies=3, known=None):
    """What the clock says of `call(gpu)`."""
    gpu = Gpu()
    sys.modules["torch"], sys.modules["torch.profiler"] = gpu, gpu.profiler
    maskloom_clock.time = types.SimpleNamespace(perf_counter=lambda: gpu.host / 1e3)
    known = {} if known is None else known
    found = maskloom_clock.timed("cuda:0", [lambda: call(gpu)] * copies, count, known)
    assert len(found["samples_ms"]) == count and len(found["calls_ms"]) == 1, found
    return gpu, found, known


def near(got, want, by=0.02):
    assert abs(got - want) <= by * want, (got, want)


def slow_host(gpu):
    """1.2 ms of Python around kernels of 0.5 and 0.05 ms."""
    gpu.host += 1.0
    gpu.kernel(0.5)
    gpu.host += 0.2
    gpu.kernel(0.05)


def waits_inside(gpu):
    """The same, and it asks for a value: it cannot be captured."""
    slow_host(gpu)
    gpu.synchronize()


gpu, found, known = run(slow_host)
assert found["clock"] == "graph" and gpu.graphs == 3 and gpu.emptied == 1 and not known, found
for sample in found["samples_ms"]:
    near(sample, 0.55)
near(found["calls_ms"][0], 1.2, 0.03)

gpu, found, known = run(waits_inside)
assert found["clock"] == "profiler" and known == {"uncaptured": True} and gpu.recording is None, found
for sample in found["samples_ms"]:
    near(sample, 0.55)
near(found["calls_ms"][0], 1.55)
# it is not tried again
gpu, found, _ = run(waits_inside, known=known)
assert gpu.graphs == 0 and found["clock"] == "profiler", found

# passes with different numbers of kernels have their mean
turns = []
gpu, found, _ = run(lambda gpu: [turns.append(0), gpu.kernel(0.4), len(turns) % 3 or gpu.kernel(0.6), gpu.synchronize()], count=4)
assert found["clock"] == "profiler" and len(set(found["samples_ms"])) == 1 and 0.4 < found["samples_ms"][0] < 1.0, found

# a fast host: both are the kernel's
gpu, found, _ = run(lambda gpu: gpu.kernel(0.3), copies=1)
near(found["samples_ms"][0], 0.3, 0.05)
near(found["calls_ms"][0], 0.3, 0.05)

# on the cpu a pass is a call
maskloom_clock.time = types.SimpleNamespace(perf_counter=iter(range(100)).__next__)
assert maskloom_clock.timed("cpu", [lambda: None], 3, {}) == {"samples_ms": [1e3] * 3, "calls_ms": [], "clock": None}
print("the clock tells the GPU from its host")
