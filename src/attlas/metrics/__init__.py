"""Metrics: BLEU, chrF and TER, token and sequence accuracy."""

from attlas.metrics.accuracy import sequence_accuracy, token_accuracy
from attlas.metrics.scores import Score, Scores, corpus_score

__all__ = [
    "Score",
    "Scores",
    "corpus_score",
    "sequence_accuracy",
    "token_accuracy",
]
