"""What was taken for what, and how well each label is found."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attlas.errors import AttlasError


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
        raise AttlasError(
            "one given label for each wanted one",
            f"{len(given):,} given and {len(wanted):,} wanted",
            "classify these very texts",
        )
