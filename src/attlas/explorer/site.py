"""The explorer's web application: a page, and what answers the questions that it asks.

Nothing here imports torch, so that the page is served as soon as a server listens.
"""

import asyncio
import logging
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attlas.errors import AttlasError
from attlas.explorer.messages import BusyError, MissingError, error_body, json_no_store
from attlas.explorer.security import Guard

_PAGE = Path(__file__).parent / "page"

_log = logging.getLogger("attlas.explorer")


def site(
    apis: Sequence[ASGIApp], hosts: Collection[str] = (), *, token: str | None = None
) -> Starlette:
    """The web application around what answers for one model or trace, or for several.

    The page is at /, the answers of the first are at /api, and those of number n, from 0, at
    /api/sources/n. What the caller did wrong is answered with {"expected", "got", "hint"}; so is
    what we did wrong, with status 500.

    Args:
        hosts: The names by which it may be called, beside localhost and its addresses.
        token: Without which no request is answered (see `security.Guard`).
    """
    if not (_PAGE / "index.html").is_file():
        raise AttlasError(
            "the built page of the explorer",
            f"nothing at {_PAGE}",
            "install attlas again, or run `npm ci && npm run build` in explorer-ui",
        )
    routes = [
        *(Mount(f"/api/sources/{number}", api) for number, api in enumerate(apis)),
        # Apart from the page's files, which would answer for a question of another method.
        Mount("/api", apis[0]),
        Mount("/", _Compressed(StaticFiles(directory=_PAGE, html=True))),
    ]
    return guarded(routes, hosts, token=token)


def guarded(
    routes: Sequence[BaseRoute], hosts: Collection[str] = (), *, token: str | None = None
) -> Starlette:
    """A web application whose errors are JSON and which lets in only its own page.

    Args:
        hosts, token: As of `site`.
    """
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
            MissingError: _not_there,
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


async def _not_there(request: Request, error: Exception) -> Response:
    assert isinstance(error, AttlasError)
    return _as_json(error, 404)


async def _no_such_thing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if re.match("/api/(sources/[0-9]+/)?maps/", request.url.path):
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
    byte_range = Headers(scope=scope).get("range")
    if byte_range is not None:
        return AttlasError(
            "a range of bytes that the file has, such as bytes=0-99",
            byte_range,
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
