"""The description of the explorer's routes in OpenAPI, for clients other than its page."""

from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attlas.explorer.maps import CURVES
from attlas.explorer.maps import MEDIA_TYPE as TILE
from attlas.explorer.messages import MOST_CHARACTERS, MOST_ID, json_no_store
from attlas.explorer.overview import MEDIA_TYPE as OVERVIEW

Schema = Mapping[str, Any]

_WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999}
_RANGE: Schema = {"type": "string", "pattern": "^[0-9]{1,12}:[0-9]{1,12}$"}
_WEIGHT: Schema = {"type": "number", "minimum": 0, "maximum": 1}

_JSON = "application/json"
_OF_PATH: Mapping[str, tuple[str, Schema]] = {
    "id": ("Names the maps of a text, as its answer says.", {"type": "string"}),
    "layer": ("A layer of that answer, from 0.", _WHOLE),
    "row": ("A text of the trace, from 0.", _WHOLE),
}
_HEAD = ("head", "A head, from 0; all heads of the layer where it is left out.", _WHOLE)
_OUTPUT = ("output", "An output of the model, from 0.", _WHOLE)
_QUERY = ("row", "A query of the layer, from 0.", _WHOLE)
_ROWS = ("rows", "A range of queries, a:b; all where it is left out.", _RANGE)
_KEYS = ("keys", "A range of keys, a:b; all where it is left out.", _RANGE)

# By path: the method, what it answers, the media type, and the parameters of the query.
_ROUTES: Mapping[str, tuple[str, str, str, tuple[tuple[str, str, Schema], ...]]] = {
    "/model": ("get", "What is known of the model, or how the texts of a trace begin.", _JSON, ()),
    "/openapi.json": ("get", "This description.", _JSON, ()),
    "/texts/{row}": ("get", "Which maps a trace has of a text.", _JSON, ()),
    "/translate": ("post", "What the model makes of a text, and which maps it has.", _JSON, ()),
    "/maps/{id}/overview": (
        "get",
        "A small picture of every head of every layer, as tiles.",
        OVERVIEW,
        (("side", "Cells of a picture's side.", {"type": "integer", "minimum": 1}),),
    ),
    "/maps/{id}/statistics": ("get", "Numbers for each head.", _JSON, ()),
    "/maps/{id}/beams": (
        "get",
        "The hypotheses of a beam search, and the alternatives of each token.",
        _JSON,
        (),
    ),
    "/maps/{id}/{layer}": (
        "get",
        "The weights of a part of a map, as a tile.",
        TILE,
        (
            ("heads", "A range of heads, a:b; all where it is left out.", _RANGE),
            _ROWS,
            _KEYS,
            (
                "shape",
                "height,width: so many numbers for each head, each the largest of its group.",
                {"type": "string", "pattern": "^[0-9]{1,12},[0-9]{1,12}$"},
            ),
            ("bits", "Of a level.", {"type": "string", "enum": ["8", "16"]}),
            ("curve", "From levels to weights.", {"type": "string", "enum": [*CURVES]}),
        ),
    ),
    "/maps/{id}/{layer}/tokens": ("get", "The tokens of a part of a map.", _JSON, (_ROWS, _KEYS)),
    "/maps/{id}/{layer}/doubt": (
        "get",
        "What an output becomes when a head looks elsewhere.",
        _JSON,
        (
            _HEAD,
            _OUTPUT,
            _QUERY,
            ("key", "The key whose weight is set.", _WHOLE),
            ("weight", "Its share of the row.", _WEIGHT),
            ("erased", "A range of tokens of the source that are taken out, a:b.", _RANGE),
        ),
    ),
    "/maps/{id}/{layer}/adversary": (
        "get",
        "Other weights of the same output.",
        _JSON,
        (_HEAD, _OUTPUT, _QUERY),
    ),
    "/maps/{id}/{layer}/mechanism": (
        "get",
        "A row of a head through its formula.",
        _JSON,
        (_HEAD, _QUERY, ("key", "A key that is among those that are told.", _WHOLE)),
    ),
}
_REQUIRED = {("/maps/{id}/{layer}/doubt", "output"), ("/maps/{id}/{layer}/doubt", "row")}
_REQUIRED |= {("/maps/{id}/{layer}/adversary", "output"), ("/maps/{id}/{layer}/adversary", "row")}

_ERRORS = {
    "400": "The request is not as it should be.",
    "401": "The token that stands in the printed address is missing or wrong.",
    "403": "The request does not come from the explorer's own page.",
    "404": "There is no such map, text or layer.",
    "431": "The address and the headers are too long.",
    "503": "The server has as much to do as it takes on, or it ends.",
}


def description(paths: Collection[str]) -> dict[str, Any]:
    """The description of these paths, such as "/maps/{id}/overview".

    Raises:
        KeyError: For a path that is not described.
    """
    return {
        "openapi": "3.1.0",
        "info": {"title": "attlas explorer", "version": version("attlas")},
        "servers": [{"url": "/api"}],
        "paths": {path: _operation(path) for path in paths},
        "components": {
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["expected", "got", "hint"],
                    "properties": {
                        name: {"type": "string"} for name in ("expected", "got", "hint")
                    },
                }
            }
        },
    }


def _operation(path: str) -> dict[str, Any]:
    method, summary, media_type, query = _ROUTES[path]
    error = {"content": {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}}
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "description": text, "schema": schema}
        for name in names
        for text, schema in (_OF_PATH[name],)
    ]
    parameters += [
        {
            "name": name,
            "in": "query",
            "required": (path, name) in _REQUIRED,
            "description": text,
            "schema": schema,
        }
        for name, text, schema in query
    ]
    answer: dict[str, Any] = {
        "summary": summary,
        "parameters": parameters,
        "responses": {
            "200": {
                "description": summary,
                "content": {media_type: {"schema": _answer_schema(media_type)}},
            },
            **{status: {"description": text, **error} for status, text in _ERRORS.items()},
        },
    }
    if method == "post":
        text = {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS}
        one = {"type": "integer", "minimum": 0, "maximum": MOST_ID}
        ids = {"type": "array", "items": one, "maxItems": MOST_CHARACTERS}
        schema = {
            "type": "object",
            "required": ["text"],
            "additionalProperties": False,
            "properties": {"text": text, "prefix": {"oneOf": [{**text, "minLength": 0}, ids]}},
        }
        answer["requestBody"] = {"required": True, "content": {_JSON: {"schema": schema}}}
    return {method: answer}


def _answer_schema(media_type: str) -> Schema:
    return {"type": "object"} if media_type == _JSON else {"type": "string", "format": "binary"}


class OpenApiRoutes:
    """Answers what the routes of an application are."""

    def __init__(self, routes: Collection[Route]) -> None:
        self._paths = [*(route.path for route in routes), "/openapi.json"]

    @property
    def routes(self) -> list[Route]:
        """Where a client asks for the description."""
        return [Route("/openapi.json", self._describe)]

    async def _describe(self, request: Request) -> Response:
        return json_no_store(description(self._paths))
