"""What the server writes for a reader to keep: the text on screen as one file."""

import threading
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attlas.explorer.maps import MapRoutes, check_parameters
from attlas.explorer.messages import no_store
from attlas.explorer.notes import NotesFile
from attlas.explorer.one_file import FileContent, page_with


class ExportRoutes:
    """Answers with files.

    Args:
        known: What is known of the model or of the trace, see `ModelFacts`.
        notes: The reader's notes, which a page holds too; None = there are none.
    """

    def __init__(self, maps: MapRoutes, known: Mapping[str, Any], notes: NotesFile | None) -> None:
        self._maps, self._known, self._notes = maps, known, notes

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for files. They come before the tile of a layer, whose path would
        fit them too."""
        return [Route("/maps/{id}/file", self._file)]

    async def _file(self, request: Request) -> Response:
        text_maps = self._maps.text_maps(request)
        check_parameters(request, ())

        def work(stop: threading.Event) -> str:
            content = FileContent.of_maps(text_maps, self._known, "display", stop)
            notes = () if self._notes is None else self._notes.read()
            return page_with(content.with_notes(notes) if notes else content)

        page = await self._maps.answer(request, work)
        return _saved(page.encode(), "text/html; charset=utf-8", "attlas.html")


def _saved(content: bytes, media_type: str, name: str) -> Response:
    """A file, which no browser shows as a page of this server."""
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return no_store(Response(content, media_type=media_type, headers=disposition))
