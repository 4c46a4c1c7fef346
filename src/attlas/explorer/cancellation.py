"""Work for a page that may go away before it is done, beside the work for others."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from attlas._hardware import malloc_trim
from attlas.recording.maps.reductions import PassCancelledError

_POLL_SECONDS = 0.2  # between looks whether an answer, or a turn, is still waited for

Found = TypeVar("Found")


async def run_while_connected(request: Request, work: Callable[[threading.Event], Found]) -> Found:
    """What work(stop) gives, in a thread of its own; `stop` is set once the page has gone.

    Memory that the work has freed is given back.

    Raises:
        ClientDisconnect: If the work was given up.
    """
    stop = threading.Event()

    def done() -> Found:
        try:
            return work(stop)
        finally:
            malloc_trim()

    task = asyncio.create_task(run_in_threadpool(done))
    task.add_done_callback(
        lambda over: over.cancelled() or over.exception()
    )  # if no request reads it
    try:
        while not (await asyncio.wait([task], timeout=_POLL_SECONDS))[0]:
            if await request.is_disconnected():  # the page asked for something else meanwhile
                stop.set()
        return task.result()
    except PassCancelledError:
        raise ClientDisconnect from None
    finally:
        stop.set()


class SearchTurns:
    """Threads that work one step each in turn: a short search is not held up by a long one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[threading.Event] = deque()  # the first of them has its turn

    @contextmanager
    def taken(self, stop: threading.Event) -> Iterator[Callable[[], None]]:
        """Wait for a turn, which lasts to the end of the block or until the function is called,
        which waits for the next one.

        Raises:
            PassCancelledError: From either, soon after `stop` is set.
        """
        with self._changed:
            self._waiting.append(stop)
        try:
            self._wait(stop)
            yield lambda: self._pass_on(stop)
        finally:
            with self._changed:
                self._waiting.remove(stop)
                self._changed.notify_all()

    def _pass_on(self, stop: threading.Event) -> None:
        with self._changed:
            self._waiting.rotate(-1)
            self._changed.notify_all()
        self._wait(stop)

    def _wait(self, stop: threading.Event) -> None:
        with self._changed:
            while self._waiting[0] is not stop and not stop.is_set():
                self._changed.wait(_POLL_SECONDS)
        if stop.is_set():
            raise PassCancelledError
