"""Which words of a text a token belongs to, and which of them stand for unknown ones."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.data import Characters
from attlas.data.normalization import normalized
from attlas.data.vocabulary import UNKNOWN, Vocabulary
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
    target_words: Callable[[], Sequence[tuple[int, ...]]],
    links: tuple[Link, ...],
) -> tuple[Link, ...]:
    """Links of tokens as links of words, counted from 0; target_words: those of each token."""
    if not links:
        return ()
    return word_links(links, words_of_tokens(source, line.ids, line.text), target_words())


def words_looked_at(
    weights: Float[Tensor, "queries slots"], source: Vocabulary, line: Line
) -> list[str | None]:
    """argmax_w Σ a_ti over the tokens i of source word w, for each query t: the word itself.

    A word is what white space separates, whole and in the form in which the vocabulary reads it; of
    a vocabulary of characters it is one of them. A token of several words counts for each, END for
    none. Equal sums: the first word. None: the model looked at no word.
    """
    words, of_tokens = _read(source, line)
    belongs = torch.zeros(len(of_tokens), len(words), dtype=torch.float64)
    for token, own in enumerate(of_tokens):
        belongs[token, list(own)] = 1.0
    if not words:
        return [None] * len(weights)
    sums = (weights[:, : len(of_tokens)].double().cpu() @ belongs).tolist()
    return [words[row.index(max(row))] if max(row) > 0.0 else None for row in sums]


def _read(source: Vocabulary, line: Line) -> tuple[Sequence[str], list[tuple[int, ...]]]:
    """The words of a line, and those of each token that is read of it."""
    text = normalized(line.text, source.normalization)
    if isinstance(source, Characters):
        units = source.tokens_of(text)
        read = range(len(line.ids))
        return units, [() if units[place].isspace() else (place,) for place in read]
    return text.split(), words_of_tokens(source, line.ids, text)


def with_words(
    target: Vocabulary, tokens: Sequence[int], words: Sequence[str | None]
) -> tuple[str, list[tuple[int, ...]]]:
    """The text of these tokens with a word in the place of each unknown one, and the words of that
    text to which each token belongs; None: an unknown token stays.

    A word stands between spaces, but a character among characters.
    """
    places = [
        place
        for place, (id_, word) in enumerate(zip(tokens, words, strict=True))
        if id_ == UNKNOWN and word is not None
    ]
    parts: list[str] = []
    of_tokens: list[tuple[int, ...]] = []
    number = 0  # of the next word
    for start, end in zip([0, *(p + 1 for p in places)], [*places, len(tokens)], strict=True):
        run = tokens[start:end]
        parts.append(target.decode(run))
        own = words_of_tokens(target, run, parts[-1])
        of_tokens += [tuple(number + word for word in each) for each in own]
        number += len(parts[-1].split())
        if end < len(tokens):
            parts.append(words[end] or "")
            of_tokens.append((number,))
            number += 1
    if isinstance(target, Characters):
        text = "".join(parts)
        return text, words_of_tokens(target, tokens, text)
    text = ""
    for part in filter(None, parts):
        text += part if not text or text[-1].isspace() else f" {part}"
    return text, of_tokens
