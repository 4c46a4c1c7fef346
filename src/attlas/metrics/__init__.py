"""Metrics: BLEU, chrF, TER; accuracy; confusion, intervals of a share; alignment error rate."""

from attlas.metrics.accuracy import sequence_accuracy, token_accuracy
from attlas.metrics.alignment_error import AlignmentScore, alignment_error
from attlas.metrics.bleu_tokenizer import BleuTokenizer, better_tokenizers, check_tokenizer
from attlas.metrics.confusion import (
    LabelScore,
    confusion,
    label_scores,
    macro_f1,
    macro_f1_signature,
)
from attlas.metrics.interval import wilson_interval
from attlas.metrics.scores import References, Score, Scores, corpus_bleu, corpus_score

__all__ = [
    "AlignmentScore",
    "BleuTokenizer",
    "LabelScore",
    "References",
    "Score",
    "Scores",
    "alignment_error",
    "better_tokenizers",
    "check_tokenizer",
    "confusion",
    "corpus_bleu",
    "corpus_score",
    "label_scores",
    "macro_f1",
    "macro_f1_signature",
    "sequence_accuracy",
    "token_accuracy",
    "wilson_interval",
]
