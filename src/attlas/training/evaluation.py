"""How good a model is on a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from attlas.data import (
    Batches,
    Corpus,
    Vocabularies,
    batches_by_length,
    encode_corpus,
    padded,
)
from attlas.data.vocabulary import END, UNKNOWN
from attlas.decoding import DecodingConfig, Hypothesis, decode
from attlas.decoding.side_by_side import at_a_time, side_by_side
from attlas.metrics import BleuTokenizer, Scores, corpus_score, sequence_accuracy
from attlas.models import SequenceToSequence
from attlas.training.feeding import teacher_forced
from attlas.training.loss import sequence_loss

_SLOTS = 4096  # source tokens decoded at a time; what comes out does not depend on it


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Translations of a corpus in its order, their scores, and the part that is exactly right.

    accuracy compares tokens, END included: a translation that never ended is not right, nor is one
    of a word that the vocabulary does not know.
    """

    translations: tuple[str, ...]
    scores: Scores
    accuracy: float


@torch.no_grad()
def validation_loss(model: SequenceToSequence[Any], batches: Batches) -> float:
    """Nats per real target token, teacher-forced, without dropout or smoothing.

    Over the pairs that `batches` has not left out (see `batches.report`).
    """
    was_training, device = model.training, _device(model)
    model.eval()
    total, tokens = 0.0, 0
    for indices in batches.epoch(0):
        batch = batches.batch(indices).to(device)
        features = teacher_forced(model, batch)
        loss = sequence_loss(model.logits, features, batch.wanted, batch.wanted_real, 0.0, [])
        total += loss.item()
        tokens += batch.tokens
    model.train(was_training)
    return total / tokens


def evaluate(
    model: SequenceToSequence[Any],
    corpus: Corpus,
    vocabularies: Vocabularies,
    decoding: DecodingConfig,
    bleu_tokenizer: BleuTokenizer = "13a",
) -> Evaluation:
    """Translate a corpus and score it against its other side, as `corpus_score` does."""
    encoded = encode_corpus(corpus, vocabularies)
    places = range(len(encoded))
    found = translate_ids(model, [encoded.source[place].tolist() for place in places], decoding)
    texts = tuple(vocabularies.target.decode(ids) for ids in found)
    wanted = [[*encoded.target[place].tolist(), END] for place in places]
    scores = corpus_score(texts, corpus.targets, bleu_tokenizer)
    return Evaluation(texts, scores, sequence_accuracy(found, wanted, unknown=UNKNOWN))


def translate_ids(
    model: SequenceToSequence[Any], sources: Sequence[Sequence[int]], decoding: DecodingConfig
) -> list[list[int]]:
    """The best translation of each source (ids without END), in order; END where it ended."""
    was_training, device = model.training, _device(model)
    model.eval()
    found: list[list[int]] = [[] for _ in sources]

    def work(indices: Sequence[int]) -> list[list[Hypothesis]]:
        source, real = padded([[*sources[index], END] for index in indices])
        return decode(model, source.to(device), real.to(device), decoding)

    batches = batches_by_length(sources, _SLOTS, shares=at_a_time(model))
    for indices, lists in zip(batches, side_by_side(work, batches, model), strict=True):
        for index, best in zip(indices, lists, strict=True):
            found[index] = [*best[0].tokens, *([END] if best[0].finished else [])]
    model.train(was_training)
    return found


def _device(model: torch.nn.Module) -> torch.device:
    return next(model.parameters()).device
