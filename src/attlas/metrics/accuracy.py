"""How many tokens, and how many whole sequences, are right."""

from collections.abc import Sequence

from attlas.errors import AttlasError


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
        raise AttlasError(
            "one predicted sequence for each wanted one",
            f"{len(predicted):,} predicted and {len(wanted):,} wanted",
            "predict the sources of these very targets",
        )
    if not wanted:
        raise AttlasError("at least one sequence to compare", "none", "check the data")
