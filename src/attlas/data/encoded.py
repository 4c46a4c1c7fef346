"""A corpus as token ids."""

from collections.abc import Iterable
from dataclasses import dataclass

from attlas.data.corpus import Corpus
from attlas.data.ragged import Ragged
from attlas.data.subwords import Subwords
from attlas.data.vocabularies import Vocabularies
from attlas.data.vocabulary import Vocabulary
from attlas.errors import AttlasError


@dataclass(frozen=True, slots=True)
class EncodedCorpus:
    """The ids of each pair, without begin and end; `lines` as in the corpus."""

    name: str
    source: Ragged
    target: Ragged
    lines: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.source)


def encode_corpus(corpus: Corpus, vocabularies: Vocabularies) -> EncodedCorpus:
    """Each pair in its one best segmentation."""
    return EncodedCorpus(
        corpus.name,
        Ragged.of(vocabularies.source.encode(pair.source) for pair in corpus.pairs),
        Ragged.of(vocabularies.target.encode(pair.target) for pair in corpus.pairs),
        corpus.lines,
    )


def sample_corpus(
    corpus: Corpus, vocabularies: Vocabularies, sampling: float, seed: int, epoch: int
) -> EncodedCorpus:
    """Each pair in a segmentation drawn for this epoch: subword regularisation.

    A pure function of its arguments: a run that resumes inside an epoch draws that epoch again and
    gets the same ids.
    Errors: `AttlasError` for a vocabulary that has no subwords.
    """
    return EncodedCorpus(
        corpus.name,
        sampled(vocabularies.source, corpus.sources, sampling, f"{seed} {epoch} source"),
        sampled(vocabularies.target, corpus.targets, sampling, f"{seed} {epoch} target"),
        corpus.lines,
    )


def sampled(vocabulary: Vocabulary, texts: Iterable[str], sampling: float, seed: str) -> Ragged:
    """The texts in segmentations drawn by chance; see `sample_corpus`."""
    if not isinstance(vocabulary, Subwords):
        raise AttlasError(
            "subwords to sample from", type(vocabulary).__name__, "set vocabulary.sampling = 0"
        )
    return Ragged.of(vocabulary.stream_sample(texts, sampling, seed))
