"""A reading that holds what the weights are made of."""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.patterns import Pattern
from attlas.recording.reading import Reading

NOTHING = 800.0
"""Of a slot whose score is so much below another nothing is left: e⁻⁸⁰⁰ is 0 in every precision."""

_ROUNDED = 1.01  # as much as half precision may add to a score
_AT_ONCE = 1 << 22  # pairs that are looked at together
_FAR = 9e3  # beyond any bias that is meant to weigh


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class FactoredReading(Reading):
    """softmax(cap(scale · q kᵀ) + bias) over the slots that are real and in the pattern.

    Never held whole: memory O((queries + slots) × width), and any block of weights is computed on
    demand, in float32 or better also where the model computed in half precision. Heads that share
    keys (grouped-query attention) are heads // key_heads to a key head, in order.

    first: where the first query stands, counted as slots are; None = nobody knows, which a pattern
    that looks everywhere allows. bias: what is added to the scores (float; Shaw et al., 2018; T5;
    ALiBi), or which slots may be looked at where no pattern says it (bool; True = may). softcap:
    cap(s) = c · tanh(s / c), Gemma 2, 2024; None = no cap. A query that sees nothing has zeros for
    weights; where a bias hides all slots by a finite number, such as float32's least, it looks at
    all of them, as the model does.
    """

    query: Float[Tensor, "batch heads queries width"]
    keys: Float[Tensor, "batch key_heads slots width"]
    scale: float
    pattern: Pattern
    first: int | None
    real: Bool[Tensor, "batch slots"] | None = None
    bias: Shaped[Tensor, "#batch #heads #queries #slots"] | None = None
    softcap: float | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads, queries, _ = self.query.shape
        return batch, heads, queries, self.keys.shape[2]

    @property
    def position(self) -> int | None:
        return self.first

    @property
    def counted_from(self) -> int:
        """Where the pattern counts queries from: anywhere, if it asks nothing of their places."""
        return 0 if self.first is None else self.first

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows slots"]:
        self._checked(start, stop)
        hidden = ~self._allowed(start, stop)
        scores = self.scores(start, stop).masked_fill(hidden, -torch.inf)
        empty = (scores == -torch.inf).all(-1, keepdim=True)
        return torch.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(hidden | empty, 0.0)

    def scores(self, start: int, stop: int) -> Float[Tensor, "batch heads rows slots"]:
        """What the softmax is taken of, in float32 or better, of hidden slots too."""
        batch, heads, _, slots = self.shape
        key_heads, width = self.keys.shape[1], self.keys.shape[3]
        rows = heads // key_heads * (stop - start)
        asked = self.query[:, :, start:stop].reshape(batch, key_heads, rows, width)
        precise = torch.promote_types(asked.dtype, torch.float32)
        with torch.autocast(asked.device.type, enabled=False):
            scores = asked.to(precise) @ self.keys.to(precise).transpose(-1, -2)
        scores = scores.reshape(batch, heads, stop - start, slots) * self.scale
        if self.softcap is not None:
            scores = torch.tanh(scores / self.softcap) * self.softcap
        bias = self._bias_of(start, stop)
        return scores if bias is None or bias.dtype == torch.bool else scores + bias

    def seen(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows slots"]:
        self._checked(start, stop)
        shown = self.shown(start, stop)
        bias = self._bias_of(start, stop)
        if bias is None or bias.dtype == torch.bool:
            return shown
        drowned = ~shown.any(-1, keepdim=True) & (bias > -torch.inf)
        return shown | (self._allowed(start, stop) & drowned)

    def shown(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows slots"]:
        """What is seen, but for rows that a bias hides whole by the least number of its type: they
        look at all slots alike, as rows of padding do.

        A finite number hides a slot where it is so low that no scores make up for it.
        """
        allowed = self._allowed(start, stop)
        bias = self._bias_of(start, stop)
        if bias is None or bias.dtype == torch.bool or not allowed.shape[-1]:
            return allowed
        shown = allowed & (bias > -torch.inf)
        numbers = bias.to(torch.promote_types(bias.dtype, torch.float32))
        greatest = numbers.masked_fill(~shown, -torch.inf).amax(-1, keepdim=True)
        shown = shown & (greatest > torch.finfo(bias.dtype).min / 2)
        low = greatest - numbers > _FAR
        if not bool((shown & low).any()):
            return shown
        reach = apart(self.query, self.keys, self.scale, self.softcap) + NOTHING
        return shown & ~(low & (greatest - numbers > reach))

    @property
    def causal(self) -> bool | None:
        if self.first is None:
            return None
        bound = self.pattern.bound
        if bound.ahead == 0 and not bound.marks:
            return True
        queries, slots = self.shape[2:]
        step = max(1, _AT_ONCE // max(1, slots))
        for start in range(0, queries, step):
            stop = min(start + step, queries)
            later = self.shown(start, stop).triu(self.first + start + 1)
            if not bool(later.any()):
                continue
            # What a bias has put low, but not below the reach of all scores, may be nothing here.
            if self.bias is None or bool((self.rows(start, stop) > 0).logical_and(later).any()):
                return False
        return True

    def select(self, rows: Int[Tensor, " chosen"]) -> "FactoredReading":
        bias = self.bias
        if bias is not None and bias.shape[0] > 1:
            bias = bias[rows]
        real = None if self.real is None else self.real[rows]
        return replace(self, query=self.query[rows], keys=self.keys[rows], real=real, bias=bias)

    def of_heads(self, heads: Int[Tensor, " chosen"]) -> "FactoredReading":
        bias = self.bias
        if bias is not None and bias.shape[1] > 1:
            bias = bias[:, heads]
        keys = self.keys[:, heads // (self.shape[1] // self.keys.shape[1])]
        return replace(self, query=self.query[:, heads], keys=keys, bias=bias)

    def at(self, row: int) -> "FactoredReading":
        one = slice(row, row + 1)
        bias = self.bias
        if bias is not None and bias.shape[0] > 1:
            bias = bias[one]
        real = None if self.real is None else self.real[one]
        return replace(self, query=self.query[one], keys=self.keys[one], real=real, bias=bias)

    def kept(self) -> "FactoredReading":
        query, keys = self.query.detach().clone(), self.keys.detach().clone()
        return replace(self, query=query, keys=keys)

    def _allowed(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows slots"]:
        queries, slots = stop - start, self.shape[3]
        allowed = self.pattern.mask(queries, slots, self.counted_from + start, self.query.device)
        allowed = allowed[None, None]
        if self.real is not None:
            allowed = allowed & self.real[:, None, None, :]
        bias = self._bias_of(start, stop)
        return allowed & bias if bias is not None and bias.dtype == torch.bool else allowed

    def _bias_of(
        self, start: int, stop: int
    ) -> Shaped[Tensor, "#batch #heads #rows #slots"] | None:
        if self.bias is None or self.bias.shape[2] == 1:
            return self.bias
        return self.bias[:, :, start:stop]


def apart(
    query: Float[Tensor, "batch heads queries width"],
    keys: Float[Tensor, "batch key_heads slots width"],
    scale: float,
    softcap: float | None = None,
) -> float:
    """2 · max ‖q‖ · max ‖k‖ · |scale|, of the head where that is the most: two scores of a query
    differ by no more, however they are rounded; nor by more than 2 · softcap."""
    if not query.numel() or not keys.numel():
        return 0.0
    batch, key_heads = keys.shape[:2]
    longest = _longest(query).reshape(batch, key_heads, -1).amax(-1) * _longest(keys)
    most = float(longest.max()) * abs(scale) * _ROUNDED
    return 2 * (most if softcap is None or not most > softcap else softcap)


def may_differ_by(
    gap: float,
    query: Float[Tensor, "batch heads queries width"],
    keys: Float[Tensor, "batch key_heads slots width"],
    scale: float,
    softcap: float | None = None,
) -> bool:
    """Whether a slot whose bias is so much below another's may have a weight beside it."""
    # A looser bound first, which takes less time: ‖q‖ ≤ √width · max |qᵢ|.
    loose = gap - NOTHING
    if query.numel() and keys.numel():
        greatest = (
            float(torch.linalg.vector_norm(one.detach(), torch.inf)) for one in (query, keys)
        )
        loose -= 2 * math.prod(greatest) * query.shape[-1] * abs(scale) * _ROUNDED
    return not loose > 0 and not gap - NOTHING > apart(query, keys, scale, softcap)


def _longest(vectors: Float[Tensor, "batch heads places width"]) -> Float[Tensor, "batch heads"]:
    precise = torch.promote_types(vectors.dtype, torch.float32)
    lengths: Tensor = torch.linalg.vector_norm(vectors.detach(), dim=-1, dtype=precise)
    return lengths.amax(-1)
