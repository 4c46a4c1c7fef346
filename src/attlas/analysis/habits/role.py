"""A role: what a head does as a rule, and how far it does it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

HALF = 0.5
"""Where no paper gives one: half of the gaze, of the queries, or of a full correlation."""

THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {
        "previous": 0.5,  # Clark et al., 2019, section 3.1: more than half of the attention
        "next": 0.5,  # the same
        "itself": 0.5,  # measured beside them there
        "first": 0.3,  # Gu et al., 2025: ε of the sink metric
        "separator": 0.5,  # Clark et al., 2019, section 3.2: more than half of the attention
        "local": HALF,
        "positional": 0.9,  # Voita et al., 2019, section 5.1: of the greatest weights
        "rare": HALF,  # Voita et al., 2019, section 5.3 found 66 % and 50 %
        "induction": HALF,
        "diagonal": HALF,
        "antidiagonal": HALF,
    }
)
"""From which score on a head has a role."""

ROLES = tuple(THRESHOLDS)
"""The names of all roles; what they mean is told at `attlas.analysis.habits.roles.roles`."""


@dataclass(frozen=True, slots=True)
class Role:
    """How far one head has one role.

    score: from 0 to 1, of the diagonals from −1; NaN where the role was not asked for, or where no
    query could have shown it. chance: what the score would be if every query looked evenly at all
    that it sees. queries: how many the score is a mean of. offset: of `positional`, where most of
    the greatest weights are, counted from the query: −1 = one slot back.
    """

    name: str
    score: float
    chance: float
    threshold: float
    queries: int
    offset: int | None = None

    @property
    def held(self) -> bool:
        """score ≥ threshold, and (score − chance) / (1 − chance) ≥ threshold / 2.

        The second, a score with chance taken out (Cohen, 1960), matters for short texts alone,
        where an even gaze comes near the threshold; else the papers' thresholds hold as they are.
        """
        if not self.score >= self.threshold:  # NaN is neither
            return False
        return self.score - self.chance >= self.threshold / 2 * (1 - self.chance) > 0
