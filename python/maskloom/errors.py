"""What goes wrong, in words: a stable code, the cause and the way out."""

from __future__ import annotations

__all__ = ["ArgumentError", "DividedWarning", "FallbackWarning", "InternalError", "MaskloomError", "RecordingError"]


class MaskloomError(Exception):
    """Any refusal of this package. `code` is stable, `hint` says what to do instead."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        self.code, self.message, self.hint = code, message, hint
        super().__init__(self._text())

    def _text(self) -> str:
        return f"{self.message} [{self.code}]" + (f"\n  {self.hint}" if self.hint else "")

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (type(self), self.__dict__.copy()))


class ArgumentError(MaskloomError, ValueError):
    """An argument that cannot be used; the message names it."""


class RecordingError(MaskloomError):
    """A mod that cannot be recorded. `file` and `line` are those of the user's own source, None where unknown."""

    def __init__(
        self, code: str, message: str, hint: str | None = None, *, file: str | None = None, line: int | None = None
    ) -> None:
        self.file, self.line = file, line
        super().__init__(code, message, hint)

    def _text(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file is not None else ""
        return place + super()._text()


class InternalError(MaskloomError):
    """A fault of Maskloom itself. The message is the report to send."""


class FallbackWarning(UserWarning):
    """PyTorch did the work instead, and why."""


class DividedWarning(UserWarning):
    """Another library has divided the sequence over ranks, where it loses a mask or changes it."""


def a_kind(value: object) -> str:
    """What a value is, in words: "None", "an int", "a Tensor"."""
    name = type(value).__name__
    return "None" if value is None else f"an {name}" if name[0] in "aeiouAEIO" else f"a {name}"


def _again(kind: type[MaskloomError], state: dict[str, object]) -> MaskloomError:
    """Unpickles: workers of a data loader send their exceptions to the parent."""
    made = kind.__new__(kind)
    made.__dict__.update(state)
    made.args = (made._text(),)
    return made
