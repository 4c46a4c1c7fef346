"""A corpus in windows: so many texts that are read before any of them is written."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from attlas.analysis.corpus.text import Text
from attlas.data import batches_by_length


@dataclass(frozen=True, slots=True)
class Window:
    """Lines of a corpus in a row; `lines` counts those without a text too."""

    lines: int
    texts: tuple[Text, ...]


def batches_of(texts: Sequence[Text], tokens: int) -> list[list[Text]]:
    """These by length, at most `tokens` padded ones together; a longer text is alone.

    The length is that of the longer side, as far as it is known.
    """
    widths: Sequence[range] = [range(text.width) for text in texts]
    return [[texts[place] for place in places] for places in batches_by_length(widths, tokens)]


def windows_of(texts: Iterable[Text | None], *, lines: int, tokens: int) -> Iterator[Window]:
    """Cut so that none has more lines, nor more tokens unless one text has.

    Where a window ends depends on what is in it alone, so that who goes on after one of them finds
    the same as who has never stopped. texts: one for each line, None = nothing in it.
    """
    found: list[Text] = []
    read = counted = 0
    for text in texts:
        width = 0 if text is None else text.width
        if read == lines or (found and counted + width > tokens):
            yield Window(read, tuple(found))
            found, read, counted = [], 0, 0
        read, counted = read + 1, counted + width
        if text is not None:
            found.append(text)
    if read:
        yield Window(read, tuple(found))
