# SPDX-License-Identifier: MIT
"""The exported designs: their lengths, grids and layers, and the choice for a call.

Must not know models or where attention is called.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.nn.attention.flex_attention import create_mask

from . import settings
from .cache import Newest
from .grids import alike, plain
from .pickled import maker

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn.attention.flex_attention import BlockMask

    from .aliases import Axes, Grids, Mods

# Number of cached block masks per design: one bucket of shapes each, on few devices.
KEPT = 32
_making = Lock()


class Design:
    """One exported module with its sidecar.json."""

    def __init__(self, file: str | Path, module: ModuleType | None = None) -> None:
        self.file = Path(file).resolve()
        said = settings.read(self.file)
        self.said = said
        self.name = said.get("design", said["module"])
        self.module = module or _imported(self.file.parent.joinpath(said["module"]).resolve())
        self.lengths = (self.module.Q_LEN, self.module.KV_LEN)
        self.shapes = os.environ.get("MASKLOOM_SIDECAR_SHAPES") or said.get("shapes", "exact")
        # a table that the mods read ends with the design's lengths
        self.tables = said.get("tables", True)
        self.cross = said.get("attention", "self") == "cross"
        self.axes = tuple((name, tuple(grid)) for name, grid in said.get("axes", {}).get("q", []))
        # shapes of the segments with grids, without extents of 1
        self.grids: Grids = plain(grid for _, grid in self.axes)
        self.layers = settings.pattern(said.get("layers") or "", f'"layers" in {self.file}')
        self.key = f"{self.module.__name__.rsplit('.', 1)[-1]}_{_number(self.file)}"
        self.blocks = self._beside("_blocks.safetensors")
        follows = self._beside("_axes.py")
        self.follows = _imported(follows) if follows is not None and self.grids else None
        self.kernel = self._beside("_kernel.py")
        # tensors of a model that its score_mod reads instead of the exported ones
        self.learned: dict[str, Tensor] = {}
        # the adapter that applied it to a model
        self.opener: str | None = None
        # The result of `make`, computed once for each key; the least recently used is dropped.
        self.keep = Newest(KEPT)

    def __reduce__(self) -> tuple[Any, ...]:
        return maker(self.opener), ("designs", "design_of", str(self.file))

    def __deepcopy__(self, memo: Any) -> Design:
        return self

    def _beside(self, end: str) -> Path | None:
        """The file next to the module with its name and this ending; None if it does not exist."""
        module = Path(str(self.module.__file__))
        file = module.with_name(f"{module.stem}{end}")
        return file if file.is_file() else None

    def fits(self, q_len: int, kv_len: int) -> bool:
        """Whether the design is defined at these lengths."""
        inside = q_len <= self.lengths[0] and kv_len <= self.lengths[1]
        return (q_len, kv_len) == self.lengths or self.shapes == "any" and (inside or not self.tables)

    def begins(self, q_len: int, end: int, grids: Grids | None, assume: bool) -> bool:
        """Whether the last q_len of `end` tokens of one sequence are tokens of the design, as its beginning is."""
        if end > self.lengths[0] or os.environ.get("MASKLOOM_SIDECAR_SHAPES") == "exact":
            return False
        if not self.grids or q_len == end:
            return not self.grids
        if len(self.axes) > 1 or grids is None and not assume:
            return False
        # frames of a video, one after another: whole slices of the grid's slowest axis
        grid = self.axes[0][1]
        here = grid if grids is None else alike(grids[0], len(grid)) if len(grids) == 1 else None
        slice_ = math.prod(grid[1:])
        return here is not None and here[1:] == grid[1:] and q_len % slice_ == end % slice_ == 0

    def mods(self, device: torch.device) -> Mods:
        """mask_mod and score_mod on a device."""
        return cast("Mods", self.module.make_mods(device))

    def dense(self, device: torch.device, q_len: int, kv_len: int) -> Tensor:
        """The dense mask at these lengths."""
        return cast("Tensor", self.module.make_mask(device, q_len, kv_len))

    def block_mask(self, device: torch.device, q_len: int, kv_len: int) -> BlockMask | None:
        """The BlockMask at these lengths, created once for each; None if every cell is kept."""
        made = self.keep(("plain", str(device), q_len, kv_len), lambda: self._block_mask(device, q_len, kv_len))
        return cast("BlockMask | None", made)

    def _block_mask(self, device: torch.device, q_len: int, kv_len: int) -> BlockMask | None:
        # PyTorch 2.15 notes in one place for all threads that it makes a block mask, and fails where two do at once
        with _making:
            if self.blocks is not None and (q_len, kv_len) == self.lengths:
                return cast("BlockMask", self.module.load_block_mask(self.blocks, device))
            return cast("BlockMask | None", self.module.make_block_mask(device, q_len, kv_len))


def _number(file: object) -> int:
    return zlib.crc32(str(file).encode())


def _imported(file: Path) -> ModuleType:
    name = f"maskloom_design_{file.stem}"
    known = sys.modules.get(name)
    if known is not None and Path(str(known.__file__)).resolve() != file:
        # another export with the same name
        name = f"{name}_{_number(file)}"
        known = sys.modules.get(name)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"maskloom: {file} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_designs: dict[str, Design] = {}


def design_of(file: str | Path, module: ModuleType | None = None) -> Design:
    """The design of a sidecar.json, one object for each file."""
    key = str(Path(file).resolve())
    found = _designs.get(key)
    if found is None or (module is not None and found.module is not module):
        found = _designs[key] = Design(key, module)
    return found


def of_environment() -> list[Design]:
    """The designs that MASKLOOM_SIDECAR names."""
    return [design_of(file) for file in settings.files()]


class Choice:
    """The design of a call, or the reason why it has none."""

    def __init__(self, design: Any = None, reason: str | None = None) -> None:
        self.design = design
        # None without a design: no design is meant for this call
        self.reason = reason


class At:
    """A design whose patterns follow other axes than its own: replaces a Design in a plan."""

    def __init__(self, design: Any, axes: Axes) -> None:
        self.design = design
        self.axes = axes
        tokens = sum(math.prod(grid) for _, grid in axes)
        self.lengths = (tokens, tokens)
        self.module = design.module
        self.name = design.name
        self.cross = design.cross
        self.learned = design.learned
        self.kernel = None
        self.key = "_".join([design.key, *("x".join(map(str, grid)) for _, grid in axes)])
        self.grids = plain(grid for _, grid in axes)

    def keep(self, key: object, make: Callable[[], Any]) -> Any:
        """As Design.keep, next to the design's own values."""
        return self.design.keep((self.axes, key), make)

    def mods(self, device: torch.device) -> Mods:
        """mask_mod and score_mod on a device. Errors: ValueError if the patterns do not fit these axes."""
        follows = self.design.follows
        assert follows is not None, "a design without patterns has no other axes"
        return cast("Mods", self.keep(("mods", str(device)), lambda: follows.mods_at(self.axes, device)))

    def dense(self, device: torch.device, q_len: int, kv_len: int) -> Tensor:
        """The dense mask."""
        mask_mod = self.mods(device)[0]
        if mask_mod is None:
            return torch.ones(1, 1, q_len, kv_len, dtype=torch.bool, device=device)
        return create_mask(mask_mod, self.module.BATCH, self.module.HEADS, q_len, kv_len, device=str(device))

    def block_mask(self, device: torch.device, q_len: int, kv_len: int) -> BlockMask | None:
        """The BlockMask, created once; None if every cell is kept."""
        mask_mod = self.mods(device)[0]
        if mask_mod is None:
            return None
        extents = (self.module.BATCH, self.module.HEADS)
        make = self.module.block_mask_of
        made = self.keep(("plain", str(device)), lambda: make(mask_mod, *extents, q_len, kv_len, device))
        return cast("BlockMask", made)


AnyDesign = Design | At


def _followed(design: Design, tokens: int, grids: Grids | None) -> tuple[At | None, str | None]:
    """The design over the axes of a call; if impossible, a description of the call's axes."""
    if design.follows is None or design.shapes == "exact" and os.environ.get("MASKLOOM_SIDECAR_SHAPES"):
        return None, None
    if grids is None:
        return None, "whose grid cannot be read"
    wanted = [grid for _, grid in design.axes if len(grid) > 1]
    matched = [alike(grid, len(want)) for grid, want in zip(grids, wanted, strict=False)]
    found = [grid for grid in matched if grid is not None]
    beside = [name for name, grid in design.axes if len(grid) == 1]
    rest = tokens - sum(math.prod(grid) for grid in grids)
    if len(grids) != len(wanted) or len(found) != len(wanted):
        return None, f"over a grid of {_text(plain(grids))}"
    if len(beside) > 1 or (rest > 0) != bool(beside) or rest < 0:
        return (
            None,
            f"over a grid of {_text(plain(grids))} and {rest} tokens beside it" if rest >= 0 else "over a part of the grid",
        )
    rests, next_grid = iter([rest]), iter(found)
    axes = tuple((name, (next(rests),) if len(grid) == 1 else next(next_grid)) for name, grid in design.axes)
    made: At = design.keep(("at", axes), lambda: At(design, axes))
    try:
        made.mods(torch.device("cpu"))
    except (ValueError, AssertionError) as why:
        return None, f"over {_axes(axes)}, which its patterns refuse: {why}"
    return made, None


def _axes(axes: Axes) -> str:
    return " | ".join(f"{name} {'x'.join(map(str, grid))}" for name, grid in axes)


def choose(
    designs: list[Design],
    q_len: int,
    kv_len: int,
    crosses: bool,
    grids: Callable[[int], Grids | None],
    batch: int,
    heads: int,
    assume: bool = False,
    part: int | None = None,
) -> Choice:
    """The design among `designs` for a call over q_len x kv_len tokens.

    `crosses`: from one sequence to another. `grids`: a function of the number of query tokens that gives the shapes of the
    call's grids, or None if they cannot be read. batch and heads are the query's. `part`: the call has so many queries, the last
    ones of a sequence of q_len tokens.
    """
    meant = [d for d in designs if d.cross == crosses]
    if not meant:
        return Choice()
    part = None if part == q_len and any(d.grids for d in meant) else part
    fitting: list[AnyDesign] = [d for d in meant if d.lengths == (q_len, kv_len)] if part in (None, q_len) else []
    fitting = fitting or [d for d in meant if part is not None and d.begins(part, q_len, grids(part), assume)]
    begins = part is not None and bool(fitting)
    fitting = fitting or [d for d in meant if d.fits(q_len, kv_len) and (part is None or not d.grids)]
    reason = None
    # a padded prompt has more queries than its sequence has tokens
    if not fitting and part is not None and part < q_len:
        lengths = " or ".join(dict.fromkeys("{} x {}".format(*d.lengths) for d in meant))
        grid = f" over a grid of {_text(meant[0].grids)}" if meant[0].grids else ""
        reason = f"the last {part} of {q_len} tokens of a sequence, whose keys are cached: the design is made for {lengths}{grid}"
        reason = f"left as it is: {reason}"
    elif not fitting:
        lengths = " or ".join(dict.fromkeys("{} x {}".format(*d.lengths) for d in meant))
        reason = f"attention over {q_len} x {kv_len} tokens is left as it is: the design is made for {lengths}"
    elif not begins:
        fitting, reason = _of_grid(fitting, grids(q_len), assume)
    if not fitting and part in (None, q_len) and q_len == kv_len and not crosses:
        followed = [_followed(d, q_len, grids(q_len)) for d in meant]
        fitting = [d for d, _ in followed if d is not None]
        words = next((word for _, word in followed if word is not None), None)
        reason = f"{reason} and what it follows; the call is {words}" if words else reason
    if not fitting:
        return Choice(reason=reason)
    served, reason = _served(fitting, batch, heads)
    if not served:
        return Choice(reason=reason)
    if len(served) > 1:
        names = " and ".join(d.name for d in served)
        return Choice(reason=f"left as it is: {names} are made for the same {q_len} x {kv_len} tokens and layers: choose one")
    return Choice(served[0])


def _of_grid(designs: list[AnyDesign], grids: Grids | None, assume: bool) -> tuple[list[AnyDesign], str | None]:
    """Those whose grids are the call's; why there are none."""
    reason: str | None = None
    found: list[AnyDesign] = []
    for design in designs:
        if not design.grids or (grids is None and assume) or grids is not None and plain(grids) == design.grids:
            found.append(design)
        elif grids is None:
            reason = (
                f"left as it is: the design is made for a grid of {_text(design.grids)}, and this model's grid cannot be "
                'read: MASKLOOM_SIDECAR_GRID=assume, or use(..., grid="assume"), takes it to be the same'
            )
        else:
            here, made = _text(plain(grids)), _text(design.grids)
            reason = f"left as it is: as many tokens, but of a grid of {here}: the design is made for {made}"
    return found, reason


def _text(grids: Grids) -> str:
    return " + ".join("x".join(str(n) for n in grid) for grid in grids) or "no grid"


def _served(designs: list[AnyDesign], batch: int, heads: int) -> tuple[list[AnyDesign], str | None]:
    """Those that can serve so many batch entries and heads."""
    reason: str | None = None
    found: list[AnyDesign] = []
    for design in designs:
        for what, wanted, got in (("batch entries", design.module.BATCH, batch), ("heads", design.module.HEADS, heads)):
            if wanted is not None and wanted != got:
                reason = f"left as it is: the design has a mask for each of {wanted} {what}, but the call has {got}"
                break
        else:
            found.append(design)
    return found, reason
