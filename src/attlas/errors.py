"""The one error a caller can cause: it says what was wanted, what came, and what to do."""

import os
from collections.abc import Iterable
from typing import Any

_LISTED = 12  # names that one message has room for
_QUOTED = 80  # characters of a value that somebody gave
_PART = 2000  # characters of a part of a message, whatever it tells of
_TAIL = 200  # of these, at its end


class AttlasError(ValueError):
    """A mistake in what was given to attlas: `wanted W; got G; do D`.

    The command line prints it without a traceback and exits with 2; anything else that escapes is
    ours and exits with 1. Values are told by `quoted`; what is very long all the same is cut.
    """

    def __init__(self, expected: str, got: str, hint: str) -> None:
        self.expected, self.got, self.hint = map(readable, (expected, got, hint))
        super().__init__(f"expected {self.expected}; got {self.got}; {self.hint}")

    def __reduce__(self) -> tuple[type["AttlasError"], tuple[str, str, str]]:
        return type(self), (self.expected, self.got, self.hint)  # it travels between processes


def quoted(value: Any, most: int = _QUOTED) -> str:
    """A value as Python writes it; of a longer one the beginning, and how long it is."""
    if not isinstance(value, str):
        return shortened(repr(value), most)
    return repr(value[:most]) + _rest(value, most)


def shortened(text: str, most: int = _QUOTED) -> str:
    """A text as it is; of more than `most` characters the first, and how many there are."""
    return text[:most] + _rest(text, most)


def _rest(text: str, most: int) -> str:
    return f"… ({len(text):,} characters)" if len(text) > most else ""


def readable(text: str) -> str:
    """A part of a message; of a very long one the beginning and the end."""
    if len(text) <= _PART:
        return text
    return f"{text[: _PART - 2 * _TAIL]} … ({len(text):,} characters) … {text[-_TAIL:]}"


def join_names(names: Iterable[str], between: str = "; ") -> str:
    """The names for a message to choose from; of more than a dozen, the first and their number."""
    every = list(names)
    more = [f"… ({len(every):,} in all)"] if len(every) > _LISTED else []
    return between.join([*every[:_LISTED], *more])


def join_paths(paths: Iterable[str]) -> str:
    """The same for what may be empty, as the path of a model itself: ['', 'encoder.attention']."""
    return f"[{join_names(map(repr, paths), ', ')}]"


def unwritable(path: str | os.PathLike[str], error: Exception) -> AttlasError:
    """The error for a file that could not be written; `error` is what stood in the way."""
    told = error.strerror if isinstance(error, OSError) else None
    return AttlasError(
        f"to write {path}",
        told or str(error),
        "make room, give the right to write there, or choose another place"
        if os.path.isdir(os.path.dirname(path) or os.curdir)
        else "choose a folder that exists",
    )


def missing_extra(what: str, extra: str) -> AttlasError:
    """The error for a feature whose optional dependency is not installed."""
    return AttlasError(
        expected=what,
        got="an installation without it",
        hint=f"run: pip install 'attlas[{extra}]'",
    )
