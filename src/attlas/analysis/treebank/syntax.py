"""Which heads find the syntactic head of a word: attention against a treebank."""

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from attlas.analysis.treebank.dependencies import DependencyTable
from attlas.analysis.treebank.wordwise import between_words
from attlas.data.conllu import Sentence
from attlas.errors import AttlasError
from attlas.recording import Reading, Trace

_ALL = "all"


def syntax(
    trace: Trace,
    sentences: Sequence[Sentence],
    words: Int[Tensor, "batch tokens"],
    *,
    layers: str | Sequence[str] | None = None,
) -> DependencyTable:
    """How often each head of each layer finds the head of a word, for every relation.

    With w̄ between words (`between_words`), a word's head is taken to be what it looks at the most,
    argmax_b w̄_ab, or who looks at it the most, argmax_b w̄_ba, b ≠ a: each direction has its own
    figures. The accuracy of a relation is the share of its dependents whose head is found (Clark
    et al., 2019, section 4.2); what a fixed offset finds stands beside it. Roots have no head to be
    found. A corpus is the sum of its tables.

    sentences: one for each batch row; words: the number of the word of each token, −1 = of none
    (`word_numbers`). A pair of which a word has no token is left out, and counted as such. layers:
    paths, or patterns such as "encoder.*"; None = all that do not look across.
    Errors: `AttlasError` for maps that are not square, layers called more than once, and where
    sentences, words and batch differ in number.
    """
    chosen = trace.chosen(layers)
    if layers is None:
        chosen = tuple(layer for layer in chosen if trace.relation(layer) != "cross")
    if len(sentences) != len(words):
        raise AttlasError(
            "the words of as many texts as there are sentences",
            f"{len(words):,} texts and {len(sentences):,} sentences",
            "give a row of word numbers for each sentence",
        )
    if not chosen:
        raise AttlasError(
            "at least one layer that looks at its own text",
            "none",
            "observe an encoder or a decoder, or name its layers",
        )
    for layer in chosen:
        if trace[layer].shape[0] != len(sentences):
            raise AttlasError(
                f"a sentence for each of {trace[layer].shape[0]:,} batch rows of layer {layer!r}",
                f"{len(sentences):,}",
                "give the sentences that the model has read, in their order",
            )
    pairs: Counter[str] = Counter()
    offsets: dict[str, Counter[int]] = {}
    hits: dict[str, dict[str, Tensor]] = {}
    left_out = 0
    for row, sentence in enumerate(sentences):
        there = set(words[row].tolist())
        known = [
            (place, word.head - 1, word.relation)
            for place, word in enumerate(sentence.words)
            if word.head and {place, word.head - 1} <= there
        ]
        left_out += sum(word.head > 0 for word in sentence.words) - len(known)
        by_relation: dict[str, list[int]] = {_ALL: list(range(len(known)))} if known else {}
        for index, (_, _, relation) in enumerate(known):
            by_relation.setdefault(relation, []).append(index)
        for relation, members in by_relation.items():
            pairs[relation] += len(members)
            found = Counter(known[index][1] - known[index][0] for index in members)
            offsets.setdefault(relation, Counter()).update(found)
        if not known:
            continue
        dependents, heads = (torch.tensor([pair[side] for pair in known]) for side in (0, 1))
        for layer in chosen:
            guesses = _heads_of(trace[layer].at(row), words[row], len(sentence.words))
            right = guesses[..., dependents] == heads
            for relation, members in by_relation.items():
                counts = hits.setdefault(relation, {})
                found_here = right[..., members].sum(-1)
                counts[layer] = counts[layer] + found_here if layer in counts else found_here
    return DependencyTable(pairs, offsets, hits, left_out)


def _heads_of(
    reading: Reading, words: Int[Tensor, " tokens"], count: int
) -> Int[Tensor, "2 heads words"]:
    """The head of each word by what it looks at, and by who looks at it; −1 where nobody does."""
    heads = reading.shape[1]
    guesses = torch.full((2, heads, count), -1)
    strongest = torch.zeros((heads, count), dtype=torch.float64)
    for first, rows in between_words(reading, words, count):
        weights = rows.cpu()
        some = torch.arange(weights.shape[1])
        weights[:, some, first + some] = 0.0  # a word is not its own head
        peak, place = weights.max(-1)
        guesses[0, :, first : first + len(some)] = torch.where(peak > 0, place, -1)
        peak, place = weights.max(1)
        stronger = peak > strongest
        strongest = torch.where(stronger, peak, strongest)
        guesses[1] = torch.where(stronger, place + first, guesses[1])
    return guesses
