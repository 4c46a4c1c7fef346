"""A call of `torch.nn.attention.flex_attention`: its reading, and its explicit twin."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch._higher_order_ops.flex_attention import flex_attention
from torch.nn.attention import flex_attention as flex

from attlas.errors import AttlasError
from attlas.recording.dense_reading import DenseReading
from attlas.recording.foreign.fused import as_multiplied, factored, laid_out_as
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
    blocks: tuple[Any, ...]
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

        return cls(query, key, value, modify, blocks, scale, run)

    def reading(self, module: nn.Module, sight: Callable[..., Sight] = sight_of) -> Reading:
        """The weights: queries and keys where scores are as they come, else the weights themselves.

        These are read by values of which each is 1 in a slot of its own.
        Errors: `AttlasError` for a mask whose blocks say something else than its rule.
        """
        shown = self._shown()
        self._check_blocks(shown)
        if self.modify is flex._identity:
            return factored(self.query, self.key, self.scale, shown, module, sight)
        batch, heads, slots, _ = self.key.shape
        single = torch.eye(slots, dtype=self.value.dtype, device=self.value.device)
        with torch.no_grad():
            weights = self.run(self.query, self.key, single.expand(batch, heads, -1, -1))[0]
        unhidden = self._unhidden() | (weights > 0)  # which round their scores in their own way
        seen = unhidden if shown is None else shown & unhidden
        return DenseReading(weights, None if bool(seen.all()) else seen, None)

    def changed(
        self, reading: Reading, change: Callable[[Tensor, Tensor], Tensor]
    ) -> Float[Tensor, "batch heads queries value_width"]:
        """What comes of it with other weights: `change(weights, seen) → weights`."""
        queries = reading.shape[2]
        weights = reading.rows(0, queries).to(self.query.dtype)
        weights = change(weights, reading.seen(0, queries)).to(as_multiplied(self.query).dtype)
        shared = weights.shape[1] // self.value.shape[1]
        context = weights @ as_multiplied(self.value).repeat_interleave(shared, 1)
        return laid_out_as(self.query, context)

    def _shown(self) -> Bool[Tensor, "#batch #heads queries slots"] | None:
        """The pairs that the rule shows; None where it shows all."""
        rule = self.blocks[-1]
        return None if rule is flex.noop_mask else self._pairs_of(rule)

    def _pairs_of(self, rule: Callable[..., Tensor]) -> Bool[Tensor, "batch heads queries slots"]:
        """The pairs that a rule shows."""
        (batch, heads, queries, _), slots = self.query.shape, self.key.shape[2]
        sizes = (batch, heads, queries, slots)
        return flex.create_mask(rule, *sizes, device=self.query.device).expand(sizes)

    def _unhidden(self) -> Bool[Tensor, "batch heads queries slots"]:
        """The pairs whose score is not made −∞, which may depend on the score."""
        # torch's compiler, which comes with it, is at work already.
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

        heads = self.query.shape[1]
        precise = torch.promote_types(self.query.dtype, torch.float32)
        with torch.no_grad():
            keys = self.key.to(precise).repeat_interleave(heads // self.key.shape[1], 1)
            scores = self.query.to(precise) @ keys.mT * self.scale
            places = (torch.arange(size, device=scores.device) for size in scores.shape)
            with TransformGetItemToIndex():  # so that it may look up numbers in tables
                modified = flex._vmap_for_bhqkv(self.modify, prefix=(0,))(scores, *places)
        return modified > -torch.inf

    def _check_blocks(self, shown: Bool[Tensor, "batch heads queries slots"] | None) -> None:
        """Compiled, the function skips what the blocks leave out, and asks no rule within whole
        ones; as it is written it asks the rule alone."""
        _, _, counts, indices, whole_counts, whole_indices, *_, height, width, _ = self.blocks
        queries, slots = self.query.shape[2], self.key.shape[2]
        if min(height, width) >= max(queries, slots):
            return  # one block
        within = [_blocks(counts, indices, height, width)[..., :queries, :slots]]
        if whole_counts is not None:
            within.append(
                _blocks(whole_counts, whole_indices, height, width)[..., :queries, :slots]
            )
        skipped = ~(within[0] | within[-1])
        hidden = skipped.new_zeros(()) if shown is None else ~shown
        if bool((skipped & ~hidden).any()) or (
            len(within) > 1 and bool((within[1] & hidden).any())
        ):
            raise AttlasError(
                "a BlockMask whose mask_mod says what its blocks say",
                "blocks that hide what the mask_mod shows, or show what it hides",
                "make it with create_block_mask, or give BlockMask.from_kv_blocks a mask_mod: "
                "observed, flex_attention runs as it is written, which asks the mask_mod alone",
            )


def _blocks(
    counts: Int[Tensor, "batch heads rows"],
    indices: Int[Tensor, "batch heads rows columns"],
    height: int,
    width: int,
) -> Bool[Tensor, "batch heads queries slots"]:
    """The pairs in the blocks of each row, of which there are so many, in these columns."""
    listed = torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]
    shown = torch.zeros_like(listed).scatter_reduce_(-1, indices.long(), listed, "amax")
    return shown.repeat_interleave(height, -2).repeat_interleave(width, -1)


def flexible(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The operator, wherever it was called."""
    call = FlexCall.of(func, args, kwargs)
    why = unreadable(call.query, call.key, call.value)
    if why is not None:
        hearing.miss(why)
    concerned = hearing.concerned() if why is None else ()
    if not concerned:
        return func(*args, **kwargs)
    reading = call.reading(concerned[0][1].module, hearing.sights)
    hearing.tell(concerned, reading, (id(call.query), id(call.key), id(call.value)))
    result = func(*args, **kwargs)
    change = hearing.change(concerned)
    return result if change is None else (call.changed(reading, change), *result[1:])
