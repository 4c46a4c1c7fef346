"""Threads that share the blocks of a reading."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_users, _before = 0, 1


def side_by_side(work: Callable[[int, int, threading.Event], None]) -> None:
    """`work(n, count, stop)` for n = 0 … count − 1, at the same time: as many threads as kernels
    have.

    Each has kernels of one thread: most that is done with a block is too little to be shared.
    The first error is raised when all have ended, which they do early once `stop` is set.
    """
    stop = threading.Event()
    with _kernels_of_one_thread() as count, ThreadPoolExecutor(count, "attlas-blocks") as pool:
        futures = [pool.submit(work, number, count, stop) for number in range(count)]
        try:
            for future in futures:
                future.result()
        finally:
            stop.set()  # after an error, or Ctrl-C


@contextmanager
def _kernels_of_one_thread() -> Iterator[int]:
    """Yields how many threads kernels had; they have them again when nobody is inside any more."""
    global _users, _before
    with _lock:
        if not _users:
            _before = torch.get_num_threads()
            torch.set_num_threads(1)
        _users += 1
    try:
        yield _before
    finally:
        with _lock:
            _users -= 1
            if not _users:
                torch.set_num_threads(_before)
