"""Whether contenders write the same lines.

This file needs nothing but Python, so that every peer's environment can read it.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

OURS = "attlas"  # whose lines the others' are compared with


def complete(lines: Sequence[str], translations: Sequence[str]) -> None:
    """In a contender: leave, with the reason, where not every line has a translation."""
    if len(translations) != len(lines):
        raise SystemExit(
            f"expected a translation of each of {len(lines)} lines; got {len(translations)}"
        )


def agreeing(lines: Mapping[str, Sequence[str]], ours: str) -> dict[str, dict[str, float]]:
    """The share of lines that each contender writes as ours does, printed as well.

    {"agreeing": {contender: 0 … 1}}; nothing where ours wrote none, so that nobody is compared with
    another. Errors: `ValueError` where somebody wrote more lines than ours, or fewer.
    """
    if ours not in lines:
        return {}
    shares = {
        name: fmean(one == other for one, other in zip(lines[ours], its, strict=True))
        for name, its in lines.items()
    }
    for name, share in shares.items():
        print(f"{name}: {share:.1%} of the lines are those of {ours}")
    return {"agreeing": shares}
