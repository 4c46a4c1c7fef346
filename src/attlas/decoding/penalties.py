"""What a hypothesis is ranked by, beyond its probability."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError

_UNSEEN = 1e-6  # log 0 is −∞: a token never looked at costs as much as one looked at this little


@dataclass(frozen=True, slots=True)
class Penalties:
    """score = log P(Y | X) / lp(Y) + β · cp(X; Y),   Wu et al., 2016, eq. 14.

    lp(Y) = ((5 + |Y|) / 6)^α, where |Y| counts the factors of P: the tokens, and END if it came.
    cp(X; Y) = Σ_i log min(Σ_t a_ti, 1) over the real source tokens i (END included), where a_ti is
    the attention of step t; 0 when everything was looked at, negative otherwise.
    """

    length: float
    coverage: float

    def score(
        self,
        log_probability: Float[Tensor, "*rows"],
        factors: int,
        coverage: Float[Tensor, "*rows slots"] | None,
        real: Bool[Tensor, "*#rows slots"],
    ) -> Float[Tensor, "*rows"]:
        """The score of hypotheses that all have this many factors."""
        score = log_probability / self._length_penalty(factors)
        if self.coverage == 0.0:
            return score
        if coverage is None:
            raise AttlasError(
                "a model that looks at its source for a coverage penalty",
                "a model without attention",
                "set coverage_penalty = 0",
            )
        seen = coverage.to(score.dtype).clamp(_UNSEEN, 1.0).log()
        return score + self.coverage * seen.masked_fill(~real, 0.0).sum(-1)

    def bound(
        self, log_probability: Float[Tensor, "*rows"], most_factors: Int[Tensor, "*#rows"]
    ) -> Float[Tensor, "*rows"]:
        """What no continuation of such a hypothesis with at most so many factors scores above.

        log P / lp(most factors): log P only falls, lp only grows with the length, and cp ≤ 0.
        """
        most = most_factors.to(log_probability.dtype)
        return log_probability / ((5.0 + most) / 6.0) ** self.length

    def _length_penalty(self, factors: int) -> float:
        return float(((5.0 + factors) / 6.0) ** self.length)
