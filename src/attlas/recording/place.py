"""A module of a model, at work."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from torch import nn


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attention happens that does not speak for itself.

    path: of the module in its model. cache: the memory of earlier steps that the module was given,
    if any; across: whether it was given something else to look at than what asks (None = nobody
    said). texts: the shapes of the texts that it was given, or who holds it: vectors with a batch
    or without one, each memory once.
    """

    path: str
    module: nn.Module
    cache: Any = field(default=None, compare=False)
    across: bool | None = None
    texts: tuple[tuple[int, ...], ...] = ()

    def looks_across(self, batch: int, queries: int, slots: int) -> bool | None:
        """Whether so many queries look at something else than themselves; None = nobody knows.

        Where nobody says it, but one text alone was given that is as long as both, it is that text
        which asks and is looked at; where they are not of one length, and one of the texts is as
        long as the queries, another as the slots, the one looks at the other.
        """
        if self.across is not None:
            return self.across
        asking, asked = self._texts_of(batch, queries), self._texts_of(batch, slots)
        if queries == slots:
            return False if len(asked) == 1 else None
        return True if asking and asked and not set(asking) & set(asked) else None

    def _texts_of(self, batch: int, places: int) -> list[tuple[int, ...]]:
        return [text for text in self.texts if not Counter((batch, places)) - Counter(text)]

    def folds_no_heads(self, rows: int, places: int, heads: int) -> bool:
        """Whether so many rows are as many texts as were given, each for one head alone, and not
        that many times fewer, each for all heads."""
        given = [Counter(text[:2]) for text in self.texts]
        return Counter((rows, places)) in given and Counter((rows // heads, places)) not in given
