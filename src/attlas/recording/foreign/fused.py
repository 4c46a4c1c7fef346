"""A call of `F.scaled_dot_product_attention`: its reading, and its explicit twin."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from attlas.recording.factored_reading import FactoredReading, may_differ_by
from attlas.recording.foreign.folds import Folds
from attlas.recording.foreign.heads import (
    heads_of,
    mask_with_heads,
    shared_keys,
    with_heads,
)
from attlas.recording.foreign.sight import Sight, looking_back, sight_of
from attlas.recording.place import Place

_AXES = 4  # of what has heads

Change = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class FusedCall:
    """softmax(scale · q kᵀ + mask) v, with the arguments of PyTorch's function.

    is_causal counts queries from the first slot, whatever the number of slots; beside a mask, which
    some kernels allow, it hides what is left.
    """

    query: Float[Tensor, "... queries width"]
    key: Float[Tensor, "... slots width"]
    value: Float[Tensor, "... slots value_width"]
    attn_mask: Shaped[Tensor, "... #queries #slots"] | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False

    def reading(
        self,
        place: Place,
        folds: Folds,
        sight: Callable[..., Sight] = sight_of,
        repeats: int = 1,
    ) -> FactoredReading:
        """The weights before dropout, of these very tensors; the call was made at `place`."""
        query, keys = self._aligned()
        fold = heads_of(query, place, folds)
        mask = self.attn_mask
        first = 0 if self.is_causal else _first_of(mask)
        if first is not None:
            sight = looking_back(sight, first)
            mask = mask if self.is_causal else None
        mask = None if mask is None else mask_with_heads(mask, query, fold)
        scale = float(self.query.shape[-1] ** -0.5) if self.scale is None else float(self.scale)
        query, keys = with_heads(query, fold), with_heads(keys, fold)
        return factored(query, keys, scale, mask, place.module, sight, repeats=repeats)

    def changed(
        self, place: Place, folds: Folds, change: Change
    ) -> Float[Tensor, "... queries value_width"]:
        """The same call with other weights: `change(weights, seen) → weights`, before dropout."""
        reading = self.reading(place, folds)
        queries, slots = reading.shape[2:]
        weights = reading.rows(0, queries).to(self.query.dtype)
        weights = change(weights, reading.seen(0, queries)).to(self.query.dtype)
        query, _ = self._aligned()
        rows = self.query.shape[:-2]
        value = self.value
        if self.enable_gqa:
            value = value[(None,) * max(0, 4 - value.ndim)]
        else:
            rows = torch.broadcast_shapes(rows, self.key.shape[:-2], value.shape[:-2])  # type: ignore[no-untyped-call]
            if query.ndim != 4 or value.ndim != 4:
                value = value.expand(*query.shape[:-2], *value.shape[-2:])
        fold = heads_of(query, place, folds)
        values = with_heads(value, fold)[:, :, :slots]
        values = values.repeat_interleave(weights.shape[1] // values.shape[1], dim=1)
        context = F.dropout(weights, self.dropout_p) @ values
        context = fold.close(context) if query.ndim == 3 else context
        context = context.reshape(*rows, self.query.shape[-2], values.shape[-1])
        return laid_out_as(self.query, context)

    def _aligned(
        self,
    ) -> tuple[Float[Tensor, "... queries width"], Float[Tensor, "... slots width"]]:
        """Queries and keys with as many axes, all of one size where these are not four."""
        query, keys = self.query, self.key
        if self.enable_gqa:
            missing = (None,) * max(0, 4 - query.ndim)
            return query[missing], keys[missing]
        if query.ndim == keys.ndim == 4 or query.shape[:-2] == keys.shape[:-2]:
            return query, keys
        rows = torch.broadcast_shapes(query.shape[:-2], keys.shape[:-2])  # type: ignore[no-untyped-call]
        return query.expand(*rows, *query.shape[-2:]), keys.expand(*rows, *keys.shape[-2:])


def _first_of(mask: Tensor | None) -> int | None:
    """Where the first query stands by a `CausalBias`, a tensor by name alone: by the corner in
    which its triangle begins. None for any other mask.

    Its module brings torch's compiler with it, which a translation has no use for. Whoever has made
    such a mask has imported it.
    """
    module = sys.modules.get("torch.nn.attention.bias")
    if module is None or not isinstance(mask, module.CausalBias):
        return None
    upper_left = mask.variant == module.CausalVariant.UPPER_LEFT
    return 0 if upper_left else int(mask.seq_len_kv - mask.seq_len_q)


def factored(
    query: Float[Tensor, "#batch heads queries width"],
    keys: Float[Tensor, "#batch key_heads slots width"],
    scale: float,
    mask: Shaped[Tensor, "#batch #heads #queries #slots"] | None,
    module: nn.Module,
    sight: Callable[..., Sight] = sight_of,
    softcap: float | None = None,
    repeats: int = 1,
) -> FactoredReading:
    """softmax(cap(scale · q kᵀ) + mask) as a reading, with the heads that the module has."""
    batch = max(query.shape[0], keys.shape[0])
    heads = max(query.shape[1], keys.shape[1])
    query, keys = as_multiplied(query), as_multiplied(keys)
    query, keys = query.expand(batch, heads, -1, -1), keys.expand(batch, -1, -1, -1)
    query, keys, mask = shared_keys(query, keys, mask, module, repeats)

    def reached(gap: float) -> bool:
        return may_differ_by(gap, query, keys, scale, softcap)

    seen = sight(mask, batch, query.shape[2], keys.shape[2], reached)
    return FactoredReading(
        query, keys, scale, seen.pattern, seen.first, seen.real, seen.bias, softcap
    )


def laid_out_as(query: Float[Tensor, "..."], context: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The same in memory as kernels lay it out, place by place where the queries are: models count
    on it when they bring heads together by `transpose(1, 2).view(...)`."""
    if context.ndim != _AXES or query.stride(1) >= query.stride(2):
        return context
    return context.transpose(1, 2).contiguous().transpose(1, 2)


def as_multiplied(vectors: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """What a product takes of these: rounded to autocast's type where that is on."""
    kind = vectors.device.type
    if vectors.dtype == torch.float64 or not torch.is_autocast_enabled(kind):
        return vectors
    return vectors.to(torch.get_autocast_dtype(kind))
