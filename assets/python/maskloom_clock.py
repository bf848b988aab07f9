"""How long passes take in the user's own PyTorch: on the GPU, and as calls that a program makes one after another.

Lies next to maskloom_job.py. The time of a pass on a GPU is that of the GPU's work, whoever launches it: a CUDA graph captured from
the call is replayed, and a call that cannot be captured has the kernel time that PyTorch's profiler counts. On the cpu a pass is a call.
Knows nothing of backends or messages.
"""

import gc
import time

# Calls that are timed together take about this long, in milliseconds.
TOGETHER = 10.0
# Cycles for which the GPU sleeps while the first replays are enqueued.
ASLEEP = 1_000_000


def timed(device, passes, count, known):
    """`count` passes in turn, of functions that make a pass each: the worker's answer. known: a dict of these passes, in which is
    kept that they cannot be captured."""
    if not device.startswith("cuda"):
        return {"samples_ms": [alone(passes[at % len(passes)]) for at in range(count)], "calls_ms": [], "clock": None}
    samples, clock = on_the_gpu(device, passes, count, known)
    return {"samples_ms": samples, "calls_ms": [called(device, passes, min(samples))], "clock": clock}


def alone(run):
    """Milliseconds of a call."""
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


def called(device, passes, pass_ms):
    """Milliseconds of a call of many, one after another, on a GPU without other work."""
    import torch

    count = max(1, min(50, int(TOGETHER / max(pass_ms, 1e-3))))
    passes[-1]()
    torch.cuda.synchronize(device)
    start = time.perf_counter()
    for at in range(count):
        passes[at % len(passes)]()
    torch.cuda.synchronize(device)
    return (time.perf_counter() - start) * 1e3 / count


def on_the_gpu(device, passes, count, known):
    """Milliseconds of each pass, and by which clock."""
    import torch

    if known.get("uncaptured"):
        return profiled(device, passes, count), "profiler"
    try:
        replays = captured(passes)
    except Exception:
        known["uncaptured"] = True
        # what it had allocated goes back; an error of the device itself is raised here again
        torch.cuda.synchronize(device)
        gc.collect()
        torch.cuda.empty_cache()
        return profiled(device, passes, count), "profiler"
    samples = between_events(device, [graph.replay for graph in replays], count)
    del replays
    # memory of graphs comes back in no other way
    torch.cuda.empty_cache()
    return samples, "graph"


def captured(passes):
    """A CUDA graph of each pass, on one stream and in one memory: they are replayed one after another."""
    import torch

    side, graphs = torch.cuda.Stream(), []
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        passes[0]()
        torch.cuda.synchronize()
        for run in passes:
            graph = torch.cuda.CUDAGraph()
            pool = graphs[0].pool() if graphs else None
            graph.capture_begin(*([pool] if pool else []), capture_error_mode="thread_local")
            try:
                run()
            finally:
                graph.capture_end()
            graphs.append(graph)
    torch.cuda.current_stream().wait_stream(side)
    return graphs


def between_events(device, runs, count):
    """Each run once untimed, then `count` in turn, back to back: the first launches of a graph also upload it."""
    import torch

    for run in runs:
        run()
    torch.cuda.synchronize(device)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    torch.cuda._sleep(ASLEEP)
    runs[-1]()  # the GPU is busy with this while more is enqueued
    events[0].record()
    for at, event in enumerate(events[1:]):
        runs[at % len(runs)]()
        event.record()
    torch.cuda.synchronize(device)
    return [begin.elapsed_time(end) for begin, end in zip(events, events[1:])]


def profiled(device, passes, count):
    """Kernel time of each pass; of their mean, if the kernels cannot be told apart by passes."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    passes[0]()
    torch.cuda.synchronize(device)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for at in range(count):
            passes[at % len(passes)]()
        torch.cuda.synchronize(device)
    cuda = torch.autograd.DeviceType.CUDA
    found = [e for e in seen.events() if e.device_type == cuda and not getattr(e, "is_user_annotation", False)]
    spans = sorted((e.time_range.start, e.time_range.end) for e in found)
    took = [(end - start) / 1e3 for start, end in spans]
    if not took:
        raise RuntimeError("the profiler of this PyTorch sees no kernel, and the call cannot be captured as a CUDA graph")
    if len(took) % count:
        return [sum(took) / count] * count
    each = len(took) // count
    return [sum(took[at * each : (at + 1) * each]) for at in range(count)]
