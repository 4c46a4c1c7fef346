"""Ctrl-C and SIGTERM: when they end a process at once, and when it finishes its step first."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Self

# Ctrl-C ends the process at once while modules are loaded, and in order later.


INTERRUPTED = 130
MESSAGE = "attlas: interrupted"
# A second Ctrl-C within so many seconds counts as the first one: a key was pressed twice, or a
# launcher such as make passed on a signal that its child had already received.
GRACE = 0.5
_first: float | None = None  # when Ctrl-C came since the command began


def leave_at_once() -> None:
    """From now on Ctrl-C ends the process at once, because no work has begun."""
    if _has_own_handler():
        signal.signal(signal.SIGINT, _leave)


def leave_in_order() -> None:
    """From now on Ctrl-C raises `KeyboardInterrupt` once. Another one is ignored for `GRACE`
    seconds; after that it ends the process at once.
    """
    global _first
    if _has_own_handler():
        _first = None
        signal.signal(signal.SIGINT, _interrupt)


def stay() -> None:
    """From now on ignore Ctrl-C, because the program is about to end."""
    if _has_own_handler():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def loading() -> Iterator[None]:
    """`with loading(): from … import …`, for what a command imports before it works."""
    previous = signal.getsignal(signal.SIGINT)
    leave_at_once()
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, previous)


def _has_own_handler() -> bool:
    is_main_thread = threading.current_thread() is threading.main_thread()
    ours = (signal.default_int_handler, _leave, _interrupt)
    return is_main_thread and signal.getsignal(signal.SIGINT) in ours


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _first
    now = time.monotonic()
    if _first is None:
        _first = now
        raise KeyboardInterrupt
    if now - _first > GRACE:
        _leave(number, frame)


def _leave(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, f"{MESSAGE}\n".encode())
    os._exit(INTERRUPTED)


class Interrupts:
    """Inside the block, the first Ctrl-C only sets `requested`; a second one raises at once.

    The second one counts if it comes more than `GRACE` seconds after the first, and before
    `finish`. After `finish`, the work that was announced at the first is being done.

    An update that is interrupted would leave inconsistent weights. Outside the main thread Python
    allows no handler, so nothing changes there. If the process ignores Ctrl-C, as under nohup, or
    has a handler of its own, that stays so.

    At the first one, `callback` runs in a thread of its own: Ctrl-C may come in the middle of a
    line that is being written.

    Args:
        alone: The process is no member of a group. Then SIGTERM, which schedulers and containers
            send before they kill, is handled like Ctrl-C. (In a group, a launcher sends it to
            processes that wait for a lost member.)
    """

    def __init__(self, callback: Callable[[], None], *, alone: bool = False) -> None:
        self.requested = False
        self._at = 0.0
        self._finishing = False
        self._telling = threading.Thread(target=callback, daemon=True)
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            of_ctrl_c, of_term = map(signal.getsignal, (signal.SIGINT, signal.SIGTERM))
            if of_ctrl_c not in (signal.SIG_IGN, None):
                self._before[signal.SIGINT] = of_ctrl_c
            if alone and of_term is signal.SIG_DFL:
                self._before[signal.SIGTERM] = of_term

    def __enter__(self) -> Self:
        for number in self._before:
            signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.requested:
            self._telling.join()

    def finish(self) -> None:
        """Ignore every further Ctrl-C until the block ends."""
        self._finishing = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        global _first
        now = time.monotonic()
        if self.requested:
            if self._finishing or now - self._at <= GRACE:
                return
            raise KeyboardInterrupt
        self.requested, self._at, _first = True, now, now
        self._telling.start()
