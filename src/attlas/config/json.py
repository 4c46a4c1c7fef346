"""JSON, as settings, runs and texts are written in."""

import json
from collections.abc import Callable
from typing import Any


def parse_json(
    text: str | bytes, fields: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """The value that it spells. fields: what makes an object of its fields; None = a dict.

    Errors: `ValueError` for what is none (a `json.JSONDecodeError` where that has a place), also
    for brackets that go deeper than Python follows.
    """
    try:
        return json.loads(text, object_pairs_hook=fields)
    except RecursionError:
        raise ValueError("brackets within brackets without end") from None
