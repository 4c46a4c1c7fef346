"""Answers about one's own text, which no cache keeps."""

import json
from typing import Any

from starlette.responses import JSONResponse, Response

from attlas.errors import AttlasError

_QUOTED = 200  # characters of what came that an answer repeats


def fresh(response: Response) -> Response:
    """The same answer, to be kept nowhere."""
    response.headers["Cache-Control"] = "no-store"
    return response


def fresh_json(content: Any, status: int = 200) -> Response:
    """An answer in JSON, to be kept nowhere."""
    return fresh(_Json(content, status))


def told(error: AttlasError) -> dict[str, str]:
    """An error for the page; of a long value that came, only the beginning is repeated."""
    came = error.came
    came = came if len(came) <= _QUOTED else f"{came[: _QUOTED - 1]}…"
    return {"wanted": error.wanted, "came": came, "do": error.do}


class BusyError(AttlasError):
    """The server has as much to do as it takes on (status 503)."""


class _Json(JSONResponse):
    """Of any text: half of a surrogate pair, as in the name of a file that is not UTF-8, is no
    UTF-8, but JSON has a way to write it."""

    def render(self, content: Any) -> bytes:
        try:
            return super().render(content)
        except UnicodeEncodeError:
            return json.dumps(content, allow_nan=False).encode()
