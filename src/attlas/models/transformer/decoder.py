"""The Transformer's decoder."""

from dataclasses import replace
from typing import cast

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers import Memory, MultiHead
from attlas.models.transformer.feedforward import FeedForward
from attlas.models.transformer.residual import Residual, Vectors
from attlas.models.transformer.source_memory import SourceMemory
from attlas.models.transformer.state import TransformerState


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, feed-forward, each with add & norm    Vaswani et al.,
    2017, figure 1.
    """

    def __init__(
        self,
        self_attention: MultiHead,
        around_self_attention: Residual,
        cross_attention: MultiHead,
        around_cross_attention: Residual,
        feedforward: FeedForward,
        around_feedforward: Residual,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.around_self_attention = around_self_attention
        self.cross_attention = cross_attention
        self.around_cross_attention = around_cross_attention
        self.feedforward = feedforward
        self.around_feedforward = around_feedforward

    def look_back(self, x: Vectors, past: Memory | None) -> tuple[Vectors, Memory]:
        """Self-attention over the past and these newest positions; the past of the next ones."""
        y = self.around_self_attention.enter(x)
        memory = self.self_attention.remember(y, first=0 if past is None else past.slots)
        if past is not None:
            memory = past.extend(memory)
        read = self.self_attention(y, memory)
        return self.around_self_attention.leave(x, read), memory

    def look_across(self, x: Vectors, source: Memory) -> Vectors:
        """Cross-attention to the source; rows may be several to a source, side by side."""
        y = self.around_cross_attention.enter(x)
        asked = y.reshape(source.keys.shape[0], -1, y.shape[-1])
        read = self.cross_attention(asked, source).view_as(y)
        return self.around_cross_attention.leave(x, read)

    def think(self, x: Vectors) -> Vectors:
        """The feed-forward."""
        added = self.feedforward(self.around_feedforward.enter(x))
        return self.around_feedforward.leave(x, added)


class Decoder(nn.Module):
    """N layers, and behind pre-normed ones a last norm."""

    def __init__(self, layers: list[DecoderLayer], norm: nn.Module | None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def start(
        self, encoded: Float[Tensor, "batch slots width"], real: Bool[Tensor, "batch slots"] | None
    ) -> TransformerState:
        """The state before the first target token."""
        memories = (layer.cross_attention.remember(encoded, real) for layer in self._layers)
        return TransformerState(SourceMemory(tuple(memories)))

    def forward(self, x: Vectors, state: TransformerState) -> tuple[Vectors, TransformerState]:
        """The features of the next positions, one or many, and the state after them."""
        past: tuple[Memory | None, ...] = state.past or (None,) * len(self.layers)
        after, coverage = [], state.coverage
        for number, (layer, behind) in enumerate(zip(self._layers, past, strict=True)):
            x, memory = layer.look_back(x, behind)
            after.append(memory)
            # Who listens wants one batch row for each row, whoever shares a source.
            attention = layer.cross_attention
            listened = attention.tap.heard or attention.tap.intervened
            source = state.source.spread(number) if listened else state.source.layers[number]
            if coverage is not None and number == len(past) - 1:
                asked = layer.around_cross_attention.enter(x)
                weights = attention.weigh(asked, state.source.spread(number))
                coverage = coverage + weights.mean(1).sum(1)
            x = layer.think(layer.look_across(x, source))
        features = x if self.norm is None else self.norm(x)
        return features, replace(state, past=tuple(after), coverage=coverage)

    @property
    def _layers(self) -> list[DecoderLayer]:
        return cast("list[DecoderLayer]", list(self.layers))
