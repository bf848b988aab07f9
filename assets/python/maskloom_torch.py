"""Maskloom's worker inside the user's own Python: runs problems with PyTorch and gives back outputs and timings.

Speaks JSON lines over stdin and stdout, one answer to each request; tensors travel as safetensors files in a folder that
both sides can read. Needs torch and nothing else. Started by Maskloom; not meant to be run by hand.
"""

import contextlib
import json
import math
import os
import queue
import shutil
import signal
import sys
import threading
import warnings

import maskloom_cudnn
import maskloom_gradients
import maskloom_memory
from maskloom_beside import Refused, facts, flash_available, read_tensors, write_tensors
from maskloom_job import CHUNK_CELLS, NEGATIVE_INFINITY, Job, Prepared, time_passes

# The protocol keeps a copy of stdout; all that libraries print goes to stderr.
PROTOCOL = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
# A first line, before torch is imported: a Python that says nothing is told apart from one that takes its time.
print('{"id": 0}', file=PROTOCOL, flush=True)

# Scores that eager attention materialises at a time.
EAGER_CELLS = 1 << 31


# ---- eager


def prepare_eager(job):
    torch = job.torch
    keep = job.dense_mask()

    def run(q, k, v, with_lse=False):
        k, v = (t.repeat_interleave(job.group, dim=1) if job.group > 1 else t for t in (k, v))
        parts = [eager_rows(job, q, k, v, keep, rows, with_lse) for rows in
                 job.row_chunks(job.batch * job.heads * job.kv_len, EAGER_CELLS)]
        whole = lambda n: parts[0][n] if len(parts) == 1 else torch.cat([part[n] for part in parts], dim=2)
        return whole(0), whole(1) if with_lse else None

    def ways(score_mod, with_lse):
        def trained(q, k, v):
            with maskloom_gradients.with_mod(job, score_mod):
                return run(q, k, v, with_lse)

        return [("", None, trained)]

    return Prepared(job, f"torch {torch.__version__} eager", run, ways, ("nothing" if keep is None else "dense", None))


def eager_rows(job, q, k, v, keep, rows, with_lse):
    """The textbook formula, every step materialised in the inputs' dtype, softmax in float32; and the lse to autograd."""
    torch = job.torch
    scores = torch.matmul(q[:, :, rows.start : rows.stop], k.transpose(-2, -1)) * job.scale
    if job.score_mod is not None:
        scores = job.evaluate(job.score_mod, rows, scores).to(job.dtype)
    if keep is not None:
        scores = scores.masked_fill(~keep[:, :, rows.start : rows.stop], NEGATIVE_INFINITY)
    if scores.requires_grad:
        # the derivative of 0 / 0 is NaN in any case
        empty = (scores == NEGATIVE_INFINITY).all(dim=-1, keepdim=True)
        scores = scores.masked_fill(empty, 0.0)
        lse = torch.logsumexp(scores.float(), dim=-1).masked_fill(empty[..., 0], NEGATIVE_INFINITY) if with_lse else None
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(job.dtype)
        return torch.matmul(weights.masked_fill(empty, 0.0), v), lse
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(job.dtype)
    if keep is not None or job.score_mod is not None:
        # a row that keeps nothing is 0 / 0
        empty = (scores == NEGATIVE_INFINITY).all(dim=-1, keepdim=True)
        weights = weights.masked_fill(empty, 0.0)
    return torch.matmul(weights, v), None


# ---- scaled_dot_product_attention


def prepare_sdpa(job):
    """Every kernel of SDPA that takes the mask is tried; the fastest one with a correct result is kept."""
    torch = job.torch
    keep = None if job.spec["pattern"] != "dense" else job.dense_mask()
    bias = job.dense_bias(keep) if job.spec["has_score"] or keep is not None else None
    samples = Samples(job, bias)
    masks = mask_forms(job, keep, bias)
    del bias
    tried, best = {}, None
    for kernel in ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"):
        for form, arguments in masks:
            for repeat in ((False, True) if job.group > 1 else (False,)):
                choice = kernel.split("_")[0].lower()
                name = choice + (f", {form}" if form else "")
                name += ", kv heads repeated beforehand" if repeat else ""
                attempt = try_kernel(job, kernel, arguments, repeat, samples)
                if isinstance(attempt, str):
                    tried[name] = attempt
                    continue
                run, took = attempt
                tried[name] = f"{took:.4g} ms"
                if best is None or took < best[1]:
                    best = (run, took, name, (maskloom_gradients.mask_read(arguments), choice))
                break  # without repeating the heads, nothing is gained by trying it
    if best is None:
        reasons = "; ".join(f"{name}: {why}" for name, why in tried.items())
        raise Refused("sdpa-no-kernel", f"no kernel of PyTorch's SDPA gives a correct result here ({reasons})",
                      "use torch:flex")
    ways = maskloom_gradients.sdpa_ways(job, mask_forms)
    return Prepared(job, f"torch {torch.__version__} SDPA {best[2]}", best[0], ways, best[3])


def mask_forms(job, keep, bias):
    """Forms of the mask: arguments of SDPA, with their names."""
    if job.spec["pattern"] == "causal":
        return [("is_causal", {"is_causal": True})]
    if bias is None:
        return [("", {})]
    full = lambda t: t.expand(job.batch, job.heads, job.q_len, job.kv_len)
    forms = [("dense bias", {"attn_mask": full(bias.to(job.dtype))})]
    if job.score_mod is None:
        forms.append(("dense mask", {"attn_mask": full(keep)}))
    elif job.dtype != job.torch.float32:
        forms.append(("dense float32 bias", {"attn_mask": full(bias)}))
    return forms


def try_kernel(job, kernel, arguments, repeat, samples):
    """A runnable pass and its time in ms, or the reason as a text."""
    torch = job.torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    arguments = {**arguments, "scale": job.scale}
    if job.group > 1 and not repeat:
        arguments["enable_gqa"] = True
    backend = getattr(SDPBackend, kernel, None)
    if backend is None:
        return "not in this PyTorch"
    repeated = {}

    def inputs(q, k, v):
        if not repeat:
            return q, k, v
        if id(k) not in repeated:
            repeated[id(k)] = tuple(t.repeat_interleave(job.group, dim=1) for t in (k, v))
        return (q, *repeated[id(k)])

    def run(q, k, v):
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(*inputs(q, k, v), **arguments), None

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong = samples.wrong(run(*job.copies[0])[0])
            if wrong:
                return wrong
            for copy in job.copies:
                run(*copy)
            return run, quick_time(job, run)
    except RuntimeError as why:
        if "OutOfMemory" in type(why).__name__:
            torch.cuda.empty_cache()
            return "out of memory"
        if is_device_fault(why):
            raise
        text = str(why).strip()
        none = "No available kernel" in text or "No viable backend" in text
        return "does not take this" if none else first_line(text)


def is_device_fault(why):
    text = str(why)
    return "CUDA error" in text or "illegal memory access" in text


def first_line(text):
    return (text.splitlines() or ["no reason given"])[0][:200]


def quick_time(job, run):
    known = {}
    first = time_passes(job, run, 1, known)["samples_ms"][0]
    count = max(1, min(9, int(500 / max(first, 1e-3))))
    return sorted(time_passes(job, run, count, known)["samples_ms"])[count // 2]


class Samples:
    """Some rows computed in float64, to tell a wrong kernel (for example with NaN in empty rows) from a correct one."""

    def __init__(self, job, bias):
        torch = job.torch
        self.job, self.expected = job, []
        rows = {min(job.q_len - 1, round(i * (job.q_len - 1) / 31)) for i in range(32)}
        q, k, v = job.copies[0]
        for b, h in {(0, 0), (job.batch - 1, job.heads - 1)}:
            own = None if bias is None else bias[b % bias.shape[0], h % bias.shape[1]]
            chosen = set(rows)
            if own is not None:
                empty = torch.nonzero((own == NEGATIVE_INFINITY).all(-1)).flatten()[:8]
                chosen |= set(empty.tolist())
            at = torch.tensor(sorted(chosen), device=job.device)
            kv = h // job.group
            scores = q[b, h, at].double() @ k[b, kv].double().T * job.scale
            if own is not None:
                scores += own[at].double()
            if job.spec["pattern"] == "causal":
                scores[at[:, None] < torch.arange(job.kv_len, device=job.device)] = NEGATIVE_INFINITY
            want = torch.softmax(scores, -1).nan_to_num_(0.0) @ v[b, kv].double()
            self.expected.append((b, h, at, want))

    def wrong(self, out):
        """A message if a sampled row is not what it should be."""
        for b, h, at, want in self.expected:
            got = out[b, h, at].double()
            if not bool(got.isfinite().all()):
                return "gives NaN"
            error = float((got - want).abs().max())
            if error > 0.02 * max(1.0, float(want.abs().max())) + 0.02:
                return f"is wrong by {error:.3g}"
        return None


# ---- flex_attention


def prepare_flex(job, flash):
    torch = job.torch
    try:
        from torch.nn.attention import flex_attention as flex
    except ImportError:
        raise Refused("torch-too-old", f"PyTorch {torch.__version__} has no flex_attention",
                      f"{sys.executable} -m pip install --upgrade torch") from None
    if flash and not flash_available():
        raise Refused("no-flash-attn-4", "kernel_options BACKEND=FLASH needs FlashAttention-4, which is not installed",
                      f"{sys.executable} -m pip install flash-attn-4")
    for limit in ("recompile_limit", "cache_size_limit"):
        if hasattr(torch._dynamo.config, limit):
            setattr(torch._dynamo.config, limit, 4096)
    block_mask = make_block_mask(job, flex)
    compiled = torch.compile(flex.flex_attention, dynamic=False)
    options = {"score_mod": job.score_mod, "block_mask": block_mask, "scale": job.scale, "enable_gqa": job.group > 1}
    if flash:
        options["kernel_options"] = {"BACKEND": "FLASH"}
    # the cpu template gives none, and the flash backend's is multiplied by ln 2 one time too many (seen with torch 2.11)
    with_lse = job.device != "cpu" and not flash
    if with_lse and hasattr(flex, "AuxRequest"):
        options["return_aux"] = flex.AuxRequest(lse=True)
    elif with_lse:
        options["return_lse"] = True

    def run(q, k, v):
        out = compiled(q, k, v, **options)
        if not with_lse:
            return out, None
        return out[0], getattr(out[1], "lse", out[1])

    try:
        run(*job.copies[0])
    except Exception as why:
        if is_device_fault(why):
            raise
        raise Refused("torch-flex-compile", f"PyTorch could not compile flex_attention: {compile_reason(why)}",
                      compile_hint(job, why)) from why
    choice = "FlashAttention-4" if flash else "C++" if job.device == "cpu" else "Triton"

    def ways(score_mod, _with_lse):
        return [("", None, lambda q, k, v: (compiled(q, k, v, **{**options, "score_mod": score_mod, **no_aux}), None))]

    no_aux = {name: None if name == "return_aux" else False for name in options if name.startswith("return_")}
    facts = ("nothing" if block_mask is None else "blocks", choice)
    return Prepared(job, f"torch {torch.__version__} flex, {choice}", run, ways, facts)


def make_block_mask(job, flex):
    if job.mask_mod is None:
        return None
    groups = [n if n > 1 else None for n in job.mask_groups()]
    size = tuple(job.spec["block_size"])
    arguments = (job.mask_mod, *groups, job.q_len, job.kv_len)
    options = {"device": job.device, "BLOCK_SIZE": size}
    cells = math.prod(n or 1 for n in groups) * job.q_len * job.kv_len
    if cells > CHUNK_CELLS and job.device != "cpu":
        # eager, it holds several ints for every cell
        return flex.create_block_mask(*arguments, **options, _compile=True)
    return flex.create_block_mask(*arguments, **options)


def compile_reason(why):
    cause = why
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    wanted = [line for line in lines if "Error" in line or "error" in line]
    return f"{type(cause).__name__}: {(wanted or lines or ['no reason given'])[0][:300]}"


def compile_hint(job, why):
    if "out of resource" in str(why) or "No valid triton configs" in str(why):
        return "smaller tiles, fewer stages: set kernel_options, or a smaller head_dim"
    if "BLOCK_M" in str(why) or "BLOCK_N" in str(why):
        return "set BLOCK_SIZE to a multiple of 128: PyTorch's tiles must divide it"
    if job.device == "cpu":
        return "torch.compile on the cpu needs a C++ compiler (g++ or clang++); else use torch:sdpa, or flex"
    return "torch.compile needs triton and a C compiler; else use torch:sdpa, or flex"


# ---- the protocol


class Server:
    folders = []  # where tensors are exchanged

    def __init__(self):
        self.device, self.inputs, self.prepared, self.next = "cpu", (), {}, 1
        # bytes held without the inputs, counted where nobody waits for an output
        self.held = 0

    def count(self):
        self.held = maskloom_memory.held(self.device) - self.held_inputs()

    def held_inputs(self):
        return 0 if self.device.startswith("cuda") else maskloom_memory.size(self.inputs)

    def handle(self, request):
        return getattr(self, "do_" + request["do"])(request)

    def do_hello(self, request):
        self.device, Server.folders = request["device"], request["folders"]
        return facts(self.device)

    def do_inputs(self, request):
        tensors = read_tensors(request["path"])
        self.inputs = tuple(tensors[n] for n in "qkv")
        return {}

    def do_prepare(self, request):
        import torch

        if self.device.startswith("cuda"):
            torch.cuda.set_device(self.device)
        meter = maskloom_memory.Meter(self.device, self.held + self.held_inputs())
        job = Job(request["spec"], self.inputs, self.device)
        backend = request["backend"]
        if backend == "torch:eager":
            prepared = prepare_eager(job)
        elif backend == "torch:sdpa":
            prepared = prepare_sdpa(job)
        elif backend == "cudnn:flex":
            prepared = maskloom_cudnn.prepare(job)
        else:
            prepared = prepare_flex(job, flash=backend == "torch:flex-flash")
        handle, self.next = self.next, self.next + 1
        self.prepared[handle], prepared.meter = prepared, meter
        return {"handle": handle, **prepared.described()}

    def do_output(self, request):
        return self.written(request, self.prepared[request["handle"]].output())

    def do_memory(self, request):
        found = self.prepared[request["handle"]].memory()
        self.count()
        return {"memory_bytes": found}

    def do_gradients(self, request):
        prepared, seeds = self.seeded(request)
        with maskloom_gradients.graphs():
            passes = prepared.backward(request["backend"])
            # the gradient of the output is there twice: also in the output's own order of dimensions
            given = prepared.job.given() + maskloom_memory.size([*seeds.values(), seeds["do"]])
            found, memory = prepared.meter.peak(lambda: passes.named(seeds), given)
        return {**self.written(request, found), **prepared.described(), "memory_bytes": memory}

    def do_time_backward(self, request):
        prepared, seeds = self.seeded(request)
        with maskloom_gradients.graphs():
            return prepared.backward(request["backend"]).time(seeds, request["count"])

    def seeded(self, request):
        seeds = {name: tensor.to(self.device) for name, tensor in read_tensors(request["path"]).items()}
        return self.prepared[request["handle"]], seeds

    def written(self, request, tensors):
        for folder in Server.folders:
            path = os.path.join(folder, f"output-{request['id']}.safetensors")
            try:
                write_tensors(path, tensors)
                return {"path": path}
            except OSError as why:
                failure = why
                with contextlib.suppress(OSError):
                    os.remove(path)
        raise Refused("torch-no-space", f"the output cannot be handed over: {failure}", "free some space in /tmp")

    def do_time(self, request):
        return self.prepared[request["handle"]].time(request["count"])

    def do_trains(self, request):
        with maskloom_gradients.graphs():
            return {"why": maskloom_gradients.flex_refusal(self.device)}

    def do_drop(self, request):
        import gc

        import torch

        self.prepared.pop(request["handle"], None)
        gc.collect()
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        self.count()
        return {}


def failure(why):
    if isinstance(why, Refused):
        return {"code": why.code, "message": why.message, "hint": why.hint, "refusal": why.refusal}
    name = type(why).__name__
    if "OutOfMemory" in name or isinstance(why, MemoryError) or "DefaultCPUAllocator" in str(why):
        return {"code": "torch-out-of-memory", "message": f"PyTorch ran out of memory: {first_line(str(why))}",
                "hint": "shorten the sequence, batch or heads"}
    fatal = is_device_fault(why)
    return {"code": "torch-failed", "message": f"{name}: {first_line(str(why))}",
            "hint": "the same call would fail in your own code; its traceback is on the worker's stderr", "fatal": fatal}


def listen(requests):
    for line in sys.stdin:
        requests.put(line)
    # The process that asked is gone: end at once, and remove everything that was started and written.
    for folder in Server.folders:
        shutil.rmtree(folder, ignore_errors=True)
    if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def main():
    requests = queue.Queue()
    threading.Thread(target=listen, args=(requests,), daemon=True).start()
    server = Server()
    while True:
        request = json.loads(requests.get())
        try:
            if request["do"] == "hello":
                answer = {"ok": server.handle(request)}
            else:
                import torch

                with torch.no_grad():
                    answer = {"ok": server.handle(request)}
        except BaseException as why:
            import traceback

            if not isinstance(why, Refused):
                traceback.print_exc()
            answer = {"error": failure(why)}
        PROTOCOL.write(json.dumps({"id": request["id"], **answer}) + "\n")
        PROTOCOL.flush()


if __name__ == "__main__":
    main()
