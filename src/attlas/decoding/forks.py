"""Copies of this process that work for it."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Self, TypeVar

import torch

from attlas.errors import AttlasError

Item = TypeVar("Item")
Found = TypeVar("Found")

POSSIBLE = sys.platform == "linux"  # elsewhere there is no fork, or libraries that do not bear it


class Forks(Generic[Item, Found]):
    """`forks.map(items)` is [work(item) for item in items], done by up to `count` child processes.

    A child is a copy of this process as it was at the first map that wanted it: model and all, with
    nothing read or sent again, and with one thread for torch. Items and what is found travel
    through pipes, so they have to be picklable; `work` need not be. Unlike threads, children do not
    wait for one lock of Python's between the kernels of a step.

    As a context manager it ends its children: at once after an exception, else when they have
    nothing left to do. Should this process be killed, they end after the item in work.

    Errors: what `work` raises in a child is raised here; `AttlasError` for a child that died.
    """

    def __init__(self, work: Callable[[Item], Found], count: int) -> None:
        self._work, self.count = work, count
        self._children: dict[Connection, int] = {}  # the pipe of each, and its process id

    def map(self, items: Sequence[Item]) -> list[Found]:
        """The items are begun in their order; what is found comes in their order.

        A single item is not worth a child.
        """
        if len(items) == 1:
            return [self._work(items[0])]
        while len(self._children) < min(self.count, len(items)):
            self._fork()
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
        child = os.fork()
        if child:
            theirs.close()
            self._children[ours] = child
            return
        # From here on we are the child, and end without whatever this process does at its end.
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is our parent's to answer
            for pipe in [ours, *self._children]:
                pipe.close()  # or nobody would notice its other end closing
            torch.set_num_threads(1)
            _serve(self._work, theirs)
        finally:
            os._exit(0)

    def _kill(self) -> None:
        for child in self._children.values():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Let the children end; whoever is at an item finishes it first."""
        for pipe in self._children:
            pipe.close()
        for child in self._children.values():
            with suppress(ChildProcessError):
                os.waitpid(child, 0)
        self._children.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *rest: object) -> None:
        if error is None:
            self.close()
        else:
            self._kill()


def _serve(work: Callable[[Any], Any], pipe: Connection) -> None:
    """Answer each item with (False, what is found) or (True, the exception), until the end."""
    with suppress(EOFError, BrokenPipeError):
        for item in _received(pipe):
            try:
                answer: tuple[bool, Any] = (False, work(item))
            except Exception as error:
                answer = (True, error)
            try:
                pipe.send(answer)
            except (BrokenPipeError, EOFError):
                raise
            except Exception as error:  # an exception that cannot travel
                pipe.send((True, RuntimeError(repr(answer[1]) if answer[0] else repr(error))))


def _received(pipe: Connection) -> Iterator[Any]:
    while True:
        yield pipe.recv()
