"""Records a mod: the user's function is called once, on values that write down what is done with them.

Invariant: a recording holds every operation on the indices in order, as lines of text, and every tensor that they read.
What the function does without the indices happens as always. What cannot be written down is a `RecordingError` at the
user's own line, also where the function catches exceptions.
"""

from __future__ import annotations

import operator
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import torch
from torch.overrides import TorchFunctionMode

from ._operations import COMPARISONS, INFIX, PREFIX, SEVERAL, TYPES, VALUES, written
from .errors import MaskloomError, RecordingError, a_kind

USE_WHERE = "a mod is recorded for all cells at once: use `torch.where(condition, a, b)`, `&`, `|` and `~`"


#: Attributes that an index has as any tensor, known without its value.
KNOWN = (
    *("dtype", "shape", "ndim", "layout", "itemsize", "nbytes"),
    *("is_sparse", "is_quantized", "is_nested", "is_mkldnn"),
)
#: Methods of that kind.
KNOWN_METHODS = frozenset(
    {"size", "dim", "ndimension", "numel", "nelement", "element_size", "is_floating_point", "is_complex", "is_signed"}
)
#: Bytes of an expanded tensor above which it is read from what it stores.
EXPANDED = 256 << 20
#: What a tensor tells that depends on its extents, and not on its contents.
EXTENTS = frozenset({"shape", "size", "numel", "nelement", "nbytes", "stride", "is_contiguous", "__len__"})
#: Those that depend on its strides, too.
LAID = frozenset({"stride", "is_contiguous"})
#: What a tensor tells that depends on neither.
KINDS = frozenset(
    {
        *("ndim", "dim", "ndimension", "dtype", "device", "layout", "itemsize", "element_size"),
        *("is_floating_point", "is_complex", "is_signed", "is_cuda", "is_cpu", "is_sparse", "is_nested", "type"),
    }
)
#: Attributes that are other values.
MOVED = ("T", "mT", "H", "mH", "real")

#: What stands behind a recorded value: a tensor without memory, from which no function of PyTorch can read a value.
_NOTHING = torch.empty((), dtype=torch.int64, device="meta")


class Recorder(torch.Tensor):
    """A value of a mod that is known only cell by cell: an index, a score, or what follows from them.

    It is a tensor, because mods ask for that, and has no memory, so that a function that escaped recording fails."""

    _m_tape: Tape
    _m_name: str
    _m_op: tuple[Any, ...] | None
    _m_shadow: torch.Tensor | None

    __hash__ = object.__hash__
    __array_ufunc__ = None  # NumPy's scalars leave operators to this class

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        tape = _tape_of(args, kwargs)
        if tape is None:
            raise MaskloomError("recording", "a function of PyTorch was called without the values of this recording")
        return tape.function(func, args, kwargs or {})

    def __getitem__(self, index: Any) -> Any:
        tape = self._m_tape
        made = tape.emit(f"{self._m_name}[{tape.index(index)}]", (operator.getitem, (self, index), None))
        part = tape.parts.get(self._m_name)
        if part is not None:
            tape.reads(made, part[0], part[1], index)
        return made

    def __setitem__(self, index: Any, value: Any) -> None:
        tape = self._m_tape
        tape.lines.append(f"{self._m_name}[{tape.index(index)}] = {tape.text(value)}")
        tape.placed()

    def _known(self) -> torch.Tensor:
        """A value of the same shape and dtype: the operation done once more, at the first cell."""
        self._m_tape.sized = True
        if self._m_shadow is None:
            if self._m_op is None:
                raise MaskloomError("recording", "a value without an operation")
            function, args, kwargs = self._m_op
            self._m_shadow = function(*_known(args), **_known(kwargs or {}))
        return self._m_shadow

    def __len__(self) -> int:
        shape = self._known().shape
        if not shape:
            self._m_tape.refuse("value-of-index", "len() of a single value", "an index has no dimensions")
        return int(shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def __bool__(self) -> NoReturn:
        self._m_tape.refuse(
            "branch-on-index", "`if`, `while`, `and`, `or` or `not` asks whether a value of a cell is true", USE_WHERE
        )

    def __int__(self) -> NoReturn:
        self._m_tape.refuse("value-of-index", "int() asks for the value of an index", "use `.to(torch.int64)`")

    def __float__(self) -> NoReturn:
        self._m_tape.refuse("value-of-index", "float() asks for the value of an index", "use `.to(torch.float32)`")

    def __index__(self) -> NoReturn:
        self._m_tape.refuse(
            "value-of-index",
            "a list, range or array outside PyTorch is indexed by an index of the mod",
            "make it a tensor outside of the mod: `table = torch.as_tensor(values)`, then `table[q_idx]`",
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._m_tape.refuse(
            "value-of-index", "NumPy asks for the value of an index", "use PyTorch's function of the same name"
        )

    def __abs__(self) -> Any:
        return self._m_tape.emit(f"abs({self._m_name})", (abs, (self,), None))

    def __contains__(self, value: Any) -> NoReturn:
        self._m_tape.refuse("value-of-index", "`in` asks for values of a cell", "use `torch.isin(value, tensor)`")

    def _printed(self, *_: Any, **__: Any) -> NoReturn:
        self._m_tape.refuse(
            "printed-index", "an index was printed or made a string", "remove it: an index has no value here"
        )

    __repr__ = __str__ = __format__ = _printed  # type: ignore[assignment]

    def _copied(self, *_: Any) -> NoReturn:
        self._m_tape.refuse("value-of-index", "a value of a mod was copied or pickled", "use `.clone()`")

    __reduce_ex__ = __deepcopy__ = _copied


def _recorder(tape: Tape, name: str, op: tuple[Any, ...] | None, shadow: torch.Tensor | None = None) -> Recorder:
    made: Recorder = _MAKE(Recorder, _NOTHING)
    made._m_tape, made._m_name, made._m_op, made._m_shadow = tape, name, op, shadow
    return made


_MAKE: Any = torch.Tensor._make_subclass


def _known(of: Any) -> Any:
    if type(of) is Recorder:
        return of._known()
    if isinstance(of, (tuple, list)):
        return type(of)(map(_known, of)) if type(of) in (tuple, list) else of
    if isinstance(of, dict):
        return {key: _known(value) for key, value in of.items()}
    return of


def _by_default(made: Recorder, default: torch.dtype) -> bool:
    """Whether a value, or what it was compared as, has a dtype that follows from the default dtype alone."""
    function, args, kwargs = made._m_op or (None, (), None)
    operands = [*args, *(kwargs or {}).values()]
    known = [_known(one) for one in operands]
    if function is None or any(isinstance(one, torch.Tensor) and one.is_floating_point() for one in known):
        return False
    result = made._known()
    if not isinstance(result, torch.Tensor):
        return False
    return result.dtype is default or result.dtype is torch.bool and any(type(one) is float for one in operands)


def _operators() -> None:
    def infix(sign: str, function: Callable[..., Any], swapped: bool) -> Callable[[Recorder, Any], Recorder]:
        def of(self: Recorder, other: Any) -> Recorder:
            tape = self._m_tape
            text = tape.text(other)
            if swapped:
                return tape.emit(f"{text} {sign} {self._m_name}", (function, (other, self), None))
            return tape.emit(f"{self._m_name} {sign} {text}", (function, (self, other), None))

        return of

    def in_place(sign: str) -> Callable[[Recorder, Any], Recorder]:
        def of(self: Recorder, other: Any) -> Recorder:
            tape = self._m_tape
            tape.lines.append(f"{self._m_name} {sign}= {tape.text(other)}")
            tape.placed()
            return self

        return of

    def known(name: str) -> property:
        return property(lambda self: getattr(self._known(), name))

    def moved(name: str) -> property:
        return property(lambda self: self._m_tape.moved(self, name))

    def prefix(sign: str, function: Callable[..., Any]) -> Callable[[Recorder], Recorder]:
        return lambda self: self._m_tape.emit(f"{sign}{self._m_name}", (function, (self,), None))

    for name, (sign, function) in INFIX.items():
        setattr(Recorder, f"__{name}__", infix(sign, function, False))
        if name not in COMPARISONS:
            setattr(Recorder, f"__r{name}__", infix(sign, function, True))
            setattr(Recorder, f"__i{name}__", in_place(sign))
    for name, (sign, function) in PREFIX.items():
        setattr(Recorder, f"__{name}__", prefix(sign, function))
    for name in KNOWN:
        setattr(Recorder, name, known(name))
    setattr(Recorder, "device", property(lambda self: self._m_tape.device))  # noqa: B010
    for name in MOVED:
        setattr(Recorder, name, moved(name))


_operators()


class Tape:
    """One recording: its lines, the tensors it reads and the places of its lines in the user's source."""

    def __init__(self, device: torch.device, score: bool) -> None:
        self.device = device
        self.lines: list[str] = []
        self.places: list[tuple[types.CodeType | None, int]] = []
        self.tensors: list[torch.Tensor] = []
        #: which tensors are read at single elements alone, so that others of the same shape can take their place
        self.whole: set[int] = set()
        #: values that are tensors with leading dimensions read: the tensor's number and the dimensions left
        self.parts: dict[str, tuple[int, int]] = {}
        self.names: dict[int, str] = {}
        #: large expanded tensors by their ids, with what they store
        self.narrow: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.failed: RecordingError | None = None
        #: whether the function asked for extents of tensors, and what it asked of contents: the lines depend on them
        self.sized = False
        self.looked: str | None = None
        #: whether it asked how a tensor lies in memory
        self.laid = False
        self.score = score
        #: the dtype of floats that are made of ints, where it is not the one in which a mask is computed here
        default = torch.get_default_dtype()
        self.default = None if score or default is torch.float32 else default
        self.zero: torch.Tensor | None = None
        made = [_recorder(self, name, (self._first, (), None)) for name in ("b", "h", "q_idx", "kv_idx")]
        if score:
            made.insert(0, _recorder(self, "score", (lambda: self._first().float(), (), None)))
        self.inputs = made

    def _first(self) -> torch.Tensor:
        """An index at the first cell. On a GPU it is a launch, which few mods need."""
        if self.zero is None:
            device = "cpu" if self.device.type == "meta" else self.device
            self.zero = torch.zeros((), dtype=torch.int64, device=device)
        return self.zero

    def steady(self) -> bool:
        """Whether the lines are those for other tensors of these dtypes and extents, too."""
        return self.looked is None and not self.laid and not self.whole

    def asked(self, func: Callable[..., Any], args: Sequence[Any], result: Any) -> None:
        """Notes what a function told of tensors that is no tensor: what follows from it is a constant of the lines."""
        several = isinstance(result, (tuple, list)) and any(isinstance(one, torch.Tensor) for one in result)
        if isinstance(result, torch.Tensor) or several or not any(isinstance(one, torch.Tensor) for one in args):
            return
        name = getattr(func, "__name__", "function")
        if name == "__get__":
            name = getattr(func.__self__, "__name__", name)  # type: ignore[attr-defined]
        if name in EXTENTS:
            self.sized = True
            self.laid = self.laid or name in LAID
        elif name not in KINDS:
            self.looked = name

    def refuse(self, code: str, message: str, hint: str) -> NoReturn:
        """Raises at the user's line."""
        file, line = _place()
        raise self.fails(RecordingError(code, message, hint, file=file, line=line))

    def fails(self, error: RecordingError) -> RecordingError:
        """Keeps the first error: a mod that catches it is not recorded either."""
        if self.failed is None:
            self.failed = error
        return error

    def placed(self) -> None:
        """Notes where the last line comes from."""
        frame = _user_frame()
        self.places.append((frame.f_code, frame.f_lineno) if frame else (None, 0))

    def emit(self, text: str, op: tuple[Any, ...]) -> Recorder:
        """A new value."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.placed()
        made = _recorder(self, name, op)
        if self.default is not None and _by_default(made, self.default):
            self.refuse(
                "default-dtype",
                f"floats are made here of ints, in PyTorch's default dtype, which is {self.default}",
                "write `.float()` at the ints, or `torch.set_default_dtype(torch.float32)` while the mask is made",
            )
        return made

    def moved(self, of: Recorder, name: str) -> Recorder:
        """`of.T` and its like."""
        return self.emit(f"{of._m_name}.{name}", (getattr, (of, name), None))

    def tensor(self, tensor: torch.Tensor, whole: bool = True) -> str:
        """The name of a tensor that is read."""
        name = self.names.get(id(tensor))
        if name is None:
            name = f"t{len(self.tensors)}"
            self.names[id(tensor)] = name
            self.tensors.append(tensor)
        if whole:
            self.whole.add(int(name[1:]))
        return name

    def text(self, value: Any) -> str:
        """A value as an operand."""
        kind = type(value)
        if kind is Recorder:
            if value._m_tape is not self:
                self.refuse(
                    "foreign-index", "an index of another call of the mod is used", "use this call's own indices"
                )
            return str(value._m_name)
        if kind is int:
            return str(value) if value >= 0 else f"({value})"
        if kind is bool or value is None or value is Ellipsis:
            return "..." if value is Ellipsis else str(value)
        if kind is float:
            return f"({value!r})" if value - value == 0 else f'float("{value}")'
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        return self.other(value)

    def other(self, value: Any) -> str:
        """Less usual operands."""
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            return str(value)
        if isinstance(value, type) and value in TYPES:
            return TYPES[value]
        if isinstance(value, (str, torch.device)):
            return repr(str(value))
        if isinstance(value, slice):
            return f"slice({self.text(value.start)}, {self.text(value.stop)}, {self.text(value.step)})"
        if isinstance(value, tuple):
            return "(" + "".join(f"{self.text(item)}, " for item in value) + ")"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.text, value)) + "]"
        if isinstance(value, (bool, int)):
            return self.text(int(value))
        if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
            if getattr(value, "shape", None) == () and hasattr(value, "item"):
                item = value.item()
                return self.text(float(value) if type(item) is type(value) else item)
            return self.tensor(torch.as_tensor(value, device="cpu"))
        if isinstance(value, float):
            return self.text(float(value))
        what = f"{a_kind(value)} cannot be computed with an index"
        return self.refuse("operand", what, "use numbers, tensors or other indices")

    def index(self, index: Any) -> str:
        """An index, written as a subscript."""
        items = index if isinstance(index, tuple) else (index,)
        return ", ".join(_slice(self, item) for item in items) if items else "()"

    def read(self, tensor: torch.Tensor, index: Any) -> Recorder:
        """`tensor[index]`."""
        plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided and not tensor.is_nested
        if plain and tensor.nbytes > EXPANDED:
            stored = self.stored(tensor, index if isinstance(index, tuple) else (index,))
            if stored is not None:
                return stored
        name = self.tensor(tensor, False)
        made = self.emit(f"{name}[{self.index(index)}]", (operator.getitem, (tensor, index), None))
        self.reads(made, int(name[1:]), tensor.dim(), index)
        return made

    def stored(self, tensor: torch.Tensor, items: tuple[Any, ...]) -> Recorder | None:
        """An element of a large expanded tensor, read from what it stores, which has one entry in place of many.

        None: it is not expanded, or may get a gradient, or is not read at an element."""
        repeated = [at for at, stride in enumerate(tensor.stride()) if stride == 0 and tensor.size(at) > 1]
        elements = len(items) == tensor.dim() and all(type(item) is Recorder or type(item) is int for item in items)
        if not repeated or not elements or tensor.requires_grad:
            return None
        known = self.narrow.get(id(tensor))
        if known is None:
            one = tuple(slice(0, 1) if at in repeated else slice(None) for at in range(tensor.dim()))
            # the former is held so that no other tensor takes its id
            known = self.narrow[id(tensor)] = (tensor, tensor[one])
        name = self.tensor(known[1], False)
        texts = [self.text(item) for item in items]
        for at in repeated:
            # 0, or 1 where the index is outside, which is outside there, too
            extent = tensor.size(at)
            texts[at] = f"(({texts[at]} < {-extent}) | ({texts[at]} >= {extent})).to(torch.int64)"
            if type(items[at]) is int:
                texts[at] = str(int(not -extent <= items[at] < extent))
        return self.emit(f"{name}[{', '.join(texts)}]", (operator.getitem, (tensor, items), None))

    def reads(self, made: Recorder, tensor: int, dims: int, index: Any) -> None:
        """Notes how a tensor is read: element by element, or otherwise."""
        items = index if isinstance(index, tuple) else (index,)
        if not all(type(item) is Recorder or type(item) is int for item in items):
            self.whole.add(tensor)
        elif len(items) < dims:
            self.parts[made._m_name] = (tensor, dims - len(items))

    def text_of(self, result: str) -> str:
        """The recording as a function of text."""
        lines = (*self.lines, f"return {result}")
        for part, (tensor, _) in self.parts.items():
            # a part that is not indexed further is used with all its elements
            if any(re.search(rf"\b{part}\b(?! =)(?!\[)", line) for line in lines):
                self.whole.add(tensor)
        names = "score, b, h, q_idx, kv_idx" if self.score else "b, h, q_idx, kv_idx"
        body = "\n    ".join(lines)
        return f"import torch\ndef recorded({names}):\n    {body}\n"

    def method(self, of: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """`of.name(...)`."""
        made = self.emit(
            f"{self.text(of)}.{name}({self.arguments(args, kwargs)})", (_method(name), (of, *args), kwargs)
        )
        return self.several(made) if name in SEVERAL else made

    def several(self, made: Recorder) -> Any:
        """The parts of a result that may be a tuple."""
        known: Any = made._known()
        if isinstance(known, torch.Tensor):
            return made
        parts = [self.emit(f"{made._m_name}[{at}]", (operator.getitem, (made, at), None)) for at in range(len(known))]
        return type(known)(parts)

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """Arguments of a call."""
        parts = [self.text(value) for value in args]
        parts += [f"{name}={self.text(value)}" for name, value in kwargs.items() if name != "device"]
        return ", ".join(parts)

    def function(self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A function of PyTorch with an index among its arguments."""
        how, name = written(func)
        if how == "read":
            if type(args[0]) is not Recorder:
                return self.read(args[0], args[1])
            return args[0][args[1]]
        if how == "write":
            self.refuse("write", "a captured tensor is written inside the mod", "write it before the mask is made")
        if how == "method" and name in KNOWN_METHODS and type(args[0]) is Recorder:
            return getattr(args[0]._known(), name)(*args[1:], **kwargs)
        if how == "value" or name in VALUES:
            self.refuse("value-of-index", f"{name} asks for the value of an index", USE_WHERE)
        if how == "infix":
            sign, function = INFIX[name]
            return self.emit(f"{self.text(args[0])} {sign} {self.text(args[1])}", (function, tuple(args), None))
        if how == "swapped":
            sign, function = INFIX[name]
            return self.emit(f"{self.text(args[1])} {sign} {self.text(args[0])}", (function, (args[1], args[0]), None))
        if how == "prefix":
            sign, function = PREFIX[name]
            return self.emit(f"{sign}{self.text(args[0])}", (function, tuple(args), None))
        if how == "method":
            return self.method(args[0], name, args[1:], kwargs)
        made = self.emit(f"{name}({self.arguments(args, kwargs)})", (func, tuple(args), kwargs))
        return self.several(made) if name.rpartition(".")[2] in SEVERAL else made


def _slice(tape: Tape, item: Any) -> str:
    if isinstance(item, slice):
        parts = ["" if part is None else tape.text(part) for part in (item.start, item.stop)]
        return ":".join(parts) + ("" if item.step is None else f":{tape.text(item.step)}")
    return tape.text(item)


def _method(name: str) -> Callable[..., Any]:
    return lambda of, *args, **kwargs: getattr(of, name)(*args, **kwargs)


def _tape_of(args: Any, kwargs: Any) -> Tape | None:
    """The recording that the arguments belong to."""
    for value in args:
        if type(value) is Recorder:
            return value._m_tape
        if isinstance(value, (tuple, list)) and type(value) is not torch.Size:
            found = _tape_of(value, None)
            if found is not None:
                return found
        elif type(value) is slice:
            found = _tape_of((value.start, value.stop, value.step), None)
            if found is not None:
                return found
    return _tape_of(kwargs.values(), None) if kwargs else None


class Recording(TorchFunctionMode):
    """Sends PyTorch's functions on recorded values to their recording. Others happen; what they tell is kept."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.tape = tape

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        tape = _tape_of(args, kwargs)
        if tape is None:
            named = kwargs or {}
            result = func(*args, **named)
            self.tape.asked(func, (*args, *named.values()), result)
            return result
        return tape.function(func, args, kwargs or {})


_OWN = __file__
_TORCH = torch.__path__[0]


def _user_frame() -> types.FrameType | None:
    """The innermost frame that is neither of this package's recorder nor of PyTorch."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name != _OWN and not name.startswith(_TORCH):
            return frame
        frame = frame.f_back
    return None


def _place() -> tuple[str | None, int | None]:
    frame = _user_frame()
    return (frame.f_code.co_filename, frame.f_lineno) if frame else (None, None)
