"""A place in an address of the explorer: which layer, or which text."""

import re

from starlette.exceptions import HTTPException
from starlette.requests import Request


def place(request: Request, name: str) -> int:
    """The number, from 0, that this part of the path spells; not found (404) where it is none.

    Starlette's own `int` reads as many digits as there are, and Python refuses more than 4,300.
    """
    text = request.path_params[name]
    if re.fullmatch("[0-9]{1,12}", text) is None:
        raise HTTPException(404)
    return int(text)
