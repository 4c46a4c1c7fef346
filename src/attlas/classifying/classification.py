"""What a text classifier answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from attlas.recording import Trace


@dataclass(frozen=True)
class Classification:
    """One text, classified; where the model looked is found out when it is first asked for.

    label: the most probable one; among equals the first. probability: its own. probabilities: of
    every label, by name; they sum to 1. text: as it was read, in one line. tokens: one label per
    token for the axes of a map, END included.
    """

    text: str
    label: str
    probability: float
    probabilities: Mapping[str, float]
    tokens: tuple[str, ...]
    _look: Callable[[], Trace] = field(repr=False, compare=False)

    @cached_property
    def trace(self) -> Trace:
        """The attention of every layer, labelled: one pass of the model over this text, made once.

        It shows the model as it is at the first asking: ask before training it further.
        """
        return self._look()
