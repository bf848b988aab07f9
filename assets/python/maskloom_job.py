"""One problem on one device in the user's own PyTorch, and a prepared pass with its timing, for Maskloom's worker.

Lies next to maskloom_torch.py. Owns the inputs on the device, the mods of the exported module and their dense forms. Knows
nothing of files, messages, or how a backend computes.
"""

import importlib.util
import math
import os
import sys

import maskloom_clock
import maskloom_gradients
import maskloom_memory
from maskloom_beside import provide_safetensors

NEGATIVE_INFINITY = float("-inf")
# Cells evaluated at a time when a mod is made dense.
CHUNK_CELLS = 1 << 26


class Job:
    """A problem: inputs (rotated copies of q, k, v as [B, H, S, D] views), mods and shape."""

    def __init__(self, spec, inputs, device):
        import torch

        self.torch, self.spec, self.device = torch, spec, device
        self.batch, self.heads, self.kv_heads = spec["batch"], spec["heads"], spec["kv_heads"]
        self.q_len, self.kv_len, self.scale = spec["q_len"], spec["kv_len"], spec["scale"]
        self.group = self.heads // self.kv_heads
        self.dtype = getattr(torch, spec["dtype"])
        self.module, self.mask_mod, self.score_mod = load_mods(spec, device)
        self.copies = [tuple(laid_out(t, spec["layout"], device) for t in inputs)]
        for _ in range(self.rotation() - 1):
            self.copies.append(tuple(laid_out(t, spec["layout"], device) for t in inputs))
        self.turn = 0

    def rotation(self):
        """Copies that together are at least three times the L2 cache, so that none is found there again."""
        if not self.device.startswith("cuda"):
            return 1
        cache = getattr(self.torch.cuda.get_device_properties(self.device), "L2_cache_size", 64 << 20)
        size = sum(t.numel() * t.element_size() for t in self.copies[0])
        return max(1, min(8, math.ceil(3 * cache / size)))

    def given(self):
        """Bytes of q, k and v."""
        return sum(maskloom_memory.size(copy) for copy in self.copies)

    def next_inputs(self):
        self.turn += 1
        return self.copies[self.turn % len(self.copies)]

    def evaluate(self, mod, rows, score=None):
        """A mod over [B', H', rows, kv_len] by nested vmap, as create_mask does it. A score mod takes `score`."""
        torch = self.torch
        score_mod = score is not None
        fn = mod
        for level in (3, 2, 1, 0):
            dims = [None] * 4
            dims[level] = 0
            fn = torch.vmap(fn, in_dims=((0, *dims) if score_mod else tuple(dims)))
        batch, heads = score.shape[:2] if score_mod else self.mask_groups()
        index = lambda n, start=0: torch.arange(start, start + n, device=self.device)
        args = (index(batch), index(heads), index(len(rows), rows.start), index(self.kv_len))
        return fn(score, *args) if score_mod else fn(*args)

    def mask_groups(self):
        return (self.batch if self.spec["mask_per_batch"] else 1, self.heads if self.spec["mask_per_head"] else 1)

    def row_chunks(self, cells_a_row, limit=CHUNK_CELLS):
        step = max(1, limit // max(1, cells_a_row))
        return (range(at, min(at + step, self.q_len)) for at in range(0, self.q_len, step))

    def dense_mask(self):
        """Bool [B', H', Q, K], or None without a mask."""
        if self.mask_mod is None:
            return None
        batch, heads = self.mask_groups()
        out = self.torch.empty(batch, heads, self.q_len, self.kv_len, dtype=self.torch.bool, device=self.device)
        for rows in self.row_chunks(batch * heads * self.kv_len):
            out[:, :, rows.start : rows.stop] = self.evaluate(self.mask_mod, rows)
        return out

    def dense_bias(self, keep):
        """[B, H, Q, K]: what an additive score mod adds, in float32, -inf where masked. None without mods."""
        torch = self.torch
        if self.score_mod is None and keep is None:
            return None
        if self.score_mod is None:
            # 0 and -inf are exact in every dtype
            zero = torch.zeros((), device=self.device, dtype=self.dtype)
            return torch.where(keep, zero, zero + NEGATIVE_INFINITY)
        out = torch.empty(self.batch, self.heads, self.q_len, self.kv_len, device=self.device)
        for rows in self.row_chunks(self.batch * self.heads * self.kv_len):
            zero = torch.zeros(self.batch, self.heads, len(rows), self.kv_len, device=self.device)
            out[:, :, rows.start : rows.stop] = self.evaluate(self.score_mod, rows, zero)
        return out if keep is None else out.masked_fill_(~keep, NEGATIVE_INFINITY)


def laid_out(tensor, layout, device):
    """On the device, [B, H, S, D] by shape; with bshd contiguous in that order."""
    if layout == "bshd":
        return tensor.transpose(1, 2).contiguous().to(device, copy=True).transpose(1, 2)
    return tensor.to(device, copy=True)


def load_mods(spec, device):
    """The exported module, its mask_mod and score_mod, each or None."""
    path = spec.get("module")
    if not path:
        return None, None, None
    provide_safetensors()
    name = os.path.splitext(os.path.basename(path))[0]
    found = importlib.util.spec_from_file_location(name, path)
    # torch.compile looks modules up by name
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    mask_mod, score_mod = module.make_mods(device)
    return module, (mask_mod if spec["has_mask"] else None), (score_mod if spec["has_score"] else None)


class Prepared:
    """A forward pass: `run(q, k, v)` gives out and lse (or None). `ways(score_mod, with_lse)` are (name, facts, run) that autograd
    goes through. `kernel` is for people. `facts` are for code: the mask that it reads (nothing, causal, dense, blocks) and PyTorch's
    own choice of a kernel, or None. `version` is that of the library, PyTorch's without it."""

    def __init__(self, job, kernel, run, ways, facts, version=None):
        self.job, self.kernel, self.run, self.ways, self.trained = job, kernel, run, ways, None
        self.facts, self.version = facts, version or job.torch.__version__
        self.meter, self.known = None, {}

    def backward(self, backend):
        if self.trained is None:
            self.trained, name, facts = maskloom_gradients.prepare(self.job, backend, self.ways)
            if name:
                self.kernel += f", backward {name}"
                self.facts = facts
        return self.trained

    def described(self):
        """What the protocol says of the kernel."""
        mask, choice = self.facts
        facts = {"library": "torch", "version": self.version, "mask": mask, "choice": choice}
        return {"kernel": self.kernel, "kernel_facts": facts}

    def output(self):
        torch, job = self.job.torch, self.job
        shape = (job.batch, job.heads, job.q_len, job.spec["head_dim_v"])
        # leaves NaN in the memory that the output is likely to get
        poison = torch.full(shape, float("nan"), dtype=job.dtype, device=job.device)
        del poison
        out, lse = self.run(*job.next_inputs())
        tensors = {"out": out.to(job.dtype)}
        if lse is not None:
            tensors["lse"] = lse.float()
        return tensors

    def memory(self):
        """Bytes that a pass holds, measured in a pass of its own: nobody waits for the first output of a profiled one."""
        return self.meter.peak(lambda: self.run(*self.job.next_inputs()), self.job.given())[1]

    def time(self, count):
        return time_passes(self.job, self.run, count, self.known)


def time_passes(job, run, count, known):
    """`count` passes on rotated inputs; see maskloom_clock."""
    turned = [job.next_inputs() for _ in job.copies]
    return maskloom_clock.timed(job.device, [lambda own=own: run(*own) for own in turned], count, known)
