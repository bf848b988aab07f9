"""Runs exported modules with PyTorch: modules.py DIR [--device cuda] [--compiled] [--workers N] [--only NAME,...]

Every folder NAME of DIR holds NAME.py with its tensors, NAME_case.safetensors and, where there is a mask,
NAME_blocks.safetensors. A case says its shape and seed (the inputs are made here, as `made` below says), some rows (b, h, q)
with the output that they must have, and every cell of the mask. Checked are the mask, the block mask against the exported
lists, the output of uncompiled FlexAttention in float32 and, with --compiled, of the compiled one in bfloat16.

Each module runs in a worker process: one that dies or hangs costs its module, not the rest.
"""

import argparse
import gc
import importlib.util
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

# Largest difference from the float64 reference, of numbers about 1.
FLOAT32 = 1e-4
BFLOAT16 = 2e-2
# Seconds that a worker may take for one module.
PATIENCE = 240


# ---- one module, in a worker


def made(shape, seed, stream, device):
    """Values in [-2, 2) of 8 bits each, exact in bfloat16: the top byte of a hash of the position."""
    import torch

    count = 1
    for extent in shape:
        count *= extent
    word, low = torch.arange(count, device=device, dtype=torch.int64), 0xFFFFFFFF
    word = (word + (seed * 4 + stream) * 0x9E3779B9) & low
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        word = ((word ^ (word >> shift)) * factor) & low
    word = word ^ (word >> 16)
    return (((word >> 24) - 128).float() / 64).reshape(shape)


def imported(folder, name):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # as an import would: PyTorch's compiler looks modules up by name
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def blocks(mask):
    """Block numbers of each row, partial and full apart: what follows the counts means nothing."""
    found = []
    for counts, indices in ((mask.kv_num_blocks, mask.kv_indices), (mask.full_kv_num_blocks, mask.full_kv_indices)):
        if counts is None:
            found.append(None)
            continue
        rows = zip(counts.flatten().tolist(), indices.flatten(0, -2).tolist())
        found.append([sorted(row[:n]) for n, row in rows])
    return found


def check_mask(module, case, folder, device):
    """The dense mask cell by cell and the block lists; says what it saw."""
    import torch

    if "mask" not in case:
        assert module.make_block_mask(device) is None, "a block mask where nothing is masked"
        return "no mask"
    dense = module.make_mask(device)
    bits = case["mask"].to(device)
    cells = ((bits[:, None] >> torch.arange(8, device=device)) & 1).flatten()[: dense.numel()].bool()
    wrong = (cells.reshape(dense.shape) != dense).sum().item()
    assert wrong == 0, f"{wrong} of {dense.numel()} cells differ"
    block_mask = module.make_block_mask(device)
    listed = module.load_block_mask(folder / f"{module.__name__}_blocks.safetensors", device)
    assert blocks(block_mask) == blocks(listed), "block lists differ"
    return f"{dense.numel()} cells and block lists equal, sparsity {block_mask.sparsity():.1f}%"


def check_output(module, case, inputs, allowed, compiled):
    """Largest difference of the rows that the case holds."""
    import torch

    with torch.no_grad():
        out = module.attend(*inputs, compiled=compiled)
    b, h, row = case["rows"].to(out.device).unbind(1)
    off = (out[b, h, row].double() - case["out"].to(out.device).double()).abs().max().item()
    # a NaN is not below anything
    assert off < allowed, f"the {'compiled ' if compiled else ''}output is off by {off:.2e}"
    return off


def check(folder, device, compiled):
    import torch
    from safetensors.torch import load_file

    name = folder.name
    module = imported(folder, name)
    case = load_file(folder / f"{name}_case.safetensors")
    batch, heads, kv_heads, q_len, kv_len, head_dim, head_dim_v, seed = case["case"].tolist()
    shapes = ((batch, heads, q_len, head_dim), (batch, kv_heads, kv_len, head_dim), (batch, kv_heads, kv_len, head_dim_v))
    inputs = [made(shape, seed, stream, device) for stream, shape in enumerate(shapes)]
    said = [f"{tuple(inputs[0].shape)} x {kv_len}", check_mask(module, case, folder, device)]
    said.append(f"float32 off by {check_output(module, case, inputs, FLOAT32, False):.1e}")
    if compiled:
        torch._dynamo.reset()
        started = time.perf_counter()
        off = check_output(module, case, [t.bfloat16() for t in inputs], BFLOAT16, True)
        said.append(f"compiled bfloat16 off by {off:.1e} ({time.perf_counter() - started:.1f} s)")
    return ", ".join(said)


def work(options):
    """Reads names from stdin, answers each with one line."""
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    for at, line in enumerate(sys.stdin):
        name = line.strip()
        try:
            said = check(Path(options.folder) / name, options.device, options.compiled)
            print(f"ok {name}: {said}", flush=True)
        except Exception as error:
            text = " ".join(str(error).split())
            print(f"FAILED {name}: {type(error).__name__}: {text[:400]}", flush=True)
        # the module's caches hold its masks
        sys.modules.pop(name, None)
        gc.collect()
        if not at:
            # by now PyTorch has imported what it needs: those objects stay, and looking through them again takes a second
            gc.freeze()
    gc.unfreeze()


# ---- the queue of modules


class Worker:
    """A process that checks one module at a time."""

    def __init__(self, options):
        flags = ["--worker", "--device", options.device] + (["--compiled"] if options.compiled else [])
        flags += ["--threads", str(max(1, (os.cpu_count() or 1) // options.workers))]
        self.process = subprocess.Popen(
            [sys.executable, __file__, options.folder, *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.lines, self.last_words = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=self.listen, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith(("ok ", "FAILED ")):
                self.lines.put(line.rstrip())
        self.lines.put(None)

    def listen(self):
        for line in self.process.stderr:
            self.last_words = (self.last_words + [line.rstrip()])[-8:]

    def ask(self, name):
        """The answer, or None with the process gone."""
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            answer = self.lines.get(timeout=PATIENCE)
        except (BrokenPipeError, queue.Empty):
            answer = None
        if answer is None:
            self.process.kill()
        return answer

    def end(self):
        """How it ended, in words."""
        self.process.stdin.close()
        status = self.process.wait()
        words = " | ".join(self.last_words)
        return f"its process was killed by signal {-status}: {words}" if status < 0 else f"its process ended with {status}: {words}"


def serve(names, options, answers):
    worker = None
    while True:
        try:
            name = names.get_nowait()
        except queue.Empty:
            break
        worker = worker or Worker(options)
        answer = worker.ask(name)
        if answer is None:
            answer = f"FAILED {name}: {worker.end()}"
            worker = None
        answers.append(answer)
        print(answer, flush=True)
    if worker is not None:
        worker.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compiled", action="store_true", help="also compiled, in bfloat16")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options)
    only = options.only.split(",") if options.only else None
    found = sorted(f.name for f in Path(options.folder).iterdir() if f.is_dir())
    names = queue.Queue()
    wanted = [name for name in found if only is None or name in only]
    for name in wanted:
        names.put(name)
    started, answers = time.perf_counter(), []
    threads = [threading.Thread(target=serve, args=(names, options, answers)) for _ in range(options.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    good = sum(answer.startswith("ok ") for answer in answers)
    print(f"{good} of {len(wanted)} modules agree on {options.device}, {time.perf_counter() - started:.0f} s")
    sys.exit(good < len(wanted) or not wanted)


main()
