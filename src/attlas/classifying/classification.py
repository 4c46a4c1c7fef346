"""What a text classifier answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from attlas.recording import Trace


@dataclass(frozen=True)
class Classification:
    """One text, classified; where the model looked is found out when it is first asked for.

    label: the most probable one; among equals the first. probability: its own. probabilities: of
    every label, by name; they sum to 1. text: as it was read, in one line. unread: how many of its
    tokens play no part in this, because the model has no positions for them, or because it pools
    the first token alone, which cannot see them; 0 = read whole. known: whether any of its words is
    in the vocabulary, if only in part; where none is, the label tells nothing of this text.
    """

    text: str
    label: str
    probability: float
    probabilities: Mapping[str, float]
    unread: int
    known: bool
    _tokens: Callable[[], tuple[str, ...]] = field(repr=False, compare=False)
    _look: Callable[[Sequence[str]], Trace] = field(repr=False, compare=False)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """One label per token that was read, for the axes of a map; END included."""
        return self._tokens()

    @cached_property
    def trace(self) -> Trace:
        """The attention of every layer, labelled: one pass of the model over this text, made once.

        It shows the model as it is at the first asking: ask before training it further.
        """
        return self._look(self.tokens)
