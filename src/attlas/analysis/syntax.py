"""Which heads find the syntactic head of a word: attention against a treebank."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attlas.data.conllu import Sentence
from attlas.errors import AttlasError
from attlas.recording import AttentionMap, Trace

# The table of dependency relations: which head finds which of them, and how often.


DIRECTIONS = ("dependent to head", "head to dependent")
"""Who looks: the dependent at its head, or the head at its dependent."""

SYNTACTIC = 0.1
"""Voita et al., 2019, section 5.2: a head is syntactic where it is so much above its baseline."""


@dataclass(frozen=True, slots=True)
class RelationHead:
    """A relation, and the attention head that finds it best.

    Args:
        accuracy: The share of `pairs` whose head is found.
        baseline: The share of heads at the commonest offset, `head − dependent` in words; it needs
            no model.
    """

    relation: str
    pairs: int
    layer: str
    head: int
    direction: str
    accuracy: float
    baseline: float
    offset: int

    @property
    def syntactic(self) -> bool:
        """accuracy − baseline ≥ 0.1 (Voita et al., 2019, section 5.2)."""
        return self.accuracy - self.baseline >= SYNTACTIC - 1e-9  # 0.6 − 0.5 < 0.1 in floats


@dataclass(frozen=True, slots=True)
class DependencyTable:
    """Counts for each relation, and for "all"; `first + second` is the table of both corpora.

    Args:
        pairs: Dependents with a head.
        offsets: How many of them at each `head − dependent`.
        hits: For how many dependents each attention head finds the head, by relation and layer, in
            both `DIRECTIONS`.
        left_out: Pairs that count nowhere, because the model did not read both words.
    """

    pairs: Mapping[str, int]
    offsets: Mapping[str, Counter[int]]
    hits: Mapping[str, Mapping[str, Int[Tensor, "2 heads"]]]
    left_out: int = 0

    def __add__(self, other: "DependencyTable") -> "DependencyTable":
        mine, other_layers = self.layers, other.layers
        if mine and other_layers and mine != other_layers:
            raise AttlasError(
                f"a table of the layers {list(mine)} too",
                str(list(other_layers)),
                "add texts of one model",
            )
        offsets = {relation: Counter(counts) for relation, counts in self.offsets.items()}
        for relation, counts in other.offsets.items():
            offsets.setdefault(relation, Counter()).update(counts)
        hits = {relation: dict(layers) for relation, layers in self.hits.items()}
        for relation, layers in other.hits.items():
            sums = hits.setdefault(relation, {})
            for layer, counts_of_layer in layers.items():
                sums[layer] = sums[layer] + counts_of_layer if layer in sums else counts_of_layer
        pairs = Counter(self.pairs) + Counter(other.pairs)
        return DependencyTable(pairs, offsets, hits, self.left_out + other.left_out)

    @property
    def layers(self) -> tuple[str, ...]:
        """The paths of the layers."""
        return tuple(next(iter(self.hits.values()), {}))

    @property
    def relations(self) -> tuple[str, ...]:
        """Every relation that occurred, the most frequent first, after "all"."""
        return tuple(
            sorted(
                self.pairs,
                key=lambda relation: (relation != "all", -self.pairs[relation], relation),
            )
        )

    def accuracy(self, relation: str, layer: str) -> Tensor:
        """The accuracies of a layer, (direction, head), for one relation or for "all" (UAS).

        Raises:
            AttlasError: For what is not in the table.
        """
        self._check(relation)
        if layer not in self.hits[relation]:
            raise AttlasError(
                f"one of the layers {list(self.hits[relation])}",
                repr(layer),
                "name one of the table",
            )
        return self.hits[relation][layer] / self.pairs[relation]

    def baseline(self, relation: str) -> tuple[int, float]:
        """The offset at which most heads of a relation lie, and the share that does.

        Of equals the nearest.

        Raises:
            AttlasError: As `accuracy`.
        """
        self._check(relation)
        counts = self.offsets[relation]
        offset = min(counts, key=lambda offset: (-counts[offset], abs(offset), offset))
        return offset, counts[offset] / self.pairs[relation]

    def best(self, relation: str) -> RelationHead:
        """The attention head that finds most heads of a relation, in its better direction.

        It is chosen and measured on the same pairs, so it overestimates rare relations.

        Raises:
            AttlasError: As `accuracy`.
        """
        self._check(relation)
        offset, baseline = self.baseline(relation)
        share, layer, direction, head = max(
            (
                (int(count), layer, direction, head)
                for layer, counts in self.hits[relation].items()
                for direction, row in enumerate(counts.tolist())
                for head, count in enumerate(row)
            ),
            key=lambda head: head[0],
        )
        pairs = self.pairs[relation]
        return RelationHead(
            relation=relation,
            pairs=pairs,
            layer=layer,
            head=head,
            direction=DIRECTIONS[direction],
            accuracy=share / pairs,
            baseline=baseline,
            offset=offset,
        )

    def found(self, least: int = 1) -> tuple[RelationHead, ...]:
        """The best head of each relation that has at least so many pairs; "all" first."""
        return tuple(
            self.best(relation) for relation in self.relations if self.pairs[relation] >= least
        )

    def _check(self, relation: str) -> None:
        if relation not in self.pairs:
            raise AttlasError(
                f"one of the relations {list(self.relations)}", repr(relation), "choose one of them"
            )


# Attention between words, of a map between their parts.


_AT_ONCE = 1 << 22  # weights that are held together


def word_numbers(encoding: Any) -> Int[Tensor, "batch tokens"]:
    """Which word each token is part of, from 0; −1 for special tokens and padding.

    Args:
        encoding: The result of a fast Hugging Face tokenizer for a batch of word lists, with
            `is_split_into_words=True`; `word_ids` is called.

    Raises:
        AttlasError: If the tokenizer does not know.
    """
    try:
        rows = [encoding.word_ids(row) for row in range(len(encoding["input_ids"]))]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise AttlasError(
            "a batch from a fast tokenizer, which knows the words of its tokens",
            f"{type(encoding).__name__} ({error})",
            "tokenise a list of word lists with AutoTokenizer, or number the words yourself",
        ) from None
    longest = max(map(len, rows), default=0)
    padded = [[-1 if word is None else word for word in row] for row in rows]
    return torch.tensor([row + [-1] * (longest - len(row)) for row in padded]).long()


def between_words(
    attention_map: AttentionMap, words: Int[Tensor, " tokens"], count: int, at_once: int = _AT_ONCE
) -> Iterator[tuple[int, Float[Tensor, "heads rows words"]]]:
    """w̄_ab = mean_{i ∈ a} Σ_{j ∈ b} w_ij, of the words a, b: the first a of a few, and their rows.

    Weights on a word are the sum over its parts; weights of a word are the mean over its parts
    (Clark et al., 2019, section 4.1). Rows then sum to 1, minus the weight of tokens that are of no
    word.

    Args:
        words: The number of the word of each token, −1 = of none; a word without a token has zeros.
            The attention map has one batch row.

    Raises:
        AttlasError: For a map that is not square, and for numbers that do not fit it.
    """
    batch, heads, queries, num_keys = attention_map.shape
    if batch != 1 or queries != num_keys:
        raise AttlasError(
            "one whole map of self-attention",
            f"{batch} × {queries:,} queries × {num_keys:,} keys",
            "choose the layers of self-attention",
        )
    if attention_map.position != 0:
        raise AttlasError(
            "a map in which each query stands at its own key",
            "one that does not, or says nothing of it, as of a text in windows or chunks",
            "choose other layers; or, where you know better, dataclasses.replace(attention_map, "
            "first=0)",
        )
    least, last_word = (int(words.min()), int(words.max())) if words.numel() else (-1, -1)
    if tuple(words.shape) != (num_keys,) or last_word >= count or least < -1:
        raise AttlasError(
            f"for each of {num_keys:,} tokens the number of its word, from -1 to below {count:,}",
            f"{tuple(words.shape)}, from {least:,} to {last_word:,}",
            "number the words of each sentence from 0, with -1 for tokens of none",
        )
    step = max(1, at_once // max(1, heads * max(num_keys, count)))
    for first in range(0, count, step):
        last = min(first + step, count)
        yield first, _rows(attention_map, words, (first, last), count, step)


def _rows(
    attention_map: AttentionMap,
    words: Int[Tensor, " tokens"],
    rows: tuple[int, int],
    count: int,
    step: int,
) -> Float[Tensor, "heads rows words"]:
    """The rows of the words some[0] … some[1] − 1."""
    in_sentence = (words >= rows[0]) & (words < rows[1])
    positions = in_sentence.nonzero().flatten()
    heads = attention_map.shape[1]
    no_rows = attention_map.rows(0, 0)
    words, in_sentence = words.to(no_rows.device), in_sentence.to(no_rows.device)
    # In float64, because the weights of many parts are summed before argmax.
    sums = torch.zeros(
        (heads, rows[1] - rows[0], count), dtype=torch.float64, device=no_rows.device
    )
    if not len(positions):
        return sums
    low, high = int(positions[0]), int(positions[-1]) + 1
    for start in range(low, high, step):
        stop = min(start + step, high)
        weights = attention_map.rows(start, stop)[0].to(sums.dtype)
        to_words = weights.new_zeros((heads, stop - start, count + 1))
        to_words.index_add_(-1, words + 1, weights)
        block_in_sentence = in_sentence[start:stop]
        sums.index_add_(
            1, words[start:stop][block_in_sentence] - rows[0], to_words[:, block_in_sentence, 1:]
        )
    parts = torch.bincount(words[in_sentence] - rows[0], minlength=rows[1] - rows[0])
    return sums / parts.clamp(min=1).unsqueeze(-1)


_ALL = "all"


def syntax(
    trace: Trace,
    sentences: Sequence[Sentence],
    words: Int[Tensor, "batch tokens"],
    *,
    layers: str | Sequence[str] | None = None,
) -> DependencyTable:
    """How often each head of each layer finds the head of a word, for every relation.

    With w̄ between words (`between_words`), the predicted head of a word is the word that it looks
    at most, argmax_b w̄_ab, or the word that looks at it most, argmax_b w̄_ba, b ≠ a; each
    direction has its own figures. The accuracy of a relation is the share of its dependents whose
    head is found (Clark et al., 2019, section 4.2). The baseline is the best fixed offset. Roots
    have no head. The table of a corpus is the sum of the tables of its texts.

    Args:
        sentences: One for each batch row.
        words: The number of the word of each token, −1 = of none (`word_numbers`). A pair of which
            a word has no token is left out, and counted as such.
        layers: Paths, or patterns such as "encoder.*"; None = all that do not look across.

    Raises:
        AttlasError: For maps that are not square, layers called more than once, and if sentences,
            words and batch differ in number.
    """
    maps = trace.matching_layers(layers)
    if layers is None:
        maps = tuple(layer for layer in maps if trace.kind(layer) != "cross")
    if len(sentences) != len(words):
        raise AttlasError(
            "the words of as many texts as there are sentences",
            f"{len(words):,} texts and {len(sentences):,} sentences",
            "give a row of word numbers for each sentence",
        )
    if not maps:
        raise AttlasError(
            "at least one layer of self-attention",
            "none",
            "observe an encoder or a decoder, or name its layers",
        )
    for layer in maps:
        if trace[layer].shape[0] != len(sentences):
            raise AttlasError(
                f"a sentence for each of {trace[layer].shape[0]:,} batch rows of layer {layer!r}",
                f"{len(sentences):,}",
                "give the sentences that the model has read, in their order",
            )
    pairs: Counter[str] = Counter()
    offsets: dict[str, Counter[int]] = {}
    hits: dict[str, dict[str, Tensor]] = {}
    num_skipped = 0
    for row, sentence in enumerate(sentences):
        present = set(words[row].tolist())
        word_pairs = [
            (position, word.head - 1, word.relation)
            for position, word in enumerate(sentence.words)
            if word.head and {position, word.head - 1} <= present
        ]
        num_skipped += sum(word.head > 0 for word in sentence.words) - len(word_pairs)
        by_relation: dict[str, list[int]] = (
            {_ALL: list(range(len(word_pairs)))} if word_pairs else {}
        )
        for index, (_, _, relation) in enumerate(word_pairs):
            by_relation.setdefault(relation, []).append(index)
        for relation, members in by_relation.items():
            pairs[relation] += len(members)
            found = Counter(word_pairs[index][1] - word_pairs[index][0] for index in members)
            offsets.setdefault(relation, Counter()).update(found)
        if not word_pairs:
            continue
        dependents, heads = (torch.tensor([pair[side] for pair in word_pairs]) for side in (0, 1))
        for layer in maps:
            guesses = _heads_of(trace[layer].at(row), words[row], len(sentence.words))
            right = guesses[..., dependents] == heads
            for relation, members in by_relation.items():
                counts = hits.setdefault(relation, {})
                found_here = right[..., members].sum(-1)
                counts[layer] = counts[layer] + found_here if layer in counts else found_here
    return DependencyTable(pairs, offsets, hits, num_skipped)


def _heads_of(
    attention_map: AttentionMap, words: Int[Tensor, " tokens"], count: int
) -> Int[Tensor, "2 heads words"]:
    """The predicted head of each word in both directions; −1 = none."""
    heads = attention_map.shape[1]
    guesses = torch.full((2, heads, count), -1)
    strongest = torch.zeros((heads, count), dtype=torch.float64)
    for first, rows in between_words(attention_map, words, count):
        weights = rows.cpu()
        query_index = torch.arange(weights.shape[1])
        weights[:, query_index, first + query_index] = 0.0  # a word is not its own head
        peak, positions = weights.max(-1)
        guesses[0, :, first : first + len(query_index)] = torch.where(peak > 0, positions, -1)
        peak, positions = weights.max(1)
        stronger = peak > strongest
        strongest = torch.where(stronger, peak, strongest)
        guesses[1] = torch.where(stronger, positions + first, guesses[1])
    return guesses
