"""Threads that share an update."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import torch
from torch import nn

_MOST = 4  # beyond it the shares of a batch grow too small, and kernels get the other cores

Part = TypeVar("Part")
Done = TypeVar("Done")


class Crew:
    """So many threads, each of which computes with its own cores.

    Two halves of a batch on two cores are nearly twice as fast as a whole batch whose every matrix
    product is shared by two: most products of a small model are too small to be shared. Python
    does not stand in the way, because torch lets go of its lock inside every kernel.
    """

    def __init__(self, size: int = 1, cores: int | None = None) -> None:
        self.size = size
        self._cores = cores
        self._pool = ThreadPoolExecutor(size, "attlas-crew") if size > 1 else None

    def all_of(self, work: Callable[[Part], Done], parts: Sequence[Part]) -> list[Done]:
        """What `work` makes of each part, in order; all parts are under way at the same time.

        The first error among them is raised when all are done.
        """
        if self._pool is None:
            return [work(part) for part in parts]
        futures = [self._pool.submit(work, part) for part in parts]
        for future in futures:
            future.exception()  # waits
        return [future.result() for future in futures]

    def resting(self) -> AbstractContextManager[None]:
        """While it has nothing to do, others may have its cores: kernels, or threads of theirs."""
        return kernels_of(self._cores or torch.get_num_threads())

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()


@contextmanager
def crew_of(
    threads: int | None, device: torch.device, model: nn.Module, *, alone: bool = False
) -> Iterator[Crew]:
    """A crew for so many cores (None: as many as torch would use), for the length of the block.

    Each of its threads has an equal part of them, up to four cores one each. It is a crew of one,
    whose kernels have all cores, on a GPU, whose kernels need no such help, for a model that draws
    random numbers where no crew can keep them apart, and where it has to work `alone`.
    """
    threads = torch.get_num_threads() if threads is None else threads
    alone = alone or device.type != "cpu" or _draws_by_itself(model)
    crew = Crew(1 if alone else min(threads, _MOST), threads)
    with kernels_of(threads // crew.size):
        try:
            yield crew
        finally:
            crew.close()


@contextmanager
def kernels_of(threads: int) -> Iterator[None]:
    """Kernels of torch have so many threads, for the length of the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _draws_by_itself(model: nn.Module) -> bool:
    """Whether torch's RNNs drop out between their layers: they draw from the one generator."""
    return any(
        isinstance(m, nn.RNNBase) and m.num_layers > 1 and m.dropout for m in model.modules()
    )
