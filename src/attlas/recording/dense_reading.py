"""A reading that holds the weights."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.recording.reading import Reading


@dataclass(frozen=True, slots=True, repr=False)
class DenseReading(Reading):
    """The weights themselves: recurrent attention, or arrays that a user brings.

    allowed: which slots each query may look at; None = all of them, as far as anybody knows.
    """

    values: Float[Tensor, "batch heads queries slots"]
    allowed: Bool[Tensor, "#batch #heads #queries slots"] | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads, queries, slots = self.values.shape
        return batch, heads, queries, slots

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows slots"]:
        self._checked(start, stop)
        return self.values[:, :, start:stop]

    def seen(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows slots"]:
        self._checked(start, stop)
        if self.allowed is None:
            shape = (1, 1, stop - start, self.shape[3])
            return torch.ones((), dtype=torch.bool, device=self.values.device).expand(shape)
        return self.allowed.expand(-1, -1, self.shape[2], -1)[:, :, start:stop]

    @property
    def causal(self) -> bool:
        _, _, queries, slots = self.shape
        return not bool(self.values.triu(slots - queries + 1).any())

    def select(self, rows: Int[Tensor, " chosen"]) -> "DenseReading":
        allowed = self.allowed
        if allowed is not None and allowed.shape[0] > 1:
            allowed = allowed[rows]
        return DenseReading(self.values[rows], allowed)

    def of_heads(self, heads: Int[Tensor, " chosen"]) -> "DenseReading":
        allowed = self.allowed
        if allowed is not None and allowed.shape[1] > 1:
            allowed = allowed[:, heads]
        return DenseReading(self.values[:, heads], allowed)

    def at(self, row: int) -> "DenseReading":
        allowed = self.allowed
        if allowed is not None and allowed.shape[0] > 1:
            allowed = allowed[row : row + 1]
        return DenseReading(self.values[row : row + 1], allowed)

    def kept(self) -> "DenseReading":
        allowed = None if self.allowed is None else self.allowed.clone()
        return DenseReading(self.values.detach().clone(), allowed)
