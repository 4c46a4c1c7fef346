"""Copies of this process that work for it."""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from threading import Lock
from typing import Any, Generic, Self, TypeVar

import torch

from attlas.errors import AttlasError

Item = TypeVar("Item")
Found = TypeVar("Found")

POSSIBLE = sys.platform == "linux"  # elsewhere there is no fork, or libraries that do not bear it


class Forks(Generic[Item, Found]):
    """`forks.map(items)` is [work(item) for item in items], done by `count` child processes.

    A child is a copy of this process as it was when the `Forks` were made: model and all, with
    nothing read or sent again, and with one thread for torch. So make them before there are locks,
    threads or open outputs that they would hold a copy of. Items and what is found travel through
    pipes and have to be picklable; `work` need not be. Unlike threads, children do not wait for one
    lock of Python's between the kernels of a step.

    There may be fewer children than asked for, where the system allows no more; without any, and
    after an error, this process does the work. As a context manager it ends its children: at once
    after an exception, else when they have nothing left to do. Should this process be killed, they
    end after the item in work. Several threads may map; one after the other they do.

    Errors: what `work` raises in a child is raised here; `AttlasError` for a child that died.
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
        left = iter(enumerate(items))
        working: dict[Connection, int] = {}
        found: dict[int, Found] = {}

        def give(pipe: Connection) -> None:
            for place, item in islice(left, 1):
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
                f"process {self._children[pipe]} killed, perhaps for want of memory",
                "run it again, with fewer of them (OMP_NUM_THREADS=1) if memory is short",
            ) from None

    def _fork(self) -> None:
        ours, theirs = Pipe()
        with _deaf():
            with warnings.catch_warnings():
                # Newer Pythons warn of threads, which a child lacks. It needs none of ours.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if not child:
                _be_child(self._work, theirs, [ours, *self._children])
        theirs.close()
        self._children[ours] = child

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

    def __exit__(self, error: object, *rest: object) -> None:
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
                told = answer[1] if answer[0] else error
                pipe.send((True, RuntimeError(repr(told))))
