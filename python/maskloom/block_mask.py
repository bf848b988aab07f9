"""`create_block_mask`: PyTorch's own, without a dense mask.

Invariant: every array equals PyTorch's, in dtype, shape and each entry, those beyond the counts included.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import operator
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from . import _native
from ._arrays import BOTH, LARGE, PAIRS, PARTIAL, Wanted, parts, places
from ._call import call, uncompiled
from ._card_blocks import lists_on_card
from ._functions import Mod, check
from ._held import Held, shape_of
from ._lists import note
from ._mods import bound, kept_of, lie_on, recalled, record, remember, unread
from ._signature import signature
from .errors import ArgumentError, FallbackWarning, RecordingError, a_kind

__all__ = ["LongBlockMask", "create_block_mask", "create_block_masks"]


@uncompiled
def create_block_mask(
    mask_mod: Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: torch.device | str | int | None = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
    *,
    fallback: str | None = None,
) -> flex.BlockMask:
    """The BlockMask of a mask_mod: PyTorch's arguments, PyTorch's result, found without looking at every cell.

    Args:
        mask_mod: `(b, h, q_idx, kv_idx) -> bool`, as PyTorch takes it. It is called once, on values that record what it
            does; not again where an equal function with other tensors of the same shapes was called before.
            It may read tensors of PyTorch, NumPy and JAX of any shape, of dtype bool, int8 to int64, uint8,
            float16, bfloat16, float32 or float64. Their contents are read now: change them and make the mask again.
            Tensors on a GPU are copied to the host for this, which waits for the GPU once a tensor. A function that
            comes again with other tensors of the same shapes, all on `device` and read by indices alone, copies nothing
            and waits for nothing: a kernel finds the blocks there, up to 2^34 cells over the batch entries and heads
            that differ.
        B, H: batch entries and heads; None is 1, for all.
        Q_LEN, KV_LEN: tokens, 1 to 2^30.
        device: of the arrays. None: the current accelerator, or else the CPU.
        BLOCK_SIZE: tokens of a block, or (q, kv).
        _compile: as in PyTorch, deprecated; nothing is compiled.
        separate_full_blocks: False lists full blocks with the partial ones.
        compute_dq_write_order, dq_kv_order: PyTorch's metadata for a deterministic backward pass, computed by PyTorch.
        fallback: "torch" lets PyTorch do it where the mod cannot be recorded, with a `FallbackWarning` that says why.

    Returns:
        The installed PyTorch's BlockMask: counts int32 [B, H, rows], indices int32 [B, H, rows, columns], on `device`;
        `mask_mod` is the given function. Where the index arrays take more than 256 MiB it is a `LongBlockMask`.

    Raises:
        RecordingError: the mod does what cannot be recorded; with file, line and way out.
        ArgumentError: another argument cannot be used; the message names it.
    """
    if fallback not in (None, "torch"):
        raise ArgumentError("fallback", f"fallback is {fallback!r}", 'pass "torch" or leave it out')
    if _compile:
        warnings.warn("_compile has no effect on maskloom.create_block_mask", DeprecationWarning, stacklevel=2)
    groups = (_count(B, "B"), _count(H, "H"))
    lengths = (_length(Q_LEN, "Q_LEN"), _length(KV_LEN, "KV_LEN"))
    block = _block_size(BLOCK_SIZE)
    on = default_device(device)
    for name, value in (
        ("separate_full_blocks", separate_full_blocks),
        ("compute_dq_write_order", compute_dq_write_order),
    ):
        if not isinstance(value, (bool, int)):
            raise ArgumentError("not-a-bool", f"{name} is {value!r}", "pass True or False")
    if not isinstance(dq_kv_order, bool):
        raise ArgumentError(
            "dq-kv-order", "dq_kv_order must be a bool when using create_block_mask", "pass True or False"
        )
    if compute_dq_write_order and not hasattr(flex, "_compute_dq_write_order_from_block_mask"):
        raise ArgumentError(
            "torch-version", f"compute_dq_write_order is not known to torch {torch.__version__}", "leave it out"
        )
    inner, tokens, named = _as_installed(lengths, block)
    wanted = Wanted(groups, inner, tokens, separate_full_blocks)
    try:
        there, mask, read = _recorded(mask_mod, wanted, on)
    except RecordingError as why:
        if fallback is None:
            why.hint = f'{why.hint or "rewrite this line"}; or pass fallback="torch"'
            why.args = (why._text(),)
            raise
        warnings.warn(f"PyTorch makes this block mask, because {why}", FallbackWarning, stacklevel=2)
        return _by_torch(
            mask_mod, groups, lengths, on, block, separate_full_blocks, compute_dq_write_order, dq_kv_order
        )
    if there is None:
        blocks = call(_native.build, mask, groups, *wanted[1:3])
        made = _of_blocks(blocks, mask_mod, wanted, named, on)
    else:
        made = flex.BlockMask(**_arrays(there), **_given(mask_mod, wanted, named))
    # the lists are those of the mask_mod: flex_attention of this package need not compare them
    made.__dict__.update(_maskloom=True, _maskloom_mod=mask_mod)
    note(made)
    if "seq_lengths" not in _parameters():
        made.__dict__["_maskloom_lengths"] = lengths
    if there is None:
        made.__dict__["_maskloom_held"] = Held(mask, mask_mod, read, shape_of(made))
    if compute_dq_write_order:
        order = flex._compute_dq_write_order_from_block_mask(made, dq_kv_order=dq_kv_order)
        made.dq_write_order, made.dq_write_order_full = order
        made.dq_kv_order, made.dq_kv_order_spt = None, dq_kv_order
    return made


def _recorded(mask_mod: Mod, wanted: Wanted, device: torch.device) -> tuple[Any, Any, Any]:
    """The arrays if they were found on the GPU, else the mask and the tensors that were read. Errors: of recording."""
    check(mask_mod, "mask_mod", 4)
    signed, card = signature(mask_mod), _card(device)
    known = again = recalled(signed, device)
    if known is None:
        tape, result = record(mask_mod, False, device)
        text = tape.text_of(result)
        again = unread(tape, text)
        remember(signed, device, tape, text)
    if card is not None and again is not None and not wanted.long() and lie_on(again[1], card):
        there = lists_on_card(*again, wanted, card)
        if there is not None:
            return there, None, None
    if known is not None:
        return None, bound(*known, "mask_mod"), known[1]
    mask, _, read, _ = kept_of(mask_mod, "mask_mod", tape, text)
    remember(signed, device, tape, text)
    return None, mask, read


def create_block_masks(
    mask_mods: Sequence[Mod], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, **options: Any
) -> list[flex.BlockMask]:
    """The BlockMasks of several mods over the same lengths, as `create_block_mask` makes each; a function that occurs
    twice is recorded once and gives one object twice.

    Args and errors: those of `create_block_mask`."""
    if isinstance(mask_mods, str) or not isinstance(mask_mods, Iterable):
        raise ArgumentError("not-a-list", f"mask_mods is {a_kind(mask_mods)}", "pass a list of functions")
    made: dict[int, flex.BlockMask] = {}
    for mod in mask_mods:
        if id(mod) not in made:
            made[id(mod)] = create_block_mask(mod, B, H, Q_LEN, KV_LEN, **options)
    return [made[id(mod)] for mod in mask_mods]


class LongBlockMask(flex.BlockMask):
    """A BlockMask whose index arrays are made at their first use, as they are large: at 2^20 tokens four of 256 MiB.

    Everything else is there from the start. `flex_attention` of this package never uses them."""

    _blocks: _native.Blocks

    def plain(self) -> flex.BlockMask:
        """The same as PyTorch's own class with all its arrays: to be passed into a function under torch.compile."""
        indices = {f"{name}_indices": getattr(self, f"{name}_indices") for name in PAIRS}
        return _plain({name: value for name, value in self.__dict__.items() if name != "_blocks"} | indices)

    def __getattr__(self, name: str) -> Any:
        # reached only where an array was not made yet
        pair = name.removesuffix("_indices")
        if name == pair or pair not in PAIRS or "_blocks" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        side, which = PAIRS[pair]
        counts = self.__dict__[f"{pair}_num_blocks"]
        rows = counts.shape[-1]
        columns = self.__dict__["kv_num_blocks" if side else "q_num_blocks"].shape[-1]
        made = torch.empty((*counts.shape[:-1], rows, columns), dtype=torch.int32, device="cpu")
        if which == PARTIAL and self.__dict__["full_kv_num_blocks"] is None:
            which = BOTH
        again = torch.empty_like(counts, device="cpu")
        call(self._blocks.write, [(side, which, again.data_ptr(), made.data_ptr())])
        made = made.to(counts.device)
        self.__dict__[name] = made
        self.__dict__.setdefault("_maskloom_made", {})[name] = made
        return made

    def __copy__(self) -> LongBlockMask:
        return self._with(dict(self.__dict__))

    def __deepcopy__(self, memo: dict[int, Any]) -> LongBlockMask:
        # the blocks never change
        own = {name: value for name, value in self.__dict__.items() if name != "_blocks"}
        return self._with({**copy.deepcopy(own, memo), "_blocks": self._blocks})

    def _with(self, own: dict[str, Any]) -> LongBlockMask:
        made = LongBlockMask.__new__(LongBlockMask)
        made.__dict__.update(own)
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        # another process has none of the blocks, and gets all arrays
        return _plain, (self.plain().__dict__,)


def _plain(own: dict[str, Any]) -> flex.BlockMask:
    made = flex.BlockMask.__new__(flex.BlockMask)
    made.__dict__.update(own)
    return made


class _Arrays:
    """int32 arrays to be written on the host, for a device: parts of one tensor for another device, so that one copy
    brings them there, for which the host does not wait. Large ones are so on the host, too: the allocator hands one
    large piece out again at the next call, and gives several smaller ones back to the system, whose every page then
    costs a fault anew."""

    def __init__(self, shapes: dict[str, tuple[int, ...]], device: torch.device) -> None:
        self.device = device
        if device.type == "cpu" and sum(map(math.prod, shapes.values())) < LARGE:
            self.host = {name: torch.empty(shape, dtype=torch.int32, device="cpu") for name, shape in shapes.items()}
        else:
            self.places, end = places(shapes)
            self.whole = torch.empty(end, dtype=torch.int32, device="cpu", pin_memory=device.type == "cuda")
            self.host = parts(self.whole, self.places)
        for tensor in self.host.values():
            if type(tensor) is not torch.Tensor:
                message = f"create_block_mask makes {a_kind(tensor)} here, which has no values"
                hint = "make the mask outside of FakeTensorMode and torch.compile"
                raise ArgumentError("tensor-values", message, hint)

    def there(self) -> dict[str, torch.Tensor]:
        """The arrays on the device."""
        if self.device.type == "cpu":
            return self.host
        return parts(self.whole.to(self.device, non_blocking=True), self.places)


def _of_blocks(
    blocks: _native.Blocks, mask_mod: Mod, wanted: Wanted, named: tuple[int, int], device: torch.device
) -> flex.BlockMask:
    """The BlockMask of blocks that the host has found."""
    long = wanted.long()
    shapes = wanted.shapes()
    if long:
        shapes = {name: shape for name, shape in shapes.items() if name.endswith("_num_blocks")}
    written = _Arrays(shapes, device)
    address = {name: tensor.data_ptr() for name, tensor in written.host.items()}
    asked = [
        (side, which, address[f"{name}_num_blocks"], address.get(f"{name}_indices", 0))
        for name, (side, which) in wanted.pairs().items()
    ]
    call(blocks.write, asked)
    there = written.there()
    given = _given(mask_mod, wanted, named)
    if not long:
        return flex.BlockMask(**_arrays(there), **given)
    made = LongBlockMask.__new__(LongBlockMask)
    stand_in = {name.replace("_num_blocks", "_indices"): counts for name, counts in there.items()}
    flex.BlockMask.__init__(made, **_arrays({**there, **stand_in}), **given)
    for name in stand_in:
        del made.__dict__[name]
    made._blocks = blocks
    return made


def _arrays(there: dict[str, torch.Tensor]) -> dict[str, Any]:
    """All arrays by PyTorch's names; None: there is none."""
    names = [f"{pair}_{what}" for pair in PAIRS for what in ("num_blocks", "indices")]
    return {name: there.get(name) for name in names}


def _given(mask_mod: Mod, wanted: Wanted, named: tuple[int, int]) -> dict[str, Any]:
    return _known({"seq_lengths": wanted.lengths, "BLOCK_SIZE": named, "mask_mod": mask_mod})


def _card(device: torch.device) -> torch.device | None:
    """The GPU with its number; None: it is none of NVIDIA's."""
    if device.type != "cuda" or torch.version.cuda is None:
        return None
    return device if device.index is not None else torch.device("cuda", torch.cuda.current_device())


@functools.lru_cache(maxsize=1)
def _parameters() -> frozenset[str]:
    return frozenset(inspect.signature(flex.BlockMask.__init__).parameters)


def _known(given: dict[str, Any]) -> dict[str, Any]:
    """Those that the installed PyTorch's BlockMask takes: 2.5 had no `seq_lengths`."""
    return {name: value for name, value in given.items() if name in _parameters()}


def _as_installed(
    lengths: tuple[int, int], block: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Lengths, blocks and the BLOCK_SIZE to name. PyTorch 2.5 rounds lengths up to whole blocks, and has one row of
    blocks for fewer than 128 queries."""
    if "seq_lengths" in _parameters():
        return lengths, block, block
    (q_len, kv_len), (q, kv), named = lengths, block, block
    if q_len < 128:
        q, named = q_len, (128, kv)
    return (-(-q_len // q) * q, -(-kv_len // kv) * kv), (q, kv), named


def _by_torch(
    mask_mod: Mod,
    groups: tuple[int, int],
    lengths: tuple[int, int],
    device: torch.device,
    block: tuple[int, int],
    separate: bool,
    write_order: bool,
    dq_kv_order: bool,
) -> flex.BlockMask:
    known = inspect.signature(flex.create_block_mask).parameters
    more: dict[str, Any] = {}
    if not separate:
        more["separate_full_blocks"] = False
    if write_order:
        more.update(compute_dq_write_order=True, dq_kv_order=dq_kv_order)
    unknown = [name for name in more if name not in known]
    if unknown:
        raise ArgumentError("torch-version", f"{unknown[0]} is not known to torch {torch.__version__}", "leave it out")
    return flex.create_block_mask(mask_mod, *groups, *lengths, device=str(device), BLOCK_SIZE=block, **more)


def _count(value: object, name: str) -> int:
    if value is None:
        return 1
    number = _integer(value, name)
    if not 1 <= number <= 1 << 20:
        raise ArgumentError("count", f"{name} is {number}", f"pass a number from 1 to {1 << 20}, or None for all")
    return number


def _length(value: object, name: str) -> int:
    number = _integer(value, name)
    if number < 1:
        what = "Query" if name == "Q_LEN" else "Key"
        raise ArgumentError(
            "zero-length", f"{name} is {number}: {what} length must be greater than 0", "pass the tokens"
        )
    if number > 1 << 30:
        raise ArgumentError(
            "length-too-large", f"{name} is {number}, above 2^30 tokens", "block lists hold 32-bit numbers"
        )
    return number


def _integer(value: Any, name: str) -> int:
    if isinstance(value, bool) or isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
        raise ArgumentError("not-an-int", f"{name} is {value!r}, not an int", "pass an int")
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError("not-an-int", f"{name} is {a_kind(value)}, not an int", "pass an int") from None


def _block_size(value: object) -> tuple[int, int]:
    pair = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2:
        raise ArgumentError("block-size", f"BLOCK_SIZE has {len(pair)} entries", "pass an int, or (q, kv)")
    q, kv = (_integer(size, "BLOCK_SIZE") for size in pair)
    if min(q, kv) < 1 or max(q, kv) > 1 << 30:
        raise ArgumentError("block-size", f"BLOCK_SIZE is {value!r}", "pass positive sizes; PyTorch's default is 128")
    return q, kv


def default_device(device: torch.device | str | int | None) -> torch.device:
    """The device; None is the current accelerator, or else the CPU. Errors: ArgumentError for another thing."""
    if device is None:
        # PyTorch takes the accelerator that it was built for, also where there is none, and fails there
        accelerator = getattr(torch, "accelerator", None)
        if accelerator is not None:
            found = accelerator.current_accelerator() if accelerator.is_available() else None
        else:
            found = torch.device("cuda") if torch.cuda.is_available() else None
        return found if found is not None else torch.device("cpu")
    try:
        made = torch.device(device)
    except (RuntimeError, TypeError) as why:
        raise ArgumentError("device", f"device {device!r} is not one: {why}", 'pass "cpu" or "cuda"') from None
    if made.type == "cuda" and (made.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        message = f"device is {made}, and PyTorch finds {count or 'no'} NVIDIA GPU{'' if count == 1 else 's'} here"
        raise ArgumentError("device", message, 'pass "cpu", or look at torch.cuda.is_available()')
    if made.type == "meta":
        raise ArgumentError("device", "device is meta, where arrays have no values", "make the mask on the CPU")
    return made
