"""Which mods a call has on a GPU: the mask of a BlockMask, and the score mod with the tensors that it reads.

Invariant: a mask is that of its BlockMask, read again where a tensor of it was changed in place; float tensors of a
score mod are read by the kernels at each call, ints once for each of their versions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.attention import flex_attention as flex

from . import _native
from ._call import call
from ._checks import known_lengths
from ._functions import Mod, check
from ._lists import LISTS, effective, note, noted, version
from ._mods import bounded, given, kept, place_of, readable, record, stand_in, translated
from ._signature import signature
from .errors import RecordingError

CPU = torch.device("cpu")
#: Score mods that are prepared for one mask, each with lists on the card.
PREPARED = 128


_SHARED: dict[Any, dict[Any, Mods]] = {}


class Held:
    """The mask of a BlockMask, and the tensors that it was read from. A copy or a pickle of the BlockMask has none."""

    __slots__ = ("mask", "mod", "mods", "shape", "watched")

    def __init__(self, mask: Any = None, mod: Any = None, watched: Any = (), shape: Any = None) -> None:
        #: what a check depends on
        self.shape = shape
        self.mask: _native.Mask | None = mask
        self.mod = mod
        self.watched = [(tensor, version(tensor)) for tensor in watched]
        #: what was prepared for this mask, by score mod
        self.mods: dict[Any, Mods] = {}
        if mask is not None and not mask.captures():
            # one object for all masks of this recording
            bounded(_SHARED)
            self.mods = _SHARED.setdefault(mask, self.mods)

    def __reduce__(self) -> Any:
        return Held, ()

    def is_of(self, mod: Any) -> bool:
        if self.mod is not mod:
            return False
        for tensor, known in self.watched:  # noqa: SIM110, a generator takes longer
            if known == -1 or tensor._version != known:
                return False
        return True


def shape_of(block_mask: flex.BlockMask) -> Any:
    """What a check of a block mask depends on."""
    counts = block_mask.kv_num_blocks
    return counts.shape, counts.device, known_lengths(block_mask), block_mask.BLOCK_SIZE


def held_of(block_mask: flex.BlockMask | None) -> Held:
    """The mask of a BlockMask, read at the first use. Reading waits for the GPU where tensors of the mask lie there."""
    if block_mask is None:
        return BARE
    found: Held | None = block_mask.__dict__.get("_maskloom_held")
    mod = block_mask.mask_mod
    if found is not None and found.is_of(mod) and noted(block_mask):
        return found
    wanted = effective(block_mask)
    watched: list[torch.Tensor] = []
    mask = None
    if wanted is not flex.noop_mask:
        mask, _, watched, _ = kept(wanted, "block_mask.mask_mod", device=CPU)
    if wanted is not mod:
        _, _, read, _ = kept(mod, "block_mask.mask_mod", device=CPU)
        arrays = [getattr(block_mask, name) for name in LISTS]
        watched = [*read, *(array for array in arrays if array is not None)]
    made = Held(mask, mod, watched, shape_of(block_mask))
    block_mask.__dict__["_maskloom_held"] = made
    if wanted is not mod:
        block_mask.__dict__.pop("_maskloom_mod", None)
    note(block_mask)
    return made


class Score:
    """A recorded score mod, for any values of the float tensors that it captured.

    order: which of the function's tensors each captured one is; ints: captured tensors whose values the kernels depend
    on; held: tensors whose values the translation depends on."""

    __slots__ = ("held", "ints", "mask", "order")

    def __init__(self, mask: _native.Mask, order: list[int], ints: list[int], held: list[torch.Tensor]) -> None:
        self.mask, self.order, self.ints, self.held = mask, order, ints, held


class Mods:
    """A mask and a score mod, and what was prepared for them."""

    __slots__ = ("backward", "forward", "live", "mask", "read", "score")

    def __init__(
        self, mask: _native.Mask | None, score: _native.Mask | None, read: list[torch.Tensor], live: list[int]
    ):
        self.mask, self.score = mask, score
        #: held, so that no other tensor takes their address
        self.read = read
        #: captured tensors of the score mod that kernels read at each call
        self.live = live
        self.forward: dict[Any, Any] = {}
        self.backward: dict[Any, Any] = {}


#: No mask.
BARE = Held()
_SCORES: dict[Any, Score] = {}
_SIGNED: dict[Any, tuple[Score, list[int]]] = {}


def tokens_of(tensors: list[torch.Tensor]) -> tuple[tuple[Any, ...], ...]:
    """By which the values of tensors that are held are told from others."""
    return tuple([(tensor.data_ptr(), version(tensor), tensor.stride()) for tensor in tensors])


def with_score(
    mask: _native.Mask | None, known: dict[Any, Mods], score: Score, tensors: list[torch.Tensor]
) -> tuple[Mods, list[torch.Tensor]]:
    """The mods of a mask and a score mod that captured these tensors."""
    tokens = tokens_of([tensors[at] for at in score.ints])
    key = (score, tokens)
    found = known.get(key)
    if found is None or any(token[1] == -1 for token in tokens):
        bound = score.mask
        if score.ints:
            values = [
                readable(tensor, "score_mod") if at in score.ints else stand_in(tensor, at)
                for at, tensor in enumerate(tensors)
            ]
            bound = call(score.mask.rebound, [given(tensor) for tensor in values])
        live = [at for at, tensor in enumerate(tensors) if tensor.is_floating_point()]
        bounded(known, PREPARED)
        found = known[key] = Mods(mask, bound, [tensors[at] for at in score.ints], live)
    return found, [tensors[at] for at in found.live]


def recorded(score_mod: Mod) -> tuple[Score, list[torch.Tensor]]:
    """The recording of a score mod, and the tensors that it captured."""
    signed = signature(score_mod)
    if signed is not None:
        known = _SIGNED.get(signed[0])
        if known is not None:
            tensors = signed[1]
            return known[0], [tensors[at] for at in known[1]]
    check(score_mod, "score_mod", 5)
    tape, result = record(score_mod, True, CPU)
    score, kept_on = _translated(tape, tape.text_of(result), score_mod)
    tensors = [tape.tensors[at] for at in score.order]
    # what it asked of contents is in the lines, and no signature tells that it changed
    if signed is not None and kept_on and tape.looked is None and not tape.laid:
        places = [next((at for at, own in enumerate(signed[1]) if own is tensor), -1) for tensor in tensors]
        if -1 not in places and not score.held:
            bounded(_SIGNED)
            _SIGNED[signed[0]] = (score, places)
    return score, tensors


def _translated(tape: Any, text: str, fn: Mod) -> tuple[Score, bool]:
    """The translation of a recording, and whether it holds for other tensors of these shapes."""
    held = [tape.tensors[at] for at in sorted(_by_content(tape))]
    shapes = tuple((tensor.shape, tensor.dtype) for tensor in tape.tensors)
    key = (text, shapes, tokens_of(held))
    found = _SCORES.get(key)
    if found is not None:
        return found, True
    values = [
        stand_in(tensor, at) if tensor.is_floating_point() else readable(tensor, "score_mod")
        for at, tensor in enumerate(tape.tensors)
    ]
    mask = translated(text, tape.places, True, [given(tensor) for tensor in values], place_of(fn), "score_mod")
    names = mask.captures()
    if any(not name[1:].isdigit() for name in names):
        file, line = place_of(fn)
        what = "score_mod: a tensor is read in a way that has no gradient here"
        raise RecordingError("captured", what, "read it by indices: `table[q_idx]`", file=file, line=line)
    order = [int(name[1:]) for name in names]
    ints = [at for at, which in enumerate(order) if not values[which].is_floating_point()]
    found = Score(mask, order, ints, held)
    # equal tensors become one: then the translation does not say which of them is read where
    whole = set(order) >= set(range(len(values))) - _by_content(tape)
    if whole and all(version(tensor) != -1 for tensor in held):
        bounded(_SCORES)
        _SCORES[key] = found
        return found, True
    return found, False


def _by_content(tape: Any) -> set[int]:
    """Tensors on whose values the translation depends: float tensors of a score mod are always read."""
    return {at for at in tape.whole if not tape.tensors[at].is_floating_point()}
