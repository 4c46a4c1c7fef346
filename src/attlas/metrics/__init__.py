"""Metrics: BLEU, chrF and TER; token and sequence accuracy; confusion, intervals of a share."""

from attlas.metrics.accuracy import sequence_accuracy, token_accuracy
from attlas.metrics.bleu_tokenizer import BleuTokenizer, check_tokenizer
from attlas.metrics.confusion import confusion
from attlas.metrics.interval import wilson_interval
from attlas.metrics.scores import Score, Scores, corpus_score

__all__ = [
    "BleuTokenizer",
    "Score",
    "Scores",
    "check_tokenizer",
    "confusion",
    "corpus_score",
    "sequence_accuracy",
    "token_accuracy",
    "wilson_interval",
]
