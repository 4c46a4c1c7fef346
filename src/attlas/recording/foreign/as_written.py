"""Functions that torch.compile has taken over run as they are written while somebody looks."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attlas.recording.foreign.hearing import Hearing

_lock = threading.Lock()
_blocks = 0


class _Stance:
    """How torch takes what is to be compiled: in a thread in which somebody listens it runs as it
    is written, as `torch.compiler.set_stance("force_eager")` has it for all; elsewhere as before.

    A kernel of transformers runs compiled: it is told of by its name.
    """

    def __init__(self, others: Any, hearing: Callable[[], Hearing | None]) -> None:
        self.others, self._hearing = others, hearing

    @property
    def stance(self) -> Any:
        here = self._hearing()
        return self.others.stance if here is None or here.in_kernel else "force_eager"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.others, name)


@contextmanager
def as_written(hearing: Callable[[], Hearing | None]) -> Iterator[None]:
    """For the length of a block, compile nothing and run nothing compiled where somebody listens.

    torch keeps one stance for all threads. The last block to end puts it back.
    """
    _enter(hearing)
    try:
        yield
    finally:
        _leave()


def _compiler() -> Any:
    """torch's own module that asks for the stance; None where nothing has been compiled yet."""
    return sys.modules.get("torch._dynamo.eval_frame")


def _enter(hearing: Callable[[], Hearing | None]) -> None:
    global _blocks
    with _lock:
        _blocks += 1
        compiler = _compiler()
        stance = getattr(compiler, "_stance", None)
        if stance is not None and not isinstance(stance, _Stance):
            compiler._stance = _Stance(stance, hearing)


def _leave() -> None:
    global _blocks
    with _lock:
        _blocks -= 1
        stance = getattr(_compiler(), "_stance", None)
        if not _blocks and isinstance(stance, _Stance):
            _compiler()._stance = stance.others
