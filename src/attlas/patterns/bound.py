"""Where a pattern can look at all."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """Only pairs with i − back ≤ j ≤ i + ahead, or with i or j among the marks, can be seen.

    A bound, not a description: what lies outside is hidden, and the pattern itself decides inside.
    back, ahead: in slots, None = no bound on that side; the banded kernel needs both.
    """

    back: int | None = None
    ahead: int | None = None
    marks: frozenset[int] = frozenset()

    def __and__(self, other: "Bound") -> "Bound":
        """The bound of pairs that both allow."""
        # A pair outside the tighter band is outside one of the bands, and so at one of its marks.
        return Bound(
            _tighter(self.back, other.back),
            _tighter(self.ahead, other.ahead),
            self.marks | other.marks,
        )

    def __or__(self, other: "Bound") -> "Bound":
        """The bound of pairs that at least one allows."""
        return Bound(
            _looser(self.back, other.back),
            _looser(self.ahead, other.ahead),
            self.marks | other.marks,
        )


def _tighter(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


def _looser(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)
