"""A module of a model, at work."""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any

from torch import nn


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attention happens that does not speak for itself.

    path: of the module in its model. cache: the memory of earlier steps that the module was given,
    if any; across: whether it was given something else to look at than what asks (None = nobody
    said, or both); settled: whether that is all that can be said of it. texts: the shapes of the
    texts that it was given, or who holds it: vectors with a batch or without one, each memory once.
    unplaced: whether its queries stand at no known slots, by what they and the keys were made of:
    parameters alone, or one text of which the places were moved for the ones and not the others.
    taken: says where the first query stands among the keys, if queries are a part of their text.
    """

    path: str
    module: nn.Module
    cache: Any = field(default=None, compare=False)
    across: bool | None = None
    texts: tuple[tuple[int, ...], ...] = ()
    settled: bool = False
    unplaced: bool = False
    taken: Callable[[], Any] | None = field(default=None, compare=False)

    def looks_across(self, batch: int, queries: int, slots: int) -> bool | None:
        """Whether so many queries look at something else than themselves; None = nobody knows.

        Where nobody says it, but one text alone was given that is as long as both, it is that text
        which asks and is looked at; where they are not of one length, and one of the texts is as
        long as the queries, another as the slots, the one looks at the other.
        """
        if self.settled or self.across is not None:
            return self.across
        asking, asked = self._texts_of(batch, queries), self._texts_of(batch, slots)
        if queries == slots:
            return False if len(asked) == 1 else None
        return True if asking and asked and not set(asking) & set(asked) else None

    def may_hold(self, batch: int, places: int) -> bool:
        """Whether so many places in turn may be those of a text that was given, or of all of them
        one behind the other; of no text nobody can say that they are not.

        They are others where a text is taken in chunks, or is asked by learned queries.
        """
        pairs = [text[:2] for text in self.texts]
        # Texts come first or places do: where that is not told by how many texts there are, either.
        lengths = [
            {pair[1 - axis] for axis, size in enumerate(pair) if size == batch} or set(pair)
            for pair in pairs
        ]
        together = (sum(one) == places for one in product(*lengths))
        whole = any(places in some for some in lengths) or any(together)
        return not pairs or whole or bool(self._texts_of(batch, places))  # some have places last

    def _texts_of(self, batch: int, places: int) -> list[tuple[int, ...]]:
        return [text for text in self.texts if not Counter((batch, places)) - Counter(text)]

    def folds_no_heads(self, rows: int, places: int, heads: int) -> bool:
        """Whether so many rows are as many texts as were given, each for one head alone, and not
        that many times fewer, each for all heads."""
        given = [Counter(text[:2]) for text in self.texts]
        return Counter((rows, places)) in given and Counter((rows // heads, places)) not in given


def attribute(owner: Any, name: str) -> Any:
    """`getattr(owner, name, None)`, without the error that a module makes of what it has not."""
    if isinstance(owner, nn.Module):
        found = owner.__dict__.get(name, owner)
        if found is not owner:
            return found
        kind: Any = type(owner)
        if not _has_more(kind, name):
            return None  # what is left are parameters, buffers and modules
    return getattr(owner, name, None)


@lru_cache(4096)
def _has_more(kind: Hashable, name: str) -> bool:
    """Whether such a module may have an attribute of this name beside those that it holds."""
    return hasattr(kind, name) or getattr(kind, "__getattr__", None) is not nn.Module.__getattr__
