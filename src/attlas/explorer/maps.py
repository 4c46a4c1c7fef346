"""The maps that the page asks for, piece by piece."""

import asyncio
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from attlas.errors import AttlasError
from attlas.explorer.atlas import Atlas, Layer
from attlas.explorer.cabinet import Cabinet
from attlas.explorer.fresh import fresh, fresh_json
from attlas.explorer.listening import while_listened_to
from attlas.explorer.place import place
from attlas.explorer.tile import MEDIA_TYPE, pack
from attlas.explorer.view import View

_GLANCE = 0.2  # seconds between looks whether the page still waits
_AT_ONCE = 4  # tiles: the largest takes half a gigabyte of memory on its way


class Maps:
    """Keeps the latest atlases, tells what is in them, and answers for their weights and tokens."""

    def __init__(self, most_bytes: int | None = None) -> None:
        self._cabinet = Cabinet(most_bytes=most_bytes)
        self._turns = asyncio.Semaphore(_AT_ONCE)

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for weights and for tokens."""
        return [
            Route("/maps/{id}/{layer}", self._tile),
            Route("/maps/{id}/{layer}/tokens", self._tokens),
        ]

    def told(self, atlas: Atlas | None) -> dict[str, Any]:
        """Keep an atlas; under which name the page can ask for it, and what is in it."""
        return {
            "map": self._cabinet.put(atlas) if atlas and atlas.layers else None,
            "layers": [_described(layer) for layer in (atlas.layers if atlas else ())],
        }

    def _asked(self, request: Request) -> tuple[Layer, View]:
        atlas = self._cabinet.get(request.path_params["id"])
        if atlas is None:
            raise HTTPException(404, "a map that is still kept")
        layer = atlas.layer(place(request, "layer"))
        names = [name for name, _ in request.query_params.multi_items()]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise AttlasError(
                "each parameter once", f"?{twice[0]}=… twice", "leave one of them out"
            )
        return layer, View.read(request.query_params, layer)

    async def _tile(self, request: Request) -> Response:
        layer, view = self._asked(request)
        async with self._turns:
            if await request.is_disconnected():  # while it waited for its turn
                raise ClientDisconnect
            packed = await while_listened_to(
                request, lambda stop: pack(view.of(layer, stop), view.bits), _GLANCE
            )
        return fresh(Response(packed, media_type=MEDIA_TYPE))

    async def _tokens(self, request: Request) -> Response:
        layer, view = self._asked(request)
        queries, slots = layer.axes.queries, layer.axes.slots
        named = {"rows": queries[slice(*view.rows)], "slots": slots[slice(*view.slots)]}
        return fresh_json(named)


def _described(layer: Layer) -> dict[str, Any]:
    shape = {"heads": layer.heads, "queries": layer.queries, "slots": layer.slots}
    return {"name": layer.name, "within": layer.axes.within, **shape}
