"""Metrics: BLEU, chrF, TER; accuracy; confusion, intervals of a share; alignment error rate."""

from attlas.metrics.accuracy import sequence_accuracy, token_accuracy
from attlas.metrics.alignment_error import AlignmentScore, alignment_error
from attlas.metrics.bleu_tokenizer import BleuTokenizer, check_tokenizer
from attlas.metrics.confusion import confusion
from attlas.metrics.interval import wilson_interval
from attlas.metrics.scores import Score, Scores, corpus_bleu, corpus_score

__all__ = [
    "AlignmentScore",
    "BleuTokenizer",
    "Score",
    "Scores",
    "alignment_error",
    "check_tokenizer",
    "confusion",
    "corpus_bleu",
    "corpus_score",
    "sequence_accuracy",
    "token_accuracy",
    "wilson_interval",
]
