"""A trace, asked by the page."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attlas.errors import AttlasError
from attlas.explorer.atlas import Atlas
from attlas.explorer.fresh import fresh_json
from attlas.explorer.maps import Maps
from attlas.explorer.place import place
from attlas.recording import Trace

_PREVIEW = 60  # characters of a text by which it is chosen


class Showing:
    """What the page asks, answered by one trace; its texts are the rows of the batch."""

    def __init__(self, trace: Trace, name: str | None, maps: Maps) -> None:
        if not trace.layers:
            raise AttlasError(
                "a trace with readings", "an empty one", "run the model inside of attlas.observe"
            )
        self._trace, self._name, self._maps = trace, name, maps
        self._count = max(call.shape[0] for name in trace.layers for call in trace.calls(name))

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for facts and for the maps of a text."""
        return [Route("/model", self._model), Route("/texts/{row}", self._text)]

    async def _model(self, request: Request) -> Response:
        texts = [_preview(self._trace, row) for row in range(self._count)]
        return fresh_json({"facts": {"name": self._name}, "texts": texts})

    async def _text(self, request: Request) -> Response:
        row = place(request, "row")
        if row >= self._count:
            raise HTTPException(404, "a text of this trace")
        return fresh_json(await run_in_threadpool(self._told, row))

    def _told(self, row: int) -> dict[str, Any]:
        return {
            "text": None,
            "score": None,
            "remarks": [],
            "blank": "",
            **self._maps.told(Atlas.of(self._trace, row)),
        }


def _preview(trace: Trace, row: int) -> str:
    """The beginning of a text, "" where nobody named its tokens."""
    sides = [trace.source, trace.target]
    sides += [side for layer in trace.layers for side in trace.tokens(layer)]
    tokens = next((side[row] for side in sides if row < len(side) and side[row]), ())
    marked = any(token.startswith("▁") for token in tokens)
    text = ("" if marked else " ").join(tokens[:_PREVIEW]).replace("▁", " ").strip()
    return text if len(text) <= _PREVIEW else f"{text[: _PREVIEW - 1].rstrip()}…"
