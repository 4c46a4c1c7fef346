"""Standard streams, errors and exit codes of commands: 0 done, 2 the caller's mistake, 1 ours, 130
Ctrl-C.
"""

import errno
import io
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from attlas._files import WINDOWS
from attlas._signals import INTERRUPTED, MESSAGE, leave_in_order, stay
from attlas.errors import AttlasError, quoted, readable

# The standard streams: UTF-8 in every locale, and open even if the shell closed them.


_MODES = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)


class ErrorStream(io.FileIO):
    """The standard error; if it can no longer be written, the work goes on silently."""

    def write(self, data: Any, /) -> int:
        """Write; after a failure, write nothing any more."""
        try:
            return super().write(data)
        except OSError:  # the reader has left, or the disk is full
            silence(self.fileno())
            return len(data)


def prepare() -> None:
    """Set up the three standard streams."""
    _open_closed()
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files that are not UTF-8 are written as their bytes.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    # On Windows Python writes to a console in the console's encoding; not tried.
    console = WINDOWS and sys.stderr is not None and sys.stderr.isatty()
    if sys.stderr is None or (isinstance(sys.stderr, io.TextIOWrapper) and not console):
        error_stream = io.BufferedWriter(ErrorStream(2, "wb", closefd=False))
        sys.stderr = io.TextIOWrapper(
            error_stream,
            encoding="utf-8",
            errors="backslashreplace",
            newline="\n",
            line_buffering=True,
        )


def silence(descriptor: int) -> None:
    """Redirect this descriptor to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _open_closed() -> None:
    """Open closed descriptors, or the next opened file would get the number and prints would damage
    it.
    """
    for descriptor, mode in enumerate(_MODES):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest number that is free, which is this one


_TEXTS = {"text", "texts", "layer", "prefix", "settings"}  # parameters that are no name
_NAME = 1000  # characters of the name of a file
# As torch puts it, of a GPU and of a CPU; its own class of error is for GPUs alone.
_WANT = re.compile("out of memory|can't allocate memory|not enough memory")


class Guarded(TyperCommand):
    """A command that prints its errors in one paragraph on the standard error.

    A reader that closed the pipe (`| head`) has what it wanted: the command ends quietly, with 0.
    With `--debug`, or ATTLAS_DEBUG=1, every error comes with its traceback.
    """

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the options; the error for a wrong one quotes only its beginning."""
        with _in_few_words():
            return super().make_context(*args, **kwargs)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options. An option with a single value may be given once, and so may a flag with
        an opposite: otherwise only the last one would count, silently. Names must not be empty,
        because an empty name would mean the current folder.
        """
        params, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option in dict.fromkeys(order):
            if not isinstance(option, TyperOption) or option.multiple or option.count:
                continue
            if (not option.is_flag or option.secondary_opts) and order.count(option) > 1:
                opposite = [max(option.secondary_opts, key=len)] if option.secondary_opts else []
                name = " or ".join([max(option.opts, key=len), *opposite])
                _refuse(f"{name} once", f"it {order.count(option)} times", "leave the others out")
        for parameter in dict.fromkeys(order):
            value = params.get(str(parameter.name))
            values = value if isinstance(value, list | tuple) else (value,)
            if parameter.name not in _TEXTS and "" in values:
                name = max(parameter.opts, key=len)
                if not isinstance(parameter, TyperOption):
                    name = str(parameter.metavar or parameter.name).upper()
                advice = "write it, or leave it out; a variable of the shell may not be set"
                _refuse(f"a value for {name}", "an empty one", advice)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        debug = bool(ctx.find_root().params.get("debug"))
        leave_in_order()
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # or a closed pipe would be noticed only after the end
        except BrokenPipeError as error:
            if error.filename is not None:  # the reader of another file than the standard output
                raise typer.Exit(_exit_code_of(error, debug)) from None
            _forget_output()
            raise typer.Exit(0) from None
        except KeyboardInterrupt as interrupt:
            stay()
            _print_error(_with_notes(MESSAGE, interrupt), debug)
            raise typer.Exit(INTERRUPTED) from None
        except AttlasError as error:
            _print_error(_with_notes(f"attlas: {error}", error), debug)
            raise typer.Exit(2) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            raise typer.Exit(_exit_code_of(error, debug)) from None
        return result


def _refuse(expected: str, got: str, hint: str) -> None:
    _print_error(f"attlas: {AttlasError(expected, got, hint)}", debug=False)
    raise typer.Exit(2)


class GuardedGroup(TyperGroup):
    """The group of all commands."""

    def resolve_command(self, ctx: Any, args: Any) -> Any:
        """Find the command."""
        with _in_few_words():
            return super().resolve_command(ctx, args)


@contextmanager
def _in_few_words() -> Iterator[None]:
    """Shorten the message about a wrong option, which quotes it."""
    try:
        yield
    except Exception as error:
        if isinstance(message := getattr(error, "message", None), str):
            error.message = readable(message)  # type: ignore[attr-defined]
        raise


def unwritten(error: OSError) -> int:
    """Report that the standard output cannot be written. Return the exit code."""
    if isinstance(error, BrokenPipeError):
        _forget_output()
        return 0
    return _exit_code_of(error, debug=False)


def _exit_code_of(error: Exception, debug: bool) -> int:
    """Report an unexpected error. Return the exit code."""
    message = readable(" ".join(str(error).split()))
    if _of_memory(error):
        _print_error(
            f"attlas: expected memory; got {message or 'none'}; free some, or do less at once: "
            "train in another folder with lower batching.max_tokens, lower --max-tokens for "
            "statistics, "
            "--window for texts, and decoding.max_source_length for texts to translate",
            debug,
        )
        return 2
    if isinstance(error, OSError):  # a full disk, a folder without the right to write
        _forget_output()
        location = (
            quoted(error.filename, _NAME) if error.filename else "the standard output, or a file"
        )
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "make room there" if full else "make it readable and writable"
        _print_error(
            f"attlas: expected to use {location}; got {error.strerror or error}; {advice}", debug
        )
        return 2
    _print_error(
        f"attlas: this is our mistake, not yours: {type(error).__name__}: {message}. Please report "
        "it, with the command and what it prints under: attlas --debug …",
        debug,
    )
    return 1


def _with_notes(text: str, error: BaseException) -> str:
    return "; ".join([text, *getattr(error, "__notes__", ())])


def _of_memory(error: Exception) -> bool:
    """Return True if the error means too little memory: of Python, the system, or torch on any
    device.
    """
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    match = isinstance(error, RuntimeError) and _WANT.search(str(error))
    return isinstance(error, MemoryError) or bool(match)


def _print_error(text: str, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    print(text, file=sys.stderr)


def _forget_output() -> None:
    """Discard buffered output that cannot be written, or Python would complain at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):  # a standard output that is no file
            silence(sys.stdout.fileno())
