"""What a model trains on at once."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded token ids of some sentence pairs; real: True = a token, False = padding.

    A source ends with the end-of-sentence token; a target begins with the beginning-of-sentence
    token and ends with the end-of-sentence token, unless it was cut. `indices` are the pairs'
    places in the corpus.
    """

    source: Int[Tensor, "batch slots"]
    source_real: Bool[Tensor, "batch slots"]
    target: Int[Tensor, "batch queries_and_one"]
    target_real: Bool[Tensor, "batch queries_and_one"]
    indices: tuple[int, ...]

    @property
    def asked(self) -> Int[Tensor, "batch queries"]:
        """The decoder's input: the target without its last position."""
        return self.target[:, :-1]

    @property
    def wanted(self) -> Int[Tensor, "batch queries"]:
        """What the decoder should predict: the target without its first position."""
        return self.target[:, 1:]

    @property
    def wanted_real(self) -> Bool[Tensor, "batch queries"]:
        """Which of the wanted positions hold a token."""
        return self.target_real[:, 1:]

    @property
    def tokens(self) -> int:
        """How many real target tokens are predicted."""
        return int(self.wanted_real.sum())

    def twice(self) -> "Batch":
        """All rows, and all of them again."""
        return type(self)(
            self.source.repeat(2, 1),
            self.source_real.repeat(2, 1),
            self.target.repeat(2, 1),
            self.target_real.repeat(2, 1),
            self.indices * 2,
        )

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        return type(self)(
            self.source.to(device),
            self.source_real.to(device),
            self.target.to(device),
            self.target_real.to(device),
            self.indices,
        )
