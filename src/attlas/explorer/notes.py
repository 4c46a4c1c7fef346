"""Notes of a reader: a text, and the view of the page that it is about."""

import json
import secrets
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attlas._files import parse_json, stored_bytes, write_durably
from attlas.errors import AttlasError, DataError
from attlas.explorer.messages import json_no_store, json_object

MOST_NOTES = 500
MOST_TEXT = 2_000  # characters of a note
MOST_LINK = 8_000  # characters of the address of its view

BESIDE_TRACE = ".notes.json"
IN_RUN = "explorer-notes.json"  # as `attlas.runs` has it, which imports torch


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader wrote of a view; link: the part of the page's address from "#" on."""

    id: str
    text: str
    link: str


def notes_path(shown: Path) -> Path:
    """The file with the notes of a trace, which stands beside it, or of a run, which is in it."""
    return shown / IN_RUN if shown.is_dir() else shown.with_name(shown.name + BESIDE_TRACE)


def read_notes(path: Path) -> tuple[Note, ...]:
    """The notes in a file; none where there is no file.

    Raises:
        DataError: For a file that holds something else.
    """
    try:
        held = parse_json(stored_bytes(path))
        if not isinstance(held, dict) or not isinstance(held.get("notes"), list):
            raise ValueError("it has no list of notes")
        return tuple(_note(fields) for fields in held["notes"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"notes of the explorer in {path}", str(error), "repair that file, or move it away"
        ) from None


def _note(fields: Any) -> Note:
    if not isinstance(fields, dict) or not all(isinstance(v, str) for v in fields.values()):
        raise ValueError("a note has three texts: id, text, link")
    return Note(**fields)


class NotesFile:
    """Notes in a file, which is written anew with each change."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()

    def read(self) -> tuple[Note, ...]:
        """All of them, the oldest first."""
        return read_notes(self._path)

    def add(self, text: str, link: str) -> tuple[Note, ...]:
        """Add a note; return all.

        Raises:
            AttlasError: For a text or a link that is empty or too long, and for too many notes.
        """
        _check_length("text", text, MOST_TEXT)
        check_link(link)
        with self._lock:
            notes = self.read()
            if len(notes) >= MOST_NOTES:
                raise AttlasError(
                    f"at most {MOST_NOTES} notes", "one more", "remove some of them first"
                )
            return self._write((*notes, Note(secrets.token_hex(4), text.strip(), link)))

    def remove(self, note: str) -> tuple[Note, ...]:
        """Remove the note of this id; return the others.

        Raises:
            KeyError: If there is none.
        """
        with self._lock:
            notes = self.read()
            left = tuple(one for one in notes if one.id != note)
            if len(left) == len(notes):
                raise KeyError(note)
            return self._write(left)

    def _write(self, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        held = {"notes": [asdict(note) for note in notes]}
        text = json.dumps(held, ensure_ascii=False, indent=1)
        write_durably(self._path, text.encode(errors="surrogatepass"))
        return notes


class NotesRoutes:
    """Answers what a reader noted, and takes further notes."""

    def __init__(self, file: NotesFile) -> None:
        self._file = file

    @property
    def routes(self) -> list[Route]:
        """Where the page reads notes, adds one, and removes one."""
        return [
            Route("/notes", self._read),
            Route("/notes", self._add, methods=["POST"]),
            Route("/notes/{note}", self._remove, methods=["DELETE"]),
        ]

    async def _read(self, request: Request) -> Response:
        return _answer(await run_in_threadpool(self._file.read))

    async def _add(self, request: Request) -> Response:
        fields = await json_object(request, ("text", "link"))
        return _answer(await run_in_threadpool(self._file.add, fields["text"], fields["link"]))

    async def _remove(self, request: Request) -> Response:
        try:
            return _answer(
                await run_in_threadpool(self._file.remove, str(request.path_params["note"]))
            )
        except KeyError:
            raise HTTPException(404) from None


def _answer(notes: tuple[Note, ...]) -> Response:
    return json_no_store({"notes": [asdict(note) for note in notes]})


def check_link(link: str) -> None:
    """Check that this may be a link of the page.

    Raises:
        AttlasError: If it is empty, too long, or begins with anything but #.
    """
    _check_length("link", link, MOST_LINK)
    if not link.startswith("#"):
        raise AttlasError("a link that begins with #", link[:20], "send the page's own address")


def _check_length(name: str, value: str, most: int) -> None:
    if not value.strip() or len(value) > most:
        got = f"{len(value):,} characters" if value.strip() else "an empty one"
        raise AttlasError(f"a {name} of 1 to {most:,} characters", got, "write another")
