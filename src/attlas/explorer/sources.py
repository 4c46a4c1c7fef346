"""What the page can show, each opened in a thread, when the first answer needs it."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from attlas.errors import AttlasError
from attlas.explorer.answers import AnswerFolder, RememberedAnswers


@dataclass(frozen=True, slots=True)
class ExplorerSource:
    """A run, a model or a trace that the page can show.

    Args:
        name: What the page calls it.
        open: Gives what is shown: a translator or a trace.
        notes: The file of the reader's notes; None = the page takes none.
        checksum: Of a trace, as its file says it; None = of nothing that stays the same.
        answers: Where answers about a trace are kept; None = nowhere.
        gold: Of a trace, the links of annotators for each of its texts (`Reference`).
    """

    name: str
    open: Callable[[], Any]
    notes: Path | None = None
    checksum: str | None = None
    answers: AnswerFolder | None = None
    gold: Sequence[Any] | None = None


class Opening:
    """An application that is made in a thread, once it is asked for; who asks waits for it.

    Args:
        make: What makes it.
        failed: Called with what went wrong, which every request is answered with, and whether
            there was a request.
    """

    def __init__(
        self, make: Callable[[], ASGIApp], failed: Callable[[AttlasError, bool], None] | None = None
    ) -> None:
        self._make, self._failed = make, failed
        self._made: Future[ASGIApp] = Future()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._traceback: TracebackType | None = None  # of what went wrong
        self._is_requested = False

    def begin(self) -> None:
        """Make it, unless that has begun."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="attlas-opening")
                self._thread.start()

    def begin_soon(self) -> None:
        """Make it in a moment, also if nobody asks for it."""
        timer = threading.Timer(_SOON, self.begin)
        timer.daemon = True
        timer.start()

    def _work(self) -> None:
        try:
            self._made.set_result(self._make())
        except BaseException as error:
            # What ends a program, such as `SystemExit` of a library, must not end the event loop.
            wrong = error if isinstance(error, Exception) else RuntimeError(repr(error))
            self._traceback = wrong.__traceback__
            self._made.set_exception(wrong)
            if isinstance(error, AttlasError) and self._failed is not None:
                self._failed(error, self._is_requested)

    def is_broken(self) -> bool:
        """Return True if it could not be made."""
        return self._made.done() and self._made.exception() is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._is_requested = True
        self.begin()
        # A request that is given up leaves the thread at work for the others.
        try:
            application = await asyncio.shield(asyncio.wrap_future(self._made))
        except Exception as error:
            if not self.is_broken():
                raise
            # Each raise would make the traceback of the one before longer.
            raise error.with_traceback(self._traceback) from None
        await application(scope, receive, send)


_SOON = 2.0  # seconds in which the page asks for what is on disk, without another thread at work


def apis_of(
    sources: Sequence[ExplorerSource],
    failed: Callable[[AttlasError, bool], None] | None = None,
) -> tuple[list[ASGIApp], Callable[[], None]]:
    """What answers for each of them, and a function that soon opens the first one.

    Args:
        failed: Called with the error of a source that could not be opened, which the page says too,
            and whether the page asked for it.
    """
    names = [source.name for source in sources]
    opening = [Opening(_maker(source, names), failed) for source in sources]
    apis: list[ASGIApp] = [
        RememberedAnswers(made, source.answers, _context(source, names), made.is_broken)
        if source.answers is not None
        else made
        for source, made in zip(sources, opening, strict=True)
    ]
    return apis, opening[0].begin_soon


def _maker(source: ExplorerSource, names: Sequence[str]) -> Callable[[], ASGIApp]:
    def make() -> ASGIApp:
        shown = source.open()
        key = None if source.checksum is None else source.checksum[:16]
        # By its name, because it imports torch.
        application: ASGIApp = import_module("attlas.explorer.api").api(
            shown,
            name=source.name,
            notes=source.notes,
            key=key,
            answers=source.answers,
            sources=names,
            **({} if source.gold is None else {"gold": source.gold}),
        )
        return application

    return make


def _context(source: ExplorerSource, names: Sequence[str]) -> str:
    """What the page is told of a source that its trace does not say."""
    several = list(names) if len(names) > 1 else []
    told = source.name, source.notes is not None, several, source.gold is not None
    return repr((*told, find_spec("pyarrow") is not None))
