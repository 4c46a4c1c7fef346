"""A text of a corpus, as a model reads it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """line: where it stands in the corpus, from 1.

    source: the ids that are read, special ones included. asked: the ids that a decoder has read
    when it asks; wanted: the id that each of these queries is about to write; None = not known yet.
    unread: how many tokens are left out because the model has no positions for them, or because
    decoding.longest_source cuts them off. finished:
    whether what was written has an end. types: of each source token the part that it is of, where
    the model tells several apart (`token_type_ids`); None = it does not.
    """

    line: int
    source: tuple[int, ...]
    asked: tuple[int, ...] | None = None
    wanted: tuple[int, ...] | None = None
    unread: int = 0
    finished: bool = True
    types: tuple[int, ...] | None = None

    @property
    def width(self) -> int:
        """Tokens of its longer side."""
        return max(len(self.source), len(self.asked or ()))
