"""A reading that holds what the weights are made of."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.patterns import Pattern
from attlas.recording.reading import Reading

_AT_ONCE = 1 << 22  # pairs that are looked at together
_FAR = 1e8  # beyond any bias that is meant to weigh


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class FactoredReading(Reading):
    """softmax(cap(scale · q kᵀ) + bias) over the slots that are real and in the pattern.

    Never held whole: memory O((queries + slots) × width), and any block of weights is computed on
    demand, in float32 or better also where the model computed in half precision. Heads that share
    keys (grouped-query attention) are heads // key_heads to a key head, in order.

    bias: what is added to the scores (float; Shaw et al., 2018; T5; ALiBi), or which slots may be
    looked at where no pattern says it (bool; True = may). softcap: cap(s) = c · tanh(s / c), Gemma
    2, 2024; None = no cap. A query that sees nothing has zeros for weights; where a bias hides all
    slots by a finite number, such as float32's least, it looks at all of them, as the model does.
    """

    query: Float[Tensor, "batch heads queries width"]
    keys: Float[Tensor, "batch key_heads slots width"]
    scale: float
    pattern: Pattern
    first: int
    real: Bool[Tensor, "batch slots"] | None = None
    bias: Shaped[Tensor, "#batch #heads #queries #slots"] | None = None
    softcap: float | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads, queries, _ = self.query.shape
        return batch, heads, queries, self.keys.shape[2]

    @property
    def position(self) -> int:
        return self.first

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
        """What is seen, but for rows that a bias hides whole by a finite number: they look at all
        slots alike, as rows of padding do."""
        allowed = self._allowed(start, stop)
        bias = self._bias_of(start, stop)
        if bias is None or bias.dtype == torch.bool or not allowed.shape[-1]:
            return allowed
        # What models hide with where they do not take −∞: half of the least number and less, or
        # what is far below the rest of its row.
        shown = allowed & (bias > torch.finfo(bias.dtype).min / 2)
        return shown & (bias > bias.masked_fill(~shown, -torch.inf).amax(-1, keepdim=True) - _FAR)

    @property
    def causal(self) -> bool:
        _, _, queries, slots = self.shape
        behind = self.first + queries == slots and self.pattern.bound.ahead == 0
        if behind and not self.pattern.bound.marks:
            return True
        step = max(1, _AT_ONCE // max(1, slots))
        for start in range(0, queries, step):
            stop = min(start + step, queries)
            later = self.shown(start, stop).triu(slots - queries + start + 1)
            if bool(later.any()):
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
        allowed = self.pattern.mask(queries, slots, self.first + start, self.query.device)
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
