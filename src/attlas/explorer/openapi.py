"""The description of the explorer's routes in OpenAPI, for clients other than its page."""

from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attlas.explorer.messages import MOST_ID, MOST_IDS, json_no_store
from attlas.explorer.notes import MOST_LINK, MOST_TEXT
from attlas.explorer.overview import MEDIA_TYPE as OVERVIEW
from attlas.explorer.tiles import CURVES
from attlas.explorer.tiles import MEDIA_TYPE as TILE

Schema = Mapping[str, Any]

_WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999}
_RANGE: Schema = {"type": "string", "pattern": "^[0-9]{1,12}:[0-9]{1,12}$"}
_LINK: Schema = {"type": "string", "pattern": "^#", "maxLength": MOST_LINK}
_WEIGHT: Schema = {"type": "number", "minimum": 0, "maximum": 1}

_JSON = "application/json"
_OF_PATH: Mapping[str, tuple[str, Schema]] = {
    "id": ("Names the maps of a text, as its answer says.", {"type": "string"}),
    "layer": ("A layer of that answer, from 0.", _WHOLE),
    "row": ("A text of the trace, from 0.", _WHOLE),
    "note": ("The id of a note.", {"type": "string"}),
}
_HEAD = ("head", "A head, from 0; all heads of the layer where it is left out.", _WHOLE)
_OUTPUT = ("output", "An output of the model, from 0.", _WHOLE)
_QUERY = ("row", "A query of the layer, from 0.", _WHOLE)
_ROWS = ("rows", "A range of queries, a:b; all where it is left out.", _RANGE)
_KEYS = ("keys", "A range of keys, a:b; all where it is left out.", _RANGE)

_WINDOW = (
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
)

# By method and path: what it answers, the media type, and the parameters of the query.
_ROUTES: Mapping[tuple[str, str], tuple[str, str, tuple[tuple[str, str, Schema], ...]]] = {
    ("get", "/model"): (
        "What is known of the model; how the texts of a trace begin.",
        _JSON,
        (),
    ),
    ("get", "/openapi.json"): ("This description.", _JSON, ()),
    ("get", "/notes"): ("The reader's notes, the oldest first.", _JSON, ()),
    ("post", "/notes"): ("Add a note; the answer has all of them.", _JSON, ()),
    ("delete", "/notes/{note}"): ("Remove a note; the answer has the others.", _JSON, ()),
    ("get", "/texts/{row}"): ("Which maps a trace has of a text.", _JSON, ()),
    ("post", "/translate"): ("What the model makes of a text, and which maps it has.", _JSON, ()),
    ("get", "/maps/{id}/overview"): (
        "A small picture of every head of every layer, as tiles.",
        OVERVIEW,
        (("side", "Cells of a picture's side.", {"type": "integer", "minimum": 1}),),
    ),
    ("get", "/maps/{id}/statistics"): ("Numbers for each head.", _JSON, ()),
    ("get", "/maps/{id}/file"): (
        "The page with this text as one file.",
        "text/html",
        (("link", "The link of the page, as which the file opens.", _LINK),),
    ),
    ("get", "/maps/{id}/beams"): (
        "The hypotheses of a beam search, and the alternatives of each token.",
        _JSON,
        (),
    ),
    ("get", "/maps/{id}/{layer}"): ("The weights of a part of a map, as a tile.", TILE, _WINDOW),
    ("get", "/maps/{id}/{layer}/progress"): (
        "Which share of this tile is read; null where no reading of it is under way.",
        _JSON,
        _WINDOW,
    ),
    ("get", "/maps/{id}/{layer}/glance"): (
        "What an earlier reading of the whole map of a head says of a part of it, as a tile.",
        TILE,
        _WINDOW,
    ),
    ("get", "/maps/{id}/{layer}/image"): (
        "The image whose patches the keys are; 404 where there is none.",
        "image/png",
        (),
    ),
    ("get", "/maps/{id}/{layer}/tokens"): ("The tokens of a part of a map.", _JSON, (_ROWS, _KEYS)),
    ("get", "/maps/{id}/{layer}/parquet"): (
        "The weights of a part of a map in Parquet; without a head, their mean.",
        "application/vnd.apache.parquet",
        (_HEAD, _ROWS, _KEYS),
    ),
    ("get", "/maps/{id}/{layer}/doubt"): (
        "What an output becomes when a head looks elsewhere.",
        _JSON,
        (
            _HEAD,
            _OUTPUT,
            _QUERY,
            ("key", "The key whose weight is set.", _WHOLE),
            ("weight", "Its share of the row; without one no weight is set.", _WEIGHT),
            ("erased", "A range of tokens of the source that are taken out, a:b.", _RANGE),
        ),
    ),
    ("get", "/maps/{id}/{layer}/alignment"): (
        "The links of annotators, and how well a head finds them.",
        _JSON,
        (_HEAD,),
    ),
    ("get", "/maps/{id}/{layer}/adversary"): (
        "Other weights of the same output.",
        _JSON,
        (_HEAD, _OUTPUT, _QUERY),
    ),
    ("get", "/maps/{id}/{layer}/adversary/progress"): (
        "Which share of the search for them is done; null where none is under way.",
        _JSON,
        (_HEAD, _OUTPUT, _QUERY),
    ),
    ("get", "/maps/{id}/{layer}/mechanism"): (
        "A row of a head through its formula.",
        _JSON,
        (
            _HEAD,
            _QUERY,
            ("key", "A key that is among those that are told.", _WHOLE),
            (
                "positions",
                "0: with the queries and keys that the model has without positions.",
                {"type": "integer", "minimum": 0, "maximum": 1},
            ),
        ),
    ),
}
_TEXT: Schema = {"type": "string", "minLength": 1}
_IDS: Schema = {
    "type": "array",
    "items": {"type": "integer", "minimum": 0, "maximum": MOST_ID},
    "maxItems": MOST_IDS,
}
# By the path of a post: the fields that its body must have, and all that it may have.
_BODIES: Mapping[str, tuple[tuple[str, ...], Schema]] = {
    "/translate": (
        ("text",),
        {"text": _TEXT, "prefix": {"oneOf": [{**_TEXT, "minLength": 0}, _IDS]}},
    ),
    "/notes": (
        ("text", "link"),
        {
            "text": {"type": "string", "minLength": 1, "maxLength": MOST_TEXT},
            "link": _LINK,
        },
    ),
}
_REQUIRED = {
    (f"/maps/{{id}}/{{layer}}/{what}", name)
    for what in ("doubt", "adversary", "adversary/progress")
    for name in ("output", "row")
}

_ERRORS = {
    "400": "The request is not as it should be.",
    "401": "The token that stands in the printed address is missing or wrong.",
    "403": "The request does not come from the explorer's own page.",
    "404": "There is no such map, text, layer or image.",
    "431": "The address and the headers are too long.",
    "503": "The server has as much to do as it takes on, or it ends.",
}


def description(routes: Collection[tuple[str, str]]) -> dict[str, Any]:
    """The description of these routes, each a method and a path: ("get", "/maps/{id}/overview").

    Raises:
        KeyError: For a route that is not described.
    """
    paths: dict[str, dict[str, Any]] = {}
    for method, path in routes:
        paths.setdefault(path, {})[method] = _operation(method, path)
    return {
        "openapi": "3.1.0",
        "info": {"title": "attlas explorer", "version": version("attlas")},
        "servers": [{"url": "/api"}],
        "paths": paths,
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


def _operation(method: str, path: str) -> dict[str, Any]:
    summary, media_type, query = _ROUTES[method, path]
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
    if path.endswith("/glance"):
        answer["responses"]["204"] = {"description": "The map was not read yet."}
    if path in _BODIES and method == "post":
        required, properties = _BODIES[path]
        schema = {
            "type": "object",
            "required": [*required],
            "additionalProperties": False,
            "properties": dict(properties),
        }
        answer["requestBody"] = {"required": True, "content": {_JSON: {"schema": schema}}}
    return answer


def _answer_schema(media_type: str) -> Schema:
    return {"type": "object"} if media_type == _JSON else {"type": "string", "format": "binary"}


class OpenApiRoutes:
    """Answers what the routes of an application are."""

    def __init__(self, routes: Collection[Route]) -> None:
        named = [
            (method.lower(), route.path)
            for route in routes
            for method in sorted((route.methods or set()) - {"HEAD"})
        ]
        self._named = [*named, ("get", "/openapi.json")]

    @property
    def routes(self) -> list[Route]:
        """Where a client asks for the description."""
        return [Route("/openapi.json", self._describe)]

    async def _describe(self, request: Request) -> Response:
        return json_no_store(description(self._named))
