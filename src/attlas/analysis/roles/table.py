"""The table of roles: layers × heads × roles, of one text or of a corpus."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attlas.errors import AttlasError

# A role: what a head does as a rule, and how far it does it.


HALF = 0.5
"""Where no paper gives one: half of the gaze, of the queries, or of a full correlation."""

THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {
        "previous": 0.5,  # Clark et al., 2019, section 3.1: more than half of the attention
        "next": 0.5,  # the same
        "self": 0.5,  # measured beside them there
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
"""The names of all roles; what they mean is described at `attlas.analysis.roles.roles`."""


@dataclass(frozen=True, slots=True)
class Role:
    """How far one head has one role.

    Args:
        score: From 0 to 1, for diagonals from −1; NaN if the role was not requested, or if no query
            can show it.
        chance: The score of uniform weights over all visible keys.
        queries: How many the score is a mean of.
        offset: For `positional`: the commonest offset of the greatest weight from the query; −1 =
            one key back.
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

        The second condition, a score corrected for chance (Cohen, 1960), matters only for short
        texts, where uniform weights come near the threshold. Otherwise the papers' thresholds hold.
        """
        if not self.score >= self.threshold:  # NaN is neither
            return False
        return self.score - self.chance >= self.threshold / 2 * (1 - self.chance) > 0


_POSITIONAL = ROLES.index("positional")


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of the heads of one layer; tallies can be added.

    Args:
        sums: Over queries, of the score, of its chance, and of 1.
        offsets: How many queries had their greatest weight at each offset from their own place, the
            first of them at `low`.
    """

    sums: Float[Tensor, "3 heads roles"]
    offsets: Int[Tensor, "heads span"]
    low: int

    def __add__(self, other: "Tally") -> "Tally":
        if self.sums.shape != other.sums.shape:
            raise AttlasError(
                f"a layer of {self.sums.shape[1]} heads in both tables",
                f"{other.sums.shape[1]} heads in the other",
                "add tables of one model",
            )
        low = min(self.low, other.low)
        high = max(part.low + part.offsets.shape[1] for part in (self, other))
        offsets = self.offsets.new_zeros((self.offsets.shape[0], high - low))
        for part in (self, other):
            start = part.low - low
            offsets[:, start : start + part.offsets.shape[1]] += part.offsets
        return Tally(self.sums + other.sums, offsets, low)

    @property
    def scores(self) -> Float[Tensor, "heads roles"]:
        """The mean score of each head in each role, NaN where there is none."""
        totals, counts = self.sums[0].clone(), self.sums[2].clone()
        if self.offsets.shape[1]:
            totals[:, _POSITIONAL] = self.offsets.amax(-1).to(totals.dtype)
        is_trivial = counts[:, _POSITIONAL] < 2  # a single query has all it has at one offset
        counts[is_trivial, _POSITIONAL] = totals[is_trivial, _POSITIONAL] = 0
        return totals / counts

    @property
    def chances(self) -> Float[Tensor, "heads roles"]:
        """The mean chance of each, NaN where there is none."""
        return self.sums[1] / self.sums[2]


@dataclass(frozen=True, slots=True)
class RoleTable:
    """Scores of every head in every role; `first + second` is the table of both texts.

    So the table of a corpus is a sum over its texts. Every query weighs the same, whatever the
    length of its text.
    """

    tallies: Mapping[str, Tally]

    def __add__(self, other: "RoleTable") -> "RoleTable":
        joined = dict(self.tallies)
        for layer, tally in other.tallies.items():
            joined[layer] = joined[layer] + tally if layer in joined else tally
        return RoleTable(joined)

    @property
    def layers(self) -> tuple[str, ...]:
        """The paths of the layers, in the order of the trace."""
        return tuple(self.tallies)

    def heads(self, layer: str) -> int:
        """How many heads a layer has."""
        return self._of(layer).sums.shape[1]

    def scores(self, layer: str) -> Float[Tensor, "heads roles"]:
        """The scores of a layer, roles in the order of `ROLES`."""
        return self._of(layer).scores

    def role(self, layer: str, head: int, name: str) -> Role:
        """One role of one head.

        Raises:
            AttlasError: For a layer, head or role that does not exist.
        """
        if name not in ROLES:
            raise AttlasError(f"a role among {list(ROLES)}", repr(name), "choose one of them")
        return self.of_head(layer, head)[ROLES.index(name)]

    def of_head(self, layer: str, head: int) -> tuple[Role, ...]:
        """Every role of one head, in the order of `ROLES`.

        Raises:
            AttlasError: As `role`.
        """
        tally = self._of(layer)
        if not 0 <= head < self.heads(layer):
            raise AttlasError(
                f"a head from 0 to {self.heads(layer) - 1}", str(head), "count heads from 0"
            )
        scores, chances = tally.scores[head].tolist(), tally.chances[head].tolist()
        counts = [int(count) for count in tally.sums[2, head].tolist()]
        offset = tally.low + int(tally.offsets[head].argmax()) if tally.offsets.shape[1] else None
        return tuple(
            Role(
                name=name, score=score, chance=chance, threshold=THRESHOLDS[name], queries=count,
                offset=offset if name == "positional" and count else None,
            )
            for name, score, chance, count in zip(ROLES, scores, chances, counts, strict=True)
        )  # fmt: skip

    def best(self, name: str) -> tuple[str, int, Role]:
        """The head with the highest score in a role: its layer, its number, and the role.

        Raises:
            AttlasError: If no text could show it.
        """
        scores = [
            (layer, head, self.role(layer, head, name))
            for layer in self.layers
            for head in range(self.heads(layer))
        ]
        scores = [item for item in scores if not math.isnan(item[2].score)]
        if not scores:
            raise AttlasError(
                f"a text in which a head could show the role {name!r}",
                "none",
                "give what the role needs: `roles` says it",
            )
        return max(scores, key=lambda head: head[2].score)

    def __str__(self) -> str:
        """The roles above their thresholds, a line for each head that has one."""
        lines = []
        for layer in self.layers:
            for head in range(self.heads(layer)):
                held_roles = [role for role in self.of_head(layer, head) if role.held]
                roles_text = ", ".join(f"{role.name} {role.score:.2f}" for role in held_roles)
                lines += [f"{layer} head {head}: {roles_text}"] if held_roles else []
        return "\n".join(lines) or "no head has a role"

    def _of(self, layer: str) -> Tally:
        try:
            return self.tallies[layer]
        except KeyError:
            raise AttlasError(
                f"one of the layers {list(self.layers)}", repr(layer), "name one of the table"
            ) from None


def zero_tally(heads: int) -> Tally:
    """Nothing counted yet."""
    sums = torch.zeros((3, heads, len(ROLES)), dtype=torch.float64)
    return Tally(sums, torch.zeros((heads, 0), dtype=torch.long), 0)
