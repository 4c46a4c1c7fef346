"""The cache of the source in a decoder."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from attlas.ops.cache import KeyValueCache

# Rows that share what is remembered.


def shared_rows(
    rows: Int[Tensor, " chosen"], rows_per_cache: int, num_caches: int
) -> tuple[Int[Tensor, " caches"] | None, int]:
    """The caches of the chosen rows, None = all `num_caches` in order; and how many neighbouring
    rows share one from now on.

    The greatest number that fits: the hypotheses of a sentence stand side by side, and as long as
    they only change places among themselves, every cache stays where it is.
    """
    caches = rows // rows_per_cache
    rows_per_cache = _group_size(caches)
    caches = caches[::rows_per_cache]
    if len(caches) == num_caches and torch.equal(
        caches, torch.arange(num_caches, device=rows.device)
    ):
        return None, rows_per_cache
    return caches, rows_per_cache


def _group_size(caches: Int[Tensor, " rows"]) -> int:
    """The greatest n for which each n neighbours are equal; the rows are a multiple of n."""
    if len(caches) < 2:
        return 1
    changes = caches[1:] != caches[:-1]
    rows_per_cache = (
        int(changes.to(torch.int8).argmax()) + 1 if bool(changes.any()) else len(caches)
    )
    if len(caches) % rows_per_cache:
        return 1
    return (
        rows_per_cache
        if bool((caches.view(-1, rows_per_cache) == caches[::rows_per_cache, None]).all())
        else 1
    )


@dataclass(frozen=True, slots=True)
class SourceCache:
    """One cache for each layer with cross-attention, held once per source: neighbouring rows share
    it.

    The hypotheses of a beam are such neighbours. They read the shared cache as several queries, so
    neither growing nor reordering them copies the cache.
    """

    layers: tuple[KeyValueCache, ...]
    rows_per_cache: int = 1

    def select(self, rows: Int[Tensor, " chosen"]) -> "SourceCache":
        """These rows, in this order, repeats allowed."""
        sources, rows_per_cache = shared_rows(
            rows, self.rows_per_cache, self.layers[0].keys.shape[0]
        )
        layers = self.layers
        if sources is not None:
            layers = tuple(cache.select(sources) for cache in layers)
        return replace(self, layers=layers, rows_per_cache=rows_per_cache)

    def concat(self, other: "SourceCache") -> "SourceCache":
        """These rows and then those of another; the sources of the two are padded to one length."""
        if self.rows_per_cache != other.rows_per_cache:
            return self._expanded().concat(other._expanded())
        pairs = zip(self.layers, other.layers, strict=True)
        return replace(self, layers=tuple(first.concat(second) for first, second in pairs))

    def _expanded(self) -> "SourceCache":
        return SourceCache(tuple(self.expand_rows(layer) for layer in range(len(self.layers))))

    def expand_rows(self, layer: int) -> KeyValueCache:
        """A layer's cache with one batch row for each row."""
        cache = self.layers[layer]
        if self.rows_per_cache == 1:
            return cache
        rows = torch.arange(cache.keys.shape[0], device=cache.keys.device)
        return cache.select(rows.repeat_interleave(self.rows_per_cache))
