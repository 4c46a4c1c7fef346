"""The base of recurrent decoders."""

from abc import ABC, abstractmethod
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.layers import LocalMonotonicAttention, ScoredAttention
from attlas.layers.base import AttentionOutput
from attlas.models.cache import SourceCache
from attlas.models.rnn.cells import Recurrence, RecurrentState
from attlas.models.rnn.encoder import Bridge, Encoded
from attlas.ops.cache import KeyValueCache
from attlas.ops.deferred_reads import defer_gradients

# Coverage: the attention reads the sum of its earlier weights.


class Coverage(nn.Module):
    """v · tanh(W s + U h_j + w_c c_j),  c_j = Σ of the weights on position j so far.

    See, Liu & Manning, 2017, eq. 10 and 11; Tu et al., 2016. The term that coverage adds depends
    on the position alone, so it is added to the keys that the attention remembers.
    """

    def __init__(self, hidden_dim: int) -> None:
        super().__init__()
        self.coverage_proj = nn.Linear(1, hidden_dim, bias=False)

    def forward(self, cache: KeyValueCache, coverage: Float[Tensor, "batch keys"]) -> KeyValueCache:
        """The cache with the coverage term added to its keys."""
        coverage_column = coverage.unsqueeze(-1).to(cache.keys.dtype)
        return replace(cache, keys=cache.keys + self.coverage_proj(coverage_column))


class RecurrentDecoder(nn.Module, ABC):
    """Embedded target tokens in, features before the vocabulary layer out.

    `step` and `decode` are twins: one token, or a whole target from a state. `feature_dim` is that
    of the features.
    """

    feature_dim: int

    def __init__(self, bridge: Bridge, recurrence: Recurrence) -> None:
        super().__init__()
        self.bridge = bridge
        self.recurrence = recurrence

    @abstractmethod
    def start(
        self, encoded: Encoded, token_mask: Bool[Tensor, "batch keys"] | None
    ) -> RecurrentState:
        """The state before the first target token."""

    @abstractmethod
    def step(
        self, embedded: Float[Tensor, "batch embed_dim"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch dim"], RecurrentState]:
        """The features of one token, and the state that follows."""

    @abstractmethod
    def decode(
        self, embedded: Float[Tensor, "batch queries embed_dim"], state: RecurrentState
    ) -> Float[Tensor, "batch queries dim"]:
        """The features of every token of a target."""


# The base of decoders with attention.


class AttentionDecoder(RecurrentDecoder, ABC):
    """A decoder with attention: it caches the source, attends to it, and records its weights.

    In a loop over a target the weights of all steps become one attention map; `step` records its
    own.
    """

    def __init__(
        self,
        bridge: Bridge,
        recurrence: Recurrence,
        attention: ScoredAttention,
        coverage: Coverage | None,
    ) -> None:
        super().__init__(bridge, recurrence)
        self.attention = attention
        self.attention.hook.cross_attention = True
        self.coverage = coverage

    def start(
        self, encoded: Encoded, token_mask: Bool[Tensor, "batch keys"] | None
    ) -> RecurrentState:
        cache = self.attention.project_kv(encoded.outputs, token_mask)
        return RecurrentState(
            self.bridge(encoded.final),
            source=SourceCache((cache,)),
            coverage=_nothing(encoded.outputs),
        )

    def attend(
        self,
        query: Float[Tensor, "batch queries hidden_dim"],
        cache: KeyValueCache,
        coverage: Float[Tensor, "batch keys"],
        query_offset: int,
    ) -> AttentionOutput:
        """Attend to the cache; the caller records the weights."""
        if self.coverage is not None:
            cache = self.coverage(cache, coverage)
        return self.attention.forward_with_weights(query, cache, query_offset)

    def attend_step(
        self, query: Float[Tensor, "batch hidden_dim"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch value_dim"], RecurrentState]:
        """The context of one query a row, recorded; and the state with its coverage.

        Rows that share a source read its cache as several queries, if they differ only by their
        query and no listener is active; a listener needs one batch row for each.
        """
        cache, coverage = self._cache_and_coverage(state)
        source, hook = state.source, self.attention.hook
        assert source is not None  # `_cache_and_coverage` has asked
        at_one_place = (
            isinstance(self.attention, LocalMonotonicAttention) or self.coverage is not None
        )
        if at_one_place or hook.is_recording or hook.is_patched or source.rows_per_cache == 1:
            cache = source.expand_rows(0)
            output = self.attend(query.unsqueeze(1), cache, coverage, state.position)
            self.record([output.weights], cache, state.position)
            weights = output.applied[:, 0, 0]
        else:
            queries = query.view(-1, source.rows_per_cache, query.shape[1])
            output = self.attention.forward_with_weights(queries, cache, state.position)
            weights = output.applied.flatten(0, 2)
        new_coverage = coverage + weights
        return output.context.flatten(0, 1), replace(state, coverage=new_coverage)

    def expanded_cache(
        self, state: RecurrentState
    ) -> tuple[KeyValueCache, Float[Tensor, "batch keys"]]:
        """The cache of each row's source, for the steps of a loop, and the coverage of each
        position.
        """
        _, coverage = self._cache_and_coverage(state)
        assert state.source is not None
        return defer_gradients(state.source.expand_rows(0)), coverage

    def _cache_and_coverage(
        self, state: RecurrentState
    ) -> tuple[KeyValueCache, Float[Tensor, "batch keys"]]:
        if state.source is None or state.coverage is None:
            raise AttlasError(
                "a state with a memory of the source",
                "one of a model that cannot look",
                "start from this model's own `encode`",
            )
        return state.source.layers[0], state.coverage

    def record(
        self,
        weights: list[Float[Tensor, "batch 1 _ keys"]],
        cache: KeyValueCache,
        query_offset: int,
    ) -> None:
        """Record one attention map, its queries in order; `query_offset` is the position of the
        first.
        """
        if self.attention.hook.is_recording:
            joined = torch.cat([part.detach() for part in weights], dim=2)
            self.attention.record(joined, cache, query_offset)


def _nothing(outputs: Float[Tensor, "batch keys dim"]) -> Float[Tensor, "batch keys"]:
    """No coverage yet; half precision would lose small weights from a long sum."""
    dtype = torch.promote_types(outputs.dtype, torch.float32)
    return torch.zeros(outputs.shape[:2], dtype=dtype, device=outputs.device)


# The decoder without attention.


class PlainDecoder(RecurrentDecoder):
    """s_t = RNN(y_{t−1}, s_{t−1})    Sutskever, Vinyals & Le, 2014: a decoder that cannot look.

    The source reaches it through its initial state alone (Cho et al., 2014, pass a summary of the
    source to every step as well). A whole target is one RNN call.
    """

    def __init__(self, bridge: Bridge, recurrence: Recurrence) -> None:
        super().__init__(bridge, recurrence)
        self.feature_dim = recurrence.rnn.hidden_size

    def start(
        self, encoded: Encoded, token_mask: Bool[Tensor, "batch keys"] | None
    ) -> RecurrentState:
        return RecurrentState(self.bridge(encoded.final))

    def step(
        self, embedded: Float[Tensor, "batch embed_dim"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch dim"], RecurrentState]:
        top, hidden = self.recurrence.step(embedded, state.hidden)
        return top, replace(state, hidden=hidden, position=state.position + 1)

    def decode(
        self, embedded: Float[Tensor, "batch queries embed_dim"], state: RecurrentState
    ) -> Float[Tensor, "batch queries dim"]:
        outputs: Tensor = self.recurrence(embedded, state.hidden)
        return outputs
