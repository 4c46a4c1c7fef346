"""Labelled texts as numbers, in batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.data.batching import padded
from attlas.data.bucketing import BatchingConfig, Bucketed
from attlas.data.encoded import sampled
from attlas.data.labelled_corpus import LabelledCorpus
from attlas.data.labels import LabelledVocabularies
from attlas.data.pair import Place
from attlas.data.ragged import Ragged
from attlas.data.vocabulary import END


@dataclass(frozen=True, slots=True)
class LabelledBatch:
    """Padded token ids of some texts, each ending with the end token; real: True = a token.

    labels: the number of each text's label. `indices` are the texts' places in the corpus.
    class_weights: how much a text of each label counts; None = all alike.
    """

    source: Int[Tensor, "batch slots"]
    source_real: Bool[Tensor, "batch slots"]
    labels: Int[Tensor, " batch"]
    indices: tuple[int, ...]
    class_weights: Float[Tensor, " classes"] | None = None

    @property
    def tokens(self) -> int:
        """How many predictions the loss is the sum of: one for each text."""
        return len(self.labels)

    @property
    def weight(self) -> float:
        """Σ_n w(label_n): what the loss is averaged over."""
        if self.class_weights is None:
            return float(self.tokens)
        return float(self.class_weights[self.labels].double().sum())

    def to(self, device: torch.device | str) -> "LabelledBatch":
        """The same batch on another device."""
        return type(self)(
            self.source.to(device),
            self.source_real.to(device),
            self.labels.to(device),
            self.indices,
            None if self.class_weights is None else self.class_weights.to(device),
        )


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """The ids of each text, without the end token, and the number of its label."""

    name: str
    source: Ragged
    labels: tuple[int, ...]
    places: tuple[Place, ...]

    def __len__(self) -> int:
        return len(self.source)


def encode_labelled(corpus: LabelledCorpus, vocabularies: LabelledVocabularies) -> EncodedTexts:
    """Each text in its one best segmentation.

    Errors: `AttlasError` for a label that the vocabularies do not have.
    """
    source = Ragged.of(vocabularies.text.encode(text) for text in corpus.texts)
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
    source = sampled(vocabularies.text, corpus.texts, sampling, f"{seed} {epoch} source")
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
    most: int | None = None,
    class_weights: Float[Tensor, " classes"] | None = None,
) -> LabelledBatch:
    """These texts + END, padded to the longest; of each at most so many tokens, None: all."""
    source, real = padded([[*encoded.source[i][:most].tolist(), END] for i in indices])
    labels = torch.tensor([encoded.labels[i] for i in indices], dtype=torch.int64)
    return LabelledBatch(source, real, labels, tuple(indices), class_weights)
