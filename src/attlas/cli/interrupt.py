"""What Ctrl-C does: it ends the process at once while modules are loaded, and else in order.

An exception in the middle of an import leaves modules behind that are half there, or is swallowed
by a module that goes on without what it could not import. Where the process ignores Ctrl-C, as
under nohup, or another than Python handles it, all of these leave that as it is.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERRUPTED = 130
MESSAGE = "attlas: interrupted"


def leave_at_once() -> None:
    """Ctrl-C ends the process there and then: for as long as nothing has been begun."""
    if _ours():
        signal.signal(signal.SIGINT, _leave)


def leave_in_order() -> None:
    """Ctrl-C raises `KeyboardInterrupt`, as ever."""
    if _ours():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stay() -> None:
    """Ctrl-C does nothing any more: the program is about to end."""
    if _ours():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def loading() -> Iterator[None]:
    """`with loading(): from … import …`, for what a command imports before it works."""
    leave_at_once()
    try:
        yield
    finally:
        leave_in_order()


def _ours() -> bool:
    here = threading.current_thread() is threading.main_thread()
    return here and signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, f"{MESSAGE}\n".encode())
    os._exit(INTERRUPTED)
