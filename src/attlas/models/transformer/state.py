"""The state of the Transformer's decoder."""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.models.cache import SourceCache, shared_rows
from attlas.models.encoder_decoder import check_positions, join_optional
from attlas.ops.cache import KeyValueCache, pad_and_concat
from attlas.patterns import Causal, Everywhere, Pattern

# The cache of the target so far.


_FEW = 32  # positions: with so few, unused ones do not matter
_MANY = 16  # rows: so few may share a cache, even if each uses few of its positions


@dataclass(frozen=True, slots=True)
class TargetCache:
    """One cache per layer, shared by `each` neighbouring rows, each of which sees its own
    positions.

    The hypotheses of a beam are such neighbours, and have most of their past in common. If a
    hypothesis continues another one, it takes over that one's `own_keys`, and no cache is copied.
    Unused positions are removed when they become too many.

    Args:
        layers: () before the first token.
        length: How many tokens each row has read, which is how many positions are its own. own:
            None = all.
    """

    layers: tuple[KeyValueCache, ...] = ()
    length: int = 0
    rows_per_cache: int = 1
    own_keys: Bool[Tensor, "rows keys"] | None = None

    def select(self, rows: Int[Tensor, " chosen"]) -> "TargetCache":
        """These rows, in this order, repeats allowed."""
        if not self.layers:
            return self
        caches, rows_per_cache = shared_rows(
            rows, self.rows_per_cache, self.layers[0].keys.shape[0]
        )
        own_keys = None if self.own_keys is None else self.own_keys.index_select(0, rows)
        layers = self.layers
        if caches is not None:
            layers = tuple(cache.select(caches) for cache in layers)
        return replace(
            self, layers=layers, rows_per_cache=rows_per_cache, own_keys=own_keys
        )._compact()

    def concat(self, other: "TargetCache") -> "TargetCache":
        """These rows and then those of another, which have read as many tokens."""
        if self.rows_per_cache != other.rows_per_cache:
            return self.expand_rows().concat(other.expand_rows())
        pairs = zip(self.layers, other.layers, strict=True)
        layers = tuple(first.concat(second) for first, second in pairs)
        if self.own_keys is None and other.own_keys is None:
            return replace(self, layers=layers)
        own_keys = pad_and_concat(self._own_or_all(), other._own_or_all())
        # `own_keys` tells which positions are nobody's, filled ones too; to say it twice would be
        # slower.
        return replace(
            self, layers=tuple(replace(m, token_mask=None) for m in layers), own_keys=own_keys
        )

    def _own_or_all(self) -> Bool[Tensor, "rows keys"]:
        if self.own_keys is not None:
            return self.own_keys
        cache = self.layers[0]
        rows = cache.keys.shape[0] * self.rows_per_cache
        return torch.ones(rows, cache.num_keys, dtype=torch.bool, device=cache.keys.device)

    def expand_rows(self) -> "TargetCache":
        """The same with one cache for each row, every position of which is its own."""
        if self.rows_per_cache == 1 and self.own_keys is None:
            return self
        caches = self.layers[0].keys.shape[0]
        if self.own_keys is None:
            cache_rows = torch.arange(caches, device=self.layers[0].keys.device)
            cache_rows = cache_rows.repeat_interleave(self.rows_per_cache)
            return TargetCache(
                tuple(layer.select(cache_rows) for layer in self.layers), self.length
            )
        kept_keys = self.own_keys.nonzero()[:, 1].view(
            caches, -1
        )  # of all its rows, one after the other
        layers = tuple(
            cache.gather_keys(kept_keys).split_rows(self.rows_per_cache) for cache in self.layers
        )
        return TargetCache(layers, self.length)

    def expand_if_sparse(self) -> "TargetCache":
        """The same; or with one cache for each row if rows share few positions, as in a wide
        beam.
        """
        if self.own_keys is None or self.rows_per_cache <= _MANY:
            return self
        should_compact = self.own_keys.shape[1] > 4 * (self.length + self.rows_per_cache)
        return self.expand_rows() if should_compact else self

    def with_next_keys(self, rows: int, sources: int, device: torch.device) -> "TargetCache":
        """With one more token of each of so many rows; the layers are those before it.

        Many rows that begin together get one cache each: they are draws, which share nothing later.
        The rows of a beam begin with a shared cache.

        Args:
            sources: How many caches begin here if there are none yet. A cache gets one new
                position for each of the rows that share it.
        """
        caches, num_keys = sources if rows <= _MANY * sources else rows, 0
        if self.layers:
            caches, num_keys = self.layers[0].keys.shape[0], self.layers[0].num_keys
        rows_per_cache, own_keys = rows // caches, self.own_keys
        if rows_per_cache > 1 or own_keys is not None:
            if own_keys is None:
                own_keys = torch.ones(rows, num_keys, dtype=torch.bool, device=device)
            newest = torch.eye(rows_per_cache, dtype=torch.bool, device=device)
            own_keys = torch.cat([own_keys, newest.repeat(caches, 1)], dim=1)
        return TargetCache(self.layers, self.length + 1, rows_per_cache, own_keys)

    def allowed(
        self, pattern: Pattern, device: torch.device
    ) -> Bool[Tensor, "#caches each keys"] | None:
        """Which positions the newest token of each row sees: its own, in the pattern; None = all.

        A row's own positions are in the order of its tokens, so that their number is their
        position.
        """
        own_keys = self.own_keys
        if not isinstance(pattern, Causal | Everywhere):
            if own_keys is None:
                positions = torch.arange(self.length, device=device).unsqueeze(0)
            else:
                positions = own_keys.cumsum(1) - 1
            allowed = pattern(positions.new_tensor(self.length - 1), positions)
            own_keys = allowed if own_keys is None else own_keys & allowed
        return (
            None if own_keys is None else own_keys.view(-1, self.rows_per_cache, own_keys.shape[1])
        )

    def _compact(self) -> "TargetCache":
        """Remove unused positions, if they are as many as the used ones."""
        if self.own_keys is None or self.own_keys.shape[1] < _FEW:
            return self
        is_used = self.own_keys.view(-1, self.rows_per_cache, self.own_keys.shape[1]).any(1)
        max_tokens = int(is_used.sum(1).max())
        if 2 * max_tokens > is_used.shape[1]:
            return self
        # Used positions come first; a cache with fewer used positions than another keeps some
        # unused ones.
        kept_keys = is_used.to(torch.int8).argsort(dim=1, descending=True, stable=True)[
            :, :max_tokens
        ]
        own_keys = self.own_keys.gather(1, kept_keys.repeat_interleave(self.rows_per_cache, dim=0))
        return replace(
            self, layers=tuple(m.gather_keys(kept_keys) for m in self.layers), own_keys=own_keys
        )


@dataclass(frozen=True, slots=True)
class TransformerState:
    """One row per hypothesis; frozen, so that a step leaves the state before it as it was.

    Args:
        source: The cache of the source of each layer.
        past: The cache of the target of each layer.
        coverage: Σ over the steps of the last layer's cross-attention, mean over heads; None until
            `with_coverage` asks for it, because it costs the weights of every step.
    """

    source: SourceCache
    past: TargetCache = field(default_factory=TargetCache)
    coverage: Float[Tensor, "batch keys"] | None = None

    @property
    def position(self) -> int:
        """How many target tokens have been read."""
        return self.past.length

    @property
    def rows(self) -> int:
        """How many hypotheses there are."""
        return self.source.layers[0].keys.shape[0] * self.source.rows_per_cache

    def with_coverage(self) -> "TransformerState":
        """The same; from here on the steps add up their attention weights."""
        keys = self.source.layers[-1].keys
        dtype = torch.promote_types(keys.dtype, torch.float32)
        zeros = torch.zeros(self.rows, keys.shape[-2], dtype=dtype, device=keys.device)
        return replace(self, coverage=zeros)

    def concat(self, other: "TransformerState") -> "TransformerState":
        """These rows and then those of another state, which has read as many target tokens."""
        check_positions(self.position, other.position)
        return replace(
            self,
            source=self.source.concat(other.source),
            past=self.past.concat(other.past),
            coverage=join_optional(self.coverage, other.coverage, pad_and_concat),
        )

    def select(self, rows: Int[Tensor, " chosen"]) -> "TransformerState":
        """These batch rows, in this order, repeats allowed."""
        return replace(
            self,
            source=self.source.select(rows),
            past=self.past.select(rows),
            coverage=None if self.coverage is None else self.coverage.index_select(0, rows),
        )
