"""Giving up a pass over a long map that nobody waits for any more."""

import threading
from typing import ClassVar

from attlas.recording.streaming.block import Block
from attlas.recording.streaming.gathering import Gathering


class AbandonedError(Exception):
    """The pass was given up: it has no result."""


class Abandoning(Gathering):
    """Ends the pass with `AbandonedError` at the first block after `stop` was set."""

    shared: ClassVar[bool] = True

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def take(self, block: Block) -> None:
        if self._stop.is_set():
            raise AbandonedError

    @property
    def result(self) -> None:
        return None
