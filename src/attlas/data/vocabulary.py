"""What every vocabulary answers: text to ids and back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3  # the same ids in every vocabulary


class Vocabulary(Protocol):
    """Text to token ids and back. Ids 0–3 are padding, unknown, begin and end of sentence."""

    def __len__(self) -> int:
        """How many ids there are, the four special ones included."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without begin and end; deterministic."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids; special ids are left out."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One label per id, as a person reads it on the axis of a map."""

    def save(self, path: Path) -> None:
        """Write the vocabulary; `load_vocabulary` reads it back."""
