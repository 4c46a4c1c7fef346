"""A translator, asked by the page."""

import asyncio
import math
import threading
from dataclasses import asdict
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from attlas.decoding.remarks import remarks
from attlas.explorer.atlas import Atlas
from attlas.explorer.facts import facts
from attlas.explorer.fresh import BusyError, fresh_json
from attlas.explorer.listening import Turns, while_listened_to
from attlas.explorer.looking import Bounded, Looked, Looking
from attlas.explorer.maps import Maps
from attlas.explorer.question import Question

MOST_READ = 512  # tokens of a text: attention of a longer one takes a page's patience and memory
MOST_WRITTEN = 1024  # tokens of a translation, where the translator can be told
MOST_KEPT = 256 * 2**20  # bytes of maps
_GLANCE = 0.2  # seconds between looks whether the page still waits
_AT_ONCE = 4  # searches that take turns; each holds memory
_MOST_WAITING = 16  # texts beyond those


class Translating:
    """What the page asks, answered by one translator; a few searches go on in turn."""

    def __init__(self, translator: Looking, maps: Maps) -> None:
        self._translator = translator
        self._facts = asdict(facts(translator))  # what is wrong with a run is said at the start
        self._maps = maps
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._turns = Turns()  # one model: two steps at once are both slower
        self._asked = 0

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for facts and for translations."""
        return [
            Route("/model", self._model),
            Route("/translate", self._translate, methods=["POST"]),
        ]

    async def _model(self, request: Request) -> Response:
        return fresh_json({"facts": self._facts, "texts": None})

    async def _translate(self, request: Request) -> Response:
        question = await Question.read(request)
        if self._asked >= _AT_ONCE + _MOST_WAITING:
            raise BusyError(
                f"at most {_MOST_WAITING} texts that wait", "one more", "ask again in a minute"
            )
        self._asked += 1
        try:
            async with self._room:
                if await request.is_disconnected():  # the page asked something newer meanwhile
                    raise ClientDisconnect
                told = await while_listened_to(
                    request, lambda stop: self._told(question, stop), _GLANCE
                )
        finally:
            self._asked -= 1
        return fresh_json(told)

    def _told(self, question: Question, stop: threading.Event) -> dict[str, Any]:
        with self._turns.taken(stop) as next_turn:
            translator = self._translator
            if isinstance(translator, Bounded):
                translator = translator.bounded(
                    source=MOST_READ, target=MOST_WRITTEN, before_step=next_turn
                )
            looked = translator(question.text, question.prefix)
            next_turn()  # before it is read again, for where the model looked
            return self._of(looked)

    def _of(self, looked: Looked) -> dict[str, Any]:
        return {
            "text": looked.text,
            "score": looked.score if math.isfinite(looked.score) else None,
            "source": list(looked.source_tokens),
            "target": list(looked.tokens),
            "remarks": remarks(looked.cut, looked.finished),
            "blank": looked.blank,
            **self._maps.told(Atlas.of(looked.trace) if looked.trace else None),
        }
