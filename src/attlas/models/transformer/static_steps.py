"""Steps of the Transformer's decoder over fixed buffers, which a CUDA graph can replay."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.models.transformer.decoder import DecoderLayer, TransformerDecoder
from attlas.models.transformer.model import Transformer
from attlas.models.transformer.state import TransformerState
from attlas.ops.cache import KeyValueCache
from attlas.patterns import Causal, Everywhere, Pattern


class StaticDecoder:
    """Rows at positions of their own, each with a place for every key that it may read.

    A step writes the key of row r at position p_r, and looks at the positions up to p_r. It asks
    the device for no number, and allocates nothing that lasts. A row is begun by `begin`: what the
    one before left behind lies at later positions, which it does not see.

    Args:
        like: The state of some sources, whose caches tell types and widths.
        rows: How many rows there are.
        source_length: The longest source.
        target_length: The longest target, with BEGIN.
    """

    def __init__(
        self,
        model: Transformer,
        like: TransformerState,
        rows: int,
        source_length: int,
        target_length: int,
    ) -> None:
        self.model = model
        self.rows, self.target_length = rows, target_length
        decoder = model.decoder
        self._layers: list[DecoderLayer] = [*decoder.layers]
        caches = like.source.layers
        self._source = [
            (_room(cache.keys, rows, source_length), _room(cache.values, rows, source_length))
            for cache in caches
        ]
        self._own = [
            (
                _room_for(layer.self_attention.num_kv_heads, cache.keys, rows, target_length),
                _room_for(layer.self_attention.num_kv_heads, cache.values, rows, target_length),
            )
            for layer, cache in zip(self._layers, caches, strict=True)
        ]
        device = caches[0].keys.device
        self.token_mask = torch.zeros(rows, source_length, dtype=torch.bool, device=device)
        self.token_mask[:, 0] = True  # a row that is not begun yet looks at zeros
        self.weights_dtype = torch.promote_types(caches[0].keys.dtype, torch.float32)
        self._places = torch.arange(target_length, device=device)

    @staticmethod
    def check(model: object) -> bool:
        """Return True if the steps of this model can run over fixed buffers: a Transformer whose
        modules are its own, without hooks, in which every position sees itself.
        """
        return (
            type(model) is Transformer
            and type(model.decoder) is TransformerDecoder
            and len(model.decoder.layers) > 0
            and all(
                type(layer) is DecoderLayer and layer.can_step_fast
                for layer in model.decoder.layers
            )
        )

    def begin(
        self,
        rows: Int[Tensor, " begun"],
        state: TransformerState,
        chosen: Int[Tensor, " begun"],
        token_mask: Bool[Tensor, "sources keys"],
    ) -> None:
        """Let these rows begin with the chosen sources of a state."""
        length = token_mask.shape[1]
        for held, cache in zip(self._source, state.source.layers, strict=True):
            for buffer, given in zip(held, (cache.keys, cache.values), strict=True):
                buffer[:, :, :length].index_copy_(0, rows, given.index_select(0, chosen))
        mask = torch.zeros_like(self.token_mask[:1]).expand(len(rows), -1).clone()
        mask[:, :length] = token_mask.index_select(0, chosen)
        self.token_mask.index_copy_(0, rows, mask)

    def step(
        self,
        tokens: Int[Tensor, " rows"],
        positions: Int[Tensor, " rows"],
        source_length: int,
        target_length: int,
        *,
        weighs: bool = False,
    ) -> tuple[Float[Tensor, "rows vocabulary"], Float[Tensor, "rows source_length"] | None]:
        """The logits behind these tokens, and with `weighs` the last layer's cross-attention, the
        mean over its heads.

        Args:
            source_length, target_length: So many positions of the buffers are read.
        """
        model = self.model
        embedded = model.target_embedding(tokens.unsqueeze(1)) * model.scale
        x = model.target_positions(embedded, positions)[:, 0]
        places = self._places[:target_length]
        patterns = {layer.self_attention.pattern for layer in self._layers}
        biases = {pattern: _bias(_allowed(pattern, positions, places)) for pattern in patterns}
        source_bias = _bias(self.token_mask[:, :source_length])
        weights = None
        for number, layer in enumerate(self._layers):
            attention = layer.self_attention
            y = layer.around_self_attention.enter(x)
            new = attention.project_kv(y.unsqueeze(1), key_offset=positions)
            own = self._write(number, new, positions, target_length)
            attended = attention.decode_step(y, own, positions, biases[attention.pattern])
            x = layer.around_self_attention.leave(x, attended)
            keys, values = self._source[number]
            source = KeyValueCache(keys[:, :, :source_length], values[:, :, :source_length])
            if weighs and number == len(self._layers) - 1:
                weights = layer.cross_attention_step_weights(x, source, source_bias)
            x = layer.feed_forward_block(layer.cross_attention_step(x, source, source_bias))
        features = x if model.decoder.norm is None else model.decoder.norm(x)
        return model.logits(features), weights

    def _write(
        self, layer: int, new: KeyValueCache, positions: Int[Tensor, " rows"], length: int
    ) -> KeyValueCache:
        """Put each row's newest position into its place; all of the layer up to `length`."""
        index = positions[:, None, None, None]
        parts: Sequence[tuple[Tensor, Tensor]] = list(
            zip(self._own[layer], (new.keys, new.values), strict=True)
        )
        for buffer, given in parts:
            buffer.scatter_(2, index.expand(given.shape), given.to(buffer.dtype))
        keys, values = (buffer[:, :, :length] for buffer, _ in parts)
        return KeyValueCache(keys, values)


def _room(
    like: Float[Tensor, "sources heads keys head_dim"], rows: int, length: int
) -> Float[Tensor, "rows heads length head_dim"]:
    return like.new_zeros(rows, like.shape[1], length, like.shape[3])


def _room_for(
    heads: int, like: Float[Tensor, "sources source_heads keys head_dim"], rows: int, length: int
) -> Float[Tensor, "rows heads length head_dim"]:
    return like.new_zeros(rows, heads, length, like.shape[3])


def _allowed(
    pattern: Pattern, positions: Int[Tensor, " rows"], places: Int[Tensor, " keys"]
) -> Bool[Tensor, "rows keys"]:
    seen = places <= positions.unsqueeze(1)
    if isinstance(pattern, Causal | Everywhere):
        return seen
    return seen & pattern(positions.unsqueeze(1), places)


def _bias(allowed: Bool[Tensor, "rows keys"]) -> Float[Tensor, "rows 1 1 keys"]:
    zeros = torch.zeros(allowed.shape, device=allowed.device)
    return zeros.masked_fill_(~allowed, -torch.inf)[:, None, None]
