"""What a reading says, in numbers."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Summary:
    """What a reading says, (batch, heads, queries) each but for `received`; None = not asked for,
    or of queries of which nobody knows where they stand.

    Formulas and units are those of the methods of `Reading` with these names.
    """

    entropy: Float[Tensor, "batch heads queries"] | None = None
    evenness: Float[Tensor, "batch heads queries"] | None = None
    effective: Float[Tensor, "batch heads queries"] | None = None
    visible: Float[Tensor, "batch heads queries"] | None = None
    above: Float[Tensor, "batch heads queries"] | None = None
    peak: Float[Tensor, "batch heads queries"] | None = None
    argmax: Int[Tensor, "batch heads queries"] | None = None
    distance: Float[Tensor, "batch heads queries"] | None = None
    on_first: Float[Tensor, "batch heads queries"] | None = None
    on_last: Float[Tensor, "batch heads queries"] | None = None
    on_itself: Float[Tensor, "batch heads queries"] | None = None
    on_previous: Float[Tensor, "batch heads queries"] | None = None
    on_next: Float[Tensor, "batch heads queries"] | None = None
    concentration: Float[Tensor, "batch heads queries"] | None = None
    received: Float[Tensor, "batch heads slots"] | None = None
