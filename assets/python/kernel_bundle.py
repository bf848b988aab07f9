# SPDX-License-Identifier: MIT
"""The kernel of DESIGN as a PyTorch operator. It needs PyTorch and the driver.

    import DESIGN_kernel as kernel
    out = kernel.attend(query, key, value)            # [B, H, S, D], bfloat16 or float16 as designed
    out, lse = kernel.attend(query, key, value, return_lse=True)

Any batch size (unless the mask differs between batch entries) and any strides; heads and lengths of the design. Its operator
in torch.ops.maskloom has the design's name and a hash of the kernel's contents, so that two designs with the same name
stay distinct. It works under torch.compile, and in CUDA graphs after one call outside of a graph on each device.

It can be trained: a second operator computes the gradients of query, key and value, also through the lse, and of the tensors
in LEARNS, if they are passed (`captured={"table": parameter}`, or `kernel.Attention()`, which holds them as
parameters). Unsupported gradients are refused at the first call.
Selective checkpointing keeps the outputs of OPERATORS[0]. The gradcheck script of the export checks all gradients.

This file owns the operators and the checks of what they are called with. It does not know the driver: kernels/launch.py launches.
"""

import hashlib
import importlib.util
import math
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F

# tried with these; older ones have no operators of this form
if (2, 5) > (_version := tuple(map(int, torch.__version__.split(".")[:2]))):
    raise ImportError(f"maskloom: {__name__} needs PyTorch 2.5 or newer, and this is {torch.__version__}: install a newer one")
if _version > (2, 15):
    warnings.warn(f"maskloom: tried with PyTorch 2.5 to 2.15; with {torch.__version__} run the gradcheck first", stacklevel=2)

FOLDER = Path(__file__).with_name("kernels")


def _launcher():
    """kernels/launch.py. Several designs may be loaded at once, so each has its own, and none takes a place in sys.modules."""
    file = FOLDER / "launch.py"
    if not file.is_file():
        raise ImportError(f"maskloom: {file} does not exist: keep the folder `kernels` of the export next to this file")
    spec = importlib.util.spec_from_file_location(f"{__name__}_launch", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_launch = _launcher()
LAUNCH, PROBLEM, DTYPE = _launch.LAUNCH, _launch.PROBLEM, _launch.DTYPE
# float tensors that get gradients: name, shape and dtype, in the operators' order
LEARNS = _launch.LEARNS


def _contents():
    """A hash of the operator's content: its settings, its arrays and its kernels."""
    found = hashlib.sha256()
    for file in sorted(file for file in FOLDER.iterdir() if file.is_file()):
        found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:16]


NAME = f"maskloom::DESIGN_{_contents()}"


def _rows(tensor):
    """The tensor with rows of whole 16-byte chunks, padded with zeros, at any other strides."""
    if tensor.shape[-1] % 8:  # F.pad copies even if it adds nothing
        tensor = F.pad(tensor, (0, -tensor.shape[-1] % 8))
    aligned = tensor.data_ptr() % 16 == 0 and tensor.stride(-1) == 1 and all(s % 8 == 0 and s > 0 for s in tensor.stride()[:-1])
    # not `contiguous`: it leaves whole rows where they are, at any address
    return tensor if aligned else tensor.clone(memory_format=torch.contiguous_format)


_DEVICE = "cuda"


def _on_gpu(tensor):
    """Errors: there is no kernel for the tensor's device."""
    if tensor.device.type != _DEVICE:
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


def _able(query, captured):
    """The variant of the tensors' device. Errors: what it cannot compute."""
    _check_captured(query, captured)
    variant = _launch.kernel_on(query.device).variant
    if captured and variant["bounded"]:
        names = ", ".join(tensor["name"] for tensor in LEARNS)
        raise ValueError(f"maskloom: this kernel relies on the design's values of {names}: export it in float16 to train them")
    return variant


# whether the kernels' rows are as long as the tensors'
_WHOLE = PROBLEM["head_dim"] % 8 == 0 == PROBLEM["head_dim_v"] % 8


def _forward(query, key, value, captured, scale):
    """Output and lse, launched here and now."""
    # here and not in `attend`: torch.compile would add a guard on the design's constant
    scale = PROBLEM["scale"] if scale is None else scale
    found = _launch.forward(query, key, value, captured, scale) if _WHOLE else None
    if found is not None:
        return found
    _check(query, key, value)
    if _able(query, captured)["positive_scale"] and not scale > 0:
        raise ValueError("maskloom: this kernel was compiled for a positive scale")
    given, learnt = [_rows(tensor) for tensor in (query, key, value)], [_read(tensor) for tensor in captured]
    out, lse = _launch.forward(*given, learnt, scale, checked=True)
    return (out if _WHOLE else out[..., : value.shape[-1]].contiguous()), lse


def _backward(d_out, d_lse, query, key, value, out, lse, captured, scale):
    """Gradients of query, key, value and the captured tensors, launched here and now."""
    _must_be_ordered()
    scale, saved = PROBLEM["scale"] if scale is None else scale, (query, key, value, out)
    found = _launch.backward(saved, lse, d_out, d_lse, captured, scale) if _WHOLE else None
    if found is None:
        _check(query, key, value)
        variant = _able(query, captured)
        _must_differentiate([variant])
        _must_hold(variant["backward"], query.shape[0])
        d_lse, learnt = None if d_lse is None else d_lse.float().contiguous(), [_read(tensor) for tensor in captured]
        given = [_rows(tensor) for tensor in saved]
        found = _launch.backward(given, lse.contiguous(), _rows(d_out.to(out.dtype)), d_lse, learnt, scale, checked=True)
    gradients, sums = found
    if not _WHOLE:
        gradients = [g[..., : t.shape[-1]].contiguous() for g, t in zip(gradients, saved)]
    return [*gradients, *(sum_.to(tensor.dtype) for sum_, tensor in zip(sums, captured))]


# their schemas are written out: PyTorch 2.5 infers none from these annotations
_INPUTS = "Tensor query, Tensor key, Tensor value"
_MORE = "Tensor[] captured, float? scale"


# for every device: without it PyTorch reports missing dispatch keys
@torch.library.custom_op(NAME, mutates_args=(), schema=f"({_INPUTS}, {_MORE}) -> (Tensor, Tensor)")
def _attend(query, key, value, captured, scale):
    _on_gpu(query)
    return _forward(query, key, value, captured, scale)


@_attend.register_fake
def _(query, key, value, captured, scale):
    _check(query, key, value)
    _check_captured(query, captured)
    shape = (*query.shape[:-1], value.shape[-1])
    return query.new_empty(shape), query.new_empty(shape[:-1], dtype=torch.float32)


_BACKWARD = f"(Tensor d_out, Tensor? d_lse, {_INPUTS}, Tensor out, Tensor lse, {_MORE}) -> Tensor[]"


@torch.library.custom_op(f"{NAME}_backward", mutates_args=(), schema=_BACKWARD)
def _attend_backward(d_out, d_lse, query, key, value, out, lse, captured, scale):
    _on_gpu(query)
    return _backward(d_out, d_lse, query, key, value, out, lse, captured, scale)


@_attend_backward.register_fake
def _(d_out, d_lse, query, key, value, out, lse, captured, scale):
    return [t.new_empty(t.shape) for t in (query, key, value, *captured)]


def _save(ctx, inputs, output):
    query, key, value, captured, scale = inputs
    ctx.scale = scale
    ctx.save_for_backward(query, key, value, *output, *captured)


def _differentiate(ctx, d_out, d_lse):
    query, key, value, out, lse, *captured = ctx.saved_tensors
    d_out = torch.zeros_like(out) if d_out is None else d_out
    found = _attend_backward(d_out, d_lse, query, key, value, out, lse, captured, ctx.scale)
    return *found[:3], found[3:], None


_attend.register_autograd(_differentiate, setup_context=_save)
# forward and backward, as selective checkpointing names them
OPERATORS = tuple(getattr(torch.ops.maskloom, name.split("::")[1]).default for name in (NAME, f"{NAME}_backward"))


class _Attend(torch.autograd.Function):
    """The operator without PyTorch's dispatcher, where nothing but autograd watches its calls."""

    @staticmethod
    def forward(ctx, query, key, value, scale, *captured):
        out, lse = _forward(query, key, value, captured, scale)
        ctx.scale = scale
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(query, key, value, out, lse, *captured)
        return out, lse

    @staticmethod
    def backward(ctx, d_out, d_lse):
        query, key, value, out, lse, *captured = ctx.saved_tensors
        d_out = torch.zeros_like(out) if d_out is None else d_out
        # gradients of gradients are the operator's to refuse; what was saved is as it came
        alone = _alone(d_out, lse if d_lse is None else d_lse) and not torch.is_grad_enabled()
        found = (_backward if alone else _attend_backward)(d_out, d_lse, query, key, value, out, lse, captured, ctx.scale)
        return *found[:3], None, *found[3:]


_PLAIN = {torch.Tensor, torch.nn.Parameter}
# by which PyTorch tells who watches a call; a PyTorch without one of them gets no call past its dispatcher
_modes, _transforms, _tracing = _WATCHERS = [
    getattr(torch._C, name, None)
    for name in ("_len_torch_dispatch_stack", "_are_functorch_transforms_active", "_get_tracing_state")
]
_KNOWN = None not in _WATCHERS


def _alone(query, *others):
    """Whether a call may go past the dispatcher: of plain tensors on a GPU, seen by no compiler, tracer, mode or transform."""
    if torch.compiler.is_compiling() or not _KNOWN or _modes() or _transforms() or _tracing() is not None:
        return False
    if query.device.type != _DEVICE or type(query) not in _PLAIN or query.is_neg():
        return False
    for tensor in others:
        if type(tensor) not in _PLAIN or tensor.is_neg():
            return False
    return True


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


def _must_hold(backward, batch):
    """Errors: an element of a captured tensor's gradient could get more additions than its bins hold."""
    additions, most = batch * backward["additions"], backward["most_additions"]
    if backward["bins"] and additions > most:
        words = f"a batch of {batch} adds up to {additions} numbers to one element of a captured tensor's gradient"
        way = "use a smaller batch, or export without --deterministic"
        raise ValueError(f"maskloom: {words}; its sums have the same bits in every run up to {most}: {way}")


def _must_differentiate(variants):
    """Errors: none of these variants has a backward pass; the message gives the reason."""
    refusals = [variant["backward"].get("refused") for variant in variants]
    if all(refusals):
        words = "train with DESIGN.attend, or call it under torch.no_grad()"
        raise RuntimeError(f"maskloom: no gradient here: {refusals[0]}; {words}")


def _attended(query, key, value, captured, scale, return_lse):
    scale = None if scale is None else float(scale)
    trains = torch.is_grad_enabled() and any([t.requires_grad for t in (query, key, value, *captured)])
    if trains:
        _must_differentiate(LAUNCH["variants"])
    if not _alone(query, key, value, *captured):
        out, lse = _attend(query, key, value, captured, scale)
    elif trains:
        out, lse = _Attend.apply(query, key, value, scale, *captured)
    else:
        out, lse = _forward(query, key, value, captured, scale)
    return (out, lse) if return_lse else out


def _told(wanted):
    """A learned tensor in words; of a computed one the gradient is its own, not that of what it was computed from."""
    parents = " and ".join(wanted["computed_from"])
    return f"{wanted['name']} (computed from {parents})" if parents else wanted["name"]


def attend(query, key, value, scale=None, return_lse=False, captured=None):
    """The design's attention of query [B, Hq, Q, E], key [B, Hkv, KV, E] and value [B, Hkv, KV, Ev]; lse [B, Hq, Q].

    captured: tensors by name that replace those in LEARNS: all of them, or none.
    """
    learnt = []
    if captured is not None:
        given = dict(captured)
        learnt = [given.pop(wanted["name"]) for wanted in LEARNS if wanted["name"] in given]
        if given or len(learnt) not in (0, len(LEARNS)):
            names = ", ".join(map(_told, LEARNS)) or "nothing"
            raise ValueError(f"maskloom: captured names {sorted(captured)}; the design learns {names}: pass all of them")
    return _attended(query, key, value, learnt, scale, return_lse)


class Attention(torch.nn.Module):
    """The same as a module: the design's learned tensors as parameters, with the design's values."""

    def __init__(self):
        super().__init__()
        arrays = _launch.tensors()
        self.learnt = torch.nn.ParameterDict({t["name"]: torch.nn.Parameter(_initial(t, arrays)) for t in LEARNS})

    def forward(self, query, key, value, scale=None, return_lse=False):
        return _attended(query, key, value, [self.learnt[wanted["name"]] for wanted in LEARNS], scale, return_lse)


def _initial(wanted, arrays):
    """A tensor's values in the design."""
    at = next(i for i, t in enumerate(LEARNS) if t is wanted)
    v = LAUNCH["variants"][0]
    dtype = getattr(torch, wanted["dtype"])
    held = arrays[f"{v['arch']}.capture{v['captures'].index(at)}"]
    held = held.view(torch.float64 if dtype == torch.float64 else torch.float32)
    return held[: math.prod(wanted["shape"])].reshape(wanted["shape"]).to(dtype)
