"""Validation of models that translate."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from attlas.data import Batches, Corpus, Vocabularies, Vocabulary
from attlas.data.vocabulary import UNKNOWN
from attlas.decoding import DecodingConfig
from attlas.inference import Translation, Translator
from attlas.metrics import BleuTokenizer, Score, corpus_bleu, token_accuracy
from attlas.models import SequenceToSequence, sampled_logits
from attlas.training.checkpointing import TrainingState
from attlas.training.logging import EventLogger
from attlas.training.loss import cross_entropy, sequence_loss
from attlas.training.scheduled_sampling import teacher_forced
from attlas.training.tasks.base import AnyTask


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Translations of a corpus in its order, their BLEU, and the part that is `exactly_right`.

    Args:
        token_accuracy: Of the tokens, place by place (see `attlas.metrics`).
        average_length: Tokens of a translation, without the end token.
        reference_length: Tokens of a reference, without the end token.
    """

    translations: tuple[str, ...]
    bleu: Score
    accuracy: float
    token_accuracy: float
    average_length: float
    reference_length: float


@torch.no_grad()
def validation_loss(model: SequenceToSequence[Any], batches: Batches) -> float:
    """Nats per real target token, teacher-forced, without dropout or smoothing.

    Over the pairs that `batches` has not left out (see `batches.report`).
    """
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    total, tokens = 0.0, 0
    for indices in batches.epoch(0):
        batch = batches.batch(indices).to(device)
        features = teacher_forced(model, batch)
        loss = sequence_loss(model.logits, features, batch.expected, batch.expected_mask, 0.0, [])
        total += loss.item()
        tokens += batch.tokens
    model.train(was_training)
    return total / tokens


@torch.no_grad()
def free_running_loss(
    model: SequenceToSequence[Any], batches: Batches, sentences: int | None = None
) -> float | None:
    """Nats per token when the model reads its own most probable tokens; without dropout or
    smoothing.

    Returns None if `batches` has left out all pairs.

    Args:
        sentences: Only the first pairs; None = all.
    """
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    total, tokens = 0.0, 0
    for indices in batches.epoch(0):
        kept_indices = [index for index in indices if sentences is None or index < sentences]
        if not kept_indices:
            continue
        batch = batches.batch(kept_indices).to(device)
        is_forced = torch.zeros_like(batch.decoder_input, dtype=torch.bool)
        logits = sampled_logits(
            model, batch.source, batch.decoder_input, batch.source_mask, is_forced
        )
        target_mask = batch.expected_mask
        total += cross_entropy(logits[target_mask], batch.expected[target_mask]).item()
        tokens += batch.tokens
    model.train(was_training)
    return total / tokens if tokens else None


def evaluate(
    model: SequenceToSequence[Any],
    corpus: Corpus,
    vocabularies: Vocabularies,
    decoding: DecodingConfig,
    bleu_tokenizer: BleuTokenizer = "13a",
) -> Evaluation:
    """Translate a corpus as every `Translator` does, and score it against its other side, as
    `corpus_bleu` does.
    """
    was_training = model.training
    translations = list(Translator.of(model, vocabularies, decoding).stream(corpus.sources))
    model.train(was_training)
    texts = tuple(translation.text for translation in translations)
    bleu = corpus_bleu(texts, corpus.targets, bleu_tokenizer)
    references = [vocabularies.target.encode(text) for text in corpus.targets]
    right = exactly_right(translations, references, vocabularies.target)
    hypotheses = [vocabularies.target.encode(text) for text in texts]
    return Evaluation(
        translations=texts,
        bleu=bleu,
        accuracy=sum(right) / len(right),
        token_accuracy=token_accuracy(hypotheses, references, unknown=UNKNOWN),
        average_length=average_length(translations),
        reference_length=sum(map(len, references)) / len(references),
    )


def average_length(translations: Sequence[Translation]) -> float:
    """How many tokens they have on the average, without the end token."""
    lengths = (
        len(translation.tokens[:-1] if translation.finished else translation.tokens)
        for translation in translations
    )
    return sum(lengths) / len(translations)


def exactly_right(
    translations: Sequence[Translation], references: Sequence[Sequence[int]], vocabulary: Vocabulary
) -> list[bool]:
    """Which translations have the tokens of their reference in `references`, and ended
    there.

    What was cut off is not right, whatever its text, and a word that the vocabulary does not know
    cannot be.
    """
    return [
        translation.finished
        and UNKNOWN not in ids
        and translation.tokens[:-1] == tuple(vocabulary.pieces(ids))  # without END
        for translation, ids in zip(translations, references, strict=True)
    ]


# The validator.


class Validator:
    """Validates by the criterion of the recipe, and reports the result.

    Args:
        last: The last validation in `metrics.jsonl`; {} before the first.
    """

    def __init__(self, task: AnyTask, logger: EventLogger, last: dict[str, Any]) -> None:
        self.task, self.logger, self.last = task, logger, last
        self.criterion = task.recipe.training.validation

    def validate(
        self,
        model: nn.Module,
        checkpoint: str,
        state: TrainingState,
        best: tuple[float, float] | None,
    ) -> tuple[tuple[float, float], bool]:
        """Return the value of the criterion, and whether it is the best so far; both are
        reported.
        """
        measured = self.task.measure(model)
        value = measured.criterion_value(self.criterion.criterion)
        better = self.criterion.better(value, best)
        moment = self.logger.clock.moment(state)
        event = measured.event(**moment, checkpoint=checkpoint, best=better, **asdict(measured))
        self.last = event.record()
        self.logger.log(event)
        return value, better
