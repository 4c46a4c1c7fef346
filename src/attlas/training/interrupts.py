"""Ctrl-C that waits for the update under way."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self


class Interrupts:
    """Inside the block, the first Ctrl-C only sets `asked`; the second one raises at once.

    An update stopped half-way would leave weights that no update leads to. Outside the main thread
    Python allows no handler, and Ctrl-C goes to the main thread as ever. Where the process ignores
    it, as under nohup, or another than Python handles it, that stays so.

    `told` is called at the first, in a thread of its own: Ctrl-C may come in the middle of a line
    that is being written, where no other can begin.
    """

    def __init__(self, told: Callable[[], None]) -> None:
        self.asked = False
        self._telling = threading.Thread(target=told, daemon=True)
        self._before = signal.getsignal(signal.SIGINT)
        here = threading.current_thread() is threading.main_thread()
        self._hears = here and self._before not in (signal.SIG_IGN, None)

    def __enter__(self) -> Self:
        if self._hears:
            signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._hears:
            signal.signal(signal.SIGINT, self._before)
        if self.asked:
            self._telling.join()

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._telling.start()
