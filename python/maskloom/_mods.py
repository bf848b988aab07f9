"""From a user's function to a traced mod.

Invariant: no result is older than what the function reads: a global, an attribute, a number of the closure or a
tensor's content. So it is called once for each mask, but where its signature says that it would do the same again. What
is kept is the translation of a recording: tensors of another batch, of the same shapes, take the former ones' places.
"""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Sequence
from typing import Any, Union

import torch

from . import _native
from ._call import call, panicked
from ._functions import Mod, check, with_tensors
from ._recorder import EXPANDED, Recorder, Recording, Tape
from ._signature import Signature
from .errors import ArgumentError, MaskloomError, RecordingError, a_kind

#: Most that is kept of one kind, translations among them; the oldest goes first.
KEPT = 512
#: Bytes of tensors that a translation depends on by their content, above which it is not kept.
CONTENT = 4096
#: Bytes of one tensor that is read.
LARGEST = 8 << 30
#: Bytes up to which nobody asks what is free.
SMALL = 256 << 20
#: A file and a line; those of a recording's lines.
Place = tuple[Union[str, None], Union[int, None]]
Places = Sequence[tuple[Union[types.CodeType, None], int]]
#: Stands for a table that the translation made of a tensor.
_UNNAMED = torch.empty(0, device="cpu")
_KEPT: dict[Any, tuple[_native.Mask, list[int]]] = {}
#: Translations of mask_mods by signature and device, with the places of captured tensors among the signature's.
_SIGNED: dict[Any, tuple[_native.Mask, list[int]]] = {}

_NAMES: dict[torch.dtype, str] = {
    dtype: str(dtype)[len("torch.") :]
    for dtype in (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    )
}


def traced(
    fn: Mod, argument: str, *, score: bool = False, device: torch.device
) -> tuple[_native.Mask, list[torch.Tensor]]:
    """The mod of a function, and the tensors that it reads, in the order of the mod's captured tensors.

    Errors: `ArgumentError` where it is no mod; `RecordingError` where it cannot be recorded."""
    mask, order, read, _ = kept(fn, argument, score=score, device=device)
    return mask, [read[at] if at >= 0 else _UNNAMED for at in order]


def kept(
    fn: Mod, argument: str, *, score: bool = False, device: torch.device
) -> tuple[_native.Mask, list[int], list[torch.Tensor], set[int]]:
    """The mod, which tensor each of its captured ones is, the tensors that the function reads, and the numbers of those
    whose content the mod depends on beyond single elements. Errors: those of `traced`."""
    check(fn, argument, 5 if score else 4)
    tape, result = record(fn, score, device)
    return kept_of(fn, argument, tape, tape.text_of(result), score=score)


def unread(tape: Tape, text: str) -> tuple[_native.Mask, list[torch.Tensor]] | None:
    """The mod of a recording that was translated before, with other contents of its tensors, and these tensors in the
    order of the mod's captured ones. None: it was not, or the mod depends on a content."""
    if tape.whole or any(tensor.dtype not in _NAMES for tensor in tape.tensors):
        return None
    shapes = tuple([(tuple(tensor.shape), _NAMES[tensor.dtype]) for tensor in tape.tensors])
    known = _KEPT.get((text, shapes, ()))
    return None if known is None else (known[0], [tape.tensors[at] for at in known[1]])


def lie_on(tensors: Sequence[torch.Tensor], device: torch.device) -> bool:
    """Whether there are tensors, all of them there and of kinds that are read there."""
    for tensor in tensors:
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
        if not plain or tensor.device != device or tensor.dtype not in _NAMES or tensor.nbytes > LARGEST:
            return False
    return len(tensors) > 0


def recalled(signed: Signature | None, device: torch.device) -> tuple[_native.Mask, list[torch.Tensor]] | None:
    """What `unread` gives, of a mask_mod by its signature: it need not be recorded again. None: it has to be."""
    known = _SIGNED.get((signed[0], device)) if signed is not None else None
    if signed is None or known is None:
        return None
    return known[0], [signed[1][at] for at in known[1]]


def remember(signed: Signature | None, device: torch.device, tape: Tape, text: str) -> None:
    """Keeps the translation of a recording by the function's signature, where that holds for all of its tensors."""
    if signed is None or not tape.steady() or any(tensor.nbytes > EXPANDED for tensor in tape.tensors):
        return
    found = unread(tape, text)
    if found is None:
        return
    places = [next((at for at, own in enumerate(signed[1]) if own is tensor), -1) for tensor in found[1]]
    if -1 not in places:
        bounded(_SIGNED)
        _SIGNED[(signed[0], device)] = (found[0], places)


def bound(mask: _native.Mask, tensors: Sequence[torch.Tensor], argument: str) -> _native.Mask:
    """The mod over these tensors in the order of its captured ones."""
    held = [readable(tensor, argument) for tensor in tensors]
    return call(mask.rebound, [given(tensor) for tensor in held]) if held else mask


def kept_of(
    fn: Mod, argument: str, tape: Tape, text: str, *, score: bool = False
) -> tuple[_native.Mask, list[int], list[torch.Tensor], set[int]]:
    """What `kept` gives, of a recording."""
    if score:  # float tensors of a score mod are always read, because they may get gradients
        tape.whole = {at for at in tape.whole if not tape.tensors[at].is_floating_point()}
    tensors = [readable(tensor, argument) for tensor in tape.tensors]
    given_all = [given(tensor) for tensor in tensors]
    key = _key(text, tape, tensors, given_all)
    known = _KEPT.get(key) if key is not None else None
    if known is not None:
        mask, order = known
        bound = call(mask.rebound, [given_all[at] for at in order]) if order else mask
        return bound, order, tape.tensors, tape.whole
    mask = translated(text, tape.places, score, given_all, place_of(fn), argument)
    order = [int(name[1:]) if name[1:].isdigit() else -1 for name in mask.captures()]
    if score and -1 in order:
        file, line = place_of(fn)
        what = f"{argument}: a tensor is read in a way that has no gradient here"
        raise RecordingError("captured", what, "read it by indices: `table[q_idx]`", file=file, line=line)
    # equal tensors become one: then the translation does not say which of them is read where
    if key is not None and -1 not in order and set(order) >= set(range(len(tensors))) - tape.whole:
        bounded(_KEPT)
        _KEPT[key] = (mask, order)
    return mask, order, tape.tensors, tape.whole


def _key(text: str, tape: Tape, tensors: list[torch.Tensor], given: Sequence[_native.Given]) -> Any:
    content: list[bytes] = []
    for at in tape.whole:
        if tensors[at].nbytes > CONTENT:
            return None
        content.append(bytes(tensors[at].reshape(-1).view(torch.uint8).tolist()))
    return (text, tuple((shape, dtype) for _, shape, dtype in given), tuple(content))


def record(fn: Mod, score: bool, device: torch.device) -> tuple[Tape, str]:
    """Calls the function once. Errors: `RecordingError` at the user's line."""
    tape = Tape(device, score)
    with_arrays = with_tensors(fn)
    try:
        with Recording(tape):
            result = with_arrays(*tape.inputs)
    except MaskloomError:
        if tape.failed is not None:
            raise tape.failed from None
        raise
    except Exception as why:
        if tape.failed is not None:
            raise tape.failed from None
        raise _raised(why) from why
    if tape.failed is not None:
        raise tape.failed
    return tape, _result(fn, tape, result)


def _result(fn: Any, tape: Tape, result: Any) -> str:
    if type(result) is Recorder or isinstance(result, torch.Tensor):
        return tape.text(result)
    file, line = place_of(fn)
    what = a_kind(result)
    hint = "return a tensor: `torch.ones_like(q_idx, dtype=torch.bool)` keeps everything"
    if isinstance(result, (tuple, list)):
        hint = "return one value of dtype torch.bool for the cell (b, h, q_idx, kv_idx)"
    raise RecordingError("mod-result", f"the mod returned {what}, not a tensor", hint, file=file, line=line)


def place_of(fn: Any) -> Place:
    """Where a function is written."""
    own = getattr(fn, "func", fn)
    code = getattr(own, "__code__", None) or getattr(vars(type(own)).get("__call__"), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else (None, None)


def _raised(why: Exception) -> RecordingError:
    """An exception of the user's code, at the innermost line that is not PyTorch's."""
    file: str | None = None
    line: int | None = None
    at, own = why.__traceback__, (torch.__path__[0], __file__, __file__.replace("_mods.py", "_recorder.py"))
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        if not name.startswith(own):
            file, line = name, at.tb_lineno
        at = at.tb_next
    return RecordingError(
        "raised",
        f"the mod raised {type(why).__name__}: {why}",
        "a mod is called once, on values that stand for all cells; it must not fail there",
        file=file,
        line=line,
    )


def translated(
    text: str, places: Places, score: bool, given: Sequence[_native.Given], place: Place, argument: str
) -> _native.Mask:
    """The mod of a recording's text. places: of its lines in the user's source; place: of the function."""
    names = [f"t{at}" for at in range(len(given))]
    try:
        return _native.translate(text, score, names, given)
    except _native.Panicked as fault:
        raise panicked(fault) from None
    except _native.Refused as refused:
        code, message, hint, line = refused.args
        file, at = place
        if line is not None and 3 <= line < 3 + len(places):
            found, number = places[line - 3]
            if found is not None:
                file, at = found.co_filename, number
        raise RecordingError(code, f"{argument}: {message}", hint, file=file, line=at) from None


def given(tensor: torch.Tensor) -> _native.Given:
    """A contiguous tensor as the compiled module takes it, which its caller holds meanwhile."""
    return tensor.data_ptr(), tuple(tensor.shape), _NAMES[tensor.dtype]


def bounded(known: dict[Any, Any], most: int = KEPT) -> None:
    """Makes room for one more: the oldest goes first."""
    while len(known) >= most:
        known.pop(next(iter(known)), None)


def stand_in(tensor: torch.Tensor, number: int) -> torch.Tensor:
    """Stands for a float tensor while a mod is translated: no two are equal, and the GPU is not asked for values."""
    return torch.full(tensor.shape, number + 1, dtype=tensor.dtype, device="cpu")


def fits(what: str, size: int) -> None:
    """Nothing, where so many bytes of memory are free. A system that overcommits ends the process instead.

    Errors: `ArgumentError` where they are not free."""
    if size > SMALL:
        call(_native.room, what, size)


def readable(tensor: torch.Tensor, argument: str) -> torch.Tensor:
    """The tensor as contiguous memory of this process. Errors: `ArgumentError` where it has none that can be read."""
    if tensor.is_nested:
        raise ArgumentError(
            "tensor-layout", f"{argument} reads a nested tensor", "pad it: `tensor.to_padded_tensor(0)`"
        )
    if tensor.layout is not torch.strided:
        raise ArgumentError(
            "tensor-layout",
            f"{argument} reads a tensor of layout {tensor.layout}",
            "make it dense: `tensor.to_dense()`",
        )
    if tensor.is_meta:
        raise ArgumentError(
            "tensor-meta",
            f"{argument} reads a tensor on the meta device, which has no values",
            "build it on a real device",
        )
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        raise ArgumentError(
            "tensor-values",
            f"{argument} reads a tensor of torch.func (vmap, grad, jvp), which has no values here",
            "make the mask outside of torch.func, and take gradients by loss.backward()",
        )
    if tensor.dtype not in _NAMES:
        raise ArgumentError(
            "tensor-dtype",
            f"{argument} reads a tensor of dtype {tensor.dtype}",
            "convert it before: `tensor.to(torch.int64)`, or `.to(torch.float32)`",
        )
    if tensor.nbytes > LARGEST:
        size = f"{tensor.nbytes / 2**30:.1f} GiB"
        raise ArgumentError(
            "tensor-too-large",
            f"{argument} reads a tensor of shape {tuple(tensor.shape)}, {size} of elements",
            "read a smaller one: an expanded dimension needs no copies, index it as `t[0]`",
        )
    # it is copied where it has no contiguous memory here, and again for the mask
    copies = 1 if tensor.device.type == "cpu" and tensor.is_contiguous() else 2
    fits(f"a tensor of shape {tuple(tensor.shape)} that {argument} reads", copies * tensor.nbytes)
    if tensor.device.type != "cpu":
        tensor = tensor.detach().cpu()
    if tensor.requires_grad:
        tensor = tensor.detach()
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        _refuse_subclass(tensor, argument)
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _refuse_subclass(tensor: Any, argument: str) -> None:
    """A fake tensor has no values; one inside vmap, grad or a trace has another's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fake tensor has an address that means nothing
        try:
            address = tensor.data_ptr()
        except Exception:
            address = 0
    if address == 0 and math.prod(tensor.shape) > 0:
        raise ArgumentError(
            "tensor-values",
            f"{argument} reads {a_kind(tensor)}, which has no values here",
            "make the mask outside of torch.compile, vmap and FakeTensorMode",
        )
