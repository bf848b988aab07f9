

class Segment:
    """A run of tokens with the shape of a grid, slowest extent first."""

    def __init__(self, start: int, grid: tuple[int, ...]) -> None:
        self.start = start
        self.len = math.prod(grid)
        self.end = start + self.len
        self.t, self.h, self.w = ((1, 1, 1) + grid)[-3:]


def _segments(axes: Axes) -> list[Segment]:
    """Errors: ValueError for other segments than the design's."""
    kinds = [(name, len(grid)) for name, grid in axes]
    if kinds != [(name, len(grid)) for name, grid in AXES] or any(n < 1 for _, grid in axes for n in grid):
        raise ValueError(f"the design is made for segments like {AXES}, not {axes}")
    found: list[Segment] = []
    for _, grid in axes:
        found.append(Segment(found[-1].end if found else 0, grid))
    return found


