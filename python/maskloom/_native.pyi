"""Types of the compiled module. It takes addresses of memory: only this package calls it."""

from collections.abc import Sequence

__version__: str

Given = tuple[int, Sequence[int], str]

class Refused(Exception): ...
class Panicked(Exception): ...

class Mask:
    def captures(self) -> list[str]: ...
    def depends(self) -> tuple[bool, bool]: ...
    def rebound(self, tensors: Sequence[Given]) -> Mask: ...

class Blocks:
    def write(self, lists: list[tuple[bool, int, int, int]]) -> None: ...
    def kept_cells(self) -> int: ...

def translate(text: str, score: bool, names: list[str], tensors: Sequence[Given]) -> Mask: ...
def build(mask: Mask, groups: tuple[int, int], lengths: tuple[int, int], block: tuple[int, int]) -> Blocks: ...
def room(what: str, bytes: int) -> None: ...
def panic_on_purpose(elsewhere: bool) -> None: ...

class Attention:
    def learned(self) -> list[str]: ...
    def forward(self, qkv: tuple[Given, Given, Given], out: int, lse: int, max: int) -> None: ...
    def backward(
        self,
        qkv: tuple[Given, Given, Given],
        results: tuple[Given, Given],
        d_out: Given,
        d_lse: Given | None,
        gradients: tuple[int, int, int],
        learned: list[int],
    ) -> None: ...

def prepare(
    mask: Mask | None,
    score: Mask | None,
    extents: list[int],
    dtype: str,
    scale: float | None,
    max_scores: bool,
    differentiable: bool,
) -> Attention: ...

Place = tuple[int, str | None, Sequence[str]]

class Pass:
    def live(self) -> list[int]: ...
    def learned(self) -> list[tuple[int, int]]: ...
    def kernel(self) -> str: ...
    def bytes(self) -> tuple[int, int, int]: ...
    def write(self, address: int, to: int) -> None: ...
    def load(self, address: int) -> Launches: ...

class Launches:
    def run(self, stream: int, scratch: int, counter: int, call: Sequence[int]) -> None: ...

def forward_pass(
    mask: Mask | None,
    score: Mask | None,
    extents: list[int],
    dtype: str,
    scale: float | None,
    max_scores: bool,
    differentiable: bool,
    strides: list[list[int]],
    place: Place,
) -> Pass: ...
def backward_pass(
    mask: Mask | None,
    score: Mask | None,
    extents: list[int],
    dtype: str,
    scale: float | None,
    ways: tuple[bool, bool],
    strides: list[list[int]],
    place: Place,
) -> Pass: ...
def merge_pass(dtype: str, sizes: list[int], place: Place) -> Pass: ...
def block_mask_pass(
    mask: Mask,
    groups: tuple[int, int],
    lengths: tuple[int, int],
    block: tuple[int, int],
    places: list[int | None],
    place: Place,
) -> Pass: ...

class Tensors:
    def all(self) -> list[tuple[str, str, list[int], bytes]]: ...

class Design:
    name: str
    text: str
    has_mask: bool
    has_score: bool
    lengths: tuple[int, int]
    batch: int
    heads: tuple[int, int]
    block_size: tuple[int, int]
    scale: float | None
    tensors: Tensors

def plan_parallel(request: str) -> str: ...
def count(text: str) -> int | None: ...
def design(text: str | None, preset: str | None, lengths: tuple[int, int] | None) -> Design: ...
def explain(mask: Mask, cell: tuple[int, int, int, int], score: float) -> list[tuple[str, str, int, bool]]: ...
def printed(mask: Mask) -> tuple[str, Tensors]: ...
def picture(
    mask: Mask, place: tuple[int, int], rows: tuple[int, int], cols: tuple[int, int], size: tuple[int, int]
) -> tuple[bytes, bool]: ...
def shared_page(
    title: str,
    picture: bytes,
    shares: bytes,
    pairs: tuple[list[tuple[str, str]], list[tuple[str, str]]],
    code: str,
    data: str,
    mask: Mask | None,
    score: Mask | None,
    lengths: tuple[int, int],
    extents: tuple[int, int],
    blocks: tuple[int, int],
) -> str: ...
