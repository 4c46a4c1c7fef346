"""cuDNN, and when it is left out."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

import torch


class _LeftOut(AbstractContextManager[None]):
    """A switch of the whole process, so that of threads which are inside at the same time the
    first one turns it off and the last one turns it back.
    """

    def __init__(self, is_on: Callable[[], bool], turn: Callable[[bool], None]) -> None:
        self._is_on, self._turn = is_on, turn
        self._lock = threading.Lock()
        self._inside = 0
        self._before = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = self._is_on()
                self._turn(False)
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._turn(self._before)


def _enable(on: bool) -> None:
    torch.backends.cudnn.enabled = on


without_cudnn = _LeftOut(lambda: torch.backends.cudnn.enabled, _enable)
"""`with without_cudnn:` for gradients in eval mode, which its recurrent layers do not have."""


without_cudnn_attention = _LeftOut(
    torch.backends.cuda.cudnn_sdp_enabled, torch.backends.cuda.enable_cudnn_sdp
)
"""`with without_cudnn_attention:` for texts of ever new lengths: it makes a plan for every new
shape, on an H100 20 ms forwards and 24 back, where an update of a small Transformer takes 40. torch
prefers it on Hoppers in half precision; its other kernels plan nothing."""
