"""Windows of lines: what has come in, to be translated together."""

import sys
from collections.abc import Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TextIO


def windows(lines: Iterator[str], most: int, *, full: bool) -> Iterator[list[str]]:
    """The lines in their order, at most `most` at a time, never none.

    A window ends where nothing more has come in yet, so that who writes one line and waits for its
    answer gets it. If `full`, only the last has fewer than `most`: for a file, which never makes
    one wait, and whose windows are then the same each time.

    Errors: what `lines` raises, after the lines before it.
    """
    arrived: Queue[str | Exception | None] = Queue(most)
    left = Event()

    def put(what: str | Exception | None) -> None:
        while not left.is_set():  # a bounded wait: nobody takes what comes after the last window
            try:
                arrived.put(what, timeout=0.2)
            except Full:
                continue
            return

    def read(_standard_input: TextIO) -> None:
        try:
            for line in lines:
                put(line)
                if left.is_set():
                    return
        except Exception as mistake:  # raised again where the lines are taken
            put(mistake)
        else:
            put(None)

    # A thread, because a read of a pipe waits, and only the reader knows whether it does. Nothing
    # wakes it at the end of the program. It therefore holds the standard input, which Python would
    # otherwise close then, and abort because it is being read.
    Thread(target=read, args=(sys.stdin,), daemon=True).start()
    try:
        came: str | Exception | None = ""
        while isinstance(came, str):
            window: list[str] = []
            while len(window) < most:
                try:
                    came = arrived.get(block=full or not window)
                except Empty:
                    break
                if not isinstance(came, str):
                    break
                window.append(came)
            if window:
                yield window
        if came is not None:
            raise came
    finally:
        left.set()
