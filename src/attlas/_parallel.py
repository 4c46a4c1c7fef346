"""Copies of this process that work for it."""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from threading import Lock
from typing import Any, Generic, Self, TypeVar

import torch
from torch import nn

from attlas.errors import AttlasError

# Work for several.


Item = TypeVar("Item")
Found = TypeVar("Found")


def map_shares(
    work: Callable[[Sequence[Sequence[Item]]], Sequence[Sequence[Found]]],
    items: Sequence[Item],
    costs: Sequence[int],
    thread_group: int,
) -> list[Found]:
    """What is found for each item, where `work(shares)` finds it for the items of each share."""
    shares = balance(costs, thread_group)
    found = work([[items[place] for place in share] for share in shares])
    places = chain.from_iterable(shares)
    by_place = dict(zip(places, chain.from_iterable(found), strict=True))
    return [by_place[place] for place in range(len(items))]


def balance(costs: Sequence[int], thread_group: int) -> list[list[int]]:
    """Which items each of the thread group gets, by their places, so that all have about as much to
    do.

    The dearest is given first, each to whoever has least so far (Graham, 1969); everybody's are
    then in their own order. Who would get nothing is left out.
    """
    loads = [0] * thread_group
    shares: list[list[int]] = [[] for _ in range(thread_group)]
    for place in sorted(range(len(costs)), key=lambda place: -costs[place]):
        least = loads.index(min(loads))
        loads[least] += costs[place]
        shares[least].append(place)
    return [sorted(share) for share in shares if share]


POSSIBLE = sys.platform == "linux"  # elsewhere there is no fork, or libraries that do not bear it


class ForkPool(Generic[Item, Found]):
    """`forks.map(items)` is [work(item) for item in items], done by `count` child processes.

    A child is a copy of this process as it was when the `ForkPool` were made: model and all, with
    nothing read or sent again, and with one thread for torch. So make them before there are locks,
    threads or open outputs that they would hold a copy of. Items and what is found travel through
    pipes and have to be picklable; `work` need not be. Unlike threads, children do not wait for one
    lock of Python's between the kernels of a step.

    There may be fewer children than asked for, where the system allows no more; without any, and
    after an error, this process does the work. As a context manager it ends its children: at once
    after an exception, else when they have nothing left to do. Should this process be killed, they
    end after the item in work. Several threads may map; one after the other they do.

    Raises:
        AttlasError: What `work` raises in a child is raised here.
        AttlasError: For a child that died.
    """

    def __init__(self, work: Callable[[Item], Found], count: int) -> None:
        self._work, self._mapping = work, Lock()
        self._children: dict[Connection, int] = {}  # the pipe of each, and its process id
        with suppress(OSError):  # no process more, or no memory for one
            for _ in range(count):
                self._fork()

    def __len__(self) -> int:
        """How many children there are."""
        return len(self._children)

    def map(self, items: Sequence[Item]) -> list[Found]:
        """The items are begun in their order; what is found comes in their order."""
        with self._mapping:
            if not self._children:
                return [self._work(item) for item in items]
            try:
                return self._mapped(items)
            except BaseException:
                self._kill()  # or what they are still at would be taken for the next answer
                raise

    def _mapped(self, items: Sequence[Item]) -> list[Found]:
        pending = iter(enumerate(items))
        working: dict[Connection, int] = {}
        found: dict[int, Found] = {}

        def give(pipe: Connection) -> None:
            for place, item in islice(pending, 1):
                self._or_dead(pipe, partial(pipe.send, item))
                working[pipe] = place

        for pipe in self._children:
            give(pipe)
        while working:
            for ready in wait(list(working)):
                assert isinstance(ready, Connection)
                failed, answer = self._or_dead(ready, ready.recv)
                if failed:
                    raise answer
                found[working.pop(ready)] = answer
                give(ready)
        return [found[place] for place in range(len(items))]

    def _or_dead(self, pipe: Connection, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except (EOFError, ConnectionError):
            raise AttlasError(
                "every process of a translation to stay alive",
                f"process {self._children[pipe]} killed, perhaps because memory ran out",
                "run it again, with fewer of them (OMP_NUM_THREADS=1) if memory is short",
            ) from None

    def _fork(self) -> None:
        parent_pipe, child_pipe = Pipe()
        with _deaf():
            with warnings.catch_warnings():
                # Newer Pythons warn of threads, which a child lacks. It needs none of ours.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if not child:
                _be_child(self._work, child_pipe, [parent_pipe, *self._children])
        child_pipe.close()
        self._children[parent_pipe] = child

    def close(self) -> None:
        """Let the children end; whoever is at an item finishes it first."""
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
    """Ctrl-C waits: raised in a child, it would end it as if it were its parent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _be_child(work: Callable[[Any], Any], pipe: Connection, others: Sequence[Connection]) -> None:
    """Serve, and end without whatever the parent does at its end."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is our parent's to answer
        for other in others:
            other.close()  # or nobody would notice its other end closing
        torch.set_num_threads(1)
        _serve(work, pipe)
    finally:
        os._exit(0)


def _serve(work: Callable[[Any], Any], pipe: Connection) -> None:
    """Answer each item with (False, what is found) or (True, the exception), until the end."""
    with suppress(EOFError, ConnectionError):
        while True:
            item = pipe.recv()
            try:
                answer: tuple[bool, Any] = (False, work(item))
            except Exception as error:
                answer = (True, error)
            try:
                pipe.send(answer)
            except (EOFError, ConnectionError):
                raise
            except Exception as error:  # what cannot travel
                cause = answer[1] if answer[0] else error
                pipe.send((True, RuntimeError(repr(cause))))


# Threads that share the blocks of an attention map.


def run_threads(work: Callable[[int, int, threading.Event], None]) -> None:
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


# Threads that share an update.


_MOST = 4  # beyond it the shares of a batch grow too small, and kernels get the other cores

Part = TypeVar("Part")
Done = TypeVar("Done")


class ThreadGroup:
    """So many threads, each of which computes with its own cores.

    Two halves of a batch on two cores are nearly twice as fast as a whole batch whose every matrix
    product is shared by two: most products of a small model are too small to be shared. Python
    does not stand in the way, because torch lets go of its lock inside every kernel.
    """

    def __init__(self, size: int = 1, cores: int | None = None) -> None:
        self.size = size
        self._cores = cores
        self._pool = ThreadPoolExecutor(size, "attlas-crew") if size > 1 else None

    def map(self, work: Callable[[Part], Done], parts: Sequence[Part]) -> list[Done]:
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
        return kernel_threads(self._cores or torch.get_num_threads())

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()


@contextmanager
def open_thread_group(
    threads: int | None, device: torch.device, model: nn.Module, *, alone: bool = False
) -> Iterator[ThreadGroup]:
    """A thread group for so many cores (None: as many as torch would use), for the length of the
    block.

    Each of its threads has an equal part of them, up to four cores one each. It is a thread group
    of one, whose kernels have all cores, on a GPU, whose kernels need no such help, for a model
    that draws random numbers where no thread group can keep them apart, and where it has to work
    `alone`.
    """
    threads = torch.get_num_threads() if threads is None else threads
    alone = alone or device.type != "cpu" or _draws_by_itself(model)
    thread_group = ThreadGroup(1 if alone else min(threads, _MOST), threads)
    with kernel_threads(threads // thread_group.size):
        try:
            yield thread_group
        finally:
            thread_group.close()


@contextmanager
def kernel_threads(threads: int) -> Iterator[None]:
    """Kernels of torch have so many threads, for the length of the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _draws_by_itself(model: nn.Module) -> bool:
    """Return True if torch's RNNs drop out between their layers: they draw from the one
    generator.
    """
    return any(
        isinstance(m, nn.RNNBase) and m.num_layers > 1 and m.dropout for m in model.modules()
    )
