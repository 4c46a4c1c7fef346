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
        sizes = {call.shape[0] for name in trace.layers for call in trace.calls(name)}
        # Layers with other numbers of rows, as in a beam search, are of other texts at one row.
        self._rows = [(row, batch) for batch in sorted(sizes) for row in range(batch)]
        self._several = len(sizes) > 1

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for facts and for the maps of a text."""
        return [Route("/model", self._model), Route("/texts/{row}", self._text)]

    async def _model(self, request: Request) -> Response:
        texts = [self._named(*one) for one in self._rows]
        return fresh_json({"facts": {"name": self._name}, "texts": texts})

    async def _text(self, request: Request) -> Response:
        row = place(request, "row")
        if row >= len(self._rows):
            raise HTTPException(404, "a text of this trace")
        return fresh_json(await run_in_threadpool(self._told, row))

    def _named(self, row: int, batch: int) -> str:
        preview = _preview(self._trace, row, batch)
        if not self._several:
            return preview
        return f"row {row} of {batch}" + (f": {preview}" if preview else "")

    def _told(self, row: int) -> dict[str, Any]:
        return {
            "text": None,
            "score": None,
            "remarks": [],
            "blank": "",
            **self._maps.told(Atlas.of(self._trace, *self._rows[row])),
        }


def _preview(trace: Trace, row: int, batch: int) -> str:
    """The beginning of a text, "" where nobody named the tokens of so many."""
    sides = [trace.source, trace.target]
    sides += [side for layer in trace.layers for side in trace.tokens(layer)]
    tokens = next((side[row] for side in sides if len(side) == batch and side[row]), ())
    marked = any(token.startswith("▁") for token in tokens)
    text = ("" if marked else " ").join(tokens[:_PREVIEW]).replace("▁", " ").strip()
    return text if len(text) <= _PREVIEW else f"{text[: _PREVIEW - 1].rstrip()}…"
