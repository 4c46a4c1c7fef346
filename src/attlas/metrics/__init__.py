"""Metrics: BLEU, chrF and TER, token and sequence accuracy."""

from attlas.metrics.accuracy import sequence_accuracy, token_accuracy
from attlas.metrics.scores import Score, Scores, corpus_score, sentence_scores

__all__ = [
    "Score",
    "Scores",
    "corpus_score",
    "sentence_scores",
    "sequence_accuracy",
    "token_accuracy",
]
