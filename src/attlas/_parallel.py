"""Work in parallel: forked processes and threads."""

import mmap
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Self, TypeVar

import torch
from torch import nn

from attlas.errors import AttlasError

# Sharing work between several workers.


Item = TypeVar("Item")
Found = TypeVar("Found")


def map_shares(
    function: Callable[[Sequence[Sequence[Item]]], Sequence[Sequence[Found]]],
    items: Sequence[Item],
    costs: Sequence[int],
    thread_group: int,
) -> list[Found]:
    """Split the items into shares, call `work(shares)`, and return the results in the order of the
    items.
    """
    shares = balance(costs, thread_group)
    results = function([[items[index] for index in share] for share in shares])
    flat_indices = chain.from_iterable(shares)
    by_place = dict(zip(flat_indices, chain.from_iterable(results), strict=True))
    return [by_place[index] for index in range(len(items))]


def balance(costs: Sequence[int], thread_group: int) -> list[list[int]]:
    """Indices of the items for each worker, so that all have about equal work.

    The most expensive item is assigned first, each to the worker with the least work so far
    (Graham, 1969). Each worker's items are in their original order. Workers without items are left
    out.
    """
    loads = [0] * thread_group
    shares: list[list[int]] = [[] for _ in range(thread_group)]
    for index in sorted(range(len(costs)), key=lambda index: -costs[index]):
        least = loads.index(min(loads))
        loads[least] += costs[index]
        shares[least].append(index)
    return [sorted(share) for share in shares if share]


# A count of the work that all of them do.


_COUNTS = 512  # of this process and its children, a page of memory
_worker = 0  # 0 in this process; in a child of a `ForkPool` its number, from 1


class WorkCounter:
    """How much work was done, counted by the threads of this process and by the children of a
    `ForkPool` that began after it.

    A copy by pickle begins at 0.
    """

    def __init__(self) -> None:
        self._counts = memoryview(mmap.mmap(-1, 8 * _COUNTS)).cast("q")  # a child writes in it, too
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["WorkCounter"], tuple[()]]:
        return WorkCounter, ()

    def add(self, count: int) -> None:
        """So much more is done."""
        with self._lock:  # of threads; each process has a number of its own
            self._counts[_worker % _COUNTS] += count

    @property
    def total(self) -> int:
        """How much is done."""
        return sum(self._counts)


POSSIBLE = sys.platform == "linux"  # other systems have no fork, or libraries that break with it
_SECONDS_TO_START = 10.0  # of a child, which needs some milliseconds
_ATTEMPTS = 2  # at a fork, where a lock may be held that is never released in the child


class ForkPool(Generic[Item, Found]):
    """`forks.map(items)` is [work(item) for item in items], done by `count` child processes.

    A child is a copy of this process at the time of the fork, with the model in memory, and with
    one thread for torch. So create the pool before there are locks, threads or open outputs. Items
    and results travel through pipes and must be picklable; `function` need not be. Unlike threads,
    children do not wait for Python's lock between the kernels of a step.

    A lock that another thread holds during the fork is never released in the child. So each child
    multiplies two matrices and says that it is ready. A child that does not is killed, and forked
    once more. There are fewer children than asked for if that fails, too, or if the system allows
    no more. Without any, and after an error, this process does the work.

    As a context manager the pool ends its children: at once after an exception, else when they are
    idle. If this process is killed, they end after their current item. Several threads may call
    `map`; the calls run one after the other.

    Args:
        task: What the work is of, for the error of a child that died.

    Raises:
        AttlasError: What `function` raises in a child is raised here.
        AttlasError: For a child that died.
    """

    def __init__(
        self, function: Callable[[Item], Found], count: int, task: str = "of a translation"
    ) -> None:
        self._work, self._mapping, self._task = function, Lock(), task
        self._children: dict[Connection, int] = {}  # the pipe of each, and its process id
        self._starting: list[Connection] = []  # of the children that have not said yet: ready
        for _ in range(_ATTEMPTS):
            with suppress(OSError):  # no process more, or no memory for one
                while len(self._children) < count:
                    self._fork()
            self._kill_unready()

    def __len__(self) -> int:
        """How many children there are."""
        return len(self._children)

    def map(self, items: Sequence[Item]) -> list[Found]:
        """Items are started in their order, and results are yielded in their order."""
        with self._mapping:
            if not self._children:
                return [self._work(item) for item in items]
            try:
                return self._mapped(items)
            except BaseException:
                self._kill()  # or an unfinished answer would be taken for the next one
                raise

    def _mapped(self, items: Sequence[Item]) -> list[Found]:
        pending = iter(enumerate(items))
        working: dict[Connection, int] = {}
        results: dict[int, Found] = {}

        def give(pipe: Connection) -> None:
            for index, item in islice(pending, 1):
                self._or_dead(pipe, partial(pipe.send, item))
                working[pipe] = index

        for pipe in self._children:
            give(pipe)
        while working:
            for ready in wait(list(working)):
                assert isinstance(ready, Connection)
                failed, answer = self._or_dead(ready, ready.recv)
                if failed:
                    raise answer
                results[working.pop(ready)] = answer
                give(ready)
        return [results[index] for index in range(len(items))]

    def _or_dead(self, pipe: Connection, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except (EOFError, ConnectionError):
            raise AttlasError(
                f"every process {self._task} to stay alive",
                f"process {self._children[pipe]} killed, perhaps because memory ran out",
                "run it again, with fewer of them (OMP_NUM_THREADS=1) if memory is short",
            ) from None

    def _fork(self) -> None:
        parent_pipe, child_pipe = Pipe()
        with _deaf():
            with warnings.catch_warnings():
                # Newer Pythons warn that a child lacks the parent's threads. It needs none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if not child:
                others = [parent_pipe, *self._children]
                _be_child(self._work, child_pipe, others, len(self._children) + 1)
        child_pipe.close()
        self._children[parent_pipe] = child
        self._starting.append(parent_pipe)

    def _kill_unready(self) -> None:
        deadline = time.monotonic() + _SECONDS_TO_START
        while self._starting:
            pipe = self._starting.pop()
            with suppress(EOFError, ConnectionError):
                if pipe.poll(max(0.0, deadline - time.monotonic())):
                    pipe.recv()
                    continue
            child = self._children.pop(pipe)
            pipe.close()
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def close(self) -> None:
        """End the children after their current item."""
        for pipe in self._children:
            pipe.close()
        for child in self._children.values():
            with suppress(ChildProcessError):
                os.waitpid(child, 0)
        self._children.clear()

    def _kill(self) -> None:
        for child in self._children.values():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *details: object) -> None:
        if error is None:
            self.close()
        else:
            self._kill()


@contextmanager
def _deaf() -> Iterator[None]:
    """Block Ctrl-C: raised in a child, it would run the parent's cleanup."""
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def _be_child(
    function: Callable[[Any], Any], pipe: Connection, others: Sequence[Connection], number: int
) -> None:
    """Serve, and exit without the parent's cleanup."""
    global _worker
    try:
        _worker = number
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
        for other in others:
            other.close()  # or the parent's end would never be seen to close
        torch.set_num_threads(1)
        _take_locks()
        pipe.send("ready")
        _serve(function, pipe)
    finally:
        os._exit(0)


def _take_locks() -> None:
    """Wait for ever, if a lock of the memory of MKL was held during the fork."""
    matrix = torch.ones(256, 256)  # of a smaller product MKL copies nothing
    torch.mm(matrix, matrix)


def _serve(function: Callable[[Any], Any], pipe: Connection) -> None:
    """Answer each item with (False, result) or (True, exception), until the pipe closes."""
    with suppress(EOFError, ConnectionError):
        while True:
            item = pipe.recv()
            try:
                answer: tuple[bool, Any] = (False, function(item))
            except Exception as error:
                answer = (True, error)
            try:
                pipe.send(answer)
            except (EOFError, ConnectionError):
                raise
            except Exception as error:  # what cannot be pickled
                cause = answer[1] if answer[0] else error
                pipe.send((True, RuntimeError(repr(cause))))


# Threads.


class ThreadPool(ThreadPoolExecutor):
    """A pool of threads for kernels, whose `shutdown` waits until the system has ended them.

    Before Python 3.13 a thread counts as joined as soon as it has left Python. It then still gives
    back its memory of MKL, under a lock. A process that is forked in this moment would inherit the
    lock, and wait for it for ever.

    Args:
        initializer, initargs: Called in each thread when it starts.
    """

    def __init__(
        self,
        max_workers: int,
        name: str,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[object, ...] = (),
    ) -> None:
        self._native_ids: list[int] = []

        def initialize() -> None:
            self._native_ids.append(threading.get_native_id())
            if initializer is not None:
                initializer(*initargs)

        super().__init__(max_workers, name, initialize)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads after the work they have."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        deadline = time.monotonic() + 1.0  # a number may belong to a new thread by then
        tasks = [Path(f"/proc/self/task/{native_id}") for native_id in self._native_ids]
        while wait and any(map(Path.exists, tasks)) and time.monotonic() < deadline:
            time.sleep(0.0002)


# Threads that share the blocks of an attention map.


def run_threads(function: Callable[[int, int, threading.Event], None]) -> None:
    """Run `work(n, count, stop)` for n = 0 … count − 1 in parallel, in as many threads as kernels
    use.

    Kernels inside use one thread each: a block is too small to be shared. After an error `stop` is
    set, all threads end early, and the first error is raised.
    """
    stop, count = threading.Event(), torch.get_num_threads()
    try:
        with ThreadPool(count, "attlas-blocks", torch.set_num_threads, (1,)) as pool:
            futures = [pool.submit(function, number, count, stop) for number in range(count)]
            try:
                for future in futures:
                    future.result()
            finally:
                stop.set()  # after an error, or Ctrl-C
    finally:
        torch.set_num_threads(count)  # a thread's setting is also the default of later threads


# Threads that share an update.


_MOST = 4  # with more, the shares of a batch get too small; kernels use the other cores

Part = TypeVar("Part")
Done = TypeVar("Done")


class ThreadGroup:
    """A group of threads, each of which computes with its own cores.

    Two halves of a batch on two cores are nearly twice as fast as a whole batch whose every matrix
    product is shared by two: most products of a small model are too small to be shared. Python's
    lock is no obstacle, because torch releases it inside every kernel.
    """

    def __init__(self, size: int = 1, cores: int | None = None) -> None:
        self.size = size
        self._cores = cores
        self._pool = ThreadPool(size, "attlas-threads") if size > 1 else None

    def map(self, function: Callable[[Part], Done], parts: Sequence[Part]) -> list[Done]:
        """Results of `function` for each part, in order; all parts run at the same time.

        The first error among them is raised when all are done.
        """
        if self._pool is None:
            return [function(part) for part in parts]
        futures = [self._pool.submit(function, part) for part in parts]
        for future in futures:
            future.exception()  # waits
        return [future.result() for future in futures]

    def resting(self) -> AbstractContextManager[None]:
        """For the block, give the idle group's cores to kernels or to other threads."""
        return kernel_threads(self._cores or torch.get_num_threads())

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


@contextmanager
def open_thread_group(
    threads: int | None, device: torch.device, model: nn.Module, *, in_order: bool = False
) -> Iterator[ThreadGroup]:
    """A thread group for so many cores (None = as many as torch would use), for the block.

    Up to four cores, each thread has one core; beyond, each has an equal part of the cores. The
    group has a single thread, whose kernels use all cores, in three cases: on a GPU, for a model
    that draws random numbers from torch's one generator, and with `in_order`.
    """
    threads = torch.get_num_threads() if threads is None else threads
    in_order = in_order or device.type != "cpu" or _draws_by_itself(model)
    thread_group = ThreadGroup(1 if in_order else min(threads, _MOST), threads)
    with kernel_threads(threads // thread_group.size):
        try:
            yield thread_group
        finally:
            thread_group.close()


@contextmanager
def kernel_threads(threads: int) -> Iterator[None]:
    """Set the number of threads of torch's kernels for the block."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)


def _draws_by_itself(model: nn.Module) -> bool:
    """Return True if torch's RNNs have dropout between layers: they draw from the one generator."""
    return any(
        isinstance(m, nn.RNNBase) and m.num_layers > 1 and m.dropout for m in model.modules()
    )
