"""CUDA graphs: work that is captured once and replayed, its twin on a CPU, and few lengths."""

import threading
import warnings
from collections.abc import Callable
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from attlas.errors import UnsupportedError

# Few lengths.


_STEPS, _LEAST = 4, 4  # lengths in an octave, and tokens between two lengths at least


def padded_length(length: int) -> int:
    """The least of 4, 8, …, 32, 40, …, 64, 80, … that is not below a length."""
    octave = 1 << ((max(length, 2) - 1).bit_length() - 1)
    unit = max(_LEAST, octave // _STEPS)
    return -(-length // unit) * unit


# What is replayed.


_CAPTURES = threading.RLock()


@runtime_checkable
class Replayable(Protocol):
    """Work that can be done again and again."""

    def replay(self) -> None:
        """Do it once more."""


class Twin:
    """In place of a CUDA graph: the work is called. It takes no arguments, so that nothing but the
    numbers in its tensors can change between two calls.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self.replay = work


_WARM_UP = 3  # calls before a capture, as the documentation of torch.cuda.graphs has it


class Capture:
    """Captures work, as "CUDA semantics" of PyTorch's documentation describes it: after calls on a
    side stream, with one memory pool for all graphs.

    Graphs that share a pool may use each other's memory: what one leaves there is lost. Here all
    that lasts was allocated outside of them. Autograd keeps a stream with a parameter as long as a
    graph of it lives, and to wait for another stream would end a capture. So everything that has a
    gradient runs on one stream, captured or not.

    Args:
        work: What is captured, for the error about work that cannot be.
        setting: That asks for it.
    """

    def __init__(self, device: torch.device, work: str, setting: str) -> None:
        self._device, self._name, self._setting = device, work, setting
        self._pool: Any = None
        self._stream: Any = None

    def __call__(self, work: Callable[[], None]) -> Replayable:
        """The captured work, which has then been done a few times."""
        if self._device.type != "cuda":
            self.call(work)
            return Twin(work)
        for _ in range(_WARM_UP):
            self.call(work)
        with torch.cuda.device(self._device):
            return self._captured(work)

    def call(self, work: Callable[[], None]) -> None:
        """Do the work once, without a capture."""
        if self._device.type != "cuda":
            work()
            return
        with torch.cuda.device(self._device), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "This instance was constructed with capturable")
            if self._stream is None:
                self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
                self._pool = torch.cuda.graph_pool_handle()
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                work()
            torch.cuda.current_stream().wait_stream(self._stream)

    def _captured(self, work: Callable[[], None]) -> Replayable:
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads may copy and allocate meanwhile; two captures are not made at once.
            with (
                _CAPTURES,
                torch.cuda.graph(
                    graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
                ),
            ):
                work()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise UnsupportedError(
                f"{self._name} that CUDA graphs can capture",
                str(error).splitlines()[0],
                f"leave {self._setting} out",
            ) from error
        return cast("Replayable", graph)


class Numbers:
    """Numbers that are copied from a device without waiting for it."""

    def __init__(self, on_device: Tensor) -> None:
        on_cuda = on_device.is_cuda
        self._host = torch.empty(on_device.shape, dtype=on_device.dtype, pin_memory=on_cuda)
        self._host.copy_(on_device, non_blocking=on_cuda)
        self._copied: Any = None
        if on_cuda:
            with torch.cuda.device(on_device.device):
                self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
                self._copied.record()

    def read(self) -> list[float]:
        """Wait for them."""
        if self._copied is not None:
            self._copied.synchronize()
        return [float(number) for number in self._host.tolist()]
