"""The explorer's web application: a page, and the four questions it asks."""

import asyncio
import logging
import math
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attlas.decoding.remarks import remarks
from attlas.errors import AttlasError
from attlas.explorer.atlas import Atlas, Layer
from attlas.explorer.cabinet import Cabinet
from attlas.explorer.facts import facts
from attlas.explorer.guard import Guard
from attlas.explorer.looking import Looking
from attlas.explorer.question import Question
from attlas.explorer.tile import MEDIA_TYPE, pack
from attlas.explorer.view import View

_PAGE = Path(__file__).parent / "page"

_log = logging.getLogger("attlas.explorer")


def app(translator: Looking, hosts: Collection[str] = ()) -> Starlette:
    """The web application around one translator.

    hosts: the names by which it may be called, beside localhost and its addresses.

        GET  /                        the page
        GET  /api/model               facts about the model
        POST /api/translate           {"text": …} → the translation, its tokens, and which maps;
                                      it begins with "prefix", where there is one
        GET  /api/maps/{id}/{layer}   ?heads=a:b&rows=a:b&slots=a:b&shape=h,w&bits=8|16 → a tile

    A tile is binary (see `tile.pack`), a window into a map is a `View`. What the caller did wrong
    is answered with {"wanted", "came", "do"}; so is what we did wrong, with status 500.
    """
    if not (_PAGE / "index.html").is_file():
        raise AttlasError(
            "the built page of the explorer",
            f"nothing at {_PAGE}",
            "install attlas again, or run `npm ci && npm run build` in explorer-ui",
        )
    answers = _Answers(translator)
    questions = [
        Route("/model", answers.model),
        Route("/translate", answers.translate, methods=["POST"]),
        Route("/maps/{id}/{layer:int}", answers.tile),
    ]
    routes = [
        # Apart from the page's files, which would answer for a question of another method.
        Mount("/api", Router(questions, redirect_slashes=False)),
        Mount("/", StaticFiles(directory=_PAGE, html=True)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=hosts), Middleware(_Catching)],
        exception_handlers={
            AttlasError: _callers_mistake,
            HTTPException: _no_such_thing,
            ClientDisconnect: _nobody_listens,
        },
    )


class _Answers:
    """What the page asks, answered by one translator, one translation at a time."""

    def __init__(self, translator: Looking) -> None:
        self._translator = translator
        self._facts = asdict(facts(translator))  # what is wrong with a run is said at the start
        self._cabinet = Cabinet()
        self._turn = asyncio.Lock()  # one model: two translations at once are both slower

    async def model(self, request: Request) -> Response:
        return _fresh(JSONResponse({"facts": self._facts}))

    async def translate(self, request: Request) -> Response:
        question = await Question.read(request)
        async with self._turn:
            if await request.is_disconnected():  # the page asked something newer meanwhile
                raise ClientDisconnect
            told = await run_in_threadpool(self._told, question)
        return _fresh(JSONResponse(told))

    async def tile(self, request: Request) -> Response:
        atlas = self._cabinet.get(request.path_params["id"])
        if atlas is None:
            raise HTTPException(404, "a map that is still kept")
        layer = atlas.layer(request.path_params["layer"])
        view = View.read(request.query_params, layer)
        packed = await run_in_threadpool(lambda: pack(view.of(layer), view.bits))
        return _fresh(Response(packed, media_type=MEDIA_TYPE))

    def _told(self, question: Question) -> dict[str, Any]:
        looked = self._translator(question.text, question.prefix)
        trace = looked.trace
        atlas = Atlas.of(trace) if trace and trace.layers else None
        return {
            "text": looked.text,
            "score": looked.score if math.isfinite(looked.score) else None,
            "source": list(looked.source_tokens),
            "target": list(looked.tokens),
            "remarks": remarks(looked.cut, looked.finished),
            "map": None if atlas is None else self._cabinet.put(atlas),
            "blank": looked.blank,
            "layers": [_described(layer) for layer in (atlas.layers if atlas else ())],
        }


def _described(layer: Layer) -> dict[str, Any]:
    shape = {"heads": layer.heads, "queries": layer.queries, "slots": layer.slots}
    return {"name": layer.name, **shape}


def _fresh(response: Response) -> Response:
    """An answer about one's own text is not kept by any cache."""
    response.headers["Cache-Control"] = "no-store"
    return response


def _as_json(error: AttlasError, status: int) -> Response:
    body = {"wanted": error.wanted, "came": error.came, "do": error.do}
    return _fresh(JSONResponse(body, status_code=status))


async def _callers_mistake(request: Request, error: Exception) -> Response:
    assert isinstance(error, AttlasError)
    return _as_json(error, 400)


async def _no_such_thing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if request.url.path.startswith("/api/maps/"):
        what = AttlasError(
            "a map that is still kept", request.url.path, "translate the sentence again"
        )
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
    return Response(status_code=204)  # whoever asked has gone


class _Catching:
    """Whatever else goes wrong is ours: the terminal gets the traceback, the page a sentence."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._inner(scope, receive, answer)
        except asyncio.CancelledError:  # Ctrl-C twice: nobody waits for what is under way
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
