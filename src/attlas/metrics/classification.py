"""What was taken for what, and how well each label is found."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

from attlas.errors import AttlasError, DataError

# How many tokens, and how many whole sequences, are right.


def token_accuracy(
    predicted: Sequence[Sequence[int]],
    wanted: Sequence[Sequence[int]],
    *,
    unknown: int | None = None,
) -> float:
    """Σ_n |{t : predicted_n,t = wanted_n,t}| / Σ_n max(|predicted_n|, |wanted_n|), in 0 … 1.

    Position by position: a missing token and a token too many are both wrong. unknown: the id that
    stands for all words without one; it is never right, because two such words need not be equal.
    Errors: `AttlasError` for unequal counts, or for nothing to compare.
    """
    _checked(predicted, wanted)
    right = total = 0
    for ours, theirs in zip(predicted, wanted, strict=True):
        right += sum(a == b != unknown for a, b in zip(ours, theirs, strict=False))
        total += max(len(ours), len(theirs))
    return right / total if total else 1.0


def sequence_accuracy(
    predicted: Sequence[Sequence[int]],
    wanted: Sequence[Sequence[int]],
    *,
    unknown: int | None = None,
) -> float:
    """|{n : predicted_n = wanted_n}| / N, in 0 … 1.

    A sequence that holds `unknown` is never right, see `token_accuracy`.
    Errors: `AttlasError` for unequal counts, or for nothing to compare.
    """
    _checked(predicted, wanted)
    pairs = zip(predicted, wanted, strict=True)
    right = sum(list(a) == list(b) and unknown not in a for a, b in pairs)
    return right / len(wanted)


def _checked(predicted: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]) -> None:
    if len(predicted) != len(wanted):
        raise DataError(
            "one predicted sequence for each wanted one",
            f"{len(predicted):,} predicted and {len(wanted):,} wanted",
            "predict the sources of these very targets",
        )
    if not wanted:
        raise DataError("at least one sequence to compare", "none", "check the data")


def confusion(
    wanted: Sequence[str], given: Sequence[str], labels: Sequence[str]
) -> dict[str, dict[str, int]]:
    """found[w][g] = |{n : wanted_n = w, given_n = g}| for all labels.

    Errors: `AttlasError` for unequal counts.
    """
    _check_alike(wanted, given)
    counts = Counter(zip(wanted, given, strict=True))
    return {own: {other: counts[own, other] for other in labels} for own in labels}


@dataclass(frozen=True, slots=True)
class LabelScore:
    """Of one label: wanted and given are how often; right, how often both at once.

    precision = right / given, recall = right / wanted, f1 = 2 right / (given + wanted); each is 0
    where that would be 0 / 0, as with zero_division=0 of scikit-learn.
    """

    wanted: int
    given: int
    right: int

    @property
    def precision(self) -> float:
        """The part of what is given this label that has it."""
        return self.right / self.given if self.given else 0.0

    @property
    def recall(self) -> float:
        """The part of what has this label that is given it."""
        return self.right / self.wanted if self.wanted else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.given + self.wanted
        return 2 * self.right / both if both else 0.0


def label_scores(
    wanted: Sequence[str], given: Sequence[str], labels: Sequence[str]
) -> dict[str, LabelScore]:
    """How well each of these labels is found.

    Errors: `AttlasError` for unequal counts.
    """
    _check_alike(wanted, given)
    asked, answered = Counter(wanted), Counter(given)
    right = Counter(own for own, other in zip(wanted, given, strict=True) if own == other)
    return {one: LabelScore(asked[one], answered[one], right[one]) for one in labels}


def macro_f1(scores: Mapping[str, LabelScore]) -> float:
    """The mean F1 of the labels that are wanted or given at least once; 0 where none is.

    Each label counts alike, however rare it is.
    """
    met = [score.f1 for score in scores.values() if score.wanted or score.given]
    return sum(met) / len(met) if met else 0.0


def macro_f1_signature(scores: Mapping[str, LabelScore]) -> str:
    """What a macro-F1 depends on beside the labels, as sacrebleu signs its scores."""
    met = sum(bool(score.wanted or score.given) for score in scores.values())
    return f"average:macro|labels:{met}|of:{len(scores)}|zero_division:0"


def _check_alike(wanted: Sequence[str], given: Sequence[str]) -> None:
    if len(wanted) != len(given):
        raise DataError(
            "one given label for each wanted one",
            f"{len(given):,} given and {len(wanted):,} wanted",
            "classify these very texts",
        )


# How sure a share is that was measured on a few.


def wilson_interval(right: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """(p + z²/2n ± z √(p (1 − p) / n + z²/4n²)) / (1 + z²/n), p = right / n, n = total.

    Where the share of a whole population lies, of which n were drawn; in 0 … 1. Wilson, 1927.
    Errors: `AttlasError` for numbers that are no such counts, or a confidence outside of (0, 1).
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
    reach = sqrt(part * (share * (1.0 - share) + part / 4.0))
    low, high = (middle - reach) / (1.0 + part), (middle + reach) / (1.0 + part)
    return (0.0 if right == 0 else low), (1.0 if right == total else high)
