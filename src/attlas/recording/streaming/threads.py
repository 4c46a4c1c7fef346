"""Threads that share the blocks of a reading."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch


def side_by_side(work: Callable[[int, int, threading.Event], None]) -> None:
    """`work(n, count, stop)` for n = 0 … count − 1, at the same time: as many threads as kernels
    have.

    Each has kernels of one thread: most that is done with a block is too little to be shared.
    The first error is raised when all have ended, which they do early once `stop` is set.
    """
    stop, count = threading.Event(), torch.get_num_threads()
    try:
        with ThreadPoolExecutor(count, "attlas-blocks", torch.set_num_threads, (1,)) as pool:
            futures = [pool.submit(work, number, count, stop) for number in range(count)]
            try:
                for future in futures:
                    future.result()
            finally:
                stop.set()  # after an error, or Ctrl-C
    finally:
        torch.set_num_threads(count)  # that of a thread is also what later ones begin with
