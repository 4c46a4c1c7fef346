"""Accuracy, confusion, F1, and intervals of a share."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

from attlas.errors import AttlasError, DataError, quoted

# How many tokens, and how many whole sequences, are right.


def token_accuracy(
    predicted: Sequence[Sequence[int]],
    expected: Sequence[Sequence[int]],
    *,
    unknown: int | None = None,
) -> float:
    """Σ_n |{t : predicted_n,t = expected_n,t}| / Σ_n max(|predicted_n|, |expected_n|), in 0 … 1.

    Position by position: a missing token and a token too many are both wrong.

    Args:
        unknown: The id that stands for all words without one; it is never right, because two such
            words need not be equal.

    Raises:
        AttlasError: For unequal counts, or for nothing to compare.
    """
    _checked(predicted, expected)
    right = total = 0
    for hypothesis, reference in zip(predicted, expected, strict=True):
        right += sum(a == b != unknown for a, b in zip(hypothesis, reference, strict=False))
        total += max(len(hypothesis), len(reference))
    return right / total if total else 1.0


def sequence_accuracy(
    predicted: Sequence[Sequence[int]],
    expected: Sequence[Sequence[int]],
    *,
    unknown: int | None = None,
) -> float:
    """|{n : predicted_n = expected_n}| / N, in 0 … 1.

    A sequence that holds `unknown` is never right, see `token_accuracy`.

    Raises:
        AttlasError: For unequal counts, or for nothing to compare.
    """
    _checked(predicted, expected)
    pairs = zip(predicted, expected, strict=True)
    right = sum(list(a) == list(b) and unknown not in a for a, b in pairs)
    return right / len(expected)


def _checked(predicted: Sequence[Sequence[int]], expected: Sequence[Sequence[int]]) -> None:
    if len(predicted) != len(expected):
        raise DataError(
            "one predicted sequence for each expected one",
            f"{len(predicted):,} predicted and {len(expected):,} expected",
            "predict the sources of these very targets",
        )
    if not expected:
        raise DataError("at least one sequence to compare", "none", "check the data")


def confusion(
    expected: Sequence[str], predicted: Sequence[str], labels: Sequence[str]
) -> dict[str, dict[str, int]]:
    """found[w][g] = |{n : expected_n = w, predicted_n = g}| for all labels.

    Raises:
        AttlasError: For unequal counts.
    """
    _check_alike(expected, predicted)
    counts = Counter(zip(expected, predicted, strict=True))
    return {label: {other: counts[label, other] for other in labels} for label in labels}


@dataclass(frozen=True, slots=True)
class LabelScore:
    """Of one label: expected and predicted count the texts; right counts where both agree.

    precision = right / predicted, recall = right / expected, f1 = 2 right / (predicted + expected);
    each is 0 where that would be 0 / 0, as with zero_division=0 of scikit-learn.
    """

    expected: int
    predicted: int
    right: int

    @property
    def precision(self) -> float:
        """The share of the texts with this predicted label that have it."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of the texts with this label that are predicted to have it."""
        return self.right / self.expected if self.expected else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        total = self.predicted + self.expected
        return 2 * self.right / total if total else 0.0


def label_scores(
    expected: Sequence[str], predicted: Sequence[str], labels: Sequence[str]
) -> dict[str, LabelScore]:
    """How well each of these labels is found.

    Raises:
        AttlasError: For unequal counts.
    """
    _check_alike(expected, predicted)
    expected_counts, predicted_counts = Counter(expected), Counter(predicted)
    right = Counter(
        reference
        for reference, hypothesis in zip(expected, predicted, strict=True)
        if reference == hypothesis
    )
    return {
        label: LabelScore(expected_counts[label], predicted_counts[label], right[label])
        for label in labels
    }


def macro_f1(scores: Mapping[str, LabelScore]) -> float:
    """The mean F1 of the labels that are expected or predicted at least once; 0 where none is.

    Each label counts alike, however rare it is.
    """
    f1_scores = [score.f1 for score in scores.values() if score.expected or score.predicted]
    return sum(f1_scores) / len(f1_scores) if f1_scores else 0.0


def macro_f1_signature(scores: Mapping[str, LabelScore]) -> str:
    """What a macro-F1 depends on beside the labels, as sacrebleu signs its scores."""
    num_labels = sum(bool(score.expected or score.predicted) for score in scores.values())
    return f"average:macro|labels:{num_labels}|of:{len(scores)}|zero_division:0"


def _check_alike(expected: Sequence[str], predicted: Sequence[str]) -> None:
    for labels in (expected, predicted):
        if isinstance(labels, str):  # whose letters would be taken for labels
            raise DataError("lists of labels", quoted(labels), "write [label] for label")
    if len(expected) != len(predicted):
        raise DataError(
            "one predicted label for each expected one",
            f"{len(predicted):,} predicted and {len(expected):,} expected",
            "classify these very texts",
        )


# The confidence interval of a share.


def wilson_interval(right: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """(p + z²/2n ± z √(p (1 − p) / n + z²/4n²)) / (1 + z²/n), p = right / n, n = total.

    Where the share of a whole population lies, of which n were drawn; in 0 … 1. Wilson, 1927.

    Raises:
        AttlasError: For numbers that are no such counts, or a confidence outside of (0, 1).
    """
    if not 0 <= right <= total or not total:
        raise AttlasError(
            "0 ≤ right ≤ total, of one at least", f"{right} of {total}", "count them again"
        )
    if not 0.0 < confidence < 1.0:
        raise AttlasError("a confidence between 0 and 1", str(confidence), "use for example 0.95")
    share, z = right / total, NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    part = z * z / total
    middle = share + part / 2.0
    # At 0 and at n one end is just that, but for the rounding.
    half_width = sqrt(part * (share * (1.0 - share) + part / 4.0))
    low, high = (middle - half_width) / (1.0 + part), (middle + half_width) / (1.0 + part)
    return (0.0 if right == 0 else low), (1.0 if right == total else high)
