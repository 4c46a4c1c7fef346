"""What the page asks to be translated."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from attlas._files import parse_json
from attlas.errors import AttlasError

# Answers about one's own text, which no cache keeps.


_QUOTED = 200  # characters of a wrong value that an answer repeats


def no_store(response: Response) -> Response:
    """The same answer, to be kept nowhere."""
    response.headers["Cache-Control"] = "no-store"
    return response


def json_no_store(content: Any, status: int = 200) -> Response:
    """An answer in JSON, to be kept nowhere."""
    return no_store(_Json(content, status))


def error_body(error: AttlasError) -> dict[str, str]:
    """An error as JSON for the page; a long value is cut."""
    got = error.got
    got = got if len(got) <= _QUOTED else f"{got[: _QUOTED - 1]}…"
    return {"expected": error.expected, "got": got, "hint": error.hint}


class BusyError(AttlasError):
    """The server has as much to do as it takes on (status 503)."""


class MissingError(AttlasError):
    """What is asked for is not there (status 404)."""


class _Json(JSONResponse):
    """Of any text: half of a surrogate pair, as in the name of a file that is not UTF-8, is no
    UTF-8, but JSON has a way to write it."""

    def render(self, content: Any) -> bytes:
        try:
            return super().render(content)
        except UnicodeEncodeError:
            return json.dumps(content, allow_nan=False).encode()


# A place in an address of the explorer: which layer, or which text.


def path_number(request: Request, name: str) -> int:
    """The number, from 0, that this part of the path spells; not found (404) where it is none.

    Starlette's own `int` reads as many digits as there are, and Python refuses more than 4,300.
    """
    text = request.path_params[name]
    if re.fullmatch("[0-9]{1,12}", text) is None:
        raise HTTPException(404)
    return int(text)


MOST_IDS = 2_000  # of a prefix
MOST_ID = (1 << 31) - 1
_MOST_BYTES = 64 * 1024  # of one request; of its text a translator counts the tokens


@dataclass(frozen=True, slots=True)
class TranslationRequest:
    """A text to translate, and what its translation begins with ("" = anything).

    Args:
        prefix: A text; or the ids of its tokens, which no text may spell.
    """

    text: str
    prefix: str | tuple[int, ...] = ""

    @classmethod
    async def read(cls, request: Request) -> Self:
        """From the body {"text": …} or {"text": …, "prefix": …}; `AttlasError` for any other."""
        text, prefix = _parsed(await _body(request))
        _check(text)
        if isinstance(prefix, str):
            _check(prefix)
        if not text.strip():
            raise AttlasError("a sentence to translate", "an empty one", "type a few words")
        return cls(text, prefix)


async def json_object(request: Request, names: Sequence[str]) -> dict[str, str]:
    """The body of a request, an object with these fields, each a text; `AttlasError` for others."""
    expected = "{" + ", ".join(f'"{name}": "…"' for name in names) + "}"
    try:
        content = parse_json((await _body(request)).decode(), _fields)
    except ValueError:
        raise AttlasError(f"{expected} as JSON", "something else", "send JSON in UTF-8") from None
    is_text = isinstance(content, dict) and all(
        isinstance(value, str) for value in content.values()
    )
    if not is_text or set(content) != set(names):
        raise AttlasError(expected, _named(content), "send these fields, each a text")
    return dict(content)


async def _body(request: Request) -> bytes:
    """The body of a request; refuses one that is too large before it is held whole."""
    kind = request.headers.get("content-type", "(none)")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise AttlasError("a body of type application/json", kind, "set the Content-Type")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise AttlasError(
                f"a request of at most {_MOST_BYTES:,} bytes",
                f"more than {len(body) - 1:,}",
                "send less text at a time; `attlas translate` takes whole files",
            )
    return body


def _parsed(body: bytes) -> tuple[str, str | tuple[int, ...]]:
    try:
        content = parse_json(body.decode(), _fields)
    except ValueError:
        raise AttlasError('{"text": "…"} as JSON', "something else", "send JSON in UTF-8") from None
    if (
        not isinstance(content, dict)
        or not {"text"} <= set(content) <= {"text", "prefix"}
        or not isinstance(content["text"], str)
        or not (isinstance(content.get("prefix", ""), str) or _are_ids(content["prefix"]))
    ):
        raise AttlasError(
            '{"text": "…"}, beside it "prefix" at most', _named(content), "send one text"
        )
    prefix = content.get("prefix", "")
    return content["text"], prefix if isinstance(prefix, str) else tuple(prefix)


def _are_ids(value: object) -> bool:
    """Whether these are ids of tokens, not too many of them."""
    return (
        isinstance(value, list)
        and len(value) <= MOST_IDS
        and all(type(one) is int and 0 <= one <= MOST_ID for one in value)
    )


def _fields(named: list[tuple[str, object]]) -> dict[str, object]:
    """An object, of which no field is given twice."""
    fields = dict(named)
    if len(fields) < len(named):
        raise ValueError("a field that is given twice")
    return fields


def _check(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise AttlasError(
            "text in Unicode", "half of a surrogate pair", "send whole characters"
        ) from None


def _named(content: object) -> str:
    """What came instead, said shortly."""
    if isinstance(content, dict):
        keys = ", ".join(repr(str(key)[:20]) for key in list(content)[:5])
        return f"an object with {keys or 'nothing in it'}"
    return f"a JSON {type(content).__name__}"
