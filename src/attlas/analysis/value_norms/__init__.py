"""Value-weighted attention: the norms of α_hij f_h(x_j)."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.analysis.value_norms.inputs import ValueInputs
from attlas.analysis.value_norms.projections import ValueMap
from attlas.errors import AttlasError
from attlas.recording import AttentionMap, FactoredAttentionMap

_NUM_QUERIES = 16  # queries
_NEAR = 1e-3


def values_of_call(
    attention_map: AttentionMap, values: ValueMap, source: ValueInputs
) -> Float[Tensor, "batch value_heads keys value_dim"]:
    """x_j V_h + c_h of one call of a layer; the source is batch first or positions first.

    Raises:
        AttlasError: If they are not of one call, and if the heads' outputs differ from the weighted
            values.
    """
    batch, heads, _, num_keys = attention_map.shape
    expected = (batch, num_keys - values.added) if heads == len(values.output) else None
    relative_error: float | None = None
    for is_reversed in (False, True):
        first, second = source.vectors.shape[:2]
        if ((second, first) if is_reversed else (first, second)) != expected:
            continue
        way = source.turned() if is_reversed else source
        call_values = values.values(_zero_padding(attention_map, way.vectors))
        off = _distance(attention_map, values, call_values, way.read)
        if off is None:
            return call_values
        relative_error = off if relative_error is None else relative_error
    if relative_error is not None:
        raise AttlasError(
            "heads that read what the weights and the values say",
            f"heads that read something else, by up to {relative_error:.2g} of the greatest number",
            "take the map and the source of the same call, of a generation without "
            "beam search; if the layer does more than project its values, or its "
            "weights were changed, use weights, not norms",
        )
    raise AttlasError(
        f"values of {batch} × {num_keys:,} keys for {heads} heads",
        f"those of {len(source.vectors)} × {source.vectors.shape[1] + values.added:,} keys for "
        f"{len(values.output)}",
        "take the source of the same call and the map of the same layer",
    )


def _zero_padding(
    attention_map: AttentionMap, vectors: Float[Tensor, "batch keys key_dim"]
) -> Float[Tensor, "batch keys key_dim"]:
    """Set padding to zero: its weight is 0, but 0 · NaN is NaN."""
    token_mask = (
        attention_map.token_mask if isinstance(attention_map, FactoredAttentionMap) else None
    )
    mask = None if token_mask is None else token_mask[:, : vectors.shape[1]]
    if mask is None or mask.shape != vectors.shape[:2]:
        return vectors
    return vectors.masked_fill(~mask.unsqueeze(-1).to(vectors.device), 0.0)


def _distance(
    attention_map: AttentionMap,
    values: ValueMap,
    call_values: Float[Tensor, "batch value_heads keys value_dim"],
    context: Float[Tensor, "batch queries all_heads"] | None,
) -> float | None:
    """The relative error of the heads' outputs against Σ_j α_hij v_hj, in some queries; None if it
    is small or unknown.
    """
    batch, heads, queries, _ = attention_map.shape
    if context is None or context.shape[:2] != (batch, queries) or not queries:
        return None
    shared = heads // call_values.shape[1]
    repeated = call_values.repeat_interleave(shared, 1) if shared > 1 else call_values
    off, maximum = 0.0, 0.0
    for query in sorted(
        {query * (queries - 1) // max(1, _NUM_QUERIES - 1) for query in range(_NUM_QUERIES)}
    ):
        weights = attention_map.rows(query, query + 1)
        sees = (weights.sum((1, 2, 3)) > 0).nonzero().flatten()  # nothing is said of the others
        computed = (weights.to(repeated) @ repeated)[:, :, 0].flatten(1)
        recorded = context[:, query].to(computed)
        if computed.shape != recorded.shape:
            return None
        if len(sees):
            off = max(off, float((computed - recorded)[sees].abs().max()))
            maximum = max(maximum, float(recorded[sees].abs().max()))
    tolerance = max(_NEAR, 4 * torch.finfo(context.dtype).eps) * maximum
    return off / maximum if off > tolerance else None


# Weights times the length of the vectors that they weigh.


_AT_ONCE = 1 << 21  # numbers


@dataclass(frozen=True, slots=True)
class ValueNorms:
    """‖α_hij f_h(x_j)‖ of each head, and ‖Σ_h α_hij f_h(x_j)‖ Kobayashi et al., 2020, section 3.

    A great weight on a short vector brings little: the weights alone do not say what a query gets.
    The vectors f_h(x_j) are made once and not kept; of them remain

    Args:
        lengths: ‖f_h(x_j)‖, (batch, heads, keys).
        products: ⟨f_h(x_j), f_g(x_j)⟩ in float64, (batch, keys, heads, heads); they give the length
            of any sum over heads.
    """

    attention_map: AttentionMap
    lengths: Float[Tensor, "batch heads keys"]
    products: Float[Tensor, "batch keys heads heads"]

    @classmethod
    def of(cls, attention_map: AttentionMap, values: ValueMap, source: ValueInputs) -> "ValueNorms":
        """Compute the norms of one call of a layer from its weights, its f, and the inputs of its
        values.

        Time O(keys × heads × width × (value_dim + heads)), memory O(keys × (width + heads²)).

        Raises:
            AttlasError: If the three are not of one call, and if the source knows what the heads
                read and that is not Σ_j α_hij (x_j V_h + c_h): such a layer does more than project,
                or its weights were changed.
        """
        batch, heads, _, num_keys = attention_map.shape
        call_values = values_of_call(attention_map, values, source)
        lengths, products = [], []
        size = max(1, _AT_ONCE // max(1, batch * heads * values.output.shape[2]))
        for start in range(0, num_keys, size):
            carried = values.carried(call_values[:, :, start : start + size]).to(torch.float64)
            lengths.append(carried.norm(dim=-1).to(call_values.dtype))
            by_key = carried.transpose(1, 2)  # (batch, keys, heads, dim)
            products.append(by_key @ by_key.mT)
        return cls(attention_map, torch.cat(lengths, 2), torch.cat(products, 1))

    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        """α_hij ‖f_h(x_j)‖ of queries start … stop − 1, for each head."""
        return self.attention_map.rows(start, stop) * self.lengths.unsqueeze(2)

    def summed_rows(self, start: int, stop: int) -> Float[Tensor, "batch rows keys"]:
        """‖Σ_h α_hij f_h(x_j)‖ = √(αᵀ G_j α) of these queries, in float64: of the whole layer.

        It is at most the sum of `rows` over the heads, and less if heads cancel each other.
        """
        weights = self.attention_map.rows(start, stop).to(torch.float64).permute(0, 3, 2, 1)
        squares: Tensor = torch.linalg.vecdot(weights @ self.products, weights)
        return squares.clamp(min=0.0).sqrt().mT

    def blocks(self, size: int) -> Iterator[Float[Tensor, "batch heads rows keys"]]:
        """All `rows` in order, at most `size` of them held at a time."""
        for start, stop in self._cuts(size):
            yield self.rows(start, stop)

    def summed_blocks(self, size: int) -> Iterator[Float[Tensor, "batch rows keys"]]:
        """All `summed_rows` in order, at most `size` of them held at a time."""
        for start, stop in self._cuts(size):
            yield self.summed_rows(start, stop)

    def _cuts(self, size: int) -> Iterator[tuple[int, int]]:
        if size < 1:
            raise AttlasError("a block size of at least one row", str(size), "pass e.g. 256")
        queries = self.attention_map.shape[2]
        for start in range(0, queries, size):
            yield start, min(start + size, queries)
