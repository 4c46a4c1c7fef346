"""The toy tasks: sequences whose right answer, and whose right attention, is known."""

import hashlib
import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Literal

from pydantic import Field, model_validator

from attlas.data.corpus import Corpus, SplitName, corpus_of
from attlas.data.pair import Pair
from attlas.data.settings import DataSettings
from attlas.errors import AttlasError

_FEW = 1_000  # so many sequences are listed and dealt out; more are told apart by their hash

_SIDES = ("test", "valid", *["train"] * 8)  # a tenth, a tenth, and the rest
TASKS: dict[str, Callable[[Sequence[int]], list[int]]] = {
    "reverse": lambda sequence: list(sequence)[::-1],
    "copy": list,
    "sort": sorted,
}


class ToyData(DataSettings):
    """Sequences of the symbols "0" … "n − 1", drawn with a seed, and what becomes of them.

    Lengths are uniform over `length` = (shortest, longest), symbols uniform and independent. Each
    sequence belongs to one split (4 in 5 to train), so none is on two sides; within a split short
    ones may repeat.
    """

    kind: Literal["toy"] = "toy"
    task: Literal["reverse", "copy", "sort"] = "reverse"
    length: tuple[int, int] = (1, 20)
    symbols: int = Field(default=32, ge=1)
    train: int = Field(default=20_000, ge=1)
    valid: int = Field(default=500, ge=1)
    test: int = Field(default=500, ge=1)
    seed: int = 1

    @model_validator(mode="after")
    def _some_length(self) -> "ToyData":
        shortest, longest = self.length
        if not 1 <= shortest <= longest:
            raise AttlasError(
                "length = [shortest, longest] with 1 ≤ shortest ≤ longest",
                f"[{shortest}, {longest}]",
                "correct data.length",
            )
        return self

    def corpus(self, split: SplitName) -> Corpus:
        size = {"train": self.train, "valid": self.valid, "test": self.test}[split]
        draw = random.Random(f"{self.seed} {split}")
        answer = TASKS[self.task]
        dealt = self._dealt()
        pairs: list[Pair] = []
        while len(pairs) < size:
            sequence = draw.choices(range(self.symbols), k=draw.randint(*self.length))
            source = _written(sequence)
            side = dealt[source] if dealt else _SIDES[self._lot(source)[0] % len(_SIDES)]
            if side == split:
                pairs.append(Pair(source, _written(answer(sequence))))
        return corpus_of(pairs, f"{self.task} {split}")

    def _dealt(self) -> dict[str, str]:
        """The side of every sequence, where there are few; a hash could leave a side without."""
        shortest, longest = self.length
        count = 0
        for length in range(shortest, longest + 1):
            count += self.symbols**length
            if count > _FEW:
                return {}
        if count < len({*_SIDES}):
            raise AttlasError(
                "three different sequences at least, so that train, valid and test share none",
                f"{self.symbols} symbol(s) in lengths {shortest} to {longest}",
                "allow more lengths or more symbols",
            )
        sequences = (
            _written(sequence)
            for length in range(shortest, longest + 1)
            for sequence in product(range(self.symbols), repeat=length)
        )
        ranked = sorted(sequences, key=self._lot)
        return {source: _SIDES[rank % len(_SIDES)] for rank, source in enumerate(ranked)}

    def _lot(self, source: str) -> bytes:
        return hashlib.sha256(f"{self.seed} {source}".encode()).digest()


def _written(sequence: Sequence[int]) -> str:
    return " ".join(map(str, sequence))
