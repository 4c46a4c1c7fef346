"""What was taken for what."""

from collections import Counter
from collections.abc import Sequence

from attlas.errors import AttlasError


def confusion(
    wanted: Sequence[str], given: Sequence[str], labels: Sequence[str]
) -> dict[str, dict[str, int]]:
    """found[w][g] = |{n : wanted_n = w, given_n = g}| for all labels.

    Errors: `AttlasError` for unequal counts.
    """
    if len(wanted) != len(given):
        raise AttlasError(
            "one given label for each wanted one",
            f"{len(given):,} given and {len(wanted):,} wanted",
            "classify these very texts",
        )
    counts = Counter(zip(wanted, given, strict=True))
    return {own: {other: counts[own, other] for other in labels} for own in labels}
