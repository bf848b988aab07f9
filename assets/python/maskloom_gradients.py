"""Backward passes in the user's own PyTorch, for Maskloom's worker: autograd of the same calls that the forward rows make.

Lies next to maskloom_torch.py. Gives gradients of q, k, v and of the tensors that the exported module says learn. Knows
nothing of files and messages.
"""

import contextlib
import importlib
import warnings

import maskloom_clock
from maskloom_beside import NoGradient


class Backward:
    """Forward once from `run`, then gradients from seeds; `leaves` are q, k, v and what learns, in the module's order."""

    def __init__(self, job, run, learned):
        self.job, self.run = job, run
        self.leaves = [t.detach().requires_grad_() for t in job.copies[0]] + learned
        self.learned, self.known = learned, {}

    def forward(self, seeds):
        """The results that seeds are given for, with the seeds."""
        out, lse = self.run(*self.leaves[:3])
        pairs = [(out, laid_like(out, seeds["do"]))]
        if "dlse" in seeds:
            if lse is None:
                raise NoGradient("no-lse-gradient", "this call of PyTorch gives no lse, so none of its gradients either",
                                 "leave out the gradient of the lse, or use torch:eager")
            kept = lse > float("-inf")
            # a row that keeps nothing has no lse to differentiate
            pairs.append((lse.masked_fill(~kept, 0.0), seeds["dlse"].to(lse).masked_fill(~kept, 0.0)))
        return [p[0] for p in pairs], [p[1] for p in pairs]

    def gradients(self, results, given, keep=False):
        import torch

        return torch.autograd.grad(results, self.leaves, given, retain_graph=keep, allow_unused=True)

    def named(self, seeds):
        """dq, dk, dv and dcap.N by name, whole."""
        import torch

        found = self.gradients(*self.forward(seeds))
        names = ["dq", "dk", "dv"] + [f"dcap.{n}" for n in range(len(self.learned))]
        whole = [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(self.leaves, found)]
        return {n: (g.to(self.job.dtype) if n[:2] != "dc" else g.float()) for n, g in zip(names, whole)}

    def time(self, seeds, count):
        """`count` backward passes on what one forward pass saved; see maskloom_clock."""
        once = self.again(seeds)
        once()
        return maskloom_clock.timed(self.job.device, [once], count, self.known)

    def again(self, seeds):
        """The backward pass as a function. Autograd runs it on the stream of its forward pass: on another stream, as a capture's, it
        is made of a forward pass of its own."""
        saved = {}

        def once():
            stream = self.stream()
            if stream not in saved:
                saved.clear()
                saved[stream] = self.forward(seeds)
            return self.gradients(*saved[stream], keep=True)

        return once

    def stream(self):
        import torch

        return torch.cuda.current_stream(self.job.device).cuda_stream if self.job.device.startswith("cuda") else None


def graphs():
    """Autograd's graphs are made here only; the rest of the worker works without them."""
    import torch

    return torch.enable_grad()


def laid_like(out, seed):
    """The seed on the output's device, in its order of dimensions: what a model hands back."""
    import torch

    return torch.empty_like(out).copy_(seed)


def learning(job):
    """Leaves for what learns, and the score mod that reads them."""
    import torch

    module = job.module
    names = getattr(module, "LEARNS", ()) if module is not None and job.score_mod is not None else ()
    if not names:
        return [], job.score_mod
    mod = module.make_mods(job.device)[1]
    held = dict(zip(mod.__code__.co_freevars, (cell.cell_contents for cell in mod.__closure__ or ())))
    leaves = [held[name].detach().clone().requires_grad_() for name in names]
    return leaves, module._mods(torch.device(job.device), dict(zip(names, leaves)))[1]


def keep_activations():
    """An activation that may be given away would forbid a second backward pass on it."""
    # torch._functorch has no `config` until somebody imports it
    with contextlib.suppress(ImportError, AttributeError):
        config = importlib.import_module("torch._functorch.config")
        if hasattr(config, "donated_buffer"):
            config.donated_buffer = False


def prepare(job, backend, ways):
    """The backward pass of a backend. `ways` are its runs as (name, facts, run) for a score mod: the fastest
    that is finite is kept."""
    import torch

    keep_activations()
    learned, score_mod = learning(job)
    with_lse = backend in ("torch:eager", "cudnn:flex")
    best, tried = None, []
    zero = {"do": torch.ones(job.batch, job.heads, job.q_len, job.spec["head_dim_v"])}
    for name, facts, run in ways(score_mod, with_lse):
        made = Backward(job, run, learned)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = made.named(zero)
                if not all(bool(t.isfinite().all()) for t in found.values()):
                    tried.append(f"{name}: gives NaN")
                    # what the user's own call gives is reported, not left out
                    best = best or (float("inf"), made, name, facts)
                    continue
                took = min(made.time(zero, 2)["samples_ms"])
        except (RuntimeError, NotImplementedError) as why:
            if "CUDA error" in str(why) or "illegal memory access" in str(why):
                raise
            tried.append(f"{name}: {first_line(why)}")
            continue
        if best is None or took < best[0]:
            best = (took, made, name, facts)
    if best is None:
        raise NoGradient("torch-backward", f"PyTorch {torch.__version__} gives no gradients here ({'; '.join(tried)})",
                         way_out(job, backend))
    return best[1:]


def flex_refusal(device):
    """What FlexAttention says of inputs that learn on this device; None where it takes them. Nothing is compiled."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v = (torch.zeros(1, 1, 16, 16, device=device, requires_grad=True) for _ in range(3))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flex_attention(q, k, v).sum().backward()
    except (RuntimeError, NotImplementedError) as why:
        return first_line(why)
    return None


def first_line(why):
    cause = why
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {(lines or ['no reason given'])[0][:300]}"


def way_out(job, backend):
    if backend.startswith("torch:flex") and not job.device.startswith("cuda"):
        other = "use torch:eager or torch:sdpa, or flex here; the exported module trains on the cpu"
        return f"FlexAttention trains on a GPU only: {other}"
    return "use another backend, or flex"


def mask_read(arguments):
    """What SDPA reads of the mask with these arguments."""
    return "dense" if "attn_mask" in arguments else "causal" if arguments.get("is_causal") else "nothing"


def sdpa_ways(job, forms_of):
    """Every kernel of SDPA with every form of the mask, for a score mod that may learn."""

    def ways(score_mod, _with_lse):
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        keep = None if job.spec["pattern"] != "dense" else job.dense_mask()
        learns = job.spec["has_score"]
        fixed = None if learns or keep is None else job.dense_bias(keep)
        full = lambda t: t.expand(job.batch, job.heads, job.q_len, job.kv_len)  # noqa: E731

        def made(kernel, arguments, repeat):
            def run(q, k, v):
                own = {**arguments, "scale": job.scale}
                if learns:
                    with with_mod(job, score_mod):
                        own["attn_mask"] = full(job.dense_bias(keep).to(job.dtype))
                if repeat:
                    k, v = (t.repeat_interleave(job.group, dim=1) for t in (k, v))
                elif job.group > 1:
                    own["enable_gqa"] = True
                with sdpa_kernel(kernel):
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, **own), None

            return run

        forms = [("dense bias", {})] if learns else forms_of(job, keep, fixed)
        for kernel in ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"):
            backend = getattr(SDPBackend, kernel, None)
            for form, arguments in forms if backend is not None else ():
                for repeat in (False, True) if job.group > 1 else (False,):
                    choice = kernel.split("_")[0].lower()
                    name = choice + (f", {form}" if form else "") + (", kv heads repeated" if repeat else "")
                    mask = "dense" if learns else mask_read(arguments)
                    yield name, (mask, choice), made(backend, arguments, repeat)

    return ways


@contextlib.contextmanager
def with_mod(job, score_mod):
    """Uses another score mod inside the block."""
    before, job.score_mod = job.score_mod, score_mod
    try:
        yield
    finally:
        job.score_mod = before
