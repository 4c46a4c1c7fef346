"""A source as it comes, before a model reads it."""

from jaxtyping import Int, Shaped
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers.padding import check_real


def check_source(source: Shaped[Tensor, "batch slots ..."]) -> None:
    """Errors: `AttlasError` where there is no row, or no slot in them."""
    rows, slots = source.shape[:2]
    if not rows or not slots:
        raise AttlasError(
            "a source of at least one row and one slot",
            f"{rows} row(s) and {slots} slot(s)",
            "pass what there is to read; an empty sentence is its end token alone",
        )


def ids_of(
    source: Int[Tensor, "batch slots"], real: Shaped[Tensor, "..."] | None
) -> Int[Tensor, "batch slots"]:
    """The ids, with 0 in padding, which may hold any number, also one that is no id.

    Errors: `AttlasError` where `real` is not one bool per slot.
    """
    if real is None:
        return source
    check_real(real, source.shape)
    return source.masked_fill(~real, 0)
