"""What answers the questions of the explorer's page, about one translator or one trace."""

from collections.abc import Sequence
from pathlib import Path

from starlette.routing import Router

from attlas.analysis.alignment import Reference
from attlas.explorer.answers import AnswerFolder
from attlas.explorer.backends import MOST_KEPT, TraceBackend, TranslatorBackend, TranslatorProtocol
from attlas.explorer.exports import ExportRoutes
from attlas.explorer.maps import MapRoutes
from attlas.explorer.notes import NotesFile, NotesRoutes
from attlas.explorer.openapi import OpenApiRoutes
from attlas.explorer.overview import OverviewRoutes
from attlas.recording import Trace


def api(
    shown: TranslatorProtocol | Trace,
    *,
    name: str | None = None,
    notes: Path | None = None,
    key: str | None = None,
    answers: AnswerFolder | None = None,
    sources: Sequence[str] = (),
    gold: Sequence[Reference] | None = None,
) -> Router:
    """The routes for a translator, or for a trace of whatever model.

        GET  /openapi.json        the description of these routes in OpenAPI
        GET  /model               facts about the model; of a trace, how its texts begin
        POST /translate           {"text": …} → the translation, its tokens, and which maps;
                                  it begins with "prefix", where there is one: a text, or ids
        GET  /notes               the reader's notes; POST {"text", "link"} adds one, and
                                  DELETE /notes/{note} removes one
        GET  /texts/{row}         which maps a trace has of this text, from 0
        GET  /maps/{id}/overview  ?side=64 → small pictures of all heads of all layers
        GET  /maps/{id}/statistics
                                  → numbers for each head, and which head is shown first
        GET  /maps/{id}/file      ?link=#… → the page with this text as one file, which opens
                                  offline, and as the link says
        GET  /maps/{id}/beams     → the hypotheses of a beam search, and alternatives of tokens
        GET  /maps/{id}/{layer}   ?heads=a:b&rows=a:b&keys=a:b&shape=h,w&bits=8|16
                                  &curve=linear|root → a tile
        GET  /maps/{id}/{layer}/progress
                                  ? as for a tile → {"share": 0.4}, how far its reading is
        GET  /maps/{id}/{layer}/glance
                                  ? as for a tile of one head → what an earlier reading of its
                                  whole map says of this part, at once; 204 where there was none
        GET  /maps/{id}/{layer}/doubt
                                  ?head=h&output=o&row=r&key=k&weight=0.5&erased=a:b
                                  → what an output becomes when the head looks elsewhere
        GET  /maps/{id}/{layer}/adversary
                                  ?head=h&output=o&row=r → other weights of the same output
        GET  /maps/{id}/{layer}/adversary/progress
                                  ? as for them → {"share": 0.4}, how far the search for them is
        GET  /maps/{id}/{layer}/mechanism
                                  ?head=h&row=r&key=k → how the weights of a row came about
        GET  /maps/{id}/{layer}/alignment
                                  ?head=h → the gold links, and how well the head finds them
        GET  /maps/{id}/{layer}/parquet
                                  ?head=h&rows=a:b&keys=a:b → the weights of a part in Parquet,
                                  where pyarrow is installed
        GET  /maps/{id}/{layer}/tokens
                                  ?rows=a:b&keys=a:b → its tokens, [] where they have no names
        GET  /maps/{id}/{layer}/image
                                  → the image whose patches its keys are, as PNG; 404 where none is

    A tile is binary (see `maps.pack`), an overview too (`overview.join_tiles`); a window into a map
    is a `MapWindow`.

    Args:
        name: What the page calls a trace.
        notes: The file of the reader's notes; None = the page takes none.
        key: What the ids of a trace's maps begin with, the same for the same trace; None = a new
            one each time.
        answers: Where pyramids of a trace's long maps are kept; None = in memory alone.
        sources: The names of all that the page can show, where there are several.
        gold: Of a trace, the links of annotators for each of its texts.
    """
    # The maps of a trace are its own memory; those of translations are beside it.
    maps = MapRoutes(None if isinstance(shown, Trace) else MOST_KEPT, answers)
    backend = (
        TraceBackend(
            shown, name, maps, notes=notes is not None, key=key, sources=sources, gold=gold
        )
        if isinstance(shown, Trace)
        else TranslatorBackend(shown, maps, notes=notes is not None, sources=sources)
    )
    # An overview comes before the tile of a layer, whose path would fit it too.
    kept = None if notes is None else NotesFile(notes)
    exports = ExportRoutes(maps, backend.known, kept)
    routes = [*backend.routes, *OverviewRoutes(maps).routes, *exports.routes, *maps.routes]
    if kept is not None:
        routes += NotesRoutes(kept).routes
    routes += OpenApiRoutes(routes).routes
    return Router(routes, redirect_slashes=False)
