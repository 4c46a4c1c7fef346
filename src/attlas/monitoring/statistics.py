"""Statistics of the heads of one layer, summed over calls, texts and processes."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording import AttentionMap
from attlas.recording.maps.reductions import Reduction, reduce_map
from attlas.recording.maps.statistics import reduction_of

QUANTILES = (0.1, 0.5, 0.9)
"""The quantiles of the entropy that are read."""


@dataclass(frozen=True, slots=True)
class HeadStatistics:
    """Statistics of one head over the queries of one step. Weights w, scores s, n visible keys.

    All queries of tokens that see a key count, each once. None = not known: without scores, without
    query positions, or without any query.

    Args:
        layer: The path of the layer's module.
        head: The number of the head, from 0.
        queries: How many queries count.
        visible: The mean number of keys that a query may see.
        max_logit: The largest score, max s: scaled, capped, and with its bias.
        entropy: The mean of −Σ w log w, in nats.
        entropy_p10, entropy_p50, entropy_p90: Quantiles of the entropy over the queries.
        normalized_entropy: The mean of entropy / log n over the queries with n ≥ 2.
        effective_keys: The mean of exp(entropy).
        first_share: The mean weight of the first token.
        self_share: The mean weight of the query's own key, in self-attention.
        received_share: What the most-looked-at key of a text receives, as a share of all its
            queries give; the mean over texts.
        distance: The mean of Σ_j w_j |i − j|, in keys.
        mask_diagonal: The k of a causal mask, as in `torch.tril(…, diagonal=k)`, in self-attention
            whose queries see all keys up to k behind their own, and no later one: 0 = causal, 1 =
            each query sees the next token, −1 = none sees itself. None = another mask, or none.
        context_error: How far what the head has read is from exact attention to the same queries,
            keys and values, in roundings of their type; see `context_errors`. The largest of all
            queries. None = unknown: of other models than those of attlas, of recurrent models,
            with dropout of weights, and where a call has `need_weights=True`, an `attn_mask` or
            `is_causal=True`, or its layer `add_bias_kv` or `add_zero_attn`; also where anything
            that it depends on is not finite.
        nonfinite: How many queries have weights that are not finite.
    """

    layer: str
    head: int
    queries: int
    visible: float | None = None
    max_logit: float | None = None
    entropy: float | None = None
    entropy_p10: float | None = None
    entropy_p50: float | None = None
    entropy_p90: float | None = None
    normalized_entropy: float | None = None
    effective_keys: float | None = None
    first_share: float | None = None
    self_share: float | None = None
    received_share: float | None = None
    distance: float | None = None
    mask_diagonal: int | None = None
    context_error: float | None = None
    nonfinite: int = 0

    def figures(self) -> dict[str, float]:
        """The statistics that are known, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)[2:]}
        return {name: float(value) for name, value in values.items() if value is not None}


FIGURES = tuple(field.name for field in fields(HeadStatistics)[2:])
"""The names of the statistics of a head."""

_SUMMED = ("num_visible", "entropy", "effective_keys", "first_weight")
_PLACED = ("self_weight", "distance")

_LEAST_QUERIES = 6
"""Shorter texts do not tell a causal mask from a window or from strides."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class LayerTotals:
    """What the statistics of a layer are made of: sums and counts, each one for each head.

    Totals of two parts of a step `merge` into those of both. So the statistics of several calls are
    those of one call with all texts.

    Args:
        sums: By statistic, over the queries that count; counts: of how many queries. Totals of
            "received" are over texts.
        max_logit: None = the scores are unknown.
        entropies: The entropy of every query that counts, for the quantiles; empty where
            `quantiles` has them.
        quantiles: Those of the entropy where the entropies are not here; of each head.
        diagonals: The `mask_diagonal` of each text that has one, and None for a text with another
            mask.
        context_error: The largest of each head; None = unknown.
    """

    sums: dict[str, Array]
    counts: dict[str, Array]
    entropies: list[Array]  # of each head
    nonfinite: Array
    max_logit: Array | None = None
    diagonals: Sequence[frozenset[int | None]] = ()  # of each head
    context_error: Array | None = None
    quantiles: Sequence[tuple[float, ...]] | None = None

    @property
    def num_heads(self) -> int:
        """The number of heads."""
        return len(self.entropies)

    def merge(self, other: "LayerTotals", layer: str) -> "LayerTotals":
        """The totals of both parts.

        Raises:
            AttlasError: If one part has another number of heads.
        """
        if self.num_heads != other.num_heads:
            raise AttlasError(
                f"the same number of heads in each call of {layer!r}",
                f"{self.num_heads} and {other.num_heads}",
                "watch the modules apart; where each process holds some of the heads (tensor "
                "parallelism), pass the process group that shares the batches: process_group=…",
            )
        return LayerTotals(
            _added(self.sums, other.sums),
            _added(self.counts, other.counts),
            [np.concatenate(pair) for pair in zip(self.entropies, other.entropies, strict=True)],
            self.nonfinite + other.nonfinite,
            _largest(self.max_logit, other.max_logit),
            _united(self.diagonals, other.diagonals),
            _largest(self.context_error, other.context_error),
        )

    def with_context_errors(self, errors: Array) -> "LayerTotals":
        """The totals with the `context_errors` of one more call."""
        return replace(self, context_error=_largest(self.context_error, errors))

    def with_received(self, received: Array, queries: Array) -> "LayerTotals":
        """The totals with one more call's received weights, (batch, heads, keys) of so many
        queries, (batch, heads).
        """
        counted = queries > 0
        if not received.shape[-1]:
            return self
        share = received.max(-1) / np.maximum(queries, 1)
        new = LayerTotals(
            {"received": np.where(counted, share, 0.0).sum(0)},
            {"received": counted.sum(0)},
            [np.zeros(0, np.float32)] * self.num_heads,
            np.zeros_like(self.nonfinite),
        )
        return self.merge(new, "")

    def without_entropies(self) -> "LayerTotals":
        """The totals without what grows with the queries."""
        return replace(self, entropies=[np.zeros(0, np.float32)] * self.num_heads)

    def statistics(self, layer: str) -> list[HeadStatistics]:
        """The statistics of each head."""
        return [self._of_head(layer, head) for head in range(self.num_heads)]

    def _of_head(self, layer: str, head: int) -> HeadStatistics:
        def mean(name: str) -> float | None:
            count = int(self.counts[name][head]) if name in self.counts else 0
            return float(self.sums[name][head]) / count if count else None

        count = int(self.counts["entropy"][head])
        found = HeadStatistics(layer, head, count, nonfinite=int(self.nonfinite[head]))
        if not count:
            return found
        if self.quantiles is None:
            low, middle, high = np.quantile(
                self.entropies[head].astype(np.float64), QUANTILES
            ).tolist()
        else:
            low, middle, high = self.quantiles[head]
        low, middle, high = (value + 0.0 for value in (low, middle, high))  # −0 is 0
        logit = None if self.max_logit is None else float(self.max_logit[head])
        diagonals = self.diagonals[head] if self.diagonals else ()
        return replace(
            found,
            visible=mean("num_visible"),
            max_logit=logit,
            entropy=mean("entropy"),
            entropy_p10=low,
            entropy_p50=middle,
            entropy_p90=high,
            normalized_entropy=mean("normalized_entropy"),
            effective_keys=mean("effective_keys"),
            first_share=mean("first_weight"),
            self_share=mean("self_weight"),
            received_share=mean("received"),
            distance=mean("distance"),
            mask_diagonal=next(iter(diagonals)) if len(diagonals) == 1 else None,
            context_error=self._context_error(head),
        )

    def _context_error(self, head: int) -> float | None:
        """None where it is unknown, also for want of finite numbers."""
        if self.context_error is None or self.nonfinite[head]:
            return None
        error = float(self.context_error[head])
        return None if math.isnan(error) else error


def _largest(first: Array | None, second: Array | None) -> Array | None:
    known = [values for values in (first, second) if values is not None]
    return np.fmax.reduce(known) if known else None  # where one is NaN, the other


def _added(first: dict[str, Array], second: dict[str, Array]) -> dict[str, Array]:
    added = dict(first)
    for name, values in second.items():
        added[name] = added[name] + values if name in added else values
    return added


_Diagonals = Sequence[frozenset[int | None]]


def _united(first: _Diagonals, second: _Diagonals) -> _Diagonals:
    if not (first and second):
        return first or second
    return [ours | theirs for ours, theirs in zip(first, second, strict=True)]


def totals_of(
    attention_map: AttentionMap,
    query_mask: Bool[Tensor, "batch queries"],
    own_mask: Bool[Tensor, "batch queries"] | None = None,
    *,
    cross_attention: bool | None,
) -> tuple[LayerTotals, Array, Array]:
    """The totals of one call, without "received"; what each key received; and from how many
    queries: (batch, heads, keys) and (batch, heads).

    One pass over blocks of the map; no more than a few numbers for each query and head are held.

    Args:
        query_mask: The queries of tokens.
        own_mask: As far as the map itself hides those of padding; None = the same.
    """
    own_mask = query_mask if own_mask is None else own_mask
    names = [*_SUMMED, "normalized_entropy"]
    if attention_map.position is not None:
        names += _PLACED if cross_attention is not True else ["distance"]
    if attention_map.of_softmax:
        names.append("max_logit")
    everyone = bool(query_mask.all())
    reductions: dict[str, Reduction] = {
        name: reduction_of(attention_map, name) for name in names
    } | {
        "received": reduction_of(
            attention_map, "received", query_mask=None if everyone else query_mask
        )
    }
    results = {
        name: value.cpu().numpy().astype(np.float64)
        for name, value in reduce_map(attention_map, reductions).items()
    }
    visible = results["num_visible"]
    counted = query_mask.cpu().numpy()[:, None, :] & (visible > 0)
    finite = np.isfinite(results["entropy"])
    sums, counts = {}, {}
    for name in names:
        if name == "max_logit":
            continue
        chosen = counted & (visible > 1) if name == "normalized_entropy" else counted
        sums[name] = np.where(chosen, results[name], 0.0).sum((0, 2))
        counts[name] = chosen.sum((0, 2))
    logit = None
    if "max_logit" in results:
        masked = np.where(counted, results["max_logit"], -math.inf)
        logit = masked.max((0, 2), initial=-math.inf)
    entropies = [
        results["entropy"][:, head][counted[:, head]].astype(np.float32)
        for head in range(attention_map.shape[1])
    ]
    is_self = cross_attention is not True and visible.shape[2] == attention_map.shape[3]
    diagonals = _diagonals(visible, own_mask.cpu().numpy()) if is_self else ()
    broken = (counted & ~finite).sum((0, 2))
    totals = LayerTotals(sums, counts, entropies, broken, logit, diagonals)
    return totals, results["received"], counted.sum(2)


def _diagonals(visible: Array, query_mask: Array) -> list[frozenset[int | None]]:
    """The diagonals of causal masks, of each head; see `LayerTotals`.

    The query with number i of a text with n tokens sees min(i + 1 + k, n) of them under a causal
    mask with diagonal k. Texts in which no query but the first sees less than all say nothing.

    Args:
        visible: How many keys each query sees, (batch, heads, queries).
        query_mask: The queries whose own keys the map does not hide, (batch, queries).
    """
    found: list[set[int | None]] = [set() for _ in range(visible.shape[1])]
    for text, mask in zip(visible, query_mask, strict=True):
        seen = text[:, mask].astype(np.int64)
        if seen.shape[1] < _LEAST_QUERIES:
            continue
        number = np.arange(seen.shape[1])
        most = seen[:, 1:].max(1, keepdims=True)
        diagonal = seen[:, 1:2] - 2
        matches = seen == np.minimum(number + 1 + diagonal, most)
        matches[:, 0] |= diagonal[:, 0] < 0  # a softmax over no key may be anything
        is_causal = matches.all(1)
        is_whole = (seen[:, 1:] == most).all(1)
        for head in np.flatnonzero(~is_whole):
            found[head].add(int(diagonal[head, 0]) if is_causal[head] else None)
    return [frozenset(diagonals) for diagonals in found]


def merged(parts: Iterable[dict[str, LayerTotals]]) -> dict[str, LayerTotals]:
    """The totals of each layer over all parts, in their order."""
    whole: dict[str, LayerTotals] = {}
    for part in parts:
        for layer, totals in part.items():
            whole[layer] = whole[layer].merge(totals, layer) if layer in whole else totals
    return whole


def statistics_of(layers: dict[str, LayerTotals]) -> Sequence[HeadStatistics]:
    """The statistics of every head of every layer, in the order in which layers were called."""
    return [head for layer, totals in layers.items() for head in totals.statistics(layer)]
