"""Which words of a text a token belongs to."""

from collections.abc import Sequence

from attlas.data.vocabulary import Vocabulary
from attlas.decoding.alignment import Link, word_links
from attlas.decoding.line import Line

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_CONTEXT = 8  # tokens; a character of UTF-8 is at most 4 bytes, so at most 4 tokens


def words_of_tokens(vocabulary: Vocabulary, ids: Sequence[int], text: str) -> list[tuple[int, ...]]:
    """For each id the words it writes in, counted from 0; words are what white space separates.

    A token of white space alone is in no word; one that reaches over several words is in all of
    them; the byte tokens of one character are all in its word. Works for every vocabulary, because
    it asks only how the text grows with each id. `text` is what the ids stand for: its own white
    space counts where a token cannot be written back (an unknown character).
    """
    written = vocabulary.decode(ids)
    word_at = _word_at(text if _reads_as(written, text) else written)
    found: list[tuple[int, ...]] = []
    end = 0
    for place in range(len(ids)):
        # A little context is enough to see what a token adds, and keeps this linear.
        start = max(place - _CONTEXT, 0)
        before = vocabulary.decode(ids[start:place])
        after = vocabulary.decode(ids[start : place + 1])
        first = end
        if not after.startswith(before):
            first -= 1  # a byte changes the character that others began
        end += len(after) - len(before)
        if first == end > 0:
            first -= 1  # a byte in the middle of a character changes nothing that can be seen
        found.append(tuple(sorted({word_at[i] for i in range(first, end)} - {-1})))
    return found


def _reads_as(written: str, text: str) -> bool:
    """Whether the text begins like that, character by character, but for the unknown ones."""
    return len(written) <= len(text) and all(
        one in (other, _UNKNOWN) for one, other in zip(written, text, strict=False)
    )


def _word_at(text: str) -> list[int]:
    """The word that each character is in; −1 for white space."""
    places: list[int] = []
    word, inside = -1, False
    for character in text:
        if character.isspace():
            inside = False
            places.append(-1)
        else:
            word += not inside
            inside = True
            places.append(word)
    return places


def words_linked(
    source: Vocabulary,
    line: Line,
    target: Vocabulary,
    tokens: Sequence[int],
    text: str,
    links: tuple[Link, ...],
) -> tuple[Link, ...]:
    """Links of tokens as links of words, counted from 0; `tokens` and `text` are the target's."""
    if not links:
        return ()
    return word_links(
        links,
        words_of_tokens(source, line.ids, line.text),
        words_of_tokens(target, tokens, text),
    )
