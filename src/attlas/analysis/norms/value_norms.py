"""How much of each slot a layer takes: weights times the length of what they weigh."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.analysis.norms.agreement import values_of_call
from attlas.analysis.norms.source import Source
from attlas.analysis.norms.value_map import ValueMap
from attlas.errors import AttlasError
from attlas.recording import Reading

_AT_ONCE = 1 << 21  # numbers


@dataclass(frozen=True, slots=True)
class ValueNorms:
    """‖α_hij f_h(x_j)‖ of each head, and ‖Σ_h α_hij f_h(x_j)‖    Kobayashi et al., 2020, section 3.

    A great weight on a short vector brings little: the weights alone do not say what a query gets.
    The vectors f_h(x_j) are made once and not kept; of them remain

    lengths: ‖f_h(x_j)‖, (batch, heads, slots); products: ⟨f_h(x_j), f_g(x_j)⟩ in float64, of which
    the length of any sum over heads can be had: (batch, slots, heads, heads).
    """

    reading: Reading
    lengths: Float[Tensor, "batch heads slots"]
    products: Float[Tensor, "batch slots heads heads"]

    @classmethod
    def of(cls, reading: Reading, values: ValueMap, source: Source) -> "ValueNorms":
        """Those of one call of a layer: its weights, its f, and what its values were made of.

        Time O(slots × heads × width × (value_width + heads)), memory O(slots × (width + heads²)).
        Errors: `AttlasError` where the three are not of one call, and where the source knows what
        the heads read and that is not Σ_j α_hij (x_j V_h + c_h): such a layer does more than
        project, or its weights were changed.
        """
        batch, heads, _, slots = reading.shape
        made = values_of_call(reading, values, source)
        lengths, products = [], []
        size = max(1, _AT_ONCE // max(1, batch * heads * values.output.shape[2]))
        for start in range(0, slots, size):
            carried = values.carried(made[:, :, start : start + size]).to(torch.float64)
            lengths.append(carried.norm(dim=-1).to(made.dtype))
            beside = carried.transpose(1, 2)  # (batch, slots, heads, width)
            products.append(beside @ beside.mT)
        return cls(reading, torch.cat(lengths, 2), torch.cat(products, 1))

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows slots"]:
        """α_hij ‖f_h(x_j)‖ of queries start … stop − 1, for each head."""
        return self.reading.rows(start, stop) * self.lengths.unsqueeze(2)

    def summed_rows(self, start: int, stop: int) -> Float[Tensor, "batch rows slots"]:
        """‖Σ_h α_hij f_h(x_j)‖ = √(αᵀ G_j α) of these queries, in float64: of the whole layer.

        It is at most the sum of `rows` over the heads, and less where heads undo each other.
        """
        weights = self.reading.rows(start, stop).to(torch.float64).permute(0, 3, 2, 1)
        squares: Tensor = torch.linalg.vecdot(weights @ self.products, weights)
        return squares.clamp(min=0.0).sqrt().mT

    def blocks(self, size: int) -> Iterator[Float[Tensor, "batch heads rows slots"]]:
        """All `rows` in order, at most `size` of them held at a time."""
        for start, stop in self._cuts(size):
            yield self.rows(start, stop)

    def summed_blocks(self, size: int) -> Iterator[Float[Tensor, "batch rows slots"]]:
        """All `summed_rows` in order, at most `size` of them held at a time."""
        for start, stop in self._cuts(size):
            yield self.summed_rows(start, stop)

    def _cuts(self, size: int) -> Iterator[tuple[int, int]]:
        if size < 1:
            raise AttlasError("a block size of at least one row", str(size), "pass e.g. 256")
        queries = self.reading.shape[2]
        for start in range(0, queries, size):
            yield start, min(start + size, queries)
