"""What a line of data is: a sentence and its translation, or a text and its label."""

from typing import Literal, NamedTuple

OnFault = Literal["error", "skip"]
"""What to do with what is not fit: stop there, or leave it out and count it."""

Place = int | str
"""Where something stands: the number of a line, from 1, or the name of a file."""


class Pair(NamedTuple):
    """A sentence and its translation; neither holds a line break."""

    source: str
    target: str


class Labelled(NamedTuple):
    """A text and the name of the class it belongs to."""

    text: str
    label: str
