"""How sure a share is that was measured on a few."""

from math import sqrt
from statistics import NormalDist

from attlas.errors import AttlasError


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
