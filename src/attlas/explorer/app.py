"""The explorer's web application: a page, and the questions it asks."""

import asyncio
import logging
from collections.abc import Collection
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Router
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attlas.errors import AttlasError
from attlas.explorer.backends import MOST_KEPT, TraceBackend, TranslatorBackend, TranslatorProtocol
from attlas.explorer.maps import MapRoutes
from attlas.explorer.messages import BusyError, error_body, json_no_store
from attlas.explorer.notes import NotesFile, NotesRoutes
from attlas.explorer.openapi import OpenApiRoutes
from attlas.explorer.overview import OverviewRoutes
from attlas.explorer.security import Guard
from attlas.recording import Trace

_PAGE = Path(__file__).parent / "page"

_log = logging.getLogger("attlas.explorer")


def app(
    shown: TranslatorProtocol | Trace,
    hosts: Collection[str] = (),
    *,
    name: str | None = None,
    token: str | None = None,
    notes: Path | None = None,
) -> Starlette:
    """The web application around one translator, or around one trace of whatever model.

    hosts: the names by which it may be called, beside localhost and its addresses. name: what the
    page calls a trace. token: without which no request is answered (see `security.Guard`). notes:
    the file of the reader's notes; None = the page takes none.

        GET  /                        the page
        GET  /api/openapi.json        the description of these routes in OpenAPI
        GET  /api/model               facts about the model; of a trace, how its texts begin
        POST /api/translate           {"text": …} → the translation, its tokens, and which maps;
                                      it begins with "prefix", where there is one: a text, or ids
        GET  /api/notes               the reader's notes; POST {"text", "link"} adds one, and
                                      DELETE /api/notes/{note} removes one
        GET  /api/texts/{row}         which maps a trace has of this text, from 0
        GET  /api/maps/{id}/overview  ?side=64 → small pictures of all heads of all layers
        GET  /api/maps/{id}/statistics
                                      → numbers for each head, and which head is shown first
        GET  /api/maps/{id}/beams     → the hypotheses of a beam search, and alternatives of tokens
        GET  /api/maps/{id}/{layer}   ?heads=a:b&rows=a:b&keys=a:b&shape=h,w&bits=8|16
                                      &curve=linear|root → a tile
        GET  /api/maps/{id}/{layer}/doubt
                                      ?head=h&output=o&row=r&key=k&weight=0.5&erased=a:b
                                      → what an output becomes when the head looks elsewhere
        GET  /api/maps/{id}/{layer}/adversary
                                      ?head=h&output=o&row=r → other weights of the same output
        GET  /api/maps/{id}/{layer}/mechanism
                                      ?head=h&row=r&key=k → how the weights of a row came about
        GET  /api/maps/{id}/{layer}/tokens
                                      ?rows=a:b&keys=a:b → its tokens, [] where they have no names

    A tile is binary (see `maps.pack`), an overview too (`overview.join_tiles`); a window into a map
    is a `MapWindow`. What the caller did wrong is answered with {"expected", "got", "hint"}; so is
    what we did wrong, with status 500.
    """
    if not (_PAGE / "index.html").is_file():
        raise AttlasError(
            "the built page of the explorer",
            f"nothing at {_PAGE}",
            "install attlas again, or run `npm ci && npm run build` in explorer-ui",
        )
    # The maps of a trace are its own memory; those of translations are beside it.
    maps = MapRoutes(None if isinstance(shown, Trace) else MOST_KEPT)
    answers = (
        TraceBackend(shown, name, maps, notes=notes is not None)
        if isinstance(shown, Trace)
        else TranslatorBackend(shown, maps, notes=notes is not None)
    )
    # An overview comes before the tile of a layer, whose path would fit it too.
    api = [*answers.routes, *OverviewRoutes(maps).routes, *maps.routes]
    if notes is not None:
        api += NotesRoutes(NotesFile(notes)).routes
    api += OpenApiRoutes(api).routes
    routes = [
        # Apart from the page's files, which would answer for a question of another method.
        Mount("/api", Router(api, redirect_slashes=False)),
        Mount("/", _Compressed(StaticFiles(directory=_PAGE, html=True))),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(Guard, hosts=hosts, token=token),
            Middleware(_InJson),
            Middleware(_Catching),
        ],
        exception_handlers={
            AttlasError: _callers_mistake,
            BusyError: _later,
            HTTPException: _no_such_thing,
            ClientDisconnect: _nobody_listens,
        },
    )


def _as_json(error: AttlasError, status: int) -> Response:
    return json_no_store(error_body(error), status)


async def _callers_mistake(request: Request, error: Exception) -> Response:
    assert isinstance(error, AttlasError)
    return _as_json(error, 400)


async def _later(request: Request, error: Exception) -> Response:
    assert isinstance(error, AttlasError)
    return _as_json(error, 503)


async def _no_such_thing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if request.url.path.startswith("/api/maps/"):
        what = AttlasError("a map that is still kept", request.url.path, "load the page again")
    else:
        what = AttlasError(
            "an address and method of the explorer",
            f"{request.method} {request.url.path}",
            "open / in a browser",
        )
    response = _as_json(what, error.status_code)
    response.headers.update(error.headers or {})  # of 405: what is allowed
    return response


async def _nobody_listens(request: Request, error: Exception) -> Response:
    return Response(status_code=204)  # the client has gone


class _Compressed:
    """Whole files are sent with gzip to those who take it; ranges are of the file as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self._plain, self._deflating = app, GZipMiddleware(app, compresslevel=6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answering = self._plain if "range" in Headers(scope=scope) else self._deflating
        await answering(scope, receive, send)


class _InJson:
    """Errors are JSON, also those that Starlette makes, as of ranges."""

    def __init__(self, app: ASGIApp) -> None:
        self._inner = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        retold = False

        async def answer(message: Message) -> None:
            nonlocal retold
            if message["type"] == "http.response.start":
                headers = Headers(raw=message["headers"])
                plain = not headers.get("content-type", "").startswith("application/json")
                retold = message["status"] >= 400 and plain
                if retold:
                    response = _as_json(_as_error(scope), message["status"])
                    if "content-range" in headers:  # how long the whole is
                        response.headers["Content-Range"] = headers["content-range"]
                    await response(scope, receive, send)
            if not retold:
                await send(message)

        await self._inner(scope, receive, answer)


def _as_error(scope: Scope) -> AttlasError:
    asked = Headers(scope=scope).get("range")
    if asked is not None:
        return AttlasError(
            "a range of bytes that the file has, such as bytes=0-99",
            asked,
            "ask for the whole file, without a range",
        )
    what = f"{scope['method']} {scope['path']}"
    return AttlasError("a request of the explorer's own page", what, "open / in a browser")


class _Catching:
    """Whatever else goes wrong is ours: the terminal gets the traceback, the page a sentence."""

    def __init__(self, app: ASGIApp) -> None:
        self._inner = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._inner(scope, receive, answer)
        except asyncio.CancelledError:  # Ctrl-C twice: no client waits for what is under way
            if not begun:
                what = AttlasError("an answer", "the end of attlas", "start it again")
                await _as_json(what, 503)(scope, receive, send)
        except Exception as error:
            _log.exception("the explorer failed at %s", scope.get("path"))
            if begun:
                raise  # half an answer cannot be taken back: the connection breaks
            what = AttlasError(
                "an answer",
                f"an error of attlas itself ({type(error).__name__})",
                "see the terminal in which attlas runs; the next sentence may work",
            )
            await _as_json(what, 500)(scope, receive, send)
