"""Ctrl-C that waits for the update under way, and what a scheduler sends in its place."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Self

# What Ctrl-C does: it ends the process at once while modules are loaded, and else in order.


INTERRUPTED = 130
MESSAGE = "attlas: interrupted"
# A second Ctrl-C within so many seconds is the first one again: a key was pressed twice, or a
# launcher such as make passes on what its child has had already.
GRACE = 0.5
_first: float | None = None  # when Ctrl-C came since the command began


def leave_at_once() -> None:
    """Ctrl-C ends the process there and then: for as long as nothing has been begun."""
    if _ours():
        signal.signal(signal.SIGINT, _leave)


def leave_in_order() -> None:
    """Ctrl-C raises `KeyboardInterrupt` once. While the command ends because of it, another one is
    ignored for `GRACE` seconds; after them it ends the process at once."""
    global _first
    if _ours():
        _first = None
        signal.signal(signal.SIGINT, _interrupt)


def stay() -> None:
    """Ctrl-C does nothing any more: the program is about to end."""
    if _ours():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def loading() -> Iterator[None]:
    """`with loading(): from … import …`, for what a command imports before it works."""
    before = signal.getsignal(signal.SIGINT)
    leave_at_once()
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, before)


def _ours() -> bool:
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

    It does so more than `GRACE` seconds after the first, and not after `finish`: then what was
    announced at the first is being done.

    An update stopped half-way would leave weights that no update leads to. Outside the main thread
    Python allows no handler, and Ctrl-C goes to the main thread as ever. Where the process ignores
    it, as under nohup, or another than Python handles it, that stays so.

    `told` is called at the first, in a thread of its own: Ctrl-C may come in the middle of a line
    that is being written, where no other can begin.

    Args:
        alone: SIGTERM, which schedulers and containers send before they kill, is heard alike where
            it would end the process. (A launcher of many sends it to those whose process group has
            lost a member, and who would wait for that for ever.).
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
        for number, before in self._before.items():
            signal.signal(number, before)
        if self.requested:
            self._telling.join()

    def finish(self) -> None:
        """Let no further Ctrl-C disturb the rest of the block."""
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
