"""A translator, asked by the page."""

import asyncio
import math
from dataclasses import asdict
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from attlas.decoding.remarks import remarks
from attlas.explorer.atlas import Atlas
from attlas.explorer.facts import facts
from attlas.explorer.fresh import fresh_json
from attlas.explorer.looking import Looking
from attlas.explorer.maps import Maps
from attlas.explorer.question import Question


class Translating:
    """What the page asks, answered by one translator, one translation at a time."""

    def __init__(self, translator: Looking, maps: Maps) -> None:
        self._translator = translator
        self._facts = asdict(facts(translator))  # what is wrong with a run is said at the start
        self._maps = maps
        self._turn = asyncio.Lock()  # one model: two translations at once are both slower

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
        async with self._turn:
            if await request.is_disconnected():  # the page asked something newer meanwhile
                raise ClientDisconnect
            told = await run_in_threadpool(self._told, question)
        return fresh_json(told)

    def _told(self, question: Question) -> dict[str, Any]:
        looked = self._translator(question.text, question.prefix)
        return {
            "text": looked.text,
            "score": looked.score if math.isfinite(looked.score) else None,
            "source": list(looked.source_tokens),
            "target": list(looked.tokens),
            "remarks": remarks(looked.cut, looked.finished),
            "blank": looked.blank,
            **self._maps.told(Atlas.of(looked.trace) if looked.trace else None),
        }
