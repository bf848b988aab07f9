"""The memory that a pass holds in the user's own PyTorch, for Maskloom's worker: what was made for it and is kept, and what
the pass takes at its peak.

Lies next to maskloom_torch.py. On a GPU the figures are the caching allocator's; on the CPU, which counts nothing by itself,
kept tensors are looked for and a profiler reports what the pass takes and gives back. Knows nothing of files and messages.
"""

import gc


def size(tensors):
    """Bytes of tensors."""
    return sum(t.numel() * t.element_size() for t in tensors)


def held(device):
    """Bytes of all tensors that are alive on the device."""
    import torch

    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
        return torch.cuda.memory_allocated(device)
    storages = {}
    for one in gc.get_objects():
        # exact types: others may be made of a compiler's imagination, and have no memory
        if type(one) in (torch.Tensor, torch.nn.Parameter) and one.device.type == "cpu" and one.layout == torch.strided:
            storage = one.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


class Meter:
    """Counts from before the tensors of a problem are made. Bytes that are given to it, its inputs, do not count."""

    def __init__(self, device, before):
        self.device, self.before = device, before

    def peak(self, run, given):
        """What `run` gives, and the bytes held beside `given` bytes at the peak; None for them where PyTorch does not tell."""
        own = held(self.device) - self.before - given
        taken, result = (taken_on_gpu if self.device.startswith("cuda") else taken_on_cpu)(run, self.device)
        return result, None if taken is None else max(0, own + taken)


def taken_on_gpu(run, device):
    """Bytes above the present ones at the peak of a run, and its result."""
    import torch

    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    result = run()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before, result


def taken_on_cpu(run, _device):
    """The same by the profiler's record of every piece of memory; None if this PyTorch has no such record."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as recorded:
        result = run()
    try:
        events = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]
        events.sort(key=lambda e: e.start_ns())
        now = most = 0
        for event in events:
            now += event.nbytes()
            most = max(most, now)
        return most, result
    except AttributeError:
        return None, result
