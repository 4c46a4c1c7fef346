"""The checker that `conftest` puts on every function of attlas."""

from collections.abc import Callable
from typing import Any

from beartype import beartype
from beartype.roar import BeartypeDecorHintPep673Exception


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` checked by beartype, or as it is where `Self` keeps beartype from reading it.

    Beartype understands `Self` only where it decorates the whole class; the import hook decorates
    each method alone.
    """
    try:
        return beartype(function)
    except BeartypeDecorHintPep673Exception:
        return function
