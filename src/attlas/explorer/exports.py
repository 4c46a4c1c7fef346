"""What the server writes for a reader to keep: a text as one file, and numbers in Parquet."""

import math
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from jaxtyping import Float
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from torch import Tensor

from attlas.corpus_statistics.formats import Facts, ParquetTable
from attlas.corpus_statistics.table import Column
from attlas.errors import AttlasError
from attlas.explorer.maps import (
    Layer,
    MapRoutes,
    MapWindow,
    check_parameters,
    read_number,
    read_range,
)
from attlas.explorer.messages import no_store, path_number
from attlas.explorer.notes import NotesFile, check_link
from attlas.explorer.one_file import FileContent, page_with

# The numbers of a part of a map.


_COLUMNS = (
    Column("row", "whole", "the position of the query, from 0"),
    Column("row_token", "text", "its token; none where it has no name"),
    Column("key", "whole", "the position of the key, from 0"),
    Column("key_token", "text", "its token"),
    Column("weight", "number", "w, for each key that the query may see"),
)
_MOST_WEIGHTS = 1 << 22
_AT_ONCE = 1 << 20  # weights, of all heads


@dataclass(frozen=True, slots=True)
class ExportedPart:
    """A part of the map of a head.

    Args:
        head: From 0; None = the mean of all heads.
    """

    layer: Layer
    head: int | None
    rows: tuple[int, int]
    keys: tuple[int, int]

    @classmethod
    def read(cls, query: Mapping[str, str], layer: Layer) -> Self:
        """From a query string: ?head=h&rows=a:b&keys=a:b.

        Raises:
            AttlasError: For a part of too many weights.
        """
        head = read_number(query, "head", layer.heads)
        rows = read_range(query, "rows", layer.queries)
        keys = read_range(query, "keys", layer.num_keys)
        size = rows[1] - rows[0], keys[1] - keys[0]
        if math.prod(size) > _MOST_WEIGHTS:
            raise AttlasError(
                f"a part of at most {_MOST_WEIGHTS:,} weights",
                f"{size[0]:,} × {size[1]:,}",
                "come closer, or save the trace: attlas.Trace.save",
            )
        return cls(layer, head, rows, keys)

    def blocks(self, stop: threading.Event) -> Iterator[tuple[int, Float[Tensor, "rows keys"]]]:
        """The first row of each block, and its weights; −inf where the query may not look.

        Raises:
            PassCancelledError: Soon after `stop` is set.
        """
        heads = (0, self.layer.heads) if self.head is None else (self.head, self.head + 1)
        width = self.keys[1] - self.keys[0]
        most = max(1, _AT_ONCE // (width * (heads[1] - heads[0])))
        for first in range(*self.rows, most):
            last = min(first + most, self.rows[1])
            window = MapWindow(heads, (first, last), self.keys, last - first, width, 16)
            weights = window.of(self.layer, stop, hidden=-math.inf)
            hidden = weights.isneginf()
            mean = weights.masked_fill(hidden, 0.0).mean(0)
            yield first, mean.masked_fill(hidden.all(0), -math.inf)

    def parquet(self, facts: Facts, stop: threading.Event) -> bytes:
        """One line for each key that a query may see; the facts are in the file's metadata.

        Raises:
            AttlasError: If pyarrow is missing.
        """
        table = ParquetTable(_COLUMNS)
        row_names, key_names = self.layer.axes.queries, self.layer.axes.keys
        with tempfile.TemporaryDirectory() as folder:
            lines, whole = Path(folder) / "rows", Path(folder) / "whole.parquet"
            with lines.open("wb") as file:
                file.write(table.head)
                for first, weights in self.blocks(stop):
                    rows, keys = (~weights.isneginf()).nonzero(as_tuple=True)
                    places = (rows + first).tolist(), (keys + self.keys[0]).tolist()
                    frame = {
                        "row": places[0],
                        "row_token": _named(places[0], row_names),
                        "key": places[1],
                        "key_token": _named(places[1], key_names),
                        "weight": weights[rows, keys].double().tolist(),
                    }
                    file.write(table.rows(frame))
            table.assemble(lines, whole, facts)
            return whole.read_bytes()


def _named(places: list[int], tokens: Sequence[str]) -> list[str | None]:
    return [tokens[place] for place in places] if tokens else [None] * len(places)


# What the page asks.


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
        return [
            Route("/maps/{id}/file", self._file),
            Route("/maps/{id}/{layer}/parquet", self._parquet),
        ]

    async def _file(self, request: Request) -> Response:
        text_maps = self._maps.text_maps(request)
        check_parameters(request, ("link",))
        link = request.query_params.get("link")
        if link:  # a page that shows what it begins with has none
            check_link(link)

        def work(stop: threading.Event) -> str:
            content = FileContent.of_maps(text_maps, self._known, "display", stop)
            notes = () if self._notes is None else self._notes.read()
            content = content.with_notes(notes) if notes else content
            return page_with(content.with_link(link) if link else content)

        page = await self._maps.answer(request, work)
        return _saved(page.encode(), "text/html; charset=utf-8", "attlas.html")

    async def _parquet(self, request: Request) -> Response:
        text_maps = self._maps.text_maps(request)
        layer = text_maps.layer(path_number(request, "layer"))
        check_parameters(request, ("head", "rows", "keys"))
        part = ExportedPart.read(request.query_params, layer)
        facts = {
            "model": str(self._known.get("name") or ""),
            "text": text_maps.facts.title,
            "layer": layer.name,
            "head": "mean of all" if part.head is None else part.head,
            "attlas": version("attlas"),
        }
        content = await self._maps.answer(request, lambda stop: part.parquet(facts, stop))
        return _saved(content, "application/vnd.apache.parquet", "attlas.parquet")


def _saved(content: bytes, media_type: str, name: str) -> Response:
    """A file, which no browser shows as a page of this server."""
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return no_store(Response(content, media_type=media_type, headers=disposition))
