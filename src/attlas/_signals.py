"""Ctrl-C that waits for the update under way, and what a scheduler sends in its place."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Self

# What Ctrl-C does: it ends the process at once while modules are loaded, and else in order.


INTERRUPTED = 130
MESSAGE = "attlas: interrupted"


def leave_at_once() -> None:
    """Ctrl-C ends the process there and then: for as long as nothing has been begun."""
    if _ours():
        signal.signal(signal.SIGINT, _leave)


def leave_in_order() -> None:
    """Ctrl-C raises `KeyboardInterrupt`, as always."""
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


class Interrupts:
    """Inside the block, the first Ctrl-C only sets `requested`; the second one raises at once.

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

    def __init__(self, told: Callable[[], None], *, alone: bool = False) -> None:
        self.requested = False
        self._telling = threading.Thread(target=told, daemon=True)
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

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self._telling.start()
