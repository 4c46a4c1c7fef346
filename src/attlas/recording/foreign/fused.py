"""A call of `F.scaled_dot_product_attention`: its reading, and its explicit twin."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from attlas.recording.factored_reading import FactoredReading, may_differ_by
from attlas.recording.foreign.folds import Fold, Folds, in_order
from attlas.recording.foreign.heads import heads_of, of_channels, shared_keys
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
        fold, key_fold = self._folds(place, folds)
        mask = self.attn_mask
        first = 0 if self.is_causal else _first_of(mask)
        if first is not None:
            sight = looking_back(sight, first)
            mask = mask if self.is_causal else None
        mask = None if mask is None else fold.open(mask)
        scale = float(self.query.shape[-1] ** -0.5) if self.scale is None else float(self.scale)
        query, keys = fold.open(self.query), key_fold.open(self.key, shared=True)
        return factored(query, keys, scale, mask, place.module, sight, repeats=repeats)

    def changed(
        self, place: Place, folds: Folds, change: Change
    ) -> Float[Tensor, "... queries value_width"]:
        """The same call with other weights: `change(weights, seen) → weights`, before dropout."""
        reading = self.reading(place, folds)
        queries, slots = reading.shape[2:]
        weights = reading.rows(0, queries).to(self.query.dtype)
        weights = change(weights, reading.seen(0, queries)).to(self.query.dtype)
        fold, key_fold = self._folds(place, folds)
        values = key_fold.open(self.value)[:, :, :slots]
        if self.enable_gqa:
            values = values.repeat_interleave(weights.shape[1] // values.shape[1], dim=1)
        context = fold.close(F.dropout(weights, self.dropout_p) @ values)
        rows = self.query.shape[:-2] if self.enable_gqa else self._rows
        context = context.expand(*rows, -1, -1) if context.ndim == len(rows) + 2 else context
        context = context.reshape(*rows, *context.shape[-2:])
        return laid_out_as(self.query, context)

    def refused(self, place: Place, folds: Folds) -> str | None:
        """Why no reading is made of this call, where none is."""
        fold, _ = self._folds(place, folds)
        return of_channels(self.value, self.query.shape[-2], fold.count, place)

    @property
    def _rows(self) -> torch.Size:
        """The sizes of the axes before places."""
        query, keys, values = (one.shape[:-2] for one in (self.query, self.key, self.value))
        if query == keys == values:
            return query
        rows: torch.Size = torch.broadcast_shapes(query, keys, values)  # type: ignore[no-untyped-call]
        return rows

    def _folds(self, place: Place, folds: Folds) -> tuple[Fold, Fold]:
        """Where heads are in the queries, and in keys and values."""
        if self.enable_gqa:  # the last axis before places, says torch
            query, keys = (
                (*[1] * (4 - one.ndim), *one.shape[:-2]) for one in (self.query, self.key)
            )
            return in_order(query), in_order(keys)
        given = self.query, self.key, self.value
        fold = heads_of(self._rows, given, place, folds)
        return fold, fold


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
