"""Alignment by attention: teacher-forced traces, links of tokens and of words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.data import Characters
from attlas.data.normalization import normalized
from attlas.data.vocabulary import BEGIN, END, UNKNOWN, Vocabulary
from attlas.errors import UnsupportedError
from attlas.models.encoder_decoder import S, SequenceToSequence, check_evaluating
from attlas.recording import AttentionMap, Trace, observe
from attlas.recording.hooks import attention_hooks, without_recording

Link = tuple[int, int]  # (source, target), counted from 0


def attention_links(
    weights: Float[Tensor, "queries keys"], targets: int, sources: int
) -> tuple[Link, ...]:
    """(argmax_i a_ti, t) for each of the first `targets` queries t, over the first `sources` keys.

    The counts leave out END on both sides: it is no part of a text, and attention to it often means
    "nowhere". A token that looked only at END has no link. Links are in the order of the
    target; of equal weights the first source token wins.
    """
    if not targets or not sources:
        return ()
    weights = weights[:targets, :sources]
    best = zip(weights.argmax(dim=1).tolist(), weights.amax(dim=1).tolist(), strict=True)
    return tuple((source, target) for target, (source, weight) in enumerate(best) if weight > 0)


def word_links(
    links: Sequence[Link],
    source_words: Sequence[Sequence[int]],
    target_words: Sequence[Sequence[int]],
) -> tuple[Link, ...]:
    """Two words are linked where any of their tokens are; sorted, each link once.

    `source_words[i]` are the words of source token i, likewise for the target.
    """
    return tuple(
        sorted(
            {
                (source, target)
                for i, j in links
                for source in source_words[i]
                for target in target_words[j]
            }
        )
    )


def pharaoh(links: Sequence[Link]) -> str:
    """ "0-0 1-2 …": the links in the Pharaoh format, counted from 0."""
    return " ".join(f"{source}-{target}" for source, target in links)


# A line of text as ids.


@dataclass(frozen=True, slots=True)
class Line:
    """A text and the ids that are read of it; `cut` counts the ids beyond them."""

    text: str
    ids: tuple[int, ...]
    cut: int

    def tokens(self, source: Vocabulary) -> tuple[str, ...]:
        """The tokens that are read, as text, and END.

        Only an unknown token needs the text, which is then segmented again.
        """
        pieces: Sequence[str]
        if UNKNOWN in self.ids:
            pieces = source.pieces_of(self.text)[: len(self.ids)]
        else:
            pieces = source.pieces(self.ids)
        return (*pieces, *source.pieces([END]))


# The attention of a translation: the finished hypothesis is read again.


_AT_ONCE = 2**22  # weights of one layer: 16 MiB


@dataclass(frozen=True, slots=True)
class TeacherForcedTrace:
    """The trace of one translation and the links of its tokens.

    Args:
        trace: Attention maps shaped (1, heads, queries, keys); None if there is none, and then
            `blank` says why.
        alignment: (source token, target token), see `attention_links`.
    """

    trace: Trace | None
    alignment: tuple[Link, ...]
    blank: str = ""


def trace_teacher_forced(
    model: SequenceToSequence[S],
    source: Sequence[int],
    target: Sequence[int],
    finished: bool,
    source_tokens: Sequence[str],
    tokens: Sequence[str],
) -> TeacherForcedTrace:
    """Read a hypothesis once more, all positions at once, and record where the model looks.

    Args:
        source, target: Ids without BEGIN and END; END is added to the source, and to the target
            where it is finished. The queries are the target's tokens: query t is the one that
            predicts token t.

    Raises:
        UnsupportedError: If the model is in training mode.
    """
    if not attention_hooks(model):
        return TeacherForcedTrace(None, (), "the model has no attention")
    check_evaluating(model)
    target_ids = [*target, END] if finished else [*target]
    if not target_ids:
        return TeacherForcedTrace(None, (), "the translation has no token")
    trace = _observed(model, source, target_ids)
    trace.label([source_tokens], [tokens])
    query_tokens = ["<s>", *tokens[:-1]]  # the query that predicts token t has read those before it
    for layer in trace:
        match model.attention_kind(layer):
            case "source":
                trace.label_layer(layer, [source_tokens], [source_tokens])
            case "target":
                trace.label_layer(layer, [query_tokens], [tokens])
    weights = attention_to_source(trace)
    return TeacherForcedTrace(trace, attention_links(weights, len(target), len(source)))


def check_has_cross_attention(model: SequenceToSequence[S]) -> None:
    """Check that the model looks from the target to the source.

    Raises:
        UnsupportedError: If it does not.
    """
    if all(model.attention_kind(layer) != "across" for layer in attention_hooks(model).values()):
        raise UnsupportedError(
            'a model with cross-attention for decoding.unknown = "replace"',
            "one that does not",
            'set decoding.unknown = "keep" or "forbid", or train with model.attention',
        )


def teacher_forced_attention(
    model: SequenceToSequence[S], source: Sequence[int], target: Sequence[int]
) -> Float[Tensor, "queries keys"]:
    """`attention_to_source` of a hypothesis of at least one token, which is read again: a row for
    each token. Active observers do not record this pass.
    """
    with without_recording():
        trace = _observed(model, source, target)
    return _mean([trace[layer] for layer in trace if model.attention_kind(layer) == "across"])


def _observed(
    model: SequenceToSequence[S], source: Sequence[int], target_ids: Sequence[int]
) -> Trace:
    """One pass over all positions; query t is the one that predicts token t of `target_ids`."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    ids = torch.tensor([[*source, END]], device=device)
    decoder_input = torch.tensor([[BEGIN, *target_ids[:-1]]], device=device)
    with torch.no_grad(), observe(model) as trace:
        model.decode(decoder_input, model.encode(ids, torch.ones_like(ids, dtype=torch.bool)))
    return trace


def attention_to_source(trace: Trace) -> Float[Tensor, "queries keys"]:
    """The mean over heads, and over the layers that look from the target to the source.

    Computed block by block of queries, so that no map of all heads is held.

    Raises:
        UnsupportedError: If no layer of the trace does.
    """
    attention_maps = [trace[layer] for layer in trace if trace.is_cross_attention(layer)]
    if not attention_maps:
        raise UnsupportedError(
            "a layer of cross-attention, from the target to the source",
            f"{', '.join(trace)}",
            "use a model whose decoder has cross-attention",
        )
    return _mean(attention_maps)


def _mean(attention_maps: Sequence[AttentionMap]) -> Float[Tensor, "queries keys"]:
    _, heads, queries, num_keys = attention_maps[0].shape
    step = max(1, _AT_ONCE // (heads * num_keys))
    return torch.cat(
        [
            torch.stack(
                [
                    attention_map.rows(first, min(first + step, queries))[0].mean(dim=0)
                    for attention_map in attention_maps
                ]
            ).mean(dim=0)
            for first in range(0, queries, step)
        ]
    )


# The words of tokens, and words in place of unknown tokens.


_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_CONTEXT = 8  # tokens; a character of UTF-8 is at most 4 bytes, so at most 4 tokens


def words_of_tokens(vocabulary: Vocabulary, ids: Sequence[int], text: str) -> list[tuple[int, ...]]:
    """For each id the words it writes in, counted from 0; words are what white space separates.

    A token of white space alone is in no word; one that reaches over several words is in all of
    them; the byte tokens of one character are all in its word. Works for every vocabulary, because
    it asks only how the text grows with each id. `text` is what the ids stand for: its own white
    space counts where a token cannot be written back (an unknown character).
    """
    decoded = vocabulary.decode(ids)
    word_at = _word_at(text if _reads_as(decoded, text) else decoded)
    words: list[tuple[int, ...]] = []
    end = 0
    for index in range(len(ids)):
        # A short context shows what a token adds, and keeps this linear.
        start = max(index - _CONTEXT, 0)
        prefix = vocabulary.decode(ids[start:index])
        after = vocabulary.decode(ids[start : index + 1])
        first = end
        if not after.startswith(prefix):
            first -= 1  # a byte changes the character that others began
        end += len(after) - len(prefix)
        if first == end > 0:
            first -= 1  # a byte in the middle of a character changes nothing that can be seen
        words.append(tuple(sorted({word_at[i] for i in range(first, end)} - {-1})))
    return words


def _reads_as(decoded: str, text: str) -> bool:
    """Return True if the text begins like that, character by character, but for the unknown
    ones.
    """
    return len(decoded) <= len(text) and all(
        first in (second, _UNKNOWN) for first, second in zip(decoded, text, strict=False)
    )


def _word_at(text: str) -> list[int]:
    """The word that each character is in; −1 for white space."""
    indices: list[int] = []
    word, in_word = -1, False
    for character in text:
        if character.isspace():
            in_word = False
            indices.append(-1)
        else:
            word += not in_word
            in_word = True
            indices.append(word)
    return indices


def words_linked(
    source: Vocabulary,
    line: Line,
    target_words: Callable[[], Sequence[tuple[int, ...]]],
    links: tuple[Link, ...],
) -> tuple[Link, ...]:
    """Links of tokens as links of words, counted from 0.

    Args:
        target_words: Those of each token.
    """
    if not links:
        return ()
    return word_links(links, words_of_tokens(source, line.ids, line.text), target_words())


def most_attended_words(
    weights: Float[Tensor, "queries keys"], source: Vocabulary, line: Line
) -> list[str | None]:
    """argmax_w Σ a_ti over the tokens i of source word w, for each query t: the word itself.

    A word is what white space separates, whole and in the form in which the vocabulary reads it; of
    a vocabulary of characters it is one of them. A token of several words counts for each, END for
    none. Equal sums: the first word. None: the model looked at no word.
    """
    words, of_tokens = _read(source, line)
    belongs = torch.zeros(len(of_tokens), len(words), dtype=torch.float64)
    for token, words_ in enumerate(of_tokens):
        belongs[token, list(words_)] = 1.0
    if not words:
        return [None] * len(weights)
    sums = (weights[:, : len(of_tokens)].double().cpu() @ belongs).tolist()
    return [words[row.index(max(row))] if max(row) > 0.0 else None for row in sums]


def _read(source: Vocabulary, line: Line) -> tuple[Sequence[str], list[tuple[int, ...]]]:
    """The words of a line, and those of each token that is read of it."""
    text = normalized(line.text, source.normalization)
    if isinstance(source, Characters):
        units = source.tokens_of(text)
        numbers = range(len(line.ids))
        return units, [
            () if units[word_index].isspace() else (word_index,) for word_index in numbers
        ]
    return text.split(), words_of_tokens(source, line.ids, text)


def with_words(
    target: Vocabulary, tokens: Sequence[int], words: Sequence[str | None]
) -> tuple[str, list[tuple[int, ...]]]:
    """The text of these tokens with a word in place of each unknown token, and the words of each
    token; None: an unknown token stays.

    A word stands between spaces, but a character among characters.
    """
    indices = [
        index
        for index, (id_, word) in enumerate(zip(tokens, words, strict=True))
        if id_ == UNKNOWN and word is not None
    ]
    parts: list[str] = []
    of_tokens: list[tuple[int, ...]] = []
    number = 0  # of the next word
    for start, end in zip([0, *(p + 1 for p in indices)], [*indices, len(tokens)], strict=True):
        run = tokens[start:end]
        parts.append(target.decode(run))
        token_words = words_of_tokens(target, run, parts[-1])
        of_tokens += [
            tuple(number + word for word in words_of_token) for words_of_token in token_words
        ]
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
