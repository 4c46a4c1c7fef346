"""A line of text as a model reads it."""

from collections.abc import Sequence
from dataclasses import dataclass

from attlas.data.vocabulary import END, UNKNOWN, Vocabulary


@dataclass(frozen=True, slots=True)
class Line:
    """A text and the ids that are read of it; `cut` counts the ids beyond them."""

    text: str
    ids: tuple[int, ...]
    cut: int

    def tokens(self, source: Vocabulary) -> tuple[str, ...]:
        """The tokens that are read, as text, and END.

        Only an unknown token has to be looked up in the text, which is segmented anew for it.
        """
        known: Sequence[str]
        if UNKNOWN in self.ids:
            known = source.pieces_of(self.text)[: len(self.ids)]
        else:
            known = source.pieces(self.ids)
        return (*known, *source.pieces([END]))
