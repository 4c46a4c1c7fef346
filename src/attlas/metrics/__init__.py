"""Metrics: BLEU, chrF, TER; accuracy; confusion, intervals of a share; alignment error rate."""

from attlas.metrics.alignment import AlignmentScore, alignment_error
from attlas.metrics.classification import (
    LabelScore,
    confusion,
    label_scores,
    macro_f1,
    macro_f1_signature,
    sequence_accuracy,
    token_accuracy,
    wilson_interval,
)
from attlas.metrics.translation import (
    BleuTokenizer,
    References,
    Score,
    Scores,
    better_tokenizers,
    check_tokenizer,
    corpus_bleu,
    corpus_score,
)

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
