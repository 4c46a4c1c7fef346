"""The Transformer's decoder."""

from dataclasses import replace
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.layers import MultiHead
from attlas.models.cache import SourceMemory
from attlas.models.transformer.block import FeedForward, Residual, Vectors
from attlas.models.transformer.state import TargetMemory, TransformerState
from attlas.ops.cache import Memory
from attlas.ops.guards import hooked
from attlas.patterns import Everywhere

Rows = Float[Tensor, "rows width"]


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
        self.self_attention.tap.across, self.cross_attention.tap.across = False, True
        self.around_cross_attention = around_cross_attention
        self.feedforward = feedforward
        self.around_feedforward = around_feedforward

    @property
    def plain(self) -> bool:
        """Whether a newest position sees itself and all of the source, nobody observes or changes
        what it sees or what an attention reads, and no weight is dropped.
        """
        back, across = self.self_attention, self.cross_attention
        return (
            back.pattern.sees_itself
            and isinstance(across.pattern, Everywhere)
            and not any(a.tap.heard or a.tap.intervened or a.dropout.rate for a in (back, across))
            and not hooked((back, across))
        )

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

    def count_across(
        self, x: Vectors, source: Memory
    ) -> tuple[Vectors, Float[Tensor, "rows heads queries slots"]]:
        """`look_across` with a source for each row, and the weights with which it read."""
        look = self.cross_attention.look(self.around_cross_attention.enter(x), source)
        return self.around_cross_attention.leave(x, look.context), look.used

    def glance_back(
        self,
        x: Rows,
        past: Memory | None,
        own: Float[Tensor, "#memories 1 each slots"] | None,
        memories: int,
        position: int,
    ) -> tuple[Rows, Memory]:
        """`look_back` for one newest position of each row; rows may share their memories.

        own: what is added to the scores: 0, or −∞ where a row has to look past a slot; None =
        nowhere. memories: how many there are, or begin here.
        """
        y = self.around_self_attention.enter(x)
        memory = self.self_attention.remember(y.unsqueeze(1), first=position).joined(memories)
        memory = memory if past is None else past.extend(memory)
        read = self.self_attention.glance(y, memory, position, own)
        return self.around_self_attention.leave(x, read), memory

    def glance_across(
        self, x: Rows, source: Memory, real: Float[Tensor, "sources 1 1 slots"] | None
    ) -> Rows:
        """`look_across` for one position of each row; `real` as `own` of `glance_back`."""
        y = self.around_cross_attention.enter(x)
        return self.around_cross_attention.leave(x, self.cross_attention.glance(y, source, 0, real))

    def glanced(
        self, x: Rows, source: Memory, real: Float[Tensor, "sources 1 1 slots"] | None
    ) -> Float[Tensor, "rows slots"]:
        """The weights of `glance_across`, the mean over its heads."""
        y = self.around_cross_attention.enter(x)
        weights = self.cross_attention.glance_weights(y, source, 0, real)
        return weights.mean(1).flatten(0, 1)

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
        memories = tuple(layer.cross_attention.remember(encoded, real) for layer in self._layers)
        if not torch.is_grad_enabled():  # steps will follow, and read them many times
            memories = tuple(memory.contiguous() for memory in memories)
        return TransformerState(SourceMemory(memories))

    def forward(self, x: Vectors, state: TransformerState) -> tuple[Vectors, TransformerState]:
        """The features of the next positions, one or many, and the state after them."""
        past: tuple[Memory | None, ...] = state.past.spread().layers or (None,) * len(self.layers)
        after, coverage = [], state.coverage
        for number, (layer, behind) in enumerate(zip(self._layers, past, strict=True)):
            x, memory = layer.look_back(x, behind)
            after.append(memory)
            counted = coverage is not None and number == len(past) - 1
            tap = layer.cross_attention.tap
            # Who listens or counts wants one batch row for each row, whoever shares a source.
            alone = counted or tap.heard or tap.intervened
            source = state.source.spread(number) if alone else state.source.layers[number]
            if coverage is not None and counted:
                x, used = layer.count_across(x, source)
                coverage = coverage + used.mean(1).sum(1)
            else:
                x = layer.look_across(x, source)
            x = layer.think(x)
        features = x if self.norm is None else self.norm(x)
        now = TargetMemory(tuple(after), state.position + x.shape[1])
        return features, replace(state, past=now, coverage=coverage)

    def step(self, x: Rows, state: TransformerState) -> tuple[Rows, TransformerState]:
        """`forward` for the newest position of each row: the same with fewer and larger products,
        where no gradient is wanted, nobody listens and no weight is to be dropped.
        """
        sources = state.source.layers[0]
        if not self._plain(state):
            features, longer = self(x.unsqueeze(1), state)
            return features.squeeze(1), longer
        past = state.past.parted().longer(len(x), sources.keys.shape[0], x.device)
        patterns = {layer.self_attention.pattern for layer in self._layers}
        own = {pattern: _bias(past.seen(pattern, x.device)) for pattern in patterns}
        real = None if sources.real is None else _bias(sources.real.unsqueeze(1))
        before: tuple[Memory | None, ...] = past.layers or (None,) * len(self.layers)
        after: list[Memory] = []
        coverage = state.coverage
        for layer, behind, source in zip(self._layers, before, state.source.layers, strict=True):
            seen = own[layer.self_attention.pattern]
            x, memory = layer.glance_back(x, behind, seen, len(x) // past.each, state.position)
            after.append(memory)
            if coverage is not None and len(after) == len(before):  # the last layer's counts
                coverage = coverage + layer.glanced(x, source, real)
            x = layer.think(layer.glance_across(x, source, real))
        features = x if self.norm is None else self.norm(x)
        past = replace(past, layers=tuple(after))
        return features, replace(state, past=past, coverage=coverage)

    def _plain(self, state: TransformerState) -> bool:
        """Whether a step may take the short way."""
        real = state.source.layers[0].real
        return not (
            torch.is_grad_enabled()
            or any(not layer.plain for layer in self._layers)
            or (real is not None and not bool(real.any(1).all()))  # a query that sees nothing
        )

    @property
    def _layers(self) -> list[DecoderLayer]:
        return cast("list[DecoderLayer]", list(self.layers))


def _bias(
    seen: Bool[Tensor, "sources each slots"] | None,
) -> Float[Tensor, "sources 1 each slots"] | None:
    if seen is None:
        return None
    return torch.zeros(seen.shape, device=seen.device).masked_fill_(~seen, -torch.inf).unsqueeze(1)
