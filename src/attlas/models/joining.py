"""What states have to have in common to go on as one."""

from collections.abc import Callable
from typing import TypeVar

from attlas.errors import AttlasError

T = TypeVar("T")


def check_positions(one: int, other: int) -> None:
    """That what comes next stands at one position in all rows.

    Errors: `AttlasError` where it does not.
    """
    if one != other:
        raise AttlasError(
            f"a state that has read as many tokens, {one}",
            f"one that has read {other}",
            "join states that are at the same position",
        )


def of_both(one: T | None, other: T | None, join: Callable[[T, T], T]) -> T | None:
    """What two states have, joined; None where neither has such a thing.

    Errors: `AttlasError` where one has, and the other has not.
    """
    if one is not None and other is not None:
        return join(one, other)
    if one is not None or other is not None:
        raise AttlasError(
            "two states of one model, which both count where they look, or both do not",
            "one with something that the other lacks",
            "encode both with the same model, and call `covered` of both or of none",
        )
    return None
