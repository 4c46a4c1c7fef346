"""What every vocabulary answers: text to ids and back."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from attlas.data.normalization import Normalization

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3  # the same ids in every vocabulary
MOST = 2**31 - 1  # ids of a vocabulary: an id has four bytes
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # how a person reads them


@runtime_checkable
class Vocabulary(Protocol):
    """Text to token ids and back. Ids 0–3 are padding, unknown, begin and end of sentence."""

    suffix: ClassVar[str]  # of the file that `save` writes: ".model" or ".json"
    normalization: Normalization  # the form of Unicode in which a text is read

    def __len__(self) -> int:
        """How many ids there are, the four special ones included."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without begin and end; deterministic."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids; padding, begin and end are left out, unknown is shown."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One label per id, as a person reads it on the axis of a map."""

    def pieces_of(self, text: str) -> list[str]:
        """As `pieces(encode(text))`, but an unknown token is shown as it stands in the text."""
        return self.pieces(self.encode(text))

    def save(self, path: Path) -> None:
        """Write the vocabulary; `load_vocabulary` reads it back."""
