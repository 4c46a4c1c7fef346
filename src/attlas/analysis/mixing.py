"""What a layer of self-attention mixes: its attention, and the way around it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording import Reading

_AT_ONCE = 1 << 20  # weights


@dataclass(frozen=True, slots=True)
class Mixing:
    """Ã = (ρ I + (1 − ρ) A) / row sums    Abnar & Zuidema, 2020, section 3.

    A: the mean over the heads of one batch row of self-attention; ρ: the share of the residual
    connection, 0.5 in the paper. A query that sees nothing keeps what it has.
    """

    reading: Reading
    residual: float = 0.5

    @property
    def length(self) -> int:
        """How many positions there are."""
        return self.reading.shape[3]

    def blocks(self) -> Iterator[tuple[slice, Float[Tensor, "rows slots"]]]:
        """The rows of Ã, in float64, some at a time."""
        _, heads, queries, slots = self.reading.shape
        size = max(1, _AT_ONCE // max(1, heads * slots))
        for start in range(0, queries, size):
            stop = min(start + size, queries)
            rows = self.reading.rows(start, stop)[0].to(torch.float64).mean(0)
            rows = rows * (1 - self.residual)
            rows[torch.arange(stop - start), torch.arange(start, stop)] += self.residual
            mass = rows.sum(-1, keepdim=True)
            yield slice(start, stop), rows / torch.where(mass > 0, mass, 1.0)


def mixings(readings: Sequence[Reading], residual: float) -> tuple[Mixing, ...]:
    """One for each layer, from the first to the last.

    Errors: `AttlasError` for readings that do not follow each other as layers of self-attention
    over one text, and for a residual that is no share.
    """
    shapes = {(reading.shape[0], *reading.shape[2:]) for reading in readings}
    if len(shapes) != 1 or (shape := next(iter(shapes)))[0] != 1 or shape[1] != shape[2]:
        raise AttlasError(
            "layers of self-attention over one text, (1, heads, length, length) each",
            ", ".join(str(reading.shape) for reading in readings) or "none",
            "choose the batch row with reading.at(row), and the layers of one stack, first to last",
        )
    if not 0 <= residual <= 1:
        raise AttlasError("a residual share from 0 to 1", str(residual), "the paper's is 0.5")
    return tuple(Mixing(reading, residual) for reading in readings)


def checked_places(places: Sequence[int] | None, length: int) -> list[int]:
    """These positions, or all. Errors: `AttlasError` for one that is not there, and for none."""
    chosen = list(range(length)) if places is None else list(places)
    wrong = [place for place in chosen if not 0 <= place < length]
    if wrong or not chosen:
        raise AttlasError(
            f"positions from 0 to {length - 1:,}", str(wrong or "none"), "count from the first"
        )
    return chosen
