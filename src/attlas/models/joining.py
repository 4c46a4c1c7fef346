"""What states have to have in common to go on as one."""

from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers.stacked import stacked


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


def coverage_of_both(
    one: Float[Tensor, "rows slots"] | None, other: Float[Tensor, "others other_slots"] | None
) -> Float[Tensor, "all_rows most_slots"] | None:
    """The coverage of the rows of both; None where neither counts.

    Errors: `AttlasError` where only one of them does.
    """
    if (one is None) != (other is None):
        raise AttlasError(
            "two states that count where they look, or two that do not",
            "one of each",
            "call `covered` of both",
        )
    return None if one is None or other is None else stacked(one, other)
