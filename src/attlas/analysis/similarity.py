"""Similarity of attention: of heads, layers and models."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attlas.analysis._padding import query_mask, token_mask_of
from attlas.analysis.faithfulness.experiment import jensen_shannon
from attlas.errors import AttlasError
from attlas.recording import AttentionMap

# Hierarchical clustering of heads.


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge of two clusters: numbers below `leaves` are leaves, leaves + k is the k-th merge.

    Args:
        height: The mean distance between members of both clusters.
        size: Members.
    """

    left: int
    right: int
    height: float
    size: int


@dataclass(frozen=True, slots=True)
class Tree:
    """leaves − 1 merges, the closest first; heights never fall."""

    leaves: int
    merges: tuple[Merge, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The leaves in an order in which every cluster stands together: that of a dendrogram."""
        return self.members(self.leaves + len(self.merges) - 1)

    def members(self, cluster: int) -> tuple[int, ...]:
        """The leaves of a cluster, by its number, those of its left part first."""
        found, pending = [], [cluster]
        while pending:
            number = pending.pop()
            if number < self.leaves:
                found.append(number)
            else:
                merge = self.merges[number - self.leaves]
                pending += [merge.right, merge.left]
        return tuple(found)

    def labels(self, clusters: int) -> tuple[int, ...]:
        """The cluster of each leaf when so many clusters remain, numbered by their first leaves.

        Raises:
            AttlasError: For fewer than one, and for more than there are leaves.
        """
        if not 1 <= clusters <= self.leaves:
            raise AttlasError(f"1 to {self.leaves} clusters", str(clusters), "choose within these")
        return self._labelled(self.leaves - clusters)

    def labels_within(self, height: float) -> tuple[int, ...]:
        """The same after all merges up to this height."""
        return self._labelled(sum(merge.height <= height for merge in self.merges))

    def _labelled(self, merged: int) -> tuple[int, ...]:
        cluster = {leaf: leaf for leaf in range(self.leaves)}
        for number in range(merged):
            for leaf in self.members(self.leaves + number):
                cluster[leaf] = self.leaves + number
        numbers: dict[int, int] = {}
        return tuple(numbers.setdefault(cluster[leaf], len(numbers)) for leaf in sorted(cluster))


def cluster_heads(distances: Float[Tensor, "..."]) -> Tree:
    """Average linkage: repeatedly merge the two clusters with the smallest mean distance.

    d(A ∪ B, C) = (|A| d(A, C) + |B| d(B, C)) / (|A| + |B|) Sokal & Michener, 1958 (UPGMA).

    Args:
        distances: (leaves, leaves), symmetric, 0 on the diagonal, e.g. of `head_divergences`. Ties
            go to the clusters whose leaves come first. Time O(leaves³), memory O(leaves²).

    Raises:
        AttlasError: For anything else, also NaN, the distance of heads that cannot be compared.
    """
    _check(distances)
    leaves = len(distances)
    remaining = distances.to(torch.float64).cpu().clone().fill_diagonal_(torch.inf)
    numbers, sizes = list(range(leaves)), [1] * leaves  # of the cluster in each row that is in use
    merges: list[Merge] = []
    for number in range(leaves, 2 * leaves - 1):
        least = int(remaining.argmin())
        i, j = sorted(divmod(least, leaves))
        height, size = float(remaining[i, j]), sizes[i] + sizes[j]
        first, second = sorted((numbers[i], numbers[j]))
        # Rounding of means must not make a merge closer than the merges inside.
        height = max(height, merges[-1].height) if merges else height
        merges.append(Merge(first, second, height, size))
        joined = (sizes[i] * remaining[i] + sizes[j] * remaining[j]) / size
        remaining[i], remaining[:, i] = joined, joined
        remaining[j], remaining[:, j] = torch.inf, torch.inf
        remaining[i, i] = torch.inf
        numbers[i], sizes[i] = number, size
    return Tree(leaves, tuple(merges))


def _check(distances: Float[Tensor, "..."]) -> None:
    square = distances.ndim == 2 and distances.shape[0] == distances.shape[1] > 0
    if not (
        square
        and bool(distances.isfinite().all())
        and bool((distances >= 0).all())
        and bool((distances.diagonal() == 0).all())
        and torch.allclose(distances, distances.mT)
    ):
        raise AttlasError(
            "distances of each to each: square, symmetric, finite, 0 to itself",
            f"shape {tuple(distances.shape)}, {int((~distances.isfinite()).sum())} not finite",
            "leave out what cannot be compared",
        )


# Divergences between two heads.


_AT_ONCE = 1 << 20  # weights of all heads together

QueryMask = Bool[Tensor, "batch queries"]


def divergence(
    first: Float[Tensor, "*rows keys"],
    second: Float[Tensor, "*rows keys"],
    shared: Bool[Tensor, "*rows keys"] | None = None,
) -> Float[Tensor, "*rows"]:
    """JS(p, q) in nats, see `jensen_shannon`: 0 = alike … ln 2 = nothing shared.

    p, q: the rows on the keys that are shared (None = all), divided by their sums, in float64. NaN
    where one of them has no weight there: nothing can be said of it.
    """
    p, q = (rows.to(torch.float64) for rows in (first, second))
    if shared is not None:
        p, q = p * shared, q * shared
    p, q = p / p.sum(-1, keepdim=True), q / q.sum(-1, keepdim=True)
    return jensen_shannon(p, q).clamp(min=0.0)  # rounding may take it below


def head_divergences(
    attention_maps: Sequence[AttentionMap],
    queries: QueryMask | None = None,
    *,
    cross_attention: bool | None = None,
) -> Float[Tensor, "all_heads all_heads"]:
    """D_ab = mean over queries i of JS(a_i, b_i), of all heads of all attention maps (Clark et al.,
    2019, section 6), in nats.

    Heads come in the order of the attention maps: of several layers, or of several models that read
    one text. A pair is compared over the keys that both may see, and over the queries that look at
    any of these. √D is a distance (Endres & Schindelin, 2003). Symmetric, 0 on the diagonal, at
    most ln 2; NaN where no query can be compared.

    Args:
        queries: Which queries count, (batch, queries); None = as in `roles`, those of tokens, and
            in cross-attention all.
        cross_attention: Whether the maps are of cross-attention; None = unless they are square.
            Only a few rows are held at a time; time O(heads² × queries × keys).

    Raises:
        AttlasError: For attention maps of different texts, and an `queries` of another shape.
    """
    return _divergences(attention_maps, queries, cross_attention, mean=False)


def layer_divergences(
    attention_maps: Sequence[AttentionMap],
    queries: QueryMask | None = None,
    *,
    cross_attention: bool | None = None,
) -> Float[Tensor, "layers layers"]:
    """The same between the maps of layers, each the mean over its heads."""
    return _divergences(attention_maps, queries, cross_attention, mean=True)


def diversity(divergences: Float[Tensor, "heads heads"]) -> float:
    """Σ_{a<b} D_ab / (n (n − 1) / 2), in the unit of D: how different heads are from each other.

    0: all heads look alike; ln 2 = 0.693: no two heads share a key. Pairs that cannot be compared
        (NaN) are left out.

    Raises:
        AttlasError: If no two heads can be compared.
    """
    rows, columns = torch.triu_indices(len(divergences), len(divergences), offset=1)
    pairs = divergences[rows, columns]
    pairs = pairs[~pairs.isnan()]
    if not len(pairs):
        raise AttlasError(
            "at least two heads that can be compared",
            f"{len(divergences)} head(s), and no pair of them",
            "give divergences of more heads",
        )
    return float(pairs.mean())


def _divergences(
    attention_maps: Sequence[AttentionMap],
    query_mask: QueryMask | None,
    cross_attention: bool | None,
    *,
    mean: bool,
) -> Float[Tensor, "all_heads all_heads"]:
    batch, queries, num_keys = _one_shape(attention_maps)
    if query_mask is not None and (
        tuple(query_mask.shape) != (batch, queries) or query_mask.dtype != torch.bool
    ):
        raise AttlasError(
            f"queries= as bools of shape {(batch, queries)}",
            f"{query_mask.dtype} of shape {tuple(query_mask.shape)}",
            "True = this query counts",
        )
    if query_mask is None:
        query_mask = _of_tokens(attention_maps, cross_attention)
    count = (
        len(attention_maps)
        if mean
        else sum(attention_map.shape[1] for attention_map in attention_maps)
    )
    sums = torch.zeros((count, count), dtype=torch.float64)
    num_compared = torch.zeros((count, count), dtype=torch.float64)
    size = max(
        1, _AT_ONCE // max(1, batch * num_keys * sum(map_.shape[1] for map_ in attention_maps))
    )
    for start in range(0, queries, size):
        stop = min(start + size, queries)
        rows, allowed = _of_all(attention_maps, start, stop, mean=mean)
        counts = query_mask[:, start:stop].to(rows.device)
        same_mask = bool((allowed == allowed[:, :1]).all())
        for head in range(count):
            others = rows[:, head:]
            shared = None if same_mask else allowed[:, head : head + 1] & allowed[:, head:]
            between = divergence(rows[:, head : head + 1].expand_as(others), others, shared)
            has_value = ~between.isnan() & counts[:, None]
            sums[head, head:] += between.where(has_value, 0.0).sum((0, 2)).cpu()
            num_compared[head, head:] += has_value.sum((0, 2)).cpu()
    divergences = sums / num_compared
    divergences = divergences.triu() + divergences.triu(1).mT
    # A row and itself differ by rounding at most.
    divergences.diagonal()[~divergences.diagonal().isnan()] = 0.0
    return divergences


def _of_tokens(attention_maps: Sequence[AttentionMap], cross_attention: bool | None) -> QueryMask:
    """The queries that stand at a token in every one of the attention maps."""
    part = [
        query_mask(
            attention_map, token_mask_of(attention_map), cross_attention=cross_attention
        ).cpu()
        for attention_map in attention_maps
    ]
    return torch.stack(part).all(0)


def _of_all(
    attention_maps: Sequence[AttentionMap], start: int, stop: int, *, mean: bool
) -> tuple[Float[Tensor, "batch all_heads rows keys"], Bool[Tensor, "batch all_heads rows keys"]]:
    """These rows of all heads side by side, and what they may see."""
    rows, allowed_parts = [], []
    device = None
    for attention_map in attention_maps:
        weights = attention_map.rows(start, stop)
        device = weights.device if device is None else device
        allowed = attention_map.allowed_rows(start, stop).expand(weights.shape)
        if mean:
            weights, allowed = weights.mean(1, keepdim=True), allowed.any(1, keepdim=True)
        rows.append(weights.to(device, torch.float64))
        allowed_parts.append(allowed.to(device))
    return torch.cat(rows, 1), torch.cat(allowed_parts, 1)


def _one_shape(attention_maps: Sequence[AttentionMap]) -> tuple[int, int, int]:
    shapes = {
        (attention_map.shape[0], *attention_map.shape[2:]) for attention_map in attention_maps
    }
    if len(shapes) != 1:
        raise AttlasError(
            "attention maps of the same queries and keys",
            ", ".join(str(attention_map.shape) for attention_map in attention_maps) or "none",
            "compare layers, or models, that read the same tokens",
        )
    return next(iter(shapes))
