"""Answers about a trace that were given before, kept on disk.

To read a long map takes a minute, and to import torch some seconds: who opens a trace again waits
for neither.
"""

import hashlib
import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attlas._files import parse_json, stored_bytes
from attlas.explorer.messages import no_store

FORMAT = 2
"""Of the files, and of the answers in them: raise it where either changes."""

IGNORED = ".gitignore"
FOLDER = ".attlas-cache"
MOST_BYTES = 256 * 2**20  # of all files of a folder
MOST_OF_ONE = 64 * 2**20

_MAGIC = b"ATLA"
_SUFFIX = ".answer"
_STALE = 3600.0  # seconds after which an incomplete file is one that a killed server left


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question was answered with."""

    media_type: str
    body: bytes


class AnswerFolder:
    """Answers about traces, each in a file whose name is a checksum of its question.

    A file holds "ATLA", a line of JSON with the question, the media type and the SHA-256 of the
    rest, and then the answer. What is damaged, or is no such file, counts as absent. Two servers
    may share a folder: a file is there whole or not at all. Of more than `most_bytes` the files
    that were not used for the longest time are removed.

    Args:
        folders: Where to keep them, the best place first; the first one that can be written is
            taken.
        checksum: Of the trace.
        mode: Who may read the files, as bits of the trace's own mode.
    """

    def __init__(
        self,
        folders: list[Path],
        checksum: str,
        *,
        mode: int = 0o600,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._folders, self._checksum = folders, checksum
        self._mode, self._most_bytes = mode, most_bytes

    @classmethod
    def of_trace(cls, path: Path, checksum: str) -> "AnswerFolder":
        """In the folder `.attlas-cache` beside the trace, or where that cannot be written in the
        user's folder of caches."""
        try:
            mode = path.stat().st_mode & 0o666
        except OSError:
            mode = 0o600
        return cls(
            [path.parent / FOLDER, user_caches() / "attlas" / "explorer"], checksum, mode=mode
        )

    def read(self, question: str) -> Answer | None:
        """The answer to a question; None where it is not there."""
        name = self._name(question)
        for folder in self._folders:
            if not _is_own(folder):
                continue
            with suppress(OSError, ValueError, KeyError, TypeError):
                path = folder / name
                found = _unpacked(stored_bytes(path), self._whole(question))
                os.utime(path)  # it was used now
                return found
        return None

    def write(self, question: str, answer: Answer) -> bool:
        """Keep an answer, where that can be done; return True if it was."""
        if len(answer.body) > min(MOST_OF_ONE, self._most_bytes):
            return False
        content = _packed(answer, self._whole(question))
        return any(self._put(folder, self._name(question), content) for folder in self._folders)

    def _put(self, folder: Path, name: str, content: bytes) -> bool:
        temporary = folder / f"{secrets.token_hex(8)}{_SUFFIX}.tmp"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not _is_own(folder):
                return False
            if not (folder / IGNORED).exists():
                (folder / IGNORED).write_text("*\n", encoding="ascii", newline="\n")
            temporary.touch(mode=0o600, exist_ok=False)
            temporary.write_bytes(content)
            temporary.chmod(self._mode | 0o600)
            temporary.replace(folder / name)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            return False
        _shrink(folder, self._most_bytes, folder / name)
        return True

    def _name(self, question: str) -> str:
        return hashlib.sha256(self._whole(question).encode()).hexdigest() + _SUFFIX

    def _whole(self, question: str) -> str:
        """The question with all that its answer depends on."""
        return json.dumps([FORMAT, version("attlas"), self._checksum, question])


def user_caches() -> Path:
    """The folder in which this system keeps caches of a user."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _is_own(folder: Path) -> bool:
    """Return True if this is a folder that no other user has put there."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    theirs = hasattr(os, "getuid") and found.st_uid != os.getuid()
    return stat.S_ISDIR(found.st_mode) and not theirs


def _packed(answer: Answer, question: str) -> bytes:
    digest = hashlib.sha256(answer.body).hexdigest()
    facts = {"question": question, "media_type": answer.media_type, "sha256": digest}
    return _MAGIC + json.dumps(facts).encode() + b"\n" + answer.body


def _unpacked(content: bytes, question: str) -> Answer:
    """The answer in a file.

    Raises:
        ValueError: If it is damaged, or answers another question.
    """
    head, _, body = content.partition(b"\n")
    facts = parse_json(head.removeprefix(_MAGIC))
    whole = head.startswith(_MAGIC) and facts["sha256"] == hashlib.sha256(body).hexdigest()
    if not whole or facts["question"] != question:
        raise ValueError("it is damaged, or answers another question")
    return Answer(str(facts["media_type"]), body)


def _shrink(folder: Path, most_bytes: int, newest: Path) -> None:
    """Remove the files of ours that were not used for the longest time, but not the newest one."""
    with suppress(OSError):  # another server removes some, too
        found = [path for path in folder.iterdir() if path.name.endswith(_SUFFIX)]
        sizes = {path: path.stat() for path in found}
        total = sum(status.st_size for status in sizes.values())
        for path in sorted(sizes, key=lambda one: sizes[one].st_mtime):
            if total <= most_bytes:
                break
            if path != newest:
                path.unlink(missing_ok=True)
                total -= sizes[path].st_size
        for left in folder.glob(f"*{_SUFFIX}.tmp"):
            if time.time() - left.stat().st_mtime > _STALE:
                left.unlink(missing_ok=True)


# What asks it.


_LONG = 0.1  # seconds; an answer that took longer is kept
_FIRST = 16  # answers after the start, which are kept anyway: by them the first picture is drawn
_KEPT = ("/model", "/texts/", "/maps/")
# The links of /alignment and the notes of /file come from other files.
_NOT_KEPT = ("/progress", "/glance", "/alignment", "/file", "/parquet")


class RememberedAnswers:
    """Answers what is on disk, and keeps there what took long, and what a page asks for at first.

    Args:
        app: What answers the rest.
        context: What is said of the model beside what the trace says.
        broken: Whether the trace could not be opened; then nothing of it is shown.
    """

    def __init__(
        self, app: ASGIApp, answers: AnswerFolder, context: str, broken: Callable[[], bool]
    ) -> None:
        self._inner, self._answers = app, answers
        self._context, self._broken = context, broken
        self._num_answers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        lasting = path.startswith(_KEPT) and not path.endswith(_NOT_KEPT)
        if scope["method"] != "GET" or not lasting:
            await self._inner(scope, receive, send)
            return
        question = f"{path}?{scope['query_string'].decode()}"
        if path == "/model":
            question += f" {self._context}"
        self._num_answers += 1
        found = await run_in_threadpool(self._answers.read, question)
        if found is not None and not self._broken():
            response = Response(found.body, media_type=found.media_type)
            await no_store(response)(scope, receive, send)
            return
        begun, early = time.monotonic(), self._num_answers <= _FIRST
        recorded = _RecordedResponse()

        async def note(message: Message) -> None:
            recorded.take(message)
            await send(message)

        await self._inner(scope, receive, note)
        if recorded.whole and (early or time.monotonic() - begun > _LONG):
            # The answer is with who asked: nobody waits for the disk.
            await run_in_threadpool(self._answers.write, question, recorded.answer)


class _RecordedResponse:
    """An answer, as it comes."""

    def __init__(self) -> None:
        self._good, self.whole, self._media_type, self._body = False, False, "", b""

    def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._good = message["status"] == 200
            self._media_type = Headers(raw=message["headers"]).get("content-type", "")
        elif self._good:
            self._body += message.get("body", b"")
            self.whole = not message.get("more_body", False)

    @property
    def answer(self) -> Answer:
        return Answer(self._media_type, self._body)
