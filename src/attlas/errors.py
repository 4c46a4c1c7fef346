"""The errors that a caller can cause: what was expected, what came, and what to do."""

import errno
import os
from collections.abc import Iterable
from typing import Any

_LISTED = 12  # names that one message has room for
_QUOTED = 80  # characters of a value in a message
_PART = 2000  # characters of one part of a message
_TAIL = 200  # of these, at its end


class AttlasError(ValueError):
    """A mistake that the caller can mend: `expected …; got …; hint`.

    The command line prints it without a traceback and exits with 2. Any other exception is a fault
    of attlas, and exits with 1.

    Args:
        expected: What attlas needs here.
        got: What it found instead. Quote values with `quoted`.
        hint: What to do about it.
    """

    def __init__(self, expected: str, got: str, hint: str) -> None:
        self.expected, self.got, self.hint = map(readable, (expected, got, hint))
        super().__init__(f"expected {self.expected}; got {self.got}; {self.hint}")

    def __reduce__(self) -> tuple[type["AttlasError"], tuple[str, str, str]]:
        return type(self), (self.expected, self.got, self.hint)  # it travels between processes


class ConfigError(AttlasError):
    """A setting, a recipe or a combination of options is wrong."""


class DataError(AttlasError):
    """A text, a corpus, a label or a file of data is wrong or missing."""


class CheckpointError(AttlasError):
    """A run, a checkpoint, a vocabulary or a trace on disk is damaged, foreign or missing."""


class UnsupportedError(AttlasError):
    """This model, device, format or installation can't do what was asked for."""


def quoted(value: Any, max_length: int = _QUOTED) -> str:
    """Return a value as Python writes it. A long one is cut, and its length is added."""
    if not isinstance(value, str):
        return shortened(repr(value), max_length)
    return repr(value[:max_length]) + _length_note(value, max_length)


def shortened(text: str, max_length: int = _QUOTED) -> str:
    """Return the first `max_length` characters of a text. If it is cut, its length is added."""
    return text[:max_length] + _length_note(text, max_length)


def _length_note(text: str, max_length: int) -> str:
    return f"… ({len(text):,} characters)" if len(text) > max_length else ""


def readable(text: str) -> str:
    """Return a part of a message. A very long one keeps its beginning and its end."""
    if len(text) <= _PART:
        return text
    return f"{text[: _PART - 2 * _TAIL]} … ({len(text):,} characters) … {text[-_TAIL:]}"


def join_names(names: Iterable[str], between: str = "; ") -> str:
    """Join names for a message: the first dozen, and how many there are."""
    all_names = list(names)
    more = [f"… ({len(all_names):,} in all)"] if len(all_names) > _LISTED else []
    return between.join([*all_names[:_LISTED], *more])


def join_paths(paths: Iterable[str]) -> str:
    """Join paths of modules, which may be empty: ['', 'encoder.attention']."""
    return f"[{join_names(map(repr, paths), ', ')}]"


def unwritable(path: str | os.PathLike[str], error: Exception) -> AttlasError:
    """Return the error for a file that could not be written because of `error`."""
    reason = error.strerror if isinstance(error, OSError) else None
    return AttlasError(f"to write {path}", reason or str(error), _advice_for(path, error))


def _advice_for(path: str | os.PathLike[str], error: Exception) -> str:
    if not os.path.isdir(os.path.dirname(path) or os.curdir):
        return "choose a folder that exists"
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT):
        return "make room there, or choose another place"
    if number == errno.EROFS:
        return "choose another place"
    if number in (errno.EACCES, errno.EPERM):
        return "get the right to write there, or choose another place"
    return "make room, give the right to write there, or choose another place"


def missing_extra(feature: str, extra: str) -> UnsupportedError:
    """Return the error for a feature whose optional dependency is not installed."""
    return UnsupportedError(
        expected=feature,
        got="an installation without it",
        hint=f"run: pip install 'attlas[{extra}]'",
    )
