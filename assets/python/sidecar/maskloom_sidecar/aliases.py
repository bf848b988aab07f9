# SPDX-License-Identifier: MIT
"""Names of types that several modules share."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

# extents, slowest first
Grid = tuple[int, ...]
Grids = tuple[Grid, ...]
# names and extents of segments
Axes = tuple[tuple[str, Grid], ...]
# (q_offset, kv_offset, end) in a design
Place = tuple[int, int, int]
# batch entries and heads between which a mask differs; None: it is the same for all
Extents = tuple[int | None, int | None]
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
Mods = tuple[MaskMod | None, ScoreMod | None]
Inputs = Mapping[str, Any] | Sequence[Any]
# the selection of layers, by name
Wanted = str | re.Pattern[str] | Callable[[str], object] | None
