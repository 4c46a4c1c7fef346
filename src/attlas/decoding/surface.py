"""Texts of hypotheses: different tokens may spell the same text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.data import Subwords, Vocabulary
from attlas.decoding.scoring import Hypothesis, ranked

_BASE = 0x9E3779B97F4A7C15  # 2⁶⁴ divided by the golden ratio: odd
_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Hashes:
    """h(text) = Σ r(byte_i) B^(n − i) mod 2⁶⁴, grown token by token.

    Args:
        first, after: H of what each token spells, at the beginning of a text and later.
        power: B to the number of bytes of it.
    """

    first: Int[Tensor, " vocabulary"]
    after: Int[Tensor, " vocabulary"]
    power: Int[Tensor, " vocabulary"]

    def grown(
        self,
        keys: Int[Tensor, "*rows"],
        tokens: Int[Tensor, "*rows"],
        *,
        begins: bool | Bool[Tensor, "*#rows"],
    ) -> Int[Tensor, "*rows"]:
        """The hash of each text with one more token.

        Args:
            begins: It is the first; as a tensor, of which rows.
        """
        if isinstance(begins, Tensor):
            return torch.where(begins, self.first[tokens], self.grown(keys, tokens, begins=False))
        if begins:
            return self.first[tokens]
        return keys * self.power[tokens] + self.after[tokens]

    def to(self, device: torch.device) -> "Hashes":
        """The same numbers on this device."""
        return Hashes(self.first.to(device), self.after.to(device), self.power.to(device))


class Surface:
    """The texts of a vocabulary's tokens, and their hashes, by which a search compares them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def text(self, tokens: Sequence[int]) -> str:
        """The text of these tokens, in one line: a model can spell a line break byte by byte."""
        return in_one_line(self._vocabulary.decode(tokens))

    @cached_property
    def hashes(self) -> Hashes | None:
        """None where different tokens spell different texts."""
        if not isinstance(self._vocabulary, Subwords):
            return None
        spellings = self._vocabulary.spellings
        shown = [spelling.replace(b"\n", b" ") for spelling in spellings]
        first = [spelling.removeprefix(b" ").replace(b"\n", b" ") for spelling in spellings]
        powers = [pow(_BASE, len(spelling), 2**64) for spelling in spellings]
        columns = (map(_hash, first), map(_hash, shown), powers)
        return Hashes(*map(_tensor, columns))


def in_one_line(text: str) -> str:
    """The text with a space for each line feed."""
    return text.replace("\n", " ")


def best_texts(
    hypotheses: Sequence[Hypothesis], count: int, surface: Surface | None
) -> list[Hypothesis]:
    """The best, at most so many, best first; with a surface the best of each text."""
    best = ranked(hypotheses)
    if surface is None or count == 1:
        return best[:count]
    by_text: dict[str, Hypothesis] = {}
    for hypothesis in best:
        by_text.setdefault(surface.text(hypothesis.tokens), hypothesis)
    return list(by_text.values())[:count]


def _tensor(numbers: Iterable[int]) -> Int[Tensor, " vocabulary"]:
    """64 bits each, as torch has them, with a sign."""
    return torch.tensor([number - ((number >> 63) << 64) for number in numbers])


def _hash(text: bytes) -> int:
    total = 0
    for byte in text:
        total = (total * _BASE + _mixed(byte)) & _MASK
    return total


def _mixed(byte: int) -> int:
    """64 bits for a byte: SplitMix64."""
    bits = (byte + 1) * _BASE & _MASK
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _MASK
    return bits ^ bits >> 31
