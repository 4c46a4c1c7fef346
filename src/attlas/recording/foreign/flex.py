"""A call of `torch.nn.attention.flex_attention`: its reading, and its explicit twin."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch._higher_order_ops.flex_attention import flex_attention
from torch.nn.attention import flex_attention as flex

from attlas.patterns import everywhere
from attlas.recording.foreign.explicit import held
from attlas.recording.foreign.fused import as_multiplied, factored
from attlas.recording.foreign.hearing import Hearing
from attlas.recording.foreign.sight import Sight, sight_of
from attlas.recording.foreign.unreadable import unreadable
from attlas.recording.reading import Reading

OPERATOR: Any = flex_attention
"""What the function calls in the end, when it runs as it is written."""


@dataclass(frozen=True, slots=True)
class FlexCall:
    """softmax(modify(scale · q kᵀ)) v over the pairs that the rule of a block mask shows.

    modify: what is made of each score, a function of the score, batch, head, query and slot. run:
    the call itself, of queries, keys and other values.
    """

    query: Float[Tensor, "batch heads queries width"]
    key: Float[Tensor, "#batch key_heads slots width"]
    value: Float[Tensor, "#batch key_heads slots value_width"]
    modify: Callable[..., Tensor]
    rule: Callable[..., Tensor]
    scale: float
    run: Callable[[Tensor, Tensor, Tensor], Sequence[Tensor]]

    @classmethod
    def of(
        cls, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> "FlexCall":
        """From what the operator is given."""
        names = ("query", "key", "value", "score_mod", "block_mask", "scale")
        query, key, value, modify, blocks, scale = (
            args[place] if place < len(args) else kwargs[name] for place, name in enumerate(names)
        )
        named = {name: one for name, one in kwargs.items() if name not in names[:3]}

        def run(*vectors: Tensor) -> Sequence[Tensor]:
            result: Sequence[Tensor] = operator(*vectors, *args[3:], **named)
            return result

        return cls(query, key, value, modify, blocks[-1], scale, run)

    def reading(self, module: nn.Module, sight: Callable[..., Sight] = sight_of) -> Reading:
        """The weights: queries and keys where scores are as they come, else the weights themselves.

        These are read by values of which each is 1 in a slot of its own.
        """
        if self.modify is flex._identity:
            shown = self._shown()
            past = None if shown is not None else Sight(everywhere, self._first())
            return factored(
                *(self.query, self.key, self.scale, shown, module),
                lambda *given: past or sight(*given),
            )
        batch, heads, slots, _ = self.key.shape
        single = torch.eye(slots, dtype=self.value.dtype, device=self.value.device)
        with torch.no_grad():
            return held(self.run(self.query, self.key, single.expand(batch, heads, -1, -1))[0])

    def changed(
        self, reading: Reading, change: Callable[[Tensor, Tensor], Tensor]
    ) -> Float[Tensor, "batch heads queries value_width"]:
        """What comes of it with other weights: `change(weights, seen) → weights`."""
        queries = reading.shape[2]
        weights = reading.rows(0, queries).to(self.query.dtype)
        weights = change(weights, reading.seen(0, queries)).to(as_multiplied(self.query).dtype)
        shared = weights.shape[1] // self.value.shape[1]
        return weights @ as_multiplied(self.value).repeat_interleave(shared, 1)

    def _first(self) -> int:
        return max(self.key.shape[2] - self.query.shape[2], 0)

    def _shown(self) -> Bool[Tensor, "#batch #heads queries slots"] | None:
        """The pairs that the rule shows; None where it shows all."""
        if self.rule is flex.noop_mask:
            return None
        (batch, heads, queries, _), slots = self.query.shape, self.key.shape[2]
        sizes = (batch, heads, queries, slots)
        return flex.create_mask(self.rule, *sizes, device=self.query.device).expand(sizes)


def flexible(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The operator, wherever it was called but in a kernel that transformers calls by name."""
    if hearing.in_kernel:
        return func(*args, **kwargs)  # which is told of with what transformers gave it
    call = FlexCall.of(func, args, kwargs)
    why = unreadable(call.query, call.key, call.value)
    if why is not None:
        hearing.miss(why)
    concerned = hearing.concerned() if why is None else ()
    if not concerned:
        return func(*args, **kwargs)
    reading = call.reading(concerned[0][1].module, hearing.sights)
    hearing.tell(concerned, reading)
    result = func(*args, **kwargs)
    change = hearing.change(concerned)
    return result if change is None else (call.changed(reading, change), *result[1:])
