"""The exported designs: what each is made for, and which one a call gets.

Must not know models or where attention is called.
"""

import importlib.util
import os
import sys
import zlib
from collections import OrderedDict
from pathlib import Path

from . import settings

# Block masks kept for each design: a bucket of shapes each, on few devices.
KEPT = 32


class Design:
    """One exported module and what its sidecar.json says."""

    def __init__(self, file, module=None):
        self.file = Path(file).resolve()
        said = settings.read(self.file)
        self.said = said
        self.name = said.get("design", said["module"])
        self.module = module or _imported(self.file.parent.joinpath(said["module"]).resolve())
        self.lengths = (self.module.Q_LEN, self.module.KV_LEN)
        self.shapes = os.environ.get("MASKLOOM_SIDECAR_SHAPES") or said.get("shapes", "exact")
        # a table that the mods read ends where the design does
        self.tables = said.get("tables", True)
        self.cross = said.get("attention", "self") == "cross"
        self.q_axis = [tuple(segment[1]) for segment in said.get("axes", {}).get("q", [])]
        self.layers = settings.pattern(said.get("layers") or "", f'"layers" in {self.file}')
        self.key = f"{self.module.__name__.rsplit('.', 1)[-1]}_{_number(self.file)}"
        blocks = Path(self.module.__file__)
        blocks = blocks.with_name(f"{blocks.stem}_blocks.safetensors")
        self.blocks = blocks if blocks.is_file() else None
        self.made = OrderedDict()

    def __reduce__(self):
        return design_of, (str(self.file),)

    def __deepcopy__(self, _):
        return self

    @property
    def grids(self):
        """Shapes of the segments that are grids, extents of 1 left out."""
        return tuple(g for g in (tuple(n for n in grid if n > 1) for grid in self.q_axis) if len(g) > 1)

    def fits(self, q_len, kv_len, prefix=False):
        """Whether it means something at these lengths; `prefix`: the call is the design's beginning."""
        if (q_len, kv_len) == self.lengths:
            return True
        inside = q_len <= self.lengths[0] and kv_len <= self.lengths[1]
        if prefix and inside and not self.grids:
            return True
        return self.shapes == "any" and (inside or not self.tables)

    def mods(self, device):
        """mask_mod and score_mod on a device."""
        return self.module.make_mods(device)

    def block_mask(self, device, q_len, kv_len):
        """The BlockMask at these lengths, made once for each; None where everything is kept."""
        return self.keep(("plain", str(device), q_len, kv_len), lambda: self._block_mask(device, q_len, kv_len))

    def _block_mask(self, device, q_len, kv_len):
        if self.blocks is not None and (q_len, kv_len) == self.lengths:
            return self.module.load_block_mask(self.blocks, device)
        return self.module.make_block_mask(device, q_len, kv_len)

    def keep(self, key, make):
        """What `make` gives, made once for a key; the oldest is forgotten when there are many."""
        if key in self.made:
            self.made.move_to_end(key)
        else:
            self.made[key] = make()
            while len(self.made) > KEPT:
                self.made.popitem(last=False)
        return self.made[key]


def _number(file):
    return zlib.crc32(str(file).encode())


def _imported(file):
    name = f"maskloom_design_{file.stem}"
    known = sys.modules.get(name)
    if known is not None and Path(known.__file__).resolve() != file:
        # another export of the same name
        name = f"{name}_{_number(file)}"
        known = sys.modules.get(name)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_designs = {}


def design_of(file, module=None):
    """The design of a sidecar.json, one object for each file."""
    key = str(Path(file).resolve())
    found = _designs.get(key)
    if found is None or (module is not None and found.module is not module):
        found = _designs[key] = Design(key, module)
    return found


def of_environment():
    """The designs that MASKLOOM_SIDECAR names."""
    return [design_of(file) for file in settings.files()]


class Choice:
    """The design that a call gets, or why it gets none."""

    def __init__(self, design=None, reason=None):
        self.design = design
        # None with no design: the call is none that a design is meant for
        self.reason = reason


def choose(designs, q_len, kv_len, crosses, grids, batch, heads, assume=False, prefix=False):
    """One of `designs` for a call over q_len x kv_len tokens.

    `crosses`: from one sequence to another. `grids`: a function of the number of query tokens that gives the shapes of the
    call's grids, or None where they cannot be read. batch and heads are the query's.
    """
    meant = [d for d in designs if d.cross == crosses]
    if not meant:
        return Choice()
    fitting = [d for d in meant if d.lengths == (q_len, kv_len)]
    fitting = fitting or [d for d in meant if d.fits(q_len, kv_len, prefix)]
    if not fitting:
        lengths = " or ".join(dict.fromkeys("{} x {}".format(*d.lengths) for d in meant))
        return Choice(reason=f"attention over {q_len} x {kv_len} tokens is left as it is: the design is made for {lengths}")
    fitting, reason = _of_grid(fitting, grids(q_len), assume)
    if not fitting:
        return Choice(reason=reason)
    served, reason = _served(fitting, batch, heads)
    if not served:
        return Choice(reason=reason)
    if len(served) > 1:
        names = " and ".join(d.name for d in served)
        return Choice(reason=f"left as it is: {names} are made for the same {q_len} x {kv_len} tokens and layers: choose one")
    return Choice(served[0])


def _of_grid(designs, grids, assume):
    """Those whose grids are the call's; why there are none."""
    reason, found = None, []
    for design in designs:
        if not design.grids or (grids is None and assume) or grids == design.grids:
            found.append(design)
        elif grids is None:
            reason = (
                f"left as it is: the design is made for a grid of {_text(design.grids)}, and this model's grid cannot be "
                "read: MASKLOOM_SIDECAR_GRID=assume, or use(..., grid=\"assume\"), takes it to be the same"
            )
        else:
            reason = f"left as it is: as many tokens, but of a grid of {_text(grids)}: the design is made for {_text(design.grids)}"
    return found, reason


def _text(grids):
    return " + ".join("x".join(str(n) for n in grid) for grid in grids) or "no grid"


def _served(designs, batch, heads):
    """Those that can serve so many batch entries and heads."""
    reason, found = None, []
    for design in designs:
        for what, wanted, got in (("batch entries", design.module.BATCH, batch), ("heads", design.module.HEADS, heads)):
            if wanted is not None and wanted != got:
                reason = f"left as it is: the design has a mask for each of {wanted} {what}, and here are {got}"
                break
        else:
            found.append(design)
    return found, reason
