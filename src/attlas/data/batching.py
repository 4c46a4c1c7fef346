"""Corpora as ids, and batches by a budget of tokens: order and padding."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from attlas.data.bucketing import FOUR_BYTES, BatchingConfig, Bucketed, Ragged, Rows, cut_by_budget
from attlas.data.corpus import Corpus, Place
from attlas.data.labelled import LabelledCorpus
from attlas.data.subwords import Subwords
from attlas.data.vocabularies import LabelledVocabularies, Vocabularies
from attlas.data.vocabulary import BEGIN, END, PAD, Vocabulary
from attlas.errors import ConfigError

# What a model trains on at once.


def on_device(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on a device. A GPU copies it while the process goes on."""
    if torch.device(device).type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded token ids of some sentence pairs; token_mask: True = a token, False = padding.

    A source ends with the end-of-sentence token; a target begins with the beginning-of-sentence
    token and ends with the end-of-sentence token, unless it was cut. `indices` are the pairs'
    places in the corpus.
    """

    source: Int[Tensor, "batch length"]
    source_mask: Bool[Tensor, "batch length"]
    target: Int[Tensor, "batch queries_and_one"]
    target_mask: Bool[Tensor, "batch queries_and_one"]
    indices: tuple[int, ...]

    @property
    def decoder_input(self) -> Int[Tensor, "batch queries"]:
        """The decoder's input: the target without its last position."""
        return self.target[:, :-1]

    @property
    def expected(self) -> Int[Tensor, "batch queries"]:
        """The ids to predict: the target without its first position."""
        return self.target[:, 1:]

    @property
    def expected_mask(self) -> Bool[Tensor, "batch queries"]:
        """True where a position of `expected` holds a token."""
        return self.target_mask[:, 1:]

    @property
    def tokens(self) -> int:
        """The number of target tokens to predict, padding left out."""
        return int(self.expected_mask.sum())

    def twice(self) -> "Batch":
        """All rows twice."""
        return type(self)(
            self.source.repeat(2, 1),
            self.source_mask.repeat(2, 1),
            self.target.repeat(2, 1),
            self.target_mask.repeat(2, 1),
            self.indices * 2,
        )

    def padded_to(self, rows: int, source: int, target: int) -> "Batch":
        """The same pairs in so many rows, of these lengths: what is added is padding.

        Raises:
            ValueError: If the batch is larger.
        """
        missing = rows - len(self.source)
        sides = {"source": source - self.source.shape[1], "target": target - self.target.shape[1]}
        if min(missing, *sides.values()) < 0:
            shape = (len(self.source), self.source.shape[1], self.target.shape[1])
            raise ValueError(f"a batch of {shape} does not fit {(rows, source, target)}")
        return type(self)(
            F.pad(self.source, (0, sides["source"], 0, missing), value=PAD),
            F.pad(self.source_mask, (0, sides["source"], 0, missing), value=False),
            F.pad(self.target, (0, sides["target"], 0, missing), value=PAD),
            F.pad(self.target_mask, (0, sides["target"], 0, missing), value=False),
            self.indices,
        )

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        return type(self)(
            on_device(self.source, device),
            on_device(self.source_mask, device),
            on_device(self.target, device),
            on_device(self.target_mask, device),
            self.indices,
        )


# A corpus as token ids.


@dataclass(frozen=True, slots=True)
class EncodedCorpus:
    """The ids of each pair, without begin and end; `lines` as in the corpus."""

    name: str
    source: Rows
    target: Rows
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.source)


def encode_corpus(corpus: Corpus, vocabularies: Vocabularies) -> EncodedCorpus:
    """Each pair in its one best segmentation."""
    source, target = encoders_of(vocabularies, FOUR_BYTES)
    return EncodedCorpus(
        corpus.name,
        source(corpus.sources),
        target(corpus.targets),
        corpus.lines,
    )


def encoders_of(
    vocabularies: Vocabularies, typecode: str
) -> list[Callable[[Iterable[str]], Ragged]]:
    """What encodes the texts of each side: the same where they share a vocabulary."""
    source = encoder_of(vocabularies.source, typecode)
    return [source, source if vocabularies.shared else encoder_of(vocabularies.target, typecode)]


def encoder_of(vocabulary: Vocabulary, typecode: str) -> Callable[[Iterable[str]], Ragged]:
    """What encodes texts as `vocabulary.encode` does, many of them in less time."""
    if isinstance(vocabulary, Subwords):
        return vocabulary.encoder(typecode)
    return partial(Ragged.encoded, vocabulary.encode, typecode)


def sample_corpus(
    corpus: Corpus, vocabularies: Vocabularies, sampling: float, seed: int, epoch: int
) -> EncodedCorpus:
    """Each pair in a segmentation drawn for this epoch: subword regularisation.

    A pure function of its arguments: a run that resumes inside an epoch draws that epoch again and
    gets the same ids.

    Raises:
        ConfigError: For a vocabulary that has no subwords.
    """
    return EncodedCorpus(
        corpus.name,
        sample_segmentations(
            vocabularies.source, corpus.sources, sampling, f"{seed} {epoch} source"
        ),
        sample_segmentations(
            vocabularies.target, corpus.targets, sampling, f"{seed} {epoch} target"
        ),
        corpus.lines,
    )


def sample_segmentations(
    vocabulary: Vocabulary, texts: Iterable[str], sampling: float, seed: str
) -> Ragged:
    """The texts in segmentations drawn by chance; see `sample_corpus`."""
    if not isinstance(vocabulary, Subwords):
        raise ConfigError(
            "subwords to sample from", type(vocabulary).__name__, "set vocabulary.sampling = 0"
        )
    return Ragged.of(vocabulary.stream_sample(texts, sampling, seed), len(vocabulary))


class Batches(Bucketed[Batch]):
    """The batches of sentence pairs; see `Bucketed`."""

    example = "pair"

    def __init__(self, encoded: EncodedCorpus, config: BatchingConfig, seed: int) -> None:
        self.encoded = encoded
        lengths = encoded.source.lengths, encoded.target.lengths
        super().__init__(encoded.name, lengths, (1, 2), encoded.lines, config, seed)

    def batch(self, indices: Sequence[int]) -> Batch:
        """Source + END; BEGIN + target + END; padded to the longest of each side.

        A source that is cut ends with END as well, as in a search; a target that is cut does not.
        """
        max_length = self.config.max_length
        sources = [self.encoded.source[i][:max_length] for i in indices]
        targets = [self.encoded.target[i] for i in indices]
        # An END of a target that is cut would teach the model to stop in the middle of a sentence.
        is_whole = np.array([len(ids) <= max_length for ids in targets], dtype=np.bool_)
        source, source_mask = _framed(sources, (), np.ones_like(is_whole))
        target, target_mask = _framed([ids[:max_length] for ids in targets], (BEGIN,), is_whole)
        return Batch(source, source_mask, target, target_mask, tuple(indices))


def batches_by_length(
    sources: Sequence[Sized], budget: int, rows: int | None = None, shares: int = 1
) -> list[tuple[int, ...]]:
    """Batches for inference, shortest first: rows × (longest + 1) ≤ budget, as indices.

    Args:
        rows: Maximum number of rows of a batch. A source beyond the budget is a batch of its own.
            Each source is in exactly one batch.
        shares: The number of workers that share the batches. The budget is then the smallest one
            that gives no more batches than a multiple of it, so that all workers get equally many.
    """
    widths = [len(source) + 1 for source in sources]
    order = sorted(range(len(sources)), key=widths.__getitem__)
    ascending = [widths[i] for i in order]

    def cut(budget: int) -> list[tuple[int, ...]]:
        return cut_by_budget(order, ascending, budget, rows)

    batches = cut(budget)
    if shares == 1 or not batches:
        return batches
    num_batches = math.ceil(len(batches) / shares) * shares
    smaller = range(1, budget + 1)
    return cut(smaller[bisect_left(smaller, True, key=lambda size: len(cut(size)) <= num_batches)])


def padded(
    rows: Sequence[Sequence[int]],
) -> tuple[Int[Tensor, "batch length"], Bool[Tensor, "batch length"]]:
    """Stack rows of ids, padded with `PAD`; and the token mask."""
    lengths = torch.tensor([len(row) for row in rows])
    token_mask = torch.arange(int(lengths.max()) if rows else 0) < lengths[:, None]
    ids = torch.full(token_mask.shape, PAD)
    ids[token_mask] = torch.tensor([id_ for row in rows for id_ in row], dtype=torch.int64)
    return ids, token_mask


def _framed(
    rows: Sequence[NDArray[np.integer[Any]]], begin: tuple[int, ...], has_end: NDArray[np.bool_]
) -> tuple[Int[Tensor, "batch length"], Bool[Tensor, "batch length"]]:
    """What `padded` makes of begin + row + END, END only where `has_end` says so; without a list
    of each row.
    """
    first = len(begin)
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    lengths = first + sizes + has_end
    columns = np.arange(lengths.max(initial=0))
    ids = np.full((len(rows), len(columns)), PAD, dtype=np.int64)
    ids[:, :first] = begin
    if len(rows):
        inside = (columns >= first) & (columns < first + sizes[:, None])
        ids[inside] = np.concatenate(rows)
    ids[np.flatnonzero(has_end), lengths[has_end] - 1] = END
    return torch.from_numpy(ids), torch.from_numpy(columns < lengths[:, None])


# Labelled texts as numbers, in batches.


@dataclass(frozen=True, slots=True)
class LabelledBatch:
    """Padded token ids of some texts, each ending with the end token; token_mask: True = a token.

    Args:
        labels: The number of each text's label. `indices` are the texts' places in the corpus.
        class_weights: How much a text of each label counts; None = all alike.
    """

    source: Int[Tensor, "batch length"]
    source_mask: Bool[Tensor, "batch length"]
    labels: Int[Tensor, " batch"]
    indices: tuple[int, ...]
    class_weights: Float[Tensor, " classes"] | None = None

    @property
    def tokens(self) -> int:
        """The number of predictions in the loss: one for each text."""
        return len(self.labels)

    @property
    def weight(self) -> float:
        """Σ_n w(label_n), by which the loss is divided."""
        if self.class_weights is None:
            return float(self.tokens)
        return float(self.class_weights[self.labels].double().sum())

    def to(self, device: torch.device | str) -> "LabelledBatch":
        """The same batch on another device."""
        return type(self)(
            on_device(self.source, device),
            on_device(self.source_mask, device),
            on_device(self.labels, device),
            self.indices,
            None if self.class_weights is None else on_device(self.class_weights, device),
        )


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """The ids of each text, without the end token, and the number of its label."""

    name: str
    source: Rows
    labels: tuple[int, ...]
    places: tuple[Place, ...]

    def __len__(self) -> int:
        return len(self.source)


def encode_labelled(corpus: LabelledCorpus, vocabularies: LabelledVocabularies) -> EncodedTexts:
    """Each text in its one best segmentation.

    Raises:
        ConfigError: For a label that the vocabularies do not have.
    """
    source = encoder_of(vocabularies.text, FOUR_BYTES)(corpus.texts)
    labels = tuple(vocabularies.labels.ids(corpus))
    return EncodedTexts(corpus.name, source, labels, corpus.places)


def sample_labelled(
    corpus: LabelledCorpus,
    vocabularies: LabelledVocabularies,
    sampling: float,
    seed: int,
    epoch: int,
) -> EncodedTexts:
    """Each text in a segmentation drawn for this epoch, as `sample_corpus` does for pairs."""
    source = sample_segmentations(
        vocabularies.text, corpus.texts, sampling, f"{seed} {epoch} source"
    )
    return EncodedTexts(corpus.name, source, tuple(vocabularies.labels.ids(corpus)), corpus.places)


class LabelledBatches(Bucketed[LabelledBatch]):
    """The batches of labelled texts; see `Bucketed`."""

    example = "text"

    def __init__(
        self,
        encoded: EncodedTexts,
        config: BatchingConfig,
        seed: int,
        class_weights: Float[Tensor, " classes"] | None = None,
    ) -> None:
        self.encoded, self.class_weights = encoded, class_weights
        lengths = (encoded.source.lengths,)
        super().__init__(encoded.name, lengths, (1,), encoded.places, config, seed)

    def batch(self, indices: Sequence[int]) -> LabelledBatch:
        """Text + END, padded to the longest."""
        return labelled_batch(self.encoded, indices, self.config.max_length, self.class_weights)


def labelled_batch(
    encoded: EncodedTexts,
    indices: Sequence[int],
    max_length: int | None = None,
    class_weights: Float[Tensor, " classes"] | None = None,
) -> LabelledBatch:
    """These texts + END, padded to the longest; of each at most so many tokens, None: all."""
    source, token_mask = padded([[*encoded.source[i][:max_length].tolist(), END] for i in indices])
    labels = torch.tensor([encoded.labels[i] for i in indices], dtype=torch.int64)
    return LabelledBatch(source, token_mask, labels, tuple(indices), class_weights)
